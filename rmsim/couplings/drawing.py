"""Draw the couplings of disorder samples, whichever kind a network has."""

from __future__ import annotations

import torch

from rmsim.couplings.chains import DenseChain, draw_dense
from rmsim.couplings.diluted import DilutedChain, draw_diluted
from rmsim.device import choose_device, choose_dtype
from rmsim.network import Network
from rmsim.randomness import checked_seed
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError


def draw(
    network: Network,
    seed: int = 0,
    samples: int | range = 1,
    *,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device = "cpu",
) -> DenseChain | DilutedChain:
    """Draw the couplings of disorder samples: dense ones, or compressed rows if rho < 1.

    Sample k depends on the seed and on k only, and is the same in float32 and float64. A network
    with couplings of your own has these as its only sample.

    Parameters
    ----------
    network : Network
        The ensemble, or couplings of your own (:meth:`Network.from_array`).
    seed : int
        Seed of the disorder.
    samples : int or range
        How many disorder samples, or which ones.
    dtype, device
        Precision and place. A GPU has its own generator, and so its own samples.

    Examples
    --------
    >>> import rmsim as rs
    >>> couplings = rs.draw(rs.Network(100, rs.Chain(2, jd=0.1, lam=0.5)), seed=0, samples=3)
    >>> couplings.samples, couplings.layers, couplings.n
    (3, 2, 100)
    >>> tuple(couplings.matrices.shape)
    (3, 2, 100, 100)
    """
    number, chosen = checked_seed(seed), sample_numbers(samples)
    kind, place = choose_dtype(dtype), choose_device(device)
    if network.rho == 1:
        return draw_dense(network, number, chosen, dtype=kind, device=place)
    return draw_diluted(network, number, chosen, dtype=kind, device=place)


def sample_numbers(samples: int | range) -> range:
    """Return the numbers of the disorder samples: the first `samples`, or a range of them.

    Examples
    --------
    >>> sample_numbers(3), sample_numbers(range(5, 7))
    (range(0, 3), range(5, 7))
    """
    chosen = samples if isinstance(samples, range) else range(checks.integer("samples", samples, 1))
    if len(chosen) == 0 or chosen.step != 1 or chosen.start < 0:
        raise InvalidInputError("samples", str(chosen), "a range of samples, step 1, from 0 on")
    return chosen
