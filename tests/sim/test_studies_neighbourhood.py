"""Around a fixed point: simulation and theory on one axis, and states of the user's own."""

from pathlib import Path

import numpy as np
import pytest

import rmtheory as rt
from rmsim.cli import run
from rmsim.network import Network
from rmsim.search.neighbours import count_neighbours
from rmsim.studies.compare import TheoryEntropies
from rmsim.studies.neighbourhood import check_fixed_points, survey_neighbourhood
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError
from rmtheory.second_moment.overlap_exponent import exponent

pytestmark = pytest.mark.numerical


def test_a_planted_point_has_the_entropy_that_theory_has_for_typical_ones() -> None:
    """Two routes: messages in one network of 400 neurons, and a saddle point for N -> infinity.

    At the distances below they differ by 1 to 2 %; S_I* of the densest regions at the same
    abscissa is 10 to 25 % above.
    """
    distances = [0.1, 0.2]
    surroundings = survey_neighbourhood(
        Network(400, Chain(1, 0.8)), "planted", gammas=[0, 0.3, 0.5, 0.8]
    )
    measured = surroundings.at(distances)["entropies"]
    theory = surroundings.against_theory(distances)
    assert measured == pytest.approx(theory["theory_typical"], rel=0.04)
    assert np.all(np.array(theory["theory_densest"]) > 1.08 * np.array(measured))


def test_the_typical_neighbourhood() -> None:
    """At gamma = 0 all fixed points; dS/dd = 2 gamma; below the entropy of the mean number."""
    chain = Chain(1, 0.5)
    gammas = np.arange(0.48, 0.521, 0.02)
    curve = rt.typical_neighbourhood(chain, [0.0, *gammas])
    assert curve.entropy[0] == pytest.approx(float(rt.entropy(chain)), abs=1e-8)
    assert (curve.d[0], curve.mutual[0]) == pytest.approx((0.5, 0.5))
    slope = (curve.entropy[3] - curve.entropy[1]) / (curve.d[3] - curve.d[1])
    assert slope == pytest.approx(2 * gammas[1], rel=1e-3)
    assert np.all(curve.error < 1e-6)
    q = 1 - 2 * curve.d
    pairs = [float(exponent(chain, (x,))) - float(rt.entropy(chain)) for x in q]
    assert np.all(curve.entropy <= np.array(pairs) + 1e-8)
    with pytest.raises(InvalidInputError, match="layers must be 1"):
        rt.typical_neighbourhood(Chain(2, 0.5, 0.1), [0])
    with pytest.raises(InvalidInputError, match="gamma must be"):
        rt.typical_neighbourhood(chain, [-1])


def test_a_drawn_curve_has_no_kinks() -> None:
    """Few distances, as theory_to_draw has them, of a function with the same steep beginning."""
    d = np.geomspace(0.01, 0.45, 14)
    nothing = np.full(d.size, np.nan)
    S, slope = -d * np.log(d), -np.log(d) - 1
    theory = TheoryEntropies(d, S, nothing, nothing, nothing, slope, nothing)
    x, drawn = theory.smooth("densest")
    assert x[0] == pytest.approx(0.01)
    assert x[-1] == pytest.approx(0.45)
    assert np.abs(drawn + x * np.log(x)).max() < 1e-4
    assert np.abs(np.interp(x, d, S) + x * np.log(x)).max() > 1e-3  # what a picture would show
    assert theory.smooth("typical")[0].size == 0


def test_progress_counts_distances_and_fields() -> None:
    network = Network(30, Chain(1, jd=0.8))
    fields: list[int] = []
    near = survey_neighbourhood(network, gammas=[0.0, 0.5, 1.0], progress=fields.append)
    assert fields == [0, 1, 2, 3]
    distances: list[int] = []
    own = Network.from_array(np.zeros((6, 6)), 0.8)
    count_neighbours(np.zeros((6, 6)), np.ones(6), own, 3, progress=distances.append)
    assert distances == [1, 2, 3]
    assert near.curve.d.size


def test_the_time_is_estimated_before_it_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the size of the network and the distance, of which other tests have the numbers."""
    asked: list[tuple[int, int]] = []

    def minute(spins: int, most: int) -> float:
        asked.append((spins, most))
        return 60.0

    monkeypatch.setattr("rmsim.search.neighbours.neighbour_seconds", minute)
    monkeypatch.setattr("rmsim.studies.neighbourhood.neighbour_seconds", minute)
    network, states = ["--n", "30", "--jd", "1.2"], str(tmp_path / "states.npy")
    assert run(["local-entropy", *network, "--gamma", "0,.5", "--states", states]) == 0
    assert capsys.readouterr().err.startswith("fields: about 60 s")
    assert run(["relax", *network, "--samples", "1", "--states", states, "--overwrite"]) == 0
    capsys.readouterr()
    assert run(["neighbours", *network, "--most", "3", "--states", states]) == 0
    assert capsys.readouterr().err.startswith("distances: about 60 s")
    assert asked == [(30, 2), (30, 3)]


def test_states_of_a_file_are_checked(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    J = rng.normal(0, 40**-0.5, (40, 40))
    np.fill_diagonal(J, 0)
    network = Network.from_array(J, 1.5)
    s = np.ones(40)
    while (s * (J @ s) + 1.5).min() <= 0:
        s = np.where(J @ s + 1.5 * s >= 0, 1.0, -1.0)
    file = tmp_path / "s.npy"
    np.save(file, np.stack([s, np.where(np.arange(40) == 3, -s, s)]).astype(np.int8)[:, None])
    for given in (file, str(file)):
        checked = check_fixed_points(network, given)
        assert checked.fixed[0]
        assert checked.min_margin[0] == pytest.approx((s * (J @ s) + 1.5).min())
    near = survey_neighbourhood(network, str(file), gammas=[0.0, 0.5], most=3)
    assert near.source == str(file)
    assert near.neighbours[0].exact
    for bad in (np.ones(39), np.zeros(40), np.ones((2, 3, 40)), np.array(["a"])):
        with pytest.raises(InvalidInputError, match=r"^states must be"):
            check_fixed_points(network, bad)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("check --n 20 --jd .5", "states must be given (--states FILE.npy), got nothing"),
        ("check --n 20 --jd .5 --states no.npy", "no.npy"),
        ("neighbours --n 20 --jd .5 --states text.npy", "text.npy"),
        ("neighbours --n 20 --jd .5 --states objects.npy", "objects.npy"),
        ("neighbours --n 20 --jd .5 --states short.npy", "states must be of shape (count, 1, 20)"),
        ("bp --couplings nan.npy --jd .5", "couplings must be finite"),
        ("bp --couplings short.npy --jd .5", "couplings must be a square matrix"),
        (
            "bp --n 20 --jd .5 --magnetisations m.txt",
            "magnetisations must be a file ending in .npy",
        ),
        ("local-entropy --n 20 --jd .5 --reference who", "reference must be one of dynamics"),
        ("local-entropy --couplings nan.npy --jd .5 --against-theory", "couplings must be finite"),
        ("local-entropy --n 20 --jd .5 --neighbours 0", "neighbours must be an integer >= 1"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: str,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.npy").write_text("no array")
    np.save("objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save("short.npy", np.ones(7))
    np.save("nan.npy", np.full((5, 5), np.nan))
    assert run(arguments.split()) in (1, 2)
    told = capsys.readouterr()
    assert sentence in told.err
    assert told.err.count("\n") == 1
    assert "Traceback" not in told.err
