"""
Belief propagation on your own network
======================================

Couplings of your own are an array. Belief propagation gives the magnetisation of every neuron
over all fixed points at once; for 18 neurons all fixed points can be enumerated, which shows how
accurate it is. A weak field on every neuron breaks the symmetry s -> -s.
"""

import matplotlib.pyplot as plt
import numpy as np

import rmsim as rs

n = 18
J = np.random.default_rng(3).normal(size=(n, n)) / n**0.5
np.fill_diagonal(J, 0)  # the self-coupling is an argument of its own
network = rs.Network.from_array(J, jd=0.8)

# Weight exp(field . s) of a fixed point s.
field = 0.3 * np.sign(np.random.default_rng(4).normal(size=(1, n)))
beliefs = rs.belief_propagation(network, field=field, dtype="float64")

points = rs.enumerate_fixed_points(network, keep_states=True).states.reshape(-1, n)
weights = np.exp(points @ field[0])
exact = weights @ points / weights.sum()
print(f"{len(points)} fixed points; BP: {rs.Status(int(beliefs.status)).label}")

fig, ax = plt.subplots(figsize=(3.6, 3.4), layout="constrained")
ax.plot([-1, 1], [-1, 1], color="0.6", linewidth=0.8)
ax.plot(exact, beliefs.messages.m.reshape(-1), "o")
ax.set(xlabel="magnetisation, enumerated", ylabel="belief propagation", aspect="equal")
plt.show()
