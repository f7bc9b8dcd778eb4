r"""Derivatives of the tilted averages in qhat, the tangent that Newton's method uses.

At fixed x the column s enters zeta with u_s = e^{h.s} prod_l P(...), and d u_s/dh_k = s_k u_s
whatever the P's are: so zeta = sum_s u_s and differentiation in h_k is an operation on the u's.
By the heat equation

.. math:: \frac{\partial\langle O\rangle_y}{\partial\hat q_k} = \frac12\Big[
    \Big\langle\frac{(\zeta^y O)''}{\zeta^y}\Big\rangle_y
    - \langle O\rangle_y\Big\langle\frac{(\zeta^y)''}{\zeta^y}\Big\rangle_y\Big],

primes for d/dh_k.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import sympy as sp

from rmtheory.symbolic.definitions import Expr
from rmtheory.symbolic.local_functional import conjugates, log_norm, mean_log, y

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
