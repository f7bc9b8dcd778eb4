"""What can be derived: a topic, the function that derives it, and the layers it takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from rmtheory import checks
from rmtheory.errors import InvalidInputError
from rmtheory.symbolic import replica
from rmtheory.symbolic.derivation import Derivation
from rmtheory.symbolic.topic_annealed import derive_annealed
from rmtheory.symbolic.topic_local_entropy import derive_local_entropy
from rmtheory.symbolic.topic_rs import derive_rs
from rmtheory.symbolic.topic_stability import derive_stability


@dataclass(frozen=True)
class Topic:
    """A topic and the largest number of layers it takes (math.inf: any, and infinity)."""

    derive: Callable[[int | float], Derivation]
    most_layers: int | float


TOPICS: dict[str, Topic] = {
    "annealed": Topic(derive_annealed, math.inf),
    "rs": Topic(derive_rs, replica.MOST_LAYERS_EXPLICIT),
    "stability": Topic(derive_stability, 2),
    "local-entropy": Topic(derive_local_entropy, 2),
}


def derive(topic: str, layers: int | float) -> Derivation:
    """Derive a topic for a number of layers, from the definition of the count.

    Parameters
    ----------
    topic : {"annealed", "rs", "stability", "local-entropy"}
        Annealed entropy (any L, and ``math.inf``), replica-symmetric functional (L = 1 ... 4),
        stability of the saddle q = qhat = 0, or local entropy (both L = 1 or 2).
    layers : int or math.inf
        Number of layers L.

    Examples
    --------
    >>> derivation = derive("stability", 1)
    >>> all(check.holds for check in derivation.checks)
    True
    >>> derive("rs", 5)
    Traceback (most recent call last):
        ...
    rmtheory.errors.InvalidInputError: layers must be an integer from 1 to 4 for topic rs, got 5
    """
    if topic not in TOPICS:
        raise InvalidInputError("topic", topic, "one of " + ", ".join(TOPICS))
    count = checks.layers(layers)
    most = TOPICS[topic].most_layers
    if count > most:
        shown = "inf" if math.isinf(count) else count
        raise InvalidInputError("layers", shown, f"an integer from 1 to {most} for topic {topic}")
    return _derive(topic, count)


@cache
def _derive(topic: str, layers: int | float) -> Derivation:
    return TOPICS[topic].derive(layers)
