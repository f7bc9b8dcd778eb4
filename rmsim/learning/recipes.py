r"""The protocols that are known by name: two that reproduce the paper's tables, and its letter.

* :func:`dense_recipe`: Entangled MNIST, feature learning, role of J_D, landscape, overlaps.
* :func:`sparse_recipe`: the benchmarks on MNIST, Fashion-MNIST, Entangled MNIST, Tiny ImageNet.
* :func:`literal_recipe`: Algorithm 1 and SM-D as printed.
* :func:`overlap_recipe`: the dense recipe as the table of q_dyn needs it.
* :func:`hetero_recipe`: hetero-association by a chain, as reconstructed.

All take any parameter by name instead of theirs.
"""

from __future__ import annotations

import math
from typing import Any

from rmsim.learning.parameters import Parameters


def dense_recipe(n: int, *, jd: float = 0.5, classes: int = 10, **others: Any) -> Parameters:
    """Return the dense recipe: kappa = 0.9 + J_D for J and W_in, label sqrt(C)/2 and -1/2.

    Examples
    --------
    >>> round(dense_recipe(1600).label_true, 2)
    1.58
    """
    kappa = 0.9 + jd
    values: dict[str, Any] = {
        "jd": jd,
        "label_true": math.sqrt(classes) / 2,
        "label_other": -0.5,
        "kappa_j": kappa,
        "kappa_in": kappa,
        "kappa_back": kappa,
    }
    return Parameters.from_dict({"n": n, **values, **others})


def sparse_recipe(n: int, *, classes: int = 10, **others: Any) -> Parameters:
    """Return the sparse recipe, with the paper's numbers for Entangled MNIST at N = 1000.

    Examples
    --------
    >>> sparse_recipe(1000).label_true
    1.5
    """
    spread = math.sqrt(classes - 1)
    values: dict[str, Any] = {
        "jd": 0.9,
        "rho_j": 0.01,
        "rho_in": 0.1,
        "lambda_x": 5.0,
        "lambda_y": 3.5,
        "label_true": spread / 2,
        "label_other": -1 / spread,
        "warmup": 1,
        "clamped": 5,
        "free": 5,
        "inference": 6,
        "eta_j": 0.02,
        "eta_in": 0.3,
        "eta_out": 0.005,
        "kappa_j": 1.4,
        "kappa_in": 1.6,
        "kappa_out": 7.0,
        "rho_rates": True,
        "lambda_rates": False,
    }
    return Parameters.from_dict({"n": n, **values, **others})


def literal_recipe(n: int, *, jd: float = 0.5, layers: int = 1, **others: Any) -> Parameters:
    """Return the paper as printed: L warm-up sweeps, labels +-1, until convergence, batch mean.

    Examples
    --------
    >>> literal_recipe(100, jd=0.25).kappa_j  # 0.9 + J_D
    1.15
    """
    values: dict[str, Any] = {
        "jd": jd,
        "layers": layers,
        "warmup": layers,
        "clamped": 100,
        "free": 100,
        "inference": 100,
        "stop": "converged",
        "eta_out": 0.03,
        "kappa_j": 0.9 + jd,
        "kappa_in": 3.0,
        "kappa_out": 3.0,
        "batch_scaling": "mean",
        "fan_in_rates": False,
    }
    return Parameters.from_dict({"n": n, **values, **others})


def overlap_recipe(n: int, *, jd: float = 0.5, classes: int = 10, **others: Any) -> Parameters:
    """Return the dense recipe with labels rescaled twice, run until convergence.

    Examples
    --------
    >>> round(overlap_recipe(1600).label_true, 2), round(overlap_recipe(1600).label_other, 2)
    (2.5, -0.79)
    """
    scale = math.sqrt(classes) / 2
    values: dict[str, Any] = {
        "label_true": scale**2,
        "label_other": -scale / 2,
        "warmup": 1,
        "clamped": 100,
        "free": 100,
        "stop": "converged",
    }
    return dense_recipe(n, jd=jd, classes=classes, **{**values, **others})


def hetero_recipe(n: int, layers: int, **others: Any) -> Parameters:
    """Return hetero-association: x drives layer 1, y layer L, and the answer is the last layer.

    Labels are codes of n numbers +-1. The rule does not see the coupling to the next layer, and
    inference goes without it.
    """
    values: dict[str, Any] = {
        "layers": layers,
        "jd": 0.1,
        "lam_left": 1.5,
        "lam_right": 1.5,
        "lambda_x": 2.0,
        "lambda_y": 4.0,
        "warmup": layers,
        "clamped": 12,
        "inference": 36 + layers,
        "stop": "converged",
        "scheme": "approximate",
        "test_right": False,
        "right_in_inference": False,
        "eta_j": 0.03,
        "eta_in": 0.0,
        "eta_out": 0.0,
        "kappa_j": 1.5,
        "input_kind": "identity",
        "back_kind": "identity",
        "readout": "none",
    }
    return Parameters.from_dict({"n": n, **values, **others})
