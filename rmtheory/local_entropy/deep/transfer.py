"""One layer as a step on functions of the message, and what chains of steps return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rmtheory.gaussian import Array
from rmtheory.local_entropy.deep.tilt import Tilt


@dataclass(frozen=True, eq=False)
class Derivatives:
    """G' of a chain, or of one layer of the infinite chain, at one (d, y, qhat)."""

    log_norm: float
    #: Derivatives in (y, qhat).
    gradient: Array
    #: Computes the derivative in q1.
    by_q1: Callable[[], float]
    #: Second derivatives in (y, qhat).
    hessian: Array | None = None


@dataclass(eq=False)
class Step:
    """A = scale X T, and its derivatives: functions behind the layer to functions before it."""

    #: X and its derivatives in y
    fields: list[Array]
    #: T and its derivatives by name
    tilts: dict[str, Tilt]
    scale: float = 1.0

    def __call__(self, function: Array, name: str = "1") -> Array:
        """Apply A, or the derivative `name` (y, q, yy, yq, qq); functions along the last axis."""
        result: Array | None = None
        for weight, order, inner in _LEIBNIZ[name]:
            part = self.tilts[inner](function) @ self.fields[order].T
            result = weight * part if result is None else result + weight * part
        assert result is not None
        return np.asarray(self.scale * result)

    def tilted(self, function: Array) -> Array:
        """Apply T alone."""
        return self.tilts["1"](function)

    def transposed(self, row: Array) -> Array:
        """Multiply by a row from the left."""
        return np.asarray(self.scale * self.tilts["1"].transposed(row @ self.fields[0]))


#: Product rule for X T, X depending on y only: (weight, order in y of X, name of T).
_LEIBNIZ: dict[str, tuple[tuple[int, int, str], ...]] = {
    "1": ((1, 0, "1"),),
    "y": ((1, 1, "1"), (1, 0, "y")),
    "q": ((1, 0, "q"),),
    "yy": ((1, 2, "1"), (2, 1, "y"), (1, 0, "yy")),
    "yq": ((1, 1, "q"), (1, 0, "yq")),
    "qq": ((1, 0, "qq"),),
}
