r"""Averages over one column of spins under the annealed measure ~ prod_l P(v_l).

In the gauge variables tau_l = s^l s^{l+1} the column is a chain whose bonds are the layers: layer
l joins tau_{l-1} to tau_l with weight P(v_l), v_l = J_D + lambda_L tau_{l-1} + lambda_R tau_l, and
s^l s^m is the product of the taus between. Inserting r = n/P in layer l replaces its weight by the
density n(v_l), inserting v r replaces it by v n(v), so every average is a product of matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rmtheory.arithmetic import Arithmetic
from rmtheory.chain import Chain

Row = list[Any]
Matrix = list[list[Any]]
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
