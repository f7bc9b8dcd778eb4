r"""Paths of single flips between fixed points, every state on the way a fixed point.

The paper calls the fixed points that the dynamics reaches *an extended connected cluster with a
branching structure* (main text, geometry of fixed points). On one network this can be decided:
two fixed points are joined if some sequence of single flips leads from one to the other through
fixed points alone.

With the margins :math:`m_t` of the start sigma and the changes
:math:`D_{ut} = 2\sigma_u\sigma_t K_{tu}`, the state in which the set A is flipped has

.. math:: f_t = m_t - \sum_{u\in A} D_{ut}, \qquad
    f_t > 0 \ (t\notin A), \quad 2 J_D - f_t > 0 \ (t\in A)

if it is a fixed point (:mod:`rmsim.search.neighbours`). The search is best first: of all states
seen the one nearest to the end is left next by all flips that stay among fixed points. A path that
is found is a proof, whatever its length; that none was found within so many states proves nothing,
unless every state that can be reached was seen (:attr:`FlipPath.exhausted`).

A walk that only comes nearer to its end (:func:`walk_towards`) arrives if all states between are
fixed points. Where it stops, the cluster is not convex; where nothing leads on but the way back, it
has a tip.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmsim.compiled_loops import compiled
from rmsim.enumeration.overlaps import Array
from rmsim.network import Network
from rmsim.search.neighbours import margins_and_changes
from rmsim.tensors import checked_seed
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError

#: States that a search leaves before it gives up: seconds at some hundred neurons.
MOST_STATES = 20_000

#: Joined fixed points that are listed at most, for their number at a distance.
MOST_JOINED = 1_000_000


@dataclass(frozen=True)
class FlipPath:
    """A path between two fixed points, or how far the search for one came.

    Parameters
    ----------
    flips : tuple of int, optional
        Neurons to flip, in order (layer times n plus neuron); None if no path was found.
    distance : int
        Neurons in which the two fixed points differ.
    nearest : int
        Least distance to the end among the states that the search left.
    states : int
        How many it left.
    exhausted : bool
        Whether these are all that can be reached, so that there is no path.
    """

    flips: tuple[int, ...] | None
    distance: int
    nearest: int
    states: int
    exhausted: bool

    @property
    def joined(self) -> bool:
        """Whether there is a path."""
        return self.flips is not None


def flip_path(
    J: ArrayLike,
    start: ArrayLike,
    end: ArrayLike,
    network: Network,
    *,
    most_states: int = MOST_STATES,
    seed: int = 0,
) -> FlipPath:
    """Look for a path of single flips through fixed points from `start` to `end`.

    Parameters
    ----------
    J : array_like, (layers, n, n) or (n, n)
        The couplings, with a zero diagonal.
    start, end : array_like, (layers, n) or (n,)
        Two fixed points.
    network : Network
        Its size, J_D and lambda.
    most_states : int
        States that the search leaves at most.
    seed : int
        Of the order of states at the same distance.

    Raises
    ------
    InvalidInputError
        If one of the two is not a fixed point.

    Examples
    --------
    >>> import rmsim as rs
    >>> network = rs.Network(100, rs.Chain(1, jd=0.8))
    >>> J = rs.draw(network, seed=0, samples=range(1)).to_dense()[0]
    >>> ends = rs.relax(network, samples=1, starts=20, seed=0)
    >>> start, end, *_ = ends.state[0, ends.solved[0]]
    >>> path = flip_path(J, start, end, network)
    >>> path.joined, len(path.flips) >= path.distance
    (True, True)
    """
    most = checks.integer("most_states", most_states, 1)
    draw = np.random.default_rng(checked_seed(seed))
    spins, margins, change, tolerance = margins_and_changes(J, start, network, "start")
    last = margins_and_changes(J, end, network, "end")[0]
    target = spins != last  # which neurons are flipped at the end
    search = _Search(margins, change, network.jd, tolerance, draw)
    return search.run(target, most)


def count_joined(
    J: ArrayLike,
    state: ArrayLike,
    network: Network,
    most: int = 3,
    *,
    most_joined: int = MOST_JOINED,
) -> tuple[int, ...]:
    """Return how many fixed points at the distances 1 to `most` are joined to one.

    Those are counted to which single flips lead through fixed points, each one further away than
    the last; all fixed points at a distance, joined or not, are counted by
    :func:`~rmsim.search.neighbours.count_neighbours`.

    Parameters
    ----------
    J, network
        As for :func:`flip_path`.
    state : array_like, (layers, n) or (n,)
        The fixed point.
    most : int
        Largest distance.
    most_joined : int
        Refuse if there are more at some distance.

    Examples
    --------
    >>> import rmsim as rs
    >>> network = rs.Network(60, rs.Chain(1, jd=0.8))
    >>> J = rs.draw(network, seed=0, samples=range(1)).to_dense()[0]
    >>> state = rs.find_fixed_point(network, "dynamics", restarts=20).state[0]
    >>> one, two = count_joined(J, state, network, most=2)
    >>> one == rs.search.neighbours_at(J, state, network, 1)
    True
    """
    last = checks.integer("most", most, 1, network.n * network.layers)
    _, margins, change, tolerance = margins_and_changes(J, state, network)
    nearest: dict[frozenset[int], Array] = {frozenset(): margins}
    counts = []
    for _ in range(last):
        further: dict[frozenset[int], Array] = {}
        for flipped, fields in nearest.items():
            mask = np.zeros(len(margins), dtype=np.bool_)
            mask[list(flipped)] = True
            allowed = _allowed(fields, mask, change, network.jd, tolerance)
            for neuron in np.flatnonzero(allowed & ~mask).tolist():
                further.setdefault(flipped | {neuron}, fields - change[neuron])
            if len(further) > most_joined:
                got = f"{most}, with more than {most_joined} fixed points at {len(flipped) + 1}"
                raise InvalidInputError("most", got, "smaller")
        counts.append(len(further))
        nearest = further
    return tuple(counts)


@dataclass(frozen=True)
class Walk:
    """Where a walk between two fixed points ends.

    Parameters
    ----------
    distance : int
        From the second fixed point; 0 if the walk arrives.
    steps : int
        Flips that it made.
    onward : int
        Single flips of its last state to fixed points that undo none of these: away from the
        second fixed point, as nothing leads nearer.
    """

    distance: int
    steps: int
    onward: int

    @property
    def tip(self) -> bool:
        """Whether nothing leads on from where it ends but the way back."""
        return self.distance > 0 and self.onward == 0


def walk_towards(
    J: ArrayLike, start: ArrayLike, end: ArrayLike, network: Network, *, seed: int = 0
) -> Walk:
    """Walk from one fixed point towards another, and return where this ends.

    Every flip is drawn from those that come nearer to `end` and give a fixed point. Where there is
    none the walk ends; it arrives, in whatever order it flips, if all states between the two are
    fixed points.

    Parameters
    ----------
    J, start, end, network
        As for :func:`flip_path`.
    seed : int
        Of the order of flips.

    Examples
    --------
    >>> import rmsim as rs
    >>> network = rs.Network(100, rs.Chain(1, jd=0.8))
    >>> J = rs.draw(network, seed=0, samples=range(1)).to_dense()[0]
    >>> ends = rs.relax(network, samples=1, starts=20, seed=0)
    >>> start, end, *_ = ends.state[0, ends.solved[0]]
    >>> walk_towards(J, start, end, network).distance > 0  # although a path joins them
    True
    """
    draw = np.random.default_rng(checked_seed(seed))
    spins, fields, change, tolerance = margins_and_changes(J, start, network, "start")
    last = margins_and_changes(J, end, network, "end")[0]
    flipped, target = np.zeros(len(spins), dtype=np.bool_), spins != last
    while True:
        left = target & ~flipped
        allowed = _allowed(fields, flipped, change, network.jd, tolerance)
        nearer = np.flatnonzero(allowed & left)
        if not nearer.size:
            return Walk(int(left.sum()), int(flipped.sum()), int((allowed & ~flipped).sum()))
        neuron = draw.choice(nearer)
        fields = fields - change[neuron]
        flipped[neuron] = True


class _Search:
    """Best-first search over sets of flipped neurons."""

    def __init__(
        self, margins: Array, change: Array, jd: float, tolerance: Array, draw: np.random.Generator
    ) -> None:
        self.change, self.jd, self.tolerance, self.draw = change, jd, tolerance, draw
        #: Of the states that were left: fields, flipped neurons, the state and the flip before.
        self.fields = [margins]
        self.flipped = [np.zeros(len(margins), dtype=np.bool_)]
        self.before = [(-1, -1)]
        # A state is known by the exclusive or of one random number for each flipped neuron. Two
        # that share theirs, once in 1e10 searches, would cost one of them; no path would be wrong.
        self.codes = draw.integers(1 << 62, size=len(margins), dtype=np.int64).tolist()

    def run(self, target: NDArray[np.bool_], most: int) -> FlipPath:
        """Search for the state in which `target` is flipped."""
        distance = nearest = int(target.sum())
        if distance == 0:
            return FlipPath((), 0, 0, 0, exhausted=False)
        seen = {0}
        waiting: list[tuple[int, float, int, int, int]] = []
        self._leave(0, 0, distance, target, seen, waiting)
        while waiting and len(self.before) < most:
            away, _, code, parent, neuron = heapq.heappop(waiting)
            here = self._enter(parent, neuron)
            nearest = min(nearest, away)
            if away == 0:
                return FlipPath(self._way(here), distance, 0, here, exhausted=False)
            self._leave(here, code, away, target, seen, waiting)
        return FlipPath(None, distance, nearest, len(self.before), exhausted=not waiting)

    def _enter(self, parent: int, neuron: int) -> int:
        flipped = self.flipped[parent].copy()
        sign = -1.0 if flipped[neuron] else 1.0
        flipped[neuron] = not flipped[neuron]
        self.fields.append(self.fields[parent] - sign * self.change[neuron])
        self.flipped.append(flipped)
        self.before.append((parent, neuron))
        return len(self.before) - 1

    def _leave(
        self,
        here: int,
        code: int,
        away: int,
        target: NDArray[np.bool_],
        seen: set[int],
        waiting: list[tuple[int, float, int, int, int]],
    ) -> None:
        """Put the neighbours that are fixed points and were not seen among those that wait."""
        flipped = self.flipped[here]
        allowed = _allowed(self.fields[here], flipped, self.change, self.jd, self.tolerance)
        neurons = np.flatnonzero(allowed).tolist()
        for neuron, tie in zip(neurons, self.draw.random(len(neurons)).tolist(), strict=True):
            new = code ^ self.codes[neuron]
            if new not in seen:
                seen.add(new)
                nearer = bool(flipped[neuron] != target[neuron])
                heapq.heappush(waiting, (away + (-1 if nearer else 1), tie, new, here, neuron))

    def _way(self, here: int) -> tuple[int, ...]:
        flips = []
        while here:
            here, neuron = self.before[here]
            flips.append(neuron)
        return tuple(reversed(flips))


@compiled
def _allowed(
    fields: Array, flipped: NDArray[np.bool_], change: Array, jd: float, tolerance: Array
) -> NDArray[np.bool_]:
    """Return which single flips of a fixed point give a fixed point.

    A margin counts as positive only if rounding cannot have made it so.
    """
    spins = fields.size
    good = np.empty(spins, np.bool_)
    for u in range(spins):
        sign = -1.0 if flipped[u] else 1.0
        fine = True
        for t in range(spins):
            field = fields[t] - sign * change[u, t]
            margin = 2.0 * jd - field if flipped[t] != (t == u) else field
            if margin <= tolerance[t]:
                fine = False
                break
        good[u] = fine
    return good
