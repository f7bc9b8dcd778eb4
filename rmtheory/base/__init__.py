"""What everything rests on: errors, checks, numbers with errors, the model, Gaussian functions."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmtheory.base import statistics as statistics
    from rmtheory.base.chain import Chain
    from rmtheory.base.errors import (
        InvalidInputError,
        NotConvergedError,
        OutsideValidityError,
        RMError,
        StorageError,
        UnreadableDataError,
    )
    from rmtheory.base.estimate import Estimate, Tier
    from rmtheory.base.gaussian import P, log_n, log_P, n, r
    from rmtheory.base.lazy import lazy_exports
else:
    from rmtheory.base.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".chain": ["Chain"],
            ".errors": [
                "InvalidInputError",
                "NotConvergedError",
                "OutsideValidityError",
                "RMError",
                "StorageError",
                "UnreadableDataError",
            ],
            ".estimate": ["Estimate", "Tier"],
            ".gaussian": ["P", "log_P", "log_n", "n", "r"],
            ".lazy": ["lazy_exports"],
        },
        ("statistics",),
    )

__all__ = [
    "Chain",
    "Estimate",
    "InvalidInputError",
    "NotConvergedError",
    "OutsideValidityError",
    "P",
    "RMError",
    "StorageError",
    "Tier",
    "UnreadableDataError",
    "lazy_exports",
    "log_P",
    "log_n",
    "n",
    "r",
]
