"""Dynamics of the networks: sweeps, relaxation to fixed points and cycles, margins."""

from __future__ import annotations

from rmsim.dynamics.cycles import returns_after
from rmsim.dynamics.ensemble import random_starts, relax_samples
from rmsim.dynamics.relax import relax
from rmsim.dynamics.result import Relaxation, Status
from rmsim.dynamics.step import Update, masked, sequential, sign, synchronous
from rmsim.dynamics.verify import least_margins, margins

__all__ = [
    "Relaxation",
    "Status",
    "Update",
    "least_margins",
    "margins",
    "masked",
    "random_starts",
    "relax",
    "relax_samples",
    "returns_after",
    "sequential",
    "sign",
    "synchronous",
]
