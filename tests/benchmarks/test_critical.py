"""Every critical coupling is answered: 60 settings, each within a minute of one core."""

import time

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from rmtheory import OutsideValidityError
from rmtheory.local_entropies.thresholds import critical_coupling
from tests.critical_settings import SETTINGS


@pytest.mark.parametrize(("layers", "coupling", "kind", "other"), SETTINGS)
def test_a_critical_coupling(
    benchmark: BenchmarkFixture,
    layers: str,
    coupling: str,
    kind: str,
    other: str,
) -> None:
    given = {"lam" if coupling == "jd" else "jd": float(other)} if other else {}

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
