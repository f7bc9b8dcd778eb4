"""Small runs that the tests of training share."""

from pathlib import Path
from typing import Any

import torch

from rmsim.data import synthetic
from rmsim.learning import State
from rmsim.learning.run_folder import Plan
from rmsim.learning.training import Metrics, Outcome, train

DATA = synthetic()
METRICS = Metrics(phases=100, accuracy=200)


def plan(preset: str = "entangled-mnist-dense", n: int = 60, **others: Any) -> Plan:
    few = {"train_samples": 400, "test_samples": 200, "dataset": "synthetic"}
    return Plan.of_preset(preset, n, **{**few, **others})


def trained(folder: Path, epochs: int, wanted: Plan | None = None, **more: Any) -> Outcome:
    wanted = plan() if wanted is None else wanted
    settings = {"device": "cpu", "metrics": METRICS, "probe": 0, **more}
    return train(wanted, DATA, epochs, out=folder, **settings)


def same(one: State, two: State) -> bool:
    a, b = one.tensors(), two.tensors()
    return (one.step, one.seed, a.keys()) == (two.step, two.seed, b.keys()) and all(
        torch.equal(a[name], b[name]) for name in a
    )


def timeless(records: Any) -> list[dict[str, Any]]:
    clocks = ("seconds", "samples_per_second", "date")
    return [{key: r[key] for key in r if key not in clocks} for r in records]
