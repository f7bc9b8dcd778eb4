r"""Local stability of the replica-symmetric saddle q = qhat = 0, any number of layers.

To second order (paper, SM-A, 'Detailed RS study'; odd orders vanish by the flip symmetry)

.. math:: L S_{rs} = \log z + \tfrac12 \hat q\cdot q
    - \tfrac12\left[\tfrac12 \hat q C \hat q + \hat q D q + \tfrac12 q E q\right],

with C_lm = <s_l s_m>^2, D_lm = <s_l s_m r_m>^2, E_lm = <s_l s_m r_l r_m>^2, E_ll = <v_l r_l>^2.
Eliminating qhat leaves log z + (1/4) q^T M q,

.. math:: M = (1-D)^T C^{-1} (1-D) - E ,

and the saddle is stable where M is positive definite.

The averages are over one column of spins under the annealed measure ~ prod_l P(v_l). In the gauge
variables tau_l = s^l s^{l+1} the column is a chain whose bonds are the layers: layer l joins
tau_{l-1} to tau_l with weight P(v_l), v_l = J_D + lambda_L tau_{l-1} + lambda_R tau_l, and s^l s^m
is the product of the taus between. Inserting r = n/P in layer l replaces its weight by the density
n(v_l), inserting v r replaces it by v n(v), so every average is a product of matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath

from rmtheory.base import checks
from rmtheory.base.arithmetic import (
    GUARD_DIGITS,
    Arithmetic,
    Matrix,
    MPArithmetic,
    ball_precision,
    ball_to_mpf,
    evaluate,
    have_flint,
    multiply,
    solve_positive,
    transpose,
)
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError, counted
from rmtheory.base.estimate import (
    Estimate,
    Tier,
    fraction_from,
    mpf_from,
)

# The verdict on q = 0.

#: The pair averages cost O(L^2) many-digit operations and the elimination O(L^3).
MOST_LAYERS = 64


@dataclass(frozen=True)
class Stability:
    """Verdict on the saddle q = 0."""

    chain: Chain
    #: Eigenvalues of M, smallest first.
    eigenvalues: tuple[Estimate, ...]
    #: Coefficient of q^2 for equal q in all layers, per neuron: the paper's A/B at L = 2.
    coefficient: Estimate
    stable: bool


def stability(chain: Chain, digits: int = 15, *, tier: Tier | None = None) -> Stability:
    """Eigenvalues of M, the coefficient of q^2, and whether q = 0 is stable.

    Examples
    --------
    >>> import rmtheory as rt
    >>> result = rt.stability(rt.Chain(2, jd=0.1, lam=0.5), digits=20)
    >>> print(result.coefficient, result.stable)
    0.067902358956195535265 ± 6e-22 True
    """
    digits = checks.digits(digits)
    chain.refuse_beyond(1e150)
    if tier is None:
        tier = Tier.CERTIFIED if have_flint() else Tier.VERIFIED
    eigenvalues = _eigenvalues(chain, digits, tier)
    least = eigenvalues[0]
    if abs(least.value) <= least.error:
        raise NotConvergedError(
            f"the least eigenvalue {least} of M has no sign at {counted(digits, 'digit')}: "
            "ask for more digits"
        )
    size = chain.finite_layers

    def coefficient(arithmetic: Arithmetic) -> Any:
        return sum(sum(row) for row in matrices(chain, arithmetic).M) / (4 * size)

    value = evaluate(coefficient, None, digits, "second-order expansion of S_rs", tier)
    return Stability(chain, eigenvalues, value, bool(least.value > 0))


def instability_root(digits: int = 15, *, tier: Tier | None = None) -> Estimate:
    """Return the J_D below which the core module (L = 1) loses the saddle q = 0: r(r - J) = 1.

    M = (1 - r^2)^2 - J^2 r^2 has the factor 1 - r^2 - J r, the variance of a truncated normal and
    hence positive, and the factor 1 - r^2 + J r, which increases for J < 0: the root is unique.

    Examples
    --------
    >>> import rmtheory as rt
    >>> print(rt.instability_root(digits=15))
    -0.178357650045906 ± 6e-16
    """
    digits = checks.digits(digits)
    arithmetic = MPArithmetic(digits + GUARD_DIGITS)

    def factor(numbers: Arithmetic, J: Any) -> Any:
        r = numbers.n(J) / numbers.P(J)
        return r * (r - J) - 1

    root = arithmetic.context.findroot(
        lambda J: factor(arithmetic, J), (Fraction(-1, 5), Fraction(-1, 6)), solver="anderson"
    )
    if tier is Tier.CERTIFIED or (tier is None and have_flint()):
        return _enclosed_root(factor, root, digits)
    step = arithmetic.context.mpf(10) ** (-digits - 2)
    if not factor(arithmetic, root - step) > 0 > factor(arithmetic, root + step):
        raise NotConvergedError(f"no sign change of r(r - J) - 1 around {root}")
    method = "root of r(r - J) = 1, sign change checked"
    return Estimate(mpf_from(root), mpf_from(step), Tier.VERIFIED, method).rounded(digits)


def _enclosed_root(factor: Any, root: Any, digits: int) -> Estimate:
    """Certify the root: balls of opposite sign at the two ends of an interval around it."""
    centre = fraction_from(root)
    step = Fraction(1, 10 ** (digits + 2))
    with ball_precision(digits + GUARD_DIGITS) as balls:
        low, high = (factor(balls, balls.number(centre + s * step)) for s in (-1, 1))
        if not (low > 0 and high < 0):
            raise NotConvergedError(f"no certified sign change of r(r - J) - 1 around {root}")
    error = mpmath.mpf(10) ** (-digits - 2)
    method = "root of r(r - J) = 1 enclosed by a sign change in ball arithmetic"
    return Estimate(mpf_from(root), 2 * error, Tier.CERTIFIED, method).rounded(digits)


# The quadratic forms.


@dataclass(frozen=True)
class Matrices:
    """The quadratic forms of the expansion, in one kind of number."""

    C: Matrix
    D: Matrix
    E: Matrix
    M: Matrix
    det_C: Any


def matrices(chain: Chain, arithmetic: Arithmetic) -> Matrices:
    """C, D, E and M of a finite chain."""
    if chain.finite_layers > MOST_LAYERS:
        raise InvalidInputError("layers", chain.layers, f"at most {MOST_LAYERS} for stability")
    averages = chain_averages(chain, arithmetic)
    C, D, E = (
        [[x * x for x in row] for row in average]
        for average in (averages.ss, averages.ssr, averages.ssrr)
    )
    size = range(len(C))
    residual = [[(1 if i == j else 0) - D[i][j] for j in size] for i in size]
    solution, det_C = solve_positive(C, residual)
    product = multiply(transpose(residual), solution)
    M = [[product[i][j] - E[i][j] for j in size] for i in size]
    return Matrices(C, D, E, M, det_C)


# Averages over one column.

Row = list[Any]

Weight = Callable[[Any], Any]


@dataclass(frozen=True)
class ChainAverages:
    """Correlations of one column; indices are layers, counted from 0."""

    #: <s_l s_m>
    ss: Matrix
    #: <s_l s_m r_m>
    ssr: Matrix
    #: <s_l s_m r_l r_m> off the diagonal, <v_l r_l> on it
    ssrr: Matrix


def chain_averages(chain: Chain, arithmetic: Arithmetic) -> ChainAverages:
    """Return all pair correlations of a finite chain in O(L^2) operations."""
    L = chain.finite_layers
    jd, lam_left, lam_right = (arithmetic.number(x) for x in chain.exact)

    def layer(position: int, weight: Weight) -> Matrix:
        """Matrix of one layer; the ends have no outer tau, hence one row or one column."""
        left = (0,) if position == 0 else (1, -1)
        right = (0,) if position == L - 1 else (1, -1)
        return [[weight(jd + lam_left * a + lam_right * b) for b in right] for a in left]

    P, n = arithmetic.P, arithmetic.n
    weights = [layer(k, P) for k in range(L)]
    densities = [layer(k, n) for k in range(L)]
    one = arithmetic.number(1)

    before: list[Row] = [[one]]  # sums over everything left of layer k
    for k in range(L - 1):
        before.append(_row_times(before[k], weights[k]))
    after: list[Row] = [[one]]  # sums over everything right of layer k, built from the end
    for k in range(L - 1, 0, -1):
        after.append(_times_column(weights[k], after[-1]))
    after.reverse()

    def close(row: Row, position: int, matrix: Matrix) -> Any:
        return _dot(_row_times(row, matrix), after[position])

    z = close(before[0], 0, weights[0])
    ss = [[one] * L for _ in range(L)]
    ssr = [[one] * L for _ in range(L)]
    ssrr = [[one] * L for _ in range(L)]
    for k in range(L):
        ssr[k][k] = close(before[k], k, densities[k]) / z
        ssrr[k][k] = close(before[k], k, layer(k, lambda v: v * n(v))) / z
        # Carry the row of layer k, with and without r, to every later layer m.
        plain = _row_times(before[k], weights[k])
        dense = _row_times(before[k], densities[k])
        for m in range(k + 1, L):
            plain, dense = _signed(plain), _signed(dense)  # the factor tau between the layers
            ss[k][m] = ss[m][k] = close(plain, m, weights[m]) / z
            ssr[k][m] = close(plain, m, densities[m]) / z
            ssr[m][k] = close(dense, m, weights[m]) / z
            ssrr[k][m] = ssrr[m][k] = close(dense, m, densities[m]) / z
            plain, dense = _row_times(plain, weights[m]), _row_times(dense, weights[m])
    return ChainAverages(ss, ssr, ssrr)


def _row_times(row: Row, matrix: Matrix) -> Row:
    return [_dot(row, [line[j] for line in matrix]) for j in range(len(matrix[0]))]


def _times_column(matrix: Matrix, column: Row) -> Row:
    return [_dot(line, column) for line in matrix]


def _dot(x: Row, y: Row) -> Any:
    return sum(a * b for a, b in zip(x, y, strict=True))


def _signed(row: Row) -> Row:
    return [row[0], -row[1]]


# Eigenvalues with errors.


def _eigenvalues(chain: Chain, digits: int, tier: Tier) -> tuple[Estimate, ...]:
    """Eigenvalues of M with errors, multiplicities allowed.

    With the approximate eigenvectors Q of mpmath, Q^T M Q is nearly diagonal and Q^T Q nearly 1.
    Weyl bounds the effect of the off-diagonal part and Ostrowski that of Q not being orthogonal,
    so that |mu_k - d_k| <= (|off-diagonal| + |d_k| eps)/(1 - eps), eps = |Q^T Q - 1|, all norms
    bounded by sums of moduli. In balls this certifies; in mpmath it verifies.
    """
    working = digits + GUARD_DIGITS + 5
    # Strong couplings make C nearly singular: digits are lost, and more are taken.
    for _ in range(8):
        try:
            estimates = _eigenvalues_at(chain, working, tier)
        except ZeroDivisionError:
            estimates = ()
        if estimates and all(_enough(estimate, digits) for estimate in estimates):
            return tuple(estimate.rounded(digits) for estimate in estimates)
        working *= 2
    raise NotConvergedError(
        f"the eigenvalues of M for {chain} did not reach {counted(digits, 'digit')} "
        f"with {working // 2}"
    )


def _enough(estimate: Estimate, digits: int) -> bool:
    return estimate.digits >= digits or estimate.error < mpmath.mpf(10) ** (-digits - 2)


def _eigenvalues_at(chain: Chain, working: int, tier: Tier) -> tuple[Estimate, ...]:
    arithmetic = MPArithmetic(working)
    size = chain.finite_layers
    M = matrices(chain, arithmetic).M
    _, vectors = arithmetic.context.eigsy(arithmetic.context.matrix(M))
    Q = [[fraction_from(vectors[i, j]) for j in range(size)] for i in range(size)]
    method = "eigenvalues of M, Weyl-Ostrowski bounds"
    if tier is Tier.CERTIFIED:
        with ball_precision(working) as balls:
            pairs = _enclose(matrices(chain, balls).M, Q, balls)
            bounds = []
            for centre, radius in pairs:
                middle, rounding = ball_to_mpf(centre)
                bound, spread = ball_to_mpf(radius)
                bounds.append((middle, (rounding + bound + spread) * (1 + mpmath.mpf(2) ** -40)))
        method += ", ball arithmetic"
    else:
        finer = MPArithmetic(working + GUARD_DIGITS)
        pairs = _enclose(matrices(chain, finer).M, Q, finer)
        rounding = finer.context.mpf(10) ** (3 - working)
        bounds = [(mpf_from(d), mpf_from(e + rounding)) for d, e in pairs]
        method += ", mpmath"
    if not all(mpmath.isfinite(e) for _, e in bounds):
        return ()
    estimates = [Estimate(d, e, tier, method) for d, e in bounds]
    return tuple(sorted(estimates, key=lambda estimate: estimate.value))


def _enclose(M: Matrix, Q: list[list[Fraction]], numbers: Arithmetic) -> list[tuple[Any, Any]]:
    """Diagonal of Q^T M Q and the bound on its distance from the eigenvalues of M."""
    basis = [[numbers.number(x) for x in row] for row in Q]
    rotated = multiply(transpose(basis), multiply(M, basis))
    gram = multiply(transpose(basis), basis)
    size = range(len(M))
    # Sums of moduli bound the Frobenius norms and need no root of a ball around 0.
    off = sum(abs(rotated[i][j]) for i in size for j in size if i != j)
    eps = sum(abs(gram[i][j] - (1 if i == j else 0)) for i in size for j in size)
    return [(rotated[k][k], (off + abs(rotated[k][k]) * eps) / (1 - eps)) for k in size]
