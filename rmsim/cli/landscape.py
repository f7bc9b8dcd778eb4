"""``rmsim landscape``: paths between the attractors of a trained network, and their robustness."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rmsim.cli.options import DataOption, DeviceOption, SeedOption, SimulationReport
from rmsim.cli.train import read_run
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError
from rmtheory.base.wording import counted
from rmtheory.runtime import report as io

_MEANING = {
    "curvature_mean": "mean of the largest path curvature over pairs; 1 is a shortest path",
    "curvature_sd": "its standard deviation over pairs",
    "displacement_median": "median distance after flips, for every noise",
    "similarity_mean": "mean similarity of the attractors of different samples",
    "similarity_within": "of samples with the same label",
    "similarity_between": "of samples with different labels",
}


#: All pairs of patterns are compared: a matrix that has to fit into memory.
_MOST_PATTERNS = 5000


def _option(name: str, metavar: str, text: str) -> Any:
    return typer.Option(name, metavar=metavar, help=text)


def landscape_command(
    folder: Annotated[Path | None, _option("--from", "DIR", "Folder of 'rmsim train'.")] = None,
    pairs: Annotated[str, _option("--pairs", "COUNT", "Pairs of inputs.")] = "100",
    steps: Annotated[str, _option("--steps", "COUNT", "Steps along a path.")] = "10",
    resamples: Annotated[str, _option("--resamples", "COUNT", "Inputs at each step.")] = "10",
    patterns: Annotated[str, _option("--patterns", "COUNT", "Attractors to kick.")] = "300",
    seed: SeedOption = "0",
    data: DataOption = None,
    device: DeviceOption = "auto",
    json: io.JsonOption = False,
    out: io.OutOption = None,
    plot: Annotated[Path | None, _option("--plot", "FILE", "Draw a picture: png or pdf.")] = None,
) -> None:
    """Measure the landscape of a network before training and now (paper, SM-G).

    For one layer and inputs of spins. The network before is drawn again from the seed of the run.

    Example: rmsim landscape --from DIR --pairs 200 --plot landscape.png --json
    """
    import time

    from rmsim.learning import initialise
    from rmsim.studies.landscape_survey import Survey, summary, survey
    from rmsim.tensors import choose_device, choose_dtype

    started = time.perf_counter()
    if folder is None:
        raise InvalidInputError("from", "nothing", "the folder of a run (--from DIR)")
    if plot is not None and plot.suffix not in (".png", ".pdf"):
        raise InvalidInputError("plot", str(plot), "a file that ends in .png or .pdf")
    counts = {"pairs": pairs, "steps": steps, "resamples": resamples, "patterns": patterns}
    sizes: dict[str, Any] = {name: checks.integer(name, x, 2) for name, x in counts.items()}
    checks.integer("patterns", patterns, 2, _MOST_PATTERNS)
    wanted = Survey(**sizes)
    place = choose_device(device)
    checkpoint, dataset = read_run(folder, data, place)
    plan, used = checkpoint.plan, checkpoint.plan.data(dataset)
    dtype = choose_dtype(plan.dtype)
    untrained = initialise(
        plan.parameters, used.width, used.classes, plan.seed, dtype=dtype, device=place
    )
    number = checks.integer("seed", seed, 0)
    surveys = {
        stage: survey(plan.parameters, state, used.train, wanted, number)
        for stage, state in (("before", untrained), ("after", checkpoint.state))
    }
    if plot is not None:
        from rmsim.studies.landscape_survey import plot_survey

        plot_survey(surveys, wanted.noises, plot)
    document: dict[str, Any] = {
        "preset": plan.preset,
        "dataset": dataset.name,
        "epoch": checkpoint.epoch,
        "survey": wanted.to_dict(),
        **{
            f"{stage}_{name}": x for stage in surveys for name, x in summary(surveys[stage]).items()
        },
        "seed": number,
        "device": str(place),
        "wall_time": time.perf_counter() - started,
    }
    meaning = {f"{stage}_{name}": text for name, text in _MEANING.items() for stage in surveys}
    title = f"Landscape of {folder}, before training and after {counted(checkpoint.epoch, 'epoch')}"
    SimulationReport(title, document, meaning).show(json, out)
