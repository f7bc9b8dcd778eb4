"""Commands on the number of fixed points.

- ``rmtheory annealed``: the annealed entropy and the exact mean count.
- ``rmtheory second-moment``: the fluctuations of the number of fixed points.
- ``rmtheory stability``: whether the replica-symmetric saddle q = 0 is stable.
- ``rmtheory convergence-bound``: the J_D beyond which the dynamics stops at once.
- ``rmtheory derive``: the formulas, derived by sympy from the definition of the count.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rmtheory.base import checks
from rmtheory.base.chain import decimal_string
from rmtheory.base.errors import InvalidInputError, OutsideValidityError
from rmtheory.runtime import report as io
from rmtheory.runtime.command import bundled, check_out
from rmtheory.runtime.files import write_text


@bundled
def annealed(
    *,
    model: io.ChainOptions,
    n: io.SizeOption = None,
    digits: io.DigitsOption = "15",
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Annealed entropy of the fixed points per neuron, S_a = log(z)/L, for any number of layers.

    With --n N also the exact mean number of fixed points with N neurons per layer.

    Example: rmtheory annealed --layers 5 --jd .2 --lam-left .9 --lam-right .3 --digits 40 --json
    """
    from rmtheory.annealed.mean_number import entropy, log_mean_count, mean_count

    chain = model.chain()
    wanted = checks.digits(checks.integer("digits", digits, 1, checks.MAX_DIGITS))
    quantities: dict[str, io.Quantity] = {"entropy": entropy(chain, wanted)}
    parameters: dict[str, object] = dict(chain.parameters())
    if n is not None:
        size = checks.integer("n", n, 2)
        parameters["n"] = size
        quantities["mean_count"] = mean_count(chain, size, wanted)
        quantities["log_mean_count"] = log_mean_count(chain, size, wanted)
    io.Report(
        f"Annealed entropy of {chain}",
        parameters,
        quantities,
        {
            "entropy": "log of the mean number of fixed points, per neuron, N -> infinity",
            "mean_count": f"mean number of fixed points at N = {n}, exact",
            "log_mean_count": "its logarithm",
        },
    ).show(json, out)


@bundled
def second_moment(
    *,
    model: io.ChainOptions,
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
    from rmtheory.second_moment.ratio import finite_ratio, ratio_limit

    chain = model.chain()
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


@bundled
def stability(
    *,
    model: io.ChainOptions,
    root: Annotated[
        bool, typer.Option("--root", help="The J_D where the core module loses stability.")
    ] = False,
    search: Annotated[
        bool, typer.Option("--search", help="Also search for other saddle points (L = 1, 2).")
    ] = False,
    digits: io.DigitsOption = "15",
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Stability of the replica-symmetric saddle q = 0: eigenvalues of M, any number of layers.

    Example: rmtheory stability --layers 2 --jd .1 --lam .5 --json
    """
    from rmtheory.replica import eigenvalues as theory

    wanted = checks.integer("digits", digits, 1, checks.MAX_DIGITS)
    if root:
        for name in ("jd", "lam", "lam_left", "lam_right"):
            if (text := getattr(model, name)) is not None:
                raise InvalidInputError(name, text, "absent with --root, which solves for J_D")
        if checks.layers(model.layers) != 1:
            raise InvalidInputError("layers", model.layers, "1 with --root")
        io.Report(
            "Loss of stability of the core module",
            {"layers": 1},
            {"root": theory.instability_root(wanted)},
            {"root": "J_D below which q = 0 is unstable, L = 1"},
        ).show(json, out)
        return
    chain = model.chain()
    result = theory.stability(chain, wanted)
    quantities: dict[str, io.Quantity] = {
        "eigenvalues": list(result.eigenvalues),
        "stable": result.stable,
    }
    if chain.layers <= 2:
        quantities["coefficient"] = result.coefficient
    if search:
        from rmtheory.replica.symmetric import search_saddles

        others = search_saddles(chain)
        quantities["other_saddles"] = len(others.saddles)
        quantities["saddle_overlaps"] = list(others.overlaps)
        quantities["searched"] = others.region
    io.Report(
        f"Stability of q = 0 for {chain}",
        dict(chain.parameters()),
        quantities,
        {
            "other_saddles": "replica-symmetric saddle points with q > 0 in the region searched",
            "saddle_overlaps": "their overlaps q",
            "eigenvalues": "of M: L S_rs = log z + q.M.q/4",
            "stable": "all eigenvalues positive",
            "coefficient": "of q^2 at equal q in all layers, per neuron (the paper's A/B)",
        },
    ).show(json, out)


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
    from rmtheory.dynamics import exact_steps as theory

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


def derive(
    topic: Annotated[
        str,
        typer.Argument(help="annealed, rs, stability, local-entropy, broken or first-sweeps."),
    ],
    layers: io.LayersOption = "1",
    format: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="latex, text or python.")
    ] = "text",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Write to this file instead.", callback=check_out
        ),
    ] = None,
) -> None:
    """Derive the formulas symbolically, from the definition of the count, and print every step.

    The python format is a module without dependencies that evaluates the result.

    Example: rmtheory derive stability --layers 2 --format latex
    """
    from rmtheory import symbolic

    text = symbolic.render(symbolic.derive(topic, checks.layers(layers)), format)
    if out is None:
        typer.echo(text.rstrip("\n"))
    else:
        write_text(out, text.rstrip("\n") + "\n")
