"""``rmtheory curve``: a whole curve y*(d), S_I*(d), as a netCDF file and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.base.wording import counted
from rmtheory.cli.points import required
from rmtheory.runtime import report as io
from rmtheory.runtime.command import bundled, check_folder, check_picture, if_interrupted
from rmtheory.runtime.progress import counting


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

    Finished points are kept in the folder OUT.parts until all are done: run again, it goes on.
    If OUT already holds this curve, it is only drawn. Where the continuation is lost, the points
    before are stored all the same.

    Example: rmtheory curve --layers 2 --jd 0 --lam .45 --points 12 --out curve.nc --plot curve.png
    """
    from rmtheory.local_entropies.curves import CurveStoppedError
    from rmtheory.local_entropies.points import distance
    from rmtheory.local_entropies.stored_curves import (
        CurveRequest,
        curve_store,
        finished_points,
        stored_curve,
    )

    chain = model.chain()
    if d is not None:
        d_min, d_max, points = _range(d)
    low, high = float(distance(d_min, "d_min")), float(distance(d_max, "d_max"))
    count = checks.integer("points", points, 2, 10_000)
    if low >= high:
        raise InvalidInputError("d_min", d_min, f"below d_max = {d_max}")
    target = Path(required("out", None if out is None else str(out)))
    check_folder("out", target)
    check_picture(plot, target)
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
            result = stored_curve(request, target, on_begin=progress, on_point=progress, note=_say)
        except CurveStoppedError as stopped:
            kept = f"{counted(stopped.solved.sizes['d'], 'point')} of {count} are in {target}"
            raise NotConvergedError(f"{stopped}; {kept}") from stopped
    data = result.data
    if not result.computed:
        _say(f"{target} holds this curve already, nothing is computed")
    lost = _q0_lost(chain, data)
    if plot is not None:
        from rmtheory.plots import plot_curve

        plot_curve(data, chain, plot)
    typer.echo(f"{count} points of {chain} in {target}" + (f" and {plot}" if plot else ""))
    if "q0_stability" in data:
        typer.echo(f"distance at which the saddle q0 = 0 loses its stability: {lost}")


def _range(text: str) -> tuple[str, str, str]:
    """Return LOW, HIGH and COUNT."""
    parts = text.split(":")
    if len(parts) != 3:
        raise InvalidInputError("d", text, "LOW:HIGH:COUNT, as .0001:.45:40")
    low, high, count = parts
    return low, high, count


def _say(sentence: str) -> None:
    typer.echo(f"rmtheory: {sentence}", err=True)


def _q0_lost(chain: Chain, data: Any) -> str:
    """The distance along the curve where q0 = 0 becomes unstable, as text."""
    if "q0_stability" not in data:
        return "not computed for more than two layers"
    if chain.layers != 1:
        # The first change of sign between neighbouring points; they are not refined.
        # Where M0 was not computed it says nothing.
        part = data.dropna("d", subset=["q0_stability"])
        d, positive = part["d"].values, part["q0_stability"].values > 0
        lost = [k for k in range(len(d) - 1) if positive[k] and not positive[k + 1]]
        return (
            f"between {d[lost[0]]:.4g} and {d[lost[0] + 1]:.4g}" if lost else "none on this curve"
        )
    from rmtheory.local_entropies.broken_branch import q0_loss

    try:
        return str(q0_loss(chain.exact.jd))
    except NotConvergedError as problem:
        return f"none ({problem})"
