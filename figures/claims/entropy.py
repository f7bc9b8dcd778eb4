"""What the paper says of the number of fixed points (main text, SM-A)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from figures.claims.claim import Claim, Ours, Relation
from figures.claims.read import At, Minus, at, ours, select

_SM_A = "SM-A"
_S_FP = "main text, after the equation of S_fp"


def least_growth(data: xr.Dataset) -> Ours | None:
    """Return the least step of the entropy of two layers from one J_D to the next, all lambda."""
    steps = np.diff(data["entropy_by_jd"].values, axis=1)
    errors = data["entropy_by_jd_error"].values
    place = np.unravel_index(int(np.argmin(steps)), steps.shape)
    error = errors[:, 1:][place] + errors[:, :-1][place]
    return ours(float(steps[place]), float(error))


def least_coefficient(data: xr.Dataset) -> Ours | None:
    """Return the least coefficient of q^2 of two layers over J_D >= 0 and all lambda shown."""
    part = data.where(data["jd"] >= 0, drop=True)
    values = part["coefficient"].values
    place = np.unravel_index(int(np.argmin(values)), values.shape)
    return ours(float(values[place]), float(part["coefficient_error"].values[place]))


def least_order(data: xr.Dataset) -> Ours | None:
    """Return the least coefficient of q^2 minus the next one in lambda, at J_D = 2."""
    one = select(data, {"jd": 2.0})
    if one is None:
        return None
    steps = -np.diff(one["coefficient"].values)
    errors = one["coefficient_error"].values
    place = int(np.argmin(steps))
    return ours(float(steps[place]), float(errors[place] + errors[place + 1]))


def gap_to_one_layer(data: xr.Dataset) -> Ours | None:
    """Return the largest |coefficient of two layers at lambda = 0 - M/4 of one layer|."""
    two = select(data, {"lam_curve": 0.0})
    one = select(data, {"layers": 1})
    if two is None or one is None:
        return None
    _, first, second = np.intersect1d(two["jd"], one["deep_jd"], return_indices=True)
    gap = two["coefficient"].values[first] - one["least_eigenvalue"].values[second] / 4
    if gap.size == 0:
        return None
    place = int(np.argmax(np.abs(gap)))
    errors = two["coefficient_error"].values[first], one["least_eigenvalue_error"].values[second]
    return ours(float(np.abs(gap[place])), float(errors[0][place] + errors[1][place] / 4))


@dataclass(frozen=True)
class _Network:
    """A quantity of enumerated networks of one layer at one J_D."""

    name: str
    jd: float

    def __call__(self, data: xr.Dataset) -> Ours | None:
        one = select(data, {"layers": 1, "jd": self.jd})
        return None if one is None else ours(one[self.name], one[f"{self.name}_error"])


def _tight(layers: int) -> Claim:
    model = "one layer" if layers == 1 else "two layers, λ = 0.5"
    return Claim(
        f"tight {layers}",
        f"largest exponent of E[Z²] minus that of E[Z]², {model}, J_D = 0.1",
        "tight for the core model and for L = 2",
        "main text, geometry of fixed points; SM-A, tightness",
        "0",
        "stability",
        at("exponent_gap", few_layers=layers, few_jd=0.1),
        tolerance=1e-9,
        # 'L = 2' is no value of the quantity.
        relation=Relation.SIMILAR,
    )


ENTROPY = (
    Claim(
        "entropy at zero coupling",
        "entropy S_fp of the fixed points at J_D = λ = 0",
        "vanishes",
        _S_FP,
        "0",
        "annealed",
        at("entropy_by_jd", lam_curve=0.0, jd=0.0),
        tolerance=1e-12,
    ),
    Claim(
        "entropy grows with jd",
        "least step of S_fp from one J_D to the next, two layers, λ = 0, 0.5, 1, 1.5",
        "increasing in J_D",
        _S_FP,
        "0",
        "annealed",
        least_growth,
        relation=Relation.ABOVE,
    ),
    Claim(
        "entropy grows with lambda",
        "S_fp(J_D = 1, λ = 0.5) − S_fp(J_D = 1, λ = 0), two layers",
        "increasing in λ",
        _S_FP,
        "0",
        "annealed",
        Minus(
            at("entropy_by_jd", lam_curve=0.5, jd=1.0), at("entropy_by_jd", lam_curve=0.0, jd=1.0)
        ),
        relation=Relation.ABOVE,
        why="Erratum 3: near λ = 0 the entropy decreases once J_D exceeds 0.506.",
        headline=True,
    ),
    Claim(
        "entropy at infinite couplings",
        "S_fp of two layers as J_D = λ → ∞",
        "→ log 2 = 0.693",
        _S_FP,
        "0.693",
        "annealed",
        at("entropy_diagonal"),
        why="Erratum 4: log 2 needs J_D − λ → ∞.",
        headline=True,
    ),
    Claim(
        "fixed points without self-coupling",
        "mean number of fixed points of 20 neurons at J_D = 0, enumerated",
        "no fixed points",
        "main text, Core Module",
        "0",
        "counts",
        _Network("count", 0.0),
        tolerance=0.0,
        why="Erratum 8: the mean number is exactly 1 for every N.",
        headline=True,
    ),
    Claim(
        "mean number",
        "E[Z], exact, over (2H(−J_D))^N as N grows, one layer, J_D = 0.4",
        "→ 1",
        f"{_SM_A}, tightness: E[Z] ≃ (2H(−J_D))^N",
        "1",
        "stability",
        At("mean_ratio", {"few_jd": 0.4}, ("large_n",)),
        tolerance=0.0,
        note="At N = 20 it is enumerated: panel (b) of the figure counts.",
        why="Erratum 5: of exponential order only; the ratio tends to exp(J_D r/2), not to 1.",
    ),
    _tight(1),
    _tight(2),
    Claim(
        "relative second moment",
        "limit of E[Z²]/E[Z]² as N → ∞, one layer, J_D = 0.4",
        "→ 1",
        f"{_SM_A}, tightness",
        "1",
        "stability",
        at("ratio_limit", few_jd=0.4),
        tolerance=0.0,
        note="At N = 20 it is enumerated: panel (c) of the figure counts.",
        why="Erratum 7: the limit is finite and above 1; only the exponent is tight.",
        headline=True,
    ),
    Claim(
        "loss of stability",
        "J_D at which q = 0 loses stability, one layer",
        "−.178",
        f"{_SM_A}, RS study of one module",
        "-0.178",
        "stability",
        at("root"),
        headline=True,
    ),
    Claim(
        "other saddles",
        "saddles of S_rs with q ≠ 0 that a search found, one layer, J_D = 0.1",
        "have not found any other saddle point",
        f"{_SM_A}, RS study of one module",
        "0",
        "stability",
        at("saddles", few_jd=0.1),
        tolerance=0.0,
        note="A search on a grid: none found is no proof that there is none.",
    ),
    Claim(
        "stability of two layers",
        "least coefficient of q² over J_D ≥ 0, λ = 0, 0.5, 1, 1.5",
        "always positive",
        f"{_SM_A}, figure of the stability",
        "0",
        "stability",
        least_coefficient,
        relation=Relation.ABOVE,
    ),
    Claim(
        "order in lambda",
        "coefficient of q² minus that of the next larger λ, least, J_D = 2",
        "λ = 0, 0.5, 1, 1.5 from top to bottom",
        f"{_SM_A}, figure of the stability",
        "0",
        "stability",
        least_order,
        relation=Relation.ABOVE,
    ),
    Claim(
        "no coupling is one layer",
        "largest gap between the coefficient of two layers at λ = 0 and that of one layer",
        "the same result",
        f"{_SM_A}, figure of the stability",
        "0",
        "stability",
        gap_to_one_layer,
        tolerance=1e-8,
    ),
)
