"""The parts of the simulator against each other; what may import what: test_architecture.py."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rmsim.couplings import draw_dense
from rmsim.dynamics import Status, relax
from rmsim.enumeration import draw_couplings, enumerate_fixed_points
from rmsim.network import Network
from rmsim.studies.compare import network_averages
from rmtheory import Chain

pytestmark = pytest.mark.numerical


@given(
    chain=st.builds(
        Chain.at_depth,
        st.integers(1, 3),
        st.floats(0.3, 1.5),
        lam_left=st.floats(-0.5, 0.8),
        lam_right=st.floats(-0.5, 0.8),
    ),
    p=st.sampled_from([1.0, 0.6]),
    update=st.sampled_from(["synchronous", "sequential"]),
    seed=st.integers(0, 1000),
)
def test_relaxed_states_are_among_the_enumerated(
    chain: Chain, p: float, update: str, seed: int
) -> None:
    network = Network(12 // chain.finite_layers, chain)
    result = relax(
        network, samples=2, seed=seed, starts=8, p=p, update=update, dtype="float64", max_sweeps=300
    )
    for k in range(2):
        J = draw_couplings(network, seed, k)
        couplings = (network.jd, network.lam_left, network.lam_right)
        listed = {
            state.tobytes()
            for state in np.asarray(
                enumerate_fixed_points(J, *couplings, keep_states=True).states, dtype=np.int8
            )
        }
        fixed = result.status[k] == Status.FIXED_POINT
        for state in result.state[k][fixed].numpy().astype(np.int8):
            assert state.tobytes() in listed
        if not listed:
            assert not bool(fixed.any())


def test_float32_and_float64_draw_the_same_networks() -> None:
    network = Network(50, Chain(2, 0.1, 0.3))
    single, double = (
        draw_dense(network, 3, range(2), dtype=kind).matrices.double().numpy()
        for kind in (torch.float32, torch.float64)
    )
    assert np.array_equal(single, double)


@pytest.mark.parametrize("p", [1.0, 0.7])
def test_network_averages_end_where_the_relaxation_does(p: float) -> None:
    network = Network(80, Chain(2, 0.9, 0.3))
    ended = relax(network, samples=3, starts=2, p=p, seed=4, device="cpu").iterations.numpy()
    rates = network_averages(
        network, int(ended.max()) + 2, samples=3, starts=2, p=p, seed=4
    ).flip_rate
    last = rates.shape[-1] - np.argmax(rates[..., ::-1] > 0, axis=-1)
    # Masked neurons may disagree with their field in a sweep that flips none.
    assert np.all(last <= ended) if p < 1 else np.array_equal(last, ended)
    assert np.all(rates[..., 0] > 0.02)
