r"""One layer of the infinite chain: the leading eigenvalue of the transfer step.

With A = X T(qhat), right and left eigenvectors A R = mu R, L A = mu L, L.R = 1, the derivatives of
G' = log mu follow by perturbation (Hellmann and Feynman at first order),

.. math:: \partial_\alpha\mu = L(\partial_\alpha A)R, \qquad
    \partial_\alpha\partial_\beta\mu = L(\partial_\alpha\partial_\beta A)R
    + L(\partial_\alpha A)R_\beta + L(\partial_\beta A)R_\alpha,

where :math:`(\mu - A)R_\alpha = (\partial_\alpha A - \partial_\alpha\mu)R`, L.R_alpha = 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rmtheory.errors import NotConvergedError
from rmtheory.gaussian import Array
from rmtheory.local_entropy.deep.fields import Fields
from rmtheory.local_entropy.deep.tilt import tilts
from rmtheory.local_entropy.deep.transfer import Derivatives, Step

#: Relative change at which the iterations end, and how many may be needed.
_ACCURACY, _MOST_ITERATIONS = 2e-15, 400


def infinite_chain(fields: Fields, qhat: float, hessian: bool) -> Derivatives:
    """Return G' per layer of the infinite chain with its derivatives in y and qhat."""
    step = Step(fields.matrices("bulk", 2 if hessian else 1), tilts(fields.grid, fields.y, qhat))
    start = np.ones(fields.grid.size)
    mu, right = _leading(step, start)
    step.scale /= mu
    # The left vector is positive as a functional, not entry by entry.
    _, left = _leading(step.transposed, step.transposed(start))
    left = left / (left @ right)
    first = {name: float(left @ step(right, name)) for name in ("y", "q")}
    gradient = np.array([first["y"], first["q"]])
    light, sides = fields.without_matrices(), (left[None] * step.scale, step.tilted(right)[None])

    def by_q1() -> float:
        return light.force("bulk", *sides)

    if not hessian:
        return Derivatives(math.log(mu), gradient, by_q1)
    moved = {
        name: _response(step, step(right, name) - first[name] * right, left, right)
        for name in ("y", "q")
    }
    second = np.empty((2, 2))
    for i, a in enumerate(("y", "q")):
        for j, b in enumerate(("y", "q")):
            mixed = left @ step(right, "".join(sorted(a + b, reverse=True)))
            second[i, j] = mixed + left @ step(moved[b], a) + left @ step(moved[a], b)
    return Derivatives(math.log(mu), gradient, by_q1, second - np.outer(gradient, gradient))


def _leading(apply: Callable[[Array], Array], vector: Array) -> tuple[float, Array]:
    """Power iteration: the next eigenvalue is a few tenths of the first or less."""
    vector = vector / np.linalg.norm(vector)
    best, since = math.inf, 0
    for _ in range(_MOST_ITERATIONS):
        image = apply(vector)
        size = float(np.linalg.norm(image))
        if not 0 < size < math.inf:
            break
        image /= size
        change = float(np.abs(image - vector).max())
        vector = image
        # Rounding is reached when the change no longer falls.
        since = 0 if change < 0.9 * best else since + 1
        best = min(best, change)
        if change < _ACCURACY or (since > 3 and best < 1e-12):
            return size, vector
    raise NotConvergedError("the transfer operator of the infinite chain has no leading eigenvalue")


def _response(step: Step, source: Array, left: Array, right: Array) -> Array:
    """Solve (1 - A) x = source in the space without the leading vector, by iteration."""
    x = term = source - (left @ source) * right
    for _ in range(_MOST_ITERATIONS):
        term = step(term)
        term = term - (left @ term) * right
        x = x + term
        if np.abs(term).max() < 1e-12 * np.abs(x).max():
            return np.asarray(x)
    raise NotConvergedError("the response of the infinite chain did not converge")
