r"""Theory of the representation manifold: entropies of fixed points with errors you can defend.

The front door; every name is imported when it is first used.

.. code-block:: python

    import rmtheory as rt

    rt.entropy(rt.Chain(layers=2, jd=0.3, lam=0.7))

================================  ===========================================================
:class:`Chain`                    the model: L core modules, J_D, lambda
:func:`entropy`                   annealed entropy of the fixed points, S_a
:func:`entropy_array`             the same for arrays of couplings, in float64
:func:`mean_count`                mean number of fixed points of N neurons per layer, E[Z]
:func:`second_moment_ratio`       E[Z^2]/E[Z]^2, for N neurons per layer or N -> infinity
:func:`stability`                 stability of the replica-symmetric saddle point q = 0
:func:`instability_root`          J_D at which one layer loses that stability
:func:`local_entropy`             S_I and S_E at a distance d and y replicas
:func:`ystar`                     y*(d) and S_I*(d), where S_E = 0
:func:`typical_neighbourhood`     the same around a typical fixed point
:func:`curve`                     the same at many distances
:func:`critical_coupling`         J_D or lambda at which the dense regions become connected
:func:`monotonicity`              whether S_I*(d) rises everywhere, which decides on that
:func:`phase_diagram`             both boundaries in the plane of J_D and lambda
:func:`mean_field`                the dynamics as N -> infinity
:func:`derive`                    derivations of the formulas by sympy
:class:`Estimate`, :class:`Tier`  a number with its error, and how far to trust it
================================  ===========================================================

Bad input raises :class:`InvalidInputError`, a solver without an answer :class:`NotConvergedError`,
a formula that does not hold for the arguments :class:`OutsideValidityError`; all are
:class:`RMError`. Specialists find more in the subpackages, which need no import of their own
(``rt.replica.search_saddles``): :mod:`rmtheory.annealed`,
:mod:`rmtheory.second_moment`, :mod:`rmtheory.replica`, :mod:`rmtheory.local_entropies`,
:mod:`rmtheory.dynamics`, :mod:`rmtheory.explorer`, :mod:`rmtheory.symbolic`,
:mod:`rmtheory.base`, :mod:`rmtheory.runtime`. What is in no ``__all__`` is private.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmtheory import annealed as annealed
    from rmtheory import base as base
    from rmtheory import dynamics as dynamics
    from rmtheory import explorer as explorer
    from rmtheory import local_entropies as local_entropies
    from rmtheory import plots as plots
    from rmtheory import replica as replica
    from rmtheory import runtime as runtime
    from rmtheory import second_moment as second_moment
    from rmtheory import symbolic as symbolic
    from rmtheory.annealed.mean_number import entropy, mean_count
    from rmtheory.annealed.vectorised import entropy_array
    from rmtheory.base.chain import Chain
    from rmtheory.base.errors import (
        InvalidInputError,
        NotConvergedError,
        OutsideValidityError,
        RMError,
        StorageError,
        UnreadableDataError,
    )
    from rmtheory.base.estimate import Estimate, Tier
    from rmtheory.dynamics.averages import mean_field
    from rmtheory.local_entropies.curves import curve, monotonicity
    from rmtheory.local_entropies.diagram import phase_diagram
    from rmtheory.local_entropies.points import local_entropy, ystar
    from rmtheory.local_entropies.thresholds import critical_coupling
    from rmtheory.local_entropies.typical import typical_neighbourhood
    from rmtheory.replica.eigenvalues import instability_root, stability
    from rmtheory.second_moment.ratio import second_moment_ratio
    from rmtheory.symbolic.topics import derive
else:
    from rmtheory.base.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".annealed.mean_number": ["entropy", "mean_count"],
            ".annealed.vectorised": ["entropy_array"],
            ".base.chain": ["Chain"],
            ".base.errors": [
                "InvalidInputError",
                "NotConvergedError",
                "OutsideValidityError",
                "RMError",
                "StorageError",
                "UnreadableDataError",
            ],
            ".base.estimate": ["Estimate", "Tier"],
            ".dynamics.averages": ["mean_field"],
            ".local_entropies.curves": ["curve", "monotonicity"],
            ".local_entropies.diagram": ["phase_diagram"],
            ".local_entropies.points": ["local_entropy", "ystar"],
            ".local_entropies.thresholds": ["critical_coupling"],
            ".local_entropies.typical": ["typical_neighbourhood"],
            ".replica.eigenvalues": ["instability_root", "stability"],
            ".second_moment.ratio": ["second_moment_ratio"],
            ".symbolic.topics": ["derive"],
        },
        (
            "annealed",
            "base",
            "dynamics",
            "explorer",
            "local_entropies",
            "plots",
            "replica",
            "runtime",
            "second_moment",
            "symbolic",
        ),
    )

__all__ = [
    "Chain",
    "Estimate",
    "InvalidInputError",
    "NotConvergedError",
    "OutsideValidityError",
    "RMError",
    "StorageError",
    "Tier",
    "UnreadableDataError",
    "critical_coupling",
    "curve",
    "derive",
    "entropy",
    "entropy_array",
    "instability_root",
    "local_entropy",
    "mean_count",
    "mean_field",
    "monotonicity",
    "phase_diagram",
    "second_moment_ratio",
    "stability",
    "typical_neighbourhood",
    "ystar",
]
