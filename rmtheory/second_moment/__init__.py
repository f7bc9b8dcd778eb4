"""Second moment of the number of fixed points: exponent, exact finite N, limit (paper, SM-A)."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmtheory.second_moment.bivariate import F, log_F
    from rmtheory.second_moment.overlap_exponent import Maximum, exponent, exponent_grid, maximum
    from rmtheory.second_moment.ratio import finite_ratio, ratio_limit, second_moment_ratio
else:
    from rmtheory.base.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".bivariate": ["F", "log_F"],
            ".overlap_exponent": ["Maximum", "exponent", "exponent_grid", "maximum"],
            ".ratio": ["finite_ratio", "ratio_limit", "second_moment_ratio"],
        },
    )

__all__ = [
    "F",
    "Maximum",
    "exponent",
    "exponent_grid",
    "finite_ratio",
    "log_F",
    "maximum",
    "ratio_limit",
    "second_moment_ratio",
]
