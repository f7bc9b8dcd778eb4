"""``rmtheory annealed``: the annealed entropy and the exact mean count."""

from __future__ import annotations

from rmtheory import checks
from rmtheory.cli import output as io


def annealed(
    layers: io.LayersOption = "1",
    jd: io.JdOption = None,
    lam: io.LamOption = None,
    lam_left: io.LamLeftOption = None,
    lam_right: io.LamRightOption = None,
    n: io.SizeOption = None,
    digits: io.DigitsOption = "15",
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Annealed entropy of the fixed points per neuron, S_a = log(z)/L, for any number of layers.

    With --n N also the exact mean number of fixed points at N neurons a layer.

    Example: rmtheory annealed --layers 5 --jd .2 --lam-left .9 --lam-right .3 --digits 40 --json
    """
    from rmtheory.annealed import entropy, log_mean_count, mean_count

    chain = io.make_chain(layers, jd, lam, lam_left, lam_right)
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
