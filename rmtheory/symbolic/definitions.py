r"""Symbols of the paper, the functions P and n, and the Gaussian integrals everything rests on.

.. math:: P(v) = H(-v) = \int Dh\,\theta(s h + v), \qquad Dh = n(h)\,dh, \qquad
    n(h) = e^{-h^2/2}/\sqrt{2\pi}.

P and n stay unevaluated, so that they can later be replaced by independent symbols; their
derivatives P' = n and n' = -v n are all that a Taylor expansion needs. The functions below obtain
each Gaussian fact by integration, none is stored.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import sympy as sp

#: sympy ships no type information: an expression, and a matrix of them.
Expr = Any
Matrix = Any

#: Self-coupling and couplings to the previous and to the next layer.
J, lambda_L, lambda_R = sp.symbols("J_D lambda_L lambda_R", real=True)
#: The common value where lambda_L = lambda_R.
lam = sp.Symbol("lambda", real=True)
#: Overlap and conjugate overlap of two replicas, the same in every layer.
q, qhat = sp.symbols("q qhat", positive=True)
#: A local field, a stability and the number of replicas.
h, v = sp.symbols("h v", real=True)
replicas = sp.Symbol("n", positive=True)


class n(sp.Function):  # type: ignore[misc]
    """Normal density, unevaluated; n' = -x n."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> Expr:
        """Return the derivative."""
        return -self.args[0] * self

    def _eval_is_positive(self) -> bool | None:
        return True if self.args[0].is_real else None

    def _eval_rewrite_as_exp(self, x: Expr, **_: object) -> Expr:
        return sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi)


class P(sp.Function):  # type: ignore[misc]
    """Normal cumulative distribution P(x) = H(-x), unevaluated; P' = n."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> Expr:
        """Return the derivative, the normal density."""
        return n(self.args[0])

    def _eval_is_positive(self) -> bool | None:
        return True if self.args[0].is_real else None

    def _eval_rewrite_as_erfc(self, x: Expr, **_: object) -> Expr:
        return sp.erfc(-x / sp.sqrt(2)) / 2


def H(x: Expr) -> Expr:
    """Paper's tail function, H(x) = P(-x)."""
    return P(sp.expand(-x))


def layered(name: str, layers: int, **assumptions: bool) -> tuple[Expr, ...]:
    """Return one symbol a layer, name_1 ... name_L."""
    return tuple(sp.Symbol(f"{name}_{k}", **assumptions) for k in range(1, layers + 1))


def spin_symbols(layers: int) -> tuple[Expr, ...]:
    """Return the spins s_1 ... s_L of one column, one site of every layer."""
    return layered("s", layers, integer=True)


def gauge_symbols(layers: int) -> tuple[Expr, ...]:
    """Return the gauge variables tau_1 ... tau_(L-1)."""
    return layered("tau", layers - 1, integer=True)


def stabilities(spins: tuple[Expr, ...]) -> tuple[Expr, ...]:
    r"""Return v_l = J_D + lambda_L s^{l-1} s^l + lambda_R s^l s^{l+1} (paper, Eq:fpeqs).

    The neighbours missing at the two ends contribute nothing.

    Examples
    --------
    >>> stabilities(spin_symbols(2))
    (J_D + lambda_R*s_1*s_2, J_D + lambda_L*s_1*s_2)
    """
    padded = (0, *spins, 0)
    return tuple(
        J + lambda_L * padded[k - 1] * padded[k] + lambda_R * padded[k] * padded[k + 1]
        for k in range(1, len(spins) + 1)
    )


def gauss(x: Expr) -> Expr:
    """Return the normal density written out, for integration."""
    return n(x).rewrite(sp.exp)


@cache
def theta_average(spin: int) -> Expr:
    r"""Integrate E_h[theta(s h + v)] over h ~ N(0, 1), for s = +1 or -1.

    Examples
    --------
    >>> theta_average(-1)
    erf(sqrt(2)*v/2)/2 + 1/2
    >>> P(v).rewrite(sp.erfc).rewrite(sp.erf) - theta_average(-1)
    0
    """
    integral = sp.integrate(sp.Heaviside(spin * h + v) * gauss(h), (h, -sp.oo, sp.oo))
    return sp.expand(integral.rewrite(sp.erf))


@cache
def shifted_theta_average(spin: int) -> Expr:
    r"""Integrate E_h[theta(s h + v)] over h ~ N(m, sigma^2), s = +1 or -1.

    With m = sqrt(q) z and sigma^2 = 1 - q this is the field of one replica at fixed z; the result
    is P((v + s m)/sigma) in terms of erf.

    Examples
    --------
    >>> shifted_theta_average(1)
    erf(sqrt(2)*(m + v)/(2*sigma))/2 + 1/2
    """
    m, sigma = shifted_symbols()
    density = sp.exp(-((h - m) ** 2) / (2 * sigma**2)) / (sigma * sp.sqrt(2 * sp.pi))
    # theta(s h + v) selects h > -v for s = +1 and h < v for s = -1.
    region = (h, -v, sp.oo) if spin == 1 else (h, -sp.oo, v)
    return sp.simplify(sp.integrate(density, region).rewrite(sp.erf))


def shifted_symbols() -> tuple[Expr, Expr]:
    """Return the mean m and standard deviation sigma of :func:`shifted_theta_average`."""
    return sp.Symbol("m", real=True), sp.Symbol("sigma", positive=True)


@cache
def moment(power: int) -> int:
    """Integrate E[h^power] over h ~ N(0, 1).

    Examples
    --------
    >>> [moment(k) for k in range(7)]
    [1, 0, 1, 0, 3, 0, 15]
    """
    return int(sp.integrate(h**power * gauss(h), (h, -sp.oo, sp.oo)))


def gaussian_mean(expression: Expr, variables: tuple[Expr, ...]) -> Expr:
    """Average a polynomial over independent N(0, 1) variables, monomial by monomial.

    Examples
    --------
    >>> gaussian_mean((h + v) ** 4, (h,))
    v**4 + 6*v**2 + 3
    """
    polynomial = sp.Poly(sp.expand(expression), *variables)
    return sp.expand(
        sp.Add(*(c * sp.Mul(*(moment(k) for k in powers)) for powers, c in polynomial.terms()))
    )


@cache
def linearised_square() -> tuple[Expr, Expr]:
    r"""Integrate the Hubbard-Stratonovich identity; return (k, \int Dt e^{k t}).

    Examples
    --------
    >>> linearised_square()
    (k, exp(k**2/2))
    """
    k = sp.Symbol("k", real=True)
    return k, sp.simplify(sp.integrate(sp.exp(k * h) * gauss(h), (h, -sp.oo, sp.oo)))
