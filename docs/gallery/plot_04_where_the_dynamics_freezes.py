"""
Where the dynamics freezes
==========================

For N -> infinity the dynamics of a network is that of one neuron in a Gaussian field with memory.
The share f(t) of neurons that flip in a sweep settles at a positive value below J_D = 0.815,
where the network never stops, and falls to zero above it. A network of 1000 neurons follows the
theory, which has no fitted parameter.
"""

import matplotlib.pyplot as plt
import numpy as np

import rmsim as rs
import rmtheory as rt

sweeps = 40
fig, ax = plt.subplots(figsize=(5, 3.3), layout="constrained")
for k, jd in enumerate((0.5, 0.7, 0.9)):
    theory = rt.mean_field(rt.Chain(1, jd=jd), sweeps, trajectories=4000).flip_rate
    t = np.arange(1, sweeps + 1)
    low, high = theory.value - theory.error, theory.value + theory.error
    ax.plot(t, theory.value, color=f"C{k}", label=f"$J_D = {jd}$")
    ax.fill_between(t, low, high, color=f"C{k}", alpha=0.3)

    network = rs.Network(1000, rs.Chain(1, jd=jd))
    state, flips = None, []
    for _ in range(20):
        result = rs.relax(network, state, samples=1, max_sweeps=1)
        if state is not None:
            flips.append(float((result.state != state).double().mean()))
        state = result.state
    ax.plot(np.arange(2, 2 + len(flips)), flips, "o", color=f"C{k}", markersize=3)
ax.set(
    yscale="log", ylim=(1e-3, 1), xlabel="sweep $t$", ylabel="share of neurons that flip, $f(t)$"
)
ax.legend(title="line: theory, points: N = 1000")
plt.show()
