r"""A linear readout without bias: class :math:`\arg\max_c o_c`, outputs :math:`o = W s`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from rmsim.dynamics.summary import wilson_half_width
from rmsim.readout.features import Features
from rmtheory import checks
from rmtheory.errors import InvalidInputError, NotConvergedError


@dataclass(frozen=True)
class Score:
    """How well samples are classified.

    Parameters
    ----------
    accuracy : float
        Fraction of the samples whose class is predicted.
    error : float
        Of the accuracy as an estimate for new samples: Wilson's 68 % half width.
    loss : float
        Mean cross-entropy -log softmax(o)_y, in nats.
    """

    accuracy: float
    error: float
    loss: float


@dataclass(frozen=True, eq=False)
class LinearReadout:
    """Weights W of shape (C, N)."""

    weights: torch.Tensor

    def outputs(self, values: torch.Tensor) -> torch.Tensor:
        """Return o = W s of features (samples, N)."""
        return values.to(self.weights.dtype) @ self.weights.T

    def score(self, features: Features) -> Score:
        """Return accuracy and loss on `features`."""
        if (features.classes, features.width) != tuple(self.weights.shape):
            there = f"{features.classes} classes and width {features.width}"
            allowed = "of {} classes and width {}".format(*self.weights.shape)
            raise InvalidInputError("features", there, allowed)
        return score(self.outputs, features)


def score(outputs: Callable[[torch.Tensor], torch.Tensor], features: Features) -> Score:
    """Return accuracy and loss on `features` of what `outputs` makes of them."""
    correct, loss = 0, 0.0
    for values, labels in features.parts():
        found = outputs(values)
        correct += int((found.argmax(1) == labels).sum())
        loss += float(torch.nn.functional.cross_entropy(found, labels, reduction="sum"))
    accuracy = correct / len(features)
    error = float(wilson_half_width(accuracy, len(features)))
    return Score(accuracy, error, loss / len(features))


def checked_rate(argument: str, value: object) -> float:
    """Return a learning rate that float32 can hold."""
    rate = float(checks.exact_real(argument, value))
    if not 1e-30 <= rate <= 1e30:
        raise InvalidInputError(argument, value, "from 1e-30 to 1e30")
    return rate


def demand_finite(weights: torch.Tensor, epoch: int, eta: float) -> None:
    """Raise if training diverged."""
    if not bool(weights.isfinite().all()):
        raise NotConvergedError(
            f"the weights are no longer finite in epoch {epoch + 1}: lower eta = {eta:g}"
        )
