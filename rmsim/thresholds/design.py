"""What is swept for thresholds: sizes, values of one coupling, and batches of samples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from rmsim.sweep import Grid, Sweep
from rmsim.sweep.grid import Scalar
from rmsim.thresholds.algorithms import OWN_SETTINGS, algorithm_named
from rmsim.thresholds.measure import batches, network_of
from rmtheory import checks
from rmtheory.errors import InvalidInputError

#: The coupling that is swept: J_D, or lambda between all layers.
Control = Literal["jd", "lam"]

#: To be raised when the meaning of a point changes.
_VERSION = 2

#: Samples of one point of a sweep.
BATCH = 25


@dataclass(frozen=True)
class Design:
    """A measurement of thresholds.

    Parameters
    ----------
    sizes : tuple of int
        Neurons a layer, N.
    control : str
        ``jd`` or ``lam``: which coupling is swept.
    values : tuple of float
        Its values.
    samples : int
        Disorder samples at every size and value, independent of each other.
    layers : int
        Length of the chain.
    jd, lam_left, lam_right : float, optional
        The couplings that are not swept.
    rho, symmetric
        As for :class:`rmsim.network.Network`.
    algorithm : str
        What looks for fixed points, of :data:`rmsim.thresholds.algorithms.ALGORITHMS`.
    update, p, max_sweeps : optional
        Settings of the dynamics; `max_sweeps` is the cap of every algorithm, 1000 by default. A
        schedule of reinforcement ends by itself: for rbp the cap is its end, or less if asked.
    r0, dr : float
        Settings of reinforced BP, see :class:`rmsim.messages.reinforced.Schedule`.
    eta : float
        Step of the likelihood optimisation, see :class:`rmsim.messages.likelihood.Rate`.
    dtype, device : str
        Precision and place.
    batch : int
        Samples computed as one point. More samples later keep all full batches.
    """

    sizes: tuple[int, ...]
    control: Control
    values: tuple[float, ...]
    samples: int
    layers: int = 1
    jd: float = 0.0
    lam_left: float = 0.0
    lam_right: float = 0.0
    rho: float = 1.0
    symmetric: bool = False
    algorithm: str = "dynamics"
    update: str = "synchronous"
    p: float = 1.0
    max_sweeps: int | None = None
    r0: float = 0.0
    dr: float = 0.01
    eta: float = 0.3
    dtype: str = "float32"
    device: str = "auto"
    batch: int = BATCH

    def __post_init__(self) -> None:
        if not self.sizes or not self.values:
            raise InvalidInputError("n" if not self.sizes else self.control, "nothing", "given")
        checks.integer("samples", self.samples, 1)
        checks.integer("batch", self.batch, 1)
        if self.max_sweeps is not None:
            checks.integer("max_sweeps", self.max_sweeps, 1)
        algorithm_named(self.algorithm)
        if self.algorithm != "dynamics":
            self._check_messages()
        if self.control == "lam" and self.layers < 2:
            raise InvalidInputError("lam", "values to sweep", "left out for a single layer")
        for n in self.sizes:
            for value in self.values:
                network_of({**self.fixed(), "n": n, self.control: value})

    @property
    def unit(self) -> str:
        """What the algorithm counts."""
        return "sweep" if self.algorithm == "dynamics" else "iteration"

    @property
    def cap(self) -> int:
        """The cap in force."""
        if self.algorithm != "rbp":
            return 1000 if self.max_sweeps is None else self.max_sweeps
        from rmsim.messages.reinforced import Schedule

        end = Schedule(self.r0, self.dr).iterations
        return end if self.max_sweeps is None else min(self.max_sweeps, end)

    def _check_messages(self) -> None:
        """Refuse, before the sweep, what message passing has no equations or no use for."""
        from rmsim.messages.likelihood import Rate
        from rmsim.messages.reinforced import Schedule

        Schedule(self.r0, self.dr)
        Rate(self.eta)
        plain = {"rho": 1.0, "symmetric": False, "p": 1.0, "update": "synchronous"}
        for name, value in plain.items():
            if getattr(self, name) != value:
                allowed = f"{value} for the algorithm {self.algorithm}"
                raise InvalidInputError(name, getattr(self, name), allowed)

    def fixed(self) -> dict[str, Any]:
        """The parameters that all points have in common."""
        swept = ("jd",) if self.control == "jd" else ("lam_left", "lam_right")
        names = (
            *("layers", "jd", "lam_left", "lam_right", "rho", "symmetric", "algorithm"),
            *("update", "dtype", "device"),
            *OWN_SETTINGS.get(self.algorithm, ()),
        )
        fixed = {name: getattr(self, name) for name in names if name not in swept}
        return fixed | {"max_sweeps": self.cap}

    def grid(self) -> Grid:
        """The points: sizes, values, the one p, batches."""
        axes: dict[str, tuple[Scalar, ...]] = {
            "n": self.sizes,
            self.control: self.values,
            "p": (self.p,),
            "samples": batches(self.samples, self.batch),
        }
        return Grid.product(axes, self.fixed())


def sweep_of(designs: Design | tuple[Design, ...], seed: int = 0) -> Sweep:
    """Return the sweep of a design, or of several that differ in its axes only.

    The axes are sizes, values of the coupling, p and samples.

    Batches do not enter the seed: sample k is the same network in whichever batch. The coupling
    does, so that points at different couplings are independent, as the errors assume.
    """
    some = designs if isinstance(designs, tuple) else (designs,)
    grid = some[0].grid()
    for design in some[1:]:
        grid = grid | design.grid()
    control = some[0].control
    return Sweep(
        "thresholds",
        _VERSION,
        "rmsim.thresholds.measure:measure",
        grid,
        seed,
        paired=("samples",),
        cost=lambda point: _cost(point, control),
    )


def _cost(point: dict[str, Any], control: Control) -> float:
    """Bytes of couplings times sweeps, which fall steeply as the coupling grows."""
    first, _, last = point["samples"].partition(":")
    size = float(point["layers"]) * float(point["rho"]) * float(point["n"]) ** 2
    return size * (int(last) - int(first)) * math.exp(-5 * abs(float(point[control])))
