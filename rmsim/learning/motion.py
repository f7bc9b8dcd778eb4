"""A batch of states in motion under one network, from s = 0, sweep after sweep."""

from __future__ import annotations

from typing import Protocol

import torch

from rmsim.couplings import DenseChain
from rmsim.dynamics.step import sign
from rmsim.learning import flips
from rmsim.learning.parameters import Parameters
from rmsim.learning.state import Internal


class Motion(Protocol):
    """What the phases need of it."""

    @property
    def couplings(self) -> Internal:
        """The network."""

    @property
    def s(self) -> torch.Tensor:
        """States, (samples, layers, n)."""

    @property
    def product(self) -> torch.Tensor | None:
        """J s, if it is known."""

    def sweep(self, external: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Do one sweep under the field `external`, of the neurons where `mask` is True.

        Returns
        -------
        Tensor of bool, (samples)
            Which of the states it began with were not fixed points, mask or no mask.
        """


class Sweeps:
    """Every sweep by the products of the couplings: any kind of them, any device."""

    product = None

    def __init__(self, parameters: Parameters, couplings: Internal, shape: torch.Size) -> None:
        self.couplings = couplings
        self.s = torch.zeros(shape, dtype=couplings.dtype, device=couplings.device)
        self._rest = parameters.update == "synchronous"  # at s = 0, which needs no product
        layers = shape[1]
        self._groups = (
            [slice(0, layers)] if self._rest else [slice(k, k + 1) for k in range(layers)]
        )

    def sweep(self, external: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Do one sweep; see :class:`Motion`."""
        before = self.s
        self.s = before.clone()
        unstable = torch.zeros(len(before), dtype=torch.bool, device=before.device)
        for group in self._groups:
            new = sign(self._field(external, group))
            unstable |= (new != before[:, group]).flatten(1).any(1)
            if mask is not None:
                new = torch.where(mask[:, group], new, before[:, group])
            self.s[:, group] = new
        self._rest = False
        return unstable

    def _field(self, external: torch.Tensor, group: slice) -> torch.Tensor:
        if self._rest:
            return external
        layer = None if len(self._groups) == 1 else group.start
        h = self.couplings.field(self.s.unsqueeze(0), external.unsqueeze(0), layer=layer)
        return h[0] if layer is None else h[0].unsqueeze(1)


def motion_of(parameters: Parameters, couplings: Internal, shape: torch.Size) -> Motion:
    """Return a batch of that `shape` at s = 0; by its flips if the columns of J are at hand."""
    if isinstance(couplings, DenseChain) and flips.has_columns(couplings):
        return flips.Flips(couplings, shape[0], parameters.update == "sequential")
    return Sweeps(parameters, couplings, shape)
