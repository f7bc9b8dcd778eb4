"""A trained network apart from its run: as a module of torch, and from the authors' files."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import rmsim as rs
from rmsim.cli import run
from rmsim.learning import Parameters, TrainedModule, infer, initialise, predict, train_epoch
from rmsim.learning.presets import sparse_recipe
from rmtheory.base.errors import InvalidInputError, UnreadableDataError

DATA = rs.synthetic(classes=4, train=200, test=150)
INPUTS = torch.tensor(DATA.test.inputs)

PROTOCOLS = {
    "dense": Parameters.of(n=40, jd=0.5, lambda_x=2.0),
    "sparse": sparse_recipe(60, classes=4, rho_j=0.1, rho_in=0.3),
    "chain": Parameters.of(n=20, layers=3, jd=0.2, lam_left=1.0, lam_right=1.0, lambda_x=2.0),
    "masked": Parameters.of(n=40, jd=0.2, p=0.7, lambda_x=2.0),
    "converged": Parameters.of(n=40, jd=0.9, stop="converged", inference=50),
}


def learnt(name: str) -> rs.Trained:
    parameters = PROTOCOLS[name]
    state = initialise(parameters, 100, 4, seed=3)
    return rs.Trained(
        parameters,
        train_epoch(parameters, state, DATA.train.inputs[:64], DATA.train.labels[:64]),
    )


@pytest.mark.parametrize("name", list(PROTOCOLS))
def test_a_module_predicts_what_the_network_predicts(name: str, tmp_path: Path) -> None:
    """To the bit, also after its state dict was a file, read without pickle."""
    network = learnt(name)
    module = network.to_torch()
    assert isinstance(module, torch.nn.Module)
    file = tmp_path / "network.pt"
    torch.save(module.state_dict(), file)
    again = rs.Trained.from_torch(torch.load(file, weights_only=True))
    states = infer(network.parameters, network.state, INPUTS)
    numbers = predict(network.parameters, network.state, INPUTS)
    for other in (module, again, rs.Trained.from_torch(module)):
        assert torch.equal(other.states(INPUTS), states)
        assert torch.equal(other.predict(INPUTS), numbers)
    assert torch.equal(module(INPUTS), network.outputs(INPUTS))
    assert again.parameters == network.parameters
    assert (again.state.seed, again.state.step) == (3, 4)
    for key, value in network.state.tensors().items():
        assert torch.equal(again.state.tensors()[key], value)


def test_a_module_is_one_of_torch() -> None:
    network = learnt("dense")
    module = network.to_torch()
    assert list(module.parameters()) == []
    outputs = torch.nn.Sequential(module, torch.nn.Softmax(1))(INPUTS.float().requires_grad_())
    assert not outputs.requires_grad
    assert torch.allclose(outputs.sum(1), torch.ones(150))
    assert "n=40, layers=1, jd=0.5" in repr(module)
    # its weights are its own
    before = module(INPUTS)
    network.state.j.zero_()
    assert torch.equal(module(INPUTS), before)
    # another network's state dict brings its protocol along
    other = rs.Trained(
        Parameters.of(n=40, jd=1.5, lambda_x=2.0),
        initialise(Parameters.of(n=40, jd=1.5, lambda_x=2.0), 100, 4, seed=4),
    )
    module.load_state_dict(other.to_torch().state_dict())
    assert torch.equal(module.predict(INPUTS), other.predict(INPUTS))
    assert module.network().parameters.couplings.jd == 1.5
    doubled = module.double()
    assert doubled(INPUTS).dtype == torch.float64
    with pytest.raises(UnreadableDataError, match="float16, not float32 or float64"):
        module.half()(INPUTS)


def test_other_modules_are_refused() -> None:
    module = learnt("dense").to_torch()
    for wrong, words in (
        (torch.nn.Linear(3, 2), "module must be a module made by to_torch.*got a Linear"),
        (torch.nn.Sequential(module), "contains it as '0'"),
        (torch.nn.Linear(3, 2).state_dict(), "got a mapping with weight, bias"),
        ({}, "nothing in it"),
        (3, "got a int"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            rs.Trained.from_torch(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="network must be the folder of a run"):
        rs.Trained.of(3)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("w_in", None, "lacks 'w_in'"),
        ("w_out", torch.zeros(4, 39), "w_out is"),
        ("j", torch.full((1, 40, 40), torch.nan), "j holds a number that is not finite"),
        ("j", torch.ones(1, 40, 40), "not 0 on the diagonal"),
        ("readout", torch.zeros(3, 40), "readout is"),
        ("w_in", "text", "w_in of type str"),
        ("_extra_state", {"format": 9}, "format 9; this version reads 1"),
        ("_extra_state", {"format": 1}, "parameters"),
        ("_extra_state", "text", "not that of a trained network"),
    ],
)
def test_a_state_dict_that_does_not_fit(key: str, value: Any, words: str) -> None:
    states = dict(learnt("dense").to_torch().state_dict())
    if value is None:
        del states[key]
    else:
        states[key] = value
    with pytest.raises(UnreadableDataError, match=words):
        rs.Trained.from_torch(states)


def test_places_out_of_range_do_not_reach_the_compiled_sweeps() -> None:
    states = dict(learnt("sparse").to_torch().state_dict())
    states["j_columns"] = states["j_columns"] + 60
    with pytest.raises(UnreadableDataError, match="j_columns are not from 0 to 59"):
        rs.Trained.from_torch(states)


@pytest.mark.parametrize("readout", ["perceptron", "probe"])
def test_a_classifier(readout: str) -> None:
    names = np.array(["north", "east", "south", "west"])[DATA.train.labels]
    fitted = rs.RMClassifier(n=50, epochs=1, readout=readout, probe_epochs=1)
    fitted.fit(DATA.train.inputs, names)
    module = rs.Trained.of(fitted).to_torch()
    assert np.array_equal(module(INPUTS).numpy(), fitted._outputs(DATA.test.inputs))
    labels = module.network().labels
    assert labels == ("east", "north", "south", "west")
    numbers = module.predict(INPUTS)
    assert [labels[k] for k in numbers] == fitted.predict(DATA.test.inputs).tolist()


@pytest.mark.parametrize("probe", ["0", "1"])
def test_a_run_with_data_of_ones_own(probe: str, tmp_path: Path) -> None:
    """Inputs go in as they are: the module scales them as the run did."""
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=120)
    X = 5 + rng.normal(0, 2, (3, 20))[kind] + rng.normal(0, 1, (120, 20))
    X[:, 3] = 7  # never varies
    np.savez(tmp_path / "train.npz", X=X, y=np.array(["ash", "beech", "oak"])[kind])
    np.savez(tmp_path / "new.npz", X=X[:30])
    sizes = ["--n", "30", "--epochs", "1", "--probe", probe, "--device", "cpu"]
    folder = tmp_path / "run"
    assert run(["train", "--data", str(tmp_path / "train.npz"), *sizes, "--out", str(folder)]) == 0
    labels = tmp_path / "labels.csv"
    command = ["predict", str(folder), "--data", str(tmp_path / "new.npz"), "--out", str(labels)]
    assert run([*command, "--device", "cpu"]) == 0
    network = rs.Trained.of(folder)
    assert (network.readout is not None) == (probe == "1")
    module = network.to_torch()
    assert network.labels is not None
    named = [network.labels[k] for k in module.predict(torch.tensor(X[:30]))]
    assert named == labels.read_text().split()[1:]
    again = rs.Trained.from_torch(module.state_dict())
    assert torch.equal(again.outputs(X[:30]), module(torch.tensor(X[:30])))
    with pytest.raises(InvalidInputError, match=r"of shape \(samples, 20\)"):
        module(torch.zeros(2, 19))


HP = {
    "D": 12,
    "j_d": 0.9,
    "k_in": 1.6,
    "k_j": 1.4,
    "k_out": 7.0,
    "lx": 5.0,
    "ly": 3.5,
    "lr_in": 0.3,
    "lr_j": 0.02,
    "lr_out": 0.025,
    "wd_in": 0.1,
    "wd_j": 0.2,
    "wd_out": 0.02,
    "rho_J": 0.2,
    "rho_in": 0.5,
}


def authors_arrays(seed: int = 0) -> dict[str, Any]:
    """Weights of 30 neurons as their code stores them: [from, to], J_D on the diagonal."""
    rng = np.random.default_rng(seed)
    arrays: dict[str, Any] = {
        "mask_J": rng.random((30, 30)) < 0.2,
        "mask_in": rng.random((12, 30)) < 0.5,
        "hp": np.array(json.dumps(HP)),
    }
    for when in ("init", "final"):
        j = np.where(arrays["mask_J"], rng.normal(0, 0.4, (30, 30)), 0).astype(np.float32)
        np.fill_diagonal(j, np.float32(0.9))
        w_in = np.where(arrays["mask_in"], rng.normal(0, 2, (12, 30)), 0).astype(np.float32)
        arrays |= {f"{when}_J": j, f"{when}_W_in": w_in}
        arrays[f"{when}_W_back"] = rng.normal(0, 1, (3, 30)).astype(np.float32)
        arrays[f"{when}_W_out"] = rng.normal(0, 0.2, (30, 3)).astype(np.float32)
    return arrays


def authors_outputs(arrays: dict[str, Any], x: Any, when: str) -> Any:
    """Six sweeps from s = 0 in float64, as their code multiplies: s J, from the left."""
    j, w_in, w_out = (arrays[f"{when}_{name}"].astype(float) for name in ("J", "W_in", "W_out"))
    s = np.where(x @ w_in >= 0, 1.0, -1.0)
    for _ in range(5):
        s = np.where(s @ j + x @ w_in >= 0, 1.0, -1.0)
    return s @ w_out


@pytest.mark.parametrize("when", ["init", "final"])
def test_a_file_of_the_authors(when: Any, tmp_path: Path) -> None:
    arrays = authors_arrays()
    np.savez(tmp_path / "theirs.npz", **arrays)
    network = rs.Trained.of_authors(str(tmp_path / "theirs.npz"), when)
    x = np.sign(np.random.default_rng(1).normal(size=(50, 12)))
    assert np.abs(network.outputs(x).numpy() - authors_outputs(arrays, x, when)).max() < 1e-5
    settings = network.parameters.to_dict()
    assert (settings["jd"], settings["decay_j"], settings["decay_in"]) == (0.9, 0.2, 0.1)
    assert settings["label_true"] == pytest.approx(np.sqrt(2) / 2)
    assert network.state.j.numel() == arrays["mask_J"][~np.eye(30, dtype=bool)].sum()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("final_J", None, "final_J"),
        ("hp", np.array("{"), "not a file of the authors"),
        ("hp", np.array(json.dumps({**HP, "j_d": "a"})), "jd must be a finite real number"),
        ("hp", np.array(json.dumps({"j_d": 0.9})), "rho_J"),
        ("mask_J", np.ones((30, 30)), "mask_J is float64"),
        ("mask_J", np.zeros((30, 30), bool), "final_J has weights where mask_J has none"),
        ("final_J", np.eye(30, dtype=np.float32), "other numbers than j_d on its diagonal"),
        ("final_W_in", np.full((12, 30), np.nan, np.float32), "final_W_in holds a number"),
        ("final_W_out", np.zeros((31, 3), np.float32), "w_out must be a floating point tensor"),
        ("final_W_back", np.zeros((3, 31), np.float32), r"final_J has shape \(30, 30\)"),
    ],
)
def test_a_file_that_is_not_theirs(name: str, value: Any, words: str, tmp_path: Path) -> None:
    arrays = authors_arrays()
    arrays.pop(name) if value is None else arrays.update({name: value})
    np.savez(tmp_path / "theirs.npz", **arrays)
    with pytest.raises(UnreadableDataError, match=words):
        rs.Trained.of_authors(tmp_path / "theirs.npz")


def test_what_is_asked_of_the_authors_file() -> None:
    with pytest.raises(InvalidInputError, match="when must be init or final, got last"):
        rs.Trained.of_authors("theirs.npz", "last")  # type: ignore[arg-type]
    with pytest.raises(UnreadableDataError, match=r"nosuch\.npz cannot be read"):
        rs.Trained.of_authors("nosuch.npz")


@pytest.mark.skipif("RMSIM_PEER" not in os.environ, reason="RMSIM_PEER names no folder")
def test_their_own_file_as_a_module() -> None:
    file = Path(os.environ["RMSIM_PEER"]) / "emnist_N1000_K200.npz"
    with np.load(file, allow_pickle=False) as arrays:
        x, y = (arrays[name].reshape(3200, -1) for name in ("x", "y"))
        theirs = authors_outputs(dict(arrays), x[:200], "final")
    module = rs.Trained.of_authors(file).to_torch()
    assert isinstance(module, TrainedModule)
    same = module.predict(torch.tensor(x[:200])).numpy() == theirs.argmax(1)
    assert same.mean() > 0.98  # float32 decides a sign near zero differently now and then
    right = module.predict(torch.tensor(x)).numpy() == y.argmax(1)
    untrained = rs.Trained.of_authors(file, "init").predict(x).numpy() == y.argmax(1)
    assert untrained.mean() < 0.3 < 0.6 < right.mean()
