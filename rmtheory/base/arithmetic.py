"""One set of formulas for several kinds of numbers: mpmath to any precision, and certified balls.

A formula is written once for an :class:`Arithmetic`; its numbers need only + - * / and powers.
:func:`evaluate` computes it to a wanted number of digits. No precision is global: every mpmath
computation owns a context, and the precision of python-flint is set under a lock and restored.
Small dense linear algebra works for any kind of number, those of sympy included.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from typing import Any, Protocol

import mpmath

from rmtheory.base.errors import InvalidInputError, NotConvergedError, counted
from rmtheory.base.estimate import Estimate, Tier, mpf_from

#: Digits carried beyond those wanted.
GUARD_DIGITS = 15


# Kinds of numbers.


class Arithmetic(Protocol):
    """Elementary functions on one kind of number, and its conversion from a fraction."""

    def number(self, x: Fraction | int) -> Any:
        """Return the exact fraction as a number of this kind."""

    def P(self, x: Any) -> Any:
        """Normal cumulative distribution, P(x) = H(-x) = erfc(-x/sqrt 2)/2."""

    def n(self, x: Any) -> Any:
        """Normal density."""

    def exp(self, x: Any) -> Any:
        """Exponential."""

    def log(self, x: Any) -> Any:
        """Natural logarithm."""

    def sqrt(self, x: Any) -> Any:
        """Square root."""

    def expm1(self, x: Any) -> Any:
        """Return exp(x) - 1."""

    def log1p(self, x: Any) -> Any:
        """Return log(1 + x)."""

    def negative(self, x: Any) -> bool:
        """Whether x < 0 is certain."""


class MPArithmetic:
    """Numbers of mpmath in a context of their own, `digits` decimal digits."""

    def __init__(self, digits: int) -> None:
        self.context = mpmath.MPContext()
        self.context.dps = digits
        self._sqrt2 = self.context.sqrt(2)
        self._norm = 1 / self.context.sqrt(2 * self.context.pi)

    def number(self, x: Fraction | int) -> Any:
        """Return the exact fraction, correctly rounded."""
        fraction = Fraction(x)
        return self.context.mpf(fraction.numerator) / fraction.denominator

    def P(self, x: Any) -> Any:
        """Normal cumulative distribution with full relative accuracy in both tails."""
        return self.context.erfc(-x / self._sqrt2) / 2

    def n(self, x: Any) -> Any:
        """Normal density."""
        return self._norm * self.context.exp(-x * x / 2)

    def exp(self, x: Any) -> Any:
        """Exponential."""
        return self.context.exp(x)

    def log(self, x: Any) -> Any:
        """Natural logarithm."""
        return self.context.log(x)

    def sqrt(self, x: Any) -> Any:
        """Square root."""
        return self.context.sqrt(x)

    def expm1(self, x: Any) -> Any:
        """Return exp(x) - 1."""
        return self.context.expm1(x)

    def log1p(self, x: Any) -> Any:
        """Return log(1 + x)."""
        return self.context.log1p(x)

    def negative(self, x: Any) -> bool:
        """Whether x < 0."""
        return bool(x < 0)


class BallArithmetic:
    """Balls of python-flint; use inside :func:`ball_precision`."""

    def __init__(self) -> None:
        from flint import arb

        self._arb = arb
        self._sqrt2 = arb(2).sqrt()
        self._norm = 1 / (2 * arb.pi()).sqrt()

    def number(self, x: Fraction | int) -> Any:
        """Return a ball around the exact fraction."""
        from flint import fmpq

        fraction = Fraction(x)
        return self._arb(fmpq(fraction.numerator, fraction.denominator))

    def P(self, x: Any) -> Any:
        """Normal cumulative distribution."""
        return (-x / self._sqrt2).erfc() / 2

    def n(self, x: Any) -> Any:
        """Normal density."""
        return self._norm * (-x * x / 2).exp()

    def exp(self, x: Any) -> Any:
        """Exponential."""
        return x.exp()

    def log(self, x: Any) -> Any:
        """Natural logarithm."""
        return x.log()

    def sqrt(self, x: Any) -> Any:
        """Square root."""
        return x.sqrt()

    def expm1(self, x: Any) -> Any:
        """Return exp(x) - 1."""
        return x.expm1()

    def log1p(self, x: Any) -> Any:
        """Return log(1 + x)."""
        return x.log1p()

    def negative(self, x: Any) -> bool:
        """Whether the whole ball lies below 0."""
        return bool(x < 0)


_flint_lock = threading.RLock()


@cache
def have_flint() -> bool:
    """Whether python-flint (extra ``[rigor]``) is installed."""
    try:
        import flint  # noqa: F401
    except ImportError:
        return False
    return True


@contextmanager
def ball_precision(digits: int) -> Iterator[BallArithmetic]:
    """Give ball arithmetic at `digits` decimal digits; restores flint's precision afterwards."""
    if not have_flint():
        raise InvalidInputError(
            "tier",
            "certified",
            "verified unless python-flint is installed (pip install '.[rigor]')",
        )
    import flint

    with _flint_lock, flint.ctx.workprec(int(digits * 3.33) + 16):
        yield BallArithmetic()


# Evaluation to a wanted number of digits.


def evaluate(
    formula: Callable[[Arithmetic], Any],
    second: Callable[[Arithmetic], Any] | None,
    digits: int,
    method: str,
    tier: Tier | None = None,
) -> Estimate:
    """Evaluate `formula` to `digits` digits, certified if python-flint is installed, else verified.

    Parameters
    ----------
    formula : callable
        The formula as a function of an :class:`Arithmetic`.
    second : callable or None
        An independent route to the same number, for the verified tier; None compares two
        precisions instead.
    digits : int
        Significant digits wanted (absolute digits where the value is smaller than 1e-digits).
    method : str
        Name of the formula.
    tier : Tier, optional
        The tier required.
    """
    if tier is Tier.ESTIMATED:
        raise InvalidInputError("tier", str(tier), "certified or verified")
    if tier is None:
        tier = Tier.CERTIFIED if have_flint() else Tier.VERIFIED
    if tier is Tier.CERTIFIED:
        return _certified(formula, digits, f"{method}, ball arithmetic")
    return _verified(formula, second, digits, method)


def _certified(formula: Callable[[Arithmetic], Any], digits: int, method: str) -> Estimate:
    working = digits + GUARD_DIGITS
    # Nearly degenerate eigenvalues (lambda_L = -lambda_R, large) need thousands of digits.
    for _ in range(9):
        with ball_precision(working) as balls:
            try:
                value, error = ball_to_mpf(formula(balls))
            except ZeroDivisionError:  # a ball around 0 in a denominator: more digits
                value, error = mpmath.mpf("nan"), mpmath.inf
        if mpmath.isfinite(value) and mpmath.isfinite(error):
            estimate = Estimate(value, error, Tier.CERTIFIED, method)
            if estimate.digits >= digits or error < mpmath.mpf(10) ** (-digits - 2):
                return estimate.rounded(digits)
        working = 2 * working
    raise NotConvergedError(
        f"{method} did not reach {counted(digits, 'digit')} even with {working // 2} working digits"
    )


def _verified(
    formula: Callable[[Arithmetic], Any],
    second: Callable[[Arithmetic], Any] | None,
    digits: int,
    method: str,
) -> Estimate:
    working = digits + GUARD_DIGITS
    error: Any = mpmath.inf
    for _ in range(8):
        first = MPArithmetic(working)
        try:
            value = formula(first)
        except ZeroDivisionError:  # a pivot rounded to 0: more digits
            working = 2 * working
            continue
        # The second route runs with more digits, so that their difference shows the rounding of
        # the first as well as any mistake of either.
        other = MPArithmetic(working + GUARD_DIGITS)
        check = (second or formula)(other)
        rounding = (1 + abs(other.context.mpf(value))) * other.context.mpf(10) ** (3 - working)
        error = abs(other.context.mpf(value) - check) + rounding
        how = "a second route" if second else "more working digits"
        estimate = Estimate(
            mpf_from(value), mpf_from(error), Tier.VERIFIED, f"{method}, checked by {how}"
        )
        if estimate.digits >= digits or error < other.context.mpf(10) ** (-digits - 2):
            return estimate.rounded(digits)
        working = 2 * working
    raise NotConvergedError(f"{method}: two routes differ by {mpmath.nstr(error, 3)}")


def ball_to_mpf(ball: Any) -> tuple[Any, Any]:
    """Return midpoint and radius of a ball as mpmath numbers, exactly."""
    if not ball.is_finite():
        return mpmath.mpf("nan"), mpmath.inf
    parts = []
    for exact in (ball.mid(), ball.rad()):
        mantissa, exponent = exact.man_exp()
        parts.append(mpmath.mp.make_mpf(mpmath.libmp.from_man_exp(int(mantissa), int(exponent))))
    return parts[0], parts[1]


# Small dense linear algebra.

Matrix = list[list[Any]]


def solve_positive(A: Matrix, B: Matrix) -> tuple[Matrix, Any]:
    """Solve A X = B and return (X, det A) for a positive definite A.

    Elimination needs no pivoting there: every pivot is a positive Schur complement.
    """
    size, width = len(A), len(B[0])
    rows = [list(a) + list(b) for a, b in zip(A, B, strict=True)]
    determinant: Any = 1
    for k in range(size):
        pivot = rows[k][k]
        determinant = determinant * pivot
        for i in range(k + 1, size):
            factor = rows[i][k] / pivot
            for j in range(k, size + width):
                rows[i][j] = rows[i][j] - factor * rows[k][j]
    X: Matrix = [[0] * width for _ in range(size)]
    for i in range(size - 1, -1, -1):
        for j in range(width):
            known = sum(rows[i][k] * X[k][j] for k in range(i + 1, size))
            X[i][j] = (rows[i][size + j] - known) / rows[i][i]
    return X, determinant


def determinant(A: Matrix) -> Any:
    """Determinant by the same elimination; A positive definite."""
    return solve_positive(A, [[0]] * len(A))[1]


def multiply(A: Matrix, B: Matrix) -> Matrix:
    """Matrix product."""
    columns = list(zip(*B, strict=True))
    return [[sum(x * y for x, y in zip(row, col, strict=True)) for col in columns] for row in A]


def transpose(A: Matrix) -> Matrix:
    """Matrix transpose."""
    return [list(column) for column in zip(*A, strict=True)]
