"""``rmtheory local-entropy`` and ``rmtheory ystar``: one point of the local-entropy theory."""

from __future__ import annotations

from typing import Annotated

import typer

from rmtheory import checks
from rmtheory.chain import decimal_string
from rmtheory.cli import output as io
from rmtheory.cli.broken import Q0Option, refuse_digits
from rmtheory.cli.broken import report as broken_report
from rmtheory.errors import InvalidInputError

DistanceOption = Annotated[
    str | None, typer.Option("--d", metavar="NUMBER", help="Distance, between 0 and 1/2.")
]
#: A hundred digits take half a minute.
MOST_DIGITS = 100

WantedDigits = Annotated[
    str | None,
    typer.Option("--digits", metavar="COUNT", help="Digits wanted: any for L = 1, 12 beyond."),
]

_MEANING = {
    "phi": "free entropy, -Phi of the paper, per neuron",
    "internal": "internal entropy S_I per neuron",
    "external": "external entropy S_E per neuron",
    "qhat": "conjugate overlap of each layer",
    "q0_stability": "M0: the saddle q0 = 0 is stable where it is positive",
    "y_star": "largest y with S_E >= 0",
    "slope": "dS_I*/dd per neuron; its sign decides monotonicity",
    "residual": "largest residual of the equations solved",
}


def local_entropy(
    layers: io.LayersOption = "1",
    jd: io.JdOption = None,
    lam: io.LamOption = None,
    lam_left: io.LamLeftOption = None,
    lam_right: io.LamRightOption = None,
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
    from rmtheory.local_entropy.results import local_entropy as evaluate

    chain = io.make_chain(layers, jd, lam, lam_left, lam_right)
    if method not in ("integral", "replicated"):
        raise InvalidInputError("method", method, "integral or replicated")
    if q0:
        from rmtheory.local_entropy.broken_results import broken_entropy

        if method != "integral":
            raise InvalidInputError("method", method, "integral with --q0")

        refuse_digits(digits)
        broken = broken_entropy(chain, required("d", d), required("y", y))
        parameters = {**chain.parameters(), "d": _exact("d", d), "y": _exact("y", y)}
        title = f"Local entropy of {chain} at d = {d}, y = {y}, with q0"
        broken_report(title, parameters, broken, at_ystar=False).show(json, out)
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


def ystar(
    layers: io.LayersOption = "1",
    jd: io.JdOption = None,
    lam: io.LamOption = None,
    lam_left: io.LamLeftOption = None,
    lam_right: io.LamRightOption = None,
    d: DistanceOption = None,
    digits: WantedDigits = None,
    q0: Q0Option = False,
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Find y*(d), where the external entropy vanishes, and S_I* there.

    Example: rmtheory ystar --layers 1 --jd .1 --d .1 --json
    """
    from rmtheory.estimate import Estimate, Tier
    from rmtheory.local_entropy.results import ystar as solve

    chain = io.make_chain(layers, jd, lam, lam_left, lam_right)
    if q0:
        from rmtheory.local_entropy.broken_results import broken_ystar

        refuse_digits(digits)
        broken = broken_ystar(chain, required("d", d))
        parameters = {**chain.parameters(), "d": _exact("d", d)}
        title = f"y* of {chain} at d = {d}, with q0"
        broken_report(title, parameters, broken, at_ystar=True).show(json, out)
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
    io.Report(f"y* of {chain} at d = {d}", parameters, quantities, _MEANING).show(json, out)


def required(argument: str, text: str | None) -> str:
    """Return an option that must be given."""
    if text is None:
        raise InvalidInputError(argument, "nothing", f"given (--{argument.replace('_', '-')} ...)")
    return text


def wanted_digits(text: str | None) -> int | None:
    """Return the number of digits asked for, if any."""
    return None if text is None else checks.integer("digits", text, 1, MOST_DIGITS)


def _exact(argument: str, text: str | None) -> str:
    return decimal_string(checks.exact_real(argument, text))
