r"""Tilted averages of three or more layers, or of one layer of the infinite chain.

The transfer operator gives G'(y, qhat, q1) with first and second derivatives, from which

.. math:: \langle\log\zeta\rangle_y - yQ = \partial_y G', \quad
    \langle 1 - m_l^2\rangle_y = -\frac{2\,\partial_{\hat q_l}G'}{y(y-1)}, \quad
    \sum_l\langle(\partial_{x_l}\log\zeta)^2\rangle_y = \frac{2\,\partial_{q_1}G'}{y(y-1)} .

At y = 1 the last two are 0/0; close to it they are interpolated in y.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from rmtheory.chain import Chain
from rmtheory.gaussian import Array
from rmtheory.local_entropy.deep.fields import Fields
from rmtheory.local_entropy.deep.finite import finite_chain
from rmtheory.local_entropy.deep.infinite import infinite_chain
from rmtheory.local_entropy.moments import Moments, Tangent

#: Closer to y = 1 than this, the averages are interpolated between y = 1 +- this and +- twice this.
NEAR_ONE = 1e-3


def deep_moments(
    chain: Chain, d: float, y: float, qhat: Array, level: int, tangent: bool = False
) -> Moments:
    """Averages of a chain at (d, y, qhat), one qhat for each layer, a single one for L = inf."""
    found = _evaluate(chain, d, y, qhat, level, tangent)
    if abs(y - 1) < 0.999 * NEAR_ONE:
        return _near_one(found, chain, level)
    return found


def _evaluate(chain: Chain, d: float, y: float, qhat: Array, level: int, tangent: bool) -> Moments:
    keep = _five_fields if abs(y - 1) < 3 * NEAR_ONE else _fields
    fields = keep(chain.jd, chain.lam_left, chain.lam_right, d, y, level)
    if chain.layers == math.inf:
        found = infinite_chain(fields, float(qhat[0]), tangent)
    else:
        found = finite_chain(fields, qhat, tangent)
    pairs = y * (y - 1) or math.nan  # replaced close to y = 1
    rest = -2 * found.gradient[1:] / pairs
    return Moments(
        d=d,
        y=y,
        qhat=np.array(qhat, dtype=float),
        layers=qhat.size,
        log_norm=found.log_norm,
        mean_log=float(found.gradient[0]),
        rest=rest,
        # The mean over the layers, for each of them.
        force=lambda: np.full(qhat.size, 2 * found.by_q1() / pairs / qhat.size),
        size=fields.grid.size,
        tangent=None if found.hessian is None else _tangent(found.hessian, qhat, rest, y),
    )


@lru_cache(maxsize=1)
def _fields(jd: float, lam_left: float, lam_right: float, d: float, y: float, level: int) -> Fields:
    """Keep the matrices of the last (d, y): the saddle is solved in qhat alone."""
    return Fields(jd, lam_left, lam_right, d, y, level)


#: At y = 1 those of five y are needed again and again; the grids are small there.
_five_fields = lru_cache(maxsize=5)(Fields)


def _tangent(hessian: Array, qhat: Array, rest: Array, y: float) -> Tangent:
    """Derivatives of the averages: G = G' + y^2 Q/2, <m^2> = 1 - rest."""
    pairs = y * (y - 1) or math.nan
    mixed = hessian[0, 1:]
    return Tangent(
        mean_log_y=float(hessian[0, 0] + qhat.sum()),
        mean_log_q=mixed + y,
        log_norm_q=0.5 * y * y - 0.5 * pairs * rest,
        overlap_y=2 * mixed / pairs + (2 * y - 1) / pairs * rest,
        overlap_q=2 * hessian[1:, 1:] / pairs,
    )


def _near_one(here: Moments, chain: Chain, level: int) -> Moments:
    """Interpolate what is 0/0 at y = 1 through four y around it."""
    at = 1 + NEAR_ONE * np.array([-2.0, -1.0, 1.0, 2.0])
    tangent = here.tangent is not None
    near = [_evaluate(chain, here.d, float(y), here.qhat, level, tangent) for y in at]
    weights = [np.prod([(here.y - b) / (a - b) for b in at if b != a]) for a in at]

    def combine(items: list[Any], name: str) -> Any:
        return sum(w * getattr(item, name) for w, item in zip(weights, items, strict=True))

    found = replace(
        here, rest=combine(near, "rest"), force=lambda: np.asarray(combine(near, "forces"))
    )
    if here.tangent is None:
        return found
    tangents = [moments.tangent for moments in near]
    names = ("log_norm_q", "overlap_y", "overlap_q")
    slopes = replace(here.tangent, **{name: combine(tangents, name) for name in names})
    return replace(found, tangent=slopes)
