"""Replica-symmetric functional and the search for saddles other than q = 0."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmtheory import Chain, InvalidInputError, NotConvergedError
from rmtheory.annealed import entropy
from rmtheory.base.arithmetic import MPArithmetic
from rmtheory.base.gaussian import P, r
from rmtheory.replica.eigenvalues import matrices
from rmtheory.replica.symmetric import averages, force_bound, functional, search_saddles

pytestmark = pytest.mark.numerical

TWO_LAYERS = Chain(2, 0.1, lam_left=0.7, lam_right=0.3)


def hermite_value(chain: Chain, q: list[float], qhat: list[float], order: int) -> float:
    """The paper's formula term by term on a tensor Gauss-Hermite grid: an independent route."""
    x, w = np.polynomial.hermite_e.hermegauss(order)
    w = w / w.sum()
    layers = chain.finite_layers
    axes = np.meshgrid(*[x] * (2 * layers), indexing="ij", sparse=True)
    zeta = 0.0
    for s in product((1, -1), repeat=layers):
        term = 1.0
        for k in range(layers):
            v = chain.jd
            if k > 0:
                v += chain.lam_left * s[k - 1] * s[k]
            if k < layers - 1:
                v += chain.lam_right * s[k] * s[k + 1]
            t, z = axes[2 * k], axes[2 * k + 1]
            term = term * np.exp(math.sqrt(qhat[k]) * t * s[k])
            term = term * P((v + s[k] * math.sqrt(q[k]) * z) / math.sqrt(1 - q[k]))
        zeta = zeta + term
    integral = np.log(zeta)
    for _ in range(2 * layers):
        integral = integral @ w
    trace = 0.5 * sum(b * (a - 1) for a, b in zip(q, qhat, strict=True))
    return float((trace + integral) / layers)


@pytest.mark.parametrize("jd", [-0.3, 0.0, 0.5])
@pytest.mark.parametrize(("q", "qhat"), [(0.1, 0.2), (0.3, 0.1), (0.4, 0.5)])
def test_one_layer_against_gauss_hermite(jd: float, q: float, qhat: float) -> None:
    point = functional(Chain(1, jd), q, qhat)
    assert float(point.value) == pytest.approx(
        hermite_value(Chain(1, jd), [q], [qhat], 80), abs=1e-9
    )


def test_two_layers_against_gauss_hermite() -> None:
    point = functional(TWO_LAYERS, (0.1, 0.2), (0.15, 0.05))
    other = hermite_value(TWO_LAYERS, [0.1, 0.2], [0.15, 0.05], 28)
    assert float(point.value) == pytest.approx(other, abs=1e-9)


@given(st.floats(-0.5, 1), st.floats(0.05, 0.95), st.floats(0.01, 20))
@settings(deadline=None, max_examples=25)
def test_error_covers_a_much_finer_rule(jd: float, q: float, qhat: float) -> None:
    chain = Chain(1, jd)
    point = functional(chain, q, qhat)
    finest = averages(chain, [q], [qhat], 0.3)
    assert point.value.contains(0.5 * qhat * (q - 1) + finest.log_zeta)
    assert point.overlap[0].contains(finest.overlap[0])
    assert point.force[0].contains(finest.force[0])


@pytest.mark.parametrize(
    ("chain", "q", "qhat"),
    [
        (Chain(1, 0.3), (0.5,), (0.8,)),
        (Chain(1, -0.2), (0.9,), (6.0,)),
        (TWO_LAYERS, (0.3, 0.5), (0.4, 0.7)),
    ],
)
def test_saddle_equations_are_the_derivatives(
    chain: Chain, q: tuple[float, ...], qhat: tuple[float, ...]
) -> None:
    layers = chain.finite_layers
    point = functional(chain, q, qhat)
    step = 1e-3

    def slope(which: int, layer: int) -> float:
        values = []
        for k in (-2, -1, 1, 2):
            moved = [list(q), list(qhat)]
            moved[which][layer] += k * step
            values.append(float(functional(chain, *moved).value))
        return (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)

    for k in range(layers):
        expected = (qhat[k] - float(point.force[k])) / (2 * layers)
        assert slope(0, k) == pytest.approx(expected, abs=2e-8)
        expected = (q[k] - float(point.overlap[k])) / (2 * layers)
        assert slope(1, k) == pytest.approx(expected, abs=2e-8)


@pytest.mark.parametrize("chain", [Chain(1, 0.3), TWO_LAYERS])
def test_at_zero_it_is_the_annealed_entropy(chain: Chain) -> None:
    point = functional(chain, 0, 0)
    assert float(point.value) == pytest.approx(float(entropy(chain)), abs=1e-14)
    assert point.residual < 1e-14


def second_order(chain: Chain, steps: tuple[float, float, float]) -> float:
    """Coefficient of q^2 at equal q, qhat eliminated to first order, extrapolated to q = 0."""
    forms = matrices(chain, MPArithmetic(30))
    C, D = (np.array([[float(x) for x in row] for row in m]) for m in (forms.C, forms.D))
    ones = np.ones(chain.finite_layers)
    direction = np.linalg.solve(C, ones - D @ ones)
    at_zero = float(entropy(chain))
    f = [
        (float(functional(chain, e * ones, e * direction, tolerance=1e-13).value) - at_zero) / e**2
        for e in steps
    ]
    return float(np.polyfit(steps, f, 2)[-1])


def test_small_q_expansion_one_layer() -> None:
    for jd in (0.0, 0.1, 0.8):
        x = float(r(jd)) ** 2
        exact = 0.25 * ((1 - x) ** 2 - jd**2 * x)
        result = second_order(Chain(1, jd), (0.004, 0.008, 0.012))
        assert result == pytest.approx(exact, abs=2e-6)


def test_small_q_expansion_two_layers() -> None:
    result = second_order(Chain(2, 0.1, 0.5), (0.006, 0.012, 0.018))
    assert result == pytest.approx(0.06790235895619553, abs=5e-6)


def test_symmetries() -> None:
    mirrored = Chain(2, 0.1, lam_left=0.3, lam_right=0.7)
    a = functional(TWO_LAYERS, (0.2, 0.4), (0.3, 0.1))
    b = functional(mirrored, (0.4, 0.2), (0.1, 0.3))
    assert float(a.value) == pytest.approx(float(b.value), abs=1e-10)
    assert float(a.overlap[0]) == pytest.approx(float(b.overlap[1]), abs=1e-9)
    flipped = Chain(2, 0.1, lam_left=-0.7, lam_right=-0.3)
    c = functional(flipped, (0.2, 0.4), (0.3, 0.1))
    assert float(a.value) == pytest.approx(float(c.value), abs=1e-10)


def test_decoupled_layers_average() -> None:
    pair = functional(Chain(2, 0.2, 0), (0.2, 0.5), (0.3, 0.1))
    one, two = functional(Chain(1, 0.2), 0.2, 0.3), functional(Chain(1, 0.2), 0.5, 0.1)
    assert float(pair.value) == pytest.approx(0.5 * (float(one.value) + float(two.value)), abs=1e-9)
    assert float(pair.force[1]) == pytest.approx(float(two.force[0]), abs=1e-8)


def test_steps_follow_q_to_one() -> None:
    """Fixed Gauss-Hermite rules lose their digits here; the scaled rule does not."""
    point = functional(Chain(1, 0.1), 0.99, 500.0)
    assert point.value.error < 1e-10
    gauss = hermite_value(Chain(1, 0.1), [0.99], [500.0], 100)
    assert abs(gauss - float(point.value)) > 1e6 * float(point.value.error)


@pytest.mark.parametrize("qhat", [0.0, 0.5, 30.0])
def test_response_is_bounded(qhat: float) -> None:
    for chain, q in ((Chain(1, -0.3), [0.9]), (TWO_LAYERS, [0.5, 0.6])):
        result = averages(chain, q, [qhat] * len(q), 1.5)
        assert np.all(result.force < force_bound(chain, q))


def test_bad_input() -> None:
    for q in (-0.1, 1.0, math.nan):
        with pytest.raises(InvalidInputError, match="at least 0 and below 1"):
            functional(Chain(1, 0), q, 0)
    for qhat in (-1, math.inf):
        with pytest.raises(InvalidInputError, match="finite and >= 0"):
            functional(Chain(1, 0), 0, qhat)
    with pytest.raises(InvalidInputError, match="one number for each of 2"):
        functional(Chain(2, 0, 1), (0, 0, 0), 0)
    for layers in (3, "inf"):
        with pytest.raises(InvalidInputError, match="layers"):
            functional(Chain(layers, 0, 1), 0, 0)
        with pytest.raises(InvalidInputError, match="layers"):
            search_saddles(Chain(layers, 0, 1))
    with pytest.raises(NotConvergedError, match="nodes"):
        functional(Chain(2, 0, 1), 0.99, 1000)
    with pytest.raises(InvalidInputError, match="q_range"):
        search_saddles(Chain(1, 0), q_range=(0.5, 1.5))
    with pytest.raises(InvalidInputError, match="points"):
        search_saddles(Chain(1, 0), points=1)


# --- the search


@pytest.mark.parametrize("jd", [0.0, 0.1, 0.5, 1.0, -0.17])
def test_no_other_saddle_where_zero_is_stable(jd: float) -> None:
    result = search_saddles(Chain(1, jd), q_range=(0.002, 0.97), points=20)
    assert result.saddles == ()
    assert result.unsolved == 0
    assert result.closest > 1e-3
    assert "q in [0.002, 0.97], 20 points" in result.region


@pytest.mark.parametrize(("jd", "q"), [(-0.19, 0.0305319750), (-0.25, 0.1935866434)])
def test_the_search_finds_the_saddle_beyond_the_instability(jd: float, q: float) -> None:
    """Below J_D = -0.1784 a saddle leaves q = 0: the search can fail, and here it does not."""
    result = search_saddles(Chain(1, jd), q_range=(0.005, 0.9), points=14)
    (saddle,) = result.saddles
    assert saddle.q[0] == pytest.approx(q, abs=1e-8)
    assert saddle.residual < 1e-8
    assert float(saddle.value) < float(entropy(Chain(1, jd)))


def test_the_saddle_grows_linearly_from_the_instability() -> None:
    root = -0.178357650045906
    q = [
        search_saddles(Chain(1, root - e), q_range=(0.001, 0.1), points=8).saddles[0].q[0]
        for e in (0.001, 0.002)
    ]
    assert q[1] / q[0] == pytest.approx(2, abs=0.05)


def test_two_layers_none_where_stable() -> None:
    result = search_saddles(Chain(2, 0.1, 0.5), q_range=(0.02, 0.7), points=5)
    assert result.saddles == ()
    assert result.unsolved == 0
    assert result.points == 25


def test_two_layers_decoupled_is_one_layer() -> None:
    result = search_saddles(Chain(2, -0.25, 0), q_range=(0.05, 0.5), points=4)
    assert any(s.q == pytest.approx((0.1935866434,) * 2, abs=1e-6) for s in result.saddles)


def test_two_coupled_layers_beyond_the_instability() -> None:
    chain = Chain(2, -0.25, lam_left=0.2, lam_right=0.1)
    result = search_saddles(chain, q_range=(0.05, 0.5), points=4)
    (saddle,) = result.saddles
    assert saddle.q == pytest.approx((0.163564087673, 0.140545172770), abs=1e-8)
    assert saddle.residual < 1e-8
