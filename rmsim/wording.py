"""Numbers in sentences."""

from __future__ import annotations


def counted(count: int, what: str) -> str:
    """Return a number of things in words.

    Examples
    --------
    >>> counted(1, "epoch"), counted(0, "epoch"), counted(2, "degree of freedom")
    ('1 epoch', '0 epochs', '2 degrees of freedom')
    """
    first, *rest = what.split(" ")
    return " ".join([str(count), first if count == 1 else f"{first}s", *rest])
