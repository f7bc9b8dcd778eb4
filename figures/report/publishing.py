"""Bring what quotes our numbers up to date: docs/reproduce.md, docs/claims.json and the README.

All are rendered from docs/results.json, the numbers of one run of ``python -m figures all``: a
test renders them again, so none can be edited by hand, nor lag behind the claims.

Write the report into the folder of the figures.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from figures.claims import SECTIONS
from figures.report.collecting import Report, Results
from figures.report.html import SOURCE, page
from figures.report.markdown import (
    RULE,
    claims_table,
    commands,
    grants_table,
    headline,
    report_page,
    runs_table,
    sections_table,
    statements_table,
)
from rmtheory.explorer.grids import page_text
from rmtheory.runtime.files import write_text
from rmtheory.runtime.untrusted import read_text

_ROOT = Path(__file__).resolve().parents[2]

RESULTS, VERDICTS, PAGE, README = (
    _ROOT / "docs" / "results.json",
    _ROOT / "docs" / "claims.json",
    _ROOT / "docs" / "reproduce.md",
    _ROOT / "README.md",
)

_BEGIN, _END = "<!-- report: begin, by python -m figures publish -->", "<!-- report: end -->"

_INTRODUCTION = """\
# How to reproduce the paper

This page is written by `python -m figures publish` from the claims in `figures/claims`, the
same that make `figures/out/report.html`. The numbers below come from the runs listed at the end.

```sh
make paper                                          # all figures at quick scale, and the report
python -m figures NAME --scale paper --jobs 8       # one figure at the size of the paper
python -m figures NAME --scale paper --dask ADDRESS # the same on a cluster
python -m figures report                            # the report on what is there
python -m figures claims                            # every claim, its verdict and our number
python -m figures claims --id loss-of-stability     # one claim: grant, reason, command, run
python -m figures plan --scale decide               # the runs that decide claims on learning
make decide HOURS=2                                 # go on with them, most claims per hour first
python -m figures verify --id classes-of-mnist      # repeat the stored runs of one claim
```

Networks of the paper's size take too long for `make paper`. The runs that decide its claims on
learning are a trial of their own: what is trained, at which epochs it is looked at, its seeds and
when it stops are fixed in `figures/trial/designs.py`; each result is a small file in
`figures/data/trained` with its commit, seed and machine, and the images that were classified
correctly, so that two networks are compared image by image. `make paper` takes these numbers where
a figure at quick scale has none or a larger error, and names their commits. `make decide` can be
killed at any time; MNIST and Fashion-MNIST are looked for in `RMSIM_DATA`.

`docs/claims.json` has all of them, as `python -m figures claims --json` prints them.
"""


def reproduce_page(results: Results) -> str:
    """Return the page 'how to reproduce'."""
    parts = [_INTRODUCTION, "\n## Statements of the paper\n", f"{SOURCE}\n"]
    parts += [statements_table(results), "\n## Rules\n", f"{RULE}\n", sections_table(results)]
    parts += ["\n## Grants\n", grants_table()]
    for title, claims in SECTIONS.items():
        parts += [
            f"\n## {title}\n",
            f"```sh\n{commands(claims)}\n```\n",
            claims_table(claims, results),
        ]
    parts += ["\n## Runs\n", runs_table(results)]
    return "\n".join(parts)


def with_headline(readme: str, results: Results) -> str:
    """Return the text of the README with the short table between its marks."""
    pattern = re.compile(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)
    if not pattern.search(readme):
        raise ValueError(f"the README lacks the marks {_BEGIN} and {_END}")
    return pattern.sub(lambda _: f"{_BEGIN}\n\n{headline(results)}\n{_END}", readme)


def published() -> Results:
    """Return the results that the repository publishes; none if it has none."""
    return Results.from_json(read_text(RESULTS)) if RESULTS.exists() else Results({}, {})


def publish(results: Results, current: Collection[str]) -> tuple[tuple[Path, ...], list[str]]:
    """Write results.json, claims.json, reproduce.md and the table of the README.

    Data sets that these results lack keep the numbers that were published of them, if the keys of
    their runs are `current`.

    Returns
    -------
    files : tuple of Path
        What was written.
    dropped : list of str
        Data sets whose numbers are no longer published.
    """
    before = list(published().runs)
    results = results.over(published(), current)
    readme = with_headline(read_text(README), results)
    write_text(RESULTS, results.to_json())
    write_text(VERDICTS, results.claims_json())
    write_text(PAGE, reproduce_page(results))
    write_text(README, readme)
    return (RESULTS, VERDICTS, PAGE, README), [name for name in before if name not in results.runs]


FILES = ("report.html", "report.md", "report.json", "explorer.html")


def write(report: Report, folder: Path) -> tuple[Path, ...]:
    """Write report.html, report.md, report.json, the numbers alone, and explorer.html."""
    texts = (page(report), report_page(report), report.results.to_json(), page_text())
    paths = tuple(folder / name for name in FILES)
    for path, text in zip(paths, texts, strict=True):
        write_text(path, text)
    return paths
