r"""A stochastic check: randomised quasi-Monte-Carlo with the planted tilt.

zeta is a sum of terms a_s over the 2^L states of a column. Points (t, x) are drawn with density
proportional to the Gaussian times :math:`\sum_s a_s^y`, as if all y replicas sat in one planted
state: a state s by its weight, then t_l = y sqrt(qhat_l) s_l + noise, and x_l from the density
:math:`N(x; 0, q_1)\,P((v_l + s_l x)/\sigma)^y`. What is left to average,

.. math:: e^{G'} = W\,\Big\langle\frac{(\sum_s a_s)^y}{\sum_s a_s^y}\Big\rangle, \qquad
    W = \sum_s\prod_l\int Dz\,P\Big(\frac{v_l + \sqrt{q_1} z}{\sigma}\Big)^y,

lies between 1 and 2^{L(y-1)} and is 1 where one state dominates. No transfer, no interpolation and
no grid are shared with the transfer operator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy import special
from scipy.stats import qmc

from rmtheory.chain import Chain
from rmtheory.errors import InvalidInputError
from rmtheory.estimate import Estimate, Tier
from rmtheory.gaussian import Array, log_P

#: States of a column are enumerated.
MOST_LAYERS = 8

#: Nodes of the table from which x is drawn, in standard deviations of x.
_TABLE = np.linspace(-9.0, 9.0, 6001)


@dataclass(frozen=True)
class Sampled:
    """phi, S_I per neuron and <1 - m_l^2> at given qhat, with statistical errors."""

    chain: Chain
    d: float
    y: float
    phi: Estimate
    internal: Estimate
    rest: tuple[Estimate, ...]
    seed: int


def sample(
    chain: Chain,
    d: float,
    y: float,
    qhat: Array,
    *,
    seed: int,
    points: int = 2**12,
    scrambles: int = 16,
) -> Sampled:
    """Average over scrambled Sobol points, `scrambles` times independently; errors from these."""
    if not 1 <= chain.layers <= MOST_LAYERS:
        raise InvalidInputError("layers", chain.layers, f"at most {MOST_LAYERS} for sampling")
    layers = int(chain.layers)
    if qhat.size != layers:
        raise InvalidInputError("qhat", qhat.size, "one for each layer")
    planted = _Planted(chain, d, y, np.asarray(qhat, dtype=float))
    rng = np.random.default_rng(seed)
    values = np.array(
        [
            planted.averages(qmc.Sobol(2 * layers + 1, seed=rng).random(points))
            for _ in range(scrambles)
        ]
    )
    mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(scrambles)
    method = f"scrambled Sobol points with the planted tilt, seed {seed}"
    phi, internal, *rest = (
        Estimate(float(m), float(e), Tier.ESTIMATED, method)
        for m, e in zip(mean, error, strict=True)
    )
    return Sampled(chain, d, y, phi, internal, tuple(rest), seed)


class _Planted:
    """The planted density at one (d, y, qhat), and averages over it."""

    def __init__(self, chain: Chain, d: float, y: float, qhat: Array) -> None:
        self.d, self.y, self.qhat, self.layers = d, y, qhat, qhat.size
        self.scale, self.sigma = math.sqrt(1 - 2 * d), math.sqrt(2 * d)
        #: States of a column and the fields v_l that the neighbours give.
        self.states = np.array(list(product((1, -1), repeat=self.layers)))
        before = np.pad(self.states, ((0, 0), (1, 0)))[:, :-1]
        after = np.pad(self.states, ((0, 0), (0, 1)))[:, 1:]
        self.v = chain.jd + self.states * (chain.lam_left * before + chain.lam_right * after)
        self.v = np.round(self.v, 14)
        log_mass = np.zeros(len(self.states))
        #: Distribution function of s x for each value of v.
        self.tables: dict[float, Array] = {}
        for v in np.unique(self.v):
            x = self.scale * _TABLE
            density = np.exp(self.y * log_P((v + x) / self.sigma) - 0.5 * _TABLE**2)
            density *= (_TABLE[1] - _TABLE[0]) / math.sqrt(2 * math.pi)
            mass = float(density.sum())
            log_mass += np.count_nonzero(self.v == v, axis=1) * math.log(mass)
            cumulative = np.cumsum(density) - 0.5 * density
            self.tables[float(v)] = cumulative / mass
        self.log_total = float(special.logsumexp(log_mass))
        self.choice = np.cumsum(np.exp(log_mass - self.log_total))

    def averages(self, uniform: Array) -> Array:
        """(phi, S_I, <1 - m_l^2>) from points of the unit cube."""
        y, layers = self.y, self.layers
        uniform = np.clip(uniform, 1e-15, 1 - 1e-15)
        picked = np.minimum(np.searchsorted(self.choice, uniform[:, 0]), len(self.states) - 1)
        spins, v = self.states[picked], self.v[picked]
        root = np.sqrt(self.qhat)
        t = y * root * spins + special.ndtri(uniform[:, 1 : layers + 1])
        x = np.empty_like(t)
        for value, table in self.tables.items():
            here = v == value
            x[here] = self.scale * np.interp(uniform[:, layers + 1 :][here], table, _TABLE)
        x *= spins
        h = root * t
        logs = h @ self.states.T
        drawn = y * logs
        for k in range(layers):
            for value in np.unique(self.v[:, k]):
                for spin in (1, -1):
                    columns = np.flatnonzero((self.v[:, k] == value) & (self.states[:, k] == spin))
                    term = log_P((value + spin * x[:, k]) / self.sigma)
                    logs[:, columns] += term[:, None]
                    drawn[:, columns] += y * term[:, None]
        log_zeta = special.logsumexp(logs, axis=1)
        exponent = y * log_zeta - special.logsumexp(drawn, axis=1)
        weight = np.exp(exponent - exponent.max())
        norm = math.log(float(weight.mean())) + float(exponent.max()) + self.log_total
        weight /= weight.sum()
        total = float(self.qhat.sum())
        mean_log = float(weight @ log_zeta) - y * total
        overlap = (np.exp(logs - log_zeta[:, None]) @ self.states) ** 2
        phi = (norm / y + (y - 1) * self.d * total) / layers
        internal = (mean_log + (2 * y - 1) * self.d * total) / layers
        return np.array([phi, internal, *(weight @ (1 - overlap))])
