"""Errors that teach: what was wrong, with which value, what is allowed; and words of a number."""

from __future__ import annotations


class RMError(Exception):
    """Base class of every error raised on purpose by this project."""


class InvalidInputError(RMError, ValueError):
    """An argument is outside what is allowed.

    Parameters
    ----------
    argument : str
        Name of the argument, as the user wrote it.
    value : object
        The offending value.
    allowed : str
        What would have been accepted, as the end of the sentence "must be ...".

    Examples
    --------
    >>> print(InvalidInputError("layers", 0, "an integer >= 1 or inf"))
    layers must be an integer >= 1 or inf, got 0
    """

    def __init__(self, argument: str, value: object, allowed: str) -> None:
        self.argument = argument
        self.value = value
        self.allowed = allowed
        # Text as it was typed, unless nobody would see where it begins or ends.
        plain = isinstance(value, str) and value and value == " ".join(value.split())
        shown = value if plain else repr(value)
        super().__init__(f"{argument} must be {allowed}, got {shown}")

    def __reduce__(self) -> tuple[type[InvalidInputError], tuple[str, object, str]]:
        # Without it, pickle would hand the text to __init__ as its only argument.
        return type(self), (self.argument, self.value, self.allowed)


class NotConvergedError(RMError, RuntimeError):
    """A solver stopped without an answer it can defend; the text says where and what to try."""


class OutsideValidityError(RMError, ValueError):
    """The arguments are legal, but the formula does not hold there."""


class StorageError(RMError):
    """The results could not be written; what was there before is kept."""


class UnreadableDataError(RMError):
    """A data file is missing its end, was altered, or is not a data file; the text names it."""


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
