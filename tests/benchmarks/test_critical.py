"""Every critical coupling is answered: 60 settings, each within a minute of one core."""

import time
from typing import Literal

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from rmtheory import OutsideValidityError
from rmtheory.local_entropies.thresholds import critical_coupling

#: Depth, coupling sought, kind, and the values of the other coupling.
_FAMILIES: list[tuple[int | str, Literal["jd", "lam"], Literal["rm", "gap"], list[float]]] = [
    (2, "lam", "rm", [0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.06, 0.07]),
    (2, "lam", "gap", [0, 0.01, 0.02, 0.03, 0.05, 0.07]),
    (2, "jd", "rm", [0, 0.1, 0.2, 0.3, 0.4, 0.45]),
    (2, "jd", "gap", [0, 0.2, 0.4, 0.45]),
]
for _depth in (3, "inf"):
    _FAMILIES += [
        (_depth, "lam", "rm", [0, 0.01, 0.02, 0.04, 0.06, 0.07]),
        (_depth, "lam", "gap", [0, 0.03, 0.05]),
        (_depth, "jd", "rm", [0.1, 0.2, 0.3, 0.35, 0.4, 0.45]),
        (_depth, "jd", "gap", [0.2, 0.4]),
    ]

SETTINGS = [(1, "jd", "rm", None), (1, "jd", "gap", None)] + [
    (layers, coupling, kind, other)
    for layers, coupling, kind, others in _FAMILIES
    for other in others
]


@pytest.mark.parametrize(("layers", "coupling", "kind", "other"), SETTINGS)
def test_a_critical_coupling(
    benchmark: BenchmarkFixture,
    layers: int | str,
    coupling: Literal["jd", "lam"],
    kind: Literal["rm", "gap"],
    other: float | None,
) -> None:
    given = {"lam" if coupling == "jd" else "jd": other}

    def answer() -> tuple[float, tuple[str, str] | None]:
        start = time.process_time()
        try:
            found = critical_coupling(layers, coupling, kind=kind, **given)  # type: ignore[arg-type]
        except OutsideValidityError:  # the other coupling alone is beyond the threshold
            return time.process_time() - start, None
        assert found.at_low.value < -found.at_low.error
        assert found.at_high.value > found.at_high.error
        return time.process_time() - start, found.verdicts

    seconds, verdicts = benchmark.pedantic(answer)
    assert seconds < 60
    if kind == "rm" and verdicts is not None:
        assert verdicts == ("not monotone", "monotone")


def test_there_are_sixty() -> None:
    assert len(SETTINGS) == 60
