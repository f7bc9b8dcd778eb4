"""What the couplings J_D and lambda do for learning (main text, role of the RM; SM-G)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from figures.claims.accuracy import OURS_NOTE, above, accuracy, drastic
from figures.claims.claim import Claim, Ours, not_run
from figures.claims.read import At, Minus, Reading, at, difference, ours, select

_DUALITY = "main text, figure of the duality"
_ROLE = "SM-G, role of J_D"

#: What the two-layer chain is run with: the paper gives neither.
_OURS = {"n": 800, "epochs": 20}
_SIZE = "2 x 800 neurons, 20 epochs"


def _unable(name: str, symbol: str) -> Claim:
    return Claim(
        f"duality without {name}",
        f"test accuracy of two layers at J_D = λ = 0, {_SIZE} (curve of {symbol})",
        "unable to learn",
        _DUALITY,
        "0.1",
        "jd_lambda_duality",
        at(f"test_accuracy_{name}", **{name: 0.0}, **_OURS),
        tolerance=0.05,
        note=f"Guessing is right in one of ten. {OURS_NOTE}",
    )


def _sudden(name: str, quantity: str, most: float) -> Claim:
    with_it, without = (
        at(f"test_accuracy_{name}", **{name: value}, **_OURS) for value in (most, 0.0)
    )
    return drastic(
        f"duality in {name}",
        f"test accuracy of two layers at {quantity}, {_SIZE}",
        "suddenly and drastically improves",
        *(_DUALITY, "jd_lambda_duality", Minus(with_it, without)),
    )


def _accuracy(part: str, n: int, jd: float) -> At:
    return accuracy(part, "full", n, jd)


@dataclass(frozen=True)
class _Spread:
    """Largest minus least training accuracy over J_D from 0.2 on, one N."""

    n: int

    def __call__(self, data: xr.Dataset) -> Ours | None:
        one = select(data, {"scheme": "full", "n": self.n, "epochs": 100})
        if one is None:
            return None
        part = one.isel(jd=np.flatnonzero(one["jd"].values >= 0.2 - 1e-9))
        name = "training_accuracy"
        values = part[name].values
        ends = [part.isel(jd=int(place)) for place in (np.argmax(values), np.argmin(values))]
        return difference(*(ours(end[name], end[f"{name}_error"]) for end in ends))


def _positive(key: str, quantity: str, printed: str, read: Reading, note: str = "") -> Claim:
    """Something of trained networks that the paper says is positive."""
    return above(key, quantity, printed, _ROLE, read, note=note)


def _gain(part: str) -> Minus:
    """What width gains in accuracy."""
    return Minus(_accuracy(part, 3200, 0.5), _accuracy(part, 100, 0.5))


def _benefit(n: int) -> Minus:
    """What self-coupling gains in test accuracy."""
    return Minus(_accuracy("test", n, 0.5), _accuracy("test", n, 0.05))


ROLES = (
    _unable("jd", "J_D"),
    _unable("lam", "λ"),
    _sudden("jd", "λ = 0, J_D = 0.5 minus J_D = 0", 0.5),
    _sudden("lam", "J_D = 0, λ = 5 minus λ = 0", 5.0),
    Claim(
        "guessing without self-coupling",
        "test accuracy at J_D = 0.05, N = 1600, 100 epochs",
        "random guessing",
        _ROLE,
        "0.1",
        "self_coupling",
        _accuracy("test", 1600, 0.05),
        tolerance=0.05,
    ),
    _positive(
        "optimum in jd from above",
        "test accuracy at J_D = 0.5 minus J_D = 0.9, N = 1600, 100 epochs",
        "optimal at intermediate J_D",
        Minus(_accuracy("test", 1600, 0.5), _accuracy("test", 1600, 0.9)),
    ),
    _positive(
        "optimum in jd from below",
        "test accuracy at J_D = 0.5 minus J_D = 0.05, N = 1600, 100 epochs",
        "optimal at intermediate J_D",
        _benefit(1600),
    ),
    _positive(
        "larger models benefit more",
        "gain in test accuracy from J_D = 0.05 to 0.5, N = 3200 minus N = 100, 100 epochs",
        "larger models benefit more from self-coupling",
        Minus(_benefit(3200), _benefit(100)),
    ),
    _positive(
        "width helps",
        "training accuracy at N = 3200 minus N = 100, J_D = 0.5, 100 epochs",
        "increasing N enhances trainability",
        _gain("training"),
    ),
    _positive(
        "width helps training more",
        "gain from N = 100 to 3200, training minus test accuracy, J_D = 0.5, 100 epochs",
        "gains more pronounced with training patterns",
        Minus(_gain("training"), _gain("test")),
    ),
    _positive(
        "width broadens the range",
        "largest minus least training accuracy over J_D = 0.2 to 0.9, N = 100 minus N = 3200",
        "stabilizes training accuracy across a broader range of J_D",
        Minus(_Spread(100), _Spread(3200)),
        "The paper does not say how the range is measured; this is our choice.",
    ),
    not_run(
        "strong self-coupling",
        "accuracy as J_D → ∞ minus that of random features",
        "effectively behaves as a random feature model",
        _ROLE,
        "0",
        "The largest J_D of the figure is 0.9, as in the paper.",
    ),
)
