import math
from dataclasses import FrozenInstanceError, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmtheory import Chain, InvalidInputError
from rmtheory.base.chain import decimal_string
from rmtheory.base.checks import exact_real


def test_uniform_and_separate_couplings() -> None:
    assert Chain(2, 0.3, 0.7) == Chain(2, "0.3", lam_left=0.7, lam_right=Fraction(7, 10))
    assert Chain(2, 0.3, 0.7) != Chain(2, 0.3, lam_left=0.7, lam_right=0.71)
    assert Chain(np.int64(2), np.float64(0.3), Decimal("0.7")).lam_left == 0.7


def test_a_float_means_the_decimal_it_prints_as() -> None:
    assert Chain(1, 0.1).exact.jd == Fraction(1, 10)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e290, max_value=1e290))
def test_exact_real_round_trips_floats(x: float) -> None:
    assert float(exact_real("x", x)) == x


def test_frozen_hashable_replaceable() -> None:
    chain = Chain(3, 0.1, 0.5)
    with pytest.raises(FrozenInstanceError):
        chain.jd = 2.0  # type: ignore[misc]
    assert hash(chain) == hash(Chain(3, "0.1", "0.5"))
    assert replace(chain, jd=0.2) == Chain(3, 0.2, 0.5)


def test_prints_itself() -> None:
    assert repr(Chain(1, 0.5)) == "Chain(layers=1, jd=0.5)"
    assert repr(Chain(2, 0.5, 1)) == "Chain(layers=2, jd=0.5, lam=1)"
    assert repr(Chain(math.inf, "1/3", lam_left=-1, lam_right=0)) == (
        "Chain(layers=inf, jd=1/3, lam_left=-1, lam_right=0)"
    )


def test_one_layer_has_no_neighbours() -> None:
    assert Chain(1, 0.5, lam=0) == Chain.at_depth(1, 0.5, lam=0.7) == Chain(1, 0.5)
    assert Chain.at_depth(2, 0.5, lam=0.7) == Chain(2, 0.5, lam=0.7)
    with pytest.raises(
        InvalidInputError, match=r"^lam must be absent or 0 for one layer, it needs"
    ):
        Chain(1, 0.5, lam=0.7)
    with pytest.raises(InvalidInputError, match=r"^lam_right must be absent or 0 for one layer"):
        Chain(1, 0.5, lam_left=0, lam_right=0.7)


@pytest.mark.parametrize("layers", [0, -1, 2.5, math.nan, -math.inf, "two", None, True, "nan"])
def test_bad_layers(layers: object) -> None:
    with pytest.raises(InvalidInputError, match="layers must be an integer >= 1 or inf, got"):
        Chain(layers, 0.1, 0.2)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "jd",
    [
        math.nan,
        math.inf,
        -math.inf,
        "inf",
        "nan",
        "abc",
        "",
        None,
        "1/0",
        "1e400",
        1j,
        "1e-999999999",
    ],
)
def test_bad_jd(jd: object) -> None:
    with pytest.raises(InvalidInputError, match="jd must be a finite real number"):
        Chain(1, jd)  # type: ignore[arg-type]


def test_lam_is_required_for_two_layers() -> None:
    with pytest.raises(InvalidInputError, match="lam must be given for two layers or more"):
        Chain(2, 0.1)
    with pytest.raises(InvalidInputError, match="lam_right must be given"):
        Chain(2, 0.1, lam_left=0.2)
    with pytest.raises(InvalidInputError, match="lam must be absent"):
        Chain(2, 0.1, 0.2, lam_left=0.2)
    with pytest.raises(InvalidInputError, match="lam_left must be a finite real number, got nan"):
        Chain(2, 0.1, lam_left=math.nan, lam_right=0.1)


@given(st.fractions(max_denominator=10**6))
def test_decimal_string_is_exact(x: Fraction) -> None:
    text = decimal_string(x)
    assert Fraction(text) == x
