r"""The identities that the derivation of the local entropy proves exactly, one by one.

**Integer y.** At y = 1 and y = 2 the integrals of the functional are done exactly. At y = 2 the
square of zeta is expanded and integrated term by term: E e^{k h} = e^{qhat k^2/2} and
E_x[P((a + s x)/sigma) P((b + s' x)/sigma)] = F(a, b; s s' q1), the probability that two unit
Gaussians of correlation s s' q1 exceed -a and -b. The result,

.. math:: y\phi = \log\sum_\sigma e^{\hat q\cdot\sigma} W_\sigma - q_1\sum_l\hat q_l, \qquad
    W_\sigma = \sum_s\prod_l F(v_l(s), v_l(s\sigma); \sigma_l q_1),

is the exponent of E[Z^2] at overlap q1 before its minimisation over the fields, which are qhat:
that fixes the factor y of the paper's functional (erratum 14).

**Numerics.** The formulas that :mod:`rmtheory.local_entropies` evaluates are transcribed here and
compared with the derived ones; no derivation uses them. Layers are counted from 0; sums over layers
are not divided by L.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import sympy as sp

from rmtheory.symbolic import annealed, replica
from rmtheory.symbolic import local_functional as local
from rmtheory.symbolic import local_functional as tangent
from rmtheory.symbolic.definitions import (
    Expr,
    F,
    J,
    P,
    gaussian_mean,
    identical,
    lambda_L,
    lambda_R,
    n,
    replicas,
    shifted_symbols,
    shifted_theta_average,
    stabilities,
    v,
)
from rmtheory.symbolic.derivation import Check
from rmtheory.symbolic.local_functional import (
    LOG_NORM_Q,
    MEAN_LOG_Q,
    MEAN_LOG_Y,
    conjugates,
    evaluated,
    fields,
    force,
    free_entropy,
    log_norm,
    mean_log,
    q1,
    same,
    spin_mean,
    y,
    zeta,
    zeta_symbol,
)

# The functional at y = 1 and y = 2.


@cache
def joint_density() -> tuple[Expr, Expr]:
    r"""Density of two fields h = x + sigma xi that share x ~ N(0, q1): integrated, and expected.

    The integral over x is that of e^{-A x^2/2 + B x}; the second form is the bivariate normal
    density of unit variances and correlation q1.
    """
    one, two, x, B = sp.symbols("h_1 h_2 x B", real=True)
    A = sp.Symbol("A", positive=True)
    integral = sp.simplify(sp.integrate(sp.exp(-A * x**2 / 2 + B * x), (x, -sp.oo, sp.oo)))
    noise = 1 - q1
    exponent = -((one - x) ** 2 + (two - x) ** 2) / (2 * noise) - x**2 / (2 * q1)
    powers = sp.Poly(sp.expand(exponent), x)
    norm = sp.sqrt(2 * sp.pi) ** 3 * noise * sp.sqrt(q1)
    shared = integral.subs(
        {A: sp.factor(-2 * powers.coeff_monomial(x**2)), B: powers.coeff_monomial(x)}
    )
    integrated = shared * sp.exp(powers.coeff_monomial(1)) / norm
    quadratic = (one**2 - 2 * q1 * one * two + two**2) / (1 - q1**2)
    return integrated, sp.exp(-quadratic / 2) / (2 * sp.pi * sp.sqrt(1 - q1**2))


def same_density() -> bool:
    """Whether the two forms of :func:`joint_density` agree; as both are positive, their squares."""

    def rational(density: Expr) -> Expr:
        in_odds = (density**2).subs(odds())
        return in_odds.replace(sp.exp, lambda x: sp.exp(sp.expand(sp.cancel(x))))

    left, right = joint_density()
    return identical(rational(left), rational(right))


def odds() -> dict[Expr, Expr]:
    """Substitution q1 = (a - b)/(a + b): what stands under a logarithm or root is positive."""
    a, b = sp.symbols("a b", positive=True)
    return {q1: (a - b) / (a + b)}


def same_exponential(left: Expr, right: Expr) -> bool:
    """Whether e^left and e^right are identical, hence left and right; frees sums from logs."""
    return same(sp.exp(sp.expand(left)), sp.exp(sp.expand(right)))


def same_at_saddle(left: Expr, right: Expr) -> bool:
    """Whether two sums of logarithms of q1 and of the F's are identical."""
    names = {F(J, J, sign * q1): sp.Symbol(f"F_{sign}", positive=True) for sign in (1, -1)}
    return identical(left.xreplace(names).subs(odds()), right.xreplace(names).subs(odds()))


def _linear(argument: Expr, x: tuple[Expr, ...]) -> tuple[int, int, Expr]:
    """Return the layer, the spin s and the stability v of P((v + s x_l)/sigma)."""
    scaled = sp.expand(argument * sp.sqrt(1 - q1))
    (layer,) = (k for k, each in enumerate(x) if scaled.has(each))
    spin = scaled.coeff(x[layer])
    return layer, int(spin), sp.expand(scaled - spin * x[layer])


@cache
def integrated_power(layers: int, power: int) -> Expr:
    """Integrate zeta^power over all fields, term by term, for power 1 or 2.

    E_x[P((v + s x)/sigma)] is P(v): one field x + sigma xi is a unit Gaussian.

    Examples
    --------
    >>> integrated_power(1, 1)
    2*exp(qhat_1/2)*P(J_D)
    """
    tilts, x = fields(layers)
    k = conjugates(layers)
    total = []
    for term in sp.Add.make_args(sp.expand(zeta(layers) ** power)):
        exponent, coefficient = sp.S.Zero, sp.S.One
        factors: list[list[tuple[int, Expr]]] = [[] for _ in x]
        for factor in sp.Mul.make_args(term):
            base, times = factor.as_base_exp()
            if isinstance(factor, sp.exp):
                exponent += factor.exp
            elif isinstance(base, P):
                layer, spin, v = _linear(base.args[0], x)
                factors[layer] += [(spin, v)] * int(times)
            else:
                coefficient *= factor
        value = coefficient
        for each, q, conditions in zip(tilts, k, factors, strict=True):
            value *= sp.exp(q * sp.expand(exponent).coeff(each) ** 2 / 2)
            if len(conditions) == 1:
                value *= P(conditions[0][1])
            else:
                (s, a), (r, b) = conditions
                value *= F(a, b, s * r * q1)
        total.append(value)
    return sp.Add(*total)


@cache
def pattern_weight(pattern: tuple[int, ...]) -> Expr:
    """W_sigma of the second moment: both copies of a column, agreeing where sigma_l = 1.

    Examples
    --------
    >>> pattern_weight((-1,))
    2*F(J_D, J_D, -q1)
    """
    terms = []
    for s in product((1, -1), repeat=len(pattern)):
        copy = tuple(a * b for a, b in zip(s, pattern, strict=True))
        pairs = zip(stabilities(s), stabilities(copy), pattern, strict=True)
        terms.append(sp.Mul(*(F(a, b, sign * q1) for a, b, sign in pairs)))
    return sp.Add(*terms)


@cache
def second_moment_dual(layers: int) -> Expr:
    """Return the exponent of E[Z^2] at overlap q1 as a function of the fields, here qhat.

    Examples
    --------
    >>> second_moment_dual(1)
    -q1*qhat_1 + log(2*exp(qhat_1)*F(J_D, J_D, q1) + 2*exp(-qhat_1)*F(J_D, J_D, -q1))
    """
    k = conjugates(layers)
    total = sp.Add(
        *(
            sp.exp(sp.Add(*(a * b for a, b in zip(k, sigma, strict=True)))) * pattern_weight(sigma)
            for sigma in product((1, -1), repeat=layers)
        )
    )
    return sp.log(total) - q1 * sp.Add(*k)


def free_entropy_at(layers: int, power: int) -> Expr:
    """Return phi of all layers at y = 1 or 2, its integral done."""
    phi = evaluated(free_entropy(layers), layers)
    return phi.subs(y, power).subs(log_norm, sp.log(integrated_power(layers, power)))


def printed(layers: int) -> Expr:
    """Right-hand side that the paper equates with -y Phi (SM-B), L = 1 or 2, one qhat.

    What it is equal to is -Phi = phi.
    """
    k = conjugates(layers)[0]
    if layers == 1:
        return -k / 2 + (1 - y) / 2 * k * q1 + log_norm / y
    return -k + (1 - y) * k * q1 + log_norm / y


# --- one layer -------------------------------------------------------------------------------
def binary_entropy(p: Expr) -> Expr:
    """H_b(p) = -p log p - (1-p) log(1-p)."""
    return -p * sp.log(p) - (1 - p) * sp.log(1 - p)


def second_moment_core() -> Expr:
    """Paper's exponent of E[Z^2] at overlap q1 for L = 1."""
    up, down = (1 + q1) / 2, (1 - q1) / 2
    energy = up * sp.log(F(J, J, q1)) + down * sp.log(F(J, J, -q1))
    return sp.log(2) + binary_entropy(up) + energy


@cache
def saddle_core() -> Expr:
    """Solve d(y phi)/dqhat = 0 at y = 2, L = 1: the solution is unique.

    Examples
    --------
    >>> saddle_core()
    log((q1 + 1)*F(J_D, J_D, -q1)/((1 - q1)*F(J_D, J_D, q1)))/2
    """
    (k,) = conjugates(1)
    root = sp.Symbol("root", positive=True)
    gradient = sp.diff(2 * free_entropy_at(1, 2), k)
    # e^{2 qhat} is the unknown of a linear equation.
    equation = sp.numer(sp.together(gradient.subs(sp.exp(2 * k), root)))
    (solution,) = sp.solve(equation, root)
    numerator, denominator = sp.fraction(sp.factor(solution))
    return sp.log(-numerator / denominator.xreplace({q1 - 1: 1 - q1})) / 2


def at_saddle_core(factor: Expr) -> Expr:
    """Return `factor` times phi at y = 2 and its saddle, L = 1; the exponent is at factor 2."""
    (k,) = conjugates(1)
    value = factor * free_entropy_at(1, 2)
    return value.subs(sp.exp(2 * k), sp.exp(2 * saddle_core())).subs(k, saddle_core())


def strong_coupling_core(factor: Expr) -> Expr:
    """Return the same as J_D -> infinity, where both F are 1."""
    value = at_saddle_core(factor)
    return value.replace(F, lambda *_: sp.S.One)


# The formulas that the numerics evaluate, transcribed.


# --- rmtheory.local_entropies.functional ----------------------------------------------------------
def _total(layers: int) -> Expr:
    return sp.Add(*conjugates(layers))


def _centred(layers: int) -> tuple[Expr, Expr, Expr, Expr]:
    """Return d, Q = sum of qhat, G' = G - y^2 Q/2 and l' = <log zeta> - y Q."""
    total = _total(layers)
    return (1 - q1) / 2, total, log_norm - y**2 * total / 2, mean_log - y * total


def phi(layers: int) -> Expr:
    """Free entropy."""
    d, total, norm, _ = _centred(layers)
    return norm / y + (y - 1) * d * total


def internal(layers: int) -> Expr:
    """Internal entropy S_I."""
    d, total, _, log = _centred(layers)
    return log + (2 * y - 1) * d * total


def external(layers: int) -> Expr:
    """External entropy S_E."""
    d, total, norm, log = _centred(layers)
    return norm - y * log - y * y * d * total


def slope(layers: int) -> Expr:
    """Envelope slope dS_I*/dd."""
    forces = sp.Add(*(force(layer) for layer in range(1, layers + 1)))
    return (y - 1) * (_total(layers) - forces)


def external_gradient(layers: int) -> tuple[Expr, ...]:
    """Last row of the Jacobian for y*: derivatives of S_E in (y, qhat)."""
    in_qhat = (
        sp.Symbol(f"{LOG_NORM_Q}_{k}") - y * sp.Symbol(f"{MEAN_LOG_Q}_{k}") + y**2 * q1 / 2
        for k in range(1, layers + 1)
    )
    return -y * sp.Symbol(MEAN_LOG_Y) + y * q1 * _total(layers), *in_qhat


def internal_gradient(layers: int) -> tuple[Expr, ...]:
    """Derivatives of S_I in (y, qhat)."""
    in_qhat = (
        sp.Symbol(f"{MEAN_LOG_Q}_{k}") - sp.Rational(1, 2) + (1 - 2 * y) * q1 / 2
        for k in range(1, layers + 1)
    )
    return sp.Symbol(MEAN_LOG_Y) - q1 * _total(layers), *in_qhat


# --- rmtheory.local_entropies.core and pair: the tangent ---------------------------------------
def curvature(m: Expr) -> Expr:
    """(zeta^y)''/zeta^y = y^2 m^2 + y (1 - m^2)."""
    return y**2 * m**2 + y * (1 - m**2)


def curved_log(m: Expr) -> Expr:
    """(zeta^y log zeta)''/zeta^y."""
    return curvature(m) * sp.log(zeta_symbol) + 2 * y * m**2 + (1 - m**2)


def curved_rest_core(m: Expr) -> Expr:
    """(zeta^y (1 - m^2))''/zeta^y as the core module has it."""
    one_minus_m2 = 1 - m**2
    curved = y**2 + (y - y**2) * one_minus_m2
    return (
        curved * one_minus_m2
        - 4 * y * (1 - one_minus_m2) * one_minus_m2
        - 2 * one_minus_m2 * (3 * one_minus_m2 - 2)
    )


def curved_square(m_l: Expr, m_k: Expr, chi: Expr) -> Expr:
    """(zeta^y m_l^2)''/zeta^y differentiated in h_k, chi = dm_l/dh_k, as the pair has it."""
    return curvature(m_k) * m_l**2 + 4 * (y - 1) * m_k * m_l * chi + 2 * chi**2


def response(layers: int, layer: int, k: int) -> Expr:
    """Return chi = dm_l/dh_k: 1 - m^2 for the layer itself, <s s'> - m m' for the other."""
    if layer == k:
        return 1 - spin_mean(layers, k) ** 2
    pair = spin_mean(layers, layer, k)
    return pair - spin_mean(layers, layer) * spin_mean(layers, k)


# --- rmtheory.local_entropies.core and pair: zeta and its derivatives --------------------------
def core_log_zeta() -> tuple[Expr, Expr, Expr]:
    """Return S + log 2cosh(h + D) exponentiated, tanh(h + D), and the two symbols P(a_±).

    With P(a_±) = p_±^2 the exponentials of S and D are free of roots.
    """
    (h,), _ = fields(1)
    plus, minus = roots = sp.symbols("p_+ p_-", positive=True)
    half = sp.log(plus) - sp.log(minus)
    up, down = (sp.exp(sign * h) * sp.exp(sign * half) for sign in (1, -1))
    return plus * minus * (up + down), (up - down) / (up + down), sp.Tuple(*roots)


def core_force(m: Expr) -> Expr:
    """Return d log zeta/dx of the core, from m = d log zeta/dh and the ratios r = n/P."""
    _, (x,) = fields(1)
    sigma = sp.sqrt(1 - q1)
    plus, minus = ((J + sign * x) / sigma for sign in (1, -1))
    half = sp.Rational(1, 2)
    return (half * (1 + m) * n(plus) / P(plus) - half * (1 - m) * n(minus) / P(minus)) / sigma


def pair_site(which: int) -> tuple[list[Expr], list[Expr]]:
    """Rows U and their derivatives in x of the first (0) or second (1) site, four columns."""
    h, x = (each[which] for each in fields(2))
    sigma, lam = sp.sqrt(1 - q1), (lambda_R, lambda_L)[which]
    rows, slopes = [], []
    for s in product((1, -1), repeat=2):
        own = s[which]
        argument = (J + lam * s[0] * s[1] + own * x) / sigma
        rows.append(sp.exp(own * h) * P(argument))
        slopes.append(sp.exp(own * h) * own * n(argument) / sigma)
    return rows, slopes


# The identities.


def all_checks(layers: int) -> tuple[Check, ...]:
    """Return every claim about L = 1 or 2 layers with its verdict."""
    return (
        *_counting(layers),
        *_heat(layers),
        *_entropies(layers),
        *_tangent(layers),
        *(_core_forms() if layers == 1 else _pair_forms()),
        *_integer_y(layers),
    )


def _counting(layers: int) -> list[Check]:
    m, sigma = shifted_symbols()

    def gaussian(spin: int) -> bool:
        expected = P((v + spin * m) / sigma).rewrite(sp.erfc).rewrite(sp.erf)
        return bool(sp.simplify(shifted_theta_average(spin) - expected) == 0)

    def split(count: int, size: int) -> bool:
        pairs, squares = local.block_exponent(count, size)
        inside = pairs.subs(dict.fromkeys(pairs.free_symbols, 1))
        counted = local.block_pairs().subs({replicas: count, local.y: size})
        return bool(sp.expand(pairs - squares) == 0 and inside == counted)

    cases = ((4, 2), (6, 2), (6, 3), (4, 4))
    power = replica.replicated_sum(layers, 2) - replica.zeta(layers) ** 2
    return [
        Check(
            "the integral over a field of mean x and deviation sigma is P((v + s x)/sigma)",
            all(gaussian(spin) for spin in (1, -1)),
        ),
        Check(
            "the exponent splits into one square a block, n (y-1)/2 pairs in all (n <= 6)",
            all(split(*case) for case in cases),
        ),
        Check("the sum over two replicas of a block is zeta squared", bool(sp.expand(power) == 0)),
    ]


def _heat(layers: int) -> list[Check]:
    kernel, x, k = local.heat_kernel()
    norm, log_mean, value, covariance = local.tilted_rule()
    left, right = local.generating_function()
    zeta, observable = (sp.Function(name)(x) for name in ("zeta", "O"))
    by_hand = sp.diff(zeta**local.y * observable, x) / zeta**local.y
    explicit, (h, _) = local.zeta(layers), local.fields(layers)
    return [
        Check(
            "the Gaussian density obeys the heat equation in its variance",
            identical(sp.diff(kernel, k), sp.diff(kernel, x, 2) / 2),
        ),
        Check("so d/dqhat E[g] = E[g'']/2, here for g = exp(k h)", identical(left, right)),
        Check(
            "(zeta^y O)'/zeta^y = O' + y (zeta'/zeta) O, and zeta'' = zeta in every h_l",
            bool(sp.simplify(by_hand - local.conjugated(observable, zeta, x)) == 0)
            and all(identical(sp.diff(explicit, each, 2), explicit) for each in h),
        ),
        Check(
            "zeta obeys the backward heat equation in q1", identical(*local.backward_heat(layers))
        ),
        Check(
            "d G/dy = <log zeta>, and d<O>/dy is the covariance of O with log zeta",
            identical(norm, log_mean) and identical(value, covariance),
        ),
    ]


def _entropies(layers: int) -> list[Check]:
    derived = local.evaluated(local.free_entropy(layers), layers)
    one_qhat = dict.fromkeys(local.conjugates(layers), local.conjugates(layers)[0])
    s_i, s_e = local.internal_entropy(layers), local.external_entropy(layers)
    residuals = all(
        same(
            local.stationarity(layers, k),
            local.y * (local.y - 1) / 2 * (local.overlap(k) - local.q1),
        )
        for k in range(1, layers + 1)
    )
    rows = zip(
        (*tangent.gradient(s_e, layers), *tangent.gradient(s_i, layers)),
        (*external_gradient(layers), *internal_gradient(layers)),
        strict=True,
    )
    return [
        Check(
            "phi, S_I and S_E are what rmtheory.local_entropies evaluates",
            same(derived, phi(layers))
            and same(s_i, internal(layers))
            and same(s_e, external(layers)),
        ),
        Check("y phi is stationary in qhat_l where <m_l^2> = q1", residuals),
        Check("d phi/dy = -S_E/y^2", same(local.slope_in_y(layers), -s_e / local.y**2)),
        Check(
            "the slope of S_I along y*(d) is the one evaluated",
            same(local.slope(layers), slope(layers)),
        ),
        Check(
            "so are the derivatives of S_E and S_I in (y, qhat)", all(same(a, b) for a, b in rows)
        ),
        Check(
            "phi is the right-hand side that the paper prints for -y Phi (erratum 14)",
            same(derived.subs(one_qhat), printed(layers)),
        ),
    ]


def _tangent(layers: int) -> list[Check]:
    zeta, each = tangent.partition(layers), range(layers)
    m = [tangent.spin_mean(layers, k) for k in each]
    logs = {local.zeta_symbol: zeta}
    pairs = [(layer, k) for layer in each for k in each]
    return [
        Check(
            "d m_l/dh_k is the response evaluated, and m_l = d log zeta/dh_l",
            all(
                identical(tangent.in_field(m[a], layers, k), response(layers, a, k))
                for a, k in pairs
            )
            and all(identical(tangent.in_field(sp.log(zeta), layers, k), m[k]) for k in each),
        ),
        Check(
            "(zeta^y O)''/zeta^y is the one evaluated for O = 1 and log zeta",
            all(
                identical(tangent.curved(sp.S.One, layers, k), curvature(m[k]))
                and identical(tangent.curved(sp.log(zeta), layers, k), curved_log(m[k]).subs(logs))
                for k in each
            ),
        ),
        Check(
            "(zeta^y O)''/zeta^y is the one evaluated for O = m_l^2, every l and k",
            all(
                identical(
                    tangent.curved(m[a] ** 2, layers, k),
                    curved_square(m[a], m[k], response(layers, a, k)),
                )
                for a, k in pairs
            ),
        ),
    ]


def _core_forms() -> list[Check]:
    zeta = local.zeta(1)
    (h,), (x,) = local.fields(1)
    m = sp.diff(zeta, h) / zeta
    value, tanh, (plus, minus) = core_log_zeta()
    squares = sp.exp(h) * plus**2, sp.exp(-h) * minus**2
    single = tangent.spin_mean(1, 0)
    return [
        Check(
            "log zeta = S + log 2cosh(h + D) and m = tanh(h + D)",
            identical(value, squares[0] + squares[1])
            and identical(tanh, (squares[0] - squares[1]) / (squares[0] + squares[1])),
        ),
        Check(
            "d log zeta/dx is the force evaluated",
            identical(sp.diff(zeta, x) / zeta, core_force(m)),
        ),
        Check(
            "the core's own form of (zeta^y (1 - m^2))''/zeta^y is the same",
            identical(tangent.curved(1 - single**2, 1, 0), curved_rest_core(single)),
        ),
    ]


def _pair_forms() -> list[Check]:
    zeta = local.zeta(2)
    (_, h), (x_1, x_2) = local.fields(2)
    (one, slope_1), (two, slope_2) = pair_site(0), pair_site(1)

    def product(left: list[sp.Expr], right: list[sp.Expr]) -> sp.Expr:
        return sp.Add(*(a * b for a, b in zip(left, right, strict=True)))

    flipped = zeta.subs(
        {lambda_L: -lambda_L, lambda_R: -lambda_R, h: -h, x_2: -x_2}, simultaneous=True
    )
    return [
        Check("zeta is the product of rank four evaluated", identical(product(one, two), zeta)),
        Check(
            "so are its derivatives in x_1 and x_2",
            identical(product(slope_1, two), sp.diff(zeta, x_1))
            and identical(product(one, slope_2), sp.diff(zeta, x_2)),
        ),
        Check(
            "the sign of both lambdas is immaterial: flip layer 2 with its fields (erratum 16)",
            identical(flipped, zeta),
        ),
    ]


def _integer_y(layers: int) -> list[Check]:
    phi, dual = free_entropy_at(layers, 2), second_moment_dual(layers)
    shared, noise = sp.symbols("z_1 z_2", real=True)
    field = sp.sqrt(local.q1) * shared + sp.sqrt(1 - local.q1) * noise
    unit = sp.expand(gaussian_mean(field**2, (shared, noise))) == 1
    checks = [
        Check(
            "at y = 1, phi = log z for any qhat",
            bool(unit)
            and same_exponential(
                free_entropy_at(layers, 1), sp.log(annealed.partition_sum(layers))
            ),
        ),
        Check("two fields that share x have unit variance, correlation q1", same_density()),
        Check(
            "at y = 2, y phi is the exponent of E[Z^2] at overlap q1, as a function of qhat",
            same_exponential(2 * phi, dual),
        ),
        Check(
            "phi, as printed, is not, nor is y^2 phi (erratum 14)",
            not any(same_exponential(k * phi, dual) for k in (1, 4)),
        ),
    ]
    if layers > 1:
        return checks
    expected, limit = second_moment_core(), sp.log(2) + binary_entropy(local.d)
    limit = limit.subs(local.d, (1 - local.q1) / 2)
    same_at = same_at_saddle
    return [
        *checks,
        Check(
            "at its saddle, y phi = log 2 + H_b + (1+q1)/2 log F(J, q1) + (1-q1)/2 log F(J, -q1)",
            same_at(at_saddle_core(2), expected)
            and not any(same_at(at_saddle_core(k), expected) for k in (1, 4)),
        ),
        Check(
            "which is log 2 + H_b(d) as J_D -> infinity",
            same_at(strong_coupling_core(2), limit)
            and not any(same_at(strong_coupling_core(k), limit) for k in (1, 4)),
        ),
    ]
