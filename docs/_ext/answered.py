"""What the theory answers, measured: four tables that the docs show, and a picture.

``python docs/_ext/answered.py TABLE`` adds the rows that are missing to the file answered_TABLE.csv
of docs/_static (question, answer, CPU-seconds):

- ``points``: y*, S_I* and its slope at 300 random (L, J_D, lam, d), and their picture;
- ``critical``: 60 critical couplings of all depths, with the verdicts at both ends;
- ``broken``: where the saddle q0 = 0 of two layers is lost along y*(d), and the saddle q0 > 0;
- ``rule``: phi and S_I at 200 random (chain, d, y) against the rule of tests/local_entropy_rule.py.

Rows are independent of each other and of the order; a run that was interrupted resumes,
``--minutes 9`` ends one after that time, numbers compute these rows alone. What takes more than
CPU_LIMIT seconds counts as refused.
"""

from __future__ import annotations

import argparse
import csv
import math
import signal
import sys
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import FrameType
from typing import ClassVar

import numpy as np

from rmtheory import Chain, Estimate, OutsideValidityError, RMError, Tier
from rmtheory.local_entropies.broken_branch import broken_ystar, q0_loss
from rmtheory.local_entropies.points import ystar
from rmtheory.local_entropies.thresholds import critical_coupling

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "docs" / "_static"
sys.path.insert(0, str(ROOT))  # the questions are in the tests
POINTS, SEED, CPU_LIMIT = 300, 16, 60.0

Row = dict[str, object]


#: The line after what the docs say of a table.
END = "<!-- end -->\n"


class _TooLongError(RMError):
    pass


def _stop(signum: int, frame: FrameType | None) -> None:
    raise _TooLongError(f"no answer within {CPU_LIMIT:g} CPU-seconds")


class Table(ABC):
    """Questions by number, and a file with a row for each that was tried."""

    name: ClassVar[str]
    #: Columns between the number of the question and the CPU-seconds.
    columns: ClassVar[tuple[str, ...]]

    #: Where the docs show it.
    page: ClassVar[str] = "local-entropy.md"

    @property
    def path(self) -> Path:
        """The file."""
        return STATIC / f"answered_{self.name}.csv"

    @abstractmethod
    def questions(self) -> list[Row]:
        """Return all questions in order."""

    @abstractmethod
    def answer(self, question: Row) -> Row:
        """Answer a question; an RMError is a refusal."""

    @abstractmethod
    def lines(self) -> list[str]:
        """Return what the docs say of the rows, in Markdown."""

    def show(self) -> None:
        """Bring the page up to date."""
        page = ROOT / "docs" / self.page
        before, rest = page.read_text().split(self.begin)
        _, after = rest.split(END, 1)
        page.write_text(before + self.block() + after)

    @property
    def begin(self) -> str:
        """The line before what the docs say."""
        return f"<!-- by docs/_ext/answered.py {self.name} -->\n"

    def block(self) -> str:
        """Return what the docs say, between the lines that mark it."""
        return self.begin + "\n" + "\n".join(self.lines()) + "\n\n" + END

    def seconds(self) -> list[float]:
        """Return the CPU-seconds of all rows."""
        return [float(row["seconds"]) for row in self.rows()]

    def rows(self) -> list[dict[str, str]]:
        """Return the rows that are done, in the order of the questions."""
        if not self.path.exists():
            return []
        with self.path.open(newline="") as file:
            return sorted(csv.DictReader(file), key=lambda row: int(row["number"]))

    def extend(self, which: list[int], minutes: float) -> bool:
        """Add rows, each as soon as it is done; return whether all are there now."""
        end, questions = time.monotonic() + 60 * minutes, self.questions()
        missing = set(which) - {int(row["number"]) for row in self.rows()}
        fresh = not self.path.exists()
        with self.path.open("a", newline="") as file:
            columns = ("number", *self.columns, "seconds", "reason")
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            if fresh:
                writer.writeheader()
            for number in (k for k in which if k in missing):
                if time.monotonic() > end:
                    return False
                writer.writerow(
                    {"number": number} | questions[number] | self._timed(questions[number])
                )
                file.flush()
        return True

    def _timed(self, question: Row) -> Row:
        start, row = time.process_time(), {}
        signal.signal(signal.SIGPROF, _stop)
        signal.setitimer(signal.ITIMER_PROF, CPU_LIMIT)
        try:
            row = self.answer(question)
        except RMError as problem:
            row = {"answer": "refused", "reason": str(problem)}
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
        return row | {"seconds": f"{time.process_time() - start:.1f}"}


class PointTable(Table):
    """y*, S_I* and its slope: J_D and lam uniform, d uniform in its logarithm."""

    name = "points"
    columns = (
        "layers", "jd", "lam", "d", "answer", "y_star", "internal", "internal_error", "slope",
        "slope_error",
    )  # fmt: skip

    def questions(self) -> list[Row]:
        """Return the random points."""
        rng = np.random.default_rng(SEED)
        return [
            {
                "layers": str(rng.choice(["1", "2", "3", "5", "inf"])),
                "jd": round(float(rng.uniform(0, 2)), 4),
                "lam": round(float(rng.uniform(0, 1.5)), 4),
                "d": float(f"{math.exp(rng.uniform(math.log(1e-5), math.log(0.49))):.4g}"),
            }
            for _ in range(POINTS)
        ]

    def answer(self, question: Row) -> Row:
        """Compute y* at one point."""
        layers, jd, lam, d = (question[name] for name in ("layers", "jd", "lam", "d"))
        depth = layers if layers == "inf" else int(str(layers))
        chain = Chain(depth, jd, 0.0 if layers == "1" else lam)  # type: ignore[arg-type]
        point = ystar(chain, d)  # type: ignore[arg-type]
        return {
            "answer": "bound of y*" if point.y_star_is_bound else "y*",
            "y_star": f"{float(point.y_star):.6g}",
            "internal": f"{float(point.internal):.8g}",
            "internal_error": f"{float(point.internal.error):.1g}",
            "slope": f"{float(point.slope):.6g}",
            "slope_error": f"{float(point.slope.error):.1g}",
        }

    def lines(self) -> list[str]:
        """Return how many points were tried and refused, and what they took."""
        rows, seconds = self.rows(), self.seconds()
        refused = sum(row["answer"] == "refused" for row in rows)
        bounds = sum(row["answer"] == "bound of y*" for row in rows)
        return [
            f"Of {POINTS} points drawn {len(rows)} have been tried, {refused} of them refused; "
            f"for {bounds} only a bound of $y^*$ is known. They took {np.mean(seconds):.1f} "
            f"CPU-seconds on average, at most {max(seconds):.0f}."
        ]


class CriticalTable(Table):
    """Critical couplings of all depths: a bracket and the verdicts at its ends."""

    name = "critical"
    columns = (
        "layers", "coupling", "kind", "other", "answer", "low", "high", "at_low", "at_low_error",
        "at_high", "at_high_error", "d", "verdict_low", "verdict_high",
    )  # fmt: skip

    def questions(self) -> list[Row]:
        """Return the 60 settings."""
        from tests.critical_settings import SETTINGS

        names = ("layers", "coupling", "kind", "other")
        return [dict(zip(names, setting, strict=True)) for setting in SETTINGS]

    def answer(self, question: Row) -> Row:
        """Bracket one critical coupling, with verdicts on the whole curve at its ends."""
        layers, coupling, kind, other = map(str, question.values())
        given = {} if not other else {"lam" if coupling == "jd" else "jd": float(other)}
        try:
            critical = critical_coupling(layers, coupling, kind=kind, **given)  # type: ignore[arg-type]
        except OutsideValidityError as problem:  # the other coupling alone is beyond the threshold
            return {"answer": "none exists", "reason": str(problem)}
        low, high = critical.at_low, critical.at_high
        return {
            "answer": "bracket",
            "low": f"{critical.low:.10g}",
            "high": f"{critical.high:.10g}",
            "at_low": f"{float(low):.3g}",
            "at_low_error": f"{float(low.error):.1g}",
            "at_high": f"{float(high):.3g}",
            "at_high_error": f"{float(high.error):.1g}",
            "d": f"{float(critical.d):.5g}",
            "verdict_low": critical.verdicts[0],
            "verdict_high": critical.verdicts[1],
        }

    def lines(self) -> list[str]:
        """Return how many settings were run, and the brackets."""
        rows = self.rows()
        answers = [row["answer"] for row in rows]
        lines = [
            f"{len(self.questions())} settings, of which {len(rows)} have been run: "
            f"{answers.count('bracket')} brackets, {answers.count('none exists')} settings at "
            "which there is no critical coupling because the other one alone is beyond it, "
            f"{answers.count('refused')} refused; at most {max(self.seconds()):.0f} CPU-seconds.",
            "",
            "| $L$ | sought | the other | bracket | $d$ | CPU s |",
            "|---|---|---|---|---|---|",
        ]
        names = {"jd": "$J_D$", "lam": r"$\lambda$"}
        for row in rows:
            between = "refused"
            if row["answer"] == "none exists":
                between = "none: the other alone is beyond"
            if row["low"]:
                digits = 10 if row["layers"] == "1" else 6
                between = f"{float(row['low']):.{digits}f} … {float(row['high']):.{digits}f}"
            sought = names[row["coupling"]] + (", gap" if row["kind"] == "gap" else "")
            depth = r"$\infty$" if row["layers"] == "inf" else row["layers"]
            cells = (depth, sought, row["other"], between, row["d"], row["seconds"])
            lines.append("| " + " | ".join(cells) + " |")
        return lines


class BrokenTable(Table):
    """The branch q0 > 0 of two layers: where M0 = 0 along y*(d), then the saddle at distances."""

    name = "broken"
    columns = (
        "jd", "lam", "at", "answer", "d", "d_error", "q0", "q0_error", "qhat0", "qhat0_error",
        "y_star", "y_star_error", "change", "change_error", "slope", "slope_error", "m0",
        "m0_error", "replicon", "replicon_error",
    )  # fmt: skip
    #: The six curves of the paper, then the critical couplings at J_D = 0 and J_D = 0.05.
    chains: ClassVar[tuple[tuple[float, float], ...]] = (
        (0.05, 0.2), (0.05, 0.3), (0.05, 0.4), (0.0, 0.4), (0.0, 0.45), (0.0, 0.5),
        (0.0, 0.452425), (0.05, 0.27739),
    )  # fmt: skip
    places: ClassVar[tuple[str, ...]] = ("onset", "0.1", "0.2")

    def questions(self) -> list[Row]:
        """Return all places of all chains, those of the onset first."""
        return [
            {"jd": jd, "lam": lam, "at": place} for place in self.places for jd, lam in self.chains
        ]

    def answer(self, question: Row) -> Row:
        """Return the onset, or the saddle at one distance."""
        chain = Chain(2, question["jd"], question["lam"])  # type: ignore[arg-type]
        if question["at"] == "onset":
            values = {"d": q0_loss(chain)}
        else:
            point = broken_ystar(chain, str(question["at"]))
            assert point.slope is not None
            values = {
                "q0": point.q0,
                "qhat0": point.qhat0,
                "y_star": point.y,
                "change": point.change,
                "slope": point.slope,
                "m0": point.q0_stability,
                "replicon": point.replicon,
            }
        row: Row = {"answer": "saddle" if "q0" in values else "onset"}
        for name, estimate in values.items():
            row[name] = f"{float(estimate.value):.10g}"
            row[f"{name}_error"] = f"{float(estimate.error):.1g}"
        return row

    page = "broken-symmetry.md"

    def lines(self) -> list[str]:
        """Return the onset of each chain, then its saddles."""
        names = ("d", "q0", "qhat0", "y_star", "change", "slope", "m0", "replicon")
        lines = [
            r"| $J_D$ | $\lambda$ | $d$ | $q_0$ | $\hat q_0$ | $y^*$ | $\Delta S_I^*$ | slope | "
            "$M_0$ at $q_0=0$ | least eigenvalue of $M_r$ |",
            "|" + 10 * "---|",
        ]
        rows = self.rows()
        for jd, lam in self.chains:
            for row in rows:
                if (float(row["jd"]), float(row["lam"])) != (jd, lam):
                    continue
                cells = [self._number(row, name) for name in names]
                cells[0] = f"{cells[0]}: $M_0=0$" if row["at"] == "onset" else row["at"]
                lines.append("| " + " | ".join([f"{jd:g}", f"{lam:g}", *cells]) + " |")
        return lines

    @staticmethod
    def _number(row: dict[str, str], name: str) -> str:
        """Return a value with the digits that its error leaves, and the error."""
        if not row[name]:
            return ""
        value, error = float(row[name]), float(row[f"{name}_error"])
        return str(Estimate(value, error, Tier.ESTIMATED, name)).replace(" ± ", "(±") + ")"


class RuleTable(Table):
    """The package against an independent rule; ours and theirs differ by so many errors of ours."""

    name = "rule"
    columns = (
        "layers", "jd", "lam", "d", "y", "answer", "tier", "phi", "phi_error", "phi_errors_apart",
        "internal", "internal_error", "internal_errors_apart",
    )  # fmt: skip

    def questions(self) -> list[Row]:
        """Return the random points of the rule."""
        from tests.local_entropy_rule import random_points

        return [
            {"layers": c.layers, "jd": c.jd, "lam": c.lam_left, "d": d, "y": y}
            for c, d, y in random_points()
        ]

    def answer(self, question: Row) -> Row:
        """Compare one point."""
        from tests.local_entropy_rule import compare

        row: Row = {"answer": "compared"}
        for each in compare(self.questions().index(question)):
            row["tier"] = each.tier
            row[each.quantity] = f"{each.value:.14g}"
            row[f"{each.quantity}_error"] = f"{each.error:.1g}"
            row[f"{each.quantity}_errors_apart"] = f"{each.errors_apart:.2g}"
        return row

    def lines(self) -> list[str]:
        """Return how many numbers were compared, and the largest difference."""
        rows = self.rows()
        apart = [
            float(row[f"{name}_errors_apart"])
            for row in rows
            for name in ("phi", "internal")
            if row[f"{name}_errors_apart"]
        ]
        tiers = ", ".join(sorted({row["tier"] for row in rows}))
        beyond = sum(each > 1 for each in apart)
        return [
            f"Of {len(apart)} numbers at {len(rows)} points, all of tier *{tiers}*, {beyond} "
            "differ by more than the errors of both; the largest difference beyond the error of "
            f"the rule is {max(apart):.2g} of ours."
        ]


TABLES: dict[str, Table] = {
    table.name: table for table in (PointTable(), CriticalTable(), BrokenTable(), RuleTable())
}


def draw() -> None:
    """Draw which points are answered, one panel for each depth."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "answered"
    from matplotlib import pyplot as plt

    rows = TABLES["points"].rows()
    figure, panels = plt.subplots(1, 5, figsize=(13, 3.2), sharex=True, sharey=True)
    kinds = {"y*": ("o", "C0"), "bound of y*": ("s", "C2"), "refused": ("x", "C3")}
    for panel, layers in zip(panels, ("1", "2", "3", "5", "inf"), strict=True):
        here = [row for row in rows if row["layers"] == layers]
        for kind, (marker, colour) in kinds.items():
            at = [(float(r["d"]), float(r["jd"])) for r in here if r["answer"] == kind]
            if at:
                panel.scatter(*zip(*at, strict=True), marker=marker, c=colour, s=14, label=kind)
        refused = sum(row["answer"] == "refused" for row in here)
        panel.set(xscale="log", xlabel="d", title=f"L = {layers}: {refused} of {len(here)} refused")
    panels[0].set_ylabel("$J_D$")
    handles = {label: h for p in panels for h, label in zip(*p.get_legend_handles_labels())}  # noqa: B905
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=3, frameon=False)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(STATIC / "answered_points.svg", metadata={"Date": None})


def main() -> int:
    """Extend a table; exit code 0 once it is complete, 1 while rows are missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("numbers", nargs="*", type=int)
    parser.add_argument("--minutes", type=float, default=math.inf)
    options = parser.parse_intermixed_args()
    table = TABLES[options.table]
    numbers = options.numbers or list(range(len(table.questions())))
    complete = table.extend(numbers, options.minutes)
    table.show()
    if table.name == "points":
        draw()
    return 0 if complete else 1


if __name__ == "__main__":
    raise SystemExit(main())
