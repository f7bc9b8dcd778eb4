"""Overrides as typed, ``key=value``: checked against the names and types of the parameters."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, get_type_hints

from rmsim.learning.parameters import Parameters
from rmtheory import checks
from rmtheory.errors import InvalidInputError

_TRUTH = {"true": True, "yes": True, "false": False, "no": False}

#: The width has an option of its own, since tables depend on it.
SETTINGS = tuple(field.name for field in fields(Parameters) if field.name != "n")


def parse_settings(typed: Iterable[str]) -> dict[str, Any]:
    """Return the parameters named in ``key=value`` texts, each with its type.

    Raises
    ------
    InvalidInputError
        If a key is unknown, given twice, or its value has the wrong type.

    Examples
    --------
    >>> parse_settings(["eta_j=.01", "batch=32", "rho_rates=true", "symmetry=sym1"])
    {'eta_j': 0.01, 'batch': 32, 'rho_rates': True, 'symmetry': 'sym1'}
    """
    kinds = get_type_hints(Parameters)
    found: dict[str, Any] = {}
    for text in typed:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise InvalidInputError("set", text, "key=value, such as eta_j=.01")
        if key == "n":
            raise InvalidInputError("set", text, "another parameter: the width is given by --n")
        if key not in SETTINGS:
            raise InvalidInputError("set", key, f"a parameter that exists{_nearest(key)}")
        if key in found:
            raise InvalidInputError("set", text, f"given once for {key}")
        found[key] = _typed(key, value, kinds[key])
    return found


def _nearest(key: str) -> str:
    """Say which parameters `key` may have been meant for, and where they all are.

    Examples
    --------
    >>> _nearest("warm-up")
    ", such as warmup ('rmsim presets NAME' lists all)"
    """
    near = difflib.get_close_matches(key.lower(), SETTINGS, n=3)
    such = f", such as {' or '.join(near)}" if near else ""
    return f"{such} ('rmsim presets NAME' lists all)"


def _typed(key: str, value: str, kind: Any) -> Any:
    if kind is bool:
        if value.lower() not in _TRUTH:
            raise InvalidInputError(key, value, "true or false")
        return _TRUTH[value.lower()]
    if kind is int:
        return checks.integer(key, value, 0)
    if kind is float:
        return float(checks.exact_real(key, value))
    return value  # a word, which Parameters checks
