"""The report as one self-contained page: images, style and script inside, no network.

First the statements of the paper with their verdicts, all verdicts as a picture, what is open and
the table of overlaps; then every claim, then every figure with its provenance.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from figures.claims import CLAIMS, SECTIONS, grouped, verdict_of
from figures.claims.claim import FIGURE_OF, STORED, Judged, Ours, Verdict
from figures.claims.performance import TITLES
from figures.report.collecting import Entry, Report, Results, State
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
from figures.trial.benchmarks import BENCHMARKS, CHANGES, TUNED
from figures.trial.designs import command

_STYLE, _SCRIPT = (Path(__file__).with_name(name) for name in ("style.css", "tables.js"))


def page(report: Report) -> str:
    """Return the page."""
    body = "\n".join(
        (
            _head(report),
            statements(report.results),
            "<h2 id='verdicts'>All verdicts</h2>",
            picture(report.results),
            "<h2 id='overlaps'>Overlap of the two phases: the printed table</h2>",
            "<p>Ours, coloured by its verdict, above the number of the paper.</p>",
            overlaps(report.results),
            "<h2 id='claims'>Every claim</h2>",
            _summary(report),
            _FILTER,
            *(_claims(title, report.results) for title in SECTIONS),
            "<h2 id='open'>What is open</h2>",
            _open(report.results),
            "<h2 id='figures'>Figures</h2>",
            *(_figure(entry) for entry in report.entries),
        )
    )
    return (
        "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        # Without it a browser requests an icon that does not exist.
        "<link rel='icon' href='data:,'>\n"
        "<title>The paper against ours</title>\n"
        f"<style>\n{_STYLE.read_text('utf-8')}</style>\n</head>\n<body>\n<main>\n{body}\n"
        f"</main>\n<script>\n{_SCRIPT.read_text('utf-8')}</script>\n</body>\n</html>\n"
    )


def _head(report: Report) -> str:
    made = sum(entry.state is State.MADE for entry in report.entries)
    lines = [
        "<h1>The paper against ours</h1>",
        "<p>The numbers and claims that <cite>Dynamical Learning in Deep Asymmetric Recurrent "
        "Neural Networks</cite> prints as results, beside what this code finds. "
        f"{made} of {len(report.entries)} figures are made, each at the scale given with it; "
        f"report written by commit <code>{html.escape(report.commit[:10])}</code>. The "
        "<a href='explorer.html'>explorer</a> shows the theory at any couplings.</p>",
        f"<p>{SOURCE}</p>",
        f"<p>{decided(report.results)}</p>",
    ]
    if report.failed:
        names = ", ".join(f"<a href='#{e.figure.name}'>{e.figure.name}</a>" for e in report.failed)
        lines.append(f"<p class='failure' role='alert'>Failed: {names}.</p>")
    return "\n".join(lines)


def _summary(report: Report) -> str:
    rows = []
    for title in SECTIONS:
        counted = report.results.counted(title)
        cells = "".join(f"<td class='number'>{counted[verdict]}</td>" for verdict in COUNTS)
        rows.append(f"<tr><td><a href='#{_anchor(title)}'>{title}</a></td>{cells}</tr>")
    heads = "".join(f"<th class='number'>{name}</th>" for name in COUNTS.values())
    return (
        f"<p>{text(RULE)}</p>\n<details><summary>what was not fixed beforehand</summary>\n<ul>"
        f"{''.join(f'<li>{text(one)}</li>' for one in AFTERWARDS)}</ul></details>\n"
        f"<details id='grants'><summary>what is granted, and why</summary>\n{_grants()}</details>\n"
        f"<table class='counts'>\n<thead><tr><th>section</th>{heads}</tr>"
        f"</thead>\n<tbody>\n{chr(10).join(rows)}\n</tbody>\n</table>"
    )


def _grants() -> str:
    rows = ((amount, text(reason), str(count)) for amount, reason, count in grants())
    return _plain_table(("granted", "reason", "claims"), rows)


def _plain_table(heads: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "plain") -> str:
    """Return a table whose cells are HTML."""
    head = "".join(f"<th>{name}</th>" for name in heads)
    body = "\n".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f"<div class='scroll'><table class='{kind}'>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def _moves(results: Results) -> str:
    """What moves the central claim; nothing without stored runs."""
    if not results.moves:
        return ""
    parts = []
    for title, words, head, changes in (
        ("What moves the difference", MOVES, "changed", CHANGES),
        ("Against a perceptron at another rate", other_rate(results), "perceptron", TUNED),
    ):
        rows = ((text(change), *moved(results, change)) for change in changes)
        parts += [f"<h4 id='{_anchor(title)}'>{title}</h4>", f"<p>{text(words)}</p>"]
        parts.append(_plain_table((head, *(TITLES[name] for name in BENCHMARKS)), rows, "moves"))
    return "\n".join(parts)


#: Choices of the filter; hidden where no script runs.
_FILTER = (
    "<form id='filter' hidden><label>verdict <select name='verdict'><option value=''>all</option>"
    + "".join(f"<option>{verdict}</option>" for verdict in Verdict)
    + "</select></label> <label>words <input name='words' type='search' size='16'></label> "
    "<output id='shown'></output></form>"
)


def _open(results: Results) -> str:
    """The claims without a verdict, and what would decide each."""
    rows = "\n".join(
        f"<tr><td><a href='#claim-{claim.id}'>{text(claim.quantity)}</a></td>"
        f"<td>{html.escape(results.judged(claim).text)}</td>"
        f"<td>{html.escape(results.ahead(claim))}</td></tr>"
        for claim in results.open
    )
    return (
        f"<p>{text(OPEN)}</p>\n<details class='claims-left'><summary>{len(results.open)} claims, "
        "and what would decide each</summary>\n<div class='scroll'><table>\n<thead><tr>"
        "<th>quantity</th><th>verdict</th><th>what would decide it</th></tr></thead>\n"
        f"<tbody>\n{rows}\n</tbody>\n</table></div></details>"
    )


def _claims(title: str, results: Results) -> str:
    """The claims of a section: those tested open to the eye, the others folded."""
    judged = [results.judged(claim) for claim in SECTIONS[title]]
    tested = [one for one in judged if one.ours is not None and not is_overlap(one)]
    untested = [one for one in judged if one.ours is None and not is_overlap(one)]
    cells = [one for one in judged if is_overlap(one)]
    parts = [f"<h3 id='{_anchor(title)}'>{title}</h3>"]
    if tested:
        parts.append(_table(tested, results))
    folded = (
        (untested, "", f"{len(untested)} without a number: reasons, costs and indicative values"),
        (cells, " cells", f"the {len(cells)} cells of the table of overlaps, one by one"),
    )
    for part, kind, label in folded:
        if part:
            parts.append(
                f"<details class='claims-left{kind}'><summary>{label}</summary>\n"
                f"{_table(part, results)}\n</details>"
            )
    if title == "Benchmarks":
        parts.append(_moves(results))
    return "\n".join(parts)


def _table(judged: Sequence[Judged], results: Results) -> str:
    rows = "\n".join(_claim(one, results.indicative.get(one.claim.key)) for one in judged)
    heads = "".join(f"<th>{name}</th>" for name in ("quantity", "paper", "ours", "verdict"))
    return (
        "<div class='scroll'><table class='claims sortable'>\n"
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>"
    )


def _claim(one: Judged, hint: Ours | None) -> str:
    claim = one.claim
    remark = f"<div class='remark'>{text(one.remark)}</div>" if one.remark else ""
    way = command(claim)
    decides = f"<div class='remark'><code>{html.escape(way)}</code></div>" if way else ""
    return (
        f"<tr id='claim-{claim.id}' data-verdict='{one.verdict}'>"
        f"<td>{text(claim.quantity)}{remark}{decides}</td>"
        f"<td>{text(claim.printed)}<div class='remark'>{text(claim.source)}</div></td>"
        f"<td class='ours' data-key='{'' if one.ours is None else one.ours.value}'>"
        f"{'' if one.ours is None else one.ours}{_indicative(hint)}"
        f"<div class='remark'>{_origin(one)}</div></td>"
        f"<td><span class='{CLASSES[one.verdict]}'>{one.text}</span>{_needs(one)}</td></tr>"
    )


def _indicative(hint: Ours | None) -> str:
    """A number that decides nothing, and where it was measured."""
    if hint is None:
        return ""
    at = f" ({text(hint.at)})" if hint.at else ""
    return f"<span class='indicative'>indicative: {hint}{at}</span>"


def _origin(one: Judged) -> str:
    """Sizes, and the figure or the stored runs that the number comes from."""
    data = one.claim.data
    link = f"<a href='#{FIGURE_OF.get(data, data)}'>{data}</a>" if data else ""
    if data in STORED:
        link = f"{data}, in no figure"
    if one.ours is None:
        return link
    stored = "" if one.ours.stored is None else html.escape(str(one.ours.stored))
    parts = (text(one.ours.at), stored, link)
    return "; ".join(filter(None, parts))


def _needs(one: Judged) -> str:
    """What a claim without a verdict lacks."""
    if one.verdict is not Verdict.UNTESTED or not one.claim.needs:
        return ""
    return f"<div class='remark'>needs {text(one.claim.needs)}</div>"


def _figure(entry: Entry) -> str:
    figure = entry.figure
    lines = [f"<section id='{figure.name}'>", f"<h3>{html.escape(figure.title)}</h3>"]
    if entry.message:
        kind = "failure" if entry.state is State.FAILED else "remark"
        lines.append(f"<p class='{kind}'>{entry.state}: {html.escape(entry.message)}</p>")
    if entry.details:
        lines.append(f"<pre>{html.escape(entry.details)}</pre>")
    if entry.picture:
        data = base64.b64encode(entry.picture).decode("ascii")
        lines.append(
            f"<figure><img alt='{html.escape(figure.title)}' src='data:image/png;base64,{data}'>"
            f"<figcaption>{text(figure.caption)}</figcaption></figure>"
        )
    else:
        lines.append(f"<p>{text(figure.caption)}</p>")
    lines += [_provenance(entry), "</section>"]
    return "\n".join(lines)


def _provenance(entry: Entry) -> str:
    if entry.run is None:
        return ""
    run = entry.run
    facts = (
        f"<code>python -m figures {entry.figure.name} --scale {run.scale}</code>, "
        f"{run.seconds:.1f} s, seed {html.escape(run.seed)}, "
        f"commit <code>{html.escape(run.source)}</code>, {html.escape(run.date)}"
    )
    parameters = html.escape(json.dumps(entry.parameters, indent=1, ensure_ascii=False))
    versions = ", ".join(
        f"{name} {version}"
        for name, version in (entry.versions or {}).items()
        if version != "not installed"
    )
    return (
        f"<p class='remark'>{facts}</p>\n<details><summary>Parameters and versions</summary>"
        f"<pre>{parameters}</pre><p class='remark'>{html.escape(versions)}</p></details>"
    )


def _anchor(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower())


#: Verdict -> class of its colour.
CLASSES = {
    Verdict.AGREES: "agrees",
    Verdict.DIFFERS: "differs",
    Verdict.RECONSTRUCTED: "reconstructed",
    Verdict.EDGE: "unresolved",
    Verdict.UNRESOLVED: "unresolved",
    Verdict.NO_POWER: "unresolved",
    Verdict.UNTESTED: "untested",
    Verdict.ABSENT: "untested",
    Verdict.NOT_RUN: "untested",
}

#: Words of the verdict of a statement -> class of its colour.
_WORDS = {"agrees": "agrees", "differs": "differs", "reconstructed": "reconstructed"}


def text(plain: str) -> str:
    """Return `plain` as HTML, with indices, stress and code set as such.

    Examples
    --------
    >>> text("J_D < 1, *agrees*, N^1.1, fashion_mnist")
    'J<sub>D</sub> &lt; 1, <em>agrees</em>, N<sup>1.1</sup>, fashion_mnist'
    """
    safe = html.escape(plain, quote=False)
    safe = re.sub(r"(?<!\w)\*(\w[\w ]*)\*", r"<em>\1</em>", safe)
    safe = re.sub(r"`([^`]+)`", r"<code>\1</code>", safe)
    safe = re.sub(r"(?<=[\w)])\^([\w.]*\w)", r"<sup>\1</sup>", safe)
    return re.sub(r"(?<!\w)(\w)_(\w+)", r"\1<sub>\2</sub>", safe)


def statements(results: Results) -> str:
    """Return the table of the statements of the paper, in its order, a line each."""
    rows = []
    for statement, claims in grouped(CLAIMS):
        judged = [results.judged(claim) for claim in claims]
        verdict = verdict_of(judged)
        kind = _WORDS.get(verdict.partition(":")[0], "untested")
        first = f"claim-{claims[0].id}"
        rows.append(
            f"<tr><td><a href='#{first}'>{text(statement.text)}</a></td>"
            f"<td class='remark'>{text(statement.where)}</td>"
            f"<td><span class='{kind}'>{verdict}</span></td></tr>"
        )
    return (
        "<table class='statements sortable'>\n<thead><tr><th>the paper says</th><th>where</th>"
        f"<th>verdict: claims</th></tr></thead>\n<tbody>\n{chr(10).join(rows)}\n</tbody>\n</table>"
    )


#: Side and step of a square, squares in a line.
_SIDE, _STEP, _LINE = 10, 13, 48


def picture(results: Results) -> str:
    """Return all verdicts as one picture: a square for each claim, linked to its row."""
    parts, y = [], 0
    for title, claims in SECTIONS.items():
        parts.append(f"<text x='0' y='{y + 10}'>{html.escape(title)}</text>")
        y += 16
        for k, claim in enumerate(claims):
            judged = results.judged(claim)
            x, row = k % _LINE * _STEP, k // _LINE
            label = html.escape(f"{claim.quantity}: {judged.text}", quote=True)
            parts.append(
                f"<a href='#claim-{claim.id}'><rect class='{CLASSES[judged.verdict]}' x='{x}' "
                f"y='{y + row * _STEP}' width='{_SIDE}' height='{_SIDE}' rx='2'>"
                f"<title>{label}</title></rect></a>"
            )
        y += (1 + (len(claims) - 1) // _LINE) * _STEP + 8
    width = _LINE * _STEP
    return (
        f"<figure class='verdicts'><svg viewBox='0 0 {width} {y}' role='img' "
        f"aria-label='Every claim as a square, coloured by its verdict'>{''.join(parts)}</svg>"
        f"<figcaption>{_legend(results)}</figcaption></figure>"
    )


def _legend(results: Results) -> str:
    verdicts = [results.judged(claim).verdict for claim in CLAIMS]
    names = {
        "agrees": "agrees",
        "differs": "differs",
        "reconstructed": "reconstructed",
        "unresolved": "at the edge, not resolved, or error too large",
        "untested": "without a number (the reason is in its row)",
    }
    counted = {
        name: sum(CLASSES[verdict] == name for verdict in verdicts) for name in dict.fromkeys(names)
    }
    return " ".join(
        f"<span class='{name}'>{counted[name]} {label}</span>" for name, label in names.items()
    )


_EPOCHS = {"0": "initialisation", "1": "epoch 1", "20": "epoch 20"}
_PARTS = {"median": "median", "lower end": "lower", "upper end": "upper"}


def overlaps(results: Results) -> str:
    """Return the printed table of overlaps, eight rows of nine, each cell with ours and verdict."""
    cells: dict[str, list[Judged]] = {}
    for claim in CLAIMS:
        match = re.fullmatch(r"qdyn (\S+ \S+ \S+) \S+ (?:median|lower end|upper end)", claim.key)
        if match:
            cells.setdefault(match[1], []).append(results.judged(claim))
    rows = "\n".join(
        f"<tr><th>{name.replace(' ', ', ')}</th>{''.join(map(_cell, row))}</tr>"
        for name, row in cells.items()
    )
    epochs = "".join(f"<th colspan='3'>{name}</th>" for name in _EPOCHS.values())
    parts = "".join(f"<th>{name}</th>" for name in _PARTS.values()) * len(_EPOCHS)
    return (
        "<div class='scroll'><table class='overlaps'>\n<thead><tr><th>J<sub>D</sub>, λ<sub>x</sub>,"
        f" λ<sub>y</sub></th>{epochs}</tr><tr><th></th>{parts}</tr></thead>\n"
        f"<tbody>\n{rows}\n</tbody>\n</table></div>"
    )


def _cell(one: Judged) -> str:
    ours = "–" if one.ours is None else f"{one.ours.value:.3f}"
    return (
        f"<td><a href='#claim-{one.claim.id}' class='{CLASSES[one.verdict]}' "
        f"title='{html.escape(one.text, quote=True)}'>{ours}</a>"
        f"<div class='remark'>{html.escape(one.claim.printed)}</div></td>"
    )


def is_overlap(one: Judged) -> bool:
    """Return whether a claim is a cell of the table of overlaps."""
    return re.fullmatch(r"qdyn \S+ \S+ \S+ \S+ [a-z ]+", one.claim.key) is not None
