r"""Elimination of qhat, and the stability of the saddle q = qhat = 0 (paper, SM-A).

To second order L S_rs = log z + Q(q, qhat) with the quadratic form of
:func:`expansion.quadratic_form`; it is concave in qhat, so the stationary qhat is a linear
function of q and L S_rs = log z + (1/4) q^T M q. The saddle is stable where M > 0. For any L

.. math:: M = (1-D)^T C^{-1} (1-D) - E,\qquad C_{lm} = \langle s_l s_m\rangle^2,\quad
    D_{lm} = \langle s_l s_m r_m\rangle^2,\quad
    E_{lm} = \langle s_l s_m r_l r_m\rangle^2\ (l\ne m),\quad E_{ll} = \langle v_l r_l\rangle^2 .
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import sympy as sp

from rmtheory.symbolic.definitions import (
    Expr,
    J,
    Matrix,
    lam,
    lambda_L,
    lambda_R,
    q,
    qhat,
)
from rmtheory.symbolic.expansion import quadratic_form
from rmtheory.symbolic.measure import Signs, chain_measure
from rmtheory.symbolic.replica import order_parameters, uniform


@dataclass(frozen=True)
class Eliminated:
    """Stationary qhat, and the quadratic form at it."""

    qhat: tuple[Expr, ...]
    form: Expr


@cache
def eliminate(layers: int) -> Eliminated:
    r"""Solve dQ/dqhat_l = 0, linear, for all layers; return the solution and Q there.

    Examples
    --------
    >>> eliminate(1).qhat
    (-q_1*(r_1 - 1)*(r_1 + 1),)
    """
    at, form = order_parameters(layers), quadratic_form(layers)
    equations = [sp.diff(form, x) for x in at.qhat]
    (solution,) = sp.linsolve(equations, at.qhat)
    solution = tuple(sp.factor(x) for x in solution)
    value = form.subs(dict(zip(at.qhat, solution, strict=True)))
    return Eliminated(solution, value)


@cache
def eliminate_uniform(layers: int) -> Eliminated:
    """Set q_l = q, qhat_l = qhat first, as the paper does, then solve the one equation."""
    form = sp.expand(quadratic_form(layers).subs(uniform(layers)))
    (solution,) = sp.solve(sp.diff(form, qhat), qhat)
    return Eliminated((sp.factor(solution),), form.subs(qhat, solution))


def coefficient_matrix(layers: int) -> Matrix:
    r"""Return M of L S_rs = log z + (1/4) q^T M q, from the derived form and its stationary qhat.

    Q is quadratic, so where dQ/dqhat = 0 it equals (1/2) q . dQ/dq, and M q = 2 dQ/dq there.
    """
    at, form = order_parameters(layers), quadratic_form(layers)
    stationary = dict(zip(at.qhat, eliminate(layers).qhat, strict=True))
    gradient = [sp.diff(form, x).subs(stationary) for x in at.q]
    return 2 * sp.Matrix(gradient).jacobian(at.q)


@dataclass(frozen=True)
class GeneralMatrices:
    """C, D and E of the formula for any L."""

    C: Matrix
    D: Matrix
    E: Matrix

    def form(self, layers: int) -> Expr:
        """(1/2) qhat.q - (1/2) [(1/2) qhat C qhat + qhat D q + (1/2) q E q]."""
        at = order_parameters(layers)
        x, y = sp.Matrix(at.q), sp.Matrix(at.qhat)
        bracket = y.T * self.C * y / 2 + y.T * self.D * x + x.T * self.E * x / 2
        return ((y.T * x - bracket) / 2)[0, 0]

    def M(self) -> Matrix:
        """(1 - D)^T C^-1 (1 - D) - E."""
        rest = sp.eye(self.C.rows) - self.D
        return rest.T * self.C.inv() * rest - self.E


@cache
def general_matrices(layers: int) -> GeneralMatrices:
    """Averages over the annealed chain measure, for any L (second moment and RS stability)."""
    measure = chain_measure(layers)

    def r(layer: int, taus: Signs) -> Expr:
        return measure.ratio[measure.key(layer, taus)]

    def field(layer: int, taus: Signs) -> Expr:
        return measure.field[measure.key(layer, taus)]

    def squared(k: int, m: int, kind: str) -> Expr:
        def observable(spins: Signs, taus: Signs) -> Expr:
            if kind == "E" and k == m:
                return field(k, taus) * r(k, taus)
            pair = sp.Integer(spins[k] * spins[m])
            if kind == "C":
                return pair
            return pair * r(m, taus) * (r(k, taus) if kind == "E" else 1)

        return measure.average(observable) ** 2

    def matrix(kind: str) -> Matrix:
        return sp.Matrix(layers, layers, lambda k, m: squared(k, m, kind))

    return GeneralMatrices(matrix("C"), matrix("D"), matrix("E"))


def compact_L2() -> Expr:
    r"""Coefficient of q^2 in S_rs for L = 2 and lambda_L = lambda_R, by averages over tau.

    .. math:: \frac14\Big[\frac{(1-\langle r\rangle^2-\langle\tau r\rangle^2)^2}
        {1+\langle\tau\rangle^2} - \langle v r\rangle^2 - \langle\tau r^2\rangle^2\Big]
    """
    measure = chain_measure(2)

    def mean(of_tau: dict[int, Expr]) -> Expr:
        return measure.average(lambda _spins, taus: of_tau[taus[0]])

    signs = (1, -1)
    r = {s: measure.ratio[0, (s,)] for s in signs}
    field = {s: measure.field[0, (s,)] for s in signs}
    tau = {s: sp.Integer(s) for s in signs}
    top = 1 - mean(r) ** 2 - mean({s: s * r[s] for s in signs}) ** 2
    return (
        top**2 / (1 + mean(tau) ** 2)
        - mean({s: field[s] * r[s] for s in signs}) ** 2
        - mean({s: s * r[s] ** 2 for s in signs}) ** 2
    ) / 4


def in_couplings(expression: Expr, layers: int, *, same_lambda: bool = False) -> Expr:
    """Put in what the symbols of the measure stand for: P, n and the couplings."""
    result = expression.subs(chain_measure(layers).values())
    return result.subs({lambda_L: lam, lambda_R: lam}) if same_lambda else result


def coefficient_L1() -> Expr:
    """Coefficient of q^2 in S_rs for L = 1, in r = n(J)/P(J): (1/4)[(1-r^2)^2 - J^2 r^2].

    Examples
    --------
    >>> coefficient_L1()
    (-J_D*r + r**2 - 1)*(J_D*r + r**2 - 1)/4
    """
    measure = chain_measure(1)
    form = eliminate_uniform(1).form.subs({measure.field[0, ()]: J})
    return sp.factor((form / q**2).subs(measure.ratio[0, ()], sp.Symbol("r", positive=True)))


def coefficient(layers: int) -> Expr:
    """Coefficient of q^2 in S_rs = (1/L) log z + coefficient q^2, uniform q, L = 1 or 2.

    For L = 2 lambda_L = lambda_R = lambda: the two layers are equivalent only then.
    """
    form = eliminate_uniform(layers).form
    return in_couplings(form, layers, same_lambda=True) / (layers * q**2)
