"""What learning is compared with: a binarised perceptron by backpropagation, frozen features."""

from rmsim.baselines.frozen import frozen_features, reservoir_parameters
from rmsim.baselines.mlp import Mlp, MlpFit, MlpParameters, fit_mlp
from rmsim.baselines.presets import BaselinePreset, baseline_preset
from rmsim.baselines.width import core_parameters, matched_width, mlp_parameters

__all__ = [
    "BaselinePreset",
    "Mlp",
    "MlpFit",
    "MlpParameters",
    "baseline_preset",
    "core_parameters",
    "fit_mlp",
    "frozen_features",
    "matched_width",
    "mlp_parameters",
    "reservoir_parameters",
]
