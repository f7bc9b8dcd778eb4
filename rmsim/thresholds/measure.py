"""One point of a sweep for thresholds: some disorder samples at one size and one coupling.

The outcome of every sample is kept, not only their number: medians, quartiles and histograms of
several batches of samples can then be taken together, and any cap below the one used be looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rmsim.network import Network
from rmsim.thresholds.algorithms import algorithm_named
from rmtheory.chain import Chain
from rmtheory.errors import InvalidInputError


def measure(point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return status, sweeps and period of the samples of `point`.

    Parameters
    ----------
    point : mapping
        n, layers, jd, lam (or lam_left and lam_right), rho, symmetric, algorithm with its
        settings, and samples as ``first:last`` (see :func:`batches`).
    seed : int
        Sample k is the same network whatever the batch it comes in.
    """
    algorithm = algorithm_named(point["algorithm"])
    outcomes = algorithm(network_of(point), sample_range(point["samples"]), seed, point)
    return {
        "status": outcomes.status,
        "sweeps": outcomes.sweeps,
        "period": outcomes.period,
        "device": outcomes.device,
    }


def network_of(point: Mapping[str, Any]) -> Network:
    """Return the network that the parameters of a point describe."""
    left, right = (point.get("lam", point.get(f"lam_{side}")) for side in ("left", "right"))
    chain = Chain(point["layers"], point["jd"], lam_left=left, lam_right=right)
    return Network(point["n"], chain, point["rho"], point["symmetric"])


def batches(samples: int, size: int) -> tuple[str, ...]:
    """Return the samples 0 ... `samples` - 1 as pieces ``first:last`` of `size`, last excluded.

    More samples are more pieces: those that are there are kept. Only a last piece that was not
    full is done again.

    Examples
    --------
    >>> batches(60, 25)
    ('0:25', '25:50', '50:60')
    """
    return tuple(f"{first}:{min(first + size, samples)}" for first in range(0, samples, size))


def sample_range(text: str) -> range:
    """Return the numbers of the samples of a piece.

    Examples
    --------
    >>> sample_range("25:50")
    range(25, 50)
    """
    first, _, last = str(text).partition(":")
    if not (first.isdecimal() and last.isdecimal() and int(first) < int(last)):
        raise InvalidInputError("samples", text, "first:last with first < last")
    return range(int(first), int(last))
