r"""Tilted averages of three layers or more, and of one layer of the infinite chain.

**Averages.** The transfer operator gives G'(y, qhat, q1) with first and second derivatives, from
which

.. math:: \langle\log\zeta\rangle_y - yQ = \partial_y G', \quad
    \langle 1 - m_l^2\rangle_y = -\frac{2\,\partial_{\hat q_l}G'}{y(y-1)}, \quad
    \sum_l\langle(\partial_{x_l}\log\zeta)^2\rangle_y = \frac{2\,\partial_{q_1}G'}{y(y-1)} .

At y = 1 the last two are 0/0; close to it they are interpolated in y.

**A chain of L layers** is a product of transfer steps
(:mod:`rmtheory.local_entropies.transfer_steps`),

.. math:: e^{G'} = A_1 A_2 \cdots A_L\, 1, \qquad A_l = X_l T_l(\hat q_l),

X_l being the step over x (a row for the first layer) and T_l that over t. With right vectors
:math:`R_l = A_l R_{l+1}` and left ones :math:`\Lambda_{l+1} = \Lambda_l A_l`, derivatives are

.. math:: \partial_\alpha e^{G'} = \sum_l \Lambda_l (\partial_\alpha A_l) R_{l+1}, \qquad
    \partial_\alpha\partial_\beta e^{G'} = \sum_l \Lambda_l\big[(\partial_\alpha\partial_\beta A_l)
    R_{l+1} + (\partial_\alpha A_l)\,\partial_\beta R_{l+1}
    + (\partial_\beta A_l)\,\partial_\alpha R_{l+1}\big].

**The infinite chain** has G' = log mu per layer, mu being the leading eigenvalue of A = X T(qhat).
With right and left eigenvectors A R = mu R, L A = mu L, L.R = 1, its derivatives follow by
perturbation (Hellmann and Feynman at first order),

.. math:: \partial_\alpha\mu = L(\partial_\alpha A)R, \qquad
    \partial_\alpha\partial_\beta\mu = L(\partial_\alpha\partial_\beta A)R
    + L(\partial_\alpha A)R_\beta + L(\partial_\beta A)R_\alpha,

where :math:`(\mu - A)R_\alpha = (\partial_\alpha A - \partial_\alpha\mu)R`, L.R_alpha = 0.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from rmtheory.annealed.mean_number import entropy as annealed_entropy
from rmtheory.base.chain import Chain
from rmtheory.base.errors import NotConvergedError
from rmtheory.base.estimate import Estimate
from rmtheory.base.gaussian import Array
from rmtheory.local_entropies.dilute_gas import SmearedGas
from rmtheory.local_entropies.functional import (
    Functional,
    Moments,
    Refined,
    Scanned,
    Tangent,
    rising,
)
from rmtheory.local_entropies.quadrature import FINEST
from rmtheory.local_entropies.replicated import LEAST_D, Ladder, replicated_ladder
from rmtheory.local_entropies.transfer_steps import (
    IN_REACH,
    LARGEST_Y,
    Derivatives,
    Fields,
    Layer,
    Step,
    finest_level,
    left_over,
    tilts,
)

#: Closer to y = 1 than this, the averages are interpolated between y = 1 +- this and +- twice this.
NEAR_ONE = 1e-3

#: y* from which on a scan may end once the slope rises: a step further takes as long as all before.
_RISEN_Y = 11.0


class TransferFunctional(Functional):
    """Averages by the transfer operator: chains of three layers or more."""

    label = "transfer operator, two grids"
    coarse = 1
    curve_tol = 1e-8
    curve_seconds = 5.0
    point_tol = 1e-8
    largest_y = LARGEST_Y
    gas_y = 30.0
    plateau_y = math.inf
    in_reach = IN_REACH
    largest_start = 0.15
    scan_y = 20.0
    gas_known = False

    @abstractmethod
    def derivatives(self, fields: Fields, qhat: Array, hessian: bool) -> Derivatives:
        """Return G' with its derivatives in (y, qhat) by the transfer operator."""

    def moments(
        self,
        d: float,
        y: float,
        qhat: Array,
        level: int,
        tangent: bool = False,
        nodes_y: float | None = None,
    ) -> Moments:
        """Tilted averages at (d, y, qhat), with derivatives if `tangent`."""
        moments = self._evaluate(d, y, qhat, level, tangent, nodes_y)
        if abs(y - 1) < 0.999 * NEAR_ONE:
            return self._near_one(moments, level)
        return moments

    def finest(self, y: float) -> int:
        """Finest level there is; the grids grow with y.

        At y = 1 the operator is needed at five y for every evaluation, and S_I converges slowly:
        two levels more would take a minute.
        """
        return min(4 if abs(y - 1) < NEAR_ONE else FINEST, finest_level(y))

    def remaining(self, change: float, level: int, y: float) -> float:
        """Error left at a level: a multiple of the change that depends on y (left_over)."""
        return left_over(y) * change

    def least_error(self, internal_change: float, level: int) -> float:
        """Least error of phi where S_I has changed by this."""
        return 0.01 * internal_change

    def internal_tol(self, tol: float) -> float:
        """S_I converges more slowly than phi."""
        return 100 * tol

    def least_step(self, y: float) -> float:
        """Least step: at large y one takes seconds, and fails because the grid is too coarse."""
        return 0.05 if y > 18 else super().least_step(y)

    def zeros_reach(self, y: float) -> float:
        """Other zeros of S_E are searched for up to y near 30, the largest y of the operator."""
        return min(4.0, max(1.25, 16 / y))

    def gas(self, point: Refined) -> SmearedGas | None:
        """Return None: the dilute gas is worked out for one layer and two."""
        return None

    def ladder(self, d: float) -> Ladder | None:
        """Return phi at integer y by the replicated matrix, which takes less than a second."""
        if d < LEAST_D:
            return None
        try:
            return replicated_ladder(self.chain, d)
        except NotConvergedError:
            return None

    def scan_ends(self, scan: Sequence[Scanned]) -> bool:
        """Whether the slope rises towards d = 0, or a scan has come to where it is too slow."""
        y = scan[-1].y
        return y > self.scan_y or (y > _RISEN_Y and rising(scan, steps=2))

    def limit_reached(self, scan: Sequence[Scanned]) -> bool:
        """Whether the slope rises over the last three points: the limit d -> 0 is not known."""
        return rising(scan, steps=2)

    def free_entropy(self, point: Refined) -> Estimate:
        """Free entropy phi; for one replica it is the annealed entropy, known to more digits."""
        return annealed_entropy(self.chain) if point.moments.y == 1 else super().free_entropy(point)

    def _evaluate(
        self,
        d: float,
        y: float,
        qhat: Array,
        level: int,
        tangent: bool,
        nodes_y: float | None = None,
    ) -> Moments:
        keep = _five_fields if abs(y - 1) < 3 * NEAR_ONE else _fields
        chain = self.chain
        fields = keep(chain.jd, chain.lam_left, chain.lam_right, d, y, level, nodes_y)
        free = self.derivatives(fields, qhat, tangent)
        pairs = y * (y - 1) or math.nan  # replaced close to y = 1
        one_minus_m2 = -2 * free.gradient[1:] / pairs
        return Moments(
            d=d,
            y=y,
            qhat=np.array(qhat, dtype=float),
            layers=qhat.size,
            log_norm=free.log_norm,
            mean_log=float(free.gradient[0]),
            one_minus_m2=one_minus_m2,
            # The mean over the layers, for each of them.
            force=lambda: np.full(qhat.size, 2 * free.by_q1() / pairs / qhat.size),
            size=fields.grid.size,
            tangent=None if free.hessian is None else _tangent(free.hessian, qhat, one_minus_m2, y),
        )

    def _near_one(self, here: Moments, level: int) -> Moments:
        """Interpolate what is 0/0 at y = 1 through four y around it."""
        at = 1 + NEAR_ONE * np.array([-2.0, -1.0, 1.0, 2.0])
        tangent = here.tangent is not None
        near = [self._evaluate(here.d, float(y), here.qhat, level, tangent) for y in at]
        weights = [np.prod([(here.y - b) / (a - b) for b in at if b != a]) for a in at]

        def combine(items: list[Any], name: str) -> Any:
            return sum(w * getattr(item, name) for w, item in zip(weights, items, strict=True))

        interpolated = replace(
            here,
            one_minus_m2=combine(near, "one_minus_m2"),
            force=lambda: np.asarray(combine(near, "forces")),
        )
        if here.tangent is None:
            return interpolated
        tangents = [moments.tangent for moments in near]
        names = ("log_norm_q", "overlap_y", "overlap_q")
        slopes = replace(here.tangent, **{name: combine(tangents, name) for name in names})
        return replace(interpolated, tangent=slopes)


class ChainFunctional(TransferFunctional):
    """A chain of finitely many layers, with one qhat per layer."""

    @property
    def unknowns(self) -> int:
        """One qhat for each layer."""
        return self.chain.finite_layers

    def derivatives(self, fields: Fields, qhat: Array, hessian: bool) -> Derivatives:
        """Return G' by the product of the transfer steps."""
        return finite_chain(fields, qhat, hessian)


class InfiniteFunctional(TransferFunctional):
    """One layer of the infinite chain."""

    @property
    def unknowns(self) -> int:
        """One qhat: all layers are alike."""
        return 1

    def spread(self, qhat: Array) -> Array:
        """Return the single qhat."""
        return qhat

    def derivatives(self, fields: Fields, qhat: Array, hessian: bool) -> Derivatives:
        """Return G' per layer by the leading eigenvalue of the transfer step."""
        return infinite_chain(fields, float(qhat[0]), hessian)


def transfer_functional(chain: Chain) -> TransferFunctional:
    """Return the functional of a chain of any depth by the transfer operator.

    One and two layers have a faster quadrature; for them the operator is a check.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> type(transfer_functional(Chain("inf", 0.05, 0.3))).__name__
    'InfiniteFunctional'
    """
    return (InfiniteFunctional if chain.layers == math.inf else ChainFunctional)(chain)


@lru_cache(maxsize=1)
def _fields(
    jd: float,
    lam_left: float,
    lam_right: float,
    d: float,
    y: float,
    level: int,
    nodes_y: float | None = None,
) -> Fields:
    """Keep the matrices of the last (d, y): the saddle is solved in qhat alone."""
    return Fields(jd, lam_left, lam_right, d, y, level, nodes_y)


#: At y = 1 those of five y are needed again and again; the grids are small there.
_five_fields = lru_cache(maxsize=5)(Fields)


def _tangent(hessian: Array, qhat: Array, one_minus_m2: Array, y: float) -> Tangent:
    """Derivatives of the averages: G = G' + y^2 Q/2, <m^2> = 1 - one_minus_m2."""
    pairs = y * (y - 1) or math.nan
    mixed = hessian[0, 1:]
    return Tangent(
        mean_log_y=float(hessian[0, 0] + qhat.sum()),
        mean_log_q=mixed + y,
        log_norm_q=0.5 * y * y - 0.5 * pairs * one_minus_m2,
        overlap_y=2 * mixed / pairs + (2 * y - 1) / pairs * one_minus_m2,
        overlap_q=2 * hessian[1:, 1:] / pairs,
    )


# A chain of L layers.


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
    return lambda: sum(light.by_q1(*side) for side in sides)


# The infinite chain.

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
        return light.by_q1("bulk", *sides)

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
