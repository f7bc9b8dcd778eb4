"""Couplings of many networks at once, and the fields they give; one base for every kind."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmsim.couplings.adjacency import AdjacencyCouplings, couplings_on, draw_on
    from rmsim.couplings.base import ChainCouplings, Couplings, PlasticCouplings
    from rmsim.couplings.chains import DenseChain, draw_dense
    from rmsim.couplings.diluted import DilutedChain, draw_diluted
    from rmsim.couplings.drawing import draw
    from rmsim.couplings.topology import BlockCouplings, Topology, draw_blocks
else:
    from rmtheory.base.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".adjacency": ["AdjacencyCouplings", "couplings_on", "draw_on"],
            ".base": ["ChainCouplings", "Couplings", "PlasticCouplings"],
            ".chains": ["DenseChain", "draw_dense"],
            ".diluted": ["DilutedChain", "draw_diluted"],
            ".drawing": ["draw"],
            ".topology": ["BlockCouplings", "Topology", "draw_blocks"],
        },
    )

__all__ = [
    "AdjacencyCouplings",
    "BlockCouplings",
    "ChainCouplings",
    "Couplings",
    "DenseChain",
    "DilutedChain",
    "PlasticCouplings",
    "Topology",
    "couplings_on",
    "draw",
    "draw_blocks",
    "draw_dense",
    "draw_diluted",
    "draw_on",
]
