r"""Derivation of the annealed entropy, from the count to (1/L) log z or to log mu_+ (paper, SM-A).

The count is N_fp = sum_s prod_{i,l} theta(u_i^l). At fixed s the fields h_i^l are independent
N(0, 1), so each theta averages to P(v_i^l) and the mean is a product over sites; summed over all
spins it is z^N with z the sum over one column. Every step is done by substitution or expansion, and
the tests show each one equal to the one before. With the eigenvalues of the transfer matrix z has a
closed form for every L, and a limit of large L:

.. math:: \mu_\pm = \frac{A+D}{2} \pm R,\quad R = \sqrt{\Big(\frac{A-D}{2}\Big)^2 + BC},\qquad
    z_L = 2\,(c_+ \mu_+^{L-2} + c_- \mu_-^{L-2}),\qquad S_\infty = \log \mu_+ .
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import product

import sympy as sp

from rmtheory.symbolic.definitions import (
    Expr,
    J,
    Matrix,
    P,
    gauge_symbols,
    gauss,
    gaussian_mean,
    h,
    identical,
    lambda_L,
    lambda_R,
    spin_symbols,
    stabilities,
    theta_average,
    v,
)
from rmtheory.symbolic.derivation import Check, Derivation, Formula, Step

# The partition sum of one column, from the count to the transfer matrix.

#: Above this the partition sum is given by its transfer matrix, not written out.
MOST_LAYERS_EXPLICIT = 6


def field_covariance(sites: int) -> Matrix:
    r"""Covariance of the fields h_i = sum_{j != i} J_ij s_j at fixed spins, J_ij ~ N(0, 1/N).

    It is sigma_N^2 times the identity, sigma_N^2 = (N-1)/N -> 1: the fields are independent, and at
    finite N the couplings (J_D, lambda) are to be divided by sigma_N.

    Examples
    --------
    >>> field_covariance(3)
    Matrix([
    [2/3,   0,   0],
    [  0, 2/3,   0],
    [  0,   0, 2/3]])
    """
    spins = spin_symbols(sites)
    # J_ij = x_ij / sqrt(N) with x_ij ~ N(0, 1).
    x = [[sp.Symbol(f"x_{i}_{j}", real=True) for j in range(sites)] for i in range(sites)]
    fields = [
        sp.Add(*(x[i][j] * spins[j] for j in range(sites) if j != i)) / sp.sqrt(sites)
        for i in range(sites)
    ]
    variables = tuple(x[i][j] for i in range(sites) for j in range(sites) if j != i)
    return sp.Matrix(
        sites,
        sites,
        lambda i, k: _reduce_squares(gaussian_mean(fields[i] * fields[k], variables), spins),
    )


def column_weight(layers: int) -> Expr:
    """Mean of the product of thetas of one column at fixed spins: prod_l P(v_l).

    Examples
    --------
    >>> column_weight(2)
    P(J_D + lambda_L*s_1*s_2)*P(J_D + lambda_R*s_1*s_2)
    """
    return sp.Mul(*(P(x) for x in stabilities(spin_symbols(layers))))


@cache
def partition_sum(layers: int) -> Expr:
    """Sum the column weight over all 2^L columns: the definition of z.

    Examples
    --------
    >>> partition_sum(1)
    2*P(J_D)
    """
    spins = spin_symbols(layers)
    return _sum_over(column_weight(layers), spins)


def mean_count(layers: int, sites: int) -> Expr:
    """Sum the mean of prod theta over all 2^(L N) configurations of `sites` columns, no factoring.

    It equals partition_sum(L)^N: the interaction lies in the couplings, and these are averaged.
    """
    weight = column_weight(layers)
    spins = spin_symbols(layers)
    values = [weight.subs(_at(spins, column)) for column in product((-1, 1), repeat=layers)]
    return sp.Add(*(sp.Mul(*chosen) for chosen in product(values, repeat=sites)))


@cache
def gauge_weight(layers: int) -> Expr:
    r"""Substitute s^l = s^1 tau_1 ... tau_{l-1} in the column weight; s^1 must drop out.

    Examples
    --------
    >>> gauge_weight(3)
    P(J_D + lambda_L*tau_2)*P(J_D + lambda_R*tau_1)*P(J_D + lambda_L*tau_1 + lambda_R*tau_2)
    """
    spins, taus = spin_symbols(layers), gauge_symbols(layers)
    images = [spins[0]]
    for tau in taus:
        images.append(images[-1] * tau)
    factors = [
        P(_reduce_squares(sp.expand(x), (spins[0], *taus))) for x in stabilities(tuple(images))
    ]
    return sp.Mul(*factors)


@cache
def gauge_sum(layers: int) -> Expr:
    """Sum the gauge weight over s^1 (a factor 2, since it dropped out) and over the tau's."""
    spins, taus = spin_symbols(layers), gauge_symbols(layers)
    return _sum_over(gauge_weight(layers), (spins[0], *taus))


@dataclass(frozen=True)
class Transfer:
    """z = 2 a^T K^(L-2) b for L >= 2; rows and columns in the order tau = +1, -1."""

    a: Matrix
    K: Matrix
    b: Matrix

    def partition(self, layers: int) -> Expr:
        """Return z by the matrix power."""
        return 2 * (self.a.T * self.K ** (layers - 2) * self.b)[0, 0]


@cache
def transfer() -> Transfer:
    """Read the transfer matrix off the gauge weight of three layers.

    Its three factors depend on tau_1, on (tau_1, tau_2) and on tau_2: they are the first layer,
    an inner layer and the last layer of a chain of any length.
    """
    first, last = gauge_symbols(3)
    factors = {frozenset(f.free_symbols & {first, last}): f for f in gauge_weight(3).args}
    # Of the two end factors, the one in tau_1 is layer 1 and the one in tau_2 is layer L.
    inner = factors[frozenset({first, last})]
    left, right = factors[frozenset({first})], factors[frozenset({last})]
    signs = (1, -1)
    return Transfer(
        a=sp.Matrix([left.subs(first, s) for s in signs]),
        K=sp.Matrix([[inner.subs({first: s, last: t}) for t in signs] for s in signs]),
        b=sp.Matrix([right.subs(last, t) for t in signs]),
    )


def paper_transfer(layers: int) -> Expr:
    """Return z by the paper's recursion f_{k+1} = M f_k on pairs of spins, for L >= 2.

    M is built from the recursion itself, sum over s^k of f_k(s^k, s^{k+1}) P(v_{k+1}), with the
    printed initial vector (s^1 = +1 fixed) and the factor 2 for the other sign.
    """
    states = tuple(product((-1, 1), repeat=2))
    f = {(s, t): P(J + lambda_R * s * t) if s == 1 else sp.S.Zero for s, t in states}
    for _ in range(layers - 2):
        f = {
            (s, t): sum(f[r, s] * P(J + lambda_L * r * s + lambda_R * s * t) for r in (-1, 1))
            for s, t in states
        }
    return 2 * sp.Add(*(f[s, t] * P(J + lambda_L * s * t) for s, t in states))


def entropy(layers: int) -> Expr:
    """Annealed entropy S_a = (1/L) log z, z written out.

    Examples
    --------
    >>> entropy(1)
    log(2*P(J_D))
    """
    return sp.log(gauge_sum(layers)) / layers


def _at(variables: tuple[Expr, ...], values: tuple[int, ...]) -> dict[Expr, int]:
    return dict(zip(variables, values, strict=True))


def _sum_over(weight: Expr, variables: tuple[Expr, ...]) -> Expr:
    return sp.Add(
        *(weight.subs(_at(variables, values)) for values in product((1, -1), repeat=len(variables)))
    )


def _reduce_squares(expression: Expr, signs: tuple[Expr, ...]) -> Expr:
    """Use s^2 = 1 for every sign."""
    for s in signs:
        expression = expression.subs(s**2, 1)
    return expression


# Eigenvalues of the transfer matrix, and the limit of large L.

#: Entries of K = ((A, B), (C, D)) and of the end vectors, all positive.
A, B, C, D = sp.symbols("A B C D", positive=True)

a_plus, a_minus, b_plus, b_minus = sp.symbols("a_+ a_- b_+ b_-", positive=True)


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of K, their spectral projectors and amplitudes c = a^T projector b."""

    plus: Expr
    minus: Expr
    projector_plus: Matrix
    projector_minus: Matrix
    c_plus: Expr
    c_minus: Expr

    def partition(self, layers: Expr) -> Expr:
        """Return z_L = 2 (c_+ mu_+^(L-2) + c_- mu_-^(L-2))."""
        power = layers - 2
        return 2 * (self.c_plus * self.plus**power + self.c_minus * self.minus**power)


def symbolic_matrix() -> Matrix:
    """Return K with its four entries as symbols."""
    return sp.Matrix([[A, B], [C, D]])


def entries() -> dict[Expr, Expr]:
    """Return what A, B, C, D and the end vectors stand for."""
    chain = transfer()
    symbols = (A, B, C, D, a_plus, a_minus, b_plus, b_minus)
    return dict(zip(symbols, (*chain.K, *chain.a, *chain.b), strict=True))


@cache
def spectrum() -> Spectrum:
    r"""Diagonalise K. The projectors are (K - mu_-)/(mu_+ - mu_-) and (K - mu_+)/(mu_- - mu_+).

    Examples
    --------
    >>> spectrum().plus
    A/2 + D/2 + sqrt(A**2 - 2*A*D + 4*B*C + D**2)/2
    """
    K = symbolic_matrix()
    # The distance of the eigenvalues is a positive square root; the larger one carries its plus.
    minus, plus = sorted(K.eigenvals(), key=lambda mu: mu.subs({A: 2, B: 1, C: 1, D: 1}))
    gap = sp.expand(plus - minus)
    one = sp.eye(2)
    to_plus, to_minus = (K - minus * one) / gap, (plus * one - K) / gap
    return Spectrum(
        plus, minus, to_plus, to_minus, amplitude(-minus, 1) / gap, amplitude(plus, -1) / gap
    )


def amplitude(shift: Expr, sign: int) -> Expr:
    """Return a^T (shift + sign K) b."""
    a, b = sp.Matrix([a_plus, a_minus]), sp.Matrix([b_plus, b_minus])
    return (a.T * (shift * sp.eye(2) + sign * symbolic_matrix()) * b)[0, 0]


def amplitude_symbols() -> tuple[Expr, Expr]:
    """Return c_+ > 0 and |c_-| of :func:`entropy_of_large_chain`."""
    return sp.Symbol("c_+", positive=True), sp.Symbol("c_-", positive=True)


def entropy_of_large_chain(sign: int) -> tuple[Expr, Expr]:
    r"""Return (1/L) log z_L bounded with the sign +1 or -1 of its correction, and its limit.

    \|mu_-\| < mu_+, since mu_+ + mu_- = A + D > 0 and mu_+ - mu_- = 2R > 0; and c_+ > 0, since
    R > \|A - D\|/2 makes A - mu_- = R + (A-D)/2 and D - mu_- = R - (A-D)/2 positive, and with them
    every entry of K - mu_-. With \|mu_-\|/mu_+ = e^{-g},

    .. math:: \frac1L\log z_L = \frac{\log 2 + (L-2)\log\mu_+
        + \log(c_+ \pm |c_-| e^{-g(L-2)})}{L}

    holds with the sign + or - according to L and to the sign of mu_-, and both have one limit.

    Examples
    --------
    >>> [entropy_of_large_chain(sign)[1] for sign in (1, -1)]
    [log(mu_+), log(mu_+)]
    """
    L, g, mu = sp.symbols("L g mu_+", positive=True)
    c_plus, c_minus = amplitude_symbols()
    correction = sp.log(c_plus + sign * c_minus * sp.exp(-g * (L - 2)))
    finite = (sp.log(2) + (L - 2) * sp.log(mu) + correction) / L
    return finite, sp.limit(finite, L, sp.oo)


@cache
def limit_entropy() -> Expr:
    """S_a of the infinite chain, log mu_+ with the entries put in."""
    mu = sp.Symbol("mu_+", positive=True)
    limits = {entropy_of_large_chain(sign)[1] for sign in (1, -1)}
    (limit,) = limits
    return limit.subs(mu, spectrum().plus).subs(entries())


def closed_entropy(layers: int) -> Expr:
    """S_a of L >= 3 layers by the eigenvalues, with mu_+^(L-2) taken out of the logarithm."""
    s = spectrum()
    inside = s.c_plus + s.c_minus * (s.minus / s.plus) ** (layers - 2)
    closed = (sp.log(2) + (layers - 2) * sp.log(s.plus) + sp.log(inside)) / layers
    return closed.subs(entries())


# The derivation, step by step.

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
    explicit = count <= MOST_LAYERS_EXPLICIT
    S_a = entropy(count) if explicit else closed_entropy(count)
    formulas = [
        Formula(
            "annealed_entropy",
            "Annealed entropy S_a = (1/L) log z.",
            COUPLINGS,
            S_a,
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
                gauge_sum(count),
                defaults=2 if count == 1 else 0,
            ),
        )
    return Derivation("annealed", count, tuple(steps), _checks(count), tuple(formulas))


def _infinite() -> Derivation:
    finite, limit = entropy_of_large_chain(1)
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
        limit_entropy(),
    )
    both = {entropy_of_large_chain(sign)[1] for sign in (1, -1)} == {limit}
    checks = (*_spectral_checks(), Check("the limit is the same for both signs", both))
    return Derivation("annealed", math.inf, tuple(steps), checks, (formula,))


def _shown(layers: int | float) -> int:
    """How many layers a written-out column has; a long one looks like three."""
    return int(layers) if layers <= MOST_LAYERS_EXPLICIT else 3


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
            column_weight(layers),
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
    if layers > MOST_LAYERS_EXPLICIT:
        return []
    return [
        Step(
            "Partition sum",
            f"sum over the 2^{layers} columns; a column and its mirror image weigh the same",
            _z,
            partition_sum(layers),
        )
    ]


def _transfer_steps(shown: int, layers: Expr) -> list[Step]:
    chain = transfer()
    taus = gauge_symbols(shown)
    a, b = (sp.MatrixSymbol(name, 2, 1) for name in "ab")
    K = sp.MatrixSymbol("K", 2, 2)
    steps = [
        Step(
            "Gauge reduction",
            "substitute `s_(l+1) = tau_l s_l`; with `s^2 = 1` the spin `s_1` drops out, and its "
            "sum gives a factor 2",
            sp.Function("w")(*taus),
            gauge_weight(shown),
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
    s = spectrum()
    c_plus, c_minus, mu_plus, mu_minus = sp.symbols("c_+ c_- mu_+ mu_-")
    return [
        Step("Leading eigenvalue", "of `K = ((A, B), (C, D))`", mu_plus, s.plus),
        Step("Second eigenvalue", "of the same matrix", mu_minus, s.minus),
        Step(
            "Leading amplitude",
            "`a^T (K - mu_-) b/(mu_+ - mu_-)`",
            c_plus,
            amplitude(-mu_minus, 1) / (mu_plus - mu_minus),
        ),
        Step(
            "Second amplitude",
            "`a^T (mu_+ - K) b/(mu_+ - mu_-)`",
            c_minus,
            amplitude(mu_plus, -1) / (mu_plus - mu_minus),
        ),
        Step(
            "Closed form",
            "by the spectral projectors of `K`",
            _z,
            2 * (c_plus * mu_plus ** (layers - 2) + c_minus * mu_minus ** (layers - 2)),
        ),
    ]


def _spectral_checks() -> tuple[Check, ...]:
    s, K = spectrum(), symbolic_matrix()
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
    if layers <= MOST_LAYERS_EXPLICIT:
        z = partition_sum(layers)
        checks.append(
            Check(
                "the gauge-reduced sum is the sum over all columns",
                identical(z, gauge_sum(layers)),
            )
        )
        if layers >= 2:
            checks += [
                Check(
                    "the 2 x 2 transfer matrix gives the same polynomial in the P's",
                    identical(z, transfer().partition(layers)),
                ),
                Check(
                    "so does the paper's recursion on pairs of spins",
                    identical(z, paper_transfer(layers)),
                ),
            ]
    if layers >= 3:
        checks += _spectral_checks()
    return tuple(checks)
