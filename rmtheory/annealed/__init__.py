"""Annealed entropy of the fixed points, any number of layers (paper, SM-A)."""

from rmtheory.annealed.entropy import entropy, log_mean_count, mean_count
from rmtheory.annealed.limits import lam_turning_jd, large_lam_entropy, small_lam_expansion
from rmtheory.annealed.vectorised import entropy_array

__all__ = [
    "entropy",
    "entropy_array",
    "lam_turning_jd",
    "large_lam_entropy",
    "log_mean_count",
    "mean_count",
    "small_lam_expansion",
]
