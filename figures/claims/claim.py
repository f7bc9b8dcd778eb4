"""A claim: a number that the paper prints, and how to read ours off the data of a figure.

Nothing of ours is typed in: a claim holds the paper's number as printed, where it stands, the data
set and a reader. The verdict follows from the stored value and its error alone.

Readers: how a claim finds its number in a data set.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from typing import Any, Protocol

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rmtheory.base.errors import counted
from rmtheory.base.statistics import sample_error

#: A claim is violated, and an inequality or a similarity confirmed, by more than so many errors.
SIGNIFICANCE = 3.0

#: An equality is confirmed only if our error is at most this fraction of what is granted.
POWER = 0.5


class Relation(StrEnum):
    """What the paper says of the quantity and its number."""

    EQUAL = "="
    #: Equal as far as it matters ('little impact', 'comparable'): the grant says how far.
    SIMILAR = "≈"
    ABOVE = ">"
    BELOW = "<"


class Kind(StrEnum):
    """What sort of statement a claim is."""

    NUMBER = "printed number"
    INEQUALITY = "inequality"
    #: Words such as 'comparable' or 'drastic', to which the table of grants gives a number.
    WORDS = "words"
    #: Some constant of ours was fitted to this number: agreement is no evidence.
    RECONSTRUCTED = "reconstructed"
    #: Decided by the theory alone, mostly for N → ∞.
    THEORY = "theory"


class Verdict(StrEnum):
    """What our data say of a claim."""

    AGREES = "agrees"
    DIFFERS = "differs"
    #: The number is reproduced, by constants that were fitted to it.
    RECONSTRUCTED = "reconstructed"
    #: Three of our errors are less than what is granted, and its edge is within one.
    EDGE = "at the edge"
    #: A claim whose edge is within our error.
    UNRESOLVED = "not resolved"
    #: An equality that our error is too large to test.
    NO_POWER = "error too large"
    #: The figure was made, at a scale that does not reach the size or the epochs of the claim.
    UNTESTED = "not tested at this scale"
    #: The data of the claim are not at hand.
    ABSENT = "data absent"
    #: The figure was not made, or none of ours measures this.
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Grant:
    """How far our number may be from that of a claim, and why; fixed before the run."""

    amount: float
    reason: str


@dataclass(frozen=True)
class Origin:
    """The stored runs that a number is the mean, the difference or the best of.

    Its error may hold the spread of further networks (:mod:`figures.trial.tables`).

    Parameters
    ----------
    seeds : str
        Theirs, three or more in a row by their ends.
    commits : str
        Those that made them, shortened; a star if files differed.
    runs : int
        How many they are.
    """

    seeds: str
    commits: str
    runs: int

    @classmethod
    def of(cls, seeds: Iterable[int], commits: Iterable[str], runs: int) -> Origin:
        """Return the origin of so many runs of these seeds, by these commits.

        Examples
        --------
        >>> print(Origin.of([0], ["a1"], 1))
        1 stored run, seed 0, commit a1
        >>> print(Origin.of([102, 0, 1, 2, 100], ["b2", "a1", "b2"], 7))
        7 stored runs, seeds 0 to 2, 100, 102, commit a1, b2
        """
        rows: list[list[int]] = []
        for seed in sorted({*seeds}):
            if rows and rows[-1][-1] == seed - 1:
                rows[-1].append(seed)
            else:
                rows.append([seed])
        texts = (
            f"{row[0]} to {row[-1]}" if len(row) > 2 else ", ".join(map(str, row)) for row in rows
        )
        return cls(", ".join(texts), ", ".join(sorted({*commits})), runs)

    def __str__(self) -> str:
        """Say it in words."""
        seeds = f"seed{'' if self.seeds.isdecimal() else 's'} {self.seeds}"
        return f"{counted(self.runs, 'stored run')}, {seeds}, commit {self.commits}"


#: Keys of stored runs.
Keys = frozenset[str]


@dataclass(frozen=True)
class Ours:
    """Our value with its standard error, or a bound on its error."""

    value: float
    error: float
    #: The sizes it was measured at, where the paper gives none: read off the data, too.
    at: str = ""
    #: The stored runs it comes from; None if the figure gave it.
    stored: Origin | None = None
    #: Standard deviation of the paper's number if that is one network's: it differs from ours only
    #: if it is beyond that, too.
    theirs: float = 0.0
    #: Their keys, which readers hand on: no part of what is published.
    runs: Keys = field(default=frozenset(), compare=False, repr=False)

    def __str__(self) -> str:
        """Print as many digits as the error allows.

        Examples
        --------
        >>> print(Ours(0.61234, 0.0123)), print(Ours(-0.17835765, 4e-9)), print(Ours(1.0, 0.0))
        0.612 ± 0.012
        -0.17836
        1
        (None, None, None)
        """
        if self.error < 1e-6 * max(1.0, abs(self.value)):
            return f"{self.value:.5g}"
        decimals = max(0, 1 - math.floor(math.log10(self.error)))
        return f"{self.value:.{decimals}f} ± {self.error:.{decimals}f}"


@dataclass(frozen=True, eq=False)
class Imagewise(Ours):
    r"""An accuracy, or a linear combination of some, with its value on every image of a test set.

    Combinations on the same images are formed image by image, so that what all networks find hard
    cancels (McNemar's test, where two networks are compared):

    .. math:: \sigma^2 = \frac1{n^2}\sum_i (c_i - \bar c)^2 + \sigma_{networks}^2 .
    """

    images: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    #: Error from the spread of networks.
    spread: float = 0.0
    #: Which images they are.
    of: str = ""

    @classmethod
    def on(
        cls,
        images: NDArray[np.float64],
        spread: float,
        of: str,
        at: str = "",
        runs: Keys = frozenset(),
    ) -> Imagewise:
        """Return the mean over `images` with its error."""
        sampling = sample_error(images)
        error = math.hypot(sampling, spread)
        mean = float(images.mean())
        return cls(mean, error, at, runs=runs, images=images, spread=spread, of=of)

    def minus(self, other: Imagewise) -> Imagewise | None:
        """Return the difference image by image; None if the images are others."""
        if self.of != other.of or len(self.images) != len(other.images):
            return None
        spread = math.hypot(self.spread, other.spread)
        sizes = ", ".join(dict.fromkeys(filter(None, (self.at, other.at))))
        gaps = self.images - other.images
        return Imagewise.on(gaps, spread, self.of, sizes, self.runs | other.runs)

    @property
    def plain(self) -> Ours:
        """The number alone."""
        return Ours(self.value, self.error, self.at, self.stored, runs=self.runs)


#: Why half a unit of the last digit is granted, or nothing.
ROUNDING = "rounding of the printed digits"
STRICT = "a strict inequality"

#: Said of a reconstructed number that differs: the verdict is on our constants as well.
_OURS_FAILS = "Reconstructed: with other constants than ours it might not differ."

#: Data sets that the theory computes.
_THEORY = frozenset({"annealed", "stability", "local_curves", "phase_diagram", "mean_field"})

#: Data set -> figure that makes it, where they are called differently.
FIGURE_OF = {"local_curves": "local_entropies", "self_coupling": "role_of_jd"}

#: Data sets that only stored runs give; no figure shows them.
STORED = frozenset({"spot_checks", "searches", "clusters"})

#: Returns our value, or None where the data set does not hold it.
Reader = Callable[[xr.Dataset], Ours | None]


def claim_id(key: str) -> str:
    """Return the id of the claim with this key: words and numbers, joined by hyphens.

    Examples
    --------
    >>> claim_id("approximate scheme, narrow, test")
    'approximate-scheme-narrow-test'
    """
    return re.sub(r"[^\w.]+", "-", key).strip("-")


@dataclass(frozen=True)
class Claim:
    """One number of the paper.

    Parameters
    ----------
    key : str
        Short name, unique among all claims.
    quantity : str
        What it is, in our words.
    printed : str
        The number as the paper prints it.
    where : str
        Place in the paper: section, figure or table.
    value : str
        Its decimal digits: half a unit of the last one is what rounding may hide.
    data : str
        Name of the data set that holds ours; empty if none does.
    read : callable, optional
        Reads ours off the data set; None if no experiment of ours measures it.
    relation : Relation
        Whether the paper says equal, similar, above or below.
    grant : Grant, optional
        From the table :mod:`figures.claims.grants`. Without one, half a unit of the last digit is
        granted to an equality and nothing to an inequality.
    kind : Kind, optional
        By default theory by its data set, else words if the printed text has no digit, else a
        number or an inequality.
    absent : str
        Why the data are not at hand, if they are not.
    why : str
        Why ours differs, where we know; shown only if it does.
    note : str
        What the reader should know whatever the verdict.
    headline : bool
        Whether it belongs to the short table.
    """

    key: str
    quantity: str
    printed: str
    where: str
    value: str
    data: str
    read: Reader | None
    relation: Relation = Relation.EQUAL
    grant: Grant | None = None
    kind: Kind | None = None
    absent: str = ""
    why: str = ""
    note: str = ""
    headline: bool = False

    def __post_init__(self) -> None:
        if (self.read is None) != (not self.data):
            raise ValueError(f"{self.key}: a reader needs a data set, and a data set a reader")
        if self.relation is Relation.SIMILAR and not (self.grant and self.grant.amount):
            raise ValueError(f"{self.key}: similar within what? the grant must be positive")

    @property
    def id(self) -> str:
        """The key without blanks, for the command line.

        Examples
        --------
        >>> Claim("5-95 % of x", "a", "7", "here", "7", "data", lambda data: None).id
        '5-95-of-x'
        """
        return claim_id(self.key)

    @property
    def sort(self) -> Kind:
        """What sort of statement it is."""
        if self.kind is not None:
            return self.kind
        if self.data in _THEORY:
            return Kind.THEORY
        if not any(sign.isdigit() for sign in self.printed):
            return Kind.WORDS
        return Kind.NUMBER if self.relation is Relation.EQUAL else Kind.INEQUALITY

    @property
    def needs(self) -> str:
        """The sizes without which it is not decided, as far as the reader fixes them."""
        return "; ".join(
            f"{_SYMBOLS.get(name, name)} {'≥' if least else '='} {', '.join(values)}"
            for (name, least), values in _required(self.read).items()
        )

    def demanded(self, *names: str) -> list[float]:
        """Return the sizes that the reader fixes, of coordinates such as n or epochs."""
        found = (texts for (name, _), texts in _required(self.read).items() if name in names)
        return sorted({float(text) for texts in found for text in texts})

    @property
    def number(self) -> float:
        """The printed number."""
        return float(self.value)

    @property
    def slack(self) -> float:
        """How far a number may be from the printed one and still be it."""
        if self.grant is not None:
            return self.grant.amount
        return self._rounding if self.relation is Relation.EQUAL else 0.0

    @property
    def reason(self) -> str:
        """Why so much is granted."""
        if self.grant is not None:
            return self.grant.reason
        return ROUNDING if self.relation is Relation.EQUAL else STRICT

    @property
    def _rounding(self) -> float:
        """Half a unit of the last printed digit."""
        _, _, decimals = self.value.partition(".")
        return 0.5 * 10.0 ** -len(decimals)

    @property
    def granted(self) -> str:
        """What the verdict grants, in words; empty for the rounding of an equality.

        Examples
        --------
        >>> import dataclasses
        >>> claim = Claim("k", "a", "7", "here", "7", "data", lambda data: None)
        >>> claim.granted, dataclasses.replace(claim, grant=Grant(2, "an example")).granted
        ('', '± 2 granted')
        """
        if self.relation is Relation.SIMILAR:
            return f"taken as within {self.slack:g}"
        if self.relation is not Relation.EQUAL:
            return f"{self.slack:g} granted" if self.slack else ""
        if math.isclose(self.slack, self._rounding):
            return ""
        return f"± {self.slack:g} granted" if self.slack else "nothing granted"

    @property
    def source(self) -> str:
        """Place in the paper, and what the verdict grants."""
        return "; ".join(filter(None, (self.where, self.granted)))

    def beyond(self, ours: float) -> float:
        """How far `ours` is beyond the limit of what is granted; negative inside."""
        gap = ours - self.number
        signed = {Relation.ABOVE: -gap, Relation.BELOW: gap}.get(self.relation, abs(gap))
        # Rounding of the last bits must not turn the edge of the interval into a violation.
        return signed - self.slack * (1 + 1e-9)


@dataclass(frozen=True)
class Judged:
    """A claim with our number, if there is one, and the verdict."""

    claim: Claim
    ours: Ours | None
    #: Whether the figure was made that the claim reads.
    run: bool = True

    @property
    def sigmas(self) -> float:
        """The violation in units of the error of the comparison."""
        if self.ours is None:
            return math.nan
        beyond = self.claim.beyond(self.ours.value)
        if beyond <= 0:
            return 0.0
        error = math.hypot(self.ours.error, self.ours.theirs)
        return beyond / error if error > 0 else math.inf

    @property
    def resolved(self) -> bool:
        """Whether our error is small enough to confirm what is not violated.

        An equality needs a number within what is granted and an error of at most :data:`POWER`
        times that: one that would be compatible with almost anything confirms nothing. Of an
        inequality nothing is said
        by a value within :data:`SIGNIFICANCE` errors of its edge, and so of both edges of a
        similarity.
        """
        if self.ours is None:
            return False
        beyond = self.claim.beyond(self.ours.value)
        if self.claim.relation is Relation.EQUAL:
            return self.has_power and beyond <= 0
        return beyond <= -SIGNIFICANCE * self.ours.error

    @property
    def has_power(self) -> bool:
        """Whether our error is small against what is granted to an equality."""
        granted = POWER * self.claim.slack * (1 + 1e-9)
        return self.ours is not None and self.ours.error <= granted

    def _at_edge(self, ours: Ours) -> bool:
        """Return whether a number that is known well is where the grant ends."""
        known = SIGNIFICANCE * ours.error <= self.claim.slack * (1 + 1e-9)
        return known and abs(self.claim.beyond(ours.value)) <= ours.error

    @property
    def verdict(self) -> Verdict:
        """Differs if violated by more than :data:`SIGNIFICANCE` errors; see :attr:`resolved`."""
        claim = self.claim
        if self.ours is None:
            if claim.absent:
                return Verdict.ABSENT
            return Verdict.UNTESTED if self.run and claim.read else Verdict.NOT_RUN
        if self.sigmas > SIGNIFICANCE:
            return Verdict.DIFFERS
        if not self.resolved:
            if claim.relation is Relation.EQUAL and not self.has_power:
                return Verdict.NO_POWER
            return Verdict.EDGE if self._at_edge(self.ours) else Verdict.UNRESOLVED
        return Verdict.RECONSTRUCTED if claim.sort is Kind.RECONSTRUCTED else Verdict.AGREES

    @property
    def text(self) -> str:
        """The verdict in words: how far it differs, or which error is too large."""
        if self.ours is not None and self.verdict is Verdict.NO_POWER:
            granted = self.claim.slack
            return f"{Verdict.NO_POWER}: {self.ours.error:.2g} where {granted:.2g} is granted"
        if self.ours is None or self.verdict is not Verdict.DIFFERS:
            return str(self.verdict)
        if self.sigmas < 1000:
            return f"differs by {self.sigmas:.1f} σ"
        return f"differs by {self.claim.beyond(self.ours.value):.2g}, beyond all error"

    @property
    def remark(self) -> str:
        """The note, and the reason where it differs or where the data are absent."""
        reasons = {Verdict.DIFFERS: self.claim.why, Verdict.ABSENT: self.claim.absent}
        ours = self.verdict is Verdict.DIFFERS and self.claim.sort is Kind.RECONSTRUCTED
        parts = (self.claim.note, reasons.get(self.verdict, ""), _OURS_FAILS if ours else "")
        return " ".join(part for part in parts if part)


def judge(claim: Claim, data: xr.Dataset | None) -> Judged:
    """Put `claim` before the data set it reads, None if that is not there."""
    if data is None or claim.read is None:
        return Judged(claim, None, run=False)
    number = claim.read(data)
    return Judged(claim, number.plain if isinstance(number, Imagewise) else number)


def not_run(key: str, quantity: str, printed: str, where: str, value: str, note: str) -> Claim:
    """Return a claim that no experiment of ours measures; the note says what it would take."""
    return Claim(key, quantity, printed, where, value, "", None, note=note)


#: Coordinates that are the same number within this are the same.
_SAME = 1e-9


@dataclass(frozen=True)
class At:
    """Variable `name`, with its error NAME_error, where the coordinates have the values `where`.

    A coordinate may be a dimension or a single number that holds for the whole data set. Where the
    data do not reach, at a smaller scale say, there is no number.
    """

    name: str
    where: Mapping[str, Any] = field(default_factory=dict)
    #: Coordinates that are one number in the data, and that the report is to name.
    shown: tuple[str, ...] = ()

    def __call__(self, data: xr.Dataset) -> Ours | None:
        """Return the number and its error."""
        if self.name not in data:
            return None
        ends = ("", "_error", "_images", "_spread", "_networks", RUNS)
        names = [name for end in ends if (name := f"{self.name}{end}") in data]
        chosen = select(data[names], self.where)
        if chosen is None:
            return None
        sizes = sizes_of(**{name: float(chosen[name]) for name in self.shown})
        runs = runs_of(chosen, self.name)
        number = ours(chosen[self.name], chosen[f"{self.name}_error"], sizes, runs)
        if number is None or f"{self.name}_images" not in chosen:
            return number
        images = np.asarray(chosen[f"{self.name}_images"].values, dtype=np.float64)
        spread = float(chosen[f"{self.name}_spread"])
        of = str(chosen[self.name].attrs.get("images"))
        return Imagewise.on(images, spread, of, sizes, runs)

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={value}" for name, value in self.where.items())
        return f"{self.name}[{inside}]" if inside else self.name


def at(name: str, **where: Any) -> At:
    """Return the reader of variable `name` at the coordinates `where`."""
    return At(name, where)


def select(data: xr.Dataset, where: Mapping[str, Any]) -> xr.Dataset | None:
    """Return the part of `data` at the coordinates `where`, None if it has no such part."""
    for name, value in where.items():
        if name not in data.coords:
            return None
        coordinate = data[name]
        if coordinate.ndim > 1:
            raise ValueError(f"{name} is not a plain coordinate")
        values = np.atleast_1d(coordinate.values)
        if isinstance(value, str):
            places = np.flatnonzero(values == value)
        else:
            places = np.flatnonzero(np.abs(values.astype(float) - value) < _SAME)
        if places.size == 0:
            return None
        if coordinate.ndim == 1:
            data = data.isel({str(coordinate.dims[0]): int(places[0])})
    return data


#: Fields of readers that say which sizes they need: name -> coordinate, and whether larger do too.
_SIZES = {
    **{name: (name, False) for name in ("n", "layers", "epochs", "epoch", "dataset", "jd", "lam")},
    "least_n": ("n", True),
    "typical_n": ("n", False),
}


def _required(read: object) -> dict[tuple[str, bool], list[str]]:
    """Return the sizes that a reader, or what it is made of, fixes."""
    required: dict[tuple[str, bool], list[str]] = {}

    def note(name: str, value: object) -> None:
        text = value if isinstance(value, str) else f"{value:g}"
        values = required.setdefault(_SIZES[name], [])
        if text not in values:
            values.append(text)

    def walk(part: object) -> None:
        if isinstance(part, tuple):
            for one in part:
                walk(one)
        elif isinstance(part, Mapping):
            for name, value in part.items():
                if name in _SIZES:
                    note(name, value)
        elif is_dataclass(part):
            for one in fields(part):
                value = getattr(part, one.name)
                if one.name in _SIZES and value:
                    note(one.name, value)
                else:
                    walk(value)

    walk(read)
    return required


#: Sizes that a number is indicative at where those of the claim are not reached.
_FREE = ("n", "epochs", "epoch")


def indicative(claim: Claim, data: xr.Dataset | None) -> Ours | None:
    """Return what `data` say at the sizes nearest to those of `claim`; it decides nothing.

    Sizes above those at hand are replaced by the largest at hand, others by the least; the number
    says which they are.
    """
    if data is None or claim.read is None:
        return None
    sizes: dict[str, float] = {}
    try:
        number = _relaxed(claim.read, data, sizes)(data)
    except (KeyError, IndexError, ValueError):  # what it reads is not in these data at all
        return None
    if number is None or not math.isfinite(number.value):
        return None
    places = {name: value for name, value in sizes.items() if name in _SYMBOLS or name == "epochs"}
    return Ours(number.value, number.error, number.at or sizes_of(**places))


def _relaxed(read: Any, data: xr.Dataset, sizes: dict[str, float]) -> Any:
    """Return a reader with the sizes that `data` have, and note them in `sizes`."""

    def nearest(name: str, wanted: Any) -> Any:
        if name not in _FREE or name not in data.coords or isinstance(wanted, str):
            return wanted
        values = np.atleast_1d(data[name].values).astype(float)
        below = values[values <= wanted + _SAME]
        chosen = float(below.max() if below.size else values.min())
        sizes["epochs" if name == "epoch" else name] = chosen
        return chosen

    if isinstance(read, At):
        return replace(read, where={name: nearest(name, x) for name, x in read.where.items()})
    if isinstance(read, tuple):
        return tuple(_relaxed(one, data, sizes) for one in read)
    if is_dataclass(read) and not isinstance(read, type):
        changes: dict[str, Any] = {}
        for one in fields(read):
            value = getattr(read, one.name)
            if one.name == "least_n":
                changes[one.name] = 0
            elif one.name in _FREE:
                changes[one.name] = nearest(one.name, value)
            elif is_dataclass(value) or isinstance(value, tuple):
                changes[one.name] = _relaxed(value, data, sizes)
        return replace(read, **changes)
    return read


#: Coordinate -> its symbol in the report.
_SYMBOLS = {"n": "N", "jd": "J_D", "lam": "λ", "layers": "L", "large_n": "N"}


def sizes_of(**sizes: float) -> str:
    """Return the sizes at which a number was measured, in words.

    Examples
    --------
    >>> sizes_of(n=4000, samples=50)
    'N = 4000, 50 samples'
    """
    return ", ".join(
        f"{_SYMBOLS[name]} = {value:g}" if name in _SYMBOLS else f"{value:g} {name}"
        for name, value in sizes.items()
    )


#: Ends the name of what has the keys of the stored runs of a variable, with blanks between them.
RUNS = "_runs"


def runs_of(data: xr.Dataset, *names: str) -> Keys:
    """Return the keys of the stored runs of all cells of some variables; none if figures gave them.

    Examples
    --------
    >>> one = xr.Dataset({"x": ("n", [1.0, 2.0]), "x_runs": ("n", ["a b", "b c"])})
    >>> sorted(runs_of(one, "x")), sorted(runs_of(one.isel(n=0), "x"))
    (['a', 'b', 'c'], ['a', 'b'])
    """
    there = [data[f"{name}{RUNS}"].values for name in names if f"{name}{RUNS}" in data]
    # Cells without a run have no text.
    texts = [text for values in there for text in values.ravel() if isinstance(text, str)]
    return frozenset(key for text in texts for key in text.split())


def ours(
    value: xr.DataArray | float,
    error: xr.DataArray | float,
    sizes: str = "",
    runs: Keys = frozenset(),
) -> Ours | None:
    """Return one number and its error; None where there is none."""
    number, deviation = (float(np.asarray(part).item()) for part in (value, error))
    if math.isnan(number) or math.isnan(deviation):
        return None
    return Ours(number, deviation, sizes, runs=runs)


def difference(first: Ours | None, second: Ours | None) -> Ours | None:
    """Return first - second, image by image where both are known so, else as if independent."""
    if first is None or second is None:
        return None
    if isinstance(first, Imagewise) and isinstance(second, Imagewise):
        paired = first.minus(second)
        if paired is not None:
            return paired
    error = math.hypot(first.error, second.error)
    return Ours(first.value - second.value, error, first.at, runs=first.runs | second.runs)


def together(numbers: Iterable[Ours]) -> Keys:
    """Return the keys of the runs of some numbers."""
    return frozenset[str]().union(*(one.runs for one in numbers))


def least(numbers: Iterable[Ours | None]) -> Ours | None:
    """Return the least of some numbers, None if one of them is not there.

    It comes from the runs of all: which of them is the least is measured, too.
    """
    return _chosen(min, numbers)


def largest(numbers: Iterable[Ours | None]) -> Ours | None:
    """Return the largest of some numbers, as :func:`least` does."""
    return _chosen(max, numbers)


def _chosen(choose: Callable[..., Ours], numbers: Iterable[Ours | None]) -> Ours | None:
    every = list(numbers)
    there = [one for one in every if one is not None]
    if not every or len(there) < len(every):
        return None
    return replace(choose(there, key=lambda one: one.value), runs=together(there))


class Reading(Protocol):
    """A reader that can be named."""

    def __call__(self, data: xr.Dataset) -> Ours | None:
        """Return our number, None where the data do not hold it."""


@dataclass(frozen=True)
class Minus:
    """The difference of two readings."""

    first: Reading
    second: Reading

    def __call__(self, data: xr.Dataset) -> Ours | None:
        """Return the difference; see :func:`difference`."""
        return difference(self.first(data), self.second(data))

    def __str__(self) -> str:
        return f"{self.first} - {self.second}"


@dataclass(frozen=True)
class Least:
    """The least of several readings, all of which must be there."""

    parts: tuple[Reading, ...]

    def __call__(self, data: xr.Dataset) -> Ours | None:
        """Return the least with its own error."""
        return least(part(data) for part in self.parts)

    def __str__(self) -> str:
        return f"least of {', '.join(map(str, self.parts))}"


@dataclass(frozen=True)
class Largest:
    """The largest of several readings, all of which must be there."""

    parts: tuple[Reading, ...]

    def __call__(self, data: xr.Dataset) -> Ours | None:
        """Return the largest with its own error."""
        return largest(part(data) for part in self.parts)

    def __str__(self) -> str:
        return f"largest of {', '.join(map(str, self.parts))}"


@dataclass(frozen=True)
class OfNetworks:
    """A reading with the error of its networks alone, for a grant that holds that of the images.

    The paper's number is that of one network on as many images: it deviates by the spread of
    networks, which is that of our mean times the root of their number, and by that of the images.
    """

    read: Reading

    def __call__(self, data: xr.Dataset) -> Ours | None:
        """Return the same number with the spread of networks as its error."""
        number = self.read(data)
        if not isinstance(number, Imagewise):
            return number
        single = number.spread * math.sqrt(max(1, len(number.runs)))
        images = math.sqrt(number.value * (1 - number.value) / len(number.images))
        theirs = math.hypot(single, images)
        return Ours(number.value, number.spread, number.at, runs=number.runs, theirs=theirs)

    def __str__(self) -> str:
        return str(self.read)
