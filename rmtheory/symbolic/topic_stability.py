"""Derivation of the stability of q = qhat = 0: second-order form and elimination of qhat."""

from __future__ import annotations

import sympy as sp

from rmtheory.symbolic import annealed, averages, paper, stability
from rmtheory.symbolic.definitions import Expr, J, P, lam, lambda_L, lambda_R, q, v
from rmtheory.symbolic.derivation import Check, Derivation, Formula, Step
from rmtheory.symbolic.exact import identical
from rmtheory.symbolic.expansion import quadratic_form, taylor_of_P
from rmtheory.symbolic.measure import chain_measure
from rmtheory.symbolic.replica import order_parameters, uniform
from rmtheory.symbolic.topic_annealed import COUPLINGS


def derive_stability(layers: int | float) -> Derivation:
    """Second-order form of S_rs about q = qhat = 0, and its sign, for L = 1 or 2."""
    count = int(layers)
    steps = (*_common_steps(count), *(_steps_L1() if count == 1 else _steps_L2()))
    checks = _checks_L1() if count == 1 else _checks_L2()
    return Derivation("stability", count, steps, checks, _formulas(count))


def _common_steps(layers: int) -> list[Step]:
    taylor, _, _ = taylor_of_P()
    b, overlap = sp.Symbol("b"), sp.Symbol("q")
    at, measure = order_parameters(layers), chain_measure(layers)
    values = measure.values() if layers == 1 else averages.values_L2()

    def listed(title: str, reason: str, symbols: list[Expr]) -> Step:
        if len(symbols) == 1:
            return Step(title, reason, symbols[0], values[symbols[0]])
        return Step(title, reason, sp.Tuple(*symbols), sp.Tuple(*(values[s] for s in symbols)))

    steps = [
        Step(
            "Expansion of one factor",
            "to second order in q, with `b = s sqrt(q) z` of order `sqrt(q)` and "
            "`r = n(v)/P(v)`, from `P' = n`, `n' = -v n`",
            P((v + b) / sp.sqrt(1 - overlap)) / P(v),
            taylor,
        )
    ]
    if layers == 2:
        weights = [averages.w_plus, averages.w_minus]
        reason = "of `tau = s_1 s_2 = +1, -1` in the annealed measure"
        steps.append(listed("Weights", reason, weights))
    beside = "" if layers == 1 else ", by layer and by the sign of tau"
    form = averages.form_in_averages(layers)
    return [
        *steps,
        listed("Stabilities", f"`v_l`{beside}", list(measure.field.values())),
        listed("Ratios", f"`r_l = n(v_l)/P(v_l)`{beside}", list(measure.ratio.values())),
        Step(
            "Second-order form",
            "`L S_rs - log z`: expand `log zeta`, average over `t_l` and `z_l`; odd orders vanish "
            "and the linear terms cancel",
            "Q",
            form,
        ),
        *(
            Step(
                "Stationarity",
                "set to zero it is a linear equation for qhat; the extremum is a maximum",
                sp.Derivative(sp.Symbol("Q"), y),
                sp.diff(form, y),
            )
            for y in at.qhat
        ),
    ]


def _steps_L1() -> tuple[Step, ...]:
    eliminated = averages.uniform_in_averages(1)
    return (
        Step("Elimination of qhat", "solve the equation", "qhat_*", eliminated.qhat),
        Step(
            "Entropy to second order",
            "stable where the coefficient of `q^2` is positive, `r = n(J_D)/P(J_D)`",
            "S_rs",
            sp.log(2 * P(J)) + eliminated.coefficient * q**2,
        ),
        Step(
            "Coefficient of q^2, factored",
            "`r(r + J_D) = -r'(J_D)` stays below 1, so the boundary of stability is "
            "`r(r - J_D) = 1`",
            "c",
            stability.coefficient_L1(),
        ),
    )


def _steps_L2() -> tuple[Step, ...]:
    matrices, eliminated = averages.matrices_in_averages(), averages.uniform_in_averages(2)
    C, D, E = (sp.MatrixSymbol(name, 2, 2) for name in "CDE")
    one = sp.Identity(2)
    return (
        Step("Matrix of qhat", "`C_lm = <s_l s_m>^2`", "C", matrices.C),
        Step("Mixed matrix", "`D_lm = <s_l s_m r_m>^2`", "D", matrices.D),
        Step("Matrix of q", "`E_lm = <s_l s_m r_l r_m>^2`, `E_ll = <v_l r_l>^2`", "E", matrices.E),
        Step(
            "Elimination of qhat",
            "`C qhat = (1 - D) q`, so `2 S_rs = log z + (1/4) q^T M q`; stable where `M > 0`",
            "M",
            (one - D).T * C.inverse() * (one - D) - E,
        ),
        Step(
            "Symmetric mode",
            "`lambda_L = lambda_R = lambda` makes the layers equivalent, `q_1 = q_2 = q`; "
            "`r_+, r_-` are `r` at `J_D + lambda, J_D - lambda`",
            "qhat_*",
            eliminated.qhat,
        ),
        Step(
            "Coefficient of q^2 in S_rs",
            "the paper's A/B; the saddle is stable in this mode where it is positive",
            "c",
            eliminated.coefficient,
        ),
    )


def coefficient_in_P(layers: int) -> Expr:
    """Coefficient of q^2 in S_rs as displayed, in P, n and the couplings."""
    return averages.uniform_in_averages(layers).coefficient.subs(averages.shared_values(layers))


def _formulas(layers: int) -> tuple[Formula, ...]:
    arguments = (("jd", J), ("lam", lam))[:layers]
    coefficient = Formula(
        "stability_coefficient",
        "Coefficient of q^2 in S_rs; the saddle q = 0 is stable where it is positive.",
        arguments,
        coefficient_in_P(layers),
    )
    if layers == 1:
        return (coefficient,)
    matrix = Formula(
        "stability_matrix",
        "M of 2 S_rs = log z + (1/4) q^T M q, one q for each layer.",
        COUPLINGS,
        averages.matrices_in_averages().M.subs(averages.values_L2()),
    )
    return (coefficient, matrix)


def _checks_L1() -> tuple[Check, ...]:
    values = chain_measure(1).values()
    form = sp.log(annealed.partition_sum(1)) + quadratic_form(1).subs(uniform(1)).subs(values)
    (solution,) = stability.eliminate_uniform(1).qhat
    final = sp.log(annealed.partition_sum(1)) + stability.coefficient(1) * q**2
    return (
        Check("the second-order form is the paper's", identical(form, paper.second_order_L1())),
        Check(
            "the stationary qhat is the paper's",
            identical(solution.subs(values), paper.saddle_L1()),
        ),
        Check(
            "the eliminated form is the paper's with the missing q^2 restored",
            identical(final, paper.eliminated_L1()),
        ),
        Check(
            "the coefficient displayed is the one derived",
            identical(coefficient_in_P(1), stability.coefficient(1)),
        ),
    )


def _checks_L2() -> tuple[Check, ...]:
    z = annealed.partition_sum(2).subs({lambda_L: lam, lambda_R: lam})
    final = sp.log(z) / 2 + stability.coefficient(2) * q**2
    shown = averages.form_in_averages(2).subs(averages.w_minus, 1 - averages.w_plus)
    general = stability.general_matrices(2).form(2)
    return (
        Check(
            "the eliminated form is the paper's with its printed A/B",
            identical(final, paper.eliminated_L2()),
        ),
        Check(
            "the second-order form displayed is the one derived",
            bool(sp.expand(quadratic_form(2) - shown) == 0),
        ),
        Check(
            "it is the form of C, D and E",
            bool(sp.expand(quadratic_form(2) - general) == 0),
        ),
        Check(
            "the coefficient displayed is the one derived",
            identical(coefficient_in_P(2), stability.coefficient(2)),
        ),
    )
