"""Hetero-association: the rule written out, trials, P_max on known curves, the commands."""

import json
import math
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from scipy.interpolate import make_smoothing_spline

from rmsim.cli import run
from rmsim.learning.sign_tables import from_panels
from rmsim.studies import capacity, capacity_sweep, capacity_tables
from rmsim.studies.capacity import (
    PROTOCOLS,
    Trials,
    by_columns,
    learn_batch,
    local_field,
    neutral,
    protocol_named,
    relax,
    run_trials,
)
from rmsim.studies.capacity_sweep import (
    CapacityStatus,
    Design,
    analyse,
    bracket_capacity,
    gather,
    half_learnt,
    monotone_fit,
    overlaps_by_layer,
    p_max,
    slope,
    smooth,
    sweep_of,
)
from rmsim.sweep import Serial, run_sweep
from rmsim.tensors import generator
from rmtheory import InvalidInputError

pytestmark = pytest.mark.numerical

#: Protocol, batch and threads.
TABLE_CASES = [("reconstruction", 16, 1), ("printed", 16, 2), ("reconstruction", 5, 2)]

SHORT = PROTOCOLS["reconstruction"].with_settings(max_epochs=30)


def _spins(*shape: int, seed: int = 0) -> torch.Tensor:
    return 2.0 * torch.randint(2, shape, generator=generator(seed)).double() - 1.0


def _couplings(layers: int, n: int, jd: float) -> torch.Tensor:
    j = torch.randn(1, layers, n, n, generator=generator(1), dtype=torch.float64) / math.sqrt(n)
    j.diagonal(dim1=-2, dim2=-1).fill_(jd)
    return j


@pytest.mark.parametrize("name", PROTOCOLS)
def test_one_batch_is_the_rule_written_out(name: str) -> None:
    """Neuron by neuron, pair by pair, on a chain of three."""
    protocol = protocol_named(name).with_settings(p=1.0, batch=4)
    couplings = protocol.couplings
    layers, n, pairs = 3, 7, 4
    x, y = _spins(1, pairs, n, seed=2), _spins(1, pairs, n, seed=3)
    j = _couplings(layers, n, protocol.couplings.jd)
    weight = torch.tensor([[1.0, 1.0, 1.0, 0.0]], dtype=torch.float64)  # the last only fills
    wanted = j[0].clone().numpy()
    change = np.zeros_like(wanted)
    for mu in range(3):
        xs, ys = x[0, mu].numpy(), y[0, mu].numpy()

        def field_of(s: np.ndarray, right: bool, xs: np.ndarray = xs) -> np.ndarray:
            h = np.zeros((layers, n))
            for level in range(layers):
                for i in range(n):
                    h[level, i] = wanted[level, i] @ s[level]
                    left = couplings.lam * s[level - 1, i] if level else couplings.lam_x * xs[i]
                    h[level, i] += left
                    if right and level + 1 < layers:
                        h[level, i] += protocol.couplings.lam * s[level + 1, i]
            return h

        s = np.zeros((layers, n))
        for sweep in range(layers + protocol.phases.clamped_sweeps + protocol.phases.free_sweeps):
            h = field_of(s, right=True)
            if layers <= sweep < layers + protocol.phases.clamped_sweeps:
                h[-1] += protocol.couplings.lam_y * ys
            s = np.sign(h)
        h = field_of(s, protocol.rule.right_in_rule)
        for level in range(layers):
            for i in range(n):
                if s[level, i] * h[level, i] <= protocol.rule.kappa:
                    change[level, i] += s[level, i] * s[level]
    eta = protocol.rule.eta / math.sqrt(n * protocol.rule.batch)
    change[:, np.arange(n), np.arange(n)] = 0
    learn_batch(protocol, j, x, y, weight, generator(0))
    assert np.abs(change).max() > 0
    assert np.allclose(j[0].numpy(), wanted + eta * change, atol=1e-12)
    assert bool((j.diagonal(dim1=-2, dim2=-1) == protocol.couplings.jd).all())


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("many", [0.0, 2.0])
def test_flips_against_products(name: str, many: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """States and fields of two trials: whole layers or single neurons are corrected."""
    monkeypatch.setattr(capacity, "_MANY", many)
    protocol = protocol_named(name)
    one = _couplings(3, 40, protocol.couplings.jd)
    j = torch.cat([one, -one])
    x, y = _spins(2, 5, 40, seed=2), _spins(2, 5, 40, seed=3)
    motions = [capacity.Motion(protocol, j, x), capacity.Flips(protocol, by_columns(j), x)]
    for sweeps, right, target in ((3, True, None), (6, True, y), (4, False, None)):
        for motion in motions:
            motion.relax(sweeps, right=right, y=target, draw=generator(sweeps))
        assert torch.equal(motions[0].s, motions[1].s)
        fields = [motion.field(right=right) for motion in motions]
        assert torch.allclose(*fields, rtol=0, atol=1e-12)
    assert bool((motions[0].s != 0).all())


def _watched(monkeypatch: pytest.MonkeyPatch, margins: list[float]) -> None:
    """Let products note how near to 0 the fields of neurons come that have one."""
    computed = capacity.local_field

    def noted(*arguments: Any, **named: Any) -> torch.Tensor:
        h = computed(*arguments, **named)
        margins.append(float(h[h != 0].abs().min()))
        return h

    monkeypatch.setattr(capacity, "local_field", noted)
    monkeypatch.setattr(capacity, "moving", capacity.Motion)


@pytest.mark.parametrize(("name", "batch", "threads"), TABLE_CASES)
def test_tables_learn_and_recall_as_products_in_double_precision(
    name: str, batch: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Layers that are no multiple of 32 or of 4, a smaller last batch, a free phase, threads."""
    protocol = protocol_named(name).with_settings(p=1.0, batch=batch, kappa=1.0)
    layers, n, pairs = 4, 45, 21
    monkeypatch.setattr(capacity_tables, "thread_count", lambda work, grain: threads)
    margins: list[float] = []
    _watched(monkeypatch, margins)
    j = _couplings(layers, n, protocol.couplings.jd).float()
    x, y = _spins(pairs, n, seed=2), _spins(pairs, n, seed=3)
    tables = capacity_tables.PairTables(protocol, layers, n)
    panels, exact = tables.panelled(j), j.double()
    for epoch in range(2):
        order = torch.randperm(pairs, generator=generator(epoch))
        tables.learn(panels[0], x.float(), y.float(), order)
        for chosen in order.split(batch):
            weight = torch.ones(1, len(chosen), dtype=torch.float64)
            learn_batch(protocol, exact, x[None, chosen], y[None, chosen], weight, generator(0))
    learnt = np.empty((layers, n, n), np.float32)
    from_panels(panels[0].numpy(), learnt)
    bare = exact[0].clone()
    bare.diagonal(dim1=-2, dim2=-1).fill_(0)
    assert float((bare - j[0]).abs().max()) > 0.01
    assert np.abs(learnt - bare.numpy()).max() < 1e-6  # one gate more or less is 1e-3
    motion = capacity.Motion(protocol, exact, _spins(1, 66, n, seed=4))
    right = protocol.phases.right_at_inference
    motion.relax(protocol.phases.inference_sweeps + layers, right=right)
    assert torch.equal(tables.recall(panels[0], motion.x[0].float()).double(), motion.s[0])
    assert min(margins) > 2e-6, min(margins)  # so that rounding decides nothing


@pytest.mark.parametrize(("n", "pairs", "scale"), [(75, 40, 1.0), (200, 100, 30.0)])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_products_of_every_other_state_change_no_bit(
    name: str, n: int, pairs: int, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights and recalled states, whether rounding might decide nowhere, somewhere, everywhere.

    Of couplings 30 times as large it does decide in places, if nothing is summed again.
    """
    protocol = protocol_named(name).with_settings(p=1.0)
    layers = 5
    j = scale * _couplings(layers, n, protocol.couplings.jd).float()
    x, y = _spins(pairs, n, seed=2).float(), _spins(pairs, n, seed=3).float()
    results = []
    for deep, near in ((layers + 1, 0.0), (layers, 2.0**-13), (layers, 0.1), (layers, 1e9)):
        monkeypatch.setattr(capacity_tables, "_DEEP", deep)
        monkeypatch.setattr(capacity_tables, "_NEAR", near)
        tables = capacity_tables.PairTables(protocol, layers, n)
        panels = tables.panelled(j)
        for epoch in range(3):
            order = torch.randperm(pairs, generator=generator(epoch))
            tables.learn(panels[0], x, y, order)
        results.append((panels, tables.recall(panels[0], x)))
    assert not torch.equal(results[0][0], tables.panelled(j))
    for panels, states in results[1:]:
        assert torch.equal(panels, results[0][0])
        assert torch.equal(states, results[0][1])


def test_trials_by_tables_are_those_by_flips(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several trials, of which some have learnt before others."""
    results = []
    for route in (capacity.has_tables, lambda *given: False):
        monkeypatch.setattr(capacity, "has_tables", route)
        protocol = PROTOCOLS["reconstruction"].with_settings(max_epochs=40, check_every=5)
        results.append(run_trials(protocol, 3, 40, range(4), 1, loads=(0.1, 0.5)))
    assert len(set(results[0].epochs.tolist())) > 1
    for part in (field.name for field in fields(Trials)):
        assert np.array_equal(*(getattr(one, part) for one in results)), part


def test_input_reaches_one_layer_a_sweep_and_neutral_neurons_stay_neutral() -> None:
    protocol = PROTOCOLS["reconstruction"]
    x, j = _spins(1, 5, 6), _couplings(4, 6, 0.1)
    s = neutral(j, x)
    for sweeps in range(4):
        reached = (relax(protocol, j, s, x, sweeps) != 0).all(dim=(0, 2, 3))
        assert reached.tolist() == [level < sweeps for level in range(4)]
    # The field from the right is the only difference.
    s = _spins(1, 4, 5, 6, seed=9)
    both, left = (local_field(protocol, j, s, x, right=right) for right in (True, False))
    assert torch.allclose((both - left)[:, :-1], protocol.couplings.lam * s[:, 1:])
    assert torch.equal(both[:, -1], left[:, -1])


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_trial_is_the_same_whatever_it_is_computed_with(name: str) -> None:
    protocol = protocol_named(name).with_settings(max_epochs=3, check_every=3)
    together = run_trials(protocol, 2, 16, range(3), 5, loads=(0.2, 0.8))
    alone = run_trials(protocol, 2, 16, [1], 5, loads=(0.2, 0.8))
    assert together.patterns[1] == alone.patterns[0]
    assert 3 <= together.patterns.min() <= together.patterns.max() <= 13
    for part in ("o5", "epochs", "median", "low", "high"):
        assert np.array_equal(getattr(together, part)[1], getattr(alone, part)[0])
    other = run_trials(protocol, 2, 16, [1], 6, loads=(0.2, 0.8))
    assert not np.array_equal(other.median, alone.median)


def test_depth_makes_the_task_learnable() -> None:
    """Eighteen pairs in sixty neurons: three modules learn them, one cannot."""
    protocol = PROTOCOLS["reconstruction"]
    shallow, deep = (
        run_trials(protocol, layers, 60, range(2), 0, loads=(0.3, 0.3)) for layers in (1, 3)
    )
    assert (deep.patterns == 18).all()
    assert (deep.median[:, -1] > 0.95).all()
    assert (shallow.median[:, -1] < 0.5).all()
    # The last layer is the one that was taught, the first knows least of the target.
    assert (deep.median[:, -1] > deep.median[:, 0]).all()
    assert (deep.low <= deep.median).all()
    assert (deep.median <= deep.high).all()


def _curve(p: np.ndarray, edge: float, width: float = 6.0) -> np.ndarray:
    """One up to `edge`, 0.95 there, falling beyond."""
    return 1 - 0.05 * np.exp((p - edge) / width)


def test_p_max_is_where_the_curve_crosses_and_its_error_is_honest() -> None:
    draw = np.random.default_rng(0)
    result = []
    for again in range(30):
        p = draw.integers(40, 81, 30)
        o5 = np.minimum(_curve(p, 62.0) + draw.normal(0, 0.02, p.size), 1.0)
        result.append(p_max(p, o5, bootstrap=60, seed=again))
    assert all(one.status is CapacityStatus.FOUND for one in result)
    values, errors = np.array([(one.value, one.error) for one in result]).T
    assert abs(values.mean() - 62) < 1.0
    assert 0.5 < np.median(errors) / values.std() < 2.0


@pytest.mark.parametrize("start", [0.2, 0.5, 0.9])
def test_a_capacity_is_enclosed_from_any_start(
    start: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trials that learn up to 123 pairs, whatever the couplings."""
    asked = []

    def trials(*given: Any, loads: tuple[float, float]) -> Any:
        low, high = loads
        asked.append((math.ceil(200 * low), given))
        assert asked[-1][0] == math.floor(200 * high)
        return SimpleNamespace(o5=[0.99 if asked[-1][0] <= 123 else 0.9])

    monkeypatch.setattr(capacity_sweep, "run_trials", trials)
    protocol = protocol_named("reconstruction")
    found = bracket_capacity(protocol, 3, 200, 7, 1, start=start)
    assert found.learnt <= 123 < found.failed
    assert found.failed - found.learnt <= 3  # 0.015 N
    assert found.patterns[0] == round(200 * start)
    assert list(found.patterns) == [patterns for patterns, _ in asked]
    assert all(given[1:] == (3, 200, [7], 1) for _, given in asked)
    for o5, sentence in ((0.0, "learn one pair"), (1.0, "do not learn 4 pairs each")):
        always = SimpleNamespace(o5=[o5])
        monkeypatch.setattr(capacity_sweep, "run_trials", lambda *_, loads, one=always: one)
        with pytest.raises(InvalidInputError, match=sentence):
            bracket_capacity(protocol, 3, 200, 7, 1, start=start)
    with pytest.raises(InvalidInputError, match="resolution must be a positive number"):
        bracket_capacity(protocol, 3, 200, 7, 1, start=start, resolution=0)


def _bracket(
    load: float, centre: float, trials: list[tuple[float, bool]], draw: np.random.Generator
) -> None:
    """Enclose a load from one start on, by trials that succeed by luck."""

    def learns(at: float) -> bool:
        hit = bool(draw.random() < 1 / (1 + math.exp((at - centre) / 0.02)))
        trials.append((at, hit))
        return hit

    ends: dict[bool, float] = {}
    while len(ends) < 2:
        hit = learns(load)
        ends[hit] = load
        load += 0.06 if hit else -0.06
    while ends[False] - ends[True] > 0.015:
        middle = (ends[False] + ends[True]) / 2
        ends[learns(middle)] = middle


@pytest.mark.parametrize("start", [0.42, 0.58])
def test_what_half_of_the_trials_learn_has_an_honest_error(start: float) -> None:
    """Brackets of three networks from one side, success by luck within 0.02 N and networks 0.01."""
    draw = np.random.default_rng(1)
    deviations = []
    for _ in range(60):
        trials: list[tuple[float, bool]] = []
        for _ in range(3):
            _bracket(start, 0.5 + 0.01 * draw.normal(), trials, draw)
        loads, learnt = zip(*trials, strict=True)
        value, error = half_learnt(loads, learnt)
        deviations.append((value - 0.5) / error)
    assert abs(np.mean(deviations)) < 0.5
    assert 0.4 < np.std(deviations) < 1.4
    with pytest.raises(InvalidInputError, match="some were learnt, others not"):
        half_learnt([0.5, 0.6], [True, True])
    with pytest.raises(InvalidInputError, match="2 finite numbers"):
        half_learnt([0.5], [True, False])


def test_spline_is_that_of_scipy() -> None:
    draw = np.random.default_rng(4)
    p = np.sort(draw.choice(np.arange(40.0, 90.0), 25, replace=False))
    values = np.cos(p / 12) + draw.normal(0, 0.1, p.size)
    for lam in (0.1, 10.0, 1e3):
        x, ours = smooth(p, values, lam)
        assert np.allclose(ours, make_smoothing_spline(p, values, lam=lam)(x), atol=1e-8)
    # Both choose the penalty by cross-validation, on a grid and by a search; the noise is 0.1.
    x, ours = smooth(p, values)
    assert np.std(ours - make_smoothing_spline(p, values)(x)) < 0.02
    twice = np.repeat(p, 2), np.stack([values - 0.3, values + 0.3], axis=1).ravel()
    assert np.allclose(smooth(*twice, 20.0)[1], smooth(p, values, 10.0)[1])


@pytest.mark.parametrize(
    ("edge", "trials", "status"),
    [
        (20.0, 30, CapacityStatus.BELOW),
        (200.0, 30, CapacityStatus.ABOVE),
        (60.0, 4, CapacityStatus.FEW),
    ],
)
def test_p_max_says_why_there_is_none(edge: float, trials: int, status: CapacityStatus) -> None:
    p = np.linspace(40, 80, trials)
    result = p_max(p, _curve(p, edge))
    assert (result.status, math.isnan(result.value)) == (status, True)


def test_a_few_lucky_trials_are_no_capacity() -> None:
    p = np.arange(40, 48)
    o5 = np.array([0.9, 0.9, 0.9, 0.9, 0.96, 0.9, 0.9, 0.9])
    # One of eight reaches the target, and not at the lowest P: luck, all P are too large.
    assert p_max(p, o5).status is CapacityStatus.BELOW


def test_slope_is_the_weighted_line() -> None:
    draw = np.random.default_rng(1)
    n, error = np.array([60.0, 80, 100, 140]), np.array([1.0, 2.0, 1.0, 3.0])
    fits = []
    for _ in range(300):
        y = -10 + 0.7 * n + draw.normal(0, error)
        fit = slope(n, y, error)
        assert fit is not None
        fits.append((fit.alpha, fit.intercept, fit.chi2))
        assert fit.alpha == pytest.approx(np.polyfit(n, y, 1, w=1 / error)[0])
    assert fit is not None
    alpha, intercept, chi2 = np.array(fits).T
    assert abs(alpha.mean() - 0.7) < 4 * fit.alpha_error / math.sqrt(300)
    assert alpha.std() == pytest.approx(fit.alpha_error, rel=0.15)
    assert intercept.std() == pytest.approx(fit.intercept_error, rel=0.15)
    assert chi2.mean() == pytest.approx(fit.dof, rel=0.2)
    assert slope([60, 80], [math.nan, 40.0], [math.nan, 1.0]) is None


def test_sweep_is_extended_not_repeated(tmp_path: Path) -> None:
    few = Design((2,), (12, 14), 2, loads=(0.2, 0.6), max_epochs=2, device="cpu", batch=2)
    more = replace(few, trials=6)
    assert run_sweep(sweep_of(few, 3), tmp_path, Serial()).computed == 2
    report = run_sweep(sweep_of(more, 3), tmp_path, Serial())
    assert (report.kept, report.computed) == (2, 4)
    raw = gather(tmp_path, sweep_of(more, 3))
    assert raw.sizes["trial"] == 12
    expected = run_trials(
        SHORT.with_settings(max_epochs=2),
        2,
        14,
        range(6),
        sweep_of(more, 3).point_seed(
            {**more.grid().fixed, "protocol": "reconstruction", "loads": "0.2:0.6"}
            | {"layers": 2, "n": 14, "trials": "0:2"}
        ),
        loads=(0.2, 0.6),
    )
    stored = raw.isel(trial=np.flatnonzero(raw["n"].values == 14))
    assert np.allclose(stored["o5"].values, expected.o5)
    data = analyse(raw)
    assert data["trials"].values.tolist() == [[[6, 6]]]
    assert set(data["status"].values.ravel()) <= {str(status) for status in CapacityStatus}
    by_layer = overlaps_by_layer(raw, "reconstruction", 2, 14)
    assert by_layer["overlap_median"].shape == (2,)
    same = raw.assign(overlap_median=xr.ones_like(raw["overlap_median"]))
    agreed = overlaps_by_layer(same, "reconstruction", 2, 14)["overlap_median_error"]
    assert agreed.values.tolist() == [2 / (14 * 6)] * 2  # one spin of one trial


@pytest.mark.usefixtures("points_here")
def test_commands_answer_in_json_and_resume(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--layers", "2", "--n", "12", "--trials", "5", "--loads", ".2:.9", "--jobs", "1"]
    arguments += ["--max-epochs", "2", "--out", str(tmp_path), "--plot", "--device", "cpu"]
    assert run(["capacity", *arguments, "--json"]) == 0
    captured = capsys.readouterr()
    answer = json.loads(captured.out)
    (row,) = answer["rows"]
    assert (row["layers"], row["n"], row["trials"]) == (2, 12, 5)
    assert row["status"] in set(CapacityStatus)
    assert (row["p_max"] is None) == (row["status"] != "found")
    assert "1 computed" in captured.err
    assert (tmp_path / "capacity.png").read_bytes()[:4] == b"\x89PNG"
    assert run(["overlaps", *arguments]) == 0
    captured = capsys.readouterr()
    assert "overlap_median" in captured.out
    assert "1 kept, 0 computed" in captured.err
    assert (tmp_path / "overlaps.png").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["capacity", "--n", "20", "--out", "D"], "layers must be given"),
        (["capacity", "--layers", "2", "--n", "20"], "out must be given"),
        (["capacity", "--layers", "0", "--n", "20", "--out", "D"], "layers must be"),
        (["capacity", "--layers", "2", "--n", "9", "--loads", "1", "--out", "D"], "loads must be"),
        (
            ["capacity", "--layers", "2", "--n", "9", "--loads", ".4:.9:4", "--out", "D"],
            "loads must be two numbers, as in 0.5:1, got .4:.9:4",
        ),
        (["capacity", "--layers", "2", "--n", "9", "--loads", "1:.5", "--out", "D"], "the lower"),
        (["capacity", "--layers", "2", "--n", "9", "--protocol", "x", "--out", "D"], "one of rec"),
        (["overlaps", "--layers", "2,3", "--n", "9", "--out", "D"], "one value each"),
    ],
)
def test_bad_input_is_one_line_and_code_2(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([str(tmp_path / "d") if a == "D" else a for a in arguments]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="o5"):
        p_max([1, 2, 3], [0.5, 0.5])
    with pytest.raises(InvalidInputError, match="finite"):
        p_max([1, 2], [0.5, math.nan])
    with pytest.raises(InvalidInputError, match="loads"):
        run_trials(SHORT, 2, 10, [0], 0, loads=(0.9, 0.5))
    with pytest.raises(InvalidInputError, match="p must be"):
        SHORT.with_settings(p=0.0)


def test_trials_that_do_not_determine_p_max_say_so() -> None:
    """O_5 = 1 at the largest P only: lower loads would not help, and the fit stays below 1."""
    patterns = [16, 18, 20, 22, 24]
    capacity = p_max(patterns, [0.5, 0.5, 0.5, 0.5, 1.0])
    assert capacity.status is CapacityStatus.UNDETERMINED
    assert math.isnan(capacity.value)
    assert p_max(patterns, [0.5, 0.4, 0.5, 0.3, 0.2]).status is CapacityStatus.BELOW
    assert p_max(patterns, [1.0, 1.0, 0.97, 1.0, 0.96]).status is CapacityStatus.ABOVE


def test_the_fit_decreases_and_is_an_overlap() -> None:
    """A step makes a spline overshoot beyond 1; the fit does not, and has an error."""
    P = np.repeat(np.arange(20, 41), 3)
    noise = np.random.default_rng(0).normal(0, 0.02, P.size)
    o5 = np.minimum(np.where(P < 30, 1.0, 0.3) + noise, 1)
    _, fit, error = monotone_fit(P, o5, bootstrap=40)
    assert np.all(np.diff(fit) <= 0)
    assert fit.max() <= 1
    assert 0 < error.max() < 0.5
    with pytest.raises(InvalidInputError, match=r"^patterns must be one for each trial"):
        monotone_fit([1, 2], [1, 1])


def test_a_lucky_trial_leaves_the_advice() -> None:
    """One of eight decides nothing; one of seven, or two of eight, leave it open."""
    low, high, p = 0.5, 1.0, np.arange(16, 32, 2)
    for lucky in range(1, 8):  # at the least P the fit would cross
        o5 = np.full(8, low)
        o5[lucky] = high
        assert p_max(p, o5).status is CapacityStatus.BELOW, lucky
        if lucky > 1:
            assert p_max(p[1:], o5[1:]).status is CapacityStatus.UNDETERMINED, lucky
    unlucky = np.full(8, high)
    unlucky[2] = 0.8  # the decreasing fit crosses, but not in every bootstrap sample
    assert math.isnan(p_max(p, unlucky).value)
    two = np.array([low, low, low, high, low, low, low, high])
    assert p_max(p, two).status is CapacityStatus.UNDETERMINED
