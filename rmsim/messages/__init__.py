"""Message passing: belief propagation, and the searches for fixed points built on it."""

from __future__ import annotations

from rmsim.messages.amp import Beliefs, belief_propagation
from rmsim.messages.dense_bp import EdgeBeliefs, dense_belief_propagation
from rmsim.messages.ensemble import reinforce_samples
from rmsim.messages.outcome import Outcome
from rmsim.messages.reinforced import Schedule, reinforce
from rmsim.messages.search import Search
from rmsim.messages.step import random_fields

__all__ = [
    "Beliefs",
    "EdgeBeliefs",
    "Outcome",
    "Schedule",
    "Search",
    "belief_propagation",
    "dense_belief_propagation",
    "random_fields",
    "reinforce",
    "reinforce_samples",
]
