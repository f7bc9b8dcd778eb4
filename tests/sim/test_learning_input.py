"""What the learning core refuses, and in which words."""

from typing import Any

import numpy as np
import pytest
import torch

from rmsim.couplings import draw
from rmsim.learning import (
    Parameters,
    Wiring,
    accuracy,
    batch_step,
    epoch_order,
    infer,
    initialise,
    measure,
    train_epoch,
)
from rmsim.learning.presets import dense_recipe, sparse_recipe
from rmsim.network import Network
from rmtheory import Chain
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from tests.learning_cases import identity_chain


@pytest.mark.parametrize(
    "choice",
    [
        {"n": 1},
        {"layers": 0},
        {"jd": float("nan")},
        {"rho_j": 0},
        {"rho_in": 1.5},
        {"p": 0},
        {"p": 1.2},
        {"eta_j": -0.1},
        {"decay_in": -1},
        {"warmup": -1},
        {"clamped": 2.5},
        {"inference": 0},
        {"batch": 0},
        {"update": "random"},
        {"stop": "never"},
        {"rule": "hebb"},
        {"gamma": 0},
        {"symmetry": "sym3"},
        {"scheme": "short"},
        {"batch_scaling": "B"},
        {"fan_in_rates": 1},
        {"readout": "softmax"},
        {"input_to": 3},
        {"shared_back": True, "eta_back": 0.1},
        {"input_kind": "identity"},
        {"warmup": 0, "clamped": 0, "free": 0},
        {"no_such_name": 1},
    ],
    ids=str,
)
def test_parameters(choice: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError) as error:
        Parameters.from_dict({"n": 20, **choice})
    assert (
        next(iter(choice)) in str(error.value)
        or "eta" in str(error.value)
        or "free" in str(error.value)
    )


def test_parameters_go_through_json() -> None:
    parameters = dense_recipe(30, rho_j=0.5, layers=2)
    assert Parameters.from_dict(parameters.to_dict()) == parameters


PARAMETERS = dense_recipe(30, classes=3)
INPUTS, LABELS = torch.ones(8, 5), torch.zeros(8, dtype=torch.int64)
NOT_A_NUMBER = torch.ones(8, 5).index_fill(0, torch.tensor([3]), float("nan"))


@pytest.mark.parametrize(
    ("inputs", "labels", "words"),
    [
        (torch.ones(8, 4), LABELS, r"inputs must be of shape \(samples, 5\).*got \(8, 4\)"),
        (torch.ones(8), LABELS, "inputs must be of shape"),
        (NOT_A_NUMBER, LABELS, "inputs must be finite"),
        (INPUTS * float("inf"), LABELS, "inputs must be finite"),
        (INPUTS, LABELS + 3, "labels must be class numbers from 0 to 2, got 3"),
        (INPUTS, LABELS - 1, "labels must be class numbers from 0 to 2, got -1"),
        (INPUTS, LABELS[:7], "labels must be 8 class numbers"),
        (INPUTS, LABELS.double(), "labels must be integers"),
        (INPUTS, torch.zeros(8, 2), r"labels must be of shape \(8, 3\)"),
        (INPUTS[:0], LABELS[:0], "inputs must be at least one sample"),
    ],
)
def test_data(inputs: torch.Tensor, labels: torch.Tensor, words: str) -> None:
    state = initialise(PARAMETERS, 5, 3, seed=0)
    with pytest.raises(InvalidInputError, match=words):
        batch_step(PARAMETERS, state, inputs, labels)
    with pytest.raises(InvalidInputError, match=words):
        accuracy(PARAMETERS, state, inputs, labels)


def test_numpy_arrays_of_any_type_are_inputs() -> None:
    state = initialise(PARAMETERS, 5, 3, seed=0)
    draw = np.random.default_rng(0)
    x = draw.choice(np.array([-1, 1], np.int8), (20, 5))
    x.flags.writeable = False  # as the arrays of a data set are
    y = draw.integers(0, 3, 20).astype(np.uint8)
    one = train_epoch(PARAMETERS, state, x, y)
    two = train_epoch(
        PARAMETERS, state, torch.as_tensor(x, dtype=torch.float64), y.astype(np.int64)
    )
    assert torch.equal(one.j, two.j)


def test_networks() -> None:
    with pytest.raises(InvalidInputError, match="n must be such that 30 classes fit"):
        initialise(dense_recipe(20), 5, 30, seed=0)
    with pytest.raises(InvalidInputError, match="seed must be an integer"):
        initialise(PARAMETERS, 5, 3, seed=-1)
    with pytest.raises(InvalidInputError, match="inputs must be n = 20"):
        initialise(identity_chain(20, 2), 19, 20, seed=0)
    with pytest.raises(InvalidInputError, match="classes must be n = 20"):
        initialise(identity_chain(20, 2), 20, 19, seed=0)
    with pytest.raises(InvalidInputError, match="a_in must be 30 zeros and ones"):
        initialise(PARAMETERS, 5, 3, 0, wiring=Wiring(a_in=torch.ones(29)))
    with pytest.raises(InvalidInputError, match=r"adjacency must be of shape \(30, 30\)"):
        initialise(PARAMETERS, 5, 3, 0, wiring=Wiring(torch.ones(29, 29)))
    parameters = dense_recipe(30, classes=3, readout="none")
    state = initialise(parameters, 5, 3, seed=0)
    with pytest.raises(InvalidInputError, match="readout must be perceptron"):
        accuracy(parameters, state, INPUTS, LABELS)


@pytest.mark.parametrize("values", [["a", "b"], [None, 1], [1e300, 0.0]], ids=str)
def test_arrays_that_are_no_numbers_of_the_weights(values: list[Any]) -> None:
    state = initialise(Parameters.of(n=20), 2, 2, 0)
    inputs = np.array([values, values])
    with pytest.raises(InvalidInputError, match="inputs must be"):
        train_epoch(Parameters.of(n=20), state, inputs, np.array([0, 1]))


@pytest.mark.parametrize("recipe", [dense_recipe, sparse_recipe])
def test_inputs_with_a_gradient_are_taken_as_numbers(recipe: Any) -> None:
    parameters = recipe(40)
    state = initialise(parameters, 5, 3, seed=0)
    with_gradient = INPUTS.clone().requires_grad_()
    assert torch.equal(infer(parameters, state, with_gradient), infer(parameters, state, INPUTS))
    one = train_epoch(parameters, state, with_gradient, LABELS)
    assert torch.equal(one.j, train_epoch(parameters, state, INPUTS, LABELS).j)


def test_streams_of_random_numbers_count_from_0() -> None:
    with pytest.raises(InvalidInputError, match="epoch must be an integer >= 0, got -1"):
        epoch_order(0, -1, 4)
    with pytest.raises(
        InvalidInputError,
        match=r"samples must be a range of samples, step 1, from 0 on, got range\(-2, 1\)",
    ):
        draw(Network(10, Chain(1, 0.5)), 0, range(-2, 1))


def test_an_order_is_one_of_whole_numbers() -> None:
    state = initialise(PARAMETERS, 5, 3, seed=0)
    with pytest.raises(InvalidInputError, match="order must be integers"):
        train_epoch(PARAMETERS, state, INPUTS, LABELS, torch.tensor([0.0, 1.7]))


def test_numbers_of_a_type_that_torch_does_not_have() -> None:
    state = initialise(Parameters.of(n=20), 2, 2, 0)
    with pytest.raises(InvalidInputError, match="inputs must be an array of a type that torch has"):
        train_epoch(Parameters.of(n=20), state, np.ones((2, 2), np.longdouble), np.array([0, 1]))


@pytest.mark.parametrize("kind", [">f4", "f2", "i1"])
def test_any_byte_order_stride_and_unsigned_labels(kind: str) -> None:
    parameters = Parameters.of(n=20)
    state = initialise(parameters, 2, 2, 0)
    inputs = np.array([[1, -1], [-1, -1], [1, 1]])
    labels = np.array([0, 1, 1])
    plain = train_epoch(parameters, state, inputs, labels)
    turned = inputs[::-1].astype(kind)[::-1]
    for unsigned in ("u1", "u2", "u4", ">u8"):
        other = train_epoch(parameters, state, turned, labels.astype(unsigned))
        assert torch.equal(other.j, plain.j)
        assert torch.equal(other.w_out, plain.w_out)


@pytest.mark.parametrize(
    ("recipe", "drawn", "words"),
    [
        (sparse_recipe, {"n": 40}, "state must be that of the parameters, n = 50, got .* n = 40"),
        (dense_recipe, {"n": 60}, "n = 50, got one with n = 60"),
        (dense_recipe, {"n": 25, "layers": 2}, "n = 50, got one with n = 25"),
        (dense_recipe, {"n": 50, "layers": 2}, "layers = 1, got one with layers = 2"),
        (dense_recipe, {"n": 50, "jd": 0.7}, "jd = 0.5, got one with jd = 0.7"),
        (dense_recipe, {"n": 50, "readout": "none"}, "readout = perceptron, got .* none"),
    ],
)
def test_weights_of_another_protocol(recipe: Any, drawn: dict[str, Any], words: str) -> None:
    """Sparse networks would be read out of bounds, others trained with another J_D."""
    parameters = recipe(50)
    state = initialise(recipe(**drawn), 5, 10, seed=0)
    for attempt in (
        lambda: train_epoch(parameters, state, INPUTS, LABELS),
        lambda: batch_step(parameters, state, INPUTS, LABELS),
        lambda: infer(parameters, state, INPUTS),
        lambda: measure(parameters, state, INPUTS, LABELS),
    ):
        with pytest.raises(InvalidInputError, match=words):
            attempt()


def test_couplings_between_layers_are_those_of_the_protocol() -> None:
    parameters = dense_recipe(20, classes=3, layers=2, lam_left=0.3, lam_right=0.3)
    state = initialise(parameters, 5, 3, seed=0)
    with pytest.raises(InvalidInputError, match=r"lam_left = 0\.5, got one with lam_left = 0\.3"):
        infer(parameters.with_settings(lam_left=0.5), state, INPUTS)
    single = dense_recipe(20, classes=3, lam_left=0.3)  # there is no other layer
    with pytest.raises(InvalidInputError, match="lam_left must be absent or 0 for one layer"):
        initialise(single, 5, 3, seed=0)


@pytest.mark.parametrize("recipe", [dense_recipe, sparse_recipe])
def test_numbers_whose_fields_would_overflow(recipe: Any) -> None:
    parameters = recipe(50, classes=3)
    state = initialise(parameters, 5, 3, seed=0)
    large = INPUTS * 3e38
    codes = torch.full((8, 3), 1e300, dtype=torch.float64)
    with pytest.raises(InvalidInputError, match=r"inputs must be at most .* fields are finite"):
        measure(parameters, state, large, LABELS)
    with pytest.raises(InvalidInputError, match="inputs must be at most"):
        infer(parameters, state, large)
    with pytest.raises(InvalidInputError, match="labels must be at most"):
        train_epoch(parameters, state, INPUTS, codes)
    loud = recipe(50, classes=3, label_true=1e30, lambda_y=1e30)
    with pytest.raises(InvalidInputError, match="label_true must be at most"):
        measure(loud, initialise(loud, 5, 3, seed=0), INPUTS, LABELS)
    # what is let in stays finite, in the first batch and in the last
    with pytest.raises(NotConvergedError, match="the field of inputs is no longer finite"):
        train_epoch(parameters.with_settings(kappa_in=1e30), state, INPUTS * 1e29, LABELS)


def test_weights_that_overflow_are_told() -> None:
    parameters = dense_recipe(30, classes=3, eta_j=1e30, fan_in_rates=False)
    state = initialise(parameters, 5, 3, seed=0)
    for _ in range(2):
        state = train_epoch(parameters, state, INPUTS, LABELS)
    wild = torch.full_like(state.w_out, 1e37)
    state.w_out.copy_(wild)
    with pytest.raises(NotConvergedError, match="W_out or its field is no longer finite"):
        batch_step(parameters, state, INPUTS, LABELS)


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"decay_j": 2e5}, "decay_j must be at most 2000 at this rate"),
        ({"eta_in": 1e30, "lambda_x": 1e12}, "eta_in must be such that the rate .* at most 1e.30"),
        ({"eta_out": 1e-3, "decay_out": 1e9}, "decay_out must be at most"),
    ],
)
def test_rates_out_of_range(choice: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        initialise(Parameters.of(n=100, **choice), 5, 3, seed=0)
