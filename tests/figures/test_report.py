"""The report: claims and verdicts, the page, failures, the published pages, a browser."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from figures.claims import (
    CLAIMS,
    SECTIONS,
    Claim,
    Grant,
    Judged,
    Kind,
    Ours,
    Relation,
    Verdict,
    grouped,
    indicative,
    judge,
    verdict_of,
)
from figures.claims.claim import STORED, Minus, at
from figures.cli import run
from figures.engine import figure as engine
from figures.engine.figure import Context, Failure, Figure, Scale, failures, store_failure
from figures.paper.registry import FIGURES
from figures.report import Report, Results, Run, State, gather, publishing, write
from figures.report.publishing import (
    PAGE,
    README,
    RESULTS,
    VERDICTS,
    claims_table,
    published,
    reproduce_page,
    sections_table,
    with_headline,
)
from figures.trial.designs import command, questions_of
from figures.trial.evidence import Stored
from figures.trial.store import Store
from rmtheory import NotConvergedError
from rmtheory.explorer.grids import page_text
from rmtheory.runtime import netcdf


def _claim(**changes: object) -> Claim:
    claim = Claim("key", "a", "0.07", "somewhere", "0.07", "data", at("a"))
    return replace(claim, **changes)  # type: ignore[arg-type]


def _number(value: float, error: float) -> xr.Dataset:
    return xr.Dataset({"a": value, "a_error": error})


def _granted(amount: float, **changes: object) -> dict[str, object]:
    return {"grant": Grant(amount, "an example"), **changes}


_SIMILAR = _granted(0.02, relation=Relation.SIMILAR)


_RECONSTRUCTED = {"kind": Kind.RECONSTRUCTED}


@pytest.mark.parametrize(
    ("changes", "value", "error", "verdict", "text"),
    [
        # Half a unit of the last digit is granted; up to three errors beyond it nothing is said.
        ({}, 0.0749, 1e-9, Verdict.AGREES, "agrees"),
        ({}, 0.0749, 0.001, Verdict.AGREES, "agrees"),
        ({}, 0.075 + 0.0029, 0.001, Verdict.UNRESOLVED, "not resolved"),
        ({}, 0.075 + 0.0009, 0.001, Verdict.EDGE, "at the edge"),
        ({}, 0.075 + 0.0009, 0.002, Verdict.UNRESOLVED, "not resolved"),
        ({}, 0.075 + 0.0031, 0.001, Verdict.DIFFERS, "differs by 3.1 σ"),
        ({}, 0.06, 0.0, Verdict.DIFFERS, "differs by 0.005, beyond all error"),
        (_granted(0.0), 0.074, 0.001, Verdict.DIFFERS, "differs by 4.0 σ"),
        # An error of more than half of what is granted could hide anything.
        ({}, 0.07, 0.0025, Verdict.AGREES, "agrees"),
        (
            {},
            0.07,
            0.0026,
            Verdict.NO_POWER,
            "error too large: 0.0026 where 0.005 is granted",
        ),
        (
            _granted(0.0),
            0.071,
            0.001,
            Verdict.NO_POWER,
            "error too large: 0.001 where 0 is granted",
        ),
        (_granted(0.0), 0.07, 0.0, Verdict.AGREES, "agrees"),
        # A number that a constant was fitted to can refute, and never confirms.
        (_RECONSTRUCTED, 0.07, 1e-9, Verdict.RECONSTRUCTED, "reconstructed"),
        (_RECONSTRUCTED, 0.06, 0.001, Verdict.DIFFERS, "differs by 5.0 σ"),
        (
            _RECONSTRUCTED,
            0.07,
            0.1,
            Verdict.NO_POWER,
            "error too large: 0.1 where 0.005 is granted",
        ),
        ({"relation": Relation.ABOVE}, 5.0, 0.1, Verdict.AGREES, "agrees"),
        ({"relation": Relation.ABOVE}, 0.02, 0.01, Verdict.DIFFERS, "differs by 5.0 σ"),
        ({"relation": Relation.BELOW}, -5.0, 0.1, Verdict.AGREES, "agrees"),
        ({"relation": Relation.BELOW}, 0.12, 0.01, Verdict.DIFFERS, "differs by 5.0 σ"),
        # Within three errors of its edge an inequality is neither confirmed nor refuted.
        (
            {"relation": Relation.ABOVE},
            0.098,
            0.01,
            Verdict.UNRESOLVED,
            "not resolved",
        ),
        (
            {"relation": Relation.ABOVE},
            0.05,
            0.01,
            Verdict.UNRESOLVED,
            "not resolved",
        ),
        ({"relation": Relation.ABOVE}, 0.101, 0.01, Verdict.AGREES, "agrees"),
        (
            {"relation": Relation.BELOW},
            0.06,
            0.01,
            Verdict.UNRESOLVED,
            "not resolved",
        ),
        # A similarity must stay within what is granted by three errors, on either side.
        (_SIMILAR, 0.07 + 0.0049, 0.005, Verdict.AGREES, "agrees"),
        (_SIMILAR, 0.07 - 0.0049, 0.005, Verdict.AGREES, "agrees"),
        (_SIMILAR, 0.07, 0.0067, Verdict.UNRESOLVED, "not resolved"),
        (_SIMILAR, 0.07 + 0.0051, 0.005, Verdict.UNRESOLVED, "not resolved"),
        (_SIMILAR, 0.09 + 0.0149, 0.005, Verdict.UNRESOLVED, "not resolved"),
        # Three errors are less than what is granted, and its edge is within one.
        (_SIMILAR, 0.09 - 0.0049, 0.005, Verdict.EDGE, "at the edge"),
        (_SIMILAR, 0.09 + 0.0049, 0.005, Verdict.EDGE, "at the edge"),
        (_granted(0.02, relation=Relation.ABOVE), 0.05, 0.0066, Verdict.EDGE, "at the edge"),
        (_granted(0.02, relation=Relation.ABOVE), 0.05, 0.0067, Verdict.UNRESOLVED, "not resolved"),
        (_SIMILAR, 0.09 + 0.0155, 0.005, Verdict.DIFFERS, "differs by 3.1 σ"),
        (_SIMILAR, 0.05 - 0.0155, 0.005, Verdict.DIFFERS, "differs by 3.1 σ"),
        (_SIMILAR, 0.09, 0.0, Verdict.AGREES, "agrees"),
    ],
)
def test_verdict_follows_from_value_and_error(
    changes: dict[str, object], value: float, error: float, verdict: Verdict, text: str
) -> None:
    judged = judge(_claim(**changes), _number(value, error))
    assert (judged.verdict, judged.text) == (verdict, text)


def test_reasons_are_given_where_it_differs_and_nothing_is_invented() -> None:
    claim = _claim(why="because", note="note")
    assert judge(claim, _number(0.07, 0.0)).remark == "note"
    assert judge(claim, _number(0.5, 0.0)).remark == "note because"
    for data in (xr.Dataset(), _number(float("nan"), 0.1), _number(0.07, float("nan"))):
        judged = judge(claim, data)
        assert (judged.ours, judged.verdict) == (None, Verdict.UNTESTED)


def test_what_was_not_run_is_told_from_what_this_scale_does_not_reach() -> None:
    assert judge(_claim(), None).text == "not run"  # the figure was not made
    never = _claim(data="", read=None)
    assert judge(never, _number(0.07, 0.0)).text == "not run"  # no figure of ours measures it
    assert judge(_claim(), xr.Dataset()).text == "not tested at this scale"
    absent = judge(_claim(absent="Not ours to distribute."), xr.Dataset())
    assert (absent.text, absent.remark) == ("data absent", "Not ours to distribute.")
    run = Run("quick", "0", "c", "no", "today", 1.0)
    made, claim = Results({}, {CLAIMS[0].data: run}), CLAIMS[0]
    assert made.judged(claim).verdict is Verdict.UNTESTED
    assert Results({}, {}).judged(claim).verdict is Verdict.NOT_RUN
    for section in ("not tested at this scale", "not run", "not resolved"):
        assert section in sections_table(made)
    for changes in ({"data": ""}, {"read": None}):
        with pytest.raises(ValueError, match="a reader needs a data set"):
            _claim(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        (_granted(0.005), ""),  # half a unit of 0.07
        (_granted(0.0025), "± 0.0025 granted"),
        (_granted(0.0), "nothing granted"),
        ({"relation": Relation.ABOVE}, ""),
        (_granted(0.005, relation=Relation.BELOW), "0.005 granted"),
        (_SIMILAR, "taken as within 0.02"),
    ],
)
def test_what_is_granted_beyond_rounding_is_printed(changes: dict[str, object], words: str) -> None:
    claim = _claim(**changes)
    assert claim.granted == words
    number = judge(claim, _number(0.07, 0.0)).ours
    assert number is not None
    (row,) = claims_table([claim], Results({claim.key: number}, {})).splitlines()[2:]
    assert f"0.07 (somewhere{'; ' if words else ''}{words})" in row
    if claim.relation is Relation.SIMILAR:
        with pytest.raises(ValueError, match="grant must be positive"):
            _claim(relation=Relation.SIMILAR)


def test_the_page_prints_what_is_granted(pages: tuple[Path, ...]) -> None:
    html, markdown = (unescape(path.read_text("utf-8")) for path in pages[:2])
    for claim in CLAIMS:
        assert claim.granted in html
        assert claim.granted in markdown


def test_readers_find_dimensions_and_single_coordinates() -> None:
    values = np.arange(6.0).reshape(2, 3)
    data = xr.Dataset(
        {"a": (("rule", "jd"), values), "a_error": (("rule", "jd"), 0.1 + 0 * values)},
        coords={"rule": ["asym", "sym"], "jd": [0.0, 0.1 + 0.2, 0.5], "n": 1600},
    )
    assert at("a", rule="sym", jd=0.3, n=1600)(data) == Ours(4.0, 0.1)
    for where in ({"jd": 0.4}, {"rule": "other"}, {"n": 400}, {"epochs": 20}):
        assert at("a", **({"rule": "sym", "jd": 0.3} | where))(data) is None
    assert at("b")(data) is None
    gain = Minus(at("a", rule="sym", jd=0.5), at("a", rule="asym", jd=0.5))
    assert gain(data) == Ours(3.0, pytest.approx(0.1 * 2**0.5))
    assert str(gain) == "a[rule=sym, jd=0.5] - a[rule=asym, jd=0.5]"
    with pytest.raises(ValueError, match="size 1"):
        at("a", rule="sym")(data)  # a claim must name one number


def test_every_claim_is_one_printed_number_with_a_source() -> None:
    assert len({claim.key for claim in CLAIMS}) == len(CLAIMS) > 150
    known = {figure.data or figure.name for figure in FIGURES.values()} | STORED
    for claim in CLAIMS:
        assert claim.data in known or claim.read is None, claim.key
        assert claim.slack >= 0
        printed = re.search(r"\d*\.?\d+", claim.printed)
        formula = "^" in claim.printed or "~" in claim.printed
        if claim.read and printed and claim.relation is Relation.EQUAL and not formula:
            shown = re.findall(r"[-−]?\d*\.?\d+", claim.printed)
            numbers = [float(x.replace("−", "-")) for x in shown]
            assert any(
                np.isclose(claim.number, x) or np.isclose(claim.number, x / 100) for x in numbers
            ), claim.key


def test_the_table_of_overlaps_is_whole() -> None:
    every = [claim for claim in CLAIMS if claim.key.startswith("qdyn ")]
    cells = [claim for claim in every if ", theory" not in claim.key]
    assert len(cells) == 8 * 3 * 3
    medians = [claim.number for claim in cells if claim.key.endswith("median")]
    assert medians[:4] == [0.930, 0.991, 0.996, 0.975]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two figures at tiny scale."""
    folder = tmp_path_factory.mktemp("made")
    for name in ("annealed", "models"):
        engine.make(FIGURES[name], Scale.TINY, folder, Context())
    return folder


@pytest.fixture(scope="module")
def report(made: Path) -> Report:
    """What the claims are, judged by these figures and all stored runs; it takes seconds."""
    return gather(made, FIGURES)


@pytest.fixture(scope="module")
def pages(made: Path, report: Report) -> tuple[Path, ...]:
    """The files of the report."""
    return tuple(write(report, made))


@pytest.fixture
def no_store(tmp_path: Path) -> list[str]:
    """The option of a command for which no stored run is read and judged."""
    (tmp_path / "no runs").mkdir()
    return ["--store", str(tmp_path / "no runs")]


class _Page(HTMLParser):
    """Images, links and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.images: list[str] = []
        self.links: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "img":
            self.images.append(given.get("src") or "")
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in ("img", "input", "meta", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_holds_everything_and_asks_for_nothing(
    made: Path, report: Report, pages: tuple[Path, ...]
) -> None:
    states = {entry.figure.name: entry.state for entry in report.entries}
    assert states.pop("annealed") is states.pop("models") is State.MADE
    assert set(states.values()) == {State.MISSING}
    html, markdown, numbers, explorer = (path.read_text("utf-8") for path in pages)
    assert explorer == page_text()
    page = _Page(html)
    assert not page.open
    assert len(page.images) == 2
    assert all(image.startswith("data:image/png;base64,") for image in page.images)
    assert all(link.startswith(("data:", "#")) for link in page.links if link != "explorer.html")
    places = set(re.findall(r"\bid='([^']+)'", html))
    assert {link[1:] for link in page.links if link.startswith("#")} <= places
    assert html.count("<script>") == 1  # sorts and filters; nothing is loaded
    assert "src='http" not in html
    for text in (markdown, re.sub(r"</?(sub|sup|em)>", "", unescape(html))):
        for figure in FIGURES.values():
            assert figure.title in text
        assert "differs by 0.23, beyond all error" in text
        assert '"points": 31' in text  # parameters
    assert "![The chain of core modules" in markdown
    stored = netcdf.load(made / "annealed.nc").attrs
    assert stored["git_commit"][:10] in html
    for claim in CLAIMS:
        assert f"id='claim-{claim.id}'" in html
        number = report.results.numbers.get(claim.key)
        (row,) = re.findall(f"<tr id='claim-{re.escape(claim.id)}'.*?</tr>", html, re.DOTALL)
        assert number is None or number.stored is None or str(number.stored) in row
        assert not claim.data or claim.data in STORED or f">{claim.data}</a>" in row
        assert not claim.data or "<code>python -m figures " in row
    again = Results.from_json(numbers)
    assert again == report.results
    assert json.loads(numbers)["runs"]["annealed"]["scale"] == "tiny"


def test_outdated_data_lend_no_numbers(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    other = {"annealed": replace(FIGURES["annealed"], version=99)}
    report = gather(tmp_path, other, Store(tmp_path / "none"))
    assert report.entries[0].state is State.OUTDATED
    assert report.results.numbers == {}
    (tmp_path / "annealed.nc").write_bytes(b"no netCDF")
    assert gather(tmp_path, FIGURES, Store(tmp_path / "none")).failed[0].figure.name == "annealed"


def test_failures_are_in_the_page_and_in_the_exit_code(
    tmp_path: Path,
    no_store: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    trouble = [NotConvergedError("no root <near> 0.3")]

    def compute(*_: object) -> xr.Dataset:
        if trouble:
            raise trouble[0]
        return _number(1.0, 0.1)

    bad = Figure("bad", "A title", "c", FIGURES["models"].parameters, compute, lambda data: picture)
    picture = FIGURES["models"].plot(
        FIGURES["models"].compute(FIGURES["models"].parameters[Scale.TINY], Context())
    )
    monkeypatch.setattr("figures.paper.registry.FIGURES", {"bad": bad})
    arguments = ["all", "report", "--scale", "tiny", "--out", str(tmp_path), *no_store]
    assert run(arguments) == 1
    assert "bad failed: no root <near> 0.3" in capsys.readouterr().err
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "failed: no root &lt;near&gt; 0.3 (scale tiny)" in page
    assert "Failed: <a href='#bad'>bad</a>" in page
    assert run(["report", "--out", str(tmp_path), *no_store]) == 1  # still
    trouble.clear()
    assert run(arguments) == 0
    assert "Failed" not in (tmp_path / "report.html").read_text("utf-8")
    assert failures(tmp_path) == {}


def test_damaged_notes_of_failures_do_no_harm(tmp_path: Path) -> None:
    store_failure(tmp_path, "a", Failure("tiny", "m"))
    (file,) = tmp_path.iterdir()
    file.write_text("{")
    assert failures(tmp_path) == {}
    store_failure(tmp_path, "b", Failure("tiny", "m"))
    assert list(failures(tmp_path)) == ["b"]


def test_results_of_other_data_sets_are_kept_while_they_are_current() -> None:
    run = Run("quick", "0", "c", "no", "today", 1.0, "key")
    stability, counts = "loss of stability", "fixed points without self-coupling"
    earlier = Results(
        {stability: Ours(1.0, 0.1), counts: Ours(2.0, 0.1), "gone": Ours(3.0, 0.1)},
        {"stability": run, "counts": run},
    )
    newer = replace(run, date="tomorrow")
    these = Results({}, {"stability": newer})
    together = these.over(earlier, {"key"})
    assert together.numbers == {counts: Ours(2.0, 0.1)}  # its own claims are asked again
    assert together.runs == {"counts": run, "stability": newer}
    assert these.over(earlier, {"key of another version"}) == these


def test_what_was_open_is_forgotten_once_nothing_is() -> None:
    earlier = Results({}, {}, outlook={"a": "stage 2 of 3 is next"})
    asked, not_asked = Results({}, {}, outlook={}), Results({}, {})
    assert not_asked.over(earlier, ()).outlook == earlier.outlook
    assert asked.over(earlier, ()).outlook == {}
    for one in (earlier, asked, not_asked):
        assert Results.from_json(one.to_json()) == one


def test_published_runs_say_which_version_made_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else `publish` could not tell whether their numbers are still ours."""
    before = published()
    assert all(len(run.key) == 64 for run in before.runs.values())
    files = {"RESULTS": RESULTS, "VERDICTS": VERDICTS, "PAGE": PAGE, "README": README}
    for name, file in files.items():
        copy = tmp_path / file.name
        copy.write_bytes(file.read_bytes())
        monkeypatch.setattr(publishing, name, copy)
    none = Results.of({}, Stored.of(Store()))  # no figure was made, the store is there
    keys = {run.key for run in before.runs.values()}
    assert publishing.publish(none, keys)[1] == []
    assert (tmp_path / RESULTS.name).read_bytes() == RESULTS.read_bytes()
    gone = before.runs["stability"].key
    assert publishing.publish(none, keys - {gone})[1] == ["stability"]
    assert (
        "loss of stability"
        not in Results.from_json((tmp_path / "results.json").read_text()).numbers
    )


def test_every_open_claim_says_what_would_decide_it() -> None:
    results = published()
    assert results.open
    page = reproduce_page(results).split("## What is open")[1].split("## Grants")[0]
    assert {claim.id for claim in CLAIMS if f"`{claim.id}`" in page} == {
        claim.id for claim in results.open
    }
    tried = {claim.id for claim in CLAIMS if questions_of(claim.id)}
    assert results.outlook is not None
    assert set(results.outlook) == {claim.id for claim in results.open if claim.id in tried}
    nowhere = replace(results, numbers={}, outlook={})
    assert all(nowhere.ahead(claim) for claim in nowhere.open)


def test_every_stored_number_has_its_sizes_seeds_and_commits() -> None:
    described = json.loads(VERDICTS.read_text("utf-8"))
    stored = [one for one in described if one["scale"] == "decide"]
    assert len(stored) > 150
    for one in stored:
        counted = one["id"].startswith("classes-of-")  # samples, by no network
        assert bool(one["n"]) is not counted, one["id"]
        assert one["runs"] > 0
        assert re.fullmatch(r"[\d, to]+", one["seed"])
        assert re.fullmatch(r"[0-9a-f]{9}\*?(, [0-9a-f]{9}\*?)*", one["commit"])
    by_id = {one["id"]: one for one in described}
    mnist, rise = by_id["comparable-mnist-1000"], by_id["sudden-in-jd"]
    assert (mnist["n"], mnist["epochs"], mnist["seed"]) == ([1000], [20], "0 to 3")
    assert (rise["n"], rise["epochs"]) == ([400], [20])  # of each of two layers


def test_every_claim_that_differs_says_why_or_what_was_tried() -> None:
    results = published()
    for claim in CLAIMS:
        judged = results.judged(claim)
        if judged.verdict is Verdict.DIFFERS:
            assert claim.why, f"{claim.id} differs: write down why, or what was tried"
            assert (claim.sort is Kind.RECONSTRUCTED) == judged.remark.endswith(
                "with other constants than ours it might not differ."
            )


def test_published_pages_are_what_the_claims_give() -> None:
    """Run `python -m figures publish` after a change of the claims."""
    results = published()
    assert set(results.numbers) <= {claim.key for claim in CLAIMS}
    assert VERDICTS.read_text("utf-8") == results.claims_json()
    assert PAGE.read_text("utf-8") == reproduce_page(results)
    readme = README.read_text("utf-8")
    assert with_headline(readme, results) == readme
    for title in SECTIONS:
        assert sum(results.counted(title).values()) == len(SECTIONS[title])


def test_every_claim_says_what_it_grants_and_what_decides_it() -> None:
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        assert claim.reason
        assert claim.sort in Kind
        if claim.read is None:
            assert command(claim) == ""
        else:
            assert command(claim).split()[3] in (*FIGURES, "decide")
    by_id = {claim.id: claim for claim in CLAIMS}
    assert by_id["comparable-mnist-1000"].needs == "dataset = mnist; N = 1000; epochs = 20"
    assert by_id["threshold-of-the-dynamics"].needs == "N ≥ 4000"
    assert by_id["typical-fixed-points"].needs == "N = 2000; J_D = 0.8"
    assert by_id["qdyn-0.5-5.0-0.9-0-median"].sort is Kind.RECONSTRUCTED
    assert by_id["qdyn-0.5-5.0-0.9-1-median"].sort is Kind.NUMBER
    assert by_id["critical-coupling-of-two-layers"].slack == 0.005


def test_claims_are_listed_and_shown_one_by_one(
    tmp_path: Path, no_store: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    here = ["--out", str(tmp_path)]
    assert run(["claims", "--json", *here]) == 0
    assert capsys.readouterr().out == VERDICTS.read_text("utf-8")
    here += no_store
    assert run(["claims", *here]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [claim.id for claim in CLAIMS]
    assert run(["claims", "--id", "loss-of-stability", "--json", *here]) == 0
    one = json.loads(capsys.readouterr().out)
    assert (one["number"], one["verdict"]) == (-0.178, "agrees")
    assert abs(one["value"] + 0.17835765) < 1e-8
    assert run(["claims", "--id", "loss-of-stability", *here]) == 0
    shown = capsys.readouterr().out
    assert "granted   0.0005\n" in shown
    assert {line.partition(" ")[0] for line in shown.splitlines()}.isdisjoint({"n", "epochs"})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["claims", "--id", "loss-of-stablity"], "such as loss-of-stability"),
        (["report", "--json"], "json must be an option of the name claims alone"),
        (["annealed", "--id", "tight-1"], "id must be an option of the names claims, plan"),
    ],
)
def test_claims_refuse_what_makes_no_sense(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments, "--out", str(tmp_path / "out")]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_published_numbers_print_as_many_digits_as_they_have() -> None:
    claim = _claim()
    assert str(Judged(claim, Ours(0.61234, 0.0123)).ours) == "0.612 ± 0.012"
    assert str(Judged(claim, Ours(1234.5, 20.0)).ours) == "1234 ± 20"


_BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

#: Leaves in the title what a reader would see: images, whether anything sticks out to the right,
#: claims after the filter, the order after a click on a heading, tables without a row, whether a
#: link finds a row that is filtered out, and what is folded on paper.
_LOOK = """<script>addEventListener('load', () => {
  const shown = [...document.images].filter(image => image.complete && image.naturalWidth > 0);
  const root = document.documentElement;
  const wide = [...document.querySelectorAll('main > *')].filter(
    part => part.getBoundingClientRect().right > root.clientWidth + 1);
  const filter = document.getElementById('filter');
  const count = () => document.getElementById('shown').textContent;
  const before = count();
  filter.elements.verdict.value = 'differs';
  filter.dispatchEvent(new Event('input'));
  const table = document.querySelector('table.statements');
  table.querySelector('th button').click();
  const texts = [...table.tBodies[0].rows].map(row => row.cells[0].textContent.trim());
  const claims = [...document.querySelectorAll('table.claims')].reduce((one, other) =>
    other.tBodies[0].rows.length > one.tBodies[0].rows.length ? other : one);
  claims.querySelectorAll('th button')[2].click();
  const numbers = [...claims.tBodies[0].rows].map(row => row.cells[2].dataset.key)
    .filter(Boolean).map(Number);
  const sorted = texts.every((text, k) => !k || texts[k - 1].localeCompare(
    text, 'en', {numeric: true}) <= 0)
    && numbers.length > 9 && numbers.every((x, k) => !k || numbers[k - 1] <= x);
  const few = count();
  const empty = [...document.querySelectorAll('table.claims')].filter(table =>
    !table.hidden && ![...table.tBodies[0].rows].some(row => !row.hidden));
  // A link to a row that is filtered out shows it; what is folded is printed.
  const away = document.querySelector('table.claims tbody tr[hidden]');
  location.hash = away.id;
  dispatchEvent(new Event('hashchange'));
  const found = away.checkVisibility();
  dispatchEvent(new Event('beforeprint'));
  const folded = document.querySelectorAll('details.claims-left:not(.cells):not([open])');
  document.title = [shown.length, document.images.length, root.clientWidth, wide.length,
    root.scrollWidth - root.clientWidth, before, few, sorted, empty.length, found,
    folded.length].join('; ');
});</script>"""


@pytest.mark.skipif(_BROWSER is None, reason="no chromium or chrome on this machine")
@pytest.mark.parametrize("width", [400, 1400])
def test_the_report_opens_in_a_browser(
    report: Report, pages: tuple[Path, ...], tmp_path: Path, width: int
) -> None:
    html, *_ = pages
    # A frame of that width: windows of a browser have a least width of their own.
    inner = html.read_text("utf-8").replace("</body>", f"{_LOOK}</body>")
    (tmp_path / "inner.html").write_text(inner, "utf-8")
    page = tmp_path / "page.html"
    page.write_text(
        f"<!doctype html><iframe id='it' src='inner.html' width='{width}' height='900'></iframe>"
        "<script>addEventListener('load', () => { document.title = "
        "document.getElementById('it').contentDocument.title; });</script>",
        "utf-8",
    )
    answer = subprocess.run(
        [
            str(_BROWSER),
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *("--allow-file-access-from-files", "--window-size=1600,1000"),
            f"--user-data-dir={tmp_path / 'profile'}",
            *("--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom"),
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    title = re.search("<title>(.*?)</title>", answer.stdout)
    assert title, answer.stdout[:2000]
    shown, images, seen, wide, beyond, every, few, is_sorted, *rest = title[1].split("; ")
    assert (shown, images) == ("2", "2")
    assert abs(int(seen) - width) < 30
    assert (wide, beyond) == ("0", "0")
    assert every == f"{len(CLAIMS)} of {len(CLAIMS)} claims"
    differing = sum(report.results.judged(claim).verdict is Verdict.DIFFERS for claim in CLAIMS)
    assert few == f"{differing} of {len(CLAIMS)} claims"
    assert is_sorted == "true"
    assert rest == ["0", "true", "0"]
    assert "CONSOLE" not in answer.stderr, answer.stderr


def test_every_claim_belongs_to_a_statement_of_the_paper() -> None:
    groups = grouped(CLAIMS)
    assert all(statement.keys for statement, _ in groups)
    assert sum(len(claims) for _, claims in groups) == len(CLAIMS)
    assert 30 <= len(groups) <= 50


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.07, 0.07], "agrees: 2"),
        ([0.07, 0.2], "differs: 1 of 2"),
        ([0.2, None], "differs: 1 of 2, 1 open"),
        ([0.07, None], "open: 1 of 2 decided"),
        ([None], "open: none of 1 decided"),
    ],
)
def test_statements_stand_and_fall_with_their_claims(
    values: list[float | None], verdict: str
) -> None:
    judged = [Judged(_claim(), None if x is None else Ours(x, 1e-6)) for x in values]
    assert verdict_of(judged) == verdict


def test_indicative_values_decide_nothing() -> None:
    claim = next(one for one in CLAIMS if one.id == "comparable-mnist-2000")
    data = xr.Dataset(
        {
            name: (("dataset", "n"), [[value]])
            for name, value in {
                "accuracy": 0.9,
                "accuracy_error": 0.01,
                "mlp_accuracy": 0.95,
                "mlp_accuracy_error": 0.01,
            }.items()
        },
        {"dataset": ["mnist"], "n": [1000], "epochs": 3},
    )
    assert judge(claim, data).ours is None
    hint = indicative(claim, data)
    assert hint is not None
    assert hint.value == pytest.approx(-0.05)
    assert hint.at == "N = 1000, 3 epochs"
    # Another data set is no smaller size: nothing is said of it.
    other = next(one for one in CLAIMS if one.id == "comparable-fashion_mnist-2000")
    assert indicative(other, data) is None
