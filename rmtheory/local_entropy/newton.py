"""Newton's method for the saddle point and for y*, at one resolution of the quadrature.

All unknowns are positive, so they are iterated as logarithms, with steps of at most a factor two.
The derivatives come from explicit integrals at a coarse resolution, which suffices to converge.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rmtheory.errors import NotConvergedError
from rmtheory.gaussian import Array
from rmtheory.local_entropy.model import LocalModel
from rmtheory.local_entropy.moments import Moments

#: Relative step at which the iteration ends, at the coarse level and at the finer ones.
_ROUGH, _FINE = 1e-8, 1e-12

#: Relative rounding of the averages: the sums over the nodes gather a few units.
ROUNDING = 16 * float(np.finfo(float).eps)

#: Range of y and qhat; y* grows beyond it at very small d, and for large J_D at small d.
_LEAST, _LARGEST = 1e-12, 1e8

_MOST_STEPS = 60
_LARGEST_STEP = math.log(2.0)


@dataclass(frozen=True, eq=False)
class Solution:
    """A solved point: the averages there and the inverse of the Jacobian in (y, qhat) or qhat."""

    moments: Moments
    inverse: Array
    #: Largest relative change of the unknowns in the last step.
    last_step: float


def solve_saddle(
    model: LocalModel, d: float, y: float, qhat: Array, level: int, inverse: Array | None = None
) -> Solution:
    """Solve <m_l^2>_y = q1 for qhat at fixed (d, y), from a guess."""

    def residual(moments: Moments) -> Array:
        return moments.saddle_residual

    def evaluate(unknowns: Array, at: int, tangent: bool) -> Moments:
        return model.moments(d, y, unknowns, at, tangent)

    return _newton(
        evaluate,
        residual,
        Moments.saddle_jacobian,
        qhat,
        (level, model.coarse),
        inverse,
        f"d = {d:.10g}, y = {y:g}",
    )


def solve_ystar(
    model: LocalModel, d: float, y: float, qhat: Array, level: int, inverse: Array | None = None
) -> Solution:
    """Solve <m_l^2>_y = q1 and S_E = 0 for (y, qhat) at fixed d, from a guess."""

    def residual(moments: Moments) -> Array:
        return np.append(moments.saddle_residual, moments.layers * moments.external)

    def evaluate(unknowns: Array, at: int, tangent: bool) -> Moments:
        return model.moments(d, float(unknowns[0]), unknowns[1:], at, tangent)

    guess = np.append(y, qhat)
    return _newton(
        evaluate,
        residual,
        Moments.ystar_jacobian,
        guess,
        (level, model.coarse),
        inverse,
        f"d = {d:.10g}, y = y*",
    )


def _newton(
    evaluate: Callable[[Array, int, bool], Moments],
    residual: Callable[[Moments], Array],
    jacobian: Callable[[Moments], Array],
    unknowns: Array,
    levels: tuple[int, int],
    inverse: Array | None,
    where: str,
) -> Solution:
    """Iterate until the unknowns move by rounding only.

    At the coarse level every step renews the Jacobian; at finer ones the given inverse is kept
    (the chord method), since it is the same function up to the error of the coarse quadrature.
    """
    level, coarse = levels
    chord = level > coarse
    if chord and inverse is None:
        start = _newton(evaluate, residual, jacobian, unknowns, (coarse, coarse), None, where)
        unknowns = np.append(start.moments.y, start.moments.qhat)[-unknowns.size :]
        inverse = start.inverse
    steps: list[float] = []
    for _ in range(_MOST_STEPS):
        # A runaway iterate overflows; the step is then not finite, which is caught below.
        with np.errstate(all="ignore"):
            moments = evaluate(unknowns, level, not chord)
        if not chord:
            inverse = _inverse(jacobian(moments), where)
        assert inverse is not None
        step = -(inverse @ residual(moments)) / unknowns
        if not np.all(np.isfinite(step)):
            raise NotConvergedError(f"the saddle point was lost at {where}: no finite Newton step")
        size = float(np.abs(step).max())
        steps.append(size)
        # The coarse quadrature is not worth more digits; at the fine ones rounding is reached when
        # a small step no longer shrinks. At small d the terms of S_E are large and cancel.
        noise = np.full(unknowns.size, ROUNDING)
        if unknowns.size > moments.qhat.size:  # the last equation is S_E = 0
            noise[-1] *= moments.terms
        shake = float((np.abs(inverse) @ noise / unknowns).max())
        stalled = size < max(1e-6, 3 * shake) and len(steps) > 1 and size > 0.3 * steps[-2]
        if size < (_FINE if chord else _ROUGH) or stalled:
            return Solution(moments, inverse, size)
        unknowns = unknowns * np.exp(step * min(1.0, _LARGEST_STEP / size))
        if unknowns.max() > _LARGEST or unknowns.min() < _LEAST:
            raise NotConvergedError(
                f"y or qhat left the range {_LEAST:g} to {_LARGEST:g} at {where}"
            )
    raise NotConvergedError(
        f"Newton found no saddle point at {where}: last step {steps[-1]:.1e} after {len(steps)}"
    )


def _inverse(jacobian: Array, where: str) -> Array:
    try:
        return np.asarray(np.linalg.inv(jacobian))
    except np.linalg.LinAlgError:
        raise NotConvergedError(
            f"the Jacobian of the saddle point is singular at {where}"
        ) from None
