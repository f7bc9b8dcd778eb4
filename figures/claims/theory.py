"""What the paper says of the number of fixed points and of their arrangement (SM-A, End Matter)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from figures.claims.claim import Claim, Ours, Relation
from figures.claims.read import Minus, at, ours, select

_END, _SM_A = "End Matter", "SM-A"


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

    def __str__(self) -> str:
        return f"{self.name} where the RM boundary meets its axis"


@dataclass(frozen=True)
class _LeastSlope:
    """Least dS_I*/dd of the curve of these couplings: positive where S_I* is monotone."""

    layers: int
    jd: float
    lam: float

    def __call__(self, data: xr.Dataset) -> Ours | None:
        same = (
            (data["layers"] == self.layers)
            & np.isclose(data["jd"], self.jd)
            & np.isclose(data["lam"], self.lam)
        )
        chosen = np.flatnonzero(same.values)
        if chosen.size == 0:
            return None
        one = data.isel(curve=int(chosen[0]))
        # An inner minimum is found only if it lies between two computed points.
        if int(np.isfinite(one["slope"]).sum()) < _ENOUGH:
            return None
        return ours(one["least_slope"], one["least_slope_error"])

    def __str__(self) -> str:
        return f"least_slope[layers={self.layers}, jd={self.jd}, lam={self.lam}]"


#: Points of a curve below which its dip may be missed.
_ENOUGH = 12


def least_coefficient(data: xr.Dataset) -> Ours | None:
    """Return the least coefficient of q^2 of two layers over J_D >= 0 and all lambda shown."""
    part = data.where(data["jd"] >= 0, drop=True)
    values = part["coefficient"].values
    place = np.unravel_index(int(np.argmin(values)), values.shape)
    return ours(float(values[place]), float(part["coefficient_error"].values[place]))


@dataclass(frozen=True)
class _Network:
    """A quantity of enumerated networks of one layer at one J_D."""

    name: str
    jd: float

    def __call__(self, data: xr.Dataset) -> Ours | None:
        one = select(data, {"layers": 1, "jd": self.jd})
        return None if one is None else ours(one[self.name], one[f"{self.name}_error"])

    def __str__(self) -> str:
        return f"{self.name}[layers=1, jd={self.jd}]"


ENTROPY = (
    Claim(
        "entropy at zero coupling",
        "entropy S_fp of the fixed points at J_D = λ = 0",
        "vanishes",
        "main text, after the equation of S_fp",
        "0",
        "annealed",
        at("entropy_by_jd", lam_curve=0.0, jd=0.0),
        tolerance=1e-12,
    ),
    Claim(
        "entropy grows with lambda",
        "S_fp(J_D = 1, λ = 0.5) − S_fp(J_D = 1, λ = 0), two layers",
        "increasing in λ",
        "main text, after the equation of S_fp",
        "0",
        "annealed",
        Minus(
            at("entropy_by_jd", lam_curve=0.5, jd=1.0), at("entropy_by_jd", lam_curve=0.0, jd=1.0)
        ),
        relation=Relation.ABOVE,
        why="Erratum 3: near λ = 0 the entropy decreases once J_D exceeds 0.506.",
    ),
    Claim(
        "entropy at infinite lambda",
        "S_fp of two layers as λ → ∞, J_D = 0.4",
        "→ log 2 = 0.693",
        "main text, after the equation of S_fp",
        "0.693",
        "annealed",
        at("entropy_limit", layers=2.0),
        why="Erratum 4: log 2 needs J_D − λ → ∞; at fixed J_D the limit is (log 2)/2.",
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
    ),
    Claim(
        "relative second moment",
        "⟨Z²⟩/⟨Z⟩² of 20 neurons at J_D = 0.4, enumerated",
        "→ 1",
        f"{_SM_A}, tightness",
        "1",
        "counts",
        _Network("ratio", 0.4),
        tolerance=0.0,
        why="Erratum 7: the limit of large N is finite and above 1; only the exponent is tight.",
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
        "stability of two layers",
        "least coefficient of q² over J_D ≥ 0, λ = 0, 0.5, 1, 1.5",
        "always positive",
        f"{_SM_A}, figure of the stability",
        "0",
        "stability",
        least_coefficient,
        relation=Relation.ABOVE,
    ),
)


def _monotone(layers: int, jd: float, lam: float, up: bool, why: str = "") -> Claim:
    couplings = f"J_D = {jd:g}" + ("" if layers == 1 else f", λ = {lam:g}")
    return Claim(
        f"monotone {layers} {jd:g} {lam:g}",
        f"least slope of S_I*(d), {'core module' if layers == 1 else 'two layers'}, {couplings}",
        "monotone" if up else "not monotone",
        f"{_END}, figure of the local entropies",
        "0",
        "local_curves",
        _LeastSlope(layers, jd, lam),
        relation=Relation.ABOVE if up else Relation.BELOW,
        why=why,
    )


_EDGE = "λ_c(J_D = 0.05) and λ_c(0) lie elsewhere than the figure of the paper suggests."

GEOMETRY = (
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
        tolerance=0.005,
        relation=Relation.BELOW,
        headline=True,
    ),
    _monotone(1, 0.05, 0.0, up=False),
    _monotone(1, 0.1, 0.0, up=True),
    _monotone(2, 0.05, 0.2, up=False, why=_EDGE),
    _monotone(2, 0.05, 0.4, up=True, why=_EDGE),
    _monotone(2, 0.0, 0.4, up=False, why=_EDGE),
    _monotone(2, 0.0, 0.5, up=True, why=_EDGE),
)
