"""Thresholds of the algorithms that look for fixed points, and what the dynamics does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from figures.claims import grants
from figures.claims.claim import At, Claim, Ours, Relation, ours, runs_of, select, sizes_of
from rmtheory.base.statistics import weighted_fit

_TEXT = "main text, geometry of fixed points"

#: Least N at which a threshold is compared: the 50 % points of smaller networks still move.
LARGE = 4000


def _at_largest_n(data: xr.Dataset, name: str, least_n: int) -> xr.Dataset | None:
    """Return the part of `data` at the largest N, from `least_n` on, for which `name` is known."""
    known = np.isfinite(data[name].values) & np.isfinite(data[f"{name}_error"].values)
    rows = np.flatnonzero(known & (data["n"].values >= least_n))
    return data.isel(n=int(rows[-1])) if rows.size else None


def _fewest(one: xr.Dataset) -> float:
    """Return the number of samples along a curve of success; some points have more."""
    trials = np.atleast_1d(one["trials"].values)
    return float(trials[trials > 0].min())


@dataclass(frozen=True)
class _Threshold:
    """The 50 % point at the largest N and the largest cap, over the bound sqrt(2 ln N) if asked."""

    over_bound: bool = False
    least_n: int = LARGE

    def __call__(self, data: xr.Dataset) -> Ours | None:
        one = _at_largest_n(data.sel(cap=data["cap"].max()), "threshold", self.least_n)
        if one is None:
            return None
        unit = float(one["bound"]) if self.over_bound else 1.0
        sizes = f"{sizes_of(n=float(one['n']), samples=_fewest(one))} at each J_D"
        number, error = one["threshold"] / unit, one["threshold_error"] / unit
        return ours(number, error, sizes, runs_of(one, "threshold"))


@dataclass(frozen=True)
class _Success:
    """Share of samples of the largest N that reach a fixed point at J_D = 0.8."""

    jd: float = 0.8
    least_n: int = LARGE

    def __call__(self, data: xr.Dataset) -> Ours | None:
        one = select(data.isel(n=-1), {"jd": self.jd})
        if one is None or float(one["n"]) < self.least_n:
            return None
        sizes = sizes_of(n=float(one["n"]), samples=float(one["trials"]))
        return ours(one["success"], one["success_error"], sizes, runs_of(one, "success"))


def _series(data: xr.Dataset, name: str) -> xr.Dataset:
    """Return the curves of one search in one layer, from the smallest N to the largest."""
    same = (data["group"] == "core") & (data["search"] == name)
    return data.isel(series=np.flatnonzero(same.values)).sortby("n")


@dataclass(frozen=True)
class _Search:
    """The 50 % point of another algorithm in one layer, at its largest N."""

    name: str
    least_n: int = LARGE

    def __call__(self, data: xr.Dataset) -> Ours | None:
        one = _at_largest_n(
            _series(data, self.name).swap_dims(series="n"), "threshold", self.least_n
        )
        if one is None:
            return None
        sizes = f"{sizes_of(n=float(one['n']), samples=_fewest(one))} at each J_D"
        return ours(one["threshold"], one["threshold_error"], sizes, runs_of(one, "threshold"))


@dataclass(frozen=True)
class _SearchAt:
    """Share of networks of the largest N that a search solves at one J_D."""

    name: str
    jd: float
    least_n: int = LARGE

    def __call__(self, data: xr.Dataset) -> Ours | None:
        series = _series(data, self.name)
        if series.sizes["series"] == 0 or float(series["n"][-1]) < self.least_n:
            return None
        one = _point(series.isel(series=-1), self.jd)
        if one is None:
            return None
        sizes = sizes_of(n=float(one["n"]), samples=float(one["trials"]))
        return ours(one["success"], one["success_error"], sizes, runs_of(one, "success"))


def _point(one: xr.Dataset, jd: float) -> xr.Dataset | None:
    there = np.flatnonzero(np.isclose(one["coupling"].values, jd))
    return one.isel(point=int(there[0])) if there.size else None


@dataclass(frozen=True)
class _Growth:
    """Exponent a of iterations ~ N^a at one J_D: a line through log N and log of the medians."""

    name: str
    jd: float
    least_n: int = LARGE

    def __call__(self, data: xr.Dataset) -> Ours | None:
        series = _series(data, self.name)
        rows = [_point(series.isel(series=k), self.jd) for k in range(series.sizes["series"])]
        names = ("n", "sweeps_median", "sweeps_median_error")
        there = [row for row in rows if row is not None and np.isfinite(row[names[-1]])]
        if len(there) < 3 or float(there[-1]["n"]) < self.least_n:
            return None
        n, sweeps, error = (np.array([float(row[name]) for row in there]) for name in names)
        # A median of integers is not known better than to half a sweep.
        line = weighted_fit([1, np.log(n)], np.log(sweeps), np.maximum(error, 0.5) / sweeps)
        sizes = f"N = {n[0]:g} to {n[-1]:g}"
        exponent, deviation = float(line.coefficients[1]), float(line.scale * line.errors[1])
        runs = frozenset[str]().union(*(runs_of(row, "sweeps_median") for row in there))
        return ours(exponent, deviation, sizes, runs)


@dataclass(frozen=True)
class _Chain:
    """Share of two-layer chains without self-coupling that reach a fixed point, strongest lambda.

    The largest N is taken, and neurons are updated with probability p.
    """

    p: float

    def __call__(self, data: xr.Dataset) -> Ours | None:
        part = select(data, {"p": self.p})
        if part is None:
            return None
        one = part.isel(chain_n=-1, lam=-1)
        sizes = sizes_of(
            n=float(one["chain_n"]), lam=float(one["lam"]), samples=float(one["chain_trials"])
        )
        return ours(one["chain_success"], one["chain_success_error"], sizes)


def _iterations(phase: str, variable: str) -> Claim:
    return Claim(
        f"iterations of the {phase} phase",
        f"mean sweeps of the {phase} phase to its fixed point, first row of the table of q_dyn, "
        "after the first epoch",
        "no more than 5-10",
        "main text, Learning",
        "10",
        "qdyn_table",
        At(variable, {"n": 1600, "jd": 0.5, "lambda_x": 5.0, "lambda_y": 0.9, "epoch": 1}),
        relation=Relation.BELOW,
        note="Sweeps that change the state; those of the warm-up are not among them.",
    )


_NO_SIZES = "The paper gives no N."

ALGORITHMS = (
    Claim(
        "unreachable at small jd",
        "share of networks that the dynamics brings to a fixed point, J_D = 0.2, N = 1000, 1000 "
        "sweeps",
        "for J_D > 0 there exist exponentially many fixed points, which remain unreachable",
        "main text, core module",
        "0",
        "searches",
        At("success", {"n": 1000, "jd": 0.2}, ("n", "trials")),
        relation=Relation.BELOW,
        grant=grants.UNREACHABLE,
        note=_NO_SIZES,
    ),
    Claim(
        "rbp at 0.35",
        "share of networks that reinforced BP (dr = 0.01) solves at J_D = 0.35, largest N",
        "able to find fixed points",
        _TEXT,
        "1",
        "thresholds",
        _SearchAt("rbp .01", 0.35),
        grant=grants.RELIABLY,
        note=_NO_SIZES,
    ),
    Claim(
        "threshold of rbp",
        "J_D at which reinforced BP (dr = 0.01) solves half of the networks, largest N",
        "as low as 0.35",
        _TEXT,
        "0.35",
        "thresholds",
        _Search("rbp .01"),
        relation=Relation.BELOW,
        grant=grants.ROUNDED_HUNDREDTHS,
        note=(
            f"{_NO_SIZES} The threshold depends on the speed dr of the reinforcement, which the "
            "paper does not give: panel (d) of the figure."
        ),
        headline=True,
    ),
    Claim(
        "iterations of rbp",
        "exponent a of the iterations ~ N^a of reinforced BP (dr = 0.01) at J_D = 0.35",
        "small (sublinear) number of iterations",
        _TEXT,
        "1",
        "thresholds",
        _Growth("rbp .01", 0.35),
        relation=Relation.BELOW,
    ),
    Claim(
        "threshold of the likelihood",
        "J_D at which likelihood optimisation solves half of the networks, largest N",
        "⪆ 0.5",
        _TEXT,
        "0.5",
        "thresholds",
        _Search("likelihood"),
        relation=Relation.BELOW,
        grant=grants.ROUNDED_TENTHS,
        note=f"Read as: at least half of the networks are solved from J_D = 0.5 on. {_NO_SIZES}",
        why="The paper gives neither the size nor the number of the steps.",
        headline=True,
    ),
    Claim(
        "threshold of the dynamics",
        "J_D at which half of the networks reach a fixed point by the dynamics, largest N",
        "⪆ 0.8",
        _TEXT,
        "0.8",
        "dynamics_threshold",
        _Threshold(),
        relation=Relation.BELOW,
        grant=grants.ROUNDED_TENTHS,
        note=(
            "Read as: at least half of the networks converge from J_D = 0.8 on. The paper gives "
            "neither N nor the number of sweeps; panel (c) of the figure shows how the 50 % point "
            "depends on both."
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
        grant=grants.RELIABLY,
        note=(
            f"{_NO_SIZES} As N grows the share falls to 0: theory has the dynamics freeze beyond "
            "0.8147(6) for N → ∞ (section 'theory of the dynamics')."
        ),
    ),
    Claim(
        "bound of the dynamics",
        "50 % point of the dynamics over √(2 ln N), largest N",
        "J_D ⪅ √(2 ln N)",
        f"{_TEXT}; SM-A, convergence bound",
        "1",
        "dynamics_threshold",
        _Threshold(over_bound=True, least_n=0),
        relation=Relation.BELOW,
        note="A bound of the right order only: at J_D = √(2 ln N) its own argument gives 2.",
    ),
    Claim(
        "cycles of chains",
        "share of two-layer chains at J_D = 0 that reach a fixed point, all neurons updated at "
        "once, strongest λ",
        "can lead to the onset of cycles",
        "SM-C, multilayer chain model",
        "1",
        "dynamics_threshold",
        _Chain(1.0),
        relation=Relation.BELOW,
        note=_NO_SIZES,
    ),
    Claim(
        "masks against cycles",
        "the same, each neuron updated with probability 0.8",
        "effective at avoiding limit cycles; the dynamics converges",
        "SM-C, multilayer chain model; main text, multilayer chain",
        "1",
        "dynamics_threshold",
        _Chain(0.8),
        grant=grants.RELIABLY,
        note=_NO_SIZES,
    ),
    _iterations("clamped", "sweeps"),
    _iterations("free", "sweeps_free"),
)
