"""What every kind of couplings offers, so that the dynamics need not know which kind it has.

States s have shape (samples, starts, layers, n): `samples` networks, several states under each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from rmtheory.errors import InvalidInputError


class Couplings(Protocol):
    """Couplings of `samples` networks, all of the same kind and size."""

    @property
    def samples(self) -> int:
        """Number of networks."""

    @property
    def layers(self) -> int:
        """Number of layers L."""

    @property
    def n(self) -> int:
        """Neurons a layer."""

    @property
    def jd(self) -> float:
        """Self-coupling J_D."""

    @property
    def dtype(self) -> torch.dtype:
        """Type of the couplings."""

    @property
    def device(self) -> torch.device:
        """Where the couplings live."""

    @property
    def nbytes(self) -> int:
        """Memory of the couplings."""

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


def field_out(
    couplings: Couplings,
    s: torch.Tensor,
    active: Sequence[int] | None,
    layer: int | None,
    out: torch.Tensor | None,
) -> torch.Tensor:
    """Return the tensor that holds the field of `s`: `out`, or a new one; refuse wrong shapes."""
    count = couplings.samples if active is None else len(active)
    wanted = (count, couplings.layers, couplings.n)
    if s.dim() != 4 or (s.shape[0], s.shape[2], s.shape[3]) != wanted:
        allowed = f"of shape ({count}, starts, {couplings.layers}, {couplings.n})"
        raise InvalidInputError("s", str(tuple(s.shape)), allowed)
    if not s.is_floating_point():
        raise InvalidInputError("s", str(s.dtype), "of a floating point type")
    if layer is not None and not 0 <= layer < couplings.layers:
        raise InvalidInputError("layer", layer, f"from 0 to {couplings.layers - 1}")
    shape = s.shape if layer is None else torch.Size((*s.shape[:2], couplings.n))
    if out is None:
        return torch.empty(shape, dtype=s.dtype, device=s.device)
    if out.shape != shape or out.dtype != s.dtype or not out.is_contiguous():
        raise InvalidInputError(
            "out", str(tuple(out.shape)), f"contiguous, of shape {tuple(shape)} and type {s.dtype}"
        )
    return out


def aligned_external(external: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """Return `external` with four dimensions; refuse what does not fit states of that `shape`."""
    sizes = (1,) * (4 - external.dim()) + tuple(external.shape)
    fits = len(sizes) == 4 and all(a in (1, b) for a, b in zip(sizes, shape, strict=True))
    if not fits:
        allowed = f"broadcastable to the states, {tuple(shape)}"
        raise InvalidInputError("external", str(tuple(external.shape)), allowed)
    return external.reshape(sizes)
