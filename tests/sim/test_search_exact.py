"""Message passing against enumeration and against its own reference, wherever hypothesis searches.

Tolerances hold over the whole range of couplings that is drawn from, and every one of them is
broken by an Onsager term that is missing or has the wrong sign. ``--hypothesis-profile=thorough``
draws 25 times as many networks.
"""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rmsim.couplings import DenseChain, draw_dense
from rmsim.dynamics.status import Status
from rmsim.enumeration import enumerate_fixed_points
from rmsim.network import Network
from rmsim.search.amp import (
    Products,
    belief_propagation,
    first_messages,
    random_fields,
    step,
)
from rmsim.search.dense_bp import dense_belief_propagation
from rmsim.search.focusing import focus
from rmsim.studies import compare
from rmtheory.base.chain import Chain

pytestmark = pytest.mark.numerical

DOUBLE = torch.float64

#: Factors on the Onsager terms of omega and of c: absent, or of the wrong sign.
WRONG = ((0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (1.0, -1.0))


def examples(default: int) -> settings:
    """So many networks, and in proportion if the profile asks for more than its 40."""
    return settings(max_examples=default * settings().max_examples // 40)


@st.composite
def networks(draw: st.DrawFn, least: int, most: int, weakest: float) -> Network:
    """One or two layers of `least` to `most` neurons in all, J_D from `weakest` to 1.2."""
    layers = draw(st.integers(1, 2))
    n = draw(st.integers(least // layers, most // layers))
    jd = draw(st.integers(round(20 * weakest), 24)) / 20
    left, right = (draw(st.integers(-10, 10)) / 20 for _ in range(2))
    return Network(n, Chain.at_depth(layers, jd, lam_left=left, lam_right=right))


class Altered(Products):
    """Products whose sums of J^2 g', the Onsager term of c, have a factor."""

    factor = 1.0

    def spread_back(self, y: torch.Tensor, active: object = None) -> torch.Tensor:
        return self.factor * super().spread_back(y)


def altered(
    couplings: DenseChain, field: torch.Tensor, factors: tuple[float, float]
) -> torch.Tensor:
    """Magnetisations after 80 iterations with `factors` on the two Onsager terms."""
    products = Altered(couplings, "exact")
    products.factor = factors[1]
    messages = first_messages(torch.zeros_like(field))
    for _ in range(80):
        messages = step(products, dataclasses.replace(messages, g=factors[0] * messages.g), field)
    return messages.m


def rms(x: torch.Tensor) -> float:
    return float(x.square().mean().sqrt())


def fixed_points(couplings: DenseChain, sample: int) -> np.ndarray[tuple[int, int, int], np.dtype]:
    bonds = (couplings.jd, couplings.lam_left, couplings.lam_right)
    result = enumerate_fixed_points(couplings.matrices[sample], *bonds, keep_states=True)
    return result.states


@given(networks(12, 16, 0.75), st.integers(0, 1000))
@examples(4)
def test_marginals_and_log_sums_against_enumeration(network: Network, seed: int) -> None:
    """Under a field of deviation 1/2: marginals to 0.28 in 16 networks, log sums to 0.6 on average.

    Both deviations are those of 12 to 16 spins with J_D from 0.75; below, two layers have too few
    fixed points for any theory of large N. The marginals are nearer to the exact ones than
    with any wrong Onsager term, and the free entropy knows which networks have the larger sum.
    """
    samples = 16
    couplings = draw_dense(network, seed, range(samples), dtype=DOUBLE)
    field = random_fields(seed + 1, range(samples), network.layers, network.n, dtype=DOUBLE)
    result = belief_propagation(couplings, field=field, variances="exact")
    exact, logs = torch.zeros_like(field), torch.full((samples,), math.nan, dtype=DOUBLE)
    for k in range(samples):
        states = fixed_points(couplings, k)
        if len(states):
            exponent = (states * field[k].numpy()).sum((1, 2))
            weight = np.exp(exponent - exponent.max())
            exact[k] = torch.tensor(np.tensordot(weight / weight.sum(), states, (0, 0)))
            logs[k] = exponent.max() + math.log(weight.sum())
    good = result.converged & logs.isfinite()
    assert int(result.converged.sum()) >= 14
    assert int(good.sum()) >= 12
    right = rms((result.m - exact)[good])
    assert right < 0.28
    for factors in WRONG:
        assert rms((altered(couplings, field, factors) - exact)[good]) > 1.02 * right, factors
    excess = (result.free_entropy - logs)[good]
    assert 0 < float(excess.mean()) < 0.6
    assert np.corrcoef(result.free_entropy[good], logs[good])[0, 1] > 0.6


@given(networks(40, 70, 0.6), st.integers(0, 1000))
@examples(3)
def test_amp_is_bp_along_edges_to_order_one_over_n(network: Network, seed: int) -> None:
    """Marginals to 0.8/N, free entropies to 0.15; without an Onsager term twice as far."""
    couplings = draw_dense(network, seed, range(2), dtype=DOUBLE)
    field = random_fields(seed + 1, range(2), network.layers, network.n, dtype=DOUBLE)
    edges = dense_belief_propagation(couplings, field=field)
    result = belief_propagation(couplings, field=field, variances="exact")
    good = edges.converged & result.converged
    assert int(good.sum()) >= 1
    right = rms((result.m - edges.m)[good])
    assert right < 0.8 / network.n
    assert float((result.free_entropy - edges.free_entropy)[good].abs().max()) < 0.15
    for factors in WRONG[:2]:
        assert rms((altered(couplings, field, factors) - edges.m)[good]) > 2 * right, factors


@given(networks(40, 200, 0.2), st.integers(0, 1000))
@examples(10)
def test_mean_entropy_is_the_annealed_one_up_to_a_constant(network: Network, seed: int) -> None:
    """0 < E[S] - log E[Z] < 0.5 within 4 errors, at any N: nothing of it is extensive."""
    couplings = draw_dense(network, seed, range(40), dtype=DOUBLE)
    result = belief_propagation(couplings)
    assert bool((result.status == Status.PARAMAGNET).all())
    neurons = network.n * network.layers
    excess = result.entropy - neurons * compare.annealed_entropy(network.chain, network.n)
    error = float(excess.std()) / math.sqrt(40)
    assert -4 * error < float(excess.mean()) < 0.5 + 4 * error


def log_sums(states: np.ndarray[tuple[int, int], np.dtype], gamma: float) -> np.ndarray:
    """Log of the sum of e^{gamma centre s} over fixed points s, for all 2^n centres in order."""
    n = states.shape[1]
    table = np.zeros((2,) * n)
    table[tuple(((1 - states) // 2).T)] = 1
    kernel = np.exp(gamma * np.array([[1, -1], [-1, 1]]))
    for axis in range(n):
        table = np.moveaxis(np.tensordot(kernel, table, (1, axis)), 0, axis)
    return np.log(table.ravel())


def test_focusing_bp_against_all_centres() -> None:
    r"""N = 14: clusters of y = 10 replicas around every centre within N/4 flips of the one found.

    d, S_I and F/N are derivatives of F = log sum_centres (sum_s e^{gamma centre s})^y, exact. The
    networks differ in S_I by 0.05: focusing BP has to know which has more.
    """
    n, jd, y, gamma, step_size = 14, 0.8, 10, 0.8, 1e-4
    couplings = draw_dense(Network(n, Chain(1, jd)), 0, range(3), dtype=DOUBLE)
    centres = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)[::-1]) & 1)
    internal = []
    for k in range(3):
        one = DenseChain(couplings.matrices[k : k + 1], jd)
        result = focus(one, y, gamma, variances="exact", first_sample=k)
        assert bool(result.solved)
        point = {name: float(value) for name, value in result.quantities.items()}
        states = fixed_points(couplings, k)[:, 0].astype(int)
        near = centres @ result.state[0, 0].numpy().astype(int) >= n / 2
        low, here, high = (
            log_sums(states, gamma + shift)[near] for shift in (-step_size, 0, step_size)
        )
        weight = np.exp(y * (here - here.max()))
        free = (y * here.max() + math.log(weight.sum())) / n
        weight /= weight.sum()
        overlap = float(weight @ (high - low)) / (2 * step_size * n)
        inside = float(weight @ here) / n - gamma * overlap
        assert point["distance"] == pytest.approx((1 - overlap) / 2, abs=0.015)
        assert point["internal_entropy"] == pytest.approx(inside, abs=0.03)
        assert point["free_entropy"] == pytest.approx(free, abs=0.08)
        internal.append((point["internal_entropy"], inside))
    bethe, exact = np.array(internal).T
    assert np.ptp(exact) > 0.03
    assert np.corrcoef(bethe, exact)[0, 1] > 0.9
