"""Methods that search for a fixed point, by name, and the one function that runs them.

A new method is a function from couplings and its checked settings to a
:class:`~rmsim.dynamics.status.SearchResult`, and one line in :data:`METHODS`; ``rmsim solve`` and
:func:`find_fixed_point` have it then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from rmsim.couplings.base import Couplings, demand_couplings
from rmsim.couplings.chains import DenseChain, sample_numbers
from rmsim.dynamics.active import Callback
from rmsim.dynamics.relaxation import checked_p, drawn_in_parts, random_starts, relax
from rmsim.dynamics.status import SearchResult, Status, join_results
from rmsim.dynamics.sweeps import check_margins, checked_update
from rmsim.network import Network
from rmsim.search.amp import Beliefs, belief_propagation, check_independent, random_fields
from rmsim.search.dense_bp import dense_belief_propagation
from rmsim.search.focusing import checked_gamma, checked_y, focus
from rmsim.search.likelihood import MAX_ITERATIONS, Rate, optimise
from rmsim.search.reinforced import Schedule, reinforce
from rmsim.tensors import checked_seed, choose_device, choose_dtype
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError

#: Chance of an update in a chain, where synchronous sweeps without masks end in 2-cycles.
_MASKED = 0.8


@dataclass(frozen=True)
class Task:
    """How a method is run, whichever it is.

    Parameters
    ----------
    settings : mapping
        The settings that were given, checked.
    seed, first_sample : int
        Seed of starts and masks; number of the first network.
    sync_interval : int, optional
        Iterations between two readings of which networks have ended.
    callback : callable, optional
        Called at every reading.
    """

    settings: Mapping[str, Any]
    seed: int = 0
    first_sample: int = 0
    sync_interval: int | None = None
    callback: Callback | None = None

    def loop(self) -> dict[str, Any]:
        """Return what every search by iteration takes."""
        names = ("seed", "first_sample", "sync_interval", "callback")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Method:
    """A method that searches for fixed points.

    Parameters
    ----------
    title : str
        Its name in titles.
    run : callable
        (couplings, task) -> how the search in each network ended.
    settings : mapping
        Name of each setting -> function of (name, value) that checks it.
    independent : bool
        Whether its equations need dense couplings, J_ij independent of J_ji.
    """

    title: str
    run: Callable[[Any, Task], SearchResult]
    settings: Mapping[str, Callable[[str, object], Any]]
    independent: bool = True

    def checked(self, name: str, given: Mapping[str, object]) -> dict[str, Any]:
        """Return the settings that were given, None standing for the default."""
        chosen = {key: value for key, value in given.items() if value is not None}
        for key, value in chosen.items():
            if key not in self.settings:
                raise InvalidInputError(key, value, f"left out for the algorithm {name}")
        return {key: self.settings[key](key, value) for key, value in chosen.items()}


def find_fixed_point(
    network: Network | Couplings,
    method: str = "dynamics",
    *,
    samples: int | range = 1,
    seed: int = 0,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device = "auto",
    space: int | None = None,
    sync_interval: int | None = None,
    callback: Callback | None = None,
    progress: Callable[[int], None] | None = None,
    **settings: object,
) -> SearchResult:
    r"""Search for a fixed point, :math:`s_i h_i > 0` for every neuron, in each of some networks.

    Parameters
    ----------
    network : Network or Couplings
        A network, whose couplings are drawn or your own (:meth:`Network.from_array`), or couplings
        (:func:`rmsim.draw`).
    method : str
        ``dynamics`` (sweeps from random states), ``bp`` (belief propagation by AMP), ``dense_bp``
        (the same with a message along every edge, for a few hundred neurons), ``rbp`` (reinforced
        BP), ``likelihood`` (likelihood optimisation) or ``fbp`` (focusing BP).
    samples : int or range
        How many disorder samples of a drawn network, or which ones. Sample k is the same network,
        with the same starts, however many go together.
    seed : int
        Seed of couplings, starts and masks.
    dtype, device
        Precision and place of drawn couplings.
    space : int, optional
        Bytes of couplings held at a time (one sample at least).
    sync_interval : int, optional
        Iterations between two readings of which networks have ended; 1 on a CPU, 16 on a GPU. The
        result does not depend on it.
    callback : callable, optional
        Called at every reading with the number of iterations and of networks (states of networks
        for the dynamics) still active.
    progress : callable, optional
        Called with the number of samples that are done.
    **settings
        Those of the method, None standing for the default: `max_iterations` of all; `restarts` of
        dynamics, rbp and likelihood; `p` and `update` of the dynamics; `r0` and `dr` of rbp; `eta`
        and `decay` of the likelihood; `y` and `gamma` of fbp.

    Returns
    -------
    SearchResult
        For every network its status, state, margins and iterations; failure is a result, and
        ``Status(...).remedy`` says what to do about it.

    Examples
    --------
    >>> import rmsim as rs
    >>> result = rs.find_fixed_point(rs.Network(200, rs.Chain(1, jd=0.5)), "rbp", samples=2)
    >>> result.solved.tolist(), result.unsatisfied.tolist()
    ([True, True], [0, 0])
    """
    chosen = method_named(method)
    checked = chosen.checked(method, settings)
    number = checked_seed(seed)
    if isinstance(network, Network):
        if chosen.independent:
            check_independent(network)
        starts = 1 + int(checked.get("restarts", 0)) if method == "dynamics" else 1
        work = starts * len(sample_numbers(samples)) * network.entries
        place, kind = choose_device(device, work), choose_dtype(dtype)
        sets = drawn_in_parts(
            network,
            samples,
            number,
            starts=starts,
            dtype=kind,
            device=place,
            space=space,
            columns=method == "dynamics",
        )
    else:
        demand_couplings(network)
        if chosen.independent:
            network.check_independent(method)
        else:
            network.check()
        sets = iter([(network, range(network.samples))])
    parts: list[SearchResult] = []
    done = 0
    for couplings, some in sets:
        parts.append(
            chosen.run(couplings, Task(checked, number, some.start, sync_interval, callback))
        )
        done += len(some)
        if progress is not None:
            progress(done)
    return join_results(parts)


def _dynamics(couplings: Couplings, task: Task) -> SearchResult:
    """Run the dynamics from random states, masked in a chain, until one reaches a fixed point."""
    settings = task.settings
    starts = 1 + settings.get("restarts", 0)
    samples = range(task.first_sample, task.first_sample + couplings.samples)
    result = relax(
        couplings,
        random_starts(task.seed, samples, starts, couplings.layers, couplings.n, couplings.device),
        update=settings.get("update", "synchronous"),
        p=settings.get("p", 1.0 if couplings.layers == 1 else _MASKED),
        max_sweeps=settings.get("max_iterations", 1000),
        **task.loop(),
    )
    best = result.solved.to(torch.int8).argmax(1)  # the first success, or the first start
    solved = result.solved.any(1)
    attempts = torch.where(solved, best + 1, starts)
    rows = torch.arange(len(best))
    return replace(
        result,
        settings={**result.settings, "restarts": starts - 1},
        status=result.status[rows, best],
        iterations=result.iterations.cumsum(1)[rows, attempts - 1],
        period=result.period[rows, best],
        attempts=attempts,
        min_margin=result.min_margin[rows, best],
        unsatisfied=result.unsatisfied[rows, best],
        state=result.state[rows, best],
    )


def _bp(couplings: DenseChain, task: Task) -> SearchResult:
    """Plain BP from random messages: the entropy of the fixed points, seldom one of them."""
    loop = {name: value for name, value in task.loop().items() if name[:2] in ("sy", "ca")}
    cap = task.settings.get("max_iterations", 500)
    beliefs = belief_propagation(
        couplings, start=_random_start(couplings, task), max_iterations=cap, **loop
    )
    return _of_beliefs("bp", couplings, beliefs, cap, task)


def _dense_bp(couplings: DenseChain, task: Task) -> SearchResult:
    """BP with a message along every edge."""
    cap = task.settings.get("max_iterations", 500)
    beliefs = dense_belief_propagation(
        couplings, start=_random_start(couplings, task), max_iterations=cap
    )
    return _of_beliefs("dense_bp", couplings, beliefs, cap, task)


def _random_start(couplings: DenseChain, task: Task) -> torch.Tensor:
    samples = range(task.first_sample, task.first_sample + couplings.samples)
    return random_fields(
        task.seed,
        samples,
        couplings.layers,
        couplings.n,
        dtype=couplings.dtype,
        device=couplings.device,
    )


def _of_beliefs(
    method: str, couplings: DenseChain, beliefs: Beliefs, cap: int, task: Task
) -> SearchResult:
    """Return the signs of the magnetisations, and the entropy per neuron where BP converged."""
    state = beliefs.messages.state
    margin, unsatisfied = (x[:, 0].cpu() for x in check_margins(couplings, state.unsqueeze(1)))
    status = beliefs.status.cpu().masked_fill(margin > 0, int(Status.FIXED_POINT))
    failed = ~beliefs.converged.cpu()
    entropy = beliefs.entropy.double().cpu() / (couplings.layers * couplings.n)
    return SearchResult(
        method=method,
        settings={"max_iterations": cap},
        status=status,
        iterations=beliefs.iterations.cpu(),
        period=(status == Status.FIXED_POINT).to(torch.int64),
        attempts=torch.ones_like(unsatisfied),
        min_margin=margin,
        unsatisfied=unsatisfied,
        state=state.to(torch.int8).cpu(),
        seed=task.seed,
        device=str(couplings.device),
        quantities={
            "bethe_entropy": entropy.masked_fill(failed, torch.nan),
            "overlap": beliefs.pair.double().cpu().masked_fill(failed[:, None], torch.nan),
        },
    )


def _rbp(couplings: DenseChain, task: Task) -> SearchResult:
    """Reinforced BP."""
    settings = dict(task.settings)
    schedule = Schedule(**{key: settings.pop(key) for key in ("r0", "dr") if key in settings})
    return reinforce(couplings, schedule, **settings, **task.loop())


def _likelihood(couplings: DenseChain, task: Task) -> SearchResult:
    """Likelihood optimisation."""
    settings = {"max_iterations": MAX_ITERATIONS, **task.settings}
    rate = Rate(**{key: settings.pop(key) for key in ("eta", "decay") if key in settings})
    return optimise(couplings, rate, **settings, **task.loop())


def _focusing(couplings: DenseChain, task: Task) -> SearchResult:
    """Focusing BP; without convergence it has no entropies."""
    return focus(couplings, **{"y": 5.0, "gamma": 0.8, **task.settings}, **task.loop())


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


METHODS: Mapping[str, Method] = {
    "bp": Method("belief propagation", _bp, {"max_iterations": _positive}),
    "rbp": Method(
        "reinforced BP",
        _rbp,
        {"r0": _real, "dr": _real, "max_iterations": _positive, "restarts": _count},
    ),
    "dynamics": Method(
        "the dynamics",
        _dynamics,
        {
            "max_iterations": _positive,
            "restarts": _count,
            "p": lambda _, value: checked_p(value),
            "update": lambda _, value: checked_update(str(value)),
        },
        independent=False,
    ),
    "likelihood": Method(
        "likelihood optimisation",
        _likelihood,
        {"eta": _real, "decay": _real, "max_iterations": _positive, "restarts": _count},
    ),
    "fbp": Method(
        "focusing BP",
        _focusing,
        {"y": checked_y, "gamma": checked_gamma, "max_iterations": _positive},
    ),
    "dense_bp": Method(
        "belief propagation along every edge", _dense_bp, {"max_iterations": _positive}
    ),
}


def method_named(name: str, argument: str = "method") -> Method:
    """Return the method called `name`; `argument` is what the user calls it.

    Examples
    --------
    >>> method_named("magic")  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    rmtheory.base.errors.InvalidInputError: method must be one of bp, rbp, dynamics, likelihood,
    fbp, dense_bp, got magic
    """
    if name not in METHODS:
        raise InvalidInputError(argument, name, f"one of {', '.join(METHODS)}")
    return METHODS[name]
