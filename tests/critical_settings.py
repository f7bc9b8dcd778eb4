"""The 60 critical couplings to be answered, by the benchmark and the table of the docs."""

from typing import Literal

#: Depth, coupling sought, kind, and the values of the other coupling.
_FAMILIES: list[tuple[str, Literal["jd", "lam"], Literal["rm", "gap"], list[float]]] = [
    ("2", "lam", "rm", [0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.06, 0.07]),
    ("2", "lam", "gap", [0, 0.01, 0.02, 0.03, 0.05, 0.07]),
    ("2", "jd", "rm", [0, 0.1, 0.2, 0.3, 0.4, 0.45]),
    ("2", "jd", "gap", [0, 0.2, 0.4, 0.45]),
]
for _depth in ("3", "inf"):
    _FAMILIES += [
        (_depth, "lam", "rm", [0, 0.01, 0.02, 0.04, 0.06, 0.07]),
        (_depth, "lam", "gap", [0, 0.03, 0.05]),
        (_depth, "jd", "rm", [0.1, 0.2, 0.3, 0.35, 0.4, 0.45]),
        (_depth, "jd", "gap", [0.2, 0.4]),
    ]

#: Depth, coupling sought, kind and the other coupling (empty for one layer), as text.
SETTINGS: list[tuple[str, str, str, str]] = [("1", "jd", "rm", ""), ("1", "jd", "gap", "")] + [
    (layers, coupling, kind, f"{other:g}")
    for layers, coupling, kind, others in _FAMILIES
    for other in others
]
