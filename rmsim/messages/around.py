"""A network and one of its fixed points: planted (typical), or found by an algorithm."""

from __future__ import annotations

import torch

from rmsim.couplings import DenseChain
from rmsim.messages.ensemble import check_independent
from rmsim.messages.solvers import Problem, solver_named
from rmsim.planted import plant
from rmsim.randomness import generator
from rmtheory.errors import InvalidInputError, NotConvergedError

#: Where a fixed point may come from.
SOURCES = ("dynamics", "rbp", "likelihood", "planted")

#: New starts of an algorithm that fails.
RESTARTS = 20


def fixed_point_from(source: str, problem: Problem) -> tuple[DenseChain, torch.Tensor]:
    """Return the couplings of a network, one sample, and a fixed point (layers, n) of it.

    A planted one is typical: it has its own couplings, in float64 on the CPU. The algorithms
    search disorder sample 0, all the same one.

    Parameters
    ----------
    source : str
        One of :data:`SOURCES`.
    problem : Problem
        Network and seed.

    Raises
    ------
    NotConvergedError
        If the algorithm finds none.
    """
    if source not in SOURCES:
        raise InvalidInputError("around", source, f"one of {', '.join(SOURCES)}")
    network = problem.network
    check_independent(network)
    if source == "planted":
        sample = plant(network, generator(problem.seed, 0, 0))
        matrices = torch.as_tensor(sample.J)[None]
        couplings = DenseChain(matrices, network.jd, network.lam_left, network.lam_right)
        return couplings, torch.as_tensor(sample.state)
    found = solver_named(source).solve(source, problem, {"restarts": RESTARTS})
    if not found.solved:
        reason = f"{found.status.label} after {found.iterations} iterations, {RESTARTS} restarts"
        raise NotConvergedError(f"{source} found no fixed point: {reason}")
    return problem.couplings(), found.state
