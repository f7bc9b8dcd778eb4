"""Replica-symmetric theory of the number of fixed points (paper, SM-A)."""
