"""The explorer: its numbers against the library, and the page in a browser."""

import json
import math
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest

import rmtheory as rt
from figures.paper.phase_diagram_complete import shipped_tables
from rmtheory.base.errors import InvalidInputError, NotConvergedError, OutsideValidityError
from rmtheory.cli import run
from rmtheory.explorer import grids
from rmtheory.explorer.grids import address, chebyshev, value_and_error

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)


def test_interpolation_of_known_functions_converges_and_is_even_in_lambda() -> None:
    deviations = []
    for count in (4, 6, 8):
        axes = [chebyshev("jd", 0.1, 1.0, count, "log"), chebyshev("lam", 0.0, 0.8, count, "even")]
        jd, lam = (np.array(axis.nodes) for axis in axes)
        values = np.sqrt(jd)[:, None] * np.cos(lam)[None]
        at = {"jd": 0.37, "lam": 0.51}
        value, error = value_and_error(values, 0 * values, axes, at)
        assert error == 0
        mirrored, _ = value_and_error(values, values, axes, {"jd": 0.37, "lam": -0.51})
        assert mirrored == pytest.approx(value, rel=1e-12)
        deviations.append(abs(value - math.sqrt(0.37) * math.cos(0.51)))
    assert deviations[0] > 10 * deviations[1] > 100 * deviations[2]


def test_nothing_is_extrapolated() -> None:
    with pytest.raises(OutsideValidityError, match=r"jd = 0\.01 is outside the grid, 0\.02 to 1"):
        rt.explorer.at_point(rt.explorer.load_grids(), "local-1", "internal", jd=0.01, d=0.1)


#: Grid, point, and how the library computes it: points that no check of the grids has seen.
POINTS = [
    ("local-1", {"jd": 0.235, "d": 0.07}),
    ("local-1", {"jd": 0.72, "d": 0.021}),
    ("local-2", {"jd": 0.085, "lam": 0.35, "d": 0.3}),
    ("local-3", {"jd": 0.06, "lam": 0.17, "d": 0.09}),
    ("local-3", {"jd": 0.5, "lam": 0.3, "d": 0.1}),
]


@pytest.mark.parametrize(("key", "at"), POINTS)
def test_entropies_are_those_of_the_library_within_the_error(
    key: str, at: dict[str, float]
) -> None:
    document = rt.explorer.load_grids()
    layers = int(key[-1])
    chain = rt.Chain(layers, at["jd"], **({"lam": at["lam"]} if layers > 1 else {}))
    point = rt.ystar(chain, at["d"])
    for quantity, exact, own in (
        ("internal", float(point.internal), float(point.internal.error)),
        (
            "log_y_star",
            math.log(float(point.y_star)),
            float(point.y_star.error) / float(point.y_star),
        ),
    ):
        value, error = rt.explorer.at_point(document, key, quantity, **at)
        assert abs(value - exact) <= error + own, (quantity, value - exact, error)
        # An error that would cover anything is no statement.
        assert error < (0.01 if quantity == "internal" else 0.25)


@pytest.mark.parametrize("layers", [1, 2, 3, "inf"])
def test_annealed_entropies_are_those_of_the_library(layers: int | str) -> None:
    document = rt.explorer.load_grids()
    depth = math.inf if layers == "inf" else layers
    for jd, lam in ((0.333, 0.0), (0.05, 0.77), (1.17, 1.13)):
        at = {"jd": jd} if layers == 1 else {"jd": jd, "lam": lam}
        value, error = rt.explorer.at_point(document, f"annealed-{layers}", "entropy", **at)
        exact = rt.entropy_array(depth, jd, 0.0 if layers == 1 else lam)[0]
        assert abs(value - float(exact)) <= error < 1e-3


def test_flip_rates_are_those_of_the_library() -> None:
    document = rt.explorer.load_grids()
    for key, chain in (("flips-1", rt.Chain(1, 0.66)), ("flips-2", rt.Chain(2, 0.45, 0.3))):
        series = rt.mean_field(chain, 20, trajectories=20_000, seed=1).flip_rate
        for t in (2, 8, 20):
            at = {"jd": chain.jd, "lam": chain.lam_left, "t": t}
            value, error = rt.explorer.at_point(document, key, "flip_rate", **at)
            assert abs(value - series.value[t - 1]) < 4 * (error + series.error[t - 1])
            assert error < 0.02


def test_tables_agree_with_those_of_the_figure() -> None:
    """Rows of the same boundary, freezing point or threshold; the figure may have more of them."""
    stored = shipped_tables()
    tables = rt.explorer.load_grids()["tables"]
    measured = {"jd", "jd_error", "lam", "lam_error", "samples"}

    def name(row: dict[str, Any]) -> str:
        fixed = [coupling for coupling in ("jd", "lam") if row[f"{coupling}_error"] == 0]
        about = {key: row[key] for key in row if key not in measured}
        return json.dumps({**about, **{key: row[key] for key in fixed}}, sort_keys=True)

    compared = 0
    for table in grids.TABLES:
        theirs = {name(row): row for row in stored[table]}
        for row in tables[table]:
            other = theirs.get(name(row))
            # Points on rays have no coupling that is given: they have no partner.
            if other is None or (row["jd_error"] and row["lam_error"]):
                continue
            compared += 1
            for coupling in ("jd", "lam"):
                error = math.hypot(row[f"{coupling}_error"], other[f"{coupling}_error"])
                assert abs(row[coupling] - other[coupling]) <= 3 * error, (table, row, other)
    assert compared > 20
    # The explorer shows the freezing points that are stored now.
    for shown, now in zip(tables["freezing"], stored["freezing"], strict=True):
        assert shown == pytest.approx(now, rel=1e-9)  # fits, whose last bits differ by processor


def test_grids_are_computed_in_parts_and_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = grids.Grid(
        "annealed", 2, (chebyshev("jd", 0.1, 0.5, 3), chebyshev("lam", 0.0, 0.5, 2, "even")), 2
    )
    monkeypatch.setattr(grids, "GRIDS", (small,))
    tables = rt.explorer.load_grids()["tables"]
    with pytest.raises(NotConvergedError, match=f"8 of 8 parts are missing in {tmp_path}"):
        grids.gather(tmp_path, tables)
    counts: list[int] = []
    grids.compute(tmp_path, on_part=counts.append)
    assert counts == list(range(9))
    (tmp_path / "annealed-2-row-3.json").write_text("cut off")
    before = (tmp_path / "annealed-2-row-4.json").stat().st_mtime_ns
    grids.compute(tmp_path)
    assert (tmp_path / "annealed-2-row-4.json").stat().st_mtime_ns == before
    document = grids.gather(tmp_path, tables)
    value, error = grids.at_point(document, "annealed-2", "entropy", jd=0.3, lam=0.2)
    assert abs(value - float(rt.entropy(rt.Chain(2, 0.3, 0.2)))) < error < 0.01


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--layers 5", "layers must be one of 1, 2, 3, inf in the explorer, got 5"),
        ("--jd a", "jd must be a finite real number, got a"),
        ("--tables x.json", "tables must be an option of --compute alone, got x.json"),
        ("--out /nowhere/x.html", "out must be"),
        ("--out mine.csv", "out must be a file ending in .html, got mine.csv"),
    ],
)
def test_bad_input_of_the_command(
    arguments: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explore", "--no-browser", *arguments.split()]) == 2
    assert sentence in capsys.readouterr().err


def test_a_page_of_somebody_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "mine.html"
    mine.write_text("<p>mine</p>")
    assert run(["explore", "--no-browser", "--out", str(mine)]) == 2
    assert "out must be a new file, or an earlier page of ours" in capsys.readouterr().err
    assert mine.read_text() == "<p>mine</p>"
    assert run(["explore", "--no-browser", "--out", str(tmp_path / "ours.html")]) == 0
    assert run(["explore", "--no-browser", "--out", str(tmp_path / "ours.html")]) == 0


def test_tables_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"boundary": [{}]}')
    with pytest.raises(InvalidInputError, match="tables must be a JSON file with tables among"):
        grids.read_tables(tmp_path / "t.json")


def test_the_command_writes_one_small_page_without_addresses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "explorer.html"
    assert run(["explore", "--no-browser", "--jd", ".3", "--out", str(target)]) == 0
    assert capsys.readouterr().out.strip() == target.as_uri() + "?jd=0.3"
    text = target.read_text("utf-8")
    assert len(text) < 250_000
    assert "https://" not in text
    assert "src=" not in text


_OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0")


@contextmanager
def _browser(page: str) -> Iterator[Any]:
    """Give a function that evaluates JavaScript in the page, in a browser of its own."""
    from tornado.ioloop import IOLoop
    from tornado.websocket import websocket_connect

    with tempfile.TemporaryDirectory() as profile:
        assert CHROMIUM is not None
        browser = subprocess.Popen(
            [CHROMIUM, *_OPTIONS, f"--user-data-dir={profile}", page],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            file, end = Path(profile, "DevToolsActivePort"), time.monotonic() + 120
            while not (file.exists() and file.read_text().count("\n")):
                assert browser.poll() is None, "the browser has ended"
                assert time.monotonic() < end, "the browser does not start"
                time.sleep(0.1)
            port = file.read_text().splitlines()[0]
            while True:
                with urlopen(f"http://127.0.0.1:{port}/json") as answer:
                    tabs = [one for one in json.load(answer) if one["type"] == "page"]
                if tabs:
                    break
                time.sleep(0.1)
            loop = IOLoop(make_current=False)

            async def call(expression: str) -> Any:
                socket = await websocket_connect(tabs[0]["webSocketDebuggerUrl"])
                parameters = {"expression": expression, "returnByValue": True}
                request = {"id": 1, "method": "Runtime.evaluate", "params": parameters}
                await socket.write_message(json.dumps(request))
                reply = json.loads(str(await socket.read_message()))
                socket.close()
                assert "exceptionDetails" not in reply["result"], reply
                return reply["result"]["result"].get("value")

            yield lambda expression: loop.run_sync(lambda: call(expression))
            loop.close()
        finally:
            browser.terminate()
            browser.wait(60)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_moving_a_slider_changes_the_numbers_to_those_of_the_library(tmp_path: Path) -> None:
    target = tmp_path / "explorer.html"
    rt.explorer.write_page(target)
    document = rt.explorer.load_grids()

    def number(name: str) -> tuple[float, float]:
        data = evaluate(f"JSON.stringify(document.getElementById('number-{name}').dataset)")
        shown = json.loads(data)
        return float(shown["value"]), float(shown["error"])

    def move(name: str, value: float) -> None:
        evaluate(
            f"{{const slider = document.getElementById('{name}'); slider.value = {value};"
            "slider.dispatchEvent(new Event('input', {bubbles: true}));}"
        )

    with _browser(address(target, jd=0.3, layers=1, d=0.1)) as evaluate:
        end = time.monotonic() + 60
        while not evaluate("document.getElementById('number-internal') !== null"):
            assert time.monotonic() < end, "the page does not draw"
            time.sleep(0.1)
        before = number("internal")
        assert before == pytest.approx(
            grids.at_point(document, "local-1", "internal", jd=0.3, d=0.1), rel=1e-9
        )
        picture = evaluate("document.getElementById('internal').innerHTML")
        move("jd", 0.45)
        after = number("internal")
        exact = rt.ystar(rt.Chain(1, 0.45), 0.1)
        assert after[0] != before[0]
        assert abs(after[0] - float(exact.internal)) <= after[1] < 1e-3
        y, y_error = number("y_star")
        assert abs(y - float(exact.y_star)) <= y_error < 0.1 * y
        assert evaluate("document.getElementById('internal').innerHTML") != picture
        made = evaluate("document.getElementById('made').textContent")
        assert ". Thresholds: " in made
        assert ". Freezing: " in made
        assert "lambda" not in made
        # A line of a command ends between its words.
        heights = evaluate(
            "[...document.querySelectorAll('code .word')].map(w => w.getClientRects().length)"
        )
        assert len(heights) > 20
        assert set(heights) == {1}
        command = evaluate("document.getElementById('command-ystar').textContent")
        assert command == "rmtheory ystar --layers 1 --jd 0.45 --d 0.1"

        move("layers", 1)  # two layers
        move("jd", 0.2)
        move("lam", 0.35)
        for quantity, key in (("entropy", "annealed-2"), ("internal", "local-2")):
            expected = grids.at_point(document, key, quantity, jd=0.2, lam=0.35, d=0.1)
            assert number(quantity) == pytest.approx(expected, rel=1e-9)
        expected = grids.at_point(document, "flips-2", "flip_rate", jd=0.2, lam=0.35, t=40)
        assert number("flip_rate") == pytest.approx(expected, rel=1e-9)

        move("jd", 1.1)  # outside the grid of S_I*
        assert evaluate("document.getElementById('number-internal').textContent") == "—"
        assert "computed in advance for J_D from 0.02" in evaluate(
            "document.getElementById('verdict').textContent"
        )
