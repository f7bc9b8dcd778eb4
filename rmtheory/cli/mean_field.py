"""``rmtheory mean-field``: the dynamics for N -> infinity, and where it freezes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rmtheory.base.errors import InvalidInputError
from rmtheory.runtime import report as io
from rmtheory.runtime.command import check_picture

_MEANING = {
    "flip_rate_last": "f of the last sweep; all sweeps with --json",
    "overlap_with_start_last": "C(T, 0), overlap with the random start",
    "flip_rate_late": "mean of f over the last half of the sweeps",
    "never_moved": "fraction of neurons that no sweep flipped",
    "jd_low": "J_D at which a stationary fraction of neurons flips",
    "jd_high": "J_D at which the network freezes",
    "lam_low": "lambda at which a stationary fraction of neurons flips",
    "lam_high": "lambda at which the network freezes",
    "freezing_point": "the estimate between the two ends",
    "sustained_low": "growth of activity at the lower end: positive, it sustains itself",
    "sustained_high": "growth of activity at the upper end: negative, it dies out",
    "q_dyn": "overlap of the ends of the clamped and the free phase, no learning",
    "displacement": "distance between the fixed points before and after the noise",
    "still_flipping": "fraction of neurons that had not frozen",
}

#: What is computed -> the options that belong to it; every other one is refused there.
_OPTIONS = {
    "": {
        *("layers", "jd", "lam", "lam_left", "lam_right"),
        *("sweeps", "p", "trajectories", "plot"),
    },
    "critical": {"layers", "jd", "lam", "p", "continuous", "repetitions"},
    "overlap": {
        *("jd", "lambda_x", "lambda_y", "warmup", "clamped", "free"),
        *("label_on", "label_off", "trajectories"),
    },
    "displacement": {
        *("layers", "jd", "lam", "lam_left", "lam_right"),
        *("lambda_x", "noise", "sweeps", "trajectories"),
    },
}

_Text = str | None


def _option(name: str, text: str, metavar: str = "NUMBER") -> Any:
    return typer.Option(name, metavar=metavar, help=text)


def mean_field_command(
    layers: Annotated[
        _Text,
        typer.Option("--layers", "-L", metavar="L", help="Number of core modules: 1, 2, ... (1)."),
    ] = None,
    jd: io.JdOption = None,
    lam: io.LamOption = None,
    lam_left: io.LamLeftOption = None,
    lam_right: io.LamRightOption = None,
    sweeps: Annotated[_Text, _option("--sweeps", "Sweeps from a random start (300).", "T")] = None,
    p: Annotated[_Text, _option("--p", "Probability that a sweep updates a neuron (1).")] = None,
    trajectories: Annotated[
        _Text, _option("--trajectories", "Copies of the effective process (100000).", "M")
    ] = None,
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
    repetitions: Annotated[
        _Text, _option("--repetitions", "With --critical: independent solutions (4).", "COUNT")
    ] = None,
    overlap: Annotated[
        bool, typer.Option("--overlap", help="Overlap q_dyn of clamped and free phase.")
    ] = False,
    displacement: Annotated[
        bool, typer.Option("--displacement", help="Distance after noise on a fixed point.")
    ] = False,
    lambda_x: Annotated[_Text, _option("--lambda-x", "Strength of the input.")] = None,
    lambda_y: Annotated[_Text, _option("--lambda-y", "Strength of the label.")] = None,
    warmup: Annotated[_Text, _option("--warmup", "Sweeps of the warm-up (1).", "T")] = None,
    clamped: Annotated[
        _Text, _option("--clamped", "Sweeps of the clamped phase (100).", "T")
    ] = None,
    free: Annotated[_Text, _option("--free", "Sweeps of the free phase (100).", "T")] = None,
    label_on: Annotated[
        _Text, _option("--label-on", "Entry of the label's code for its class (2.5).")
    ] = None,
    label_off: Annotated[
        _Text, _option("--label-off", "Entries of the label's code for other classes (-.79).")
    ] = None,
    noise: Annotated[
        _Text, _option("--noise", "With --displacement: probabilities of a flip.", "LIST")
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
    options = {name: value for name, value in locals().items() if name not in _ALWAYS}
    modes = {"critical": critical, "overlap": overlap, "displacement": displacement}
    given = {name: value for name, value in options.items() if value not in (None, False)}
    chosen = _mode(modes, given)
    if plot is not None:
        check_picture(plot, out or Path("no other file"))
    report = {
        "": _sweeps,
        "critical": _freezing,
        "overlap": _overlap,
        "displacement": _displacement,
    }[chosen](given, seed)
    report.show(json, out)


#: Parameters that are no options of one computation.
_ALWAYS = {"seed", "critical", "overlap", "displacement", "json", "out"}


def _mode(modes: dict[str, bool], given: dict[str, Any]) -> str:
    """Return what is to be computed; refuse two at a time and options of others."""
    asked = [name for name, wanted in modes.items() if wanted]
    if len(asked) > 1:
        raise InvalidInputError(asked[1], "given", f"absent with --{asked[0]}")
    mode = asked[0] if asked else ""
    for name, value in given.items():
        if name not in _OPTIONS[mode]:
            allowed = [f"--{other}" for other, its in _OPTIONS.items() if other and name in its]
            text = f"absent with --{mode}" if mode else f"absent without {' or '.join(allowed)}"
            raise InvalidInputError(name, "given" if value is True else value, text)
    return mode


def _chain(given: dict[str, Any]) -> Any:
    names = ("jd", "lam", "lam_left", "lam_right")
    return io.ChainOptions(given.get("layers", "1"), *(given.get(name) for name in names)).chain()


def _integers(given: dict[str, Any], **limits: tuple[int, int | None]) -> dict[str, Any]:
    """Return those of the options that were given, checked; the library has the defaults."""
    from rmtheory.base import checks

    return {
        name: checks.integer(name, given[name], low, high)
        for name, (low, high) in limits.items()
        if name in given
    }


def _seed(seed: str) -> int:
    from rmtheory.base import checks

    return checks.integer("seed", seed, 0)


def _sweeps(given: dict[str, Any], seed: str) -> io.Report:
    from rmtheory.dynamics.averages import (
        LEAST_TRAJECTORIES,
        MOST_SWEEPS,
        mean_field,
        update_probability,
    )

    chain = _chain(given)
    result = mean_field(
        chain,
        **_integers(given, sweeps=(1, MOST_SWEEPS), trajectories=(LEAST_TRAJECTORIES, None)),
        p=update_probability(given.get("p", 1)),
        seed=_seed(seed),
    )
    if "plot" in given:
        from rmtheory.plots import plot_flip_rate

        plot_flip_rate(result, given["plot"])
    count = range(result.sweeps)
    meaning = dict(_MEANING)
    if result.flip_rate_late is None:
        meaning["flip_rate_late"] = result.reason
    exponents = range(len(result.exponents.value))
    levels = range(len(result.margin_levels))
    everything = {
        "reason": result.reason or None,
        "sweep": [t + 1 for t in count],
        "flip_rate": [result.flip_rate[t] for t in count],
        "overlap_with_start": [result.overlap_with_start[t] for t in count],
        "unstable": [result.unstable[t] for t in count],
        "exponent_sweep": list(result.exponent_times),
        "exponent": [result.exponents[k] for k in exponents],
        "margin_level": ", ".join(f"{level:g}" for level in result.margin_levels),
        "margin": [result.margins[k] for k in levels],
    }
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
            **everything,
        },
        meaning,
        json_only=tuple(everything),
    )


def _freezing(given: dict[str, Any], seed: str) -> io.Report:
    from rmtheory.dynamics.freezing import freezing_point

    numbers = _integers(given, layers=(1, 8), repetitions=(2, 1000))
    jd, lam, p = given.get("jd"), given.get("lam"), given.get("p", "1")
    point = freezing_point(
        **numbers,
        jd=jd,
        lam=lam,
        p=p,
        seed=_seed(seed),
        continuous=given.get("continuous", False),
    )
    layers = numbers.get("layers", 1)
    name = point.control
    low, high = point.ends
    between = "; ".join(filter(None, (_MEANING["freezing_point"], point.remark)))
    what = "1 layer" if layers == 1 else f"{layers} layers"
    return io.Report(
        f"Where the dynamics freezes, {what}, update probability {p}",
        {"layers": layers, "jd": jd, "lam": lam, "p": p, "seed": int(seed)},
        {
            f"{name}_low": low,
            f"{name}_high": high,
            "freezing_point": point.point,
            "sustained_low": point.sustained_low,
            "sustained_high": point.sustained_high,
        },
        {**_MEANING, "freezing_point": between},
    )


def _required(given: dict[str, Any], *names: str) -> dict[str, Any]:
    for name in names:
        if name not in given:
            raise InvalidInputError(name, "nothing", f"given (--{name.replace('_', '-')})")
    return {name: given[name] for name in names}


def _overlap(given: dict[str, Any], seed: str) -> io.Report:
    from rmtheory.dynamics.averages import LEAST_TRAJECTORIES
    from rmtheory.dynamics.two_copies import Presentation, overlap_of_phases

    strengths = _required(given, "jd", "lambda_x", "lambda_y")
    labels = {name: given[name] for name in ("label_on", "label_off") if name in given}
    phases = dict.fromkeys(("warmup", "clamped", "free"), (1, 4000))
    protocol = Presentation(**strengths, **labels, **_integers(given, **phases))
    copies = _integers(given, trajectories=(LEAST_TRAJECTORIES, None))
    return io.Report(
        "Overlap of the clamped and the free phase at initialisation, N -> infinity",
        {**{name: str(value) for name, value in vars(protocol).items()}, "seed": seed},
        {"q_dyn": overlap_of_phases(protocol, **copies, seed=_seed(seed))},
        _MEANING,
    )


def _displacement(given: dict[str, Any], seed: str) -> io.Report:
    from rmtheory.dynamics.averages import LEAST_TRAJECTORIES
    from rmtheory.dynamics.two_copies import displacement

    chain = _chain(given)
    noises = [text.strip() for text in given.get("noise", ".05,.1,.2,.3,.4,.5").split(",")]
    displaced = displacement(
        chain,
        noises,
        lambda_x=given.get("lambda_x", 0),
        **_integers(given, sweeps=(1, 2000), trajectories=(LEAST_TRAJECTORIES, None)),
        seed=_seed(seed),
    )
    count = range(len(displaced.noises))
    return io.Report(
        f"Displacement of fixed points of {chain} by noise, N -> infinity",
        {**chain.parameters(), "lambda_x": str(given.get("lambda_x", 0)), "seed": seed},
        {
            "noise": ", ".join(noises),
            "displacement": [displaced.distance[k] for k in count],
            "still_flipping": displaced.still_flipping,
        },
        _MEANING,
    )
