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
from pathlib import Path
from typing import Any

import numpy as np

from rmtheory.base.chain import Chain
from rmtheory.base.estimate import Estimate
from rmtheory.base.statistics import mean_of_rows
from rmtheory.dynamics.averages import MeanField, mean_field
from rmtheory.dynamics.finite_size import stopping_law
from rmtheory.dynamics.freezing import flip_rate_curve, freezing_point
from rmtheory.runtime.files import write_text
from rmtheory.runtime.provenance import canonical_json, git_state
from rmtheory.runtime.untrusted import read_json

FOLDER = Path(__file__).resolve().parents[1] / "data"

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
    return read_json(FOLDER / f"{table}.json")[key]["result"]


def ship(table: str, path: Path | None = None, minutes: float = math.inf) -> list[str]:
    """Compute the pieces that the file of a table does not have; return their keys.

    After `minutes` no further piece is begun.
    """
    file = path or FOLDER / f"{table}.json"
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
    return [float(f"{value:.7g}"), float(f"{error:.3g}")]


# Theory of the dynamics.


def curve(seed: int, repetitions: int, iterations: int) -> dict[str, Any]:
    """Stationary states of one layer."""
    found = flip_rate_curve(seed=seed, repetitions=repetitions, iterations=iterations)
    return {"rates": list(found.rates), "couplings": [_pair(one) for one in found.couplings]}


def law(seed: int, repetitions: int) -> dict[str, Any]:
    """The stopping law."""
    found = stopping_law(seed=seed, repetitions=repetitions)
    covariance = float(f"{found.covariance:.4g}")
    return {"alpha": _pair(found.alpha), "beta": _pair(found.beta), "covariance": covariance}


def relay(seed: int, repetitions: int) -> dict[str, Any]:
    """J_dyn by the second route, a relay that sees its path at all times."""
    found = freezing_point(1, seed=seed, repetitions=repetitions, continuous=True)
    return {
        "jd": _pair(found.point),
        "rates": list(found.rates),
        "couplings": [_pair(one) for one in found.couplings],
    }


def freezing(layers: int, p: float, seed: int, repetitions: int, **fixed: Any) -> dict[str, Any]:
    """Where the dynamics freezes, with the stationary states behind it."""
    found = freezing_point(layers, p=p, seed=seed, repetitions=repetitions, **fixed)
    return {
        found.control: _pair(found.point),
        "rates": list(found.rates),
        "couplings": [_pair(one) for one in found.couplings],
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


def _numbers(values: Any, digits: int = 6) -> list[float]:
    return [float(f"{x:.{digits}g}") for x in np.atleast_1d(values)]


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
    settings = [
        *random_settings(),
        # Frozen after fifty sweeps: one layer, a chain of three.
        {"layers": 1, "jd": 1.1, "lam": 0.0, "p": 1.0},
        {"layers": 3, "jd": 0.9, "lam": 0.5, "p": 0.5},
    ]
    return [
        Piece(f"networks {k} N={n}", networks, {**one, "n": n, **MEASURED})
        for k, one in enumerate(settings)
        for n in (2000, 4000)
    ]


def _chain_points() -> list[Piece]:
    """Freezing of chains, on lines of constant lambda or J_D."""
    wanted: list[tuple[int, float, dict[str, float]]] = [
        (1, 0.8, {}),
        *((2, 0.8, {"lam": lam}) for lam in (0.3, 0.6, 0.8, 1.1)),
        (2, 0.8, {"jd": 0.0}),
        *((3, 0.8, {"lam": lam}) for lam in (0.3, 0.6, 0.8, 1.1)),
        (3, 0.8, {"jd": 0.0}),
        *((layers, 1.0, {"lam": lam}) for layers in (2, 3) for lam in (0.3, 0.5)),
    ]
    return [
        Piece(
            " ".join([f"freezing L={layers} p={p:g}", *(f"{k}={x:g}" for k, x in fixed.items())]),
            freezing,
            {"layers": layers, "p": p, **fixed, "seed": 0, "repetitions": 3 if fixed else 8},
        )
        for layers, p, fixed in wanted
    ]


TABLES: dict[str, list[Piece]] = {
    "mean_field": [
        Piece("curve", curve, {"seed": 0, "repetitions": 12, "iterations": 20}),
        Piece("relay", relay, {"seed": 1, "repetitions": 12}),
        Piece("law", law, {"seed": 0, "repetitions": 60}),
    ],
    "mean_field_networks": _network_pieces(),
    "freezing_points": _chain_points(),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute the tables named."""
    parser = argparse.ArgumentParser(prog="python -m figures.paper.shipped", description=__doc__)
    parser.add_argument("table", nargs="+", choices=sorted(TABLES))
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the tables are stored")
    text = "begin no piece of a table after this time"
    parser.add_argument("--minutes", type=float, default=math.inf, help=text)
    given = parser.parse_args(arguments)
    for table in given.table:
        keys = ship(table, given.folder / f"{table}.json", given.minutes)
        print(f"{table}: {len(keys)} of {len(TABLES[table])} pieces computed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
