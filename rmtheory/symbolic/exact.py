r"""Exact identity of two expressions, by algebra and never by sampling numbers.

Every transcendental atom is replaced by a symbol of its own: P(x), log x, square roots, and
e^{m/2} for each monomial m of the couplings (so that n(J+lambda) and the paper's exponentials meet
in one form). What is left is a rational function, and two expressions are identical when the
numerator of their difference expands to zero. Zero here implies equality for all arguments, as long
as what stands under a logarithm is positive.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy as sp

from rmtheory.symbolic.definitions import Expr, Matrix, P, n

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
