"""Functions that sweeps of the tests evaluate; they are imported by other processes."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from rmsim.cli.options import run_from_command
from rmsim.sweep import Grid, Sweep


def measure(point: dict[str, Any], seed: int) -> dict[str, Any]:
    """Draw a few numbers; leave a line in the log, wait for the gate, fail or die if told to."""
    x, y = point["x"], point["y"]
    log = point.get("log")
    if log:
        with Path(log).open("a") as file:  # lines this short are appended whole
            file.write(f"{x} {y} {os.getpid()}\n")
    gate = point.get("gate")
    while gate and x >= 3 and not Path(gate).exists():
        time.sleep(0.01)
    trouble = Path(point["trouble"]).read_text() if point.get("trouble") else ""
    if trouble == "raise" and x == 1:
        raise ArithmeticError("no answer at x = 1")
    if trouble == "die" and x == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    draws = np.random.default_rng(seed).normal(size=3)
    return {
        "total": 10 * x + y,
        "mean": float(draws.mean()),
        "draws": draws.astype(np.float32),
        "label": f"x{x}",
        "nothing": float("nan"),
        "device": "cpu",
    }


def ragged(point: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return arrays of different length."""
    return {"counts": np.arange(point["x"])}


def place(point: dict[str, Any], seed: int, device: str = "cpu") -> dict[str, Any]:
    """Return what GPU a process sees and where it computes, once all processes are here."""
    here = Path(point["folder"])
    (here / str(os.getpid())).touch()
    while len(list(here.iterdir())) < point["processes"]:
        time.sleep(0.01)
    seen = os.environ.get("CUDA_VISIBLE_DEVICES", "all")
    return {"process": os.getpid(), "gpu": seen, "where": device, "device": device}


def sweep(xs: range | tuple[int, ...] = range(3), seed: int = 5, **fixed: Any) -> Sweep:
    """Return a sweep over `xs` and two y."""
    grid = Grid.product({"x": xs, "y": (0.5, 1.5)}, fixed)
    return Sweep("test", 1, "tests.sweep_points:measure", grid, seed)


def main() -> None:
    """Run a sweep as a command does: folder, number of x, options."""
    folder, count, *options = sys.argv[1:]
    base = Path(folder)
    fixed = {"log": str(base / "log"), "gate": str(base / "gate")}
    given = dict(option.split("=", 1) for option in options)
    import typer

    from rmtheory.runtime.command import run_app

    app = typer.Typer()

    @app.command()
    def command() -> None:
        run_from_command(
            sweep(range(int(count)), **fixed), base / "out", given.get("jobs"), given.get("dask")
        )

    sys.exit(run_app(app, "rmsim", []))


if __name__ == "__main__":
    main()
