"""Means over networks that differ only in their seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr


def over_replicas(found: xr.Dataset, meaning: Mapping[str, str]) -> xr.Dataset:
    r"""Return the mean over ``replica`` of the variables named in `meaning`, with errors.

    .. math:: \sigma^2 = \frac{\mathrm{var}}{R} + \bar\epsilon^2,

    the spread of R networks, and the error :math:`\epsilon` of the measurement of one (NAME_error).
    The second is there because networks are tested on the same samples, and because the spread of
    two or three says little; with one network it is all there is.

    Parameters
    ----------
    found : xarray.Dataset
        As :func:`rmsim.sweep.collect` gives it.
    meaning : mapping
        Variables, and what they mean.
    """
    import xarray as xr  # here, because workers import this package and do without

    variables: dict[str, xr.DataArray] = {}
    count = found.sizes["replica"]
    for name, text in meaning.items():
        every = found[name].astype(float)
        own = found[f"{name}_error"].mean("replica", skipna=False)
        error = own
        if count > 1:
            spread = every.std("replica", ddof=1, skipna=False) / math.sqrt(count)
            error = (spread**2 + own**2) ** 0.5
        variables[name] = every.mean("replica", skipna=False).assign_attrs(long_name=text)
        variables[f"{name}_error"] = error
    return xr.Dataset(variables)
