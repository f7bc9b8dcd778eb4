"""``rmsim enumerate``: all fixed points of many samples, against the exact averages."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rmtheory import checks
from rmtheory.cli import output as io
from rmtheory.errors import InvalidInputError

SamplesOption = Annotated[
    str, typer.Option("--samples", metavar="COUNT", help="Disorder samples, at least 2.")
]
SeedOption = Annotated[
    str, typer.Option("--seed", metavar="SEED", help="Seed of all random numbers.")
]
JobsOption = Annotated[str, typer.Option("--jobs", metavar="COUNT", help="Processes.")]

_MEANING = {
    "mean_count": "fixed points of a sample, on average (no error: no spread)",
    "theory_mean_count": "z^N, exact at this N",
    "z_score": "difference in standard errors (none: no spread)",
    "second_moment_ratio": "<Z^2>/<Z>^2, jackknife error (none: too few fixed points)",
    "theory_ratio": "E[Z^2]/E[Z]^2, exact at this N (none: too many terms)",
    "ratio_z_score": "difference in standard errors",
    "samples": "disorder samples",
    "nodes": "partial assignments tested",
    "nodes_per_second": "on one core",
    "near_ties": "states judged with twice the digits",
    "wall_time": "seconds",
}


def enumerate_command(
    n: io.SizeOption = None,
    layers: io.LayersOption = "1",
    jd: io.JdOption = None,
    lam: io.LamOption = None,
    lam_left: io.LamLeftOption = None,
    lam_right: io.LamRightOption = None,
    samples: SamplesOption = "200",
    seed: SeedOption = "0",
    jobs: JobsOption = "1",
    force: Annotated[
        bool, typer.Option("--force", help="Start however long it will take.")
    ] = False,
    histogram: Annotated[
        bool,
        typer.Option("--histogram", help="Also count pairs at every distance (JSON)."),
    ] = False,
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Find all fixed points of many samples; hold mean count and second moment against theory.

    Example: rmsim enumerate --n 20 --jd .4 --samples 200 --seed 0 --json
    """
    import time

    from rmsim import compare, statistics
    from rmsim.cli.report import SimulationReport
    from rmsim.enumeration import enumerate_samples
    from rmsim.network import Network
    from rmsim.randomness import checked_seed
    from rmtheory.cli.progress import counting

    started = time.perf_counter()
    if n is None:
        raise InvalidInputError("n", "nothing", "given (--n NEURONS)")
    chain = io.make_chain(layers, jd, lam, lam_left, lam_right)
    network = Network(checks.integer("n", n, 2), chain)
    wanted = checks.integer("samples", samples, 2)
    with counting("samples", wanted) as progress:
        found = enumerate_samples(
            network,
            wanted,
            checked_seed(seed),
            jobs=checks.integer("jobs", jobs, 1),
            force=force,
            histogram=histogram,
            progress=progress,
        )
    mean = statistics.mean(found.counts)
    ratio = statistics.second_moment_ratio(found.counts)
    theory_mean = compare.mean_count(chain, network.n)
    theory_ratio = compare.second_moment_ratio(chain, network.n)
    ratio_z = None
    if ratio is not None and theory_ratio is not None:
        ratio_z = ratio.z_score(theory_ratio)
    # Samples that all agree have no spread, and the error is then not 0 but unknown: None.
    document: dict[str, Any] = {
        "parameters": network.parameters(),
        "samples": wanted,
        "mean_count": mean.value,
        "mean_count_error": mean.error or None,
        "theory_mean_count": theory_mean,
        "z_score": mean.z_score(theory_mean),
        "second_moment_ratio": ratio.value if ratio else None,
        "second_moment_ratio_error": (ratio.error or None) if ratio else None,
        "theory_ratio": theory_ratio,
        "ratio_z_score": ratio_z,
        "nodes": found.nodes,
        "nodes_per_second": found.nodes / found.search_time,
        "near_ties": found.near_ties,
    }
    if found.histograms is not None:
        value, error = statistics.mean_of_rows(found.histograms)
        theory = compare.pairs(chain, network.n)
        document |= {
            "pairs_by_distance": value.tolist(),
            "pairs_by_distance_error": [one or None for one in error.tolist()],
            "theory_pairs_by_distance": None if theory is None else theory.tolist(),
        }
    document |= {"seed": found.seed, "device": "cpu", "dtype": "float64"}
    document["wall_time"] = time.perf_counter() - started
    title = f"Fixed points of {chain} with N = {network.n}"
    SimulationReport(title, document, _MEANING).show(json, out)
