r"""What computes on this machine, how fast, and from which work on a GPU wins.

An operation of w multiplications takes :math:`w/r_{cpu}` on a thread of the CPU, and on a GPU

.. math:: t_{launch} + w/r_{gpu}, \qquad w^* = \frac{t_{launch}\, r_{cpu}}{1 - r_{cpu}/r_{gpu}},

if one operation after the other has to be launched. From the crossover :math:`w^*` times the number
of threads on, ``--device auto`` takes the GPU (:func:`rmsim.tensors.choose_device`). Without a
measurement it is estimated, :data:`rmsim.tensors.CROSSOVER`.
"""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from rmsim.tensors import memory_of

#: Seconds that each of the measurements takes, about.
_SECONDS = 0.3

#: Side of the matrices that are multiplied, and columns: a batch of states.
_SIDE, _STATES = 1024, 64

#: Operations launched between two waits.
_OPERATIONS = 256


@dataclass(frozen=True)
class Speed:
    """How fast a device is.

    Parameters
    ----------
    device, name : str
        As torch calls it, and as its maker does.
    memory : int, optional
        Bytes.
    launch, wait : float
        Seconds for a small operation, and for a number that is read from it.
    rate : float
        Multiplications (and additions) of float32 in a second, in a product of matrices.
    """

    device: str
    name: str
    memory: int | None
    launch: float
    wait: float
    rate: float


def devices_here() -> list[torch.device]:
    """Return the CPU and all GPUs of this machine.

    Examples
    --------
    >>> devices_here()[0]
    device(type='cpu')
    """
    gpus = [torch.device("cuda", index) for index in range(torch.cuda.device_count())]
    return [torch.device("cpu"), *gpus]


def measure_speed(device: torch.device, seconds: float = _SECONDS) -> Speed:
    """Measure a device in about three times `seconds`; the CPU with the threads that torch has."""
    small = torch.zeros(64, device=device)
    matrix = torch.zeros((_SIDE, _SIDE), device=device)
    states, out = (torch.zeros((_SIDE, _STATES), device=device) for _ in range(2))

    def launches() -> None:
        for _ in range(_OPERATIONS):
            small.add_(1.0)
        float(small[0])

    def products() -> None:
        for _ in range(8):
            torch.mm(matrix, states, out=out)
        float(out[0, 0])

    launch = _least_time(launches, seconds) / _OPERATIONS
    wait = _least_time(lambda: float(small.add_(1.0)[0]), seconds)
    rate = 8 * _SIDE * _SIDE * _STATES / _least_time(products, seconds)
    gpu = device.type == "cuda"
    name = torch.cuda.get_device_name(device) if gpu else platform.processor() or "CPU"
    return Speed(str(device), name, memory_of(device), launch, wait, rate)


def _least_time(work: Callable[[], object], seconds: float) -> float:
    """Return the shortest time of some repetitions: what else runs can only lengthen it."""
    work()  # whatever is built at a first call
    least, end = math.inf, time.perf_counter() + seconds
    while time.perf_counter() < end or least == math.inf:
        started = time.perf_counter()
        work()
        least = min(least, time.perf_counter() - started)
    return least


def crossover_between(cpu: Speed, gpu: Speed, threads: int = 1) -> float:
    """Return the work of an operation, per thread of the CPU, from which the GPU is faster.

    Examples
    --------
    >>> cpu = Speed("cpu", "", None, launch=1e-6, wait=1e-6, rate=4e10)
    >>> gpu = Speed("cuda:0", "", None, launch=8e-6, wait=2e-5, rate=4e12)
    >>> round(crossover_between(cpu, gpu))
    323232
    >>> crossover_between(gpu, cpu)  # never
    inf
    """
    if gpu.rate <= cpu.rate:
        return math.inf
    return gpu.launch * cpu.rate / (1 - cpu.rate / gpu.rate) / threads
