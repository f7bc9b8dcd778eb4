r"""Symbols of the paper, the functions P, n and F, and exact algebra with them.

.. math:: P(v) = H(-v) = \int Dh\,\theta(s h + v), \qquad Dh = n(h)\,dh, \qquad
    n(h) = e^{-h^2/2}/\sqrt{2\pi}.

P and n stay unevaluated, so that they can later be replaced by independent symbols; their
derivatives P' = n and n' = -v n are all that a Taylor expansion needs. Every property of the
Gaussian is obtained by integration.

Two expressions are identical by algebra, never by sampling numbers: every transcendental atom is
replaced by a symbol of its own: P(x), log x, square roots, and e^{m/2} for each monomial m of the
couplings (so that n(J+lambda) and the paper's exponentials meet in one form). What is left is a
rational function, and two expressions are identical when the numerator of their difference expands
to zero. Zero here implies equality for all arguments, as long as the arguments of logarithms are
positive.

Power series cut at a given order are lists of homogeneous polynomials: part g holds the terms of
order eps^g. Products then never form a term that would be dropped, which makes three layers cost
seconds instead of minutes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import sympy as sp
from sympy import QQ

# Symbols.

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


# The functions P, n and F.


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


class F(sp.Function):  # type: ignore[misc]
    """F(a, b, rho): probability that unit Gaussians of correlation rho exceed -a and -b."""

    nargs = 3

    @classmethod
    def eval(cls, a: Expr, b: Expr, rho: Expr) -> Expr | None:
        """Order the two arguments, in which F is symmetric."""
        first, second = sorted((a, b), key=sp.default_sort_key)
        return None if (first, second) == (a, b) else cls(first, second, rho)


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


# Gaussian integrals.


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


# Exact identity of two expressions.

#: sqrt(2 pi): all the pi's come from it.
_ROOT_2PI = sp.Symbol("sqrt_2pi", positive=True)


@dataclass
class Atoms:
    """Symbols that stand for transcendental atoms, and the relations of the square roots."""

    names: dict[Expr, Expr] = field(default_factory=dict)
    roots: dict[Expr, Expr] = field(default_factory=dict)

    def symbol(self, kind: str, key: Expr) -> Expr:
        """Return the positive symbol of one atom, the same each time."""
        atom = sp.Tuple(sp.Symbol(kind), key)
        return self.names.setdefault(atom, sp.Symbol(f"{kind}[{key}]", positive=True))


def as_rational(expression: Expr, atoms: Atoms) -> Expr:
    """Replace the atoms of `expression`; the result is rational in the symbols of `atoms`."""

    def density(x: Expr) -> Expr:
        return sp.exp(-sp.expand(x**2) / 2) / _ROOT_2PI

    def exponential(exponent: Expr) -> Expr:
        factors = []
        for term in sp.Add.make_args(sp.expand(exponent)):
            coefficient, monomial = term.as_coeff_Mul()
            factors.append(atoms.symbol("exp_half", monomial) ** (2 * coefficient))
        return sp.Mul(*factors)

    def logarithm(argument: Expr) -> Expr:
        # log(2 x) and log 2 + log x are one: the arguments are positive.
        expanded = sp.expand_log(sp.log(sp.factor(argument)), force=True)
        return expanded.replace(sp.log, lambda x: atoms.symbol("log", sp.expand(x)))

    def root(base: Expr, exponent: Expr) -> Expr:
        base = sp.expand(base)
        symbol = atoms.symbol("sqrt", base)
        atoms.roots[symbol] = base
        return symbol ** (2 * exponent)

    result = expression.replace(n, density)
    result = result.replace(P, lambda x: atoms.symbol("P", sp.expand(x)))
    result = result.replace(sp.exp, exponential).subs(sp.pi, _ROOT_2PI**2 / 2)
    result = result.replace(sp.log, logarithm)
    result = result.replace(
        lambda e: e.is_Pow and e.exp.is_Rational and e.exp.q == 2 and not e.base.is_Number,
        lambda e: root(e.base, e.exp),
    )
    if not result.is_rational_function():
        raise ValueError(f"not a rational function of its atoms: {result}")
    return result


def numerator(left: Expr, right: Expr) -> Expr:
    """Return the expanded numerator of left - right: zero exactly when they are identical."""
    atoms = Atoms()
    top, _ = sp.fraction(sp.together(as_rational(left - right, atoms)))
    top = sp.expand(top)
    for symbol, base in atoms.roots.items():
        # Odd powers of a root survive, even ones become powers of what is under it.
        top = sp.expand(sp.rem(sp.Poly(top, symbol), sp.Poly(symbol**2 - base, symbol)).as_expr())
    return top


def identical(left: Expr | Matrix, right: Expr | Matrix) -> bool:
    """Whether two expressions (or matrices, entry by entry) are identical functions.

    Examples
    --------
    >>> from rmtheory.symbolic.definitions import J, lam
    >>> identical(n(J + lam) * n(J - lam), sp.exp(-(J**2) - lam**2) / (2 * sp.pi))
    True
    >>> identical(n(J), P(J))
    False
    """
    if isinstance(left, sp.MatrixBase) or isinstance(right, sp.MatrixBase):
        return left.shape == right.shape and all(
            numerator(x, y) == 0 for x, y in zip(left, right, strict=True)
        )
    return bool(numerator(sp.sympify(left), sp.sympify(right)) == 0)


# Power series cut at a given order.

#: Polynomials of one ring, the parts of order 0, 1, 2 ...
Series = list[Any]


def split(polynomial: Any, grading: tuple[int, ...], order: int) -> Series:
    """Sort the terms of `polynomial` by their order; the first generators have orders `grading`."""
    parts: list[dict[tuple[int, ...], Any]] = [{} for _ in range(order + 1)]
    for monomial, coefficient in polynomial.terms():
        total = sum(g * e for g, e in zip(grading, monomial, strict=False))
        if total <= order:
            parts[total][monomial] = coefficient
    return [polynomial.ring.from_dict(part) for part in parts]


def multiply(left: Series, right: Series) -> Series:
    """Return the product, cut at the common order."""
    return [sum(left[k] * right[order - k] for k in range(order + 1)) for order in range(len(left))]


def logarithm(x: Series) -> Series:
    """Return log(1 + x) = x - x^2/2 + x^3/3 - ..., for a series x without a constant part.

    Examples
    --------
    >>> from sympy import ring
    >>> R, t = ring("t", QQ)
    >>> sum(logarithm(split(t, (1,), 3)))
    1/3*t**3 - 1/2*t**2 + t
    """
    if x[0] != 0:
        raise ValueError("the logarithm is expanded about 1: x must have no constant part")
    power, total = x, list(x)
    for order in range(2, len(x)):
        power = multiply(power, x)
        sign = QQ((-1) ** (order - 1), order)
        total = [t + p * sign for t, p in zip(total, power, strict=True)]
    return total
