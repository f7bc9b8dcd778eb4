"""Numbers that take minutes to hours and are shipped in figures/data, each with its provenance.

``python -m figures.paper.shipped NAME`` computes what is missing of a table or was computed with
other settings, and stores it piece by piece: a run that was killed resumes.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from rmtheory.base.chain import Chain
from rmtheory.base.estimate import Estimate
from rmtheory.base.statistics import QuantileErrors, Quantiles, mean, mean_of_rows, weighted_fit
from rmtheory.dynamics.averages import MeanField, mean_field
from rmtheory.dynamics.finite_size import STORED, stopping_law
from rmtheory.dynamics.freezing import flip_rate_curve, freezing_point
from rmtheory.dynamics.two_copies import Presentation, overlap_of_phases, overlaps_of_batches
from rmtheory.runtime.files import write_text
from rmtheory.runtime.provenance import canonical_json, git_state
from rmtheory.runtime.untrusted import read_json

FOLDER = Path(__file__).resolve().parents[1] / "data"

#: Tables that the theory itself reads.
_ELSEWHERE = {"mean_field": STORED}

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Piece:
    """A function of JSON settings with a JSON result, under its key in a table."""

    key: str
    compute: Callable[..., Any]
    settings: Settings


def stored_numbers(table: str, key: str) -> Any:
    """Return the result of one piece of a table.

    Examples
    --------
    >>> sorted(stored_numbers("mean_field", "law"))
    ['alpha', 'beta', 'covariance']
    """
    return read_json(path_of(table))[key]["result"]


def path_of(table: str) -> Path:
    """Return the file of a table."""
    return _ELSEWHERE.get(table, FOLDER / f"{table}.json")


def ship(table: str, path: Path | None = None, minutes: float = math.inf) -> list[str]:
    """Compute the pieces that the file of a table does not have; return their keys.

    After `minutes` no further piece is begun.
    """
    file = path or path_of(table)
    held: dict[str, Any] = read_json(file) if file.exists() else {}
    computed: list[str] = []
    end = time.monotonic() + 60 * minutes
    for piece in TABLES[table]:
        if time.monotonic() > end:
            break
        there = held.get(piece.key)
        if there and canonical_json(there["settings"]) == canonical_json(piece.settings):
            continue
        began = time.process_time()
        result = piece.compute(**piece.settings)
        commit, dirty = git_state()
        held[piece.key] = {
            "call": f"figures.paper.shipped.{piece.compute.__name__}",
            "settings": dict(piece.settings),
            "commit": commit,
            "dirty": dirty,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "cpu_seconds": round(time.process_time() - began, 1),
            "result": result,
        }
        write_text(file, _text(held))
        computed.append(piece.key)
        print(f"{piece.key}: {held[piece.key]['cpu_seconds']} CPU-seconds", flush=True)
    return computed


def _text(held: dict[str, Any]) -> str:
    """One line per entry of a piece, so that a change of the file can be read."""
    pieces = []
    for key, piece in held.items():
        rows = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in piece.items()]
        pieces.append(f" {json.dumps(key)}: {{\n" + ",\n".join(rows) + "\n }")
    return "{\n" + ",\n".join(pieces) + "\n}\n"


def _pair(estimate: Estimate) -> list[float]:
    """Value and error to the digits that the error leaves, and three more."""
    value, error = float(estimate.value), float(estimate.error)
    return [_rounded(value, 7), _rounded(error, 3)]


# Theory of the dynamics.


def curve(seed: int, repetitions: int, iterations: int) -> dict[str, Any]:
    """Stationary states of one layer."""
    rates = flip_rate_curve(seed=seed, repetitions=repetitions, iterations=iterations)
    return {"rates": list(rates.rates), "couplings": [_pair(one) for one in rates.couplings]}


def law(seed: int, repetitions: int) -> dict[str, Any]:
    """The stopping law."""
    fitted = stopping_law(seed=seed, repetitions=repetitions)
    covariance = float(f"{fitted.covariance:.4g}")
    return {"alpha": _pair(fitted.alpha), "beta": _pair(fitted.beta), "covariance": covariance}


def relay(seed: int, repetitions: int) -> dict[str, Any]:
    """J_dyn by the second route, a relay that sees its path at all times."""
    frozen = freezing_point(1, seed=seed, repetitions=repetitions, continuous=True)
    return {
        "jd": _pair(frozen.point),
        "rates": list(frozen.rates),
        "couplings": [_pair(one) for one in frozen.couplings],
    }


def freezing(layers: int, p: float, seed: int, repetitions: int, **fixed: Any) -> dict[str, Any]:
    """Where the dynamics freezes, its bracket, and the stationary states behind it."""
    frozen = freezing_point(layers, p=p, seed=seed, repetitions=repetitions, **fixed)
    return {
        frozen.control: _pair(frozen.point),
        "low": [frozen.low, *_pair(frozen.sustained_low)],
        "high": [frozen.high, *_pair(frozen.sustained_high)],
        "rates": list(frozen.rates),
        "couplings": [_pair(one) for one in frozen.couplings],
    }


@cache
def _theory(chain: Chain, sweeps: int, p: float, trajectories: int, seed: int) -> MeanField:
    """Return the averages of the theory, once for all sizes of networks."""
    return mean_field(chain, sweeps, p=p, trajectories=trajectories, seed=seed)


def networks(
    layers: int,
    jd: float,
    lam: float,
    p: float,
    n: int,
    samples: int,
    starts: int,
    sweeps: int,
    trajectories: int,
    seed: int,
) -> dict[str, Any]:
    """Averages of networks of N neurons per layer beside those of the theory: [value, error]."""
    from rmsim.network import Network
    from rmsim.studies.compare import network_averages

    chain = Chain(layers, jd, lam if layers > 1 else None)
    theory = _theory(chain, sweeps, p, trajectories, seed)
    measured = network_averages(
        Network(n, chain), sweeps, samples=samples, starts=starts, p=p, seed=seed
    )
    moved = theory.never_moved
    pairs = {
        "flip_rate": (theory.flip_rate.value, theory.flip_rate.error),
        "overlap_with_start": (theory.overlap_with_start.value, theory.overlap_with_start.error),
        "never_moved": (np.array([float(moved.value)]), np.array([float(moved.error)])),
        "margins": (theory.margins.value, theory.margins.error),
    }
    result: dict[str, Any] = {}
    for name, (value, error) in pairs.items():
        rows = np.asarray(getattr(measured, name)).mean(axis=1).reshape(samples, -1)
        middle, deviation = mean_of_rows(rows)
        result[name] = {
            "theory": _numbers(value),
            "theory_error": _numbers(error, 3),
            "networks": _numbers(middle),
            "networks_error": _numbers(deviation, 3),
        }
    return result


def stops(n: int, jd: list[float], samples: int, caps: list[int], seed: int) -> dict[str, Any]:
    """How many networks of one layer are at a fixed point within each cap, at each J_D."""
    from rmsim.dynamics.relaxation import relax
    from rmsim.dynamics.status import Status
    from rmsim.network import Network

    rows = []
    for x in jd:
        ends = relax(Network(n, Chain(1, x)), samples=samples, max_sweeps=max(caps), seed=seed)
        stopped = ends.ended(Status.FIXED_POINT).numpy()
        rows.append([int((stopped & (ends.iterations.numpy() <= cap)).sum()) for cap in caps])
    return {"stopped": rows}


def two_layers_at(
    lam: float, kappa: float, n: int, train_samples: int, test_samples: int, seeds: list[int]
) -> dict[str, Any]:
    """Test accuracy of two layers without self-coupling, at a margin of its own; 1 and 3 epochs."""
    from rmsim.studies.trained_networks import pair_settings, trained

    settings = {**pair_settings(0.0, lam), "kappa_j": kappa, "kappa_in": kappa}
    data = {"train_samples": train_samples, "test_samples": test_samples}
    point = {"preset": "role-of-jd", "n": n, "looks": [1, 3], "watched": 200, **settings, **data}
    rows = [np.asarray(trained(point, seed)["test_accuracy"]).tolist() for seed in seeds]
    return {"epochs": point["looks"], "test_accuracy": [_numbers(row) for row in rows]}


def overlap(
    jd: float, lambda_x: float, lambda_y: float, trajectories: int, neurons: list[int], seed: int
) -> dict[str, Any]:
    """q_dyn at initialisation: the limit, and over networks of N neurons mean and quantiles.

    The samples of one network of the paper have its quantiles, here every sample has a network of
    its own. Of several sizes the limit is that of a + b N^(-1/2) + c/N, else that of large batches.
    """
    presentation = Presentation(jd, lambda_x, lambda_y)
    result: dict[str, Any] = {}
    means = []
    for n in neurons:
        q = overlaps_of_batches(presentation, n, trajectories // n, seed)
        average = mean(q)
        means.append((average.value, average.error))
        row = {"mean": [_rounded(average.value, 7), _rounded(average.error, 3)]}
        values, errors = Quantiles.of(q), QuantileErrors.of(q, resolution=1 / n)
        for name in ("median", "q25", "q75"):
            row[name] = [_rounded(getattr(values, name), 7), _rounded(getattr(errors, name), 3)]
        result[f"N={n}"] = row
    if len(neurons) > 3:
        size, (value, error) = np.array(neurons, dtype=float), np.array(means).T
        fit = weighted_fit([1, size**-0.5, 1 / size], value, error)
        limit = [_rounded(fit.coefficients[0], 7), _rounded(fit.scale * fit.errors[0], 3)]
    else:
        limit = _pair(overlap_of_phases(presentation, trajectories=trajectories, seed=seed))
    return {"limit": limit, **result}


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def _numbers(values: Any, digits: int = 6) -> list[float]:
    return [_rounded(x, digits) for x in np.atleast_1d(values)]


def random_settings(count: int = 10, seed: int = 17) -> list[dict[str, Any]]:
    """Return random couplings, depths up to three and update probabilities, drawn once."""
    rng = np.random.default_rng(seed)
    return [
        {
            "layers": 1 + k % 3,
            "jd": round(float(rng.uniform(0, 1.1)), 3),
            "lam": round(float(rng.uniform(0.1, 0.9)), 3) if k % 3 else 0.0,
            "p": float(rng.choice([1.0, 0.8, 0.5])),
        }
        for k in range(count)
    ]


#: How networks are measured at every size.
MEASURED = {"samples": 20, "starts": 4, "sweeps": 50, "trajectories": 800_000, "seed": 11}


def _network_pieces() -> list[Piece]:
    return [
        Piece(f"networks {k} N={n}", networks, {**one, "n": n, **MEASURED})
        for k, one in enumerate(random_settings())
        for n in (2000, 4000)
    ]


def _stop_pieces() -> list[Piece]:
    """Sizes from which no constant of the theory was read."""
    windows = {
        120: (400, [0.36, 0.40, 0.44, 0.48]),
        300: (300, [0.48, 0.51, 0.54, 0.57]),
        700: (120, [0.57, 0.60, 0.63, 0.66]),
    }
    return [
        Piece(
            f"stops N={n}",
            stops,
            {"n": n, "jd": jd, "samples": samples, "caps": [150, 400, 1000], "seed": 99},
        )
        for n, (samples, jd) in windows.items()
    ]


#: Couplings at which the two margins of :func:`two_layers_at` are compared.
MARGIN_LAM = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0)


def _margin_pieces() -> list[Piece]:
    """The margin of the figure of the duality, 0.9 + lambda, and one that does not grow."""
    few = {"n": 200, "train_samples": 12_000, "test_samples": 4000, "seeds": [0, 1, 2]}
    pairs = [(lam, round(0.9 + lam, 6)) for lam in MARGIN_LAM]
    pairs += [(lam, 0.9) for lam in MARGIN_LAM[1:]] + [(0.0, 1.9)]
    return [
        Piece(f"lam={lam:g} kappa={kappa:g}", two_layers_at, {"lam": lam, "kappa": kappa, **few})
        for lam, kappa in pairs
    ]


#: Rows of the table of overlaps (SM-H).
OVERLAP_ROWS = {"jd": [0.5, 0.0], "lambda_x": [5.0, 2.0], "lambda_y": [0.9, 0.5]}


def overlap_key(jd: float, lambda_x: float, lambda_y: float) -> str:
    """Return the key of a row in the table ``overlaps``."""
    return f"overlap jd={jd:g} lambda_x={lambda_x:g} lambda_y={lambda_y:g}"


def _overlap_pieces() -> list[Piece]:
    """All eight rows, to an error below 0.001; at the paper's size, and others for the limit."""
    rows = list(product(*OVERLAP_ROWS.values()))
    return [
        Piece(
            overlap_key(*row),
            overlap,
            {
                **dict(zip(OVERLAP_ROWS, row, strict=True)),
                # Without self-coupling the phases never end: 20 times the sweeps.
                "trajectories": 3_200_000 if row[0] else 1_600_000,
                "neurons": [400, 800, 1600, 3200, 400_000] if row[0] else [1600],
                "seed": 0,
            },
        )
        for row in rows
    ]


def _chain_points() -> list[Piece]:
    """Freezing of chains, on lines of constant lambda or J_D."""
    # In the order in which they say most: those computed so far are drawn.
    wanted: list[tuple[int, float, dict[str, float]]] = [
        *((2, 0.8, {"lam": lam}) for lam in (0.3, 0.8, 1.1)),
        *((3, 0.8, {"lam": lam}) for lam in (0.3, 0.8, 1.1)),
        # Three layers without J_D flicker instead (docs: Theory of the dynamics).
        (2, 0.8, {"jd": 0.0}),
        *((layers, 1.0, {"lam": lam}) for lam in (0.3, 0.5) for layers in (2, 3)),
        *((layers, 0.8, {"lam": 0.6}) for layers in (2, 3)),
    ]
    return [
        Piece(
            f"freezing L={layers} p={p:g} " + " ".join(f"{k}={x:g}" for k, x in fixed.items()),
            freezing,
            {"layers": layers, "p": p, **fixed, "seed": 0, "repetitions": 2},
        )
        for layers, p, fixed in wanted
    ]


TABLES: dict[str, list[Piece]] = {
    "mean_field": [
        Piece("relay", relay, {"seed": 1, "repetitions": 10}),
        Piece("curve", curve, {"seed": 0, "repetitions": 6, "iterations": 12}),
        Piece("law", law, {"seed": 0, "repetitions": 60}),
    ],
    "mean_field_networks": _network_pieces(),
    "chance_stops": _stop_pieces(),
    "overlaps": _overlap_pieces(),
    "freezing_points": _chain_points(),
    "duality_margins": _margin_pieces(),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute the tables named."""
    parser = argparse.ArgumentParser(prog="python -m figures.paper.shipped", description=__doc__)
    parser.add_argument("table", nargs="+", choices=sorted(TABLES))
    parser.add_argument("--folder", type=Path, help="store the tables there instead")
    text = "begin no piece of a table after this time"
    parser.add_argument("--minutes", type=float, default=math.inf, help=text)
    given = parser.parse_args(arguments)
    for table in given.table:
        path = given.folder and given.folder / f"{table}.json"
        keys = ship(table, path, given.minutes)
        print(f"{table}: {len(keys)} of {len(TABLES[table])} pieces computed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
