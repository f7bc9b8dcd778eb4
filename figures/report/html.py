"""The report as one self-contained page: images and style inside, no script, no network."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Sequence
from pathlib import Path

from figures.claims import SECTIONS, Judged, Verdict
from figures.report.collecting import Entry, Report, State
from figures.report.markdown import COUNTS, RULE

_STYLE = Path(__file__).with_name("style.css")

#: Verdict -> class of its colour; the others say nothing, and look so.
_CLASS = {Verdict.AGREES: "agrees", Verdict.DIFFERS: "differs"}


def page(report: Report) -> str:
    """Return the page."""
    body = "\n".join(
        (
            _head(report),
            _summary(report),
            *(
                _claims(title, [report.results.judged(claim) for claim in claims])
                for title, claims in SECTIONS.items()
            ),
            "<h2 id='figures'>Figures</h2>",
            *(_figure(entry) for entry in report.entries),
        )
    )
    return (
        "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        # Without it a browser asks for an icon that is not there.
        "<link rel='icon' href='data:,'>\n"
        "<title>The paper against ours</title>\n"
        f"<style>\n{_STYLE.read_text('utf-8')}</style>\n</head>\n<body>\n<main>\n{body}\n"
        "</main>\n</body>\n</html>\n"
    )


def text(plain: str) -> str:
    """Return `plain` as HTML, with indices set as indices and stress as stress.

    Examples
    --------
    >>> text("J_D < 1, *agrees*, fashion_mnist")
    'J<sub>D</sub> &lt; 1, <em>agrees</em>, fashion_mnist'
    """
    safe = html.escape(plain, quote=False)
    safe = re.sub(r"(?<!\w)\*(\w[\w ]*)\*", r"<em>\1</em>", safe)
    return re.sub(r"(?<!\w)(\w)_(\w+)", r"\1<sub>\2</sub>", safe)


def _head(report: Report) -> str:
    made = sum(entry.state is State.MADE for entry in report.entries)
    lines = [
        "<h1>The paper against ours</h1>",
        "<p>The numbers and claims that <cite>Dynamical Learning in Deep Asymmetric Recurrent "
        "Neural Networks</cite> prints as results, beside what this code finds. "
        f"{made} of {len(report.entries)} figures are made, at the scale named with each; report "
        f"written by commit <code>{html.escape(report.commit[:10])}</code>. The "
        "<a href='explorer.html'>explorer</a> shows the theory at any couplings.</p>",
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
        f"<p>{text(RULE)}</p>\n<table class='counts'>\n<thead><tr><th>section</th>{heads}</tr>"
        f"</thead>\n<tbody>\n{chr(10).join(rows)}\n</tbody>\n</table>"
    )


def _claims(title: str, judged: Sequence[Judged]) -> str:
    """The claims of a section: those tested open to the eye, the others folded."""
    tested = [one for one in judged if one.ours is not None]
    untested = [one for one in judged if one.ours is None]
    parts = [f"<h2 id='{_anchor(title)}'>{title}</h2>"]
    if tested:
        parts.append(_table(tested))
    if untested:
        parts.append(
            f"<details><summary>{len(untested)} not tested at this scale or not run</summary>\n"
            f"{_table(untested)}\n</details>"
        )
    return "\n".join(parts)


def _table(judged: Sequence[Judged]) -> str:
    rows = "\n".join(_claim(one) for one in judged)
    heads = "".join(f"<th>{name}</th>" for name in ("quantity", "paper", "ours", "verdict"))
    return (
        "<div class='scroll'><table class='claims'>\n"
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>"
    )


def _claim(one: Judged) -> str:
    claim, kind = one.claim, _CLASS.get(one.verdict, "untested")
    remark = f"<div class='remark'>{text(one.remark)}</div>" if one.remark else ""
    sizes = "" if one.ours is None else text(one.ours.at)
    where = "; ".join(filter(None, (sizes, claim.data)))
    return (
        f"<tr><td>{text(claim.quantity)}{remark}</td>"
        f"<td>{text(claim.printed)}<div class='remark'>{text(claim.source)}</div></td>"
        f"<td class='ours'>{'' if one.ours is None else one.ours}"
        f"<div class='remark'>{where}</div></td>"
        f"<td><span class='{kind}'>{one.text}</span></td></tr>"
    )


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
