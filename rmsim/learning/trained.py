r"""A trained network apart from its run: predictions, torch modules, the authors' files.

:class:`Trained` is all that inference needs: protocol, weights, readout, and for data of one's own
the scaling of inputs and the labels,

.. math:: \tilde x = (x - \mu)/\sigma, \qquad s = \text{states under } \tilde x \text{ from } s = 0,
    \qquad o = W s .

``to_torch`` gives it as a module of torch whose ``state_dict`` holds everything, ``from_torch``
takes it back. The module learns nothing and gives no gradients: signs have none. It computes by
:func:`rmsim.learning.infer`, so that its predictions are those of the network to the bit, by the
compiled routes on a CPU and by tensor operations on a GPU.

The authors' files (.npz) have weights and masks stored [from, to], the transpose of ours, before
and after the run (``init_J``, ``final_J``, ...), and the hyper-parameters as JSON in ``hp``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from rmsim.data.own_files import Encoding, read_table
from rmsim.learning.parameters import Parameters
from rmsim.learning.presets import sparse_recipe
from rmsim.learning.protocol import infer, outputs_of
from rmsim.learning.readout import LinearReadout
from rmsim.learning.run_folder import Checkpoint, Folder, demand_consistent, load_checkpoint
from rmsim.learning.state import Array, State, as_tensor, state_of, state_of_matrices
from rmsim.learning.training import load_probe
from rmsim.tensors import choose_device
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError, UnreadableDataError
from rmtheory.runtime.untrusted import MALFORMED, parse_json, read_npz

#: Version of the extra state of a module.
_FORMAT = 1

#: Buffers of a module that are not the state's.
_READOUT, _MEAN, _DEVIATION = "readout", "input_mean", "input_deviation"

#: By what a state dict is recognised.
_EXTRA = "_extra_state"

#: Hyper-parameters of the authors -> ours.
_AUTHORS = {
    "j_d": "jd",
    "rho_J": "rho_j",
    "rho_in": "rho_in",
    "lx": "lambda_x",
    "ly": "lambda_y",
    "lr_j": "eta_j",
    "lr_in": "eta_in",
    "lr_out": "eta_out",
    "k_j": "kappa_j",
    "k_in": "kappa_in",
    "k_out": "kappa_out",
    "wd_j": "decay_j",
    "wd_in": "decay_in",
    "wd_out": "decay_out",
}


@dataclass(frozen=True, eq=False)
class Trained:
    """A network that infers.

    Parameters
    ----------
    parameters, state
        The protocol and the weights.
    readout : LinearReadout, optional
        Weights (C, neurons that are read), such as a probe's; the perceptrons W_out by default.
    labels : tuple, optional
        Label of each class, if the classes are not just numbered.
    scaling : (Tensor, Tensor), optional
        Mean and deviation of each input, float64, by which inputs are standardised first.

    Examples
    --------
    >>> import rmsim as rs
    >>> data = rs.synthetic(classes=3, train=60, test=20)
    >>> fitted = rs.RMClassifier(n=40, epochs=1).fit(data.train.inputs, data.train.labels)
    >>> module = rs.Trained.of(fitted).to_torch()
    >>> module(torch.tensor(data.test.inputs)).shape
    torch.Size([20, 3])
    >>> again = rs.Trained.from_torch(module.state_dict())
    >>> bool((again.predict(data.test.inputs).numpy() == fitted.predict(data.test.inputs)).all())
    True
    """

    parameters: Parameters
    state: State
    readout: LinearReadout | None = None
    labels: tuple[Any, ...] | None = None
    scaling: tuple[torch.Tensor, torch.Tensor] | None = None

    @classmethod
    def of(cls, network: object, device: str | torch.device = "cpu") -> Trained:
        """Return the network of a run, of its checkpoint, or of a fitted classifier.

        Parameters
        ----------
        network : path, Checkpoint, RMClassifier or Trained
            A path is the folder of a run (``rmsim train --out DIR``): its last checkpoint, read by
            its probe if it has one, with the scaling and labels of data of one's own.
        device : str
            Where the weights of a run are.
        """
        if isinstance(network, Trained):
            return network
        if isinstance(network, Checkpoint):
            return cls(network.plan.parameters, network.state)
        if isinstance(network, str | os.PathLike):
            run = Folder(Path(network))
            checkpoint = load_checkpoint(run.checkpoint, choose_device(device))
            probe = load_probe(run, checkpoint)
            encoding = Encoding.load(run.labels) if run.labels.exists() else None
            return cls(
                checkpoint.plan.parameters,
                checkpoint.state,
                None if probe is None else probe.readout,
                None if encoding is None else encoding.labels,
                None if encoding is None else _scaling(encoding, checkpoint.state.device),
            )
        if hasattr(network, "parameters_") and hasattr(network, "state_"):  # RMClassifier
            weights = network.readout_.weights.double()  # type: ignore[attr-defined]
            labels = tuple(network.classes_.tolist())  # type: ignore[attr-defined]
            return cls(network.parameters_, network.state_, LinearReadout(weights), labels)
        allowed = "the folder of a run, a Checkpoint, a fitted RMClassifier or a Trained"
        raise InvalidInputError("network", f"a {type(network).__name__}", allowed)

    def states(self, inputs: Array) -> torch.Tensor:
        """Return the states at inference as int8, (samples, layers, n)."""
        return infer(self.parameters, self.state, self._scaled(inputs))

    def outputs(self, inputs: Array) -> torch.Tensor:
        """Return W s, (samples, C)."""
        s = self.states(inputs)
        if self.readout is None:
            return outputs_of(self.state, s)
        return self.readout.outputs(s.flatten(1)[:, self.state.a_out])

    def predict(self, inputs: Array) -> torch.Tensor:
        """Return the class numbers with the largest outputs; `labels` says what they stand for."""
        return self.outputs(inputs).argmax(1)

    def to_torch(self) -> TrainedModule:
        """Return a module of torch that computes :meth:`outputs`; its weights are copies."""
        return TrainedModule(self)

    @classmethod
    def from_torch(cls, module: torch.nn.Module | Mapping[str, Any]) -> Trained:
        """Return the network of a module made by :meth:`to_torch`, or of its ``state_dict``.

        Raises
        ------
        InvalidInputError
            For any other module: its dynamics is not that of these networks.
        UnreadableDataError
            If the state dict is not that of one network: naming what does not fit.
        """
        if isinstance(module, TrainedModule):
            return module.network()
        allowed = "a module made by to_torch, or its state_dict()"
        if isinstance(module, torch.nn.Module):
            inner = [name for name, part in module.named_modules() if type(part) is TrainedModule]
            if inner:
                allowed += f"; this one contains it as {inner[0]!r}"
        if isinstance(module, torch.nn.Module) or not isinstance(module, Mapping):
            raise InvalidInputError("module", f"a {type(module).__name__}", allowed)
        if _EXTRA not in module:
            keys = ", ".join(map(str, list(module)[:3]))
            raise InvalidInputError("module", f"a mapping with {keys or 'nothing in it'}", allowed)
        tensors = {name: value for name, value in module.items() if name != _EXTRA}
        for name, value in tensors.items():
            if not isinstance(value, torch.Tensor):
                kind = type(value).__name__
                raise UnreadableDataError(f"the state dict has {name} of type {kind}, not a tensor")
        return _network(module[_EXTRA], tensors)

    @classmethod
    def of_authors(
        cls, path: str | os.PathLike[str], when: Literal["init", "final"] = "final"
    ) -> Trained:
        """Read a network that the authors' code has stored.

        Parameters
        ----------
        path : path
            An .npz file with the arrays ``{when}_J``, ``{when}_W_in``, ``{when}_W_back``,
            ``{when}_W_out``, ``mask_J`` and ``mask_in``, each [from, to], and the text ``hp``.
        when : str
            ``init``, the weights before the run, or ``final``, those after it.

        Returns
        -------
        Trained
            By the sparse recipe, with the hyper-parameters of the file.

        Raises
        ------
        UnreadableDataError
            If the file is not one of theirs: naming what is missing or does not fit.
        """
        if when not in ("init", "final"):
            raise InvalidInputError("when", str(when), "init or final")
        names = {x: f"{when}_{x}" for x in ("J", "W_in", "W_back", "W_out")}
        wanted = [*names.values(), "mask_J", "mask_in", "hp"]
        arrays = read_npz(path, wanted)
        try:
            return cls(*_read_authors(arrays, names))
        except (*MALFORMED, RuntimeError, InvalidInputError) as problem:
            raise UnreadableDataError(f"{path} is not a file of the authors: {problem}") from None

    def _scaled(self, inputs: Array) -> Array:
        if self.scaling is None:
            return inputs
        mean, deviation = self.scaling
        x = as_tensor("inputs", inputs).to(dtype=torch.float64, device=mean.device)
        if x.dim() != 2 or x.shape[1] != len(mean):
            allowed = f"of shape (samples, {len(mean)}), the inputs of this network"
            raise InvalidInputError("inputs", str(tuple(x.shape)), allowed)
        # an input that never varied says nothing: it is 0
        scale = torch.where(deviation > 0, deviation, torch.inf)
        return ((x - mean) / scale).to(torch.float32)


class TrainedModule(torch.nn.Module):
    """A trained network as a module of torch: ``module(x)`` is W s, (samples, C).

    Everything is in its buffers and its extra state, so that ``torch.save(module.state_dict(), F)``
    and ``torch.load(F, weights_only=True)`` keep it; ``to`` moves it between devices. It has no
    parameters to optimise, and its output has no gradient.

    Parameters
    ----------
    network : Trained
        What it computes.
    """

    def __init__(self, network: Trained) -> None:
        super().__init__()
        self._header: dict[str, Any] = {
            "format": _FORMAT,
            "parameters": network.parameters.to_dict(),
            "seed": network.state.seed,
            "step": network.state.step,
            "labels": None if network.labels is None else list(network.labels),
        }
        tensors = network.state.tensors()
        if network.readout is not None:
            tensors[_READOUT] = network.readout.weights
        if network.scaling is not None:
            tensors[_MEAN], tensors[_DEVIATION] = network.scaling
        for name, value in tensors.items():
            own = value.detach().clone(memory_format=torch.contiguous_format)
            self.register_buffer(name, own.to(network.state.device))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the outputs for the inputs `x`, (samples, D)."""
        with torch.no_grad():
            return self.network().outputs(x)

    def states(self, x: torch.Tensor) -> torch.Tensor:
        """Return the states at inference as int8, (samples, layers, n)."""
        with torch.no_grad():
            return self.network().states(x)

    def predict(self, x: torch.Tensor) -> torch.Tensor:
        """Return the class numbers with the largest outputs."""
        return self.forward(x).argmax(1)

    def network(self) -> Trained:
        """Return the network; its weights are those of the module, not copies."""
        return _network(self._header, dict(self.named_buffers()))

    def get_extra_state(self) -> dict[str, Any]:
        """Return the protocol, the seed, the batches learnt and the labels, for the state dict."""
        return dict(self._header)

    def set_extra_state(self, state: Any) -> None:
        """Take them from a state dict."""
        self._header = _checked_header(state)

    def extra_repr(self) -> str:
        """Say what it is when the module is printed."""
        chosen = Parameters.from_dict(self._header["parameters"])
        layers, n = chosen.couplings.shape
        return f"n={n}, layers={layers}, jd={chosen.couplings.jd}, batches={self._header['step']}"


def predict_file(
    folder: str | Path, data: str | Path, *, device: str | torch.device = "auto"
) -> list[int | str]:
    """Return the label of each sample of a file, by the probe of a run or else its perceptrons.

    Parameters
    ----------
    folder : path
        Of the run.
    data : path
        Inputs, as for :func:`rmsim.data.own_files.read_table`; labels in it are ignored. They are
        scaled as the inputs that the run was trained on, if these were data of your own.
    device : str
        Where to compute.
    """
    network = Trained.of(folder, device)
    labels = Folder(Path(folder)).labels
    encoding = Encoding.load(labels) if labels.exists() else None
    table = read_table(data, "y" if encoding is None else encoding.files[2])
    inputs = table.inputs if encoding is None else encoding.ordered(table, data)
    numbers = network.predict(torch.as_tensor(inputs)).tolist()
    return numbers if network.labels is None else [network.labels[number] for number in numbers]


def _scaling(encoding: Encoding, device: torch.device) -> tuple[torch.Tensor, torch.Tensor] | None:
    if encoding.mean is None or encoding.deviation is None:
        return None
    mean, deviation = (torch.tensor(x, device=device) for x in (encoding.mean, encoding.deviation))
    return mean, deviation


def _checked_header(header: Any) -> dict[str, Any]:
    """Return the extra state of a state dict; refuse that of another kind of module."""
    try:
        if header["format"] != _FORMAT:
            there = f"format {header['format']}; this version reads {_FORMAT}"
            raise UnreadableDataError(f"the state dict has {there}")
        Parameters.from_dict(header["parameters"])
        for name in ("seed", "step"):
            checks.integer(name, header[name], 0)
        labels = header["labels"]
        if labels is not None and not isinstance(labels, list):
            raise ValueError(f"labels must be a list, got {labels!r}")
        return dict(header)
    except (*MALFORMED, InvalidInputError) as problem:
        raise UnreadableDataError(
            f"the state dict is not that of a trained network: {problem}"
        ) from None


def _network(header: Any, tensors: Mapping[str, torch.Tensor]) -> Trained:
    """Return the network of a state dict, after all checks."""
    header = _checked_header(header)
    parameters = Parameters.from_dict(header["parameters"])
    try:
        dtype = tensors["j"].dtype
        if dtype not in (torch.float32, torch.float64):
            raise ValueError(f"the weights are of type {dtype}, not float32 or float64")
        demand_consistent(parameters, dtype, tensors)
        state = state_of(parameters, tensors, header["seed"], header["step"])
        readout = scaling = None
        if _READOUT in tensors:
            weights, shape = tensors[_READOUT], (state.classes, int(state.a_out.sum()))
            _demand_shape(_READOUT, weights, shape)
            readout = LinearReadout(weights)
        if _MEAN in tensors:
            for name in (_MEAN, _DEVIATION):
                _demand_shape(name, tensors[name], (state.inputs,))
            scaling = (tensors[_MEAN].double(), tensors[_DEVIATION].double())
        labels = header["labels"]
        if labels is not None and len(labels) != state.classes:
            raise ValueError(f"{len(labels)} labels for {state.classes} classes")
    except KeyError as problem:
        raise UnreadableDataError(f"the state dict lacks {problem}") from None
    except (*MALFORMED, RuntimeError, InvalidInputError) as problem:
        raise UnreadableDataError(
            f"the state dict is not that of a trained network: {problem}"
        ) from None
    return Trained(parameters, state, readout, None if labels is None else tuple(labels), scaling)


def _demand_shape(name: str, tensor: torch.Tensor, shape: tuple[int, ...]) -> None:
    if tuple(tensor.shape) != shape or not tensor.is_floating_point():
        what = f"{tensor.dtype} of shape {tuple(tensor.shape)}"
        raise ValueError(f"{name} is {what}, not floating point of shape {shape}")
    if not bool(tensor.isfinite().all()):
        raise ValueError(f"{name} holds a number that is not finite")


def _read_authors(arrays: Mapping[str, Any], names: Mapping[str, str]) -> tuple[Parameters, State]:
    """Return protocol and weights from their arrays, which are [from, to]."""
    numbers = parse_json(str(arrays["hp"]))
    matrices = {}
    for ours, theirs in names.items():
        stored = np.asarray(arrays[theirs])
        if stored.ndim != 2 or stored.dtype not in (np.float32, np.float64):
            raise ValueError(f"{theirs} is {stored.dtype} of shape {stored.shape}, not a matrix")
        if not np.isfinite(stored).all():
            raise ValueError(f"{theirs} holds a number that is not finite")
        matrices[ours] = torch.tensor(stored.T)
    n, classes = matrices["W_back"].shape
    parameters = sparse_recipe(
        n, classes=classes, **{ours: numbers[theirs] for theirs, ours in _AUTHORS.items()}
    )
    present = {}
    for name, matrix in (("mask_J", matrices["J"]), ("mask_in", matrices["W_in"])):
        mask = np.asarray(arrays[name])
        if mask.dtype != np.bool_ or mask.T.shape != tuple(matrix.shape):
            raise ValueError(f"{name} is {mask.dtype} of shape {mask.shape}, not a mask of weights")
        present[name] = torch.tensor(mask.T)
    off = ~torch.eye(n, dtype=torch.bool)
    if tuple(matrices["J"].shape) != (n, n):
        raise ValueError(f"{names['J']} has shape {tuple(matrices['J'].shape)}, not ({n}, {n})")
    diagonal = matrices["J"].diagonal()
    if not bool(((diagonal == 0) | ((diagonal - parameters.couplings.jd).abs() < 1e-6)).all()):
        raise ValueError(f"{names['J']} has other numbers than j_d on its diagonal")
    for ours, name, where in (("J", "mask_J", off), ("W_in", "mask_in", torch.tensor(True))):
        if bool((matrices[ours][~present[name] & where] != 0).any()):
            raise ValueError(f"{names[ours]} has weights where {name} has none")
    state = state_of_matrices(
        parameters,
        matrices["J"].unsqueeze(0),
        matrices["W_in"],
        matrices["W_back"],
        matrices["W_out"],
        present_j=present["mask_J"].unsqueeze(0),
        present_in=present["mask_in"],
    )
    return parameters, state
