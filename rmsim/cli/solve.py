"""``rmsim solve``: look for a fixed point of one network, and say how the search ended."""

from __future__ import annotations

from typing import Annotated

from rmsim.cli.options import (
    DeviceOption,
    DrOption,
    DtypeOption,
    EtaOption,
    R0Option,
    SeedOption,
)
from rmsim.cli.options import option as _option
from rmtheory import checks
from rmtheory.cli import output as io
from rmtheory.errors import InvalidInputError

_MEANING = {
    "solved": "a fixed point was found, margins checked in float64",
    "status": "how the algorithm ended",
    "iterations": "iterations or sweeps, all attempts together",
    "min_margin": "least s h of the final signs",
    "bethe_entropy": "entropy of the fixed points per neuron (none: the algorithm has none)",
    "theory_entropy": "log of the mean number of fixed points, per neuron",
    "overlap": "overlap of consecutive layers (none: a single layer)",
    "distance": "of the fixed points from the centre (none: not converged)",
    "internal_entropy": "S_I, of the fixed points around the centre, per neuron",
    "external_entropy": "S_E, of the centres, per neuron",
    "device": "where it ran",
    "wall_time": "seconds",
}


def solve_command(
    algorithm: Annotated[
        str, _option("--algorithm", "NAME", "bp, rbp, dynamics, likelihood or fbp (focusing).")
    ] = "rbp",
    n: io.SizeOption = None,
    layers: io.LayersOption = "1",
    jd: io.JdOption = None,
    lam: io.LamOption = None,
    lam_left: io.LamLeftOption = None,
    lam_right: io.LamRightOption = None,
    dr: DrOption = None,
    r0: R0Option = None,
    eta: EtaOption = None,
    decay: Annotated[
        str | None,
        _option("--decay", "NUMBER", "Steps eta/(1 + decay t) (likelihood), 0 by default."),
    ] = None,
    y: Annotated[
        str | None, _option("--y", "NUMBER", "Number of replicas (fbp), 5 by default.")
    ] = None,
    gamma: Annotated[
        str | None, _option("--gamma", "NUMBER", "Coupling to the centre (fbp), .8 by default.")
    ] = None,
    p: Annotated[
        str | None,
        _option("--p", "PROBABILITY", "Chance of an update (dynamics): 1, or .8 in a chain."),
    ] = None,
    max_iterations: Annotated[
        str | None,
        _option("--max-iterations", "COUNT", "The cap: 500 (bp), r = .95 (rbp), 1000 (others)."),
    ] = None,
    restarts: Annotated[
        str | None, _option("--restarts", "COUNT", "New starts after a failure (not bp, fbp).")
    ] = None,
    seed: SeedOption = "0",
    dtype: DtypeOption = "float32",
    device: DeviceOption = "auto",
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Look for a fixed point of one network.

    Failure is a result: status tells unconverged, paramagnet, cycling, polarised or diverged.

    Example: rmsim solve --algorithm rbp --n 2000 --jd .25 --dr .003 --seed 0 --json
    """
    import time

    from rmsim.cli.report import SimulationReport
    from rmsim.compare import annealed_entropy
    from rmsim.device import choose_device, choose_dtype
    from rmsim.messages.solvers import Problem, solver_named
    from rmsim.network import Network
    from rmsim.randomness import checked_seed

    started = time.perf_counter()
    solver = solver_named(algorithm)
    if n is None:
        raise InvalidInputError("n", "nothing", "given (--n NEURONS)")
    chain = io.make_chain(layers, jd, lam, lam_left, lam_right)
    network = Network(checks.integer("n", n, 2), chain)
    kind = choose_dtype(dtype)
    problem = Problem(network, checked_seed(seed), kind, choose_device(device))
    given = {
        "dr": dr,
        "r0": r0,
        "eta": eta,
        "decay": decay,
        "y": y,
        "gamma": gamma,
        "p": p,
        "max_iterations": max_iterations,
        "restarts": restarts,
    }
    found = solver.solve(algorithm, problem, given)
    document: dict[str, object] = {
        "parameters": network.parameters() | {"algorithm": algorithm} | dict(found.settings),
        "solved": found.solved,
        "status": found.status.label,
        "iterations": found.iterations,
        "min_margin": found.min_margin,
        "bethe_entropy": found.bethe_entropy,
        "theory_entropy": annealed_entropy(chain, network.n),
        "overlap": found.overlap,
        **found.more,
        "seed": problem.seed,
        "device": str(problem.device),
        "dtype": str(kind).removeprefix("torch."),
        "wall_time": time.perf_counter() - started,
    }
    title = f"{algorithm} on {chain} with N = {network.n}"
    SimulationReport(title, document, _MEANING).show(json, out)
