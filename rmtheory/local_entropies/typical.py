r"""Fixed points around a typical one: entropy, distance from it, distance between two of them.

A typical fixed point sigma, one drawn at random, is a planted one: with the gauge sigma = 1 its
fields x_i = sum_j J_ij are Gaussians conditioned on x > -J_D. Fixed points s are weighted by
exp(gamma sigma.s). In the replica-symmetric ansatz they have the overlap p with sigma and q with
each other, and the free entropy per neuron of one layer is the extremum of

.. math:: \Phi(\gamma) = -\hat p p - \tfrac12 \hat q (1 - q) + \Big\langle \log \sum_{s = \pm 1}
    e^{s (\gamma + \hat p + \sqrt{\hat q} z)}\,
    P\Big(\frac{J_D + s \omega}{\sqrt{1 - q}}\Big) \Big\rangle_{x, t, z}, \qquad
    \omega = p x + \sqrt{q - p^2}\, t,

t and z standard normal, P the normal distribution function. With m and g the derivatives of the
logarithm by the field and by omega, and g' that of g,

.. math:: p = \langle m \rangle, \quad q = \langle m^2 \rangle, \quad \hat q = \langle g^2 \rangle,
    \quad \hat p = \langle x g \rangle - p \langle g' \rangle .

Then S = Phi - gamma p at the distance d = (1 - p)/2 from sigma (a Franz-Parisi potential, not in
the paper). The abscissa of the paper's S_I*(d) is (1 - q)/2, the distance between two of the fixed
points that are counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy import special

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError

Array = NDArray[np.float64]

#: Nodes in each of x, t and z, and for the error.
_NODES, _FEWER = (40, 30, 30), (30, 22, 22)

#: Largest x: the weight beyond is below 1e-17.
_FAR = 8.5

_TOLERANCE, _CAP = 1e-9, 2000


@dataclass(frozen=True, eq=False)
class TypicalNeighbourhood:
    """Entropy of the fixed points around a typical one, at each field gamma.

    Parameters
    ----------
    gamma : ndarray
        Field towards the typical fixed point; where the equations converge.
    d, mutual : ndarray
        Distance per neuron from it, and between two of the fixed points that are counted.
    entropy, error : ndarray
        S per neuron, and the difference between two rules of integration.
    """

    gamma: Array
    d: Array
    mutual: Array
    entropy: Array
    error: Array


def typical_neighbourhood(chain: Chain, gammas: Sequence[float]) -> TypicalNeighbourhood:
    """Return the entropy of the fixed points around a typical one, for one layer.

    Parameters
    ----------
    chain : Chain
        One layer; others are refused.
    gammas : sequence of float
        Fields, at least 0; the curve ends at the first one where the equations do not converge.

    Raises
    ------
    NotConvergedError
        If they converge at no field.

    Examples
    --------
    >>> import rmtheory as rt
    >>> curve = rt.typical_neighbourhood(rt.Chain(1, jd=0.8), [0.0, 0.5])
    >>> print(f"{curve.d[0]:.3f} {curve.entropy[0]:.4f} {float(rt.entropy(rt.Chain(1, 0.8))):.4f}")
    0.500 0.4551 0.4551
    >>> bool(curve.mutual[1] > curve.d[1])
    True
    """
    if chain.layers != 1:
        raise InvalidInputError("layers", chain.layers, "1: typical neighbourhoods of one layer")
    fields = sorted({float(checks.exact_real("gamma", gamma)) for gamma in gammas})
    if not fields or fields[0] < 0:
        raise InvalidInputError("gamma", str(list(gammas)), "fields that are at least 0")
    rules = [_Rule(chain.jd, *nodes) for nodes in (_NODES, _FEWER)]
    starts: list[tuple[float, float]] = [(0.0, 0.0)] * len(rules)
    points = []
    for gamma in fields:
        solved = []
        for k, rule in enumerate(rules):
            answer = rule.solve(gamma, starts[k])
            if answer is None:
                break
            starts[k] = answer[:2]
            solved.append(answer)
        if len(solved) < len(rules):
            break
        (p, q, entropy), (_, _, other) = solved
        points.append((gamma, (1 - p) / 2, (1 - q) / 2, entropy, abs(entropy - other) + _TOLERANCE))
    if not points:
        raise NotConvergedError(f"the equations do not converge at gamma = {fields[0]:g}")
    return TypicalNeighbourhood(*np.array(points).T)


class _Rule:
    """The averages over x, t and z by Gauss rules."""

    def __init__(self, jd: float, over_x: int, over_t: int, over_z: int) -> None:
        self.jd = jd
        node, weight = leggauss(over_x)
        low = -jd
        x = low + (node + 1) * (_FAR - low) / 2
        chance = weight * np.exp(-(x**2) / 2)
        t, of_t = hermegauss(over_t)
        z, of_z = hermegauss(over_z)
        self.x, self.t, self.z = x[:, None, None], t[:, None], z
        weights = chance[:, None, None] * of_t[:, None] * of_z
        self.weights = weights / weights.sum()

    def solve(self, gamma: float, start: tuple[float, float]) -> tuple[float, float, float] | None:
        """Iterate p and q from `start`; return them and S, None if they do not converge."""
        p, q = start
        hats = self._hats(p, q, gamma, 0.0, 0.0)
        for _ in range(_CAP):
            mean, square, _ = self._averages(p, q, gamma, *hats)
            change = max(abs(mean - p), abs(square - q))
            p, q = mean, max(square, mean * mean)
            if not 1 - q > 1e-6:  # the point alone is left
                return None
            hats = self._hats(p, q, gamma, *hats)
            if change < _TOLERANCE:
                _, _, log_z = self._averages(p, q, gamma, *hats)
                p_hat, q_hat = hats
                return p, q, log_z - p_hat * p - q_hat * (1 - q) / 2 - gamma * p
        return None

    def _site(
        self, p: float, q: float, gamma: float, p_hat: float, q_hat: float
    ) -> tuple[Array, Array, Array, Array]:
        """Return c, the two arguments a_s, and the logarithms of both terms of Z."""
        omega = p * self.x + math.sqrt(max(q - p * p, 0.0)) * self.t
        c = gamma + p_hat + math.sqrt(q_hat) * self.z
        root = math.sqrt(1 - q)
        a = np.stack([(self.jd + omega) / root, (self.jd - omega) / root])
        logs = special.log_ndtr(a) + np.stack([c + 0 * omega, -c + 0 * omega])
        return c, a, logs, np.logaddexp(logs[0], logs[1])

    def _averages(
        self, p: float, q: float, gamma: float, p_hat: float, q_hat: float
    ) -> tuple[float, float, float]:
        _, _, logs, log_z = self._site(p, q, gamma, p_hat, q_hat)
        m = np.tanh((logs[0] - logs[1]) / 2)
        return tuple(float((self.weights * value).sum()) for value in (m, m * m, log_z))  # type: ignore[return-value]

    def _hats(
        self, p: float, q: float, gamma: float, p_hat: float, q_hat: float
    ) -> tuple[float, float]:
        _, a, _, log_z = self._site(p, q, gamma, p_hat, q_hat)
        c = gamma + p_hat + math.sqrt(q_hat) * self.z
        variance = 1 - q
        density = np.exp(-(a**2) / 2 - log_z) / math.sqrt(2 * math.pi)
        up, down = density[0] * np.exp(c), density[1] * np.exp(-c)
        g = (up - down) / math.sqrt(variance)
        slope = -(a[0] * up + a[1] * down) / variance - g * g
        weights = self.weights
        first = float((weights * self.x * g).sum()) - p * float((weights * slope).sum())
        return first, float((weights * g * g).sum())
