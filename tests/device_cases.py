"""Every entry point of the simulator, small, as a function of the device: see test_gpu.py.

A case has the name of its row in docs/gpu.md, and the number k that the row counts by.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rmsim.cli import run as command_line
from rmsim.couplings import Topology, couplings_on, draw, draw_blocks, draw_dense, draw_on
from rmsim.data import synthetic
from rmsim.dynamics import (
    least_margins,
    margins,
    random_starts,
    relax,
    returns_after,
)
from rmsim.enumeration import enumerate_fixed_points
from rmsim.learning import (
    Parameters,
    State,
    Wiring,
    accuracy,
    batch_step,
    infer,
    initialise,
    measure,
    predict,
    present,
    state_of,
    state_of_matrices,
    symmetry_level,
    train_epoch,
)
from rmsim.learning.baselines import (
    MlpParameters,
    fit_mlp,
    frozen_features,
    reservoir_parameters,
)
from rmsim.learning.estimator import RMClassifier
from rmsim.learning.phases import label_code
from rmsim.learning.presets import (
    MEASURED_AT,
    dense_recipe,
    literal_recipe,
    overlap_recipe,
    sparse_recipe,
)
from rmsim.learning.readout import (
    PerceptronParameters,
    ProbeParameters,
    checked_features,
    fit_perceptron,
    fit_probe,
)
from rmsim.learning.run_folder import Folder, Plan, load_checkpoint
from rmsim.learning.training import Metrics, load_probe, train_probe
from rmsim.learning.training import evaluate as evaluate_run
from rmsim.learning.training import train as train_in
from rmsim.network import Network
from rmsim.search import (
    belief_propagation,
    dense_belief_propagation,
    planted,
    random_fields,
    reinforce,
)
from rmsim.search.focusing import focus
from rmsim.search.likelihood import optimise
from rmsim.search.methods import find_fixed_point
from rmsim.search.reinforced import Schedule
from rmsim.search.tap_entropy import local_entropy_around, reference_point
from rmsim.studies import capacity_sweep as capacity
from rmsim.studies.device_theory import mean_field
from rmsim.studies.landscape_survey import (
    Survey,
    attractors_of,
    curvature,
    displacement,
    landscape,
    survey,
    trajectory_distances,
)
from rmsim.studies.trained_networks import benchmark, linear_accuracy, trained, two_layers
from rmsim.sweep.definition import Measured, Task, decode
from rmsim.sweep.running import evaluate
from rmsim.tensors import generator
from rmtheory.base.chain import Chain
from tests.learning_cases import identity_chain, task

#: Iterations between two questions to a GPU, as `rmsim.tensors.checked_sync_interval` has them.
INTERVAL = 16


@dataclass(frozen=True)
class Case:
    """What is tried: the row of the table, a name within it, the number k, and the call."""

    row: str
    name: str
    k: int
    call: Callable[[str], Any]

    def __str__(self) -> str:
        return f"{self.row} {self.name}".strip()


CASES: list[Case] = []

Call = Callable[[str], Any]


def case(row: str, name: str = "", k: int = 0) -> Callable[[Call], Call]:
    """Enter a function as a case."""

    def enter(call: Call) -> Call:
        CASES.append(Case(row, name, k, call))
        return call

    return enter


def syncs(iterations: int) -> int:
    """Return how often a loop of so many iterations waits for its device."""
    return math.ceil(iterations / INTERVAL)


# Couplings and dynamics ---------------------------------------------------------------------------

N = 30
CHAIN = Network(N, Chain(2, 0.8, 0.3))
DILUTED = Network(N, Chain(2, 0.8, 0.3), rho=0.3)
SAMPLES = range(3)
ADJACENT = torch.rand(N, N, generator=generator(1)) < 0.3
ADJACENT.fill_diagonal_(False)
FIELD = 0.3 * torch.randn(3, 2, 2, N, generator=generator(3))


def _starts(device: str, layers: int = 2) -> torch.Tensor:
    return random_starts(0, SAMPLES, 2, layers, N, device)


def _fields(couplings: Any, device: str, layers: int = 2) -> list[torch.Tensor]:
    s = random_starts(0, SAMPLES, 2, layers, couplings.n, device).float()
    return [
        *(couplings.field(s), couplings.field(s.double()), couplings.field(s, layer=0)),
        *(margins(couplings, s), least_margins(couplings, s)),
    ]


for _name, _network in {
    "dense": CHAIN,
    "symmetric": Network(N, Chain(2, 0.8, 0.3), symmetric=True),
    "diluted": DILUTED,
    "diluted symmetric": Network(N, Chain(2, 0.8, 0.3), rho=0.3, symmetric=True),
}.items():

    @case("`draw`, `field`, `margins`", _name, k=len(SAMPLES) * (_network.rho < 1))
    def _(device: str, network: Network = _network) -> Any:
        return _fields(draw(network, 0, SAMPLES, device=device), device)


@case("`draw`, `field`, `margins`", "blocks")
def _(device: str) -> Any:
    topology = Topology.fully_connected_chain(2, 0.3).with_skip(0, 1, identity=0.2)
    return _fields(draw_blocks(topology, N, 0.5, 0, SAMPLES, device=device), device)


@case("`draw`, `field`, `margins`", "adjacency", k=1)
def _(device: str) -> Any:
    drawn = draw_on(ADJACENT, 0.5, 0, SAMPLES, device=device)
    J = torch.randn(3, N, N, generator=generator(0)).to(device)
    given = couplings_on(ADJACENT.to(device), J, 0.5)
    return [_fields(drawn, device, 1), _fields(given, device, 1)]


def _relaxed(found: Any) -> list[torch.Tensor]:
    return [found.status, found.iterations, found.period, found.min_margin, found.state]


_SWEEPS = 64
for _name, _network in {"dense": CHAIN, "diluted": DILUTED}.items():
    for _how, _options in {
        "synchronous": {},
        "sequential": {"update": "sequential"},
        "masked": {"p": 0.5},
        "external field": {"external": FIELD},
    }.items():

        @case("`relax`", f"{_name} {_how}", k=syncs(_SWEEPS))
        def _(device: str, network: Network = _network, options: dict[str, Any] = _options) -> Any:
            couplings = draw(network, 0, SAMPLES, device=device)
            return _relaxed(relax(couplings, _starts(device), max_sweeps=_SWEEPS, **options))


@case("`relax`", "adjacency, starts on the CPU", k=syncs(_SWEEPS))
def _(device: str) -> Any:
    couplings = draw_on(ADJACENT, 0.9, 0, SAMPLES, device=device)
    return _relaxed(relax(couplings, _starts("cpu", 1), max_sweeps=_SWEEPS))


@case("`relax`", "samples", k=syncs(_SWEEPS))
def _(device: str) -> Any:
    result = relax(CHAIN, samples=3, starts=2, max_sweeps=_SWEEPS, device=device)
    assert torch.device(result.device).type == device
    return _relaxed(result)


@case("`returns_after`")
def _(device: str) -> Any:
    return returns_after(draw(CHAIN, 0, SAMPLES, device=device), _starts(device).float(), 2)


for _name, _options in {"masked": {"p": 0.8}, "all at once": {"correlation": True}}.items():

    @case("`mean_field`", _name, k=20)
    def _(device: str, options: dict[str, Any] = _options) -> Any:
        found = mean_field(Chain(2, 0.5, 0.3), 6, trajectories=2000, device=device, **options)
        return [
            *(found.flip_rate.value, found.overlap_with_start.value, found.unstable.error),
            *(found.margins.value, found.never_moved.value),
            None if found.correlation is None else found.correlation.value,
        ]


@case("`enumerate_fixed_points`", k=1)
def _(device: str) -> Any:
    J = draw_dense(Network(12, Chain(1, 0.4)), 0, range(1), device=device).matrices[0]
    result = enumerate_fixed_points(J, 0.4, method="dense", device=device, keep_states=True)
    return [result.count, result.packed, result.near_ties]


# Message passing ----------------------------------------------------------------------------------

_CAP = 17


def _couplings(device: str, jd: float = 0.8, layers: int = 2, samples: int = 2) -> Any:
    network = Network(N, Chain(layers, jd, 0.3 if layers > 1 else None))
    return draw_dense(network, 0, range(samples), dtype=torch.float64, device=device)


for _name in ("rank-one", "exact"):

    @case("`belief_propagation`", _name, k=syncs(_CAP))
    def _(device: str, variances: str = _name) -> Any:
        start, field = random_fields(1, range(2), 2, N), 0.1 * random_fields(2, range(2), 2, N)
        found = belief_propagation(
            _couplings(device),
            start=start,
            field=field,
            external=field.to(device),
            variances=variances,
            max_iterations=_CAP,
        )
        return [found.status, found.iterations, found.m, found.free_entropy, found.pair]


@case("`dense_belief_propagation`", k=2 * syncs(_CAP))
def _(device: str) -> Any:
    start = random_fields(1, range(2), 2, N, device=device)
    result = dense_belief_propagation(_couplings(device), start=start, max_iterations=_CAP)
    return [result.status, result.iterations, result.m, result.free_entropy, result.entropy]


def _searched(found: Any) -> list[Any]:
    return [found.status, found.iterations, found.attempts, found.state, found.min_margin]


@case("`reinforce`, `optimise`", "rbp", k=2 * syncs(_CAP))
def _(device: str) -> Any:
    field = 0.05 * random_fields(2, range(2), 2, N)
    return _searched(
        reinforce(
            _couplings(device),
            Schedule(dr=0.05),
            restarts=1,
            max_iterations=_CAP,
            field=field,
            external=field.to(device),
        )
    )


@case("`reinforce`, `optimise`", "likelihood", k=syncs(_CAP))
def _(device: str) -> Any:
    return _searched(optimise(_couplings(device, 0.6), max_iterations=_CAP))


@case("`reinforce`, `optimise`", "rbp of samples", k=1)
def _(device: str) -> Any:
    result = find_fixed_point(CHAIN, "rbp", samples=2, max_iterations=4, device=device)
    assert torch.device(result.device).type == device
    return _searched(result)


@case("`focus`", k=1)
def _(device: str) -> Any:
    result = focus(_couplings(device, layers=1, samples=1), 4, 0.1, max_iterations=4)
    return _searched(result)


for _name, _settings in {
    "bp": {"max_iterations": 4},
    "rbp": {"max_iterations": 4, "restarts": 1},
    "dynamics": {"max_iterations": 16, "restarts": 1},
    "likelihood": {"max_iterations": 4},
    "fbp": {"max_iterations": 4, "gamma": 0.1},
    "dense_bp": {"max_iterations": 2},
}.items():

    @case("`find_fixed_point`", _name, k=2)
    def _(device: str, name: str = _name, settings: dict[str, Any] = _settings) -> Any:
        network = Network(20, Chain(1, 0.8))
        found = find_fixed_point(network, name, dtype="float64", device=device, **settings)
        return [*_searched(found), found.unsatisfied, found.quantities]


for _name in ("planted", "dynamics"):

    @case("`local_entropy_around`", _name, k=1)
    def _(device: str, source: str = _name) -> Any:
        network = Network(N, Chain(1, 0.8))
        couplings, state = reference_point(network, source, dtype="float64", device=device)
        assert couplings.device.type == device
        found = local_entropy_around(couplings, state, (0.3,))
        return [found.d, found.entropy, found.mutual]


@case("`plant`")
def _(device: str) -> Any:
    sample = planted.plant(Network(N, Chain(1, 0.8)), generator(0, 0, 0))
    return [sample.J, sample.state, planted.single_flips(sample), planted.pair_flips(sample)]


# Learning -----------------------------------------------------------------------------------------

_INPUTS, _LABELS = task(32, 20, 3)
_CODES = torch.where(torch.randn(32, 20, generator=generator(5)) > 0, 1.0, -1.0)
_ORDER = torch.randperm(32, generator=generator(2))


def _free(parameters: Parameters, state: State, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return s* of a batch as `present` takes it, which asks for tensors like the weights."""
    inputs = x.to(device=state.device, dtype=state.dtype)
    return present(parameters, state, inputs, label_code(parameters, state, y)).free.s


def _learnt(parameters: Parameters, device: str, **options: Any) -> dict[str, Any]:
    """Train, look in every way, and store; data where the weights are not."""
    codes, wiring = options.get("codes", False), options.get("wiring")
    data = options.get("data", "cpu")
    x, y = _INPUTS.to(data), (_CODES if codes else _LABELS).to(data)
    classes = parameters.couplings.n if codes else 3
    state = initialise(parameters, 20, classes, 0, wiring=wiring, device=device)
    assert state.device.type == device
    state = train_epoch(parameters, state, x, y, _ORDER)
    state, _ = batch_step(parameters, state, x[:5], y[:5])
    result = {
        "j": state.dense_j(),
        "w_in": state.w_in.to_dense(),
        "w_out": state.w_out,
        "s": infer(parameters, state, x),
        "q_dyn": measure(parameters, state, x, y).q_dyn.median,
        "symmetry": symmetry_level(state),
        "free": _free(parameters, state, x[:5], y[:5]),
        "again": infer(parameters, state_of(parameters, state.tensors(), 0, 3), x),
    }
    if len(state.w_out) and not codes:
        result["classes"] = predict(parameters, state, x)
        result["accuracy"] = accuracy(parameters, state, x, y)
    return result


_RECIPES = {
    "dense": dense_recipe(N, classes=3),
    "dense masked": dense_recipe(N, classes=3, p=0.7),
    "dense until convergence": overlap_recipe(N, classes=3),
    "sparse": sparse_recipe(N, classes=3, rho_j=0.3, rho_in=0.5),
    "sparse masked, tanh": sparse_recipe(
        N, classes=3, rho_j=0.3, rho_in=0.5, p=0.7, rule="tanh", gamma=2.0
    ),
    "sparse symmetric": sparse_recipe(N, classes=3, rho_j=0.3, rho_in=0.5, symmetry="sym2"),
    "dense symmetric": dense_recipe(N, classes=3, symmetry="sym1"),
    "chain, sequential": dense_recipe(
        12, classes=3, layers=3, lam_left=0.5, lam_right=0.3, update="sequential", p=0.8
    ),
    "sparse chain": sparse_recipe(
        12, classes=3, layers=3, lam_left=0.5, lam_right=0.3, rho_j=0.4, rho_in=0.5
    ),
    "shared back-projections": dense_recipe(
        12, classes=3, layers=2, lam_left=0.5, lam_right=0.3, shared_back=True, label_to="all",
        decay_j=0.01, decay_in=0.01, decay_out=0.01,
    ),
    "learnt back-projections": dense_recipe(N, classes=3, eta_back=0.01),
    "literal": literal_recipe(N),
}  # fmt: skip

for _name, _recipe in _RECIPES.items():

    @case("`train_epoch`, `infer`, `measure`", _name, k=math.ceil(32 / _recipe.batch.size))
    def _(device: str, parameters: Parameters = _recipe) -> Any:
        return _learnt(parameters, device)


for _name in ("dense", "sparse"):

    @case("`train_epoch`, `infer`, `measure`", f"{_name}, data on the device", k=2)
    def _(device: str, parameters: Parameters = _RECIPES[_name]) -> Any:
        return _learnt(parameters, device, data=device)

    @case("`train_epoch`, `infer`, `measure`", f"{_name}, only the data on the device", k=2)
    def _(device: str, parameters: Parameters = _RECIPES[_name]) -> Any:
        return _learnt(parameters, "cpu", data=device)


@case("`train_epoch`, `infer`, `measure`", "adjacency", k=2)
def _(device: str) -> Any:
    return _learnt(dense_recipe(N, classes=3), device, wiring=Wiring(adjacency=ADJACENT))


@case("`train_epoch`, `infer`, `measure`", "hetero-association", k=2)
def _(device: str) -> Any:
    return _learnt(identity_chain(20, 3), device, codes=True)


@case("`state_of_matrices`")
def _(device: str) -> Any:
    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator(4)).to(device)

    given = drawn(1, N, N), drawn(N, 20), drawn(N, 3), drawn(3, N)
    present = {"present_j": given[0] > 0, "present_in": given[1] > 0}
    states = [state_of_matrices(_RECIPES["sparse"], *given, **some) for some in ({}, present)]
    return [infer(_RECIPES["sparse"], state, _INPUTS, compiled=False) for state in states]


# Readouts, baselines, the classifier --------------------------------------------------------------

DATA = synthetic(classes=3, width=20, train=60, test=30)


@case("`fit_probe`, `fit_perceptron`, `fit_mlp`", k=2)
def _(device: str) -> Any:
    train_part, test_part = (
        checked_features(*part.tensors(), 3, device) for part in (DATA.train, DATA.test)
    )
    assert train_part.device.type == device
    probe = fit_probe(train_part, test_part, ProbeParameters(epochs=2))
    gradients = fit_probe(train_part, test_part, ProbeParameters.sgd(2))
    perceptron = fit_perceptron(train_part, test_part, PerceptronParameters(epochs=2))
    mlp = fit_mlp(train_part, test_part, MlpParameters(10, epochs=2))
    return [
        *(one.readout.weights for one in (probe, gradients, perceptron)),
        *(probe.losses, mlp.losses, mlp.test.accuracy),
    ]


@case("`frozen_features`", k=1)
def _(device: str) -> Any:
    return [part.values for part in frozen_features(reservoir_parameters(N), DATA, 0, device)]


for _name in ("perceptron", "probe"):

    @case("`RMClassifier`", _name, k=2)
    def _(device: str, readout: str = _name) -> Any:
        x, y = DATA.train.inputs, DATA.train.labels
        found = RMClassifier(n=N, epochs=2, probe_epochs=2, readout=readout, device=device)
        found.fit(x, y)
        # The fields are sums of weights in float32, which the CPU learns by other sums.
        return [found.predict(x), found.decision_function(x).astype("float32"), found.states(x)]


# Training in folders ------------------------------------------------------------------------------


@contextlib.contextmanager
def _trained_folder(preset: str, device: str) -> Iterator[Path]:
    """A run of two epochs, resumed once, and its probe."""
    plan = Plan.of_preset(preset, 40, train_samples=100, test_samples=50, dataset="synthetic")
    data = synthetic()
    metrics = Metrics(phases=20, accuracy=20)
    with tempfile.TemporaryDirectory() as folder:
        train_in(plan, data, 1, out=folder, device=device, metrics=metrics, probe=0)
        outcome = train_in(plan, data, 2, out=folder, device=device, metrics=metrics, probe=0)
        assert outcome.state.device.type == device
        train_probe(Folder(Path(folder)), outcome.checkpoint, data, ProbeParameters(epochs=2))
        yield Path(folder)


for _name in ("entangled-mnist-dense", "mnist-sparse"):

    @case("`training.train`", _name, k=1)
    def _(device: str, preset: str = _name) -> Any:
        with _trained_folder(preset, device) as folder:
            moment = load_checkpoint(Folder(folder).checkpoint, device)
            found = evaluate_run(moment, synthetic(), load_probe(Folder(folder), moment), 50)
            return [moment.state.w_out, found]


# Landscape ----------------------------------------------------------------------------------------

_SURVEY = Survey(pairs=6, steps=3, resamples=2, patterns=8, noises=(0.1, 0.3))
_CORE = dense_recipe(N, classes=3)


@case("`survey`", k=1)
def _(device: str) -> Any:
    state = initialise(_CORE, 20, 3, 0, device=device)
    return survey(_CORE, state, DATA.train, _SURVEY, 0)


for _name in ("cpu", ""):

    @case("`curvature`, `displacement`", _name and f"inputs on the {_name}", k=1)
    def _(device: str, data: str = _name) -> Any:
        x = DATA.train.tensors()[0].to(data or device)
        relaxing, evolving = attractors_of(_CORE, initialise(_CORE, 20, 3, 0, device=device))
        stream = generator(0)
        return [
            curvature(relaxing, x[:6], x[6:12], [0.5], 2, stream).kappa,
            trajectory_distances(relaxing, x[:6], x[6:12], [0.0, 0.5, 1.0], stream),
            displacement(evolving, relaxing(x), x, [0.1], stream).values,
        ]


# Points of sweeps ---------------------------------------------------------------------------------


def _point(compute: str, point: dict[str, Any], device: str) -> Any:
    """Evaluate a point as a worker does, on a device that the run chooses."""
    result = evaluate(Task("test", 1, compute, point, "key", 3, device))
    assert isinstance(result, Measured), result
    assert torch.device(result.provenance["device"]).type == device
    return decode(result.values)


_THRESHOLD = {
    "n": N,
    "layers": 1,
    "jd": 0.8,
    "lam": 0.0,
    "rho": 1.0,
    "symmetric": False,
    "p": 1.0,
    "samples": "0:3",
    "update": "synchronous",
    "max_sweeps": 8,
    "dtype": "float32",
}
for _name, _settings in {
    "dynamics": {},
    "rbp": {"r0": 0.0, "dr": 0.05},
    "likelihood": {"eta": 0.3, "max_sweeps": 40},
}.items():

    @case("`thresholds.measure`", _name, k=syncs(int({**_THRESHOLD, **_settings}["max_sweeps"])))
    def _(device: str, name: str = _name, settings: dict[str, Any] = _settings) -> Any:
        point = {**_THRESHOLD, **settings, "algorithm": name, "device": "auto"}
        return _point("rmsim.studies.convergence:measure", point, device)


for _name in ("reconstruction", "printed"):

    @case("`capacity.measure`", _name, k=2)
    def _(device: str, protocol: str = _name) -> Any:
        point = {
            "protocol": protocol,
            "loads": "0.2:0.4",
            "layers": 2,
            "n": 12,
            "trials": "0:2",
            "max_epochs": 2,
            "dtype": "float32",
            "device": "auto",
        }
        assert callable(capacity.measure)
        return _point("rmsim.studies.capacity_sweep:measure", point, device)


_POINT: dict[str, Any] = {
    "preset": "overlaps",
    "n": N,
    "replica": 0,
    "dataset": "synthetic",
    MEASURED_AT: [0, 1],
    "train_samples": 40,
    "test_samples": 30,
    "watched": 20,
}
_EXPERIMENTS = {
    "trained_networks:trained": {**_POINT, "settle": 20},
    "trained_networks:two_layers": {**_POINT, "jd": 0.3, "lam": 0.2},
    "landscape_survey:landscape": {**_POINT, "survey": _SURVEY.to_dict()},
    "trained_networks:benchmark": {**_POINT, "preset": "mnist-sparse", MEASURED_AT: [1]},
}
for _name, _settings in _EXPERIMENTS.items():

    @case("`rmsim.studies`", _name.partition(":")[2], k=1)
    def _(device: str, name: str = _name, point: dict[str, Any] = _settings) -> Any:
        assert all(map(callable, (trained, two_layers, landscape, benchmark)))
        return _point(f"rmsim.studies.{name}", point, device)


@case("`rmsim.studies`", "linear_accuracy", k=1)
def _(device: str) -> Any:
    return linear_accuracy(_EXPERIMENTS["trained_networks:benchmark"], 0, epochs=2, device=device)


@case("point of `bethe_vs_exact`", k=2)
def _(device: str) -> Any:
    point = {"n": 10, "jd": 0.8, "samples": 2}
    return _point("figures.paper.bethe_vs_exact:measure", point, device)


@case("point of `single_sample_rm`", k=2)
def _(device: str) -> Any:
    point = {
        "n": N,
        "jd": 0.8,
        "source": "planted",
        "sample": 0,
        "distances": [0.1, 0.3],
        "gamma_step": 0.3,
        "gamma_most": 0.6,
    }
    return _point("figures.paper.single_sample_rm:measure", point, device)


# Commands -----------------------------------------------------------------------------------------

#: What of an answer is not a result.
_OTHER = ("wall_time", "device", "samples_per_second", "seconds")


def _answer(*words: str, device: str) -> Any:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = command_line([*words, "--device", device, "--json"])
    assert code == 0, err.getvalue()
    result = json.loads(out.getvalue())
    assert torch.device(result["device"]).type == device
    return {name: value for name, value in result.items() if name not in _OTHER}


_COMMANDS = {
    "relax": ("relax", "--n", "30", "--jd", ".8", "--samples", "3"),
    "relax --rho": ("relax", "--n", "30", "--jd", ".8", "--rho", ".3", "--samples", "3"),
    "solve": ("solve", "--n", "30", "--jd", ".8", "--max-iterations", "4"),
    "local-entropy": (
        *("local-entropy", "--reference", "planted", "--n", "30", "--jd", ".8", "--gamma", ".3"),
    ),
    "baseline mlp": (
        *("baseline", "mlp", "--dataset", "synthetic", "--n", "30", "--epochs", "1"),
        *("--train", "60", "--test", "30"),
    ),
    "baseline reservoir": (
        *("baseline", "reservoir", "--dataset", "synthetic", "--n", "30", "--epochs", "1"),
        *("--probe-epochs", "1", "--train", "60", "--test", "30"),
    ),
    "baseline random-features": (
        *("baseline", "random-features", "--dataset", "synthetic", "--n", "30", "--epochs", "1"),
        *("--probe-epochs", "1", "--train", "60", "--test", "30"),
    ),
}
for _name, _words in _COMMANDS.items():

    @case("a command, not of training", _name)
    def _(device: str, words: tuple[str, ...] = _words) -> Any:
        return _answer(*words, device=device)


@case("`rmsim train`, `evaluate`, `landscape` in turn")
def _(device: str) -> Any:
    with tempfile.TemporaryDirectory() as parent:
        folder = str(Path(parent) / "run")
        learning = ("train", "--preset", "entangled-mnist-dense", "--dataset", "synthetic")
        sizes = ("--n", "30", "--train", "60", "--test", "30", "--metrics", "20", "--epochs", "1")
        counts = ("--pairs", "6", "--steps", "3", "--resamples", "2", "--patterns", "8")
        _answer(*learning, *sizes, "--probe", "1", "--out", folder, device=device)
        return [
            _answer("evaluate", folder, device=device),
            _answer("landscape", "--from", folder, *counts, device=device),
        ]
