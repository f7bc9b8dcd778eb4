"""A synthetic set: noisy copies of one random pattern for each class."""

from __future__ import annotations

import numpy as np
import torch

from rmsim.data.dataset import Dataset, Samples
from rmsim.randomness import checked_seed, generator
from rmtheory import checks
from rmtheory.errors import InvalidInputError

NAME = "synthetic"


def synthetic(
    classes: int = 10,
    width: int = 100,
    train: int = 2000,
    test: int = 500,
    flips: float = 0.2,
    seed: int = 0,
) -> Dataset:
    """Return spins x_k = sign(g_k) e_k, g Gaussian for each class, e_k = -1 with chance `flips`.

    Classes take turns, so that each has its share of the samples.

    Examples
    --------
    >>> data = synthetic(classes=3, width=5, train=6, test=3, flips=0)
    >>> data.train.labels.tolist()
    [0, 1, 2, 0, 1, 2]
    >>> bool((data.train.inputs[:3] == data.train.inputs[3:]).all())
    True
    """
    seed = checked_seed(seed)
    classes = checks.integer("classes", classes, 2)
    width = checks.integer("width", width, 1)
    chance = float(checks.exact_real("flips", flips))
    if not 0 <= chance <= 0.5:
        raise InvalidInputError("flips", flips, "a probability from 0 to 0.5")
    prototypes = torch.randn((classes, width), generator=generator(seed, 0)).sign()

    def part(count: int, stream: torch.Generator) -> Samples:
        labels = torch.arange(count) % classes
        flipped = torch.rand((count, width), generator=stream) < chance
        spins = torch.where(flipped, -1, 1) * prototypes[labels]
        return Samples(spins.numpy().astype(np.int8), labels.numpy())

    return Dataset(
        NAME,
        part(checks.integer("train", train, 1), generator(seed, 1)),
        part(checks.integer("test", test, 1), generator(seed, 2)),
        classes,
        f"made with seed {seed}",
        "none needed",
    )
