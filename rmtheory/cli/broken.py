"""The option ``--q0`` of ``rmtheory local-entropy`` and ``rmtheory ystar``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmtheory.cli import output as io
from rmtheory.errors import InvalidInputError
from rmtheory.estimate import Estimate, Tier

if TYPE_CHECKING:
    from rmtheory.local_entropy.broken_results import BrokenPoint

Q0Option = Annotated[
    bool, typer.Option("--q0", help="Allow an overlap q0 between clusters (one layer).")
]

_MEANING = {
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
}


def refuse_digits(digits: str | None) -> None:
    """With --q0 the number of digits is not chosen."""
    if digits is not None:
        raise InvalidInputError("digits", digits, "left out with --q0, which gives ten or so")


def report(title: str, parameters: dict[str, Any], point: BrokenPoint, at_ystar: bool) -> io.Report:
    """Return the quantities of a point, those of y* or those at given y."""
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
    return io.Report(title, parameters, quantities, _MEANING)
