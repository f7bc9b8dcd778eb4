"""Small dense linear algebra for any kind of number: mpmath, balls, sympy."""

from __future__ import annotations

from typing import Any

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
