"""AMP against enumeration, its free entropy against its equations, its stability, its endings."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch

from rmsim.couplings import DenseChain, draw_dense
from rmsim.dynamics.status import Status
from rmsim.enumeration import enumerate_fixed_points, enumerate_samples
from rmsim.network import Network
from rmsim.search.amp import (
    Beliefs,
    Products,
    belief_propagation,
    bonds_of,
    first_messages,
    functional,
    random_fields,
    step,
)
from rmsim.studies import compare
from rmsim.tensors import traced
from rmtheory.base.chain import Chain

pytestmark = pytest.mark.numerical

DOUBLE = torch.float64


def networks(n: int, chain: Chain, samples: int, seed: int = 1) -> DenseChain:
    return draw_dense(Network(n, chain), seed, range(samples), dtype=DOUBLE)


def exact_measure(couplings: DenseChain, field: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean state of the fixed points and log of their sum, both under the weight e^{field s}."""
    means, logs = [], []
    for J, own in zip(couplings.matrices, field.numpy(), strict=True):
        bonds = (couplings.jd, couplings.lam_left, couplings.lam_right)
        states = enumerate_fixed_points(J, *bonds, keep_states=True).states
        exponent = (states * own).sum((1, 2))
        weight = np.exp(exponent - exponent.max())
        means.append(np.tensordot(weight / weight.sum(), states, (0, 0)))
        logs.append(exponent.max() + math.log(weight.sum()))
    return torch.tensor(np.array(means)), torch.tensor(logs, dtype=DOUBLE)


def rms(x: torch.Tensor) -> float:
    return float(x.square().mean().sqrt())


class Altered(Products):
    """Products whose sums of J^2 g', the Onsager term of c, have a factor."""

    factor = 1.0

    def spread_back(self, y: torch.Tensor, active: object = None) -> torch.Tensor:
        return self.factor * super().spread_back(y)


def iterated(
    couplings: DenseChain, field: torch.Tensor, on_omega: float, on_c: float
) -> torch.Tensor:
    """Magnetisations after 80 iterations with factors on the two Onsager terms."""
    products = Altered(couplings, "exact")
    products.factor = on_c
    messages = first_messages(torch.zeros_like(field))
    for _ in range(80):
        messages = step(products, dataclasses.replace(messages, g=on_omega * messages.g), field)
    return messages.m


def test_marginals_and_what_a_wrong_onsager_term_does_to_them() -> None:
    """N = 20 under a random field of deviation 0.5: a deviation of 0.063, or of 0.3 and more."""
    couplings = networks(20, Chain(1, 0.8), 40)
    field = random_fields(7, range(40), 1, 20, dtype=DOUBLE)
    exact, log_sum = exact_measure(couplings, field)
    result = belief_propagation(couplings, field=field, variances="exact")
    assert bool((result.status == Status.CONVERGED).all())
    assert rms(result.m - exact) < 0.08
    assert np.corrcoef(result.m.ravel(), exact.ravel())[0, 1] > 0.98
    torch.testing.assert_close(iterated(couplings, field, 1, 1), result.m, rtol=0, atol=1e-6)
    excess = result.free_entropy - log_sum
    assert 0.1 < float(excess.mean()) < 0.3
    assert float(excess.std()) < 0.25
    for factors in ((0, 1), (1, 0), (-1, 1), (1, -1), (0.5, 0.5)):
        assert rms(iterated(couplings, field, *factors) - exact) > 0.15, factors


@pytest.mark.parametrize(
    ("n", "chain", "tolerance"),
    [(16, Chain(1, 0.4), 0.3), (9, Chain(2, 0.8, lam=0.4), 0.15), (6, Chain(3, 0.8, 0.3), 0.2)],
)
def test_marginals_of_chains(n: int, chain: Chain, tolerance: float) -> None:
    couplings = networks(n, chain, 40)
    field = random_fields(7, range(40), chain.finite_layers, n, dtype=DOUBLE)
    exact, _ = exact_measure(couplings, field)
    result = belief_propagation(couplings, field=field, variances="exact")
    good = result.converged
    assert int(good.sum()) >= 37
    assert rms((result.m - exact)[good]) < tolerance
    for factors in ((-1, 1), (1, -1)):
        assert rms(iterated(couplings, field, *factors) - exact) > 1.5 * tolerance, factors


@pytest.mark.parametrize(("jd", "low", "high"), [(0.4, 0.3, 0.55), (0.8, 0.65, 0.85)])
def test_log_counts_of_single_samples(jd: float, low: float, high: float) -> None:
    """The excess of the Bethe entropy is about 0.2, and it knows which samples have more."""
    network = Network(16, Chain(1, jd))
    samples = 500
    counts = enumerate_samples(network, samples, seed=1).counts
    result = belief_propagation(networks(16, network.chain, samples), variances="exact")
    entropy, there = result.entropy.numpy(), counts > 0
    assert bool((result.status == Status.PARAMAGNET).all())
    assert there.mean() > 0.98
    excess = entropy[there] - np.log(counts[there])
    assert 0.12 < excess.mean() < 0.32
    assert low < np.corrcoef(entropy[there], np.log(counts[there]))[0, 1] < high


def test_mean_entropy_is_the_annealed_one_up_to_a_constant() -> None:
    """E[S] - log E[Z] is about 0.16 at N = 16 and at N = 256: it does not grow with N."""
    for n, samples in ((16, 400), (256, 40)):
        result = belief_propagation(networks(n, Chain(1, 0.8), samples))
        excess = result.entropy - n * compare.annealed_entropy(Chain(1, 0.8), n)
        error = float(excess.std()) / math.sqrt(samples)
        assert error < 0.08
        assert float(excess.mean()) == pytest.approx(0.16, abs=3 * error + 0.02)


@pytest.mark.parametrize("variances", ["rank-one", "exact"])
def test_value_without_magnetisation(variances: str) -> None:
    """S = N log 2 + sum_i log P(J_D/sqrt V_i), V_i the squared length of row i."""
    couplings = networks(100, Chain(1, 0.4), 3)
    v = couplings.matrices[:, 0].square().sum(-1)
    exact = 100 * math.log(2) + torch.special.log_ndtr(0.4 / v.sqrt()).sum(-1)
    result = belief_propagation(couplings, variances=variances)
    torch.testing.assert_close(result.entropy, exact, rtol=1e-12, atol=1e-10)
    torch.testing.assert_close(result.free_entropy, exact, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("chain", [Chain(1, 0.4), Chain(2, 0.3, lam=0.5), Chain(3, 0.3, 0.4)])
def test_free_entropy_is_stationary_at_the_solution(chain: Chain) -> None:
    layers, n = chain.finite_layers, 40
    couplings = networks(n, chain, 2)
    field, external = (random_fields(s, range(2), layers, n, dtype=DOUBLE) / 2 for s in (7, 8))
    result = belief_propagation(couplings, field=field, external=external, variances="exact")
    assert bool((result.status == Status.CONVERGED).all())

    def gradients(scale: float) -> list[torch.Tensor]:
        end = result.messages
        fields = [(x * scale).requires_grad_() for x in (end.m, end.c, end.omega, end.g)]
        J, m = couplings.matrices, fields[0]
        jm = (J @ m.unsqueeze(-1)).squeeze(-1)
        v = (J.square() @ (1 - m * m).unsqueeze(-1)).squeeze(-1)
        value = functional(tuple(fields), jm, v, bonds_of(couplings), field, external)  # type: ignore[arg-type]
        if scale == 1:
            torch.testing.assert_close(value, result.free_entropy)
        return list(torch.autograd.grad(value.sum(), fields))

    assert max(float(x.abs().max()) for x in gradients(1.0)) < 1e-8
    assert min(float(x.abs().max()) for x in gradients(1.1)) > 1e-3


def test_entropy_is_the_legendre_transform() -> None:
    """d Phi/d field = m: a wrong sign of any term of Phi would show."""
    couplings = networks(50, Chain(2, 0.4, lam=0.4), 1)
    field = random_fields(3, range(1), 2, 50, dtype=DOUBLE)
    step_size = 1e-4 * random_fields(4, range(1), 2, 50, dtype=DOUBLE)
    low, high = (belief_propagation(couplings, field=field + k * step_size) for k in (-1, 1))
    middle = belief_propagation(couplings, field=field)
    slope = float((high.free_entropy - low.free_entropy) / 2)
    assert slope == pytest.approx(float((middle.m * step_size).sum()), rel=1e-5)
    entropy = middle.free_entropy - (middle.m * field).sum((-1, -2))
    torch.testing.assert_close(middle.entropy, entropy)


def growth(jd: float) -> tuple[float, float]:
    """Measured and predicted factor of the mean of m^2 in an iteration around m = 0."""
    couplings = networks(1000, Chain(1, jd), 2)
    products = Products(couplings)
    messages = first_messages(random_fields(3, range(2), 1, 1000, scale=1e-6, dtype=DOUBLE))
    logs = []
    for _ in range(15):
        messages = step(products, messages, torch.zeros_like(messages.h))
        logs.append(float(messages.h.square().mean().log()))
    p = 0.5 * math.erfc(-jd / math.sqrt(2))
    gamma = math.exp(-jd * jd / 2) / math.sqrt(2 * math.pi) / p
    stable = gamma**2 + abs(jd) * gamma < 1
    rate = gamma**2 * math.exp(2 * math.asinh(abs(jd) / 2))
    assert stable == (rate < 1)
    return math.exp((logs[-1] - logs[4]) / 10), rate


@pytest.mark.parametrize("jd", [0.4, 0.8, -0.1, -0.5])
def test_linear_stability(jd: float) -> None:
    measured, predicted = growth(jd)
    assert measured == pytest.approx(predicted, rel=0.06)
    assert (measured < 1) == (jd > -0.178)


def brute_force_external(couplings: DenseChain, external: torch.Tensor) -> torch.Tensor:
    """Mean fixed point under an external field of the dynamics, over all states of one layer."""
    n = couplings.n
    bits = (torch.arange(2**n)[:, None] >> torch.arange(n)) & 1
    states = (2 * bits - 1).to(DOUBLE)
    result = []
    for J, own in zip(couplings.matrices[:, 0], external[:, 0], strict=True):
        margins = states * (states @ J.T + couplings.jd * states + own)
        result.append(states[(margins > 0).all(1)].mean(0, keepdim=True))
    return torch.stack(result)


def test_external_field_of_the_dynamics() -> None:
    couplings = networks(12, Chain(1, 0.8), 40)
    external = random_fields(5, range(40), 1, 12, scale=1.0, dtype=DOUBLE)
    exact = brute_force_external(couplings, external)
    result = belief_propagation(couplings, external=external, variances="exact")
    assert bool(result.converged.all())
    assert rms(result.m - exact) < 0.15 < 0.4 < rms(exact)


def test_precisions_and_variances_agree() -> None:
    network, field = Network(1000, Chain(1, 0.4)), random_fields(3, range(1), 1, 1000)
    runs: dict[tuple[torch.dtype, str], Beliefs] = {}
    for dtype in (torch.float32, DOUBLE):
        couplings = draw_dense(network, 0, range(1), dtype=dtype)
        for variances in ("rank-one", "exact"):
            result = belief_propagation(couplings, field=field, variances=variances)
            assert bool((result.status == Status.CONVERGED).all())
            runs[dtype, variances] = result
    single, double = (runs[dtype, "rank-one"] for dtype in (torch.float32, DOUBLE))
    assert float((single.m - double.m).abs().max()) < 1e-4
    assert float(single.entropy) == pytest.approx(float(double.entropy), abs=1e-3)
    exact = runs[DOUBLE, "exact"]
    assert rms(double.m - exact.m) < 0.01
    assert float(double.entropy) == pytest.approx(float(exact.entropy), abs=0.2)


def test_a_network_does_not_depend_on_its_batch() -> None:
    couplings = networks(30, Chain(2, 1.0, lam=0.3), 6)
    field = random_fields(7, range(6), 2, 30, dtype=DOUBLE)
    field[2] *= 0.01  # ends early, and is left out of the products of the others
    together = belief_propagation(couplings, field=field)
    assert bool(together.converged.all())
    assert len(set(together.iterations.tolist())) > 2
    for k in range(6):
        one = DenseChain(couplings.matrices[k : k + 1], 1.0, 0.3, 0.3)
        alone = belief_propagation(one, field=field[k : k + 1])
        assert int(alone.iterations) == int(together.iterations[k])
        torch.testing.assert_close(alone.m[0], together.m[k], rtol=0, atol=1e-9)
        torch.testing.assert_close(alone.entropy[0], together.entropy[k])
        torch.testing.assert_close(alone.pair[0], together.pair[k])


def test_every_ending_has_its_name_and_no_number_is_undefined() -> None:
    seen = set()
    for jd, scale in ((-1.0, 0.5), (0.1, 0.5), (1e30, 1e30), (-1e30, 0.0), (0.4, 0.0)):
        for dtype in (torch.float32, DOUBLE):
            couplings = draw_dense(Network(16, Chain(1, jd)), 1, range(20), dtype=dtype)
            field = random_fields(7, range(20), 1, 16, dtype=dtype) * (2 * scale)
            result = belief_propagation(couplings, field=field, start=field, max_iterations=100)
            seen |= {Status(int(status)) for status in result.status}
            assert bool(((result.period > 1) == (result.status == Status.CYCLE)).all())
            numbers = (result.residual, result.free_entropy, result.entropy, result.pair)
            for tensor in (*numbers, *result.messages.tensors()):
                assert bool(tensor.isfinite().all())
    named = {Status.CONVERGED, Status.PARAMAGNET, Status.POLARISED, Status.CYCLE}
    assert named | {Status.CAP} <= seen


def test_messages_that_leave_their_type_are_reported_and_not_returned() -> None:
    couplings = draw_dense(Network(30, Chain(1, 0.8)), 0, range(2))
    couplings.matrices[0] *= 1e30  # their squares are beyond float32
    result = belief_propagation(couplings, start=random_fields(0, range(2), 1, 30))
    assert Status(int(result.status[0])) == Status.DIVERGED
    assert bool(result.converged[1])
    assert all(bool(x.isfinite().all()) for x in result.messages.tensors())
    assert bool(result.entropy.isfinite().all())


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("variances", ["rank-one", "exact"])
def test_an_iteration_is_one_graph_of_the_compiler(
    layers: int, variances: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traced whole, for any J_D and any number of networks that are left."""
    real = torch.compile
    made = []

    def compiler(function: Any, **options: Any) -> Any:
        assert options["fullgraph"]
        made.append(function)
        return real(function, backend="aot_eager", **options)

    monkeypatch.setattr(torch, "compile", compiler)
    traced.cache_clear()
    for jd in (0.8, 0.5):
        network = Network(20, Chain(layers, jd, 0.3 if layers > 1 else None))
        couplings = draw_dense(network, 0, range(3), dtype=torch.float64)
        start = random_fields(1, range(3), layers, 20, dtype=torch.float64)
        settings: dict[str, Any] = {"start": start, "variances": variances, "max_iterations": 30}
        plain = belief_propagation(couplings, **settings)
        compiled = belief_propagation(couplings, compile=True, **settings)
        assert torch.equal(plain.status, compiled.status)
        assert torch.equal(plain.iterations, compiled.iterations)
        torch.testing.assert_close(plain.m, compiled.m, rtol=0, atol=1e-6)
    assert len(made) == 1
    traced.cache_clear()
