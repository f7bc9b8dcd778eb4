"""Annealed entropy of the fixed points, any number of layers (paper, SM-A)."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmtheory.annealed.mean_number import (
        entropy,
        lam_turning_jd,
        large_lam_entropy,
        log_mean_count,
        mean_count,
        small_lam_expansion,
    )
    from rmtheory.annealed.vectorised import entropy_array
else:
    from rmtheory.base.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".mean_number": [
                "entropy",
                "lam_turning_jd",
                "large_lam_entropy",
                "log_mean_count",
                "mean_count",
                "small_lam_expansion",
            ],
            ".vectorised": ["entropy_array"],
        },
    )

__all__ = [
    "entropy",
    "entropy_array",
    "lam_turning_jd",
    "large_lam_entropy",
    "log_mean_count",
    "mean_count",
    "small_lam_expansion",
]
