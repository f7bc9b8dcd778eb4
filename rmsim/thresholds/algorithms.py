"""Algorithms that look for a fixed point, by name: the one place where a new one is added.

An algorithm gets networks and says, for each, how its search ended and after how many sweeps.
Everything else (sweeps over parameters, intervals, crossings, trends) does not know which it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rmsim.network import Network
from rmtheory.errors import InvalidInputError

if TYPE_CHECKING:
    from rmsim.messages.search import Search

Counts = NDArray[np.int64]


class Ending(IntEnum):
    """How a search ended: as a relaxation may (:class:`rmsim.dynamics.Status`), or as messages."""

    FIXED_POINT = 0
    CYCLE = 1
    CAP = 2
    MARGINAL = 3
    PARAMAGNET = 4  # all magnetisations fell to zero
    POLARISED = 5  # every spin is certain, and the state is no fixed point
    DIVERGED = 6  # a number left the range of its type
    SETTLED = 7  # a maximum of the likelihood that is no fixed point


@dataclass(frozen=True)
class Outcomes:
    """How the search in each of some networks ended.

    Parameters
    ----------
    status : array
        An :class:`Ending` each, FIXED_POINT for success.
    sweeps : array
        Sweeps (iterations) to the fixed point, to the close of the cycle, or the cap.
    period : array
        1 for a fixed point, the period of a cycle, 0 if unknown.
    device : str
        Where it was computed.
    """

    status: Counts
    sweeps: Counts
    period: Counts
    device: str


#: (network, numbers of the samples, seed, all parameters of the point) -> outcomes.
Algorithm = Callable[[Network, range, int, Mapping[str, Any]], Outcomes]


def run_dynamics(
    network: Network, samples: range, seed: int, settings: Mapping[str, Any]
) -> Outcomes:
    """Relax one random start in each network, under `update`, `p` and the cap `max_sweeps`."""
    from rmsim.dynamics import relax_samples  # torch, which --help can do without

    found = relax_samples(
        network,
        samples,
        seed,
        **{name: settings[name] for name in ("update", "p", "max_sweeps", "dtype", "device")},
    )
    status, sweeps, period = (
        tensor[:, 0].numpy().astype(np.int64)
        for tensor in (found.status, found.sweeps, found.period)
    )
    return Outcomes(status, sweeps, period, found.device)


def run_reinforced(
    network: Network, samples: range, seed: int, settings: Mapping[str, Any]
) -> Outcomes:
    """Reinforced BP once in each network, under `r0` and `dr`, until r is 0.95 or the cap."""
    from rmsim.messages.ensemble import reinforce_samples
    from rmsim.messages.reinforced import Schedule

    schedule = Schedule(settings["r0"], settings["dr"])
    found = reinforce_samples(
        network,
        samples,
        seed,
        schedule=schedule,
        max_iterations=min(settings["max_sweeps"], schedule.iterations),
        dtype=settings["dtype"],
        device=settings["device"],
    )
    return _outcomes(found)


def run_likelihood(
    network: Network, samples: range, seed: int, settings: Mapping[str, Any]
) -> Outcomes:
    """Likelihood optimisation once in each network, with steps `eta`, until the cap."""
    from rmsim.messages.ensemble import search_samples
    from rmsim.messages.likelihood import Rate, optimise

    rate = Rate(settings["eta"])
    return _outcomes(
        search_samples(
            lambda couplings, number, first: optimise(
                couplings,
                rate,
                max_iterations=settings["max_sweeps"],
                seed=number,
                first_sample=first,
            ),
            network,
            samples,
            seed,
            dtype=settings["dtype"],
            device=settings["device"],
        )
    )


def _outcomes(found: Search) -> Outcomes:
    """Return the outcomes of searches by message passing."""
    from rmsim.messages.outcome import Outcome

    ends = {
        Outcome.SOLVED: Ending.FIXED_POINT,
        Outcome.CONVERGED: Ending.SETTLED,
        Outcome.PARAMAGNET: Ending.PARAMAGNET,
        Outcome.UNCONVERGED: Ending.CAP,
        Outcome.CYCLING: Ending.CYCLE,
        Outcome.DIVERGED: Ending.DIVERGED,
        Outcome.POLARISED: Ending.POLARISED,
        Outcome.MARGINAL: Ending.MARGINAL,
    }
    ended = np.array([ends[Outcome(int(status))] for status in found.status], dtype=np.int64)
    solved = (ended == Ending.FIXED_POINT).astype(np.int64)
    return Outcomes(ended, found.iterations.numpy(), solved, found.device)


ALGORITHMS: Mapping[str, Algorithm] = {
    "dynamics": run_dynamics,
    "rbp": run_reinforced,
    "likelihood": run_likelihood,
}

#: Parameters of a point that only some algorithms have.
OWN_SETTINGS: Mapping[str, tuple[str, ...]] = {"rbp": ("r0", "dr"), "likelihood": ("eta",)}


def algorithm_named(name: str) -> Algorithm:
    """Return the algorithm called `name`.

    Examples
    --------
    >>> algorithm_named("magic")
    Traceback (most recent call last):
    rmtheory.errors.InvalidInputError: algorithm must be one of dynamics, rbp, likelihood, got magic
    """
    if name not in ALGORITHMS:
        raise InvalidInputError("algorithm", name, f"one of {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]
