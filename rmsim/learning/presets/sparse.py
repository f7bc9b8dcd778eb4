"""Sparse benchmarks against a binary perceptron with two hidden layers (paper, SM-D, four tables).

The densities rho_J = .01 and rho_in = .1 are those of the main text. The table of Tiny ImageNet
prints .99 for both, which is a sparsity if anything: only .01 and .1 give the numbers of
parameters that the widths of the perceptrons match,

    0.1 D N + 0.01 N^2 + C N = D H + H^2 + C H    to 1 % in all 24 columns.
"""

from __future__ import annotations

from typing import Any

from rmsim.learning.presets.preset import ByWidth, Preset

RHO = {"rho_j": 0.01, "rho_in": 0.1}

_WIDTHS = (1000, 2000, 3000, 4000, 5000, 6000)
_TINY_WIDTHS = (1155, 1660, 2216, 2817, 3458, 4134)

_RECIPE = (
    "labels sqrt(C-1)/2 and -1/sqrt(C-1), 1 + 5 + 5 sweeps, updates over sqrt(B) sqrt(fan-in) with "
    "B = 16 and rates over sqrt(rho), as in the authors' code; the softmax probe of the second "
    "stage by Adam (rate .001, batches of 256); until then W_out learns by the perceptron rule "
    "with kappa_out = 7"
)
_LITERAL = (
    "nothing: labels +-1, phases until convergence (at most 100 sweeps), mean over a batch of 16 "
    "(the paper gives no size), no factor of the fan-in or the density"
)


def _table(
    eta_j: float, eta_in: float, eta_out: float, kappas: tuple[float, float], **more: Any
) -> dict[str, Any]:
    kappa_in, kappa_j = kappas
    rates = {"eta_j": eta_j, "eta_in": eta_in, "eta_out": eta_out}
    return {**RHO, **rates, "kappa_j": kappa_j, "kappa_in": kappa_in, **more}


_MNIST = _table(
    *(0.058, 0.159, 0.005, (1.78, 1.78)),
    jd=0.95,
    decay_in=0.01,
    lambda_x=5.0,
    lambda_y=ByWidth.of(_WIDTHS, 1.62, 1.3, 1.1, 0.8, 0.8, 0.8),
)
_FASHION = _table(
    *(0.118, 0.17, 0.0015, (1.74, 1.74)),
    jd=0.98,
    decay_j=0.0001,
    decay_in=0.0002,
    lambda_x=4.91,
    lambda_y=ByWidth.of(_WIDTHS, 1.8, 1.8, 1.3, 1.0, 1.0, 1.0),
)
_ENTANGLED = _table(
    *(0.02, 0.3, 0.005, (1.6, 1.4)),
    jd=0.9,
    lambda_x=5.0,
    lambda_y=ByWidth.of(_WIDTHS, 3.5, 2.5, 1.75, 2.0, 1.75, 1.25),
)
_TINY = _table(
    *(0.02, 0.3, 0.005, (1.6, 1.4)),
    jd=0.9,
    decay_j=0.01,
    lambda_x=5.0,
    lambda_y=ByWidth.of(_TINY_WIDTHS, 3.1, 2.5, 2.5, 2.25, 2.25, 2.25),
)


def _pair(
    stem: str,
    dataset: str,
    table: dict[str, Any],
    where: str,
    widths: tuple[int, ...] = _WIDTHS,
    classes: int = 10,
    densities: str = "",
) -> tuple[Preset, Preset]:
    """Return the preset that follows the authors' code, and its literal twin."""
    numbers = {name: value for name, value in table.items() if name not in RHO}
    shown = ", ".join(f"{name} = {_shown(value)}" for name, value in numbers.items())
    paper = f"SM-D, {where}: {shown}; 20 epochs of W_in and J, 20 of the readout{densities}"
    changed = _RECIPE
    if densities:
        changed += "; rho_J = .01 and rho_in = .1, which alone match the printed widths"
    shared = (widths, 20, paper)
    return (
        Preset(f"{stem}-sparse", dataset, "sparse", table, *shared, changed, True, classes),
        Preset(
            *(f"{stem}-sparse-printed", dataset, "literal", table),
            *(*shared, _LITERAL + ("; the densities as matched" if densities else "")),
            *(True, classes),
        ),
    )


def _shown(value: object) -> str:
    if isinstance(value, ByWidth):
        return "{" + ", ".join(f"{number:g}" for _, number in value.values) + "} by width"
    return f"{value:g}"


SPARSE = (
    *_pair("mnist", "mnist", _MNIST, "table of MNIST"),
    *_pair("fashion-mnist", "fashion-mnist", _FASHION, "table of Fashion-MNIST"),
    *_pair("entangled-mnist", "entangled-mnist", _ENTANGLED, "table of Entangled MNIST"),
    *_pair(
        *("tiny-imagenet", "tiny-imagenet-features", _TINY, "table of Tiny ImageNet features"),
        *(_TINY_WIDTHS, 200, ", rho_J = rho_in = .99"),
    ),
)
