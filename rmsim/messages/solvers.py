"""Algorithms that look for a fixed point of one network, by name, for ``rmsim solve``.

A new one is a function from a :class:`Problem` and its checked settings to a :class:`Solution`, and
one line in :data:`SOLVERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from rmsim.couplings import DenseChain, draw_dense
from rmsim.dynamics import Status, least_margins, relax_samples
from rmsim.dynamics.relax import checked_p
from rmsim.messages.amp import belief_propagation
from rmsim.messages.ensemble import check_independent
from rmsim.messages.focusing import MOST_LAYERS, checked_gamma, checked_y, focus
from rmsim.messages.likelihood import MAX_ITERATIONS, Rate, optimise
from rmsim.messages.outcome import Outcome
from rmsim.messages.reinforced import Schedule, reinforce
from rmsim.messages.search import Search
from rmsim.messages.step import random_fields
from rmsim.network import Network
from rmtheory import checks
from rmtheory.errors import InvalidInputError

#: Chance of an update in a chain, where synchronous sweeps without masks end in 2-cycles.
_MASKED = 0.8


@dataclass(frozen=True)
class Problem:
    """The network to solve: disorder sample 0 of a seed."""

    network: Network
    seed: int
    dtype: torch.dtype
    device: torch.device

    def couplings(self) -> DenseChain:
        """Draw the couplings, refusing those that message passing does not hold for."""
        check_independent(self.network)
        return draw_dense(self.network, self.seed, range(1), dtype=self.dtype, device=self.device)


@dataclass(frozen=True, eq=False)
class Solution:
    """What an algorithm answers.

    Parameters
    ----------
    status : Outcome
        How it ended.
    solved : bool
        Whether `state` is a fixed point, every margin positive in float64.
    iterations : int
        Iterations or sweeps.
    min_margin : float
        Least s_i h_i of `state`.
    state : Tensor of int8, (layers, n)
        The signs it ended with.
    overlap : list of float, optional
        Mean of s^l s^{l+1} for consecutive layers; None for a single layer.
    bethe_entropy : float, optional
        Entropy of the fixed points per neuron as the algorithm has it, where defined.
    settings : mapping
        All settings, defaults included.
    more : mapping
        Results that only this algorithm has, as JSON values.
    """

    status: Outcome
    solved: bool
    iterations: int
    min_margin: float
    state: torch.Tensor
    overlap: list[float] | None
    bethe_entropy: float | None
    settings: Mapping[str, Any]
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Solver:
    """An algorithm and the settings it knows, each with the function that checks it."""

    run: Callable[[Problem, Mapping[str, Any]], Solution]
    settings: Mapping[str, Callable[[str, object], Any]]

    def solve(self, name: str, problem: Problem, given: Mapping[str, object]) -> Solution:
        """Check the settings that were given, None standing for the default, and run."""
        chosen = {key: value for key, value in given.items() if value is not None}
        for key, value in chosen.items():
            if key not in self.settings:
                raise InvalidInputError(key, value, f"left out for the algorithm {name}")
        return self.run(
            problem, {key: self.settings[key](key, value) for key, value in chosen.items()}
        )


def solve_bp(problem: Problem, settings: Mapping[str, Any]) -> Solution:
    """Plain BP from random messages: the entropy of the fixed points, seldom one of them."""
    used = {"max_iterations": 500, **settings}
    couplings = problem.couplings()
    size = (problem.network.layers, problem.network.n)
    start = random_fields(problem.seed, range(1), *size, dtype=problem.dtype, device=problem.device)
    found = belief_propagation(couplings, start=start, **used)
    state = found.messages.state[0].to(torch.int8).cpu()
    margin = float(least_margins(couplings, state.to(problem.device)[None, None]))
    converged = bool(found.converged[0])
    return Solution(
        Outcome(int(found.status[0])),
        margin > 0,
        int(found.iterations[0]),
        margin,
        state,
        [float(q) for q in found.pair[0]] if converged and size[0] > 1 else None,
        float(found.entropy[0]) / (size[0] * size[1]) if converged else None,
        used,
    )


def solve_rbp(problem: Problem, settings: Mapping[str, Any]) -> Solution:
    """Reinforced BP."""
    schedule = Schedule(**{key: settings[key] for key in ("r0", "dr") if key in settings})
    used = {
        "r0": schedule.r0,
        "dr": schedule.dr,
        "max_iterations": settings.get("max_iterations", schedule.iterations),
        "restarts": settings.get("restarts", 0),
    }
    found = reinforce(
        problem.couplings(),
        schedule,
        restarts=used["restarts"],
        max_iterations=used["max_iterations"],
        seed=problem.seed,
    )
    return solution_of(found, used)


def solve_likelihood(problem: Problem, settings: Mapping[str, Any]) -> Solution:
    """Likelihood optimisation."""
    rate = Rate(**{key: settings[key] for key in ("eta", "decay") if key in settings})
    used = {
        "eta": rate.eta,
        "decay": rate.decay,
        "max_iterations": settings.get("max_iterations", MAX_ITERATIONS),
        "restarts": settings.get("restarts", 0),
    }
    found = optimise(
        problem.couplings(),
        rate,
        restarts=used["restarts"],
        max_iterations=used["max_iterations"],
        seed=problem.seed,
    )
    return solution_of(found, used)


def solve_focusing(problem: Problem, settings: Mapping[str, Any]) -> Solution:
    """Focusing BP; without convergence it has no entropies."""
    if problem.network.layers > MOST_LAYERS:
        allowed = f"at most {MOST_LAYERS} for the algorithm fbp"
        raise InvalidInputError("layers", problem.network.layers, allowed)
    used = {"y": 5.0, "gamma": 0.8, "max_iterations": 1000, **settings}
    found = focus(problem.couplings(), **used, seed=problem.seed)
    point = found.point
    return Solution(
        found.status,
        found.min_margin > 0,
        found.iterations,
        found.min_margin,
        found.state,
        layer_overlaps(found.state),
        None,
        used,
        {
            "distance": None if point is None else point.d,
            "internal_entropy": None if point is None else point.internal,
            "external_entropy": None if point is None else point.external,
        },
    )


def solution_of(found: Search, used: Mapping[str, Any]) -> Solution:
    """Return the answer of a search in one network."""
    state = found.state[0]
    return Solution(
        Outcome(int(found.status[0])),
        bool(found.solved[0]),
        int(found.iterations[0]),
        float(found.min_margin[0]),
        state,
        layer_overlaps(state),
        None,
        used,
    )


def solve_dynamics(problem: Problem, settings: Mapping[str, Any]) -> Solution:
    """Run the dynamics from random states, masked in a chain, until one reaches a fixed point."""
    network = problem.network
    used = {
        "max_iterations": 1000,
        "restarts": 0,
        "p": 1.0 if network.layers == 1 else _MASKED,
        **settings,
    }
    found = relax_samples(
        network,
        range(1),
        problem.seed,
        starts=1 + used["restarts"],
        p=used["p"],
        max_sweeps=used["max_iterations"],
        dtype=problem.dtype,
        device=problem.device,
    )
    fixed = found.ended(Status.FIXED_POINT)[0]
    best = int(fixed.to(torch.int8).argmax())  # the first one, or the first start
    status = {
        Status.FIXED_POINT: Outcome.SOLVED,
        Status.CYCLE: Outcome.CYCLING,
        Status.CAP: Outcome.UNCONVERGED,
        Status.MARGINAL: Outcome.MARGINAL,
    }[Status(int(found.status[0, best]))]
    state = found.state[0, best]
    tried = found.sweeps[0, : best + 1] if bool(fixed[best]) else found.sweeps[0]
    return Solution(
        status,
        status == Outcome.SOLVED,
        int(tried.sum()),
        float(found.min_margin[0, best]),
        state,
        layer_overlaps(state),
        None,
        used,
    )


def layer_overlaps(state: torch.Tensor) -> list[float] | None:
    """Mean of s^l s^{l+1} for consecutive layers of a state (layers, n); None for one layer.

    Examples
    --------
    >>> layer_overlaps(torch.tensor([[1, 1], [1, -1]]))
    [0.0]
    """
    if len(state) == 1:
        return None
    spins = state.double()
    return [float(q) for q in (spins[1:] * spins[:-1]).mean(-1)]


def _real(name: str, value: object) -> float:
    return float(checks.exact_real(name, value))


def _positive(name: str, value: object) -> int:
    return checks.integer(name, value, 1)


def _count(name: str, value: object) -> int:
    return checks.integer(name, value, 0)


SOLVERS: Mapping[str, Solver] = {
    "bp": Solver(solve_bp, {"max_iterations": _positive}),
    "rbp": Solver(
        solve_rbp, {"r0": _real, "dr": _real, "max_iterations": _positive, "restarts": _count}
    ),
    "dynamics": Solver(
        solve_dynamics,
        {"max_iterations": _positive, "restarts": _count, "p": lambda _, value: checked_p(value)},
    ),
    "likelihood": Solver(
        solve_likelihood,
        {"eta": _real, "decay": _real, "max_iterations": _positive, "restarts": _count},
    ),
    "fbp": Solver(
        solve_focusing, {"y": checked_y, "gamma": checked_gamma, "max_iterations": _positive}
    ),
}


def solver_named(name: str) -> Solver:
    """Return the algorithm called `name`."""
    if name not in SOLVERS:
        raise InvalidInputError("algorithm", name, f"one of {', '.join(SOLVERS)}")
    return SOLVERS[name]
