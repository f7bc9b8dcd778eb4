"""Couplings: their distribution, and their fields against sums written out."""

import dataclasses
import itertools
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rmsim.couplings import (
    Couplings,
    DenseChain,
    DilutedChain,
    Topology,
    couplings_on,
    draw,
    draw_blocks,
    draw_dense,
    draw_diluted,
    draw_on,
)
from rmsim.couplings.chains import symmetrise_
from rmsim.couplings.rows import Part
from rmsim.network import Network
from rmsim.search import belief_propagation
from rmsim.tensors import memory_of
from rmtheory import Chain
from rmtheory.base.errors import InvalidInputError

pytestmark = pytest.mark.numerical

no_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
KINDS = ["dense", "diluted", "blocks", "adjacency"]


def states(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 2, shape, generator=generator).to(dtype).mul_(2).sub_(1)


def some_couplings(kind: str, samples: range = range(3), n: int = 20, layers: int = 3) -> Couplings:
    chain = Chain.at_depth(layers, 0.3, lam_left=0.7, lam_right=-0.2)
    if kind == "dense":
        return draw_dense(Network(n, chain), 5, samples)
    if kind == "diluted":
        return draw_diluted(Network(n, chain, rho=0.3), 5, samples)
    if kind == "blocks":
        topology = Topology.fully_connected_chain(layers, 0.4).with_skip(0, 2, identity=0.9)
        return draw_blocks(topology, n, 0.3, 5, samples)
    size = layers * n
    adjacency = torch.rand((size, size), generator=torch.Generator().manual_seed(1)) < 0.2
    return draw_on(adjacency.fill_diagonal_(False), 0.3, 5, samples, layers=layers)


def full_matrix(couplings: Couplings, k: int) -> np.ndarray:
    """The matrix over all neurons, J_D and lambda included, from fields of single neurons."""
    size = couplings.layers * couplings.n
    units = torch.eye(size).view(1, size, couplings.layers, couplings.n)
    return couplings.field(units, active=[k]).view(size, size).T.double().numpy()


@given(
    n=st.integers(2, 12),
    layers=st.integers(1, 4),
    jd=st.floats(-2, 2),
    lam_left=st.floats(-2, 2),
    lam_right=st.floats(-2, 2),
    rho=st.sampled_from([1.0, 0.4]),
)
def test_field_against_loops(
    n: int, layers: int, jd: float, lam_left: float, lam_right: float, rho: float
) -> None:
    chain = Chain.at_depth(layers, jd, lam_left=lam_left, lam_right=lam_right)
    couplings = draw(Network(n, chain, rho=rho), 1, range(2), dtype=torch.float64)
    matrices = couplings.matrices if isinstance(couplings, DenseChain) else couplings.to_dense()
    states_ = states(2, 3, layers, n, dtype=torch.float64)
    h, s, matrix = couplings.field(states_).numpy(), states_.numpy(), matrices.numpy()
    for k, a, layer, i in itertools.product(range(2), range(3), range(layers), range(n)):
        total = jd * s[k, a, layer, i]
        for j in range(n):
            total += matrix[k, layer, i, j] * s[k, a, layer, j]
        if layer > 0:
            total += couplings.lam_left * s[k, a, layer - 1, i]
        if layer < layers - 1:
            total += couplings.lam_right * s[k, a, layer + 1, i]
        assert abs(h[k, a, layer, i] - total) < 1e-12


@pytest.mark.parametrize("rho", [1.0, 0.1])
@pytest.mark.parametrize("symmetric", [False, True])
def test_moments(rho: float, symmetric: bool) -> None:
    n, samples = 150, 8
    network = Network(n, Chain(2, 0.5, 0.1), rho=rho, symmetric=symmetric)
    couplings = draw(network, 3, range(samples))
    matrices = couplings.matrices if isinstance(couplings, DenseChain) else couplings.to_dense()
    matrices = matrices.double()
    assert not bool(matrices.diagonal(dim1=2, dim2=3).any())
    off = matrices[:, :, ~torch.eye(n, dtype=torch.bool)]
    count = off.numel() / (2 if symmetric else 1)
    present = float((off != 0).double().mean())
    assert present == pytest.approx(rho, abs=4 * math.sqrt(rho * (1 - rho) / count) + 1e-9)
    assert abs(float(off.mean())) < 4 / math.sqrt(n * count)
    # A diluted entry x has E[x^4] = 3/(rho N^2).
    spread = math.sqrt((3 / rho - 1) / count)
    assert float((off**2).mean()) * n == pytest.approx(1, abs=4 * spread)
    kurtosis = float((off**4).mean()) * n * n * rho
    assert kurtosis == pytest.approx(3, abs=4 * math.sqrt((105 / rho - 9) / count))
    product = float((matrices * matrices.transpose(2, 3)).mean()) * n
    assert product == pytest.approx(1 if symmetric else 0, abs=5 * spread + 1 / n)
    assert torch.equal(matrices, matrices.transpose(2, 3)) == symmetric


def test_symmetrise_in_blocks() -> None:
    matrix = torch.randn(700, 700, generator=torch.Generator().manual_seed(0))
    expected = (matrix + matrix.T) * math.sqrt(0.5)
    symmetrise_(matrix)
    torch.testing.assert_close(matrix, expected)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 64, 131, 200])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_matrices_are_transposed_in_blocks(n: int, dtype: torch.dtype) -> None:
    """Copies and matrices in place, whatever is left over beside whole blocks."""
    matrices = torch.arange(3 * n * n, dtype=dtype).view(1, 3, n, n)
    expected = matrices.clone()
    chain = DenseChain(matrices, 0.5, 0.0, 0.0)
    columns = torch.from_numpy(chain.columns_of(0)[0]).view(3, n, n)
    assert torch.equal(columns, expected[0].mT)
    turned = chain.turned()
    assert turned.matrices.mT.is_contiguous()
    assert torch.equal(turned.matrices, expected)


def test_diluted_entries_sit_anywhere() -> None:
    """Every place off the diagonal is as likely as any other."""
    couplings = draw_diluted(Network(6, Chain(1, 0.0), rho=0.3), 0, range(1500))
    share = (couplings.to_dense() != 0).double().mean((0, 1))
    off = share[~torch.eye(6, dtype=torch.bool)]
    assert float((off - 0.3).abs().max()) < 4 * math.sqrt(0.3 * 0.7 / 1500)


@pytest.mark.parametrize("kind", KINDS)
def test_samples_do_not_depend_on_the_batch(kind: str) -> None:
    together, alone = some_couplings(kind), some_couplings(kind, range(2, 3))
    assert np.array_equal(full_matrix(together, 2), full_matrix(alone, 0))
    assert not np.array_equal(full_matrix(together, 1), full_matrix(together, 2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("starts", [1, 5, 16, 40])
def test_parts_of_the_field(kind: str, starts: int) -> None:
    """Some samples, one layer, float64 states and external fields all fit the full field."""
    couplings = some_couplings(kind)
    s = states(3, starts, 3, 20)
    h = couplings.field(s)
    by_hand = [
        s[k].double().view(starts, -1).numpy() @ full_matrix(couplings, k).T for k in range(3)
    ]
    np.testing.assert_allclose(h.view(3, starts, -1).numpy(), np.stack(by_hand), atol=1e-5)
    some = couplings.field(s[[0, 2]], active=[0, 2])
    torch.testing.assert_close(some, h[[0, 2]], rtol=0, atol=1e-5)
    exact = couplings.field(s.double())
    assert exact.dtype == torch.float64
    torch.testing.assert_close(exact.float(), h, rtol=0, atol=1e-5)
    external = torch.linspace(-1, 1, 60).view(1, 1, 3, 20)
    for layer in range(3):
        part = couplings.field(s, external, layer=layer)
        wanted = h[:, :, layer] + external[:, :, layer]
        torch.testing.assert_close(part, wanted, rtol=0, atol=1e-5)
    assert torch.equal(couplings.field(-s), -h)


def test_chain_topology_is_the_chain() -> None:
    chain = Chain(3, 0.2, lam_left=0.6, lam_right=0.1)
    dense = draw_dense(Network(30, chain), 7, range(2))
    blocks = draw_blocks(Topology.chain(3, 0.6, 0.1), 30, 0.2, 7, range(2))
    for layer in range(3):
        assert torch.equal(blocks.blocks[layer, layer], dense.matrices[:, layer])
    s = states(2, 4, 3, 30)
    torch.testing.assert_close(blocks.field(s), dense.field(s), rtol=0, atol=1e-6)


def test_fully_connected_chain_and_skip() -> None:
    topology = Topology.fully_connected_chain(4, 0.5).with_skip(0, 3, random=2.0)
    couplings = draw_blocks(topology, 40, 0.0, 0, range(30))
    assert set(couplings.blocks) == {
        (a, b) for a in range(4) for b in range(4) if abs(a - b) < 2
    } | {(3, 0)}
    for (a, b), scale in (((0, 0), 1.0), ((0, 1), 0.5), ((3, 0), 2.0)):
        block = couplings.blocks[a, b].double()
        share = 39 / 40 if a == b else 1.0  # the diagonal of a block between layers is random too
        error = 4 * math.sqrt(2 / block.numel())
        assert float((block**2).mean()) * 40 == pytest.approx(scale**2 * share, rel=error)


def test_full_adjacency_is_the_core_module() -> None:
    adjacency = ~torch.eye(80, dtype=torch.bool)
    couplings = draw_on(adjacency, 0.4, 0, range(6))
    matrices = couplings.to_dense().double()
    assert float((matrices**2).mean()) * 80 == pytest.approx(79 / 80, rel=0.03)
    s = states(6, 3, 1, 80)
    dense = DenseChain(couplings.to_dense()[:, None], 0.4)
    torch.testing.assert_close(couplings.field(s), dense.field(s), rtol=0, atol=1e-5)


def test_compiled_rows_against_torch() -> None:
    couplings = draw_diluted(Network(300, Chain(2, 0.0, 0.0), rho=0.05), 0, range(2))
    for starts, dtype in ((1, torch.float32), (33, torch.float32), (70, torch.float64)):
        s = states(2, starts, 2, 300, dtype=dtype)
        ours, theirs = torch.empty_like(s), torch.empty_like(s)
        couplings.rows.multiply(s, ours, None)
        couplings.rows.multiply_torch(s, theirs, Part(range(2), 0, (0, 300)), 0.0)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


def test_threads_do_not_change_the_rows() -> None:
    couplings = draw_diluted(Network(3000, Chain(1, 0.0), rho=0.05), 0, range(1))
    before = torch.get_num_threads()
    try:
        for starts in (16, 200):  # threads share the rows, or the states
            s = states(1, starts, 1, 3000)
            fields = []
            for threads in (1, 4):
                torch.set_num_threads(threads)
                fields.append(couplings.field(s))
            assert torch.equal(*fields)
    finally:
        torch.set_num_threads(before)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="no /proc here")
def test_diluted_needs_no_dense_matrix() -> None:
    """n = 40,000 at rho = 1e-4: 1.3 MB of entries, where the dense matrix has 6.4 GB."""
    couplings = draw_diluted(Network(40_000, Chain(1, 0.5), rho=1e-4), 0, range(1))
    assert couplings.nbytes < 2e6
    code = (
        "import torch\n"
        "from rmtheory import Chain\nfrom rmsim.network import Network\n"
        "from rmsim.couplings import draw_diluted\n"
        "draw_diluted(Network(10, Chain(1, .5), rho=.5), 0, range(1))\n"
        "lines = lambda: open('/proc/self/status').read().split()\n"
        "value = lambda name: int(lines()[lines().index(name) + 1])\n"
        "open('/proc/self/clear_refs', 'w').write('5')\n"  # the peak starts anew
        "before = value('VmRSS:')\n"
        "draw_diluted(Network(40_000, Chain(1, .5), rho=1e-4), 0, range(1))\n"
        "print(value('VmHWM:') - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 500 < int(done.stdout) < 40_000  # kilobytes


@no_cuda
@pytest.mark.parametrize("rho", [1.0, 0.1])
def test_field_on_cuda(rho: float) -> None:
    couplings = draw(Network(50, Chain(2, 0.3, 0.5), rho=rho), 0, range(2), device="cuda")
    matrices = couplings.matrices if isinstance(couplings, DenseChain) else couplings.to_dense()
    s = states(2, 7, 2, 50)
    reference = DenseChain(matrices.cpu(), 0.3, 0.5, 0.5).field(s.double())
    h = couplings.field(s.cuda()).cpu().double()
    torch.testing.assert_close(h, reference, rtol=0, atol=1e-4)


def test_bad_input() -> None:
    network = Network(4, Chain(2, 0.1, 0.2))
    couplings = draw(network, 0, range(1))
    for s in (states(1, 2, 4), states(2, 2, 2, 4), torch.ones(1, 1, 2, 4, dtype=torch.int8)):
        with pytest.raises(InvalidInputError, match="s must be"):
            couplings.field(s)
    s = states(1, 3, 2, 4)
    with pytest.raises(InvalidInputError, match="external must be"):
        couplings.field(s, torch.ones(2, 1, 2, 4))
    with pytest.raises(InvalidInputError, match="out must be"):
        couplings.field(s, out=torch.empty(1, 3, 2, 4, dtype=torch.float64))
    with pytest.raises(InvalidInputError, match="layer must be"):
        couplings.field(s, layer=2)
    with pytest.raises(InvalidInputError, match="jd must be at most"):
        draw(Network(4, Chain(1, "1e200")), 0, range(1))
    with pytest.raises(InvalidInputError, match="random must be a square"):
        Topology([[1.0, 0.0]], [[0.0]])
    with pytest.raises(InvalidInputError, match="random must be a finite"):
        Topology([[math.nan]], [[0.0]])
    with pytest.raises(InvalidInputError, match="identity must be zero"):
        Topology([[1.0]], [[0.5]])
    with pytest.raises(InvalidInputError, match="target must be"):
        Topology.chain(2, 1, 1).with_skip(0, 2, random=1)
    for bad in (
        torch.ones(3, 4),
        torch.full((3, 3), 2),
        torch.eye(3),
        torch.full((3, 3), math.nan),
    ):
        with pytest.raises(InvalidInputError, match="adjacency must be"):
            draw_on(bad, 0.0, 0, range(1))
    ring = torch.ones(3, 3).fill_diagonal_(0)
    with pytest.raises(InvalidInputError, match="values must be finite"):
        couplings_on(ring, torch.full((1, 3, 3), math.inf), 0.0)
    with pytest.raises(InvalidInputError, match="layers must be a divisor"):
        draw_on(ring, 0.0, 0, range(1), layers=2)
    with pytest.raises(InvalidInputError, match=r"n must be at most \d+: there is no room") as told:
        draw_dense(Network(3_000_000, Chain(1, 0.1)), 0, range(1))
    most = int(str(told.value).split("at most ")[1].split(":")[0])
    there = memory_of("cpu")
    assert there is not None
    assert 4 * most**2 <= there < 4 * (most + 1) ** 2


def test_dense_and_compressed_couplings_learn_alike() -> None:
    """The same J as a matrix, as compressed rows and on an adjacency matrix: one result."""
    present = torch.rand((8, 8), generator=torch.Generator().manual_seed(0)) < 0.6
    present &= ~torch.eye(8, dtype=torch.bool)
    values = torch.randn((1, 8, 8), generator=torch.Generator().manual_seed(1)).double() * present
    dense = DenseChain(values[:, None].clone(), 0.3)
    on = couplings_on(present, values, 0.3)
    rows = dataclasses.replace(on.rows, shared=False)
    kinds = [dense, on, DilutedChain(rows, 0.3)]
    square, crossed = float((values**2).sum()), float((values * values.transpose(1, 2)).sum())
    post, pre = states(2, 5, 1, 8, dtype=torch.float64)
    for symmetric in (False, True):
        made = []
        for kind in kinds:
            assert kind.squares(0) == pytest.approx((square, crossed))
            assert torch.equal(kind.dense_blocks(0), values)
            learnt = kind.with_weights(kind.weights_of(0).clone())
            learnt.reinforce_(post, pre, 0.1, symmetric=symmetric)
            assert torch.equal(kind.dense_blocks(0), values)
            made.append(learnt.dense_blocks(0)[0] * present)
        products = torch.einsum("bli,blj->ij", post, pre)
        if symmetric:
            products = (products + products.T) / 2
        for outcome in made:
            torch.testing.assert_close(outcome, (values[0] + 0.1 * products) * present)


@pytest.mark.parametrize("sign", [1, -1])
def test_message_passing_refuses_matrices_that_are_their_own_transpose(sign: int) -> None:
    matrices = draw_dense(Network(30, Chain(2, 0.3, 0.1)), 0, range(3)).matrices.clone()
    matrices[..., 0, :] = matrices[..., :, 0] = 0  # an isolated neuron hides nothing
    assert DenseChain(matrices, 0.3).asymmetric_matrices() is matrices
    one = matrices[1, 1]
    one.copy_(one + sign * one.T)
    name = "symmetric" if sign > 0 else "antisymmetric"
    with pytest.raises(InvalidInputError, match=f"couplings.* {name} matrices"):
        belief_propagation(DenseChain(matrices, 0.3))
    sparse = draw_diluted(Network(30, Chain(1, 0.3), rho=0.5), 0, range(1))
    with pytest.raises(InvalidInputError, match=r"dense \(rho = 1\)"):
        belief_propagation(sparse)  # type: ignore[arg-type]
    zero = torch.zeros(1, 1, 4, 4)
    assert DenseChain(zero, 0.3).asymmetric_matrices() is zero
