"""Which (L, J_D, lam, d) are answered: y*, S_I* and its slope at 300 random points, and a picture.

``python docs/_ext/answered.py`` adds the points that are missing to ``docs/_static/answered.csv``
(one line each: what was asked, what came out, CPU-seconds) and draws ``docs/_static/answered.svg``.
Points are independent of each other and of the order; a run that was interrupted goes on. A point
that takes more than CPU_LIMIT seconds counts as refused.
"""

from __future__ import annotations

import csv
import math
import signal
import sys
import time
from pathlib import Path
from types import FrameType

import numpy as np

from rmtheory import Chain, RMError
from rmtheory.local_entropies.points import ystar

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "_static" / "answered.csv"
PICTURE = ROOT / "docs" / "_static" / "answered.svg"
POINTS, SEED, CPU_LIMIT = 300, 16, 60.0
COLUMNS = (
    "point", "layers", "jd", "lam", "d", "answer", "y_star", "internal", "internal_error", "slope",
    "slope_error", "seconds", "reason",
)  # fmt: skip


def asked() -> list[tuple[str, float, float, float]]:
    """Return the random points: J_D and lam uniform, d uniform in its logarithm."""
    rng = np.random.default_rng(SEED)
    return [
        (
            str(rng.choice(["1", "2", "3", "5", "inf"])),
            round(float(rng.uniform(0, 2)), 4),
            round(float(rng.uniform(0, 1.5)), 4),
            float(f"{math.exp(rng.uniform(math.log(1e-5), math.log(0.49))):.4g}"),
        )
        for _ in range(POINTS)
    ]


class _TooLongError(RMError):
    pass


def _stop(signum: int, frame: FrameType | None) -> None:
    raise _TooLongError(f"no answer within {CPU_LIMIT:g} CPU-seconds")


def answer(layers: str, jd: float, lam: float, d: float) -> dict[str, object]:
    """Ask for y* at one point."""
    depth: int | str = layers if layers == "inf" else int(layers)
    row: dict[str, object] = {"layers": layers, "jd": jd, "lam": lam, "d": d, "reason": ""}
    start = time.process_time()
    signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, CPU_LIMIT)
    try:
        point = ystar(Chain(depth, jd, 0.0 if layers == "1" else lam), d)
        row |= {
            "answer": "bound of y*" if point.y_star_is_bound else "y*",
            "y_star": f"{float(point.y_star):.6g}",
            "internal": f"{float(point.internal):.8g}",
            "internal_error": f"{float(point.internal.error):.1g}",
            "slope": f"{float(point.slope):.6g}",
            "slope_error": f"{float(point.slope.error):.1g}",
        }
    except RMError as problem:
        row |= {"answer": "refused", "reason": str(problem)}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    return row | {"seconds": f"{time.process_time() - start:.1f}"}


def table() -> list[dict[str, str]]:
    """Return the points that are done."""
    if not TABLE.exists():
        return []
    with TABLE.open(newline="") as file:
        return list(csv.DictReader(file))


def extend(which: list[int]) -> None:
    """Add points to the table, each as soon as it is done."""
    done = {int(row["point"]) for row in table()}
    fresh = not TABLE.exists()
    with TABLE.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if fresh:
            writer.writeheader()
        for k in which:
            if k not in done:
                writer.writerow({"point": k} | answer(*asked()[k]))
                file.flush()


def draw() -> None:
    """Draw what is answered, one panel for each depth."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "answered"
    from matplotlib import pyplot as plt

    rows = table()
    figure, panels = plt.subplots(1, 5, figsize=(13, 3.2), sharex=True, sharey=True)
    kinds = {"y*": ("o", "C0"), "bound of y*": ("s", "C2"), "refused": ("x", "C3")}
    for panel, layers in zip(panels, ("1", "2", "3", "5", "inf"), strict=True):
        here = [row for row in rows if row["layers"] == layers]
        for kind, (marker, colour) in kinds.items():
            at = [(float(r["d"]), float(r["jd"])) for r in here if r["answer"] == kind]
            if at:
                panel.scatter(*zip(*at, strict=True), marker=marker, c=colour, s=14, label=kind)
        refused = sum(row["answer"] == "refused" for row in here)
        panel.set(xscale="log", xlabel="d", title=f"L = {layers}: {refused} of {len(here)} refused")
    panels[0].set_ylabel("$J_D$")
    handles = {label: h for p in panels for h, label in zip(*p.get_legend_handles_labels())}  # noqa: B905
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=3, frameon=False)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]] or list(range(POINTS))
    extend(numbers)
    draw()
