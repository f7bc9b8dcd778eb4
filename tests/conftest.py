"""Hypothesis profiles: the default is reproducible, ``--hypothesis-profile=thorough`` searches.

Tests that run side by side use one thread each: threads that wait for each other on a busy core
take several times the time of the test. They compile a loop once (:mod:`rmsim.compiled_loops`).
"""

import gc
import os
import signal

import pytest
from hypothesis import settings

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# A suite started in the background ignores SIGINT, under nohup SIGHUP, and so would the children
# that tests interrupt.
for number, usual in (
    (signal.SIGINT, signal.default_int_handler),
    (getattr(signal, "SIGHUP", signal.SIGTERM), signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

# Python looks for garbage after every 700 new objects, and goes through a million of modules and
# tests then and when: a tenth of the time of the tests.
gc.set_threshold(50_000, 20, 20)

settings.register_profile("default", derandomize=True, deadline=None, max_examples=40)
settings.register_profile("thorough", derandomize=False, deadline=None, max_examples=1000)
settings.load_profile("default")


def pytest_collection_finish() -> None:
    """Leave modules and tests, which stay to the end, out of the search for garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def points_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute the points of a sweep in this process: another one would import torch anew.

    For tests of what is done with the points; that processes compute them is tested by itself.
    """
    from rmsim.sweep import Local, Serial

    monkeypatch.setattr(Local, "answers", lambda self, *work: Serial(self.device).answers(*work))
