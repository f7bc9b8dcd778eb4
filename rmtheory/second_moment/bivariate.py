r"""Bivariate normal orthant F(a, b; rho) = Prob(g > -a, g' > -b), in float64 and to many digits.

Plackett's identity dF/drho = n_2(a, b; rho), integrated from a correlation where F is elementary,
in the variable t = sqrt((1 + rho)/(1 - rho)) = e^x:

.. math:: F = F_0 + \frac{e^{-(a^2+b^2)/4}}{\pi} \int_{t_0}^{t}
    e^{-[(a+b)^2/u^2 + (a-b)^2 u^2]/8} \frac{du}{1+u^2} .

It is the paper's F(J_D, x) at a = b = J_D (SM-A, tightness).

- **In float64**, vectorised: t_0 = 1, F_0 = P(a)P(b) for rho > 0 and t_0 = 0,
  F_0 = max(0, P(a) + P(b) - 1) for rho <= 0. Both terms are positive in either case, so nothing
  cancels: F keeps its relative accuracy deep in the tails and close to rho = ±1.
- **To any number of digits**, in mpmath or in certified balls: t_0 = 1, F_0 = P(a)P(b) always,
  since the integrand is analytic around this path, as a rigorous quadrature needs. The terms cancel
  for
  rho < 0 deep in the tails, which costs working digits
  (:func:`rmtheory.base.arithmetic.evaluate` takes as many as are needed).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rmtheory.base.arithmetic import Arithmetic, BallArithmetic, MPArithmetic
from rmtheory.base.errors import InvalidInputError
from rmtheory.base.gaussian import Array, log_n, log_P

# In float64.

#: Bound on the error of log F in units of max(1, |log F|), held against mpmath in the tests.
LOG_ERROR = 2e-15

#: The integrand is dropped where it is below e^-_DROP of its largest value.
_DROP = 38.0

_PANELS, _ORDER = 8, 24

_CHUNK = 4096


def _panel_rule() -> tuple[Array, Array]:
    """Composite Gauss-Legendre rule on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(_ORDER)
    panel = np.arange(_PANELS)[:, None]
    return (
        ((panel + 0.5 * (nodes + 1)) / _PANELS).reshape(-1),
        np.tile(weights / (2 * _PANELS), _PANELS),
    )


_NODES, _WEIGHTS = _panel_rule()

_SHORT_NODES, _SHORT_WEIGHTS = np.polynomial.legendre.leggauss(_ORDER)


def F(a: ArrayLike, b: ArrayLike, rho: ArrayLike) -> Array:
    """Probability that two standard normals of correlation `rho` exceed -a and -b.

    Parameters
    ----------
    a, b : array_like
        Finite thresholds.
    rho : array_like
        Correlation in [-1, 1], the ends included.

    Examples
    --------
    >>> print(f"{F(0.0, 0.0, 0.5):.15f}")  # 1/4 + arcsin(1/2)/(2 pi)
    0.333333333333333
    """
    return np.asarray(np.exp(log_F(a, b, rho)))


def log_F(a: ArrayLike, b: ArrayLike, rho: ArrayLike) -> Array:
    """Logarithm of :func:`F`; -inf where the probability vanishes (rho = -1, a + b <= 0).

    Examples
    --------
    >>> print(f"{log_F(-20.0, -20.0, -0.9):.10f}")
    -4011.6045276053
    """
    rho = np.asarray(rho, dtype=float)
    outside = ~(np.abs(rho) <= 1)
    if np.any(outside):
        raise InvalidInputError("rho", float(rho[outside].flat[0]), "a correlation from -1 to 1")
    with np.errstate(divide="ignore"):
        odds = (1 + rho) / (1 - rho)
    return log_F_odds(a, b, odds)


def log_F_odds(a: ArrayLike, b: ArrayLike, odds: ArrayLike) -> Array:
    """Log F as a function of w = (1 + rho)/(1 - rho) from 0 to inf.

    The odds keep the digits of 1 ± rho that a correlation next to ±1 has lost.
    """
    arrays = np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in (a, b, odds)))
    for name, values in zip("ab", arrays[:2], strict=True):
        if not np.all(np.isfinite(values)):
            raise InvalidInputError(name, float(values[~np.isfinite(values)].flat[0]), "finite")
    if not np.all(arrays[2] >= 0):
        wrong = arrays[2][~(arrays[2] >= 0)].flat[0]
        raise InvalidInputError("odds", float(wrong), "from 0 to inf")
    a_, b_, odds_ = (x.reshape(-1) for x in arrays)
    value = np.empty(odds_.shape)
    for start in range(0, value.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        value[part] = _log_F(a_[part], b_[part], odds_[part])
    return value.reshape(arrays[0].shape)


def _log_F(a: Array, b: Array, odds: Array) -> Array:
    base = np.where(odds > 1, log_P(a) + log_P(b), _log_frechet(a, b))
    inner = (odds > 0) & (odds < np.inf)
    integral = np.full(odds.shape, -np.inf)
    if np.any(inner):
        integral[inner] = _log_integral(a[inner], b[inner], odds[inner])
    # rho = 1: the two events are nested, and the smaller one is what is left.
    return np.where(odds == np.inf, log_P(np.minimum(a, b)), np.logaddexp(base, integral))


def _log_frechet(a: Array, b: Array) -> Array:
    """Log of max(0, P(a) + P(b) - 1) = P(a) - P(-b), F at rho = -1."""
    total = a + b
    log_value = np.full(a.shape, -np.inf)
    # The integral of the density over [-b, a] where that is short: a difference would cancel.
    short = (total > 0) & (total < 1)
    if np.any(short):
        half, middle = 0.5 * total[short], 0.5 * (a - b)[short]
        density = log_n(middle[:, None] + half[:, None] * _SHORT_NODES)
        log_value[short] = np.log(half) + _log_sum(density, _SHORT_WEIGHTS)
    long = total >= 1
    if np.any(long):
        # P(a) - P(-b) = P(b) - P(-a); the version with the smaller terms loses nothing.
        low, high = np.minimum(a, b)[long], np.maximum(a, b)[long]
        upper, lower = log_P(low), log_P(-high)
        log_value[long] = upper + np.log1p(-np.exp(lower - upper))
    return log_value


def _log_integral(a: Array, b: Array, odds: Array) -> Array:
    """Log of the integral term, |rho| < 1."""
    S2, D2 = (a + b) ** 2 / 8, (a - b) ** 2 / 8
    # w = t^2 runs over [w0, w1]; the exponent is E(w) = S2/w + D2 w, smallest at sqrt(S2/D2).
    w1 = odds
    w0 = np.where(odds > 1, 1.0, 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        free = np.sqrt(S2 / D2)
        best = np.clip(np.where(np.isnan(free), w1, free), w0, w1)
        least = np.where(best > 0, S2 / best, 0.0) + D2 * best
        # E(w) = least + _DROP is D2 w^2 - 2 c w + S2 = 0, and w_- = S2/(c + root).
        c = 0.5 * (least + _DROP)
        root = np.sqrt(np.maximum(c * c - S2 * D2, 0.0))
        lower = np.maximum(w0, S2 / (c + root))
        upper = np.minimum(w1, np.where(D2 > 0, (c + root) / D2, np.inf))
        # dt/(1 + t^2) = dx/(2 cosh x) decays like e^-|x| on either side of 0.
        x1 = 0.5 * np.log(upper)
        x0 = np.maximum(0.5 * np.log(lower), np.minimum(x1, 0.0) - _DROP)
    x1 = np.minimum(x1, np.maximum(x0, 0.0) + _DROP)
    width = np.maximum(x1 - x0, 0.0)
    x = x0[:, None] + width[:, None] * _NODES
    w = np.exp(2 * x)
    exponent = least[:, None] - S2[:, None] / w - D2[:, None] * w - np.log(2 * np.cosh(x))
    with np.errstate(divide="ignore"):
        log_width = np.log(width)
    return np.asarray(log_width + _log_sum(exponent, _WEIGHTS) - least - (S2 + D2) - np.log(np.pi))


def _log_sum(exponents: Array, weights: Array) -> Array:
    """Log of the weighted sum of exponentials along the last axis."""
    return np.asarray(special.logsumexp(exponents, axis=-1, b=weights))


# To any number of digits.


def orthant(arithmetic: Arithmetic, a: Any, b: Any, rho: Any) -> Any:
    """F(a, b; rho) for numbers `a`, `b` of the arithmetic.

    The correlation is an exact fraction from -1 to 1, or a number of the arithmetic strictly
    between them.

    Examples
    --------
    >>> from mpmath import nstr
    >>> numbers = MPArithmetic(30)
    >>> nstr(orthant(numbers, numbers.number(0), numbers.number(0), Fraction(1, 2)), 25)
    '0.3333333333333333333333333'
    """
    if not isinstance(rho, Fraction | int):
        return _from_independence(arithmetic, a, b, arithmetic.sqrt((1 + rho) / (1 - rho)))
    if not -1 <= rho <= 1:
        raise InvalidInputError("rho", str(rho), "a correlation from -1 to 1")
    if rho == 1:
        # P(min(a, b)), written so that balls that overlap enclose it too.
        return arithmetic.P((a + b - abs(a - b)) / 2)
    if rho == -1:
        # max(0, P(a) + P(b) - 1); where a ball a + b contains 0, so does the difference.
        if arithmetic.negative(a + b):
            return arithmetic.number(0)
        return arithmetic.P(a) - arithmetic.P(-b)
    if rho == 0:
        return arithmetic.P(a) * arithmetic.P(b)
    end = arithmetic.sqrt(arithmetic.number(Fraction(1 + rho) / (1 - rho)))
    return _from_independence(arithmetic, a, b, end)


def _from_independence(arithmetic: Arithmetic, a: Any, b: Any, end: Any) -> Any:
    """Return F from its value P(a) P(b) at rho = 0, the integral taken up to t = `end`."""
    S2, D2 = (a + b) * (a + b) / 8, (a - b) * (a - b) / 8
    change = arithmetic.exp(-S2 - D2) * _integral(arithmetic, S2, D2, end)
    return arithmetic.P(a) * arithmetic.P(b) + change


def orthant_conditional(arithmetic: MPArithmetic, a: Any, b: Any, rho: Any) -> Any:
    r"""Return F as the paper writes it, an integral over one of the two fields.

    .. math:: F = \int_{-\infty}^{a} n(x)\, P\big((b - \rho x)/\sqrt{1-\rho^2}\big)\, dx

    An independent route for checks: half of its cost is P, and it has no elementary limit.
    """
    if rho in (-1, 0, 1):
        return orthant(arithmetic, a, b, rho)
    context = arithmetic.context
    correlation = arithmetic.number(rho) if isinstance(rho, Fraction | int) else rho
    width = arithmetic.sqrt(1 - correlation * correlation)
    reach = context.sqrt(2 * context.dps * context.log(10)) + 2
    points = {min(a, -reach), a, max(min(a, context.mpf(0)), -reach)}
    points |= {x for x in ((b + k * width) / correlation for k in (-4, 0, 4)) if -reach < x < a}
    return context.quad(
        lambda x: arithmetic.n(x) * arithmetic.P((b - correlation * x) / width), sorted(points)
    )


def _integral(arithmetic: Arithmetic, S2: Any, D2: Any, end: Any) -> Any:
    if isinstance(arithmetic, BallArithmetic):
        from flint import acb, arb

        value = acb.integral(
            lambda u, _: (-(acb(S2) / (u * u) + acb(D2) * u * u)).exp() / (1 + u * u),
            acb(1),
            acb(end),
        )
        return value.real / arb.pi()
    assert isinstance(arithmetic, MPArithmetic)
    context = arithmetic.context
    # Panels doubling in u: the integrand has its singularity at u = 0.
    points, reach = [context.mpf(1)], abs(context.log(end, 2))
    for k in range(1, int(reach) + 1):
        points.append(context.mpf(2) ** (k if end > 1 else -k))
    if points[-1] != end:
        points.append(end)
    if len(points) == 1:
        return context.mpf(0)
    return (
        context.quad(lambda u: context.exp(-S2 / (u * u) - D2 * u * u) / (1 + u * u), points)
        / context.pi
    )
