"""Training in a folder: epochs, measurements, checkpoints; see :func:`run`.

>>> import tempfile
>>> from rmsim.data import synthetic
>>> few = {"dataset": "synthetic", "train_samples": 200, "test_samples": 50}
>>> plan = Plan.of_preset("entangled-mnist-dense", 50, **few)
>>> with tempfile.TemporaryDirectory() as folder:
...     outcome = run(plan, synthetic(), folder, epochs=1, device="cpu")
>>> [record["epoch"] for record in outcome.records], outcome.state.step
([0, 1], 13)
"""

from __future__ import annotations

from rmsim.training.checkpoint import Checkpoint, load_checkpoint
from rmsim.training.evaluate import evaluate
from rmsim.training.folder import Folder
from rmsim.training.log import read_log
from rmsim.training.look import Watch
from rmsim.training.plan import Plan
from rmsim.training.probe import StoredProbe, by_probe, load_probe, train_probe
from rmsim.training.trainer import Outcome, Progress, learn_epoch, run
from rmtheory.errors import StorageError

__all__ = [
    "Checkpoint",
    "Folder",
    "Outcome",
    "Plan",
    "Progress",
    "StorageError",
    "StoredProbe",
    "Watch",
    "by_probe",
    "evaluate",
    "learn_epoch",
    "load_checkpoint",
    "load_probe",
    "read_log",
    "run",
    "train_probe",
]
