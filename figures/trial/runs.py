r"""What is trained for the trial, and what is measured of it.

A run is one of

* :class:`Network`: a network that learns, of a plan (:class:`rmsim.learning.run_folder.Plan`);
* :class:`Perceptron`: the binarised perceptron with two hidden layers (paper, SM-D);
* :class:`Frozen`: the readout of a network that does not learn; its states are computed once;
* :class:`Linear`: a softmax classifier on the inputs themselves;
* :class:`Classes`: the samples of each class, counted;
* :class:`Search`: networks without input that an algorithm brings to a fixed point;
* :class:`Cluster`: fixed points of networks without input that single flips join;
* :class:`Walks`: walks between these that only come nearer;
* :class:`Association`: a chain that learns random pairs;
* :class:`Capacity`: how many random pairs a chain can learn.

At every epoch at which a run is measured, the images of the test set that are classified correctly
are stored, one bit each, so that two runs are compared image by image (McNemar): of the difference
of accuracies on the same n images the variance is that of :math:`c_i - c'_i \in \{-1, 0, 1\}` over
n, and not the sum of two binomial ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from figures.claims.claim import claim_id
from figures.trial.store import (
    Bits,
    EpochProgress,
    Flat,
    Keyed,
    Metrics,
    OfPlan,
    OnSamples,
    WithoutData,
    extrapolated,
    initial_state,
    pack,
    resumed,
    save_metrics,
    silent,
    states_of,
    timed,
)
from rmtheory.base.errors import InvalidInputError

if TYPE_CHECKING:  # torch is needed by runs only, not by those who read their results
    from rmsim.data.dataset import Dataset, Samples
    from rmsim.learning.readout import Features
    from rmsim.learning.run_folder import Plan
    from rmsim.learning.state import State
    from rmsim.network import Network as Core

#: Couplings, or states in rows.
Matrix = NDArray[Any]

#: Epochs of hetero-association that are timed.
_FEW_EPOCHS = 3

#: What a trial of hetero-association takes on average, as a share of all its epochs at the pace of
#: the first: .2 to .3 of 86 trials, N = 200 to 600, since most succeed and stop, and later epochs
#: flip less. A capacity takes some five trials; half of them fail, which takes the time of three.
_SHARE_LEARNT, _TRIALS_OF_CAPACITY = 0.25, 10

#: Epochs of a readout that are timed: one takes less than the features that it reads.
_READOUT_EPOCHS = 30

#: Of distances and overlaps that are stored: far below their errors.
_DECIMALS = 6


@dataclass(frozen=True)
class Network(OfPlan):
    """A network that learns.

    Parameters
    ----------
    plan : Plan
        What is trained.
    epochs : tuple of int
        Epochs at which it is measured, increasing; 0 is the initialisation.
    probe : bool
        Whether a softmax probe is trained at each of them, for as many epochs as the network was.
    watched : int
        Training samples on which the two phases are measured.
    settle : int
        If not 0, phases of up to so many sweeps are tried too: the share of samples that reach no
        fixed point.
    offline : bool
        Whether the readout is learnt again at each of them, by the same rule, for as many epochs,
        on the states that the network then has.
    blocks : int
        If not 0, the neurons are a chain of so many layers with dense couplings within and between
        neighbours (SM-C, arbitrary topology); the first sees the input, the last the label and the
        readout.
    skip : bool
        Whether the input reaches every one of these layers (skip connections), not the first alone.
    survey : mapping, optional
        How much of the landscape of attractors is measured at each of them: the parameters of
        :class:`rmsim.studies.landscape_survey.Survey` by name.
    """

    plan: Plan
    epochs: tuple[int, ...]
    probe: bool = False
    watched: int = 400
    settle: int = 0
    offline: bool = False
    blocks: int = 0
    skip: bool = False
    survey: Mapping[str, Any] | None = None

    kind: ClassVar[str] = "network"

    def __post_init__(self) -> None:
        demand_increasing(self.epochs)

    @property
    def title(self) -> str:
        """For the name of the file."""
        couplings = self.plan.parameters.couplings
        return f"{self.plan.preset}_n{couplings.n}_jd{couplings.jd:g}_s{self.plan.seed}"

    @property
    def identity(self) -> dict[str, Any]:
        """What is trained and how it is measured, without the epochs, as JSON values."""
        plan = self.plan.to_dict()
        del plan["preset"]  # presets with the same numbers are the same network
        measured: dict[str, Any] = {
            "probe": self.probe,
            "watched": self.watched,
            "settle": self.settle,
        }
        if self.offline:
            measured["offline"] = True
        if self.blocks:
            measured["blocks"] = self.blocks
        if self.skip:
            measured["skip"] = True
        if self.survey is not None:
            measured["survey"] = dict(self.survey)
        return {"kind": self.kind, "plan": plan, **measured}

    def execute(
        self, data: Dataset, folder: Path | None = None, progress: EpochProgress = silent
    ) -> Metrics:
        """Train and measure; what is in `folder` of a killed run is not computed again."""
        done, begun = resumed(self, data, folder)
        for epoch, state in states_of(self, data, begun, folder):
            if epoch in self.epochs and epoch not in done:
                done[epoch] = self._measured(state, data, epoch)
                if folder is not None:
                    save_metrics(folder, self.key, done)
            progress(epoch)
        return {epoch: done[epoch] for epoch in self.epochs}

    def shortened(self) -> tuple[Keyed, float]:
        """Return one epoch."""
        return replace(self, epochs=(1,)), 1.0

    def _seconds_on(self, pieces: Sequence[Dataset], samples: int, tested: int) -> float:
        """Return the time of an epoch, and the share in it of start, inference and metrics."""
        from rmsim.learning.protocol import infer, learning_of, run_epochs

        parameters = self.plan.parameters
        piece = pieces[0]
        begun = time.process_time()
        state = initial_state(self, piece)
        start = time.process_time() - begun
        inputs, _ = piece.train.tensors(state.dtype)
        infer(parameters, state, inputs)  # compiles
        inference = timed(lambda: infer(parameters, state, inputs)) / len(piece.train)
        again = 70_000 if self.probe or self.offline else 0
        inputs_seen = 2 * tested + 2 * self.watched + again
        if self.survey is not None:
            # Inputs along the paths, each followed to its attractor: some three times as long.
            paths = self.survey["pairs"] * self.survey["steps"] * (self.survey["resamples"] + 1)
            inputs_seen += 3 * (paths + len(self.survey["noises"]) * self.survey["patterns"])
        metrics = inference * inputs_seen * len(self.epochs)
        if self.epochs[-1] == 0:
            return start + metrics

        def learn(data: Dataset) -> None:
            learning = learning_of(parameters, *data.train.tensors(state.dtype), 0)
            for _ in run_epochs(learning, state, 0, 1):
                pass

        learn(piece)  # compiles
        # A probe has as many epochs as the network; a product of a batch with 10 outputs is cheap.
        epoch = extrapolated(learn, pieces, samples)
        return epoch + metrics / self.epochs[-1]

    def _measured(self, state: State, data: Dataset, epoch: int) -> dict[str, Any]:
        from rmsim.learning.protocol import measure, predict

        parameters = self.plan.parameters
        watched = data.train.first(min(self.watched, len(data.train)))
        seen = measure(parameters, state, *watched.tensors(state.dtype)).to_dict()
        row: dict[str, Any] = {"phases": seen}
        if self.settle:
            longer = parameters.with_settings(
                scheme="full", stop="converged", clamped=self.settle, free=self.settle
            )
            settled = measure(longer, state, *watched.tensors(state.dtype))
            row["unsettled_free"] = settled.unstable_free
        # As many training samples as there are test samples: both accuracies have the same error.
        first = data.train.first(min(len(data.test), len(data.train)))
        if len(state.w_out):
            for name, samples in (("train", first), ("test", data.test)):
                inputs, labels = samples.tensors(state.dtype)
                right = (predict(parameters, state, inputs).cpu() == labels.cpu()).numpy()
                row[f"{name}_correct"] = pack(right)
        if (self.probe or self.offline) and epoch:
            row |= self._read_again(state, data, epoch)
        if self.survey is not None:
            row["survey"] = self._surveyed(state, data)
        return row

    def _surveyed(self, state: State, data: Dataset) -> dict[str, Any]:
        """Measure the landscape; the similarity of single patterns, 90,000 numbers, is left out."""
        from rmsim.studies.landscape_survey import Survey, survey

        wanted = Survey(**(self.survey or {}))
        values = survey(self.plan.parameters, state, data.train, wanted, self.plan.seed)
        left = ("similarity", "similarity_error", "labels", "curvature_error")
        return {
            name: np.round(np.asarray(value, dtype=float), _DECIMALS).tolist()
            for name, value in values.items()
            if name not in left
        }

    def _read_again(self, state: State, data: Dataset, epoch: int) -> dict[str, Any]:
        """Train readouts on the states that the network has now."""
        from rmsim.learning.presets import LEAST_PROBE
        from rmsim.learning.protocol import infer
        from rmsim.learning.readout import (
            PerceptronParameters,
            ProbeParameters,
            checked_features,
            fit_perceptron,
            fit_probe,
        )

        parameters, seed = self.plan.parameters, self.plan.seed

        def states(samples: Samples) -> Features:
            inputs, labels = samples.tensors(state.dtype)
            s = infer(parameters, state, inputs).flatten(1)
            return checked_features(s[:, state.a_out], labels, data.classes)

        train, test = states(data.train), states(data.test)
        row: dict[str, Any] = {}
        if self.probe:
            settings = ProbeParameters(epochs=max(epoch, LEAST_PROBE))
            probe = fit_probe(train, None, settings, seed)
            row["probe_test_correct"] = pack(_correct(probe.readout.outputs, test))
            row["probe_train_accuracy"] = probe.train.accuracy
        if self.offline:
            out = parameters.readout
            rule = PerceptronParameters(out.eta, out.kappa, parameters.batch.size, epoch)
            again = fit_perceptron(train, None, rule, seed)
            row["offline_test_correct"] = pack(_correct(again.readout.outputs, test))
            row["offline_train_accuracy"] = again.train.accuracy
        return row


@dataclass(frozen=True)
class Perceptron(Flat, OnSamples):
    """The binarised perceptron with two hidden layers of `width`, by straight-through gradients."""

    dataset: str
    width: int
    eta: float
    seed: int
    epochs: tuple[int, ...]
    batch: int = 64

    kind: ClassVar[str] = "perceptron"

    def __post_init__(self) -> None:
        demand_increasing(self.epochs, 1)

    @property
    def title(self) -> str:
        """For the name of the file."""
        return f"perceptron_{self.dataset}_h{self.width}_eta{self.eta:g}_s{self.seed}"

    def execute(
        self, data: Dataset, folder: Path | None = None, progress: EpochProgress = silent
    ) -> Metrics:
        """Train and test; a killed run begins again."""
        from rmsim.learning.baselines import Mlp, MlpParameters, fit_mlp

        parameters = MlpParameters(self.width, self.eta, self.batch, self.epochs[-1])
        train, test = _inputs(data)
        metrics: Metrics = {}

        def measured(epoch: int, network: Mlp) -> None:
            if epoch in self.epochs:
                metrics[epoch] = {
                    "test_correct": pack(_correct(network.outputs, test)),
                    "train_accuracy": network.score(train).accuracy,
                }
            progress(epoch)

        fit_mlp(train, test, parameters, self.seed, after_epoch=measured)
        return metrics

    def shortened(self) -> tuple[Keyed, float]:
        """Return one epoch."""
        return replace(self, seed=0, epochs=(1,)), 1.0


@dataclass(frozen=True)
class Frozen(OfPlan):
    """A network of which only the readout learns, by the perceptron rule; features once."""

    plan: Plan
    epochs: tuple[int, ...]

    kind: ClassVar[str] = "frozen"

    def __post_init__(self) -> None:
        demand_increasing(self.epochs, 1)
        learning = self.plan.parameters
        if learning.j.eta or learning.w_in.eta or learning.w_back.eta:
            raise InvalidInputError("plan", self.plan.preset, "a network with frozen features")

    @property
    def title(self) -> str:
        """For the name of the file."""
        return f"{self.plan.preset}_n{self.plan.parameters.couplings.n}_s{self.plan.seed}"

    @property
    def identity(self) -> dict[str, Any]:
        """What is trained, without the epochs, as JSON values."""
        plan = self.plan.to_dict()
        del plan["preset"]
        return {"kind": self.kind, "plan": plan}

    def execute(
        self, data: Dataset, folder: Path | None = None, progress: EpochProgress = silent
    ) -> Metrics:
        """Compute the features, train the readout and test it; a killed run begins again."""
        from rmsim.learning.baselines import frozen_features
        from rmsim.learning.readout import LinearReadout, PerceptronParameters, fit_perceptron

        parameters = self.plan.parameters
        train, test = frozen_features(parameters, data, self.plan.seed)
        first = replace(train, values=train.values[: len(test)], labels=train.labels[: len(test)])
        readout, batch = parameters.readout, parameters.batch.size
        rule = PerceptronParameters(readout.eta, readout.kappa, batch, self.epochs[-1])
        metrics: Metrics = {}

        def measured(epoch: int, fitted: LinearReadout) -> None:
            if epoch in self.epochs:
                metrics[epoch] = {
                    f"{name}_correct": pack(_correct(fitted.outputs, part))
                    for name, part in (("train", first), ("test", test))
                }
            progress(epoch)

        fit_perceptron(train, test, rule, self.plan.seed, after_epoch=measured)
        return metrics

    def shortened(self) -> tuple[Keyed, float]:
        """Return one epoch."""
        return replace(self, epochs=(1,)), 1.0

    def _seconds_on(self, pieces: Sequence[Dataset], samples: int, tested: int) -> float:
        """Return the time of an epoch of the readout, and the share in it of the features."""
        short, _ = self.shortened()
        longer = replace(self, epochs=(1 + _READOUT_EPOCHS,))
        longer.execute(pieces[0])  # compiles
        one, more = (extrapolated(run.execute, pieces, samples) for run in (short, longer))
        epoch = max(more - one, 0.0) / _READOUT_EPOCHS
        return epoch + max(one - epoch, 0.0) / self.epochs[-1]


@dataclass(frozen=True)
class Linear(Flat, OnSamples):
    """A softmax classifier on the inputs themselves."""

    dataset: str
    seed: int
    epochs: tuple[int, ...]
    eta: float = 1e-3
    batch: int = 256

    kind: ClassVar[str] = "linear"

    def __post_init__(self) -> None:
        demand_increasing(self.epochs, 1)
        if len(self.epochs) > 1:
            raise InvalidInputError("epochs", self.epochs, "one number of epochs")

    @property
    def title(self) -> str:
        """For the name of the file."""
        return f"linear_{self.dataset}_s{self.seed}"

    def execute(
        self, data: Dataset, folder: Path | None = None, progress: EpochProgress = silent
    ) -> Metrics:
        """Train and test."""
        from rmsim.learning.readout import ProbeParameters, fit_probe

        train, test = _inputs(data)
        settings = ProbeParameters(eta=self.eta, batch=self.batch, epochs=self.epochs[-1])
        fit = fit_probe(train, None, settings, self.seed, progress)
        right = pack(_correct(fit.readout.outputs, test))
        return {self.epochs[-1]: {"test_correct": right, "train_accuracy": fit.train.accuracy}}

    def shortened(self) -> tuple[Keyed, float]:
        """Return one epoch."""
        return replace(self, seed=0, epochs=(1,)), 1.0


@dataclass(frozen=True)
class Classes(OnSamples):
    """The training samples of each class of a data set, counted."""

    dataset: str
    epochs: tuple[int, ...] = (0,)

    kind: ClassVar[str] = "classes"

    @property
    def title(self) -> str:
        """For the name of the file."""
        return f"classes_{self.dataset}"

    @property
    def identity(self) -> dict[str, Any]:
        """Whose classes are counted, as JSON values."""
        return {"kind": self.kind, "dataset": self.dataset, "seed": 0}

    def execute(
        self, data: Dataset, folder: Path | None = None, progress: EpochProgress = silent
    ) -> Metrics:
        """Count."""
        progress(0)
        return {0: {"classes": np.bincount(data.train.labels, minlength=data.classes).tolist()}}

    def shortened(self) -> tuple[Keyed, float]:
        """Return the run itself."""
        return self, 1.0


@dataclass(frozen=True)
class Search(WithoutData):
    """Networks without input that an algorithm brings to a fixed point, one layer."""

    method: str
    n: int
    jd: float
    samples: int
    sweeps: int
    seed: int
    epochs: tuple[int, ...] = (0,)

    kind: ClassVar[str] = "search"

    @property
    def title(self) -> str:
        """For the name of the file."""
        return f"{self.method}_n{self.n}_jd{self.jd:g}_s{self.seed}"

    def execute(
        self, data: Dataset | None, folder: Path | None = None, progress: EpochProgress = silent
    ) -> Metrics:
        """Search; a killed run begins again."""
        from rmsim.dynamics.status import Status
        from rmsim.network import Network as Core
        from rmsim.search.methods import find_fixed_point
        from rmtheory.base.chain import Chain

        result = find_fixed_point(
            Core(self.n, Chain(1, self.jd)),
            self.method,
            samples=self.samples,
            seed=self.seed,
            device="cpu",
            max_iterations=self.sweeps,
        )
        reached = result.status.numpy() == int(Status.FIXED_POINT)
        progress(0)
        return {0: {"reached": pack(reached), "sweeps": result.iterations.numpy().tolist()}}

    def shortened(self) -> tuple[Keyed, float]:
        """Return two of the networks."""
        return _two_of(self)


@dataclass(frozen=True)
class Cluster(WithoutData):
    """Fixed points of networks of one layer, and whether single flips join them.

    In every network two fixed points that the dynamics reaches from random starts are taken, and a
    path between them through fixed points alone is searched for; those joined to the first at one
    and two flips are counted. Then as many typical fixed points are planted, in networks of
    `typical_n` neurons, and their neighbours at one flip counted.
    """

    n: int
    jd: float
    samples: int
    typical_n: int
    seed: int
    starts: int = 4
    epochs: tuple[int, ...] = (0,)

    kind: ClassVar[str] = "cluster"

    @property
    def title(self) -> str:
        """For the name of the file."""
        return f"cluster_n{self.n}_jd{self.jd:g}_s{self.seed}"

    def execute(
        self, data: Dataset | None, folder: Path | None = None, progress: EpochProgress = silent
    ) -> Metrics:
        """Search and count; a killed run begins again."""
        from rmsim.network import Network as Core
        from rmsim.search.paths import count_joined, flip_path
        from rmsim.search.planted import plant, single_flips
        from rmsim.tensors import generator
        from rmtheory.base.chain import Chain

        def joined(core: Core, matrix: Matrix, points: Matrix) -> dict[str, Any]:
            path = flip_path(matrix, points[0], points[1], core, seed=self.seed)
            return {
                "joined": path.joined,
                "distance": path.distance,
                "flips": None if path.flips is None else len(path.flips),
                "nearest": path.nearest,
                "states": path.states,
                "joined_at": list(count_joined(matrix, points[0], core, 2)),
            }

        rows = _of_pairs(self, joined)
        typical = Core(self.typical_n, Chain(1, self.jd))
        planted = (plant(typical, generator(self.seed, k, 0)) for k in range(self.samples))
        progress(0)
        return {0: {"pairs": rows, "typical": [single_flips(one) for one in planted]}}

    def shortened(self) -> tuple[Keyed, float]:
        """Return two of the networks."""
        return _two_of(self)


@dataclass(frozen=True)
class Walks(WithoutData):
    """Walks of single flips between fixed points that only come nearer, in networks of one layer.

    The pairs are those of :class:`Cluster`; of each, some walks in random order.
    """

    n: int
    jd: float
    samples: int
    walks: int
    seed: int
    starts: int = 4
    epochs: tuple[int, ...] = (0,)

    kind: ClassVar[str] = "walks"

    @property
    def title(self) -> str:
        """For the name of the file."""
        return f"walks_n{self.n}_jd{self.jd:g}_s{self.seed}"

    def execute(
        self, data: Dataset | None, folder: Path | None = None, progress: EpochProgress = silent
    ) -> Metrics:
        """Walk; a killed run begins again."""
        from rmsim.search.paths import walk_towards

        def walked(core: Core, matrix: Matrix, points: Matrix) -> dict[str, Any]:
            start, end = points[:2]
            ends = [walk_towards(matrix, start, end, core, seed=k) for k in range(self.walks)]
            return {"distance": int((start != end).sum()), "walks": [asdict(w) for w in ends]}

        rows = _of_pairs(self, walked)
        progress(0)
        return {0: {"pairs": rows}}

    def shortened(self) -> tuple[Keyed, float]:
        """Return two of the networks."""
        return _two_of(self)


def _two_of(run: Search | Cluster | Walks) -> tuple[Keyed, float]:
    few = min(2, run.samples)
    return replace(run, samples=few), run.samples / few


def _of_pairs(
    run: Cluster | Walks, measured: Callable[[Core, Matrix, Matrix], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Measure couplings with the fixed points that the dynamics reaches, if they are two."""
    from rmsim.couplings.chains import draw
    from rmsim.dynamics.relaxation import relax
    from rmsim.network import Network as Core
    from rmtheory.base.chain import Chain

    core = Core(run.n, Chain(1, run.jd))
    rows: list[dict[str, Any]] = []
    for sample in range(run.samples):
        J = draw(core, seed=run.seed, samples=range(sample, sample + 1), dtype="float64")
        ends = relax(J, starts=run.starts, seed=run.seed, first_sample=sample)
        points = ends.state[0, ends.solved[0], 0].numpy()
        if len(points) < 2 or (points[0] == points[1]).all():
            rows.append({"pair": False})
        else:
            rows.append({"pair": True, **measured(core, J.to_dense()[0, 0].numpy(), points)})
    return rows


@dataclass(frozen=True)
class Association(WithoutData):
    """One trial of hetero-association: a chain learns random pairs, P uniform between loads."""

    protocol: str
    layers: int
    n: int
    loads: tuple[float, float]
    seed: int
    max_epochs: int = 300
    epochs: tuple[int, ...] = (0,)

    kind: ClassVar[str] = "association"

    @property
    def title(self) -> str:
        """For the name of the file."""
        return f"{self.protocol}_l{self.layers}_n{self.n}_s{self.seed}"

    @property
    def identity(self) -> dict[str, Any]:
        """Its kind and its fields as JSON values."""
        return {**super().identity, "loads": list(self.loads)}

    def execute(
        self, data: Dataset | None, folder: Path | None = None, progress: EpochProgress = silent
    ) -> Metrics:
        """Learn; a killed run begins again."""
        from rmsim.studies.capacity import protocol_named, run_trials

        protocol = protocol_named(self.protocol).with_settings(max_epochs=self.max_epochs)
        trials = run_trials(protocol, self.layers, self.n, [self.seed], 0, loads=self.loads)
        progress(0)
        row: dict[str, Any] = {
            "patterns": int(trials.patterns[0]),
            "o5": float(trials.o5[0]),
            "epochs": int(trials.epochs[0]),
        }
        for of in ("", "input_"):
            for level in ("median", "low", "high"):
                values = np.asarray(getattr(trials, f"{of}{level}")[0], dtype=float)
                row[f"overlap_{of}{level}"] = np.round(values, _DECIMALS).tolist()
        return {0: row}

    def shortened(self) -> tuple[Keyed, float]:
        """Return some epochs: trials beyond P_max learn to the end, below it they stop sooner."""
        some = replace(self, max_epochs=_FEW_EPOCHS)
        return some, _SHARE_LEARNT * self.max_epochs / _FEW_EPOCHS


@dataclass(frozen=True)
class Capacity(WithoutData):
    """P_max of one chain that learns random pairs, enclosed by trials from a load on."""

    protocol: str
    layers: int
    n: int
    start: float
    seed: int
    step: float = 0.06
    resolution: float = 0.015
    epochs: tuple[int, ...] = (0,)

    kind: ClassVar[str] = "capacity"

    @property
    def title(self) -> str:
        """For the name of the file."""
        return f"capacity_{self.protocol}_l{self.layers}_n{self.n}_s{self.seed}"

    def execute(
        self, data: Dataset | None, folder: Path | None = None, progress: EpochProgress = silent
    ) -> Metrics:
        """Search; a killed run begins again."""
        from rmsim.studies.capacity import protocol_named
        from rmsim.studies.capacity_sweep import bracket_capacity

        bracket = bracket_capacity(
            *(protocol_named(self.protocol), self.layers, self.n, self.seed, 0),
            start=self.start,
            step=self.step,
            resolution=self.resolution,
        )
        progress(0)
        return {0: {**asdict(bracket), "load": bracket.value / self.n}}

    def shortened(self) -> tuple[Keyed, float]:
        """Return some epochs of its first trial."""
        loads = (self.start, self.start)
        first = Association(self.protocol, self.layers, self.n, loads, self.seed)
        some, times = first.shortened()
        return some, _TRIALS_OF_CAPACITY * times


Run = (
    Network
    | Perceptron
    | Frozen
    | Linear
    | Classes
    | Search
    | Cluster
    | Walks
    | Association
    | Capacity
)


@dataclass(frozen=True)
class Question:
    """Claims, and the runs that decide them.

    Parameters
    ----------
    name : str
        For the plan.
    data : str
        Data set that the claims read.
    claims : tuple of str
        Their ids.
    first : tuple of tuples of runs
        Stages of the experiment, in order.
    second : tuple of runs
        A second experiment, for claims that the last stage has left open: networks of their own,
        as many as the spread of the first ones demands, in one stage. Once all are stored they
        take the place of the first ones, so that there is one look at them; before, nothing is
        read of them.
    """

    name: str
    data: str
    claims: tuple[str, ...]
    first: tuple[tuple[Run, ...], ...]
    second: tuple[Run, ...] = ()

    @property
    def stages(self) -> tuple[tuple[Run, ...], ...]:
        """The runs in the order in which they are made."""
        return (*self.first, self.second) if self.second else self.first

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs, in order."""
        return tuple(run for stage in self.stages for run in stage)

    def stage_name(self, stage: int) -> str:
        """Return what a stage, counted from 0, is called."""
        if self.second and stage == len(self.first):
            return "second experiment"
        return f"stage {stage + 1} of {len(self.first)}"


def question(
    name: str,
    data: str,
    keys: tuple[str, ...],
    *stages: tuple[Run, ...],
    second: tuple[Run, ...] = (),
) -> Question:
    """Return the question of the claims with these keys."""
    return Question(name, data, tuple(map(claim_id, keys)), stages, second)


def demand_increasing(epochs: Sequence[int], least: int = 0) -> None:
    """Refuse epochs that do not increase, or begin below `least`."""
    if not epochs or list(epochs) != sorted({*epochs}) or epochs[0] < least:
        allowed = f"numbers of epochs that increase from {least} on"
        raise InvalidInputError("epochs", list(epochs), allowed)


def merged(runs: Sequence[Run]) -> list[Run]:
    """Return each network once, with all epochs at which one of `runs` measures it, in order.

    Examples
    --------
    >>> one, other = (Perceptron("mnist", 9, 0.003, 0, (epochs,)) for epochs in (20, 10))
    >>> [run.epochs for run in merged([one, other])]
    [(10, 20)]
    """
    every: dict[str, Run] = {}
    for run in runs:
        held = every.get(run.key)
        epochs = run.epochs if held is None else tuple(sorted({*held.epochs, *run.epochs}))
        every[run.key] = replace(held or run, epochs=epochs)
    return list(every.values())


def _inputs(data: Dataset) -> tuple[Features, Features]:
    from rmsim.learning.readout import checked_features

    train, test = (
        checked_features(*part.tensors(), data.classes) for part in (data.train, data.test)
    )
    return train, test


def _correct(outputs: Callable[[Any], Any], features: Features) -> Bits:
    """Return which samples are classified correctly."""
    import torch

    with torch.no_grad():
        parts = [
            (outputs(values).argmax(1) == labels).numpy() for values, labels in features.parts()
        ]
    return np.concatenate(parts)
