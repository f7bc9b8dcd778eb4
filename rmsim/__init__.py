r"""Simulator of asymmetric recurrent networks: dynamics, enumeration, thresholds, learning.

The front door; every name is imported when it is first used, so that torch is loaded by what
computes and not by ``import rmsim`` or a command's ``--help``.

.. code-block:: python

    import rmsim as rs

    network = rs.Network(n=200, chain=rs.Chain(layers=1, jd=0.8))
    rs.relax(network, samples=10).solved

===================================  ========================================================
:class:`Network`, :class:`Chain`     what is simulated; ``Network.from_array`` takes your own J
:func:`draw`                         the couplings of some disorder samples
:func:`relax`                        dynamics from random states, or from your own
:func:`find_fixed_point`             a fixed point of each network, by six methods
:func:`belief_propagation`           magnetisations and Bethe entropy of the fixed points
:func:`enumerate_fixed_points`       every fixed point of a small network
:func:`enumerate_samples`            how many fixed points each of many small networks has
:func:`local_entropy_around`         entropy of the fixed points at a distance from one
:func:`thresholds`                   coupling at which a method begins to find fixed points
:func:`run_sweep`, :func:`collect`   many points of a grid, resumable: :class:`Sweep`, :class:`Grid`
:func:`load_data`                    data sets by name, or from a file of your own
:func:`synthetic`                    a data set of any size: noisy copies of random patterns
:func:`train`, :func:`evaluate`      learning in the representation manifold: :class:`Plan`
:class:`RMClassifier`                the same as a classifier of scikit-learn
:class:`Trained`                     a trained network: predictions, to torch and back
===================================  ========================================================

:class:`Status` says how a search ended. Specialists find more in the subpackages, which need no
import of their own (``rs.learning.preset``):
:mod:`rmsim.couplings`, :mod:`rmsim.dynamics`, :mod:`rmsim.search`, :mod:`rmsim.enumeration`,
:mod:`rmsim.sweep`, :mod:`rmsim.data`, :mod:`rmsim.learning`, :mod:`rmsim.studies`. What is in no
``__all__`` is private.

It is built on the types and the infrastructure of :mod:`rmtheory` (parameters, errors, files,
processes) and calls its physics only to compare, in :mod:`rmsim.studies`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmsim import couplings as couplings
    from rmsim import data as data
    from rmsim import dynamics as dynamics
    from rmsim import enumeration as enumeration
    from rmsim import learning as learning
    from rmsim import search as search
    from rmsim import studies as studies
    from rmsim import sweep as sweep
    from rmsim import tensors as tensors
    from rmsim.couplings.chains import draw
    from rmsim.data.catalogue import load_data
    from rmsim.data.dataset import Dataset, Samples, synthetic
    from rmsim.dynamics.relaxation import relax
    from rmsim.dynamics.status import SearchResult, Status
    from rmsim.enumeration.exhaustive import enumerate_fixed_points, enumerate_samples
    from rmsim.learning.estimator import RMClassifier
    from rmsim.learning.run_folder import Plan
    from rmsim.learning.trained import Trained
    from rmsim.learning.training import evaluate, train, train_many
    from rmsim.network import Network
    from rmsim.search.amp import belief_propagation
    from rmsim.search.methods import find_fixed_point
    from rmsim.search.tap_entropy import local_entropy_around
    from rmsim.studies.convergence import thresholds
    from rmsim.sweep.definition import Grid, Sweep
    from rmsim.sweep.directory import collect
    from rmsim.sweep.running import Local, Serial, run_sweep
    from rmtheory.base.chain import Chain
else:
    from rmtheory.base.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".couplings.chains": ["draw"],
            ".data.catalogue": ["load_data"],
            ".data.dataset": ["Dataset", "Samples", "synthetic"],
            ".dynamics.relaxation": ["relax"],
            ".dynamics.status": ["SearchResult", "Status"],
            ".enumeration.exhaustive": ["enumerate_fixed_points", "enumerate_samples"],
            ".learning.estimator": ["RMClassifier"],
            ".learning.run_folder": ["Plan"],
            ".learning.trained": ["Trained"],
            ".learning.training": ["evaluate", "train", "train_many"],
            ".network": ["Network"],
            ".search.amp": ["belief_propagation"],
            ".search.methods": ["find_fixed_point"],
            ".search.tap_entropy": ["local_entropy_around"],
            ".studies.convergence": ["thresholds"],
            ".sweep.definition": ["Grid", "Sweep"],
            ".sweep.directory": ["collect"],
            ".sweep.running": ["Local", "Serial", "run_sweep"],
            "rmtheory.base.chain": ["Chain"],
        },
        (
            "couplings",
            "data",
            "dynamics",
            "enumeration",
            "learning",
            "search",
            "studies",
            "sweep",
            "tensors",
        ),
    )

__all__ = [
    "Chain",
    "Dataset",
    "Grid",
    "Local",
    "Network",
    "Plan",
    "RMClassifier",
    "Samples",
    "SearchResult",
    "Serial",
    "Status",
    "Sweep",
    "Trained",
    "belief_propagation",
    "collect",
    "draw",
    "enumerate_fixed_points",
    "enumerate_samples",
    "evaluate",
    "find_fixed_point",
    "load_data",
    "local_entropy_around",
    "relax",
    "run_sweep",
    "synthetic",
    "thresholds",
    "train",
    "train_many",
]
