"""``rmtheory local-entropy`` and ``rmtheory ystar``: one point of the local-entropy theory.

With ``--q0`` an overlap between clusters is allowed (one layer).

``rmtheory curve``: a whole curve y*(d), S_I*(d), as a netCDF file and a picture.

``rmtheory critical`` and ``rmtheory phase-diagram``: boundaries of the manifold and of the gap. A
critical coupling is a bracket with opposite verdicts at its ends; a phase diagram has both
boundaries in the plane (J_D, lambda), resumable.

``rmtheory explore``: all of these behind sliders in one page, or their grids computed anew.
"""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmtheory.base import checks
from rmtheory.base.chain import Chain, decimal_string
from rmtheory.base.errors import InvalidInputError, NotConvergedError, counted
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.runtime import report as io
from rmtheory.runtime.command import (
    bundled,
    check_data,
    check_earlier,
    check_picture,
    if_interrupted,
)
from rmtheory.runtime.progress import counting

if TYPE_CHECKING:
    from rmtheory.local_entropies.broken_branch import BrokenPoint


import math
from typing import Literal

DistanceOption = Annotated[
    str | None, typer.Option("--d", metavar="NUMBER", help="Distance, between 0 and 1/2.")
]

#: A hundred digits take half a minute.
MOST_DIGITS = 100

WantedDigits = Annotated[
    str | None,
    typer.Option("--digits", metavar="COUNT", help="Digits wanted: any for L = 1, 12 beyond."),
]

Q0Option = Annotated[
    bool, typer.Option("--q0", help="Allow an overlap q0 between clusters (one layer).")
]

_MEANING = {
    "phi": "free entropy, -Phi of the paper, per neuron",
    "internal": "internal entropy S_I per neuron",
    "external": "external entropy S_E per neuron",
    "qhat": "conjugate overlap of each layer",
    "q0_stability": "M0: the saddle q0 = 0 is stable where it is positive",
    "y_star": "largest y with S_E >= 0",
    "slope": "dS_I*/dd per neuron; its sign decides monotonicity",
    "y_star_above": "lower bound of y*: S_E > 0 there, and S_I* is known all the same",
    "qhat_below": "conjugate overlaps there, upper bounds of those at y*",
    "residual": "largest residual of the equations solved",
}

_MEANING_BROKEN = {
    "phi": "free entropy, -Phi of the paper, per neuron",
    "internal": "internal entropy S_I per neuron",
    "external": "external entropy S_E per neuron",
    "y_star": "y with S_E = 0",
    "slope": "dS_I*/dd per neuron; its sign decides monotonicity",
    "qhat": "conjugate overlap inside a cluster",
    "q0": "overlap between clusters",
    "qhat0": "its conjugate",
    "change": "phi, or S_I* at y*, minus that of q0 = 0",
    "residual": "largest residual of the equations solved",
    "q0_stability": "M0: the saddle q0 = 0 is stable where it is positive",
    "replicon": "this saddle is unstable against further breaking where it is negative",
}


@bundled
def local_entropy(
    *,
    model: io.ChainOptions,
    d: DistanceOption = None,
    y: Annotated[
        str | None, typer.Option("--y", metavar="NUMBER", help="Number of replicas, y > 0.")
    ] = None,
    digits: WantedDigits = None,
    q0: Q0Option = False,
    method: Annotated[
        str,
        typer.Option("--method", metavar="NAME", help="integral, or replicated at integer y."),
    ] = "integral",
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Free, internal and external entropy at distance d and given y, any number of layers.

    Example: rmtheory local-entropy --layers 1 --jd .1 --d .1 --y 3 --json
    """
    from rmtheory.local_entropies.points import local_entropy as evaluate

    chain = model.chain()
    if method not in ("integral", "replicated"):
        raise InvalidInputError("method", method, "integral or replicated")
    if q0:
        from rmtheory.local_entropies.broken_branch import broken_entropy

        if method != "integral":
            raise InvalidInputError("method", method, "integral with --q0")

        _refuse_digits(digits)
        broken = broken_entropy(chain, required("d", d), required("y", y))
        parameters = {**chain.parameters(), "d": _exact("d", d), "y": _exact("y", y)}
        title = f"Local entropy of {chain} at d = {d}, y = {y}, with q0"
        _report(title, parameters, broken, at_ystar=False).show(json, out)
        return
    point = evaluate(
        chain,
        required("d", d),
        required("y", y),
        wanted_digits(digits),
        method="replicated" if method == "replicated" else "integral",
    )
    quantities: dict[str, io.Quantity] = {
        "phi": point.phi,
        "internal": point.internal,
        "external": point.external,
        "qhat": list(point.qhat),
    }
    if point.q0_stability is not None:
        quantities["q0_stability"] = point.q0_stability
    parameters = {**chain.parameters(), "d": _exact("d", d), "y": _exact("y", y)}
    title = f"Local entropy of {chain} at d = {d}, y = {y}"
    io.Report(title, parameters, quantities, _MEANING).show(json, out)


@bundled
def ystar(
    *,
    model: io.ChainOptions,
    d: DistanceOption = None,
    digits: WantedDigits = None,
    q0: Q0Option = False,
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Solve for y*(d), where the external entropy vanishes, and S_I* there.

    Example: rmtheory ystar --layers 1 --jd .1 --d .1 --json
    """
    from rmtheory.local_entropies.points import ystar as solve

    chain = model.chain()
    if q0:
        from rmtheory.local_entropies.broken_branch import broken_ystar

        _refuse_digits(digits)
        broken = broken_ystar(chain, required("d", d))
        parameters = {**chain.parameters(), "d": _exact("d", d)}
        title = f"y* of {chain} at d = {d}, with q0"
        _report(title, parameters, broken, at_ystar=True).show(json, out)
        return
    point = solve(chain, required("d", d), wanted_digits(digits))
    residual = Estimate(
        point.residual, point.residual, Tier.ESTIMATED, "largest residual; it should be 0"
    )
    quantities: dict[str, io.Quantity] = {
        "y_star": point.y_star,
        "internal": point.internal,
        "slope": point.slope,
        "qhat": list(point.qhat),
        "residual": residual,
    }
    if point.q0_stability is not None:
        quantities["q0_stability"] = point.q0_stability
    parameters = {**chain.parameters(), "d": _exact("d", d)}
    if point.y_star_is_bound:
        # Not y* with an error: only its size is known.
        bounds = {"y_star_above": f"{float(point.y_star):.6g}"}
        bounds["qhat_below"] = ", ".join(f"{float(q):.6g}" for q in point.qhat)
        kept = {name: value for name, value in quantities.items() if name not in ("y_star", "qhat")}
        quantities = {**bounds, **kept}
    io.Report(f"y* of {chain} at d = {d}", parameters, quantities, _MEANING).show(json, out)


def required(argument: str, text: str | None) -> str:
    """Return an option that must be given."""
    if text is None:
        raise InvalidInputError(argument, "nothing", f"given (--{argument.replace('_', '-')} ...)")
    return text


def wanted_digits(text: str | None) -> int | None:
    """Return the number of digits wanted, None if not given."""
    return None if text is None else checks.integer("digits", text, 1, MOST_DIGITS)


def _exact(argument: str, text: str | None) -> str:
    return decimal_string(checks.exact_real(argument, text))


def _refuse_digits(digits: str | None) -> None:
    """Refuse --digits with --q0, where the number of digits cannot be chosen."""
    if digits is not None:
        raise InvalidInputError("digits", digits, "left out with --q0, which gives about ten")


def _report(
    title: str, parameters: dict[str, Any], point: BrokenPoint, at_ystar: bool
) -> io.Report:
    """Return the report of a point with --q0, at y* or at given y."""
    quantities: dict[str, io.Quantity] = {}
    if at_ystar:
        quantities |= {"y_star": point.y, "internal": point.internal, "slope": point.slope}
    else:
        quantities |= {"phi": point.phi, "internal": point.internal, "external": point.external}
    quantities |= {
        "qhat": [point.qhat1],
        "q0": point.q0,
        "qhat0": point.qhat0,
        "change": point.change,
    }
    if point.residual is not None:
        quantities["residual"] = Estimate(
            point.residual, point.residual, Tier.ESTIMATED, "largest residual; it should be 0"
        )
    quantities["q0_stability"] = point.q0_stability
    quantities["replicon"] = point.replicon
    return io.Report(title, parameters, quantities, _MEANING_BROKEN)


def _label(chain: Chain) -> str:
    """Return the chain as part of the name of a file."""
    left, right = (f"{float(lam):g}" for lam in (chain.lam_left, chain.lam_right))
    lam = "" if chain.layers == 1 else f"_lam{left}" if left == right else f"_lam{left},{right}"
    return f"L{chain.layers}_jd{float(chain.jd):g}{lam}"


@bundled
def curve(
    *,
    model: io.ChainOptions,
    d_min: Annotated[
        str, typer.Option("--d-min", metavar="NUMBER", help="Least distance.")
    ] = "1e-3",
    d_max: Annotated[
        str, typer.Option("--d-max", metavar="NUMBER", help="Largest distance, below 1/2.")
    ] = "0.45",
    points: Annotated[
        str, typer.Option("--points", metavar="COUNT", help="Number of distances.")
    ] = "40",
    d: Annotated[
        str | None,
        typer.Option("--d", metavar="LOW:HIGH:COUNT", help="The three options above in one."),
    ] = None,
    out: io.DataOption = None,
    plot: io.PictureOption = None,
) -> None:
    """Follow y*(d) from d-max to d-min, geometrically spaced, and store it with its errors.

    OUT is named after the chain by default, as curve_L2_jd0_lam0.45.nc. Finished points are kept in
    the folder OUT.parts until all are done: the same command resumes. If OUT already holds this
    curve, it is only drawn. Where the continuation is lost, the points before are stored all the
    same.

    Example: rmtheory curve --layers 2 --jd 0 --lam .45 --points 12 --out curve.nc --plot curve.png
    """
    from rmtheory.local_entropies.curves import (
        CurveRequest,
        CurveStoppedError,
        curve_store,
        finished_points,
        stored_curve,
    )
    from rmtheory.local_entropies.points import distance

    chain = model.chain()
    if d is not None:
        d_min, d_max, points = _range(d)
    low, high = float(distance(d_min, "d_min")), float(distance(d_max, "d_max"))
    count = checks.integer("points", points, 2, 10_000)
    if low >= high:
        raise InvalidInputError("d_min", d_min, f"below d_max = {d_max}")
    target = Path(f"curve_{_label(chain)}.nc") if out is None else Path(out)
    check_picture(plot, target)
    check_data(target)
    request = CurveRequest(chain, low, high, count)
    with (
        if_interrupted(
            lambda: curve_store(target).kept(
                f"{len(finished_points(request, target))} of {count} points"
            )
        ),
        counting(f"{chain}", count, None) as progress,
    ):
        try:
            result = stored_curve(request, target, progress=progress, note=_say)
        except CurveStoppedError as stopped:
            kept = f"{counted(stopped.solved.sizes['d'], 'point')} of {count} are in {target}"
            raise NotConvergedError(f"{stopped}; {kept}") from stopped
    data = result.data
    if not result.computed:
        _say(f"{target} holds this curve already, nothing is computed")
    if plot is not None:
        from rmtheory.plots import plot_curve

        plot_curve(data, chain, plot)
    typer.echo(f"{count} points of {chain} in {target}" + (f" and {plot}" if plot else ""))
    if "q0_stability" in data:
        from rmtheory.local_entropies.broken_branch import q0_loss_along

        lost = q0_loss_along(chain, data)
        where = "none on this curve" if lost is None else str(lost)
        typer.echo(f"distance at which the saddle q0 = 0 loses its stability: {where}")


def _range(text: str) -> tuple[str, str, str]:
    """Return LOW, HIGH and COUNT."""
    parts = text.split(":")
    if len(parts) != 3:
        raise InvalidInputError("d", text, "LOW:HIGH:COUNT, as .0001:.45:40")
    low, high, count = parts
    return low, high, count


def _say(sentence: str) -> None:
    typer.echo(f"rmtheory: {sentence}", err=True)


# Boundaries: a critical coupling, a phase diagram.


def critical(
    layers: io.LayersOption = "1",
    jd: Annotated[
        str | None, typer.Option("--jd", metavar="NUMBER", help="Given: solve for lambda (L >= 2).")
    ] = None,
    lam: Annotated[
        str | None, typer.Option("--lam", metavar="NUMBER", help="Given: solve for J_D (L >= 2).")
    ] = None,
    gap: Annotated[
        bool, typer.Option("--gap", help="The lower threshold, where min S_I* turns negative.")
    ] = False,
    width: Annotated[
        str | None,
        typer.Option("--width", metavar="NUMBER", help="Width of the bracket (1e-9; 1e-5; 1e-4)."),
    ] = None,
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Bracket a critical coupling: opposite verdicts at the two ends.

    For one layer J_Dc; for more layers lambda_c at given --jd, or J_Dc at given --lam.

    Example: rmtheory critical --layers 1 --json
    """
    from rmtheory.local_entropies.thresholds import critical_coupling

    count = checks.layers(layers)
    if count == 1 and (jd is not None or lam is not None):
        raise InvalidInputError(
            "jd" if jd is not None else "lam", jd or lam, "absent for one layer"
        )
    if count > 1 and (jd is None) == (lam is None):
        which = "both" if jd is not None else "neither"
        raise InvalidInputError(
            "jd and lam", which, "one given and one sought for two layers or more"
        )
    coupling: Literal["jd", "lam"] = "lam" if jd is not None else "jd"
    given = {"jd": _number("jd", jd), "lam": _number("lam", lam)}
    threshold = critical_coupling(
        count,
        coupling,
        jd=given["jd"],
        lam=given["lam"],
        kind="gap" if gap else "rm",
        width=_number("width", width),
    )
    quantities: dict[str, io.Quantity] = {
        f"{coupling}_low": _decimal(threshold.low),
        f"{coupling}_high": _decimal(threshold.high),
        "d": threshold.d,
        "y_star": threshold.y_star,
        "internal": threshold.internal,
        "minimum_low": threshold.at_low,
        "minimum_high": threshold.at_high,
    }
    d_max = ""
    if threshold.judged is not None:
        quantities["verdict_low"], quantities["verdict_high"] = threshold.verdicts
        upper = threshold.judged[1]
        quantities["verdict_join"] = upper.join
        d_max = f"{upper.d_max:g}"
    name = "the gap" if gap else "the representation manifold"
    io.Report(
        f"Threshold of {name}, {counted(count, 'layer')}",
        {
            "layers": str(count) if count == math.inf else int(count),
            "gap": gap,
            **{k: repr(v) for k, v in given.items() if v is not None},
        },
        quantities,
        {
            f"{coupling}_low": "lower end of the bracket",
            f"{coupling}_high": "upper end of the bracket",
            "d": "distance of the touching point",
            "y_star": "y* there",
            "internal": "S_I* there, per neuron",
            "minimum_low": "least " + ("S_I*" if gap else "slope") + " over d at the lower end",
            "minimum_high": "and at the upper end",
            "verdict_low": f"S_I*(d) on 0 < d <= {d_max} at the lower end",
            "verdict_high": "and at the upper end",
            "verdict_join": "where the limit d -> 0 takes over",
        },
    ).show(json, out)


def _number(name: str, text: str | None) -> float | None:
    return None if text is None else float(checks.exact_real(name, text))


def _decimal(x: float) -> str:
    return f"{x:.11f}"


def phase_diagram(
    layers: Annotated[
        str,
        typer.Option(
            "--layers", "-L", metavar="L", help="Number of core modules: 2, 3, ... or inf."
        ),
    ] = "2",
    out: io.DataOption = None,
    plot: io.PictureOption = None,
    points: Annotated[
        str, typer.Option("--points", metavar="COUNT", help="Points on each boundary.")
    ] = "25",
    width: Annotated[
        str, typer.Option("--width", metavar="NUMBER", help="Relative width of the brackets.")
    ] = "1e-4",
    jobs: Annotated[str, typer.Option("--jobs", metavar="COUNT", help="Processes.")] = "1",
) -> None:
    """Compute the boundaries of the representation manifold and of the gap, two layers or more.

    Finished points are kept in the folder OUT.parts until all are done: the same command resumes.
    If OUT already holds this diagram, it is only drawn.

    Example: rmtheory phase-diagram --layers 2 --out pd.nc --plot pd.png --jobs 2
    """
    from rmtheory.local_entropies.boundaries import KINDS
    from rmtheory.local_entropies.diagram import (
        Request,
        finished,
        stored_phase_diagram,
    )
    from rmtheory.runtime.run_store import RunStore, parts_of

    depth = checks.layers(layers)
    if depth < 2:
        raise InvalidInputError("layers", layers, "an integer >= 2 or inf for the phase diagram")
    target = Path(required("out", None if out is None else str(out)))
    check_picture(plot, target)
    check_data(target)
    request = Request(
        checks.integer("points", points, 3, 1000),
        float(checks.exact_real("width", width)),
        depth,
    )
    workers = checks.integer("jobs", jobs, 1, 256)
    total, parts = len(KINDS) * request.points, parts_of(target)
    with (
        if_interrupted(
            lambda: RunStore(parts).kept(f"{finished(request, parts)} of {total} points")
        ),
        counting("phase diagram", total, None) as count,
    ):
        diagram = stored_phase_diagram(request, target, jobs=workers, progress=count, note=_say)
    if not diagram.computed:
        _say(f"{target} holds this diagram already, nothing is computed")
    if plot is not None:
        from rmtheory.plots import plot_phase_diagram

        plot_phase_diagram(diagram.data, depth, plot)
    typer.echo(
        f"{request.points} points per boundary in {target}" + (f" and {plot}" if plot else "")
    )


def explore(
    layers: Annotated[
        str | None,
        typer.Option("--layers", "-L", metavar="L", help="Depth to begin with: 1, 2, 3 or inf."),
    ] = None,
    jd: io.JdOption = None,
    lam: io.LamOption = None,
    d: Annotated[str | None, typer.Option("--d", metavar="NUMBER", help="Distance.")] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Where the page goes; a temporary file."),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
    compute: Annotated[
        Path | None,
        typer.Option(
            "--compute", metavar="DIR", help="Compute the grids anew; finished parts stay in DIR."
        ),
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option(
            "--tables",
            metavar="FILE",
            help="With --compute: boundaries, freezing points, thresholds; those of the package.",
        ),
    ] = None,
    grids: Annotated[
        Path | None,
        typer.Option("--grids", metavar="FILE", help="With --compute: write the grids here."),
    ] = None,
    jobs: Annotated[str, typer.Option("--jobs", metavar="COUNT", help="Processes.")] = "1",
) -> None:
    """Open the explorer: S_I*(d), y*(d), f(t) and phase diagrams behind sliders, in one page.

    The page needs neither a server nor a network. With --compute its grids are recomputed,
    about twenty CPU-minutes; a run that was killed resumes.

    Example: rmtheory explore --layers 2 --jd .3 --lam .4
    """
    import tempfile

    from rmtheory.explorer import grids as grid_files
    from rmtheory.explorer.grids import address, write_page

    workers = checks.integer("jobs", jobs, 1, 256)
    for name, value in (("tables", tables), ("grids", grids)):
        if value is not None and compute is None:
            raise InvalidInputError(name, str(value), "an option of --compute alone")
    depth = None if layers is None else checks.layers(layers)
    numbers = {
        name: None if typed is None else float(checks.exact_real(name, typed))
        for name, typed in (("jd", jd), ("lam", lam), ("d", d))
    }
    target = Path(tempfile.gettempdir(), "rmtheory-explorer.html") if out is None else out
    if target.suffix.lower() != ".html":
        raise InvalidInputError("out", str(target), "a file ending in .html")
    check_earlier("out", target, (b"<title>Explorer of the representation manifold",), "page")
    place = address(target, layers=depth, **numbers)
    document = None
    if compute is not None:
        total = grid_files.total_parts()
        with (
            if_interrupted(
                lambda: f"finished parts are kept in {compute}; the same command resumes"
            ),
            counting("grids", total, None) as count,
        ):
            grid_files.compute(compute, jobs=workers, on_part=count)
        document = grid_files.gather(compute, grid_files.read_tables(tables))
        if grids is not None:
            grid_files.write_grids(document, grids)
    write_page(target, document)
    if browser:
        webbrowser.open(place)
    typer.echo(place)
