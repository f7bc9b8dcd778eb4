"""Local entropy of three or more layers: transfer operator, replicated matrix, sampling, limits."""

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr

from rmtheory import Chain
from rmtheory.annealed import entropy
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from rmtheory.cli import run
from rmtheory.local_entropies import transfer_steps
from rmtheory.local_entropies.core import core_moments
from rmtheory.local_entropies.functional import Moments
from rmtheory.local_entropies.pair import pair_moments
from rmtheory.local_entropies.points import local_entropy, ystar
from rmtheory.local_entropies.replicated import (
    _derivative,
    replicated_chain,
    replicated_entropy,
    replicated_internal,
)
from rmtheory.local_entropies.sampling import sample
from rmtheory.local_entropies.solve import CurveTracker, functional
from rmtheory.local_entropies.transfer_operator import transfer_functional
from rmtheory.local_entropies.transfer_steps import LARGEST_Y, finest_level
from rmtheory.runtime import netcdf
from rmtheory.second_moment.overlap_exponent import exponent

pytestmark = pytest.mark.numerical

SKEW = {"lam_left": 0.3, "lam_right": 0.2}


def skewed(layers: Any, jd: float = 0.05) -> Chain:
    return Chain(layers, jd, **SKEW)


def test_interpolation_and_its_derivative_are_exact_for_polynomials() -> None:
    x = np.linspace(-1, 1, 7)
    values = transfer_steps.points(6) ** 5
    assert transfer_steps.cardinal(x, 6) @ values == pytest.approx(x**5, abs=1e-14)
    slopes = transfer_steps.differentiation(6) @ values
    assert slopes == pytest.approx(5 * transfer_steps.points(6) ** 4, abs=1e-13)


def test_reference_of_three_layers() -> None:
    """Values found independently of this package, by another discretisation."""
    point = local_entropy(Chain(3, 0.05, 0.3), 0.1, 2)
    assert float(point.phi.value) == pytest.approx(0.033885000267, abs=1e-11)
    assert float(point.phi.error) < 1e-8
    assert float(point.internal.value) == pytest.approx(0.003270125, abs=1e-6)
    assert abs(float(point.internal.value) - 0.003270125) < float(point.internal.error) + 1e-8
    assert float(point.internal.error) < 1e-6
    qhat = [float(q.value) for q in point.qhat]
    assert qhat == pytest.approx([0.48260150, 0.47153606, 0.48260150], abs=1e-7)


@pytest.mark.parametrize(("layers", "y"), [(3, 2), (3, 5), (8, 3), ("inf", 4), ("inf", 8)])
def test_operator_and_replicated_matrix_agree(layers: Any, y: int) -> None:
    exact = replicated_entropy(skewed(layers), 0.1, y)
    qhat = np.array([float(q.value) for q in exact.qhat])
    moments = transfer_functional(exact.chain).moments(0.1, float(y), qhat, 3)
    assert moments.phi == pytest.approx(float(exact.phi.value), abs=1e-13)
    assert moments.one_minus_m2 == pytest.approx(0.2, abs=1e-12)


def test_replicated_matrix_agrees_with_the_sum_over_all_replicas() -> None:
    """Three layers, three replicas: 2^9 states, each a product of one-dimensional integrals."""
    chain, d, y, qhat = skewed(3), 0.1, 3, np.array([0.3, 0.2, 0.25])
    z = np.linspace(-9, 9, 2001)
    weight = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    x, sigma = math.sqrt(1 - 2 * d) * z, math.sqrt(2 * d)
    columns = list(product((1, -1), repeat=3))
    p = {
        (s, a, b): ndtr(
            (chain.jd + chain.lam_left * a * s + chain.lam_right * s * b + s * x) / sigma
        )
        for s in (1, -1)
        for a in (1, 0, -1)
        for b in (1, 0, -1)
    }
    total = 0.0
    for replicas in product(columns, repeat=y):
        term = 1.0
        for k in range(3):
            factor = weight.copy()
            for column in replicas:
                a, b = (column[k - 1] if k else 0), (column[k + 1] if k < 2 else 0)
                factor *= p[column[k], a, b]
            spin = sum(column[k] for column in replicas)
            term *= factor.sum() * math.exp(0.5 * qhat[k] * (spin**2 - y**2))
        total += term
    norm, _ = replicated_chain(chain, d, y, 3).norm(qhat)
    assert norm == pytest.approx(math.log(total), abs=1e-12)


def test_every_average_is_that_of_the_two_layer_code() -> None:
    qhat = np.array([0.3, 0.28])
    ours = transfer_functional(skewed(2)).moments(0.1, 5.3, qhat, 3, tangent=True)
    theirs = pair_moments(0.05, 0.3, 0.2, 0.1, 5.3, qhat, 3, tangent=True)
    for name in ("phi", "internal", "external", "slope"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), abs=2e-8), name
    assert ours.one_minus_m2 == pytest.approx(theirs.one_minus_m2, abs=1e-9)
    assert ours.ystar_jacobian() == pytest.approx(theirs.ystar_jacobian(), rel=1e-5, abs=1e-6)
    assert ours.internal_gradient() == pytest.approx(theirs.internal_gradient(), rel=1e-5)


@pytest.mark.parametrize("layers", [1, 3, "inf"])
def test_without_coupling_every_layer_is_a_core(layers: Any) -> None:
    core = core_moments(0.05, 0.1, 5.3, np.array([0.3]), 3, tangent=True)
    size = 1 if layers == "inf" else layers
    chain = Chain(layers, 0.05, 0)
    deep = transfer_functional(chain).moments(0.1, 5.3, np.full(size, 0.3), 3, tangent=True)
    for name in ("phi", "internal", "external", "slope"):
        assert getattr(deep, name) == pytest.approx(getattr(core, name), abs=1e-9), name
    assert deep.one_minus_m2 == pytest.approx(core.one_minus_m2[0], abs=1e-9)
    overlaps = deep.saddle_jacobian()
    assert overlaps == pytest.approx(np.diag(np.full(size, core.saddle_jacobian()[0, 0])), abs=1e-6)


@pytest.mark.parametrize("layers", [3, 5, "inf"])
def test_one_replica_is_the_annealed_entropy(layers: Any) -> None:
    size = 1 if layers == "inf" else layers
    moments = transfer_functional(skewed(layers)).moments(0.1, 1.0, np.full(size, 0.5), 2)
    assert moments.phi == pytest.approx(float(entropy(skewed(layers)).value), abs=1e-12)


def test_averages_pass_smoothly_through_one_replica() -> None:
    def rest(y: float) -> Any:
        return transfer_functional(skewed(3)).moments(0.1, y, np.full(3, 0.5), 3).one_minus_m2

    outside = [rest(1 + e) for e in (-3e-3, -1e-3, 1e-3, 3e-3)]
    inside = sum(w * r for w, r in zip((-1, 9, 9, -1), outside, strict=True)) / 16
    assert rest(1.0) == pytest.approx(inside, abs=1e-8)


def test_two_replicas_are_the_second_moment() -> None:
    """y phi at y = 2 is the exponent of pairs at overlap q1 in all layers, here for L = 3."""
    chain = Chain(3, 0.05, 0.3)
    point = local_entropy(chain, 0.1, 2)
    psi = float(exponent(chain, 0.8).value)
    assert 3 * 2 * float(point.phi.value) == pytest.approx(psi, abs=1e-12)


@pytest.mark.parametrize(("layers", "y"), [(3, 2.0), (3, 6.3), (5, 3.5)])
def test_sampling_agrees_within_its_errors(layers: int, y: float) -> None:
    qhat = np.full(layers, 0.6 / y)
    sampled = sample(skewed(layers), 0.1, y, qhat, seed=1)
    moments = transfer_functional(skewed(layers)).moments(0.1, y, qhat, 3)
    for estimate, value in (
        (sampled.phi, moments.phi),
        (sampled.internal, moments.internal),
        *zip(sampled.one_minus_m2, moments.one_minus_m2, strict=True),
    ):
        assert 0 < float(estimate.error) < 0.02
        assert abs(float(estimate.value) - value) < 4 * float(estimate.error)


def test_sampling_is_reproducible_and_refuses() -> None:
    qhat = np.full(3, 0.3)
    one, two = (sample(skewed(3), 0.1, 2.0, qhat, seed=5, points=64) for _ in range(2))
    assert one == two
    with pytest.raises(InvalidInputError, match="layers must be at most 8"):
        sample(skewed("inf"), 0.1, 2.0, qhat, seed=5)


def direct(chain: Chain, d: float, y: float, qhat: np.ndarray, nodes: int) -> float:
    """G' of three layers by Gauss-Hermite points in all six dimensions."""
    t, w = np.polynomial.hermite_e.hermegauss(nodes)
    w = w / w.sum()
    weight = np.multiply.outer(w, w).ravel()
    sigma, x = math.sqrt(2 * d), math.sqrt(1 - 2 * d) * t
    total = np.zeros((weight.size,) * 3)
    for s1, s2, s3 in product((1, -1), repeat=3):
        rows = []
        for k, (a, s, b) in enumerate(((0, s1, s2), (s1, s2, s3), (s2, s3, 0))):
            v = chain.jd + s * (chain.lam_left * a + chain.lam_right * b)
            # The tilt moves t by +-y sqrt(qhat): too far for the points, unless y is small.
            log_row = np.add.outer(math.sqrt(qhat[k]) * s * t, log_ndtr((v + s * x) / sigma))
            rows.append(np.exp(log_row).ravel())
        total += np.einsum("i,j,k->ijk", *rows)
    return math.log(np.einsum("ijk,i,j,k->", total**y, weight, weight, weight, optimize=True))


def test_real_y_agrees_with_direct_quadrature_in_six_dimensions() -> None:
    """A short rule suffices at a large distance and a small y."""
    chain, d, y, qhat = skewed(3), 0.4, 1.5, np.array([0.1, 0.12, 0.1])
    values = [direct(chain, d, y, qhat, nodes) for nodes in (10, 13)]
    error = abs(values[1] - values[0])
    moments = transfer_functional(chain).moments(d, y, qhat, 4)
    ours = moments.log_norm + 0.5 * y * y * qhat.sum()
    assert error < 1e-6
    assert abs(ours - values[1]) < 3 * error + 1e-8


@pytest.mark.parametrize("layers", [3, "inf"])
def test_gradient_slope_and_hessian_are_derivatives(layers: Any) -> None:
    """Differences of the discretised averages themselves."""
    size = 1 if layers == "inf" else layers
    chain, d, y, qhat, e = skewed(layers), 0.08, 4.3, np.linspace(0.3, 0.34, size), 1e-4

    def at(dy: float = 0.0, dq: float = 0.0, dd: float = 0.0, tangent: bool = False) -> Moments:
        moved = qhat + dq * np.eye(size)[0]
        return transfer_functional(chain).moments(d + dd, y + dy, moved, 3, tangent)

    def slope(name: str, **step: float) -> Any:
        up, down = (at(**{k: sign * v for k, v in step.items()}) for sign in (1, -1))
        return (getattr(up, name) - getattr(down, name)) / (2 * e)

    here = at(tangent=True)
    assert here.tangent is not None
    pairs = y * (y - 1)
    assert slope("log_norm", dy=e) == pytest.approx(here.mean_log, abs=1e-6)
    assert slope("log_norm", dq=e) == pytest.approx(-0.5 * pairs * here.one_minus_m2[0], abs=1e-6)
    force = pairs * here.forces.sum()  # dq1 = -2 dd
    assert slope("log_norm", dd=e) == pytest.approx(-force, rel=1e-5)
    assert slope("one_minus_m2", dy=e) == pytest.approx(-here.tangent.overlap_y, abs=1e-6)
    assert slope("one_minus_m2", dq=e) == pytest.approx(-here.tangent.overlap_q[:, 0], abs=1e-6)
    assert slope("mean_log", dy=e) + qhat.sum() == pytest.approx(here.tangent.mean_log_y, abs=1e-5)


def test_symmetries() -> None:
    """Both signs reversed, and left exchanged with right (the layers are read backwards)."""
    qhat = np.array([0.3, 0.25, 0.35])
    here = transfer_functional(skewed(3)).moments(0.1, 4.3, qhat, 3)
    negative = Chain(3, 0.05, lam_left=-0.3, lam_right=-0.2)
    mirrored = Chain(3, 0.05, lam_left=0.2, lam_right=0.3)
    assert transfer_functional(negative).moments(0.1, 4.3, qhat, 3).phi == pytest.approx(
        here.phi, abs=1e-13
    )
    back = transfer_functional(mirrored).moments(0.1, 4.3, qhat[::-1], 3)
    assert back.phi == pytest.approx(here.phi, abs=1e-9)
    assert back.one_minus_m2[::-1] == pytest.approx(here.one_minus_m2, abs=1e-8)


def test_long_chains_tend_to_the_infinite_one() -> None:
    """phi_L = phi_inf + c/L + exponentially small terms, at the saddle of integer y."""
    values = {
        L: float(replicated_entropy(Chain(L, 0.0, 0.5), 0.1, 5).phi.value) for L in (4, 8, 12)
    }
    infinite = float(replicated_entropy(Chain("inf", 0.0, 0.5), 0.1, 5).phi.value)
    corrections = [L * (value - infinite) for L, value in values.items()]
    assert corrections[0] < 0
    assert corrections[2] == pytest.approx(corrections[1], rel=1e-4)
    assert abs(corrections[2] - corrections[1]) < 0.2 * abs(corrections[1] - corrections[0])


def test_ystar_is_the_least_phi_over_y() -> None:
    """The replicated matrix at integer y around y* brackets S_I* from above."""
    point = ystar(Chain("inf", 0.0, 0.5), 0.1, check_zeros=False)
    y = float(point.y_star.value)
    assert y == pytest.approx(8.41080, abs=1e-4)
    integers = np.arange(3, 17)
    chain = point.chain
    phis = [float(replicated_entropy(chain, 0.1, int(k)).phi.value) for k in integers]
    # Interpolation through the exact values at integers: no operator involved.
    fit = np.polynomial.Polynomial.fit(np.log(integers), phis, integers.size - 1)
    least = min(fit(np.log(np.linspace(7, 10, 30001))))
    assert float(point.internal.value) == pytest.approx(least, abs=1e-8)
    assert min(phis) > float(point.internal.value)


def test_s_i_of_the_replicated_matrix_is_the_same_every_time() -> None:
    """An interpolation that shuffled its points gave other last digits at every call."""
    point = replicated_entropy(skewed(3), 0.1, 3)
    first, again = replicated_internal(point), replicated_internal(point)
    assert (first.value, first.error) == (again.value, again.error)
    # Where y is no node of the shorter fit, as at the largest y, the same formula holds.
    x = np.linspace(0.1, 1.3, 9)
    for at in (x[4], 0.77):
        assert _derivative(x, np.exp(x), at) == pytest.approx(math.exp(at), rel=1e-8)


def test_out_of_reach_is_said() -> None:
    limit = "can be computed up to y = 33, integer y up to 40 by the replicated matrix"
    with pytest.raises(NotConvergedError, match=f"y = 35.5 is too large .*{limit}"):
        local_entropy(Chain("inf", 0.05, 0.3), 0.1, 35.5)
    with pytest.raises(NotConvergedError, match=f"at y = 60 would need .*{limit}"):
        transfer_functional(Chain("inf", 0.05, 0.3)).moments(0.1, 60.0, np.array([0.1]), 1)
    assert finest_level(LARGEST_Y) == 2
    assert finest_level(LARGEST_Y + 1) < 2


def test_a_walk_towards_too_large_a_ystar_ends_before_it() -> None:
    """From two points of the curve at lambda = 0.5; no operator is needed to see it."""
    tracker = CurveTracker(functional(Chain("inf", 0.0, 0.5)))
    tracker.add(0.2, 11.42, np.array([0.05]))
    tracker.add(0.3, 17.94, np.array([0.03]))
    with pytest.raises(NotConvergedError, match=r"is 17.9 at d = 0.3 and passes 33 at d = 0.42"):
        tracker.solve(0.45, 1e-8)


@pytest.mark.parametrize("y", [1, 2.5, 41, True])
def test_replicated_matrix_wants_an_integer(y: Any) -> None:
    with pytest.raises(InvalidInputError, match="y must be an integer from 2 to 40"):
        replicated_entropy(skewed(3), 0.1, y)


def test_commands(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run(
        [
            "local-entropy",
            "--layers",
            "inf",
            "--jd",
            ".05",
            "--lam",
            ".3",
            "--d",
            ".1",
            "--y",
            "2",
            "--method",
            "replicated",
        ]
    )
    assert "0.04285141022353" in capsys.readouterr().out
    target = tmp_path / "curve.nc"
    words = "curve --layers 3 --jd 0 --lam .5 --d-min .09 --d-max .1 --points 2 --out"
    run([*words.split(), str(target), "--plot", str(tmp_path / "curve.png")])
    data = netcdf.load(target)
    assert data["internal"].values[1] == pytest.approx(0.0248332286, abs=1e-8)
    assert data["qhat"].shape == (2, 3)
    assert not data.isnull().to_array().any()
    assert (tmp_path / "curve.png").stat().st_size > 10_000
    wrong = "local-entropy --layers 3 --jd .05 --lam .3 --d .1 --y 2 --method guess"
    assert run(wrong.split()) == 2
    assert "method must be integral or replicated" in capsys.readouterr().err
