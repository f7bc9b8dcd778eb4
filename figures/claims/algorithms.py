"""Where the paper puts the thresholds of algorithms that look for fixed points (main text)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from figures.claims.claim import Claim, Ours, Relation
from figures.claims.read import At, ours, select

_TEXT = "main text, geometry of fixed points"


def largest(data: xr.Dataset, name: str) -> xr.Dataset | None:
    """Return the part of `data` at the largest N for which `name`, of N alone, is known."""
    known = np.flatnonzero(np.isfinite(data[name].values) & np.isfinite(data[f"{name}_error"]))
    return data.isel(n=int(known[-1])) if known.size else None


@dataclass(frozen=True)
class _Threshold:
    """The 50 % point at the largest N and the largest cap, over the bound sqrt(2 ln N) if asked."""

    over_bound: bool = False

    def __call__(self, data: xr.Dataset) -> Ours | None:
        one = largest(data.sel(cap=data["cap"].max()), "threshold")
        if one is None:
            return None
        unit = float(one["bound"]) if self.over_bound else 1.0
        return ours(one["threshold"] / unit, one["threshold_error"] / unit)

    def __str__(self) -> str:
        return "threshold" + ("/bound" if self.over_bound else "") + " at the largest N"


@dataclass(frozen=True)
class _Success:
    """Share of samples of the largest N that reach a fixed point at J_D = 0.8."""

    jd: float = 0.8

    def __call__(self, data: xr.Dataset) -> Ours | None:
        one = select(data.isel(n=-1), {"jd": self.jd})
        return None if one is None else ours(one["success"], one["success_error"])

    def __str__(self) -> str:
        return f"success[jd={self.jd}] at the largest N"


@dataclass(frozen=True)
class _Search:
    """The 50 % point of another algorithm in one layer, at its largest N."""

    name: str

    def __call__(self, data: xr.Dataset) -> Ours | None:
        same = (data["group"] == "core") & (data["search"] == self.name)
        known = same & np.isfinite(data["threshold"]) & np.isfinite(data["threshold_error"])
        rows = np.flatnonzero(known.values)
        if rows.size == 0:
            return None
        one = data.isel(series=int(rows[np.argmax(data["n"].values[rows])]))
        return ours(one["threshold"], one["threshold_error"])

    def __str__(self) -> str:
        return f"threshold[search={self.name}] at the largest N"


ALGORITHMS = (
    Claim(
        "threshold of rbp",
        "J_D at which reinforced BP (dr = 0.01) solves half of the networks, largest N",
        "as low as 0.35",
        _TEXT,
        "0.35",
        "thresholds",
        _Search("rbp .01"),
        relation=Relation.BELOW,
        note="It depends on the speed dr of the reinforcement, which the paper does not give.",
        headline=True,
    ),
    Claim(
        "threshold of the likelihood",
        "the same for likelihood optimisation",
        "⪆ 0.5",
        _TEXT,
        "0.5",
        "thresholds",
        _Search("likelihood"),
        why="It depends on the size and number of the steps, which the paper does not give.",
        headline=True,
    ),
    Claim(
        "threshold of the dynamics",
        "the same for the update dynamics",
        "⪆ 0.8",
        _TEXT,
        "0.8",
        "dynamics_threshold",
        _Threshold(),
        why=(
            "The 50 % point rises with N, and no limit is known: at the N that we reach it lies "
            "below 0.8. The paper gives neither N nor the number of sweeps."
        ),
        headline=True,
    ),
    Claim(
        "success at 0.8",
        "share of networks of the largest N that the dynamics brings to a fixed point, J_D = 0.8",
        "converges",
        _TEXT,
        "1",
        "dynamics_threshold",
        _Success(),
        tolerance=0.05,
    ),
    Claim(
        "bound of the dynamics",
        "50 % point of the dynamics over √(2 ln N), largest N",
        "J_D ⪅ √(2 ln N)",
        f"{_TEXT}; SM-A, convergence bound",
        "1",
        "dynamics_threshold",
        _Threshold(over_bound=True),
        relation=Relation.BELOW,
        note="A bound of the right order only: at J_D = √(2 ln N) its own argument gives 2.",
    ),
    Claim(
        "iterations of the dynamics",
        "mean sweeps to the fixed point of the clamped phase, after the first epoch",
        "no more than 5-10",
        "main text, Learning",
        "10",
        "qdyn_table",
        At("sweeps", {"n": 1600, "jd": 0.5, "lambda_x": 5.0, "lambda_y": 0.9, "epoch": 1}),
        relation=Relation.BELOW,
    ),
)
