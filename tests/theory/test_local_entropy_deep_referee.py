"""Deep chains against routes that share nothing with the transfer operator, and what is refused."""

import math
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from scipy.interpolate import BarycentricInterpolator

from rmtheory import Chain
from rmtheory.annealed import entropy
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.local_entropies import sampling
from rmtheory.local_entropies.points import local_entropy
from rmtheory.local_entropies.replicated import (
    replicated_chain,
    replicated_entropy,
    replicated_internal,
)
from rmtheory.local_entropies.sampling import sample
from rmtheory.local_entropies.solve import functional, refine_saddle
from rmtheory.local_entropies.transfer_operator import InfiniteFunctional

pytestmark = pytest.mark.numerical


@lru_cache
def exact(layers: Any, jd: float, lam: float, d: float, most: int) -> BarycentricInterpolator:
    """phi as a function of log y, through the replicated matrix at 2 .. most and S_a at y = 1."""
    chain = Chain(layers, jd, lam)
    phis = [float(replicated_entropy(chain, d, y).phi.value) for y in range(2, most + 1)]
    return BarycentricInterpolator(
        np.log(np.arange(1, most + 1)), [float(entropy(chain).value), *phis]
    )


# --- errors of the transfer operator


@pytest.mark.parametrize(
    ("layers", "d", "y"),
    [
        ("inf", 0.1, 3.2),
        ("inf", 0.1, 3.5),
        ("inf", 0.1, 3.8),
        ("inf", 0.1, 4.5),
        (4, 0.02, 6.7),
    ],
)
def test_errors_hold_against_the_replicated_matrix(layers: Any, d: float, y: float) -> None:
    """Interpolated in log y; one integer less changes phi by 1e-11 or less at these points."""
    fit = exact(layers, 0.05, 0.3, d, 15)
    point = local_entropy(Chain(layers, 0.05, 0.3), d, y)
    phi = float(fit(math.log(y)))
    internal = phi + float(fit.derivative(math.log(y)))
    assert abs(float(point.phi.value) - phi) < float(point.phi.error) < 1e-8
    assert abs(float(point.internal.value) - internal) < float(point.internal.error) < 1e-6


def test_errors_hold_at_many_replicas() -> None:
    """The coarsest pair of grids at y = 18, where n_r < y + 1 and an integer is not special."""
    chain, d, y = Chain("inf", 0.0, 0.5), 0.01, 18
    known = replicated_entropy(chain, d, y)
    start = np.array([float(known.qhat[0].value)])
    result = refine_saddle(functional(chain), d, float(y), start, 1e-6)
    assert result.level == 2
    assert abs(result.moments.phi - float(known.phi.value)) < result.phi_error


def test_one_replica_says_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """phi is the annealed entropy; S_I, the derivative of (y phi) there, is known to its error."""
    chain = Chain("inf", 0.05, 0.3)
    assert functional(chain).finest(1.0) == 4
    monkeypatch.setattr(InfiniteFunctional, "finest", lambda _self, _y: 3)
    point = local_entropy(chain, 0.1, 1)
    assert point.phi == entropy(chain)
    internal = float(entropy(chain).value) + float(exact("inf", 0.05, 0.3, 0.1, 15).derivative(0.0))
    # Four integers more change the reference by 2e-6.
    assert abs(float(point.internal.value) - internal) < float(point.internal.error)
    assert float(point.internal.error) < 3e-4


# --- sampling


def test_errors_of_sampling_hold_at_eight_replicas() -> None:
    """Pulls of twenty seeds: with one planted state alone their rms is 2 and the worst 8."""
    chain, d, y = Chain(3, 0.0, 0.418), 0.007, 8
    known = replicated_entropy(chain, d, y)
    qhat = np.array([float(q.value) for q in known.qhat])
    truth = [float(known.phi.value), float(replicated_internal(known).value), *[2 * d] * 3]
    pulls = []
    for seed in range(20):
        result = sample(chain, d, y, qhat, seed=seed, points=2**8)
        estimates = (result.phi, result.internal, *result.one_minus_m2)
        pulls.append(
            [(float(e.value) - t) / float(e.error) for e, t in zip(estimates, truth, strict=True)]
        )
    # Student's t of 15 degrees of freedom has an rms of 1.07; the error of the rms is about 0.15.
    assert 0.7 < np.sqrt(np.mean(np.square(pulls), axis=0)).max() < 1.5
    assert np.abs(pulls).max() < 5
    assert float(result.phi.error) < 6e-5


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"d": -0.1}, "d must be strictly between 0 and 1/2, got -0.1"),
        ({"d": 0.5}, "d must be strictly between 0 and 1/2"),
        ({"y": 0}, "y must be a number >= 1 for sampling, got 0"),
        ({"y": math.nan}, "y must be a finite real number"),
        ({"points": 0}, "points must be an integer >= 2, got 0"),
        ({"points": 1000}, "points must be a power of two, got 1000"),
        ({"scrambles": 1}, "scrambles must be an integer >= 2"),
        ({"seed": -1}, "seed must be an integer >= 0, got -1"),
        ({"qhat": np.array([0.3, -0.1, 0.3])}, "qhat must be finite numbers > 0"),
        ({"qhat": np.full(3, math.nan)}, "qhat must be finite numbers > 0"),
        ({"qhat": np.full(2, 0.3)}, "qhat must be 3 numbers, one for each layer"),
    ],
)
def test_sampling_refuses(change: dict[str, Any], sentence: str) -> None:
    words: dict[str, Any] = {"d": 0.1, "y": 2, "qhat": np.full(3, 0.3), "seed": 1, "points": 64}
    words |= change
    with pytest.raises(InvalidInputError, match=sentence):
        sample(Chain(3, 0.05, 0.3), words.pop("d"), words.pop("y"), words.pop("qhat"), **words)


def test_sampling_refuses_weights_that_a_single_point_carries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def heavy(_self: object, uniform: np.ndarray) -> tuple[np.ndarray, float]:
        return np.zeros(5), 0.2

    monkeypatch.setattr(sampling.Planted, "averages", heavy)
    with pytest.raises(NotConvergedError, match="one of 256 points carries 20% of an average"):
        sample(Chain(3, 0.05, 0.3), 0.1, 8, np.full(3, 0.1), seed=1, points=256)


# --- thresholds by the replicated matrix


def least_phi(chain: Chain, d: float) -> float:
    """S_I* = min phi over y, from the replicated matrix at y = 6 .. 11, interpolated in log y."""
    integers = np.arange(6, 12)
    phis: list[float] = []
    qhat = None
    for y in integers:
        replicas = replicated_chain(chain, d, int(y), 3)
        qhat = replicas.saddle(None if qhat is None else qhat * ((y - 1) / y) ** 0.8)
        phis.append(replicas.phi(qhat))
    fit = BarycentricInterpolator(np.log(integers), phis)
    ends = (math.log(7), math.log(10))
    result = optimize.minimize_scalar(
        lambda x: float(fit(x)), bounds=ends, method="bounded", options={"xatol": 1e-9}
    )
    return float(result.fun)


@pytest.mark.parametrize(
    ("layers", "d", "low", "high"),
    [
        (3, 0.006546, (0.0, 0.418104), (0.0, 0.418184)),
        ("inf", 0.00726, (0.0, 0.352550), (0.0, 0.352631)),
        (3, 0.0060, (0.058329, 0.2), (0.058410, 0.2)),
        ("inf", 0.0062, (0.05092, 0.2), (0.05117, 0.2)),
    ],
)
def test_published_brackets_without_the_operator(
    layers: Any, d: float, low: tuple[float, float], high: tuple[float, float]
) -> None:
    """The slope of S_I* at the touching point changes its sign, by differences in d."""
    slopes = []
    for jd, lam in (low, high):
        chain = Chain(layers, jd, lam)
        change = least_phi(chain, 1.01 * d) - least_phi(chain, 0.99 * d)
        slopes.append(change / (0.02 * d))
    assert slopes[0] < -1e-4
    assert slopes[1] > 1e-4
    assert max(map(abs, slopes)) < 3e-3
