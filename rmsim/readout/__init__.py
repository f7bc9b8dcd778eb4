"""Linear readouts of frozen features: the softmax probe and the online perceptron."""

from rmsim.readout.features import Features, checked_features
from rmsim.readout.linear import LinearReadout, Score
from rmsim.readout.perceptron import PerceptronFit, PerceptronParameters, fit_perceptron
from rmsim.readout.probe import ProbeFit, ProbeParameters, fit_probe

__all__ = [
    "Features",
    "LinearReadout",
    "PerceptronFit",
    "PerceptronParameters",
    "ProbeFit",
    "ProbeParameters",
    "Score",
    "checked_features",
    "fit_perceptron",
    "fit_probe",
]
