"""Python module of the local entropy: phi, S_I and S_E by a plain trapezoid rule."""

from __future__ import annotations

from itertools import product

import sympy as sp

from rmtheory.symbolic import local_functional as local
from rmtheory.symbolic import replica
from rmtheory.symbolic.definitions import Expr
from rmtheory.symbolic.derivation import Formula
from rmtheory.symbolic.local_functional import log_norm, q1, y
from rmtheory.symbolic.topic_annealed import COUPLINGS

#: The integrals over the 2L fields are no formula; what stands between @ depends on L.
_INTEGRAL = '''
def trapezoid(step, cutoff):
    """Return nodes and weights of the standard Gaussian, equidistant up to about +-cutoff."""
    half = math.ceil(cutoff / step)
    nodes = [k * step for k in range(-half, half + 1)]
    return [(x, step * math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)) for x in nodes]


def tilted(@couplings@, d, y, qhat, step=@step@, cutoff=8.0):
    """Return G = log int zeta^y and <log zeta>_y; qhat has one entry a layer.

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
