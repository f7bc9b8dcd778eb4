"""What both forms of the report say: the page and that in Markdown.

How verdicts are to be read and what was not fixed beforehand, the words above tables, and what is
counted for them.
"""

from __future__ import annotations

from collections.abc import Sequence

from figures.claims import CLAIMS, DECIDED
from figures.claims.claim import POWER, SIGNIFICANCE, Judged, Verdict
from figures.report.collecting import Results
from figures.trial.benchmarks import BENCHMARKS, TUNED, TUNED_RATE
from figures.trial.runner import NO_MORE
from rmtheory.base.errors import counted

#: Said at the top of every report.
SOURCE = (
    "The source of the paper comes without its pictures: claims are read off its text, captions "
    "and tables, and where only a picture would show a number there is none to compare with."
)

#: Said above the list of what is open.
OPEN = (
    "Seeds and stages of the runs that decide claims on learning are fixed beforehand: what is "
    "open after the last stage stays open, unless a second experiment asks it again, of networks "
    "of its own that are looked at once, when all of them are there. Times are those of stored "
    "runs of the same size, or of smaller ones times the square of N. `make decide` goes on with "
    "what is next; `python -m figures plan --scale decide` times it on the machine at hand."
)

#: Said above the table of what moves the central claim.
MOVES = """\
The first row is ours minus the perceptron of as many parameters in test accuracy, N = 1000, 20
epochs and then 20 of the probe. The others are what one change adds to it, image by image;
*inputs* and *labels* scale λ_x and λ_y; to scale λ_x is to scale the data.
Changed networks and perceptrons have one seed, whose spread is that of all widths; those of 10 + 10
epochs have two, and the online readout, which does without the probe, is that of all networks.
"""

#: How the verdicts are to be read.
RULE = (
    "Each claim grants a deviation, which was fixed before the run but where the list below says "
    "otherwise (see the table of grants): half a unit of the last printed digit unless its row "
    f"says more. A claim *differs* if our number lies more than {SIGNIFICANCE:g} of our errors "
    "beyond that, to which an accuracy that the paper prints of one network adds the deviation of "
    "such a one. A printed number *agrees* if ours is within what is granted and our error is at "
    f"most {POWER:g} times that; with a larger one it could not have failed (*error too large*). "
    f"An inequality must hold by {SIGNIFICANCE:g} errors. What the paper calls little or "
    f"comparable must lie inside what is granted by {SIGNIFICANCE:g} errors. Otherwise a claim is "
    "*not resolved*, or *at the edge* if our error is below a third of what is granted and our "
    "number lies within one error of the limit. "
    "*Reconstructed* means that some constant that the paper does not give was fitted to this "
    "number, so that agreement is no evidence; where such a number differs, it is our "
    "reconstruction that does not give it. Differences of figures carry the error of "
    "independent numbers, also where both networks start from the same weights; those of stored "
    "runs are taken image by image, with the spread of networks: that of the cell if it has five "
    "networks, else that of cells of its kind, times Student's factor. *Not tested at this scale* "
    "means that the run at hand does not reach the size or the epochs of the claim; *data absent*, "
    "that its data set is not ours to distribute; *not run*, that its figure was not made, or that "
    "no experiment of ours measures it."
)

#: What was not fixed beforehand.
AFTERWARDS = (
    "Isolated fixed points: the grant of 0.1 was chosen when N = 400 had been seen, before N = "
    "2000.",
    "Accuracies of the landscape and those printed as whole percents: since 18 November 2026 the "
    "error of the test images is part of the grant instead of ours.",
    "Since 20 November these accuracies differ only beyond what one network of theirs deviates "
    "from the mean: two claims lost their verdict by that.",
    "Spreads: since 18 November cells in which the free phase settles and cells in which it does "
    "not are pooled apart, and five networks have a spread of their own; since 19 November a pool "
    "without two degrees of freedom gives no error, and roles of J_D are pooled over sizes.",
    "Seeds: on 18 November networks of seconds or minutes got nine seeds more than the first "
    "three, whatever these had shown. Each seed may be a look: of twelve at three errors 3.2 % of "
    "the claims are misjudged at most.",
    "Second experiments were designed on 19 November, when the first ones had been seen, and "
    "before any of their runs: claims that were open then are asked again of networks of their "
    "own, looked at once. Targets and expected errors stand in `figures/trial/designs.py`. That on "
    "the range of λ_x was added hours later, when those of others had begun. Five hours after the "
    "first, runs that were left were cut to the cells whose spread makes the error of what was "
    "open, before any of them was made: six cells of that range, ten networks of Fashion-MNIST, "
    "narrow networks from which wide ones borrow their spread, the two best rows of the overlaps, "
    "and the two points between which the duality rises most. One was added then, on chains of "
    "layers without skip connections. Before the runs of 19 November, 22 o'clock, rules were cut "
    "to asym and sym2, 60 networks each for 100 of all four, and the rows without self-coupling to "
    "twelve networks of that which learns most for 24 of each. Claims that share cells with a "
    "second experiment are read off these, too, though it was not made for them: symmetry of sym0 "
    "and sym1 at J_D = 0, and the robustness of λ_x = 5.",
    "Readings changed on 19 November: random guessing at J_D = 0 instead of 0.05, instability at "
    "weak self-coupling off the phases instead of accuracies, baselines of frozen features at the "
    "better of two rates, and what training changes in the landscape network by network. Where the "
    "self-coupling is too weak to settle, roles of J_D are pooled by its value.",
    "The curve at J_D = 0.05, λ = 0.3 became a claim on 19 November, when the transition was known "
    "to be at 0.277; reasons of what differs were written down then, too.",
    "One claim for one sentence since 19 November, where there had been several: 23 claims became "
    "6. Of the 23 two had agreed and 21 had no verdict, among them six widths of Tiny ImageNet, "
    "whose data nobody has here, slopes of a protocol that learns nothing, and the linearity of "
    "capacities at two, five and seven layers, which the trial cannot resolve.",
)

#: Verdict -> heading of its column in the table of sections.
COUNTS = {
    Verdict.AGREES: "agree",
    Verdict.DIFFERS: "differ",
    Verdict.RECONSTRUCTED: "reconstructed",
    Verdict.EDGE: "at the edge",
    Verdict.UNRESOLVED: "not resolved",
    Verdict.NO_POWER: "error too large",
    Verdict.UNTESTED: "not tested at this scale",
    Verdict.ABSENT: "data absent",
    Verdict.NOT_RUN: "not run",
}


def grants() -> list[tuple[str, str, int]]:
    """Return what claims grant, why, and how many claims grant it."""
    reasons: dict[tuple[str, str], int] = {}
    for claim in CLAIMS:
        amount = "half a unit" if claim.grant is None and claim.slack else f"{claim.slack:g}"
        reasons[amount, claim.reason] = reasons.get((amount, claim.reason), 0) + 1
    return [(*both, count) for both, count in reasons.items()]


def moved(results: Results, change: str) -> tuple[str, ...]:
    """Return what a change does to the central claim, or that at a width, for each data set."""
    return tuple(str(results.moves.get(f"{name}: {change}", "not run yet")) for name in BENCHMARKS)


def other_rate(results: Results) -> str:
    """Say what the table of perceptrons at another rate shows."""
    keys = (f"{name}: {change}" for change in TUNED for name in BENCHMARKS)
    gaps = [results.moves[key] for key in keys if key in results.moves]
    behind = [one for one in gaps if one.value < 0]
    clear = sum(one.value < -SIGNIFICANCE * one.error for one in behind)
    many = counted(len(gaps), "comparison")
    return (
        "The rates of the paper's tables need not be the best for every width: on Fashion-MNIST\n"
        "perceptrons become less accurate as they become wider, and on MNIST those from N = 4000\n"
        f"on are less accurate than narrower ones. At {TUNED_RATE:g}, one seed each, not tuned\n"
        f"further, ours is less accurate in {len(behind)} of {many}, in\n"
        f"{clear} of them by more than three errors. Ours minus the perceptron, test accuracy:\n"
    )


def decided(results: Results) -> str:
    """Say how many claims are decided, how many of them by stored runs, and why the others not."""
    judged = [results.judged(claim) for claim in CLAIMS]
    decided = [one for one in judged if one.verdict in DECIDED]
    stored = sum(one.ours is not None and one.ours.stored is not None for one in decided)
    sentence = f"{len(decided)} of {len(judged)} claims are decided"
    if stored:
        sentence += f", {stored} of them by stored runs of the trial, whose commits the rows name"
    over = sum(results.ahead(claim) == NO_MORE for claim in results.open)
    stay = f" {over} stay open: all stages of their runs are done." if over else ""
    return f"{sentence}. Of the others: {blanks(judged)}.{stay}"


def blanks(judged: Sequence[Judged]) -> str:
    """Return how many claims have no verdict for each kind of reason."""
    names = {
        Verdict.UNTESTED: "need larger networks or more epochs than our runs have",
        Verdict.EDGE: "at the edge of what is granted, within an error smaller than that",
        Verdict.UNRESOLVED: "not resolved by the runs so far",
        Verdict.NO_POWER: "with too large an error of ours",
        Verdict.ABSENT: "without their data set",
        Verdict.NOT_RUN: "whose figure is not made, or that no run of ours measures",
    }
    numbers = {verdict: sum(one.verdict is verdict for one in judged) for verdict in names}
    parts = [f"{numbers[verdict]} {name}" for verdict, name in names.items() if numbers[verdict]]
    return "; ".join(parts)
