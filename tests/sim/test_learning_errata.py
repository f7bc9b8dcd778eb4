"""Misprints of the paper about learning, each decided against what the text says it should do."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from rmsim.data import load
from rmsim.learning import Measurement, batch_step, initialise, measure
from rmsim.learning.plasticity import update_field
from rmsim.learning.presets import dense_recipe, overlap_recipe
from tests.learning_cases import task

pytestmark = pytest.mark.numerical


def test_erratum_20_the_smooth_rule_raises_margins() -> None:
    """The printed factor, -1/2 + tanh/2, is minus ours: every margin would fall by as much."""
    parameters = dense_recipe(60, rule="tanh", gamma=2.0, eta_in=0.0, eta_j=0.1, batch=1)
    state = initialise(parameters, 20, 4, seed=0, dtype=torch.float64)
    inputs, labels = task(1, 20, 4)
    new, ends = batch_step(parameters, state, inputs, labels)
    printed = replace(state, couplings=state.couplings.with_weights(2 * state.j - new.j))
    before, ours, theirs = (
        ends.s_star * update_field(parameters, x, ends) for x in (state, new, printed)
    )
    learns = before < 4  # beyond, tanh is 1 to ten digits
    assert bool((ours > before)[learns].all())
    assert bool((theirs < before)[learns].all())
    assert int(learns.sum()) > 10
    # gamma to infinity is the rule of the main text, with its sign.
    steep = parameters.with_settings(gamma=1e9)
    sharp = parameters.with_settings(rule="perceptron")
    one, two = (batch_step(x, state, inputs, labels)[0].j for x in (steep, sharp))
    assert torch.allclose(one, two, rtol=0, atol=1e-12)


def overlaps(scale: float = 1.0) -> Measurement:
    """First row of the table of q_dyn at initialisation, J times `scale`."""
    parameters = overlap_recipe(1600, jd=0.5, lambda_x=5.0, lambda_y=0.9, clamped=20, free=20)
    state = initialise(parameters, 100, 10, seed=0)
    state = replace(state, couplings=state.couplings.with_weights(scale * state.j))
    train = load("entangled-mnist").train
    return measure(parameters, state, train.inputs[:500], train.labels[:500])


def test_erratum_21_the_brackets_of_q_dyn_are_quartiles() -> None:
    """Printed: 0.930 [0.921, 0.938], '5th-95th percentile range'."""
    q = overlaps().q_dyn
    assert q.median == pytest.approx(0.930, abs=0.003)
    assert q.q25 == pytest.approx(0.921, abs=0.003)
    assert q.q75 == pytest.approx(0.938, abs=0.003)
    assert q.q05 < 0.921 - 0.006
    assert q.q95 > 0.938 + 0.006


def test_erratum_22_couplings_have_the_deviation_one_over_root_n() -> None:
    """Printed N(0, 1/sqrt(N)): as a variance it would be J times N^(1/4), and q_dyn far off."""
    assert overlaps(1600**0.25).q_dyn.median < 0.930 - 0.1


def test_erratum_23_symmetric_couplings_updated_at_once_end_in_cycles_of_two() -> None:
    """What falls is -s(t) J s(t-1), of two successive states; one neuron at a time, all converge.

    In numpy alone; that the simulator says the same of its phases is tested with the experiments.
    """
    n, cycles = 200, 0
    for seed in range(12):
        draw = np.random.default_rng(seed)
        raw = draw.standard_normal((n, n)) / np.sqrt(n)
        J = (raw + raw.T) / np.sqrt(2)
        np.fill_diagonal(J, 0.0)
        before, s = np.zeros(n), draw.choice([-1.0, 1.0], n)
        energy = np.inf
        for _ in range(2000):
            new = np.where(J @ s > 0, 1.0, -1.0)
            lower = -float(new @ J @ s)
            assert lower <= energy + 1e-9
            if np.array_equal(new, before):  # period one or two
                break
            before, s, energy = s, new, lower
        assert np.array_equal(new, before)
        cycles += not np.array_equal(new, s)
        for _ in range(2000):
            loose = np.flatnonzero(s * (J @ s) < 0)
            if loose.size == 0:
                break
            s[loose[0]] *= -1
        assert loose.size == 0
    assert cycles == 12
