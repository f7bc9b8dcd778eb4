"""
A sweep on a cluster
====================

Where do half of the networks reach a fixed point? ``rs.thresholds`` runs the grid of sizes,
couplings and samples as a sweep: every finished point is a file in the folder, so that a sweep
that was killed resumes, and only what is new is computed when the grid grows. Here it runs in
this process; ``rs.Local(8)`` uses eight, ``rs.sweep.Dask("tcp://host:8786")`` a cluster.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np

import rmsim as rs

grid = {"jd": np.round(np.arange(0.0, 0.61, 0.1), 2).tolist(), "samples": 40}

with tempfile.TemporaryDirectory() as folder:
    rs.thresholds([25, 50], **grid, out=f"{folder}/sweep", backend=rs.Serial())
    # A larger grid in the same folder: the sizes that are there are not computed again.
    result = rs.thresholds([25, 50, 100], **grid, out=f"{folder}/sweep", backend=rs.Serial())

fig, ax = plt.subplots(figsize=(5, 3.3), layout="constrained")
for k, n in enumerate(result.data.n.values):
    one = result.data.sel(n=n)
    ax.errorbar(one.jd, one.success, one.success_error, fmt="o-", capsize=3, color=f"C{k}",
                label=f"N = {n}")  # fmt: skip
    ax.axvline(float(one.threshold), color=f"C{k}", linestyle=":")
ax.axhline(0.5, color="0.6", linewidth=0.8)
ax.set(xlabel="self-coupling $J_D$", ylabel="share of networks that stop")
ax.legend(title="dotted: half of them")
plt.show()
