"""Presets by name: every table of hyper-parameters of the paper, as it reproduces and as printed.

>>> parameters = preset("mnist-sparse").parameters(2000)
>>> parameters.lambda_y, parameters.jd
(1.3, 0.95)
>>> preset("entangled-mnist-dense").parameters(400, jd=0.3).kappa_j  # 0.9 + J_D
1.2
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rmsim.learning.presets.dense import DENSE
from rmsim.learning.presets.preset import ByWidth, Preset
from rmsim.learning.presets.settings import parse_settings
from rmsim.learning.presets.sparse import SPARSE
from rmtheory.errors import InvalidInputError

__all__ = ["PRESETS", "ByWidth", "Preset", "parse_settings", "preset"]

#: Name -> preset, in the order of a list for users.
PRESETS: Mapping[str, Preset] = MappingProxyType({p.name: p for p in (*DENSE, *SPARSE)})


def preset(name: str) -> Preset:
    """Return the preset called `name`."""
    if name not in PRESETS:
        raise InvalidInputError("preset", name, f"one of {', '.join(PRESETS)}")
    return PRESETS[name]
