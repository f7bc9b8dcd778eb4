"""Derivation of the annealed entropy, from the count to (1/L) log z or to log mu_+."""

from __future__ import annotations

import math

import sympy as sp

from rmtheory.symbolic import annealed, spectrum
from rmtheory.symbolic.definitions import (
    Expr,
    J,
    P,
    gauge_symbols,
    gauss,
    h,
    lambda_L,
    lambda_R,
    spin_symbols,
    theta_average,
    v,
)
from rmtheory.symbolic.derivation import Check, Derivation, Formula, Step
from rmtheory.symbolic.exact import identical

#: Couplings as the arguments of the Python functions.
COUPLINGS = (("jd", J), ("lam_left", lambda_L), ("lam_right", lambda_R))

_z, _s = sp.Symbol("z"), sp.Symbol("s", integer=True)


def derive_annealed(layers: int | float) -> Derivation:
    """Annealed entropy of L layers, L >= 1 or infinite."""
    if math.isinf(layers):
        return _infinite()
    count = int(layers)
    steps = [*_count_steps(_shown(count)), *_explicit_steps(count)]
    if count >= 2:
        steps += _transfer_steps(_shown(count), sp.Integer(count))
    if count >= 3:
        steps += _spectral_steps(sp.Integer(count))
    steps.append(
        Step("Annealed entropy", "per site and layer", "S_a", sp.log(_z) / sp.Integer(count))
    )
    explicit = count <= annealed.MOST_LAYERS_EXPLICIT
    entropy = annealed.entropy(count) if explicit else spectrum.closed_entropy(count)
    formulas = [
        Formula(
            "annealed_entropy",
            "Annealed entropy S_a = (1/L) log z.",
            COUPLINGS,
            entropy,
            defaults=2 if count == 1 else 0,
        )
    ]
    if explicit:
        formulas.insert(
            0,
            Formula(
                "partition_sum",
                "Partition sum z of one column, E[N_fp] = z^N.",
                COUPLINGS,
                annealed.gauge_sum(count),
                defaults=2 if count == 1 else 0,
            ),
        )
    return Derivation("annealed", count, tuple(steps), _checks(count), tuple(formulas))


def _infinite() -> Derivation:
    finite, limit = spectrum.entropy_of_large_chain(1)
    L = sp.Symbol("L", positive=True, integer=True)
    shown = _shown(math.inf)
    steps = [
        *_count_steps(shown),
        *_transfer_steps(shown, L),
        *_spectral_steps(L),
        Step(
            "Entropy of a long chain",
            "`|mu_-| < mu_+` and `c_+ > 0`; with `|mu_-|/mu_+ = exp(-g)` and `c_-` for its modulus "
            "the correction has either sign",
            "S_a",
            finite,
        ),
        Step("Limit of infinitely many layers", "the same for both signs", "S_oo", limit),
    ]
    formula = Formula(
        "annealed_entropy",
        "Annealed entropy of the infinite chain, log mu_+.",
        COUPLINGS,
        spectrum.limit_entropy(),
    )
    both = {spectrum.entropy_of_large_chain(sign)[1] for sign in (1, -1)} == {limit}
    checks = (*_spectral_checks(), Check("the limit is the same for both signs", both))
    return Derivation("annealed", math.inf, tuple(steps), checks, (formula,))


def _shown(layers: int | float) -> int:
    """How many layers a written-out column has; a long one looks like three."""
    return int(layers) if layers <= annealed.MOST_LAYERS_EXPLICIT else 3


def _count_steps(layers: int) -> list[Step]:
    spins = spin_symbols(layers)
    return [
        Step(
            "Gaussian average of one condition",
            "at fixed spins the fields `h` are independent Gaussians of variance "
            "`sigma_N^2 = (N-1)/N`, set to 1 here (at finite N divide the couplings by `sigma_N`); "
            "the integral is `P(v) = H(-v) = (1 + erf(v/sqrt(2)))/2`",
            sp.Integral(sp.Heaviside(_s * h + v) * gauss(h), (h, -sp.oo, sp.oo)),
            P(v),
        ),
        Step(
            "Weight of one column" if layers > 1 else "Weight of one spin",
            "product over the layers (written for "
            f"{layers}) of the probability that the site is satisfied"
            if layers > 1
            else "the probability that the site is satisfied",
            sp.Function("w")(*spins),
            annealed.column_weight(layers),
        ),
        Step(
            "Mean number of fixed points",
            "the mean of the product of thetas factorises over the N sites, so the sum over all "
            "spins is the N-th power of the sum `z` over one column",
            sp.Function("E")(sp.Symbol("N_fp")),
            _z ** sp.Symbol("N"),
        ),
    ]


def _explicit_steps(layers: int) -> list[Step]:
    if layers > annealed.MOST_LAYERS_EXPLICIT:
        return []
    return [
        Step(
            "Partition sum",
            f"sum over the 2^{layers} columns; a column and its mirror image weigh the same",
            _z,
            annealed.partition_sum(layers),
        )
    ]


def _transfer_steps(shown: int, layers: Expr) -> list[Step]:
    chain = annealed.transfer()
    taus = gauge_symbols(shown)
    a, b = (sp.MatrixSymbol(name, 2, 1) for name in "ab")
    K = sp.MatrixSymbol("K", 2, 2)
    steps = [
        Step(
            "Gauge reduction",
            "substitute `s_(l+1) = tau_l s_l`; with `s^2 = 1` the spin `s_1` drops out, and its "
            "sum gives a factor 2",
            sp.Function("w")(*taus),
            annealed.gauge_weight(shown),
        ),
        Step("First layer", "rows `tau = +1, -1`", "a", chain.a),
        Step("Last layer", "rows `tau = +1, -1`", "b", chain.b),
    ]
    if layers != 2:
        steps.append(
            Step("Inner layer", "row `tau_(l-1)`, column `tau_l`", "K", chain.K),
        )
    product = a.T * b if layers == 2 else a.T * K ** (layers - 2) * b
    steps.append(
        Step("Transfer matrix", "the sum over the tau's is a matrix product", _z, 2 * product)
    )
    return steps


def _spectral_steps(layers: Expr) -> list[Step]:
    s = spectrum.spectrum()
    c_plus, c_minus, mu_plus, mu_minus = sp.symbols("c_+ c_- mu_+ mu_-")
    return [
        Step("Leading eigenvalue", "of `K = ((A, B), (C, D))`", mu_plus, s.plus),
        Step("Second eigenvalue", "of the same matrix", mu_minus, s.minus),
        Step(
            "Leading amplitude",
            "`a^T (K - mu_-) b/(mu_+ - mu_-)`",
            c_plus,
            spectrum.amplitude(-mu_minus, 1) / (mu_plus - mu_minus),
        ),
        Step(
            "Second amplitude",
            "`a^T (mu_+ - K) b/(mu_+ - mu_-)`",
            c_minus,
            spectrum.amplitude(mu_plus, -1) / (mu_plus - mu_minus),
        ),
        Step(
            "Closed form",
            "by the spectral projectors of `K`",
            _z,
            2 * (c_plus * mu_plus ** (layers - 2) + c_minus * mu_minus ** (layers - 2)),
        ),
    ]


def _spectral_checks() -> tuple[Check, ...]:
    s, K = spectrum.spectrum(), spectrum.symbolic_matrix()
    one = s.projector_plus + s.projector_minus
    eigen = identical(K * s.projector_plus, s.plus * s.projector_plus) and identical(
        K * s.projector_minus, s.minus * s.projector_minus
    )
    return (
        Check("the spectral projectors sum to 1", identical(one, sp.eye(2))),
        Check("K acts on each projector by its eigenvalue, hence the closed form for all L", eigen),
    )


def _checks(layers: int) -> tuple[Check, ...]:
    erf = P(v).rewrite(sp.erfc).rewrite(sp.erf)
    gaussian = all(sp.expand(theta_average(s) - erf) == 0 for s in (1, -1))
    checks = [Check("the integral over h is P(v) for s = +1 and s = -1", gaussian)]
    if layers <= annealed.MOST_LAYERS_EXPLICIT:
        z = annealed.partition_sum(layers)
        checks.append(
            Check(
                "the gauge-reduced sum is the sum over all columns",
                identical(z, annealed.gauge_sum(layers)),
            )
        )
        if layers >= 2:
            checks += [
                Check(
                    "the 2 x 2 transfer matrix gives the same polynomial in the P's",
                    identical(z, annealed.transfer().partition(layers)),
                ),
                Check(
                    "so does the paper's recursion on pairs of spins",
                    identical(z, annealed.paper_transfer(layers)),
                ),
            ]
    if layers >= 3:
        checks += _spectral_checks()
    return tuple(checks)
