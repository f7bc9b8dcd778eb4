"""Enumerate the fixed points of one sample, or refuse with the price."""

from __future__ import annotations

import time
from typing import Literal, get_args

import torch
from numpy.typing import ArrayLike

from rmsim.device import choose_device
from rmsim.enumeration.branch_and_bound import search
from rmsim.enumeration.dense import MOST_SPINS_DENSE, search_dense
from rmsim.enumeration.order import forecast_nodes, greedy_order
from rmsim.enumeration.results import FixedPoints
from rmsim.enumeration.spins import MOST_SPINS, checked_couplings, coupling_matrix
from rmtheory import checks
from rmtheory.errors import InvalidInputError

Method = Literal["branch-and-bound", "dense"]

#: A call that needs more nodes than this has to be forced: about a quarter of an hour.
MOST_NODES = 2e10

#: Nodes a second on one core, for the price (``make bench``).
NODES_PER_SECOND: dict[Method, float] = {"branch-and-bound": 3e7, "dense": 1e7}

#: Random descents for a forecast of the nodes: within 15 % on 54 samples of up to 5 layers.
_DESCENTS = 4000

#: States kept unless more are allowed: 0.8 GB.
MOST_STATES = 100_000_000


def enumerate_fixed_points(
    J: ArrayLike | torch.Tensor,
    jd: float,
    lam_left: float = 0.0,
    lam_right: float = 0.0,
    *,
    keep_states: bool = False,
    method: Method = "branch-and-bound",
    device: str | torch.device = "cpu",
    force: bool = False,
    most_states: int = MOST_STATES,
) -> FixedPoints:
    """Find every fixed point of one sample: all margins s h strictly positive.

    Parameters
    ----------
    J : array_like
        Couplings (layers, n, n), or (n, n) for one layer; zero diagonal.
    jd : float
        Self-coupling J_D.
    lam_left, lam_right : float
        Couplings to the previous and to the next layer.
    keep_states : bool
        Keep the states; otherwise only count them, in memory that does not grow.
    method : {"branch-and-bound", "dense"}
        One core and few states, or every state by products on `device`.
    device : str or torch.device
        For the dense method.
    force : bool
        Start however long it will take.
    most_states : int
        Refuse to keep more states than this.

    Raises
    ------
    InvalidInputError
        Beyond 64 spins, or 2e10 nodes without `force`; the text says the price.

    Examples
    --------
    >>> found = enumerate_fixed_points([[0.0, 1.0], [1.0, 0.0]], jd=0.5, keep_states=True)
    >>> found.count, sorted(found.states.reshape(2, 2).tolist())
    (2, [[-1, -1], [1, 1]])
    """
    if method not in get_args(Method):
        raise InvalidInputError("method", method, f"one of {', '.join(get_args(Method))}")
    allowed_states = checks.integer("most_states", most_states, 1)
    place = choose_device(device)
    diagonal, left, right = (
        float(checks.exact_real(name, value))
        for name, value in (("jd", jd), ("lam_left", lam_left), ("lam_right", lam_right))
    )
    array = J.detach().cpu().numpy() if isinstance(J, torch.Tensor) else J
    couplings = checked_couplings(array)
    layers, n, _ = couplings.shape
    check_spins(n, layers, method)
    K = coupling_matrix(couplings, left, right)
    started = time.perf_counter()
    if method == "dense":
        if not force:
            check_nodes(2.0 ** (n * layers - 1), n, layers, method=method)
        found = search_dense(K, diagonal, place, keep_states, allowed_states)
    else:
        order = greedy_order(K, diagonal)
        if not force and 2.0 ** K.shape[0] > MOST_NODES:  # else a forecast is not worth its time
            check_nodes(forecast_nodes(K, diagonal, order, _DESCENTS), n, layers)
        found = search(K, diagonal, keep_states, allowed_states, order)
    count, packed, nodes, near_ties = found
    seconds = time.perf_counter() - started
    return FixedPoints(n, layers, count, packed, nodes, near_ties, method, seconds)


def check_spins(n: int, layers: int, method: Method = "branch-and-bound") -> None:
    """Refuse networks whose states do not fit into one integer; `force` does not help."""
    most = MOST_SPINS if method == "branch-and-bound" else MOST_SPINS_DENSE
    if n * layers > most:
        allowed = f"such that n times layers is at most {most}: more spins cannot be enumerated"
        raise InvalidInputError("n", n, f"{allowed} (layers = {layers})")


def check_nodes(
    nodes: float, n: int, layers: int, samples: int = 1, method: Method = "branch-and-bound"
) -> None:
    """Refuse work that takes too long, with its price and how to have it done anyway."""
    if nodes > MOST_NODES:
        what = f"{samples} samples of " if samples > 1 else ""
        time_needed = duration(nodes / NODES_PER_SECOND[method])
        price = f"{nodes:.1g} nodes, {time_needed} on one core"
        raise InvalidInputError(
            "n", n,
            f"smaller, or forced (force=True, --force): {what}{n * layers} spins with these "
            f"couplings need about {price} (the limit is {MOST_NODES:.0e} nodes)",
        )  # fmt: skip


def forecast(J: ArrayLike, jd: float, lam_left: float = 0.0, lam_right: float = 0.0) -> float:
    """Nodes that branch and bound will visit for one sample, to some 15 %."""
    K = coupling_matrix(J, lam_left, lam_right)
    return forecast_nodes(K, jd, greedy_order(K, jd), _DESCENTS)


def duration(seconds: float) -> str:
    """Say a time in the unit that suits it.

    Examples
    --------
    >>> duration(40), duration(7300), duration(1e7)
    ('40 s', '2 h', '116 days')
    """
    for limit, unit, name in ((100, 1, "s"), (6000, 60, "min"), (1e5, 3600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.2g} {name}"
    days = seconds / 86400
    return f"{days:.0f} days" if days < 1e4 else "many years"
