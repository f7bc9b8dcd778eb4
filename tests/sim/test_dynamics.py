"""Dynamics: steps, symmetries, fixed points and cycles checked by stepping, exact counts."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rmsim.couplings import AdjacencyCouplings, DenseChain, couplings_on, draw
from rmsim.dynamics import (
    SearchResult,
    Status,
    flips,
    least_margins,
    margins,
    masked,
    random_starts,
    relax,
    relaxation,
    returns_after,
    sequential,
    sweeps,
    synchronous,
)
from rmsim.dynamics.relaxation import fraction, relaxation_summary
from rmsim.dynamics.sweeps import fill_mask, fill_mask_torch, follow_torch, mask_keys
from rmsim.network import Network
from rmtheory import Chain
from rmtheory.base.errors import InvalidInputError
from rmtheory.base.statistics import median_of_ranks as median

pytestmark = pytest.mark.numerical

no_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")

chains = st.builds(
    lambda layers, jd, left, right: Chain.at_depth(layers, jd, lam_left=left, lam_right=right),
    st.integers(1, 3),
    st.floats(-1, 1.5),
    st.floats(-1, 1.5),
    st.floats(-1, 1.5),
)


def starts_of(network: Network, samples: int, starts: int, seed: int = 0) -> torch.Tensor:
    return random_starts(seed, range(samples), starts, network.layers, network.n)


def ring(lengths: list[int], dtype: torch.dtype = torch.float32) -> AdjacencyCouplings:
    """Shift registers: each neuron takes the state of the one before it on its ring."""
    size = sum(lengths)
    adjacency, first = torch.zeros(size, size), 0
    for length in lengths:
        for i in range(length):
            adjacency[first + i, first + (i - 1) % length] = 1
        first += length
    return couplings_on(adjacency, torch.ones(1, size, size, dtype=dtype), 0.0)


def assert_same(one: SearchResult, two: SearchResult) -> None:
    for name in ("status", "period", "iterations", "state"):
        assert torch.equal(getattr(one, name), getattr(two, name)), name
    torch.testing.assert_close(one.min_margin, two.min_margin)


@given(chain=chains, n=st.integers(2, 30), seed=st.integers(0, 100))
def test_ends_are_what_they_say(chain: Chain, n: int, seed: int) -> None:
    """Fixed points stay, cycles return after their period and no sooner, by separate steps."""
    network = Network(n, chain)
    couplings = draw(network, seed, range(2), dtype=torch.float64)
    result = relax(couplings, starts_of(network, 2, 3), max_sweeps=300)
    s = result.state.double()
    field = couplings.field(s)
    least = (s * field).flatten(2).amin(-1)
    torch.testing.assert_close(least, result.min_margin)
    fixed = result.ended(Status.FIXED_POINT)
    assert torch.equal(fixed, (least > 0))
    assert bool((result.period[fixed] == 1).all())
    for k, a in result.ended(Status.CYCLE).nonzero().tolist():
        period = int(result.period[k, a])
        assert period > 1
        one = DenseChain(couplings.matrices[k : k + 1], *_constants(couplings))
        assert bool(returns_after(one, s[k : k + 1, a : a + 1], period).all())


def _constants(couplings: object) -> tuple[float, float, float]:
    assert isinstance(couplings, DenseChain)
    return couplings.jd, couplings.lam_left, couplings.lam_right


@given(
    chain=chains,
    n=st.integers(2, 30),
    update=st.sampled_from(["synchronous", "sequential"]),
    p=st.sampled_from([1.0, 0.6]),
)
def test_sweeps_against_single_steps(chain: Chain, n: int, update: str, p: float) -> None:
    """The number of sweeps is the first state with positive margins, found step by step."""
    network = Network(n, chain)
    couplings = draw(network, 1, range(1), dtype=torch.float64)
    start = starts_of(network, 1, 4)
    result = relax(couplings, start, update=update, p=p, max_sweeps=40, seed=9)
    keys = mask_keys(9, range(1), 4)
    s = start.double()
    reached = torch.full((1, 4), -1)
    for sweep in range(41):
        stable = least_margins(couplings, s) > 0
        reached = torch.where(stable & (reached < 0), sweep, reached)
        mask = torch.ones(s.shape, dtype=torch.bool)
        if p < 1:
            fill_mask(keys, sweep + 1, p, mask)
        s = masked(couplings, s, mask, update="sequential" if update != "synchronous" else update)
    fixed = result.ended(Status.FIXED_POINT)
    found = torch.where(fixed, result.iterations, -1)
    cycle = result.ended(Status.CYCLE)
    assert torch.equal(found[~cycle], reached[~cycle])
    assert bool((reached[cycle] == -1).all())


@given(chain=chains, n=st.integers(2, 20), symmetric=st.booleans())
def test_flip_symmetry(chain: Chain, n: int, symmetric: bool) -> None:
    network = Network(n, chain, symmetric=symmetric)
    couplings = draw(network, 4, range(3))
    start = starts_of(network, 3, 2)
    one, two = (relax(couplings, x, max_sweeps=60) for x in (start, -start))
    if float(couplings.field(start.float()).abs().min()) > 0 and chain.jd != 0:
        assert torch.equal(one.state, -two.state)
        assert torch.equal(one.status, two.status)
        assert torch.equal(one.iterations, two.iterations)


@given(chain=chains, n=st.integers(2, 20), update=st.sampled_from(["synchronous", "sequential"]))
def test_gauge_symmetry_of_lambda(chain: Chain, n: int, update: str) -> None:
    """Both lambdas change sign when every other layer is flipped."""
    network = Network(n, chain)
    couplings = draw(network, 4, range(3))
    jd, left, right = _constants(couplings)
    mirror = DenseChain(couplings.matrices, jd, -left, -right)
    gauge = (-1) ** torch.arange(chain.finite_layers)[:, None]
    start = starts_of(network, 3, 2)
    one = relax(couplings, start, max_sweeps=60, update=update)
    two = relax(mirror, start * gauge, max_sweeps=60, update=update)
    assert torch.equal(one.state, two.state * gauge)
    assert torch.equal(one.status, two.status)
    assert torch.equal(one.iterations, two.iterations)


def test_layer_order_of_sequential_updates() -> None:
    network = Network(25, Chain(3, 0.1, lam_left=0.8, lam_right=0.3))
    couplings = draw(network, 0, range(1), dtype=torch.float64)
    s = starts_of(network, 1, 1).double()
    new = s[0, 0].numpy().copy()
    for layer in range(3):
        h = couplings.matrices[0, layer].numpy() @ new[layer] + 0.1 * new[layer]
        if layer > 0:
            h = h + 0.8 * new[layer - 1]
        if layer < 2:
            h = h + 0.3 * new[layer + 1]
        new[layer] = np.where(h >= 0, 1.0, -1.0)
    assert np.array_equal(sequential(couplings, s)[0, 0].numpy(), new)
    assert not np.array_equal(synchronous(couplings, s)[0, 0].numpy(), new)


def test_masks() -> None:
    """Full masks are no masks; the share is p; the two routes and any batch give one mask."""
    network = Network(40, Chain(2, 0.3, 0.5))
    couplings = draw(network, 0, range(2))
    s = starts_of(network, 2, 3).float()
    everyone = torch.ones(s.shape, dtype=torch.bool)
    assert torch.equal(masked(couplings, s, everyone), synchronous(couplings, s))
    assert torch.equal(masked(couplings, s, ~everyone), s)
    ordered = masked(couplings, s, everyone, update="sequential")
    assert torch.equal(ordered, sequential(couplings, s))

    keys = mask_keys(3, range(4), 5)
    p, count = 0.3, 3000
    masks = torch.empty((20, 4, 5, 1, count), dtype=torch.bool)
    other = torch.empty_like(masks[0])
    for sweep in range(20):
        fill_mask(keys, sweep, p, masks[sweep])
        fill_mask_torch(keys, sweep, round(p * 2**32), other)
        assert torch.equal(other, masks[sweep])
    values = masks.view(-1, count).double() - p
    assert abs(float(values.mean())) < 4 * math.sqrt(p * (1 - p) / values.numel())
    # Masks of different states and sweeps, and of neighbours, have no correlation.
    products = values @ values.T / (p * (1 - p) * count)
    off = products[~torch.eye(len(products), dtype=torch.bool)]
    assert float(off.abs().max()) < 5.5 / math.sqrt(count)
    for shift in (1, 2, 64):
        pairs = values[:, shift:] * values[:, :-shift] / (p * (1 - p))
        assert abs(float(pairs.mean())) < 4 / math.sqrt(pairs.numel())
    alone = torch.empty((1, 5, 1, count), dtype=torch.bool)
    fill_mask(mask_keys(3, range(2, 3), 5), 7, p, alone)
    assert torch.equal(alone[0], masks[7, 2])


@given(
    layers=st.tuples(st.integers(0, 2), st.integers(1, 3)).filter(lambda x: x[0] < x[1]),
    with_mask=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 1000),
)
def test_compiled_pass_against_tensors(
    layers: tuple[int, int], with_mask: bool, dtype: torch.dtype, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    s = torch.randn(2, 3, 3, 5, generator=generator, dtype=dtype).sign()
    h = torch.randn(2, 3, layers[1] - layers[0], 5, generator=generator, dtype=dtype).round()
    mask = torch.rand(s.shape, generator=generator) < 0.5 if with_mask else None
    found = []
    for follow in (sweeps.follow, follow_torch):
        state, up, unstable = s.clone(), s > 0, torch.zeros(2, 3, dtype=torch.bool)
        follow(h, state, up, mask, layers, unstable)
        assert torch.equal(up, state > 0)
        found.append((state, unstable))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])
    changed = (found[0][0] != s).flatten(2).any(-1)
    assert torch.equal(sweeps.differ(found[0][0] > 0, s > 0), changed)
    assert bool((found[0][1] >= changed).all())


def by_products(monkeypatch: pytest.MonkeyPatch, *given: object, **settings: object) -> Any:
    """Relax with a product in every sweep, as a GPU does."""
    with monkeypatch.context() as patch:
        patch.setattr(relaxation, "follows_flips", lambda couplings: False)
        return relax(*given, **settings)


def assert_equal_ends(one: SearchResult, two: SearchResult) -> None:
    for name in ("status", "iterations", "period", "unsatisfied", "state"):
        assert torch.equal(getattr(one, name), getattr(two, name)), name
    assert torch.allclose(one.min_margin, two.min_margin, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("layers", "rho", "p", "update", "starts"),
    [
        (1, 1.0, 1.0, "synchronous", 1),
        (1, 0.2, 1.0, "synchronous", 2),
        (2, 1.0, 1.0, "sequential", 2),
        (3, 0.2, 0.8, "sequential", 1),
        (3, 1.0, 0.8, "synchronous", 9),  # products first, then flips
    ],
)
def test_flips_against_products(
    monkeypatch: pytest.MonkeyPatch, layers: int, rho: float, p: float, update: str, starts: int
) -> None:
    """All sweeps, periods, states; in float64, where rounding decides nothing."""
    ends = set()
    for jd in (0.0, 0.3, 0.8):  # cycles, the cap and fixed points
        network = Network(61, Chain(layers, jd, 0.7 if layers > 1 else 0.0), rho=rho)
        field = torch.randn(1, starts, layers, 61, generator=torch.Generator().manual_seed(1))
        settings: dict[str, Any] = {
            "samples": 3,
            "starts": starts,
            "p": p,
            "update": update,
            "max_sweeps": 300,  # beyond what is followed without a fresh field
            "dtype": "float64",
            "external": 0.2 * field if jd == 0.3 else None,
        }
        followed = relax(network, **settings)
        assert_equal_ends(followed, by_products(monkeypatch, network, **settings))
        couplings = draw(network, 0, 3, dtype="float64")  # by rows, which are not changed
        weights = couplings.weights.clone()
        del settings["samples"], settings["dtype"]
        start = random_starts(0, range(3), starts, layers, 61)
        assert_equal_ends(followed, relax(couplings, start, **settings))
        assert torch.equal(couplings.weights, weights)
        ends |= set(followed.status.flatten().tolist())
    assert Status.FIXED_POINT in ends
    assert len(ends) > 1


@pytest.mark.parametrize("rho", [1.0, 0.3])
def test_near_ties_are_summed_exactly(monkeypatch: pytest.MonkeyPatch, rho: float) -> None:
    """Every sum in twice the digits gives the same; so do ties, whose sums are exact anyway."""
    chain = Chain(2, 0.5, 0.3)
    network = Network(40, chain, rho=rho)
    usual = relax(network, samples=2, starts=2, dtype="float64", max_sweeps=50)
    signs = draw(network, 0, 2, dtype="float32")
    signs.weights.sign_()  # sums of 39 numbers +-1, of J_D s = +-1 and lambda s = 0
    ties = replace(signs, jd=1.0, lam_left=0.0, lam_right=0.0)
    start = random_starts(0, range(2), 2, 2, 40)
    tied = relax(ties, start, max_sweeps=50)
    assert_equal_ends(tied, by_products(monkeypatch, ties, start, max_sweeps=50))
    if rho == 1:
        h = ties.field(start.float())
        assert bool((h == 0).any())
    monkeypatch.setattr(flips, "_rounding", lambda *given: 1e9)
    assert_equal_ends(usual, relax(network, samples=2, starts=2, dtype="float64", max_sweeps=50))
    assert_equal_ends(tied, relax(ties, start, max_sweeps=50))


@pytest.mark.parametrize("lengths", [[7], [2], [3, 4, 5, 7], [16, 9]])
def test_long_cycle_of_known_period(lengths: list[int]) -> None:
    couplings = ring(lengths)
    start = torch.ones(1, 1, 1, sum(lengths))
    for first in np.cumsum([0, *lengths[:-1]]):
        start[..., first] = -1  # one mark on every ring: the period is the common multiple
    period = math.lcm(*lengths)
    result = relax(couplings, start, max_sweeps=4 * period)
    assert result.status.tolist() == [[Status.CYCLE]]
    assert result.period.tolist() == [[period]]
    assert bool(returns_after(couplings, result.state.float(), period).all())
    assert not bool(returns_after(couplings, result.state.float(), 2 * period).all())
    capped = relax(couplings, start, max_sweeps=period)
    assert capped.status.tolist() == [[Status.CAP]]
    assert capped.iterations.tolist() == [[period]]


def test_two_layer_chain_needs_masks() -> None:
    """J_D = 0, lambda = 1.3: p = 1 gives cycles, most of period 2; p = 0.8 fixed points."""
    network = Network(200, Chain(2, 0, 1.3))
    plain = relax(network, samples=10, starts=2)
    assert relaxation_summary(plain)["cycle_fraction"] == 1
    assert int((plain.period == 2).sum()) > 10
    assert (
        float(relaxation_summary(relax(network, samples=10, p=0.8))["fixed_point_fraction"]) > 0.8
    )


def test_float32_is_not_believed() -> None:
    """1 - 2^-30 rounds to 1 in float32: h = 0 there, a tie for +1, but h < 0 in float64."""
    adjacency = torch.tensor([[0, 1], [1, 0]])
    values = torch.tensor([[[0.0, -1.0], [1.0, 0.0]]])
    couplings = couplings_on(adjacency, values, 1 - 2**-30)
    start = torch.ones(1, 1, 1, 2)
    assert torch.equal(synchronous(couplings, start), start)
    result = relax(couplings, start, max_sweeps=10)
    assert result.status.tolist() == [[Status.MARGINAL]]
    assert float(result.min_margin) == -(2.0**-30)
    exact = relax(couplings_on(adjacency, values.double(), 1 - 2**-30), start, max_sweeps=100)
    assert result.period.tolist() == [[0]]
    assert exact.status.tolist() == [[Status.CYCLE]]
    tie = relax(couplings_on(adjacency, values, 1.0), start)
    assert tie.status.tolist() == [[Status.MARGINAL]]  # a zero margin is no fixed point


def test_external_field() -> None:
    network = Network(60, Chain(2, 0.2, 0.3))
    couplings = draw(network, 0, range(2), dtype=torch.float64)
    generator = torch.Generator().manual_seed(2)
    start = starts_of(network, 2, 3)
    strong = torch.randn(2, 3, 2, 60, generator=generator).sign().double() * 20
    result = relax(couplings, start, external=strong)
    assert torch.equal(result.state.double(), strong / 20)
    assert bool((result.iterations == 1).all())
    weak = torch.randn(2, 3, 2, 60, generator=generator, dtype=torch.float64)
    together = relax(couplings, start, external=weak, max_sweeps=200)
    s = together.state.double()
    torch.testing.assert_close(margins(couplings, s, weak).flatten(2).amin(-1), together.min_margin)
    for a in range(3):  # what finished left the batch with its own field
        alone = relax(couplings, start[:, a : a + 1], external=weak[:, a : a + 1], max_sweeps=200)
        assert torch.equal(alone.state[:, 0], together.state[:, a])
        assert torch.equal(alone.iterations[:, 0], together.iterations[:, a])


@pytest.mark.parametrize("p", [1.0, 0.7])
@pytest.mark.parametrize("rho", [1.0, 0.2])
def test_one_result_however_computed(p: float, rho: float) -> None:
    """Same seed, same result: by chunks, alone, with rare checks, with other starts beside."""
    network = Network(40, Chain(2, 0.2, 0.6), rho=rho)
    settings = {"p": p, "max_sweeps": 150, "dtype": "float64"}
    result = relax(network, samples=6, seed=3, starts=4, **settings)
    assert len(result.status.unique()) > 1 or p < 1
    assert_same(result, relax(network, samples=6, seed=3, starts=4, **settings))
    assert_same(result, relax(network, samples=6, seed=3, starts=4, space=1, **settings))
    rare = relax(network, samples=6, seed=3, starts=4, sync_interval=16, **settings)
    fixed = result.ended(Status.FIXED_POINT)
    for name in ("status", "period", "iterations"):
        assert torch.equal(getattr(rare, name), getattr(result, name))
    assert torch.equal(rare.state[fixed], result.state[fixed])
    alone = relax(network, samples=range(4, 5), seed=3, starts=2, **settings)
    assert torch.equal(alone.state[0], result.state[4, :2])
    assert torch.equal(alone.iterations[0], result.iterations[4, :2])
    other = relax(network, samples=6, seed=4, starts=4, **settings)
    assert not torch.equal(other.state, result.state)


@no_cuda
@pytest.mark.parametrize("rho", [1.0, 0.2])
@pytest.mark.parametrize("p", [1.0, 0.7])
def test_relax_on_cuda(rho: float, p: float) -> None:
    """Ends on the GPU are judged by margins and steps on the CPU."""
    network = Network(100, Chain(2, 0.6, 0.6), rho=rho)
    couplings = draw(network, 0, range(3), device="cuda")
    start = random_starts(0, range(3), 4, 2, 100, "cuda")
    result = relax(couplings, start, p=p)
    matrices = couplings.matrices if isinstance(couplings, DenseChain) else couplings.to_dense()
    here = DenseChain(matrices.cpu(), 0.6, 0.6, 0.6)
    least = least_margins(here, result.state)
    assert torch.equal(least > 0, result.ended(Status.FIXED_POINT))


def test_errors_of_fractions_and_medians() -> None:
    """The 68 % intervals hold the truth about 68 times in 100."""
    generator = torch.Generator().manual_seed(0)
    hits = [0, 0]
    for _ in range(1000):
        f, error = fraction(torch.rand(60, 1, generator=generator) < 0.3)
        hits[0] += abs(f - 0.3) <= error
        found = median(torch.rand(101, generator=generator))
        assert found is not None
        hits[1] += abs(found[0] - 0.5) <= found[1]
    assert all(620 < count < 740 for count in hits)
    clones = (torch.rand(40, 1, generator=generator) < 0.5).expand(40, 100)
    assert fraction(clones)[1] == pytest.approx(fraction(clones[:, :1])[1], rel=0.05)


@pytest.mark.parametrize("starts", [1, 8])
@pytest.mark.parametrize(("place", "entry"), [((3, 5), math.nan), ((5, 3), -math.inf), ((4, 4), 1)])
def test_entries_that_are_no_couplings_are_found_in_every_network(
    starts: int, place: tuple[int, int], entry: float
) -> None:
    """By the look at all of them, and where one network after the other is looked at."""
    chain = draw(Network(40, Chain(1, 0.8)), 0, range(3))
    assert isinstance(chain, DenseChain)
    chain.matrices[2, 0, place[0], place[1]] = entry
    with pytest.raises(InvalidInputError, match=r"matrices must be .*, got"):
        relax(chain, starts=starts)


def test_what_follows_flips_is_not_looked_at_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = draw(Network(40, Chain(1, 0.8)), 0, range(3))
    looks: list[object] = []
    monkeypatch.setattr(DenseChain, "check", lambda chain: looks.append(chain))
    for starts, looked in ((1, 0), (8, 1)):
        looks.clear()
        relax(chain, starts=starts)
        assert len(looks) == looked


def test_bad_input() -> None:
    network = Network(4, Chain(1, 0.1))
    couplings = draw(network, 0, range(1))
    start = starts_of(network, 1, 2)
    for argument, value in (
        ("p", 0),
        ("p", 1.5),
        ("update", "random"),
        ("max_sweeps", 0),
        ("sync_interval", 0),
        ("seed", -1),
        ("external", torch.full((4,), math.nan)),
        ("external", torch.ones(5)),
    ):
        with pytest.raises(InvalidInputError, match=f"{argument} must be"):
            relax(couplings, start, **{argument: value})
    for bad in (start[..., :3], start * 0, start.float() * 0.5):
        with pytest.raises(InvalidInputError, match="start must be"):
            relax(couplings, bad)
    assert_same(relax(couplings, start[0]), relax(couplings, start))  # a leading dimension of 1
    with pytest.raises(InvalidInputError, match="samples must be"):
        relax(network, samples=range(3, 3))
    with pytest.raises(InvalidInputError, match="device must be"):
        relax(network, samples=1, device="cuda:77")
