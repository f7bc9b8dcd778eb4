"""Couplings of many networks at once, and the fields they give; one protocol for every kind."""

from __future__ import annotations

import torch

from rmsim.couplings.adjacency import AdjacencyCouplings, couplings_on, draw_on
from rmsim.couplings.dense import DenseChain, draw_dense
from rmsim.couplings.diluted import DilutedChain, draw_diluted
from rmsim.couplings.protocol import Couplings
from rmsim.couplings.topology import BlockCouplings, Topology, draw_blocks
from rmsim.network import Network

__all__ = [
    "AdjacencyCouplings",
    "BlockCouplings",
    "Couplings",
    "DenseChain",
    "DilutedChain",
    "Topology",
    "couplings_on",
    "draw",
    "draw_blocks",
    "draw_dense",
    "draw_diluted",
    "draw_on",
]


def draw(
    network: Network,
    seed: int,
    samples: range,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> DenseChain | DilutedChain:
    """Draw the couplings of the disorder `samples`: dense ones, or compressed rows if rho < 1."""
    if network.rho == 1:
        return draw_dense(network, seed, samples, dtype=dtype, device=device)
    return draw_diluted(network, seed, samples, dtype=dtype, device=device)
