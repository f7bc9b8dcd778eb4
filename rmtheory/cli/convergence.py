"""``rmtheory convergence-bound``: the J_D beyond which the dynamics stops at once."""

from __future__ import annotations

from typing import Annotated

import typer

from rmtheory import checks
from rmtheory.chain import decimal_string
from rmtheory.cli import output as io
from rmtheory.errors import InvalidInputError


def convergence_bound(
    n: io.SizeOption = None,
    failure: Annotated[
        str | None, typer.Option("--failure", help="Wanted probability that some field exceeds.")
    ] = None,
    digits: io.DigitsOption = "15",
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Give the bound J_D = sqrt(2 ln N), the probability behind it, and the J_D for a wanted one.

    Example: rmtheory convergence-bound --n 1000 --failure .01
    """
    from rmtheory import convergence as theory

    if n is None:
        raise InvalidInputError("n", "nothing", "given (--n NEURONS)")
    wanted = checks.integer("digits", digits, 1, checks.MAX_DIGITS)
    bound = theory.convergence_bound(checks.integer("n", n, 2), wanted)
    parameters: dict[str, object] = {"n": bound.n}
    quantities: dict[str, io.Quantity] = {
        "jd": bound.jd,
        "union_bound": bound.union_bound,
        "exceedance_probability": bound.exceedance,
        "flip_probability": bound.flip,
    }
    if failure is not None:
        parameters["failure"] = decimal_string(checks.probability("failure", failure))
        quantities["jd_for_failure"] = theory.jd_for_failure(bound.n, failure, wanted)
    io.Report(
        f"Convergence bound at N = {bound.n}",
        parameters,
        quantities,
        {
            "jd": "sqrt(2 ln N), the paper's bound",
            "union_bound": "2 N exp(-J_D^2/2) there",
            "exceedance_probability": "that some |h| exceeds it, independent fields",
            "flip_probability": "that some neuron flips, s h < -J_D",
            "jd_for_failure": f"J_D at which the exceedance probability is {failure}",
        },
    ).show(json, out)
