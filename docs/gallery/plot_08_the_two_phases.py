"""
The two phases
==============

Learning compares two states: s', to which the network relaxes under the input and the label, and
s*, which it reaches when the label is removed. Their overlap q_dyn is one if the state with the
label is a fixed point without it. Training brings it close to one.
"""

import matplotlib.pyplot as plt
import numpy as np

import rmsim as rs

data = rs.load_data("entangled-mnist").train.first(2000)
parameters = rs.learning.preset("entangled-mnist-dense").parameters(200)
state = rs.learning.initialise(parameters, inputs=100, classes=10, seed=0)


def overlaps(state):
    """The overlap of s' and s* for every image."""
    # A step of learning also gives its phases; the state that it has learnt is not used.
    _, phases = rs.learning.batch_step(parameters, state, data.inputs[:500], data.labels[:500])
    return (phases.s_prime.double() * phases.s_star.double()).mean(dim=(1, 2)).numpy()


before = overlaps(state)
order = rs.learning.epoch_order(0, 0, len(data.labels))
state = rs.learning.train_epoch(parameters, state, data.inputs, data.labels, order)
after = overlaps(state)

fig, ax = plt.subplots(figsize=(5, 3.3), layout="constrained")
bins = np.linspace(min(before.min(), after.min()), 1, 40)
ax.hist(before, bins, alpha=0.7, label=f"before training, median {np.median(before):.3f}")
ax.hist(after, bins, alpha=0.7, label=f"after one epoch, median {np.median(after):.3f}")
ax.set(xlabel="overlap $q_{dyn}$ of the two phases", ylabel="images")
ax.legend(loc="upper left")
plt.show()
