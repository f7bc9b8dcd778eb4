"""
An entropy with its error
=========================

The annealed entropy counts all fixed points: their mean number grows as exp(N L S_a). One call
gives a certified number, another one whole curves in float64, with a bound on their error.
"""

import matplotlib.pyplot as plt
import numpy as np

import rmtheory as rt

s = rt.entropy(rt.Chain(layers=2, jd=0.3, lam=0.7), digits=30)
print(s, "-", s.tier, "by", s.method)

# %%
# Chains of one, two and infinitely many layers. The entropy does not grow with lambda in general:
# for two layers at J_D = 1 it falls (erratum 3).

jd = np.linspace(0, 2, 101)
fig, ax = plt.subplots(figsize=(5, 3.3), layout="constrained")
for layers, lam, label in ((1, 0, "one layer"), (2, 0.7, "two layers"), (np.inf, 0.7, "infinite")):
    value, error = rt.entropy_array(layers, jd, lam)
    print(f"{label}: largest error {error.max():.0e}")
    name = label if layers == 1 else rf"{label}, $\lambda = {lam}$"
    ax.plot(jd, value, label=name)
ax.plot(0.3, float(s), "ko", markersize=4)
ax.axhline(np.log(2), color="0.4", linestyle=":", label=r"$\log 2$: every state")
ax.set(xlabel="self-coupling $J_D$", ylabel="$S_a$ (nat per neuron)")
ax.legend()
plt.show()
