"""``rmtheory stability``: is the replica-symmetric saddle q = 0 stable?"""

from __future__ import annotations

from typing import Annotated

import typer

from rmtheory import checks
from rmtheory.cli import output as io
from rmtheory.errors import InvalidInputError
from rmtheory.estimate import Estimate, Tier


def stability(
    layers: io.LayersOption = "1",
    jd: io.JdOption = None,
    lam: io.LamOption = None,
    lam_left: io.LamLeftOption = None,
    lam_right: io.LamRightOption = None,
    root: Annotated[
        bool, typer.Option("--root", help="The J_D where the core module loses stability.")
    ] = False,
    search: Annotated[
        bool, typer.Option("--search", help="Look for other saddle points too (L = 1, 2).")
    ] = False,
    digits: io.DigitsOption = "15",
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Stability of the replica-symmetric saddle q = 0: eigenvalues of M, any number of layers.

    Example: rmtheory stability --layers 2 --jd .1 --lam .5 --json
    """
    from rmtheory.replica import stability as theory

    wanted = checks.integer("digits", digits, 1, checks.MAX_DIGITS)
    if root:
        given = {"jd": jd, "lam": lam, "lam_left": lam_left, "lam_right": lam_right}
        for name, text in given.items():
            if text is not None:
                raise InvalidInputError(name, text, "absent with --root, which finds J_D")
        if checks.layers(layers) != 1:
            raise InvalidInputError("layers", layers, "1 with --root")
        io.Report(
            "Loss of stability of the core module",
            {"layers": 1},
            {"root": theory.instability_root(wanted)},
            {"root": "J_D below which q = 0 is unstable, L = 1"},
        ).show(json, out)
        return
    chain = io.make_chain(layers, jd, lam, lam_left, lam_right)
    result = theory.stability(chain, wanted)
    quantities: dict[str, io.Quantity] = {
        "eigenvalues": list(result.eigenvalues),
        "stable": result.stable,
    }
    if chain.layers <= 2:
        quantities["coefficient"] = result.coefficient
    if search:
        from rmtheory.replica.search import search_saddles

        found = search_saddles(chain)
        quantities["other_saddles"] = len(found.saddles)
        # The residual R(q) of a saddle vanishes with a slope of order 0.1: 100 R bounds the error.
        quantities["saddle_overlaps"] = [
            Estimate(
                q, 100 * saddle.residual + 1e-9, Tier.ESTIMATED, "root of the saddle equations"
            )
            for saddle in found.saddles
            for q in saddle.q
        ]
        quantities["searched"] = found.region
    io.Report(
        f"Stability of q = 0 for {chain}",
        dict(chain.parameters()),
        quantities,
        {
            "other_saddles": "replica-symmetric saddle points with q > 0 found",
            "saddle_overlaps": "their overlaps q",
            "eigenvalues": "of M: L S_rs = log z + q.M.q/4",
            "stable": "all eigenvalues positive",
            "coefficient": "of q^2 at equal q in all layers, per neuron (the paper's A/B)",
        },
    ).show(json, out)
