r"""Averages of a chain of L layers: products of transfer steps from both ends.

.. math:: e^{G'} = A_1 A_2 \cdots A_L\, 1, \qquad A_l = X_l T_l(\hat q_l),

X_l being the step over x (a row for the first layer) and T_l that over t. With right vectors
:math:`R_l = A_l R_{l+1}` and left ones :math:`\Lambda_{l+1} = \Lambda_l A_l`, derivatives are

.. math:: \partial_\alpha e^{G'} = \sum_l \Lambda_l (\partial_\alpha A_l) R_{l+1}, \qquad
    \partial_\alpha\partial_\beta e^{G'} = \sum_l \Lambda_l\big[(\partial_\alpha\partial_\beta A_l)
    R_{l+1} + (\partial_\alpha A_l)\,\partial_\beta R_{l+1}
    + (\partial_\beta A_l)\,\partial_\alpha R_{l+1}\big].
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rmtheory.gaussian import Array
from rmtheory.local_entropy.deep.fields import Fields, Layer
from rmtheory.local_entropy.deep.tilt import tilts
from rmtheory.local_entropy.deep.transfer import Derivatives, Step


def finite_chain(fields: Fields, qhat: Array, hessian: bool) -> Derivatives:
    """Return G' of a chain of ``qhat.size`` layers with its derivatives in y and the qhat."""
    layers, order = qhat.size, 2 if hessian else 1
    kinds = _kinds(layers)
    steps = [
        Step(fields.matrices(kind, order), tilts(fields.grid, fields.y, float(q)))
        for kind, q in zip(kinds, qhat, strict=True)
    ]

    # Right vectors R_1 .. R_{L+1}, scaled one by one, and the steps with them.
    right = [np.ones(fields.grid.half)]
    log_norm = 0.0
    for step in reversed(steps):
        image = step(right[0])
        scale = float(np.abs(image).max())
        step.scale /= scale
        log_norm += math.log(scale)
        right.insert(0, image / scale)
    left = [np.ones(1)]
    for step in steps:
        left.append(step.transposed(left[-1]))
    # The scaled product is 1, or -1 if the discretisation has broken down.
    norm = float(right[0][0])

    gradient = np.zeros(layers + 1)
    for k, step in enumerate(steps):
        gradient[0] += left[k] @ step(right[k + 1], "y")
        gradient[k + 1] = left[k] @ step(right[k + 1], "q")
    by_q1 = _postponed(fields, kinds, steps, left, right, norm)
    gradient /= norm
    if norm <= 0:
        log_norm = math.nan
    if not hessian:
        return Derivatives(log_norm, gradient, by_q1)

    # d R_{l+1} by y and by the qhat of the layers behind, one row each: all pairs of layers are
    # needed, so that the work grows like L^2 here, and like L without second derivatives.
    second = np.zeros((layers + 1, layers + 1))
    slopes, behind = np.zeros((1, right[-1].size)), [0]
    for k in range(layers - 1, -1, -1):
        step, row, vector = steps[k], left[k], right[k + 1]
        by_y, by_q = step(slopes, "y") @ row, step(slopes, "q") @ row
        second[0, behind] += by_y
        second[behind, 0] += by_y
        second[k + 1, behind] += by_q
        second[behind, k + 1] += by_q
        second[0, 0] += row @ step(vector, "yy")
        second[k + 1, k + 1] += row @ step(vector, "qq")
        mixed = row @ step(vector, "yq")
        second[0, k + 1] += mixed
        second[k + 1, 0] += mixed
        slopes = step(slopes)
        slopes[0] += step(vector, "y")
        slopes = np.vstack([slopes, step(vector, "q")])
        behind.append(k + 1)
    return Derivatives(log_norm, gradient, by_q1, second / norm - np.outer(gradient, gradient))


def _kinds(layers: int) -> list[Layer]:
    if layers == 1:
        return ["only"]
    inside: list[Layer] = ["bulk"] * (layers - 2)
    return ["first", *inside, "last"]


def _postponed(
    fields: Fields,
    kinds: list[Layer],
    steps: list[Step],
    left: list[Array],
    right: list[Array],
    norm: float,
) -> Callable[[], float]:
    """d/dq1 of the product, the layers inside taken together."""
    sides = []
    for kind in dict.fromkeys(kinds):
        alike = [k for k, other in enumerate(kinds) if other == kind]
        rows = np.stack([left[k] * (steps[k].scale / norm) for k in alike])
        sides.append((kind, rows, np.stack([steps[k].tilted(right[k + 1]) for k in alike])))
    light = fields.without_matrices()
    return lambda: sum(light.force(*side) for side in sides)
