"""``rmtheory mean-field``: the dynamics for N -> infinity, and where it freezes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rmtheory.base.errors import InvalidInputError
from rmtheory.base.estimate import Estimate
from rmtheory.runtime import report as io
from rmtheory.runtime.command import check_picture

_MEANING = {
    "flip_rate": "fraction of neurons that sweep t = 1, 2, ... flips",
    "overlap_with_start": "C(t, 0), overlap with the random start",
    "flip_rate_last": "f of the last sweep; all sweeps with --json",
    "overlap_with_start_last": "C(T, 0), overlap with the random start",
    "unstable": "fraction of neurons that disagree with their field before the sweep",
    "flip_rate_late": "mean of f over the last half of the sweeps",
    "never_moved": "fraction of neurons that no sweep flipped",
    "jd_low": "J_D at which a stationary fraction of neurons keeps flipping",
    "jd_high": "J_D at which the network freezes",
    "lam_low": "lambda at which a stationary fraction of neurons keeps flipping",
    "lam_high": "lambda at which the network freezes",
    "freezing_point": "the estimate between the two ends",
    "sustained_low": "log R at the lower end: positive, activity sustains itself",
    "sustained_high": "log R at the upper end: negative, activity dies out",
    "q_dyn": "overlap of the ends of the clamped and the free phase, no learning",
}

_Number = str | None


def _option(name: str, text: str, metavar: str = "NUMBER") -> Any:
    return typer.Option(name, metavar=metavar, help=text)


def mean_field_command(
    layers: io.FiniteLayersOption = "1",
    jd: io.JdOption = None,
    lam: io.LamOption = None,
    lam_left: io.LamLeftOption = None,
    lam_right: io.LamRightOption = None,
    sweeps: Annotated[str, _option("--sweeps", "Sweeps from a random start.", "T")] = "300",
    p: Annotated[str, _option("--p", "Probability that a sweep updates a neuron.")] = "1",
    trajectories: Annotated[
        str, _option("--trajectories", "Copies of the effective process.", "M")
    ] = "100000",
    seed: Annotated[str, _option("--seed", "Seed of the random numbers.", "SEED")] = "0",
    critical: Annotated[
        bool, typer.Option("--critical", help="Where the network freezes, as a bracket.")
    ] = False,
    continuous: Annotated[
        bool,
        typer.Option(
            "--continuous",
            help="With --critical, one layer: solve the limit of few flips itself, a second route.",
        ),
    ] = False,
    overlap: Annotated[
        bool, typer.Option("--overlap", help="Overlap q_dyn of clamped and free phase.")
    ] = False,
    lambda_x: Annotated[_Number, _option("--lambda-x", "Strength of the input.")] = None,
    lambda_y: Annotated[_Number, _option("--lambda-y", "Strength of the label.")] = None,
    warmup: Annotated[str, _option("--warmup", "Sweeps of the warm-up.", "T")] = "1",
    clamped: Annotated[str, _option("--clamped", "Sweeps of the clamped phase.", "T")] = "100",
    free: Annotated[str, _option("--free", "Sweeps of the free phase.", "T")] = "100",
    label_on: Annotated[
        _Number, _option("--label-on", "Entry of the label's code for its class.")
    ] = None,
    label_off: Annotated[
        _Number, _option("--label-off", "Entries of the label's code for other classes.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw f(t) into this file.")
    ] = None,
    json: io.JsonOption = False,
    out: io.OutOption = None,
) -> None:
    """Dynamics from a random start for N -> infinity, without simulating a network.

    Example: rmtheory mean-field --jd .65 --sweeps 300 --json
    """
    if critical and overlap:
        raise InvalidInputError("overlap", "given", "absent with --critical")
    if not overlap:
        phases = {"lambda_x": lambda_x, "lambda_y": lambda_y}
        for name, text in {**phases, "label_on": label_on, "label_off": label_off}.items():
            if text is not None:
                raise InvalidInputError(name, text, "absent without --overlap")
    if continuous and not critical:
        raise InvalidInputError("continuous", "given", "absent without --critical")
    if plot is not None and (critical or overlap):
        raise InvalidInputError("plot", str(plot), "absent with --critical and --overlap")
    if critical:
        if lam_left is not None or lam_right is not None:
            raise InvalidInputError("lam_left", lam_left, "absent with --critical: give --lam")
        report = _freezing(layers, jd, lam, p, seed, continuous)
    elif overlap:
        for name, text in {"lam": lam, "lam_left": lam_left, "lam_right": lam_right}.items():
            if text is not None:
                raise InvalidInputError(name, text, "absent with --overlap, which is for one layer")
        given = {"jd": jd, "lambda_x": lambda_x, "lambda_y": lambda_y}
        for name, text in given.items():
            if text is None:
                raise InvalidInputError(name, "nothing", f"given (--{name.replace('_', '-')})")
        labels = {"label_on": label_on, "label_off": label_off}
        report = _overlap(
            given | {name: text for name, text in labels.items() if text is not None},
            {"warmup": warmup, "clamped": clamped, "free": free},
            trajectories,
            seed,
        )
    else:
        if plot is not None:
            check_picture(plot, out or Path("no other file"))
        chain = io.ChainOptions(layers, jd, lam, lam_left, lam_right).chain()
        report = _sweeps(chain, sweeps, p, trajectories, seed, plot)
    report.show(json, out)


def _sweeps(
    chain: Any, sweeps: str, p: str, trajectories: str, seed: str, plot: Path | None
) -> io.Report:
    from rmtheory.base import checks
    from rmtheory.dynamics.averages import MOST_SWEEPS, mean_field, update_probability

    result = mean_field(
        chain,
        checks.integer("sweeps", sweeps, 1, MOST_SWEEPS),
        p=update_probability(p),
        trajectories=checks.integer("trajectories", trajectories, 1000),
        seed=checks.integer("seed", seed, 0),
    )
    if plot is not None:
        from rmtheory.plots import plot_flip_rate

        plot_flip_rate(result, plot)
    count = range(result.sweeps)
    meaning = dict(_MEANING)
    if result.flip_rate_late is None:
        meaning["flip_rate_late"] = result.reason
    return io.Report(
        f"Dynamics of {chain} for N -> infinity, {result.sweeps} sweeps",
        {
            **chain.parameters(),
            "p": result.p,
            "sweeps": result.sweeps,
            "trajectories": result.trajectories,
            "seed": result.seed,
        },
        {
            "flip_rate_late": result.flip_rate_late,
            "flip_rate_last": result.flip_rate[-1],
            "overlap_with_start_last": result.overlap_with_start[-1],
            "never_moved": result.never_moved,
            "reason": result.reason or None,
            "sweep": [t + 1 for t in count],
            "flip_rate": [result.flip_rate[t] for t in count],
            "overlap_with_start": [result.overlap_with_start[t] for t in count],
            "unstable": [result.unstable[t] for t in count],
        },
        meaning,
        json_only=("reason", "sweep", "flip_rate", "overlap_with_start", "unstable"),
    )


def _freezing(
    layers: str, jd: str | None, lam: str | None, p: str, seed: str, continuous: bool
) -> io.Report:
    from rmtheory.base import checks
    from rmtheory.dynamics.freezing import freezing_point

    point = freezing_point(
        checks.integer("layers", layers, 1, 8),
        jd=jd,
        lam=lam,
        p=p,
        seed=checks.integer("seed", seed, 0),
        continuous=continuous,
    )

    def end(value: float) -> Estimate:
        return Estimate(value, point.point.error, point.point.tier, point.point.method)

    name = point.control
    return io.Report(
        f"Where the dynamics freezes, {layers} layers, update probability {p}",
        {"layers": int(layers), "jd": jd, "lam": lam, "p": p, "seed": int(seed)},
        {
            f"{name}_low": end(point.low),
            f"{name}_high": end(point.high),
            "freezing_point": point.point,
            "sustained_low": point.sustained_low,
            "sustained_high": point.sustained_high,
        },
        _MEANING,
    )


def _overlap(
    strengths: dict[str, Any], phases: dict[str, str], trajectories: str, seed: str
) -> io.Report:
    from rmtheory.base import checks
    from rmtheory.dynamics.two_phases import Presentation, overlap_of_phases

    counts = {name: checks.integer(name, text, 1, 4000) for name, text in phases.items()}
    protocol = Presentation(**strengths, **counts)
    return io.Report(
        "Overlap of the clamped and the free phase at initialisation, N -> infinity",
        {**{name: str(value) for name, value in vars(protocol).items()}, "seed": seed},
        {
            "q_dyn": overlap_of_phases(
                protocol,
                trajectories=checks.integer("trajectories", trajectories, 1000),
                seed=checks.integer("seed", seed, 0),
            )
        },
        _MEANING,
    )
