"""The report and its tables as Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from figures.claims import CLAIMS, SECTIONS, grouped, verdict_of
from figures.claims.claim import POWER, SIGNIFICANCE, Claim, Judged, Verdict
from figures.report.collecting import Report, Results, State, command

#: How the verdicts are to be read.
RULE = (
    "Each claim grants a deviation that was fixed before the run (see the table of grants): "
    "half a unit of the last printed digit unless its row says otherwise. A claim *differs* "
    f"if it is violated by more than {SIGNIFICANCE:g} of our errors beyond that. Otherwise a "
    f"number *agrees* if our error is at most {POWER:g} times what is granted; with a larger "
    "one it could not have failed (*error too large*). An inequality must hold by "
    f"{SIGNIFICANCE:g} errors, and what the paper calls little or comparable must stay within "
    "what is granted by as many; if not, it is *not resolved*. *Reconstructed* means that "
    "some constant that the paper does not give was fitted to this number, so that agreement "
    "is no evidence. Differences of figures carry the error of independent numbers, also where "
    "both networks start from the same weights; those of stored runs are taken image by image, "
    "with the spread of networks pooled over cells. *Not tested at this scale* means that the "
    "run at hand does not reach the size or the epochs of the claim; *data absent*, that its data "
    "set is not ours to distribute; *not run*, that its figure was not made, or that no "
    "experiment of ours measures it."
)

#: Verdict -> heading of its column in the table of sections.
COUNTS = {
    Verdict.AGREES: "agree",
    Verdict.DIFFERS: "differ",
    Verdict.RECONSTRUCTED: "reconstructed",
    Verdict.UNRESOLVED: "not resolved",
    Verdict.NO_POWER: "error too large",
    Verdict.UNTESTED: "not tested at this scale",
    Verdict.ABSENT: "data absent",
    Verdict.NOT_RUN: "not run",
}


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
    source = "" if one.ours is None or not one.ours.stored else f"{one.ours.stored}."
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


def grants_table() -> str:
    """Return what the claims grant and why, and how many claims of each sort there are."""
    reasons: dict[tuple[str, str], int] = {}
    for claim in CLAIMS:
        amount = "half a unit" if claim.grant is None and claim.slack else f"{claim.slack:g}"
        reasons[amount, claim.reason] = reasons.get((amount, claim.reason), 0) + 1
    rows = ((amount, escape(reason), str(count)) for (amount, reason), count in reasons.items())
    return table(("granted", "reason", "claims"), rows)


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
    parts += [f"\n{RULE}\n", sections_table(report.results), "\n## Grants\n", grants_table()]
    if report.failed:
        names = ", ".join(entry.figure.name for entry in report.failed)
        parts.append(f"\n**Failed: {names}.**\n")
    for title, claims in SECTIONS.items():
        parts += [f"\n## {title}\n", claims_table(claims, report.results)]
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
