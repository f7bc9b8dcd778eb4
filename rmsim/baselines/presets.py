"""Baselines of the presets that training has: the same data and network, other ways to learn.

The rates of the perceptron with hidden layers are those of the paper's tables mnist, fmnist, emnist
and timg (SM-D); rate and margin of the readout of frozen features those of its table on feature
learning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from rmsim.learning.presets import preset

#: Data set -> rate of Adam for the perceptron with hidden layers.
ETA_MLP: Mapping[str, float] = MappingProxyType(
    {
        "mnist": 0.003,
        "fashion-mnist": 0.003,
        "entangled-mnist": 0.005,
        "tiny-imagenet-features": 0.005,
    }
)


@dataclass(frozen=True)
class BaselinePreset:
    """What a baseline is compared with, and how it is trained.

    Parameters
    ----------
    dataset : str
        Name of the data set.
    n, rho_j, rho_in, jd, lambda_x : number
        Of the network that it is a baseline of.
    sweeps : int
        Sweeps of the reservoir.
    eta_mlp, epochs_mlp : number
        Rate and epochs of the perceptron with hidden layers.
    epochs_out : int
        Epochs of the readout of frozen features.
    eta_out, kappa_out : float
        Its rate and margin.
    """

    dataset: str
    n: int
    rho_j: float
    rho_in: float
    jd: float
    lambda_x: float
    sweeps: int
    eta_mlp: float
    epochs_mlp: int
    epochs_out: int
    eta_out: float = 0.03
    kappa_out: float = 3.0


def baseline_preset(name: str, n: object = None) -> BaselinePreset:
    """Return the baselines of the preset `name` of training, at width `n` or that of the paper.

    Examples
    --------
    >>> baseline_preset("mnist-sparse").eta_mlp, baseline_preset("mnist-sparse").n
    (0.003, 1000)
    """
    chosen = preset(name)
    width = chosen.width(n)
    network = chosen.parameters(width)
    epochs = chosen.epochs_at(width)
    return BaselinePreset(
        dataset=chosen.dataset,
        n=width,
        rho_j=network.rho_j,
        rho_in=network.rho_in,
        jd=network.jd,
        lambda_x=network.lambda_x,
        sweeps=network.inference,
        eta_mlp=ETA_MLP[chosen.dataset],
        epochs_mlp=epochs,
        epochs_out=epochs,
    )
