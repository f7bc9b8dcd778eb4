"""What is measured of thresholds: the networks, the search, the sizes and couplings of a sweep.

Settings are in groups, and each also has a name of its own, without its group: those of the command
line, of the points of a sweep and of files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np

from rmsim.network import Network
from rmsim.sweep.definition import Grid, Scalar, batches
from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError, counted

#: The coupling that is swept: J_D, or lambda between all layers.
Control = Literal["jd", "lam"]

#: Samples of one point of a sweep.
BATCH = 25

#: Methods whose thresholds are measured, of :data:`rmsim.search.methods.METHODS`, and the
#: parameters of a point that only they have.
OWN_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "dynamics": (),
    "rbp": ("r0", "dr"),
    "likelihood": ("eta",),
}


@dataclass(frozen=True)
class Ensemble:
    """The networks that are drawn, whatever their size.

    Parameters
    ----------
    layers : int
        Length of the chain.
    jd, lam_left, lam_right : float
        The couplings that are not swept.
    rho, symmetric
        As for :class:`rmsim.network.Network`.
    """

    layers: int = 1
    jd: float = 0.0
    lam_left: float = 0.0
    lam_right: float = 0.0
    rho: float = 1.0
    symmetric: bool = False


@dataclass(frozen=True)
class SearchSettings:
    """The search for fixed points, and when it ends.

    Parameters
    ----------
    algorithm : str
        Its method, of :data:`OWN_SETTINGS`.
    update, p, max_sweeps : optional
        Settings of the dynamics; `max_sweeps` is the cap of every algorithm, 1000 by default. A
        schedule of reinforcement ends by itself: for rbp the cap is its end, or less if asked.
    r0, dr : float
        Settings of reinforced BP, see :class:`rmsim.search.reinforced.Schedule`.
    eta : float
        Step of the likelihood optimisation, see :class:`rmsim.search.likelihood.Rate`.
    """

    algorithm: str = "dynamics"
    update: str = "synchronous"
    p: float = 1.0
    max_sweeps: int | None = None
    r0: float = 0.0
    dr: float = 0.01
    eta: float = 0.3

    def __post_init__(self) -> None:
        if self.max_sweeps is not None:
            checks.integer("max_sweeps", self.max_sweeps, 1)
        checked_algorithm(self.algorithm)
        if self.algorithm != "dynamics":
            from rmsim.search.likelihood import Rate
            from rmsim.search.reinforced import Schedule

            Schedule(self.r0, self.dr)
            Rate(self.eta)

    @property
    def unit(self) -> str:
        """What the algorithm counts."""
        return "sweep" if self.algorithm == "dynamics" else "iteration"

    @property
    def cap(self) -> int:
        """The cap in force."""
        if self.algorithm != "rbp":
            return 1000 if self.max_sweeps is None else self.max_sweeps
        from rmsim.search.reinforced import Schedule

        end = Schedule(self.r0, self.dr).iterations
        return end if self.max_sweeps is None else min(self.max_sweeps, end)

    def __str__(self) -> str:
        names = {
            "dynamics": "the dynamics",
            "rbp": "reinforced BP",
            "likelihood": "likelihood optimisation",
        }
        return names[self.algorithm]


@dataclass(frozen=True)
class Work:
    """Precision and place of the computation, and the samples computed as one point.

    More samples later keep all full batches.
    """

    dtype: str = "float32"
    device: str = "auto"
    batch: int = BATCH

    def __post_init__(self) -> None:
        checks.integer("batch", self.batch, 1)


#: Name of a setting -> its group in :class:`Design`.
SETTINGS: Mapping[str, str] = {
    setting.name: group
    for group, kind in (("ensemble", Ensemble), ("search", SearchSettings), ("work", Work))
    for setting in fields(kind)
}


@dataclass(frozen=True)
class Design:
    """A measurement of thresholds.

    Parameters
    ----------
    sizes : tuple of int
        Neurons per layer, N.
    control : str
        ``jd`` or ``lam``: which coupling is swept.
    values : tuple of float
        Its values.
    samples : int
        Disorder samples at every size and value, independent of each other.
    ensemble : Ensemble
        The networks.
    search : SearchSettings
        What looks for their fixed points.
    work : Work
        Precision, device, samples of a point.

    Examples
    --------
    >>> design = Design.of((100, 200), "jd", (0.4, 0.6), 50, max_sweeps=200, batch=10)
    >>> design.search.cap, design.work.batch
    (200, 10)
    """

    sizes: tuple[int, ...]
    control: Control
    values: tuple[float, ...]
    samples: int
    ensemble: Ensemble = field(default_factory=Ensemble)
    search: SearchSettings = field(default_factory=SearchSettings)
    work: Work = field(default_factory=Work)

    @classmethod
    def of(
        cls,
        sizes: tuple[int, ...],
        control: Control,
        values: tuple[float, ...],
        samples: int,
        **settings: Any,
    ) -> Design:
        """Return the design with these settings, by their names without groups."""
        groups: dict[str, dict[str, Any]] = {"ensemble": {}, "search": {}, "work": {}}
        for name, value in settings.items():
            if name not in SETTINGS:
                raise InvalidInputError("setting", name, f"one of {', '.join(SETTINGS)}")
            groups[SETTINGS[name]][name] = value
        parts = (Ensemble(**groups["ensemble"]), SearchSettings(**groups["search"]))
        return cls(sizes, control, values, samples, *parts, Work(**groups["work"]))

    def __post_init__(self) -> None:
        if not self.sizes or not self.values:
            raise InvalidInputError("n" if not self.sizes else self.control, "nothing", "given")
        checks.integer("samples", self.samples, 1)
        if self.search.algorithm != "dynamics":
            self._demand_plain()
        if self.control == "lam" and self.ensemble.layers < 2:
            raise InvalidInputError("lam", "values to sweep", "left out for a single layer")
        for n in self.sizes:
            for value in self.values:
                network_of({**self.fixed(), "n": n, self.control: value})

    @property
    def follows_law(self) -> bool:
        """Whether theory gives the trend of its 50 % points: the dynamics of one layer."""
        plain = self.search.update == "synchronous" and not self.ensemble.symmetric
        return self.search.algorithm == "dynamics" and self.ensemble.layers == 1 and plain

    @property
    def has_half_points(self) -> bool:
        """Whether theory also gives the 50 % points themselves: dense, all updated at once."""
        whole = self.ensemble.rho == 1 and self.search.p == 1
        return self.follows_law and whole and self.control == "jd"

    @property
    def bounded(self) -> bool:
        """Whether sqrt(2 ln N) bounds its 50 % points: J_D, for the dynamics of one layer."""
        one = self.search.algorithm == "dynamics" and self.ensemble.layers == 1
        return one and self.control == "jd"

    def settings(self) -> dict[str, Any]:
        """Return all settings by their names without groups."""
        return {name: getattr(getattr(self, group), name) for name, group in SETTINGS.items()}

    def _demand_plain(self) -> None:
        """Refuse, before the sweep, what message passing has no equations or no use for."""
        plain = {"rho": 1.0, "symmetric": False, "p": 1.0, "update": "synchronous"}
        given = self.settings()
        for name, value in plain.items():
            if given[name] != value:
                allowed = f"{value} for the algorithm {self.search.algorithm}"
                raise InvalidInputError(name, given[name], allowed)

    def fixed(self) -> dict[str, Any]:
        """The parameters that all points have in common."""
        swept = ("jd",) if self.control == "jd" else ("lam_left", "lam_right")
        names = (
            *("layers", "jd", "lam_left", "lam_right", "rho", "symmetric", "algorithm"),
            *("update", "dtype", "device"),
            *OWN_SETTINGS[self.search.algorithm],
        )
        given = self.settings()
        fixed = {name: given[name] for name in names if name not in swept}
        return fixed | {"max_sweeps": self.search.cap}

    def grid(self) -> Grid:
        """The points: sizes, values, the one p, batches."""
        axes: dict[str, tuple[Scalar, ...]] = {
            "n": self.sizes,
            self.control: self.values,
            "p": (self.search.p,),
            "samples": batches(self.samples, self.work.batch),
        }
        return Grid.product(axes, self.fixed())

    def __str__(self) -> str:
        layers, search = self.ensemble.layers, self.search
        depth = "one layer" if layers == 1 else f"{layers} layers"
        masked = f", p = {search.p:g}" if search.p < 1 else ""
        stepped = f", eta = {search.eta:g}" if search.algorithm == "likelihood" else ""
        reinforced = ""
        if search.algorithm == "rbp":
            reinforced = f", r0 = {search.r0:g}, dr = {search.dr:g}"
        return (
            f"Success of {search} within {counted(search.cap, search.unit)}: {depth}"
            f"{masked}{reinforced}{stepped}, {counted(self.samples, 'sample')}"
        )


def checked_algorithm(name: str) -> str:
    """Return the name of a method whose thresholds are measured.

    Examples
    --------
    >>> checked_algorithm("magic")  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    rmtheory.base.errors.InvalidInputError: algorithm must be one of dynamics, rbp, likelihood, got
    magic
    """
    if name not in OWN_SETTINGS:
        raise InvalidInputError("algorithm", name, f"one of {', '.join(OWN_SETTINGS)}")
    return name


def refuse_settings_of_others(algorithm: str, given: Mapping[str, Any]) -> None:
    """Refuse a setting of a search that `algorithm` does not have."""
    own = OWN_SETTINGS[checked_algorithm(algorithm)]
    every = {name for names in OWN_SETTINGS.values() for name in names}
    for name, value in given.items():
        if name in every and name not in own:
            users = " or ".join(user for user, names in OWN_SETTINGS.items() if name in names)
            raise InvalidInputError(name, value, f"left out: only {users} has it, not {algorithm}")


def design_of(
    n: int | Sequence[int],
    jd: float | Sequence[float] = 0.0,
    lam: float | Sequence[float] | None = None,
    *,
    layers: int | str = 1,
    lam_left: checks.RealLike | None = None,
    lam_right: checks.RealLike | None = None,
    **settings: Any,
) -> Design:
    """Return the design of :func:`thresholds`; the coupling with several values is swept.

    Examples
    --------
    >>> design_of([100, 200], jd=[0.4, 0.6], samples=50).control
    'jd'
    >>> design_of(100, jd=[0.1, 0.2], lam=[0.3, 0.4], layers=2, samples=50)
    Traceback (most recent call last):
    rmtheory.base.errors.InvalidInputError: lam must be one value if jd has several, got (0.3, 0.4)
    """
    sizes = tuple(checks.integer("n", size, 2) for size in _several(n))
    self_couplings = tuple(float(checks.exact_real("jd", value)) for value in _several(jd))
    lams = () if lam is None else tuple(float(checks.exact_real("lam", x)) for x in _several(lam))
    if len(lams) > 1 and len(self_couplings) > 1:
        raise InvalidInputError("lam", str(lams), "one value if jd has several")
    if not self_couplings:
        raise InvalidInputError("jd", "nothing", "given")
    one_lam = lams[0] if lams else None
    chain = Chain(layers, self_couplings[0], one_lam, lam_left=lam_left, lam_right=lam_right)
    samples, common = settings.pop("samples", 100), {"layers": chain.finite_layers, **settings}
    if len(lams) > 1:
        if chain.layers == 1:
            raise InvalidInputError("lam", str(lams), "one value or none for a single layer")
        return Design.of(sizes, "lam", lams, samples, jd=chain.jd, **common)
    lams_of_sides = {"lam_left": chain.lam_left, "lam_right": chain.lam_right}
    return Design.of(sizes, "jd", self_couplings, samples, **lams_of_sides, **common)


def _several(values: Any) -> tuple[Any, ...]:
    """Return one value, or several, as a tuple."""
    single = isinstance(values, str) or not isinstance(values, (Iterable, np.ndarray))
    return (values,) if single else tuple(values)


def network_of(point: Mapping[str, Any]) -> Network:
    """Return the network that the parameters of a point describe."""
    left, right = (point.get("lam", point.get(f"lam_{side}")) for side in ("left", "right"))
    chain = Chain(point["layers"], point["jd"], lam_left=left, lam_right=right)
    return Network(point["n"], chain, point["rho"], point["symmetric"])
