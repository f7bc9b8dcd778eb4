"""The phase diagram of three layers, as the tutorial prints it: its ends, and the time it takes."""

import time
from typing import Any

import rmtheory as rt
from rmtheory.local_entropies.diagram import Request, expected_seconds


def test_the_diagram_of_three_layers_has_the_known_ends_in_the_time_it_announces(
    benchmark: Any,
) -> None:
    begun = time.process_time()
    diagram = benchmark.pedantic(
        rt.phase_diagram, kwargs={"layers": 3, "points": 5, "width": 1e-2}, rounds=1
    )
    seconds = time.process_time() - begun
    boundary = diagram.sel(kind="rm")
    # The core module, and the table of docs/beyond-two-layers.md.
    assert abs(float(boundary.jd[0]) - 0.0731077) <= float(boundary.jd_error[0]) + 1e-6
    assert abs(float(boundary.lam[-1]) - 0.418144) <= float(boundary.lam_error[-1]) + 4e-5
    announced = expected_seconds(Request(5, 1e-2, 3))
    print(f"{seconds:.0f} CPU-s, announced {announced:.0f}")
