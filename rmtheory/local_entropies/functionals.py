"""The type of functional that belongs to a chain: the only place that depends on the depth."""

from __future__ import annotations

from rmtheory.base.chain import Chain
from rmtheory.local_entropies.core import CoreFunctional
from rmtheory.local_entropies.functional import Functional
from rmtheory.local_entropies.pair import PairFunctional
from rmtheory.local_entropies.transfer_operator import transfer_functional

_TYPES: dict[int | float, type[Functional]] = {1: CoreFunctional, 2: PairFunctional}


def functional(chain: Chain) -> Functional:
    """Return the local-entropy functional of a chain.

    One and two layers are integrated on nodes, more by the transfer operator.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> functional(Chain(1, 0.1)).label, functional(Chain("inf", 0.1, 0.3)).label
    ('trapezoid quadrature, two resolutions', 'transfer operator, two grids')
    """
    return _TYPES.get(chain.layers, transfer_functional)(chain)
