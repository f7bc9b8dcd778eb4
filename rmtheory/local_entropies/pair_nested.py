r"""Averages of two layers with t of the second site integrated beforehand.

For where the pairs of nodes (:mod:`rmtheory.local_entropies.pair`) are too many: at large y, and at
y < 1, where nothing is pruned. At given fields of the first site and x of the second the integral
over t of the second depends on a single number, and is tabulated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rmtheory.base.gaussian import Array, P, n
from rmtheory.local_entropies.functional import Moments, Tangent
from rmtheory.local_entropies.pair_sites import FIRST, SECOND, Sites, blocks
from rmtheory.local_entropies.quadrature import (
    REACH,
    STEPS,
    check_size,
    field_nodes,
    field_step,
    tilt_windows,
)

#: Most pairs of a node of the first site and a node in x of the second.
MOST_NESTED = 200_000_000

#: Step of the table of these integrals, in the variable asinh(beta gamma).
_TABLE_STEP = 0.02


@dataclass(frozen=True, eq=False)
class _SecondTilt:
    r"""Averages over t of the second site as functions of gamma = log(g_+/g_-)/2.

    g_s is the sum over s_1 at s_2 = s, and the measure is exp(-t^2/2) cosh(gamma + h)^y: the
    logarithm of its norm without y^2 qhat/2, <log 2 cosh(gamma + h)> - y qhat, and the averages of
    m = tanh(gamma + h) and 1 - m^2.
    """

    y: float
    beta: float
    largest: float
    spline: Callable[[Array], Array]

    @classmethod
    def make(cls, qhat: float, y: float, level: int) -> _SecondTilt:
        """Tabulate the averages for all gamma up to where they no longer change."""
        root = math.sqrt(qhat)
        beta = max(y, 1.0)
        largest = root * (y * root + REACH) + 20.0
        s = np.linspace(0.0, math.asinh(beta * largest), 2)
        count = math.ceil(s[1] / (_TABLE_STEP * STEPS[level]))
        s = np.linspace(0.0, s[1], count + 1)
        gamma = np.sinh(s) / beta
        rows = []
        # A few hundred gamma at once, so that the arrays stay small.
        for part in np.array_split(gamma, math.ceil(gamma.size / 200)):
            nodes = tilt_windows(qhat, y, part, min(0.4, STEPS[level]) * min(1.0, 1.5 / root))
            u = root * nodes.at + part
            decay = np.exp(-2 * np.abs(u))
            near = np.abs(u) - root * np.abs(nodes.at) + np.log1p(decay)
            exponent = y * (near - part) + nodes.log_peak
            top = exponent.max(axis=0)
            weight = np.exp(exponent - top)
            total = weight.sum(axis=0)
            weight /= total
            below = np.copysign((1 - decay) / (1 + decay), u)
            rows.append(
                [
                    np.log(total) + top,
                    (weight * (near - part + root * nodes.excess)).sum(axis=0),
                    (weight * below).sum(axis=0),
                    (weight * 4 * decay / (1 + decay) ** 2).sum(axis=0),
                ]
            )
        values = np.concatenate([np.stack(row) for row in rows], axis=1)
        return cls(y, beta, largest, _even_spline(s, gamma, values, y, beta))

    def __call__(self, gamma: Array) -> tuple[Array, Array, Array, Array]:
        """Return the four averages at `gamma`."""
        size = np.minimum(np.abs(gamma), self.largest)
        beyond = np.abs(gamma) - size
        norm, log, odd, rest = np.moveaxis(self.spline(np.arcsinh(self.beta * size)), -1, 0)
        smooth = np.sqrt(size * size + self.beta**-2)
        norm = norm + self.y * (smooth + beyond)
        return norm, log + smooth + beyond, np.copysign(odd, gamma), rest


def _even_spline(
    s: Array, gamma: Array, values: Array, y: float, beta: float
) -> Callable[[Array], Array]:
    """Spline in s of the averages, without the part that grows with gamma."""
    from scipy.interpolate import make_interp_spline

    smooth = np.sqrt(gamma * gamma + beta**-2)
    # gamma - sqrt(gamma^2 + 1/beta^2), without subtracting the one from the other
    less = -(beta**-2) / (gamma + smooth)
    half = values + np.stack([y * less, less, 0 * less, 0 * less])
    parity = np.array([1.0, 1.0, -1.0, 1.0])[:, None]
    both = np.concatenate([parity * half[:, :0:-1], half], axis=1)
    line = np.concatenate([-s[:0:-1], s])
    spline: Callable[[Array], Array] = make_interp_spline(line, both.T, k=5)
    return spline


def nested_averages(
    sites: Sites, d: float, y: float, qhat: Array, level: int, nodes_y: float
) -> Moments:
    r"""Averages with t of the second site done first, for where the pairs are too many.

    At given s_2 = s the first site and x of the second leave :math:`g_s = \sum_{s_1} U_i(s_1, s)
    P'(s_1, s)`; the rest depends on gamma alone. With m = tanh(gamma + h) the chance of s_2 = +-1
    is (1 +- m)/2, so that all averages without derivatives are of second degree in m.
    """
    one, layers = sites.one, range(qhat.size)
    jd, lam = sites.couplings
    sigma = math.sqrt(2 * d)
    fields = field_nodes(1 - 2 * d, (jd + lam, jd - lam), field_step(level, nodes_y))
    present = np.unique(sites.two.fields[:, 1])
    kept = np.isin(fields.at, present)
    x, log_weight = fields.at[kept], fields.log_weight[kept]
    argument = (jd + lam * FIRST * SECOND + SECOND * x[:, None]) / sigma
    columns, steep = P(argument).T, (SECOND * n(argument) / sigma).T
    tilt = _SecondTilt.make(float(qhat[-1]), y, level)
    check_size(len(one.rows) * x.size, MOST_NESTED)
    up, down = (0, 2), (1, 3)  # states with s_2 = 1 and s_2 = -1; s_1 = 1 comes first
    sums = np.zeros(6)
    largest = -math.inf
    with np.errstate(divide="ignore"):
        log_apart = np.log(one.weight)[:, None]
    for block in blocks(len(one.rows), x.size):
        rows, slopes = one.rows[block], one.slopes[block]
        parts = [[rows[:, [k]] * columns[k] for k in states] for states in (up, down)]
        g = [np.maximum(a + b, 1e-300) for a, b in parts]
        logs = [np.log(values) for values in g]
        gamma = 0.5 * (logs[0] - logs[1])
        norm, log, m, c = tilt(gamma)
        middle = 0.5 * (logs[0] + logs[1])
        exponent = y * middle + norm + log_weight + log_apart[block]
        top = float(exponent.max())
        if top > largest:
            sums *= math.exp(largest - top)
            largest = top
        weight = np.exp(exponent - largest)
        # <(1 +- m)^2>
        a, b = 2 * (1 + m) - c, 2 * (1 - m) - c
        share = [[part / whole for part in pair] for pair, whole in zip(parts, g, strict=True)]
        (plus_up, minus_up), (plus_down, minus_down) = share
        mixed = plus_up * minus_down + plus_down * minus_up
        first = a * plus_up * minus_up + b * plus_down * minus_down + c * mixed
        forces = []
        for which in layers:
            left, right = ((slopes, columns), (rows, steep))[which]
            f, f_down = (
                (left[:, [i]] * right[i] + left[:, [j]] * right[j]) / whole
                for (i, j), whole in zip((up, down), g, strict=True)
            )
            forces.append(0.25 * (a * f * f + b * f_down * f_down + 2 * c * f * f_down))
        log_zeta = middle + log + one.missing[block, None]
        values = [np.ones_like(c), log_zeta, first, c, *forces]
        for k, value in enumerate(values):
            sums[k] += float(np.vdot(weight, value))
    total = float(sums[0])
    mean = sums / total
    return Moments(
        d=d,
        y=y,
        qhat=np.array(qhat, dtype=float),
        layers=2,
        log_norm=math.log(total) + largest + y * one.shift,
        mean_log=float(mean[1]),
        one_minus_m2=mean[2 : 2 + qhat.size].copy(),
        force=mean[4 : 4 + qhat.size].copy(),
        size=len(one.rows) * x.size,
    )


#: Relative step of the differences that stand for derivatives where t is integrated beforehand.
_FORWARD = 1e-3


def differences(at: Callable[[float, Array], Moments], here: Moments) -> Tangent:
    """Derivatives by differences: good enough for Newton's method."""
    y, qhat, folded = here.y, here.qhat, here.multiplicity
    by_y = at(y * (1 + _FORWARD), qhat)
    step = y * _FORWARD
    mean_log_q, overlap_q = np.empty(qhat.size), np.empty((qhat.size, qhat.size))
    for k in range(qhat.size):
        moved = qhat.copy()
        moved[k] *= 1 + _FORWARD
        by_q = at(y, moved)
        change = float(moved[k] - qhat[k])
        mean_log_q[k] = (by_q.mean_log - here.mean_log) / change + y * folded
        overlap_q[:, k] = (here.one_minus_m2 - by_q.one_minus_m2) / change
    return Tangent(
        mean_log_y=(by_y.mean_log - here.mean_log) / step + float(qhat.sum()) * folded,
        mean_log_q=mean_log_q,
        log_norm_q=0.5 * folded * (y * y + (y - y * y) * here.one_minus_m2),
        overlap_y=(here.one_minus_m2 - by_y.one_minus_m2) / step,
        overlap_q=overlap_q,
    )
