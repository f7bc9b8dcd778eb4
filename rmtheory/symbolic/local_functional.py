r"""Local-entropy functional, from y replicas at mutual overlap q1 to its derivatives (paper, SM-B).

Replicas of one block share the fields x_l ~ N(0, q1) and h_l ~ N(0, qhat_l) of every layer; with
q0 = qhat0 = 0 the n/y blocks are independent, and

.. math:: y\phi = \sum_l\Big[-\tfrac{y}{2}\hat q_l + \tfrac{y(1-y)}{2}\hat q_l q_1\Big] + G,
    \qquad G = \log\int\zeta^y, \qquad
    \zeta = \sum_s \prod_l e^{h_l s_l} P\Big(\frac{v_l + s_l x_l}{\sqrt{1-q_1}}\Big).

G enters as an undefined function; its derivatives follow from the heat equation of the Gaussian
measures and are inserted by :func:`evaluated`.

The tangent of Newton's method are the derivatives of the tilted averages in qhat. At fixed x the
column s enters zeta with u_s = e^{h.s} prod_l P(...), and d u_s/dh_k = s_k u_s for any P: so
zeta = sum_s u_s and differentiation in h_k is an operation on the u's. By the heat equation

.. math:: \frac{\partial\langle O\rangle_y}{\partial\hat q_k} = \frac12\Big[
    \Big\langle\frac{(\zeta^y O)''}{\zeta^y}\Big\rangle_y
    - \langle O\rangle_y\Big\langle\frac{(\zeta^y)''}{\zeta^y}\Big\rangle_y\Big],

primes for d/dh_k.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, product

import sympy as sp

from rmtheory.symbolic import replica
from rmtheory.symbolic.definitions import (
    Expr,
    P,
    identical,
    layered,
    linearised_square,
    n,
    qhat,
    replicas,
)

# Symbols.

#: Number of replicas of a block, their overlap, and the distance d = (1 - q1)/2.
y, q1, d = sp.symbols("y q1 d", positive=True)

#: G = log int zeta^y as a number, and zeta at fixed fields.
log_norm = sp.Symbol("G", real=True)

zeta_symbol = sp.Symbol("zeta", positive=True)


class Mean(sp.Function):  # type: ignore[misc]
    """Average <.>_y over the Gaussian fields tilted by zeta^y, unevaluated."""

    nargs = 1

    def _sympystr(self, printer: Expr) -> str:
        return f"<{printer.doprint(self.args[0])}>_y"

    def _latex(self, printer: Expr, exp: str | None = None) -> str:
        body = rf"\left\langle {printer.doprint(self.args[0])} \right\rangle_{{y}}"
        return body if exp is None else rf"{body}^{{{exp}}}"


#: <log zeta>_y
mean_log = Mean(sp.log(zeta_symbol))


def fields(layers: int) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """Return the symbols of h_l = sqrt(qhat_l) t_l and x_l = sqrt(q1) z_l."""
    return layered("h", layers, real=True), layered("x", layers, real=True)


def conjugates(layers: int) -> tuple[Expr, ...]:
    """Return the symbols qhat_l."""
    return replica.order_parameters(layers).qhat


def undefined_G(layers: int) -> Expr:
    """Return G as an undefined function of all it depends on."""
    return sp.Function("G")(y, q1, *conjugates(layers))


def overlap(layer: int) -> Expr:
    """Return <m_l^2>_y, m_l = d log zeta/dh_l, for a layer counted from 1."""
    return Mean(sp.Symbol(f"m_{layer}", real=True) ** 2)


def force(layer: int) -> Expr:
    """Return <f_l^2>_y, f_l = d log zeta/dx_l, for a layer counted from 1."""
    return Mean(sp.Symbol(f"f_{layer}", real=True) ** 2)


# The functional of y replicas.


@cache
def zeta(layers: int) -> Expr:
    r"""Return zeta in the fields h and x, from the replica sum of one column.

    Examples
    --------
    >>> zeta(1)
    exp(h_1)*P((J_D + x_1)/sqrt(1 - q1)) + exp(-h_1)*P((J_D - x_1)/sqrt(1 - q1))
    """
    at = replica.order_parameters(layers)
    h, x = fields(layers)
    scaled = {t: f / sp.sqrt(k) for t, f, k in zip(at.t, h, at.qhat, strict=True)}
    scaled |= {z: f / sp.sqrt(k) for z, f, k in zip(at.z, x, at.q, strict=True)}
    return replica.zeta(layers).subs(scaled, simultaneous=True).subs(dict.fromkeys(at.q, q1))


# --- counting the replicas -------------------------------------------------------------------
def block_exponent(count: int, size: int) -> tuple[Expr, Expr]:
    r"""Exponents of `count` replicas in blocks of `size`, qhat inside a block and 0 outside.

    Returns sum_{a<b} qhat_ab s_a s_b, and sum_B [(qhat/2) (sum_{a in B} s_a)^2] - n qhat/2 with
    s_a^2 = 1: each block is linearised by a field of its own.

    Examples
    --------
    >>> pairs, squares = block_exponent(4, 2)
    >>> pairs, sp.expand(pairs - squares)
    (qhat*(s_1*s_2 + s_3*s_4), 0)
    """
    spins = layered("s", count, integer=True)
    pairs = [
        spins[a] * spins[b] for a, b in combinations(range(count), 2) if a // size == b // size
    ]
    blocks = (sp.Add(*spins[k : k + size]) for k in range(0, count, size))
    squares = sp.expand(qhat * sp.Add(*(block**2 for block in blocks)) / 2 - count * qhat / 2)
    return qhat * sp.Add(*pairs), squares.subs({s**2: 1 for s in spins})


def block_pairs() -> Expr:
    """Number of pairs a < b inside the n/y blocks of y replicas.

    Examples
    --------
    >>> sp.expand(2 * block_pairs())
    n*y - n
    """
    return replicas / y * (y * (y - 1) / 2)


@cache
def free_entropy(layers: int) -> Expr:
    r"""Return phi = lim (1/(n N)) log E[N^n] of all layers, G = log int zeta^y undefined.

    e^{-N sum_{a<b} qhat q} gives -qhat q1 for each pair inside a block, linearising gives
    -n qhat/2, and the n/y blocks give (n/y) G. All of it is proportional to n: no limit is left.

    Examples
    --------
    >>> free_entropy(1)
    -q1*qhat_1*(y - 1)/2 - qhat_1/2 + G(y, q1, qhat_1)/y
    """
    k = conjugates(layers)
    total = [-block_pairs() * each * q1 for each in k]
    total += [-replicas * each / 2 for each in k]
    total.append(replicas / y * undefined_G(layers))
    return sp.Add(*(sp.factor(term / replicas) for term in total))


@cache
def functional(layers: int) -> Expr:
    """Return y phi of all layers."""
    return sp.Add(*(y * term for term in free_entropy(layers).args))


# Derivatives of G by the heat equation.


# --- Gaussian facts --------------------------------------------------------------------------
def heat_kernel() -> tuple[Expr, Expr, Expr]:
    """Return the density of N(0, k) at x, and the symbols (x, k).

    Its derivative in k is half its second derivative in x; integrating by parts twice,
    d/dk E[g] = (1/2) E[g''].
    """
    x, k = sp.Symbol("x", real=True), sp.Symbol("k", positive=True)
    return n(x / sp.sqrt(k)) / sp.sqrt(k), x, k


def generating_function() -> tuple[Expr, Expr]:
    """Return d/dqhat E[e^{k h}] and (1/2) E[(e^{k h})''], h ~ N(0, qhat), by integration.

    Examples
    --------
    >>> left, right = generating_function()
    >>> left == right
    True
    """
    k, mean = linearised_square()
    scaled = mean.subs(k, k * sp.sqrt(qhat))
    return sp.diff(scaled, qhat), k**2 * scaled / 2


def backward_heat(layers: int) -> tuple[Expr, Expr]:
    """Return d zeta/dq1 at fixed fields, and -(1/2) sum_l d^2 zeta/dx_l^2."""
    _, x = fields(layers)
    explicit = zeta(layers)
    return sp.diff(explicit, q1), -sp.Add(*(sp.diff(explicit, each, 2) for each in x)) / 2


def conjugated(observable: Expr, of: Expr, variable: Expr) -> Expr:
    """Return (zeta^y O)'/zeta^y = O' + y (zeta'/zeta) O, derivatives in `variable`."""
    return sp.diff(observable, variable) + y * sp.diff(of, variable) / of * observable


def curvature_in_field() -> tuple[Expr, Expr]:
    """Return (zeta^y)''/zeta^y for a field h, where zeta'' = zeta, and for a field x.

    The first is in terms of m = zeta'/zeta, the second of f = zeta'/zeta and g = zeta''/zeta.

    Examples
    --------
    >>> curvature_in_field()
    (m**2*y**2 - m**2*y + y, f**2*y**2 - f**2*y + g*y)
    """
    m, f, g, x = sp.symbols("m f g x", real=True)
    general = sp.Function("zeta")(x)
    twice = conjugated(conjugated(sp.S.One, general, x), general, x)
    first, second = sp.Derivative(general, x), sp.Derivative(general, (x, 2))
    ratios = {second: g * general, first: f * general}
    in_x = sp.expand(twice.doit().subs(ratios))
    # Each spin squares to 1, so that differentiating e^{h s} twice gives it back: g = 1.
    return sp.expand(in_x.subs({g: 1, f: m})), in_x


def tilted_rule() -> tuple[Expr, Expr, Expr, Expr]:
    """Return d log<zeta^y>/dy, <log zeta>_y, d<O>_y/dy and <O log zeta>_y - <O>_y <log zeta>_y.

    Two points with arbitrary weights stand for the Gaussian average, zeta = e^a at each: both
    identities are quotients of sums over the points, and two show the rule for any number.
    """
    w, a, b, one, two = sp.symbols("w a b O_1 O_2", real=True)

    def total(first: Expr, second: Expr) -> Expr:
        return w * sp.exp(a * y) * first + (1 - w) * sp.exp(b * y) * second

    norm, logs, values = total(1, 1), total(a, b), total(one, two)
    covariance = total(a * one, b * two) / norm - values * logs / norm**2
    return sp.diff(sp.log(norm), y), logs / norm, sp.diff(values / norm, y), covariance


# --- derivatives of the functional -----------------------------------------------------------
def derivatives_of_G(layers: int) -> dict[Expr, Expr]:
    """What the derivatives of G = log int zeta^y are, as averages.

    In y by :func:`tilted_rule`; in qhat_l half the average of (zeta^y)''/zeta^y, by the heat
    equation; in q1 the same for every x_l, plus y <(d zeta/dq1)/zeta> = -(y/2) sum_l <g_l> by
    the backward heat equation.
    """
    k = conjugates(layers)
    G = undefined_G(layers)
    m, f, g = sp.symbols("m f g", real=True)
    in_h, in_x = curvature_in_field()
    moving = sp.expand(in_x / 2 - y * g / 2)
    rules = {sp.Derivative(G, y): mean_log}
    in_q1 = []
    for layer, each in enumerate(k, start=1):
        rules[sp.Derivative(G, each)] = (in_h / 2).subs(m**2, overlap(layer))
        in_q1.append(moving.subs(f**2, force(layer)))
    rules[sp.Derivative(G, q1)] = sp.Add(*in_q1)
    return rules | {G: log_norm}


def evaluated(expression: Expr, layers: int) -> Expr:
    """Put in the derivatives of G, and G itself as a symbol."""
    rules = derivatives_of_G(layers)
    for derivative in expression.atoms(sp.Derivative):
        expression = expression.xreplace({derivative: rules[derivative]})
    return expression.xreplace(rules)


# Saddle, entropies and slope.


def stationarity(layers: int, layer: int) -> Expr:
    """Return d(y phi)/dqhat_l, its factor y (y-1)/2 apart: zero where <m_l^2> = q1.

    Examples
    --------
    >>> stationarity(1, 1)
    y*(-q1 + <m_1**2>_y)*(y - 1)/2
    """
    gradient = sp.diff(functional(layers), conjugates(layers)[layer - 1])
    return _divided(evaluated(gradient, layers), y * (y - 1) / 2)


@cache
def internal_entropy(layers: int) -> Expr:
    """S_I = d(y phi)/dy, at fixed qhat because y phi is stationary there; of all layers.

    Examples
    --------
    >>> internal_entropy(1)
    q1*qhat_1*(1/2 - y) - qhat_1/2 + <log(zeta)>_y
    """
    total = sp.expand(evaluated(sp.diff(functional(layers), y), layers))
    return sp.collect(total, [q1 * k for k in conjugates(layers)])


@cache
def external_entropy(layers: int) -> Expr:
    """S_E = y phi - y S_I of all layers.

    Examples
    --------
    >>> external_entropy(1)
    G + q1*qhat_1*y**2/2 - y*<log(zeta)>_y
    """
    total = evaluated(functional(layers), layers) - y * internal_entropy(layers)
    return sp.expand(total)


def slope_in_y(layers: int) -> Expr:
    """Return d phi/dy at fixed qhat, of all layers."""
    return evaluated(sp.diff(free_entropy(layers), y), layers)


@cache
def slope(layers: int) -> Expr:
    """Return dphi/dd at the saddle and at fixed y, d = (1 - q1)/2, of all layers.

    It is also the slope of S_I along y*(d): there S_E = 0, so S_I = phi and d phi/dy = 0.

    Examples
    --------
    >>> slope(1)
    (qhat_1 - <f_1**2>_y)*(y - 1)
    """
    return _divided(slope_in_q1(layers) / sp.diff((1 - q1) / 2, q1), y - 1)


def slope_in_q1(layers: int) -> Expr:
    """Return dphi/dq1 at fixed y and qhat, of all layers."""
    return evaluated(sp.diff(free_entropy(layers), q1), layers)


def _divided(expression: Expr, factor: Expr) -> Expr:
    """Write `expression` as `factor` times the expanded rest."""
    return factor * sp.expand(sp.cancel(expression / factor))


def same(left: Expr, right: Expr) -> bool:
    """Whether two expressions that contain averages or other undefined functions are identical."""
    known = (P, n, sp.exp, sp.log)
    unknown = {f for f in sp.Tuple(left, right).atoms(sp.Function) if not isinstance(f, known)}
    ordered = sorted(unknown, key=sp.default_sort_key)
    names = {each: sp.Symbol(f"atom_{k}", positive=True) for k, each in enumerate(ordered)}
    return identical(left.xreplace(names), right.xreplace(names))


# Derivatives of the tilted averages in qhat.

Signs = tuple[int, ...]


@cache
def weights(layers: int) -> dict[Signs, Expr]:
    """Return the symbols u_s of the 2^L columns.

    Examples
    --------
    >>> weights(1)
    {(1,): u_+, (-1,): u_-}
    """
    return {
        s: sp.Symbol("u_" + "".join("+" if x > 0 else "-" for x in s), positive=True)
        for s in product((1, -1), repeat=layers)
    }


def partition(layers: int) -> Expr:
    """Return zeta, the sum of the weights."""
    return sp.Add(*weights(layers).values())


def in_field(expression: Expr, layers: int, k: int) -> Expr:
    """Differentiate in h_k, a layer counted from 0: each u_s goes to s_k u_s."""
    return sp.Add(*(s[k] * u * sp.diff(expression, u) for s, u in weights(layers).items()))


def spin_mean(layers: int, *of: int) -> Expr:
    """Average of the product of the spins of some layers at fixed fields; one layer: m_l."""
    signed = (sp.prod([s[k] for k in of]) * u for s, u in weights(layers).items())
    return sp.Add(*signed) / partition(layers)


def curved(observable: Expr, layers: int, k: int) -> Expr:
    """Return (zeta^y O)''/zeta^y, differentiated twice in h_k.

    Examples
    --------
    >>> m = spin_mean(1, 0)
    >>> sp.cancel(curved(sp.S.One, 1, 0) - y * (y - 1) * m**2)
    y
    """
    zeta = partition(layers)
    tilt = y * in_field(zeta, layers, k) / zeta

    def once(o: Expr) -> Expr:
        return in_field(o, layers, k) + tilt * o

    return once(once(observable))


# --- derivatives of the entropies ------------------------------------------------------------

#: Derivatives of G and of <log zeta>_y, as the numerics name them; in qhat_l followed by l.
MEAN_LOG_Y, MEAN_LOG_Q, LOG_NORM_Q = "mean_log_y", "mean_log_q", "log_norm_q"


def gradient(expression: Expr, layers: int) -> tuple[Expr, ...]:
    """Differentiate in (y, qhat_1 ... qhat_L) an expression in G and <log zeta>_y.

    Of these dG/dy = <log zeta>_y is known; the other derivatives are left as symbols.

    Examples
    --------
    >>> from rmtheory.symbolic.local_functional import external_entropy
    >>> gradient(external_entropy(1), 1)
    (-mean_log_y*y + q1*qhat_1*y, log_norm_q_1 - mean_log_q_1*y + q1*y**2/2)
    """
    k = conjugates(layers)
    G, ell = (sp.Function(name)(y, *k) for name in ("G", "ell"))
    rules = {sp.Derivative(G, y): mean_log, sp.Derivative(ell, y): sp.Symbol(MEAN_LOG_Y)}
    for layer, each in enumerate(k, start=1):
        rules[sp.Derivative(G, each)] = sp.Symbol(f"{LOG_NORM_Q}_{layer}")
        rules[sp.Derivative(ell, each)] = sp.Symbol(f"{MEAN_LOG_Q}_{layer}")
    moving = expression.xreplace({log_norm: G, mean_log: ell})
    rows = (sp.diff(moving, each).xreplace(rules) for each in (y, *k))
    return tuple(sp.expand(row.xreplace({G: log_norm, ell: mean_log})) for row in rows)
