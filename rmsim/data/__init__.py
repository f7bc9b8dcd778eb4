"""Data sets to learn from, as frozen arrays with their origin, licence and checksum.

Entangled MNIST ships with the package (:mod:`rmsim.data.dataset`); MNIST and Fashion-MNIST are
read from IDX files or downloaded (:mod:`rmsim.data.mnist`); features of Tiny ImageNet are read from
files of the user (:mod:`rmsim.data.features`). :func:`load` finds them by name.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmsim.data.catalogue import CATALOGUE, load, load_data
    from rmsim.data.dataset import Dataset, Samples, entangled_mnist, synthetic
    from rmsim.data.download import DownloadError
    from rmsim.data.own_files import Encoding, own_dataset
else:
    from rmtheory.base.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".catalogue": ["CATALOGUE", "load", "load_data"],
            ".dataset": ["Dataset", "Samples", "entangled_mnist", "synthetic"],
            ".download": ["DownloadError"],
            ".own_files": ["Encoding", "own_dataset"],
        },
    )

__all__ = [
    "CATALOGUE",
    "Dataset",
    "DownloadError",
    "Encoding",
    "Samples",
    "entangled_mnist",
    "load",
    "load_data",
    "own_dataset",
    "synthetic",
]
