"""Claims that need no data: fixed points, their clusters, and capacities.

First which runs decide them, all of it fixed before these start (:mod:`figures.trial.designs`);
then what stored runs say (:mod:`figures.trial.evidence`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from figures.claims.claim import RUNS, runs_of
from figures.trial.runs import (
    Association,
    Capacity,
    Cluster,
    Question,
    Run,
    Search,
    Walks,
    question,
)
from figures.trial.store import unpack
from figures.trial.tables import LEAST_FREEDOM, StoredRuns, merged_tables, share_error, student
from rmtheory.base.statistics import quantile_error, standard_error

# Networks without input.

#: Samples of a stage -> seeds, such that 120 networks or more are there in the end: if all of 111
#: succeed, the chance of success is above 0.925 at three standard errors.
SHARE_SEEDS = {10: range(12), 20: range(6), 50: range(4)}

#: N, J_D, samples of a stage.
UNREACHABLE = (1000, 0.2, 50)
REACHABLE = (4000, 0.8, 20)
REINFORCED = (4000, 0.35, 10)

#: Method -> most iterations; reinforced BP with dr = 0.01 ends at r = 0.95.
ITERATIONS = {"dynamics": 1000, "rbp": 298, "likelihood": 500}

#: Method -> J_D at which success is measured for its 50 % point, and samples of a stage: at the
#: largest size that is affordable, in the windows of the figure at full scale.
LARGE_N, LARGE_SAMPLES = 4000, 10
WINDOWS = {
    "rbp": (0.15, 0.165, 0.18, 0.195, 0.21),
    "likelihood": (0.41, 0.43, 0.45, 0.47, 0.49),
    "dynamics": (0.66, 0.68, 0.70, 0.72, 0.74),
}

#: Their seeds, one stage each.
LARGE_SEEDS = range(4)

#: Sizes at which iterations of reinforced BP are compared, at the J_D of REINFORCED.
GROWING = (1000, 2000, 4000)


def search(cell: tuple[int, float, int], seed: int, method: str = "dynamics") -> Search:
    """Return networks that a method is to bring to a fixed point; rBP with dr = 0.01."""
    n, jd, samples = cell
    return Search(method, n, jd, samples, ITERATIONS[method], seed)


def searches(method: str, seed: int) -> tuple[Search, ...]:
    """Return the searches along the curve of success of a method, one for each J_D.

    Every J_D has networks of its own, since the fit takes them as independent.
    """
    window = WINDOWS[method]
    return tuple(
        search((LARGE_N, jd, LARGE_SAMPLES), seed * len(window) + place, method)
        for place, jd in enumerate(window)
    )


def growing(seed: int) -> tuple[Search, ...]:
    """Return the searches by reinforced BP at growing N."""
    cells = ((n, *REINFORCED[1:]) for n in GROWING)
    return tuple(search(cell, seed, "rbp") for cell in cells)


def searched() -> list[Question]:
    """Return the questions about what algorithms reach."""
    cells = (
        ("unreachable at small jd", "searches", UNREACHABLE, "dynamics"),
        ("success at 0.8", "dynamics_threshold", REACHABLE, "dynamics"),
        ("rbp at 0.35", "thresholds", REINFORCED, "rbp"),
    )
    curves = (
        ("threshold of rbp", "thresholds", "rbp"),
        ("threshold of the likelihood", "thresholds", "likelihood"),
        ("threshold of the dynamics", "dynamics_threshold", "dynamics"),
    )
    return [
        *(
            question(
                key, data, (key,), *((search(cell, seed, method),) for seed in SHARE_SEEDS[cell[2]])
            )
            for key, data, cell, method in cells
        ),
        *(
            question(key, data, (key,), *(searches(method, seed) for seed in LARGE_SEEDS))
            for key, data, method in curves
        ),
        question(
            "iterations of rbp",
            "thresholds",
            ("iterations of rbp",),
            *(growing(seed) for seed in LARGE_SEEDS),
        ),
    ]


#: N, J_D, pairs of a stage, and N of typical fixed points: their neighbours, 0.8 on average at
#: N = 400, become fewer as N e^{-c sqrt N}.
CLUSTER = (1000, 0.8, 20, 2000)


def cluster(seed: int) -> Cluster:
    """Return fixed points that the dynamics reaches, to be joined by single flips."""
    return Cluster(*CLUSTER, seed)


#: Walks between the two fixed points of a pair.
WALKS = 10


def walks(seed: int) -> Walks:
    """Return walks of single flips between the same fixed points, which only come nearer."""
    return Walks(*CLUSTER[:3], WALKS, seed)


def clusters() -> list[Question]:
    """Return the questions about fixed points that single flips join."""
    keys, seeds = ("typical fixed points", "connected cluster"), SHARE_SEEDS[20]
    return [
        question("clusters", "clusters", keys, *((cluster(seed),) for seed in seeds)),
        question(
            "branches", "clusters", ("branching cluster",), *((walks(seed),) for seed in seeds)
        ),
    ]


# Hetero-association.

#: Sizes of the chains, and depth -> load P/N at each from which P_max is searched for. They follow
#: trials at random loads, eight a cell up to N = 600, whose fits determined one P_max of eleven.
#: The paper's largest N is 2000, which takes days.
ASSOCIATION_N = (200, 400, 600, 1000)
STARTS = {
    2: (0.42, 0.46, 0.47, 0.49),
    3: (0.79, 0.85, 0.88, 0.9),
    5: (0.75, 0.85, 0.92, 0.95),
    7: (0.75, 0.85, 0.92, 0.95),
}

#: 1 - epsilon: 5th percentile of the overlaps from which pairs count as learnt.
LEARNT = 0.95

#: Networks of each size and depth, by stage.
ASSOCIATION_SEEDS = (range(3), range(3, 6))

#: Depths and sizes at which the protocol as printed is tried, over all loads.
PRINTED_LAYERS, PRINTED_N, PRINTED_LOADS = (2, 3, 5), (200, 400), (0.02, 1.0)
PRINTED_SEEDS = range(8)


def capacity(layers: int, n: int, seed: int) -> Capacity:
    """Return the search for the P_max of a chain, by the protocol that we reconstructed."""
    start = STARTS[layers][ASSOCIATION_N.index(n)]
    return Capacity("reconstruction", layers, n, start, seed)


#: Depth, N and load of the chain whose overlaps are read layer by layer: those of the paper, at a
#: load that an earlier version of this code learnt at N = 400, where P_max/N still grew with N.
CHAIN = (7, 2000, 0.8)

#: Networks of it, all in one stage: fewer have no error.
CHAIN_SEEDS = (0, 1, 2)


def chain_association(seed: int) -> Association:
    """Return a trial whose overlaps are read layer by layer."""
    layers, n, load = CHAIN
    return Association("reconstruction", layers, n, (load, load), seed)


def printed_association(layers: int, n: int, seed: int) -> Association:
    """Return a trial by the protocol as printed."""
    return Association("printed", layers, n, PRINTED_LOADS, seed)


def capacities() -> list[Question]:
    """Return the questions about random pairs that chains learn."""

    def networks(depths: tuple[int, ...], seeds: range) -> tuple[Capacity, ...]:
        return tuple(
            capacity(layers, n, k) for n in ASSOCIATION_N for layers in depths for k in seeds
        )

    shallow = ("capacity reconstruction 3-2", "capacity linear")
    few, more = ASSOCIATION_SEEDS
    # The second claim is about three layers alone.
    two_and_three = (networks((2, 3), few), networks((3,), more), networks((2,), more))
    return [
        question("capacity, two and three layers", "capacity", shallow, *two_and_three),
        question(
            "capacity, more layers",
            "capacity",
            ("capacity reconstruction beyond 3",),
            *(networks((3, 5, 7), seeds) for seeds in ASSOCIATION_SEEDS),
        ),
        question(
            "overlaps by layer",
            "capacity",
            (
                *(f"overlap of the {layer} layer" for layer in ("first", "last")),
                "overlap grows",
                "alignment of the first layer",
            ),
            tuple(map(chain_association, CHAIN_SEEDS)),
        ),
        question(
            "capacity of the printed protocol",
            "capacity",
            ("capacity printed",),
            tuple(
                printed_association(layers, n, k)
                for n in PRINTED_N
                for layers in PRINTED_LAYERS
                for k in PRINTED_SEEDS
            ),
        ),
    ]


# What stored runs say.


@dataclass(frozen=True)
class _Searched:
    """Samples of one method at one N and J_D, of all seeds: which succeeded, and when."""

    reached: NDArray[np.bool_]
    sweeps: NDArray[np.int64]
    #: The keys of the runs.
    keys: str

    @classmethod
    def of(cls, stored: StoredRuns, runs: Sequence[Run]) -> _Searched | None:
        """Return the samples of the runs that are stored; None if there are none."""
        rows = stored.rows(runs, 0)
        if not rows:
            return None
        reached = np.concatenate([unpack(row["reached"]) for row in rows.values()])
        sweeps = np.concatenate([np.array(row["sweeps"]) for row in rows.values()])
        return cls(reached, sweeps, " ".join(rows))

    def numbers(self) -> dict[str, float | str]:
        """Return the share of successes and the median of their iterations, with errors."""
        share = float(self.reached.mean())
        done = self.sweeps[self.reached]
        known: dict[str, float | str] = {
            "success": share,
            "success_error": share_error(self.reached),
            "trials": float(len(self.reached)),
            f"success{RUNS}": self.keys,
        }
        if len(done) > 1:
            # Of whole numbers no error is below half a step.
            error = float(quantile_error(np.sort(done), 0.5, resolution=0.5))
            known |= {"sweeps_median": float(np.median(done)), "sweeps_median_error": error}
            known[f"sweeps_median{RUNS}"] = self.keys
        return known


def _every_seed(cell: tuple[int, float, int], method: str) -> list[Run]:
    return [search(cell, seed, method) for seed in SHARE_SEEDS[cell[2]]]


def _curve(method: str) -> dict[float, list[Run]]:
    """Return the searches along the curve of success of a method, by J_D."""
    stages = [searches(method, seed) for seed in LARGE_SEEDS]
    return {jd: [stage[place] for stage in stages] for place, jd in enumerate(WINDOWS[method])}


def _points(stored: StoredRuns, method: str, extra: Sequence[tuple[int, float, int]]) -> xr.Dataset:
    """Return what a method does on (n, jd): along its curve of success and at `extra` cells."""
    runs = {(LARGE_N, jd): every for jd, every in _curve(method).items()}
    runs |= {cell[:2]: _every_seed(cell, method) for cell in extra}
    rows = {
        cell: one.numbers()
        for cell, every in runs.items()
        if (one := _Searched.of(stored, every)) is not None
    }
    sizes, jds = sorted({n for n, _ in rows}), sorted({jd for _, jd in rows})
    data = xr.Dataset(coords={"n": sizes, "jd": jds})
    names = ("success", "success_error", "trials", "sweeps_median", "sweeps_median_error")
    for name in (*names, *_KEYS):
        values = [[rows.get((n, jd), {}).get(name, np.nan) for jd in jds] for n in sizes]
        kind = object if name in _KEYS else float
        data[name] = (("n", "jd"), np.array(values, dtype=kind).reshape(len(sizes), len(jds)))
    data = data.set_coords("trials")
    threshold, error = _half_point(data, method)
    every = [" ".join(sorted(runs_of(data.sel(n=n), "success"))) for n in sizes]
    return data.assign(
        {
            "threshold": ("n", threshold),
            "threshold_error": ("n", error),
            f"threshold{RUNS}": ("n", np.array(every, dtype=object)),
        }
    )


#: What names the runs of shares and of medians.
_KEYS = (f"success{RUNS}", f"sweeps_median{RUNS}")


def _half_point(data: xr.Dataset, method: str) -> tuple[list[float], list[float]]:
    """Return the 50 % point at each N that has the whole curve; NaN elsewhere."""
    from rmsim.studies.success_curves import crossing

    values: list[tuple[float, float]] = []
    for n in data["n"].values:
        row = data.sel(n=n)
        known = row.isel(jd=np.flatnonzero(row["trials"].values > 0))
        whole = int(n) == LARGE_N and set(WINDOWS[method]) <= set(known["jd"].values.tolist())
        if not whole:
            values.append((math.nan, math.nan))
            continue
        trials = known["trials"].values
        hits = np.rint(known["success"].values * trials)
        point = crossing(known["jd"].values, hits, trials)
        there = point.value is not None and point.error is not None
        values.append((point.value or 0.0, point.error or 0.0) if there else (math.nan, math.nan))
    return [value for value, _ in values], [error for _, error in values]


def dynamics_of(stored: StoredRuns) -> xr.Dataset | None:
    """Return what the dynamics does along its curve of success."""
    data = _points(stored, "dynamics", [REACHABLE])
    if not data.sizes["n"]:
        return None
    # A number for each cap on the sweeps; there is one.
    caps = {name: data[name].expand_dims("cap", -1) for name in ("threshold", "threshold_error")}
    return data.assign(caps).assign_coords(cap=[ITERATIONS["dynamics"]])


def algorithms_of(stored: StoredRuns) -> xr.Dataset | None:
    """Return searches in one layer as rows, one for each method and N."""
    growing = [(n, *REINFORCED[1:]) for n in GROWING]
    rows = []
    for name, method, extra in (("rbp .01", "rbp", growing), ("likelihood", "likelihood", [])):
        data = _points(stored, method, extra)
        rows += [(name, int(n), data.sel(n=n)) for n in data["n"].values]
    if not rows:
        return None
    most = max(one.sizes["jd"] for _, _, one in rows)

    def points(name: str) -> tuple[tuple[str, str], NDArray[Any]]:
        full = np.full((len(rows), most), np.nan, dtype=object if name in _KEYS else float)
        for row, (_, _, one) in zip(full, rows, strict=True):
            # Where nothing was tried there is no point.
            row[: one.sizes["jd"]] = one[name].where(one["trials"] > 0).values
        return ("series", "point"), full

    names = ("success", "success_error", "sweeps_median", "sweeps_median_error", *_KEYS)
    data = xr.Dataset({name: points(name) for name in names})
    data[f"threshold{RUNS}"] = ("series", [str(one[f"threshold{RUNS}"].item()) for *_, one in rows])
    for name in ("threshold", "threshold_error"):
        data[name] = ("series", [float(one[name]) for _, _, one in rows])
    return data.assign_coords(
        trials=points("trials"),
        coupling=points("jd"),
        group=("series", ["core"] * len(rows)),
        search=("series", [name for name, _, _ in rows]),
        n=("series", [n for _, n, _ in rows]),
    )


def unreachable_of(stored: StoredRuns) -> xr.Dataset | None:
    """Return how often the dynamics ends at small J_D."""
    n, jd, _ = UNREACHABLE
    searched = _Searched.of(stored, _every_seed(UNREACHABLE, "dynamics"))
    if searched is None:
        return None
    known, dims = searched.numbers(), ("n", "jd")
    return xr.Dataset(
        {name: (dims, [[known[name]]]) for name in ("success", "success_error", _KEYS[0])},
        {"n": [n], "jd": [jd], "trials": (dims, [[known["trials"]]])},
    )


def clusters_of(stored: StoredRuns) -> xr.Dataset | None:
    """Return the share of pairs that are joined, of walks that stop, and typical neighbours."""
    n, jd, _, typical_n = CLUSTER
    rows = stored.rows(map(cluster, SHARE_SEEDS[20]), 0)
    there, keys = list(rows.values()), " ".join(rows)
    pairs = [pair for row in there for pair in row["pairs"] if pair["pair"]]
    parts = [_tips(stored)]
    if len(pairs) >= LEAST_FREEDOM:
        joined = np.array([row["joined"] for row in pairs], dtype=float)
        typical = np.array([count for row in there for count in row["typical"]], dtype=float)
        # A mean of zeros is not certain: that of those with a neighbour at all is not known better.
        rare = share_error(typical > 0)
        data = {
            "joined": joined.mean(),
            "joined_error": share_error(joined),
            "typical_neighbours": typical.mean(),
            "typical_neighbours_error": max(float(standard_error(typical)), rare),
            f"joined{RUNS}": keys,
            f"typical_neighbours{RUNS}": keys,
        }
        parts.append(xr.Dataset(data, {"pairs": len(pairs)}))
    return merged_tables(parts, n=n, jd=jd, typical_n=typical_n)


def _tips(stored: StoredRuns) -> xr.Dataset | None:
    """Return the share of walks between two fixed points that stop before the second, and at tips.

    At a tip nothing leads on to another fixed point but the way back.
    """
    rows = stored.rows(map(walks, SHARE_SEEDS[20]), 0)
    pairs = [pair for row in rows.values() for pair in row["pairs"] if pair["pair"]]
    if len(pairs) < LEAST_FREEDOM:
        return None
    taken = [pair["walks"] for pair in pairs]
    stops = np.array([np.mean([one["distance"] > 0 for one in own]) for own in taken])
    tips = np.array(
        [np.mean([one["distance"] > 0 and one["onward"] == 0 for one in own]) for own in taken]
    )
    data: dict[str, float | str] = {}
    for name, shares in (("stops", stops), ("tips", tips)):
        # Walks of one pair are not independent: if all do alike, so do as many as there are pairs.
        error = max(float(standard_error(shares)), share_error(shares > 0))
        keys = " ".join(rows)
        data |= {name: float(shares.mean()), f"{name}_error": error, f"{name}{RUNS}": keys}
    return xr.Dataset(data, {"walks": sum(map(len, taken))})


def associations_of(stored: StoredRuns) -> xr.Dataset | None:
    """Return P_max and its slopes, what the printed protocol learns, and the overlaps by layer."""
    data = merged_tables([_capacities(stored), _printed_trials(stored), _by_layer(stored)])
    if data is None or "trials" not in data.coords:
        return data
    # Sizes that only one of the protocols has.
    return data.assign_coords(trials=data["trials"].fillna(0).astype(int))


def _capacities(stored: StoredRuns) -> xr.Dataset | None:
    """Return P_max by depth and width, what half of the trials learn, with lines through them.

    Networks that share a depth and a width are taken as one: targets are drawn anew for every
    trial, so that what one network learns twice at the same P differs as much as two networks do.
    """
    from rmsim.studies.capacity_sweep import half_learnt, with_slopes

    seeds = [seed for stage in ASSOCIATION_SEEDS for seed in stage]
    depths, sizes = list(STARTS), list(ASSOCIATION_N)
    value, error = (np.full((1, len(depths), len(sizes)), np.nan) for _ in range(2))
    trials = np.zeros(value.shape, dtype=int)
    keys = np.full(value.shape, "", dtype=object)
    for a, b in np.ndindex(*value.shape[1:]):
        rows = stored.rows((capacity(depths[a], sizes[b], seed) for seed in seeds), 0)
        if rows:
            patterns = np.array([one for row in rows.values() for one in row["patterns"]])
            learnt = np.array([one for row in rows.values() for one in row["o5"]]) >= LEARNT
            keys[0, a, b] = " ".join(rows)
            trials[0, a, b] = len(patterns)
            load = half_learnt(patterns / sizes[b], learnt)
            value[0, a, b], error[0, a, b] = sizes[b] * load[0], sizes[b] * load[1]
    if not trials.any():
        return None
    dims = ("protocol", "layers", "n")
    data = xr.Dataset(
        {"p_max": (dims, value), "p_max_error": (dims, error), f"p_max{RUNS}": (dims, keys)},
        {"protocol": ["reconstruction"], "layers": depths, "n": sizes, "trials": (dims, trials)},
    )
    along = np.array([[" ".join(row) for row in keys[0]]], dtype=object)
    return with_slopes(data).assign({f"slope{RUNS}": (dims[:2], along)})


def _printed_trials(stored: StoredRuns) -> xr.Dataset | None:
    """Return what the protocol as printed learns of loads drawn at random."""
    from rmsim.studies.capacity_sweep import analyse

    runs = [
        printed_association(layers, n, seed)
        for layers in PRINTED_LAYERS
        for n in PRINTED_N
        for seed in PRINTED_SEEDS
    ]
    rows = stored.rows(runs, 0)
    if not rows:
        return None
    raw = xr.Dataset(
        {
            name: ("trial", [float(row[name]) for row in rows.values()])
            for name in ("patterns", "o5")
        },
        {
            name: ("trial", [getattr(run, name) for run in runs if run.key in rows])
            for name in ("protocol", "layers", "n")
        },
    )
    data = analyse(raw)
    best = raw["o5"].groupby(["protocol", "layers"]).max()
    data["best_o5"] = best.reindex(protocol=data["protocol"], layers=data["layers"])
    # The largest of what was seen estimates nothing: beside it stands the deviation of all.
    data[f"best_o5{RUNS}"] = xr.DataArray(" ".join(rows))
    return data.assign(best_o5_error=0 * data["best_o5"] + float(raw["o5"].std()))


def _by_layer(stored: StoredRuns) -> xr.Dataset | None:
    """Return the overlaps by layer of the chain, means over networks with the error of these.

    Whether they have learnt their pairs does not matter here: what they do is what there is.
    """
    known = stored.rows(map(chain_association, CHAIN_SEEDS), 0)
    rows = list(known.values())
    if len(rows) <= LEAST_FREEDOM:
        return None
    layers, n, _ = CHAIN
    patterns = [float(row["patterns"]) for row in rows]
    data = xr.Dataset(
        coords={
            "layer": np.arange(1, layers + 1),
            "overlap_protocol": "reconstruction",
            "overlap_layers": layers,
            "overlap_n": n,
            "overlap_o5": min(row["o5"] for row in rows),
            "overlap_trials": len(rows),
            "patterns_low": min(patterns),
            "patterns_high": max(patterns),
        }
    )
    for name in ("overlap", "overlap_input"):
        for level in ("median", "low", "high"):
            values = np.array([row[f"{name}_{level}"] for row in rows])
            data[f"{name}_{level}"] = ("layer", values.mean(axis=0))
            # One spin of one network would move the mean by this: the error is not below.
            error = np.maximum(standard_error(values), 2 / (n * len(rows)))
            error *= student(len(rows) - 1)
            data[f"{name}_{level}_error"] = ("layer", error)
            data[f"{name}_{level}{RUNS}"] = xr.DataArray(" ".join(known))
    return data
