"""Replica-symmetric theory of the number of fixed points (paper, SM-A)."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmtheory.replica.eigenvalues import Stability, instability_root, stability
    from rmtheory.replica.symmetric import (
        Averages,
        RSPoint,
        SaddleSearch,
        functional,
        order_parameter,
        search_saddles,
    )
else:
    from rmtheory.base.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".eigenvalues": ["Stability", "instability_root", "stability"],
            ".symmetric": [
                "Averages",
                "RSPoint",
                "SaddleSearch",
                "functional",
                "order_parameter",
                "search_saddles",
            ],
        },
    )

__all__ = [
    "Averages",
    "RSPoint",
    "SaddleSearch",
    "Stability",
    "functional",
    "instability_root",
    "order_parameter",
    "search_saddles",
    "stability",
]
