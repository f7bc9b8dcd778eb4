r"""The coupling at which half of the samples succeed, with its error, and its trend with the size.

**One curve.** A logistic curve through the counts of successes,

.. math:: P(x) = \frac{1}{1 + e^{-(x - x_{1/2})/w}},

is fitted by maximum likelihood with Firth's correction: the likelihood is multiplied by the root of
the determinant of its information. This removes the bias of first order, and gives a finite width
where plain likelihood has no maximum (all failures below some x, all successes above). Steps of
Fisher's scoring overshoot where there are few trials, for the information leaves out the curvature
of the correction. So a step is halved as long as the corrected likelihood falls, or its slope along
the step turns round by more than half: near the maximum only the slope is significant.

**The 50 % point.** The middle of the curve is the 50 % point only if the counts themselves, made
monotone, pass 1/2 inside the grid. The error is that of a bootstrap: counts are drawn anew from the
fitted curve and fitted again. A curve that fits poorly (a deviance that few of its own resamples
have) has an error larger by the root of the ratio. Where it does not fit at all, as where some
samples never succeed, the monotone counts are interpolated instead, and drawn anew themselves. A
curve that is not symmetric about its middle moves the fit away from the interpolation: by what the
two differ more than they do in the resamples, the error grows in quadrature.

**The trend.** Forms are fitted by weighted least squares, each with chi^2,

.. math:: x_{1/2}(N) = a + b\,\phi(N), \qquad
    \phi = \sqrt{\ln N},\quad \ln\ln N,\quad 1/\ln N,\quad N^{-1/2} .

The first two grow without limit, one as the bound sqrt(2 ln N) does and one slower; the others have
the limit a. Theory prefers none, so a limit is stated only if the data reject growth without limit,
and then its error spans all forms that are not rejected.

**The dynamics of one layer** has a theory of its trend (docs: Theory of the dynamics). A network
stops by chance when the mean number of flips per sweep is below some n(T), which depends on the cap
T alone, and the flip rate vanishes as the square of the distance to the freezing point:

.. math:: x_{1/2}(N) = J_{dyn} - k \sqrt{n(T)/N} + O(1/N) ,

so that one form is fitted, a + b/sqrt(N) + c/N, and a is an estimate of J_dyn. Logarithms of N are
refuted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from enum import StrEnum
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError
from rmtheory.base.statistics import central_half_width, weighted_fit

Array = NDArray[np.float64]


# The 50 % point.

#: Largest share of resamples without a crossing inside the grid.
_MOST_OUTSIDE = 0.05

#: Chances of a larger deviance below which a curve fits poorly, and not at all.
_POOR_FIT, _NO_FIT = 0.1, 0.005


class CrossingStatus(StrEnum):
    """Whether half of the samples succeed somewhere in the grid; the text says what to do."""

    FOUND = "found"
    COARSE = "found, but the grid is coarser than the transition: add values between"
    ABOVE = "none: less than half succeed everywhere, add larger values"
    BELOW = "none: more than half succeed everywhere, add smaller values"
    FALLING = "none: success falls through one half"
    TOUCHING = "none: success is one half somewhere but does not pass it, add values or samples"
    NOT_MONOTONE = "none: success is on both sides of one half, in no order, add values or samples"
    UNRESOLVED = "none: too uncertain, add samples or a wider grid"


@dataclass(frozen=True)
class Crossing:
    """The 50 % point.

    Parameters
    ----------
    status : CrossingStatus
        Whether there is one.
    value, error : float or None
        Where, and its standard error; None if there is none.
    width, width_error : float or None
        Width w of the logistic curve: from 27 % to 73 % it takes 2 w.
    p_value : float or None
        Share of resamples that the curve fits worse than the data.
    method : str
        ``logistic`` or ``interpolation``, which has no width; empty if there is no 50 % point.
    """

    status: CrossingStatus
    value: float | None = None
    error: float | None = None
    width: float | None = None
    width_error: float | None = None
    p_value: float | None = None
    method: Literal["logistic", "interpolation", ""] = ""


def crossing(
    x: ArrayLike,
    successes: ArrayLike,
    trials: ArrayLike,
    *,
    seed: int | tuple[int, ...] = 0,
    resamples: int = 1000,
) -> Crossing:
    """Return where the probability of success passes 1/2 as `x` grows.

    Parameters
    ----------
    x : array_like
        Couplings, strictly increasing.
    successes, trials : array_like of int
        Counts k <= m at each; the samples are independent.
    seed : int or tuple of int
        Of the bootstrap.
    resamples : int
        Bootstrap resamples, at least 100.

    Examples
    --------
    >>> point = crossing([0.4, 0.5, 0.6, 0.7, 0.8], [0, 6, 21, 35, 40], [40] * 5)
    >>> print(point.status, f"{point.value:.3f} {point.error:.3f}")
    found 0.595 0.011
    >>> crossing([0.4, 0.5], [0, 6], [40, 40]).status.name
    'ABOVE'
    """
    points, k, m = _checked(x, successes, trials)
    count = checks.integer("resamples", resamples, 100)
    rising = _monotone(k, m, increasing=True)
    if not rising[0] < 0.5 < rising[-1]:
        return Crossing(_reason(k, m))
    if not _agrees(k, m, rising):
        return Crossing(CrossingStatus.NOT_MONOTONE)
    best = fit(points, k, m)
    if not best.converged[0]:
        return Crossing(CrossingStatus.UNRESOLVED)
    centre, slope = float(best.centre[0]), float(best.slope[0])
    if slope <= 0 or not points[0] <= centre <= points[-1]:
        return Crossing(CrossingStatus.UNRESOLVED)
    generator = np.random.default_rng(np.random.SeedSequence(seed))
    drawn = _drawn(generator, curve(points, centre, slope), m, count)
    again = fit(points, drawn, m)
    if not again.converged.all():
        # Of these it is not known whether they cross, nor how well the curve fits them.
        return Crossing(CrossingStatus.UNRESOLVED)
    inside = (again.slope > 0) & (again.centre >= points[0]) & (again.centre <= points[-1])
    if inside.mean() < 1 - _MOST_OUTSIDE:
        return Crossing(CrossingStatus.UNRESOLVED)
    centres, widths = again.centre[inside], 1 / again.slope[inside]
    p_value = float(np.mean(again.deviance >= best.deviance[0]))
    if p_value < _NO_FIT:
        return _interpolated(points, rising, m, _drawn(generator, k / m, m, count), p_value)
    misfit = 1.0
    if p_value < _POOR_FIT:
        misfit = float(np.sqrt(best.deviance[0] / again.deviance.mean()))
    apart = _passage(points, rising)[0] - centre
    excess = _excess(apart, _differences(points, drawn[inside], m, centres))
    error = float(np.hypot(misfit * central_half_width(centres), excess))
    status = CrossingStatus.FOUND
    if np.count_nonzero((k > 0) & (k < m)) < 2:
        # Where between two values the curve rises is not known: anywhere there.
        status = CrossingStatus.COARSE
        error = float(np.hypot(error, _step_around(points, centre) / np.sqrt(12)))
    return Crossing(
        status,
        centre,
        error,
        1 / slope,
        misfit * central_half_width(widths),
        p_value,
        "logistic",
    )


def _checked(x: ArrayLike, successes: ArrayLike, trials: ArrayLike) -> tuple[Array, Array, Array]:
    points, k, m = (np.asarray(a, dtype=float) for a in (x, successes, trials))
    if points.ndim != 1 or not points.shape == k.shape == m.shape or points.size < 1:
        raise InvalidInputError("x", points.shape, "as many couplings as successes and trials")
    if not np.all(np.isfinite(points)) or np.any(np.diff(points) <= 0):
        raise InvalidInputError("x", points.tolist(), "finite and strictly increasing")
    if np.any(m < 1) or np.any(k < 0) or np.any(k > m) or np.any((k % 1 != 0) | (m % 1 != 0)):
        raise InvalidInputError("successes", k.tolist(), f"counts up to {m.tolist()}, at least 1")
    return points, k, m


def _monotone(k: Array, m: Array, *, increasing: bool) -> Array:
    """The monotone fractions nearest to k/m."""
    from scipy.optimize import isotonic_regression  # here, because it is slow to import

    return np.asarray(isotonic_regression(k / m, weights=m, increasing=increasing).x)


def _agrees(k: Array, m: Array, monotone: Array) -> bool:
    """Whether the counts differ from monotone fractions by no more than chance.

    Pearson's sum is at most about a chi^2 with one degree of freedom fewer than points, which it
    is if all are alike; where success changes there is less to pool.
    """
    variance = m * monotone * (1 - monotone)
    there = variance > 0  # fractions of 0 and 1 are those of the counts
    total = float(np.sum((k - m * monotone)[there] ** 2 / variance[there]))
    return bool(special.chdtrc(len(k) - 1, total) >= _NO_FIT)


def _reason(k: Array, m: Array) -> CrossingStatus:
    """Why success does not rise through one half."""
    if np.all(2 * k < m):
        return CrossingStatus.ABOVE
    if np.all(2 * k > m):
        return CrossingStatus.BELOW
    if np.all(2 * k <= m) or np.all(2 * k >= m):
        return CrossingStatus.TOUCHING
    falling = _monotone(k, m, increasing=False)
    if falling[0] > 0.5 > falling[-1] and _agrees(k, m, falling):
        return CrossingStatus.FALLING
    return CrossingStatus.NOT_MONOTONE


def _differences(x: Array, drawn: Array, m: Array, centres: Array) -> Array:
    """Interpolation less logistic centre, of the resamples whose monotone counts pass 1/2."""
    return np.array(
        [
            _passage(x, monotone)[0] - centre
            for row, centre in zip(drawn, centres, strict=True)
            if (monotone := _monotone(row, m, increasing=True))[0] < 0.5 < monotone[-1]
        ]
    )


def _excess(apart: float, usual: Array) -> float:
    """By how much `apart` is beyond the `usual` differences, which the curve itself would give."""
    return float(np.sqrt(max(0.0, (apart - usual.mean()) ** 2 - usual.var())))


def _drawn(generator: np.random.Generator, p: Array, m: Array, count: int) -> Array:
    """Counts as another measurement might have given them, (count, points)."""
    return generator.binomial(m.astype(np.int64), p, (count, len(m))).astype(float)


def _interpolated(x: Array, rising: Array, m: Array, drawn: Array, p_value: float) -> Crossing:
    """Return where straight lines between the monotone fractions `rising` pass 1/2."""
    value, step, jump = _passage(x, rising)
    again = [
        _passage(x, monotone)[0]
        for row in drawn
        if (monotone := _monotone(row, m, increasing=True))[0] < 0.5 < monotone[-1]
    ]
    if len(again) < (1 - _MOST_OUTSIDE) * len(drawn):
        return Crossing(CrossingStatus.UNRESOLVED)
    # How the curve runs between two values is not known: it may jump anywhere there.
    error = float(np.hypot(central_half_width(again), step * jump / np.sqrt(12)))
    return Crossing(CrossingStatus.FOUND, value, error, p_value=p_value, method="interpolation")


def _passage(x: Array, rising: Array) -> tuple[float, float, float]:
    """Return where 1/2 is passed, and by which step of x and of the fraction."""
    low = int(np.flatnonzero(rising < 0.5)[-1])
    high = int(np.flatnonzero(rising > 0.5)[0])
    step, jump = float(x[high] - x[low]), float(rising[high] - rising[low])
    if high > low + 1:  # exactly one half in between
        return float(x[low + 1] + x[high - 1]) / 2, step, jump
    return float(x[low] + step * (0.5 - rising[low]) / jump), step, jump


def _step_around(points: Array, centre: float) -> float:
    """The longest step of the grid that `centre` lies in or at the end of."""
    steps = np.diff(points)
    near = (points[:-1] - 0.05 * steps <= centre) & (centre <= points[1:] + 0.05 * steps)
    return float(steps[near].max())


# Logistic curves through binomial data, many data sets at a time.

_TOLERANCE = 1e-9
_MOST_STEPS = 500
#: Longest step, in units of the exponent: far from the maximum they overshoot.
_LONGEST = 1.0
#: Relative rounding of the likelihood, by which it may seem to fall.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Fits:
    """Fits of some data sets, arrays of one dimension.

    `slope` is 1/w and may be negative; `centre` is x_{1/2}, wherever it lies (NaN or infinite for a
    slope of 0); `converged` says whether the equations are solved; `deviance` is -2 log of the
    likelihood ratio to the data.
    """

    centre: Array
    slope: Array
    deviance: Array
    converged: NDArray[np.bool_]


@dataclass(frozen=True)
class _Local:
    """At exponents a + b z: the corrected log-likelihood, its gradient, the step of scoring."""

    value: Array
    ua: Array
    ub: Array
    da: Array
    db: Array


def fit(x: Array, successes: Array, trials: Array) -> Fits:
    """Fit one curve to each row of `successes`, (sets, points), at the same x and trials."""
    middle, scale = x.mean(), x.std()
    z = (x - middle) / scale
    k, m = np.atleast_2d(successes).astype(float), np.asarray(trials, dtype=float)
    a, b, damping = np.zeros(len(k)), np.ones(len(k)), np.ones(len(k))
    here = _local(z, k, m, a, b)
    converged = np.zeros(len(k), dtype=bool)
    for _ in range(_MOST_STEPS):
        length = np.maximum(np.abs(here.da), np.abs(here.db))
        converged = length < _TOLERANCE * (1 + np.abs(a) + np.abs(b))
        if converged.all():
            break
        longest = _LONGEST * (1 + np.abs(b)) / np.maximum(length, 1e-300)
        share = np.where(converged, 0.0, np.minimum(damping, longest))
        new_a, new_b = a + share * here.da, b + share * here.db
        there = _local(z, k, m, new_a, new_b)
        before = here.ua * here.da + here.ub * here.db
        after = there.ua * here.da + there.ub * here.db
        rises = there.value >= here.value - _ROUNDING * (1 + np.abs(here.value))
        accepted = rises & (after >= -before / 2) & ~converged
        a, b = np.where(accepted, new_a, a), np.where(accepted, new_b, b)
        here = _Local(
            *(
                np.where(accepted, new, old)
                for new, old in zip(astuple(there), astuple(here), strict=True)
            )
        )
        damping = np.where(accepted, np.minimum(1.0, 2 * share), share / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = middle - scale * a / b
    return Fits(centre, b / scale, _deviance(z, k, m, a, b), converged)


def curve(x: Array, centre: float, slope: float) -> Array:
    """Return P at `x`."""
    return np.asarray(special.expit((x - centre) * slope))


def _local(z: Array, k: Array, m: Array, a: Array, b: Array) -> _Local:
    exponent = a[:, None] + b[:, None] * z
    p = special.expit(exponent)
    weight = m * p * special.expit(-exponent)
    # Where all weights underflow the likelihood is NaN, and such a step is not accepted.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        total = weight.sum(1)
        mean = weight @ z / total
        apart = z - mean[:, None]
        spread = (weight * apart**2).sum(1)
        leverage = weight * (1 / total[:, None] + apart**2 / spread[:, None])
        residual = k - m * p + leverage * (0.5 - p)
        logs = k * special.log_expit(exponent) + (m - k) * special.log_expit(-exponent)
        value = logs.sum(1) + (np.log(total) + np.log(spread)) / 2
        db = (residual * apart).sum(1) / spread
        da = residual.sum(1) / total - mean * db
    return _Local(value, residual.sum(1), residual @ z, da, db)


def _deviance(z: Array, k: Array, m: Array, a: Array, b: Array) -> Array:
    p = special.expit(a[:, None] + b[:, None] * z)
    terms = special.rel_entr(k, m * p) + special.rel_entr(m - k, m * (1 - p))
    return np.asarray(2 * terms.sum(1))


# The trend with the size.


def _root_log(n: Array) -> Array:
    return np.asarray(np.sqrt(np.log(n)))


def _log_log(n: Array) -> Array:
    return np.asarray(np.log(np.log(n)))


def _reciprocal_log(n: Array) -> Array:
    return np.asarray(1 / np.log(n))


def _reciprocal_root(n: Array) -> Array:
    return np.asarray(n**-0.5)


def _reciprocal(n: Array) -> Array:
    return np.asarray(1 / n)


#: The trend of the dynamics of one layer, which the theory gives; a is the freezing point.
LAW = "a + b / sqrt(N) + c / N"

#: Text of the form -> (functions of N, whether it has a limit).
FORMS: Mapping[str, tuple[tuple[Callable[[Array], Array], ...], bool]] = {
    "a + b sqrt(ln N)": ((_root_log,), False),
    "a + b ln ln N": ((_log_log,), False),
    "a + b / ln N": ((_reciprocal_log,), True),
    "a + b / sqrt(N)": ((_reciprocal_root,), True),
    LAW: ((_reciprocal_root, _reciprocal), True),
}

#: A form is rejected if chi^2 is exceeded by chance less often than this.
REJECTED = 0.05

#: Degrees of freedom, below which no limit is stated: a line through three points fits too easily.
_LEAST_DOF = 2


@dataclass(frozen=True)
class Trend:
    """One form fitted to the 50 % points."""

    form: str
    a: float
    a_error: float
    b: float
    b_error: float
    chi2: float
    #: Points less parameters.
    dof: int
    #: Chance of a chi^2 as large, if the form were true.
    p_value: float
    #: Of the forms with three parameters.
    c: float | None = None
    c_error: float | None = None

    def __call__(self, n: ArrayLike) -> Array:
        """Return the fitted 50 % point at sizes `n`."""
        sizes = np.asarray(n, dtype=float)
        parts = zip((self.b, self.c), FORMS[self.form][0], strict=False)
        return np.asarray(self.a + sum((x or 0.0) * basis(sizes) for x, basis in parts))

    @property
    def has_limit(self) -> bool:
        """Whether it tends to a as N grows."""
        return FORMS[self.form][1]


@dataclass(frozen=True)
class Limit:
    """The 50 % point at infinite size, or why none is stated."""

    verdict: str
    value: float | None = None
    error: float | None = None


def fit_trends(
    n: ArrayLike, value: ArrayLike, error: ArrayLike, *, law: bool = False
) -> tuple[Trend, ...]:
    """Fit the forms that may hold; none if there are too few sizes for chi^2 to say something.

    Parameters
    ----------
    n, value, error : array_like
        Sizes, 50 % points and their errors.
    law : bool
        Whether they are those of the dynamics of one layer: then :data:`LAW` alone is fitted, from
        four sizes on; otherwise all forms of two parameters, from three sizes on.

    Examples
    --------
    >>> exact = [0.9 - 2 / math.log(n) for n in (100, 1000, 10000)]
    >>> for trend in fit_trends([100, 1000, 10000], exact, [0.001] * 3):
    ...     print(f"{trend.form}: a = {trend.a:.3f}, chi^2 = {trend.chi2:.1f}")
    a + b sqrt(ln N): a = -0.054, chi^2 = 482.8
    a + b ln ln N: a = -0.012, chi^2 = 207.8
    a + b / ln N: a = 0.900, chi^2 = 0.0
    a + b / sqrt(N): a = 0.697, chi^2 = 249.9
    """
    sizes, y, sigma = (np.asarray(a, dtype=float) for a in (n, value, error))
    if not np.all(np.isfinite(sigma) & np.isfinite(y)) or np.any(sigma <= 0) or np.any(sizes < 2):
        raise InvalidInputError("error", sigma.tolist(), "positive for points at sizes above 1")
    if sizes.size < (4 if law else 3):
        return ()
    forms = [form for form in FORMS if (form == LAW) == law]
    return tuple(_fit_form(form, sizes, y, sigma) for form in forms)


def _fit_form(form: str, sizes: Array, y: Array, sigma: Array) -> Trend:
    fit = weighted_fit([1, *(basis(sizes) for basis in FORMS[form][0])], y, sigma)
    (a, a_error), (b, b_error), *more = zip(
        fit.coefficients.tolist(), fit.errors.tolist(), strict=True
    )
    third = more[0] if more else (None, None)
    return Trend(form, a, a_error, b, b_error, fit.chi2, fit.dof, fit.p_value, *third)


def limit_of(trends: tuple[Trend, ...]) -> Limit:
    """Return the limit of infinite size that the fits allow to state."""
    if trends and trends[0].form == LAW:
        (law,) = trends
        if law.p_value < REJECTED:
            return Limit(f"none: {LAW}, the law of the dynamics, does not fit these sizes")
        from rmtheory.dynamics.finite_size import stored_theory

        # The theory has a limit of its own, which no network enters.
        core = stored_theory()[0].freezing
        theory = f"theory without networks: {float(core.value):.4f} ± {float(core.error):.4f}"
        verdict = f"by the law of the dynamics, {LAW} ({theory})"
        return Limit(verdict, law.a, law.a_error)
    if not trends or trends[0].dof < _LEAST_DOF:
        return Limit("none: at least four sizes with a 50 % point are needed")
    kept = [trend for trend in trends if trend.p_value >= REJECTED]
    if not kept:
        return Limit("none: no form fits")
    endless = [trend.form for trend in kept if not trend.has_limit]
    if endless:
        return Limit(f"none: growth without limit, {endless[0]}, is not rejected")
    low = min(trend.a - trend.a_error for trend in kept)
    high = max(trend.a + trend.a_error for trend in kept)
    forms = " or ".join(trend.form for trend in kept)
    return Limit(f"if {forms} holds", (low + high) / 2, math.fabs(high - low) / 2)
