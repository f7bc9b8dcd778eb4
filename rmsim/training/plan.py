"""What is trained: the parameters, the data, the seed. Two equal plans give the same numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from rmsim.data import Dataset
from rmsim.device import choose_dtype
from rmsim.learning.parameters import Parameters
from rmsim.learning.presets import preset as preset_named
from rmsim.randomness import checked_seed
from rmtheory import checks
from rmtheory.errors import InvalidInputError, UnreadableDataError


@dataclass(frozen=True)
class Plan:
    """A run, without its length.

    Parameters
    ----------
    parameters : Parameters
        The protocol.
    dataset : str
        Name of the data set.
    seed : int
        Seed of the weights, of the order of the samples and of masked updates.
    preset : str
        Where the parameters come from; ``none`` if from nowhere.
    train_samples, test_samples : int, optional
        Take only the first ones of the data set.
    dtype : str
        float32 or float64.

    Examples
    --------
    >>> Plan.of_preset("entangled-mnist-dense", 200, seed=3, eta_j=0.01).parameters.eta_j
    0.01
    """

    parameters: Parameters
    dataset: str
    seed: int = 0
    preset: str = "none"
    train_samples: int | None = None
    test_samples: int | None = None
    dtype: str = "float32"

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checked_seed(self.seed))
        object.__setattr__(self, "dtype", str(choose_dtype(self.dtype)).removeprefix("torch."))
        for name in ("train_samples", "test_samples"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, checks.integer(name, getattr(self, name), 1))

    @classmethod
    def of_preset(
        cls,
        name: str,
        n: int | None = None,
        *,
        seed: int = 0,
        dataset: str | None = None,
        classes: int | None = None,
        train_samples: int | None = None,
        test_samples: int | None = None,
        dtype: str = "float32",
        **others: Any,
    ) -> Plan:
        """Return the plan of the preset `name` at width `n`, with other parameters by name.

        With another data set come its `classes`, on which the label code depends.
        """
        chosen = preset_named(name)
        parameters = chosen.parameters(n, classes=classes, **others)
        data = chosen.dataset if dataset is None else dataset
        return cls(parameters, data, seed, name, train_samples, test_samples, dtype)

    def data(self, dataset: Dataset) -> Dataset:
        """Return the part of `dataset` that is used; refuse another data set."""
        if dataset.name != self.dataset:
            raise InvalidInputError("dataset", dataset.name, f"{self.dataset}, as planned")
        if self.parameters.neurons < dataset.classes:  # before a folder is made
            allowed = f"such that {dataset.classes} classes fit, N >= C"
            raise InvalidInputError("n", self.parameters.n, allowed)
        self.parameters.check_rates(dataset.width, dataset.classes)
        train = len(dataset.train) if self.train_samples is None else self.train_samples
        test = len(dataset.test) if self.test_samples is None else self.test_samples
        checks.integer("train_samples", train, 1, len(dataset.train))
        checks.integer("test_samples", test, 1, len(dataset.test))
        if (train, test) == (len(dataset.train), len(dataset.test)):
            return dataset
        return dataset.first(train, test)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Plan:
        """Return the plan that :meth:`to_dict` wrote."""
        known = {field.name for field in fields(cls)}
        try:
            if set(values) != known:
                raise ValueError("names")
            rest = {name: values[name] for name in known - {"parameters"}}
            for name in ("dataset", "preset"):
                if not isinstance(rest[name], str):
                    raise TypeError(f"{name} is {rest[name]}")
            return cls(Parameters.from_dict(values["parameters"]), **rest)
        except (TypeError, ValueError) as problem:
            raise UnreadableDataError(f"no plan of a run: {problem}") from None


def differences(held: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Say in which numbers two plans (as JSON values) differ.

    Examples
    --------
    >>> differences({"seed": 0, "parameters": {"n": 2}}, {"seed": 1, "parameters": {"n": 2}})
    ['seed = 0, not 1']
    """
    one, two = (
        {key: value for key, value in plan.items() if key != "parameters"}
        | dict(plan.get("parameters", {}))
        for plan in (held, wanted)
    )
    return [
        f"{name} = {one.get(name)}, not {two.get(name)}"
        for name in {**one, **two}
        if one.get(name) != two.get(name)
    ]
