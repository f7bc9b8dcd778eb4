"""Dynamics of the networks: sweeps, relaxation to fixed points and cycles, margins."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmsim.dynamics.relaxation import random_starts, relax, relaxation_summary, returns_after
    from rmsim.dynamics.status import SearchResult, Status
    from rmsim.dynamics.sweeps import (
        Update,
        check_margins,
        least_margins,
        margins,
        masked,
        sequential,
        synchronous,
    )
    from rmsim.tensors import sign
else:
    from rmtheory.base.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".relaxation": ["random_starts", "relax", "relaxation_summary", "returns_after"],
            ".status": ["SearchResult", "Status"],
            ".sweeps": [
                "Update",
                "check_margins",
                "least_margins",
                "margins",
                "masked",
                "sequential",
                "synchronous",
            ],
            "rmsim.tensors": ["sign"],
        },
    )

__all__ = [
    "SearchResult",
    "Status",
    "Update",
    "check_margins",
    "least_margins",
    "margins",
    "masked",
    "random_starts",
    "relax",
    "relaxation_summary",
    "returns_after",
    "sequential",
    "sign",
    "synchronous",
]
