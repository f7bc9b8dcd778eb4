"""The gas of flips of deep chains, by messages: against one layer, two, and plain sums of three."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import special

from rmtheory import Chain
from rmtheory.local_entropies.deep_gas import DeepGasSolver, GasChain, GasGrid, find_deep_gas
from rmtheory.local_entropies.dilute_gas import gas_of, smeared_gas
from rmtheory.local_entropies.points import _diluted, ystar
from rmtheory.local_entropies.transfer_operator import transfer_functional

pytestmark = pytest.mark.numerical


def log_z(chain: Chain, d: float, y: float, log_rho: np.ndarray, level: int = 1) -> float:
    return GasChain(GasGrid(chain, d, y, math.exp(log_rho.max()), level)).log_z(y, log_rho)


@pytest.mark.parametrize(("jd", "lam", "d"), [(0.1, 0.2, 1e-3), (0.05, 0.3, 2e-3)])
def test_of_two_layers_it_is_the_sum_over_both_fields(jd: float, lam: float, d: float) -> None:
    gas = smeared_gas(Chain(2, jd, lam), d)
    known = gas_of(Chain(2, jd, lam)).sharp().columns(d, gas.y_star, np.array(gas.log_rho)).log_z
    ours = log_z(Chain(2, jd, lam), d, gas.y_star, np.repeat(gas.log_rho, 2))
    assert ours == pytest.approx(known, abs=1e-7)


@pytest.mark.parametrize("layers", [3, "inf"])
def test_without_a_coupling_layers_are_cores(layers: int | str) -> None:
    core = smeared_gas(Chain(1, 0.1), 1e-3)
    known = gas_of(Chain(1, 0.1)).sharp().columns(1e-3, core.y_star, np.array(core.log_rho)).log_z
    count = 3 if layers == 3 else 1
    ours = log_z(Chain(layers, 0.1, 0.0), 1e-3, core.y_star, np.repeat(core.log_rho, count))
    assert ours == pytest.approx(count * known, abs=3e-6)


def test_three_layers_by_a_plain_sum() -> None:
    """All fields on equidistant nodes, all eight sets of flips, all bonds: nothing interpolated."""
    jd, lam, d, y = 0.08, 0.25, 0.01, 25.0
    rho = np.array([0.03, 0.035, 0.03])
    sigma, q1 = math.sqrt(2 * d), 1 - 2 * d
    x = np.arange(-4.8, 4.8, 0.06)
    weight = np.exp(-0.5 * x * x / q1) / math.sqrt(2 * math.pi * q1) * 0.06
    total = 0.0
    for bonds in product((1, -1), repeat=2):
        b = np.zeros((x.size,) * 3)
        for flips in product((0, 1), repeat=3):
            s = [1 - 2 * k for k in flips]
            bond = [bonds[0] * s[0] * s[1], bonds[1] * s[1] * s[2]]
            v = [jd + lam * bond[0], jd + lam * sum(bond), jd + lam * bond[1]]
            p = [special.ndtr((v[k] + s[k] * x) / sigma) for k in range(3)]
            factor = float(np.prod(rho ** np.array(flips)))
            b += factor * p[0][:, None, None] * p[1][:, None] * p[2]
        total += float(np.einsum("i,j,k,ijk", weight, weight, weight, b**y, optimize=True))
    assert log_z(Chain(3, jd, lam), d, y, np.log(rho)) == pytest.approx(
        math.log(2 * total), abs=2e-5
    )


def test_the_gas_of_three_cores_is_solved() -> None:
    """From a guess that is 10 % off; S_I*, slope and first order of the core."""
    core = smeared_gas(Chain(1, 0.1), 1e-3)
    solver = DeepGasSolver(Chain("inf", 0.1, 0.0), 1e-3)
    gas = solver.ystar(1.1 * core.y_star, np.array(core.log_rho) - 0.1)
    # The coarse grid misses log Z by what the finer one changes, y times that of phi.
    assert gas.y == pytest.approx(core.y_star, rel=1e-2)
    assert abs(gas.phi + gas.correction - core.internal) <= 2 * solver.finer(gas)
    assert solver.finer(gas) < 1e-4 * core.internal
    assert gas.correction == pytest.approx(core.correction, rel=1e-2)
    assert abs(gas.external) < 1e-5
    # The whole curve of cores, which the gas describes within its own error.
    exact = ystar(Chain(1, 0.1), 1e-3, check_zeros=False)
    answer = _diluted(transfer_functional(Chain("inf", 0.1, 0.0)), 1e-3)
    assert answer is not None
    assert not answer.y_star_is_bound
    assert answer.internal.contains(float(exact.internal))
    assert answer.slope.contains(float(exact.slope))
    assert answer.y_star.contains(float(exact.y_star))


def test_where_every_flip_is_allowed_y_star_is_a_bound() -> None:
    gas, bound = find_deep_gas(Chain("inf", 2.0, 0.1), 1e-3)
    assert bound
    assert gas.external > 0
    # S_I* is nearly the entropy of free flips around a centre at overlap sqrt(q1).
    p = 0.5 * (1 - math.sqrt(1 - 2e-3))
    free = -p * math.log(p) - (1 - p) * math.log(1 - p)
    assert abs(gas.phi - gas.external / gas.y - free) < gas.external / gas.y


# Two layers where the full functional would take minutes.


def test_free_flips_of_pairs() -> None:
    """J_D = 0 and a strong coupling: both spins flip together, and freely."""
    point = ystar(Chain(2, 0.0, 1.5), 0.002)
    assert point.y_star_is_bound
    p = 0.5 * (1 - math.sqrt(1 - 2 * 0.002))
    free = -p * math.log(p) - (1 - p) * math.log(1 - p)
    assert point.internal.contains(0.5 * free)
    # No rho for one layer alone, only for pairs.
    assert 0.01 < float(np.exp(-2 * float(point.y_star) * float(point.qhat[0]))) < 0.1


def test_two_layers_at_large_y_by_both_gases() -> None:
    """All fields at once against messages."""
    point = ystar(Chain(2, 0.6, 0.3), 0.002)
    assert 1000 < float(point.y_star) < 2000
    gas, bound = find_deep_gas(Chain(2, 0.6, 0.3), 0.002, beyond=16)
    assert not bound
    assert gas.phi + gas.correction == pytest.approx(float(point.internal), rel=1e-5)
    assert point.y_star.contains(gas.y)
