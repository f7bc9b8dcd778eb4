"""Theory of the representation manifold: entropies of fixed points with errors you can defend."""

from rmtheory.chain import Chain
from rmtheory.errors import InvalidInputError, NotConvergedError, OutsideValidityError, RMError
from rmtheory.estimate import Estimate, Tier

__all__ = [
    "Chain",
    "Estimate",
    "InvalidInputError",
    "NotConvergedError",
    "OutsideValidityError",
    "RMError",
    "Tier",
]
