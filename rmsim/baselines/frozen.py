"""Random features and the reservoir: the core module with nothing learnt but the readout (SM-D).

Both are the network before training, eta_J = eta_in = lambda_y = 0: the state after some sweeps
from s = 0 under the input. One sweep gives random features, s = sgn(W_in x), whatever J is; more
make a reservoir. As nothing in front of the readout changes, every state is computed once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from rmsim.data import Dataset, Samples
from rmsim.learning import Parameters, infer, initialise
from rmsim.readout import Features, checked_features

#: Samples relaxed between two reports of progress.
_TOGETHER = 2048


def reservoir_parameters(n: int, sweeps: int = 5, **others: Any) -> Parameters:
    """Return the core module of `n` neurons without learning, `sweeps` of them at inference.

    `others` are parameters of the network: jd, lambda_x, rho_j, rho_in.

    Examples
    --------
    >>> reservoir_parameters(400, jd=0.5).lambda_y
    0.0
    """
    frozen = {"eta_j": 0.0, "eta_in": 0.0, "eta_out": 0.0, "lambda_y": 0.0, "readout": "none"}
    return Parameters.from_dict({"n": n, "inference": sweeps, **others, **frozen})


def frozen_features(
    parameters: Parameters,
    data: Dataset,
    seed: int,
    device: torch.device | str = "cpu",
    progress: Callable[[int], None] = lambda samples: None,
) -> tuple[Features, Features]:
    """Return the states of the untrained network under the training and the test inputs.

    Parameters
    ----------
    parameters : Parameters
        See `reservoir_parameters`.
    data : Dataset
        Inputs and labels.
    seed : int
        Seed of the weights, the same as those of a network that learns.
    device : optional
        Where to compute.
    progress : callable
        Told how many samples are done, of both parts together.
    """
    state = initialise(parameters, data.width, data.classes, seed, device=device)

    def states(samples: Samples, before: int) -> Features:
        inputs, labels = samples.tensors(state.dtype)
        found = torch.empty((len(samples), parameters.neurons), dtype=torch.int8)
        for first in range(0, len(samples), _TOGETHER):
            part = slice(first, first + _TOGETHER)
            found[part] = infer(parameters, state, inputs[part]).flatten(1).cpu()
            progress(before + min(first + _TOGETHER, len(samples)))
        return checked_features(found, labels, data.classes, device)

    return states(data.train, 0), states(data.test, len(data.train))
