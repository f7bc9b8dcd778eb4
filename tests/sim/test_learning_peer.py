"""The sparse recipe against other code: the authors' run, where at hand, and one in numpy."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from rmsim.learning import Parameters, State, Trained, batch_step, train_epoch
from rmsim.learning.presets import sparse_recipe
from rmsim.learning.state import state_of_matrices

FOLDER = os.environ.get("RMSIM_PEER")

needs_authors = pytest.mark.skipif(
    FOLDER is None, reason="RMSIM_PEER names no folder with the authors' run"
)


def authors() -> tuple[dict[str, torch.Tensor], Parameters, State]:
    """Their run, its protocol, and where it begins. Their matrices are stored [from, to]."""
    assert FOLDER is not None
    file = Path(FOLDER) / "emnist_N1000_K200.npz"
    with np.load(file, allow_pickle=False) as arrays:
        peer = {name: torch.as_tensor(arrays[name]) for name in arrays.files if name != "hp"}
    network = Trained.of_authors(file, "init")
    return peer, network.parameters, network.state


def assert_final(state: State, peer: dict[str, torch.Tensor]) -> None:
    j = state.dense_j()[0].fill_diagonal_(state.couplings.jd)
    for ours, name in (
        (j, "final_J"),
        (state.w_in.to_dense(), "final_W_in"),
        (state.w_back.to_dense(), "final_W_back"),
        (state.w_out, "final_W_out"),
    ):
        assert float((ours - peer[name].T).abs().max()) < 1e-5, name


@needs_authors
def test_two_hundred_batches_of_the_authors() -> None:
    """Every s* equal, final weights within 1e-5."""
    peer, parameters, state = authors()
    for x, y, s_star in zip(peer["x"], peer["y"], peer["s_star"], strict=True):
        state, ends = batch_step(parameters, state, x, y.argmax(1))
        assert torch.equal(ends.s_star[:, 0], s_star)
    assert_final(state, peer)


@needs_authors
def test_the_same_by_the_compiled_route() -> None:
    """An s* that differs would leave its trace of 5e-4 in the weights."""
    peer, parameters, state = authors()
    state = train_epoch(
        parameters, state, peer["x"].flatten(0, 1), peer["y"].flatten(0, 1).argmax(1)
    )
    assert state.step == 200
    assert_final(state, peer)


@pytest.mark.parametrize("compiled", [False, True])
def test_run_of_make_learning_fixture(compiled: bool) -> None:
    """Twelve batches with weight decay, by ``tests/make_learning_fixture.py``."""
    with np.load(Path(__file__).parents[1] / "learning_fixture.npz", allow_pickle=False) as file:
        peer = {name: torch.as_tensor(file[name]) for name in file.files}
    parameters = sparse_recipe(
        80,
        classes=5,
        lambda_y=2.0,
        rho_j=0.15,
        rho_in=0.3,
        eta_out=0.025,
        decay_j=0.5,
        decay_in=0.1,
        decay_out=0.02,
    )
    state = state_of_matrices(
        parameters,
        peer["init_J"].T.unsqueeze(0),
        peer["init_W_in"].T,
        peer["init_W_back"].T,
        peer["init_W_out"].T,
        present_j=peer["mask_J"].T.unsqueeze(0),
        present_in=peer["mask_in"].T,
    )
    for x, labels, s_star in zip(peer["x"], peer["labels"], peer["s_star"], strict=True):
        new, ends = batch_step(parameters, state, x, labels)
        assert torch.equal(ends.s_star[:, 0], s_star.float())
        state = train_epoch(parameters, state, x, labels) if compiled else new
    for ours, name in (
        (state.dense_j()[0], "final_J"),
        (state.w_in.to_dense(), "final_W_in"),
        (state.w_out, "final_W_out"),
    ):
        assert float((ours - peer[name].T).abs().max()) < 2e-6, name
