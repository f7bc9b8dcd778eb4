"""Derivations as text, LaTeX and Python; the printed module agrees with the numerics."""

from __future__ import annotations

import ast
import math
import subprocess
import sys
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp

from rmtheory import Chain, InvalidInputError
from rmtheory.annealed import entropy
from rmtheory.base.arithmetic import MPArithmetic
from rmtheory.base.estimate import Tier
from rmtheory.dynamics.exact_steps import first_steps
from rmtheory.local_entropies.broken_averages import broken_moments
from rmtheory.second_moment.bivariate import orthant_conditional
from rmtheory.symbolic import FORMATS, TOPICS, Derivation, derive, render
from rmtheory.symbolic.broken import second_order_matrices, stability_matrix
from rmtheory.symbolic.definitions import J
from rmtheory.symbolic.local_functional import y
from rmtheory.symbolic.topics import first_correlations

CASES = [
    *(("annealed", layers) for layers in (1, 2, 3, 4, 6, 7, 40, math.inf)),
    *(("rs", layers) for layers in (1, 2, 3, 4)),
    *(("stability", layers) for layers in (1, 2)),
    *(("broken", layers) for layers in (1, 2)),
    ("first-sweeps", 1),
]


@cache
def printed_module(topic: str, layers: int | float) -> str:
    return render(derive(topic, layers), "python")


@cache
def module(topic: str, layers: int | float) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(printed_module(topic, layers), namespace)
    return namespace


@pytest.mark.parametrize(("topic", "layers"), CASES)
def test_every_claim_of_a_derivation_holds(topic: str, layers: float) -> None:
    derivation = derive(topic, layers)
    assert isinstance(derivation, Derivation)
    assert derivation.name == topic
    assert derivation.layers == layers
    assert derivation.steps
    assert derivation.checks
    assert all(check.holds for check in derivation.checks)


@pytest.mark.parametrize(("topic", "layers"), CASES)
def test_text_gives_every_step_and_its_reason(topic: str, layers: float) -> None:
    derivation = derive(topic, layers)
    text = render(derivation, "text")
    assert all(f"({k})" in text for k in range(1, len(derivation.steps) + 1))
    assert "[yes]" in text
    assert "NO" not in text
    assert "`" not in text


@pytest.mark.parametrize(("topic", "layers"), CASES)
def test_latex_is_balanced(topic: str, layers: float) -> None:
    derivation = derive(topic, layers)
    latex = render(derivation, "latex")
    assert latex.count(r"\begin{align}") == latex.count(r"\end{align}") == len(derivation.steps)
    assert latex.count(r"\left") == latex.count(r"\right")
    plain = latex.replace(r"\{", "").replace(r"\}", "")
    assert plain.count("{") == plain.count("}")
    assert "qhat_" not in latex


@pytest.mark.parametrize(("topic", "layers"), CASES)
def test_python_needs_only_the_standard_library(topic: str, layers: float) -> None:
    tree = ast.parse(printed_module(topic, layers))
    imported = {
        a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names
    }
    assert imported <= {"math", "itertools"}
    assert not any(isinstance(node, ast.ImportFrom) for node in ast.walk(tree))


@pytest.mark.parametrize("layers", [1, 2, 3, 4, 5, 6, 7, 40, 1000, math.inf])
@pytest.mark.parametrize(("jd", "lam_left", "lam_right"), [(0.3, 0.7, 0.4), (-0.5, 0.2, -0.9)])
def test_annealed_module(layers: float, jd: float, lam_left: float, lam_right: float) -> None:
    printed = module("annealed", layers)["annealed_entropy"](jd, lam_left, lam_right)
    expected = entropy(Chain.at_depth(layers, jd, lam_left=lam_left, lam_right=lam_right))
    assert printed == pytest.approx(float(expected), rel=1e-12, abs=1e-14)


def test_annealed_module_reference_values() -> None:
    """Reference values of the theory notes."""
    for layers, couplings, value in (
        (1, (0.5,), 0.324200765271288916),
        (2, (0.3, 0.7, 0.4), 0.232706065291064486),
        (3, (0.1, 0.5, 0.5), 0.133864946609125896),
    ):
        assert module("annealed", layers)["annealed_entropy"](*couplings) == pytest.approx(
            value, rel=1e-14
        )


def test_partition_sum_of_the_module() -> None:
    printed = module("annealed", 3)
    z, s = (printed[name](0.1, 0.5, 0.3) for name in ("partition_sum", "annealed_entropy"))
    assert s == pytest.approx(math.log(z) / 3, rel=1e-15)


@pytest.mark.parametrize(("layers", "step"), [(1, 0.5), (2, 1.6)])
def test_rs_module_at_zero_overlap_is_annealed(layers: int, step: float) -> None:
    functional = module("rs", layers)["rs_functional"]
    zero = (0.0,) * layers
    expected = float(entropy(Chain.at_depth(layers, 0.3, lam_left=0.7, lam_right=0.4))) * layers
    assert functional(0.3, 0.7, 0.4, zero, zero, step=step) == pytest.approx(expected, rel=1e-13)


def test_rs_functional_has_the_derived_second_order() -> None:
    """The remainder of the second-order form is of third order: halving q divides it by 8."""
    functional = module("rs", 1)["rs_functional"]
    coefficient = module("stability", 1)["stability_coefficient"](0.1)
    entropy_ = float(entropy(Chain(1, 0.1)))
    r = math.sqrt(2 / math.pi) * math.exp(-0.005) / math.erfc(-0.1 / math.sqrt(2))

    def remainder(q: float) -> float:
        value = functional(0.1, 0.0, 0.0, (q,), (q * (1 - r * r),))
        return float(value - entropy_ - coefficient * q * q)

    assert remainder(0.04) / remainder(0.02) == pytest.approx(8, rel=0.1)


def test_stability_module_reference_values() -> None:
    two, one = module("stability", 2), module("stability", 1)
    assert two["stability_coefficient"](0.1, 0.5) == pytest.approx(
        0.06790235895619553526, rel=1e-13
    )
    # Without coupling two layers are one; the boundary of one layer is r(r - J) = 1.
    assert two["stability_coefficient"](0.1, 0.0) == pytest.approx(
        one["stability_coefficient"](0.1), rel=1e-13
    )
    assert one["stability_coefficient"](-0.178357650045906) == pytest.approx(0, abs=1e-14)


def test_stability_matrix_contains_the_coefficient() -> None:
    two = module("stability", 2)
    for jd, lam in ((0.1, 0.5), (0.4, 1.5), (-0.1, 0.2)):
        matrix = two["stability_matrix"](jd, lam, lam)
        total = sum(x for row in matrix for x in row)
        assert total / 8 == pytest.approx(two["stability_coefficient"](jd, lam), rel=1e-12)
        assert matrix[0][1] == pytest.approx(matrix[1][0], rel=1e-10)


def test_bad_arguments_teach() -> None:
    with pytest.raises(InvalidInputError, match="topic must be one of annealed, rs, stability"):
        derive("quenched", 1)
    with pytest.raises(InvalidInputError, match="format must be one of latex, text, python"):
        render(derive("annealed", 1), "pdf")
    for topic, layers in (("annealed", 0), ("annealed", 1.5), ("rs", 5), ("rs", math.inf)):
        with pytest.raises(InvalidInputError, match="layers must be an integer"):
            derive(topic, layers)
    with pytest.raises(InvalidInputError, match="from 1 to 2 for topic stability, got 3"):
        derive("stability", 3)
    with pytest.raises(InvalidInputError, match="layers must be 1 for topic first-sweeps, got 2"):
        derive("first-sweeps", 2)


def test_topics_and_formats() -> None:
    assert set(TOPICS) >= {"annealed", "rs", "stability"}
    assert FORMATS == ("latex", "text", "python")
    # 3.0 and "inf" are accepted as everywhere else.
    assert derive("annealed", 3.0) is derive("annealed", 3)


def test_the_rest_of_the_package_does_not_import_sympy() -> None:
    code = "import sys, rmtheory, rmtheory.annealed; sys.exit('sympy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("chain", [Chain(1, 0.1), Chain(2, 0.05, 0.3)])
def test_the_module_of_the_broken_functional_agrees_with_its_averages(chain: Chain) -> None:
    """The derived phi, S_I and S_E at the averages of a coarse rule, q0 > 0."""
    moments = broken_moments(chain, 0.1, 5.2, 0.14, 0.134, 0.0015, 0)
    count = chain.finite_layers
    functions = module("broken", count)
    at = (moments.q1, moments.y, *([value] * count for value in (0.14, 0.134, 0.0015)))
    norm, log = moments.log_norm, moments.mean_log
    assert functions["free_entropy"](*at, norm) == pytest.approx(moments.phi, rel=1e-13)
    assert functions["internal_entropy"](*at, log) == pytest.approx(moments.internal, rel=1e-12)
    assert functions["external_entropy"](*at, norm, log) == pytest.approx(
        moments.external, rel=1e-11
    )


def test_the_replicon_is_the_derived_matrix() -> None:
    moments = broken_moments(Chain(2, 0.05, 0.3), 0.1, 5.2, 0.14, 0.134, 0.0015, 0)
    squares = moments.curvatures()
    values = {y: moments.y}
    for (a, b), part in zip(((0, 0), (0, 2), (2, 2)), second_order_matrices(2), strict=True):
        values |= {part[i, j]: squares[a + i, b + j] for i in (0, 1) for j in (0, 1)}
    matrix = np.array(stability_matrix(2).subs(values).evalf(), dtype=float)
    least = np.linalg.eigvalsh(0.5 * (matrix + matrix.T))[0]
    assert moments.replicon() == pytest.approx(least, rel=1e-10)


@pytest.mark.parametrize("jd", ["-0.4", "0.5", "9"])
def test_the_module_of_the_first_sweeps_agrees_with_the_exact_steps(jd: str) -> None:
    exact = first_steps(Chain(1, jd), digits=15, tier=Tier.CERTIFIED)
    printed = module("first-sweeps", 1)
    for name in ("c10", "c20", "c21"):
        expected = float(getattr(exact, name).value)
        assert printed[name](float(jd)) == pytest.approx(expected, abs=1e-12)


def test_the_derived_first_sweeps_agree_with_the_exact_steps_to_25_digits() -> None:
    """sympy's expressions in mpmath, F by the conditional integral: no code of the module."""
    numbers = MPArithmetic(40)
    jd = numbers.number(Fraction(1, 2))
    c10, c20, c21 = first_correlations()
    names = {"P": numbers.P, "F": lambda *at: orthant_conditional(numbers, *at)}
    exact = first_steps(Chain(1, "0.5"), digits=27, tier=Tier.CERTIFIED)
    c = sp.lambdify(J, c10, [names])(jd)
    assert abs(c - exact.c10.value) < 1e-25
    for derived, value in ((c20, exact.c20.value), (c21, exact.c21.value)):
        (symbol,) = derived.free_symbols - {J}
        assert abs(sp.lambdify((J, symbol), derived, [names])(jd, c) - value) < 1e-25
