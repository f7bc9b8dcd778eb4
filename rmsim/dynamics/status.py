"""How a search for fixed points ends: one status for every method, and one type of result.

Failure is a result: each status has a name and says what to do about it. The numbers are those of
stored sweeps and must not change; the names of version 0.1 are still read (`Status("solved")`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rmtheory.base.errors import UnreadableDataError
from rmtheory.runtime.untrusted import MALFORMED, parse_json

if TYPE_CHECKING:
    import xarray as xr

#: Names in the output of version 0.1.
_FORMER_NAMES = {
    "solved": "fixed_point",
    "unconverged": "cap",
    "cycling": "cycle",
    "settled": "converged",
}


class Status(IntEnum):
    """How the search in one network ended, with a sentence on what to do about it.

    Examples
    --------
    >>> import rmsim as rs
    >>> rs.Status.CYCLE.label, rs.Status("unconverged").label
    ('cycle', 'cap')
    >>> print(rs.Status.CAP)
    cap
    >>> print(rs.Status.MARGINAL.remedy)
    Stable as simulated, but a margin is not positive in float64: use dtype float64.
    """

    remedy: str

    def __new__(cls, value: int | str, remedy: str = "") -> Status:
        """Make a member that carries its remedy."""
        member = int.__new__(cls, value)
        member._value_ = int(value)
        member.remedy = remedy
        return member

    FIXED_POINT = (0, "A fixed point, every margin s_i h_i positive in float64.")
    CYCLE = (
        1,
        "States, messages or signs repeat with a period above 1: use masked updates (p < 1) or "
        "another start.",
    )
    CAP = (
        2,
        "No decision within the cap: raise max_iterations (max_sweeps), or reinforce more slowly.",
    )
    MARGINAL = (
        3,
        "Stable as simulated, but a margin is not positive in float64: use dtype float64.",
    )
    PARAMAGNET = (
        4,
        "All magnetisations are zero: the solution of belief propagation, a collapse of a search; "
        "start from larger fields, or from a larger r0.",
    )
    POLARISED = (
        5,
        "Every spin is certain, but the state is not a fixed point: reinforce more slowly (smaller "
        "dr), or use another start.",
    )
    DIVERGED = (
        6,
        "A number left the range of its type, the last finite state is returned: use dtype float64 "
        "or smaller steps.",
    )
    CONVERGED = (
        7,
        "The equations hold with non-zero magnetisations: a solution of belief propagation; a "
        "search is at rest where the signs are not a fixed point: use another start.",
    )

    @classmethod
    def _missing_(cls, value: object) -> Status | None:
        name = _FORMER_NAMES.get(str(value), str(value)).upper()
        return cls.__members__.get(name)

    @property
    def label(self) -> str:
        """Name in the output of a command."""
        return self.name.lower()

    def __str__(self) -> str:
        return self.label


@dataclass(frozen=True, eq=False)
class SearchResult:
    """How the search for a fixed point ended in every network; all tensors are on the CPU.

    The shape of the tensors is (samples,); that of :func:`rmsim.dynamics.relaxation.relax`, which
    follows several states of each network, is (samples, starts).

    Parameters
    ----------
    method : str
        Name of the method, as in :func:`rmsim.search.methods.find_fixed_point`.
    settings : mapping
        Its settings, defaults included.
    status : Tensor of int8
        A :class:`Status` each.
    iterations : Tensor of int64
        Sweeps of the dynamics until the fixed point was reached (0 if it was the start), until the
        cycle was closed, or the cap; iterations of the messages, all attempts together.
    period : Tensor of int64
        Sweeps after which the state returns: 1 for a fixed point, 0 if unknown.
    attempts : Tensor of int64
        Starts that were tried.
    min_margin : Tensor, float64
        Least s_i h_i of the final state, positive if and only if it is a fixed point.
    unsatisfied : Tensor of int64
        Neurons of the final state with s_i h_i <= 0 in float64.
    state : Tensor of int8, (..., layers, n)
        Final state, or the signs of the last magnetisations.
    seed : int
        Seed of the starts and masks.
    device : str
        Where it was computed.
    quantities : mapping of str to Tensor
        What only this method gives, for every network; NaN where it is not defined.

    Examples
    --------
    >>> import rmsim as rs
    >>> result = rs.find_fixed_point(rs.Network(100, rs.Chain(1, jd=2.0)), samples=3)
    >>> result.solved.tolist(), result.unsatisfied.tolist()
    ([True, True, True], [0, 0, 0])
    >>> print(*result.words)
    fixed_point fixed_point fixed_point
    """

    method: str
    settings: Mapping[str, object]
    status: torch.Tensor
    iterations: torch.Tensor
    period: torch.Tensor
    attempts: torch.Tensor
    min_margin: torch.Tensor
    unsatisfied: torch.Tensor
    state: torch.Tensor
    seed: int
    device: str
    quantities: Mapping[str, torch.Tensor] = field(default_factory=dict)

    @property
    def solved(self) -> torch.Tensor:
        """Return which searches ended in a fixed point."""
        return self.ended(Status.FIXED_POINT)

    @property
    def words(self) -> list[Any]:
        """Return how each search ended, in a word; lists within a list for several starts."""

        def named(values: Any) -> Any:
            return [named(x) for x in values] if isinstance(values, list) else Status(values).label

        return list(named(self.status.tolist()))

    def ended(self, status: Status) -> torch.Tensor:
        """Return which searches ended in `status`."""
        return self.status == int(status)

    def to_xarray(self) -> xr.Dataset:
        """Return it as a data set over sample (and start), to select from, store and read back.

        Examples
        --------
        >>> import rmsim as rs
        >>> result = rs.relax(rs.Network(50, rs.Chain(1, jd=1.0)), samples=2, starts=3)
        >>> dict(result.to_xarray().state.sizes)
        {'sample': 2, 'start': 3, 'layer': 1, 'neuron': 50}
        >>> again = rs.SearchResult.from_xarray(result.to_xarray())
        >>> bool((again.state == result.state).all())
        True
        """
        import xarray as xr  # here, because workers import this module and do without

        dims = ("sample", "start")[: self.status.dim()]
        values: dict[str, Any] = {}
        for name in _TENSORS:
            more = ("layer", "neuron") if name == "state" else ()
            values[name] = (dims + more, getattr(self, name).numpy(), {"long_name": _MEANING[name]})
        for name, tensor in self.quantities.items():
            values[name] = (dims, tensor.numpy(), {"role": _QUANTITY})
        words = ", ".join(f"{int(status)} {status.label}" for status in Status)
        values["status"][2]["flags"] = words
        about = {"method": self.method, "settings": json.dumps(dict(self.settings))}
        return xr.Dataset(values, attrs=about | {"seed": self.seed, "device": self.device})

    @classmethod
    def from_xarray(cls, data: xr.Dataset) -> SearchResult:
        """Return the result that :meth:`to_xarray` made into a data set, also after a file.

        Raises
        ------
        UnreadableDataError
            If it is another data set: naming what is missing or does not fit.
        """
        try:
            dims = data["status"].dims
            if dims not in (("sample",), ("sample", "start")):
                raise ValueError(f"status is over {', '.join(map(str, dims))}")
            tensors = {}
            for name in _TENSORS:
                wanted = (*dims, "layer", "neuron") if name == "state" else dims
                if data[name].dims != wanted:
                    raise ValueError(f"{name} is over {', '.join(map(str, data[name].dims))}")
                kind = _TYPES.get(name, np.int64)
                tensors[name] = torch.tensor(np.asarray(data[name].values).astype(kind))
            for value in set(tensors["status"].flatten().tolist()):
                Status(value)
            if not bool((tensors["state"].abs() <= 1).all()):
                raise ValueError("state has entries that are not spins")
            return cls(
                method=str(data.attrs["method"]),
                settings=parse_json(data.attrs["settings"]),
                **tensors,
                seed=int(data.attrs["seed"]),
                device=str(data.attrs["device"]),
                quantities={
                    str(name): torch.tensor(array.values)
                    for name, array in data.data_vars.items()
                    if array.attrs.get("role") == _QUANTITY
                },
            )
        except MALFORMED as problem:
            raise UnreadableDataError(f"the data set is not a search result: {problem}") from None


_TENSORS = ("status", "iterations", "period", "attempts", "min_margin", "unsatisfied", "state")

#: Those that are not int64.
_TYPES: dict[str, Any] = {"status": np.int8, "state": np.int8, "min_margin": np.float64}

_MEANING = {
    "status": "how the search ended",
    "iterations": "sweeps or iterations",
    "period": "sweeps after which the state returns",
    "attempts": "starts that were tried",
    "min_margin": "least s_i h_i of the final state",
    "unsatisfied": "neurons with s_i h_i <= 0",
    "state": "final state",
}

#: Attribute of what only one method gives.
_QUANTITY = "quantity of the method"


def join_results(parts: Sequence[SearchResult], dim: int = 0) -> SearchResult:
    """Return the results of several sets of samples as one, or of several starts (`dim` = 1)."""
    first = parts[0]
    if len(parts) == 1:
        return first
    tensors = {name: torch.cat([getattr(x, name) for x in parts], dim) for name in _TENSORS}
    quantities = {
        name: torch.cat([part.quantities[name] for part in parts], dim) for name in first.quantities
    }
    return SearchResult(
        method=first.method,
        settings=first.settings,
        **tensors,
        seed=first.seed,
        device=first.device,
        quantities=quantities,
    )
