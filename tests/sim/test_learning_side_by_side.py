"""Networks that learn side by side: by tensor operations, as a GPU does, and in threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from rmsim.data import synthetic
from rmsim.learning import (
    Parameters,
    State,
    Wiring,
    batch_step,
    dense_recipe,
    epoch_order,
    initialise,
    literal_recipe,
    overlap_recipe,
    sparse_recipe,
    tensor_step,
    train_epoch,
    train_epoch_of_many,
)
from rmsim.learning.run_folder import Folder, Plan, load_checkpoint
from rmsim.learning.training import Metrics, train, train_many
from rmsim.tensors import traced
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from tests.device_cases import ADJACENT, N
from tests.learning_cases import identity_chain, task
from tests.pretend_device import pretend_device

pytestmark = pytest.mark.numerical

_SAMPLES = 40
_INPUTS, _LABELS = task(_SAMPLES, 20, 3)
_CODES = torch.where(
    torch.randn(_SAMPLES, 20, generator=torch.Generator().manual_seed(5)) > 0, 1.0, -1
)

_CHAIN = {"layers": 3, "lam_left": 0.4, "lam_right": 0.3}
_SPARSE = {"rho_j": 0.3, "rho_in": 0.3}
_DECAYS = {"decay_j": 0.1, "decay_in": 0.1, "decay_out": 0.1}
PROTOCOLS: dict[str, Parameters] = {
    "dense": dense_recipe(30, classes=3),
    "sparse": sparse_recipe(30, classes=3, **_SPARSE),
    "symmetric": dense_recipe(30, classes=3, symmetry="sym1"),
    "sparse symmetric": sparse_recipe(30, classes=3, symmetry="sym2", **_SPARSE),
    "chain": dense_recipe(20, classes=3, test_right=False, test_jd=False, **_CHAIN),
    "chain by layers": dense_recipe(20, classes=3, update="sequential", label_to="last", **_CHAIN),
    "sparse chain by layers": sparse_recipe(
        20, classes=3, update="sequential", output_from="last", **_SPARSE, **_CHAIN
    ),
    "masked": dense_recipe(30, classes=3, p=0.8),
    "sparse masked": sparse_recipe(30, classes=3, p=0.8, **_SPARSE),
    "as printed": literal_recipe(30),
    "until convergence, masked": overlap_recipe(30, classes=3, p=0.9),
    "smooth": dense_recipe(30, classes=3, rule="tanh", eta_back=0.01, **_DECAYS),
    "sparse with decay": sparse_recipe(30, classes=3, **_SPARSE, **_DECAYS),
    "labels tested": dense_recipe(30, classes=3, test_labels=True, test_input=False),
    "hetero-association": identity_chain(20, 3),
}


def _state(parameters: Parameters, seed: int = 0, wiring: Wiring | None = None) -> State:
    classes = 20 if parameters.w_back.kind == "identity" else 3
    return initialise(parameters, 20, classes, seed, wiring=wiring)


def _labels(parameters: Parameters) -> torch.Tensor:
    return _CODES if parameters.w_back.kind == "identity" else _LABELS


def _weights(state: State) -> list[torch.Tensor]:
    return [state.j, state.w_in.values, state.w_back.values, state.w_out]


def _assert_close(one: State, two: State, bound: float = 1e-6) -> None:
    assert one.step == two.step
    for a, b in zip(_weights(one), _weights(two), strict=True):
        assert torch.allclose(a, b, bound, bound)


def _batch_by_batch(parameters: Parameters, state: State) -> State:
    size, labels = parameters.batch.size, _labels(parameters)
    for first in range(0, _SAMPLES, size):
        part = slice(first, first + size)
        state, _ = batch_step(parameters, state, _INPUTS[part], labels[part])
    return state


@pytest.mark.parametrize("name", PROTOCOLS)
def test_tensor_operations_learn_what_the_rule_says(name: str) -> None:
    parameters = PROTOCOLS[name]
    state = _state(parameters)
    learnt = train_epoch(parameters, state, _INPUTS, _labels(parameters), compiled=False)
    _assert_close(learnt, _batch_by_batch(parameters, state))
    assert any(
        not torch.equal(a, b) for a, b in zip(_weights(state), _weights(learnt), strict=True)
    )


def test_a_wiring_of_its_own_learns_by_tensor_operations() -> None:
    parameters, wiring = dense_recipe(N, classes=3), Wiring(adjacency=ADJACENT)
    state = _state(parameters, wiring=wiring)
    learnt = train_epoch(parameters, state, _INPUTS, _LABELS, compiled=False)
    _assert_close(learnt, _batch_by_batch(parameters, state))


def _ensemble() -> tuple[list[Parameters], list[State], list[torch.Tensor]]:
    """Two seeds times two values of J_D, lambda_x, margins and rates, of two structures."""
    parameters = [
        recipe(30, classes=3, jd=jd, lambda_x=1 + jd, lambda_y=2 * jd, eta_j=0.01 * jd, **others)
        for recipe, others in ((dense_recipe, {}), (sparse_recipe, _SPARSE))
        for jd in (0.3, 0.6)
        for _ in range(2)
    ]
    parameters = [
        one.with_settings(kappa_out=1 + k, label_true=1.0 + k, rho_j=one.couplings.rho)
        for k, one in enumerate(parameters)
    ]
    states = [_state(one, seed=k % 2) for k, one in enumerate(parameters)]
    orders = [epoch_order(seed, 0, _SAMPLES) for seed in (0, 1)]
    return parameters, states, [orders[k % 2] for k in range(len(states))]


def test_many_networks_learn_in_the_same_operations_what_each_learns_alone() -> None:
    parameters, states, orders = _ensemble()
    many = train_epoch_of_many(parameters, states, _INPUTS, _LABELS, orders, compiled=False)
    for one, state, order, learnt in zip(parameters, states, orders, many, strict=True):
        alone = train_epoch(one, state, _INPUTS, _LABELS, order, compiled=False)
        _assert_close(learnt, alone)


def test_many_networks_learn_in_threads_what_each_learns_alone() -> None:
    parameters, states, orders = _ensemble()
    many = train_epoch_of_many(parameters, states, _INPUTS, _LABELS, orders, threads=3)
    for one, state, order, learnt in zip(parameters, states, orders, many, strict=True):
        alone = train_epoch(one, state, _INPUTS, _LABELS, order)
        assert all(map(torch.equal, _weights(learnt), _weights(alone)))


def test_a_network_that_diverges_is_named() -> None:
    calm, wild = (dense_recipe(30, classes=3, eta_in=eta, kappa_in=1e30) for eta in (0.0, 0.1))
    states = [_state(one) for one in (calm, wild)]
    with pytest.raises(NotConvergedError, match="network 1: the field of inputs"):
        train_epoch_of_many([calm, wild], states, 1e29 * _INPUTS, _LABELS, compiled=False)


def test_networks_and_orders_belong_together() -> None:
    parameters, states, orders = _ensemble()
    with pytest.raises(InvalidInputError, match="one for each of the parameters and orders"):
        train_epoch_of_many(parameters, states[:3], _INPUTS, _LABELS)
    short = [orders[0][:8], *orders[1:]]
    with pytest.raises(InvalidInputError, match="orders must be as long as each other"):
        train_epoch_of_many(parameters, states, _INPUTS, _LABELS, short)


@pytest.mark.parametrize("fused", [tensor_step._FUSED, 0], ids=["sums", "products"])
@pytest.mark.parametrize("name", ["dense", "sparse", "masked", "chain", "as printed"])
def test_a_batch_is_one_graph_of_the_compiler(
    name: str, fused: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traced whole (fullgraph); the code that is made of it is in the benchmarks."""
    monkeypatch.setattr(tensor_step, "_FUSED", fused)
    real = torch.compile
    made: list[Any] = []

    def compiler(function: Any, **options: Any) -> Any:
        assert options["fullgraph"]
        made.append(function)
        return real(function, backend="aot_eager", **options)

    monkeypatch.setattr(torch, "compile", compiler)
    traced.cache_clear()
    parameters = PROTOCOLS[name]
    state = _state(parameters)
    plain = train_epoch(parameters, state, _INPUTS, _LABELS, compiled=False)
    compiled = train_epoch(parameters, state, _INPUTS, _LABELS, compiled=False, compile=True)
    assert len(made) == (2 if parameters.phases.stop == "converged" else 1)
    _assert_close(plain, compiled)
    traced.cache_clear()


#: Operations of a batch, and waits, of protocols with so many sweeps as the presets have.
_LAUNCHES = {
    "dense": (30, 0),
    "sparse": (51, 0),
    "chain": (42, 0),
    "masked": (40, 0),
}


@pytest.mark.parametrize("networks", [1, 4])
@pytest.mark.parametrize("name", _LAUNCHES)
def test_the_host_never_waits_within_a_batch(name: str, networks: int) -> None:
    parameters = PROTOCOLS[name]
    counts = []
    for batches in (2, 5):
        samples = slice(0, 8 * batches)
        with pretend_device() as ledger:
            state = initialise(parameters.with_settings(batch=8), 20, 3, 0, device="cuda")
            ledger.waits.clear()
            ledger.launches.clear()
            train_epoch_of_many(
                *([parameters.with_settings(batch=8)] * networks, [state] * networks),
                *(_INPUTS[samples], _LABELS[samples]),
            )
        counts.append((ledger.launches.total(), ledger.waits.total()))
    launches, waits = ((b - a) / 3 for a, b in zip(*counts, strict=True))
    assert waits == _LAUNCHES[name][1]
    assert launches <= _LAUNCHES[name][0]


def test_masks_are_the_same_in_blocks_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the route of a GPU masks of many batches are made at once, as many as memory allows."""
    parameters = PROTOCOLS["masked"].with_settings(batch=8)
    ends, launches = [], []
    for masks in (tensor_step._MASKS, 1):
        monkeypatch.setattr(tensor_step, "_MASKS", masks)
        with pretend_device() as ledger:
            state = initialise(parameters, 20, 3, 0, device="cuda")
            ledger.launches.clear()
            (end,) = train_epoch_of_many([parameters], [state], _INPUTS[:40], _LABELS[:40])
            launches.append(ledger.launches.total())
            ends.append((end.couplings.to_dense().cpu(), end.w_out.cpu()))
    assert launches[1] > launches[0]  # five blocks instead of one
    assert all(torch.equal(one, other) for one, other in zip(*ends, strict=True))


# Runs in folders.


def _plans(**settings: Any) -> list[Plan]:
    few: dict[str, Any] = {"dataset": "synthetic", "train_samples": 60, "test_samples": 30}
    return [
        Plan.of_preset("entangled-mnist-sparse", 40, seed=seed, jd=jd, **few, **settings)
        for seed in (0, 1)
        for jd in (0.5, 0.9)
    ]


_METRICS = Metrics(phases=20, accuracy=20)


def test_runs_side_by_side_are_the_runs_one_by_one(tmp_path: Path) -> None:
    data, plans = synthetic(), _plans()
    folders = [tmp_path / str(k) for k in range(4)]
    options: dict[str, Any] = {"device": "cpu", "metrics": _METRICS, "probe": 0}
    train_many(plans[:1], data, 1, out=folders[:1], **options)  # ahead of the others
    outcomes = train_many(plans, data, 2, out=folders, threads=2, **options)
    for plan, folder, outcome in zip(plans, folders, outcomes, strict=True):
        alone = train(plan, data, 2, **options)
        assert [record["epoch"] for record in outcome.records] == [0, 1, 2]
        stored = load_checkpoint(Folder(folder).checkpoint).state
        for state in (outcome.state, stored):
            assert all(map(torch.equal, _weights(state), _weights(alone.state)))
        assert outcome.records[-1]["test_accuracy"] == alone.records[-1]["test_accuracy"]
    assert all(one.idle for one in train_many(plans, data, 2, out=folders, **options))


def test_plans_of_other_samples_are_refused() -> None:
    plans = [*_plans()[:1], Plan.of_preset("overlaps", 40, dataset="synthetic", train_samples=50)]
    with pytest.raises(InvalidInputError, match="all of the same samples"):
        train_many(plans, synthetic(), 1, device="cpu")
    with pytest.raises(InvalidInputError, match="at least one, with a folder for each"):
        train_many(plans, synthetic(), 1, out=["one"], device="cpu")
