"""Theory of the dynamics: exact steps, sampling, the stationary state and networks agree."""

import json
import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rmsim.couplings import draw_dense
from rmsim.network import Network
from rmsim.studies.compare import network_averages
from rmsim.studies.device_theory import TensorArrays
from rmsim.studies.device_theory import mean_field as device_mean_field
from rmtheory import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.base.estimate import Estimate, Tier
from rmtheory.base.gaussian import P
from rmtheory.cli import run
from rmtheory.dynamics import finite_size, freezing, stationary_state
from rmtheory.dynamics.averages import mean_field
from rmtheory.dynamics.exact_steps import first_steps
from rmtheory.dynamics.finite_size import (
    StoppingLaw,
    counted_flips,
    half_point,
    stopping_law,
    stopping_time,
)
from rmtheory.dynamics.freezing import (
    FlipRateCurve,
    fitted_curve,
    flip_rate_curve,
    freezing_point,
    pooled_errors,
    stationary_rate,
)
from rmtheory.dynamics.process import NumpyArrays, Process
from rmtheory.dynamics.stationary_state import Stationary, overshoot, stationary
from rmtheory.dynamics.two_copies import Presentation, displacement, overlap_of_phases
from rmtheory.second_moment.bivariate import F as orthant

pytestmark = pytest.mark.numerical

_RANDOM = np.random.default_rng(17)
CHAINS = [
    (
        Chain.at_depth(
            layers := int(_RANDOM.integers(1, 4)),
            round(_RANDOM.uniform(-0.2, 1.2), 3),
            lam_left=round(_RANDOM.uniform(-0.8, 0.8), 3),
            lam_right=round(_RANDOM.uniform(-0.8, 0.8), 3),
        ),
        int(_RANDOM.integers(1, layers + 1)),
        float(_RANDOM.choice([1.0, 0.8, 0.5])),
    )
    for _ in range(20)
]


@pytest.mark.parametrize(("chain", "layer", "p"), CHAINS, ids=str)
def test_sampling_agrees_with_the_exact_first_steps(chain: Chain, layer: int, p: float) -> None:
    """Within 3 errors, which 25 independent batches give; their bias, some 1e-4, is far below."""
    exact = first_steps(chain, layer, p=p, digits=8, tier=Tier.CERTIFIED)
    # With seed 1 one of the sixty differences is 3.08 errors, as chance has it in one of five
    # cases; twenty times as many copies of that chain differ by 0.02 errors.
    rng = np.random.default_rng(2)
    batches, copies = 25, 4000
    rows = np.empty((batches, 3))
    for k in range(batches):
        start = (2 * rng.integers(0, 2, (chain.finite_layers, copies)) - 1).astype(np.int8)
        process = Process(chain.jd, chain.lam_left, chain.lam_right, start, 3, NumpyArrays(rng))
        pairs = []
        for _ in range(3):
            process.sweep(p=p)
            pairs.append(process.correlation[layer - 1])
        rows[k] = pairs[1][0], pairs[2][0], pairs[2][1]
    error = rows.std(axis=0, ddof=1) / math.sqrt(batches)
    wanted = [float(one.value) for one in (exact.c10, exact.c20, exact.c21)]
    assert np.all(abs(rows.mean(axis=0) - wanted) < 3 * error)
    # As small as so many copies allow: not an error that hides a difference.
    assert np.all(error < 2 / math.sqrt(batches * copies))


def test_one_layer_in_closed_form() -> None:
    jd = 0.37
    c = 2 * float(P(jd)) - 1
    stays = float(orthant(jd, jd, c))
    back = float(orthant(-jd, -jd, -c))
    exact = first_steps(Chain(1, jd), digits=12)
    assert float(exact.c10.value) == pytest.approx(c, abs=1e-12)
    assert float(exact.c20.value) == pytest.approx(2 * stays + 2 * back - 1, abs=1e-11)
    assert float(exact.c21.value) == pytest.approx(
        2 * stays - 2 * back + 2 * float(P(-jd)) - 1, abs=1e-11
    )


@pytest.mark.parametrize(
    ("chain", "p"), [(Chain(1, "0.3"), 1), (Chain(2, "0.2", lam_left="0.5", lam_right="-0.1"), 0.8)]
)
def test_thirty_digits_two_ways(chain: Chain, p: float) -> None:
    certified = first_steps(chain, p=p, digits=30, tier=Tier.CERTIFIED)
    verified = first_steps(chain, p=p, digits=30, tier=Tier.VERIFIED)
    for name in ("c10", "c20", "c21"):
        one, two = getattr(certified, name), getattr(verified, name)
        assert one.digits >= 29
        assert abs(mpmath.mpf(one.value) - mpmath.mpf(two.value)) <= one.error + two.error


def test_without_couplings_nothing_is_remembered() -> None:
    exact = first_steps(Chain(1, 0), digits=10)
    assert [float(x.value) for x in (exact.c10, exact.c20, exact.c21)] == [0, 0, 0]
    result = mean_field(Chain(1, 0), 5, trajectories=8000)
    assert np.all(abs(result.flip_rate.value - 0.5) < 5 * result.flip_rate.error + 1e-3)


def test_overshoot_of_a_random_walk() -> None:
    assert overshoot() == pytest.approx(
        float(-mpmath.zeta(0.5) / mpmath.sqrt(2 * mpmath.pi)), abs=1e-8
    )
    # Rarely watched, a step is a Brownian path at an exponential time: the ladder is memoryless.
    assert overshoot(1e-9) == pytest.approx(math.sqrt(0.5), abs=1e-6)


def test_the_same_seed_gives_the_same_numbers() -> None:
    one, two = (mean_field(Chain(1, 0.6), 6, trajectories=4000, seed=3) for _ in range(2))
    assert np.array_equal(one.flip_rate.value, two.flip_rate.value)
    other = mean_field(Chain(1, 0.6), 6, trajectories=4000, seed=4)
    assert not np.array_equal(one.flip_rate.value, other.flip_rate.value)


@pytest.mark.parametrize(
    ("chain", "p"), [(Chain(1, 0.6), 1.0), (Chain(2, 0.3, lam_left=0.5, lam_right=0.2), 0.8)]
)
def test_networks_follow_the_theory(chain: Chain, p: float) -> None:
    """f(t) of networks, 20 sweeps, N = 500: equal within errors and a correction of order 1/N."""
    sweeps, n, samples = 20, 500, 16
    theory = mean_field(chain, sweeps, p=p, trajectories=40_000)
    couplings = draw_dense(Network(n, chain), 5, range(samples))
    generator = torch.Generator().manual_seed(1)
    shape = (samples, 1, chain.finite_layers, n)
    s = 2.0 * torch.randint(0, 2, shape, generator=generator) - 1
    flips = np.empty((sweeps, samples))
    for t in range(sweeps):
        new = torch.where(couplings.field(s) >= 0, 1.0, -1.0)
        if p < 1:
            new = torch.where(torch.rand(shape, generator=generator) < p, new, s)
        flips[t] = (new != s).double().mean(dim=(1, 2, 3)).numpy()
        s = new
    error = np.hypot(flips.std(axis=1, ddof=1) / samples**0.5, theory.flip_rate.error)
    pulls = (flips.mean(axis=1) - theory.flip_rate.value) / np.hypot(error, 1 / n)
    assert np.max(np.abs(pulls)) < 4
    assert np.sqrt(np.mean(pulls**2)) < 1.7


@settings(max_examples=6, deadline=None, derandomize=True)
@given(
    layers=st.integers(1, 3),
    jd=st.floats(0, 1),
    lam_left=st.floats(-0.8, 0.8),
    lam_right=st.floats(-0.8, 0.8),
    p=st.sampled_from([1.0, 0.8, 0.5]),
)
def test_any_network_follows_the_theory(
    layers: int, jd: float, lam_left: float, lam_right: float, p: float
) -> None:
    """f(t) of 200 networks, 100 neurons per layer, 8 sweeps, up to a correction of order 1/N."""
    sweeps, n, samples = 8, 100, 200
    chain = (
        Chain(layers, jd, lam_left=lam_left, lam_right=lam_right) if layers > 1 else Chain(1, jd)
    )
    theory = mean_field(chain, sweeps, p=p, trajectories=16_000)
    flips = _network_flips(chain, p, n, samples, sweeps, np.random.default_rng(4))
    error = np.hypot(flips.std(axis=1, ddof=1) / samples**0.5, theory.flip_rate.error)
    difference = flips.mean(axis=1) - theory.flip_rate.value
    # The sampling measures its own correction of order 1/M on 2000 copies: below 1/N by far.
    assert np.all(abs(difference) < 5 * error + 2 / n)


def _network_flips(
    chain: Chain, p: float, n: int, samples: int, sweeps: int, rng: np.random.Generator
) -> np.ndarray:
    """Networks written out, J_ii drawn as the other couplings: (sweeps, samples)."""
    layers = chain.finite_layers
    couplings = rng.standard_normal((samples, layers, n, n)) / math.sqrt(n)
    s = rng.choice([-1.0, 1.0], (samples, layers, n))
    flips = np.empty((sweeps, samples))
    for t in range(sweeps):
        h = np.einsum("alij,alj->ali", couplings, s) + chain.jd * s
        h[:, 1:] += chain.lam_left * s[:, :-1]
        h[:, :-1] += chain.lam_right * s[:, 1:]
        new = np.where(rng.random(s.shape) < p, np.where(h >= 0, 1.0, -1.0), s)
        flips[t] = (new != s).mean(axis=(1, 2))
        s = new
    return flips


def test_copies_that_measure_their_own_correlation_are_a_network() -> None:
    """M copies have the law of a network of M neurons: mean and spread, M = 32, no correction."""
    n, samples, sweeps, chain = 32, 1000, 10, Chain(1, 0.6)
    networks = _network_flips(chain, 1.0, n, samples, sweeps, np.random.default_rng(8))
    rng = np.random.default_rng(9)
    copies = np.empty((sweeps, samples))
    for k in range(samples):
        start = (2 * rng.integers(0, 2, (1, n)) - 1).astype(np.int8)
        process = Process(chain.jd, 0.0, 0.0, start, sweeps, NumpyArrays(rng))
        for t in range(sweeps):
            copies[t, k] = process.sweep().mean()
    error = np.hypot(networks.std(axis=1), copies.std(axis=1)) / samples**0.5
    pulls = (networks.mean(axis=1) - copies.mean(axis=1)) / error
    assert np.max(abs(pulls)) < 4
    # N -> infinity is many errors away: the test sees the finite size.
    theory = mean_field(chain, sweeps, trajectories=40_000).flip_rate.value
    assert np.max(abs(networks.mean(axis=1) - theory) / error) > 5
    # The spread between networks, whose relative error is (2 samples)^(-1/2).
    ratio = networks.std(axis=1) / copies.std(axis=1)
    assert np.max(abs(np.log(ratio))) < 5 / samples**0.5
    # And so has the chance that a network has stopped.
    stopped = np.array([(one[-1] == 0).mean() for one in (networks, copies)])
    assert abs(stopped[0] - stopped[1]) < 4 * math.sqrt(0.5 / samples)


class _SameNumbers(TensorArrays):
    """Tensors with the random numbers of numpy."""

    def __init__(self, sequence: np.random.SeedSequence) -> None:
        super().__init__(sequence, torch.device("cpu"))
        self._numpy = NumpyArrays.of_seed(sequence)

    def spins(self, shape: tuple[int, int]) -> torch.Tensor:
        return torch.from_numpy(self._numpy.spins(shape))

    def normal_(self, out: torch.Tensor) -> None:
        self._numpy.normal_(out.numpy())

    def uniform(self, shape: tuple[int, int]) -> torch.Tensor:
        return torch.from_numpy(self._numpy.uniform(shape))


@pytest.mark.parametrize(
    ("chain", "p"), [(Chain(1, 1.5), 1.0), (Chain(3, 0.4, lam_left=0.5, lam_right=0.2), 0.8)]
)
def test_tensors_carry_the_same_copies_as_numpy(chain: Chain, p: float) -> None:
    """Equal random numbers: equal averages, but for the few fields that rounding decides."""
    one, two = (
        mean_field(chain, 12, p=p, trajectories=4000, seed=5, correlation=True, arrays=arrays)
        for arrays in (NumpyArrays.of_seed, _SameNumbers)
    )
    # The first chain freezes: fields that repeat earlier ones, a factor of lower rank.
    for name in ("flip_rate", "overlap_with_start", "unstable", "margins", "correlation"):
        assert np.allclose(getattr(one, name).value, getattr(two, name).value, atol=2e-3), name
    # Its own random numbers: other samples of the same law.
    own = device_mean_field(chain, 12, p=p, trajectories=4000, seed=5, device="cpu")
    assert not np.array_equal(own.flip_rate.value, one.flip_rate.value)
    error = np.hypot(own.flip_rate.error, one.flip_rate.error)
    assert np.all(abs(own.flip_rate.value - one.flip_rate.value) < 5 * error + 1e-3)


def test_two_routes_to_the_stationary_flip_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stationary_state, "_PATH_NUMBERS", 2**18)
    late = mean_field(Chain(1, 0.5), 120, trajectories=16_000).flip_rate_late
    assert late is not None
    state = stationary(late.value, lambda jd: (jd, 0.0, 0.0), 0.5, repetitions=3, iterations=3)
    # df/dJ = -2 sqrt(f) / (2 rho) turns the error of f into one of J_D.
    from_rate = late.error * overshoot() / math.sqrt(late.value)
    assert abs(state.coupling.value - 0.5) < 3 * math.hypot(state.coupling.error, from_rate) + 0.002


def test_the_rate_at_one_coupling_is_that_of_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    """f_inf by the stationary state against sampling from random starts: one layer, a chain."""
    monkeypatch.setattr(stationary_state, "_PATH_NUMBERS", 2**16)
    for chain, p in ((Chain(1, 0.5), 1.0), (Chain(2, 0.4, 0.3), 0.8)):
        rate = stationary_rate(chain, p=p, repetitions=3, iterations=4)
        late = mean_field(chain, 100, p=p, trajectories=16_000).flip_rate_late
        assert late is not None
        assert 0 < rate.error < 0.1 * rate.value
        # Few repetitions: the error itself is known to a third.
        assert abs(rate.value - late.value) < 4 * math.hypot(rate.error, late.error)
    with pytest.raises(NotConvergedError, match=r"after 60 sweeps, below 0\.002"):
        stationary_rate(Chain(1, 1.2))
    with pytest.raises(NotConvergedError, match=r"after 60 sweeps, above 0\.3"):
        stationary_rate(Chain(2, 0, 1.6))


def test_a_relay_that_sees_its_path_at_all_times_freezes_where_the_overshoot_law_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """J_dyn by two routes: no overshoot at all, and the known one of a path seen once per sweep."""
    monkeypatch.setattr(stationary_state, "_PATH_NUMBERS", 2**18)

    def family(jd: float) -> tuple[float, float, float]:
        return jd, 0.0, 0.0

    f = 0.04
    seen_always = stationary(f, family, 0.81, repetitions=3, iterations=6, continuous=True)
    once = stationary(f, family, 0.58, repetitions=3, iterations=6)
    assert once.coupling.value < 0.65
    shifted = once.coupling.value + 2 * overshoot() * math.sqrt(f)
    error = math.hypot(seen_always.coupling.error, once.coupling.error)
    # Both have corrections of order f; measured to be below 0.1 f.
    assert abs(seen_always.coupling.value - shifted) < 4 * error + 0.1 * f
    with pytest.raises(InvalidInputError, match="continuous"):
        stationary(f, family, 0.8, layers=2, continuous=True)


def test_the_flip_rate_of_a_curve_is_the_inverse_of_its_coupling() -> None:
    curve = FlipRateCurve(
        1.0, (0.1, 0.01), (), np.array([0.814, 0.1, 0.0]), np.diag([1e-6, 1e-6, 1e-6])
    )
    for f in (0.001, 0.02, 0.09):
        at = curve.coupling(f)
        assert curve.rate(at.value).value == pytest.approx(f, rel=1e-6)
        shifted = curve.coupling(f * 1.01).value
        assert curve.rate(shifted).value == pytest.approx(1.01 * f, rel=1e-6)
    assert curve.rate(0.9).value == 0
    with pytest.raises(InvalidInputError, match="jd"):
        curve.rate(0.1)
    with pytest.raises(InvalidInputError, match="rate"):
        curve.coupling(0.2)


def test_walkers_on_the_half_line_stop_as_the_law_says() -> None:
    """w(12) by plain walkers, all moved in every sweep, against those kept in shells."""
    n, rng = 12.0, np.random.default_rng(3)
    in_shells = [stopping_time(n, 2000, rng) for _ in range(24)]
    plain = [_plain_stopping_time(n, 2000, rng) for _ in range(24)]
    assert all(stopped for _, stopped in in_shells)
    one, two = (math.log(np.mean(times)) for times in ([t for t, _ in in_shells], plain))
    # Relative error 24^(-1/2) each; the plain half-line is only a quarter as deep.
    assert abs(one - two) < 4 * math.sqrt(2 / 24)


def _plain_stopping_time(n: float, most: int, rng: np.random.Generator) -> int:
    offset, depth = overshoot() * math.sqrt(n), 24 * math.sqrt(n)

    def fill(low: float, high: float) -> np.ndarray:
        total = (high - low) * (high + low + 2 * offset)
        return np.sqrt((offset + low) ** 2 + rng.random(rng.poisson(total)) * total) - offset

    y, flips = fill(0, depth), n
    for t in range(1, most + 1):
        y = np.concatenate([y, fill(depth, depth + 6 * math.sqrt(flips))])
        y = y + math.sqrt(flips) * rng.standard_normal(len(y))
        flips = np.count_nonzero(y < 0)
        if flips == 0:
            return t
        y = y[(y >= 0) & (y < depth)]
    return most


def test_probability_to_stop() -> None:
    law = StoppingLaw(_estimate(3.6), _estimate(0.13), 0.0)
    flips = law.flips_at(1000)
    assert law.rate(float(flips.value)).value * 1000 == pytest.approx(math.log(2))
    # Constant f: half of the networks at n_50, all at 0, none where many flip.
    for n, wanted in ((float(flips.value), 0.5), (0.0, 1.0), (200.0, 0.0)):
        assert law.probability(np.full(1000, n)).value == pytest.approx(wanted, abs=1e-5)


def test_the_stopping_law_knows_where_it_was_measured() -> None:
    law = StoppingLaw(_estimate(3.6), _estimate(0.13), 0.0, least=10, most=30)
    for n in (9.9, 30.1):
        with pytest.raises(InvalidInputError, match="n must be from 10 to 30"):
            law.rate(n)
    for sweeps in (10, 10**7):
        with pytest.raises(InvalidInputError, match="sweeps must be from"):
            law.flips_at(sweeps)
    # Few sweeps with hardly a flip: the network may have stopped in any of them.
    quiet = law.probability(np.full(5, 1.0))
    assert quiet.value < 0.2
    assert quiet.value + quiet.error > 0.8
    # Above the range the slope of log w may differ by half.
    above = law.probability(np.full(1000, 50.0))
    assert 0.5 < above.error / above.value < 3


def test_stopping_law_from_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finite_size, "_MEASURED_FLIPS", (8.0, 14.0))
    law = stopping_law(repetitions=16)
    assert abs(law.beta.value - 0.14) < 4 * law.beta.error
    assert law.beta.error < 0.1
    with pytest.raises(InvalidInputError, match="p must be 1"):
        stopping_law(p=0.8)
    monkeypatch.setattr(finite_size, "_LONGEST_WALK", 1)
    monkeypatch.setattr(finite_size, "_MEASURED_FLIPS", (60.0,))
    with pytest.raises(NotConvergedError, match="none of 4 walks with 60 flips"):
        stopping_law(repetitions=4)


def test_flip_rate_curve_at_small_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stationary_state, "_PATH_NUMBERS", 2**16)
    curve = flip_rate_curve(repetitions=3, iterations=4)
    assert curve.freezing.error < 0.02
    assert abs(curve.freezing.value - 0.8147) < 4 * curve.freezing.error
    assert abs(curve.rate(0.5).value - 0.0718) < 4 * curve.rate(0.5).error + 0.001


def _on_a_curve(f: float, *_: object, continuous: bool = False, **__: object) -> Stationary:
    """A stationary state with terms f and f^(3/2), J_dyn = 0.8147."""
    root = 0.0 if continuous else -2 * overshoot() * math.sqrt(f) + 0.2 * f**1.5
    x = Estimate(0.8147 - 0.09 * f + root, 1e-4 / math.sqrt(f), Tier.ESTIMATED, "given")
    return Stationary(f, x, -5.0, np.ones((1, 2)))


def test_the_freezing_point_is_the_limit_of_its_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """States on a curve: the limit is met; what is measured at the ends decides on the bracket."""
    looked: list[float] = []

    def growth(f: float, couplings: tuple[float, ...], **_: object) -> Estimate:
        looked.append(couplings[0])
        return _estimate(1.2 * (0.8147 + offset - couplings[0]), 1e-5)

    monkeypatch.setattr(freezing, "stationary", _on_a_curve)
    monkeypatch.setattr(freezing, "sustained", growth)
    offset = 0.0
    for continuous in (False, True):
        found = freezing_point(1, continuous=continuous)
        assert found.point.value == pytest.approx(0.8147, abs=1e-9)
        assert found.low < found.point.value < found.high
        assert found.sustained_low.value > 0 > found.sustained_high.value
        assert ("f^1.5" in found.point.method) == (not continuous)
        # No farther than the verdicts need.
        assert found.high - found.low < 5 * float(found.point.error)
        assert [float(one.value) for one in found.ends] == [found.low, found.high]
    # Activity that lives on farther up moves the upper end, or leaves none.
    narrow = found.high - found.low
    offset, looked[:] = 3.5 * float(found.point.error), []
    moved = freezing_point(1, continuous=True)
    assert moved.high - moved.low > 1.3 * narrow
    assert len(looked) > 2
    offset = 1.0
    with pytest.raises(NotConvergedError, match=r"no verdict above 0\.815 .* at 0\.8"):
        freezing_point(1, continuous=True)
    # A fit that stops at f, as for chains, is off by more than its states are known to.
    line = freezing.OneLayer()
    line.powers = (1.0,)
    short = freezing._extrapolated(line, [_on_a_curve(f) for f in line.rates], line.slope(1.0))
    assert 0.8147 - short.value > 5e-4
    # At a rate that was solved for, the fit is the state.
    there = freezing._extrapolated(
        freezing.OneLayer(), [_on_a_curve(f) for f in line.rates], line.slope(1.0), 0.04
    )
    assert there.value == pytest.approx(_on_a_curve(0.04).coupling.value, abs=1e-9)


def test_verdicts_at_couplings_far_from_the_freezing_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured, at small cost: activity lives below the threshold and dies out above it."""
    for module, name, value in (
        (stationary_state, "_PATH_NUMBERS", 2**15),
        (stationary_state, "_TRANSIENT", 3),
        (freezing, "_GRID", 0.05),
        (freezing, "_COPIES", 8000),
        (freezing, "_SWEEPS", 64),
    ):
        monkeypatch.setattr(module, name, value)
    one, chain = freezing.OneLayer(), freezing.ChainLine(2, "jd", 0.6)
    for line, x, sign in ((one, 0.7, 1), (one, 0.95, -1), (chain, 0.3, 1), (chain, 0.8, -1)):
        found = line.growth(x, 0.8, np.random.SeedSequence(3), 2)
        assert sign * found.value > 2 * found.error, (line, x, found)
    # Frozen before the last sweeps: a bound.
    silent = chain.growth(3.0, 0.8, np.random.SeedSequence(3), 2)
    assert silent.value < 0
    assert "no flip" in silent.method
    assert "flicker" in freezing.ChainLine(2, "lam", 0.0).remark(1.5)
    assert "flicker" in freezing.ChainLine(2, "lam", 0.05).remark(1.5)
    assert not freezing.ChainLine(2, "jd", 0.6).remark(0.6)


def test_neurons_that_flicker_are_not_taken_for_chaos(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three layers at J_D = 0: what is left of the correlation says so."""

    def flickers(f: float, *_: object, **__: object) -> Stationary:
        return replace(_on_a_curve(f), undecayed=0.0 if f > 0.01 else 0.2)

    monkeypatch.setattr(freezing, "stationary", flickers)
    monkeypatch.setattr(freezing.ChainLine, "first_guess", lambda *_: 1.2)
    with pytest.raises(NotConvergedError, match=r"3 layers: .* 0\.008 .* still 0\.20 .* flicker"):
        freezing_point(3, jd=0, p=0.8)


def test_errors_of_few_repetitions_are_pooled() -> None:
    """Errors of 2 repetitions scatter; pooled ones grow as f^(-1/2), and chi^2 enlarges a fit."""
    rates = (0.16, 0.04, 0.01)
    errors = pooled_errors(rates, [_estimate(0.5, e) for e in (1e-5, 2e-3, 1e-3)])
    assert errors[1:] / errors[:-1] == pytest.approx([2, 2])
    assert np.sum(errors**2 * rates) == pytest.approx(np.sum([1.6e-11, 1.6e-7, 1e-8]))
    # What no repetition reduces stays with its state.
    whole = [_estimate(0.5, math.hypot(e, own)) for e, own in ((1e-3, 0), (2e-3, 0), (4e-3, 0.1))]
    mixed = pooled_errors(rates, whole, [0, 0, 0.1])
    assert mixed == pytest.approx([1e-3, 2e-3, math.hypot(4e-3, 0.1)])
    # Four states for three coefficients; one is off by far more than its error.
    rates = (0.15, 0.08, 0.04, 0.02)
    states = [0.814 - 2 * overshoot() * math.sqrt(f) for f in rates]
    straight = fitted_curve(rates, [_estimate(x, 1e-4) for x in states])
    states[2] += 0.02
    bent = fitted_curve(rates, [_estimate(x, 1e-4) for x in states])
    # An independent limit is one more point, and wins where it is more precise.
    pulled = fitted_curve(rates, bent.couplings, limit=_estimate(0.9, 1e-7))
    assert pulled.freezing.value == pytest.approx(0.9, abs=1e-4)
    assert straight.freezing.value == pytest.approx(0.814, abs=1e-9)
    assert bent.freezing.error > 20 * straight.freezing.error


def test_half_points_and_their_error() -> None:
    curve = FlipRateCurve(1.0, (0.15,), (), np.array([0.814, 0.0, 0.0]), 1e-12 * np.eye(3))
    law = StoppingLaw(_estimate(3.6, 1e-6), _estimate(0.14, 1e-8), 0.0)
    sizes = (1000, 4000, 10**6, 4 * 10**6)
    points = [half_point(n, 1000, curve, law) for n in sizes]
    wanted = float(law.flips_at(1000).value)
    for n, point in zip(sizes, points, strict=True):
        jd = float(point.value)
        # f_inf of this curve written out: N f (1 + (J_dyn - J_D)/J_D) = N f J_dyn/J_D.
        rate = ((0.814 - jd) / (2 * overshoot())) ** 2
        assert n * rate * 0.814 / jd == pytest.approx(wanted, rel=1e-6)
        assert counted_flips(n, rate, jd) == pytest.approx(wanted, rel=1e-6)
    # J_dyn - J_50 falls as N^(-1/2) at last, its error as N^(-3/2).
    away = [0.814 - float(one.value) for one in points]
    assert away[2] / away[3] == pytest.approx(2, rel=1e-2)
    assert away[0] / away[1] < 1.9
    assert points[0].error / points[1].error > 5
    with pytest.raises(InvalidInputError, match="size must be at least"):
        half_point(50, 1000, curve, law)
    with pytest.raises(InvalidInputError, match="jd must be positive"):
        counted_flips(100, 0.01, 0.0)


def _estimate(value: float, error: float = 0.01) -> Estimate:
    return Estimate(value, error, Tier.ESTIMATED, "given")


def test_a_family_without_the_flip_rate_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stationary_state, "_PATH_NUMBERS", 2**16)
    with pytest.raises(NotConvergedError, match=r"stationary state with the flip rate 0\.1"):
        stationary(0.1, lambda _jd: (3.0, 0.0, 0.0), 0.5)


def test_two_layers_all_at_once_never_freeze() -> None:
    with pytest.raises(NotConvergedError, match=r"do not freeze .* 0\.5"):
        freezing_point(2, jd=0)


def test_the_error_of_an_average_contains_its_bias() -> None:
    """Few copies are small networks: q_dyn and f are off by many scatters, not by many errors."""
    strong = Presentation(0.5, 2, 0.9)
    pulls = []
    for seed in range(6):
        q = overlap_of_phases(strong, trajectories=2000, seed=seed)
        pulls.append((float(q.value) - 0.7511) / float(q.error))  # figures/data/overlaps.json
    assert np.mean(pulls) > 0.3  # the bias is seen
    assert np.sqrt(np.mean(np.square(pulls))) < 1.8
    # 250 copies a batch stop by chance: f_inf = .0337 is not within the scatter of 6 batches.
    for seed in range(4):
        late = mean_field(Chain(1, 0.6), 120, trajectories=2000, seed=seed).flip_rate_late
        assert late is None or abs(late.value - 0.0337) < 3 * late.error


def test_overlap_in_networks_of_the_size_of_the_paper() -> None:
    strong = Presentation(0.5, 2, 0.9)
    with pytest.raises(InvalidInputError, match="neurons"):
        overlap_of_phases(strong, trajectories=1000, neurons=1600)


def test_the_memory_grows_until_the_correlation_has_decayed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stationary_state, "_PATH_NUMBERS", 2**16)
    monkeypatch.setattr(stationary_state, "_MEMORY", 0.5)

    def solve() -> Stationary:
        return stationary(0.02, lambda x: (x, 0.0, 0.0), 0.65, repetitions=2, iterations=2)

    state = solve()
    assert state.correlation.shape[1] > 2 ** math.ceil(math.log2(2 * 0.5 / 0.02)) // 2 + 1
    assert np.allclose(state.correlation[:, 0], 1)
    assert state.undecayed == 0
    monkeypatch.setattr(stationary_state, "_LONGEST_MEMORY", 0.5)
    short = solve()
    assert 0.1 < short.undecayed < 1
    assert "after 0.5/f sweeps" in short.coupling.method
    assert short.coupling.error > short.undecayed / abs(short.response) * 0.99


def test_noise_on_a_fixed_point_displaces_it_as_in_networks() -> None:
    """Paper, SM-G, before training: lambda_x = 2, half of the neurons flipped."""
    jd, strength, n, samples = 0.5, 2.0, 300, 40
    rng = np.random.default_rng(5)
    distances = []
    for _ in range(samples):
        couplings = rng.standard_normal((n, n)) / math.sqrt(n)
        np.fill_diagonal(couplings, jd)
        source = strength * rng.standard_normal(n)

        def settled(s: np.ndarray, j: np.ndarray = couplings, b: np.ndarray = source) -> np.ndarray:
            for _ in range(200):
                s, before = np.where(j @ s + b >= 0, 1.0, -1.0), s
                if np.array_equal(s, before):
                    break
            return s

        rest = settled(np.sign(source))
        noisy = np.where(rng.random(n) < 0.5, -rest, rest)
        distances.append(float(np.mean(settled(noisy) != rest)))
    theory = displacement(Chain(1, jd), [0, 0.5], lambda_x=strength, trajectories=16_000)
    assert theory.distance.value[0] == 0
    error = np.std(distances, ddof=1) / math.sqrt(samples)
    difference = np.mean(distances) - theory.distance.value[1]
    assert abs(difference) < 4 * math.hypot(error, theory.distance.error[1]) + 1 / n
    assert theory.distance.value[1] > 0.05
    with pytest.raises(NotConvergedError, match="does not freeze"):
        displacement(Chain(1, 0.3), [0.1], sweeps=20, trajectories=2000)
    with pytest.raises(InvalidInputError, match="noises"):
        displacement(Chain(1, 0.3), [1.1])


@pytest.mark.parametrize(("chain", "p"), [(Chain(1, 1.2), 1.0), (Chain(3, 0.9, 0.5), 0.5)])
def test_what_networks_freeze_into(chain: Chain, p: float) -> None:
    """Overlap with the start, neurons that never moved and margins, N = 400 and the theory."""
    n, sweeps = 400, 30
    theory = mean_field(chain, sweeps, p=p, trajectories=40_000)
    measured = network_averages(Network(n, chain), sweeps, samples=12, starts=2, p=p, seed=3)
    never = theory.never_moved
    for networks, value, spread in (
        (
            measured.overlap_with_start[..., -1:],
            theory.overlap_with_start.value[-1:],
            theory.overlap_with_start.error[-1:],
        ),
        (measured.never_moved[..., None], [float(never.value)], [float(never.error)]),
        (measured.margins, theory.margins.value, theory.margins.error),
    ):
        rows = networks.mean(axis=1)
        error = np.hypot(rows.std(axis=0, ddof=1) / len(rows) ** 0.5, spread)
        assert np.all(abs(rows.mean(axis=0) - value) < 4 * error + 2 / n)
    # The margins are those of a fixed point, but for the neurons that still move.
    assert theory.margins.value[1] > 0


def test_correlations_of_all_pairs_of_times() -> None:
    chain = Chain(2, 0.4, 0.3)
    result = mean_field(chain, 4, trajectories=8000, p=0.8, correlation=True)
    assert result.correlation is not None
    pairs = result.correlation.value
    assert pairs.shape == (5, 5)
    assert np.allclose(pairs, pairs.T)
    assert np.allclose(np.diag(pairs), 1)
    assert np.allclose(pairs[1:, 0], result.overlap_with_start.value)
    assert np.allclose((1 - np.diag(pairs, -1)) / 2, result.flip_rate.value)
    with pytest.raises(InvalidInputError, match="sweeps"):
        mean_field(chain, 1001, correlation=True)


def test_exponent_of_the_flip_rate_and_what_is_late() -> None:
    frozen = mean_field(Chain(1, 1.0), 40, trajectories=16_000)
    assert frozen.exponent_times == (1, 2, 4, 8)
    assert np.all(frozen.exponents.value[2:] > 1.2)
    assert frozen.flip_rate_late is None
    assert "falls" in frozen.reason or "distinguished from 0" in frozen.reason
    active = mean_field(Chain(1, 0.3), 40, trajectories=16_000)
    assert active.flip_rate_late is not None
    assert np.all(abs(active.exponents.value[3:]) < 0.1)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ("--jd .5 --sweeps 0", "sweeps"),
        ("--jd .5 --p 0", "p"),
        ("--jd .5 --p 1.2", "p"),
        ("--jd nan", "jd"),
        ("--jd .5 --lam .3", "lam"),
        ("--jd .5 --trajectories 999", "trajectories"),
        ("--critical --lam .5", "lam"),
        ("--critical --jd .5", "jd"),
        ("--overlap --jd .5", "lambda_x"),
        ("--jd .5 --lambda-x 3", "lambda_x"),
        ("--critical --overlap", "overlap"),
        ("--jd .5 --continuous", "continuous"),
        ("--critical --layers 2 --jd 0 --p .8 --continuous", "continuous"),
        ("--critical --layers 2", "jd"),
        ("--critical --p 0", "p"),
        ("--jd .5 --sweeps 4001", "sweeps"),
        ("--jd .5 --seed -1", "seed"),
        ("--critical --layers inf --jd 0", "layers"),
        ("--critical --sweeps 9", "sweeps"),
        ("--critical --trajectories 9000", "trajectories"),
        ("--critical --repetitions 1", "repetitions"),
        ("--overlap --jd .5 --lambda-x 5 --lambda-y .9 --layers 2", "layers"),
        ("--overlap --jd .5 --lambda-x 5 --lambda-y .9 --p .8", "p"),
        ("--jd .5 --warmup 2", "warmup"),
        ("--displacement --jd .5 --noise 2", "noises"),
        ("--displacement --jd .5 --overlap", "displacement"),
        ("--layers inf --jd 0 --lam .3", "layers"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["mean-field", *arguments.split()]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert line.startswith(f"rmtheory: error: {name} must be")


def test_command_line_contract(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "mean-field --jd .65 --sweeps 12 --trajectories 4000 --json"
    assert run(arguments.split()) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["sweep"] == list(range(1, 13))
    for name in ("flip_rate", "overlap_with_start"):
        assert len(document[name]) == 12
        assert set(document[name][0]) >= {"value", "error", "tier", "method"}
    assert document["flip_rate_late"] is None or "value" in document["flip_rate_late"]
    assert (document["flip_rate_late"] is None) == bool(document["reason"])


def test_presentations_are_checked() -> None:
    with pytest.raises(InvalidInputError, match="lambda_x"):
        Presentation(0.5, 0, 0.9)


def test_no_flip_of_any_copy_is_known_to_one_copy_only() -> None:
    """At J_D = 3 one neuron in 700 flips, in the first sweep: then none of some thousand does."""
    flips = mean_field(Chain(1, 3), 8, trajectories=2000).flip_rate
    assert flips.value[-1] == 0
    assert 1 / 4000 < flips.error[-1] <= 1 / 2000
