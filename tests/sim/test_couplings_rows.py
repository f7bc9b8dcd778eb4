"""Compressed rows on the CPU: signs as bits and real states as floats, bit for bit the same sum."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch

from rmsim.couplings import DenseChain, DilutedChain, couplings_on, draw_diluted
from rmsim.couplings.rows import CompressedRows, PaddedRows, Part, _pack_signs
from rmsim.dynamics import random_starts, relax
from rmsim.network import Network
from rmtheory import Chain

pytestmark = pytest.mark.numerical

SINGLE, DOUBLE = torch.float32, torch.float64
TYPES = [(SINGLE, SINGLE), (SINGLE, DOUBLE), (DOUBLE, DOUBLE)]


def states(*shape: int, dtype: torch.dtype = SINGLE) -> torch.Tensor:
    generator = torch.Generator().manual_seed(len(shape) + shape[1])
    return torch.randint(0, 2, shape, generator=generator).to(dtype).mul_(2).sub_(1)


def sparse_rows(dtype: torch.dtype, shared: bool = False) -> CompressedRows:
    """Rows of two entries on average, some empty: 2 samples of 3 layers, or 3 of one pattern."""
    chain = draw_diluted(Network(70, Chain(3, 0.0, 0.0), rho=0.03), 0, range(2), dtype=dtype)
    if shared:
        values = torch.randn((3, 70, 70), generator=torch.Generator().manual_seed(0), dtype=dtype)
        return couplings_on(chain.to_dense()[0, 0] != 0, values, 0.0).rows
    assert int(chain.rows.bounds.diff().min()) == 0
    return chain.rows


def ordered_sums(rows: CompressedRows, s: torch.Tensor, jd: float) -> torch.Tensor:
    """The entries of every row one after another in the type of `s`, then J_D s."""
    out = np.zeros(s.shape, s.numpy().dtype)
    for k, group in itertools.product(range(rows.samples), range(rows.groups)):
        bounds, columns, values = (x.numpy() for x in rows.entries(k, group))
        spins = s[k, :, group].numpy()
        for row in range(rows.size):
            for entry in range(bounds[row], bounds[row + 1]):
                out[k, :, group, row] += out.dtype.type(values[entry]) * spins[:, columns[entry]]
        out[k, :, group] += out.dtype.type(jd) * spins
    return torch.from_numpy(out)


def product(rows: CompressedRows, s: torch.Tensor, jd: float) -> torch.Tensor:
    out = torch.full_like(s, torch.nan)
    rows.multiply(s, out, None, jd=jd)
    return out


@pytest.mark.parametrize(("stored", "dtype"), TYPES)
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("starts", [1, 8, 15, 16, 17, 33, 512])
def test_signs_and_floats_are_the_ordered_sum(
    stored: torch.dtype, dtype: torch.dtype, shared: bool, starts: int
) -> None:
    """The field of 2 s, which goes as floats, is twice that of s to the last bit."""
    rows = sparse_rows(stored, shared)
    s = states(rows.samples, starts, rows.groups, rows.size, dtype=dtype)
    expected = ordered_sums(rows, s, 0.3)
    assert torch.equal(product(rows, s, 0.3), expected)
    assert torch.equal(product(rows, 2 * s, 0.3), 2 * expected)
    route = torch.empty_like(s)
    rows.multiply_torch(s, route, Part(range(rows.samples), 0, (0, rows.size)), 0.3)
    torch.testing.assert_close(route, expected, rtol=0, atol=1e-5)


def test_padded_rows_in_blocks_of_states_and_of_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [sparse_rows(SINGLE), sparse_rows(SINGLE)]
    dense = torch.block_diag(*(block for rows in parts for block in _dense_blocks(rows)))
    padded = PaddedRows.stacked([rows.padded for rows in parts], 2 * 3 * 70)
    values = padded.spread(torch.cat([rows.values for rows in parts]))
    # Columns of the second sample of a pattern count from its own first neuron.
    columns = padded.columns + torch.arange(4).repeat_interleave(210).unsqueeze(1) % 2 * 210
    padded = PaddedRows(columns, padded.places)
    lanes, field = states(840, 9), states(840, 9)
    for most in (2**24, 2 * values.numel(), 1):
        monkeypatch.setattr("rmsim.couplings.rows._TERMS", most)
        torch.testing.assert_close(padded.multiply(values, lanes), dense @ lanes)
        torch.testing.assert_close(padded.multiply(values, lanes, field), field + dense @ lanes)
        products = padded.entries(padded.correlate(field, lanes))
        torch.testing.assert_close(products, (field @ lanes.T)[dense != 0])
    assert torch.equal(padded.entries(values), torch.cat([rows.values for rows in parts]))


def _dense_blocks(rows: CompressedRows) -> list[torch.Tensor]:
    chain = DilutedChain(rows, 0.0)
    return [block for k in range(rows.samples) for block in chain.dense_blocks(k)]


def test_a_block_with_any_other_state_goes_as_floats() -> None:
    rows = sparse_rows(SINGLE)
    s = states(2, 70, 3, 70)
    alone = product(rows, s, 0.3)
    mixed = s.clone()
    mixed[0, 3, 1], mixed[1, 40, 2, 69], mixed[0, 69] = 0, 0.25, 0
    result = product(rows, mixed, 0.3)
    assert torch.equal(result, ordered_sums(rows, mixed, 0.3))
    same = (mixed == s).flatten(2).all(-1)
    assert int(same.sum()) == 137
    assert torch.equal(result[same], alone[same])
    assert not bool(result[0, 69].any())
    mixed[0, 0, 0, 0] = torch.nan
    assert bool(product(rows, mixed, 0.3)[0, 0, 0, 0].isnan())


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
def test_words_of_signs(dtype: torch.dtype) -> None:
    s = states(1, 40, 1, 3000, dtype=dtype)[0, :, 0]
    words = np.empty(3000, np.uint32)
    for first, last in ((0, 32), (32, 40)):
        assert _pack_signs(s[None, :, None].numpy(), (0, 0), first, last, words)
        bits = words[None, :] >> np.arange(32, dtype=np.uint32)[:, None] & 1
        assert np.array_equal(bits[: last - first] == 1, s[first:last].numpy() < 0)
        assert not bits[last - first :].any()
    for other in (0.0, 2.0, -0.5, torch.nan, torch.inf):
        wrong = s.clone()
        wrong[31, 2999] = other
        assert not _pack_signs(wrong[None, :, None].numpy(), (0, 0), 0, 32, words)
        assert _pack_signs(wrong[None, :, None].numpy(), (0, 0), 32, 40, words)


def test_wide_networks_take_fewer_floats_at_a_time() -> None:
    couplings = draw_diluted(Network(13_000, Chain(1, 0.2), rho=3e-4), 0, range(1))
    s = states(1, 50, 1, 13_000)
    assert torch.equal(couplings.field(2 * s), 2 * couplings.field(s))


def test_threads_cut_through_blocks_of_states() -> None:
    """Five threads, 3 blocks of states of each of 2 layers of 2 samples; or a few rows only."""
    couplings = draw_diluted(Network(2000, Chain(2, 0.3, 0.5), rho=0.03), 0, range(2))
    before = torch.get_num_threads()
    for s in (states(2, 70, 2, 2000), 2 * states(2, 70, 2, 2000)):
        fields = []
        try:
            for threads in (1, 5):
                torch.set_num_threads(threads)
                fields.append(couplings.field(s))
                fields.append(torch.stack([couplings.field(s, layer=a) for a in range(2)], 2))
        finally:
            torch.set_num_threads(before)
        assert all(torch.equal(fields[0], other) for other in fields[1:])


def test_no_states() -> None:
    rows = sparse_rows(SINGLE)
    assert product(rows, torch.ones(2, 0, 3, 70), 0.3).shape == (2, 0, 3, 70)


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
@pytest.mark.parametrize("update", ["synchronous", "sequential"])
@pytest.mark.parametrize("p", [1.0, 0.6])
def test_relaxations_are_those_of_the_dense_matrix(
    dtype: torch.dtype, update: str, p: float
) -> None:
    """Couplings in 1/1024: every sum is exact, in any order and type, so the paths are the same."""
    drawn = draw_diluted(
        Network(120, Chain(3, "0.5", lam_left="0.25", lam_right="0.5"), rho=0.1), 0, range(2)
    )
    values = drawn.rows.values.mul(1024).round_().div_(1024).to(dtype)
    rows = dataclasses.replace(drawn.rows, values=values)
    sparse = DilutedChain(rows, drawn.jd, drawn.lam_left, drawn.lam_right)
    dense = DenseChain(sparse.to_dense(), drawn.jd, drawn.lam_left, drawn.lam_right)
    start = random_starts(0, range(2), 49, 3, 120)
    external = torch.linspace(-1, 1, 120).mul_(64).round_().div_(64)
    result, expected = (
        relax(couplings, start, update=update, p=p, external=external, max_sweeps=60)
        for couplings in (sparse, dense)
    )
    assert len(result.status.unique()) > 1
    for name in ("status", "iterations", "period", "state", "min_margin"):
        assert torch.equal(getattr(result, name), getattr(expected, name)), name
