"""Replica-symmetric functional, its second order, and the paper's printed forms, exactly."""

from __future__ import annotations

import pytest
import sympy as sp

from rmtheory.symbolic import (
    annealed,
    replica,
    stability,
)
from rmtheory.symbolic import (
    replica as expansion,
)
from rmtheory.symbolic import (
    stability as averages,
)
from rmtheory.symbolic import (
    stability as paper,
)
from rmtheory.symbolic.definitions import H, J, P, identical, lam, lambda_L, lambda_R, n, q, qhat, v
from rmtheory.symbolic.replica import chain_measure
from rmtheory.symbolic.topics import coefficient_in_P

SAME = {lambda_L: lam, lambda_R: lam}


# --- the functional --------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3, 4])
def test_coupling_of_the_replicas_is_a_square(count: int) -> None:
    pairs, square, expanded = replica.coupling_exponent(count)
    assert sp.expand(pairs - expanded) == 0
    assert sp.expand(pairs - square) != 0  # it takes s^2 = 1


@pytest.mark.parametrize(("layers", "count"), [(1, 2), (1, 3), (2, 2)])
def test_replicas_factorise_at_fixed_fields(layers: int, count: int) -> None:
    power = replica.zeta(layers) ** count
    assert sp.expand(replica.replicated_sum(layers, count) - power) == 0


def test_replica_limit() -> None:
    w, one, two = sp.symbols("w zeta_1 zeta_2", positive=True)
    _, limit = replica.replica_limit()
    assert sp.expand(limit - w * sp.log(one) - (1 - w) * sp.log(two)) == 0
    assert sp.expand(replica.energy_per_layer() - qhat * (q - 1) / 2) == 0


def test_zeta_is_the_printed_one_for_one_and_two_layers() -> None:
    at = replica.order_parameters(2)
    (q1, q2), (k1, k2), (t1, t2), (z1, z2) = at.q, map(sp.sqrt, at.qhat), at.t, at.z

    def site(sign_of_lambda: int, coupling: sp.Expr, z: sp.Expr, overlap: sp.Expr) -> sp.Expr:
        return P((J + sign_of_lambda * coupling + z * sp.sqrt(overlap)) / sp.sqrt(1 - overlap))

    # With +lambda_R in the second line, printed as "-J_D/lambda_R" (erratum 11).
    printed = (
        sp.exp(-k1 * t1 - k2 * t2) * site(1, lambda_R, -z1, q1) * site(1, lambda_L, -z2, q2)
        + sp.exp(-k1 * t1 + k2 * t2) * site(-1, lambda_R, -z1, q1) * site(-1, lambda_L, z2, q2)
        + sp.exp(k1 * t1 - k2 * t2) * site(-1, lambda_R, z1, q1) * site(-1, lambda_L, -z2, q2)
        + sp.exp(k1 * t1 + k2 * t2) * site(1, lambda_R, z1, q1) * site(1, lambda_L, z2, q2)
    )
    assert sp.expand(replica.zeta(2) - printed, power_exp=True) == 0

    one = replica.order_parameters(1)
    (overlap,), (k,), (t,), (z,) = one.q, map(sp.sqrt, one.qhat), one.t, one.z
    single = sp.exp(k * t) * site(0, J, z, overlap) + sp.exp(-k * t) * site(0, J, -z, overlap)
    assert sp.expand(replica.zeta(1) - single) == 0


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
def test_the_annealed_saddle_is_inside(layers: int) -> None:
    at = replica.order_parameters(layers)
    zeta = replica.zeta(layers).subs(dict.fromkeys((*at.q, *at.qhat), 0))
    assert identical(zeta, annealed.partition_sum(layers))


# --- the second order ------------------------------------------------------------------------


def test_taylor_expansion_of_one_factor() -> None:
    """The same derivatives, taken of the error function instead of P."""
    polynomial, (b, overlap), r = expansion.taylor_of_P()
    eps = sp.Symbol("eps", real=True)
    argument = (v + eps * b) / sp.sqrt(1 - eps**2 * overlap)
    function = P(argument).rewrite(sp.erfc)
    graded = polynomial.subs({b: eps * b, overlap: eps**2 * overlap})
    expected = sp.Poly(sp.expand(sp.expand(graded) * P(v)).subs(r, n(v) / P(v)), eps)
    for order in range(5):
        derivative = sp.diff(function, eps, order).subs(eps, 0) / sp.factorial(order)
        coefficient = expected.coeff_monomial(eps**order)
        written = coefficient.rewrite(sp.erfc).subs(n(v), n(v).rewrite(sp.exp))
        assert sp.expand(derivative - written) == 0


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_linear_terms_cancel(layers: int) -> None:
    at = replica.order_parameters(layers)
    form = sp.Poly(expansion.quadratic_form(layers), *at.q, *at.qhat)
    assert {sum(powers) for powers in form.monoms()} == {2}


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_second_order_form_is_that_of_C_D_E(layers: int) -> None:
    """Layer-dependent q_l, qhat_l; an identity of polynomials in all the w, v and r."""
    general = stability.general_matrices(layers).form(layers)
    assert sp.expand(expansion.quadratic_form(layers) - general) == 0


def test_comparison_with_C_D_E_can_fail() -> None:
    general = stability.general_matrices(2)
    transposed = stability.GeneralMatrices(general.C, general.D.T, general.E)
    assert sp.expand(expansion.quadratic_form(2) - transposed.form(2)) != 0


def coefficient_matrix(layers: int) -> sp.Matrix:
    r"""Return M of L S_rs = log z + (1/4) q^T M q, from the derived form and its stationary qhat.

    Q is quadratic, so where dQ/dqhat = 0 it equals (1/2) q . dQ/dq, and M q = 2 dQ/dq there.
    """
    at, form = replica.order_parameters(layers), stability.quadratic_form(layers)
    stationary = dict(zip(at.qhat, stability.eliminate(layers).qhat, strict=True))
    gradient = [sp.diff(form, x).subs(stationary) for x in at.q]
    return 2 * sp.Matrix(gradient).jacobian(at.q)


@pytest.mark.parametrize("layers", [1, 2])
def test_elimination_gives_M(layers: int) -> None:
    derived, formula = coefficient_matrix(layers), stability.general_matrices(layers).M()
    assert identical(derived, formula)


def test_displayed_matrices_are_the_derived_ones() -> None:
    shown = averages.matrices_in_averages()
    back = {averages.w_minus: 1 - averages.w_plus}
    general = stability.general_matrices(2)
    for name in "CDE":
        assert identical(getattr(shown, name).subs(back), getattr(general, name))
    assert identical(shown.M.subs(back), general.M())


# --- the paper, L = 1 ------------------------------------------------------------------------


def _second_order_L1() -> sp.Expr:
    form = expansion.quadratic_form(1).subs(replica.uniform(1))
    return sp.log(annealed.partition_sum(1)) + form.subs(chain_measure(1).values())


def test_printed_second_order_L1() -> None:
    assert identical(_second_order_L1(), paper.second_order_L1())


def test_printed_saddle_L1_is_a_maximum() -> None:
    (solution,) = stability.eliminate_uniform(1).qhat
    assert identical(solution.subs(chain_measure(1).values()), paper.saddle_L1())
    # The paper says minimum (erratum 9).
    assert sp.diff(_second_order_L1(), qhat, 2) == -sp.Rational(1, 2)


def test_printed_eliminated_L1_with_its_q2_restored() -> None:
    derived = sp.log(annealed.partition_sum(1)) + stability.coefficient(1) * q**2
    assert identical(derived, paper.eliminated_L1())
    assert not identical(derived, paper.eliminated_L1(corrected=False))


def test_coefficient_L1() -> None:
    r = n(J) / P(J)
    assert identical(stability.coefficient(1), ((1 - r**2) ** 2 - J**2 * r**2) / 4)
    factors = stability.coefficient_L1()
    symbol = sp.Symbol("r", positive=True)
    assert sp.expand(factors - ((1 - symbol**2) ** 2 - J**2 * symbol**2) / 4) == 0


# --- the paper, L = 2 ------------------------------------------------------------------------


def test_printed_ratio_L2() -> None:
    z = annealed.partition_sum(2).subs(SAME)
    derived = sp.log(z) / 2 + stability.coefficient(2) * q**2
    assert identical(derived, paper.eliminated_L2())


@pytest.mark.parametrize("changed", [0, 9, 20, 33])
def test_one_changed_term_of_A_is_seen(changed: int) -> None:
    terms = list(paper.A_terms())
    assert len(terms) == 34
    terms[changed] = -terms[changed]
    assert not identical(stability.coefficient(2), sp.Add(*terms) / paper.B())


def test_dropped_term_of_A_is_seen() -> None:
    assert not identical(stability.coefficient(2), sp.Add(*paper.A_terms()[:-1]) / paper.B())


def compact_L2() -> sp.Expr:
    r"""Coefficient of q^2 in S_rs for L = 2 and lambda_L = lambda_R, by averages over tau.

    .. math:: \frac14\Big[\frac{(1-\langle r\rangle^2-\langle\tau r\rangle^2)^2}
        {1+\langle\tau\rangle^2} - \langle v r\rangle^2 - \langle\tau r^2\rangle^2\Big]
    """
    measure = chain_measure(2)

    def mean(of_tau: dict[int, sp.Expr]) -> sp.Expr:
        return measure.average(lambda _spins, taus: of_tau[taus[0]])

    signs = (1, -1)
    r = {s: measure.ratio[0, (s,)] for s in signs}
    field = {s: measure.field[0, (s,)] for s in signs}
    tau = {s: sp.Integer(s) for s in signs}
    top = 1 - mean(r) ** 2 - mean({s: s * r[s] for s in signs}) ** 2
    return (
        top**2 / (1 + mean(tau) ** 2)
        - mean({s: field[s] * r[s] for s in signs}) ** 2
        - mean({s: s * r[s] ** 2 for s in signs}) ** 2
    ) / 4


def test_compact_form_of_the_ratio() -> None:
    compact = stability.in_couplings(compact_L2(), 2, same_lambda=True)
    assert identical(compact, paper.A() / paper.B())
    assert identical(compact, stability.coefficient(2))


@pytest.mark.parametrize("layers", [1, 2])
def test_displayed_coefficient_is_the_derived_one(layers: int) -> None:
    assert identical(coefficient_in_P(layers), stability.coefficient(layers))


def test_lambda_zero_is_one_layer() -> None:
    decoupled = stability.coefficient(2).subs(lam, 0)
    assert identical(decoupled, stability.coefficient(1))


def test_uniform_elimination_needs_equal_couplings() -> None:
    """With lambda_L = lambda_R uniform q has uniform qhat; otherwise the layers differ."""
    at, free = replica.order_parameters(2), stability.eliminate(2)
    (uniform,) = stability.eliminate_uniform(2).qhat
    equal_q = dict.fromkeys(at.q, q)
    for same_lambda in (True, False):
        one, two, restricted = (
            stability.in_couplings(x.subs(equal_q), 2, same_lambda=same_lambda)
            for x in (*free.qhat, uniform)
        )
        assert identical(one, restricted) is same_lambda
        assert identical(two, restricted) is same_lambda


def test_H_is_the_tail_function() -> None:
    assert H(-J - lam) == P(J + lam)
    assert H(lam - J) == P(J - lam)
