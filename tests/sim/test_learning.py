"""The learning step against itself written out, and the properties that must hold."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from rmsim.learning import (
    Parameters,
    State,
    Wiring,
    accuracy,
    batch_step,
    epoch_order,
    infer,
    initialise,
    measure,
    predict,
    present,
    state_of,
    symmetry_level,
    train_epoch,
)
from rmsim.learning.phases import label_code
from rmsim.learning.plasticity import update_field
from rmsim.learning.presets import (
    dense_recipe,
    literal_recipe,
    overlap_recipe,
    sparse_recipe,
)
from rmsim.learning.state import state_of_matrices
from tests.learning_cases import Naive, identity_chain, task

pytestmark = pytest.mark.numerical

DOUBLE = torch.float64
D, C = 20, 4

CASES: dict[str, dict[str, Any]] = {
    "core": {},
    "diluted": {"rho_j": 0.3, "rho_in": 0.5},
    "chain": {"layers": 3, "lam_left": 0.7, "lam_right": 0.4, "output_from": "all"},
    "diluted chain": {"layers": 2, "lam_left": 1.0, "lam_right": 1.0, "rho_j": 0.4},
    "approximate": {"scheme": "approximate"},
    "tanh": {"rule": "tanh", "gamma": 2.0},
    "tanh diluted": {"rule": "tanh", "gamma": 2.0, "rho_j": 0.3, "rho_in": 0.5},
    "sym0": {"symmetry": "sym0"},
    "sym1": {"symmetry": "sym1"},
    "sym2": {"symmetry": "sym2"},
    "sym1 diluted": {"symmetry": "sym1", "rho_j": 0.4},
    "sym2 diluted": {"symmetry": "sym2", "rho_j": 0.4},
}


def setup(n: int = 30, **choices: Any) -> tuple[Parameters, State]:
    """A small network that learns fast, in float64, so that roundings decide no sign."""
    values = {"eta_j": 0.2, "eta_in": 0.1, "eta_out": 0.1, **choices}
    parameters = dense_recipe(n, classes=C, **values)
    return parameters, initialise(parameters, D, C, seed=3, dtype=DOUBLE)


@pytest.mark.parametrize("rho", [0.3, 0.001])
def test_fields_of_many_samples_are_those_of_few(rho: float) -> None:
    """Many samples are multiplied by the whole matrix, if it is not too empty."""
    state = initialise(sparse_recipe(100, rho_in=rho), D, C, 0)
    x = torch.randn(200, D, generator=torch.Generator().manual_seed(1))
    few = torch.cat([state.w_in.field(part) for part in x.split(16)])
    torch.testing.assert_close(state.w_in.field(x), few, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_batch_of_one_is_the_online_rule(name: str) -> None:
    parameters, state = setup(**{"batch": 1, **CASES[name]})
    naive = Naive(parameters, state)
    inputs, labels = task(12, D, C)
    for x, label in zip(inputs, labels, strict=True):
        state, ends = batch_step(parameters, state, x.unsqueeze(0), label.unsqueeze(0))
        s = naive.learn(x.double().numpy(), int(label))
        assert np.array_equal(ends.s_star.flatten().numpy(), s)
    n = parameters.couplings.n
    for layer, block in enumerate(state.dense_j().numpy()):
        own = slice(layer * n, (layer + 1) * n)
        assert np.allclose(block, naive.j[own, own], rtol=0, atol=1e-12)
    assert np.allclose(state.w_in.to_dense().numpy(), naive.w_in, rtol=0, atol=1e-12)
    assert np.allclose(state.w_out.numpy(), naive.w_out, rtol=0, atol=1e-12)
    assert np.abs(state.dense_j().numpy() - initialise(parameters, D, C, 3).dense_j().numpy()).max()


@pytest.mark.parametrize("name", CASES)
def test_a_batch_sums_its_samples(name: str) -> None:
    """The update of a batch is the sum of those of its samples, each from the same weights."""
    parameters, state = setup(**{"batch_scaling": "sum", **CASES[name]})
    inputs, labels = task(7, D, C)
    together, _ = batch_step(parameters, state, inputs, labels)
    alone = [
        batch_step(parameters, state, inputs[k : k + 1], labels[k : k + 1])[0] for k in range(7)
    ]
    for weights in ("j", "w_out"):
        total = sum(getattr(one, weights) - getattr(state, weights) for one in alone)
        change = getattr(together, weights) - getattr(state, weights)
        assert torch.allclose(change, total, rtol=0, atol=1e-12)
    total = sum(one.w_in.values - state.w_in.values for one in alone)
    assert torch.allclose(together.w_in.values - state.w_in.values, total, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("scaling", "divisor"), [("mean", 8.0), ("root", 8**0.5), ("sum", 1.0)])
def test_batch_scaling(scaling: str, divisor: float) -> None:
    inputs, labels = task(8, D, C)
    parameters, state = setup(batch_scaling="sum")
    full, _ = batch_step(parameters, state, inputs, labels)
    scaled, _ = batch_step(parameters.with_settings(batch_scaling=scaling), state, inputs, labels)
    assert torch.allclose((full.j - state.j) / divisor, scaled.j - state.j, rtol=1e-12)


@pytest.mark.parametrize("choices", [{}, {"rho_j": 0.3, "rho_in": 0.4}], ids=["dense", "diluted"])
def test_steps_leave_the_given_state_alone(choices: dict[str, Any]) -> None:
    parameters, state = setup(**choices)
    before = {name: value.clone() for name, value in state.tensors().items()}
    inputs, labels = task(32, D, C)
    new, _ = batch_step(parameters, state, inputs, labels)
    train_epoch(parameters, state, inputs, labels)
    predict(parameters, state, inputs)
    assert all(torch.equal(value, before[name]) for name, value in state.tensors().items())
    assert state.step == 0
    assert new.step == 1
    assert not torch.equal(new.j, state.j)


@pytest.mark.parametrize("name", CASES)
def test_absent_couplings_and_the_diagonal_stay_zero(name: str) -> None:
    parameters, state = setup(**{"decay_j": 0.1, "decay_in": 0.1, **CASES[name]})
    absent, absent_in = state.dense_j() == 0, state.w_in.to_dense() == 0
    inputs, labels = task(64, D, C)
    new = train_epoch(parameters, state, inputs, labels)
    assert bool((new.dense_j()[absent] == 0).all())
    assert bool((new.w_in.to_dense()[absent_in] == 0).all())
    assert bool((new.dense_j().diagonal(dim1=1, dim2=2) == 0).all())
    assert bool((new.dense_j()[~absent] != state.dense_j()[~absent]).any())
    chain = ("jd", "lam_left", "lam_right")
    assert all(getattr(new.couplings, x) == getattr(state.couplings, x) for x in chain)
    assert torch.equal(new.w_back.values, state.w_back.values)


@pytest.mark.parametrize("symmetry", ["sym1", "sym2"])
@pytest.mark.parametrize("rule", ["perceptron", "tanh"])
@pytest.mark.parametrize("rho", [1.0, 0.4])
def test_symmetric_rules_keep_symmetry_to_the_bit(symmetry: str, rule: str, rho: float) -> None:
    parameters = dense_recipe(50, classes=C, symmetry=symmetry, rule=rule, rho_j=rho, decay_j=0.3)
    state = initialise(parameters, D, C, seed=0)
    inputs, labels = task(160, D, C)
    new = train_epoch(parameters, state, inputs, labels)
    j = new.dense_j()[0]
    assert torch.equal(j, j.T)
    assert not torch.equal(new.j, state.j)
    assert symmetry_level(new) == 1


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("symmetry", ["asym", "sym1", "sym2"])
def test_permuting_neurons_permutes_the_result(sparse: bool, symmetry: str) -> None:
    rho = 0.4 if sparse else 1.0
    parameters, state = setup(n=24, symmetry=symmetry, rho_j=rho, rho_in=rho)
    order = torch.randperm(24, generator=torch.Generator().manual_seed(1))
    j, w_in = state.dense_j()[0][order][:, order], state.w_in.to_dense()[order]
    places = {"present_j": (j != 0).unsqueeze(0), "present_in": w_in != 0} if sparse else {}
    moved = state_of_matrices(
        parameters,
        j.unsqueeze(0),
        w_in,
        state.w_back.to_dense()[order],
        state.w_out[:, order],
        **places,
    )
    inputs, labels = task(48, D, C)
    one = train_epoch(parameters, state, inputs, labels)
    two = train_epoch(parameters, moved, inputs, labels)
    close = {"rtol": 0, "atol": 1e-12}
    assert torch.allclose(one.dense_j()[0][order][:, order], two.dense_j()[0], **close)
    assert torch.allclose(one.w_in.to_dense()[order], two.w_in.to_dense(), **close)
    assert torch.allclose(one.w_out[:, order], two.w_out, **close)


@pytest.mark.parametrize("name", [x for x in CASES if "sym1" not in x and "sym2" not in x])
def test_margins_of_updated_neurons_never_fall(name: str) -> None:
    """One sample: h_i of the same s* changes by eta times the neurons and inputs that i sees.

    With several samples, or with sym1 and sym2, other terms enter and it need not hold.
    """
    parameters, state = setup(**CASES[name])
    inputs, labels = task(20, D, C)
    for x, label in zip(inputs.double(), labels, strict=True):
        new, ends = batch_step(parameters, state, x.unsqueeze(0), label.unsqueeze(0))
        before = ends.s_star * update_field(parameters, state, ends)
        field = new.w_in.field(x.unsqueeze(0)).view(ends.input_field.shape)
        after = ends.s_star * update_field(parameters, new, replace(ends, input_field=field))
        updated = before <= parameters.j.kappa
        assert bool((after[updated] > before[updated]).all())
        if parameters.rule.kind == "perceptron":
            assert bool((after[~updated] == before[~updated]).all())
        state = new


def test_stability_test_takes_the_fields_it_is_told_to() -> None:
    choices = {"layers": 2, "lam_left": 0.5, "lam_right": 0.25}
    parameters, state = setup(**choices)
    inputs, labels = task(5, D, C)
    code = label_code(parameters, state, labels)
    ends = present(parameters, state, inputs.double(), code)
    s = ends.s_star
    bare = torch.einsum("lij,blj->bli", state.dense_j(), s)
    bare[:, 1] += 0.5 * s[:, 0]
    right = torch.zeros_like(s)
    right[:, 0] = 0.25 * s[:, 1]
    terms = {
        "test_jd": parameters.couplings.jd * s,
        "test_input": ends.input_field,
        "test_labels": ends.label_field,
        "test_right": right,
    }
    for chosen in range(16):
        flags = {name: bool(chosen >> k & 1) for k, name in enumerate(terms)}
        h = update_field(parameters.with_settings(**flags), state, ends)
        wanted = bare + sum(terms[name] for name, on in flags.items() if on)
        assert torch.allclose(h, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("update", ["synchronous", "sequential"])
@pytest.mark.parametrize("p", [1.0, 0.7])
def test_until_convergence(update: str, p: float) -> None:
    """Fixed points stay, and every sample gets the sweeps of its own run."""
    choices = {"layers": 2, "lam_left": 0.5, "lam_right": 0.5, "jd": 1.0}
    parameters, state = setup(
        stop="converged", update=update, p=p, clamped=200, free=200, **choices
    )
    inputs, labels = task(16, D, C)
    code = label_code(parameters, state, labels)
    ends = present(parameters, state, inputs.double(), code)
    assert bool(ends.clamped.converged.all())  # type: ignore[union-attr]
    assert bool(ends.free.converged.all())  # type: ignore[union-attr]
    h = state.couplings.field(ends.s_star.unsqueeze(0), ends.input_field.unsqueeze(0))[0]
    assert bool((ends.s_star * h >= 0).all())
    assert int(ends.clamped.sweeps.max()) < 200
    if p == 1:
        for k in range(16):
            alone = present(parameters, state, inputs[k : k + 1].double(), code[k : k + 1])
            assert torch.equal(alone.s_star[0], ends.s_star[k])
            assert int(alone.clamped.sweeps) == int(ends.clamped.sweeps[k])
    capped = parameters.with_settings(clamped=1, free=1)
    result = present(capped, state, inputs.double(), code)
    assert not bool(result.clamped.converged.all())  # type: ignore[union-attr]


def test_masked_updates_depend_on_seed_and_batch_only() -> None:
    parameters, state = setup(p=0.6, layers=2, lam_left=1.0, lam_right=1.0)
    inputs, labels = task(32, D, C)
    one = train_epoch(parameters, state, inputs, labels)
    two = train_epoch(parameters, state, inputs, labels)
    half = train_epoch(parameters, state, inputs[:16], labels[:16])
    rest = train_epoch(parameters, half, inputs[16:], labels[16:])
    assert torch.equal(one.j, two.j)
    assert torch.equal(one.j, rest.j)
    other = train_epoch(parameters, replace(state, seed=4), inputs, labels)
    assert not torch.equal(one.j, other.j)


@pytest.mark.parametrize("name", ["core", "diluted", "chain"])
def test_a_state_goes_through_its_tensors(name: str) -> None:
    parameters, state = setup(**CASES[name])
    inputs, labels = task(64, D, C)
    first = train_epoch(parameters, state, inputs[:32], labels[:32])
    again = state_of(parameters, first.tensors(), first.seed, first.step)
    one = train_epoch(parameters, first, inputs[32:], labels[32:])
    two = train_epoch(parameters, again, inputs[32:], labels[32:])
    assert one.step == two.step == 4
    for key, value in one.tensors().items():
        assert torch.equal(value, two.tensors()[key])


def test_any_topology_with_masks() -> None:
    """An adjacency matrix of two blocks is the chain without lambda, masks included."""
    n, layers = 15, 2
    parameters, state = setup(n=n, layers=layers, rho_j=1.0)
    adjacency = torch.block_diag(*[1 - torch.eye(n)] * layers)
    first = torch.arange(n * layers) < n
    wiring = Wiring(adjacency, first, ~first, ~first)
    wired = initialise(parameters, D, C, 3, wiring=wiring, dtype=DOUBLE)
    assert torch.equal(wired.a_in, state.a_in)
    assert torch.equal(wired.w_in.values, state.w_in.values)
    inputs, labels = task(32, D, C)
    new = train_epoch(parameters, wired, inputs, labels)
    change = (new.couplings.to_dense() != wired.couplings.to_dense())[0]
    assert not bool(change[adjacency == 0].any())
    assert bool(change.any())
    assert bool((new.w_in.values[n:] == 0).all())
    assert bool((new.w_out[:, :n] == 0).all())
    again = state_of(parameters, new.tensors(), new.seed, new.step)
    one, two = (train_epoch(parameters, x, inputs, labels) for x in (new, again))
    assert torch.equal(one.j, two.j)


def test_shared_label_weights() -> None:
    _, state = setup(layers=2, label_to="all", shared_back=True, input_to="all")
    blocks = state.w_back.values.view(2, 30, C)
    assert torch.equal(blocks[0], blocks[1])
    assert not torch.equal(state.w_in.values[:30], state.w_in.values[30:])


def test_label_weights_can_learn() -> None:
    parameters, state = setup(eta_back=0.1, test_labels=True)
    inputs, labels = task(16, D, C)
    new, ends = batch_step(parameters, state, inputs, labels)
    s, code = ends.s_star[:, 0], label_code(parameters, state, labels)
    margin = s * update_field(parameters, state, ends)[:, 0]
    g = s * (margin <= parameters.w_back.kappa)
    rate = 0.1 * parameters.w_back.strength / (C * 16) ** 0.5
    assert torch.allclose(new.w_back.values - state.w_back.values, rate * g.T @ code, atol=1e-12)


def test_recipes_learn_a_small_task() -> None:
    inputs, labels = task(600, 30, C)
    for parameters in (
        dense_recipe(120, classes=C),
        sparse_recipe(120, classes=C, rho_j=0.2, rho_in=0.3, eta_out=0.025, decay_out=0.02),
        dense_recipe(120, classes=C, scheme="approximate"),
        dense_recipe(60, classes=C, layers=2, lam_left=2.0, lam_right=2.0, p=0.85, input_to="all"),
    ):
        state = initialise(parameters, 30, C, seed=0)
        chance = accuracy(parameters, state, inputs, labels)
        for epoch in range(2):
            order = epoch_order(0, epoch, 600)
            state = train_epoch(parameters, state, inputs, labels, order)
        assert chance < 0.6
        assert accuracy(parameters, state, inputs, labels) > 0.9
        assert measure(parameters, state, inputs, labels).q_dyn.median > 0.9


def test_the_letter_of_the_paper_is_expressible() -> None:
    """J += (eta/B) sum s_i s_j 1[...], labels +-1, both phases until convergence."""
    parameters = literal_recipe(40, jd=0.9)
    state = initialise(parameters, D, C, seed=1, dtype=DOUBLE)
    inputs, labels = task(10, D, C)
    new, ends = batch_step(parameters, state, inputs, labels)
    s = ends.s_star[:, 0]
    h = s @ state.dense_j()[0].T + 0.9 * s + ends.input_field[:, 0]
    g = s * (s * h <= parameters.j.kappa)
    step = 0.005 / 10 * g.T @ s
    step.fill_diagonal_(0)
    assert torch.allclose(new.dense_j()[0] - state.dense_j()[0], step, atol=1e-12)
    g = s * (s * h <= 3.0)
    assert torch.allclose(
        new.w_in.values - state.w_in.values, 5 * 0.03 / 10 * g.T @ inputs.double(), atol=1e-12
    )
    assert set(label_code(parameters, state, labels).unique().tolist()) == {-1.0, 1.0}


def test_label_codes_and_identities_run_through_the_same_core() -> None:
    """A few patterns through three layers: learnt, and read from the last layer without y."""
    n, layers, patterns = 60, 3, 16
    parameters = identity_chain(n, layers)
    state = initialise(parameters, n, n, seed=0)
    draw = torch.Generator().manual_seed(5)
    x, y = (torch.randint(0, 2, (patterns, n), generator=draw) * 2.0 - 1 for _ in range(2))
    start = (infer(parameters, state, x)[:, -1] * y).mean(1)
    for _ in range(120):
        state = train_epoch(parameters, state, x, y)
    overlap = (infer(parameters, state, x)[:, -1] * y).mean(1)
    assert float(start.mean()) < 0.3
    assert float(overlap.quantile(0.05)) > 0.95


def test_measurements_of_small_matrices() -> None:
    parameters = overlap_recipe(40, classes=C)
    state = initialise(parameters, D, C, seed=0, dtype=DOUBLE)
    inputs, labels = task(30, D, C)
    result = measure(parameters, state, inputs, labels, together=7)
    code = label_code(parameters, state, labels)
    ends = present(parameters, state, inputs.double(), code)
    q = (ends.s_prime * ends.s_star).mean((1, 2))
    assert result.q_dyn.median == pytest.approx(float(q.quantile(0.5)), abs=1e-12)
    assert result.q_dyn.q05 <= result.q_dyn.q25 <= result.q_dyn.median <= result.q_dyn.q75
    j = state.dense_j()[0]
    s, a = torch.linalg.norm(j + j.T), torch.linalg.norm(j - j.T)
    assert result.symmetry == pytest.approx(float((s - a) / (s + a)), abs=1e-12)
    assert result.unstable_free == 0
    assert result.samples == 30
