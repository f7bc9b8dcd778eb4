r"""A stochastic check of phi and S_I: randomised quasi-Monte-Carlo with the planted tilt.

Points (t, x) are drawn from a density Q in which all replicas but a few are in one planted state,
and weighted by zeta^y/Q. No transfer, no interpolation and no grid are shared with the transfer
operator.

zeta is a sum of terms a_s over the 2^L states of a column, and zeta^y one over the states of y
replicas. Two sets of these terms form the density,

.. math:: Q = \sum_s\prod_l\sum_{k\ge0}\binom yk b_l(s)^{y-k}\, b_l(s^l)^k
    + \sum_s\sum_{s'}\sum_{k\ge1}\binom yk a_s^{y-k}\,a_{s'}^k, \qquad a_s = \prod_l b_l(s),

times the Gaussians. In the first sum the replicas are in s, but for k_l of them that have spin l
alone reversed (s^l), independently for each layer; without coupling between the layers this is
zeta^y itself. In the second k replicas are in s', a run of spins of s reversed together. Each term
is a product over the layers: t_l is a Gaussian around
:math:`\sqrt{\hat q_l}((y-k)s_l + ks'_l)`, x_l has the density
:math:`N(x; 0, q_1)\,P((v_l + s_lx)/\sigma)^{y-k}\,P((v'_l + s'_lx)/\sigma)^k`, and

.. math:: e^{G'} = W\,\Big\langle\frac{(\sum_s a_s)^y}Q\Big\rangle_Q ,

W being the integral of Q. With the terms k = 0 alone the ratio has a heavy tail at large y, and
errors from the scatter are too small by factors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.base.gaussian import Array, log_P
from rmtheory.base.statistics import standard_error

#: A point that carries more than this of an average makes its error meaningless.
_LARGEST_SHARE = 0.1

#: States of a column are enumerated.
MOST_LAYERS = 8


@dataclass(frozen=True)
class Sampled:
    """phi, S_I per neuron and <1 - m_l^2> at given qhat, with statistical errors."""

    chain: Chain
    d: float
    y: float
    phi: Estimate
    internal: Estimate
    one_minus_m2: tuple[Estimate, ...]
    seed: int
    #: Largest share of a single point in the average of its scrambling.
    largest_share: float


def sample(
    chain: Chain,
    d: checks.RealLike,
    y: checks.RealLike,
    qhat: ArrayLike,
    *,
    seed: int,
    points: int = 2**12,
    scrambles: int = 16,
) -> Sampled:
    """Average over scrambled Sobol points, `scrambles` times independently; errors from these.

    Parameters
    ----------
    chain : Chain
        One to eight layers.
    d, y : real
        Distance, 0 < d < 1/2, and number of replicas, y >= 1.
    qhat : array of float
        One conjugate overlap > 0 for each layer.
    seed : int
        Seed of the scramblings, 0 or more.
    points : int
        Points of one scrambling, a power of two.
    scrambles : int
        Independent repetitions, two or more.

    Examples
    --------
    The quadrature agrees within four standard errors:

    >>> from rmtheory import Chain
    >>> from rmtheory.local_entropies.points import local_entropy
    >>> chain = Chain(2, 0.05, 0.3)
    >>> point = local_entropy(chain, d=0.1, y=3, digits=8)
    >>> drawn = sample(chain, 0.1, 3, [float(q) for q in point.qhat], seed=1, points=256)
    >>> abs(float(drawn.phi) - float(point.phi)) < 4 * drawn.phi.error < 1e-3
    True
    """
    from scipy.stats import qmc

    if not 1 <= chain.layers <= MOST_LAYERS:
        raise InvalidInputError("layers", chain.layers, f"at most {MOST_LAYERS} for sampling")
    layers = int(chain.layers)
    distance, replicas = (float(checks.exact_real(n, v)) for n, v in (("d", d), ("y", y)))
    if not 0 < distance < 0.5:
        raise InvalidInputError("d", d, "strictly between 0 and 1/2")
    if replicas < 1:
        raise InvalidInputError("y", y, "a number >= 1 for sampling")
    conjugate = np.asarray(qhat, dtype=float)
    if conjugate.shape != (layers,):
        raise InvalidInputError("qhat", conjugate.tolist(), f"{layers} numbers, one for each layer")
    if not (np.isfinite(conjugate) & (conjugate > 0)).all():
        raise InvalidInputError("qhat", conjugate.tolist(), "finite numbers > 0")
    count = checks.integer("points", points, 2)
    if count & (count - 1):
        raise InvalidInputError("points", points, "a power of two")
    repeats, start = checks.integer("scrambles", scrambles, 2), checks.integer("seed", seed, 0)
    planted = Planted(chain, distance, replicas, conjugate)
    rng = np.random.default_rng(start)
    scrambled = [
        planted.averages(qmc.Sobol(2 * layers + 1, seed=rng).random(count)) for _ in range(repeats)
    ]
    values = np.array([averages for averages, _ in scrambled])
    mean, error = values.mean(axis=0), standard_error(values)
    method = f"scrambled Sobol points with the planted tilt, seed {start}"
    phi, internal, *one_minus_m2 = (
        Estimate(float(m), float(e), Tier.ESTIMATED, method)
        for m, e in zip(mean, error, strict=True)
    )
    largest = max(share for _, share in scrambled)
    if largest > max(_LARGEST_SHARE, 10 / count):
        raise NotConvergedError(
            f"one of {count} points carries {largest:.0%} of an average at d = {distance:g}, "
            f"y = {replicas:g}: the scatter does not give the error; use more points, or the "
            "replicated matrix at integer y"
        )
    return Sampled(chain, distance, replicas, phi, internal, tuple(one_minus_m2), start, largest)


# The planted density.

#: Replicas that may leave the planted state together.
_MOST_MOVED = 4

#: Nodes of the table from which x is drawn, in standard deviations of x.
_TABLE = np.linspace(-9.0, 9.0, 6001)

#: Fields v and v' of the two states, whether their spins are opposite, and k.
_Key = tuple[float, float, bool, int]


@dataclass(frozen=True, eq=False)
class _Site:
    """The field of one site: logarithm of the integral over x, distribution function of s x."""

    index: int
    log_mass: float
    table: Array


class Planted:
    """The planted density at one (d, y, qhat), and averages over it."""

    def __init__(self, chain: Chain, d: float, y: float, qhat: Array) -> None:
        self.d, self.y, self.qhat, self.layers = d, y, qhat, qhat.size
        self.scale, self.sigma = math.sqrt(1 - 2 * d), math.sqrt(2 * d)
        #: States of a column and the fields v_l that the neighbours give.
        self.states = np.array(list(product((1, -1), repeat=self.layers)))
        before = np.pad(self.states, ((0, 0), (1, 0)))[:, :-1]
        after = np.pad(self.states, ((0, 0), (0, 1)))[:, 1:]
        v = chain.jd + self.states * (chain.lam_left * before + chain.lam_right * after)
        self.v = np.round(v, 14)
        #: Indices of the states with one spin, and with a run of spins reversed, at [state, :].
        own = np.arange(len(self.states))[:, None]
        self.flipped = own ^ 2 ** np.arange(self.layers - 1, -1, -1)
        self.reversed = own ^ np.array(
            [2**b - 2**a for b in range(1, self.layers + 1) for a in range(b)]
        )
        self.moved = range(1, min(_MOST_MOVED, math.floor(y / 2)) + 1)
        self.binomial = [float(special.binom(y, k)) for k in range(self.moved.stop)]
        self._sites: dict[_Key, _Site] = {}
        self._products()
        self._pairs()
        everything = np.concatenate([self.product_weight, self.pair_weight])
        self.log_total = float(special.logsumexp(everything))
        self.choice = np.cumsum(np.exp(everything - self.log_total))

    # The terms of Q and their integrals.

    def _products(self) -> None:
        """Logarithmic weights of the first sum, and how many replicas a site turns."""
        shape = (*self.states.shape, self.moved.stop)
        #: Logarithms of the terms k = 0, 1, .. of a site, at [state, site, k], and its field.
        logs, self.product_site = np.empty(shape), np.empty(shape, dtype=int)
        for s, site, k in np.ndindex(shape):
            turned = int(self.flipped[s, site]) if k else s
            here = self._site(s, turned, site, k)
            self.product_site[s, site, k] = here.index
            tilt = 0.5 * self.qhat[site] * ((self.y - 2 * k) ** 2 - self.y**2)
            logs[s, site, k] = math.log(self.binomial[k]) + here.log_mass + tilt
        total = special.logsumexp(logs, axis=2)
        self.product_weight = total.sum(axis=1)
        #: Probability that k or fewer replicas are turned.
        self.turned = np.cumsum(np.exp(logs - total[:, :, None]), axis=2)

    def _pairs(self) -> None:
        """Logarithmic weights of the second sum: s, s' and k of every term."""
        terms = [
            (s, int(other), k)
            for k in self.moved
            for s in range(len(self.states))
            for other in self.reversed[s]
        ]
        self.pairs = np.array(terms, dtype=int).reshape(-1, 3)
        self.pair_weight = np.empty(len(terms))
        self.pair_site = np.empty((len(terms), self.layers), dtype=int)
        for c, (s, other, k) in enumerate(terms):
            weight = math.log(self.binomial[k])
            for site in range(self.layers):
                here = self._site(s, other, site, k)
                self.pair_site[c, site] = here.index
                opposite = self.states[s, site] != self.states[other, site]
                spin = self.y - 2 * k if opposite else self.y
                weight += here.log_mass + 0.5 * self.qhat[site] * (spin**2 - self.y**2)
            self.pair_weight[c] = weight

    def _site(self, s: int, other: int, site: int, k: int) -> _Site:
        """Return the field of a site where y-k replicas are in s and k in another state."""
        v, there = float(self.v[s, site]), float(self.v[other, site])
        opposite = bool(self.states[s, site] != self.states[other, site])
        key = (v, there, opposite, k) if opposite or v != there else (v, v, False, 0)
        if key not in self._sites:
            self._sites[key] = self._tabulate(key)
        return self._sites[key]

    def _tabulate(self, key: _Key) -> _Site:
        v, there, opposite, k = key
        x = self.scale * _TABLE
        logs = (self.y - k) * log_P((v + x) / self.sigma) - 0.5 * _TABLE**2
        if k:
            logs += k * log_P((there - x if opposite else there + x) / self.sigma)
        density = np.exp(logs - logs.max())
        mass = float(density.sum())
        step = (_TABLE[1] - _TABLE[0]) / math.sqrt(2 * math.pi)
        log_mass = math.log(mass * step) + float(logs.max())
        return _Site(len(self._sites), log_mass, (np.cumsum(density) - 0.5 * density) / mass)

    # Drawing.

    def _draw(self, uniform: Array) -> tuple[Array, Array]:
        """Fields t and x from points of the unit cube."""
        layers, count = self.layers, len(self.states)
        uniform = np.clip(uniform, 1e-15, 1 - 1e-15)
        picked = np.minimum(np.searchsorted(self.choice, uniform[:, 0]), self.choice.size - 1)
        noise, place = special.ndtri(uniform[:, 1 : layers + 1]), uniform[:, layers + 1 :].copy()
        spins, mean = np.empty_like(noise), np.empty_like(noise)
        kind = np.empty(noise.shape, dtype=int)

        alone = picked < count
        s = picked[alone]
        spins[alone] = self.states[s]
        # The uniform number of x also says how many replicas are turned.
        steps, u = self.turned[s], place[alone]
        k = np.minimum((u[:, :, None] >= steps).sum(axis=2), self.moved.stop - 1)
        edges = np.pad(steps, ((0, 0), (0, 0), (1, 0)))
        below, above = (np.take_along_axis(edges, e[:, :, None], 2)[:, :, 0] for e in (k, k + 1))
        place[alone] = np.clip((u - below) / (above - below), 1e-15, 1 - 1e-15)
        mean[alone] = (self.y - 2 * k) * spins[alone]
        kind[alone] = np.take_along_axis(self.product_site[s], k[:, :, None], 2)[:, :, 0]

        c = picked[~alone] - count
        first, second, moved = self.pairs[c].T
        spins[~alone] = self.states[first]
        mean[~alone] = self.y * self.states[first] + moved[:, None] * (
            self.states[second] - self.states[first]
        )
        kind[~alone] = self.pair_site[c]

        x = np.empty_like(noise)
        for site in self._sites.values():
            here = kind == site.index
            x[here] = self.scale * np.interp(place[here], site.table, _TABLE)
        return np.sqrt(self.qhat) * mean + noise, x * spins

    # Averages.

    def averages(self, uniform: Array) -> tuple[Array, float]:
        """(phi, S_I, <1 - m_l^2>) from points of the unit cube, and the largest weight."""
        y, layers = self.y, self.layers
        t, x = self._draw(uniform)
        #: log b_l(s) at [point, state, site]
        parts = (np.sqrt(self.qhat) * t)[:, None, :] * self.states
        for site in range(layers):
            for value in np.unique(self.v[:, site]):
                for spin in (1, -1):
                    alike = (self.v[:, site] == value) & (self.states[:, site] == spin)
                    term = log_P((value + spin * x[:, site]) / self.sigma)
                    parts[:, np.flatnonzero(alike), site] += term[:, None]
        logs = parts.sum(axis=2)
        log_zeta = special.logsumexp(logs, axis=1)
        exponent = y * log_zeta - self._log_density(logs, parts)
        weight = np.exp(exponent - exponent.max())
        norm = math.log(float(weight.mean())) + float(exponent.max()) + self.log_total
        weight /= weight.sum()
        total = float(self.qhat.sum())
        mean_log = float(weight @ log_zeta) - y * total
        overlap = (np.exp(logs - log_zeta[:, None]) @ self.states) ** 2
        phi = (norm / y + (y - 1) * self.d * total) / layers
        internal = (mean_log + (2 * y - 1) * self.d * total) / layers
        return np.array([phi, internal, *(weight @ (1 - overlap))]), float(weight.max())

    def _log_density(self, logs: Array, parts: Array) -> Array:
        """Return log Q from log a_s and log b_l(s), one row for each point."""
        products = np.zeros_like(logs)
        for site in range(self.layers):
            here, turned = parts[:, :, site], parts[:, self.flipped[:, site], site]
            terms = self.y * here
            for k in self.moved:
                log_term = math.log(self.binomial[k]) + (self.y - k) * here + k * turned
                terms = np.logaddexp(terms, log_term)
            products += terms
        first = special.logsumexp(products, axis=1)
        if not self.moved:
            return np.asarray(first)
        # Relative to the largest state all numbers are at most 1.
        largest = logs.max(axis=1)
        relative = np.exp(logs - largest[:, None])
        total = np.zeros(len(logs))
        for k in self.moved:
            main, others = relative ** (self.y - k), relative**k
            for states in self.reversed.T:
                total += self.binomial[k] * np.einsum("ij,ij->i", main, others[:, states])
        with np.errstate(divide="ignore"):  # nothing but one state: the first sum has it
            second = self.y * largest + np.log(total)
        return np.asarray(np.logaddexp(first, second))
