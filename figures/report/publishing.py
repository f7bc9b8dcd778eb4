"""The report and its tables in Markdown, and what quotes them: docs/reproduce.md, README, JSON.

All are rendered from docs/results.json, the numbers of one run of ``python -m figures all``: a
test renders them again, so none can be edited by hand, nor lag behind the claims.

Write the report into the folder of the figures.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from figures.claims import CLAIMS, SECTIONS, grouped, verdict_of
from figures.claims.claim import Claim, Judged, Verdict
from figures.claims.performance import TITLES
from figures.report.collecting import Report, Results, State
from figures.report.contents import (
    AFTERWARDS,
    COUNTS,
    MOVES,
    OPEN,
    RULE,
    SOURCE,
    decided,
    grants,
    moved,
    other_rate,
)
from figures.report.html import page
from figures.trial.benchmarks import BENCHMARKS, CHANGES, TUNED
from figures.trial.designs import command
from rmtheory.explorer.grids import page_text
from rmtheory.runtime.files import write_text
from rmtheory.runtime.untrusted import read_text

# Tables.


def escape(text: str) -> str:
    r"""Return `text` so that Markdown shows it as it is.

    Examples
    --------
    >>> print(escape("S_I*(d) < 1 | s*"))
    S_I\*(d) &lt; 1 \| s\*
    """
    return re.sub(r"([*|`\\$~\[\]])", r"\\\1", text).replace("<", "&lt;")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose cells are Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def statements_table(results: Results) -> str:
    """Return the statements of the paper, in its order, each with the verdict of its claims."""
    rows = []
    for statement, claims in grouped(CLAIMS):
        verdict = verdict_of([results.judged(claim) for claim in claims])
        stressed = f"**{verdict}**" if verdict.startswith(Verdict.DIFFERS) else verdict
        rows.append((escape(statement.text), escape(statement.where), stressed))
    return table(("the paper says", "where", "verdict: claims"), rows)


def claims_table(claims: Iterable[Claim], results: Results) -> str:
    """Return claims against ours, with the verdict and what there is to say."""
    head = ("quantity", "paper", "ours", "verdict", "remark")
    return table(head, (_row(claim, results) for claim in claims))


def _row(claim: Claim, results: Results) -> tuple[str, ...]:
    one = results.judged(claim)
    hint = results.indicative.get(claim.key)
    value = _value(one)
    if hint is not None:
        value = escape(f"indicative: {hint}" + (f" ({hint.at})" if hint.at else ""))
    source = "" if one.ours is None or one.ours.stored is None else f"{one.ours.stored}."
    return (
        escape(claim.quantity),
        f"{escape(claim.printed)} ({escape(claim.source)})",
        value,
        _stressed(one),
        escape(" ".join(filter(None, (one.remark, source)))),
    )


def _stressed(one: Judged) -> str:
    return f"**{one.text}**" if one.verdict is Verdict.DIFFERS else one.text


def headline(results: Results) -> str:
    """Return the short table of the README."""
    rows = (
        (
            escape(claim.quantity),
            escape(claim.printed) + (f" ({claim.granted})" if claim.granted else ""),
            _value(results.judged(claim)),
            _stressed(results.judged(claim)),
        )
        for claim in CLAIMS
        if claim.headline and results.judged(claim).ours is not None
    )
    return table(("quantity", "paper", "ours", "verdict"), rows)


def _value(one: Judged) -> str:
    if one.ours is None:
        return ""
    return escape(f"{one.ours} ({one.ours.at})" if one.ours.at else str(one.ours))


def sections_table(results: Results) -> str:
    """Return how many claims of each section have each verdict."""
    rows = []
    for title in SECTIONS:
        counted = results.counted(title)
        rows.append((title, *(str(counted[verdict]) for verdict in COUNTS)))
    return table(("section", *COUNTS.values()), rows)


def open_table(results: Results) -> str:
    """Return the claims without a verdict, and what would decide each."""
    rows = (
        (
            escape(claim.quantity),
            f"`{claim.id}`",
            results.judged(claim).text,
            escape(results.ahead(claim)),
        )
        for claim in results.open
    )
    return table(("quantity", "claim", "verdict", "what would decide it"), rows)


def afterwards() -> str:
    """Return what was chosen after numbers had been seen, as a list."""
    return "Not fixed beforehand:\n\n" + "\n".join(f"- {one}" for one in AFTERWARDS) + "\n"


def grants_table() -> str:
    """Return what the claims grant and why, and how many claims of each sort there are."""
    rows = ((amount, escape(reason), str(count)) for amount, reason, count in grants())
    return table(("granted", "reason", "claims"), rows)


def moves_table(head: str, changes: Sequence[str], results: Results) -> str:
    """Return differences of ours and the perceptron, a row for each change, or width."""
    rows = ((escape(change), *moved(results, change)) for change in changes)
    return table((head, *(TITLES[name] for name in BENCHMARKS)), rows)


def _moves(results: Results) -> list[str]:
    """Return what moves the central claim."""
    return [
        *("\n### What moves the difference\n", MOVES, moves_table("changed", CHANGES, results)),
        *("\n### Against a perceptron at another rate\n", other_rate(results)),
        moves_table("perceptron", TUNED, results),
    ]


def runs_table(results: Results) -> str:
    """Return what was run for each data set."""
    rows = (
        (f"`{name}`", run.scale, run.seed, f"{run.seconds:.0f}", f"`{run.source}`", run.date)
        for name, run in results.runs.items()
    )
    return table(("data", "scale", "seed", "seconds", "commit", "date"), rows)


def report_page(report: Report) -> str:
    """Return the whole report; the pictures lie beside it."""
    parts = ["# The paper against ours\n", statements_table(report.results)]
    parts += [f"\n{RULE}\n", afterwards(), sections_table(report.results), "\n## What is open\n"]
    parts += [f"{decided(report.results)}\n", f"{OPEN}\n", open_table(report.results)]
    parts += ["\n## Grants\n", grants_table()]
    if report.failed:
        names = ", ".join(entry.figure.name for entry in report.failed)
        parts.append(f"\n**Failed: {names}.**\n")
    for title, claims in SECTIONS.items():
        parts += [f"\n## {title}\n", claims_table(claims, report.results)]
        if title == "Benchmarks" and report.results.moves:
            parts += _moves(report.results)
    parts.append("\n## Figures\n")
    for entry in report.entries:
        figure = entry.figure
        parts.append(f"\n### {figure.name}: {figure.title}\n")
        if entry.message:
            parts.append(f"**{entry.state}**: {escape(entry.message)}\n")
        if entry.state in (State.MADE, State.OUTDATED):
            parts.append(f"![{figure.title}]({figure.name}.png)\n")
        parts.append(f"{escape(figure.caption)}\n")
        if entry.run is not None:
            run = entry.run
            parameters = json.dumps(entry.parameters, ensure_ascii=False)
            parts.append(
                f"Scale {run.scale}, seed {run.seed}, commit `{run.source}`, {run.date}, "
                f"{run.seconds:.0f} s. Parameters: `{parameters}`\n"
            )
    return "\n".join(parts)


def commands(claims: Iterable[Claim]) -> str:
    """Return the lines that make the data of `claims`; runs of the trial have one for all."""
    ways = (command(claim) for claim in claims if claim.data)
    return "\n".join(dict.fromkeys(re.sub(r"decide --id .*", "decide", way) for way in ways))


# Pages.

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
learning are a trial of their own: what is trained, at which epochs it is measured, its seeds and
when it stops are fixed in `figures/trial` (`designs.py`, `benchmarks.py`, `without_data.py`); each
result is a small file in `figures/data/trained` with its commit, seed and machine, and the images
that were classified correctly, so that two networks are compared image by image. `make paper` takes
these numbers where there are some, and names their commits. `make decide` can be killed at any
time; MNIST and Fashion-MNIST are read from `RMSIM_DATA`.

`docs/claims.json` has all of them, as `python -m figures claims --json` prints them.
"""


def reproduce_page(results: Results) -> str:
    """Return the page 'how to reproduce'."""
    parts = [_INTRODUCTION, "\n## Statements of the paper\n", f"{SOURCE}\n"]
    parts += [
        statements_table(results),
        "\n## Rules\n",
        f"{RULE}\n",
        afterwards(),
        sections_table(results),
    ]
    parts += ["\n## What is open\n", f"{decided(results)}\n", f"{OPEN}\n", open_table(results)]
    parts += ["\n## Grants\n", grants_table()]
    for title, claims in SECTIONS.items():
        parts += [
            f"\n## {title}\n",
            f"```sh\n{commands(claims)}\n```\n",
            claims_table(claims, results),
        ]
        if title == "Benchmarks" and results.moves:
            parts += _moves(results)
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
