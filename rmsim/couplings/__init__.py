"""Couplings of many networks at once, and the fields they give; one base for every kind."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmsim.couplings.base import ChainCouplings, Couplings, PlasticCouplings
    from rmsim.couplings.chains import DenseChain, DilutedChain, draw, draw_dense, draw_diluted
    from rmsim.couplings.topology import (
        AdjacencyCouplings,
        BlockCouplings,
        Topology,
        couplings_on,
        draw_blocks,
        draw_on,
    )
else:
    from rmtheory.base.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".base": ["ChainCouplings", "Couplings", "PlasticCouplings"],
            ".chains": ["DenseChain", "DilutedChain", "draw", "draw_dense", "draw_diluted"],
            ".topology": [
                "AdjacencyCouplings",
                "BlockCouplings",
                "Topology",
                "couplings_on",
                "draw_blocks",
                "draw_on",
            ],
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
