"""Belief propagation against enumeration: entropies and marginals of small networks.

The Bethe (TAP) entropy estimates the log of the number of fixed points of a single network, and
message passing under a random field their marginals. Both are compared with all fixed points, by
enumeration.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Picture

from figures.engine.figure import Context, Figure, Parameters, Scale, swept
from figures.engine.plotting import label_axes, panels
from rmsim.network import Network
from rmsim.sweep.definition import Grid, Sweep
from rmsim.sweep.directory import collect
from rmtheory.base.chain import Chain
from rmtheory.base.statistics import naive_half_width, standard_error

SEED = 0

#: Deviation of the random field under which marginals are compared.
_FIELD = 0.5


def _parameters(sizes: list[int], samples: int, drawn: int) -> Parameters:
    # The largest size is shown sample by sample, and the marginals of `drawn` of them.
    return {"sizes": sizes, "jds": [0.4, 0.8], "samples": samples, "drawn": drawn}


def measure(point: dict[str, Any], seed: int, device: str = "cpu") -> dict[str, Any]:
    """Compare all samples at one size and J_D; called by name in other processes."""
    import torch

    from rmsim.couplings.chains import draw_dense
    from rmsim.enumeration.exhaustive import enumerate_fixed_points
    from rmsim.search.amp import belief_propagation, random_fields
    from rmsim.tensors import choose_device

    network = Network(point["n"], Chain(1, point["jd"]))
    samples, place = range(point["samples"]), choose_device(device)
    couplings = draw_dense(network, seed, samples, dtype=torch.float64, device=place)
    field = random_fields(seed, samples, 1, network.n, scale=_FIELD, dtype=torch.float64)
    log_counts, exact_m = [], []
    for J, own in zip(couplings.matrices, field.numpy(), strict=True):
        states = enumerate_fixed_points(J, network.jd, keep_states=True).states
        exponent = (states * own).sum((1, 2))
        weight = np.exp(exponent - exponent.max()) if len(states) else np.zeros(0)
        log_counts.append(math.log(len(states)) if len(states) else -math.inf)
        mean = np.tensordot(weight, states[:, 0], 1) / weight.sum() if len(states) else np.nan
        exact_m.append(np.broadcast_to(mean, (network.n,)))
    free = belief_propagation(couplings, variances="exact")
    pulled = belief_propagation(couplings, field=field, variances="exact", max_iterations=2000)
    bad_free, bad_pulled = ~free.converged.cpu().numpy(), ~pulled.converged.cpu().numpy()
    return {
        "log_count": np.array(log_counts),
        "bethe": np.where(bad_free, np.nan, free.entropy.cpu().numpy()),
        "exact_m": np.array(exact_m),
        "bethe_m": np.where(bad_pulled[:, None], np.nan, pulled.m[:, 0].cpu().numpy()),
        "residual": np.where(bad_pulled, np.nan, pulled.residual.cpu().numpy()),
        "device": str(place),
    }


def compute(parameters: Parameters, context: Context) -> xr.Dataset:
    """Enumerate and iterate at every size and J_D; keep the samples of the largest size."""
    sizes, jds = parameters["sizes"], parameters["jds"]
    sweep = Sweep(
        "bethe_vs_exact",
        1,
        "figures.paper.bethe_vs_exact:measure",
        Grid.product({"n": tuple(sizes), "jd": tuple(jds)}, {"samples": parameters["samples"]}),
        SEED,
        cost=lambda point: 1.8 ** float(point["n"]),
    )
    with swept({"bethe": sweep}, context) as folders:
        raw = collect(folders["bethe"], sweep, dims=_DIMS)
    return _samples(raw.sel(n=sizes[-1], drop=True), parameters["drawn"]).merge(_summary(raw))


#: Axes of what is measured at a point.
_DIMS: dict[str, tuple[str, ...]] = {
    "log_count": ("sample",),
    "bethe": ("sample",),
    "residual": ("sample",),
    "exact_m": ("sample", "spin"),
    "bethe_m": ("sample", "spin"),
}


def _samples(raw: xr.Dataset, drawn: int) -> xr.Dataset:
    """Entropies of the single networks, and marginals of the first of them."""
    solved = np.isfinite(raw["log_count"])
    data = raw[["log_count", "bethe"]].where(solved)
    data["log_count"].attrs["long_name"] = "log of the number of fixed points, exact"
    data["bethe"].attrs["long_name"] = "the same by the Bethe entropy"
    data["log_count_error"] = 0 * data["log_count"]
    data["bethe_error"] = 1e-9 * abs(data["bethe"])
    few = raw.isel(sample=slice(0, drawn)).rename(sample="drawn")
    data["exact_m"], data["bethe_m"] = few["exact_m"], few["bethe_m"]
    data["exact_m"].attrs["long_name"] = "mean spin under a random field, exact"
    data["bethe_m"].attrs["long_name"] = "the same by belief propagation"
    data["exact_m_error"] = 1e-12 + 0 * few["exact_m"]
    data["bethe_m_error"] = few["residual"] + 0 * few["bethe_m"]
    return data


def _summary(raw: xr.Dataset) -> xr.Dataset:
    """Excess of the Bethe entropy and correlations, against the size."""
    shape = (raw.sizes["n"], raw.sizes["jd"])
    names = {
        "excess": "mean of the Bethe entropy less the log count",
        "correlation": "correlation of the two over networks",
        "m_correlation": "correlation of the marginals",
        "converged": "fraction of networks in which BP under the field converged",
    }
    summary = {f"{name}{end}": np.full(shape, np.nan) for name in names for end in ("", "_error")}
    for place in np.ndindex(*shape):
        one = raw.isel(n=place[0], jd=place[1])
        exact, bethe = one["log_count"].values, one["bethe"].values
        there = np.isfinite(exact) & np.isfinite(bethe)
        excess = bethe[there] - exact[there]
        summary["excess"][place] = excess.mean()
        summary["excess_error"][place] = standard_error(excess)
        pairs = (exact[there], bethe[there], excess.size)
        summary["correlation"][place], summary["correlation_error"][place] = _correlation(*pairs)
        x, y = one["exact_m"].values, one["bethe_m"].values
        fine = np.isfinite(x) & np.isfinite(y)
        # Marginals of one network are not independent: the networks are counted.
        networks = int(fine.any(1).sum())
        pairs = (x[fine], y[fine], networks)
        summary["m_correlation"][place], summary["m_correlation_error"][place] = _correlation(
            *pairs
        )
        rate = np.isfinite(y).any(1).mean()
        summary["converged"][place] = rate
        summary["converged_error"][place] = naive_half_width(rate, len(y))
    data = xr.Dataset({name: (("n", "jd"), value) for name, value in summary.items()})
    for name, meaning in names.items():
        data[name].attrs["long_name"] = meaning
    return data.assign_coords(n=raw["n"], jd=raw["jd"])


def _correlation(
    x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], independent: int
) -> tuple[float, float]:
    """Return Pearson's r and its standard error (1 - r^2)/sqrt(k - 1)."""
    if independent < 3 or x.std() == 0 or y.std() == 0:
        return math.nan, math.nan
    r = float(np.corrcoef(x, y)[0, 1])
    return r, (1 - r * r) / math.sqrt(independent - 1)


#: Markers and lines of the two correlations.
_ENTROPIES, _MARGINALS = "s--", "^:"


def plot(data: xr.Dataset) -> Picture:
    """Draw entropies, marginals, and how they depend on the size."""
    picture, (entropies, marginals, excess, correlations) = panels(4, height=2.4)
    for index, jd in enumerate(data["jd"].values):
        row, colour = data.sel(jd=jd), f"C{index}"
        label = f"$J_D={jd:g}$"
        dots: dict[str, Any] = {"linestyle": "none", "marker": ".", "color": colour}
        entropies.plot(row["log_count"], row["bethe"], markersize=3, label=label, **dots)
        x, y = row["exact_m"].values.ravel(), row["bethe_m"].values.ravel()
        marginals.plot(x, y, markersize=2, alpha=0.6, label=label, **dots)
        for axis, name, shape in (
            (excess, "excess", "o-"),
            (correlations, "correlation", _ENTROPIES),
            (correlations, "m_correlation", _MARGINALS),
        ):
            axis.errorbar(
                row["n"],
                row[name],
                row[f"{name}_error"],
                fmt=shape,
                color=colour,
                markersize=3,
                linewidth=0.9,
                capsize=1.5,
                label=label if axis is excess else None,
            )
    for axis in (entropies, marginals):
        low, high = axis.get_xlim()
        axis.plot([low, high], [low, high], color="0.5", linewidth=0.8, zorder=0)
        axis.set_xlim(low, high)
        axis.legend(title=f"$N={int(data['n'][-1])}$", loc="upper left", markerscale=2)
    for axis in (excess, correlations):
        axis.set_xticks(data["n"].values)
    excess.axhline(0, color="0.5", linewidth=0.8, zorder=0)
    excess.set_ylim(bottom=min(0.0, float((data["excess"] - data["excess_error"]).min())) - 0.02)
    excess.legend()
    correlations.set_ylim(0, 1.02)
    # Grey: shapes are those of the two quantities, colours those of (a) to (c).
    for shape, text in ((_ENTROPIES, "entropies"), (_MARGINALS, "marginals")):
        correlations.plot([], [], shape, color="0.35", markersize=3, linewidth=0.9, label=text)
    correlations.legend(loc="lower right")
    label_axes(entropies, "log of the exact count", "Bethe entropy (nat)")
    label_axes(marginals, r"exact $\langle s_i\rangle$", r"$\langle s_i\rangle$ by BP")
    label_axes(excess, "$N$", "excess of Bethe (nat)")
    label_axes(correlations, "$N$", "correlation with exact")
    return picture


FIGURE = Figure(
    name="bethe_vs_exact",
    title="Bethe entropy and marginals against enumeration",
    caption=(
        "Single networks of one layer, all fixed points known. (a) Bethe entropy against the log "
        "of the exact number of fixed points, one dot a network. (b) Mean spins under a random "
        "field of deviation 0.5, one dot a spin. (c) Mean excess of the Bethe entropy over the log "
        "count against N, and (d) correlation of the two over networks (squares) and of the "
        "marginals (triangles); colours as in (a). Error bars: one standard error."
    ),
    parameters={
        Scale.TINY: _parameters([8, 10], 20, 5),
        Scale.QUICK: _parameters([12, 16, 20], 150, 30),
        Scale.PAPER: _parameters([12, 16, 20, 24, 28], 1000, 30),
    },
    compute=compute,
    plot=plot,
    version=2,
    seed=SEED,
    earlier=("2-0cf5dbd9bf74",),
)
