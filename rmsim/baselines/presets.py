"""Numbers of the paper for the baselines, by the names that training uses (SM-D)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from rmtheory.errors import InvalidInputError


@dataclass(frozen=True)
class BaselinePreset:
    """What a baseline is compared with, and how it is trained.

    Parameters
    ----------
    dataset : str
        Name of the data set.
    n, rho_j, rho_in, jd, lambda_x : number
        Of the network that it is a baseline of.
    eta_mlp, epochs_mlp : number
        Rate and epochs of the perceptron with hidden layers.
    eta_out, kappa_out, epochs_out : number
        Rate, margin and epochs of the readout of frozen features.
    """

    dataset: str = "entangled-mnist"
    n: int = 1000
    rho_j: float = 0.01
    rho_in: float = 0.1
    jd: float = 0.9
    lambda_x: float = 5.0
    eta_mlp: float = 0.005
    epochs_mlp: int = 20
    eta_out: float = 0.03
    kappa_out: float = 3.0
    epochs_out: int = 20


#: Name -> numbers: tables mnist, fmnist, emnist and timg, and that of feature learning.
PRESETS: Mapping[str, BaselinePreset] = MappingProxyType(
    {
        "mnist": BaselinePreset("mnist", jd=0.95, eta_mlp=0.003),
        "fashion-mnist": BaselinePreset("fashion-mnist", jd=0.98, lambda_x=4.91, eta_mlp=0.003),
        "entangled-mnist": BaselinePreset(),
        "tiny-imagenet-features": BaselinePreset("tiny-imagenet-features", n=1155),
        "entangled-mnist-dense": BaselinePreset(
            n=1600, rho_j=1.0, rho_in=1.0, jd=0.5, epochs_out=200
        ),
    }
)


def baseline_preset(name: str) -> BaselinePreset:
    """Return the preset called `name`."""
    if name not in PRESETS:
        raise InvalidInputError("preset", name, f"one of {', '.join(PRESETS)}")
    return PRESETS[name]
