"""The representation manifold on single networks: S(d) around fixed points, typical and reached.

Typical fixed points, made by planting, have few others close by. Those that the dynamics and
reinforced BP find lie in dense regions, whose entropy theory bounds by S_I*(d). The curves are
those of the TAP equations (:mod:`rmsim.search.tap_entropy`); fixed points at distance 1 and 2
are counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Picture

from figures.engine.figure import Context, Figure, Parameters, Scale, swept
from figures.engine.plotting import label_axes, panels
from rmsim.network import Network
from rmsim.studies import compare
from rmsim.sweep.definition import Grid, Scalar, Sweep
from rmsim.sweep.directory import collect
from rmtheory.base.chain import Chain
from rmtheory.base.statistics import standard_error
from rmtheory.local_entropies.curves import curve

SEED = 0

#: Source of the fixed point -> its name in legends.
SOURCES = {"planted": "typical (planted)", "dynamics": "dynamics", "rbp": "reinforced BP"}


def _parameters(
    n: int, samples: int, distances: int, theory_points: int, gamma_step: float = 0.05
) -> Parameters:
    return {
        "n": n,
        "jd": 0.8,
        "samples": samples,
        "distances": np.round(np.geomspace(0.01, 0.45, distances), 6).tolist(),
        "gamma_step": gamma_step,
        "gamma_most": 3.0,
        "theory_points": theory_points,
        "theory_d": [5e-3, 0.45],
    }


def measure(point: dict[str, Any], seed: int, device: str = "cpu") -> dict[str, Any]:
    """Search for a fixed point or plant one, and count the fixed points near it; called by name."""
    from rmsim.search.neighbours import neighbours_at
    from rmsim.search.tap_entropy import local_entropy_around, reference_point
    from rmsim.tensors import choose_device

    network = Network(point["n"], Chain(1, point["jd"]))
    # Every sample is a network of its own seed; the three sources share it.
    place = choose_device(device)
    couplings, state = reference_point(network, point["source"], seed=seed, device=place)
    fields = np.arange(0, point["gamma_most"] + 1e-9, point["gamma_step"]).round(6).tolist()
    around = local_entropy_around(couplings, state, fields)
    J = couplings.matrices[0].double().cpu().numpy()
    d = np.array(point["distances"])
    values = [around.at(x) for x in d]
    # d grows as the field falls; where the curve does not reach, nothing is said.
    mutual = np.interp(d, around.mutual[::-1], around.entropy[::-1], left=np.nan, right=np.nan)
    return {
        "entropy": np.array([np.nan if value is None else value for value in values]),
        "mutual_entropy": mutual,
        "at_distance": np.array([neighbours_at(J, state.numpy(), network, k) for k in (1, 2)]),
        "device": str(place),
    }


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Measure S(d) around a fixed point of every source in every network, and add the theory."""
    axes: dict[str, tuple[Scalar, ...]] = {
        "source": tuple(SOURCES),
        "sample": tuple(range(parameters["samples"])),
    }
    names = ("n", "jd", "distances", "gamma_step", "gamma_most")
    sweep = Sweep(
        "single_sample_rm",
        1,
        "figures.paper.single_sample_rm:measure",
        Grid.product(axes, {name: parameters[name] for name in names}),
        SEED,
        paired=("source",),
    )
    dims = {"entropy": ("d",), "mutual_entropy": ("d",), "at_distance": ("flips",)}
    with swept({"around": sweep}, context) as folders:
        raw = collect(folders["around"], sweep, dims=dims)
    data = _averages(raw.assign_coords(d=parameters["distances"], flips=[1, 2]))
    return data.merge(_theory(parameters))


def _averages(raw: xr.Dataset) -> xr.Dataset:
    """Means over networks with their standard errors; S(d) where every curve reaches d."""
    data = xr.Dataset()
    meanings = {
        "entropy": "entropy per neuron of the fixed points at distance d, by TAP (nat)",
        "mutual_entropy": "the same against the distance d between two of them (nat)",
        "at_distance": "fixed points at distance 1 and 2, counted",
    }
    for name, meaning in meanings.items():
        values = raw[name].astype(float)
        data[name] = values.mean("sample", skipna=False)
        data[f"{name}_error"] = values.reduce(standard_error, "sample")
        data[name].attrs["long_name"] = meaning
    single = raw["entropy"].rename("single_entropy")
    meaning = "TAP entropy around each fixed point; error of the solution, that of TAP is not known"
    data["single_entropy"] = single.assign_attrs(long_name=meaning)
    data["single_entropy_error"] = xr.full_like(single, 1e-8).where(single.notnull())
    return data


def _theory(parameters: Parameters) -> xr.Dataset:
    """S_I*(d) of the densest regions, and the mean number around a typical fixed point."""
    chain, n = Chain(1, parameters["jd"]), parameters["n"]
    low, high = parameters["theory_d"]
    densest = curve(chain, np.geomspace(low, high, parameters["theory_points"]).tolist())
    data = densest[["internal", "internal_error"]].rename(d="theory_d")
    data["internal"].attrs["long_name"] = "S_I*(d) per neuron, the densest regions (nat)"
    flips = np.unique(np.round(np.array(parameters["distances"]) * n).astype(int).clip(1))
    counts = np.array([compare.neighbours(chain, n, int(k)) for k in flips])
    typical = np.log(counts) / n
    meaning = "log of the mean number at distance d from a typical fixed point, per neuron, exact"
    data["typical"] = ("typical_d", typical, {"long_name": meaning})
    data["typical_error"] = ("typical_d", 1e-12 * np.ones_like(typical))
    return data.assign_coords(typical_d=flips / n, n=n, jd=parameters["jd"])


def plot(data: xr.Dataset) -> Picture:
    """Draw S against both distances, and the counts at distance 1 and 2."""
    picture, (around, between, counts) = panels(3, height=2.7)
    setting = f"$N={int(data.n)}$, $J_D={float(data.jd):g}$"
    around.plot(
        data["typical_d"], data["typical"], color="0.4", linestyle="--", label="typical, theory"
    )
    between.plot(data["theory_d"], data["internal"], color="black", label=r"theory, $S_I^*(d)$")
    for index, (source, label) in enumerate(SOURCES.items()):
        row = data.sel(source=source)
        style: dict[str, Any] = {"color": f"C{index}", "fmt": "osD"[index], "label": label}
        style |= {"markersize": 3, "capsize": 1.5}
        for sample in row["sample"].values:
            single = row["single_entropy"].sel(sample=sample)
            around.plot(row["d"], single, color=f"C{index}", linewidth=0.4, alpha=0.6)
        around.errorbar(row["d"], row["entropy"], row["entropy_error"], **style)
        between.errorbar(row["d"], row["mutual_entropy"], row["mutual_entropy_error"], **style)
        x = np.arange(2) + 0.12 * (index - 1)
        counts.errorbar(x, row["at_distance"], row["at_distance_error"], **style)
    for axis, name in ((around, "from the fixed point"), (between, "between fixed points")):
        axis.set_xscale("log")
        axis.legend(loc="upper left", title=setting)
        label_axes(axis, f"distance $d$ {name}", r"$S(d)$ per neuron (nat)")
    counts.set_yscale("symlog", linthresh=1)
    counts.set_ylim(bottom=-0.2)
    counts.set_xticks([0, 1], ["1", "2"])
    counts.set_xlim(-0.5, 1.5)
    counts.legend(loc="upper left", title=setting)
    label_axes(counts, "distance (spins)", "fixed points, counted")
    return picture


FIGURE = Figure(
    name="single_sample_rm",
    title="The representation manifold on single networks",
    caption=(
        "(a) Entropy of the fixed points at distance d from a given one by TAP: typical (planted), "
        "found by the dynamics, found by reinforced BP; thin lines, single networks; points, means "
        "with standard errors, where every curve reaches d. Dashed, log of the mean number around "
        "a typical fixed point, exact at this N. (b) The same against the distance between two of "
        "these fixed points, with theory's S_I*(d) of the densest regions (black). (c) Fixed "
        "points at distance 1 and 2 from the given one, counted: mean and standard error."
    ),
    parameters={
        Scale.TINY: _parameters(60, 2, 5, 3, gamma_step=0.3),
        Scale.QUICK: _parameters(400, 6, 14, 25),
        Scale.PAPER: _parameters(2000, 20, 30, 60),
    },
    compute=compute,
    plot=plot,
    version=2,
    seed=SEED,
    earlier=("2-e25800709489", "2-f6be980515c3"),
)
