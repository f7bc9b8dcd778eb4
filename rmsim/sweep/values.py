"""Numbers, texts and arrays as JSON and back, to the last bit.

A finite scalar is a plain JSON value, so that a result file can be read by eye. An array, and a
scalar that is not finite, is its type, its shape and the base64 of its little-endian bytes: exact,
compact, and read by any language. Nothing is pickled.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rmtheory.errors import RMError

Array = NDArray[Any]

_KINDS = "biufU"


class BadValueError(RMError, TypeError):
    """A computation returned something that is no number, text or array of these."""


def encode(values: Mapping[str, object], taken: Iterable[str] = ()) -> dict[str, Any]:
    """Return `values` as JSON; names in `taken` are refused.

    Examples
    --------
    >>> encode({"mean": 0.5, "kind": "dense"})
    {'mean': 0.5, 'kind': 'dense'}
    >>> encode({"counts": [1, 2]})
    {'counts': {'dtype': '<i8', 'shape': [2], 'base64': 'AQAAAAAAAAACAAAAAAAAAA=='}}
    """
    clashing = sorted({str(name) for name in values} & set(taken))
    if clashing:
        raise BadValueError(f"a computation cannot return {', '.join(clashing)}: the name is taken")
    return {str(name): _encode(str(name), value) for name, value in values.items()}


def decode(encoded: Mapping[str, Any]) -> dict[str, Array]:
    """Return what :func:`encode` was given, as arrays (scalars without dimensions)."""
    return {name: _decode(value) for name, value in encoded.items()}


def _encode(name: str, value: object) -> Any:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as problem:  # ragged lists, tensors on a GPU
        raise BadValueError(f"{name} cannot be stored: {problem}") from problem
    if array.dtype.kind not in _KINDS:
        raise BadValueError(f"{name} must be numbers or text, not {type(value).__name__}")
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)  # the width of a long double is the machine's
    if array.dtype.kind == "U":
        return str(array) if array.ndim == 0 else {"dtype": "str", "text": array.tolist()}
    if array.ndim == 0 and (array.dtype.kind != "f" or np.isfinite(array)):
        return array.item()
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return {
        "dtype": little.dtype.str,
        "shape": list(array.shape),
        "base64": base64.b64encode(little.tobytes()).decode("ascii"),
    }


def _decode(value: Any) -> Array:
    if not isinstance(value, dict):
        return np.asarray(value)
    if value["dtype"] == "str":
        return np.asarray(value["text"], dtype=np.str_)
    data = base64.b64decode(value["base64"], validate=True)
    return np.frombuffer(data, np.dtype(value["dtype"])).reshape(value["shape"]).copy()
