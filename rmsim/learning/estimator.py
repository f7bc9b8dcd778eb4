"""The learning protocol as a scikit-learn classifier; needs the extra ``sklearn``.

It is a thin shell: :func:`rmsim.learning.initialise`, then :func:`rmsim.learning.train_epoch`
once per epoch, with the seed ``random_state``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data

from rmsim.learning.parameters import Parameters
from rmsim.learning.presets import preset as preset_named
from rmsim.learning.protocol import infer, learning_of, run_epochs, work_of
from rmsim.learning.readout import (
    LinearReadout,
    ProbeParameters,
    checked_features,
    fit_probe,
)
from rmsim.learning.run_folder import demand_consistent, load_arrays, save_arrays
from rmsim.learning.state import State, initialise, state_of
from rmsim.tensors import checked_seed, choose_device
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError, UnreadableDataError
from rmtheory.runtime.untrusted import MALFORMED

_READOUTS = ("perceptron", "probe")

Array = npt.NDArray[Any]


class RMClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is not typed
    """A recurrent network that learns in its representation manifold.

    Inputs should be of size about one, like spins or standardised features: put a
    ``StandardScaler`` before it otherwise.

    Parameters
    ----------
    n : int
        Neurons.
    preset : str
        Name of the protocol, see ``rmsim presets``; its data set does not matter.
    epochs : int
        Passes over the samples.
    readout : str
        ``perceptron``, learnt on the way, or ``probe``: softmax regression on the states.
    probe_epochs : int
        Passes of the probe.
    settings : mapping, optional
        Parameters of the protocol instead of the preset's, such as ``{"eta_j": 0.01}``.
    random_state : int, RandomState or None
        An integer is the seed of everything; None takes another one every time.
    device : str
        auto, cpu, cuda, ...

    Attributes
    ----------
    classes_ : array
        Labels, in the order of the outputs.
    parameters_ : Parameters
        The protocol.
    state_ : State
        The weights.
    seed_ : int
        The seed that was used.
    epochs_ : int
        Epochs done.
    n_features_in_ : int
        Width of the inputs.

    Examples
    --------
    >>> import rmsim as rs
    >>> data = rs.load_data("synthetic")
    >>> classifier = rs.RMClassifier(n=100, epochs=2).fit(data.train.inputs, data.train.labels)
    >>> bool(classifier.score(data.test.inputs, data.test.labels) > 0.95)
    True
    """

    def __init__(
        self,
        n: int = 400,
        *,
        preset: str = "entangled-mnist-dense",
        epochs: int = 5,
        readout: str = "perceptron",
        probe_epochs: int = 10,
        settings: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "cpu",
    ) -> None:
        self.n = n
        self.preset = preset
        self.epochs = epochs
        self.readout = readout
        self.probe_epochs = probe_epochs
        self.settings = settings
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any) -> RMClassifier:
        """Learn the samples `X` (samples, width) with labels `y` from new weights."""
        epochs = checks.integer("epochs", self.epochs, 1)
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        self._begin(unique_labels(y))
        self._learn(X, y, epochs)
        if self.readout == "probe":
            self._fit_probe(X, y)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> RMClassifier:
        """Learn the samples once more, or for the first time.

        Parameters
        ----------
        X, y
            Samples.
        classes : array, optional
            All labels that will ever come; needed in the first call unless `y` has them all.
        """
        if self.readout == "probe":
            allowed = "perceptron for partial_fit: a probe is trained on all samples together"
            raise InvalidInputError("readout", self.readout, allowed)
        first = not hasattr(self, "state_")
        X, y = validate_data(self, X, y, reset=first)
        check_classification_targets(y)
        if first:
            self._begin(unique_labels(y) if classes is None else unique_labels(classes))
        self._learn(X, y, 1)
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the outputs W_out s, (samples, classes); their difference for two classes."""
        outputs = self._outputs(X)
        return outputs[:, 1] - outputs[:, 0] if len(self.classes_) == 2 else outputs

    def predict_proba(self, X: Any) -> Array:
        """Return the softmax of the outputs, (samples, classes).

        A probe is trained for it; the perceptrons are not, so that their probabilities order the
        classes but are not calibrated.
        """
        outputs = self._outputs(X)
        chances: Array = special.softmax(outputs, axis=1)
        return chances

    def predict(self, X: Any) -> Array:
        """Return the labels with the largest outputs."""
        outputs = self._outputs(X)
        labels: Array = self.classes_[outputs.argmax(axis=1)]
        return labels

    def states(self, X: Any) -> Array:
        """Return the states at inference, int8 (samples, neurons): features for another model."""
        return self._states(X).cpu().numpy()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted classifier to an .npz file, without pickle.

        Examples
        --------
        >>> import tempfile, pathlib, rmsim as rs
        >>> data = rs.synthetic(classes=3, train=60, test=20)
        >>> fitted = rs.RMClassifier(n=40, epochs=1).fit(data.train.inputs, data.train.labels)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "fitted.npz")
        ...     fitted.save(file)
        ...     again = rs.RMClassifier.load(file)
        >>> bool((again.predict(data.test.inputs) == fitted.predict(data.test.inputs)).all())
        True
        """
        check_is_fitted(self)
        if isinstance(self.random_state, np.random.RandomState):
            allowed = "an integer or None, so that it can be written"
            raise InvalidInputError("random_state", "a RandomState", allowed)
        if self.classes_.dtype.kind not in "biufU":
            allowed = "numbers or text, so that they can be written"
            raise InvalidInputError("classes", f"of type {self.classes_.dtype}", allowed)
        names = getattr(self, "feature_names_in_", None)
        header = {
            "format": 1,
            "arguments": self.get_params(deep=False),
            "parameters": self.parameters_.to_dict(),
            "seed": self.seed_,
            "epochs": self.epochs_,
            "step": self.state_.step,
            "names": None if names is None else [str(name) for name in names],
        }
        arrays = {f"state_{name}": value for name, value in self.state_.tensors().items()}
        arrays["readout"] = self.readout_.weights
        numbers = {name: value.cpu().numpy() for name, value in arrays.items()}
        save_arrays(Path(path), header, numbers | {"classes": self.classes_})

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: str | None = None) -> RMClassifier:
        """Read what :meth:`save` wrote.

        Parameters
        ----------
        path : path
            The file.
        device : str, optional
            Instead of that of the classifier that was saved.
        """
        header, arrays = load_arrays(Path(path))
        try:
            made = cls(**header["arguments"])
            if device is not None:
                made.device = device
            place = choose_device(made.device)
            made.parameters_ = Parameters.from_dict(header["parameters"])
            tensors = {
                name.removeprefix("state_"): torch.tensor(value, device=place)
                for name, value in arrays.items()
                if name.startswith("state_")
            }
            demand_consistent(made.parameters_, tensors["j"].dtype, tensors)
            made.state_ = state_of(made.parameters_, tensors, header["seed"], header["step"])
            made.readout_ = LinearReadout(torch.tensor(arrays["readout"], device=place))
            made.classes_ = arrays["classes"]
            made.seed_, made.epochs_ = header["seed"], header["epochs"]
            made.n_features_in_ = made.state_.inputs
            if header["names"] is not None:
                made.feature_names_in_ = np.array(header["names"], dtype=object)
            return made
        except (*MALFORMED, RuntimeError, InvalidInputError) as problem:
            raise UnreadableDataError(f"{path} is not a saved classifier: {problem}") from None

    def _begin(self, classes: Array) -> None:
        """Draw the weights."""
        if self.readout not in _READOUTS:
            raise InvalidInputError("readout", self.readout, f"one of {', '.join(_READOUTS)}")
        if len(classes) < 2:
            raise InvalidInputError("y", f"the one class {classes[0]}", "of 2 classes or more")
        if not isinstance(self.settings, Mapping | None):
            allowed = "a dict of parameters, such as {'jd': 0.3}, or None"
            raise InvalidInputError("settings", self.settings, allowed)
        settings = dict(self.settings or {})
        for name in {"n", "classes"} & set(settings):
            allowed = "another parameter: n is one of the classifier, classes come from y"
            raise InvalidInputError("settings", name, allowed)
        chosen = preset_named(self.preset)
        parameters = chosen.parameters(self.n, classes=len(classes), **settings)
        if self.readout == "perceptron" and parameters.readout.kind == "none":
            allowed = "probe if the network has no readout of its own (readout=none)"
            raise InvalidInputError("readout", self.readout, allowed)
        if isinstance(self.random_state, (int, np.integer)):
            seed = checked_seed(self.random_state)
        else:
            seed = int(check_random_state(self.random_state).randint(2**31))
        place = choose_device(self.device, work_of([parameters]))
        self.state_: State = initialise(
            parameters, self.n_features_in_, len(classes), seed, device=place
        )
        self.classes_, self.parameters_, self.seed_, self.epochs_ = classes, parameters, seed, 0
        self.readout_ = LinearReadout(self.state_.w_out)

    def _learn(self, X: Array, y: Array, epochs: int) -> None:
        """Learn the samples for some epochs more."""
        learn = learning_of(self.parameters_, X, self._numbers(y), self.seed_)
        for epoch in run_epochs(learn, self.state_, self.epochs_, self.epochs_ + epochs):
            self.state_, self.epochs_ = epoch.state, epoch.number
        self.readout_ = LinearReadout(self.state_.w_out[:, self.state_.a_out])

    def _numbers(self, y: Array) -> Array:
        """Return labels as class numbers."""
        numbers = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        unknown = self.classes_[numbers] != y
        if unknown.any():
            allowed = f"one of the classes {', '.join(map(str, self.classes_))}"
            raise InvalidInputError("y", str(y[unknown][0]), allowed)
        return numbers

    def _fit_probe(self, X: Array, y: Array) -> None:
        features = checked_features(self._states(X), self._numbers(y), len(self.classes_))
        parameters = ProbeParameters(epochs=self.probe_epochs)
        self.readout_ = fit_probe(features, None, parameters, self.seed_).readout

    def _states(self, X: Any) -> torch.Tensor:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        s = infer(self.parameters_, self.state_, X)
        return s.flatten(1)[:, self.state_.a_out]

    def _outputs(self, X: Any) -> Array:
        """Return W s in float64, so that it does not depend on the other samples."""
        s = self._states(X).double()
        outputs: Array = (s @ self.readout_.weights.double().T).cpu().numpy()
        return outputs
