r"""How the 50 % point moves with the size: forms fitted by weighted least squares, each with chi^2.

.. math:: x_{1/2}(N) = a + b\,\phi(N), \qquad
    \phi = \sqrt{\ln N},\quad \ln\ln N,\quad 1/\ln N,\quad N^{-1/2} .

The first two grow without limit, one as the bound sqrt(2 ln N) does and one slower; the others have
the limit a. Theory prefers none, so a limit is stated only if the data reject growth without limit,
and then its error spans all forms that are not rejected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from rmtheory.errors import InvalidInputError

Array = NDArray[np.float64]


def _root_log(n: Array) -> Array:
    return np.asarray(np.sqrt(np.log(n)))


def _log_log(n: Array) -> Array:
    return np.asarray(np.log(np.log(n)))


def _reciprocal_log(n: Array) -> Array:
    return np.asarray(1 / np.log(n))


def _reciprocal_root(n: Array) -> Array:
    return np.asarray(n**-0.5)


#: Text of the form -> (function of N, whether it has a limit).
FORMS: Mapping[str, tuple[Callable[[Array], Array], bool]] = {
    "a + b sqrt(ln N)": (_root_log, False),
    "a + b ln ln N": (_log_log, False),
    "a + b / ln N": (_reciprocal_log, True),
    "a + b / sqrt(N)": (_reciprocal_root, True),
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

    def __call__(self, n: ArrayLike) -> Array:
        """Return the fitted 50 % point at sizes `n`."""
        basis, _ = FORMS[self.form]
        return np.asarray(self.a + self.b * basis(np.asarray(n, dtype=float)))

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


def fit_trends(n: ArrayLike, value: ArrayLike, error: ArrayLike) -> tuple[Trend, ...]:
    """Fit all forms; none if there are fewer than three sizes, whose chi^2 would say nothing.

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
    if sizes.size < 3:
        return ()
    return tuple(_fit(form, basis(sizes), y, sigma) for form, (basis, _) in FORMS.items())


def _fit(form: str, basis: Array, y: Array, sigma: Array) -> Trend:
    design = np.stack([np.ones_like(basis), basis], axis=1) / sigma[:, None]
    covariance = np.linalg.inv(design.T @ design)
    a, b = covariance @ design.T @ (y / sigma)
    chi2 = float(np.sum((y / sigma - design @ np.array([a, b])) ** 2))
    dof = y.size - 2
    a_error, b_error = np.sqrt(np.diag(covariance))
    return Trend(
        form,
        float(a),
        float(a_error),
        float(b),
        float(b_error),
        chi2,
        dof,
        float(stats.chi2.sf(chi2, dof)),
    )


def limit_of(trends: tuple[Trend, ...]) -> Limit:
    """Return the limit of infinite size that the fits allow to state."""
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
