r"""What is measured of a network that learns.

.. math:: q_{dyn} = \frac1N\sum_i s'_i s^*_i, \qquad
    \rho = \frac{\lVert S\rVert - \lVert A\rVert}{\lVert S\rVert + \lVert A\rVert},
    \quad J = S + A \text{ off the diagonal}

(paper, SM-F and SM-H). The paper's brackets of q_dyn are the quartiles.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
import torch

from rmsim.learning.flips import by_columns
from rmsim.learning.parameters import Parameters
from rmsim.learning.phases import MEASUREMENT, is_fixed, label_code, present
from rmsim.learning.plasticity import update_field
from rmsim.learning.state import State
from rmsim.learning.validation import (
    Array,
    checked_samples,
)
from rmtheory.base.statistics import quantile_error, standard_error

_LEVELS = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}


@dataclass(frozen=True)
class Quantiles:
    """Median, quartiles and 5-95 % range over the samples."""

    median: float
    q25: float
    q75: float
    q05: float
    q95: float

    @classmethod
    def of(cls, values: torch.Tensor) -> Quantiles:
        """Return the quantiles of `values`.

        Examples
        --------
        >>> Quantiles.of(torch.arange(101.0)).q25
        25.0
        """
        samples = values.flatten().double().cpu().numpy()
        return cls(**{name: float(np.quantile(samples, p)) for name, p in _LEVELS.items()})


@dataclass(frozen=True)
class QuantileErrors:
    """Errors of :class:`Quantiles`; None where there are too few samples."""

    median: float | None
    q25: float | None
    q75: float | None
    q05: float | None
    q95: float | None

    @classmethod
    def of(cls, values: torch.Tensor, resolution: float = 0.0) -> QuantileErrors:
        r"""Return the error of each quantile of independent `values`.

        That of :func:`rmtheory.base.statistics.quantile_error`, with the `resolution`, half a step
        of the values, in quadrature. Where no value of so few bounds the quantile, its error is not
        known.

        Examples
        --------
        >>> round(QuantileErrors.of(torch.arange(10001.0)).median)  # sqrt(10001)/2
        50
        >>> QuantileErrors.of(torch.ones(10), resolution=0.5)
        QuantileErrors(median=0.5, q25=0.5, q75=0.5, q05=None, q95=None)
        """
        errors: dict[str, float | None] = {}
        samples = values.flatten().cpu().numpy()
        for name, level in _LEVELS.items():
            error = float(
                quantile_error(
                    samples, level, resolution=resolution, floor="quadrature", unbounded="nan"
                )
            )
            errors[name] = None if math.isnan(error) else error
        return cls(**errors)


def _sweeps_error(values: torch.Tensor, until_convergence: bool) -> float | None:
    """Return the standard error of a mean number of sweeps; None if one sample has no spread.

    Samples that all took equally many do not prove that every sample does: one more sweep of one of
    them would move the mean by 1/P, and the error is not below that. A fixed number has no error.
    """
    count = values.numel()
    if not until_convergence:
        return 0.0
    if count < 2:
        return None
    return max(float(standard_error(values.cpu())), 1 / count)


@dataclass(frozen=True)
class Measurement:
    """What is measured of a network, over some samples.

    Parameters
    ----------
    samples : int
        Samples measured.
    q_dyn : Quantiles
        Overlap of s' and s* of each sample.
    q_dyn_error : QuantileErrors
        Errors of these quantiles, not below half a step of the overlap, 1/N (None: one sample).
    margin : Quantiles
        Least s_i h_i of each sample at s*, with the field that the rule tests.
    unstable_clamped, unstable_free : float
        Fraction of samples whose s' (s*) is not a fixed point of its phase.
    sweeps_clamped, sweeps_free : float
        Mean number of sweeps that changed the state, if the protocol runs until convergence; else
        those it does.
    sweeps_clamped_error, sweeps_free_error : float
        Standard errors of these means (None: one sample).
    below_kappa : float
        Fraction of neurons with s_i h_i <= kappa_j, which the next step would update.
    symmetry : float
        Symmetry level of J off the diagonal; 1 symmetric, -1 antisymmetric, 0 independent. None
        if J has no entry but 0.
    """

    samples: int
    q_dyn: Quantiles
    q_dyn_error: QuantileErrors | None
    margin: Quantiles
    unstable_clamped: float
    unstable_free: float
    sweeps_clamped: float
    sweeps_free: float
    sweeps_clamped_error: float | None
    sweeps_free_error: float | None
    below_kappa: float
    symmetry: float | None

    def to_dict(self) -> dict[str, object]:
        """Return the numbers as JSON values."""
        return asdict(self)


def measure(
    parameters: Parameters, state: State, inputs: Array, labels: Array, *, together: int = 512
) -> Measurement:
    """Present the samples without learning, and measure.

    Parameters
    ----------
    parameters, state, inputs, labels
        As for :func:`rmsim.learning.batch_step`.
    together : int
        Samples relaxed together.
    """
    x, y = checked_samples(parameters, state, inputs, labels)
    state = by_columns(state)
    parts: dict[str, list[torch.Tensor]] = {}
    for number, first in enumerate(range(0, len(x), together)):
        part = slice(first, first + together)
        batch = x[part].to(dtype=state.dtype, device=state.device)
        code = label_code(parameters, state, y[part])
        ends = present(parameters, state, batch, code, number, stream=MEASUREMENT)
        margin = ends.s_star * update_field(parameters, state, ends)
        both = ends.input_field + ends.label_field
        final_field = both if parameters.phases.scheme == "approximate" else ends.input_field
        row = {
            "q_dyn": (ends.s_prime * ends.s_star).flatten(1).mean(1),
            "margin": margin.flatten(1).amin(1),
            "below": (margin <= parameters.j.kappa).flatten(1).double().mean(1),
            "clamped": ~is_fixed(state.couplings, ends.s_prime, both),
            "free": ~is_fixed(state.couplings, ends.s_star, final_field),
            "sweeps_clamped": ends.clamped.sweeps,
            "sweeps_free": ends.free.sweeps,
        }
        for name, values in row.items():
            parts.setdefault(name, []).append(values)
    # Quantiles and means are taken on the CPU, so that a GPU is waited for once for each.
    all_of = {name: torch.cat(values).cpu() for name, values in parts.items()}
    until_convergence = parameters.phases.stop == "converged"
    step = 2 / parameters.neurons  # of the overlap, if one spin differs
    mean = {name: float(values.double().mean()) for name, values in all_of.items()}
    return Measurement(
        samples=len(x),
        q_dyn=Quantiles.of(all_of["q_dyn"]),
        q_dyn_error=QuantileErrors.of(all_of["q_dyn"], step / 2) if len(x) > 1 else None,
        margin=Quantiles.of(all_of["margin"]),
        unstable_clamped=mean["clamped"],
        unstable_free=mean["free"],
        sweeps_clamped=mean["sweeps_clamped"],
        sweeps_free=mean["sweeps_free"],
        sweeps_clamped_error=_sweeps_error(all_of["sweeps_clamped"], until_convergence),
        sweeps_free_error=_sweeps_error(all_of["sweeps_free"], until_convergence),
        below_kappa=mean["below"],
        symmetry=symmetry_level(state),
    )


def symmetry_level(state: State) -> float | None:
    """Return (|S| - |A|) / (|S| + |A|) of J off the diagonal, over all layers; None if J = 0.

    With a = sum J_ij^2 and b = sum J_ij J_ji, |S|^2 = (a + b)/2 and |A|^2 = (a - b)/2.
    """
    square, crossed = state.couplings.squares(0)
    symmetric, other = (math.sqrt(max(0.0, square + sign * crossed)) for sign in (1, -1))
    if symmetric + other == 0:
        return None
    return (symmetric - other) / (symmetric + other)
