"""Write docs/performance.md: our times over those of the obvious program, on this machine.

``python docs/_ext/performance.py``, or ``make performance``. The sides take turns on one thread,
CPU time counts, and the least of several rounds is taken, so that other processes slow both alike.
Give widths to measure these only: ``python docs/_ext/performance.py 400 800``.
"""

from __future__ import annotations

import math
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from rmsim.couplings import draw_dense
from rmsim.data import load
from rmsim.dynamics import Status, random_starts, relax
from rmsim.learning import Parameters, Wiring, initialise
from rmsim.learning.plasticity import RowLearner
from rmsim.learning.presets import dense_recipe
from rmsim.learning.protocol import _FlipLearner
from rmsim.learning.run_folder import Plan
from rmsim.learning.sign_tables import TableLearner
from rmsim.learning.state import State
from rmsim.learning.training import train
from rmsim.network import Network
from rmsim.studies import capacity
from rmsim.studies.capacity_tables import PairTables
from rmsim.studies.trained_networks import pair_settings
from rmtheory import Chain

PAGE = Path(__file__).resolve().parents[1] / "performance.md"
BATCH, BATCHES = 16, 3750
WIDTHS = (100, 400, 800, 1600, 3200)
TRAINED = [
    "N",
    "s per epoch",
    "sgemm, GFLOP/s",
    "over sgemm",
    "`rmsim train`, s",
    "over sgemm",
    "two threads",
    "times faster than flips",
]
RELAXED = (500, 1000, 2000, 4000, 8000)
#: Measured by hand, both sides within the same minutes; not repeated by this command.
AUTHORS = """The code of the authors (`darnax`, commit d42e00e, jax 0.10.2: its training step on
this protocol with the same ten sweeps and plain steps, batches in a scan, one thread) took 0.35,
1.31, 6.5 to 7.4 and 38 CPU-ms a batch at N = 400, 800, 1600 and 3200, and ours 0.057, 0.176, 0.61
to 0.68 and 3.3: 6, 7.5, 10 to 11 and 11 times as long (19 November 2026, AMD EPYC with AVX-512, two
other processes running)."""


def in_turn(*works: Callable[[], object], rounds: int) -> list[float]:
    """Return the least CPU time of each work, over rounds in which every one has its turn."""
    least = [math.inf] * len(works)
    for _ in range(rounds + 1):  # the first one warms up, and counts if it is best
        for index, work in enumerate(works):
            start = time.process_time()
            work()
            least[index] = min(least[index], time.process_time() - start)
    return least


def machine() -> str:
    """Return the processor, the versions, and how busy the machine is."""
    model = platform.processor() or "unknown processor"
    if Path("/proc/cpuinfo").exists():
        names = [x for x in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in x]
        model = names[0].split(":")[1].strip() if names else model
    versions = f"Python {platform.python_version()}, numpy {np.__version__}, torch"
    load_average = f"{os.getloadavg()[0]:.0f}" if hasattr(os, "getloadavg") else "unknown"
    return (
        f"{model}, {os.cpu_count()} cores, {torch.backends.cpu.get_cpu_capability()}; {versions} "
        f"{torch.__version__}; load average {load_average} at the start"
    )


def training(n: int) -> list[str]:
    """Return a row: dense training by tables, against flips and against sgemm."""
    x, labels = load("entangled-mnist").train.tensors()
    count = max(4, min(100, 40 * 800**2 // n**2))
    x, labels, order = x[: BATCH * count], labels[: BATCH * count], torch.arange(BATCH * count)
    parameters = dense_recipe(n)
    state = initialise(parameters, x.shape[1], 10, 0)
    tables = TableLearner(parameters, state.copy())
    flips = _FlipLearner(parameters, state.copy())
    one, two = torch.randn(1024, 1024), torch.randn(1024, 1024)
    ours, general, product = in_turn(
        lambda: tables.learn(x, labels, order),
        lambda: flips.learn(x, labels, order),
        lambda: one @ two,
        rounds=6,
    )
    rate = 2 * 1024**3 / product
    sgemm = BATCHES * 64 * n * n / rate
    epoch = BATCHES * ours / count
    whole = whole_epoch(n)
    numbers = (f"{epoch:.2f}", f"{rate / 1e9:.0f}", f"{epoch / sgemm:.2f}")
    more = (f"{whole:.2f}", f"{whole / sgemm:.2f}", on_two_threads(parameters, state))
    return [str(n), *numbers, *more, f"{general / ours:.1f}"]


def whole_epoch(n: int) -> float:
    """Return the CPU time of the first epoch of `rmsim train`: learning, measurement, storage."""
    data = load("entangled-mnist")
    plan = Plan.of_preset("entangled-mnist-dense", n)
    with tempfile.TemporaryDirectory() as folder:
        train(plan, data, 0, out=Path(folder) / "run", probe=0, device="cpu")
        start = time.process_time()
        train(plan, data, 1, out=Path(folder) / "run", probe=0, device="cpu")
        return time.process_time() - start


def on_two_threads(parameters: Parameters, state: State) -> str:
    """Return how many times faster two threads are, in wall time; - where one does the work.

    Both learn the same samples from the same start, for about a second.
    """
    n = parameters.couplings.n
    if (os.cpu_count() or 1) < 2 or n * n < 2**19:
        return "-"
    x, labels = load("entangled-mnist").train.tensors()
    order = torch.arange(BATCH * min(BATCHES, 2000 * 1600**2 // n**2))
    least = {1: math.inf, 2: math.inf}
    for _ in range(3):
        for threads in least:
            torch.set_num_threads(threads)
            learner = TableLearner(parameters, state.copy())
            start = time.perf_counter()
            learner.learn(x, labels, order)
            least[threads] = min(least[threads], time.perf_counter() - start)
    torch.set_num_threads(1)
    return f"{least[1] / least[2]:.2f}"


def relaxation(n: int) -> list[str]:
    """Return a row: relaxation of drawn networks, against the loop that one writes in numpy."""
    drawn = range(max(2, min(40, 40 * 1000**2 // n**2)))
    network = Network(n, Chain(1, 0.8))
    status = relax(draw_dense(network, 0, drawn), random_starts(0, drawn, 1, 1, n)).status[:, 0]
    ended = [k for k in drawn if status[k] == Status.FIXED_POINT]
    samples = len(ended)
    couplings = draw_dense(network, 0, ended)
    start = random_starts(0, ended, 1, 1, n)
    matrices = [couplings.matrices[k, 0].numpy().copy() for k in range(samples)]
    begin = [start[k, 0, 0].numpy().astype(np.float32) for k in range(samples)]

    def loop() -> list[int]:
        """Sweep until nothing moves."""
        counts = []
        for matrix, s in zip(matrices, begin, strict=True):
            sweeps, moved = 0, True
            while moved and sweeps < 10_000:
                new = np.where(matrix @ s + np.float32(0.8) * s >= 0, 1, -1).astype(np.float32)
                moved, s, sweeps = not np.array_equal(new, s), new, sweeps + 1
            counts.append(sweeps)
        return counts

    with threadpool_limits(1):  # threads of numpy that wait would count
        ours, theirs = in_turn(lambda: relax(couplings, start), loop, rounds=3)
        sweeps = float(np.median(loop()))
    return [str(n), f"{ours / samples * 1e3:.2f}", f"{sweeps:.0f}", f"{theirs / ours:.1f}"]


def pair(n: int) -> list[str]:
    """Return a row: two coupled layers of n neurons with masked updates, by tables and by flips."""
    parameters = Plan.of_preset("role-of-jd", n, **pair_settings(0.5, 1.0)).parameters
    return _against(parameters, None, _FlipLearner)


def wired(n: int) -> list[str]:
    """Return a row: three dense blocks in a chain, by tables and by compressed rows."""
    parameters = Plan.of_preset("role-of-jd", n).parameters
    block = torch.arange(n) * 3 // n
    near = ((block[:, None] - block[None, :]).abs() <= 1).fill_diagonal_(False)
    wiring = Wiring(near, block == 0, block == 2, block == 2)
    return _against(parameters, wiring, RowLearner)


def _against(
    parameters: Parameters, wiring: Wiring | None, before: type[_FlipLearner | RowLearner]
) -> list[str]:
    """Return neurons, layers, s per epoch by tables, and how much longer the route before takes."""
    count = 60
    x, labels = load("entangled-mnist").train.tensors()
    x, labels, order = x[: BATCH * count], labels[: BATCH * count], torch.arange(BATCH * count)
    state = initialise(parameters, x.shape[1], 10, 0, wiring=wiring)
    tables, other = TableLearner(parameters, state.copy()), before(parameters, state.copy())
    ours, theirs = in_turn(
        lambda: tables.learn(x, labels, order), lambda: other.learn(x, labels, order), rounds=4
    )
    shape = (str(parameters.neurons), str(parameters.couplings.layers))
    return [*shape, f"{BATCHES * ours / count:.2f}", f"{theirs / ours:.1f}"]


def hetero_association(layers: int, n: int) -> list[str]:
    """Return a row: a batch of the capacity that learns, by tables, by flips and by products."""
    draw, pairs = torch.Generator().manual_seed(0), 5 * BATCH
    protocol, weight, order = capacity.RECONSTRUCTION, torch.ones(1, BATCH), torch.arange(pairs)
    j = torch.randn(1, layers, n, n, generator=draw) / math.sqrt(n)
    x, y = (2.0 * torch.randint(2, (1, pairs, n), generator=draw) - 1 for _ in range(2))
    tables = PairTables(protocol, layers, n)
    panels, by_column = tables.panelled(j), capacity.by_columns(j.clone())

    def learn(couplings: torch.Tensor, moving: type[capacity.Motion]) -> None:
        before, capacity.moving = capacity.moving, moving
        try:
            for first in range(0, pairs, BATCH):
                some = order[first : first + BATCH]
                capacity.learn_batch(protocol, couplings, x[:, some], y[:, some], weight, draw)
        finally:
            capacity.moving = before

    ours, flips, products = in_turn(
        lambda: tables.learn(panels[0], x[0], y[0], order),
        lambda: learn(by_column, capacity.Flips),
        lambda: learn(j, capacity.Motion),
        rounds=3,
    )
    ms = f"{ours * BATCH / pairs * 1e3:.1f}"
    return [f"{layers}", f"{n}", ms, f"{flips / ours:.1f}", f"{products / ours:.1f}"]


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [heads, ["---:"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Measure and write the page."""
    torch.set_num_threads(1)
    widths = tuple(map(int, sys.argv[1:])) or WIDTHS
    where = machine()
    trained = [training(n) for n in widths]
    relaxed = [relaxation(n) for n in RELAXED]
    others = [["masked pair", *pair(400)], ["three blocks", *wired(600)]]
    associated = [hetero_association(7, 1000)]
    PAGE.write_text(
        f"""# Performance

Written by `make performance` on: {where}.
One thread, CPU time, the least of several rounds in which the sides take turns. Ratios hold from
machine to machine, times do not; on a busy machine J has to come from memory and not from a cache,
which costs networks of 1600 neurons and more up to half again.

## Training of dense networks

An epoch of Entangled MNIST is 3750 batches of 16. Its two products with J would take 64 N²
operations per batch by sgemm, at the rate measured beside it: *over sgemm* is our whole batch
(input, sweeps, rule, readout) over that time, then a whole epoch of `rmsim train`, which also
measures the network on 20,000 samples and stores it. *Two threads* is how many times faster they
learn, in wall time; below 2¹⁹ couplings one thread does all the work. *Flips* is the route that
corrects fields by what flips and learns by products (`rmsim.learning.phases`).
{AUTHORS}

{table(TRAINED, trained)}

Two layers with masked updates (p = .85, the duality of J_D and lambda) against the route by flips,
and three dense blocks in a chain, a wiring given by a matrix, against compressed rows:

{table(["network", "neurons", "layers", "s per epoch", "times faster"], others)}

## Relaxation

Networks of one layer at J_D = .8 that reach a fixed point from one random state, couplings drawn
before; the loop in numpy makes one product per sweep in float32, without margins and without
looking for cycles. *Sweeps* is its median.

{table(["N", "ms per network", "sweeps", "times faster than numpy"], relaxed)}

## Hetero-association

One batch of 16 pairs relaxes with its target and is learnt, among the first batches of a run: by
tables, compared with flips and with full products.

{table(["layers", "N", "ms", "times faster than flips", "than products"], associated)}
""",
        encoding="utf-8",
    )
    print(PAGE.read_text("utf-8"))


if __name__ == "__main__":
    main()
