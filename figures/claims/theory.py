"""What the paper says of the number of fixed points (main text, SM-A).

What the paper says of the arrangement of fixed points: local entropy, critical couplings.

What the paper measured of the dynamics, held against its theory for N -> infinity.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import xarray as xr
from scipy.interpolate import CubicHermiteSpline

from figures.claims import grants
from figures.claims.claim import (
    At,
    Claim,
    Kind,
    Minus,
    Ours,
    Relation,
    at,
    difference,
    least,
    ours,
    select,
)
from figures.claims.landscape import QDYN

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
        grant=grants.ARITHMETIC_EXPONENT,
        # 'L = 2' is not a value of the quantity.
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
        grant=grants.ARITHMETIC_ENTROPY,
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
        grant=grants.EXACT,
        why="Erratum 8: the mean number is exactly 1 for every N.",
        headline=True,
    ),
    Claim(
        "mean number",
        "E[Z], exact, over (2H(−J_D))^N as N grows, one layer, J_D = 0.4",
        "E[Z] → (2H(−J_D))^N",
        f"{_SM_A}, tightness",
        "1",
        "stability",
        At("mean_ratio", {"few_jd": 0.4}, ("large_n",)),
        grant=grants.EXACT,
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
        grant=grants.EXACT,
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
        grant=grants.EXACT,
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
        grant=grants.ARITHMETIC_COEFFICIENT,
    ),
)


_END = "End Matter"
_CURVES = f"{_END}, figure of the local entropies"

#: Points of a curve below which its dip may be missed.
_ENOUGH = 12


@dataclass(frozen=True)
class _Critical:
    """Where the boundary of the representation manifold meets an axis: its first or last ray."""

    name: str
    ray: int

    def __call__(self, data: xr.Dataset) -> Ours | None:
        end = data.sel(kind="rm").isel(ray=self.ray)
        if abs(float(end["theta"]) - (0.0 if self.ray == 0 else math.pi / 2)) > 1e-9:
            return None  # only a corner of the plane was computed
        return ours(end[self.name], end[f"{self.name}_error"])


def _curves(data: xr.Dataset, layers: int | None = None) -> Iterator[xr.Dataset]:
    """Yield the curves, of some depth if given, without their padding; none if they are coarse."""
    for index in range(data.sizes["curve"]):
        one = data.isel(curve=index)
        one = one.isel(point=np.flatnonzero(np.isfinite(one["d"].values)))
        if one.sizes["point"] >= _ENOUGH and layers in (None, int(one["layers"])):
            yield one


def _curve(data: xr.Dataset, layers: int, jd: float, lam: float) -> xr.Dataset | None:
    """Return the curve of these couplings."""
    for one in _curves(data, layers):
        if math.isclose(float(one["jd"]), jd) and math.isclose(float(one["lam"]), lam):
            return one
    return None


@dataclass(frozen=True)
class _LeastSlope:
    """Least dS_I*/dd of the curve of these couplings: positive where S_I* is monotone."""

    layers: int
    jd: float
    lam: float

    def __call__(self, data: xr.Dataset) -> Ours | None:
        one = _curve(data, self.layers, self.jd, self.lam)
        return None if one is None else ours(one["least_slope"], one["least_slope_error"])


def share_with_y(data: xr.Dataset) -> Ours | None:
    """Return the share of the points of the core module at which y* was computed."""
    known = [np.isfinite(one["y_star"].values) for one in _curves(data, 1)]
    return Ours(float(np.concatenate(known).mean()), 0.0) if known else None


def least_y(data: xr.Dataset) -> Ours | None:
    """Return the least y* over all curves and distances."""
    candidates = []
    for one in _curves(data):
        place = one.isel(point=int(np.nanargmin(one["y_star"].values)))
        candidates.append(ours(place["y_star"], place["y_star_error"]))
    return least(candidates)


def place_of_the_bump(data: xr.Dataset) -> Ours | None:
    """Return the d of the maximum of S_I* at J_D = 0.05, bracketed by two computed points."""
    one = _curve(data, 1, 0.05, 0.0)
    if one is None:
        return None
    slope, d = one["slope"].values, one["d"].values
    turns = np.flatnonzero((slope[:-1] > 0) & (slope[1:] < 0))
    if turns.size == 0:
        return None
    low, high = d[turns[0]], d[turns[0] + 1]
    return Ours(float((low + high) / 2), float((high - low) / 2))


def end_over_typical(data: xr.Dataset) -> Ours | None:
    """Return S_I*(1/2)/S_a at J_D = 0.1, continued from the largest d along the slope there."""
    one = _curve(data, 1, 0.1, 0.0)
    if one is None:
        return None
    rest = 0.5 - float(one["d"][-1])
    slope, before = float(one["slope"][-1]), float(one["slope"][-2])
    # The slope changes on: by as much again, at most, as from the last point but one.
    error = float(one["internal_error"][-1]) + rest * abs(slope - before)
    typical = float(one["annealed"])
    return ours((float(one["internal"][-1]) + rest * slope) / typical, error / typical)


def slope_at_the_end(data: xr.Dataset) -> Ours | None:
    """Return dS_I*/dd at the largest d, J_D = 0.1."""
    one = _curve(data, 1, 0.1, 0.0)
    return None if one is None else ours(one["slope"][-1], one["slope_error"][-1])


def largest_at_zero(data: xr.Dataset) -> Ours | None:
    """Return the largest S_I* of all curves at the least d of their continuation."""
    limits = [ours(one["gas_internal"][0], one["gas_internal_error"][0]) for one in _curves(data)]
    there = [one for one in limits if one is not None]
    return max(there, key=lambda one: one.value) if there else None


@dataclass(frozen=True)
class _Order:
    """Least S_I* of a curve minus that of the one below it, over d from 0.01 on."""

    curves: tuple[tuple[int, float, float], ...]

    def __call__(self, data: xr.Dataset) -> Ours | None:
        curves = [_curve(data, *couplings) for couplings in self.curves]
        gaps = []
        for lower, upper in pairwise(curves):
            if lower is None or upper is None:
                return None
            d = lower["d"].values[lower["d"].values >= 0.01]
            high, error = _between(upper, d)
            low = lower.isel(point=slice(-len(d), None))
            gap = high - low["internal"].values
            place = int(np.argmin(gap))
            error = error + low["internal_error"].values
            gaps.append(ours(float(gap[place]), float(error[place])))
        return least(gaps)


def _between(one: xr.Dataset, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return S_I* between computed points; the error is what half of the points would miss."""

    def through(part: xr.Dataset) -> np.ndarray:
        x = part["d"].values
        spline = CubicHermiteSpline(np.log(x), part["internal"].values, x * part["slope"].values)
        return np.asarray(spline(np.log(d)))

    value = through(one)
    return value, np.abs(value - through(one.isel(point=slice(None, None, -2)).sortby("d")))


#: Couplings at which the paper puts a transition -> what it prints of it.
_AT_TRANSITION = {
    (1, 0.07, 0.0): "J_Dc ≃ 0.07, monotone for all J_D above",
    (2, 0.0, 0.45): "λ ⪅ 0.45, where the cluster emerges",
    (2, 0.05, 0.3): "the middle of three curves that cross the transition",
}

#: The text names the couplings of the two others.
_MIDDLE = "The text puts no number on this curve: read as the other middle ones, which are at it."


def _monotone(layers: int, jd: float, lam: float, up: bool) -> Claim:
    couplings = f"J_D = {jd:g}" + ("" if layers == 1 else f", λ = {lam:g}")
    printed = _AT_TRANSITION.get((layers, jd, lam), "monotone" if up else "not monotone")
    return Claim(
        f"monotone {layers} {jd:g} {lam:g}",
        f"least slope of S_I*(d), {'core module' if layers == 1 else 'two layers'}, {couplings}",
        printed,
        _CURVES,
        "0",
        "local_curves",
        _LeastSlope(layers, jd, lam),
        relation=Relation.ABOVE if up else Relation.BELOW,
        why="" if printed.startswith(("mono", "not")) else "The transition is just above.",
        note=_MIDDLE if printed.startswith("the middle") else "",
    )


@dataclass(frozen=True)
class _Steps:
    """Least step of the least slope from a curve to the one with the larger coupling."""

    curves: tuple[tuple[int, float, float], ...]

    def __call__(self, data: xr.Dataset) -> Ours | None:
        slopes = [_LeastSlope(*couplings)(data) for couplings in self.curves]
        return least(difference(upper, lower) for lower, upper in pairwise(slopes))


def _transition(name: str, coupling: str, *curves: tuple[int, float, float]) -> Claim:
    return Claim(
        f"transition {name}",
        f"least slope of S_I*(d) of a curve minus that of the one with smaller {coupling}, {name}",
        "increasing J_D or λ drives the OGP–RM transition",
        _CURVES,
        "0",
        "local_curves",
        _Steps(curves),
        relation=Relation.ABOVE,
    )


def _ordered(name: str, *curves: tuple[int, float, float]) -> Claim:
    return Claim(
        f"order of curves {name}",
        f"S_I*(d) of a curve minus that of the one below, least over d ≥ 0.01, {name}",
        "bottom to top",
        _CURVES,
        "0",
        "local_curves",
        _Order(curves),
        relation=Relation.ABOVE,
    )


def _around(source: str) -> At:
    return At("at_distance", {"source": source, "flips": 1, "jd": 0.8}, ("n",))


GEOMETRY = (
    Claim(
        "typical fixed points",
        "fixed points at one flip from a typical one (planted), counted, J_D = 0.8, N = 2000",
        "isolated",
        "main text, geometry of fixed points",
        "0",
        "clusters",
        At("typical_neighbours", {"typical_n": 2000, "jd": 0.8}),
        relation=Relation.BELOW,
        grant=grants.ISOLATED,
        note="A statement for N → ∞: 0.8 of them are left at N = 400, where the mean is exact.",
    ),
    Claim(
        "accessible fixed points",
        "fixed points at one flip, around those that the dynamics finds minus typical, J_D = 0.8",
        "not isolated; a dense, connected cluster",
        "main text, geometry of fixed points",
        "0",
        "single_sample_rm",
        Minus(_around("dynamics"), _around("planted")),
        relation=Relation.ABOVE,
    ),
    Claim(
        "connected cluster",
        "share of pairs of fixed points that the dynamics finds which single flips join, every "
        "state on the way a fixed point, J_D = 0.8, N = 1000",
        "an extended connected cluster",
        "main text, geometry of fixed points",
        "1",
        "clusters",
        At("joined", {"n": 1000, "jd": 0.8}, ("pairs",)),
        grant=grants.RELIABLY,
        note="A path that is found is a proof; of a pair without one it is not known.",
        headline=True,
    ),
    Claim(
        "branching cluster",
        "share of walks of single flips between two fixed points that the dynamics finds, each "
        "flip to a fixed point nearer to the second, that stop at a tip: no flip leads on but "
        "those back, J_D = 0.8, N = 1000",
        "a branching structure",
        "main text, geometry of fixed points",
        "0.05",
        "clusters",
        At("tips", {"n": 1000, "jd": 0.8}, ("walks",)),
        relation=Relation.ABOVE,
        note="'Branching' is taken as more than one walk in twenty. At N = 400 three of nine walks "
        "had been seen to do so. Paths that turn back join the same pairs.",
    ),
    Claim(
        "internal entropy grows with y",
        "S_I(y = 2) − S_I(y = 1) at J_D = 0.05, d = 0.3, core module",
        "S_I is an increasing function of y",
        _END,
        "0",
        "local_curves",
        Minus(at("internal_by_y", y=2.0), at("internal_by_y", y=1.0)),
        relation=Relation.ABOVE,
        why=(
            "Erratum 17: the formula counts y fixed points at a mutual overlap, not points around "
            "a reference."
        ),
    ),
    Claim(
        "external entropy falls with y",
        "S_E(y = 2) − S_E(y = 1) at J_D = 0.05, d = 0.3, core module",
        "S_E is a decreasing function of y",
        _END,
        "0",
        "local_curves",
        Minus(at("external_by_y", y=2.0), at("external_by_y", y=1.0)),
        relation=Relation.BELOW,
        why="Erratum 17, as for S_I.",
    ),
    Claim(
        "y where the external entropy vanishes",
        "share of the points of the core module, J_D = 0.05 to 0.1, at which y* was found",
        "exists for all positive J_D and all d",
        _END,
        "1",
        "local_curves",
        share_with_y,
        grant=grants.EXACT,
        note="Three couplings stand for all; the page on the local entropy has random ones.",
    ),
    Claim(
        "y exceeds one",
        "least y* over all curves and distances",
        "exceeds one",
        _END,
        "1",
        "local_curves",
        least_y,
        relation=Relation.ABOVE,
    ),
    Claim(
        "distance of the maximum",
        "d at which S_I* has its maximum, core module, J_D = 0.05",
        "extremely small",
        _END,
        "0.01",
        "local_curves",
        place_of_the_bump,
        relation=Relation.BELOW,
        note="'Extremely small' is taken as less than 0.01.",
    ),
    Claim(
        "critical self-coupling",
        "J_Dc of the core module, where S_I*(d) becomes monotone",
        "≃ 0.07",
        _END,
        "0.07",
        "phase_diagram",
        _Critical("jd", 0),
        headline=True,
    ),
    Claim(
        "critical coupling of two layers",
        "λ_c of two layers at J_D = 0",
        "⪅ 0.45",
        _END,
        "0.45",
        "phase_diagram",
        _Critical("lam", -1),
        grant=grants.ROUNDED_HUNDREDTHS,
        relation=Relation.BELOW,
        headline=True,
    ),
    Claim(
        "entropy at half",
        "S_I*(d → 1/2) over the entropy S_a of typical fixed points, core module, J_D = 0.1",
        "equal to the entropy of typical solutions",
        _END,
        "1",
        "local_curves",
        end_over_typical,
        grant=grants.CONTINUED,
    ),
    Claim(
        "plateau",
        "slope of S_I*(d) at d = 0.49, core module, J_D = 0.1",
        "saturating at a plateau",
        _END,
        "0",
        "local_curves",
        slope_at_the_end,
        grant=grants.EXACT,
        why=(
            "Erratum 18: within q0 = 0, the solution of the paper, S_a is reached with a finite "
            "slope; what replaces that solution at large d is not known."
        ),
    ),
    Claim(
        "no entropy at distance zero",
        "S_I*(d), largest of the nine curves continued to d = 1e-8",
        "all curves vanish at distance 0",
        _CURVES,
        "0",
        "local_curves",
        largest_at_zero,
        grant=grants.VANISHES,
    ),
    _monotone(1, 0.05, 0.0, up=False),
    _monotone(1, 0.07, 0.0, up=True),
    _monotone(1, 0.1, 0.0, up=True),
    _monotone(2, 0.05, 0.2, up=False),
    _monotone(2, 0.05, 0.3, up=True),
    _monotone(2, 0.05, 0.4, up=True),
    _monotone(2, 0.0, 0.4, up=False),
    _monotone(2, 0.0, 0.45, up=True),
    _monotone(2, 0.0, 0.5, up=True),
    _transition("core module", "J_D", (1, 0.05, 0.0), (1, 0.07, 0.0), (1, 0.1, 0.0)),
    _transition("two layers, J_D = 0.05", "λ", (2, 0.05, 0.2), (2, 0.05, 0.3), (2, 0.05, 0.4)),
    _transition("two layers, J_D = 0", "λ", (2, 0.0, 0.4), (2, 0.0, 0.45), (2, 0.0, 0.5)),
    _ordered("core module", (1, 0.05, 0.0), (1, 0.07, 0.0), (1, 0.1, 0.0)),
    _ordered("two layers, J_D = 0.05", (2, 0.05, 0.2), (2, 0.05, 0.3), (2, 0.05, 0.4)),
    _ordered("two layers, J_D = 0", (2, 0.0, 0.4), (2, 0.0, 0.45), (2, 0.0, 0.5)),
)


def _overlap_of_theory(cell: Claim, *, finite: bool = False) -> Claim:
    """A median of the table of overlaps at initialisation, by theory instead of networks."""
    _, jd, lambda_x, lambda_y, *_ = cell.key.split()
    row = {"phase_jd": jd, "phase_lambda_x": lambda_x, "phase_lambda_y": lambda_y}
    size: dict[str, object] = {"phase_n": 1600} if finite else {}
    kind = "theory for N = 1600" if finite else "theory for N → ∞"
    return replace(
        cell,
        key=f"{cell.key}, theory" + (" at N = 1600" if finite else ""),
        quantity=f"{cell.quantity}, {kind}",
        data="mean_field",
        read=At(
            "q_theory_n" if finite else "q_theory",
            {name: float(value) for name, value in row.items()} | size,
        ),
        grant=grants.OVERLAP_OF_THEORY,
        kind=Kind.THEORY,
        note=(
            "The size of the labels, one constant that the paper does not give, was chosen by the "
            "eight medians at initialisation."
        ),
        why=(
            ""
            if finite
            else "The paper's network has N = 1600, where the theory agrees: see the row for this "
            "size. It approaches the limit as the root of N (docs: Theory of the dynamics)."
        ),
    )


DYNAMICS = (
    Claim(
        "freezing point",
        "J_dyn, beyond which the dynamics of one layer freezes for N → ∞",
        "⪆ 0.8",
        "main text, geometry of fixed points",
        "0.8",
        "mean_field",
        at("jd_dyn"),
        note="No network is simulated for this number.",
        headline=True,
    ),
    Claim(
        "cycles of chains, theory",
        "share of neurons that flip per sweep at late times, two layers at J_D = 0, all updated at "
        "once, λ = 1.6, N → ∞",
        "can lead to the onset of cycles",
        "SM-C, multilayer chain model",
        "0",
        "mean_field",
        At("pair_flip_rate", {"pair_lam": 1.6}),
        relation=Relation.ABOVE,
        note="One half: the layers exchange their states in every sweep.",
    ),
    *(
        _overlap_of_theory(claim, finite=finite)
        for finite in (True, False)
        for claim in QDYN
        if claim.key.endswith(" 0 median")
    ),
)
