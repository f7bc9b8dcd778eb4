r"""The functional with an overlap q0 > 0 between clusters, derived for L = 1 or 2 layers.

The n replicas form n/y blocks of y, with overlaps q1 inside a block and q0_l between blocks, and
conjugates qhat1_l and qhat0_l. With n -> 0, and of all layers,

.. math:: \phi = \sum_l\Big[-\tfrac12\hat q_{1l} + \tfrac{1-y}{2}\hat q_{1l} q_1
        + \tfrac y2\hat q_{0l} q_{0l}\Big] + \frac1y\,E\log I, \qquad I = \int\zeta^y ,

I over the fields of a block, of variances qhat1 - qhat0 and q1 - q0, E over the common ones, of
variances qhat0 and q0 (:mod:`rmtheory.local_entropies.broken_averages`). Psi = E log I enters as an
undefined function; its derivatives follow from the heat equation.

**Levels.** Moving a variance delta from the fields of a block to fields that u blocks share,
weighed by the power u of I, changes psi = log I at second order by the square of its second
derivatives (:func:`moved_variance`). With u -> 0 and q0 = 0 this is the matrix M0, with u -> 1 the
replicon M_r of the branch itself: the same algebra eliminates the conjugates (:func:`eliminated`).
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

import sympy as sp

from rmtheory.symbolic import local_functional as local
from rmtheory.symbolic import replica
from rmtheory.symbolic.definitions import Expr, Matrix, identical, layered, replicas
from rmtheory.symbolic.derivation import Check, Derivation, Formula, Step
from rmtheory.symbolic.local_functional import Mean, d, mean_log, q1, same, y

# Symbols.

#: Psi = E log I as a number.
log_norm = sp.Symbol("Psi", real=True)

_phi, _S_I, _S_E = sp.symbols("phi S_I S_E")


class Common(sp.Function):  # type: ignore[misc]
    """Average E over the fields that all blocks have in common, unevaluated."""

    nargs = 1

    def _sympystr(self, printer: Expr) -> str:
        return f"E[{printer.doprint(self.args[0])}]"

    def _latex(self, printer: Expr, exp: str | None = None) -> str:
        body = rf"\mathbb{{E}}\left[{printer.doprint(self.args[0])}\right]"
        return body if exp is None else rf"{body}^{{{exp}}}"


def order_parameters(layers: int) -> tuple[tuple[Expr, ...], tuple[Expr, ...], tuple[Expr, ...]]:
    """Return the symbols qhat1_l, q0_l and qhat0_l.

    Examples
    --------
    >>> order_parameters(1)
    ((qhat1_1,), (q0_1,), (qhat0_1,))
    """
    inside, between, conjugate = (
        layered(name, layers, positive=True) for name in ("qhat1", "q0", "qhat0")
    )
    return inside, between, conjugate


def undefined_average(layers: int) -> Expr:
    """Return Psi = E log I as an undefined function of all it depends on."""
    inside, between, conjugate = order_parameters(layers)
    return sp.Function("Psi")(y, q1, *inside, *between, *conjugate)


def overlap(layer: int) -> tuple[Expr, Expr]:
    """Return E<m_l^2> and E<m_l>^2, m_l = d log zeta/dh_l, for a layer counted from 1."""
    m = sp.Symbol(f"m_{layer}", real=True)
    return Common(Mean(m**2)), Common(Mean(m) ** 2)


def force(layer: int) -> tuple[Expr, Expr]:
    """Return E<f_l^2> and E<f_l>^2, f_l = d log zeta/dx_l, for a layer counted from 1."""
    f = sp.Symbol(f"f_{layer}", real=True)
    return Common(Mean(f**2)), Common(Mean(f) ** 2)


# Counting the replicas.


def block_exponent(count: int, size: int) -> tuple[Expr, Expr]:
    r"""Exponents of `count` replicas in blocks of `size`, qhat1 inside a block and qhat0 between.

    Returns sum_{a<b} qhat_ab s_a s_b, and its form with one square of all spins and one of each
    block, with s_a^2 = 1: a common field and a field for each block.

    Examples
    --------
    >>> pairs, squares = block_exponent(2, 1)
    >>> pairs
    qhat0*s_1*s_2
    """
    inside, between = sp.symbols("qhat1 qhat0", positive=True)
    spins = layered("s", count, integer=True)
    pairs = sp.Add(
        *(
            (inside if a // size == b // size else between) * spins[a] * spins[b]
            for a, b in combinations(range(count), 2)
        )
    )
    blocks = (sp.Add(*spins[k : k + size]) for k in range(0, count, size))
    squares = between / 2 * sp.Add(*spins) ** 2 - count * inside / 2
    squares += (inside - between) / 2 * sp.Add(*(block**2 for block in blocks))
    return pairs, squares


def _with_unit_spins(expression: Expr) -> Expr:
    """Expand, with s_a^2 = 1."""
    expanded = sp.expand(expression)
    return expanded.subs({s**2: 1 for s in expanded.free_symbols if s.is_integer})


def pairs_between() -> Expr:
    """Number of pairs a < b of replicas in different blocks.

    Examples
    --------
    >>> pairs_between()
    n*(n - y)/2
    """
    return replicas * (replicas - y) / 2


@cache
def free_entropy(layers: int) -> Expr:
    """Return phi of all layers, Psi = E log I undefined: the limit n -> 0 of the counted terms.

    Examples
    --------
    >>> free_entropy(1)
    q0_1*qhat0_1*y/2 - q1*qhat1_1*(y - 1)/2 - qhat1_1/2 + Psi(y, q1, qhat1_1, q0_1, qhat0_1)/y
    """
    inside, between, conjugate = order_parameters(layers)
    total = [undefined_average(layers) / y]
    for k1, q0, k0 in zip(inside, between, conjugate, strict=True):
        total += [-local.block_pairs() * k1 * q1 / replicas, -k1 / 2]
        total.append(-pairs_between() * k0 * q0 / replicas)
    return sp.Add(*(sp.factor(sp.limit(sp.cancel(term), replicas, 0)) for term in total))


# Derivatives of E log I.


def common_variance() -> tuple[Expr, Expr]:
    """Return d(E log I)/dqhat0 under E, and -(1/2) (d log I/dh0)^2.

    The common field gains variance, half the second derivative of log I; the field of the block
    loses it, half the second derivative of I over I.
    """
    h0 = sp.Symbol("h_0", real=True)
    block = sp.Function("I", positive=True)(h0)
    gained = sp.diff(sp.log(block), h0, 2) / 2
    lost = sp.diff(block, h0, 2) / block / 2
    return gained - lost, -(sp.diff(sp.log(block), h0) ** 2) / 2


def derivatives_of_average(layers: int) -> dict[Expr, Expr]:
    """What the derivatives of Psi = E log I are, as averages.

    Those in y, qhat1 and q1 are those of log int zeta^y under E; those in qhat0 and q0 follow from
    :func:`common_variance` with d log I/dh0 = y <m>.
    """
    inside, between, conjugate = order_parameters(layers)
    average = undefined_average(layers)
    m, f, g = sp.symbols("m f g", real=True)
    in_h, in_x = local.curvature_in_field()
    moving = sp.expand(in_x / 2 - y * g / 2)
    _, law = common_variance()
    h0 = sp.Symbol("h_0", real=True)
    slope = sp.diff(sp.log(sp.Function("I", positive=True)(h0)), h0)
    squared = sp.Symbol("squared", positive=True)
    shared = law.subs(slope**2, y**2 * squared)
    rules = {sp.Derivative(average, y): Common(mean_log)}
    in_q1 = []
    for layer in range(1, layers + 1):
        (inner, outer), (pull, common_pull) = overlap(layer), force(layer)
        rules[sp.Derivative(average, inside[layer - 1])] = (in_h / 2).subs(m**2, inner)
        rules[sp.Derivative(average, conjugate[layer - 1])] = shared.subs(squared, outer)
        rules[sp.Derivative(average, between[layer - 1])] = shared.subs(squared, common_pull)
        in_q1.append(moving.subs(f**2, pull))
    rules[sp.Derivative(average, q1)] = sp.Add(*in_q1)
    return rules | {average: log_norm}


def evaluated(expression: Expr, layers: int) -> Expr:
    """Put in the derivatives of Psi, and Psi itself as a symbol."""
    rules = derivatives_of_average(layers)
    for derivative in expression.atoms(sp.Derivative):
        expression = expression.xreplace({derivative: rules[derivative]})
    return expression.xreplace(rules)


# Saddle, entropies and slope.


def gradient(layers: int, variable: Expr) -> Expr:
    """Return the derivative of phi of all layers in an order parameter.

    Examples
    --------
    >>> (k1,), (q0,), (k0,) = order_parameters(1)
    >>> [gradient(1, each) for each in (k1, k0, q0)]
    [(-q1 + E[<m_1**2>_y])*(y/2 - 1/2), y*(q0_1 - E[<m_1>_y**2])/2, y*(qhat0_1 - E[<f_1>_y**2])/2]
    """
    inside, _, _ = order_parameters(layers)
    total = evaluated(sp.diff(free_entropy(layers), variable), layers)
    factor = ((y - 1) if variable in (*inside, q1) else y) / 2
    return factor * sp.expand(sp.cancel(total / factor))


def internal_entropy(layers: int) -> Expr:
    """S_I = d(y phi)/dy of all layers."""
    return sp.expand(evaluated(sp.diff(sp.expand(y * free_entropy(layers)), y), layers))


def external_entropy(layers: int) -> Expr:
    """S_E = y phi - y S_I of all layers."""
    phi = evaluated(free_entropy(layers), layers)
    return sp.expand(y * phi - y * internal_entropy(layers))


def slope(layers: int) -> Expr:
    """Return dphi/dd at fixed y and order parameters, d = (1 - q1)/2, of all layers.

    Examples
    --------
    >>> slope(1)
    (qhat1_1 - E[<f_1**2>_y])*(y - 1)
    """
    factor = y - 1
    return factor * sp.expand(sp.cancel(gradient(layers, q1) / sp.diff((1 - q1) / 2, q1) / factor))


# Further levels: second order.


def moved_variance() -> tuple[Expr, Expr, Expr]:
    r"""Return the first change of log I when a variance moves, and its change, and u.

    The variances delta_a of the fields h_a, a = 1, 2, move from the fields of a block to fields
    that u blocks share: psi = log I becomes (1/u) log E_delta e^{u psi}. Its derivative in delta_1
    at 0, and the derivative in delta_2 of the average of that, are returned.

    Examples
    --------
    >>> first, second, u = moved_variance()
    >>> sp.factor(first)
    (u - 1)*Derivative(psi(h_1, h_2), h_1)**2/2
    """
    one, two, u = sp.symbols("h_1 h_2 u", real=True)
    psi = sp.Function("psi")(one, two)

    def inner(field: Expr) -> Expr:
        """Half of I''/I: the change of psi with the variance of the block's own field."""
        return (sp.diff(psi, field, 2) + sp.diff(psi, field) ** 2) / 2

    def shared(of: Expr, field: Expr) -> Expr:
        """Half of (e^{u psi} of)''/e^{u psi}, less `of` times that of 1."""
        tilt = u * sp.diff(psi, field)
        return (sp.diff(of, field, 2) + 2 * tilt * sp.diff(of, field)) / 2

    first = (sp.diff(psi, one, 2) + u * sp.diff(psi, one) ** 2) / 2 - inner(one)
    law = (u - 1) / 2 * sp.diff(psi, one) ** 2
    # The variance of h_2 that moves changes psi itself inside the square, and averages the square.
    inside = (u - 1) * sp.diff(psi, one) * sp.diff(inner(two), one)
    return sp.expand(first), sp.expand(shared(law, two) - inside), u


def second_change() -> tuple[Expr, Expr]:
    """Return the second change of :func:`moved_variance`, and its expected form."""
    one, two = sp.symbols("h_1 h_2", real=True)
    _, second, u = moved_variance()
    psi = sp.Function("psi")(one, two)
    mixed = sp.diff(psi, one, two)
    cubic = sp.diff(psi, one) * sp.diff(psi, two) * mixed
    return second, (u - 1) / 2 * (mixed**2 - 2 * (1 - u) * cubic)


def second_order_matrices(layers: int) -> tuple[Matrix, Matrix, Matrix]:
    """Return A, K and Gamma, averages of (d_a d_b psi)^2 over the fields (h_l; x_l)."""

    def matrix(name: str, symmetric: bool) -> Matrix:
        def entry(a: int, b: int) -> Expr:
            first, second = (min(a, b), max(a, b)) if symmetric else (a, b)
            return sp.Symbol(f"{name}_{first + 1}{second + 1}", real=True)

        return sp.Matrix(layers, layers, entry)

    return matrix("A", True), matrix("K", False), matrix("Gamma", True)


def second_order(layers: int) -> Expr:
    r"""Return y phi to second order in the overlaps q and conjugates k of a further level.

    In units of 1 - u: (y^2/2) k.q from the pairs, -(1/4)(k A k + 2 k K q + q Gamma q) from psi.
    """
    _, between, conjugate = order_parameters(layers)
    q, k = sp.Matrix(between), sp.Matrix(conjugate)
    A, K, Gamma = second_order_matrices(layers)
    quadratic = k.T * A * k + 2 * k.T * K * q + q.T * Gamma * q
    return sp.expand(y**2 * k.dot(q) / 2 - quadratic[0] / 4)


def stability_matrix(layers: int) -> Matrix:
    """Return M = (y^2 - K)^T A^-1 (y^2 - K) - Gamma.

    Examples
    --------
    >>> stability_matrix(1)[0]
    -Gamma_11 + (-K_11 + y**2)**2/A_11
    """
    A, K, Gamma = second_order_matrices(layers)
    cross = y**2 * sp.eye(layers) - K
    return cross.T * A.inv() * cross - Gamma


def eliminated(layers: int) -> tuple[Expr, Expr]:
    """Return :func:`second_order` at its stationary conjugates, and q^T M q/4."""
    _, between, conjugate = order_parameters(layers)
    form = second_order(layers)
    at = sp.solve([sp.diff(form, k) for k in conjugate], conjugate, dict=True)[0]
    q = sp.Matrix(between)
    return form.subs(at), (q.T * stability_matrix(layers) * q)[0] / 4


def level_pairs() -> tuple[Expr, Expr]:
    """Return what the pairs inside u blocks that share fields bring to y phi, and (1-u) y^2/2.

    Groups of w = u y replicas have overlap q0 + delta between their blocks: n (w - y)/2 pairs.
    """
    u, w = sp.symbols("u w", positive=True)
    pairs = replicas / w * (w * (w - 1) / 2) - local.block_pairs()
    return sp.cancel(-y * pairs / replicas).subs(w, u * y), (1 - u) * y**2 / 2


# What the numerics evaluate, transcribed from rmtheory.local_entropies.broken_averages.


def _evaluated_forms() -> tuple[Expr, ...]:
    """Return phi, S_I, S_E and the slope per neuron, with equal order parameters in all layers."""
    (k1,), (q0,), (k0,) = order_parameters(1)
    norm, log = sp.symbols("log_norm mean_log", real=True)
    square = k1 * q1 - k0 * q0
    pull, _ = force(1)
    return (
        -k1 * (1 - q1) / 2 - y * square / 2 + norm / y,
        -k1 * (1 - q1) / 2 - y * square + log,
        norm - y * log + y**2 * square / 2,
        (y - 1) * (k1 - pull),
    )


def _per_neuron(expression: Expr, layers: int) -> Expr:
    """Divide by L with equal order parameters and averages in all layers."""
    rules: dict[Expr, Expr] = {}
    for several, (one,) in zip(order_parameters(layers), order_parameters(1), strict=True):
        rules |= dict.fromkeys(several, one)
    for layer in range(1, layers + 1):
        rules |= dict(zip((*overlap(layer), *force(layer)), (*overlap(1), *force(1)), strict=True))
    norm, log = sp.symbols("log_norm mean_log", real=True)
    # Psi and E<log zeta> are of all layers, log_norm and mean_log per layer.
    rules |= {log_norm: layers * norm, Common(mean_log): layers * log}
    return expression.xreplace(rules) / layers


# The identities.


def all_checks(layers: int) -> tuple[Check, ...]:
    """Return every claim about L = 1 or 2 layers with its verdict."""
    derived = (
        evaluated(free_entropy(layers), layers),
        internal_entropy(layers),
        external_entropy(layers),
        slope(layers),
    )
    inside, between, conjugate = order_parameters(layers)
    unbroken = dict.fromkeys((*between, *conjugate), sp.S.Zero)
    known = local.evaluated(local.free_entropy(layers), layers)
    renamed = dict(zip(local.conjugates(layers), inside, strict=True))
    first, second, u = moved_variance()
    fields = sp.symbols("h_1 h_2", real=True)
    slope_squared = sp.diff(sp.Function("psi")(*fields), fields[0]) ** 2
    return (
        *_counting(layers),
        Check(
            "d(E log I)/dqhat0 = -(y^2/2) E<m>^2, and the same for q0 with f",
            bool(sp.simplify(common_variance()[0] - common_variance()[1]) == 0),
        ),
        *_saddle(layers),
        Check(
            "phi, S_I, S_E and the slope are what local_entropies.broken_averages evaluates",
            all(
                same(_per_neuron(mine, layers), theirs)
                for mine, theirs in zip(derived, _evaluated_forms(), strict=True)
            ),
        ),
        Check(
            "at q0 = qhat0 = 0 phi is the functional of independent blocks",
            same(
                derived[0].subs(unbroken), known.subs(renamed).xreplace({local.log_norm: log_norm})
            ),
        ),
        *_one_replica(layers),
        Check(
            "a moved variance changes log I by -(1-u)/2 times its squared derivative",
            bool(sp.expand(first - (u - 1) / 2 * slope_squared) == 0),
        ),
        Check(
            "and that by the square of the second derivatives, where the first vanish or u -> 1",
            bool(sp.expand(second - second_change()[1]) == 0),
        ),
        Check("the pairs of a further level bring (1-u) y^2/2", identical(*level_pairs())),
        Check(
            "eliminating the conjugates of a further level leaves q M q/4",
            bool(sp.simplify(eliminated(layers)[0] - eliminated(layers)[1]) == 0),
        ),
    )


def _counting(layers: int) -> list[Check]:
    def split(count: int, size: int) -> bool:
        pairs, squares = block_exponent(count, size)
        between = sp.expand(pairs).coeff(sp.Symbol("qhat0", positive=True))
        counted = pairs_between().subs({replicas: count, y: size})
        ones = dict.fromkeys(between.free_symbols, 1)
        return bool(_with_unit_spins(pairs - squares) == 0 and between.subs(ones) == counted)

    before, after = replica.replica_limit()
    value = sp.limit(before.subs(replicas, replicas / y) / y, replicas, 0)
    return [
        Check(
            "the exponent splits into a square of all spins and one a block (n <= 6)",
            all(split(*case) for case in ((4, 2), (6, 2), (6, 3), (4, 4))),
        ),
        Check(
            "(1/n) log E[I^(n/y)] -> (1/y) E log I, here of two values",
            bool(sp.simplify(value - after / y) == 0),
        ),
    ]


def _saddle(layers: int) -> list[Check]:
    inside, between, conjugate = order_parameters(layers)
    equations = []
    for layer in range(1, layers + 1):
        (inner, outer), (_, common_pull) = overlap(layer), force(layer)
        k1, q0, k0 = (each[layer - 1] for each in (inside, between, conjugate))
        equations += [
            (k1, (y - 1) * (inner - q1) / 2),
            (k0, y * (q0 - outer) / 2),
            (q0, y * (k0 - common_pull) / 2),
        ]
    s_e = external_entropy(layers)
    in_y = evaluated(sp.diff(free_entropy(layers), y), layers)
    return [
        Check(
            "phi is stationary where E<m^2> = q1, E<m>^2 = q0 and E<f>^2 = qhat0",
            all(same(gradient(layers, each), expected) for each, expected in equations),
        ),
        Check("d phi/dy = -S_E/y^2", same(in_y, -s_e / y**2)),
    ]


def _one_replica(layers: int) -> list[Check]:
    """At y = 1 the fields of a block integrate to those of the replica-symmetric functional."""
    inside, between, conjugate = order_parameters(layers)
    average = sp.Symbol("E_log_zeta", real=True)
    # e^{s h} over a variance qhat1 - qhat0 is e^{(qhat1 - qhat0)/2} e^{s h0}, and
    # P((v + s x)/sigma) over a variance q1 - q0 is P((v + s x0)/sqrt(1 - q0)).
    free = sp.Add(*((a - b) / 2 for a, b in zip(inside, conjugate, strict=True)))
    phi = evaluated(free_entropy(layers), layers).subs(y, 1).subs(log_norm, free + average)
    at = replica.order_parameters(layers)
    rules = dict(zip((*at.q, *at.qhat), (*between, *conjugate), strict=True))
    noise, z = sp.symbols("xi z", real=True)
    deviation = sp.sqrt(1 - q1) * noise + sp.sqrt(q1 - between[0]) * z
    variance = sp.expand(deviation**2).subs({noise**2: 1, z**2: 1, noise * z: 0})
    return [
        Check(
            "at y = 1 it is the replica-symmetric functional at (q0, qhat0), whatever q1 and qhat1",
            bool(sp.expand(phi - average - replica.energy(layers).subs(rules)) == 0)
            and bool(sp.expand(variance - (1 - between[0])) == 0),
        )
    ]


# The derivation, step by step.


def derive_broken(layers: int | float) -> Derivation:
    """Functional with an overlap between clusters, L = 1 or 2."""
    count = int(layers)
    inside, between, conjugate = order_parameters(count)
    pairs, squares = block_exponent(4, 2)
    rules = derivatives_of_average(count)
    average = undefined_average(count)
    value = count * _phi
    steps = [
        Step(
            "Coupling of the replicas",
            "n replicas in blocks of y, here 4 in blocks of 2, `qhat1` inside and `qhat0` between "
            "them: one square of all spins and one a block, `s_a^2 = 1`",
            pairs,
            squares,
        ),
        Step(
            "Pairs between the blocks",
            "besides those inside; each brings `-qhat0_l q0_l`",
            "N_between",
            pairs_between(),
        ),
        Step(
            "Functional",
            "as `n -> 0`; `Psi = E log I`, I being the integral of `zeta^y` over the fields of a "
            "block, of variances `qhat1 - qhat0` and `q1 - q0`, and E the average over the fields "
            "common to all blocks, of variances `qhat0` and `q0`",
            value,
            free_entropy(count).xreplace({average: log_norm}),
        ),
    ]
    for layer in range(1, count + 1):
        k1, q0, k0 = (each[layer - 1] for each in (inside, between, conjugate))
        steps += [
            Step(
                "Derivative in qhat0",
                "the common field gains the variance that the block loses; `d log I/dh0 = y <m>`",
                sp.Derivative(log_norm, k0),
                rules[sp.Derivative(average, k0)],
            ),
            *(
                Step(
                    "Saddle-point equation",
                    f"layer {layer}; `<.>_y` is the average inside I, `m = d log zeta/dh`, "
                    "`f = d log zeta/dx`",
                    sp.Derivative(value, each),
                    gradient(count, each),
                )
                for each in (k1, k0, q0)
            ),
        ]
    steps += [
        Step("Internal entropy", "`S_I = d(y phi)/dy`", count * _S_I, internal_entropy(count)),
        Step("External entropy", "`S_E = y phi - y S_I`", count * _S_E, external_entropy(count)),
        Step(
            "Slope",
            "`dphi/dd` at the saddle, that of `S_I` along `y*(d)`",
            count * sp.Derivative(_S_I, d),
            slope(count),
        ),
        Step(
            "Further levels",
            "u blocks share the fields whose variance moved: at second order `log I` changes by "
            "the squares of its second derivatives, where its first vanish (u -> 0 at q0 = 0) or "
            "u -> 1",
            "delta^2 psi",
            second_change()[1],
        ),
        Step(
            "Second order",
            "of `y phi` in the overlaps and conjugates of that level, in units of 1 - u; A, K, "
            "Gamma are averages of the squared second derivatives of log I in (h, h), (h, x), "
            "(x, x)",
            value * y,
            second_order(count),
        ),
        Step(
            "Stability",
            "`M` after the conjugates are eliminated, `y phi = q M q/4`: `M0` at q0 = 0, the "
            "replicon `M_r` of the branch at q0 > 0; unstable where its least eigenvalue is < 0",
            "M",
            stability_matrix(count),
        ),
    ]
    return Derivation("broken", count, tuple(steps), all_checks(count), _formulas(count))


def _formulas(layers: int) -> tuple[Formula, ...]:
    """Return the functions of the Python module, per neuron."""
    inside, between, conjugate = order_parameters(layers)
    norm, log = sp.symbols("log_norm mean_log", real=True)
    common = (("q1", q1), ("y", y), ("qhat1", inside), ("q0", between), ("qhat0", conjugate))
    rules = {log_norm: layers * norm, Common(mean_log): layers * log}

    def entropy(name: str, doc: str, expression: Expr, *extra: tuple[str, Expr]) -> Formula:
        return Formula(name, doc, (*common, *extra), expression.xreplace(rules) / layers)

    phi = evaluated(free_entropy(layers), layers)
    return (
        entropy("free_entropy", "Free entropy phi per neuron.", phi, ("log_norm", norm)),
        entropy(
            "internal_entropy",
            "Internal entropy S_I per neuron.",
            internal_entropy(layers),
            ("mean_log", log),
        ),
        entropy(
            "external_entropy",
            "External entropy S_E per neuron.",
            external_entropy(layers),
            ("log_norm", norm),
            ("mean_log", log),
        ),
    )
