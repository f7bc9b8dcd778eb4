"""An independent rule for the local entropy, and 200 random points at which it judges the package.

For one layer the rule is a product of Gauss-Legendre panels with its own root search; it shares no
node, no change of variables and no formula for averages with the package. Two layers are summed
over occupations at integer y, deeper chains compared with the replicated matrix.
``python docs/_ext/answered.py rule`` compares all 200 points and keeps the record that the docs
show; a few are compared in tests/theory/test_local_entropy_regions.py.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import optimize, special

from rmtheory import Chain
from rmtheory.local_entropies.points import local_entropy
from rmtheory.local_entropies.replicated import replicated_entropy, replicated_internal


def panels(edges: np.ndarray, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights on panels between sorted edges."""
    z, w = np.polynomial.legendre.leggauss(points)
    low, high = edges[:-1, None], edges[1:, None]
    nodes = 0.5 * (low + high) + 0.5 * (high - low) * z
    return nodes.ravel(), (0.5 * (high - low) * w).ravel()


def graded(centres: list[float], width: float, reach: float) -> np.ndarray:
    """Edges that halve their distance towards the centres down to half the width."""
    offsets = 0.5 * width * np.concatenate([[0.0], 1.7 ** np.arange(0, 40)])
    offsets = offsets[offsets < 2 * reach]
    edges = {-reach, reach}
    for c in centres:
        edges |= {c + o for o in offsets} | {c - o for o in offsets}
    kept = np.array(sorted(e for e in edges if -reach <= e <= reach))
    # Edges of two centres may nearly coincide.
    return np.asarray(kept[np.concatenate([[True], np.diff(kept) > 1e-3 * width])])


class Referee:
    """phi and S_I of one layer at (d, y), by panels in t and x."""

    def __init__(self, chain: Chain, d: float, y: float, points: int) -> None:
        self.chain, self.d, self.y, self.points = chain, d, y, points
        self.q1, self.sigma = 1 - 2 * d, math.sqrt(2 * d)

    def fields(self, lam: float) -> tuple[np.ndarray, np.ndarray]:
        reach = 9 * math.sqrt(self.q1)
        centres = sorted({s * (self.chain.jd + t * lam) for s in (1, -1) for t in (1, -1)})
        sharp = self.sigma / max(1.0, self.y) ** 0.25
        x, w = panels(graded(centres, 1.5 * sharp, reach), self.points)
        return x, np.log(w) - x * x / (2 * self.q1) - 0.5 * math.log(2 * math.pi * self.q1)

    def tilts(self, qhat: float) -> tuple[np.ndarray, np.ndarray]:
        root = math.sqrt(qhat)
        reach = 9 + self.y * root
        count = math.ceil(2 * reach / min(1.5, 1.2 / root))
        t, w = panels(np.linspace(-reach, reach, count + 1), self.points)
        return t, np.log(w) - 0.5 * t * t - 0.5 * math.log(2 * math.pi)

    def averages(self, qhat: float) -> tuple[float, float, float]:
        """G, <log zeta> and <m^2>."""
        t, log_t = self.tilts(qhat)
        h, y, jd = math.sqrt(qhat) * t, self.y, self.chain.jd
        x, log_x = self.fields(0.0)
        up = h[:, None] + special.log_ndtr((jd + x) / self.sigma)
        down = -h[:, None] + special.log_ndtr((jd - x) / self.sigma)
        log_zeta, square = np.logaddexp(up, down), np.tanh(0.5 * (up - down)) ** 2
        log_weight = log_t[:, None] + log_x
        exponent = y * log_zeta + log_weight
        top = float(exponent.max())
        share = np.exp(exponent - top)
        total = float(share.sum())
        return (
            top + math.log(total),
            float((share * log_zeta).sum()) / total,
            float((share * square).sum()) / total,
        )

    def entropies(self, near: float) -> tuple[float, float]:
        """phi and S_I at the saddle, searched for around `near`."""
        root = optimize.brentq(
            lambda q: self.averages(math.exp(q))[2] - self.q1,
            math.log(near) - 0.01,
            math.log(near) + 0.01,
            xtol=1e-14,
            rtol=1e-14,
        )
        qhat, y = math.exp(root), self.y
        norm, mean_log, _ = self.averages(qhat)
        phi = -0.5 * qhat + 0.5 * (1 - y) * qhat * self.q1 + norm / y
        internal = -0.5 * qhat + 0.5 * (1 - 2 * y) * qhat * self.q1 + mean_log
        return phi, internal


def two_layers_by_occupations(chain: Chain, d: float, y: int, qhat: float) -> float:
    """phi at integer y: a sum over how many of the y replicas are in each state (s_1, s_2).

    Both sites contribute a one-dimensional integral for each set of occupations; phi does not
    change with qhat to first order.
    """
    jd, lam = chain.jd, chain.lam_left
    x, log_x = Referee(chain, d, y, 12).fields(lam)
    logs = {
        (own, product): special.log_ndtr((jd + lam * product + own * x) / math.sqrt(2 * d))
        for own in (1, -1)
        for product in (1, -1)
    }
    states = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    total = []
    for n in np.ndindex(y + 1, y + 1, y + 1):
        if sum(n) > y:
            continue
        counts = [*n, y - sum(n)]
        term = special.gammaln(y + 1) - sum(special.gammaln(c + 1) for c in counts)
        for site in (0, 1):
            spin = sum(c * s[site] for c, s in zip(counts, states, strict=True))
            power = sum(c * logs[s[site], s[0] * s[1]] for c, s in zip(counts, states, strict=True))
            term += 0.5 * qhat * spin**2 + special.logsumexp(power + log_x)
        total.append(term)
    norm = float(special.logsumexp(total))
    return -0.5 * qhat + 0.5 * (1 - y) * qhat * (1 - 2 * d) + norm / y / 2


@lru_cache
def random_points() -> list[tuple[Chain, float, float]]:
    """200 points (chain, d, y): 120 of one layer at any y, 50 of two and 30 deeper at integer y."""
    rng = np.random.default_rng(1611)
    points = []
    for k in range(120):
        d = float(np.exp(rng.uniform(math.log(1e-3), math.log(0.45))))
        y = float(np.exp(rng.uniform(math.log(0.3), math.log(200))))
        if k % 3 == 0:  # next to an integer
            y = round(y) + float(rng.choice([1e-3, -1e-3, 1e-7])) if y > 1 else y
        points.append((Chain(1, float(rng.uniform(0, 2))), d, y))
    for _ in range(50):
        d = float(np.exp(rng.uniform(math.log(0.003), math.log(0.4))))
        y = float(rng.integers(2, 8))
        points.append((Chain(2, float(rng.uniform(0, 1)), float(rng.uniform(0, 1))), d, y))
    for k in range(30):
        layers = (3, 5, "inf")[k % 3]
        d = float(np.exp(rng.uniform(math.log(0.02), math.log(0.4))))
        chain = Chain(layers, float(rng.uniform(0, 1)), float(rng.uniform(0, 1)))
        points.append((chain, d, float(rng.integers(2, 6))))
    return points


@dataclass(frozen=True)
class Comparison:
    """One number of the package against the rule."""

    point: int
    quantity: str
    value: float
    error: float
    tier: str
    by_rule: float
    #: Error of the rule: the change to it from a coarser one.
    rule_error: float

    @property
    def errors_apart(self) -> float:
        """Difference beyond the error of the rule, in errors of the package."""
        gap = abs(self.value - self.by_rule) - self.rule_error
        return max(0.0, gap) / self.error


def compare(point: int) -> list[Comparison]:
    """Compare phi, and S_I where the rule has it, at a random point."""
    chain, d, y = random_points()[point]
    ours = local_entropy(chain, d, y)
    by_rule: dict[str, tuple[float, float]] = {}
    if chain.layers == 2:
        value = two_layers_by_occupations(chain, d, int(y), float(ours.qhat[0]))
        by_rule["phi"] = value, 1e-12
    elif chain.layers == 1:
        near = float(ours.qhat[0])
        coarse, fine = (Referee(chain, d, y, n).entropies(near) for n in (8, 11))
        for name, a, b in zip(("phi", "internal"), coarse, fine, strict=True):
            by_rule[name] = b, abs(a - b) + 1e-12
    else:
        exact = replicated_entropy(chain, d, int(y))
        for name, estimate in (("phi", exact.phi), ("internal", replicated_internal(exact))):
            by_rule[name] = float(estimate.value), float(estimate.error)
    return [
        Comparison(
            point,
            name,
            float(getattr(ours, name)),
            float(getattr(ours, name).error),
            str(getattr(ours, name).tier),
            *numbers,
        )
        for name, numbers in by_rule.items()
    ]
