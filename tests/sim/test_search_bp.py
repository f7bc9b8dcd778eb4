"""The site against sums over all its states; BP along every edge against enumeration and AMP."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rmsim.couplings import DenseChain, draw_dense, draw_diluted
from rmsim.dynamics.status import Status
from rmsim.enumeration import enumerate_fixed_points
from rmsim.network import Network
from rmsim.search.amp import Products, belief_propagation, random_fields
from rmsim.search.chain_site import Bonds, sum_site
from rmsim.search.dense_bp import dense_belief_propagation
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError

pytestmark = pytest.mark.numerical

DOUBLE = torch.float64


def networks(n: int, chain: Chain, samples: int, seed: int = 1) -> DenseChain:
    return draw_dense(Network(n, chain), seed, range(samples), dtype=DOUBLE)


def exact_marginals(couplings: DenseChain, field: torch.Tensor) -> torch.Tensor:
    """Mean state of the fixed points under the weight e^{field s}."""
    result = []
    for J, own in zip(couplings.matrices, field.numpy(), strict=True):
        bonds = (couplings.jd, couplings.lam_left, couplings.lam_right)
        states = enumerate_fixed_points(J, *bonds, keep_states=True).states
        exponent = (states * own).sum((1, 2))
        weight = np.exp(exponent - exponent.max())
        result.append(np.tensordot(weight / weight.sum(), states, (0, 0)))
    return torch.tensor(np.array(result))


def rms(x: torch.Tensor) -> float:
    return float(x.square().mean().sqrt())


def summed(
    c: torch.Tensor, omega: torch.Tensor, v: torch.Tensor, bonds: Bonds
) -> tuple[torch.Tensor, torch.Tensor]:
    """log Z and the mean of s_l s_{l+1}, state by state."""
    layers = c.shape[-2]
    logs, products = [], []
    for s in itertools.product((1.0, -1.0), repeat=layers):
        ends = (0.0, *s, 0.0)
        total = torch.zeros_like(c[..., 0, :])
        for layer in range(layers):
            before, own, after = ends[layer : layer + 3]
            drift = bonds.jd + bonds.lam_left * before * own + bonds.lam_right * own * after
            a = (drift + own * omega[..., layer, :]) / v[..., layer, :].sqrt()
            total = total + c[..., layer, :] * own + torch.special.log_ndtr(a)
        logs.append(total)
        products.append(torch.tensor([x * y for x, y in itertools.pairwise(s)], dtype=DOUBLE))
    weights = torch.stack(logs).softmax(0)
    pair = torch.einsum("s...n,sl->...ln", weights, torch.stack(products).view(len(logs), -1))
    return torch.logsumexp(torch.stack(logs), 0), pair


COUPLING = st.floats(-2, 2)


@given(st.integers(1, 4), COUPLING, COUPLING, COUPLING, st.floats(0.1, 4), st.integers(0, 999))
def test_site_against_all_states_and_autograd(
    layers: int, jd: float, lam_left: float, lam_right: float, scale: float, seed: int
) -> None:
    random = torch.Generator().manual_seed(seed)
    c, omega = (
        (scale * torch.randn((2, layers, 3), dtype=DOUBLE, generator=random)).requires_grad_()
        for _ in range(2)
    )
    v = 0.05 + torch.rand((2, layers, 3), dtype=DOUBLE, generator=random)
    bonds = Bonds(jd, lam_left, lam_right)
    result = sum_site(c, omega, v, bonds)
    log_z, pair = summed(c, omega, v, bonds)
    m, g = torch.autograd.grad(log_z.sum(), (c, omega), create_graph=True)
    dg = [torch.autograd.grad(g[:, k].sum(), omega, retain_graph=True)[0][:, k] for k in
          range(layers)]  # fmt: skip
    expected = ((log_z, result.log_z), (m, result.m), (g, result.g), (pair, result.pair))
    for exact, value in (*expected, (torch.stack(dg, 1), result.dg)):
        torch.testing.assert_close(value, exact, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_site_stays_finite_for_extreme_fields(layers: int, dtype: torch.dtype) -> None:
    values = (0.0, 1e-30, 30.0, -30.0, 1e4, -1e4, 1e8, -1e8)
    grid = torch.tensor(list(itertools.product(values, repeat=2)), dtype=dtype).T
    c, omega = (x.expand(layers, -1) for x in grid)
    for v in (0.0, 1e-20, 1e-6, 1.0, 1e6):
        for jd in (0.3, -1e6, 1e30, -1e30):
            result = sum_site(c, omega, torch.full_like(c, v), Bonds(jd, 0.5, -1e3))
            for tensor in (result.log_z, result.h, result.g, result.dg, result.pair, result.m):
                assert bool(tensor.isfinite().all())
            assert float(result.pair.abs().amax() if layers > 1 else 0) <= 1 + 1e-5


def test_second_derivative_keeps_its_digits_deep_in_the_tail() -> None:
    """One state dominates at large c: then dg = -hazard (hazard + a)/V, close to -1/V."""
    c, omega = torch.full((1, 1), 50.0), torch.tensor([[-2e3]])
    result = sum_site(c * 1e6, omega, torch.ones(1, 1), Bonds(0.0))
    assert float(result.g) == pytest.approx(2e3, rel=1e-5)
    assert float(result.dg) == pytest.approx(-1, abs=1e-5)


def test_edge_messages_against_enumeration() -> None:
    couplings = networks(16, Chain(1, 0.8), 12)
    field = random_fields(7, range(12), 1, 16, dtype=DOUBLE)
    result = dense_belief_propagation(couplings, field=field, tolerance=1e-6)
    exact = exact_marginals(couplings, field)
    assert bool((result.status == Status.CONVERGED).all())
    assert rms(result.m - exact) < 0.1 < 0.25 < rms(field.tanh() - exact)


@pytest.mark.parametrize(
    ("n", "chain", "tolerance"),
    [
        (200, Chain(1, 0.8), 0.003),
        (100, Chain(1, 0.4), 0.02),
        (40, Chain(2, 0.3, lam_left=0.7, lam_right=0.2), 0.02),
        (24, Chain(3, 0.4, lam=0.3), 0.03),
    ],
)
def test_amp_against_edge_messages(n: int, chain: Chain, tolerance: float) -> None:
    """The same marginals to O(1/N), the same free entropy to O(1)."""
    couplings = networks(n, chain, 1, seed=3)
    field = random_fields(9, range(1), chain.finite_layers, n, dtype=DOUBLE)
    edges = dense_belief_propagation(couplings, field=field, tolerance=1e-6)
    result = belief_propagation(couplings, field=field, variances="exact", tolerance=1e-6)
    assert bool(edges.converged.all())
    assert bool(result.converged.all())
    assert rms(result.m - edges.m) < tolerance
    assert float(result.free_entropy) == pytest.approx(float(edges.free_entropy), abs=0.1)


@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
def test_edge_messages_stay_finite_in_strong_fields(dtype: torch.dtype) -> None:
    """Fields of 15, 100 and 1000, each on six networks; most do not converge."""
    couplings = draw_dense(Network(20, Chain(1, 0.8)), 0, range(18), dtype=dtype)
    strength = torch.tensor([15.0, 100.0, 1000.0]).repeat_interleave(6).reshape(18, 1, 1)
    field = strength * random_fields(3, range(18), 1, 20).sign()
    result = dense_belief_propagation(couplings, field=field, max_iterations=60)
    assert bool(result.free_entropy.isfinite().all())
    assert bool(result.m.isfinite().all())


def test_without_couplings_all_states_are_fixed_points() -> None:
    """And nothing is polarised, though no variance is left."""
    couplings = DenseChain(torch.zeros(1, 1, 8, 8, dtype=DOUBLE), 0.5)
    for propagate in (belief_propagation, dense_belief_propagation):
        result = propagate(couplings)
        assert Status(int(result.status)) == Status.PARAMAGNET
        assert float(result.free_entropy) == pytest.approx(8 * np.log(2), abs=1e-12)


@pytest.mark.parametrize("chain", [Chain(1, 0.4), Chain(2, 0.2, lam=0.6)])
def test_both_forms_have_the_same_entropy_without_a_field(chain: Chain) -> None:
    couplings = networks(30, chain, 2)
    start = random_fields(4, range(2), chain.finite_layers, 30, scale=0.3, dtype=DOUBLE)
    edges = dense_belief_propagation(couplings, start=start, tolerance=1e-8)
    result = belief_propagation(couplings, start=start, variances="exact")
    assert bool((edges.status == Status.PARAMAGNET).all())
    assert bool((result.status == Status.PARAMAGNET).all())
    torch.testing.assert_close(result.entropy, edges.entropy, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("variances", ["rank-one", "exact"])
def test_uncoupled_chain_is_its_cores(variances: str) -> None:
    chain = networks(60, Chain(3, 0.5, lam=0.0), 2)
    field = random_fields(5, range(2), 3, 60, dtype=DOUBLE)
    whole = belief_propagation(chain, field=field, variances=variances)
    total = torch.zeros(2, dtype=DOUBLE)
    for layer in range(3):
        core = DenseChain(chain.matrices[:, layer : layer + 1], 0.5)
        result = belief_propagation(core, field=field[:, layer : layer + 1], variances=variances)
        torch.testing.assert_close(whole.m[:, layer : layer + 1], result.m, rtol=0, atol=1e-8)
        total += result.entropy
    torch.testing.assert_close(whole.entropy, total, rtol=1e-10, atol=1e-8)


def test_squares_of_rank_one_have_the_right_sums() -> None:
    couplings = networks(50, Chain(1, 0.5), 2)
    ones = torch.ones(2, 1, 50, dtype=DOUBLE)
    exact, close = (Products(couplings, name) for name in ("exact", "rank-one"))
    torch.testing.assert_close(close.spread(ones), exact.spread(ones))
    torch.testing.assert_close(close.spread_back(ones), exact.spread_back(ones))


def test_bad_input_is_refused_in_one_sentence() -> None:
    couplings = networks(8, Chain(1, 0.5), 2)
    diluted = draw_diluted(Network(8, Chain(1, 0.5), rho=0.5), 0, range(1))
    with pytest.raises(InvalidInputError, match="network must be dense"):
        belief_propagation(diluted)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="variances must be one of rank-one, exact"):
        belief_propagation(couplings, variances="mean")
    with pytest.raises(InvalidInputError, match=r"field must be broadcastable to \(2, 1, 8\)"):
        belief_propagation(couplings, field=torch.zeros(3))
    with pytest.raises(InvalidInputError, match="start must be finite"):
        dense_belief_propagation(couplings, start=torch.full((8,), torch.nan))
    with pytest.raises(InvalidInputError, match="tolerance must be above 0"):
        belief_propagation(couplings, tolerance=0.0)
    with pytest.raises(InvalidInputError, match="max_iterations must be an integer >= 1"):
        dense_belief_propagation(couplings, max_iterations=0)
