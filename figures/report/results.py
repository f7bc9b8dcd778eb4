"""Our numbers for all claims and the runs they come from, as plain values that JSON can hold."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass

import xarray as xr

from figures.claims import CLAIMS, SECTIONS, Claim, Judged, Ours, Verdict, judge


@dataclass(frozen=True)
class Run:
    """What was run for one data set."""

    scale: str
    seed: str
    commit: str
    dirty: str
    date: str
    seconds: float
    #: Hash of parameters and version of the figure, see :meth:`figures.figure.Figure.key`.
    key: str = ""

    @classmethod
    def of(cls, data: xr.Dataset) -> Run:
        """Read it off the provenance of a data set."""
        attributes = data.attrs
        return cls(
            attributes.get("scale", "unknown"),
            attributes.get("seed", "unknown"),
            attributes.get("git_commit", "unknown"),
            attributes.get("git_dirty", "unknown"),
            attributes.get("date", "unknown"),
            float(attributes.get("wall_time_seconds", "nan")),
            attributes.get("parameters_hash", ""),
        )

    @property
    def source(self) -> str:
        """The commit in short, and whether the tree differed from it."""
        return self.commit[:10] + (" with changes" if self.dirty == "yes" else "")


@dataclass(frozen=True)
class Results:
    """Our number for every claim that has one, and the run of every data set."""

    numbers: Mapping[str, Ours]
    runs: Mapping[str, Run]

    @classmethod
    def of(cls, data: Mapping[str, xr.Dataset]) -> Results:
        """Read all numbers off the data sets that are there."""
        numbers = {}
        for claims in SECTIONS.values():
            for claim in claims:
                found = judge(claim, data.get(claim.data)).ours
                if found is not None:
                    numbers[claim.key] = found
        return cls(numbers, {name: Run.of(one) for name, one in sorted(data.items())})

    def judged(self, claim: Claim) -> Judged:
        """Return `claim` with our number and the verdict."""
        return Judged(claim, self.numbers.get(claim.key), run=claim.data in self.runs)

    def counted(self, title: str) -> dict[Verdict, int]:
        """Return how many claims of a section have each verdict."""
        verdicts = [self.judged(claim).verdict for claim in SECTIONS[title]]
        return {verdict: verdicts.count(verdict) for verdict in Verdict}

    def over(self, earlier: Results, current: Collection[str]) -> Results:
        """Return these results, and the earlier ones of data sets that are not among these.

        Earlier ones are kept only if their key is `current`: what other parameters or another
        version of a figure gave is not our number any more.
        """
        kept = {
            name: run
            for name, run in earlier.runs.items()
            if name not in self.runs and run.key in current
        }
        numbers = {
            claim.key: earlier.numbers[claim.key]
            for claim in CLAIMS
            if claim.data in kept and claim.key in earlier.numbers
        }
        return Results({**numbers, **self.numbers}, dict(sorted({**kept, **self.runs}.items())))

    def to_json(self) -> str:
        """Return everything as JSON."""
        document = {
            "numbers": {key: asdict(value) for key, value in self.numbers.items()},
            "runs": {name: asdict(run) for name, run in self.runs.items()},
        }
        return json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Results:
        """Return what :meth:`to_json` wrote."""
        document = json.loads(text)
        return cls(
            {key: Ours(**value) for key, value in document["numbers"].items()},
            {name: Run(**value) for name, value in document["runs"].items()},
        )
