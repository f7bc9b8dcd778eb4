r"""What :mod:`rmtheory.local_entropy` evaluates, transcribed, to be compared with.

Nothing here is derived, and nothing derived uses it; a derivation shows it once compared. Layers
are counted from 0; sums over layers are not divided by L.
"""

from __future__ import annotations

from itertools import product

import sympy as sp

from rmtheory.symbolic.definitions import Expr, J, P, lambda_L, lambda_R, n
from rmtheory.symbolic.local_functional import (
    conjugates,
    fields,
    force,
    log_norm,
    mean_log,
    q1,
    y,
    zeta_symbol,
)
from rmtheory.symbolic.local_tangent import LOG_NORM_Q, MEAN_LOG_Q, MEAN_LOG_Y, spin_mean

# --- rmtheory.local_entropy.moments ----------------------------------------------------------


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


# --- rmtheory.local_entropy.core and pair: the tangent ---------------------------------------


def curvature(m: Expr) -> Expr:
    """(zeta^y)''/zeta^y = y^2 m^2 + y (1 - m^2)."""
    return y**2 * m**2 + y * (1 - m**2)


def curved_log(m: Expr) -> Expr:
    """(zeta^y log zeta)''/zeta^y."""
    return curvature(m) * sp.log(zeta_symbol) + 2 * y * m**2 + (1 - m**2)


def curved_rest_core(m: Expr) -> Expr:
    """(zeta^y (1 - m^2))''/zeta^y as the core module has it."""
    rest = 1 - m**2
    curved = y**2 + (y - y**2) * rest
    return curved * rest - 4 * y * (1 - rest) * rest - 2 * rest * (3 * rest - 2)


def curved_square(m_l: Expr, m_k: Expr, chi: Expr) -> Expr:
    """(zeta^y m_l^2)''/zeta^y differentiated in h_k, chi = dm_l/dh_k, as the pair has it."""
    return curvature(m_k) * m_l**2 + 4 * (y - 1) * m_k * m_l * chi + 2 * chi**2


def response(layers: int, layer: int, k: int) -> Expr:
    """Return chi = dm_l/dh_k: 1 - m^2 for the layer itself, <s s'> - m m' for the other."""
    if layer == k:
        return 1 - spin_mean(layers, k) ** 2
    pair = spin_mean(layers, layer, k)
    return pair - spin_mean(layers, layer) * spin_mean(layers, k)


# --- rmtheory.local_entropy.core and pair: zeta and its derivatives --------------------------


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
