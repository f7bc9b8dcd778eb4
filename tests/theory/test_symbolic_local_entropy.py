"""Local entropy derived by sympy: every claim, and the numerics evaluate what was derived."""

from __future__ import annotations

import ast
import math
from typing import Any

import numpy as np
import pytest
import sympy as sp
from scipy import special

from rmtheory import Chain, InvalidInputError
from rmtheory.annealed import entropy
from rmtheory.base.gaussian import Array
from rmtheory.local_entropies.core import core_moments
from rmtheory.local_entropies.functional import Moments
from rmtheory.local_entropies.pair import pair_moments
from rmtheory.local_entropies.solve import functional, solve_saddle
from rmtheory.second_moment.overlap_exponent import exponent
from rmtheory.symbolic import derive, identical, render
from rmtheory.symbolic import local_functional as local
from rmtheory.symbolic import local_functional as tangent
from rmtheory.symbolic import local_identities as numerics
from rmtheory.symbolic import local_identities as second
from rmtheory.symbolic.definitions import F, P, n, stabilities

LAYERS = [1, 2]

#: Chains of one and two layers, lambda_L = lambda_R and not.
CORE = Chain(1, 0.1)
UNIFORM = Chain(2, 0.0, 0.5)
UNEQUAL = Chain(2, 0.2, lam_left=0.6, lam_right=0.1)


def module(layers: int) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(render(derive("local-entropy", layers), "python"), namespace)
    return namespace


def saddle(chain: Chain, d: float, y: float) -> Moments:
    model = functional(chain)
    return solve_saddle(model, d, y, np.full(model.unknowns, 0.5), 3).moments


# --- the derivation --------------------------------------------------------------------------


@pytest.mark.parametrize("layers", LAYERS)
def test_every_claim_holds(layers: int) -> None:
    derivation = derive("local-entropy", layers)
    assert derivation.layers == layers
    assert len(derivation.checks) > 20
    assert [check.claim for check in derivation.checks if not check.holds] == []


@pytest.mark.parametrize("layers", LAYERS)
def test_text_and_latex(layers: int) -> None:
    derivation = derive("local-entropy", layers)
    text, latex = render(derivation, "text"), render(derivation, "latex")
    assert all(f"({k})" in text for k in range(1, len(derivation.steps) + 1))
    assert "<log(zeta)>_y" in text
    assert "[NO]" not in text
    assert "`" not in text
    assert latex.count(r"\begin{align}") == latex.count(r"\end{align}") == len(derivation.steps)
    assert latex.count(r"\left") == latex.count(r"\right")
    assert r"\left\langle \log{\left(\zeta \right)} \right\rangle_{y}" in latex
    assert "qhat_" not in latex
    plain = latex.replace(r"\{", "").replace(r"\}", "")
    assert plain.count("{") == plain.count("}")


def test_three_layers_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="from 1 to 2 for topic local-entropy, got 3"):
        derive("local-entropy", 3)


def test_a_power_of_an_average_prints() -> None:
    assert sp.latex(local.overlap(1) ** 2).endswith(r"\right\rangle_{y}^{2}")
    assert sp.sstr(local.overlap(1) ** 2) == "<m_1**2>_y**2"


def test_heat_equation_on_monomials() -> None:
    """d/dk E[x^p] = E[(x^p)'']/2 for x ~ N(0, k), integrated."""
    kernel, x, k = local.heat_kernel()
    density = kernel.rewrite(sp.exp)

    def mean(value: sp.Expr) -> sp.Expr:
        return sp.simplify(sp.integrate(value * density, (x, -sp.oo, sp.oo)))

    for power in (2, 4, 6):
        monomial = x**power
        assert sp.expand(sp.diff(mean(monomial), k) - mean(sp.diff(monomial, x, 2)) / 2) == 0


def test_wrong_formulas_are_seen() -> None:
    m = [tangent.spin_mean(2, k) for k in (0, 1)]
    chi = numerics.response(2, 0, 1)
    derived = tangent.curved(m[0] ** 2, 2, 1)
    assert identical(derived, numerics.curved_square(m[0], m[1], chi))
    assert not identical(derived, numerics.curved_square(m[0], m[1], -chi))
    assert not identical(derived, numerics.curved_square(m[0], m[1], numerics.response(2, 0, 0)))
    left, right = local.backward_heat(1)
    assert not identical(left, -right)
    assert not local.same(local.internal_entropy(1), local.external_entropy(1))
    assert not local.same(local.slope(1), -numerics.slope(1))


# --- the misprinted factor y -----------------------------------------------------------------


@pytest.mark.parametrize("layers", LAYERS)
def test_second_moment_settles_the_factor_y(layers: int) -> None:
    """y = 2 counts pairs: y phi, and not the phi that the paper prints, is their exponent."""
    phi, dual = second.free_entropy_at(layers, 2), second.second_moment_dual(layers)
    assert second.same_exponential(2 * phi, dual)
    assert not second.same_exponential(phi, dual)
    assert not second.same_exponential(4 * phi, dual)


def test_second_moment_at_the_saddle_of_one_layer() -> None:
    expected = second.second_moment_core()
    limit = sp.log(2) + second.binary_entropy((1 - local.q1) / 2)
    for factor in (1, 2, 4):
        assert second.same_at_saddle(second.at_saddle_core(factor), expected) is (factor == 2)
        assert second.same_at_saddle(second.strong_coupling_core(factor), limit) is (factor == 2)


@pytest.mark.parametrize("chain", [CORE, Chain(1, 0.8), UNIFORM, UNEQUAL], ids=str)
@pytest.mark.parametrize("d", [0.1, 0.3])
def test_second_moment_exponent_by_numbers(chain: Chain, d: float) -> None:
    """The same by two independent routes: quadrature in 2L fields, and bivariate Gaussians."""
    moments, y, layers = saddle(chain, d, 2.0), 2.0, chain.finite_layers
    expected = float(exponent(chain, 1 - 2 * d))
    value = layers * moments.phi
    assert y * value == pytest.approx(expected, rel=1e-9)
    assert abs(value - expected) > 0.01
    assert abs(y * y * value - expected) > 0.01


def test_strong_coupling_by_numbers() -> None:
    for d in (0.05, 0.2):
        value = 2 * saddle(Chain(1, 12), d, 2.0).phi
        expected = math.log(2) + float(special.entr(d) + special.entr(1 - d))
        assert value == pytest.approx(expected, rel=1e-10)


def test_saddle_at_y_2_by_numbers() -> None:
    d = 0.15
    chain, q1 = Chain(1, 0.3), 1 - 2 * d
    moments = saddle(chain, d, 2.0)
    x = np.linspace(-9, 9, 2001) * math.sqrt(q1)
    weight = np.exp(-x * x / (2 * q1)) * (x[1] - x[0]) / math.sqrt(2 * math.pi * q1)
    up, down = (special.ndtr((chain.jd + s * x) / math.sqrt(1 - q1)) for s in (1, -1))
    probability = {1: (weight * up * up).sum(), -1: (weight * up * down).sum()}
    formula = second.saddle_core().replace(
        F, lambda a, b, rho: probability[1 if rho == local.q1 else -1]
    )
    assert float(formula.subs(local.q1, q1)) == pytest.approx(moments.qhat[0], rel=1e-9)


# --- the numerics evaluate what was derived --------------------------------------------------


@pytest.mark.parametrize(("layers", "entries"), [(1, 1), (2, 1), (2, 2)])
def test_properties_of_moments(layers: int, entries: int) -> None:
    """phi, S_I, S_E, slope and residuals of Moments at arbitrary averages."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        q1, y, G, ell = rng.uniform(0.2, 0.9), rng.uniform(1, 9), *rng.normal(size=2)
        qhat, overlap, force = rng.uniform(0.1, 2, (3, entries))
        total = np.resize(qhat, layers).sum()
        norm, log = G - y * y * total / 2, ell - y * total
        moments = Moments((1 - q1) / 2, y, qhat, layers, norm, log, 1 - overlap, force, 0)
        each = range(1, layers + 1)
        values = {local.q1: q1, local.y: y, local.log_norm: G, local.mean_log: ell}
        values |= dict(zip(local.conjugates(layers), np.resize(qhat, layers), strict=True))
        values |= {local.force(k): force[(k - 1) % entries] for k in each}
        values |= {local.overlap(k): overlap[(k - 1) % entries] for k in each}

        def number(expression: sp.Expr, at: dict[Any, Any] = values) -> float:
            return float(expression.xreplace({k: sp.Float(v, 17) for k, v in at.items()}))

        phi = local.evaluated(local.free_entropy(layers), layers)
        for derived, evaluated in (
            (phi, moments.phi),
            (local.internal_entropy(layers), moments.internal),
            (local.external_entropy(layers), moments.external),
            (local.slope(layers), moments.slope),
        ):
            assert number(derived) / layers == pytest.approx(evaluated, rel=1e-12, abs=1e-13)
        for k in range(entries):
            residual = number(local.stationarity(layers, k + 1)) * 2 / (y * (y - 1))
            assert residual == pytest.approx(moments.saddle_residual[k], rel=1e-10, abs=1e-13)


def fields(chain: Chain, d: float, y: float, qhat: Array, step: float) -> tuple[Array, list[Array]]:
    """Gaussian weights and the columns u_s on a plain grid in all the fields t_l, z_l."""
    layers, q1 = chain.finite_layers, 1 - 2 * d
    axes = []
    for k in range(layers):
        reach = 7 + y * math.sqrt(qhat[k])
        axes += [np.arange(-reach, reach + step, step), np.arange(-7, 7 + step, step)]
    grid = np.meshgrid(*axes, indexing="ij", sparse=True)
    weight = np.exp(-sum(g * g for g in grid) / 2) * (step / math.sqrt(2 * math.pi)) ** len(grid)
    columns = []
    for spins in tangent.weights(layers):
        fields_ = [float(v.subs(_couplings(chain))) for v in stabilities(spins)]
        u: Any = 1.0
        for k, (s, v) in enumerate(zip(spins, fields_, strict=True)):
            t, z = grid[2 * k], grid[2 * k + 1]
            argument = (v + s * math.sqrt(q1) * z) / math.sqrt(1 - q1)
            u = u * (np.exp(s * math.sqrt(qhat[k]) * t) * special.ndtr(argument))
        columns.append(u)
    return weight, columns


def _couplings(chain: Chain) -> dict[Any, float]:
    names = sp.symbols("J_D lambda_L lambda_R", real=True)
    return dict(zip(names, (chain.jd, chain.lam_left, chain.lam_right), strict=True))


@pytest.mark.parametrize(
    ("chain", "step", "tolerance"), [(CORE, 0.2, 1e-9), (UNEQUAL, 0.85, 1e-6)], ids=str
)
def test_tangent_averages_the_derived_integrands(
    chain: Chain, step: float, tolerance: float
) -> None:
    """Average (zeta^y O)''/zeta^y as differentiated by sympy, and compare with the tangent."""
    layers, d, y = chain.finite_layers, 0.35, 2.3
    qhat = np.array([0.4, 0.3])[:layers]
    weight, columns = fields(chain, d, y, qhat, step)
    moments = functional(chain).moments(d, y, qhat, 3, tangent=True)
    expected = moments.tangent
    assert expected is not None
    tilted = weight * sum(columns) ** y
    symbols = (*tangent.weights(layers).values(), local.y)

    def mean(observable: sp.Expr) -> float:
        values = sp.lambdify(symbols, observable, "numpy", cse=True)(*columns, y)
        return float((tilted * values).sum() / tilted.sum())

    log = sp.log(tangent.partition(layers))
    squares = [tangent.spin_mean(layers, k) ** 2 for k in range(layers)]

    def slope(observable: sp.Expr, k: int) -> float:
        norm = mean(tangent.curved(sp.S.One, layers, k))
        return 0.5 * (mean(tangent.curved(observable, layers, k)) - mean(observable) * norm)

    def close(value: float) -> Any:
        return pytest.approx(value, rel=tolerance, abs=tolerance)

    assert mean(log) == close(moments.mean_log + y * qhat.sum())
    assert mean(log**2) - mean(log) ** 2 == close(expected.mean_log_y)
    for k in range(layers):
        assert mean(squares[k]) == close(1 - moments.one_minus_m2[k])
        assert slope(log, k) == close(expected.mean_log_q[k])
        half = 0.5 * mean(tangent.curved(sp.S.One, layers, k))
        assert half == close(expected.log_norm_q[k])
        covariance = mean(squares[k] * log) - mean(squares[k]) * mean(log)
        assert covariance == close(expected.overlap_y[k])
        for layer in range(layers):
            assert slope(squares[layer], k) == close(expected.overlap_q[layer, k])


def test_one_entry_moves_both_layers() -> None:
    """With lambda_L = lambda_R one qhat stands for two: its derivatives are their sums."""
    one, two = (
        functional(UNIFORM).moments(0.2, 2.5, np.full(size, 0.4), 1, tangent=True).tangent
        for size in (1, 2)
    )
    assert one is not None
    assert two is not None
    assert two.overlap_q.sum(axis=1) == pytest.approx(one.overlap_q[0, 0], rel=1e-6)
    assert two.log_norm_q.sum() == pytest.approx(one.log_norm_q[0], rel=1e-6)
    assert two.mean_log_q.sum() == pytest.approx(one.mean_log_q[0], rel=1e-6)


@pytest.mark.parametrize("chain", [CORE, UNIFORM, UNEQUAL], ids=str)
def test_entropies_and_slope_are_derivatives_of_phi(chain: Chain) -> None:
    """S_I, S_E and the slope against differences of phi at its saddle."""
    d, y, step = 0.2, 2.5, 0.02
    centre = saddle(chain, d, y)

    def difference(values: list[float], width: float) -> float:
        far, near, near_up, far_up = values
        return (far - far_up + 8 * (near_up - near)) / (12 * width)

    offsets = (-2, -1, 1, 2)
    in_y = [saddle(chain, d, y + k * step).phi for k in offsets]
    in_d = [saddle(chain, d + k * step / 10, y).phi for k in offsets]
    products = [(y + k * step) * phi for k, phi in zip(offsets, in_y, strict=True)]
    assert difference(products, step) == pytest.approx(centre.internal, abs=1e-8)
    assert difference(in_y, step) == pytest.approx(-centre.external / y**2, abs=1e-8)
    assert difference(in_d, step / 10) == pytest.approx(centre.slope, abs=1e-7)


# --- the printed module ----------------------------------------------------------------------


@pytest.mark.parametrize("layers", LAYERS)
def test_module_needs_only_the_standard_library(layers: int) -> None:
    tree = ast.parse(render(derive("local-entropy", layers), "python"))
    imported = {
        a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names
    }
    assert imported == {"math", "itertools"}
    assert not any(isinstance(node, ast.ImportFrom) for node in ast.walk(tree))


@pytest.mark.parametrize(
    ("jd", "d", "y", "qhat"),
    [(0.1, 0.1, 5.665, 0.55), (0.05, 0.3, 1.5, 0.2), (-0.3, 0.02, 3.0, 1.5), (1.0, 0.2, 2.0, 0.9)],
)
def test_module_of_one_layer(jd: float, d: float, y: float, qhat: float) -> None:
    printed = module(1)["local_entropy"](jd, d, y, (qhat,))
    moments = core_moments(jd, d, y, np.array([qhat]), 3)
    expected = (moments.phi, moments.internal, moments.external)
    assert printed == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("chain", [UNIFORM, UNEQUAL], ids=str)
def test_module_of_two_layers(chain: Chain) -> None:
    d, y, qhat = 0.3, 2.0, (0.4, 0.3)
    printed = module(2)["local_entropy"](
        chain.jd, chain.lam_left, chain.lam_right, d, y, qhat, step=0.7, cutoff=6.5
    )
    moments = pair_moments(chain.jd, chain.lam_left, chain.lam_right, d, y, np.array(qhat), 3)
    expected = (moments.phi, moments.internal, moments.external)
    assert printed == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_module_at_y_1_is_annealed() -> None:
    phi, _, _ = module(1)["local_entropy"](0.3, 0.1, 1.0, (0.7,))
    assert phi == pytest.approx(float(entropy(Chain(1, 0.3))), rel=1e-12)


def test_zeta_in_the_fields_is_the_sum_of_the_printed_columns() -> None:
    """The rows of the module multiply to zeta; the derivative P' = n is what the force needs."""
    row = module(1)["site_1"](0.2, 0.6, 0.5, 0.3, -0.4)[0]
    (h,), (x,) = local.fields(1)
    values = {h: math.sqrt(0.5) * 0.3, x: -math.sqrt(0.6) * 0.4, local.q1: 0.6}
    zeta = local.zeta(1).subs(_couplings(Chain(1, 0.2)) | values)
    assert sum(row) == pytest.approx(float(zeta.rewrite(sp.erfc)), rel=1e-13)
    assert sp.diff(P(x), x) == n(x)
