"""Commands on fixed points of random networks.

``rmsim relax``: the dynamics from random starts, over many networks; ``rmsim enumerate``: all fixed
points of many samples, against the exact averages; ``rmsim solve``: the search for a fixed point of
one network; ``rmsim local-entropy``: the fixed points around a reference point, in one network;
``rmsim check``, ``neighbours`` and ``bp``: what can be asked of couplings and states of one's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmsim.cli.options import (
    CouplingsOption,
    DeviceOption,
    DrOption,
    DtypeOption,
    EtaOption,
    OverwriteOption,
    R0Option,
    RhoOption,
    SeedOption,
    SimulationReport,
    StatesOption,
    SymmetricOption,
    UpdateOption,
    check_states,
    make_network,
    numbers,
    option,
    write_states,
)
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError, counted
from rmtheory.runtime import report as io
from rmtheory.runtime.command import bundled
from rmtheory.runtime.files import replacing

if TYPE_CHECKING:  # torch takes seconds to import, and --help needs none of it
    import torch

    from rmsim.network import Network
    from rmsim.search.neighbours import Neighbours


_RELAX_MEANING = {
    "fixed_point_fraction": "reach a fixed point, margins checked in float64",
    "cycle_fraction": "end in a cycle (not detected if p < 1)",
    "periods": "cycles of each period",
    "capped_fraction": "neither within the cap; raise --max-sweeps",
    "marginal_fraction": "stable as simulated, but not in float64 (rounding, or a tie)",
    "sweeps_median": "sweeps to the fixed point (none: none reached)",
    "min_margin": "least s h over all fixed points (none: none reached)",
    "overlap_with_start": "of final states, cycles left out, with their random starts",
    "theory_overlap_with_start": "C(t, 0) for N -> infinity at the sweeps where they ended",
    "overlap_with_start_z_score": "difference in errors of both; that of the theory has finite N",
    "unstable_fraction": "neurons against their field where no fixed point was reached (none: all)",
    "theory_unstable_fraction": "the same for N -> infinity, at late times (none: tends to 0)",
    "unstable_fraction_z_score": "difference in errors of both; that of the theory has finite N",
    "theory_reason": "why there is no prediction",
    "device": "where it ran",
    "wall_time": "seconds",
}


@bundled
def relax_command(
    n: io.SizeOption = None,
    *,
    model: io.FiniteChainOptions,
    rho: RhoOption = "1",
    symmetric: SymmetricOption = False,
    update: UpdateOption = "synchronous",
    p: Annotated[str, option("--p", "PROBABILITY", "Chance of a neuron to be updated.")] = "1",
    samples: Annotated[
        str | None, option("--samples", "COUNT", "Disorder samples; 100, or 1 with --couplings.")
    ] = None,
    starts: Annotated[str, option("--starts", "COUNT", "Random starts per sample.")] = "1",
    max_sweeps: Annotated[str, option("--max-sweeps", "COUNT", "The cap.")] = "1000",
    theory: Annotated[
        bool,
        typer.Option(
            "--theory/--no-theory",
            help="Compare with the theory for N -> infinity, about a second.",
        ),
    ] = True,
    seed: SeedOption = "0",
    dtype: DtypeOption = "float32",
    device: DeviceOption = "auto",
    couplings: CouplingsOption = None,
    states: StatesOption = None,
    overwrite: OverwriteOption = False,
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Run the dynamics from random starts until fixed points, cycles, or the cap.

    Overlap with the start and unstable neurons of the final states are printed beside the theory of
    the dynamics for N -> infinity, with the difference in errors.

    Examples: rmsim relax --n 1000 --jd .8 --samples 100 --seed 0 --json;
    rmsim relax --couplings J.npy --jd .8 --starts 20 --states fixed_points.npy
    """
    import time

    from rmsim.dynamics.relaxation import checked_p, relax, relaxation_summary
    from rmsim.dynamics.sweeps import checked_update
    from rmsim.studies.convergence import search_seconds
    from rmsim.tensors import checked_seed, choose_device, choose_dtype
    from rmtheory.runtime.progress import counting

    started = time.perf_counter()
    check_states(states, out, couplings, overwrite=overwrite)
    network = make_network(
        n,
        model,
        rho=rho,
        symmetric=symmetric,
        couplings=couplings,
    )
    settings: dict[str, Any] = {
        "starts": checks.integer("starts", starts, 1),
        "update": checked_update(update),
        "p": checked_p(p),
        "max_sweeps": checks.integer("max_sweeps", max_sweeps, 1),
    }
    count = _samples(samples, 100, couplings)
    work = count * settings["starts"] * network.entries
    where, kind = choose_device(device, work), choose_dtype(dtype)
    # Of a device nothing is known; couplings of one's own may be far from those of the estimate.
    expected = None
    if couplings is None and where.type == "cpu":
        expected = search_seconds({**network.parameters(), **settings, "samples": count})
    with counting("samples", count, expected=expected) as progress:
        result = relax(
            network,
            samples=count,
            seed=checked_seed(seed),
            dtype=kind,
            device=where,
            progress=progress,
            **settings,
        )
    compared: dict[str, Any] = {}
    if theory:
        from rmsim.studies.compare import mean_field_of

        compared = mean_field_of(network, result)
        if not compared["theory_reason"]:
            del compared["theory_reason"]
    document: dict[str, object] = {
        "parameters": network.parameters() | {"samples": count} | settings,
        **relaxation_summary(result, of_starts=couplings is not None),
        **compared,
        "seed": result.seed,
        "device": result.device,
        "dtype": str(kind).removeprefix("torch."),
        "wall_time": time.perf_counter() - started,
    }
    each = result.status.shape[1]
    title = f"Dynamics of {_named(network, couplings)}"
    if couplings is not None:
        title += f", {counted(each, 'start')}"
    else:
        title += f", {counted(count, 'sample')}"
        title += "" if each == 1 else f" with {each} starts each, errors over samples"
    write_states(states, result.state[result.solved])
    SimulationReport(title, document, _relax_meaning(document)).show(json, out)


def _named(network: Network, couplings: Path | None) -> str:
    """Return the network in words, for a title."""
    name = f"{network.chain} with N = {network.n}"
    return name if couplings is None else f"{name}, couplings of {couplings.name}"


def _relax_meaning(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the meanings of the rows of the table: those that say something about this run."""
    absent = {
        name
        for name in ("periods", "marginal_fraction", "unstable_fraction", "theory_reason")
        if not document.get(name)
    }
    if document.get("theory_reason"):
        absent |= {name for name in _RELAX_MEANING if name.endswith("_z_score")}
        absent |= {"theory_overlap_with_start", "theory_unstable_fraction"}
    if "unstable_fraction" in absent:
        absent |= {"theory_unstable_fraction", "unstable_fraction_z_score"}
    return {name: text for name, text in _RELAX_MEANING.items() if name not in absent}


def _samples(given: str | None, usual: int, couplings: Path | None, least: int = 1) -> int:
    """Return the number of disorder samples: couplings of a file are one."""
    if couplings is None:
        return checks.integer("samples", usual if given is None else given, least)
    if given not in (None, "1"):
        raise InvalidInputError("samples", given, "1 with --couplings, which are one network")
    return 1


SamplesOption = Annotated[
    str | None,
    typer.Option(
        "--samples", metavar="COUNT", help="Disorder samples, at least 2; 200 by default."
    ),
]
JobsOption = Annotated[str, typer.Option("--jobs", metavar="COUNT", help="Processes.")]

_ENUMERATE_MEANING = {
    "mean_count": "fixed points of a sample, on average (no error: no spread)",
    "theory_mean_count": "z^N, exact at this N",
    "z_score": "difference in standard errors (none: no spread)",
    "second_moment_ratio": "<Z^2>/<Z>^2, jackknife error (none: too few fixed points)",
    "theory_ratio": "E[Z^2]/E[Z]^2, exact at this N (none: too many terms)",
    "ratio_z_score": "difference in standard errors (none: fewer than 20 samples)",
    "samples": "disorder samples",
    "nodes": "partial assignments tested",
    "nodes_per_second": "on one core",
    "near_ties": "states judged with twice the digits",
    "wall_time": "seconds",
}


@bundled
def enumerate_command(
    n: io.SizeOption = None,
    *,
    model: io.FiniteChainOptions,
    samples: SamplesOption = None,
    seed: SeedOption = "0",
    jobs: JobsOption = "1",
    force: Annotated[
        bool, typer.Option("--force", help="Start however long it will take.")
    ] = False,
    histogram: Annotated[
        bool,
        typer.Option("--histogram", help="Also count pairs at every distance (JSON)."),
    ] = False,
    couplings: CouplingsOption = None,
    states: StatesOption = None,
    overwrite: OverwriteOption = False,
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Find all fixed points of many samples; compare mean count and second moment with theory.

    With --couplings, those of your own network.

    Examples: rmsim enumerate --n 20 --jd .4 --samples 200 --seed 0 --json;
    rmsim enumerate --couplings J.npy --jd .4 --states fixed_points.npy
    """
    import time

    from rmsim.enumeration.exhaustive import enumerate_samples, expected_seconds
    from rmsim.studies.compare import counts_of
    from rmsim.tensors import checked_seed
    from rmtheory.runtime.progress import counting

    started = time.perf_counter()
    network = make_network(n, model, couplings=couplings)
    if couplings is not None:
        check_states(states, out, couplings, overwrite=overwrite)
        _enumerate_given(network, couplings, samples, histogram, force, states, json, out)
        return
    if states is not None:
        raise InvalidInputError("states", str(states), "absent without --couplings")
    wanted = _samples(samples, 200, None, 2)
    root, processes = checked_seed(seed), checks.integer("jobs", jobs, 1)
    expected = expected_seconds(network, wanted, root, processes)
    with counting("samples", wanted, expected=expected) as progress:
        drawn = enumerate_samples(
            network,
            wanted,
            root,
            jobs=processes,
            force=force,
            histogram=histogram,
            progress=progress,
        )
    document: dict[str, Any] = {
        "parameters": network.parameters(),
        "samples": wanted,
        **counts_of(drawn),
        "nodes": drawn.nodes,
        "nodes_per_second": drawn.nodes / drawn.search_time,
        "near_ties": drawn.near_ties,
        "seed": drawn.seed,
        "device": "cpu",
        "dtype": "float64",
        "wall_time": time.perf_counter() - started,
    }
    title = f"Fixed points of {network.chain} with N = {network.n}"
    SimulationReport(title, document, _ENUMERATE_MEANING).show(json, out)


_ENUMERATE_GIVEN_MEANING = {
    "count": "fixed points, all of them",
    "nodes": "partial assignments tested",
    "near_ties": "states judged with twice the digits",
    "wall_time": "seconds",
}


def _enumerate_given(
    network: Network,
    couplings: Path,
    samples: str | None,
    histogram: bool,
    force: bool,
    states: Path | None,
    json: bool,
    out: Path | None,
) -> None:
    """All fixed points of one network with couplings of the user's own."""
    import time

    from rmsim.enumeration.exhaustive import enumerate_fixed_points, expected_seconds
    from rmtheory.runtime.progress import counting

    started = time.perf_counter()
    _samples(samples, 1, Path())
    if histogram:
        raise InvalidInputError("histogram", True, "absent with --couplings: use --states")
    with counting("enumeration", 1, expected=expected_seconds(network)):
        points = enumerate_fixed_points(network, keep_states=states is not None, force=force)
    if states is not None:
        write_states(states, points.states)
    document = {
        "parameters": network.parameters(),
        "count": points.count,
        "nodes": points.nodes,
        "near_ties": points.near_ties,
        "seed": None,
        "device": "cpu",
        "dtype": "float64",
        "wall_time": time.perf_counter() - started,
    }
    title = f"Fixed points of {_named(network, couplings)}"
    SimulationReport(title, document, _ENUMERATE_GIVEN_MEANING).show(json, out)


#: What only focusing BP gives.
_OF_FOCUSING = ("distance", "internal_entropy", "external_entropy")

_SOLVE_MEANING = {
    "solved": "a fixed point was reached, margins checked in float64",
    "status": "how the algorithm ended",
    "iterations": "iterations or sweeps, all attempts together",
    "min_margin": "least s h of the final signs",
    "unsatisfied": "neurons against their field",
    "bethe_entropy": "entropy of the fixed points per neuron (none: the algorithm has none)",
    "theory_entropy": "log of the mean number of fixed points, per neuron (none: given couplings)",
    "overlap": "overlap of consecutive layers (none: a single layer)",
    "distance": "of the fixed points from the centre (none: not converged)",
    "internal_entropy": "S_I, of the fixed points around the centre, per neuron",
    "external_entropy": "S_E, of the centres, per neuron",
    "device": "where it ran",
    "wall_time": "seconds",
}


@bundled
def solve_command(
    algorithm: Annotated[
        str,
        option("--algorithm", "NAME", "bp, rbp, dynamics, likelihood, fbp (focusing) or dense_bp."),
    ] = "rbp",
    n: io.SizeOption = None,
    *,
    model: io.FiniteChainOptions,
    dr: DrOption = None,
    r0: R0Option = None,
    eta: EtaOption = None,
    decay: Annotated[
        str | None,
        option("--decay", "NUMBER", "Steps eta/(1 + decay t) (likelihood), 0 by default."),
    ] = None,
    y: Annotated[
        str | None, option("--y", "NUMBER", "Number of replicas (fbp), 5 by default.")
    ] = None,
    gamma: Annotated[
        str | None, option("--gamma", "NUMBER", "Coupling to the centre (fbp), .8 by default.")
    ] = None,
    p: Annotated[
        str | None,
        option("--p", "PROBABILITY", "Chance of an update (dynamics): 1, or .8 in a chain."),
    ] = None,
    max_iterations: Annotated[
        str | None,
        option(
            "--max-iterations",
            "COUNT",
            "The cap: 500 (bp), r = .95 (rbp), 1000 (others).",
        ),
    ] = None,
    restarts: Annotated[
        str | None, option("--restarts", "COUNT", "New starts after a failure (not bp, fbp).")
    ] = None,
    seed: SeedOption = "0",
    dtype: DtypeOption = "float32",
    device: DeviceOption = "auto",
    couplings: CouplingsOption = None,
    states: StatesOption = None,
    overwrite: OverwriteOption = False,
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Search for a fixed point of one network.

    Failure is a result: status is cap, paramagnet, cycle, polarised or diverged.

    Examples: rmsim solve --algorithm rbp --n 2000 --jd .25 --dr .003 --seed 0 --json;
    rmsim solve --algorithm bp --couplings J.npy --jd .8
    """
    import time

    from rmsim.dynamics.status import Status
    from rmsim.search.methods import find_fixed_point, layer_overlaps, method_named
    from rmsim.studies.compare import annealed_entropy
    from rmsim.tensors import checked_seed, choose_device, choose_dtype

    started = time.perf_counter()
    method_named(algorithm, "algorithm")
    check_states(states, out, couplings, overwrite=overwrite)
    network = make_network(n, model, couplings=couplings)
    chain = network.chain
    kind = choose_dtype(dtype)
    number, place = checked_seed(seed), choose_device(device, network.entries)
    given: dict[str, Any] = {
        "dr": dr,
        "r0": r0,
        "eta": eta,
        "decay": decay,
        "y": y,
        "gamma": gamma,
        "p": p,
        "max_iterations": max_iterations,
        "restarts": restarts,
    }
    result = find_fixed_point(network, algorithm, seed=number, dtype=kind, device=place, **given)
    status = Status(int(result.status))
    special = {name: _values(value[0]) for name, value in result.quantities.items()}
    document: dict[str, object] = {
        "parameters": network.parameters() | {"algorithm": algorithm} | dict(result.settings),
        "solved": bool(result.solved),
        "status": status.label,
        "iterations": int(result.iterations),
        "min_margin": float(result.min_margin),
        "unsatisfied": int(result.unsatisfied),
        "bethe_entropy": special.get("bethe_entropy"),
        # The theory is of random couplings.
        "theory_entropy": None if couplings else annealed_entropy(chain, network.n),
        "overlap": special.get("overlap", layer_overlaps(result.state[0])),
        **{name: special[name] for name in _OF_FOCUSING if name in special},
        "seed": number,
        "device": str(place),
        "dtype": str(kind).removeprefix("torch."),
        "wall_time": time.perf_counter() - started,
    }
    title = f"{algorithm} on {_named(network, couplings)}"
    write_states(states, result.state if result.solved else result.state[:0])
    SimulationReport(title, document, _SOLVE_MEANING).show(json, out)


def _values(value: torch.Tensor) -> float | list[float] | None:
    """Return numbers as JSON values; None where they are not defined, or there are none."""
    if not value.numel() or bool(value.isnan().any()):
        return None
    return float(value) if value.dim() == 0 else [float(x) for x in value]


_LOCAL_ENTROPY_MEANING = {
    "distances": "d, share of neurons that differ from the reference point",
    "entropies": "S(d) per neuron there by TAP, ± interpolation (none: the curve does not reach d)",
    "mutual_distances": "between two of the fixed points at d: the d of theory's S_I*(d)",
    "theory_typical": "S of theory around a typical fixed point, at these mutual distances",
    "theory_densest": "S_I* of theory, the densest regions, at these mutual distances",
    "least_distance": "where the curve ends",
    "min_margin": "least s h of the fixed point",
    "wall_time": "seconds",
}

NeighboursOption = Annotated[
    str, option("--neighbours", "K", "Count or estimate fixed points at the distances 1 to K.")
]


@bundled
def local_entropy_command(
    reference: Annotated[
        str | None,
        option(
            "--reference",
            "SOURCE",
            "Reference point: dynamics, rbp, likelihood, planted (typical), or a FILE.npy; "
            "planted by default, dynamics with --couplings.",
        ),
    ] = None,
    around: Annotated[str | None, typer.Option("--around", hidden=True)] = None,
    n: io.SizeOption = None,
    *,
    model: io.FiniteChainOptions,
    d: Annotated[
        str, option("--d", "VALUES", "Distances from the reference point for the table.")
    ] = ".02,.05,.1,.2",
    neighbours: NeighboursOption = "2",
    gamma: Annotated[
        str, option("--gamma", "VALUES", "Fields to scan: a,b,c or start:stop:count.")
    ] = "0:3:61",
    against_theory: Annotated[
        bool,
        typer.Option(
            "--against-theory",
            help="Also S of typical and of the densest regions, at the same mutual distances.",
        ),
    ] = False,
    seed: SeedOption = "0",
    device: DeviceOption = "auto",
    couplings: CouplingsOption = None,
    states: StatesOption = None,
    overwrite: OverwriteOption = False,
    plot: Annotated[bool, typer.Option("--plot", help="Also draw FILE with the end .png.")] = False,
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Local entropy S(d) around a fixed point by TAP, and the number of its close neighbours.

    d is the distance from the reference point. The d of theory's S_I*(d) is another one, that
    between two of the fixed points counted (mutual_distances); --against-theory compares there.

    Example: rmsim local-entropy --reference rbp --n 400 --jd .8 --seed 0 --out FILE.json --plot
    """
    import time

    from rmsim.studies.neighbourhood import (
        demand_drawn,
        plot_neighbourhood,
        survey_neighbourhood,
        survey_seconds,
        theory_to_draw,
    )
    from rmsim.tensors import checked_seed, choose_device
    from rmtheory.runtime.progress import counting

    started = time.perf_counter()
    check_states(states, out, couplings, overwrite=overwrite)
    if plot and (out is None or out.suffix == ".png"):
        raise InvalidInputError(
            "out",
            "nothing" if out is None else str(out),
            "given with --plot, a file other than .png",
        )
    distances, fields = numbers("d", d), numbers("gamma", gamma)
    if distances[0] < 0 or distances[-1] > 1:
        raise InvalidInputError("d", d, "distances from 0 to 1, as shares of the neurons")
    network = make_network(n, model, couplings=couplings)
    if against_theory:
        demand_drawn(network)
    number, place = checked_seed(seed), choose_device(device)
    most = checks.integer("neighbours", neighbours, 1)
    expected = survey_seconds(network, len(fields), most) if place.type == "cpu" else None
    with counting("fields", len(fields), expected=expected, transient=True) as progress:
        surroundings = survey_neighbourhood(
            network,
            around or reference or ("planted" if couplings is None else "dynamics"),
            gammas=fields,
            most=most,
            seed=number,
            device=place,
            progress=progress,
        )
    write_states(states, surroundings.state[None])
    source = surroundings.source
    title = f"Fixed points around a reference point ({source}) of {_named(network, couplings)}"
    document = {
        **surroundings.to_dict(distances, theory=against_theory),
        "seed": number,
        "device": str(place),
        "dtype": "float64",
        "wall_time": time.perf_counter() - started,
    }
    meaning = neighbours_meaning(surroundings.neighbours)
    report = SimulationReport(title, document, meaning | _LOCAL_ENTROPY_MEANING)
    if plot and out is not None:
        report.to_json()  # no picture without a valid result
        theory = theory_to_draw(network) if against_theory else None
        with replacing(out.with_suffix(".png"), "plot") as temporary:
            plot_neighbourhood(surroundings, title, theory).savefig(temporary, dpi=200)
    report.show(json, out)


def neighbours_meaning(neighbours: Sequence[Neighbours]) -> dict[str, str]:
    """Return what the numbers of fixed points at each distance mean."""
    meaning = {}
    for one in neighbours:
        how = "counted"
        if not one.exact:
            how = "estimated" if one.count is not None else "too few for an estimate"
        meaning[f"at_distance_{one.distance}"] = f"fixed points at distance {one.distance}, {how}"
    return meaning


# One's own network: is a state a fixed point, what is near it, what do messages say.

FixedPointsOption = Annotated[
    Path | None,
    option("--states", "FILE", "States to read, .npy: (count, layers, n), (layers, n) or (n,)."),
]


@bundled
def check_command(
    n: io.SizeOption = None,
    *,
    model: io.FiniteChainOptions,
    states: FixedPointsOption = None,
    seed: SeedOption = "0",
    couplings: CouplingsOption = None,
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Say whether the states of a file are fixed points: all margins s h positive, in float64.

    Example: rmsim check --couplings J.npy --jd .8 --states fixed_points.npy
    """
    from rmsim.studies.neighbourhood import check_fixed_points
    from rmsim.tensors import checked_seed

    network = make_network(n, model, couplings=couplings)
    number = checked_seed(seed)
    checked = check_fixed_points(network, _given_states(states), seed=number)
    document = {
        "parameters": network.parameters(),
        "states": len(checked.fixed),
        "fixed_points": int(checked.fixed.sum()),
        "min_margin": float(checked.min_margin.min()),
        "most_unsatisfied": int(checked.unsatisfied.max()),
        "min_margins": checked.min_margin.tolist(),
        "seed": number,
    }
    meaning = {
        "states": "states in the file",
        "fixed_points": "of them are fixed points of this network",
        "min_margin": "least s h of all states",
        "most_unsatisfied": "neurons against their field in the worst state",
    }
    title = f"States of {states} in {_named(network, couplings)}"
    SimulationReport(title, document, meaning).show(json, out)


def _given_states(states: Path | None) -> Path:
    if states is None:
        raise InvalidInputError("states", "nothing", "given (--states FILE.npy)")
    return states


@bundled
def neighbours_command(
    n: io.SizeOption = None,
    *,
    model: io.FiniteChainOptions,
    states: FixedPointsOption = None,
    most: Annotated[str, option("--most", "K", "Largest distance.")] = "10",
    seed: SeedOption = "0",
    couplings: CouplingsOption = None,
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Count the fixed points at the distances 1, 2, ... of the first state of a file.

    Exact by branch and bound where that takes seconds; beyond, estimates with their errors.

    Example: rmsim neighbours --couplings J.npy --jd .8 --states fixed_points.npy --most 10
    """
    import time

    from rmsim.enumeration.exhaustive import draw_couplings
    from rmsim.search.neighbours import count_neighbours, neighbour_seconds
    from rmsim.studies.neighbourhood import neighbour_counts, states_of
    from rmsim.tensors import checked_seed
    from rmtheory.runtime.progress import counting

    started = time.perf_counter()
    network = make_network(n, model, couplings=couplings)
    number = checked_seed(seed)
    reach = checks.integer("most", most, 1, network.n * network.layers)
    spins = states_of(network, "states", _given_states(states))
    J = draw_couplings(network, number, 0)
    expected = neighbour_seconds(network.n * network.layers, reach)
    with counting("distances", reach, expected=expected, transient=True) as progress:
        neighbours = count_neighbours(J, spins[0], network, reach, seed=number, progress=progress)
    document = {
        "parameters": network.parameters(),
        **neighbour_counts(neighbours),
        "seed": number,
        "device": "cpu",
        "dtype": "float64",
        "wall_time": time.perf_counter() - started,
    }
    title = f"Fixed points near the first of {states} in {_named(network, couplings)}"
    meaning = neighbours_meaning(neighbours) | {"wall_time": "seconds"}
    SimulationReport(title, document, meaning).show(json, out)


_BP_MEANING = {
    "converged": "the messages have a fixed point",
    "status": "how message passing ended",
    "iterations": "sweeps over all messages",
    "bethe_entropy": "entropy of the fixed points per neuron (none: not converged)",
    "theory_entropy": "log of the mean number of fixed points, per neuron (none: given couplings)",
    "overlap": "q = mean of m^2, the overlap of two fixed points",
    "device": "where it ran",
    "wall_time": "seconds",
}


@bundled
def bp_command(
    n: io.SizeOption = None,
    *,
    model: io.FiniteChainOptions,
    max_iterations: Annotated[str, option("--max-iterations", "COUNT", "The cap.")] = "500",
    seed: SeedOption = "0",
    dtype: DtypeOption = "float64",
    device: DeviceOption = "auto",
    couplings: CouplingsOption = None,
    magnetisations: Annotated[
        Path | None,
        option("--magnetisations", "FILE", "Also write <s> of each neuron as .npy: (layers, n)."),
    ] = None,
    overwrite: OverwriteOption = False,
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Belief propagation (AMP) over all fixed points of one network: entropy and magnetisations.

    Example: rmsim bp --couplings J.npy --jd .8 --magnetisations m.npy
    """
    import time

    import numpy as np

    from rmsim.dynamics.status import Status
    from rmsim.search.amp import belief_propagation
    from rmsim.studies.compare import annealed_entropy
    from rmsim.tensors import checked_seed, choose_device, choose_dtype

    started = time.perf_counter()
    check_states(magnetisations, out, couplings, "magnetisations", overwrite=overwrite)
    network = make_network(n, model, couplings=couplings)
    number, place, kind = checked_seed(seed), choose_device(device), choose_dtype(dtype)
    cap = checks.integer("max_iterations", max_iterations, 1)
    where = {"seed": number, "dtype": kind, "device": place}
    beliefs = belief_propagation(network, max_iterations=cap, **where)  # type: ignore[arg-type]
    converged = bool(beliefs.converged)
    m = beliefs.m[0].double().cpu().numpy()
    if magnetisations is not None:
        with replacing(magnetisations, "magnetisations") as temporary, temporary.open("wb") as file:
            np.save(file, m, allow_pickle=False)
    document: dict[str, object] = {
        "parameters": network.parameters() | {"max_iterations": cap},
        "converged": converged,
        "status": Status(int(beliefs.status)).label,
        "iterations": int(beliefs.iterations),
        "bethe_entropy": float(beliefs.entropy) / (network.n * network.layers)
        if converged
        else None,
        "theory_entropy": None if couplings else annealed_entropy(network.chain, network.n),
        "overlap": float(np.mean(m**2)),
        "seed": number,
        "device": str(place),
        "dtype": str(kind).removeprefix("torch."),
        "wall_time": time.perf_counter() - started,
    }
    title = f"Belief propagation on {_named(network, couplings)}"
    SimulationReport(title, document, _BP_MEANING).show(json, out)
