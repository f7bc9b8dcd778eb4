r"""Number of fixed points at a small distance of a given one, exact or estimated with an error.

In the gauge of the reference point sigma the flip of neuron a takes D_at = 2 sigma_a sigma_t K_ta
off the margin m_t. A set A of k flips gives a fixed point if, with f_t = m_t - sum_{a in A} D_at,

.. math:: f_t > 0 \quad (t \notin A), \qquad 2 J_D - f_t > 0 \quad (t \in A),

since a neuron that is flipped itself has the field -f_t + J_D from the others and +J_D from itself.

Exact: sets grow by one neuron at a time, the smallest margins first. A set is given up as soon as
some constraint stays violated whatever the r flips to come do: they help neuron t by the sum of the
r largest values of -D_ut at most (D_ut where t is flipped).

Estimated: there are e^{N S(k/N)} of them, which no search can list when k is large. Sets of k
neurons are weighted by exp(-beta E), E the number of violated constraints; Z(0) is the binomial of
N over k, Z(infinity) the number of fixed points. A population of sets goes from one to the other by
steps in beta: weights, resampling, and Metropolis exchanges of a neuron in the set with one outside
(sequential Monte Carlo; Del Moral, Doucet, Jasra 2006). The estimate of Z is unbiased whether or
not the exchanges equilibrate, and its error is the scatter of independent populations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from rmsim.compiled_loops import compiled
from rmsim.enumeration.branch_and_bound import accurate_margin, tolerances
from rmsim.enumeration.overlaps import Array, coupling_matrix
from rmsim.network import Network
from rmsim.tensors import checked_seed, checked_states
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError
from rmtheory.base.statistics import standard_error

#: Sets that the exact count tests before it gives up: a few seconds.
MOST_SETS = 30_000_000

#: Of all sets, at least this share is tested in spite of the bounds (a tenth or more, measured): an
#: exact count that has no chance is not begun.
_TESTED = 0.02

#: Nanoseconds, measured: per set and neuron of an exact count, per set of one that is given up, per
#: exchange and neuron of an estimate.
_SET, _GIVEN_UP, _EXCHANGE = 0.3, 85.0, 0.75

#: Independent populations, sets in each (more, if the error is too large), steps in beta.
_POPULATIONS, _SETS, _STEPS = 10, (200, 1500), 60

#: The last beta: a violated constraint then has the weight e^-6, and what is left of them is
#: dropped by the last step.
_LAST_BETA = 6.0

#: An estimate whose relative error is above this says too little to be given.
LARGEST_ERROR = 0.5


@dataclass(frozen=True)
class Neighbours:
    """The fixed points at one distance of a reference point.

    Parameters
    ----------
    distance : int
        Number of neurons that differ.
    count : float, optional
        How many there are, an integer where it is exact; None if there are so few among all states
        that an estimate has a relative error above one half.
    error : float, optional
        Standard error; 0 where the count is exact.
    """

    distance: int
    count: float | None
    error: float | None

    @property
    def exact(self) -> bool:
        """Whether they were counted, not estimated."""
        return self.error == 0


def count_neighbours(
    J: ArrayLike,
    state: ArrayLike,
    network: Network,
    most: int = 10,
    *,
    seed: int = 0,
    most_sets: int = MOST_SETS,
    progress: Callable[[int], None] | None = None,
) -> tuple[Neighbours, ...]:
    """Return the number of fixed points at the distances 1 to `most` of a fixed point.

    Parameters
    ----------
    J : array_like, (layers, n, n) or (n, n)
        The couplings, with a zero diagonal.
    state : array_like, (layers, n) or (n,)
        The fixed point, of any origin.
    network : Network
        Its size, J_D and lambda.
    most : int
        Largest distance.
    seed : int
        Seed of the estimates.
    most_sets : int
        Sets that are tested for an exact count at a distance; where more are needed, and at all
        larger distances, the count is estimated.
    progress : callable, optional
        Called with the number of distances that are done.

    Raises
    ------
    InvalidInputError
        If the state is not a fixed point.

    Examples
    --------
    >>> import rmsim as rs
    >>> network = rs.Network(30, rs.Chain(1, jd=0.8))
    >>> J = rs.draw(network, seed=0, samples=range(1)).to_dense()[0]
    >>> state = rs.find_fixed_point(network, "dynamics", restarts=20).state[0]
    >>> near = count_neighbours(J, state, network, most=3)
    >>> [neighbours.distance for neighbours in near], all(neighbours.exact for neighbours in near)
    ([1, 2, 3], True)
    """
    last = checks.integer("most", most, 1, network.n * network.layers)
    number = checked_seed(seed)
    allowed = checks.integer("most_sets", most_sets, 0)
    margins, change = gauged(J, state, network)
    counts: list[Neighbours] = []
    exact = True
    for distance in range(1, last + 1):
        count = exact_count(margins, change, network.jd, distance, allowed) if exact else -1
        exact = count >= 0
        if exact:
            counts.append(Neighbours(distance, count, 0.0))
        else:
            counts.append(_estimated(margins, change, network.jd, distance, number))
        if progress is not None:
            progress(distance)
    return tuple(counts)


def neighbour_seconds(spins: int, most: int, most_sets: int = MOST_SETS) -> float:
    """Return about how many CPU-seconds :func:`count_neighbours` takes among `spins` neurons.

    Right within a factor of some three; where estimates need the larger populations it is more.

    Examples
    --------
    >>> 0.2 < neighbour_seconds(500, 3) < 8 < neighbour_seconds(500, 10) < 40
    True
    """
    seconds, exact = 0.0, True
    for distance in range(1, most + 1):
        sets = math.comb(spins, distance)
        if exact:
            begun = _TESTED * sets <= most_sets
            seconds += 1e-9 * min(_SET * spins * sets, _GIVEN_UP * most_sets) if begun else 0.0
            exact = sets <= most_sets
        if not exact:
            exchanges = _POPULATIONS * _SETS[0] * _STEPS * 4 * distance
            seconds += 1e-9 * _EXCHANGE * exchanges * spins
    return seconds


def neighbours_at(
    J: ArrayLike, state: ArrayLike, network: Network, distance: int, *, most_sets: int = MOST_SETS
) -> int:
    """Return the exact number of fixed points at one distance of a fixed point, of any origin.

    Raises
    ------
    InvalidInputError
        If more than `most_sets` sets of neurons would have to be tested;
        :func:`count_neighbours` estimates the number then.
    """
    reach = checks.integer("distance", distance, 1, network.n * network.layers)
    count = exact_count(*gauged(J, state, network), network.jd, reach, most_sets)
    if count < 0:
        allowed = f"smaller: more than {most_sets} sets to test (count_neighbours estimates)"
        raise InvalidInputError("distance", distance, allowed)
    return count


def margins_and_changes(
    J: ArrayLike, state: ArrayLike, network: Network, name: str = "state"
) -> tuple[Array, Array, Array, Array]:
    """Return the spins of a fixed point, its margins m_t, the changes D_ut, and tolerances.

    A margin below its tolerance has no certain sign in float64.
    """
    shape = (network.layers, network.n)
    couplings = np.asarray(J, dtype=np.float64)
    if couplings.size != network.layers * network.n**2:
        allowed = f"of shape {(network.layers, network.n, network.n)}"
        raise InvalidInputError("J", f"of shape {couplings.shape}", allowed)
    K = coupling_matrix(couplings.reshape(*shape, network.n), network.lam_left, network.lam_right)
    spins = checked_states(name, state).cpu().double().numpy().reshape(-1)
    if spins.size != K.shape[0]:
        raise InvalidInputError(name, f"{spins.size} spins", f"of shape {shape}")
    scaled = K * spins[:, None] * spins
    tolerance = tolerances(K, network.jd)
    margins = network.jd + scaled.sum(axis=1)
    for t in np.flatnonzero(np.abs(margins) <= tolerance):
        margins[t] = accurate_margin(K[t], spins, int(t), network.jd)
    if np.any(margins <= 0):
        raise InvalidInputError(name, "another state", "a fixed point of these couplings")
    return spins, margins, np.ascontiguousarray(2 * scaled.T), tolerance


def gauged(J: ArrayLike, state: ArrayLike, network: Network) -> tuple[Array, Array]:
    """Return the margins m_t, in ascending order, and the changes D_ut in that order."""
    _, margins, change, _ = margins_and_changes(J, state, network)
    # The smallest margins first: they fail first, and end most tests at once.
    order = np.argsort(margins)
    return margins[order], np.ascontiguousarray(change[np.ix_(order, order)])


# Exact counts.


def exact_count(margins: Array, change: Array, jd: float, distance: int, most_sets: int) -> int:
    """Return the number of fixed points at a distance; -1 if more sets have to be tested."""
    spins = margins.size
    if _TESTED * math.comb(spins, distance) > most_sets:
        return -1
    reach = min(distance, spins - 1)
    # help[r, t]: what r flips can add to f_t at most; hurt[r, t]: what they can take off it.
    falls = -np.sort(-np.maximum(-change, 0.0), axis=0)[:reach]
    rises = -np.sort(-np.maximum(change, 0.0), axis=0)[:reach]
    zero = np.zeros((1, spins))
    more = np.concatenate([zero, np.cumsum(falls, axis=0)])
    less = np.concatenate([zero, np.cumsum(rises, axis=0)])
    return int(_count_sets(margins, change, jd, distance, more, less, most_sets))


@compiled
def _count_sets(
    margins: Array, change: Array, jd: float, distance: int, more: Array, less: Array, most: int
) -> int:
    spins = margins.size
    chosen = np.full(distance, -1, np.int64)
    flipped = np.zeros(spins, np.bool_)
    fields = np.empty((distance + 1, spins))
    fields[0] = margins
    depth, tested, count = 0, 0, 0
    while depth >= 0:
        if chosen[depth] >= 0:
            flipped[chosen[depth]] = False
        start = chosen[depth] if chosen[depth] >= 0 else (chosen[depth - 1] if depth > 0 else -1)
        new = start + 1
        left = distance - depth - 1
        if new + left >= spins:  # not enough neurons are left
            chosen[depth] = -1
            depth -= 1
            continue
        chosen[depth] = new
        tested += 1
        if tested > most:
            return -1
        flipped[new] = True
        here, below, taken = fields[depth], fields[depth + 1], change[new]
        reach = min(left, more.shape[0] - 1)
        good = True
        for t in range(spins):
            field = here[t] - taken[t]
            below[t] = field
            if flipped[t]:
                if 2.0 * jd - field + less[reach, t] <= 0.0:
                    good = False
                    break
            # A neuron that may still be flipped itself is satisfied in either way.
            elif field + more[reach, t] <= 0.0 and (left == 0 or t < new):
                good = False
                break
        if not good:
            continue
        if left == 0:
            count += 1
            continue
        for t in range(spins):
            below[t] = here[t] - taken[t]
        depth += 1
        chosen[depth] = -1
    return count


# Estimates.


def _estimated(margins: Array, change: Array, jd: float, distance: int, seed: int) -> Neighbours:
    """Return the count at a distance by populations of sets."""
    betas = _LAST_BETA * (np.arange(_STEPS + 1) / _STEPS) ** 1.5
    for sets in _SETS:
        words = np.random.SeedSequence([seed, distance, sets]).generate_state(
            _POPULATIONS, np.uint64
        )
        logs = np.array(
            [
                _population(margins, change, jd, distance, sets, betas, word | np.uint64(1))
                for word in words
            ]
        )
        top = logs.max()
        if np.isneginf(top):
            continue
        weights = np.exp(logs - top)
        relative = float(standard_error(weights) / weights.mean())
        if relative <= LARGEST_ERROR:
            log_all = -math.log(margins.size + 1) - special.betaln(
                margins.size - distance + 1, distance + 1
            )
            count = math.exp(log_all + top + math.log(weights.mean()))
            return Neighbours(distance, count, relative * count)
    return Neighbours(distance, None, None)


@compiled
def _random(state: NDArray[np.uint64]) -> float:
    """Return a uniform number below 1 by xorshift64*."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return float((x * np.uint64(2685821657736338717)) >> np.uint64(11)) / 9007199254740992.0


@compiled
def _violated(fields: Array, flipped: NDArray[np.bool_], jd: float) -> int:
    count = 0
    for t in range(fields.size):
        margin = 2.0 * jd - fields[t] if flipped[t] else fields[t]
        count += margin <= 0.0
    return count


@compiled
def _population(
    margins: Array,
    change: Array,
    jd: float,
    distance: int,
    sets: int,
    betas: Array,
    word: np.uint64,
) -> float:
    """Return log of the estimate of Z(infinity)/Z(0) by one population."""
    spins = margins.size
    random = np.array([word], np.uint64)
    flipped = np.zeros((sets, spins), np.bool_)
    members = np.empty((sets, distance), np.int64)
    fields = np.empty((sets, spins))
    energy = np.empty(sets, np.int64)
    for k in range(sets):
        size = 0
        while size < distance:
            new = int(_random(random) * spins)
            if not flipped[k, new]:
                flipped[k, new] = True
                members[k, size] = new
                size += 1
        for t in range(spins):
            fields[k, t] = margins[t]
        for a in range(distance):
            for t in range(spins):
                fields[k, t] -= change[members[k, a], t]
        energy[k] = _violated(fields[k], flipped[k], jd)
    log_z = 0.0
    weights = np.empty(sets)
    parents = np.empty(sets, np.int64)
    trial = np.empty(spins)
    for step in range(1, betas.size + 1):
        last = step == betas.size
        total = 0.0
        for k in range(sets):
            if last:
                weights[k] = 1.0 if energy[k] == 0 else 0.0
            else:
                weights[k] = math.exp(-(betas[step] - betas[step - 1]) * energy[k])
            total += weights[k]
        if total == 0.0:
            return -math.inf
        log_z += math.log(total / sets)
        if last:
            return log_z
        # Systematic resampling: each set about as often as its weight says.
        point, sum_, k = _random(random), 0.0, -1
        for child in range(sets):
            target = (child + point) * total / sets
            while k < sets - 1 and sum_ <= target:
                k += 1
                sum_ += weights[k]
            parents[child] = k
        flipped, members = flipped[parents], members[parents]
        fields, energy = fields[parents], energy[parents]
        for k in range(sets):
            for _ in range(4 * distance):
                place = int(_random(random) * distance)
                new, old = int(_random(random) * spins), members[k, place]
                if flipped[k, new]:
                    continue
                flipped[k, old], flipped[k, new] = False, True
                cost = 0
                for t in range(spins):
                    field = fields[k, t] + change[old, t] - change[new, t]
                    trial[t] = field
                    cost += (2.0 * jd - field if flipped[k, t] else field) <= 0.0
                if cost <= energy[k] or _random(random) < math.exp(
                    -betas[step] * (cost - energy[k])
                ):
                    members[k, place], energy[k] = new, cost
                    fields[k] = trial
                else:
                    flipped[k, old], flipped[k, new] = True, False
    return log_z
