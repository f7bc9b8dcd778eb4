"""Derivation of the local entropy for L = 1 or 2: functional, saddle, S_I, S_E and slope.

The formulas of phi, S_I and S_E are also printed as a Python module that integrates them by a plain
trapezoid rule.
"""

from __future__ import annotations

from itertools import product

import sympy as sp

from rmtheory.symbolic import local_functional as local
from rmtheory.symbolic import local_identities as numerics
from rmtheory.symbolic import local_identities as second
from rmtheory.symbolic import replica
from rmtheory.symbolic.annealed import COUPLINGS
from rmtheory.symbolic.definitions import (
    Expr,
    P,
    gauss,
    h,
    layered,
    linearised_square,
    n,
    replicas,
    shifted_symbols,
    v,
)
from rmtheory.symbolic.derivation import Derivation, Formula, Step
from rmtheory.symbolic.local_functional import Mean, log_norm, q1, y, zeta_symbol
from rmtheory.symbolic.local_identities import all_checks

# The Python module.

#: The integrals over the 2L fields are not written out; what stands between @ depends on L.
_INTEGRAL = '''
def trapezoid(step, cutoff):
    """Return nodes and weights of the standard Gaussian, equidistant up to about +-cutoff."""
    half = math.ceil(cutoff / step)
    nodes = [k * step for k in range(-half, half + 1)]
    return [(x, step * math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)) for x in nodes]


def tilted(@couplings@, d, y, qhat, step=@step@, cutoff=8.0):
    """Return G = log int zeta^y and <log zeta>_y; qhat has one entry per layer.

    A trapezoid rule in the 2 L fields, its step in units of the width on which zeta varies: the
    error falls exponentially in 1/step (two layers: about 1e-9 at 0.7, 1e-6 at 0.9), the cost
    grows as its power 2 L.
    """
    q1 = 1.0 - 2.0 * d
    tables = []
    for site, k in zip((@sites@,), qhat):
        width, reach = math.sqrt(2.0 * d / max(2.0 * d, q1)), cutoff + y * math.sqrt(k)
        fields = trapezoid(step * width, cutoff)
        tilts = trapezoid(step / max(1.0, math.sqrt(k)), reach)
        tables.append(
            [(w * u, site(@couplings@, q1, k, t, z)[0]) for z, w in fields for t, u in tilts]
        )
    norm, logs = [], []
    for point in itertools.product(*tables):
        zeta = sum(map(math.prod, zip(*(row for _, row in point))))
        if zeta > 0.0:
            weight = math.prod(w for w, _ in point) * zeta**y
            norm.append(weight)
            logs.append(weight * math.log(zeta))
    total = math.fsum(norm)
    return math.log(total), math.fsum(logs) / total


def local_entropy(@couplings@, d, y, qhat, step=@step@, cutoff=8.0):
    """Return (phi, S_I, S_E) per neuron at any qhat; they are physical where <m_l^2> = q1."""
    q1 = 1.0 - 2.0 * d
    log_norm, mean_log = tilted(@couplings@, d, y, qhat, step, cutoff)
    return (
        free_entropy(q1, y, qhat, log_norm),
        internal_entropy(q1, y, qhat, mean_log),
        external_entropy(q1, y, qhat, log_norm, mean_log),
    )
'''


def _couplings(layers: int) -> tuple[tuple[str, Expr], ...]:
    return COUPLINGS[:1] if layers == 1 else COUPLINGS


def site_row(layers: int, layer: int) -> Expr:
    """Return the factor of one layer (from 0) in zeta for each of the 2^L columns, as a row.

    Examples
    --------
    >>> site_row(1, 0)[0]
    exp(sqrt(qhat_1)*t_1)*P((J_D + sqrt(q1)*z_1)/sqrt(1 - q1))
    """
    at = replica.order_parameters(layers)
    row = []
    for spins in product((1, -1), repeat=layers):
        factors = replica.replica_weight(layers, spins).args
        own = [f for f in factors if f.has(at.t[layer]) or f.has(at.z[layer])]
        row.append(sp.Mul(*own).subs(at.q[layer], q1))
    return sp.Matrix([row])


def formulas(layers: int) -> tuple[Formula, ...]:
    """Return the functions of the module: factors of zeta, phi, S_I and S_E."""
    at = replica.order_parameters(layers)
    ell = sp.Symbol("mean_log", real=True)
    common = (("q1", q1), ("y", y), ("qhat", at.qhat))
    phi = local.evaluated(local.free_entropy(layers), layers)
    sites = [
        Formula(
            f"site_{k + 1}",
            f"Factor of layer {k + 1} in zeta, one entry for each of the {2**layers} columns.",
            (
                *_couplings(layers),
                ("q1", q1),
                ("qhat", at.qhat[k]),
                ("t", at.t[k]),
                ("z", at.z[k]),
            ),
            site_row(layers, k),
        )
        for k in range(layers)
    ]

    def entropy(name: str, doc: str, expression: Expr, *extra: tuple[str, Expr]) -> Formula:
        value = expression.xreplace({local.mean_log: ell}) / layers
        return Formula(name, doc, (*common, *extra), value)

    norm, log = ("log_norm", log_norm), ("mean_log", ell)
    return (
        *sites,
        entropy("free_entropy", "Free entropy phi per neuron.", phi, norm),
        entropy(
            "internal_entropy",
            "Internal entropy S_I per neuron.",
            local.internal_entropy(layers),
            log,
        ),
        entropy(
            "external_entropy",
            "External entropy S_E per neuron.",
            local.external_entropy(layers),
            norm,
            log,
        ),
    )


def code(layers: int) -> str:
    """Return the functions that integrate."""
    source = _INTEGRAL.replace("@couplings@", ", ".join(name for name, _ in _couplings(layers)))
    source = source.replace("@sites@", ", ".join(f"site_{k}" for k in range(1, layers + 1)))
    return source.replace("@step@", "0.3" if layers == 1 else "0.8")


# The derivation, step by step.

_phi, _S_I, _S_E = sp.symbols("phi S_I S_E")


def derive_local_entropy(layers: int | float) -> Derivation:
    """Local entropy of L = 1 or 2 layers, from y replicas at mutual overlap q1."""
    count = int(layers)
    steps = (
        *_counting_steps(count),
        *_entropy_steps(count),
        *_slope_steps(count),
        *_tangent_steps(count),
        *_second_moment_steps(count),
    )
    return Derivation(
        "local-entropy", count, steps, all_checks(count), formulas(count), code(count)
    )


def _per_neuron(expression: Expr, layers: int) -> Expr:
    return expression if layers == 1 else sp.Mul(sp.Rational(1, layers), expression, evaluate=False)


def _counting_steps(layers: int) -> list[Step]:
    m, sigma = shifted_symbols()
    s = sp.Symbol("s", integer=True)
    k, squared = linearised_square()
    tilts, x = local.fields(layers)
    qhats = local.conjugates(layers)
    pairs, square, _ = replica.coupling_exponent(3)
    block, energy = sp.Symbol("Z_block", positive=True), sp.Symbol("e", real=True)
    measure = sp.Mul(
        *(n(f / sp.sqrt(w)) / sp.sqrt(w) for f, w in zip(tilts, qhats, strict=True)),
        *(n(f / sp.sqrt(q1)) / sp.sqrt(q1) for f in x),
    )
    limits = [(f, -sp.oo, sp.oo) for f in (*tilts, *x)]
    return [
        Step(
            "Condition of one replica",
            "the n replicas form blocks of y, with overlap `q1 = 1 - 2d` inside a block and "
            "`q0 = 0` outside (1RSB); inside, the fields of a site are `h_a = x + sigma xi_a`, "
            "independent given `x` of variance q1: mean `m = x`, deviation `sigma = sqrt(1-q1)`",
            sp.Integral(sp.Heaviside(s * h + v) * n((h - m) / sigma) / sigma, (h, -sp.oo, sp.oo)),
            P((v + s * m) / sigma),
        ),
        Step(
            "Coupling of the replicas of a block",
            "`s_a^2 = 1`, here for three; the sum runs over `a < b` (erratum 12), and outside the "
            "blocks `qhat0 = 0`, which is stationary by the flip of all spins and is assumed "
            "stable (erratum 19)",
            pairs,
            square,
        ),
        Step(
            "Linearised by a Gaussian field",
            "with `k = sqrt(qhat) sum_a s_a`: a field `sqrt(qhat) h` of variance qhat, called h "
            "from here on, couples to every replica of the block",
            sp.Integral(sp.exp(k * h) * gauss(h), (h, -sp.oo, sp.oo)),
            squared,
        ),
        Step(
            "One replica at fixed h, x",
            f"sum over the 2^{layers} columns, `h_l ~ N(0, qhat_l)`, `x_l ~ N(0, q1)`; the y "
            "replicas of a block give `zeta^y`",
            zeta_symbol,
            local.zeta(layers),
        ),
        Step(
            "Pairs inside the blocks",
            "n/y blocks of `y(y-1)/2`; each pair brings `-qhat_l q1`, each replica `-qhat_l/2`",
            "N_pairs",
            sp.factor(local.block_pairs()),
        ),
        Step(
            "Replicated count",
            "`(1/N) log E[N^n]`, n/y independent blocks, is proportional to n (erratum 13 has the "
            "1/n); `e` stands for the terms of the line before, over n, and `Z_block` for the "
            "integral of `zeta^y`",
            layers * _phi,
            energy + sp.expand_log(sp.log(block ** (replicas / y)), force=True) / replicas,
        ),
        Step(
            "Local-entropy functional",
            "extremised over qhat it is y times the free entropy; phi is per neuron"
            if layers > 1
            else "extremised over qhat it is y times the free entropy",
            layers * y * _phi,
            local.functional(layers).xreplace({local.undefined_G(layers): log_norm}),
        ),
        Step(
            "Its integral",
            "all fields of one block; averages `<.>_y` are tilted by `zeta^y`",
            log_norm,
            sp.log(sp.Integral(measure * zeta_symbol**y, *limits)),
        ),
    ]


def _entropy_steps(layers: int) -> list[Step]:
    kernel, x, k = local.heat_kernel()
    qhats = local.conjugates(layers)
    in_h, _ = local.curvature_in_field()
    rules = local.derivatives_of_G(layers)
    value = layers * y * _phi
    G, m = local.undefined_G(layers), sp.Symbol("m", real=True)
    steps = [
        Step(
            "Heat equation",
            "of the Gaussian density in its variance k; by parts, `d/dk E[g] = E[g'']/2`",
            sp.Derivative(kernel, k),
            sp.Derivative(kernel, (x, 2)) / 2,
        ),
        Step(
            "Second derivative of the tilt",
            "in a field h, with `m = d log zeta/dh`, the mean spin at fixed fields, and "
            "`d^2 zeta/dh^2 = zeta`",
            sp.Symbol("c"),
            sp.collect(in_h, m**2),
        ),
    ]
    for layer, each in enumerate(qhats, start=1):
        steps += [
            Step(
                "Derivative of the integral",
                "half the average of c",
                sp.Derivative(log_norm, each),
                rules[sp.Derivative(G, each)],
            ),
            Step(
                "Saddle-point equation",
                f"zero where `<m_{layer}^2>_y = q1`",
                sp.Derivative(value, each),
                local.stationarity(layers, layer),
            ),
        ]
    return [
        *steps,
        Step(
            "Internal entropy",
            "`S_I = d(y phi)/dy`, in which qhat may be held fixed, and `dG/dy = <log zeta>_y`",
            _S_I,
            _per_neuron(local.internal_entropy(layers), layers),
        ),
        Step(
            "External entropy",
            "`S_E = y phi - y S_I`",
            _S_E,
            _per_neuron(local.external_entropy(layers), layers),
        ),
        Step(
            "Derivative of phi in y",
            "at the saddle; `S_I = phi` is stationary where `S_E = 0`, at `y = y*(d)`",
            sp.Derivative(_phi, y),
            -_S_E / y**2,
        ),
    ]


def _slope_steps(layers: int) -> list[Step]:
    x, s, sigma = sp.Symbol("x", real=True), sp.Symbol("s"), sp.sqrt(1 - q1)
    factor = P((v + s * x) / sigma)
    _, in_x = local.curvature_in_field()
    f = sp.Symbol("f", real=True)
    rules = local.derivatives_of_G(layers)
    return [
        Step(
            "Backward heat equation",
            "of one factor in q1, with `s^2 = 1`: it is `-1/2` times the second derivative in x; "
            "summed over the layers it holds for zeta",
            sp.Derivative(factor, q1),
            -sp.Derivative(factor, (x, 2)) / 2,
        ),
        Step(
            "Second derivative of the tilt in a field x",
            "with `f = d log zeta/dx` and `g = (d^2 zeta/dx^2)/zeta`",
            "c_x",
            sp.collect(in_x, f**2),
        ),
        Step(
            "Derivative of the integral in q1",
            "half the average of `c_x` from the variance of x, and `-(y/2) <g>` from zeta: the "
            "terms in g cancel",
            sp.Derivative(log_norm, q1),
            sp.factor(rules[sp.Derivative(local.undefined_G(layers), q1)]),
        ),
        Step(
            "Slope",
            "`dphi/dd` at the saddle, `q1 = 1 - 2d`; along `y*(d)`, where `S_E = 0`, it is the "
            "slope of `S_I`",
            sp.Derivative(_S_I, local.d),
            _per_neuron(local.slope(layers), layers),
        ),
    ]


def _tangent_steps(layers: int) -> list[Step]:
    zeta, m = sp.log(zeta_symbol), layered("m", layers, real=True)
    names = [sp.Symbol(f"c_{k}") for k in range(1, layers + 1)]
    qhats = local.conjugates(layers)

    def derivative(observable: Expr, curved: Expr, k: int) -> Step:
        return Step(
            "Tangent",
            "by the heat equation, `(zeta^y O)''/zeta^y` averaged, less the change of the norm",
            sp.Derivative(Mean(observable), qhats[k]),
            (Mean(curved) - Mean(observable) * Mean(names[k])) / 2,
        )

    steps = []
    for k in range(layers):
        plain = names[k] * zeta + 2 * y * m[k] ** 2 + 1 - m[k] ** 2
        steps += [
            Step("Curvature", "the c of above", names[k], numerics.curvature(m[k])),
            derivative(zeta, plain, k),
        ]
        for layer in range(layers):
            # Off the diagonal the response is a symbol of its own.
            chi = 1 - m[k] ** 2 if layer == k else sp.Symbol("chi", real=True)
            square = numerics.curved_square(m[layer], m[k], chi)
            change = square - numerics.curvature(m[k]) * m[layer] ** 2
            steps.append(derivative(m[layer] ** 2, names[k] * m[layer] ** 2 + change, k))
    if layers > 1:
        steps.append(
            Step(
                "Response of the other layer",
                "`dm_1/dh_2 = dm_2/dh_1`, with `c_12` the mean of `s_1 s_2` at fixed fields",
                "chi",
                sp.Symbol("c_12") - m[0] * m[1],
            )
        )
    return steps


def _second_moment_steps(layers: int) -> list[Step]:
    value = layers * y * _phi
    steps = [
        Step(
            "The integral at y = 2",
            "expand `zeta^2` and integrate: `E exp(k h) = exp(qhat k^2/2)`, and "
            "`F(a, b, rho)` is the probability that two unit Gaussians of correlation rho exceed "
            "-a and -b",
            log_norm,
            sp.log(second.integrated_power(layers, 2)),
        ),
        Step(
            "Second moment",
            "the functional at y = 2 is the exponent of `E[Z^2]` at overlap q1, whose fields are "
            "qhat and whose minimum over them is unique: this settles the factor y, misprinted "
            "in the paper (erratum 14)",
            value.subs(y, 2),
            second.second_moment_dual(layers),
        ),
    ]
    if layers > 1:
        return steps
    (k,) = local.conjugates(1)
    up = sp.Symbol("H_b") + sp.log(2)
    return [
        *steps,
        Step("Its saddle", "a linear equation for `exp(2 qhat)`", k, second.saddle_core()),
        Step(
            "Its value",
            "with the entropy `H_b` of `(1+q1)/2`, the exponent of SM-A",
            value.subs(y, 2),
            second.second_moment_core() + up - sp.log(2) - second.binary_entropy((1 + q1) / 2),
        ),
        Step(
            "As J_D -> infinity",
            "both F are 1: the number of pairs of configurations at distance d",
            value.subs(y, 2),
            sp.log(2) + second.binary_entropy(local.d),
        ),
    ]
