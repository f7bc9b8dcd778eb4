"""Results as data sets of xarray, through a netCDF file and back; other data sets are refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import rmsim as rs
from rmsim.enumeration import FixedPoints
from rmsim.enumeration.exhaustive import SampleCounts
from rmsim.search.amp import Beliefs
from rmsim.search.tap_entropy import LocalEntropy
from rmtheory.base.errors import UnreadableDataError


def stored(data: xr.Dataset, folder: Path) -> xr.Dataset:
    data.to_netcdf(folder / "result.nc", engine="h5netcdf")
    with xr.open_dataset(folder / "result.nc", engine="h5netcdf") as read:
        return read.load()


def searches() -> dict[str, rs.SearchResult]:
    one = rs.Network(40, rs.Chain(1, jd=1.2))
    return {
        "relax": rs.relax(one, samples=2, starts=3),
        "chain": rs.relax(rs.Network(20, rs.Chain(2, jd=1.0, lam=0.5)), samples=2, p=0.8),
        "rbp": rs.find_fixed_point(one, samples=3, method="rbp"),
        "likelihood": rs.find_fixed_point(one, samples=2, method="likelihood"),
    }


def test_a_search_and_back(tmp_path: Path) -> None:
    for name, result in searches().items():
        again = rs.SearchResult.from_xarray(stored(result.to_xarray(), tmp_path))
        for key, value in vars(result).items():
            other = getattr(again, key)
            if key == "quantities":
                assert set(other) == set(value), name
                for quantity, tensor in value.items():
                    assert torch.equal(other[quantity].nan_to_num(), tensor.nan_to_num()), quantity
            elif isinstance(value, torch.Tensor):
                assert other.dtype == value.dtype, key
                assert torch.equal(other, value), key
            else:
                assert other == value, key
        assert again.words == result.words


def test_a_selection_is_a_result_again() -> None:
    result = searches()["relax"]
    some = rs.SearchResult.from_xarray(result.to_xarray().isel(start=[2]))
    assert torch.equal(some.state, result.state[:, 2:])


def test_a_local_entropy_and_back(tmp_path: Path) -> None:
    network = rs.Network(200, rs.Chain(1, jd=0.8))
    (state,) = rs.find_fixed_point(network, samples=1, method="rbp").state
    curve = rs.local_entropy_around(network, state, (0.0, 0.5, 1.0))
    again = LocalEntropy.from_xarray(stored(curve.to_xarray(), tmp_path))
    assert again.failed == curve.failed
    assert [again.at(0.2), again.mutual_at(0.2)] == [curve.at(0.2), curve.mutual_at(0.2)]


def test_fixed_points_and_back(tmp_path: Path) -> None:
    result = rs.enumerate_fixed_points(
        rs.Network(6, rs.Chain(2, jd=0.5, lam=0.5)), keep_states=True
    )
    again = FixedPoints.from_xarray(stored(result.to_xarray(), tmp_path))
    assert vars(again).keys() == vars(result).keys()
    for key, value in vars(result).items():
        assert np.array_equal(getattr(again, key), value), key


@pytest.mark.parametrize("chain", [rs.Chain(1, jd=1.0), rs.Chain(3, jd=0.5, lam=0.5)])
def test_beliefs_and_back(chain: rs.Chain, tmp_path: Path) -> None:
    beliefs = rs.belief_propagation(rs.Network(20, chain), samples=2)
    data = beliefs.to_xarray()
    again = Beliefs.from_xarray(stored(data, tmp_path))
    for key, value in vars(beliefs).items():
        pairs = vars(value) if key == "messages" else {key: value}
        for name, tensor in pairs.items():
            other = getattr(again.messages if key == "messages" else again, name)
            assert other.dtype == tensor.dtype, name
            assert torch.equal(other, tensor), name
    for wrong, words in (
        (data.assign(status=data.status + 90), "not a valid Status"),
        (data.assign(h=data.h * np.nan), "h has entries that are not finite"),
        (data.assign(pair=data.h), "pair is over sample, layer, neuron"),
    ):
        with pytest.raises(UnreadableDataError, match=words):
            Beliefs.from_xarray(wrong)


@pytest.mark.parametrize("histogram", [True, False])
def test_counts_and_back(histogram: bool, tmp_path: Path) -> None:
    network = rs.Network(5, rs.Chain(2, jd=0.5, lam_left=0.3, lam_right=0.6))
    drawn = rs.enumerate_samples(network, 3, seed=4, histogram=histogram)
    data = drawn.to_xarray()
    again = SampleCounts.from_xarray(stored(data, tmp_path))
    for key, value in vars(drawn).items():
        assert np.array_equal(getattr(again, key), value), key
    for wrong, words in (
        (data.assign(counts=-1 * data.counts - 1), "counts have entries that are not counts"),
        (data.assign(counts=("other", [1])), "counts are over other"),
        (data.assign_attrs(network="{}"), "not sample counts: 'layers'"),
    ):
        with pytest.raises(UnreadableDataError, match=words):
            SampleCounts.from_xarray(wrong)


@pytest.mark.parametrize(
    "kind", [rs.SearchResult, LocalEntropy, FixedPoints, Beliefs, SampleCounts]
)
def test_another_data_set(kind: Any) -> None:
    with pytest.raises(UnreadableDataError, match="the data set is not"):
        kind.from_xarray(xr.Dataset({"x": ("y", [1.0])}))


def test_a_search_whose_numbers_do_not_fit() -> None:
    good = searches()["rbp"].to_xarray()
    for wrong, words in (
        (good.assign(status=good.status + 90), "90"),
        (good.assign(state=good.state * 3), "entries that are not spins"),
        (good.assign(period=good.state), "period is over sample, layer, neuron"),
        (good.assign_attrs(settings="{"), "not a search result"),
    ):
        with pytest.raises(UnreadableDataError, match=words):
            rs.SearchResult.from_xarray(wrong)
