"""The compiled routes of sparse and of dense networks against the general one."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from rmsim.couplings import DenseChain
from rmsim.dynamics.sweeps import fill_mask, mask_keys
from rmsim.learning import State, Wiring, batch_step, infer, initialise, sign_tables, train_epoch
from rmsim.learning.phases import Flips, by_columns
from rmsim.learning.plasticity import has_inference_kernel, has_kernel, recurrent_rows
from rmsim.learning.presets import dense_recipe, sparse_recipe
from rmsim.learning.protocol import _FlipLearner
from rmsim.learning.sign_tables import TableLearner, has_tables
from tests.learning_cases import task

pytestmark = pytest.mark.numerical

D, C = 24, 5
CHAIN: dict[str, Any] = {"layers": 3, "lam_left": 0.7, "lam_right": 0.4}
CASES: dict[str, dict[str, Any]] = {
    "core": {},
    "dense input": {"rho_in": 1.0},
    "decay": {"decay_j": 0.5, "decay_in": 0.3, "decay_out": 0.2},
    "chain": {**CHAIN, "input_to": "all", "output_from": "all"},
    "first to last": CHAIN,
    "symmetric start": {"symmetry": "sym0"},
    "batch of one": {"batch": 1},
    "batch of 37": {"batch": 37},
    "no warm-up": {"warmup": 0, "free": 2},
    "approximate": {"scheme": "approximate"},
    "frozen": {"eta_j": 0.0, "eta_in": 0.0},
    "dense input to the first": {**CHAIN, "rho_in": 1.0},
    "no readout": {"readout": "none"},
    "no readout, large batch": {"readout": "none", "batch": 37},
}


def network(**choices: Any) -> tuple[Any, State]:
    values = {"rho_j": 0.1, "rho_in": 0.4, "eta_out": 0.05, **choices}
    parameters = sparse_recipe(60, classes=C, **values)
    return parameters, initialise(parameters, D, C, seed=2)


def assert_close(one: State, two: State) -> None:
    """Sums are taken in another order, and products are fused or not: a few units of 6e-8."""
    assert one.step == two.step
    for name, value in one.tensors().items():
        assert torch.allclose(value, two.tensors()[name], rtol=0, atol=3e-6), name


def in_float64(state: State) -> State:
    """Return the same weights, exactly, with which all is computed in float64."""
    return replace(
        state,
        couplings=state.couplings.with_weights(state.j.double()),
        w_in=state.w_in.with_values(state.w_in.values.double()),
        w_back=state.w_back.with_values(state.w_back.values.double()),
        w_out=state.w_out.double(),
    )


def raised(parameters: Any, before: State, after: State) -> torch.Tensor:
    """How often each coupling was raised more than lowered, in halves: whole numbers."""
    rate = parameters.rate("j", before.couplings.fan_in, parameters.batch.size)
    halves = 2 * (after.j.double() - before.j.double()) / rate
    assert float((halves - halves.round()).abs().max()) < 0.1
    return halves.round()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("real", [False, True], ids=["spins", "reals"])
def test_training(name: str, real: bool) -> None:
    parameters, state = network(**CASES[name])
    assert has_kernel(parameters, state)
    assert not has_tables(parameters, state)
    inputs, labels = task(150, D, C)
    if real:
        noise = torch.rand(inputs.shape, generator=torch.Generator().manual_seed(1))
        inputs = inputs * noise
    fast = train_epoch(parameters, state, inputs, labels)
    slow = train_epoch(parameters, state, inputs, labels, compiled=False)
    assert_close(fast, slow)
    assert name == "frozen" or not torch.equal(fast.j, state.j)
    assert torch.equal(
        infer(parameters, fast, inputs), infer(parameters, fast, inputs, compiled=False)
    )


@pytest.mark.parametrize("rho", [0.1, 0.4], ids=["by rows", "by tables"])
def test_any_adjacency(rho: float) -> None:
    draw = torch.Generator().manual_seed(0)
    adjacency = (torch.rand(60, 60, generator=draw) < rho).fill_diagonal_(False)
    seen = torch.rand(60, generator=draw) < 0.5
    parameters = sparse_recipe(60, classes=C, rho_j=1.0, rho_in=0.5)
    state = initialise(parameters, D, C, 2, wiring=Wiring(adjacency, seen, ~seen, seen))
    assert has_kernel(parameters, state)
    assert has_tables(parameters, state) == (rho > 0.2)
    inputs, labels = task(64, D, C)
    fast = train_epoch(parameters, state, inputs, labels)
    assert_close(fast, train_epoch(parameters, state, inputs, labels, compiled=False))
    assert bool((fast.w_out[:, ~seen] == 0).all())


@pytest.mark.parametrize(
    "choice",
    [
        {"stop": "converged"},
        {"p": 0.9},
        {"rule": "tanh"},
        {"symmetry": "sym1"},
        {"symmetry": "sym2"},
        {"test_labels": True},
        {"test_jd": False},
        {"eta_back": 0.1},
        {"rho_j": 1.0},
        {**CHAIN, "update": "sequential"},
    ],
    ids=str,
)
def test_other_protocols_take_the_general_route(choice: dict[str, Any]) -> None:
    """And train the same by flips and sweeps of the CPU and by the tensor operations of a GPU.

    The weights differ by the order of sums. How often every coupling was raised and lowered does
    not, as long as no field is within rounding of its threshold; that none is, float64 decides.
    """
    parameters, state = network(**choice)
    assert not has_kernel(parameters, state)
    inputs, labels = task(32, D, C)
    one = train_epoch(parameters, state, inputs, labels)
    two = train_epoch(parameters, state, inputs, labels, compiled=False)
    assert_close(one, two)
    if parameters.rule.kind == "perceptron":
        more = in_float64(state)
        decided = raised(parameters, more, train_epoch(parameters, more, inputs, labels))
        assert bool(decided.any())
        assert torch.equal(raised(parameters, state, one), decided)
        assert torch.equal(raised(parameters, state, two), decided)


def test_rows_end_with_what_does_not_learn() -> None:
    _, state = network(**CHAIN)
    rows, places = recurrent_rows(state)
    dense = torch.zeros(180, 180)
    for i in range(180):
        for e in range(rows.bounds[i], rows.bounds[i + 1]):
            dense[i, int(rows.columns[e])] += float(rows.values[e])
    s = torch.where(torch.rand(4, 180, generator=torch.Generator().manual_seed(3)) < 0.5, 1.0, -1.0)
    wanted = state.couplings.field(s.view(1, 4, 3, 60)).view(4, 180)
    assert torch.allclose(s @ dense.T, wanted, atol=1e-5)
    assert torch.equal(torch.from_numpy(rows.values[places]), state.j)
    learning = sum(int(end - first) for first, end in zip(rows.bounds, rows.ends, strict=False))
    assert learning == len(state.j)


@pytest.mark.parametrize("rho", [0.1, 0.4, 1.0])
def test_a_chunked_epoch_is_the_epoch(rho: float) -> None:
    """To the bit, so that a run can stop after any batch."""
    parameters, state = network(decay_in=0.1, rho_j=rho)
    inputs, labels = task(96, D, C)
    whole = train_epoch(parameters, state, inputs, labels)
    part = train_epoch(parameters, state, inputs, labels, torch.arange(48))
    rest = train_epoch(parameters, part, inputs, labels, torch.arange(48, 96))
    for name, value in whole.tensors().items():
        assert torch.equal(value, rest.tensors()[name])


def test_inference_kernel_needs_a_plain_protocol() -> None:
    parameters, state = network(**CHAIN, right_in_inference=False)
    assert not has_inference_kernel(parameters, state)


def test_one_batch_is_the_batch_step() -> None:
    parameters, state = network()
    inputs, labels = task(16, D, C)
    assert_close(
        train_epoch(parameters, state, inputs, labels),
        batch_step(parameters, state, inputs, labels)[0],
    )


@pytest.mark.parametrize("update", ["synchronous", "sequential"])
@pytest.mark.parametrize(
    "choice",
    [
        {},
        CHAIN,
        {**CHAIN, "p": 0.7},
        {**CHAIN, "stop": "converged", "clamped": 40, "free": 40, "jd": 0.8},
        {"scheme": "approximate", "symmetry": "sym2"},
        {"rule": "tanh", "eta_back": 0.1, "batch": 5},
    ],
    ids=str,
)
def test_following_flips_is_multiplying(choice: dict[str, Any], update: str) -> None:
    """Dense networks: the same weights, up to the rounding of the corrected fields."""
    parameters = dense_recipe(50, classes=C, update=update, **choice)
    state = initialise(parameters, D, C, seed=1)
    inputs, labels = task(64, D, C)
    flips = _FlipLearner(parameters, state.copy())
    flips.learn(inputs, labels, torch.arange(64))
    fast = flips.finish()
    slow = train_epoch(parameters, state, inputs, labels, compiled=False)
    assert_close(fast, slow)
    assert fast.j.is_contiguous()
    assert torch.equal(
        infer(parameters, slow, inputs), infer(parameters, slow, inputs, compiled=False)
    )


def test_products_of_flips_stay_right() -> None:
    """J s after twenty sweeps of a chaotic network, few flips and many, from zeros on."""
    parameters = dense_recipe(200, layers=2, lam_left=0.3, lam_right=0.2, jd=0.1)
    state = by_columns(initialise(parameters, D, C, seed=1))
    assert isinstance(state.couplings, DenseChain)
    motion = Flips(state.couplings, 40, sequential=False)
    draw = torch.Generator().manual_seed(0)
    external = 0.5 * torch.randn(40, 2, 200, generator=draw)
    seen = set()
    for sweep in range(20):
        before = motion.s.clone()
        mask = torch.rand(40, 2, 200, generator=draw) < (0.02 if sweep % 3 else 0.9)
        motion.sweep(external, mask)
        seen.add(bool((before != motion.s).double().mean() > 0.25))
        product = torch.einsum("lij,blj->bli", state.dense_j().double(), motion.s.double())
        assert torch.allclose(motion.product.double(), product, rtol=0, atol=1e-5)
    assert seen == {False, True}


def test_runs_of_flips_are_their_sweeps() -> None:
    """Sample by sample until fixed, against sweep by sweep with everything watched."""
    parameters = dense_recipe(80, layers=3, lam_left=0.6, lam_right=0.5, jd=0.7)
    state = by_columns(initialise(parameters, D, C, seed=4))
    assert isinstance(state.couplings, DenseChain)
    fast, slow = (Flips(state.couplings, 30, sequential=False) for _ in range(2))
    draw = torch.Generator().manual_seed(0)
    for sweeps in (0, 1, 3, 40):
        external = torch.randn(30, 3, 80, generator=draw)
        used, fixed = fast.run(external, sweeps)
        count = torch.zeros(30, dtype=torch.int64)
        for _ in range(sweeps):
            count += slow.sweep(external, None)
        assert torch.equal(fast.s, slow.s)
        assert torch.equal(used, count)
        if sweeps:
            h = state.couplings.field(slow.s.unsqueeze(0), external.unsqueeze(0))[0]
            assert torch.equal(fixed, ((h >= 0) == (slow.s > 0)).flatten(1).all(1))
    assert bool(fixed.any())


LITERAL: dict[str, Any] = {"stop": "converged", "clamped": 40, "free": 40, "jd": 0.8}
TABLES: dict[str, dict[str, Any]] = {
    "core": {},
    "width of three panels and a part": {"n": 101},
    "chain": {**CHAIN, "input_to": "all", "output_from": "all", "label_to": "all"},
    "first to last": CHAIN,
    "layer after layer": {**CHAIN, "update": "sequential"},
    "converged": {**CHAIN, **LITERAL},
    "approximate": {"scheme": "approximate", "symmetry": "sym0"},
    "sym1": {"symmetry": "sym1"},
    "sym2": {"symmetry": "sym2", "decay_j": 0.5},
    "smooth": {"rule": "tanh", "eta_back": 0.1, "batch": 5},
    "smooth sym2": {"rule": "tanh", "symmetry": "sym2"},
    "batch of one": {"batch": 1},
    "batch of 37": {"batch": 37},
    "decay": {"decay_j": 0.5, "decay_in": 0.3, "decay_out": 0.2},
    "no readout": {"readout": "none"},
    "no warm-up": {"warmup": 0, "free": 2},
    "sparse input": {"rho_in": 0.4},
    "identity": {"n": D, "input_kind": "identity", "lambda_x": 0.5, "eta_in": 0.0},
    "other fields tested": {**CHAIN, "test_labels": True, "test_jd": False, "test_right": False},
    "without the right at inference": {**CHAIN, "right_in_inference": False, "inference": 9},
    "input not tested": {"test_input": False, "kappa_in": 0.7},
    "many couplings": {"rho_j": 0.4, "n": 101, "decay_j": 0.5},
    "many couplings of a chain": {**CHAIN, "rho_j": 0.5, "p": 0.7},
    "many symmetric couplings": {"rho_j": 0.4, "symmetry": "sym2"},
    "many couplings, batch of one": {"rho_j": 0.4, "batch": 1},
    "masked": {"p": 0.85},
    "half masked": {"p": 0.5, "n": 101},
    "masked chain": {**CHAIN, "p": 0.85, "input_to": "all", "output_from": "all"},
    "masked first to last": {**CHAIN, "p": 0.7},
    "masked layer after layer": {**CHAIN, "p": 0.6, "update": "sequential"},
    "masked until converged": {**CHAIN, **LITERAL, "p": 0.85},
    "masked approximate": {"p": 0.6, "scheme": "approximate", "decay_j": 0.5},
    "masked sym2": {"p": 0.4, "symmetry": "sym2"},
    "masked smooth": {"p": 0.6, "rule": "tanh", "eta_back": 0.1, "batch": 5},
    "masked batch of 37": {"p": 0.3, "batch": 37},
    "masked batch of one": {"p": 0.5, "batch": 1},
    "masked without warm-up": {"p": 0.5, "warmup": 0, "free": 2, "decay_out": 0.2},
}


@pytest.mark.parametrize("name", TABLES)
def test_tables(name: str) -> None:
    """Dense networks by tables of signed sums: spins, then real inputs, then codes for labels."""
    parameters = dense_recipe(**{"n": 50, "classes": C, **TABLES[name]})
    state = initialise(parameters, D, C, seed=1)
    assert has_tables(parameters, state)
    inputs, labels = task(80, D, C)
    draw = torch.Generator().manual_seed(1)
    noisy = inputs * torch.rand(inputs.shape, generator=draw)
    codes = torch.nn.functional.one_hot(labels, C) - 0.2
    for x, y in ((inputs, labels), (noisy, labels), (inputs, codes)):
        fast = train_epoch(parameters, state, x, y)
        slow = train_epoch(parameters, state, x, y, compiled=False)
        assert_close(fast, slow)
        assert not torch.equal(fast.j, state.j)
        if parameters.couplings.symmetry in ("sym1", "sym2"):
            j = fast.dense_j()
            assert torch.equal(j, j.transpose(1, 2))
        one, two = (infer(parameters, fast, x, together=70, compiled=way) for way in (True, False))
        assert torch.equal(one, two)


def least_field(parameters: Any, state: State, x: torch.Tensor, y: torch.Tensor) -> float:
    """How far the nearest field of a batch is from its threshold, in float64, over all sweeps."""
    couplings, phases = parameters.couplings, parameters.phases
    layers, n = couplings.shape
    j, w_in, w_back, w_out = (
        matrix.double()
        for matrix in (state.dense_j(), state.w_in.values, state.w_back.values, state.w_out)
    )
    code = torch.full((len(x), C), parameters.w_back.label_other).double()
    code.scatter_(1, y.unsqueeze(1), parameters.w_back.label_true)
    field, label = (
        (given @ weights.T).view(-1, layers, n)
        for given, weights in ((x.double(), w_in), (code, w_back))
    )
    s, least = torch.zeros_like(field), torch.inf
    mask = torch.ones(field.shape, dtype=torch.bool)
    keys = mask_keys(state.seed, range(state.step + 1, state.step + 2), len(x))

    def internal() -> torch.Tensor:
        h = torch.einsum("lij,blj->bli", j, s) + couplings.jd * s
        h[:, 1:] += couplings.lam_left * s[:, :-1]
        h[:, :-1] += couplings.lam_right * s[:, 1:]
        return h

    sweep = 0
    for count, external in (
        (phases.warmup, field),
        (phases.clamped, field + label),
        (phases.free, field),
    ):
        for _ in range(count):
            h = internal() + external
            least = min(least, float(h.abs().min()))
            if phases.p < 1:
                fill_mask(keys, sweep, phases.p, mask.unsqueeze(0))
            s = torch.where(mask, torch.where(h >= 0, 1.0, -1.0).double(), s)
            sweep += 1
    margin = s * (internal() + field)
    outputs = (2 * torch.nn.functional.one_hot(y, C) - 1) * (s.flatten(1) @ w_out.T)
    for values, kappa in (
        (margin, parameters.j.kappa),
        (margin, parameters.w_in.kappa),
        (outputs, parameters.readout.kappa),
    ):
        least = min(least, float((values - kappa).abs().min()))
    return least


def rounding_bound(state: State, x: torch.Tensor) -> float:
    """Bound of the rounding of a field in float32, whatever the order of its terms."""
    terms = state.couplings.n + state.inputs + state.classes + 5
    sizes = [
        state.dense_j().abs().sum(2).flatten(),
        state.w_in.values.abs() @ x.float().abs().max(0).values,
        2 * state.w_back.values.abs().sum(1),
    ]
    fixed = state.couplings.jd + sum(map(abs, state.couplings.homologous.values()))
    largest = max(float(sum(sizes).max()) + fixed, float(state.w_out.abs().sum(1).max()))
    # both routes round, flips repeat a part of the sum, and weights are rounded in every batch
    return 4 * terms * 2.0**-24 * largest


PAIR: dict[str, Any] = {
    "n": 32,
    "layers": 2,
    "lam_left": 0.6,
    "lam_right": 0.6,
    "jd": 0.2,
    "p": 0.85,
}


@pytest.mark.parametrize(
    "choices",
    [{}, {"rho_j": 0.5}, {"p": 0.85}, {"p": 0.4}, {**PAIR, "input_to": "all", "label_to": "all"}],
    ids=["all", "half of the couplings", "masked", "often masked", "masked pair"],
)
def test_states_of_tables_are_equal_until_a_field_is_within_rounding_of_zero(
    choices: dict[str, Any],
) -> None:
    compared, zeros = 0, 0
    for seed in range(16):
        parameters = dense_recipe(**{"n": 64, "classes": C, "output_from": "all", **choices})
        state = initialise(parameters, D, C, seed)
        learner = TableLearner(parameters, state.copy())
        inputs, labels = task(160, D, C)
        for first in range(0, 160, 16):
            part = slice(first, first + 16)
            x, y = inputs[part], labels[part]
            if least_field(parameters, state, x, y) < rounding_bound(state, x):
                break
            learner.learn(x, y, torch.arange(16))
            state, ends = batch_step(parameters, state, x, y)
            assert torch.equal(learner.last_states(), ends.s_star)
            compared += 1
            zeros += int((ends.s_star == 0).sum())
    assert compared >= 6
    assert (zeros > 0) == (choices.get("p") == 0.4)


def test_masks_of_tables_go_on_from_part_to_part_and_from_epoch_to_epoch() -> None:
    """The masks of a batch are those of its number, whichever call it is learnt in."""
    parameters = dense_recipe(50, classes=C, p=0.7)
    inputs, labels = task(80, D, C)
    state = initialise(parameters, D, C, seed=1)
    alone = TableLearner(parameters, state.copy())
    for part in torch.arange(80).split(32):
        alone.learn(inputs, labels, part)
    whole = train_epoch(parameters, state, inputs, labels)
    assert torch.equal(alone.finish().j, whole.j)
    again, slow = (
        train_epoch(parameters, whole, inputs, labels, compiled=compiled)
        for compiled in (True, False)
    )
    assert_close(again, slow)
    assert not torch.equal(
        again.j, train_epoch(parameters, replace(whole, step=0), inputs, labels).j
    )


@pytest.mark.parametrize("p", [1, 0.8])
def test_threads_do_not_change_what_tables_learn(monkeypatch: pytest.MonkeyPatch, p: float) -> None:
    """To the bit: every sum is one thread's."""
    monkeypatch.setattr("rmsim.learning.sign_tables._GRAIN", 1)
    monkeypatch.setattr("rmsim.learning.sign_tables._TRIED", 2)  # then several
    monkeypatch.setattr("rmsim.learning.sign_tables._TIMED", 0.0)
    parameters = dense_recipe(100, classes=C, p=p, **CHAIN)
    state = initialise(parameters, D, C, seed=3)
    inputs, labels = task(96, D, C)
    threads = torch.get_num_threads()
    learnt = []
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            learnt.append(train_epoch(parameters, state, inputs, labels))
        learner = TableLearner(parameters, state.copy())
        for part, number in zip(torch.arange(96).split(32), (1, 3, 2), strict=True):
            torch.set_num_threads(number)  # more than before: each has tables of its own
            learner.learn(inputs, labels, part)
        learnt.append(learner.finish())
    finally:
        torch.set_num_threads(threads)
    for other in learnt[1:]:
        for name, value in learnt[0].tensors().items():
            assert torch.equal(value, other.tensors()[name]), name


def test_inference_by_tables_in_pieces_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Masks are those of the samples relaxed together, whichever thread and piece has them."""
    monkeypatch.setattr("rmsim.learning.sign_tables._SPACE", 1)  # a piece for each 100
    inputs, _ = task(331, D, C)
    threads = torch.get_num_threads()
    for p in (1, 0.7, 0.2):
        parameters = dense_recipe(45, classes=C, p=p, **CHAIN)
        state = initialise(parameters, D, C, seed=3)
        slow = infer(parameters, state, inputs, together=100, compiled=False)
        assert bool((slow == 0).any()) == (p < 1)
        try:
            for number in (1, 3):
                torch.set_num_threads(number)
                assert torch.equal(infer(parameters, state, inputs, together=100), slow)
        finally:
            torch.set_num_threads(threads)
    assert len(infer(parameters, state, inputs[:0])) == 0


def test_the_faster_number_of_threads_learns() -> None:
    """One is timed, then all of them; again after some seconds, since machines become busy."""
    parameters = dense_recipe(50, classes=C)
    learner = TableLearner(parameters, initialise(parameters, D, C, seed=1))
    assert learner._threads(1) == (1, 0)
    assert learner._threads(2) == (1, sign_tables._TRIED)
    learner._pace[1] = 0.001
    assert learner._threads(2) == (2, 100)  # for a tenth of a second
    for several, chosen in ((0.0006, 2), (0.01, 1)):
        learner._pace[2] = several
        assert learner._threads(2) == (chosen, 0)
    learner._tried -= 60
    assert learner._threads(2) == (1, sign_tables._TRIED)


def test_threads_are_timed_by_the_batch_and_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two take 0.6 of one; few batches, a smaller last one and a slow start do not hide it."""
    parameters = dense_recipe(50, classes=C)
    learner = TableLearner(parameters, initialise(parameters, D, C, seed=1))
    now, used = [100.0], []

    def learn(x: torch.Tensor, y: torch.Tensor, batch: int, threads: int) -> None:
        cold = not any(before == threads for before, _ in used)
        now[0] += 5.0 * cold + len(x) / batch * (0.6 if threads == 2 else 1.0)
        used.append((threads, len(x)))

    monkeypatch.setattr(learner, "_learn_batches", learn)
    monkeypatch.setattr(sign_tables, "thread_count", lambda size, grain: 2)
    monkeypatch.setattr(sign_tables.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(sign_tables, "_AGAIN", 1e9)
    size = parameters.batch.size
    samples = 10 * size + 5
    x, y = torch.zeros(samples, D), torch.zeros(samples, dtype=torch.int64)
    for _ in range(2):
        learner.learn(x, y, torch.arange(samples))
    assert sum(count for _, count in used) == 2 * samples
    assert learner._pace == {2: pytest.approx(0.6), 1: pytest.approx(1.0)}
    assert used[-2:] == [(2, 10 * size), (2, 5)]


def test_float64_takes_the_route_by_flips() -> None:
    double = dense_recipe(50, classes=C)
    assert not has_tables(double, initialise(double, D, C, seed=1, dtype=torch.float64))
