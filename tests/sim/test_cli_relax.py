"""``rmsim relax``: its JSON, its table, and one sentence for bad input."""

import json
from pathlib import Path

import numpy as np
import pytest

from rmsim.cli import options, run

#: The prediction takes a second: it has tests of its own.
ARGUMENTS = ["relax", "--n", "60", "--jd", ".9", "--samples", "12", "--device", "cpu"]
ARGUMENTS += ["--no-theory"]


def answer(capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, object]:
    assert run([*ARGUMENTS, "--json", *more]) == 0
    result = json.loads(capsys.readouterr().out)
    assert isinstance(result, dict)
    return result


def test_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "relax.json"
    result = answer(capsys, "--seed", "3", "--out", str(file))
    assert json.loads(file.read_text()) == result
    assert result["fixed_point_fraction"] == 1
    assert 0 < float(str(result["fixed_point_fraction_error"])) < 0.1
    assert result["periods"] == {}
    assert float(str(result["sweeps_median"])) > 0
    assert float(str(result["min_margin"])) > 0
    assert (result["seed"], result["device"], result["dtype"]) == (3, "cpu", "float32")
    again = answer(capsys, "--seed", "3")
    for document in (result, again):
        del document["wall_time"]
    assert again == result
    other = answer(capsys, "--seed", "4")
    assert other["min_margin"] != result["min_margin"]


def test_cycles(capsys: pytest.CaptureFixture[str]) -> None:
    result = answer(capsys, "--jd", "0", "--layers", "2", "--lam", "1.5", "--starts", "2")
    periods = result["periods"]
    assert isinstance(periods, dict)
    fractions = [float(str(result[f"{x}_fraction"])) for x in ("fixed_point", "cycle", "capped")]
    assert sum(fractions) == pytest.approx(1)
    assert sum(periods.values()) == round(24 * fractions[1]) > 12
    assert "2" in periods


def test_nothing_converges(capsys: pytest.CaptureFixture[str]) -> None:
    result = answer(capsys, "--jd", "0", "--max-sweeps", "2")
    assert result["capped_fraction"] == 1
    assert result["sweeps_median"] is None
    assert result["sweeps_median_error"] is None
    assert result["min_margin"] is None


@pytest.mark.parametrize(
    "more",
    [
        ["--rho", ".3"],
        ["--symmetric"],
        ["--rho", ".3", "--symmetric"],
        ["--p", ".8", "--layers", "2", "--lam-left", ".5", "--lam-right", ".4"],
        ["--update", "sequential", "--layers", "3", "--lam", ".5"],
        ["--dtype", "float64"],
    ],
)
def test_variants_converge(capsys: pytest.CaptureFixture[str], more: list[str]) -> None:
    assert answer(capsys, *more)["fixed_point_fraction"] == 1


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(ARGUMENTS) == 0
    out = capsys.readouterr().out
    assert "fixed_point_fraction" in out
    assert "±" in out


def test_the_time_is_estimated_before_it_starts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rmsim.studies.convergence.search_seconds", lambda point: 75.0)
    assert run(ARGUMENTS) == 0
    assert capsys.readouterr().err.startswith("samples: about 75 s")


def test_the_table_of_given_couplings_is_short(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "J.npy"
    J = np.random.default_rng(0).normal(0, 60**-0.5, (60, 60))
    np.fill_diagonal(J, 0)
    np.save(file, J)
    for name, value in {"FORCE_COLOR": "1", "TERM": "dumb", "COLUMNS": "80"}.items():
        monkeypatch.setenv(name, value)
    arguments = ["relax", "--couplings", str(file), "--jd", "1.5", "--device", "cpu"]
    assert run([*arguments, "--starts", "12"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 20
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    assert "couplings of J.npy" in text
    assert "the couplings are given" in text  # why there is no theory, and no rows of it
    assert "z_score" not in text
    # Errors over the starts: this network is the only one.
    assert run([*arguments, "--starts", "12", "--json"]) == 0
    twelve = json.loads(capsys.readouterr().out)
    assert twelve["fixed_point_fraction"] == 1
    assert twelve["fixed_point_fraction_error"] < 0.06
    assert twelve["overlap_with_start_error"] > 0


@pytest.mark.parametrize(
    ("more", "compared"),
    [
        # Frozen: the overlap with the start. Active: the neurons against their field.
        (["--jd", "1.2"], "overlap_with_start"),
        (["--jd", ".3", "--max-sweeps", "60"], "unstable_fraction"),
        (
            ["--jd", ".2", "--layers", "2", "--lam", ".4", "--p", ".8", "--max-sweeps", "60"],
            "unstable_fraction",
        ),
    ],
)
def test_the_theory_beside_what_was_measured(
    capsys: pytest.CaptureFixture[str], more: list[str], compared: str
) -> None:
    result = answer(capsys, "--theory", "--n", "400", *more)
    value, error, theory, its, score = (
        float(str(result[name]))
        for name in (
            compared,
            f"{compared}_error",
            f"theory_{compared}",
            f"theory_{compared}_error",
            f"{compared}_z_score",
        )
    )
    assert score == pytest.approx((value - theory) / (error**2 + its**2) ** 0.5)
    # Twelve networks give the error itself to a fifth; corrections of order 1/N are below it.
    assert abs(score) < 5
    assert abs(value - theory) < 0.1 * max(theory, 0.1)
    assert "theory_reason" not in result


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--symmetric"], "symmetric couplings"),
        (["--update", "sequential"], "layer after layer"),
        (["--jd", "1e7"], "jd must be"),
    ],
)
def test_networks_outside_the_theory_say_why(
    capsys: pytest.CaptureFixture[str], more: list[str], reason: str
) -> None:
    result = answer(capsys, "--theory", *more)
    assert reason in str(result["theory_reason"])
    assert result["theory_overlap_with_start"] is None
    assert result["overlap_with_start_z_score"] is None
    assert 0 < float(str(result["overlap_with_start"])) <= 1


@pytest.mark.parametrize(
    ("more", "name"),
    [
        (["--n", "0"], "n"),
        (["--rho", "0"], "rho"),
        (["--rho", "1.5"], "rho"),
        (["--rho", "nan"], "rho"),
        (["--p", "0"], "p"),
        (["--p", "2"], "p"),
        (["--device", "cuda:99"], "device"),
        (["--samples", "0"], "samples"),
        (["--starts", "0"], "starts"),
        (["--max-sweeps", "0"], "max_sweeps"),
        (["--update", "sometimes"], "update"),
        (["--dtype", "float16"], "dtype"),
        (["--layers", "inf", "--lam", "1"], "layers"),
        (["--lam", "3"], "lam"),
        (["--lam-right", "0"], "lam_right"),
        (["--jd", "1e200"], "jd"),
        (["--seed", "-1"], "seed"),
    ],
)
def test_bad_input(capsys: pytest.CaptureFixture[str], more: list[str], name: str) -> None:
    assert run([*ARGUMENTS, *more]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"rmsim: error: {name} must be ")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("command", ["relax", "enumerate", "solve", "local-entropy"])
def test_lambda_of_one_layer_is_refused(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert run([command, "--n", "10", "--jd", ".8", "--lam", "3"]) == 2
    sentence = "lam must be absent for one layer, it needs --layers >= 2, got 3"
    assert capsys.readouterr().err == f"rmsim: error: {sentence}\n"


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (435_600.0, 13_674.0, "436000 ± 14000"),
        (15_800.0, 120.0, "15800 ± 120"),
        (1.88e12, 7.6e10, "1.880e+12 ± 7.6e+10"),
        (3e9, 5e9, "3.0e+09 ± 5.0e+09"),
        (-435_600.0, 13_674.0, "-436000 ± 14000"),
        (0.0, 13_674.0, "0 ± 14000"),
        (12.3, 9.96, "12.3 ± 10.0"),
        (12_345_678.9, 0.25, "12345678.90 ± 0.25"),
        (True, None, "yes"),
        ([100, 200], None, "100, 200"),
    ],
)
def test_tables_show_no_digits_beyond_the_error(value: object, error: object, text: str) -> None:
    assert options.shown(value, error) == text
