"""Stability of q0 = 0 for two layers: limits, plain quadrature, errors."""

import math
from itertools import product

import numpy as np
import pytest

from rmtheory import Chain
from rmtheory.base.gaussian import P
from rmtheory.local_entropies.core import q0_stability
from rmtheory.local_entropies.pair import pair_m0, pair_q0_at, second_order
from rmtheory.local_entropies.points import local_entropy, ystar
from rmtheory.local_entropies.solve import CurveTracker, functional, guess_qhat, solve_saddle
from rmtheory.replica.eigenvalues import stability

pytestmark = pytest.mark.numerical


def saddle(chain: Chain, d: float, y: float) -> np.ndarray:
    model = functional(chain)
    return solve_saddle(model, d, y, guess_qhat(model, d, y), 2).moments.qhat


@pytest.mark.parametrize(
    "chain", [Chain(2, 0.1, 0.5), Chain(2, 0.2, lam_left=0.7, lam_right=0.3), Chain(2, 0, 0.4)]
)
def test_at_y_1_it_is_the_replica_symmetric_matrix(chain: Chain) -> None:
    expected = [float(e) for e in stability(chain).eigenvalues]
    for d in (0.1, 0.3):
        matrix, error = pair_m0(chain, d, 1.0, saddle(chain, d, 1.0), 3)
        assert error < 1e-10
        assert np.linalg.eigvalsh(matrix) == pytest.approx(expected, abs=1e-10)


def test_without_coupling_it_is_that_of_one_layer_twice() -> None:
    chain, d, y = Chain(2, 0.1, 0.0), 0.1, 5.6
    qhat = saddle(chain, d, y)
    matrix, _ = pair_m0(chain, d, y, qhat, 3)
    one = float(q0_stability(0.1, d, y, qhat[0], 4))
    assert matrix == pytest.approx(one * np.eye(2), abs=1e-10)


@pytest.mark.parametrize("chain", [Chain(2, 0.1, 0.4), Chain(2, 0.1, lam_left=0.6, lam_right=0.2)])
def test_the_second_derivatives_are_those_of_the_shifted_integral(chain: Chain) -> None:
    d, y = 0.3, 3.0
    qhat = saddle(chain, d, y)
    A, K, Gamma = second_order(chain, d, y, qhat, 3)
    result = np.block([[A, K], [K.T, Gamma]])
    step = 0.02
    zero = shifted_integral(chain, d, y, qhat, np.zeros(4))
    for a, b in product(range(4), repeat=2):
        if a > b:
            continue
        one, two = step * np.eye(4)[a], step * np.eye(4)[b]
        values = []
        for k in (1, 2):
            mixed = 0.0
            for sign_a, sign_b in product((1, -1), repeat=2):
                shift = k * (sign_a * one + sign_b * two)
                mixed += sign_a * sign_b * shifted_integral(chain, d, y, qhat, shift)
            values.append(mixed / (4 * (k * step) ** 2))
        assert (4 * values[0] - values[1]) / 3 / zero == pytest.approx(result[a, b], abs=2e-5)
    # At the saddle the diagonal of A is known: y + y (y - 1) q1.
    assert np.diag(A) == pytest.approx(y + y * (y - 1) * (1 - 2 * d), abs=1e-9)


def shifted_integral(
    chain: Chain, d: float, y: float, qhat: np.ndarray, shift: np.ndarray
) -> float:
    """The integral of zeta^y with the Gaussians of (h_1, h_2, x_1, x_2) centred at `shift`."""
    q1, sigma = 1 - 2 * d, math.sqrt(2 * d)
    z, w = np.polynomial.hermite_e.hermegauss(26)
    w = w / w.sum()
    sites = []
    for k, lam in ((0, chain.lam_right), (1, chain.lam_left)):
        h = (math.sqrt(qhat[k if qhat.size > 1 else 0]) * z + shift[k])[:, None]
        x = (math.sqrt(q1) * z + shift[2 + k])[None, :]
        sites.append(
            [
                np.exp(s[k] * h) * P((chain.jd + lam * s[0] * s[1] + s[k] * x) / sigma)
                for s in product((1, -1), repeat=2)
            ]
        )
    zeta = sum(np.multiply.outer(one.ravel(), two.ravel()) for one, two in zip(*sites, strict=True))
    weight = np.outer(w, w).ravel()
    return float(weight @ np.power(zeta, y) @ weight)


def test_every_point_of_two_layers_carries_it() -> None:
    chain = Chain(2, 0.05, 0.3)
    tracker = CurveTracker(functional(chain))
    near, far = (ystar(chain, d, tol=1e-9, tracker=tracker, check_zeros=False) for d in (0.03, 0.1))
    assert near.q0_stability is not None
    assert far.q0_stability is not None
    assert float(near.q0_stability) == pytest.approx(0.0392637, abs=1e-6)
    assert float(far.q0_stability) == pytest.approx(-0.0440091, abs=1e-6)
    point = local_entropy(chain, 0.2, 2.0)
    assert point.q0_stability is not None
    assert point.q0_stability.error < 1e-6


def test_levels_agree_within_the_errors() -> None:
    chain = Chain(2, 0.0, 0.45)
    point = CurveTracker(functional(chain)).solve(0.05, 1e-7)
    estimate = pair_q0_at(chain, point)
    moments = point.moments
    finer, _ = pair_m0(chain, moments.d, moments.y, moments.qhat, point.level + 1)
    assert estimate.contains(float(np.linalg.eigvalsh(finer)[0]))
    assert estimate.error < 1e-3
