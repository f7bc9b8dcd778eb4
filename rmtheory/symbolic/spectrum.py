r"""Eigenvalues of the transfer matrix, z in closed form for every L, and the limit of large L.

.. math:: \mu_\pm = \frac{A+D}{2} \pm R,\quad R = \sqrt{\Big(\frac{A-D}{2}\Big)^2 + BC},\qquad
    z_L = 2\,(c_+ \mu_+^{L-2} + c_- \mu_-^{L-2}),\qquad S_\infty = \log \mu_+ .
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import sympy as sp

from rmtheory.symbolic.annealed import transfer
from rmtheory.symbolic.definitions import Expr, Matrix

#: Entries of K = ((A, B), (C, D)) and of the end vectors, all positive.
A, B, C, D = sp.symbols("A B C D", positive=True)
a_plus, a_minus, b_plus, b_minus = sp.symbols("a_+ a_- b_+ b_-", positive=True)


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of K, their spectral projectors and amplitudes c = a^T projector b."""

    plus: Expr
    minus: Expr
    projector_plus: Matrix
    projector_minus: Matrix
    c_plus: Expr
    c_minus: Expr

    def partition(self, layers: Expr) -> Expr:
        """Return z_L = 2 (c_+ mu_+^(L-2) + c_- mu_-^(L-2))."""
        power = layers - 2
        return 2 * (self.c_plus * self.plus**power + self.c_minus * self.minus**power)


def symbolic_matrix() -> Matrix:
    """Return K with its four entries as symbols."""
    return sp.Matrix([[A, B], [C, D]])


def entries() -> dict[Expr, Expr]:
    """Return what A, B, C, D and the end vectors stand for."""
    chain = transfer()
    symbols = (A, B, C, D, a_plus, a_minus, b_plus, b_minus)
    return dict(zip(symbols, (*chain.K, *chain.a, *chain.b), strict=True))


@cache
def spectrum() -> Spectrum:
    r"""Diagonalise K. The projectors are (K - mu_-)/(mu_+ - mu_-) and (K - mu_+)/(mu_- - mu_+).

    Examples
    --------
    >>> spectrum().plus
    A/2 + D/2 + sqrt(A**2 - 2*A*D + 4*B*C + D**2)/2
    """
    K = symbolic_matrix()
    # The distance of the eigenvalues is a positive square root; the larger one carries its plus.
    minus, plus = sorted(K.eigenvals(), key=lambda mu: mu.subs({A: 2, B: 1, C: 1, D: 1}))
    gap = sp.expand(plus - minus)
    one = sp.eye(2)
    to_plus, to_minus = (K - minus * one) / gap, (plus * one - K) / gap
    return Spectrum(
        plus, minus, to_plus, to_minus, amplitude(-minus, 1) / gap, amplitude(plus, -1) / gap
    )


def amplitude(shift: Expr, sign: int) -> Expr:
    """Return a^T (shift + sign K) b."""
    a, b = sp.Matrix([a_plus, a_minus]), sp.Matrix([b_plus, b_minus])
    return (a.T * (shift * sp.eye(2) + sign * symbolic_matrix()) * b)[0, 0]


def amplitude_symbols() -> tuple[Expr, Expr]:
    """Return c_+ > 0 and |c_-| of :func:`entropy_of_large_chain`."""
    return sp.Symbol("c_+", positive=True), sp.Symbol("c_-", positive=True)


def entropy_of_large_chain(sign: int) -> tuple[Expr, Expr]:
    r"""Return (1/L) log z_L bounded with the sign +1 or -1 of its correction, and its limit.

    \|mu_-\| < mu_+, since mu_+ + mu_- = A + D > 0 and mu_+ - mu_- = 2R > 0; and c_+ > 0, since
    R > \|A - D\|/2 makes A - mu_- = R + (A-D)/2 and D - mu_- = R - (A-D)/2 positive, and with them
    every entry of K - mu_-. With \|mu_-\|/mu_+ = e^{-g},

    .. math:: \frac1L\log z_L = \frac{\log 2 + (L-2)\log\mu_+
        + \log(c_+ \pm |c_-| e^{-g(L-2)})}{L}

    holds with the sign + or - according to L and to the sign of mu_-, and both have one limit.

    Examples
    --------
    >>> [entropy_of_large_chain(sign)[1] for sign in (1, -1)]
    [log(mu_+), log(mu_+)]
    """
    L, g, mu = sp.symbols("L g mu_+", positive=True)
    c_plus, c_minus = amplitude_symbols()
    correction = sp.log(c_plus + sign * c_minus * sp.exp(-g * (L - 2)))
    finite = (sp.log(2) + (L - 2) * sp.log(mu) + correction) / L
    return finite, sp.limit(finite, L, sp.oo)


@cache
def limit_entropy() -> Expr:
    """S_a of the infinite chain, log mu_+ with the entries put in."""
    mu = sp.Symbol("mu_+", positive=True)
    limits = {entropy_of_large_chain(sign)[1] for sign in (1, -1)}
    (limit,) = limits
    return limit.subs(mu, spectrum().plus).subs(entries())


def closed_entropy(layers: int) -> Expr:
    """S_a of L >= 3 layers by the eigenvalues, with mu_+^(L-2) taken out of the logarithm."""
    s = spectrum()
    inside = s.c_plus + s.c_minus * (s.minus / s.plus) ** (layers - 2)
    closed = (sp.log(2) + (layers - 2) * sp.log(s.plus) + sp.log(inside)) / layers
    return closed.subs(entries())
