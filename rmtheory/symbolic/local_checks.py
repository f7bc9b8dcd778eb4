"""What the derivation of the local entropy shows exactly, claim by claim."""

from __future__ import annotations

import sympy as sp

from rmtheory.symbolic import annealed, replica
from rmtheory.symbolic import local_functional as local
from rmtheory.symbolic import local_numerics as numerics
from rmtheory.symbolic import local_second_moment as second
from rmtheory.symbolic import local_tangent as tangent
from rmtheory.symbolic.definitions import (
    P,
    gaussian_mean,
    lambda_L,
    lambda_R,
    replicas,
    shifted_symbols,
    shifted_theta_average,
    v,
)
from rmtheory.symbolic.derivation import Check
from rmtheory.symbolic.exact import identical
from rmtheory.symbolic.local_functional import same


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
    phi = local.evaluated(local.free_entropy(layers), layers)
    one_qhat = dict.fromkeys(local.conjugates(layers), local.conjugates(layers)[0])
    internal, external = local.internal_entropy(layers), local.external_entropy(layers)
    residuals = all(
        same(
            local.stationarity(layers, k),
            local.y * (local.y - 1) / 2 * (local.overlap(k) - local.q1),
        )
        for k in range(1, layers + 1)
    )
    rows = zip(
        (*tangent.gradient(external, layers), *tangent.gradient(internal, layers)),
        (*numerics.external_gradient(layers), *numerics.internal_gradient(layers)),
        strict=True,
    )
    return [
        Check(
            "phi, S_I and S_E are what rmtheory.local_entropy evaluates",
            same(phi, numerics.phi(layers))
            and same(internal, numerics.internal(layers))
            and same(external, numerics.external(layers)),
        ),
        Check("y phi is stationary in qhat_l where <m_l^2> = q1", residuals),
        Check("d phi/dy = -S_E/y^2", same(local.slope_in_y(layers), -external / local.y**2)),
        Check(
            "the slope of S_I along y*(d) is the one evaluated",
            same(local.slope(layers), numerics.slope(layers)),
        ),
        Check(
            "so are the derivatives of S_E and S_I in (y, qhat)", all(same(a, b) for a, b in rows)
        ),
        Check(
            "phi is the right-hand side that the paper prints for -y Phi (erratum 14)",
            same(phi.subs(one_qhat), second.printed(layers)),
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
                identical(tangent.in_field(m[a], layers, k), numerics.response(layers, a, k))
                for a, k in pairs
            )
            and all(identical(tangent.in_field(sp.log(zeta), layers, k), m[k]) for k in each),
        ),
        Check(
            "(zeta^y O)''/zeta^y is the one evaluated for O = 1 and log zeta",
            all(
                identical(tangent.curved(sp.S.One, layers, k), numerics.curvature(m[k]))
                and identical(
                    tangent.curved(sp.log(zeta), layers, k), numerics.curved_log(m[k]).subs(logs)
                )
                for k in each
            ),
        ),
        Check(
            "(zeta^y O)''/zeta^y is the one evaluated for O = m_l^2, every l and k",
            all(
                identical(
                    tangent.curved(m[a] ** 2, layers, k),
                    numerics.curved_square(m[a], m[k], numerics.response(layers, a, k)),
                )
                for a, k in pairs
            ),
        ),
    ]


def _core_forms() -> list[Check]:
    zeta = local.zeta(1)
    (h,), (x,) = local.fields(1)
    m = sp.diff(zeta, h) / zeta
    value, tanh, (plus, minus) = numerics.core_log_zeta()
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
            identical(sp.diff(zeta, x) / zeta, numerics.core_force(m)),
        ),
        Check(
            "the core's own form of (zeta^y (1 - m^2))''/zeta^y is the same",
            identical(tangent.curved(1 - single**2, 1, 0), numerics.curved_rest_core(single)),
        ),
    ]


def _pair_forms() -> list[Check]:
    zeta = local.zeta(2)
    (_, h), (x_1, x_2) = local.fields(2)
    (one, slope_1), (two, slope_2) = numerics.pair_site(0), numerics.pair_site(1)

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
    phi, dual = second.free_entropy_at(layers, 2), second.second_moment_dual(layers)
    shared, noise = sp.symbols("z_1 z_2", real=True)
    field = sp.sqrt(local.q1) * shared + sp.sqrt(1 - local.q1) * noise
    unit = sp.expand(gaussian_mean(field**2, (shared, noise))) == 1
    checks = [
        Check(
            "at y = 1, phi = log z for any qhat",
            bool(unit)
            and second.same_exponential(
                second.free_entropy_at(layers, 1), sp.log(annealed.partition_sum(layers))
            ),
        ),
        Check("two fields that share x have unit variance, correlation q1", second.same_density()),
        Check(
            "at y = 2, y phi is the exponent of E[Z^2] at overlap q1, as a function of qhat",
            second.same_exponential(2 * phi, dual),
        ),
        Check(
            "phi, as printed, is not, nor is y^2 phi (erratum 14)",
            not any(second.same_exponential(k * phi, dual) for k in (1, 4)),
        ),
    ]
    if layers > 1:
        return checks
    expected, limit = second.second_moment_core(), sp.log(2) + second.binary_entropy(local.d)
    limit = limit.subs(local.d, (1 - local.q1) / 2)
    same_at = second.same_at_saddle
    return [
        *checks,
        Check(
            "at its saddle, y phi = log 2 + H_b + (1+q1)/2 log F(J, q1) + (1-q1)/2 log F(J, -q1)",
            same_at(second.at_saddle_core(2), expected)
            and not any(same_at(second.at_saddle_core(k), expected) for k in (1, 4)),
        ),
        Check(
            "which is log 2 + H_b(d) as J_D -> infinity",
            same_at(second.strong_coupling_core(2), limit)
            and not any(same_at(second.strong_coupling_core(k), limit) for k in (1, 4)),
        ),
    ]
