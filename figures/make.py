"""Make one figure: load its data or compute and store them, then plot what is stored."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import matplotlib.style
import xarray as xr
from matplotlib.figure import Figure as Picture

from figures.figure import Figure, Progress, Scale
from figures.unfinished import keeping_parts
from rmtheory import provenance, store
from rmtheory.files import replacing

STYLE = Path(__file__).with_name("style.mplstyle")

#: Figure number without a date, so that the same data give the same file.
_METADATA = {"png": {"Software": ""}, "pdf": {"CreationDate": None}}


@dataclass(frozen=True)
class Made:
    """What was done for one figure."""

    name: str
    #: ``computed`` or ``stored``: where the plotted data come from.
    data: str
    seconds: float
    files: tuple[Path, ...]
    #: Something the reader should know, such as a damaged file; empty otherwise.
    note: str = ""


def make(
    figure: Figure, scale: Scale, folder: Path, progress: Progress, *, recompute: bool = False
) -> Made:
    """Make `figure` in `folder`: its data as netCDF, NAME.png and NAME.pdf."""
    start = time.perf_counter()
    path = folder / figure.data_file
    dataset, note = (None, "") if recompute else _stored(figure, scale, path)
    origin = "stored"
    if dataset is None:
        origin = "computed"
        with keeping_parts(folder / ".parts" / path.stem, figure.key(scale)):
            store.save(_computed(figure, scale, progress), path)
        dataset = store.load(path)
    pictures = draw(figure, dataset, folder)
    return Made(figure.name, origin, time.perf_counter() - start, (path, *pictures), note)


def is_stored(figure: Figure, scale: Scale, folder: Path) -> bool:
    """Return whether the data of `figure` at `scale` are in `folder`."""
    return _stored(figure, scale, folder / figure.data_file)[0] is not None


def draw(figure: Figure, dataset: xr.Dataset, folder: Path) -> tuple[Path, ...]:
    """Plot `dataset` and save it as PNG and PDF."""
    with matplotlib.style.context(STYLE):
        picture = figure.plot(dataset)
        # The layout is solved once, not again for each file.
        picture.draw_without_rendering()
        picture.set_layout_engine("none")
        return tuple(_save(picture, folder / f"{figure.name}.{kind}") for kind in _METADATA)


def _save(picture: Picture, path: Path) -> Path:
    kind = path.suffix[1:]
    with replacing(path) as temporary:
        picture.savefig(temporary, format=kind, metadata=_METADATA[kind])
    return path


def _stored(figure: Figure, scale: Scale, path: Path) -> tuple[xr.Dataset | None, str]:
    """Return the stored data if they are those of `scale`, and what is wrong with them if so."""
    try:
        dataset = store.load(path)
    except FileNotFoundError:
        return None, ""
    except store.UnreadableDataError as problem:
        return None, f"{problem}; computed again"
    if dataset.attrs.get("parameters_hash") != figure.key(scale):
        return None, ""
    return dataset, ""


def _computed(figure: Figure, scale: Scale, progress: Progress) -> xr.Dataset:
    parameters = figure.parameters[scale]
    start = time.perf_counter()
    dataset = figure.compute(parameters, progress)
    return dataset.assign_attrs(
        provenance.attributes(
            parameters,
            version=figure.source_version,
            seed=figure.seed,
            wall_time=time.perf_counter() - start,
            title=figure.title,
            scale=str(scale),
            figure=figure.name,
        )
    )
