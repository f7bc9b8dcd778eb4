"""Enumerate many disorder samples of one network, one core per sample.

Sample k of a seed is the same network here and in the dynamics, in any number of processes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from rmsim.couplings.chains import draw_dense
from rmsim.enumeration.exhaustive import (
    MOST_NODES,
    check_nodes,
    check_spins,
    draw_couplings,
    enumerate_fixed_points,
    forecast,
    search_checked,
)
from rmsim.enumeration.overlaps import Counts, checked_couplings, distance_histogram
from rmsim.network import Network
from rmsim.tensors import checked_seed
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError
from rmtheory.runtime.processes import as_finished

#: Pieces of work for every process: enough that none waits long for the last.
_PIECES = 8

#: Samples of few spins that are drawn together: drawing one takes longer than its search.
_TOGETHER, _SMALL = 32, 20


@dataclass(frozen=True, eq=False)
class SampleCounts:
    """The number of fixed points of every sample.

    Parameters
    ----------
    network : Network
        What was enumerated.
    seed : int
        Sample k draws its couplings from ``generator(seed, k, 0)``.
    counts : ndarray of int
        Fixed points of every sample.
    histograms : ndarray of int or None
        Ordered pairs of fixed points of every sample at every distance, (samples, N L + 1).
    nodes : int
        Nodes visited, all samples together.
    near_ties : int
        States judged with twice the digits.
    search_time : float
        Seconds of the searches, added over the processes.
    """

    network: Network
    seed: int
    counts: Counts
    histograms: Counts | None
    nodes: int
    near_ties: int
    search_time: float


def enumerate_samples(
    network: Network,
    samples: int,
    seed: int,
    *,
    jobs: int = 1,
    force: bool = False,
    histogram: bool = False,
    progress: Callable[[int], None] | None = None,
) -> SampleCounts:
    """Count the fixed points of `samples` disorder samples.

    Parameters
    ----------
    network : Network
        Size and couplings, dense; symmetric ones too, but the theory is not for them.
    samples, seed : int
        Samples 0, 1, ... of this seed.
    jobs : int
        Processes.
    force : bool
        Start however long it will take.
    histogram : bool
        Also count the pairs of fixed points at every distance.
    progress : callable, optional
        Called with the number of samples done.

    Examples
    --------
    >>> import rmsim as rs
    >>> rs.enumerate_samples(rs.Network(10, rs.Chain(1, jd=0.5)), 4, seed=0).counts.shape
    (4,)
    """
    wanted = checks.integer("samples", samples, 1)
    processes = min(checks.integer("jobs", jobs, 1), wanted)
    root = checked_seed(seed)
    check_spins(network.n, network.layers)
    if network.rho != 1:
        raise InvalidInputError("rho", network.rho, "1: only dense couplings are enumerated")
    if not force and wanted * 2.0 ** (network.n * network.layers) > MOST_NODES:
        J = draw_couplings(network, root, 0)
        each = forecast(J, network.jd, network.lam_left, network.lam_right)
        check_nodes(wanted * each, network.n, network.layers, wanted)
    if processes == 1:
        _load_machine_code()
        pieces = []
        together = _TOGETHER if network.n * network.layers <= _SMALL else 1
        for first in range(0, wanted, together):
            last = min(first + together, wanted)
            pieces.append(_piece(network, root, first, last, histogram))
            if progress is not None:
                progress(last)
    else:
        step = math.ceil(wanted / (_PIECES * processes))
        starts = range(0, wanted, step)
        work = [(network, root, k, min(k + step, wanted), histogram) for k in starts]
        finished: dict[int, tuple[Counts, Counts | None, int, int, float]] = {}
        with as_finished(_remote_piece, work, jobs=processes) as outcomes:
            for outcome in outcomes:
                finished[outcome.index] = outcome.result()
                if progress is not None:
                    progress(min(len(finished) * step, wanted))
        pieces = [finished[index] for index in range(len(work))]
    counts, histograms, nodes, near_ties, seconds = zip(*pieces, strict=True)
    return SampleCounts(
        network,
        root,
        np.concatenate(counts),
        np.concatenate([rows for rows in histograms if rows is not None]) if histogram else None,
        sum(nodes),
        sum(near_ties),
        sum(seconds),
    )


def _remote_piece(
    network: Network, seed: int, first: int, last: int, histogram: bool
) -> tuple[Counts, Counts | None, int, int, float]:
    _load_machine_code()
    return _piece(network, seed, first, last, histogram)


def _load_machine_code() -> None:
    """Search something small, so that no measured time includes the loading of the loops."""
    enumerate_fixed_points(np.zeros((1, 2, 2)), 0.5, force=True)


def _piece(
    network: Network, seed: int, first: int, last: int, histogram: bool
) -> tuple[Counts, Counts | None, int, int, float]:
    """Counts, histograms, nodes, near ties and seconds of samples `first` to `last` - 1."""
    counts, rows, nodes, near_ties, seconds = [], [], 0, 0, 0.0
    drawn = draw_dense(network, seed, range(first, last), dtype=torch.float64)
    jd, left, right = float(network.jd), float(network.lam_left), float(network.lam_right)
    for J in drawn.matrices.numpy():
        couplings = J if network.given is None else checked_couplings(J)
        points = search_checked(couplings, jd, left, right, keep_states=histogram)
        counts.append(points.count)
        nodes += points.nodes
        near_ties += points.near_ties
        seconds += points.seconds
        if histogram:
            rows.append(distance_histogram(points))
    return np.array(counts), np.array(rows) if histogram else None, nodes, near_ties, seconds
