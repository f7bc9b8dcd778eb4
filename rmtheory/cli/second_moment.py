"""``rmtheory second-moment``: how far the number of fixed points fluctuates."""

from __future__ import annotations

from typing import Annotated

import typer

from rmtheory import checks
from rmtheory.cli import output as io
from rmtheory.errors import OutsideValidityError


def second_moment(
    layers: io.LayersOption = "1",
    jd: io.JdOption = None,
    lam: io.LamOption = None,
    lam_left: io.LamLeftOption = None,
    lam_right: io.LamRightOption = None,
    n: io.SizeOption = None,
    digits: Annotated[
        str | None,
        typer.Option("--digits", metavar="COUNT", help="Significant digits wanted (default 15)."),
    ] = None,
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Ratio E[Z^2]/E[Z]^2 of the number Z of fixed points: its limit, and with --n the exact value.

    Example: rmtheory second-moment --layers 2 --jd .1 --lam .5 --n 20 --json
    """
    from rmtheory.second_moment import finite_ratio, ratio_limit

    chain = io.make_chain(layers, jd, lam, lam_left, lam_right)
    wanted = None if digits is None else checks.integer("digits", digits, 1, checks.MAX_DIGITS)
    parameters: dict[str, object] = dict(chain.parameters())
    quantities: dict[str, io.Quantity] = {}
    meaning = {"ratio_limit": "E[Z^2]/E[Z]^2 for N -> infinity (1 would mean self-averaging)"}
    try:
        quantities["ratio_limit"] = ratio_limit(chain, wanted or 15)
    except OutsideValidityError as problem:
        if n is None:
            raise
        # The exact ratio at finite N exists even where it has no limit.
        quantities["ratio_limit"] = None
        meaning["ratio_limit"] = str(problem)
    if n is not None:
        size = checks.integer("n", n, 2)
        parameters["n"] = size
        # The core module is cheap to many digits; chains are summed in double precision.
        exact = wanted or 15 if chain.layers == 1 else wanted
        quantities["ratio"] = finite_ratio(chain, size, exact)
        meaning["ratio"] = f"E[Z^2]/E[Z]^2 at N = {n}"
    io.Report(
        f"Second moment of the number of fixed points of {chain}",
        parameters,
        quantities,
        meaning,
    ).show(json, out)
