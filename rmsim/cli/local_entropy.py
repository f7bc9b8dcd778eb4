"""``rmsim local-entropy``: the fixed points around a given one, in one network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rmsim.cli import ranges
from rmsim.cli.options import DeviceOption, SeedOption
from rmsim.cli.options import option as _option
from rmtheory import checks
from rmtheory.cli import output as io
from rmtheory.errors import InvalidInputError
from rmtheory.files import replacing

if TYPE_CHECKING:
    from rmsim.messages.local_entropy import LocalEntropy

_MEANING = {
    "at_distance_1": "fixed points at distance 1, counted",
    "at_distance_2": "fixed points at distance 2, counted",
    "distances": "distances d per neuron",
    "entropies": "S(d) per neuron there by TAP (none: the curve does not reach d)",
    "least_distance": "where the curve ends",
    "min_margin": "least s h of the fixed point",
    "wall_time": "seconds",
}


def local_entropy_command(
    around: Annotated[
        str, _option("--around", "SOURCE", "dynamics, rbp, likelihood or planted (typical).")
    ] = "planted",
    n: io.SizeOption = None,
    layers: io.LayersOption = "1",
    jd: io.JdOption = None,
    lam: io.LamOption = None,
    lam_left: io.LamLeftOption = None,
    lam_right: io.LamRightOption = None,
    d: Annotated[str, _option("--d", "VALUES", "Distances for the table.")] = ".02,.05,.1,.2",
    gamma: Annotated[
        str, _option("--gamma", "VALUES", "Fields to scan: a,b,c or start:stop:count.")
    ] = "0:3:61",
    seed: SeedOption = "0",
    device: DeviceOption = "auto",
    plot: Annotated[bool, typer.Option("--plot", help="Also draw FILE with the end .png.")] = False,
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Local entropy S(d) around a fixed point by TAP, and the exact counts at distance 1 and 2.

    Example: rmsim local-entropy --around rbp --n 400 --jd .8 --seed 0 --out FILE.json --plot
    """
    import time

    import torch

    from rmsim.cli.report import SimulationReport
    from rmsim.device import choose_device
    from rmsim.dynamics import least_margins
    from rmsim.messages.around import fixed_point_from
    from rmsim.messages.local_entropy import local_entropy
    from rmsim.messages.solvers import Problem
    from rmsim.network import Network
    from rmsim.planted import neighbours_at
    from rmsim.randomness import checked_seed

    started = time.perf_counter()
    if n is None:
        raise InvalidInputError("n", "nothing", "given (--n NEURONS)")
    if plot and (out is None or out.suffix == ".png"):
        raise InvalidInputError(
            "out",
            "nothing" if out is None else str(out),
            "given with --plot, a file that is no .png",
        )
    distances, fields = ranges.numbers("d", d), ranges.numbers("gamma", gamma)
    if distances[0] < 0 or distances[-1] > 1:
        raise InvalidInputError("d", d, "distances from 0 to 1, as shares of the neurons")
    chain = io.make_chain(layers, jd, lam, lam_left, lam_right)
    network = Network(checks.integer("n", n, 2), chain)
    problem = Problem(network, checked_seed(seed), torch.float32, choose_device(device))
    couplings, state = fixed_point_from(around, problem)
    curve = local_entropy(couplings, state, fields)
    margin = least_margins(couplings, state.to(couplings.device)[None, None])
    J = couplings.matrices[0].double().cpu().numpy()
    counts = [neighbours_at(J, state.numpy(), network, k) for k in (1, 2)]
    title = f"Fixed points around one ({around}) of {chain} with N = {network.n}"
    document = {
        "parameters": network.parameters() | {"around": around},
        "at_distance_1": counts[0],
        "at_distance_2": counts[1],
        "distances": list(distances),
        "entropies": [curve.at(x) for x in distances],
        "curve": {
            "gamma": curve.gamma.tolist(),
            "d": curve.d.tolist(),
            "entropy": curve.entropy.tolist(),
            "mutual": curve.mutual.tolist(),
            "metastable": curve.metastable.tolist(),
        },
        "failed": [{"gamma": value, "status": why} for value, why in curve.failed],
        "least_distance": float(curve.d[-1]),
        "min_margin": float(margin),
        "seed": problem.seed,
        "device": str(problem.device),
        "dtype": "float64",
        "wall_time": time.perf_counter() - started,
    }
    report = SimulationReport(title, document, _MEANING)
    if plot and out is not None:
        report.to_json()  # no picture of what is no result
        _plot(curve, title, out.with_suffix(".png"))
    report.show(json, out)


def _plot(curve: LocalEntropy, title: str, path: Path) -> None:
    """Draw S against d."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.6, 2.8), layout="constrained")
    axis = figure.subplots()
    axis.plot(curve.d, curve.entropy, ".-", ms=3, lw=1)
    axis.set(xlabel="$d$", ylabel="$S(d)$", xlim=(0, 0.5))
    axis.set_title(title, fontsize=6)
    with replacing(path, "plot") as temporary:
        figure.savefig(temporary, dpi=200)
