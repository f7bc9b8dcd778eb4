r"""
From couplings to a phase diagram
=================================

The entropy S_I*(d) of the densest regions of fixed points determines the phase. It is monotone
where they form one connected representation manifold, has a maximum where they are islands, and
is negative at some distance where a gap separates these islands from all others. One layer has
two thresholds on the axis of J_D; ``rt.phase_diagram`` draws the same lines in the plane of J_D
and lambda.
"""

import matplotlib.pyplot as plt
import numpy as np

import rmtheory as rt

rm = rt.critical_coupling(1, "jd")
gap = rt.critical_coupling(1, "jd", kind="gap")
print(f"gap closes between {gap.low:.7f} and {gap.high:.7f}")
print(f"manifold begins between {rm.low:.7f} and {rm.high:.7f}")

distances = np.geomspace(2e-3, 0.2, 14)
fig, ax = plt.subplots(figsize=(5, 3.3), layout="constrained")
for jd, phase in ((0.05, "gap"), (0.066, "islands"), (0.09, "manifold")):
    curve = rt.curve(rt.Chain(1, jd=jd), distances)
    ax.plot(curve.d, 1e3 * curve.internal, ".-", label=f"$J_D = {jd}$: {phase}")
ax.axhline(0, color="0.4", linewidth=0.8)
ax.set(xscale="log", xlabel="distance $d$", ylabel=r"$10^3\,S_I^*$ (nat per neuron)", ylim=(-4, 25))
ax.legend()
plt.show()
