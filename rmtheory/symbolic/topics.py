"""The derivations by topic: replica-symmetric functional, its stability, first sweeps, all topics.

A topic is the function that derives it and the numbers of layers it takes. The annealed entropy and
the local entropy are derived in :mod:`rmtheory.symbolic.annealed` and
:mod:`rmtheory.symbolic.local_entropy`; the replica-symmetric functional (L = 1 to 4) and the
stability of q = qhat = 0 (second-order form and elimination of qhat) here, and the correlations
C(1,0), C(2,0), C(2,1) of the dynamics of one layer (docs/mean-field.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import sympy as sp

from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError
from rmtheory.symbolic import (
    annealed,
    replica,
    stability,
)
from rmtheory.symbolic import (
    stability as averages,
)
from rmtheory.symbolic import (
    stability as paper,
)
from rmtheory.symbolic.annealed import COUPLINGS, derive_annealed
from rmtheory.symbolic.broken import derive_broken
from rmtheory.symbolic.definitions import (
    Expr,
    F,
    J,
    P,
    gauss,
    gaussian_mean,
    h,
    identical,
    lam,
    lambda_L,
    lambda_R,
    linearised_square,
    n,
    q,
    replicas,
    shifted_symbols,
    shifted_theta_average,
    v,
)
from rmtheory.symbolic.derivation import Check, Derivation, Formula, Step
from rmtheory.symbolic.local_entropy import derive_local_entropy
from rmtheory.symbolic.replica import (
    chain_measure,
    order_parameters,
    quadratic_form,
    taylor_of_P,
    uniform,
)

# The replica-symmetric functional.

#: The functional needs an integral over 2L Gaussian variables, which is not a formula.
_INTEGRAL = '''
def rs_functional(jd, lam_left, lam_right, q, qhat, step=0.5, cutoff=8.0):
    """Return L S_rs before it is extremised: energy plus the Gaussian average of log zeta.

    A trapezoid rule in each of the 2 L variables; its cost is (2 cutoff/step + 1)^(2 L), so
    take step = 1 for two layers, and another method beyond. The step must stay below the
    width sqrt((1-q)/q) on which zeta varies.
    """
    half = round(cutoff / step)
    nodes = [k * step for k in range(-half, half + 1)]
    weights = [math.exp(-x * x / 2) for x in nodes]
    norm = math.fsum(weights)
    rule = [(x, w / norm) for x, w in zip(nodes, weights)]
    layers = len(q)

    def terms():
        for point in itertools.product(rule, repeat=2 * layers):
            x = [node for node, _ in point]
            weight = math.prod(w for _, w in point)
            value = zeta(jd, lam_left, lam_right, q, qhat, x[:layers], x[layers:])
            yield weight * math.log(value)

    return energy(q, qhat) + math.fsum(terms())
'''


def derive_rs(layers: int | float) -> Derivation:
    """Replica-symmetric functional of L layers."""
    count = int(layers)
    at = replica.order_parameters(count)
    m, sigma = shifted_symbols()
    s = sp.Symbol("s", integer=True)
    k, squared = linearised_square()
    zeta_symbol = sp.Symbol("zeta", positive=True)
    before, after = replica.replica_limit()
    pairs, square, _ = replica.coupling_exponent(3)
    measure = sp.Mul(*(n(x) for x in (*at.t, *at.z)))
    limits = [(x, -sp.oo, sp.oo) for x in (*at.t, *at.z)]
    steps = (
        Step(
            "Condition of one replica",
            "replica-symmetric fields are `h_a = sqrt(q) z + sqrt(1-q) x_a`, independent given "
            "`z`: mean `m = sqrt(q) z`, deviation `sigma = sqrt(1-q)`",
            sp.Integral(sp.Heaviside(s * h + v) * n((h - m) / sigma) / sigma, (h, -sp.oo, sp.oo)),
            P((v + s * m) / sigma),
        ),
        Step(
            "Coupling of the replicas",
            "`s_a^2 = 1`, shown for three replicas; the sum runs over `a < b`",
            pairs,
            square,
        ),
        Step(
            "Linearised by a Gaussian field",
            "with `k = sqrt(qhat) sum_a s_a`",
            sp.Integral(sp.exp(k * h) * gauss(h), (h, -sp.oo, sp.oo)),
            squared,
        ),
        Step(
            "One replica at fixed t, z",
            f"sum over the 2^{count} columns; n replicas give `zeta^n`",
            zeta_symbol,
            replica.zeta(count),
        ),
        Step(
            "Replica limit of the energy",
            "`-n(n-1)/2 qhat q` from the multipliers and `-n qhat/2` from the linearisation, over "
            "`n`, as `n -> 0`; one such term a layer",
            "e",
            replica.energy(count),
        ),
        Step(
            "Replica limit of the average",
            "(here of two values with weights `w, 1-w`) `log <zeta^n>/n -> <log zeta>`",
            sp.Limit(before, replicas, 0),
            after,
        ),
        Step(
            "Replica-symmetric functional",
            f"extremised over `q_l, qhat_l` and divided by L = {count} it is `S_rs`",
            "Phi_rs",
            sp.Symbol("e") + sp.Integral(measure * sp.log(zeta_symbol), *limits),
        ),
        Step(
            "At q = qhat = 0",
            "the saddle whose value is the annealed entropy",
            "zeta_0",
            _at_zero(count),
        ),
    )
    sequences = (("q", at.q), ("qhat", at.qhat))
    fields = (("t", at.t), ("z", at.z))
    formulas = (
        Formula(
            "zeta",
            "Sum over the columns of one replica at fixed fields t and z.",
            (*COUPLINGS, *sequences, *fields),
            replica.zeta(count),
        ),
        Formula("energy", "Energy (1/2) sum_l qhat_l (q_l - 1).", sequences, replica.energy(count)),
    )
    return Derivation("rs", count, steps, _checks(count), formulas, _INTEGRAL)


def _at_zero(layers: int) -> sp.Expr:
    at = replica.order_parameters(layers)
    return replica.zeta(layers).subs(dict.fromkeys((*at.q, *at.qhat), 0))


def _checks(layers: int) -> tuple[Check, ...]:
    m, sigma = shifted_symbols()

    def gaussian(spin: int) -> bool:
        expected = P((v + spin * m) / sigma).rewrite(sp.erfc).rewrite(sp.erf)
        return bool(sp.simplify(shifted_theta_average(spin) - expected) == 0)

    overlap, x, y, z = sp.symbols("q x y z", positive=True)
    one, two = (sp.sqrt(overlap) * z + sp.sqrt(1 - overlap) * noise for noise in (x, y))
    covariance = gaussian_mean(one * two, (x, y, z)) == overlap
    variance = gaussian_mean(one * one, (x, y, z)) == 1
    pairs, _, expanded = replica.coupling_exponent(3)
    checks = [
        Check(
            "the integral over h is P((v + s m)/sigma) for s = +1 and s = -1",
            all(gaussian(spin) for spin in (1, -1)),
        ),
        Check(
            "fields of two replicas have variance 1 and covariance q", bool(covariance and variance)
        ),
        Check(
            "the exponent of three replicas is the square that the field linearises",
            bool(sp.expand(pairs - expanded) == 0),
        ),
        Check(
            "zeta at q = qhat = 0 is the annealed partition sum",
            identical(_at_zero(layers), annealed.partition_sum(layers)),
        ),
    ]
    if layers <= 2:
        difference = replica.replicated_sum(layers, 2) - replica.zeta(layers) ** 2
        checks.append(
            Check("the sum over two replicas is zeta squared", bool(sp.expand(difference) == 0))
        )
    return tuple(checks)


# The stability of q = qhat = 0.


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


# The first two sweeps of one layer.

#: F is an integral over the correlation.
_ORTHANT = """
def F(a, b, rho, intervals=400):
    \"\"\"Probability that unit Gaussians of correlation rho exceed -a and -b.

    P(a) P(b) at rho = 0 plus the integral of the joint density over rho = sin(angle), by the rule
    of Simpson with an even number of intervals.
    \"\"\"
    end = math.asin(rho)

    def part(x, width):
        if x == 0:
            return 0.0
        return x * x / (4 * width) if width > 0 else math.inf

    def density(angle):
        r = math.sin(angle)
        return math.exp(-part(a + b, 1 + r) - part(a - b, 1 - r)) / (2 * math.pi)

    weights = [1, *(4 if k % 2 else 2 for k in range(1, intervals)), 1]
    total = math.fsum(w * density(end * k / intervals) for k, w in enumerate(weights))
    return P(a) * P(b) + total * end / (3 * intervals)
"""

#: The covariance C(1,0) of the fields of the first two sweeps.
_c = sp.Symbol("c", real=True)


def history_probability(first: int, last: int) -> Expr:
    r"""Return the probability of s(1) = first, s(2) = last after s(0) = 1, all neurons updated.

    The sweep from t ends in s(t+1) where s(t+1) (phi(t) + J_D s(t)) > 0. The fields
    s(1) phi(0) and s(2) phi(1) are unit Gaussians of correlation s(1) s(2) c.

    Examples
    --------
    >>> history_probability(1, 1), history_probability(-1, 1)
    (F(J_D, J_D, c), F(-J_D, -J_D, -c))
    """
    return F(first * J, first * last * J, first * last * _c)


def first_correlations() -> tuple[Expr, ...]:
    """Return C(1,0), C(2,0), C(2,1) of one layer: the sums over the histories, reduced.

    A history that ends in s(2) = -1 is the complement of the one that ends in s(2) = 1, by
    F(a, -b; -rho) = P(a) - F(a, b; rho).

    Examples
    --------
    >>> first_correlations()[2]
    -2*F(-J_D, -J_D, -c) + 2*F(J_D, J_D, c) + 2*P(-J_D) - 1
    """
    c10 = c20 = c21 = sp.S.Zero
    for s in (1, -1):
        c10 += s * P(s * J)
        ends_up = history_probability(s, 1)
        for last, probability in ((1, ends_up), (-1, P(s * J) - ends_up)):
            c20 += last * probability
            c21 += s * last * probability
    up, down = {P(-J): 1 - P(J)}, {P(J): 1 - P(-J)}
    return (
        sp.expand(c10.xreplace(up)),
        *(sp.expand(sp.expand(each).xreplace(down)) for each in (c20, c21)),
    )


def derive_first_sweeps(layers: int | float) -> Derivation:
    """C(1,0), C(2,0) and C(2,1) of one layer, all neurons updated at once, as orthants."""
    a, b, rho = sp.symbols("a b rho", real=True)
    s, last = sp.symbols("s_1 s_2", integer=True)
    C, probability = sp.Function("C"), sp.Function("p")
    c10, c20, c21 = first_correlations()
    steps = (
        Step(
            "First sweep",
            "take `s_0 = 1`; `s_1 = 1` where `phi(0) > -J_D`, and `P(-x) = 1 - P(x)`; this is the "
            "covariance `c` of `phi(0)` and `phi(1)`",
            C(1, 0),
            c10,
        ),
        Step(
            "A history of two sweeps",
            "`s_1 (phi(0) + J_D) > 0` and `s_2 (phi(1) + J_D s_1) > 0`, where `s_1 phi(0)` and "
            "`s_2 phi(1)` have correlation `s_1 s_2 c`; F is the probability that two unit "
            "Gaussians of correlation rho exceed -a and -b",
            probability(s, last),
            sp.Function("F")(s * J, s * last * J, s * last * _c),
        ),
        Step(
            "One field turned",
            "the two cases of `phi(1)` add up to the condition on `phi(0)`",
            F(a, -b, -rho),
            P(a) - F(a, b, rho),
        ),
        Step("Both fields turned", "the same twice", F(-a, -b, rho), _both_turned(a, b, rho)),
        Step(
            "Second sweep and start",
            "sum of `s_2 p(s_1, s_2)`: histories with `s_2 = -1` are turned, then "
            "`P(J_D) = 1 - P(-J_D)`",
            C(2, 0),
            c20,
        ),
        Step("Second sweep and first", "sum of `s_1 s_2 p(s_1, s_2)`", C(2, 1), c21),
        Step(
            "With F at J_D only",
            "both fields turned; as F grows with the correlation, `C(2,1) - C(1,0)` has the sign "
            "of `c`, that of `J_D`",
            sp.Tuple(C(2, 0), C(2, 1) - C(1, 0)),
            sp.Tuple(*(_at_jd(each) for each in (c20, c21 - c10))),
        ),
    )
    formulas = tuple(
        Formula(name, f"Correlation {shown} of one layer.", (("jd", J),), value.subs(_c, c10))
        for name, shown, value in (
            ("c10", "C(1,0)", c10),
            ("c20", "C(2,0)", c20),
            ("c21", "C(2,1)", c21),
        )
    )
    return Derivation(
        "first-sweeps",
        int(layers),
        steps,
        _checks_first_sweeps(),
        formulas,
        _ORTHANT,
        "the effective process of one neuron",
    )


def _both_turned(a: Expr, b: Expr, rho: Expr) -> Expr:
    """Return F(-a, -b; rho) in F(a, b; rho)."""
    return 1 - P(a) - P(b) + F(a, b, rho)


def _at_jd(expression: Expr) -> Expr:
    """Write F(-J_D, -J_D; -c) and P(-J_D) by their values at J_D."""
    values = {F(-J, -J, -_c): _both_turned(J, J, -_c), P(-J): 1 - P(J)}
    return sp.expand(expression.xreplace(values))


def _checks_first_sweeps() -> tuple[Check, ...]:
    a, b = sp.symbols("a b", real=True)
    rho = sp.Symbol("rho", real=True)
    root = 1 - rho**2
    density = sp.exp(-(a**2 + b**2 - 2 * a * b * rho) / (2 * root)) / (2 * sp.pi * sp.sqrt(root))
    heat = (sp.diff(density, rho) - sp.diff(density, a, b)) / density
    reflected = {P(-x): 1 - P(x) for x in (a, b)}

    def turned(x: Expr, y: Expr, r: Expr) -> Expr:
        return density.subs({a: x, b: y, rho: r}, simultaneous=True)

    def same_orthants(start: Expr, slope: Expr, expected: Expr, expected_slope: Expr) -> bool:
        """Whether two functions of rho agree at rho = 0 and in their derivative."""
        same_start = sp.expand(start.xreplace(reflected) - expected) == 0
        return bool(same_start and sp.simplify(slope - expected_slope) == 0)

    P_v, P_minus = (P(x).rewrite(sp.erfc).rewrite(sp.erf) for x in (v, -v))
    signs = (1, -1)
    paths = [(s, last) for s in signs for last in signs]
    raw = {path: history_probability(*path) for path in paths}
    # The unreduced sums, each orthant written in F(J_D, J_D; +-c) by turning its fields.
    values = {
        F(J, -J, -_c): P(J) - F(J, J, _c),
        F(-J, J, _c): P(J) - F(J, J, -_c),
        F(-J, -J, -_c): _both_turned(J, J, -_c),
    }
    at_jd = {path: value.xreplace(values) for path, value in raw.items()}
    c10, c20, c21 = first_correlations()
    sums = (
        sum(last * at_jd[s, last] for s, last in paths),
        sum(s * last * at_jd[s, last] for s, last in paths),
    )
    stay, back = F(J, J, _c), F(-J, -J, -_c)
    at_zero = {F(0, 0, 0): P(0) ** 2, P(0): sp.Rational(1, 2)}
    return (
        Check("P(-x) = 1 - P(x)", bool(sp.expand(P_v + P_minus - 1) == 0)),
        Check(
            "the joint density n_2 has dn_2/drho = d^2 n_2/(da db), so that dF/drho = n_2",
            bool(sp.simplify(heat) == 0),
        ),
        Check(
            "F(a, -b; -rho) = P(a) - F(a, b; rho): equal at rho = 0, and their derivatives",
            same_orthants(P(a) * P(-b), -turned(a, -b, -rho), P(a) - P(a) * P(b), -density),
        ),
        Check(
            "F(-a, -b; rho) = 1 - P(a) - P(b) + F(a, b; rho), likewise",
            same_orthants(
                P(-a) * P(-b), turned(-a, -b, rho), 1 - P(a) - P(b) + P(a) * P(b), density
            ),
        ),
        Check(
            "the four histories have total probability 1, those with s_1 = 1 have P(J_D)",
            bool(
                sp.expand(sum(at_jd.values())) == 1
                and sp.expand(at_jd[1, 1] + at_jd[1, -1]) == P(J)
            ),
        ),
        Check(
            "the reduced sums are the sums over the histories",
            all(
                sp.expand(_at_jd(each) - total) == 0
                for each, total in zip((c20, c21), sums, strict=True)
            ),
        ),
        Check(
            "C(1,0), C(2,0), C(2,1) are what rmtheory.dynamics.exact_steps states for one layer",
            c10 == 2 * P(J) - 1
            and c20 == 2 * stay + 2 * back - 1
            and c21 == 2 * stay - 2 * back + 2 * P(-J) - 1,
        ),
        Check(
            "without self-coupling nothing is remembered: all three vanish at J_D = 0",
            all(
                each.subs(_c, c10).subs(J, 0).subs(P(0), sp.Rational(1, 2)).subs(at_zero) == 0
                for each in (c10, c20, c21)
            ),
        ),
    )


# All topics.


@dataclass(frozen=True)
class Topic:
    """A topic and the largest number of layers it takes (math.inf: any, and infinity)."""

    derive: Callable[[int | float], Derivation]
    most_layers: int | float


TOPICS: dict[str, Topic] = {
    "annealed": Topic(derive_annealed, math.inf),
    "rs": Topic(derive_rs, replica.MOST_LAYERS_EXPLICIT),
    "stability": Topic(derive_stability, 2),
    "local-entropy": Topic(derive_local_entropy, 2),
    "broken": Topic(derive_broken, 2),
    "first-sweeps": Topic(derive_first_sweeps, 1),
}


def derive(topic: str, layers: int | float) -> Derivation:
    """Derive a topic for a number of layers, from the definition of the count or of the dynamics.

    Parameters
    ----------
    topic : {"annealed", "rs", "stability", "local-entropy", "broken", "first-sweeps"}
        Annealed entropy (any L, and ``math.inf``), replica-symmetric functional (L = 1 ... 4),
        stability of the saddle q = qhat = 0, local entropy, its functional with an overlap q0
        between clusters (these three L = 1 or 2), or the correlations of the first two sweeps of
        the dynamics (L = 1).
    layers : int or math.inf
        Number of layers L.

    Examples
    --------
    >>> import rmtheory as rt
    >>> derivation = rt.derive("stability", 1)
    >>> all(check.holds for check in derivation.checks)
    True
    >>> rt.derive("rs", 5)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    rmtheory...InvalidInputError: layers must be an integer from 1 to 4 for topic rs, got 5
    """
    if topic not in TOPICS:
        raise InvalidInputError("topic", topic, "one of " + ", ".join(TOPICS))
    count = checks.layers(layers)
    most = TOPICS[topic].most_layers
    if count > most:
        shown = "inf" if math.isinf(count) else count
        allowed = "1" if most == 1 else f"an integer from 1 to {most}"
        raise InvalidInputError("layers", shown, f"{allowed} for topic {topic}")
    return _derive(topic, count)


@cache
def _derive(topic: str, layers: int | float) -> Derivation:
    return TOPICS[topic].derive(layers)
