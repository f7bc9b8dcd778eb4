"""Benchmarks run on one thread: CPU time is compared, and threads that wait would count."""

from collections.abc import Iterator

import pytest
import torch
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1):  # those of numpy
        yield
    torch.set_num_threads(threads)
