"""What is measured: protocols, depths and sizes, and how many trials of each, as one sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rmsim.capacity.protocol import protocol_named
from rmsim.capacity.trials import run_trials
from rmsim.device import choose_device, choose_dtype
from rmsim.sweep import Grid, Sweep
from rmsim.thresholds.measure import batches, sample_range
from rmtheory import checks
from rmtheory.errors import InvalidInputError

_VERSION = 1


@dataclass(frozen=True)
class Design:
    """Trials of chains of some depths and sizes.

    Parameters
    ----------
    layers, sizes : tuple of int
        Depths L and neurons a layer N.
    trials : int
        Trials of each.
    protocol : str
        How they learn, by name.
    loads : pair of float
        P is uniform between these times N; the paper's are 1/2 and 1.
    max_epochs : int
        Epochs at most.
    batch : int
        Trials computed together, as one piece of work.
    """

    layers: tuple[int, ...]
    sizes: tuple[int, ...]
    trials: int
    protocol: str = "reconstruction"
    loads: tuple[float, float] = (0.5, 1.0)
    max_epochs: int = 300
    dtype: str = "float32"
    device: str = "auto"
    batch: int = 5

    def __post_init__(self) -> None:
        protocol_named(self.protocol)
        for depth in self.layers:
            checks.integer("layers", depth, 1)
        for size in self.sizes:
            checks.integer("n", size, 2)
        for name in ("trials", "max_epochs", "batch"):
            checks.integer(name, getattr(self, name), 1)
        low, high = self.loads
        if not 0 < low < high:
            raise InvalidInputError("loads", self.loads, "two positive numbers, the lower first")

    def grid(self) -> Grid:
        """Return the points of this design."""
        return Grid.product(
            {
                "protocol": (self.protocol,),
                "loads": (f"{self.loads[0]!r}:{self.loads[1]!r}",),
                "layers": self.layers,
                "n": self.sizes,
                "trials": batches(self.trials, self.batch),
            },
            {"max_epochs": self.max_epochs, "dtype": self.dtype, "device": self.device},
        )


def sweep_of(designs: Design | Sequence[Design], seed: int) -> Sweep:
    """Return the sweep over the points of all `designs`, which share epochs and precision."""
    first, *others = [designs] if isinstance(designs, Design) else designs
    grid = first.grid()
    for other in others:
        grid |= other.grid()
    # Trial k is the same chain in whichever piece it comes.
    return Sweep(
        "capacity",
        _VERSION,
        "rmsim.capacity.design:measure",
        grid,
        seed,
        paired=("trials",),
        cost=lambda point: float(point["layers"]) * float(point["n"]) ** 3,
    )


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train the trials of one point; called by name in other processes."""
    from dataclasses import replace

    low, _, high = str(point["loads"]).partition(":")
    device = choose_device(point["device"])
    found = run_trials(
        replace(protocol_named(point["protocol"]), max_epochs=point["max_epochs"]),
        point["layers"],
        point["n"],
        sample_range(point["trials"]),
        seed,
        loads=(float(low), float(high)),
        device=device,
        dtype=choose_dtype(point["dtype"]),
    )
    return {
        "patterns": found.patterns,
        "o5": found.o5,
        "epochs": found.epochs,
        "overlap_median": found.median,
        "overlap_low": found.low,
        "overlap_high": found.high,
        "device": str(device),
    }
