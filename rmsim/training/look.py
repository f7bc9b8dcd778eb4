"""What is measured after every epoch, and written to the log.

Accuracies on the test set and on as many samples of the training set; q_dyn, margins, sweeps and
the fraction of unstable states on the first samples of the training set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rmsim.data import Samples
from rmsim.dynamics.summary import wilson_half_width
from rmsim.learning import Parameters, State, accuracy, measure
from rmtheory import checks


@dataclass(frozen=True)
class Watch:
    """How closely a run is watched.

    Parameters
    ----------
    phases : int
        Training samples that are presented to measure q_dyn, margins, sweeps, stability.
    accuracy : int
        Training samples whose class is predicted; the test set is always predicted in full.
    """

    phases: int = 2000
    accuracy: int = 10_000

    def __post_init__(self) -> None:
        checks.integer("phases", self.phases, 1)
        checks.integer("accuracy", self.accuracy, 1)


def look(
    parameters: Parameters, state: State, train: Samples, test: Samples, watch: Watch
) -> dict[str, Any]:
    """Return the measurements of one moment as JSON values, fractions with NAME_error.

    The error of a fraction is binomial (Wilson's), for new samples of the same kind.
    """
    watched = train.first(min(watch.phases, len(train)))
    seen = measure(parameters, state, *watched.tensors(state.dtype))
    predicted = train.first(min(watch.accuracy, len(train)))
    found = {**accuracies(parameters, state, predicted, test), **seen.to_dict()}
    for name in ("unstable_clamped", "unstable_free"):
        found[f"{name}_error"] = binomial_error(getattr(seen, name), seen.samples)
    return found


def accuracies(
    parameters: Parameters, state: State, train: Samples, test: Samples
) -> dict[str, float | None]:
    """Return train_accuracy and test_accuracy with their errors; None if nothing is read out."""
    found: dict[str, float | None] = {}
    for name, samples in (("train_accuracy", train), ("test_accuracy", test)):
        if not len(state.w_out):
            found |= {name: None, f"{name}_error": None}
            continue
        value = accuracy(parameters, state, *samples.tensors(state.dtype))
        found |= {name: value, f"{name}_error": binomial_error(value, len(samples))}
    return found


def binomial_error(fraction: float, samples: int) -> float:
    """Return the standard error of a `fraction` of `samples`; it does not vanish at 0 and 1.

    Examples
    --------
    >>> round(binomial_error(0.9, 10000), 4), round(binomial_error(1.0, 100), 4)
    (0.003, 0.005)
    """
    return float(wilson_half_width(fraction, samples))
