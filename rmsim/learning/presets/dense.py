"""Dense networks on Entangled MNIST (SM-D to SM-H): feature learning, J_D, landscape, overlaps.

All follow the dense recipe, which the paper's numbers need and its tables do not print: updates
divided by sqrt(fan-in) and, over a batch of 16, by sqrt(16); labels sqrt(C)/2 and -1/2; five sweeps
a phase. The presets ``...-printed`` are the tables read literally.
"""

from __future__ import annotations

from typing import Any

from rmsim.learning.presets.preset import ByWidth, Preset

_DATA = "entangled-mnist"
_WIDTHS = (100, 200, 400, 800, 1600, 3200)

#: The column of N = 6400 of the table of feature learning differs from the one for 100 to 3200.
_COLUMNS = (3200, 6400)

_RECIPE = (
    "eta_out = .1, kappa_in = kappa_j = 0.9 + J_D (the printed kappa_in = 3 wrecks learning; 3 "
    "belongs to the readout), labels sqrt(C)/2 and -1/2, five sweeps a phase, updates over "
    "sqrt(B) sqrt(fan-in) with B = 16: the paper is silent on these, and they give its accuracies"
)

_LITERAL = (
    "nothing: labels +-1, phases until convergence (at most 100 sweeps), mean over a batch of 16 "
    "(the paper gives no size), no factor of the fan-in"
)

_FEATURES: dict[str, Any] = {
    "jd": 0.5,
    "eta_j": ByWidth.of(_COLUMNS, 0.005, 0.01),
    "eta_in": ByWidth.of(_COLUMNS, 0.03, 0.01),
    "lambda_x": 5.0,
    "lambda_y": ByWidth.of(_COLUMNS, 0.9, 0.7),
}
_KAPPA_J = ByWidth.of(_COLUMNS, 1.4, 1.8)
_ETA_OUT = ByWidth.of(_COLUMNS, 0.03, 0.01)
_SM_TABLE = "SM-D, table of feature learning: "
_FEATURES_PRINTED = (
    f"{_SM_TABLE}J_D = .5, eta_J = .005 (.01 at N = 6400), eta_in = .03 (.01), eta_out = .03 (.01),"
    " kappa_J = 1.4 (1.8), kappa_in = kappa_out = 3, lambda_x = 5, lambda_y = .9 (.7), 200 epochs "
    "(400), at most 5 iterations"
)

_ROLE: dict[str, Any] = {"lambda_x": 5.0, "lambda_y": 0.9, "eta_j": 0.005}
_SLOW = {"eta_in": 0.01, "eta_out": 0.01}

_FROZEN: dict[str, Any] = {
    "eta_j": 0.0,
    "eta_in": 0.0,
    "eta_out": 0.03,
    "lambda_x": 5.0,
    "lambda_y": 0.0,
    "clamped": 0,
    "free": 0,
}


def _printed(preset: Preset, changed: str = _LITERAL, /, **table: Any) -> Preset:
    """Return the literal twin of a preset."""
    return Preset(
        f"{preset.name}-printed",
        preset.dataset,
        "literal",
        table,
        preset.widths,
        preset.epochs,
        preset.paper,
        changed,
    )


_ENTANGLED = Preset(
    "entangled-mnist-dense",
    _DATA,
    "dense",
    {"jd": 0.5, "lambda_x": 5.0, "lambda_y": 0.9, "eta_j": 0.005, "eta_in": 0.03, "eta_out": 0.1},
    (1600, 100, 200, 400, 800, 3200),
    20,
    "SM-H, first row of the table of overlaps: J_D = .5, lambda_x = 5, lambda_y = .9, 20 epochs",
    f"rates of the table of feature learning; {_RECIPE}",
)

_FEATURE_LEARNING = Preset(
    "feature-learning",
    _DATA,
    "dense",
    {**_FEATURES, "kappa_j": _KAPPA_J, "kappa_in": _KAPPA_J, "eta_out": 0.1},
    (*_WIDTHS, 6400),
    ByWidth.of(_COLUMNS, 200, 400),
    _FEATURES_PRINTED,
    f"{_RECIPE}; here kappa is the table's, whatever J_D",
)

_ROLE_OF_JD = Preset(
    "role-of-jd",
    _DATA,
    "dense",
    {**_ROLE, "eta_in": 0.03, "eta_out": 0.1},
    _WIDTHS,
    100,
    "SM-G, table beside the figure: eta_J = .005, eta_in = eta_out = .01, kappa_J = 0.9 + J_D, "
    "kappa_in = kappa_out = 3, lambda_x = 5, lambda_y = .9, 100 epochs; J_D from .05 to .9",
    f"eta_in = .03 as in feature learning; {_RECIPE}",
)

_LANDSCAPE = Preset(
    "landscape",
    _DATA,
    "dense",
    {"jd": 0.5, **_ROLE, "eta_in": 0.03, "eta_out": 0.1},
    (1600,),
    30,
    "SM-G, table of the landscape: N = 1600, J_D = .5, eta_J = .005, eta_in = eta_out = .01, "
    "kappa_J = 0.9 + J_D, kappa_in = kappa_out = 3, lambda_x = 2, lambda_y = .9, 30 epochs",
    "lambda_x = 5, which gives the printed curvature 1.367 at initialisation; lambda_x = 2 gives "
    f"1.40. eta_in = .03; {_RECIPE}",
)

_OVERLAPS = Preset(
    "overlaps",
    _DATA,
    "overlap",
    {"jd": 0.5, **_ROLE, "eta_in": 0.03, "eta_out": 0.1},
    (1600,),
    20,
    "SM-H, table of overlaps: J_D = .5 or 0, lambda_x = 5 or 2, lambda_y = .9 or .5, at "
    "initialisation, after 1 and after 20 epochs",
    "labels rescaled twice (2.5 and -.79), one warm-up sweep, phases until convergence: this gives "
    f"the column of the initialisation, and brackets that are quartiles. {_RECIPE}",
)

_RANDOM_FEATURES = Preset(
    "random-features",
    _DATA,
    "dense",
    {**_FROZEN, "jd": 0.0, "warmup": 1, "inference": 1},
    (*_WIDTHS, 6400),
    200,
    f"{_SM_TABLE}eta_J = eta_in = lambda_y = 0, eta_out = .03, kappa_out = 3, lambda_x = 5, "
    "200 epochs, one iteration",
    "updates of the readout over sqrt(B) sqrt(N)",
)

_RESERVOIR = Preset(
    "reservoir",
    _DATA,
    "dense",
    {**_FROZEN, "jd": 0.5, "warmup": 5, "inference": 5},
    (*_WIDTHS, 6400),
    200,
    f"{_SM_TABLE}as random features, with J_D = .5 and five iterations (the equation of the text "
    "has no J_D)",
    "updates of the readout over sqrt(B) sqrt(N)",
)

DENSE = (
    _ENTANGLED,
    _printed(_ENTANGLED, **_FEATURES, kappa_j=_KAPPA_J, eta_out=_ETA_OUT),
    _FEATURE_LEARNING,
    _printed(
        _FEATURE_LEARNING,
        _LITERAL.replace("100 sweeps", "the table's 5 sweeps"),
        **_FEATURES,
        **dict.fromkeys(("clamped", "free", "inference"), 5),
        kappa_j=_KAPPA_J,
        eta_out=_ETA_OUT,
    ),
    _RANDOM_FEATURES,
    _RESERVOIR,
    _ROLE_OF_JD,
    _printed(_ROLE_OF_JD, **_ROLE, **_SLOW),
    _LANDSCAPE,
    _printed(_LANDSCAPE, **{**_ROLE, "lambda_x": 2.0}, **_SLOW, jd=0.5),
    _OVERLAPS,
    _printed(_OVERLAPS, jd=0.5, **_ROLE, eta_in=0.03, eta_out=0.03),
)
