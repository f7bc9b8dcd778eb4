"""Claims on accuracies of trained networks: what the paper calls drastic, and gains."""

from __future__ import annotations

from figures.claims.claim import Claim, Relation
from figures.claims.read import At, Reading, at

#: Accuracies gained by something that the paper calls drastic; it gives no number.
_DRASTIC = "0.1"
_DRASTIC_NOTE = "'Drastic' is taken as more than 0.1."

#: Of runs whose size the paper does not give.
OURS_NOTE = "The paper gives neither N nor epochs; these are ours."


def accuracy(part: str, scheme: str, n: int, jd: float) -> At:
    """Return the reader of the accuracy (`part` training or test) after 100 epochs, one layer."""
    return at(f"{part}_accuracy", scheme=scheme, n=n, jd=jd, epochs=100)


def drastic(key: str, quantity: str, printed: str, where: str, figure: str, read: Reading) -> Claim:
    """Return the claim of an improvement that is large, in runs of a size that is ours."""
    return Claim(
        *(key, quantity, printed, where, _DRASTIC, figure, read),
        relation=Relation.ABOVE,
        note=f"{_DRASTIC_NOTE} {OURS_NOTE}",
    )


def above(
    key: str,
    quantity: str,
    printed: str,
    where: str,
    read: Reading,
    number: str = "0",
    note: str = "",
) -> Claim:
    """Return the claim that something of the figure ``self_coupling`` exceeds a number."""
    return Claim(
        *(key, quantity, printed, where, number, "self_coupling", read),
        relation=Relation.ABOVE,
        note=note,
    )
