"""Data sets to learn from, as frozen arrays with their origin, licence and checksum.

Entangled MNIST ships with the package (:mod:`rmsim.data.entangled`); MNIST and Fashion-MNIST are
read from IDX files or downloaded (:mod:`rmsim.data.mnist`); features of Tiny ImageNet are read from
files of the user (:mod:`rmsim.data.features`). :func:`load` finds them by name.
"""

from rmsim.data.catalogue import CATALOGUE, load
from rmsim.data.dataset import Dataset, Samples
from rmsim.data.entangled import entangled_mnist
from rmsim.data.prototypes import synthetic

__all__ = ["CATALOGUE", "Dataset", "Samples", "entangled_mnist", "load", "synthetic"]
