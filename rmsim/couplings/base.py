r"""What every kind of couplings offers, so that code that uses them need not know the kind.

.. math:: h_i = \sum_{j\ne i} J_{ij} s_j + J_D s_i
    + \sum_m \lambda_m s^{(l+m)}_i + b_i, \qquad s^{(0)} = s^{(L+1)} = 0

States s have shape (samples, starts, layers, n): `samples` networks, several states under each. A
kind gives the product with J; the self-coupling, the couplings to homologous neurons of other
layers and the external field b are added here, in this order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from numpy.typing import NDArray

from rmsim.tensors import tensor_of
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError

if TYPE_CHECKING:
    from rmsim.couplings.rows import CompressedRows


#: J of one network by columns, for compiled loops: values, first entries of the columns of all
#: layers, their rows; then the same entries by rows, (first entries, columns, values). If J is
#: dense, the values are those of J^T, (layers n n), and the other arrays are empty.
Columns = tuple[NDArray[Any], ...]


class Couplings(ABC):
    """Couplings of `samples` networks, all of the same kind and size.

    Kinds are frozen dataclasses; :meth:`field` is the same for all.
    """

    #: Self-coupling J_D.
    jd: float

    @property
    @abstractmethod
    def weights(self) -> torch.Tensor:
        """The entries of J that exist, of all networks, as the kind stores them."""

    @property
    @abstractmethod
    def samples(self) -> int:
        """Number of networks."""

    @property
    @abstractmethod
    def layers(self) -> int:
        """Number of layers L."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Neurons per layer."""

    @property
    def dtype(self) -> torch.dtype:
        """Type of the couplings."""
        return self.weights.dtype

    @property
    def device(self) -> torch.device:
        """Where the couplings live."""
        return self.weights.device

    @property
    def nbytes(self) -> int:
        """Memory of the couplings."""
        return self.weights.nbytes

    @property
    def homologous(self) -> Mapping[int, float]:
        """Couplings to the same neuron of other layers: {-1: lambda_L, 1: lambda_R} in a chain."""
        return {}

    def field(
        self,
        s: torch.Tensor,
        external: torch.Tensor | None = None,
        *,
        active: Sequence[int] | None = None,
        layer: int | None = None,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the field h of the states `s`, in the type of `s`.

        Parameters
        ----------
        s : Tensor, (samples, starts, layers, n)
            States, in float32 or float64. If they are float64 and the couplings float32, the
            couplings are taken as exact numbers and the field is that of float64.
        external : Tensor, optional
            External field, broadcastable to `s`.
        active : sequence of int, optional
            The networks that the entries of `s` belong to, in increasing order; all by default.
        layer : int, optional
            Compute this layer only; h then has shape (samples, starts, n).
        out : Tensor, optional
            Where to write h, contiguous, so that a loop over sweeps allocates nothing.
        """
        out = self._field_out(s, active, layer, out)
        self._multiply(s, out, active, layer)
        self._add_other_layers(out, s, layer)
        _add_external(out, s, external, layer)
        return out

    def field_of_product(
        self, product: torch.Tensor, s: torch.Tensor, external: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return the field of `s` from the product J s, if that is known already."""
        out = product.clone()
        self._add_self(out, s, None)
        self._add_other_layers(out, s, None)
        _add_external(out, s, external, None)
        return out

    @abstractmethod
    def _multiply(
        self, s: torch.Tensor, out: torch.Tensor, active: Sequence[int] | None, layer: int | None
    ) -> None:
        """Write J s + J_D s into `out`; arguments as those of :meth:`field`, already checked."""

    def _add_self(self, out: torch.Tensor, s: torch.Tensor, layer: int | None) -> None:
        out.add_(s if layer is None else s[:, :, layer], alpha=self.jd)

    def _add_other_layers(self, out: torch.Tensor, s: torch.Tensor, layer: int | None) -> None:
        """Add what comes from homologous neurons of other layers, for one layer or for all."""
        layers = s.shape[2]
        for step, coupling in self.homologous.items():
            if layer is None:
                first, last = max(0, -step), layers - max(0, step)
                out[:, :, first:last].add_(s[:, :, first + step : last + step], alpha=coupling)
            elif 0 <= layer + step < layers:
                out.add_(s[:, :, layer + step], alpha=coupling)

    def _field_out(
        self,
        s: torch.Tensor,
        active: Sequence[int] | None,
        layer: int | None,
        out: torch.Tensor | None,
    ) -> torch.Tensor:
        """Return the tensor that holds the field: `out`, or a new one; refuse wrong shapes."""
        count = self.samples if active is None else len(active)
        if s.dim() != 4 or (s.shape[0], *s.shape[2:]) != (count, self.layers, self.n):
            allowed = f"of shape ({count}, starts, {self.layers}, {self.n})"
            raise InvalidInputError("s", str(tuple(s.shape)), allowed)
        if not s.is_floating_point():
            raise InvalidInputError("s", str(s.dtype), "of a floating point type")
        if layer is not None and not 0 <= layer < self.layers:
            raise InvalidInputError("layer", layer, f"from 0 to {self.layers - 1}")
        shape = s.shape if layer is None else torch.Size((*s.shape[:2], self.n))
        if out is None:
            return torch.empty(shape, dtype=s.dtype, device=s.device)
        if out.shape != shape or out.dtype != s.dtype or not out.is_contiguous():
            allowed = f"contiguous, of shape {tuple(shape)} and type {s.dtype}"
            raise InvalidInputError("out", str(tuple(out.shape)), allowed)
        return out

    #: Whether the kind has :meth:`columns_of`.
    has_columns: ClassVar[bool] = False

    def columns_of(self, sample: int, last: Columns | None = None) -> Columns:
        """Return J of one network by columns, on the CPU; those of the `last` call are given up."""
        raise NotImplementedError

    def turned(self) -> Self:
        """Return the same couplings in the same memory, with contiguous columns if they are dense.

        These must not be used any more. Only on a CPU; elsewhere nothing changes.
        """
        return self

    def check(self) -> None:  # noqa: B027  # most kinds have nothing to refuse
        """Refuse entries that a user may have given wrong; drawn couplings need no such check."""

    def check_independent(self, method: str) -> None:
        """Check couplings for `method`, whose equations need J_ij independent of J_ji, all of them.

        Raises
        ------
        InvalidInputError
            If they are not dense.
        """
        raise InvalidInputError("network", type(self).__name__, f"dense (rho = 1) for {method}")

    def asymmetric_matrices(self) -> torch.Tensor:
        """Return J, (samples, layers, n, n), for message passing.

        Raises
        ------
        InvalidInputError
            Unless the couplings are dense, and J_ij is independent of J_ji: terms that a symmetric
            J would have in addition (the Onsager terms of a Hopfield model) are not there.
        """
        raise InvalidInputError("couplings", type(self).__name__, "dense (rho = 1)")


def runs(
    active: Sequence[int] | None, samples: int, most: int | None = None
) -> Iterator[tuple[slice, slice]]:
    """Give each run of consecutive networks as (slice of the states, slice of the couplings).

    A run has at most `most` networks.

    Examples
    --------
    >>> list(runs([0, 1, 4], 5))
    [(slice(0, 2, None), slice(0, 2, None)), (slice(2, 3, None), slice(4, 5, None))]
    """
    numbers = range(samples) if active is None else active
    longest = max(1, len(numbers)) if most is None else most
    start = 0
    for end in range(1, len(numbers) + 1):
        over = end == len(numbers) or numbers[end] != numbers[end - 1] + 1
        if over or end - start == longest:
            first = numbers[start]
            yield slice(start, end), slice(first, first + end - start)
            start = end


def aligned_external(external: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """Return `external` with four dimensions; refuse what does not fit states of that `shape`."""
    external = tensor_of("external", external)
    sizes = (1,) * (4 - external.dim()) + tuple(external.shape)
    fits = len(sizes) == 4 and all(a in (1, b) for a, b in zip(sizes, shape, strict=True))
    if not fits:
        allowed = f"broadcastable to the states, {tuple(shape)}"
        raise InvalidInputError("external", str(tuple(external.shape)), allowed)
    return external.reshape(sizes)


def _add_external(
    out: torch.Tensor, s: torch.Tensor, external: torch.Tensor | None, layer: int | None
) -> None:
    """Add the external field to `out`, for one layer or for all."""
    if external is None:
        return
    aligned = aligned_external(external, s.shape).to(dtype=s.dtype, device=s.device)
    if layer is not None:
        aligned = aligned[:, :, layer if aligned.shape[2] > 1 else 0]
    out.add_(aligned)


def demand_couplings(network: object) -> None:
    """Refuse what is neither a network nor couplings."""
    if not isinstance(network, Couplings):
        allowed = "a Network, or couplings of one of the kinds in rmsim.couplings"
        raise InvalidInputError("network", type(network).__name__, allowed)


class PlasticCouplings(Couplings):
    """Couplings that learning changes: what it reads and writes of them."""

    @property
    def fan_in(self) -> int:
        """Neurons that a row of J ranges over: those of a layer, if J couples no layers."""
        return self.n

    @property
    def columns(self) -> torch.Tensor | None:
        """J^T of the first network, (layers, n, n), if its columns are contiguous on the CPU."""
        return None

    def without(self, *, jd: bool = False, right: bool = False) -> Self:
        """Return the couplings without J_D, or without the coupling to the next layer."""
        kept: Any = self
        if jd:
            kept = replace(kept, jd=0.0)
        if right and 1 in self.homologous:
            kept = replace(kept, lam_right=0.0)
        return kept  # type: ignore[no-any-return]

    @abstractmethod
    def weights_of(self, sample: int) -> torch.Tensor:
        """Return the entries of J that exist in one network; changes of them are changes of J."""

    @abstractmethod
    def with_weights(self, weights: torch.Tensor) -> Self:
        """Return the couplings of one network with other entries, as :meth:`weights_of` gives."""

    @abstractmethod
    def dense_blocks(self, sample: int) -> torch.Tensor:
        """Return J of one network, zeros included: (blocks on the diagonal, rows, rows)."""

    @abstractmethod
    def squares(self, sample: int) -> tuple[float, float]:
        """Return the sums of J_ij^2 and of J_ij J_ji of one network, in float64."""

    @abstractmethod
    def reinforce_(
        self, post: torch.Tensor, pre: torch.Tensor, rate: float, *, symmetric: bool = False
    ) -> None:
        r"""Add :math:`\text{rate}\sum_b g^b_i s^b_j` to the entries of the first network.

        Parameters
        ----------
        post, pre : Tensor, (states, layers, n)
            g and s of the states b. Entries that do not exist, and the diagonal, stay 0.
        rate : float
            Factor of the sum.
        symmetric : bool
            Add (g_i s_j + s_i g_j)/2 instead.
        """

    def by_columns(self) -> Self:
        """Return the same couplings with :attr:`columns`, where the kind can have them."""
        return self

    def by_rows(self) -> Self:
        """Return the same couplings in the usual order of memory."""
        return self

    def compressed(self) -> CompressedRows | None:
        """Return the compressed rows; None if J is dense."""
        return None

    def pattern(self) -> dict[str, torch.Tensor]:
        """Return which entries exist, as a file has to hold it; nothing if all do."""
        return {}


class ChainCouplings(PlasticCouplings):
    """Couplings of a chain: J acts within layers, lambda_L and lambda_R between neighbours."""

    lam_left: float
    lam_right: float

    def __post_init__(self) -> None:
        for name in ("jd", "lam_left", "lam_right"):
            object.__setattr__(self, name, checks.coupling(name, getattr(self, name)))

    @property
    def homologous(self) -> Mapping[int, float]:
        """{-1: lambda_L, 1: lambda_R}; nothing in a single layer."""
        return {-1: self.lam_left, 1: self.lam_right} if self.layers > 1 else {}

    def to_dense(self) -> torch.Tensor:
        """Return J, (samples, layers, n, n), zeros included."""
        return torch.stack([self.dense_blocks(k) for k in range(self.samples)])
