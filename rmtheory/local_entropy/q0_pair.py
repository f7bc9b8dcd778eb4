r"""Stability of q0 = 0 for two layers.

With one overlap q0_l between clusters for each layer, the expansion of
:mod:`rmtheory.local_entropy.q0` becomes, A, K and Gamma being matrices in the layers whose entries
are squared one by one,

.. math::
    L y(\phi - \phi_0) &= \tfrac{y^2}{2}\hat q_0\cdot q_0 - \tfrac14\big[\hat q_0 A^2 \hat q_0
        + 2\hat q_0 K^2 q_0 + q_0 \Gamma^2 q_0\big], \\
    A_{lm} &= F_{h_l h_m}/F, \quad K_{lm} = F_{h_l x_m}/F, \quad \Gamma_{lm} = F_{x_l x_m}/F,

where F is the integral of zeta^y as a function of the centres of its Gaussians. With qhat0
eliminated it is q0.M0.q0/4,

.. math:: M_0 = (y^2 - K^2)^T (A^2)^{-1} (y^2 - K^2) - \Gamma^2 ,

and q0 = 0 is stable where the least eigenvalue of M0 is positive. At y = 1 this is the
replica-symmetric M; without coupling it is diagonal, with the M0 of one layer twice.

The derivatives need no more than the second moments of the fields u = (h_1, h_2, x_1, x_2) under
the tilted measure: by parts, V being the diagonal matrix of the variances (qhat_1, qhat_2, q1, q1),

.. math:: F_{ab}/F = \big(V^{-1} \langle u u^T\rangle_y V^{-1} - V^{-1}\big)_{ab} .
"""

from __future__ import annotations

import numpy as np

from rmtheory.chain import Chain
from rmtheory.estimate import Estimate, Tier
from rmtheory.gaussian import Array
from rmtheory.local_entropy.pair import DROPPED, one_thread, pair_sites
from rmtheory.local_entropy.pair_sites import blocks, powers
from rmtheory.local_entropy.refine import Refined

#: Relative step of the differences that tell how M0 moves with y and qhat.
_STEP = 1e-5


def pair_q0_at(chain: Chain, point: Refined) -> Estimate:
    """Least eigenvalue of M0 at a solved point, the errors of its y and qhat included.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> from rmtheory.local_entropy.continuation import CurveTracker
    >>> from rmtheory.local_entropy.model import LocalModel
    >>> chain = Chain(2, jd=0.05, lam=0.3)
    >>> point = CurveTracker(LocalModel(chain)).solve(0.1, 1e-9)
    >>> print(pair_q0_at(chain, point).rounded(5))
    -0.044009 ± 1e-6
    """
    moments, coarse = point.moments, point.level - 1

    def least(y: float, qhat: Array, level: int) -> tuple[float, float]:
        matrix, error = pair_m0(chain, moments.d, y, qhat, level)
        return float(np.linalg.eigvalsh(matrix)[0]), 2 * error

    value, error = least(moments.y, moments.qhat, point.level)
    before, _ = least(moments.y, moments.qhat, coarse)
    error += abs(value - before)
    moved, _ = least(moments.y * (1 + _STEP), moments.qhat, coarse)
    error += abs(moved - before) * point.y_error / (_STEP * moments.y)
    for k, qhat_error in enumerate(point.qhat_error):
        qhat = moments.qhat.copy()
        qhat[k] *= 1 + _STEP
        moved, _ = least(moments.y, qhat, coarse)
        error += abs(moved - before) * float(qhat_error) / (_STEP * float(moments.qhat[k]))
    method = "least eigenvalue of the q0 stability, two levels of quadrature"
    return Estimate(value, error, Tier.ESTIMATED, method)


def pair_m0(chain: Chain, d: float, y: float, qhat: Array, level: int) -> tuple[Array, float]:
    """Return the matrix M0, and the error of its entries by rounding and the nodes dropped.

    Parameters
    ----------
    chain : Chain
        Two layers.
    d, y : float
        Distance and y.
    qhat : array
        The solution of <m_l^2>_y = q1: two numbers, or one that stands for both layers.
    level : int
        Level of the quadrature.
    """
    A, K, Gamma = second_order(chain, d, y, qhat, level)
    rest = y * y * np.eye(2) - K**2
    stiff = np.linalg.solve(A**2, rest)
    # Relative errors of the moments are multiplied by the terms that cancel.
    rest_size = y * y + K**2
    size = rest_size.T @ np.abs(np.linalg.inv(A**2)) @ rest_size
    size += (np.abs(Gamma) + 1 / (1 - 2 * d)) ** 2
    unit = 64 * float(np.finfo(float).eps) + 2 * DROPPED[level]
    return np.asarray(rest.T @ stiff - Gamma**2), unit * float(size.max())


def second_order(
    chain: Chain, d: float, y: float, qhat: Array, level: int
) -> tuple[Array, Array, Array]:
    """Return A, K and Gamma from the second moments of the fields."""
    variance = np.array([qhat[0], qhat[-1], 1 - 2 * d, 1 - 2 * d])
    moments = field_moments(chain, d, y, qhat, level)
    second = moments / np.outer(variance, variance) - np.diag(1 / variance)
    return second[:2, :2], second[:2, 2:], second[2:, 2:]


def field_moments(chain: Chain, d: float, y: float, qhat: Array, level: int) -> Array:
    """Return <u u^T>_y of the fields u = (h_1, h_2, x_1, x_2)."""
    with one_thread():
        one, two, log_scale = pair_sites(
            chain.jd, chain.lam_left, chain.lam_right, d, y, qhat, level
        )
        # Sums over the second site of 1, h, x and their products, for each node of the first.
        h, x = two.fields.T
        columns = np.stack([np.ones_like(h), h, x, h * h, h * x, x * x], axis=1)
        columns *= two.weight[:, None]
        sums = np.empty((len(one.rows), 6))
        for block in blocks(len(one.rows), len(two.rows)):
            sums[block] = powers(one.rows[block] @ two.rows.T, y, log_scale) @ columns
        sums *= one.weight[:, None]
    own = one.fields.T @ (sums[:, :1] * one.fields)
    cross = one.fields.T @ sums[:, 1:3]
    hh, hx, xx = sums[:, 3:].sum(axis=0)
    moments = np.array(
        [
            [own[0, 0], cross[0, 0], own[0, 1], cross[0, 1]],
            [cross[0, 0], hh, cross[1, 0], hx],
            [own[0, 1], cross[1, 0], own[1, 1], cross[1, 1]],
            [cross[0, 1], hx, cross[1, 1], xx],
        ]
    )
    return np.asarray(moments / sums[:, 0].sum())
