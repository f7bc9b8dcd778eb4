"""Sweeps over trained networks, shared by the figures on learning, and stored runs of the trial.

Runs of the trial (:mod:`figures.trial`) are trained for the epochs of the paper and stored, so that
a figure draws them in place of what the quick scale trains in a minute, as far as there are some.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from figures.engine.figure import Context, Parameters, Scale, swept
from rmsim.learning.presets import MEASURED_AT
from rmtheory.base.errors import counted

if TYPE_CHECKING:
    import xarray as xr

    from rmsim.sweep.definition import Sweep

#: Training samples on which phases are measured, where they are not what the figure is about.
FEW = 200

#: All samples of the data set.
ALL: dict[str, Any] = {"train_samples": None, "test_samples": None}

#: Of tests: enough to run.
TINY_DATA: dict[str, Any] = {"train_samples": 300, "test_samples": 200}


def trained_on(parameters: Mapping[Scale, Parameters]) -> str:
    """Return the sentence of a caption that says how many samples the quick scale takes.

    Examples
    --------
    >>> quick = {"fixed": {"train_samples": 6000, "test_samples": None}}
    >>> trained_on({Scale.QUICK: quick}).partition(";")[0]
    'At the quick scale 6000 training and all test samples'
    """
    fixed = parameters[Scale.QUICK]["fixed"]
    train, test = (fixed[f"{part}_samples"] or "all" for part in ("train", "test"))
    return (
        f"At the quick scale {train} training and {test} test samples; training accuracy is that "
        "of as many of the first as there are of the second."
    )


#: Sentence of the captions of figures that draw stored runs.
STORED = (
    "Stored runs of the trial (figures/data/trained), which were trained for longer, are drawn "
    "instead where they give three points or more; the legends say N, epochs and networks."
)

#: Points of a curve from which stored runs are drawn.
_ENOUGH = 3


@cache
def trial_data() -> Mapping[str, xr.Dataset]:
    """Return what the stored runs of the trial say, by the name of a figure's data."""
    from figures.trial.evidence import Stored
    from figures.trial.store import Store

    return Stored.of(Store()).data


def of_trial(data: xr.Dataset, name: str, variable: str) -> xr.Dataset:
    """Return the stored runs instead of `data`, if there are enough and they learnt for longer.

    Parameters
    ----------
    data : xarray.Dataset
        What the figure has computed, with the coordinate ``epochs``.
    name : str
        Of the data.
    variable : str
        What is drawn of it.
    """
    stored = trial_data().get(name)
    if stored is None or variable not in stored or int(stored["epochs"]) <= int(data["epochs"]):
        return data
    return stored if int(np.isfinite(stored[variable].values).sum()) >= _ENOUGH else data


def trained_for(data: xr.Dataset, variable: str) -> str:
    """Return the epochs and, of stored runs, the networks, for a legend.

    Examples
    --------
    >>> import xarray as xr
    >>> one = xr.Dataset({"x": ("n", [1.0, 2.0]), "x_networks": ("n", [1.0, 3.0])})
    >>> trained_for(one.assign_coords(epochs=20), "x")
    '20 epochs, 1 to 3 networks'
    """
    return counted(int(data["epochs"]), "epoch") + networks_of(data, variable)


def networks_of(data: xr.Dataset, variable: str) -> str:
    """Return how many networks each stored number is a mean of, after a comma; else nothing."""
    if f"{variable}_networks" not in data:
        return ""
    values = data[f"{variable}_networks"].values
    there = values[np.isfinite(values)].astype(int)
    if not there.size:
        return ""
    least, most = int(there.min()), int(there.max())
    many = counted(most, "network")
    return f", {many}" if least == most else f", {least} to {many}"


def training(
    name: str,
    axes: Mapping[str, Sequence[Any]],
    fixed: Mapping[str, Any],
    seed: int,
    *,
    replicas: int,
    paired: tuple[str, ...] = (),
    compute: str = "rmsim.studies.trained_networks:trained",
) -> Sweep:
    """Return the sweep over all combinations of `axes`, `replicas` networks each.

    Networks that differ only in what is `paired`, and in when they are measured, start from the
    same random numbers.
    """
    from rmsim.sweep.definition import Grid, Sweep

    grid = Grid.product({**axes, "replica": range(replicas)}, fixed)
    return Sweep(name, 1, compute, grid, seed, paired=(MEASURED_AT, *paired), cost=_cost)


def _cost(point: dict[str, Any]) -> float:
    """Rough work: an epoch of N neurons, most of it bookkeeping if they are few."""
    return (1 + float(point[MEASURED_AT][-1])) * (300 + float(point["n"]))


def gathered(
    sweeps: Mapping[str, Sweep], meaning: Mapping[str, str], context: Context
) -> dict[str, xr.Dataset]:
    """Run the sweeps; return the means over networks, along their axes and ``epoch``."""
    from rmsim.studies.trained_networks import over_replicas
    from rmsim.sweep.directory import collect

    names = [f"{name}{end}" for name in meaning for end in ("", "_error")]
    with swept(sweeps, context) as folders:
        datasets = {
            name: collect(folders[name], sweep, dims=dict.fromkeys(names, ("epoch",)))
            for name, sweep in sweeps.items()
        }
    return {
        name: over_replicas(one, meaning).assign_coords(epoch=sweeps[name].grid.fixed[MEASURED_AT])
        for name, one in datasets.items()
    }
