r"""Averages of the effective process over time: flip rate, correlations, margins at the end.

.. math:: f(t) = \frac{1 - C(t, t-1)}{2}, \qquad C(t, t') = \langle s(t) s(t') \rangle,

and the fraction of neurons that disagree with their field,
of which a mask updates a part p only. Where f falls, its local exponent over a factor of two in
time is

.. math:: a(t) = \log_2 \frac{\sum_{t \le t' < 2t} f(t')}{\tfrac12 \sum_{2t \le t' < 4t} f(t')} ,

a for a power law :math:`f \propto t^{-a}` whatever t. Every number is the mean over independent
batches of copies (:mod:`rmtheory.dynamics.process`). A measured C brings a bias proportional to
1/M, so that batches of a quarter of the size differ from whole ones by three times the bias of
these:

.. math:: \sigma^2 = \sigma_{batches}^2 + b^2, \qquad b = \frac{|\bar x_{M/4} - \bar x_M|}{3} ,

whether or not the difference exceeds its own scatter, which enlarges the error of an unbiased
number by a quarter. Small batches may stop altogether, as small networks do, and then say nothing
of large ones: where b is larger than the scatter of :math:`\bar x_{M/2} - \bar x_M`, the larger of
that difference and its scatter takes its place, unless b is smaller still.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.base.statistics import mean, mean_of_rows
from rmtheory.dynamics.process import Arrays, NumpyArrays, Process

Floats = NDArray[np.float64]

LEAST_TRAJECTORIES = 1000
#: Batches of the full size.
BATCHES = 8
#: Batches by which the bias is seen, of half and of a quarter of the size: half as much work again.
_HALVES, _QUARTERS = 4, 8
#: Errors by which a flip rate falls, or is above 0.
_FALLS = 2.5
#: Bytes of normal numbers that one batch may keep.
_MOST_BYTES = 400 * 2**20
#: Beyond this the triangular solves, of order sweeps^3, take longer than the sampling.
MOST_SWEEPS = 4000
#: All pairs of times are kept up to this many sweeps: 8 MB per batch.
MOST_CORRELATED = 1000


@dataclass(frozen=True, eq=False)
class Series:
    """A quantity at every sweep, with its error."""

    value: Floats
    error: Floats
    method: str

    def __getitem__(self, index: int) -> Estimate:
        """Return one entry as an estimate."""
        return Estimate(
            float(self.value[index]), float(self.error[index]), Tier.ESTIMATED, self.method
        )


@dataclass(frozen=True, eq=False)
class MeanField:
    """Averages of the dynamics for N -> infinity, from a random start.

    Parameters
    ----------
    chain, p, trajectories, seed
        The model, the update probability, the number of copies and their seed.
    flip_rate, overlap_with_start, unstable : Series, (sweeps)
        After sweep t = 1, 2, ...: the fraction of neurons that this sweep flipped, C(t, 0), and
        the fraction that disagreed with their field before it. Means over the layers.
    never_moved : Estimate
        Fraction of neurons that no sweep flipped.
    flip_rate_late : Estimate or None
        Mean of f over the last half of the sweeps; None if it still falls, or if its error does
        not tell it from 0.
    reason : str
        Why there is no `flip_rate_late`, otherwise empty.
    margins : Series, (quantiles)
        Quantiles of s h after the last sweep, at `margin_levels`; positive in a fixed point.
    exponents : Series, (windows)
        Local exponents a(t) at t = 1, 2, 4, ..., as long as every batch has flips up to 4 t.
    correlation : Series, (sweeps + 1, sweeps + 1), or None
        C(t, t') from t = 0 on, mean over the layers, where it was asked for.
    """

    chain: Chain
    p: float
    trajectories: int
    seed: int
    flip_rate: Series
    overlap_with_start: Series
    unstable: Series
    never_moved: Estimate
    flip_rate_late: Estimate | None
    reason: str
    margins: Series
    exponents: Series
    correlation: Series | None = None

    #: Levels of `margins`.
    margin_levels: ClassVar[tuple[float, ...]] = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)

    @property
    def sweeps(self) -> int:
        """The number of sweeps."""
        return len(self.flip_rate.value)

    @property
    def exponent_times(self) -> tuple[int, ...]:
        """The t = 1, 2, 4, ... of `exponents`."""
        return tuple(2**k for k in range(len(self.exponents.value)))


@dataclass(frozen=True, eq=False)
class _Batch:
    flips: Floats
    overlaps: Floats
    unstable: Floats
    never_moved: float
    margins: Floats
    correlation: Floats | None


def mean_field(
    chain: Chain,
    sweeps: int = 300,
    *,
    p: float = 1.0,
    trajectories: int = 100_000,
    seed: int = 0,
    correlation: bool = False,
    arrays: Callable[[np.random.SeedSequence], Arrays] = NumpyArrays.of_seed,
) -> MeanField:
    r"""Return the averages of the dynamics for N -> infinity over `sweeps` sweeps.

    Parameters
    ----------
    chain : Chain
        The model, a finite number of layers.
    sweeps : int
        T, from 1 to 4000. The work grows as :math:`L\,T^2` times the trajectories.
    p : float
        Probability that a neuron is updated in a sweep; 1 updates all at once.
    trajectories : int
        Copies of the effective process, at least 1000.
    seed : int
        The same seed gives the same numbers.
    correlation : bool
        Whether to return C(t, t') for all pairs of times, for at most 1000 sweeps.
    arrays : callable
        Where the copies of a batch are kept, given its seed: numpy unless another place is given
        (:func:`rmsim.studies.mean_field` has that of a GPU).

    Examples
    --------
    >>> import rmtheory as rt
    >>> result = rt.mean_field(rt.Chain(1, jd=0.5), sweeps=3, trajectories=20_000)
    >>> abs(result.overlap_with_start[0].value - 0.3829) < 0.02  # 2 P(1/2) - 1
    True
    """
    layers = chain.finite_layers
    sweeps = checks.integer("sweeps", sweeps, 1, MOST_SWEEPS)
    trajectories = checks.integer("trajectories", trajectories, LEAST_TRAJECTORIES)
    seed = checks.integer("seed", seed, 0)
    rate = update_probability(p)
    chain.refuse_beyond(1e6)
    if correlation and sweeps > MOST_CORRELATED:
        raise InvalidInputError("sweeps", sweeps, f"at most {MOST_CORRELATED} with C(t, t')")
    size = min(math.ceil(trajectories / BATCHES), max(64, _MOST_BYTES // (4 * sweeps * layers)))
    count = math.ceil(trajectories / size)
    sequence = np.random.SeedSequence(seed)
    whole, half, quarter = (
        [
            _run(chain, sweeps, rate, copies, arrays(one), correlation)
            for one in sequence.spawn(number)
        ]
        for copies, number in (
            (size, count),
            (max(1, size // 2), _HALVES),
            (quarter_of(size), _QUARTERS),
        )
    )
    method = f"effective process, {count} x {size} trajectories"

    def series(name: str) -> Series:
        value, error = _combined(
            *(np.array([getattr(one, name) for one in some]) for some in (whole, half, quarter))
        )
        # One spin of one copy more or less would change the average by this: none of them flipped
        # is not known better.
        return Series(value, np.maximum(error, 1 / (count * size * layers)), method)

    late, reason = _late(
        *([one.flips for one in some] for some in (whole, half, quarter)), method=method
    )
    moved = series("never_moved")
    return MeanField(
        chain,
        rate,
        count * size,
        seed,
        series("flips"),
        series("overlaps"),
        series("unstable"),
        Estimate(float(moved.value), float(moved.error), Tier.ESTIMATED, method),
        late,
        reason,
        series("margins"),
        _exponents([one.flips for one in whole], method),
        series("correlation") if correlation else None,
    )


def update_probability(p: object) -> float:
    """Return the probability of an update, checked."""
    rate = float(checks.exact_real("p", p))
    if not 0 < rate <= 1:
        raise InvalidInputError("p", p, "a probability above 0, at most 1")
    return rate


def _run(
    chain: Chain, sweeps: int, p: float, size: int, arrays: Arrays, correlation: bool
) -> _Batch:
    layers = chain.finite_layers
    start = arrays.spins((layers, size))
    # One sweep more than asked for: the field that the last state feels.
    process = Process(chain.jd, chain.lam_left, chain.lam_right, start, sweeps + 1, arrays)
    flips, overlaps, unstable = (arrays.zeros((sweeps,), double=True) for _ in range(3))
    moved = start != start
    pairs = arrays.zeros((sweeps + 1, sweeps + 1), double=True) if correlation else None
    for t in range(sweeps + 1):
        before = process.s
        disagree = process.sweep(p=p)
        if pairs is not None:
            row = process.correlation.sum(0) / layers
            pairs[t, : t + 1] = row
            pairs[: t + 1, t] = row
        if t == sweeps:
            break
        unstable[t] = arrays.mean(disagree)
        changed = process.s != before
        moved |= changed
        flips[t] = arrays.mean(changed)
        overlaps[t] = arrays.mean(process.s * start)
    return _Batch(
        arrays.read(flips),
        arrays.read(overlaps),
        arrays.read(unstable),
        1 - float(arrays.read(arrays.mean(moved))),
        np.quantile(arrays.read(process.h * before), MeanField.margin_levels),
        None if pairs is None else arrays.read(pairs),
    )


def quarter_of(size: int) -> int:
    """Return the size of the batches that show the bias of those of `size` copies."""
    return max(1, size // 4)


def _combined(whole: Floats, half: Floats, quarter: Floats) -> tuple[Floats, Floats]:
    """Return mean and error of batches: scatter, and bias by batches of two smaller sizes."""
    value, deviation = mean_of_rows(whole)
    middle, its = mean_of_rows(half)
    bias = np.abs(quarter.mean(axis=0) - value) / 3
    seen = np.maximum(np.abs(middle - value), np.hypot(deviation, its))
    # No error is exactly 0, not even where all batches agree.
    return value, np.hypot(deviation, np.minimum(bias, seen)) + 1e-12


def _exponents(flips: list[Floats], method: str) -> Series:
    """Local exponents of f at t = 1, 2, 4, ...; the last window ends before 4 t."""
    rates, rows, t = np.array(flips), [], 1
    while 4 * t - 1 <= rates.shape[1]:
        earlier = rates[:, t - 1 : 2 * t - 1].mean(axis=1)
        later = rates[:, 2 * t - 1 : 4 * t - 1].mean(axis=1)
        if not np.all(later > 0):
            break
        rows.append(np.log2(earlier / later))
        t *= 2
    if not rows:
        return Series(np.empty(0), np.empty(0), method)
    value, error = mean_of_rows(np.array(rows).T)
    return Series(value, error, method)


def _late(
    whole: list[Floats], half: list[Floats], quarter: list[Floats], *, method: str
) -> tuple[Estimate | None, str]:
    sweeps = len(whole[0])
    if sweeps < 4:
        return None, "a late flip rate needs at least 4 sweeps"

    def window(batches: list[Floats], first: float, last: float) -> Floats:
        return np.array(
            [one[int(first * sweeps) : max(int(last * sweeps), 1)].mean() for one in batches]
        )

    earlier, later = window(whole, 0.5, 0.75), window(whole, 0.75, 1)
    fall = mean(earlier - later)
    if fall.value > _FALLS * fall.error:
        return None, (
            f"the flip rate still falls, from {earlier.mean():.4g} in the third quarter of the "
            f"sweeps to {later.mean():.4g} in the fourth: more sweeps are needed, or it tends to 0"
        )
    late = _combined(*(window(some, 0.5, 1) for some in (whole, half, quarter)))
    value, deviation = (float(x) for x in late)
    # A fall that the scatter hides is still possible.
    error = math.hypot(deviation, max(fall.value, 0.0))
    if value < _FALLS * error:
        return None, (
            f"the flip rate of the last half of the sweeps, {value:.2g} with an error of "
            f"{error:.1g}, cannot be distinguished from 0: more trajectories are needed"
        )
    return Estimate(value, error, Tier.ESTIMATED, method), ""
