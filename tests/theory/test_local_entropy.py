"""Local entropy at single points: identities, symmetries, an independent rule, bad arguments."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import root

from rmtheory import Chain
from rmtheory.annealed import entropy_array
from rmtheory.base.gaussian import log_P
from rmtheory.local_entropies.core import core_moments
from rmtheory.local_entropies.functional import Moments, Refined
from rmtheory.local_entropies.pair import pair_moments
from rmtheory.local_entropies.points import local_entropy, ystar
from rmtheory.local_entropies.quadrature import FINEST, STEPS, field_nodes
from rmtheory.local_entropies.solve import functional, guess_qhat, refine_saddle, solve_saddle
from rmtheory.second_moment.overlap_exponent import exponent

pytestmark = pytest.mark.numerical

few = settings(max_examples=6)

distances = st.floats(0.003, 0.49)
couplings = st.floats(-0.7, 0.7)


def saddle(chain: Chain, d: float, y: float, tol: float = 1e-8) -> Refined:
    model = functional(chain)
    return refine_saddle(model, d, y, guess_qhat(model, d, y), tol)


def annealed(chain: Chain) -> float:
    value, _ = entropy_array(chain.layers, chain.jd, chain.lam_left, chain.lam_right)
    return float(value)


def h_b(p: float) -> float:
    return -p * math.log(p) - (1 - p) * math.log1p(-p)


# --- y = 1: the annealed entropy, whatever d and qhat


@given(jd=st.floats(-1, 2), d=distances, qhat=st.floats(1e-3, 4))
def test_y_1_is_the_annealed_entropy(jd: float, d: float, qhat: float) -> None:
    phi = core_moments(jd, d, 1.0, np.array([qhat]), 4).phi
    assert phi == pytest.approx(annealed(Chain(1, jd)), abs=1e-11)


@few
@given(
    jd=st.floats(-0.2, 0.5),
    left=couplings,
    right=couplings,
    d=st.floats(0.02, 0.49),
    qhats=st.tuples(st.floats(0.01, 2), st.floats(0.01, 2)),
)
def test_y_1_is_the_annealed_entropy_of_two_layers(
    jd: float, left: float, right: float, d: float, qhats: tuple[float, float]
) -> None:
    phi = pair_moments(jd, left, right, d, 1.0, np.array(qhats), 2).phi
    assert phi == pytest.approx(annealed(Chain(2, jd, lam_left=left, lam_right=right)), abs=1e-9)


def test_at_y_1_the_internal_entropy_is_negative_close_by() -> None:
    point = local_entropy(Chain(1, 0.1), d=0.005, y=1)
    assert point.internal.value < -point.internal.error


# --- y = 2: the second moment


@given(jd=st.floats(-0.02, 1), d=distances)
def test_y_2_is_the_second_moment(jd: float, d: float) -> None:
    chain = Chain(1, jd)
    point = saddle(chain, d, 2.0, 1e-11)
    psi = exponent(chain, 1 - 2 * d)
    assert abs(2 * point.moments.phi - psi.value) <= 2 * point.phi_error + psi.error
    assert point.phi_error < 1e-10


@few
@given(jd=st.floats(0, 0.3), left=couplings, right=couplings, d=st.floats(0.02, 0.45))
def test_y_2_is_the_second_moment_of_two_layers(
    jd: float, left: float, right: float, d: float
) -> None:
    chain = Chain(2, jd, lam_left=left, lam_right=right)
    point = saddle(chain, d, 2.0)
    psi = exponent(chain, 1 - 2 * d)
    # y phi L: the exponent counts whole columns, phi single neurons.
    assert abs(4 * point.moments.phi - psi.value) <= 4 * point.phi_error + psi.error
    assert point.phi_error < 1e-8


def test_the_papers_misprint_would_show() -> None:
    # 'Phi' for 'y Phi' is off by the factor y: nowhere near the second moment.
    chain, d = Chain(1, 0.1), 0.1
    phi = local_entropy(chain, d, 2).phi.value
    psi = exponent(chain, 1 - 2 * d).value
    assert abs(2 * phi - psi) < 1e-12
    assert abs(phi - psi) > 0.01


# --- no constraint left: J_D -> infinity


@given(d=st.floats(0.01, 0.49), layers=st.sampled_from([1, 2]))
@settings(max_examples=10)
def test_y_2_and_3_without_constraints(d: float, layers: int) -> None:
    """Count y configurations at mutual distance d: for three, one of them is the odd one out."""
    chain = Chain.at_depth(layers, 40.0, 0.3)
    two, three = (saddle(chain, d, y, 1e-9).moments.phi for y in (2.0, 3.0))
    assert 2 * two == pytest.approx(math.log(2) + h_b(d), abs=1e-9)
    odd = 1.5 * d
    assert 3 * three == pytest.approx(math.log(2) + h_b(odd) + odd * math.log(3), abs=1e-9)


@given(d=st.floats(0.02, 0.45), y=st.floats(0.5, 20))
@settings(max_examples=20)
def test_any_y_without_constraints(d: float, y: float) -> None:
    """y phi = extr over qhat of -y qhat/2 + y(1-y) qhat q1/2 + log E (2 cosh sqrt(qhat) t)^y."""
    moments = saddle(Chain(1, 40.0), d, y, 1e-11).moments
    qhat, q1 = float(moments.qhat[0]), 1 - 2 * d
    t = np.linspace(-1, 1, 4001) * (10 + y * math.sqrt(qhat))

    def log_norm(qhat: float) -> float:
        h = np.abs(math.sqrt(qhat) * t)
        exponents = y * (h + np.log1p(np.exp(-2 * h))) - 0.5 * t * t
        top = exponents.max()
        integral = float(np.exp(exponents - top).sum()) * (t[1] - t[0])
        return top + math.log(integral / math.sqrt(2 * math.pi))

    def free(qhat: float) -> float:
        return -y * qhat / 2 + y * (1 - y) * qhat * q1 / 2 + log_norm(qhat)

    assert y * moments.phi == pytest.approx(free(qhat), abs=1e-10 * (1 + y))
    # Stationary in qhat, to second order.
    step = 1e-3 * qhat
    assert (free(qhat + step) - free(qhat - step)) / (2 * step) == pytest.approx(0, abs=1e-4 * y)


# --- symmetries of two layers


@few
@given(jd=st.floats(0, 0.5), d=st.floats(0.02, 0.45), y=st.floats(0.7, 8))
def test_uncoupled_layers_are_cores(jd: float, d: float, y: float) -> None:
    pair, core = saddle(Chain(2, jd, 0), d, y), saddle(Chain(1, jd), d, y)
    for name in ("phi", "internal", "external", "slope"):
        difference = abs(getattr(pair.moments, name) - getattr(core.moments, name))
        error = f"{name}_error"
        assert difference <= getattr(pair, error) + getattr(core, error), name
    assert pair.moments.qhat[0] == pytest.approx(core.moments.qhat[0], abs=1e-7)


@few
@given(
    jd=st.floats(0, 0.3),
    left=couplings,
    right=couplings,
    d=st.floats(0.02, 0.45),
    y=st.floats(1, 6),
)
def test_gauge_and_mirror(jd: float, left: float, right: float, d: float, y: float) -> None:
    qhat = np.array([0.3, 0.7])

    def at(left: float, right: float, qhat: np.ndarray) -> Moments:
        return pair_moments(jd, left, right, d, y, qhat, 1)

    here, gauged, mirrored = (
        at(left, right, qhat),
        at(-left, -right, qhat),
        at(right, left, qhat[::-1]),
    )
    for other in (gauged, mirrored):
        # The pruning and the half that the flip keeps differ: not equal to the last bit.
        assert other.log_norm == pytest.approx(here.log_norm, abs=1e-6)
        assert other.mean_log == pytest.approx(here.mean_log, abs=1e-6)
    assert gauged.one_minus_m2 == pytest.approx(here.one_minus_m2, abs=1e-6)
    assert mirrored.one_minus_m2[::-1] == pytest.approx(here.one_minus_m2, abs=1e-6)
    assert mirrored.force[::-1] == pytest.approx(here.force, abs=1e-5)


def test_gauge_and_mirror_of_the_result() -> None:
    d, y = 0.1, 3
    first = local_entropy(Chain(2, 0.05, lam_left=0.6, lam_right=0.2), d, y)
    flipped = local_entropy(Chain(2, 0.05, lam_left=-0.6, lam_right=-0.2), d, y)
    mirrored = local_entropy(Chain(2, 0.05, lam_left=0.2, lam_right=0.6), d, y)
    for other in (flipped, mirrored):
        for name in ("phi", "internal", "external"):
            a, b = getattr(first, name), getattr(other, name)
            assert abs(a.value - b.value) <= a.error + b.error, name
    one, two = first.qhat
    assert abs(one.value - two.value) > 0.01
    for pair, swapped in ((flipped, False), (mirrored, True)):
        there = pair.qhat[::-1] if swapped else pair.qhat
        for a, b in zip(first.qhat, there, strict=True):
            assert abs(a.value - b.value) <= a.error + b.error


def test_opposite_signs_are_another_chain() -> None:
    # Only the flip of both signs is a gauge transformation.
    values = [
        saddle(Chain(2, 0.05, lam_left=0.4, lam_right=sign * 0.4), 0.1, 2.0).moments.phi
        for sign in (1, -1)
    ]
    assert abs(values[0] - values[1]) > 1e-3


# --- thermodynamics


@given(jd=st.floats(0, 1), d=distances, y=st.floats(0.5, 20))
def test_the_three_entropies_hang_together(jd: float, d: float, y: float) -> None:
    point = saddle(Chain(1, jd), d, y, 1e-11).moments
    assert y * point.phi == pytest.approx(y * point.internal + point.external, abs=1e-11 * (1 + y))
    # d phi/dy = -S_E/y^2
    step = 1e-4 * y
    above, below = (saddle(Chain(1, jd), d, y + k * step, 1e-11).moments.phi for k in (1, -1))
    slope = (above - below) / (2 * step)
    assert slope == pytest.approx(-point.external / y**2, abs=1e-6 / y)
    # d phi/dd at fixed y is the envelope slope.
    step = 1e-4 * d
    above, below = (saddle(Chain(1, jd), d + k * step, y, 1e-11).moments.phi for k in (1, -1))
    assert (above - below) / (2 * step) == pytest.approx(point.slope, abs=2e-6 * (1 + 1e-2 / d))


@pytest.mark.parametrize(("jd", "d"), [(0.1, 0.1), (0.05, 0.01), (0.3, 0.3), (0.0731, 0.02)])
def test_y_star_is_the_minimum_of_phi(jd: float, d: float) -> None:
    chain = Chain(1, jd)
    star = ystar(chain, d)
    y = float(star.y_star)
    beside = [local_entropy(chain, d, y * factor).phi for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2)]
    assert all(phi.value - phi.error > star.internal.value for phi in beside)
    near = [phi.value - float(star.internal) for phi in beside[2:4]]
    assert near[0] == pytest.approx(near[1], rel=0.1)  # quadratic about the minimum
    assert local_entropy(chain, d, y * 0.99).external.value > 0
    assert local_entropy(chain, d, y * 1.01).external.value < 0
    # The second route, S_I itself, gives the same number.
    at_star = local_entropy(chain, d, y)
    difference = abs(at_star.internal.value - star.internal.value)
    assert difference <= at_star.internal.error + star.internal.error + 0.1 * star.y_star.error


# --- values


def test_reference_values_of_the_core() -> None:
    chain = Chain(1, 0.1)
    assert ystar(chain, 0.01).internal.value == pytest.approx(0.0082910548805, abs=1e-13)
    star = ystar(chain, 0.1)
    assert star.internal.value == pytest.approx(0.0290441443991, abs=1e-13)
    assert star.y_star.value == pytest.approx(5.66500628011, abs=1e-10)


class PlainRule:
    """The two-layer averages by equidistant nodes in all four variables and the sum of states."""

    def __init__(self, jd: float, lam: float, d: float) -> None:
        self.jd, self.lam, self.q1 = jd, lam, 1 - 2 * d
        self.sigma = math.sqrt(2 * d)
        self.t = np.arange(-9, 9.01, 0.75)
        self.x = np.linspace(-1, 1, 41) * 5.3 * math.sqrt(self.q1)

    def __call__(self, y: float, qhat: float) -> tuple[float, float, float]:
        """Return G, <log zeta> and <m_1^2>."""
        h = (math.sqrt(qhat) * self.t)[:, None]
        log_weight = -0.5 * self.t[:, None] ** 2 - 0.5 * self.x**2 / self.q1
        log_weight = (log_weight - math.log(np.exp(log_weight).sum())).reshape(-1)
        states: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}
        for s1, s2 in product((1, -1), repeat=2):
            field = self.jd + self.lam * s1 * s2
            one, two = (
                np.exp(s * h + log_P((field + s * self.x) / self.sigma)).reshape(-1)
                for s in (s1, s2)
            )
            states[s1, s2] = one, two
        norm = mean_log = overlap = 0.0
        for start in range(0, log_weight.size, 64):
            rows = slice(start, start + 64)
            terms = {s: one[rows, None] * two for s, (one, two) in states.items()}
            zeta = sum(terms.values())
            m = (terms[1, 1] + terms[1, -1] - terms[-1, 1] - terms[-1, -1]) / zeta
            log_zeta = np.log(zeta)
            weight = np.exp(log_weight[rows, None] + log_weight + y * log_zeta)
            norm += float(weight.sum())
            mean_log += float((weight * log_zeta).sum())
            overlap += float((weight * m * m).sum())
        return math.log(norm), mean_log / norm, overlap / norm


def test_two_layers_against_a_plain_rule() -> None:
    d, lam = 0.1, 0.5
    rule = PlainRule(0.0, lam, d)

    def equations(unknowns: np.ndarray) -> tuple[float, float]:
        y, qhat = unknowns
        log_norm, mean_log, overlap = rule(y, qhat)
        return overlap - rule.q1, log_norm - y * mean_log + y * y * rule.q1 * qhat

    plain = root(equations, [5.0, 0.13], tol=1e-9)
    assert plain.success
    y, qhat = plain.x
    phi = (rule(y, qhat)[0] / y - qhat + (1 - y) * qhat * rule.q1) / 2
    star = ystar(Chain(2, 0, lam), d)
    assert star.internal.value == pytest.approx(phi, abs=1e-6)
    assert star.y_star.value == pytest.approx(y, abs=2e-4)
    assert star.qhat[0].value == pytest.approx(qhat, abs=1e-5)
    # Made by the same plain rule with many more nodes.
    assert star.internal.value == pytest.approx(0.0218732663, abs=1e-10)
    assert star.y_star.value == pytest.approx(5.1311663, abs=1e-7)


# --- nodes


@pytest.mark.parametrize("level", range(FINEST + 1))
@pytest.mark.parametrize(
    ("transitions", "d"),
    [
        ((0.49655864113703907,), 0.00044152730547743885),  # Newton ran to and fro at this one
        ((1.1429575700066144,), 0.0017507264833187806),
        ((0.5521846, 0.4721548), 0.0005507),
        ((0.1,), 1e-5),
        ((0.05,), 0.4),
        ((40.0,), 0.1),
    ],
)
def test_nodes_are_equidistant_in_u(transitions: tuple[float, ...], d: float, level: int) -> None:
    q1 = 1 - 2 * d
    nodes = field_nodes(q1, transitions, STEPS[level])
    assert np.all(np.diff(nodes.at) > 0)
    # Equidistant in u: the weights, exp(-x^2/(2 q1)) du dx/du, must integrate the Gaussian.
    total = np.exp(nodes.log_weight).sum()
    assert total == pytest.approx(1, abs=1e-3 if level < 2 else 1e-6)
    if level >= 4:
        assert total == pytest.approx(1, abs=1e-11)
        mean_square = (np.exp(nodes.log_weight) * nodes.at**2).sum()
        assert mean_square == pytest.approx(q1, abs=1e-10)


def test_finer_rules_do_not_lose_the_saddle() -> None:
    """Where nodes were misplaced, levels 5 and 6 were off by 0.05 in phi."""
    jd, d, y = 0.49655864113703907, 0.00044152730547743885, 1.814759541539224
    model = functional(Chain(1, jd))
    guess = guess_qhat(model, d, y)
    for level in range(3, FINEST + 1):
        moments = solve_saddle(model, d, y, guess, level).moments
        assert moments.phi == pytest.approx(0.17525896573562, abs=1e-9), level


# --- arguments
