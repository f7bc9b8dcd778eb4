"""Make one figure: load its data or compute and store them, then plot them if need be."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import matplotlib.style
import xarray as xr
from matplotlib.figure import Figure as Picture

from figures import drawn
from figures.figure import Figure, Progress, Scale
from figures.unfinished import discard_finished, keeping_parts
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
    #: Whether the pictures had to be drawn.
    drawn: bool = True
    #: Something the reader should know, such as a damaged file; empty otherwise.
    note: str = ""


def make(
    figure: Figure, scale: Scale, folder: Path, progress: Progress, *, recompute: bool = False
) -> Made:
    """Make `figure` in `folder`: its data as netCDF, NAME.png and NAME.pdf."""
    start = time.perf_counter()
    files = drawn.files(figure, folder)
    path, parts = files[0], folder / ".parts" / files[0].stem
    discard_finished(parts, figure.key(scale), path)
    if not recompute and drawn.is_drawn(figure, scale, folder):
        return Made(figure.name, "stored", time.perf_counter() - start, files, drawn=False)
    dataset, content, note = (None, "", "") if recompute else _stored(figure, scale, path)
    origin = "stored"
    if dataset is None:
        origin = "computed"
        with keeping_parts(parts, figure.key(scale)):
            store.save(_computed(figure, scale, progress), path)
        content = drawn.content_hash(path)
        dataset = store.load(path)
    drawn.remember(figure, scale, folder, (content, *draw(figure, dataset, folder)))
    return Made(figure.name, origin, time.perf_counter() - start, files, note=note)


def is_stored(figure: Figure, scale: Scale, folder: Path) -> bool:
    """Return whether the data of `figure` at `scale` are in `folder`."""
    if drawn.is_drawn(figure, scale, folder):
        return True
    return _stored(figure, scale, folder / figure.data_file)[0] is not None


def draw(figure: Figure, dataset: xr.Dataset, folder: Path) -> tuple[str, ...]:
    """Plot `dataset` and save it as PNG and PDF; return the hashes of these files."""
    with matplotlib.style.context(STYLE):
        picture = figure.plot(dataset)
        # The layout is solved once, not again for each file.
        picture.draw_without_rendering()
        picture.set_layout_engine("none")
        return tuple(_save(picture, path) for path in drawn.files(figure, folder)[1:])


def _save(picture: Picture, path: Path) -> str:
    kind = path.suffix[1:]
    with replacing(path) as temporary:
        picture.savefig(temporary, format=kind, metadata=_METADATA[kind])
        return drawn.content_hash(temporary)


def _stored(figure: Figure, scale: Scale, path: Path) -> tuple[xr.Dataset | None, str, str]:
    """Return the stored data if they are those of `scale`, their hash, and what is wrong if so."""
    try:
        content = drawn.content_hash(path)  # first: it must not be that of later data
        dataset = store.load(path)
    except FileNotFoundError:
        return None, "", ""
    except store.UnreadableDataError as problem:
        return None, "", f"{problem}; computed again"
    if dataset.attrs.get("parameters_hash") != figure.key(scale):
        return None, "", ""
    return dataset, content, ""


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
