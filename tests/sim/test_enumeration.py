"""Enumeration against a loop over all states, its symmetries, its other path, its refusals."""

import math
from collections.abc import Callable
from itertools import product
from types import ModuleType

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numba.core.dispatcher import Dispatcher

from rmsim.cli import run
from rmsim.enumeration import (
    FixedPoints,
    TooManyStatesError,
    branch_and_bound,
    distance_histogram,
    distances_from,
    enumerate_fixed_points,
    enumerate_samples,
    exhaustive,
    expected_seconds,
    forecast,
    layer_histograms,
    overlap_moments,
    overlaps,
    pack,
    unpack,
)
from rmsim.enumeration.branch_and_bound import search
from rmsim.enumeration.exhaustive import screening_dtype, search_dense
from rmsim.enumeration.overlaps import Array, coupling_matrix
from rmsim.network import Network
from rmsim.search import planted
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError
from tests.forked import in_child

pytestmark = pytest.mark.numerical

reals = st.floats(-1.5, 1.5).map(lambda x: round(x, 3))


def random_couplings(layers: int, n: int, seed: int) -> Array:
    J = np.random.default_rng(seed).normal(size=(layers, n, n)) / np.sqrt(n)
    J[:, np.arange(n), np.arange(n)] = 0
    return J


@st.composite
def networks(draw: st.DrawFn, most: int = 10) -> tuple[Array, float, float, float]:
    """Couplings of at most `most` spins, J_D, lambda_L, lambda_R; integers give exact ties."""
    layers = draw(st.integers(1, 3))
    n = draw(st.integers(1, most // layers))
    J = random_couplings(layers, n, draw(st.integers(0, 10**6)))
    if draw(st.booleans()):
        J = np.sign(J)
        whole = st.integers(-2, 2).map(float)
        return J, draw(whole), draw(whole), draw(whole)
    return J, draw(reals), draw(reals), draw(reals)


def brute_force(J: Array, jd: float, lam_left: float, lam_right: float) -> set[tuple[int, ...]]:
    """Loop over all states, neuron by neuron, as the paper writes the field."""
    layers, n, _ = J.shape
    result = set()
    for spins in product((1, -1), repeat=layers * n):
        s = np.array(spins).reshape(layers, n)
        good = True
        for layer, i in product(range(layers), range(n)):
            terms = [*(J[layer, i] * s[layer]), jd * s[layer, i]]
            terms.append(lam_left * s[layer - 1, i] if layer > 0 else 0.0)
            terms.append(lam_right * s[layer + 1, i] if layer + 1 < layers else 0.0)
            good = good and s[layer, i] * math.fsum(terms) > 0
        if good:
            result.add(spins)
    return result


def as_set(found: FixedPoints) -> set[tuple[int, ...]]:
    states = found.states.reshape(found.count, found.layers * found.n)
    unique = {tuple(map(int, row)) for row in states}
    assert len(unique) == found.count  # no state twice
    return unique


@given(networks())
def test_enumeration_is_brute_force(network: tuple[Array, float, float, float]) -> None:
    result = enumerate_fixed_points(*network, keep_states=True)
    assert as_set(result) == brute_force(*network)
    assert enumerate_fixed_points(*network).count == result.count


@given(networks(most=14))
def test_dense_path_is_branch_and_bound(network: tuple[Array, float, float, float]) -> None:
    result = enumerate_fixed_points(*network, keep_states=True)
    dense = enumerate_fixed_points(*network, keep_states=True, method="dense")
    assert as_set(dense) == as_set(result)
    assert dense.nodes == 2 ** (result.n * result.layers - 1)


def test_dense_path_by_shares() -> None:
    K = coupling_matrix(random_couplings(1, 12, 0))
    whole = search_dense(K, 0.4, torch.device("cpu"), False, 10**6)
    shares = [
        search_dense(K, 0.4, torch.device("cpu"), False, 10**6, first, first + 512)
        for first in range(0, 2048, 512)
    ]
    assert sum(share[0] for share in shares) == whole[0] == search(K, 0.4, False, 1)[0]


@pytest.mark.parametrize("method", ["branch-and-bound", "dense"])
@pytest.mark.parametrize("factor", [1e39, 1e-43, 1e99, 1e-200, 5e-310])
def test_common_factor_changes_nothing(method: str, factor: float) -> None:
    """Also beyond the range of float32, and where squares leave that of float64."""
    J = random_couplings(1, 12, 4)
    result = enumerate_fixed_points(J, 0.6, keep_states=True)
    assert result.count > 10
    large = enumerate_fixed_points(J * factor, 0.6 * factor, keep_states=True, method=method)  # type: ignore[arg-type]
    assert as_set(large) == as_set(result)
    # Whole numbers give exact ties, which have to be seen at any size.
    ties = random_couplings(2, 6, 4) > 0
    ties[:, np.arange(6), np.arange(6)] = False
    plain, other = (
        enumerate_fixed_points(ties * x, x, x, x, keep_states=True, method=method)  # type: ignore[arg-type]
        for x in (1.0, factor)
    )
    assert plain.near_ties > 0
    assert (as_set(other), other.near_ties) == (as_set(plain), plain.near_ties)


def test_rows_of_very_different_size() -> None:
    """A row that is tiny beside another is not lost in its rounding."""
    J = random_couplings(1, 10, 2)
    J[0] *= np.logspace(-60, 60, 10)[:, None]
    result = enumerate_fixed_points(J, 0.0, keep_states=True)
    assert as_set(result) == brute_force(J, 0.0, 0.0, 0.0)
    dense = enumerate_fixed_points(J, 0.0, keep_states=True, method="dense")
    assert as_set(dense) == as_set(result)


@pytest.mark.parametrize("name", ["jd", "lam_left", "lam_right"])
def test_couplings_that_overflow_are_refused(name: str) -> None:
    couplings = {"jd": 0.0, name: 1e300}
    with pytest.raises(InvalidInputError, match=f"{name} must be at most 1e\\+100"):
        enumerate_fixed_points(np.zeros((2, 2, 2)), **couplings)  # type: ignore[arg-type]


def _tf32() -> None:
    torch.backends.cuda.matmul.fp32_precision = "tf32"


def _high() -> None:
    torch.set_float32_matmul_precision("high")


def _screening(allow: Callable[[], None]) -> torch.dtype:
    allow()
    screening_dtype(torch.device("cpu"))
    return screening_dtype(torch.device("cuda"))


@pytest.mark.parametrize("allow", [_tf32, _high])
def test_products_with_fewer_digits_are_not_trusted(allow: Callable[[], None]) -> None:
    """However they were allowed; in a process of its own, because torch keeps them for ever."""
    if allow is _tf32 and not hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        pytest.skip("torch before 2.9 has no such setting")
    assert in_child(_screening, allow) == torch.float64


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_dense_path_on_cuda() -> None:
    J = random_couplings(2, 9, 1)
    result = enumerate_fixed_points(J, 0.3, 0.4, -0.2, keep_states=True)
    dense = enumerate_fixed_points(
        J, 0.3, 0.4, -0.2, keep_states=True, method="dense", device="cuda"
    )
    assert as_set(dense) == as_set(result)


@given(networks(most=16))
def test_flip_symmetry(network: tuple[Array, float, float, float]) -> None:
    states = as_set(enumerate_fixed_points(*network, keep_states=True))
    assert {tuple(-x for x in s) for s in states} == states


@given(networks(most=16))
def test_gauge_symmetry_of_lambda(network: tuple[Array, float, float, float]) -> None:
    """Flipping every second layer changes the sign of both lambdas and of nothing else."""
    J, jd, left, right = network
    layers, n, _ = J.shape
    states = as_set(enumerate_fixed_points(J, jd, left, right, keep_states=True))
    mirrored = as_set(enumerate_fixed_points(J, jd, -left, -right, keep_states=True))
    signs = np.repeat([(-1) ** layer for layer in range(layers)], n)
    assert {tuple(map(int, signs * s)) for s in states} == mirrored


def test_exact_ties_are_no_fixed_points() -> None:
    """A margin of zero does not count; one of 1e-17 does, although 1 + 1e-17 rounds to 1."""
    J = np.zeros((3, 3))
    J[0, 1], J[0, 2] = 1.0, -1.0
    assert enumerate_fixed_points(J, 0.0).count == 0
    balanced = enumerate_fixed_points([[0.0, 1.0], [1.0, 0.0]], -1.0)
    assert (balanced.count, balanced.near_ties) == (0, 1)
    triple = np.array([[0, 1.0, 1e-17], [1.0, 0, 1e-17], [1.0, 1.0, 0]])
    result = enumerate_fixed_points(triple, -1.0)
    assert (result.count, result.near_ties > 0) == (2, True)


def test_order_of_assignment_does_not_matter() -> None:
    K = coupling_matrix(random_couplings(2, 9, 3), 0.5, -0.4)
    count, states, nodes, _ = search(K, 0.2, True, 10**6)
    natural_count, natural, natural_nodes, _ = search(K, 0.2, True, 10**6, np.arange(18))
    assert states is not None
    assert natural is not None
    assert (count, sorted(states)) == (natural_count, sorted(natural))
    assert nodes < natural_nodes


def test_budget_and_buffer_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    K = coupling_matrix(random_couplings(1, 16, 0))
    whole = search(K, 1.2, True, 10**6)
    assert whole[0] > 4096  # the buffer has grown
    monkeypatch.setattr("rmsim.enumeration.branch_and_bound._BUDGET", 7)
    parts = search(K, 1.2, True, 10**6)
    assert parts[0] == whole[0]
    assert parts[2:] == whole[2:]
    assert np.array_equal(parts[1], whole[1])  # type: ignore[arg-type]
    assert np.array_equal(search(K, 1.2, True, whole[0])[1], whole[1])  # type: ignore[arg-type]
    for most in (10, 4096, whole[0] - 2):
        with pytest.raises(TooManyStatesError, match="count them without keeping"):
            search(K, 1.2, True, most)


def test_forecast_of_nodes() -> None:
    for layers, n, jd, lam in ((1, 25, 0.4, 0.0), (2, 13, 0.1, 0.5), (3, 9, 0.2, 1.2)):
        J = random_couplings(layers, n, 5)
        nodes = enumerate_fixed_points(J, jd, lam, lam).nodes
        assert forecast(J, jd, lam, lam) == pytest.approx(nodes, rel=0.4)


def test_large_sizes_are_refused_with_their_price() -> None:
    J = random_couplings(1, 60, 0)
    with pytest.raises(InvalidInputError, match=r"forced \(force=True, --force\).* nodes, .* days"):
        enumerate_fixed_points(J, 0.8)
    with pytest.raises(InvalidInputError, match="years on one core"):
        enumerate_fixed_points(J, 0.8, method="dense")
    with pytest.raises(InvalidInputError, match="at most 64"):
        enumerate_fixed_points(np.zeros((5, 13, 13)), 0.8, force=True)
    # Strong negative self-coupling leaves next to nothing to search: many spins are no reason.
    assert enumerate_fixed_points(random_couplings(1, 64, 0), -3.0).count == 0


@pytest.mark.parametrize(
    ("J", "message"),
    [
        (np.zeros((2, 3)), "a square matrix"),
        (np.eye(2), "zero on its diagonal"),
        (np.full((2, 2), np.nan), "at most"),
        (np.zeros((0, 2, 2)), "a square matrix"),
    ],
)
def test_bad_couplings(J: Array, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        enumerate_fixed_points(J, 0.4)


def test_bad_arguments() -> None:
    J = np.zeros((2, 2))
    with pytest.raises(InvalidInputError, match="method"):
        enumerate_fixed_points(J, 0.4, method="guess")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="jd must be a finite"):
        enumerate_fixed_points(J, float("nan"))
    with pytest.raises(InvalidInputError, match="keep_states"):
        _ = enumerate_fixed_points(J, 0.4).states
    with pytest.raises(InvalidInputError, match="state"):
        distances_from(enumerate_fixed_points(J, 0.4, keep_states=True), [1, 0])


@given(networks(most=12))
def test_overlaps_are_those_of_all_pairs(network: tuple[Array, float, float, float]) -> None:
    result = enumerate_fixed_points(*network, keep_states=True)
    states = result.states.astype(int)
    differ = (states[:, None] != states[None]).sum(axis=3)  # (count, count, layers)
    total = np.bincount(differ.sum(axis=2).reshape(-1), minlength=result.n * result.layers + 1)
    assert np.array_equal(distance_histogram(result), total)
    for layer, row in enumerate(layer_histograms(result)):
        expected = np.bincount(differ[:, :, layer].reshape(-1), minlength=result.n + 1)
        assert np.array_equal(row, expected)
        if result.count:
            q = 1 - 2 * differ[:, :, layer] / result.n
            moments = overlap_moments(row, (1, 2, 4))
            assert moments == pytest.approx([(q**power).mean() for power in (1, 2, 4)])
    for a in range(min(result.count, 3)):
        near = np.bincount(differ[a].sum(axis=1), minlength=result.n * result.layers + 1)
        assert np.array_equal(distances_from(result, states[a]), near)


@pytest.mark.parametrize("module", [branch_and_bound, exhaustive, overlaps, planted])
def test_compiled_code_stays_in_its_file(module: ModuleType) -> None:
    """Machine code kept on disk is not built again when the file of a callee changes."""
    for function in vars(module).values():
        if isinstance(function, Dispatcher) and function.py_func.__module__ == module.__name__:
            for name in function.py_func.__code__.co_names:
                callee = vars(module).get(name)
                assert not isinstance(callee, Dispatcher) or (
                    callee.py_func.__module__ == module.__name__
                )


@given(st.integers(1, 4), st.integers(1, 16), st.integers(0, 10**6))
def test_packing_and_back(layers: int, n: int, seed: int) -> None:
    states = np.random.default_rng(seed).choice([-1, 1], size=(5, layers, n))
    assert np.array_equal(unpack(pack(states), layers, n), states)


def test_the_time_of_an_enumeration_is_estimated_before_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a factor of four in nodes, which do not depend on the machine; shown above 5 s."""
    network = Network(26, Chain(1, jd=0.4))
    rate = exhaustive.NODES_PER_SECOND["branch-and-bound"]
    nodes = enumerate_samples(network, 6, seed=0).nodes
    assert 1 / 4 < expected_seconds(network, 6) * rate / nodes < 4
    assert expected_seconds(network, 6, jobs=2) == expected_seconds(network, 6) / 2
    monkeypatch.setitem(exhaustive.NODES_PER_SECOND, "branch-and-bound", 1e3)
    assert run(["enumerate", "--n", "16", "--jd", ".4", "--samples", "3"]) == 0
    assert "samples: about" in capsys.readouterr().err
