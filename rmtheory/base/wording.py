"""Words that depend on a number."""

from __future__ import annotations


def counted(count: float, noun: str) -> str:
    """Return `count` with its `noun`, in the plural unless it is one.

    Examples
    --------
    >>> counted(1, "point"), counted(2, "point"), counted(0, "point")
    ('1 point', '2 points', '0 points')
    """
    return f"{count} {noun if count == 1 else noun + 's'}"


def duration(seconds: float) -> str:
    """Return a time in the largest unit of which there are two or more, rounded.

    Examples
    --------
    >>> duration(0.2), duration(59.7), duration(130), duration(9000)
    ('0 s', '60 s', '2 min', '2 h')
    """
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
