r"""Two coupled layers that both see input and label (paper, main text, duality of J_D and lambda).

.. math:: h^l_i = \sum_{j\ne i} J^l_{ij} s^l_j + J_D s^l_i + \lambda s^{3-l}_i + \dots, \qquad
    \kappa = 0.9 + J_D + \lambda .

The paper gives no settings. Neurons are updated with probability p = .85 in a sweep, since two
layers updated together fall into 2-cycles; the margin grows with the couplings that stabilise.
"""

from __future__ import annotations

from typing import Any

from rmsim.experiments.training import trained

_PAIR: dict[str, Any] = {
    "layers": 2,
    "p": 0.85,
    "shared_back": True,
    "input_to": "all",
    "label_to": "all",
    "output_from": "all",
}


def two_layers(point: dict[str, Any], seed: int) -> dict[str, Any]:
    """Train two layers with the ``jd`` and ``lam`` of `point`; see ``training.trained``."""
    rest = {name: value for name, value in point.items() if name != "lam"}
    lam = float(point["lam"])
    kappa = 0.9 + float(point["jd"]) + lam
    couplings = {"lam_left": lam, "lam_right": lam, "kappa_j": kappa, "kappa_in": kappa}
    return trained({**rest, **_PAIR, **couplings}, seed)
