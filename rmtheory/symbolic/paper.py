r"""What the paper prints (SM-A), transcribed term by term. Used only to be compared with.

Nothing here is derived, and nothing derived uses it.
"""

from __future__ import annotations

import sympy as sp

from rmtheory.symbolic.definitions import Expr, H, J, lam, q, qhat


def second_order_L1() -> Expr:
    """S_rs^(2) of L = 1 before the elimination of qhat."""
    density = sp.exp(-(J**2))
    return (
        qhat * (q - 1) / 2
        + sp.log(2 * H(-J))
        + qhat / 2
        - qhat**2 / 4
        - qhat * q * density / (4 * sp.pi * H(-J) ** 2)
        - q**2 * J**2 * density / (8 * sp.pi * H(-J) ** 2)
    )


def saddle_L1() -> Expr:
    """Value of qhat at which S_rs^(2) of L = 1 is extremal (a maximum; printed: a minimum)."""
    return q * (-2 * sp.exp(-(J**2)) + 4 * sp.pi * H(-J) ** 2) / (4 * sp.pi * H(-J) ** 2)


def eliminated_L1(*, corrected: bool = True) -> Expr:
    """S_rs^(2) of L = 1 after the elimination of qhat.

    As printed the whole bracket lacks its factor q^2 (erratum 10); `corrected` restores it.
    """
    bracket = (
        sp.Rational(1, 4)
        + sp.exp(-2 * J**2) / (16 * sp.pi**2 * H(-J) ** 4)
        - (2 + J**2) * sp.exp(-(J**2)) / (8 * sp.pi * H(-J) ** 2)
    )
    return sp.log(2 * H(-J)) + (q**2 if corrected else 1) * bracket


def A_terms() -> tuple[Expr, ...]:
    """Return the 34 printed terms of A(J_D, lambda), L = 2, in their printed order."""
    H_minus, H_plus = H(-J - lam), H(lam - J)
    return (
        2 * sp.pi**2 * H_minus**8,
        8 * sp.pi**2 * H_plus**2 * H_minus**6,
        -4 * sp.exp(-((J + lam) ** 2)) * sp.pi * H_minus**6,
        -2 * sp.exp(-((J + lam) ** 2)) * J**2 * sp.pi * H_minus**6,
        -2 * sp.exp(-((J + lam) ** 2)) * lam**2 * sp.pi * H_minus**6,
        -4 * sp.exp(-((J + lam) ** 2)) * J * lam * sp.pi * H_minus**6,
        -4
        * sp.exp(3 * J**2 + 8 * lam * J + 3 * lam**2 - 4 * (J + lam) ** 2)
        * J**2
        * sp.pi
        * H_plus
        * H_minus**5,
        4
        * sp.exp(3 * J**2 + 8 * lam * J + 3 * lam**2 - 4 * (J + lam) ** 2)
        * lam**2
        * sp.pi
        * H_plus
        * H_minus**5,
        sp.exp(-2 * (J + lam) ** 2) * H_minus**4,
        2 * sp.exp(4 * J * lam - 2 * (J + lam) ** 2) * H_minus**4,
        -sp.exp(8 * J * lam - 2 * (J + lam) ** 2) * H_minus**4,
        12 * sp.pi**2 * H_plus**4 * H_minus**4,
        -8 * sp.exp(-((J + lam) ** 2)) * sp.pi * H_plus**2 * H_minus**4,
        -4 * sp.exp(4 * J * lam - (J + lam) ** 2) * sp.pi * H_plus**2 * H_minus**4,
        -2 * sp.exp(4 * J * lam - (J + lam) ** 2) * J**2 * sp.pi * H_plus**2 * H_minus**4,
        -2 * sp.exp(4 * J * lam - (J + lam) ** 2) * lam**2 * sp.pi * H_plus**2 * H_minus**4,
        4 * sp.exp(4 * J * lam - (J + lam) ** 2) * J * lam * sp.pi * H_plus**2 * H_minus**4,
        8 * sp.pi**2 * H_plus**6 * H_minus**2,
        -4 * sp.exp(-((J + lam) ** 2)) * sp.pi * H_plus**4 * H_minus**2,
        -8 * sp.exp(4 * J * lam - (J + lam) ** 2) * sp.pi * H_plus**4 * H_minus**2,
        -2 * sp.exp(-((J + lam) ** 2)) * J**2 * sp.pi * H_plus**4 * H_minus**2,
        -2 * sp.exp(-((J + lam) ** 2)) * lam**2 * sp.pi * H_plus**4 * H_minus**2,
        -4 * sp.exp(-((J + lam) ** 2)) * J * lam * sp.pi * H_plus**4 * H_minus**2,
        4 * sp.exp(2 * (J**2 + 4 * lam * J + lam**2) - 4 * (J + lam) ** 2) * H_plus**2 * H_minus**2,
        -4
        * sp.exp(3 * J**2 + 8 * lam * J + 3 * lam**2 - 4 * (J + lam) ** 2)
        * J**2
        * sp.pi
        * H_plus**5
        * H_minus,
        4
        * sp.exp(3 * J**2 + 8 * lam * J + 3 * lam**2 - 4 * (J + lam) ** 2)
        * lam**2
        * sp.pi
        * H_plus**5
        * H_minus,
        2 * sp.pi**2 * H_plus**8,
        -4 * sp.exp(J**2 + 6 * lam * J + lam**2 - 2 * (J + lam) ** 2) * sp.pi * H_plus**6,
        -2 * sp.exp(J**2 + 6 * lam * J + lam**2 - 2 * (J + lam) ** 2) * J**2 * sp.pi * H_plus**6,
        -2 * sp.exp(J**2 + 6 * lam * J + lam**2 - 2 * (J + lam) ** 2) * lam**2 * sp.pi * H_plus**6,
        4 * sp.exp(J**2 + 6 * lam * J + lam**2 - 2 * (J + lam) ** 2) * J * lam * sp.pi * H_plus**6,
        -sp.exp(-2 * (J + lam) ** 2) * H_plus**4,
        2 * sp.exp(4 * J * lam - 2 * (J + lam) ** 2) * H_plus**4,
        sp.exp(8 * J * lam - 2 * (J + lam) ** 2) * H_plus**4,
    )


def A() -> Expr:
    """Numerator A(J_D, lambda) of the coefficient of q^2 for L = 2."""
    return sp.Add(*A_terms())


def B() -> Expr:
    """Denominator B(J_D, lambda) of the coefficient of q^2 for L = 2."""
    H_minus, H_plus = H(-J - lam), H(lam - J)
    return 16 * sp.pi**2 * (H_minus**2 + H_plus**2) ** 2 * (H_minus**4 + H_plus**4)


def eliminated_L2() -> Expr:
    """S_rs^(2) of L = 2, lambda_L = lambda_R = lambda, after the elimination of qhat."""
    weights = H(-J - lam) ** 2 + H(-J + lam) ** 2
    return (sp.log(2) + sp.log(weights)) / 2 + A() / B() * q**2
