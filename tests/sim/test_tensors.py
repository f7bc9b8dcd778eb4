"""States of +1 and -1: the tie rule in every loop that takes a sign, and the check of states."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rmsim.couplings import DenseChain
from rmsim.dynamics import relax, sweeps
from rmsim.enumeration import distances_from, enumerate_fixed_points
from rmsim.learning import Parameters, infer, initialise
from rmsim.search import belief_propagation
from rmsim.studies.capacity import RECONSTRUCTION
from rmsim.studies.capacity import relax as relax_patterns
from rmsim.tensors import checked_states, is_up, sign, sign_or_neutral, tensor_of
from rmtheory.base.errors import InvalidInputError

TIES = torch.tensor([0.5, 0.0, -0.0, -2.0, 1e-45, -1e-45])


def test_two_rules_for_ties() -> None:
    assert sign(TIES).tolist() == [1, 1, 1, -1, 1, -1]
    assert sign(TIES, torch.int8).dtype == torch.int8
    assert is_up(TIES).tolist() == [True, True, True, False, True, False]
    assert sign_or_neutral(TIES).tolist() == [1, 0, 0, -1, 1, -1]


@pytest.mark.parametrize("follow", [sweeps.follow, sweeps.follow_torch])
def test_compiled_loops_and_tensors_have_one_rule(follow: Any) -> None:
    h = TIES.view(1, 1, 1, -1)
    s = -sign(h)
    up, unstable = s > 0, torch.zeros(1, 1, dtype=torch.bool)
    follow(h, s, up, None, (0, 1), unstable)
    assert torch.equal(s, sign(h))
    assert torch.equal(up, is_up(h))


@pytest.mark.parametrize("rho_j", [1.0, 0.5])
@pytest.mark.parametrize("stop", ["fixed", "converged"])
def test_learning_has_the_rule_of_the_dynamics(rho_j: float, stop: str) -> None:
    """Without input every field is 0 in the first sweep, and J_D keeps all neurons at +1."""
    parameters = Parameters.of(n=40, jd=1e6, rho_j=rho_j, stop=stop, readout="none")
    state = initialise(parameters, 5, 2, seed=0)
    assert bool((infer(parameters, state, torch.zeros(3, 5)) == 1).all())


def test_capacity_keeps_neurons_without_a_field_neutral() -> None:
    protocol = RECONSTRUCTION
    x = torch.zeros(1, 1, 4)
    s = torch.zeros(1, 2, 1, 4)
    assert not bool(relax_patterns(protocol, torch.zeros(1, 2, 4, 4), s, x, 3).any())


UNSIGNED = [torch.uint8, torch.uint16, torch.uint32, torch.uint64]
OTHERS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float64]


@pytest.mark.parametrize("dtype", [*UNSIGNED, *OTHERS, torch.bool])
def test_states_of_every_type(dtype: torch.dtype) -> None:
    ones = torch.ones(2, 3).to(dtype)
    assert checked_states("s", ones, (2, "neurons")) is not None
    if dtype.is_signed:
        checked_states("s", -ones)
    with pytest.raises(InvalidInputError, match="s must be"):
        checked_states("s", torch.zeros(3).to(dtype))


@given(value=st.integers(0, 255))
def test_no_byte_wraps_around(value: int) -> None:
    for kind in (np.uint8, np.int8):
        byte = np.array([value], dtype=np.uint8).view(kind)
        if int(byte[0]) in (1, -1):
            checked_states("s", byte)
        else:
            with pytest.raises(InvalidInputError, match=rf"got {int(byte[0])}$"):
                checked_states("s", byte)


@pytest.mark.parametrize(
    "start",
    [
        torch.full((1, 1, 1, 3), 255, dtype=torch.uint8),
        torch.full((1, 1, 1, 3), 127, dtype=torch.int8),
        torch.tensor([1, -1, 1]).to(torch.uint8).view(1, 1, 1, 3),
        torch.full((1, 1, 1, 3), 2**32 + 1),
        torch.full((1, 1, 1, 3), float("nan")),
        torch.ones(1, 1, 1, 3, dtype=torch.complex64),
        torch.ones(1, 1, 1, 4),
        torch.ones(1, 0, 1, 3),
        np.array([[[["a", "b", "c"]]]]),
        [[[[1, -1, 0]]]],
    ],
)
def test_starts_that_are_not_states_are_refused(start: Any) -> None:
    couplings = DenseChain(torch.zeros(1, 1, 3, 3), 0.5)
    with pytest.raises(InvalidInputError, match="start must be"):
        relax(couplings, start)


def test_starts_and_fields_may_be_arrays_of_numpy() -> None:
    couplings = DenseChain(torch.zeros(1, 1, 3, 3), 0.5)
    start = np.array([[[[1, -1, 1]]]], dtype=">i2")
    start.flags.writeable = False
    assert relax(couplings, start).state.tolist() == start.tolist()
    field = np.array([2.0, 2.0, -2.0])
    assert relax(couplings, start, external=field).state.tolist() == [[[[1, 1, -1]]]]
    leaf = torch.tensor([2.0, 2.0, -2.0], requires_grad=True)
    assert relax(couplings, start, external=leaf).state.tolist() == [[[[1, 1, -1]]]]


def test_complex_external_fields_are_refused() -> None:
    field = torch.ones(3, dtype=torch.complex64)
    couplings = DenseChain(torch.zeros(1, 1, 3, 3), 0.5)
    start = torch.ones(1, 1, 1, 3)
    for call in (
        lambda: relax(couplings, start, external=field),
        lambda: couplings.field(start, field),
        lambda: belief_propagation(couplings, external=field),
    ):
        with pytest.raises(InvalidInputError, match="external must be real numbers"):
            call()


def test_one_check_wherever_states_come_in() -> None:
    result = enumerate_fixed_points(np.zeros((3, 3)), 0.5, keep_states=True)
    assert distances_from(result, torch.tensor([1, 1, -1])).tolist() == [1, 3, 3, 1]
    with pytest.raises(InvalidInputError, match="got 255"):
        distances_from(result, np.array([1, 1, 255], dtype=np.uint8))
    with pytest.raises(InvalidInputError, match="x must be real numbers"):
        tensor_of("x", [[1, 2], [3]])  # type: ignore[list-item]


def test_arrays_that_torch_has_not_are_copied() -> None:
    """Negative strides, extended precision: no reason to refuse real numbers."""
    J = np.random.default_rng(3).normal(size=(8, 8))
    np.fill_diagonal(J, 0)
    count = enumerate_fixed_points(J[::-1, ::-1].copy(), 0.5).count
    assert enumerate_fixed_points(J[::-1, ::-1], 0.5).count == count
    assert enumerate_fixed_points(J[::-1, ::-1].astype(np.longdouble), 0.5).count == count
    assert checked_states("start", np.array([1, -1])[::-1]).tolist() == [-1, 1]


@pytest.mark.parametrize(
    "given",
    [
        torch.eye(3).to_sparse(),
        torch.empty(3, device="meta"),
        [torch.ones(1, requires_grad=True), torch.ones(1)],
    ],
    ids=["sparse", "meta", "list of leaves"],
)
def test_other_kinds_of_tensors_are_refused_in_a_sentence(given: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^start must be "):
        checked_states("start", given)
