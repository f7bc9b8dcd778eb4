"""``rmsim thresholds``: where an algorithm begins to find fixed points, for several sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmsim.cli import ranges
from rmsim.cli.options import DrOption, EtaOption, R0Option, bundled
from rmsim.cli.options import option as _option
from rmsim.cli.sweep_options import SweepOptions, results_directory, run_from_command
from rmtheory import checks
from rmtheory.cli import output as io
from rmtheory.errors import InvalidInputError
from rmtheory.wording import counted

if TYPE_CHECKING:
    from rmsim.thresholds import Design

#: Files in the results directory, beside the points of the sweep.
DATA, PICTURE = "thresholds.nc", "thresholds.png"


@bundled
def thresholds_command(
    algorithm: Annotated[
        str, _option("--algorithm", "NAME", "What searches: dynamics, rbp or likelihood.")
    ] = "dynamics",
    n: Annotated[
        str | None, _option("--n", "VALUES", "Neurons a layer: 200,500 or start:stop:count.")
    ] = None,
    layers: Annotated[str, _option("--layers", "L", "Number of core modules.")] = "1",
    jd: Annotated[
        str | None, _option("--jd", "VALUES", "Self-coupling: .4,.5 or start:stop:count.")
    ] = None,
    lam: Annotated[
        str | None,
        _option("--lam", "VALUES", "Coupling to both neighbours; several values sweep over it."),
    ] = None,
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
    samples: Annotated[str, _option("--samples", "COUNT", "Disorder samples a point.")] = "100",
    max_sweeps: Annotated[
        str | None,
        _option(
            "--max-sweeps",
            "COUNT",
            "The cap, on which the threshold depends: 1000 by default, for rbp until r is .95.",
        ),
    ] = None,
    dr: DrOption = None,
    r0: R0Option = None,
    eta: EtaOption = None,
    batch: Annotated[
        str, _option("--batch", "COUNT", "Samples computed as one piece of work.")
    ] = "25",
    plot: Annotated[bool, typer.Option("--plot", help=f"Also draw DIR/{PICTURE}.")] = False,
    *,
    options: SweepOptions,
) -> None:
    """Measure the probability to reach a fixed point, and the coupling at which it is 1/2.

    One of --jd and --lam takes several values. Results are kept in DIR: run again, and only what
    is missing is computed; add sizes, values or samples, and only those are.

    Example: rmsim thresholds --n 200,500,1000 --jd .4:1.0:13 --samples 100 --out DIR --plot
    """
    import time

    from rmsim.cli.thresholds_report import document, print_table
    from rmsim.dynamics.relax import checked_p
    from rmsim.dynamics.step import checked_update
    from rmsim.randomness import checked_seed
    from rmsim.thresholds import analyse, gather, sweep_of, trend_attributes, trends_of
    from rmtheory import store

    started = time.perf_counter()
    options.demand_place()
    design = _design(
        (n, layers, jd, lam, lam_left, lam_right),
        algorithm=algorithm,
        rho=float(checks.exact_real("rho", rho)),
        symmetric=symmetric,
        update=checked_update(update),
        p=checked_p(p),
        samples=checks.integer("samples", samples, 1),
        max_sweeps=None if max_sweeps is None else checks.integer("max_sweeps", max_sweeps, 1),
        **_own_settings(algorithm, {"dr": dr, "r0": r0, "eta": eta}),
        dtype=options.dtype,
        device=options.device,
        batch=checks.integer("batch", batch, 1),
    )
    number = checked_seed(options.seed)
    sweep = sweep_of(design, number)
    folder = results_directory(options.out)
    report = run_from_command(sweep, folder, options.jobs, options.dask)
    raw = gather(folder, sweep)
    data = analyse(raw, design.control, seed=number)
    trends, limit = trends_of(data)
    data = data.assign_attrs(raw.attrs | trend_attributes(trends, limit))
    store.save(data, folder / DATA)
    if plot:
        from rmsim.thresholds.plot import plot_thresholds

        plot_thresholds(data, design.control, _title(design), folder / PICTURE)
    answer = document(design, data, trends, limit) | {
        "points_kept": report.kept,
        "points_computed": report.computed,
        "file": str(folder / DATA),
        "seed": number,
        "device": data.attrs["device"],
        "dtype": options.dtype,
        "wall_time": time.perf_counter() - started,
    }
    if options.json:
        from rmsim.cli.report import SimulationReport

        SimulationReport(_title(design), answer).show(as_json=True, out=None)
    else:
        print_table(_title(design), design, answer)


def _own_settings(algorithm: str, typed: dict[str, str | None]) -> dict[str, float]:
    """Return the settings that were given; refuse those that the algorithm does not have."""
    from rmsim.thresholds.algorithms import OWN_SETTINGS, algorithm_named

    algorithm_named(algorithm)
    own = OWN_SETTINGS.get(algorithm, ())
    given = {name: value for name, value in typed.items() if value is not None}
    for name, value in given.items():
        if name not in own:
            users = " or ".join(user for user, names in OWN_SETTINGS.items() if name in names)
            raise InvalidInputError(name, value, f"left out: only {users} has it, not {algorithm}")
    return {name: float(checks.exact_real(name, value)) for name, value in given.items()}


def _design(typed: tuple[str | None, ...], **settings: Any) -> Design:
    """Build the design from the options as typed; exactly one coupling may have several values."""
    from rmsim.thresholds import Design
    from rmtheory.chain import Chain

    n, layers, jd, lam, lam_left, lam_right = typed
    for name, value in (("n", n), ("jd", jd)):
        if value is None:
            raise InvalidInputError(name, "nothing", f"given (--{name} VALUES)")
    sizes = ranges.integers("n", str(n), 2)
    self_couplings = ranges.numbers("jd", str(jd))
    lams: tuple[float, ...] = () if lam is None else ranges.numbers("lam", lam)
    if len(lams) > 1 and len(self_couplings) > 1:
        raise InvalidInputError("lam", str(lam), "one value if jd has several")
    one_lam = lams[0] if lams else None
    chain = Chain(str(layers), self_couplings[0], one_lam, lam_left=lam_left, lam_right=lam_right)
    common = {"sizes": sizes, "layers": chain.finite_layers, **settings}
    if len(lams) > 1:
        if chain.layers == 1:
            raise InvalidInputError("lam", str(lam), "one value or none for a single layer")
        return Design(control="lam", values=lams, jd=chain.jd, **common)
    return Design(
        control="jd",
        values=self_couplings,
        lam_left=chain.lam_left,
        lam_right=chain.lam_right,
        **common,
    )


def _title(design: Design) -> str:
    names = {
        "dynamics": "the dynamics",
        "rbp": "reinforced BP",
        "likelihood": "likelihood optimisation",
    }
    layers = "one layer" if design.layers == 1 else f"{design.layers} layers"
    masked = f", p = {design.p:g}" if design.p < 1 else ""
    stepped = f", eta = {design.eta:g}" if design.algorithm == "likelihood" else ""
    reinforced = f", r0 = {design.r0:g}, dr = {design.dr:g}" if design.algorithm == "rbp" else ""
    return (
        f"Success of {names[design.algorithm]} within "
        f"{counted(design.cap, design.unit)}: {layers}"
        f"{masked}{reinforced}{stepped}, {counted(design.samples, 'sample')}"
    )
