"""The model: a chain of core modules with self-coupling J_D and inter-layer couplings lambda."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple

from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError


class Couplings(NamedTuple):
    """Exact couplings (J_D, lambda_L, lambda_R) as fractions."""

    jd: Fraction
    lam_left: Fraction
    lam_right: Fraction


@dataclass(frozen=True, init=False, repr=False)
class Chain:
    r"""A chain of `layers` core modules.

    Spin i of layer l follows (paper, eq. multilayer-chain-update)

    .. math:: s^l_i \leftarrow \mathrm{sgn}\Big(\sum_{j\ne i} J^l_{ij} s^l_j + J_D s^l_i
        + \lambda_L s^{l-1}_i + \lambda_R s^{l+1}_i\Big), \qquad J^l_{ij}\sim\mathcal N(0, 1/N).

    Parameters
    ----------
    layers : int or math.inf
        Number of core modules L >= 1.
    jd : real
        Self-coupling J_D.
    lam : real, optional
        Sets both `lam_left` and `lam_right`. One of `lam` or the pair is required for two layers
        or more; a single layer has no neighbours, and a lambda other than 0 is refused.
    lam_left, lam_right : real, optional
        Coupling to the previous and to the next layer.

    Notes
    -----
    The attributes `jd`, `lam_left`, `lam_right` are floats, ready for numpy; `exact` holds the
    same couplings as fractions, for evaluations to many digits. Strings, fractions and decimals
    are taken exactly, and a float stands for the decimal it prints as.

    Examples
    --------
    >>> import rmtheory as rt
    >>> rt.Chain(2, jd=0.3, lam=0.7)
    Chain(layers=2, jd=0.3, lam=0.7)
    >>> rt.Chain("inf", "0.1", lam_left=0.9, lam_right=0.3)
    Chain(layers=inf, jd=0.1, lam_left=0.9, lam_right=0.3)
    """

    layers: int | float
    jd: float
    lam_left: float
    lam_right: float
    exact: Couplings = field(init=False)

    def __init__(
        self,
        layers: int | float | str,
        jd: checks.RealLike,
        lam: checks.RealLike | None = None,
        *,
        lam_left: checks.RealLike | None = None,
        lam_right: checks.RealLike | None = None,
    ) -> None:
        count = checks.layers(layers)
        if lam is not None and (lam_left is not None or lam_right is not None):
            raise InvalidInputError("lam", lam, "absent when lam_left or lam_right is given")
        left = lam if lam_left is None else lam_left
        right = lam if lam_right is None else lam_right
        if count == 1:
            left = 0 if left is None else left
            right = 0 if right is None else right
        for argument, value in (("lam_left", left), ("lam_right", right)):
            if value is None:
                name = "lam" if left is right else argument
                raise InvalidInputError(name, "nothing", "given for two layers or more")
        exact = Couplings(
            checks.exact_real("jd", jd),
            checks.exact_real("lam" if lam is not None else "lam_left", left),
            checks.exact_real("lam" if lam is not None else "lam_right", right),
        )
        for argument, value, coupling in (
            ("lam" if lam is not None else "lam_left", left, exact.lam_left),
            ("lam" if lam is not None else "lam_right", right, exact.lam_right),
        ):
            if count == 1 and coupling != 0:
                allowed = "absent or 0 for one layer, it needs layers >= 2"
                raise InvalidInputError(argument, value, allowed)
        for name, number in (
            ("layers", count),
            ("jd", float(exact.jd)),
            ("lam_left", float(exact.lam_left)),
            ("lam_right", float(exact.lam_right)),
            ("exact", exact),
        ):
            object.__setattr__(self, name, number)

    @classmethod
    def at_depth(
        cls,
        layers: int | float | str,
        jd: checks.RealLike,
        lam: checks.RealLike | None = None,
        *,
        lam_left: checks.RealLike | None = None,
        lam_right: checks.RealLike | None = None,
    ) -> Chain:
        """Return the member of a family of chains at some depth; at one layer lambda is left out.

        Examples
        --------
        >>> [Chain.at_depth(layers, jd=0.3, lam=0.7) for layers in (1, 2)]
        [Chain(layers=1, jd=0.3), Chain(layers=2, jd=0.3, lam=0.7)]
        """
        if checks.layers(layers) == 1:
            return cls(1, jd)
        return cls(layers, jd, lam, lam_left=lam_left, lam_right=lam_right)

    @property
    def uniform(self) -> bool:
        """Whether lambda_L = lambda_R."""
        return self.exact.lam_left == self.exact.lam_right

    @property
    def finite_layers(self) -> int:
        """The number of layers, refused when infinite."""
        if self.layers == math.inf:
            raise InvalidInputError("layers", "inf", "finite for this quantity")
        return int(self.layers)

    def refuse_beyond(self, most: float) -> None:
        """Refuse couplings whose size is above `most`, where floating point would overflow."""
        for name in ("jd", "lam_left", "lam_right"):
            value = getattr(self.exact, name)
            if abs(value) > most:
                allowed = f"of size at most {most:g} for this quantity"
                raise InvalidInputError(name, decimal_string(value), allowed)

    def parameters(self) -> dict[str, int | str]:
        """The defining numbers as JSON values: decimal strings, and ``inf`` for infinite L."""
        return {
            "layers": int(self.layers) if math.isfinite(self.layers) else "inf",
            "jd": decimal_string(self.exact.jd),
            "lam_left": decimal_string(self.exact.lam_left),
            "lam_right": decimal_string(self.exact.lam_right),
        }

    def __repr__(self) -> str:
        parameters = self.parameters()
        if self.layers == 1:
            names = ["layers", "jd"]
        elif self.uniform:
            parameters["lam"] = parameters["lam_left"]
            names = ["layers", "jd", "lam"]
        else:
            names = ["layers", "jd", "lam_left", "lam_right"]
        return f"Chain({', '.join(f'{name}={parameters[name]}' for name in names)})"


def decimal_string(x: Fraction) -> str:
    """Return the exact decimal expansion of `x` when it ends, otherwise ``p/q``.

    Examples
    --------
    >>> decimal_string(Fraction(1, 8)), decimal_string(Fraction(1, 3))
    ('0.125', '1/3')
    """
    odd_part, power = x.denominator, 0
    for prime in (2, 5):
        exponent = 0
        while odd_part % prime == 0:
            odd_part //= prime
            exponent += 1
        power = max(power, exponent)
    if odd_part != 1:
        return str(x)
    shifted = x.numerator * 10**power // x.denominator
    with localcontext() as context:
        context.prec = max(1, len(str(abs(shifted))))  # scaleb rounds to the context
        text = Decimal(shifted).scaleb(-power) if shifted else Decimal(0)
    if -7 < text.adjusted() < 21:
        return f"{text:f}"
    digits = "".join(map(str, text.as_tuple().digits)).rstrip("0")
    mantissa = digits[0] + (f".{digits[1:]}" if digits[1:] else "")
    return f"{'-' if x < 0 else ''}{mantissa}e{text.adjusted()}"
