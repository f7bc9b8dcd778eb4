"""What the local entropy refuses, and how it says so."""

from typing import Any

import pytest

from rmtheory import Chain, InvalidInputError
from rmtheory.local_entropies.curves import curve
from rmtheory.local_entropies.points import local_entropy, ystar


@pytest.mark.parametrize("d", [0, 0.5, -0.1, 0.7, "1/2", float("nan"), float("inf"), None, "x"])
def test_bad_distances(d: Any) -> None:
    chain = Chain(1, 0.1)
    for call in (
        lambda: local_entropy(chain, d, 2),
        lambda: ystar(chain, d),
        lambda: curve(chain, [0.1, d]),
    ):
        with pytest.raises(InvalidInputError, match=r"^d must be (strictly between|a finite real)"):
            call()


@pytest.mark.parametrize("y", [0, -1, float("nan"), float("inf"), "two"])
def test_bad_replica_numbers(y: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^y must be (a number > 0|a finite real number)"):
        local_entropy(Chain(1, 0.1), 0.1, y)


@pytest.mark.parametrize("layers", [1, 2, 3, "inf"])
def test_the_curve_wants_a_self_coupling_that_is_not_negative(layers: Any) -> None:
    chain = Chain.at_depth(layers, -0.01, 0.3)
    for call in (lambda: ystar(chain, 0.1), lambda: curve(chain, [0.1, 0.2])):
        with pytest.raises(InvalidInputError, match=r"^jd must be at least 0 .*, got -0.01"):
            call()


@pytest.mark.parametrize("digits", [13, 30])
def test_two_layers_have_twelve_digits(digits: int) -> None:
    with pytest.raises(InvalidInputError, match=r"^digits must be at most 12 for two layers"):
        local_entropy(Chain(2, 0.1, 0.3), 0.3, 2, digits)


@pytest.mark.parametrize("digits", [0, -3, 2.5])
def test_bad_digits(digits: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^digits must be an integer"):
        local_entropy(Chain(1, 0.1), 0.1, 2, digits)


def test_an_empty_curve() -> None:
    with pytest.raises(InvalidInputError, match=r"^distances must be at least one distance"):
        curve(Chain(1, 0.1), [])
