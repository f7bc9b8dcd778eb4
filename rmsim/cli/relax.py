"""``rmsim relax``: where the dynamics goes from random starts, over many networks."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rmsim.cli.options import DeviceOption, DtypeOption, SeedOption
from rmsim.cli.options import option as _option
from rmtheory import checks
from rmtheory.cli import output as io
from rmtheory.errors import InvalidInputError
from rmtheory.wording import counted

_MEANING = {
    "fixed_point_fraction": "reach a fixed point, margins checked in float64",
    "cycle_fraction": "end in a cycle (not looked for if p < 1)",
    "periods": "cycles of each period",
    "capped_fraction": "neither within the cap; raise --max-sweeps",
    "marginal_fraction": "stable as simulated, but not in float64 (rounding, or a tie)",
    "sweeps_median": "sweeps to the fixed point (none: none reached)",
    "min_margin": "least s h over all fixed points (none: none reached)",
    "device": "where it ran",
    "wall_time": "seconds",
}


def relax_command(
    n: io.SizeOption = None,
    layers: io.LayersOption = "1",
    jd: io.JdOption = None,
    lam: io.LamOption = None,
    lam_left: io.LamLeftOption = None,
    lam_right: io.LamRightOption = None,
    rho: Annotated[str, _option("--rho", "DENSITY", "Density of the couplings.")] = "1",
    symmetric: Annotated[
        bool, typer.Option("--symmetric", help="Symmetric couplings (J + J^T)/sqrt(2).")
    ] = False,
    update: Annotated[
        str, _option("--update", "ORDER", "synchronous, or sequential (layer after layer).")
    ] = "synchronous",
    p: Annotated[str, _option("--p", "PROBABILITY", "Chance of a neuron to be updated.")] = "1",
    samples: Annotated[str, _option("--samples", "COUNT", "Disorder samples.")] = "100",
    starts: Annotated[str, _option("--starts", "COUNT", "Random starts a sample.")] = "1",
    max_sweeps: Annotated[str, _option("--max-sweeps", "COUNT", "The cap.")] = "1000",
    seed: SeedOption = "0",
    dtype: DtypeOption = "float32",
    device: DeviceOption = "auto",
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Run the dynamics from random starts until fixed points, cycles, or the cap.

    Example: rmsim relax --n 1000 --jd .8 --samples 100 --seed 0 --json
    """
    import time

    from rmsim.cli.report import SimulationReport
    from rmsim.device import choose_device, choose_dtype
    from rmsim.dynamics.ensemble import relax_samples
    from rmsim.dynamics.relax import checked_p
    from rmsim.dynamics.step import checked_update
    from rmsim.dynamics.summary import summary
    from rmsim.network import Network
    from rmsim.randomness import checked_seed
    from rmtheory.cli.progress import counting

    started = time.perf_counter()
    if n is None:
        raise InvalidInputError("n", "nothing", "given (--n NEURONS)")
    chain = io.make_chain(layers, jd, lam, lam_left, lam_right)
    density = float(checks.exact_real("rho", rho))
    network = Network(checks.integer("n", n, 2), chain, density, symmetric)
    settings: dict[str, Any] = {
        "starts": checks.integer("starts", starts, 1),
        "update": checked_update(update),
        "p": checked_p(p),
        "max_sweeps": checks.integer("max_sweeps", max_sweeps, 1),
    }
    count = checks.integer("samples", samples, 1)
    where, kind = choose_device(device), choose_dtype(dtype)
    with counting("samples", count) as progress:
        result = relax_samples(
            network,
            count,
            checked_seed(seed),
            dtype=kind,
            device=where,
            progress=progress,
            **settings,
        )
    document: dict[str, object] = {
        "parameters": network.parameters() | {"samples": count} | settings,
        **summary(result),
        "seed": result.seed,
        "device": result.device,
        "dtype": str(kind).removeprefix("torch."),
        "wall_time": time.perf_counter() - started,
    }
    each = result.status.shape[1]
    starts = "" if each == 1 else f" with {each} starts each, errors over samples"
    title = f"Dynamics of {chain} with N = {network.n}, {counted(count, 'sample')}{starts}"
    SimulationReport(title, document, _MEANING).show(json, out)
