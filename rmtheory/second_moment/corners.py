r"""Exponents of pairs of configurations that coincide in a block of adjacent layers, any L.

Clamping s' = s in layers i to j and leaving the fields of the other layers independent gives

.. math:: \Psi \le \log \sum_{s, s': s'_l = s_l\ (i \le l \le j)} \prod_l F(v_l, v'_l; \rho_l),

rho = 1 inside the block and 0 outside: the exponent at overlaps (0..0, 1..1, 0..0) with the
agreement of the free layers unconstrained. A transfer matrix over (s_l, s'_l, s_{l+1}, s'_{l+1})
sums it for any number of layers.
"""

from __future__ import annotations

import numpy as np

from rmtheory.chain import Chain
from rmtheory.gaussian import Array, log_P


def block_corners(chain: Chain) -> tuple[float, tuple[int, int]]:
    """Largest exponent over all blocks shorter than the chain, and the block (from 1)."""
    layers = chain.finite_layers
    best, where = -np.inf, (1, 1)
    for first in range(1, layers + 1):
        for last in range(first, layers + 1):
            if last - first + 1 < layers:
                value = block_exponent(chain, first, last)
                if value > best:
                    best, where = value, (first, last)
    return best, where


def block_exponent(chain: Chain, first: int, last: int) -> float:
    """Exponent of pairs that coincide in layers `first` to `last`, counted from 1."""
    layers = chain.finite_layers
    inside = [first <= k <= last for k in range(1, layers + 1)]
    tau = np.array([1.0, -1.0])
    # message[s s', tau, tau'] of everything up to layer l, given sigma_{l+1} and the bond to it;
    # layer 1 has no left neighbour.
    sigma = 0  # index 0: sigma = +1, index 1: sigma = -1
    message = np.full((2, 2, 2), -np.inf)
    for sigma in (0, 1):
        if inside[0] and sigma == 1:
            continue
        log_f = _log_factor(chain, inside[0], np.zeros(1), _ends(tau, layers == 1))
        message[sigma] = log_f[0, 0]
    for k in range(1, layers):
        final = k == layers - 1
        log_f = _log_factor(chain, inside[k], tau, _ends(tau, final))
        new = np.full((2, *log_f.shape[2:]), -np.inf)
        for sigma in (0, 1):
            if inside[k] and sigma == 1:
                continue
            for left in (0, 1):
                for left_copy in (0, 1):
                    # sigma_l = sigma_{l-1} tau tau'
                    previous = sigma ^ left ^ left_copy
                    new[sigma] = np.logaddexp(
                        new[sigma], message[previous, left, left_copy] + log_f[left, left_copy]
                    )
        message = new
    return float(np.log(2.0) + np.logaddexp.reduce(message.reshape(-1)))


def _ends(tau: Array, final: bool) -> Array:
    return np.zeros(1) if final else tau


def _log_factor(chain: Chain, clamped: bool, left: Array, right: Array) -> Array:
    """Log F of one layer, indexed by (left bond, its copy, right bond, its copy)."""
    v = chain.jd + chain.lam_left * left[:, None] + chain.lam_right * right
    first, second = v[:, None, :, None], v[None, :, None, :]
    if clamped:
        return log_P(np.minimum(first, second))
    return np.asarray(log_P(first) + log_P(second))
