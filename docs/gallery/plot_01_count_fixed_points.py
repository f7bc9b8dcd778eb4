"""
Count fixed points
==================

All fixed points of small random networks, found by branch and bound, against the exact mean. With
couplings of variance 1/N the mean number of fixed points is known at every N, not only for large
N.
"""

import matplotlib.pyplot as plt
import numpy as np

import rmsim as rs
import rmtheory as rt

n, samples = 12, 100
couplings = np.linspace(0.0, 0.8, 5)

counts = [
    rs.enumerate_samples(rs.Network(n, rs.Chain(1, jd=jd)), samples, seed=0).counts
    for jd in couplings
]
mean = np.array([count.mean() for count in counts])
error = np.array([count.std(ddof=1) / samples**0.5 for count in counts])

exact = [float(rt.mean_count(rt.Chain(1, jd=jd), n=n)) for jd in couplings]
large = np.exp(n * rt.entropy_array(1, couplings)[0])

fig, ax = plt.subplots(figsize=(5, 3.3), layout="constrained")
ax.errorbar(couplings, mean, error, fmt="o", capsize=3, label=f"{samples} networks")
ax.plot(couplings, exact, label=f"exact mean, N = {n}")
ax.plot(couplings, large, ":", color="0.4", label=r"$e^{N S_a}$, large N")
ax.set(yscale="log", xlabel="self-coupling $J_D$", ylabel="number of fixed points")
ax.legend()
plt.show()
