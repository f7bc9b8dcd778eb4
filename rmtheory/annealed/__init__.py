"""Annealed entropy of the fixed points, any number of layers (paper, SM-A)."""

from rmtheory.annealed.entropy import entropy, log_mean_count, mean_count
from rmtheory.annealed.vectorised import entropy_array

__all__ = ["entropy", "entropy_array", "log_mean_count", "mean_count"]
