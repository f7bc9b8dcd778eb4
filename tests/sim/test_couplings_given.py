"""Couplings of the user's own: the check of every input, and the same results as drawn ones."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from rmsim.couplings import DenseChain, draw, draw_dense, draw_diluted
from rmsim.dynamics import relax
from rmsim.enumeration import enumerate_fixed_points, enumerate_samples
from rmsim.network import Network
from rmsim.search import belief_propagation, find_fixed_point, local_entropy_around
from rmsim.search.planted import plant
from rmsim.tensors import generator
from rmtheory import Chain
from rmtheory.base.errors import InvalidInputError

CHAINS = [Chain(1, 0.4), Chain(3, 0.4, lam_left=0.3, lam_right=0.2)]


@pytest.mark.parametrize("chain", CHAINS)
def test_drawn_matrices_given_back_are_the_same_network(chain: Chain) -> None:
    drawn = Network(60, chain)
    matrices = draw(drawn, 5, range(1)).to_dense()[0]
    lams = {"lam_left": chain.lam_left, "lam_right": chain.lam_right}
    for J in (matrices, matrices.numpy(), matrices.double().numpy().tolist()):
        network = Network.from_array(J, chain.jd, **lams)
        assert (network.n, network.layers, network.rho) == (60, drawn.layers, 1.0)
        assert torch.equal(draw_dense(network, 99, range(1)).matrices[0], matrices)
        ours, theirs = (relax(x, samples=1, seed=5, starts=7) for x in (network, drawn))
        assert torch.equal(ours.state, theirs.state)
    assert network == Network.from_array(matrices, chain.jd, **lams)
    assert network != Network.from_array(2 * matrices, chain.jd, **lams)
    assert network.parameters()["couplings"] != drawn.parameters().get("couplings")
    result, expected = (
        find_fixed_point(x, "rbp", seed=5, dtype="float64") for x in (network, drawn)
    )
    assert torch.equal(result.state, expected.state)


@pytest.mark.parametrize("chain", CHAINS)
def test_sparse_matrices_become_compressed_rows(chain: Chain) -> None:
    drawn = Network(80, chain, rho=0.2)
    rows = draw_diluted(drawn, 5, range(1))
    layers = [sparse.coo_array(matrix.numpy()) for matrix in rows.to_dense()[0]]
    lams = {"lam_left": chain.lam_left, "lam_right": chain.lam_right}
    network = Network.from_array(layers if len(layers) > 1 else layers[0], chain.jd, **lams)
    assert network.rho == pytest.approx(len(rows.rows.values) / (80 * 79 * len(layers)))
    given = draw(network, 0, range(1))
    assert torch.equal(given.to_dense(), rows.to_dense())
    assert torch.equal(given.weights, rows.weights)
    ours, theirs = (relax(x, samples=1, seed=5, starts=7) for x in (network, drawn))
    assert torch.equal(ours.state, theirs.state)


def test_enumeration_of_given_couplings() -> None:
    drawn = Network(12, Chain(1, 0.4))
    J = draw_dense(drawn, 3, range(1), dtype=torch.float64).matrices[0, 0]
    network = Network.from_array(J, 0.4)
    assert enumerate_samples(network, 1, 0).counts[0] == enumerate_fixed_points(J, 0.4).count
    assert enumerate_fixed_points(J.numpy(), 0.4).count == enumerate_samples(drawn, 1, 3).counts[0]


def test_a_full_sparse_matrix_is_dense_and_a_dense_one_can_be_compressed() -> None:
    J = 1 - np.eye(4)
    network = Network.from_array(sparse.csr_array(J), 0.1)
    assert network.rho == 1
    assert network.symmetric
    assert torch.equal(draw_diluted(network, 0, range(1)).to_dense()[0, 0], torch.tensor(J).float())


def bad(diagonal: float = 0.0, entry: Any = 1.0, dtype: Any = float) -> np.ndarray:
    J = np.zeros((3, 3), dtype=dtype)
    J[0, 1], J[2, 2] = entry, diagonal
    return J


@pytest.mark.parametrize(
    ("J", "sentence"),
    [
        (bad(diagonal=0.5), r"J must be zero on its diagonal: .* jd, got 0.5 at \[2, 2\]"),
        (bad(entry=np.nan), r"J must be finite, .* got nan at \[0, 1\]"),
        (bad(entry=np.inf), "J must be finite"),
        (bad(entry=1e31), "J must be finite, and at most 1e.30 in size"),
        (bad(entry=1j, dtype=complex), "J must be real numbers, got complex numbers"),
        (np.zeros((3, 4)), r"J must be a square matrix \(n, n\), or .* got of shape \(3, 4\)"),
        (np.zeros(3), "J must be a square matrix"),
        (np.zeros((1, 2, 3, 3)), "J must be a square matrix"),
        ([[0, 1], [0]], "J must be real numbers, got lists of unequal lengths"),
        (np.array([["a", "b"], ["c", "d"]]), "J must be real numbers, got an array of text"),
        (np.array([[None, 1], [2, 3]]), "J must be real numbers, got an array of objects"),
        (sparse.csr_array(bad(diagonal=0.5)), "J must be zero on its diagonal"),
        (sparse.csr_array(bad(entry=np.nan)), "J must be finite"),
        (sparse.csr_array(bad(entry=1j, dtype=complex)), "J must be real numbers"),
        (sparse.csr_array((3, 4)), "J must be a square matrix"),
        (sparse.csr_array((3, 3)), "J must be a matrix with entries"),
        ([sparse.csr_array(bad()), bad()], "one or the other in all layers"),
        (np.zeros((1, 1)), "n must be"),
    ],
)
def test_one_check_at_the_door(J: Any, sentence: str) -> None:
    with pytest.raises(InvalidInputError, match=sentence):
        Network.from_array(J, 0.3)


def test_what_does_not_go_with_given_couplings() -> None:
    network = Network.from_array(bad(), 0.3)
    with pytest.raises(InvalidInputError, match="samples must be 1: couplings that are given"):
        relax(network, samples=2)
    with pytest.raises(InvalidInputError, match="n must be 3, that of the couplings given"):
        replace(network, n=4)
    with pytest.raises(InvalidInputError, match="network must be one whose couplings are drawn"):
        plant(network, generator(0))
    symmetric = Network.from_array(bad() + bad().T, 0.3)
    assert symmetric.symmetric
    relax(symmetric, samples=1)
    with pytest.raises(InvalidInputError, match="couplings must be asymmetric for message"):
        find_fixed_point(symmetric, "rbp")
    assert draw(replace(network, chain=Chain(1, 0.9)), 0, range(1)).jd == 0.9


def test_the_couplings_given_are_copied() -> None:
    J = bad()
    network = Network.from_array(J, 0.3)
    draw_dense(network, 0, range(1), dtype=torch.float64).matrices.fill_(7.0)
    assert draw_dense(network, 0, range(1)).matrices.max() == 1
    J[0, 1] = 5.0
    assert draw_dense(network, 0, range(1)).matrices.max() == 1


@pytest.mark.parametrize("entry", [0.5, np.nan, np.inf])
def test_the_same_check_for_couplings_made_by_hand(entry: float) -> None:
    """What goes past `from_array` is checked where it enters: by each search, in one sentence."""
    matrices = torch.tensor(bad(diagonal=entry))[None, None]
    chain = DenseChain(matrices, 0.3)
    calls = [
        lambda: relax(chain),
        lambda: belief_propagation(chain),
        lambda: find_fixed_point(chain, "rbp"),
        lambda: find_fixed_point(chain, "dynamics"),
        lambda: local_entropy_around(chain, np.ones(3), [0.0]),
    ]
    for call in calls:
        with pytest.raises(InvalidInputError, match=r"^matrices must be (zero on its|finite)"):
            call()
    with pytest.raises(InvalidInputError, match=r"^J must be (zero on its|finite)"):
        enumerate_fixed_points(matrices[0], 0.3)


def test_symmetric_matrices_made_by_hand_are_refused_by_message_passing() -> None:
    chain = DenseChain(torch.tensor(bad() + bad().T)[None, None], 0.3)
    relax(chain)
    for call in (lambda: belief_propagation(chain), lambda: find_fixed_point(chain, "rbp")):
        with pytest.raises(InvalidInputError, match=r"^couplings must be asymmetric"):
            call()
