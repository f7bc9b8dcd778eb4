"""
Reinforced BP finds what the dynamics cannot
============================================

At J_D = 0.3 the dynamics of 200 neurons finds no fixed point within 1000 sweeps, although
exponentially many exist. Reinforced belief propagation finds them down to J_D = 0.2.
"""

import matplotlib.pyplot as plt
import numpy as np

import rmsim as rs

couplings = np.array([0.1, 0.2, 0.3, 0.5, 0.6])
samples = 8

fig, ax = plt.subplots(figsize=(5, 3.3), layout="constrained")
for method, label in (("rbp", "reinforced BP"), ("dynamics", "dynamics, 1000 sweeps")):
    solved = []
    for jd in couplings:
        network = rs.Network(200, rs.Chain(1, jd=float(jd)))
        solved.append(float(rs.find_fixed_point(network, method, samples=samples).solved.sum()))
    share = np.array(solved) / samples
    # Laplace's rule keeps the error of 0 or 8 out of 8 away from zero.
    smoothed = (np.array(solved) + 1) / (samples + 2)
    ax.errorbar(
        couplings, share, np.sqrt(smoothed * (1 - smoothed) / (samples + 3)),
        fmt="o-", capsize=3, label=label,
    )  # fmt: skip
ax.set(xlabel="self-coupling $J_D$", ylabel=f"share of {samples} networks solved")
ax.legend()
plt.show()
