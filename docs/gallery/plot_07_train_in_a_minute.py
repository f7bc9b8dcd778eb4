"""
Train in a minute
=================

A network of 200 neurons learns Entangled MNIST, which ships with the package, by the local rule
of the paper: no gradient is computed. The preset ``entangled-mnist-dense`` has the constants that
reproduce the numbers of the paper; 6000 images are enough to see it learn.
"""

import matplotlib.pyplot as plt

import rmsim as rs

plan = rs.Plan.of_preset(
    "entangled-mnist-dense", 200, seed=0, train_samples=6000, test_samples=1000
)
outcome = rs.train(plan, rs.load_data("entangled-mnist"), 4, device="cpu")

epochs = [record["epoch"] for record in outcome.records]
fig, ax = plt.subplots(figsize=(5, 3.3), layout="constrained")
for name, label in (("train_accuracy", "images trained on"), ("test_accuracy", "new images")):
    values = [record[name] for record in outcome.records]
    ax.plot(epochs, values, "o-", label=label)
ax.axhline(0.1, color="0.4", linestyle=":", label="chance")
ax.set(xlabel="epoch", ylabel="accuracy", ylim=(0, 1), xticks=epochs)
ax.legend()
plt.show()
