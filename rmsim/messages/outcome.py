"""How message passing and the searches built on it end; failure is a result, and has a name."""

from __future__ import annotations

from enum import IntEnum


class Outcome(IntEnum):
    """How a run ended; the comment says what to do about it."""

    SOLVED = 0  # a fixed point, every margin positive in float64
    CONVERGED = 1  # the equations hold; a marginal is not zero
    PARAMAGNET = 2  # all magnetisations are zero: an answer for BP, a collapse for a search
    UNCONVERGED = 3  # neither within max_iterations; raise it, or reinforce more slowly
    CYCLING = 4  # the messages, or the signs of a search, repeat with a period above 1
    DIVERGED = 5  # a number left the range of its type; the last finite state is returned
    POLARISED = 6  # every spin is certain, but is no solution; reinforce more slowly
    MARGINAL = 7  # a fixed point in float32 but not in float64; use dtype float64

    @property
    def label(self) -> str:
        """Name in the output of a command.

        Examples
        --------
        >>> Outcome.SOLVED.label
        'solved'
        """
        return self.name.lower()
