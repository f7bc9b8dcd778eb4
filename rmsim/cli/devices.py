"""``rmsim devices``: what computes on this machine, how fast, and where a GPU wins."""

from __future__ import annotations

from typing import Any

from rmsim.cli.options import SimulationReport
from rmtheory.runtime import report as io


def devices_command(json: io.JsonOption = False, out: io.OutOption = None) -> None:
    """List the devices, measure them in a few seconds, and say from which work on a GPU wins.

    Other programs that run meanwhile make a device look slower than it is.

    Example: rmsim devices --json
    """
    import math

    import torch

    from rmsim.tensors import (
        CROSSOVER,
        CROSSOVER_VARIABLE,
        choose_device,
        crossover,
        crossover_between,
        devices_here,
        measure_speed,
    )

    threads, used = torch.get_num_threads(), crossover()
    speeds = [measure_speed(device) for device in devices_here()]
    document: dict[str, Any] = {
        "devices": [
            {
                "device": one.device,
                "name": one.name,
                "memory_bytes": one.memory,
                "launch_microseconds": 1e6 * one.launch,
                "wait_microseconds": 1e6 * one.wait,
                "multiplications_per_second": one.rate,
            }
            for one in speeds
        ],
        "threads": threads,
        "auto": str(choose_device("auto")),
        "crossover": used,
        "crossover_source": "estimated" if used == CROSSOVER else CROSSOVER_VARIABLE,
    }
    meaning: dict[str, str] = {}
    for one in speeds:
        kind = "cpu" if one.device == "cpu" else one.device.replace(":", "_")
        document |= {
            f"{kind}_launch": 1e6 * one.launch,
            f"{kind}_wait": 1e6 * one.wait,
            f"{kind}_rate": one.rate / 1e9,
        }
        meaning |= {
            f"{kind}_launch": f"microseconds for a small operation ({one.name})",
            f"{kind}_wait": "microseconds for a number that the host reads",
            f"{kind}_rate": "10^9 multiplications in a second, in products of matrices",
        }
    for gpu in speeds[1:]:
        kind = gpu.device.replace(":", "_")
        measured = crossover_between(speeds[0], gpu, threads)
        document[f"{kind}_crossover"] = measured if math.isfinite(measured) else None
        meaning[f"{kind}_crossover"] = (
            f"measured: set {CROSSOVER_VARIABLE} to it (none: the CPU is faster)"
        )
    meaning["crossover"] = (
        "multiplications of an operation, per thread, from which 'auto' takes a GPU"
    )
    meaning["crossover_source"] = "where that number comes from"
    title = f"Devices of this machine, {threads} thread{'s' if threads > 1 else ''}"
    SimulationReport(title, document, meaning).show(json, out)
