"""Hetero-association: capacity against width and depth, overlaps by layer (SM-D)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from figures.claims.claim import Claim, Ours, Relation
from figures.claims.read import At, difference, ours, select

_RECONSTRUCTION = (
    "The paper gives no settings for this task; ours are a reconstruction, in which the update "
    "leaves out the field from the right."
)
_PRINTED = "The protocol as printed does not learn the task at our sizes, at any depth."


@dataclass(frozen=True)
class _SlopeGain:
    """Slope of P_max against N at one depth minus that at another, one protocol."""

    protocol: str
    deep: int
    shallow: int

    def __call__(self, data: xr.Dataset) -> Ours | None:
        deep, shallow = (
            At("slope", {"protocol": self.protocol, "layers": layers})(data)
            for layers in (self.deep, self.shallow)
        )
        return difference(deep, shallow)

    def __str__(self) -> str:
        return f"slope[layers={self.deep}] - slope[layers={self.shallow}], {self.protocol}"


@dataclass(frozen=True)
class _Overlap:
    """Median overlap with the target in the first or last layer of the deepest chain."""

    layer: int

    def __call__(self, data: xr.Dataset) -> Ours | None:
        part = select(data, {"overlap_protocol": "reconstruction"})
        if part is None:
            return None
        chain = {"layers": int(part["overlap_layers"]), "n": int(part["overlap_n"])}
        if At("p_max", {"protocol": "reconstruction", **chain})(data) is None:
            return None  # the trials are nowhere near a P_max
        known = np.flatnonzero(np.isfinite(part["overlap_median"].values))
        if known.size == 0:
            return None
        place = int(known[self.layer])
        return ours(part["overlap_median"][place], part["overlap_median_error"][place])

    def __str__(self) -> str:
        return f"overlap_median of {'the first' if self.layer == 0 else 'the last'} layer"


def _gain(deep: int, shallow: int, protocol: str, note: str, why: str = "") -> Claim:
    return Claim(
        f"capacity {protocol} {deep}-{shallow}",
        f"slope of P_max(N), L = {deep} minus L = {shallow}, {protocol} protocol",
        "increases monotonically with depth",
        "main text, Performance; SM-D, figure of the capacity",
        "0",
        "capacity",
        _SlopeGain(protocol, deep, shallow),
        relation=Relation.ABOVE,
        note=note,
        why=why,
        headline=protocol == "reconstruction",
    )


_UNRESOLVED = "Beyond L = 5 we do not resolve a further gain."

CAPACITY = (
    _gain(3, 2, "reconstruction", _RECONSTRUCTION),
    _gain(5, 3, "reconstruction", _RECONSTRUCTION, _UNRESOLVED),
    _gain(7, 5, "reconstruction", _RECONSTRUCTION, _UNRESOLVED),
    _gain(3, 2, "printed", "", _PRINTED),
    Claim(
        "overlap of the first layer",
        "median overlap of layer 1 with the target near P_max",
        "essentially de-correlated",
        "SM-D, figure of the overlaps",
        "0",
        "capacity",
        _Overlap(0),
        tolerance=0.2,
        note=_RECONSTRUCTION,
    ),
    Claim(
        "overlap of the last layer",
        "median overlap of layer L with the target near P_max",
        "align closely",
        "SM-D, figure of the overlaps",
        "0.95",
        "capacity",
        _Overlap(-1),
        relation=Relation.ABOVE,
        note=_RECONSTRUCTION,
    ),
)
