"""The derivations are exact: identities are shown by algebra, never by sampling numbers."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import pytest
import sympy as sp

from rmtheory.annealed import mean_number
from rmtheory.symbolic import annealed
from rmtheory.symbolic import annealed as spectrum
from rmtheory.symbolic.definitions import (
    J,
    P,
    gaussian_mean,
    h,
    identical,
    lam,
    lambda_L,
    lambda_R,
    linearised_square,
    n,
    numerator,
    shifted_symbols,
    shifted_theta_average,
    theta_average,
    v,
)

LAYERS = range(2, 7)


# --- the Gaussian step -----------------------------------------------------------------------


@pytest.mark.parametrize("spin", [1, -1])
def test_average_of_one_condition_is_P(spin: int) -> None:
    as_erf = P(v).rewrite(sp.erfc).rewrite(sp.erf)
    assert sp.expand(theta_average(spin) - as_erf) == 0


@pytest.mark.parametrize("spin", [1, -1])
def test_average_of_one_condition_with_a_shifted_field(spin: int) -> None:
    m, sigma = shifted_symbols()
    as_erf = P((v + spin * m) / sigma).rewrite(sp.erfc).rewrite(sp.erf)
    assert sp.simplify(shifted_theta_average(spin) - as_erf) == 0


def test_P_and_n_have_the_derivatives_of_what_they_stand_for() -> None:
    written_out = {P: P(v).rewrite(sp.erfc), n: n(v).rewrite(sp.exp)}
    for kind, expression in written_out.items():
        derivative = sp.diff(kind(v), v).rewrite(sp.exp)
        assert sp.simplify(sp.diff(expression, v) - derivative) == 0


def test_hubbard_stratonovich() -> None:
    k, integral = linearised_square()
    assert integral == sp.exp(k**2 / 2)
    # The moments generate the same function.
    series = sp.series(integral, k, 0, 9).removeO()
    assert (
        sp.expand(
            series - sum(k**p * gaussian_mean(h**p, (h,)) / sp.factorial(p) for p in range(9))
        )
        == 0
    )


# --- from the count to the partition sum ------------------------------------------------------


@pytest.mark.parametrize("sites", [2, 3, 4])
def test_fields_are_independent_with_variance_sigma_N(sites: int) -> None:
    assert annealed.field_covariance(sites) == sp.eye(sites) * sp.Rational(sites - 1, sites)


@pytest.mark.parametrize(("layers", "sites"), [(1, 1), (1, 5), (2, 2), (2, 3), (3, 2)])
def test_sum_over_all_configurations_factorises(layers: int, sites: int) -> None:
    power = annealed.partition_sum(layers) ** sites
    assert sp.expand(annealed.mean_count(layers, sites) - power) == 0


def test_paper_shallow_networks() -> None:
    assert annealed.partition_sum(1) == 2 * P(J)
    printed = 2 * (P(J + lambda_R) * P(J + lambda_L) + P(J - lambda_R) * P(J - lambda_L))
    assert identical(annealed.partition_sum(2), printed)


@pytest.mark.parametrize("layers", [1, *LAYERS])
def test_gauge_reduction_drops_one_spin(layers: int) -> None:
    weight = annealed.gauge_weight(layers)
    assert not weight.has(sp.Symbol("s_1", integer=True))
    assert sp.expand(annealed.gauge_sum(layers) - annealed.partition_sum(layers)) == 0


@pytest.mark.parametrize("layers", LAYERS)
def test_transfer_matrices_give_the_sum_over_columns(layers: int) -> None:
    z = annealed.partition_sum(layers)
    assert identical(annealed.transfer().partition(layers), z)
    assert identical(annealed.paper_transfer(layers), z)


def test_transfer_comparison_can_fail() -> None:
    chain = annealed.transfer()
    transposed = annealed.Transfer(chain.a, chain.K.T, chain.b)
    assert not identical(transposed.partition(3), annealed.partition_sum(3))


# --- the numerical routes are the derived ones ------------------------------------------------


class SymbolicArithmetic:
    """sympy numbers for the routes; the sign tests are answered in a given order."""

    def __init__(self, *signs: bool) -> None:
        self.signs = list(signs)

    def number(self, x: Fraction | int) -> Any:
        return sp.Rational(Fraction(x).numerator, Fraction(x).denominator)

    def P(self, x: Any) -> Any:
        return P(x)

    def n(self, x: Any) -> Any:
        return n(x)

    def exp(self, x: Any) -> Any:
        return sp.exp(x)

    def log(self, x: Any) -> Any:
        return sp.log(x)

    def sqrt(self, x: Any) -> Any:
        return sp.sqrt(x)

    def expm1(self, x: Any) -> Any:
        return sp.exp(x) - 1

    def log1p(self, x: Any) -> Any:
        return sp.log(1 + x)

    def negative(self, x: Any) -> bool:
        return self.signs.pop(0)


@pytest.mark.parametrize("layers", [1, *LAYERS])
@pytest.mark.parametrize(
    "route", [mean_number.brute_force, mean_number.transfer_4x4, mean_number.transfer_2x2]
)
def test_numerical_routes_are_the_derived_sum(layers: int, route: Any) -> None:
    assert identical(route(layers, J, lambda_L, lambda_R, P), annealed.partition_sum(layers))


@pytest.mark.parametrize("signs", list(product((True, False), repeat=2)))
@pytest.mark.parametrize("layers", [1, 2, 3, 4, 5])
def test_eigenvalue_route_is_the_derived_sum(layers: int, signs: tuple[bool, bool]) -> None:
    closed = mean_number.eigenvalues(layers, J, lambda_L, lambda_R, SymbolicArithmetic(*signs))
    assert identical(closed, annealed.partition_sum(layers))


@pytest.mark.parametrize("sign", [True, False])
def test_eigenvalue_route_of_the_infinite_chain(sign: bool) -> None:
    route = mean_number.log_leading_eigenvalue(J, lambda_L, lambda_R, SymbolicArithmetic(sign))
    route_eigenvalue, derived = route.args[0], spectrum.limit_entropy().args[0]
    # Both are (A + D + 2R)/2 with R > 0: equal if their squared distances from (A + D)/2 are.
    trace = annealed.transfer().K.trace()
    assert identical((2 * route_eigenvalue - trace) ** 2, (2 * derived - trace) ** 2)


# --- eigenvalues, closed form for every L, limit ----------------------------------------------


def test_projectors_prove_the_closed_form_for_every_L() -> None:
    s, K = spectrum.spectrum(), spectrum.symbolic_matrix()
    one = sp.eye(2)
    # 1 = p_+ + p_- and K p = mu p, so K^m = mu_+^m p_+ + mu_-^m p_- for every m >= 0.
    assert identical(s.projector_plus + s.projector_minus, one)
    assert identical(K * s.projector_plus, s.plus * s.projector_plus)
    assert identical(K * s.projector_minus, s.minus * s.projector_minus)


@pytest.mark.parametrize("layers", LAYERS)
def test_closed_form_is_the_matrix_power(layers: int) -> None:
    a = sp.Matrix([spectrum.a_plus, spectrum.a_minus])
    b = sp.Matrix([spectrum.b_plus, spectrum.b_minus])
    power = (a.T * spectrum.symbolic_matrix() ** (layers - 2) * b)[0, 0]
    assert identical(spectrum.spectrum().partition(layers), 2 * power)


def test_conditions_of_the_limit() -> None:
    s = spectrum.spectrum()
    A, B, C, D = spectrum.A, spectrum.B, spectrum.C, spectrum.D
    # |mu_-| < mu_+: their sum and difference are positive.
    assert identical(s.plus + s.minus, A + D)
    # The difference is the positive root of a positive number.
    assert (s.plus - s.minus).subs({A: 2, B: 1, C: 1, D: 1}) > 0
    assert identical((s.plus - s.minus) ** 2, (A - D) ** 2 + 4 * B * C)
    # c_+ > 0: A - mu_- and D - mu_- have a positive sum and a positive product.
    assert identical((A - s.minus) + (D - s.minus), s.plus - s.minus)
    assert identical((A - s.minus) * (D - s.minus), B * C)


def test_limit_of_infinitely_many_layers() -> None:
    limits = [spectrum.entropy_of_large_chain(sign)[1] for sign in (1, -1)]
    assert limits == [sp.log(sp.Symbol("mu_+", positive=True))] * 2
    # Without couplings between the layers the chain is L copies of one layer.
    at_zero = spectrum.limit_entropy().subs({lambda_L: 0, lambda_R: 0})
    assert at_zero == sp.log(2 * P(J))


# --- the comparison itself --------------------------------------------------------------------


def test_identical_knows_the_exponentials() -> None:
    assert identical(sp.exp(-((J + lam) ** 2)), 2 * sp.pi * n(J + lam) ** 2)
    assert identical(sp.exp(4 * J * lam - (J + lam) ** 2), sp.exp(-((J - lam) ** 2)))
    assert not identical(sp.exp(-((J + lam) ** 2)), sp.exp(-((J - lam) ** 2)))


def test_identical_knows_logarithms_and_roots() -> None:
    assert identical(sp.log(2 * P(J) ** 2), sp.log(2) + 2 * sp.log(P(J)))
    assert not identical(sp.log(2 * P(J)), sp.log(P(J)))
    root = sp.sqrt(P(J) + P(lam))
    assert identical((1 + root) * (1 - root), 1 - P(J) - P(lam))
    assert not identical(root, -root)


def test_identical_compares_matrices_by_entry() -> None:
    assert identical(sp.Matrix([P(J), 1]), sp.Matrix([P(J), 1]))
    assert not identical(sp.Matrix([P(J), 1]), sp.Matrix([P(J), 2]))
    assert not identical(sp.Matrix([P(J), 1]), sp.Matrix([[P(J), 1]]))


def test_difference_is_reported() -> None:
    assert numerator(P(J) + 1, P(J)) == 1


def test_what_is_not_rational_in_its_atoms_is_refused() -> None:
    with pytest.raises(ValueError, match="not a rational function"):
        identical(sp.sin(J), J)
