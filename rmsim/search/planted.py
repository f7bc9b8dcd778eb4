r"""Planted fixed points: couplings conditioned on a given state being a fixed point.

Drawing a sample J and then one of its fixed points, weighted by their number, is the same as
drawing the state first and J afterwards. Sites are independent: a column of spins has the weight
prod_l P(v_l/sigma_N), v_l = J_D + s_l (lambda_L s_{l-1} + lambda_R s_{l+1}); given the state, the
rows of J are independent Gaussians, each conditioned on its own half-space,

.. math:: x_i = s_i \sum_{j \ne i} J_{ij} s_j > -v_i, \qquad x_i \sim \mathcal N(0, \sigma_N^2),
    \quad \sigma_N^2 = (N-1)/N .

So only the component of a free row along the state is replaced, by one from the truncated normal.
The fixed points at small distances of such a point are counted in :mod:`rmsim.search.neighbours`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy import special

from rmsim.enumeration.branch_and_bound import fixed_point, tolerances
from rmsim.enumeration.overlaps import Array, Spins, coupling_matrix
from rmsim.network import Network
from rmsim.search.neighbours import neighbours_at
from rmtheory.base.errors import InvalidInputError, RMError


@dataclass(frozen=True, eq=False)
class Planted:
    """A sample with a fixed point in it.

    Parameters
    ----------
    network : Network
        Its size and couplings.
    J : ndarray
        Couplings (layers, n, n), diagonal zero.
    state : ndarray of int8
        The planted fixed point (layers, n).
    """

    network: Network
    J: Array
    state: Spins


def plant(network: Network, random: torch.Generator) -> Planted:
    """Draw a state and couplings under which it is a fixed point.

    Parameters
    ----------
    network : Network
        Dense and not symmetric, where the rows of J are independent.
    random : torch.Generator
        Source of all random numbers, e.g. ``generator(seed, k, 0)``.

    Examples
    --------
    >>> from rmsim.tensors import generator
    >>> from rmtheory.base.chain import Chain
    >>> sample = plant(Network(50, Chain(1, jd=0.1)), generator(0, 0, 0))
    >>> s = sample.state[0]
    >>> bool((s * (sample.J[0] @ s) + 0.1 > 0).all())
    True
    """
    if network.rho != 1 or network.symmetric:
        raise InvalidInputError("network", "diluted or symmetric", "dense and not symmetric")
    if network.given is not None:
        allowed = "one whose couplings are drawn: a planted fixed point decides on them"
        raise InvalidInputError("network", "one with couplings of its own", allowed)
    n, layers = network.n, network.layers
    sigma = math.sqrt((n - 1) / n)
    state = _columns(network, sigma, _uniform((layers, n), random))
    padded = np.vstack([np.zeros(n), state, np.zeros(n)])
    v = network.jd + state * (network.lam_left * padded[:-2] + network.lam_right * padded[2:])
    normals = torch.randn((layers, n, n), generator=random, dtype=torch.float64).numpy()
    J = normals / math.sqrt(n)
    np.einsum("lii->li", J)[...] = 0.0
    # x/sigma > -v/sigma by the inverse distribution function, in logarithms: rare tails stay fine.
    log_chance = np.log(_uniform((layers, n), random)) + special.log_ndtr(v / sigma)
    x = -sigma * special.ndtri_exp(log_chance)
    have = state * np.einsum("lij,lj->li", J, state)
    J += ((x - have) * state / (n - 1))[:, :, None] * state[:, None, :]
    np.einsum("lii->li", J)[...] = 0.0
    K = coupling_matrix(J, network.lam_left, network.lam_right)
    good, _ = fixed_point(K, network.jd, state.reshape(-1), tolerances(K, network.jd))
    if not good:  # a margin of the size of the rounding
        raise RMError("the planted margin is lost in rounding; draw with another seed")
    return Planted(network, J, state.astype(np.int8))


def single_flips(sample: Planted) -> int:
    """Number of fixed points at distance 1 of the planted one, flips in any layer."""
    return neighbours_at(sample.J, sample.state, sample.network, 1)


def pair_flips(sample: Planted) -> int:
    """Number of fixed points at distance 2 of the planted one, flips in any layers."""
    return neighbours_at(sample.J, sample.state, sample.network, 2)


def _uniform(shape: tuple[int, ...], random: torch.Generator) -> Array:
    """Uniform numbers in (0, 1], so that their logarithm is finite."""
    drawn = torch.rand(shape, generator=random, dtype=torch.float64).numpy()
    return np.asarray(1.0 - drawn)


def _columns(network: Network, sigma: float, uniform: Array) -> Array:
    """Draw the columns of spins from their weights, layer by layer, all sites at once.

    The factor of layer l ties s_{l-1}, s_l and s_{l+1}. ``log_weight[a, b, c]`` is the log of
    that factor times all that follows, summed; it gives the chance of s_{l+1} = c once s_{l-1} = a
    and s_l = b.
    """
    layers, n = uniform.shape
    signs = np.array([1.0, -1.0])
    left, own, right = signs[:, None, None], signs[:, None], signs
    log_weights = []
    follows = np.zeros((2, 2))
    for layer in reversed(range(layers)):
        before = network.lam_left * left if layer > 0 else 0.0 * left
        after = network.lam_right * right if layer + 1 < layers else 0.0 * right
        log_weight = special.log_ndtr((network.jd + own * (before + after)) / sigma) + follows
        log_weights.append(log_weight)
        follows = np.logaddexp(log_weight[:, :, 0], log_weight[:, :, 1])
    # The first spin is uniform, by the flip symmetry.
    before_last, last = np.zeros(n, dtype=np.int64), (uniform[0] > 0.5).astype(np.int64)
    state = [signs[last]]
    for layer, log_weight in enumerate(log_weights[:0:-1], start=1):
        up = special.expit(log_weight[:, :, 0] - log_weight[:, :, 1])
        new = (uniform[layer] > up[before_last, last]).astype(np.int64)
        before_last, last = last, new
        state.append(signs[last])
    return np.array(state)
