"""A preset is data: a recipe, a table of the paper, the data set and the epochs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rmsim.learning.parameters import Parameters
from rmsim.learning.recipes import dense_recipe, literal_recipe, overlap_recipe, sparse_recipe
from rmtheory import checks
from rmtheory.errors import InvalidInputError

Recipe = Literal["dense", "overlap", "sparse", "literal"]

#: On MNIST a probe of 3 epochs is worse by half a percent than one of 10.
LEAST_PROBE = 10

_RECIPES: Mapping[str, Callable[..., Parameters]] = {
    "dense": dense_recipe,
    "overlap": overlap_recipe,
    "sparse": sparse_recipe,
    "literal": literal_recipe,
}


@dataclass(frozen=True)
class ByWidth:
    """A number that the paper tunes to the width: that of the nearest width in its table.

    Parameters
    ----------
    values : tuple of pairs
        Width N and the number there.

    Examples
    --------
    >>> tuned = ByWidth(((1000, 1.62), (2000, 1.3)))
    >>> tuned.at(1000), tuned.at(1501), tuned.at(10000)
    (1.62, 1.3, 1.3)
    """

    values: tuple[tuple[int, float], ...]

    @classmethod
    def of(cls, widths: tuple[int, ...], *values: float) -> ByWidth:
        """Return the table with these columns."""
        return cls(tuple(zip(widths, values, strict=True)))

    def at(self, n: int) -> float:
        """Return the number for N = `n`; halfway between two widths, that of the smaller."""
        return min(self.values, key=lambda pair: (abs(pair[0] - n), pair[0]))[1]


@dataclass(frozen=True)
class Preset:
    """Everything that a run needs but its width, its seed and its length.

    Parameters
    ----------
    name : str
        As on the command line.
    dataset : str
        Name of the data set.
    recipe : str
        The protocol, see :mod:`rmsim.learning.recipes`.
    table : mapping
        Parameter -> number of the paper's table, or its numbers by width.
    widths : tuple of int
        The widths of the paper; the first one is the default.
    epochs : int or ByWidth
        Epochs of the paper.
    paper : str
        What the paper prints, and where.
    changed : str
        What is different here, and why.
    probe : bool
        Whether a softmax probe is trained afterwards.
    classes : int
        Classes of the data set.
    """

    name: str
    dataset: str
    recipe: Recipe
    table: Mapping[str, Any]
    widths: tuple[int, ...]
    epochs: int | ByWidth
    paper: str
    changed: str
    probe: bool = False
    classes: int = 10

    def parameters(
        self, n: int | None = None, *, classes: int | None = None, **others: Any
    ) -> Parameters:
        """Return the parameters at width `n`, with `others` by name instead of the table's.

        Parameters
        ----------
        n : int, optional
            Neurons a layer; the first width of the paper by default.
        classes : int, optional
            Number of classes, on which the label code depends; that of the data set by default.
        **others
            Any parameter; unknown ones are errors.
        """
        width = self.width(n)
        values = {name: _at(value, width) for name, value in self.table.items()}
        if self.recipe != "literal":  # whose labels are +-1 whatever the classes
            values["classes"] = self.classes if classes is None else classes
        found = _RECIPES[self.recipe](width, **{**values, **others})
        _demand_path(found, {**values, **others})
        return found

    def width(self, n: object = None) -> int:
        """Return `n`, checked, or the default width."""
        return self.widths[0] if n is None else checks.integer("n", n, 2)

    def epochs_at(self, n: int) -> int:
        """Return the epochs of the paper at width `n`."""
        return int(_at(self.epochs, n))

    def probe_epochs(self, epochs: int) -> int:
        """Return the epochs of the probe after `epochs` of training; 0 if there is none.

        As many again (paper, SM-D), but not fewer than a readout needs to be trained at all.
        """
        return max(epochs, LEAST_PROBE) if self.probe else 0

    def to_dict(self) -> dict[str, Any]:
        """Return what a list shows, as JSON values."""
        return {
            "name": self.name,
            "dataset": self.dataset,
            "recipe": self.recipe,
            "widths": list(self.widths),
            "epochs": self.epochs_at(self.widths[0]),
            "probe": self.probe,
            "paper": self.paper,
            "changed": self.changed,
        }


def _demand_path(parameters: Parameters, given: Mapping[str, Any]) -> None:
    """Refuse layers that nobody coupled, if the readout could then not see the input."""
    ends = (parameters.input_to, parameters.output_from)
    name = {("first", "last"): "lam_left", ("last", "first"): "lam_right"}.get(ends)
    if parameters.layers > 1 and name is not None and name not in given:
        allowed = f"given for {parameters.layers} layers: the input has to reach the readout"
        raise InvalidInputError(name, "nothing", allowed)


def _at(value: Any, n: int) -> Any:
    return value.at(n) if isinstance(value, ByWidth) else value
