"""Derivation of the replica-symmetric functional for L = 1 ... 4 layers."""

from __future__ import annotations

import sympy as sp

from rmtheory.symbolic import annealed, replica
from rmtheory.symbolic.definitions import (
    P,
    gauss,
    gaussian_mean,
    h,
    linearised_square,
    n,
    replicas,
    shifted_symbols,
    shifted_theta_average,
    v,
)
from rmtheory.symbolic.derivation import Check, Derivation, Formula, Step
from rmtheory.symbolic.exact import identical
from rmtheory.symbolic.topic_annealed import COUPLINGS

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
