"""Second moment of the number of fixed points: exponent, exact finite N, limit (paper, SM-A)."""

from rmtheory.second_moment.bivariate import F, log_F
from rmtheory.second_moment.exponent import exponent, exponent_grid
from rmtheory.second_moment.finite_size import finite_ratio
from rmtheory.second_moment.limit import ratio_limit
from rmtheory.second_moment.maximiser import Maximum, maximum

__all__ = [
    "F",
    "Maximum",
    "exponent",
    "exponent_grid",
    "finite_ratio",
    "log_F",
    "maximum",
    "ratio_limit",
]
