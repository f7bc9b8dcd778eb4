"""Sweeps over trained networks, shared by the figures on learning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from figures.engine.figure import Context, Parameters, Scale, swept

if TYPE_CHECKING:
    import xarray as xr

    from rmsim.sweep import Sweep

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
    from rmsim.sweep import Grid, Sweep

    grid = Grid.product({**axes, "replica": range(replicas)}, fixed)
    return Sweep(name, 1, compute, grid, seed, paired=("looks", *paired), cost=_cost)


def _cost(point: dict[str, Any]) -> float:
    """Rough work: an epoch of N neurons, most of it bookkeeping if they are few."""
    return (1 + float(point["looks"][-1])) * (300 + float(point["n"]))


def gathered(
    sweeps: Mapping[str, Sweep], meaning: Mapping[str, str], context: Context
) -> dict[str, xr.Dataset]:
    """Run the sweeps; return the means over networks, along their axes and ``epoch``."""
    from rmsim.studies.trained_networks import over_replicas
    from rmsim.sweep import collect

    names = [f"{name}{end}" for name in meaning for end in ("", "_error")]
    with swept(sweeps, context) as folders:
        datasets = {
            name: collect(folders[name], sweep, dims=dict.fromkeys(names, ("epoch",)))
            for name, sweep in sweeps.items()
        }
    return {
        name: over_replicas(one, meaning).assign_coords(epoch=sweeps[name].grid.fixed["looks"])
        for name, one in datasets.items()
    }
