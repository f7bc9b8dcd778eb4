"""Figures on learning draw the stored runs of the trial, as far as there are some."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure as Picture

from figures.claims import CLAIMS, claim_named
from figures.claims.claim import Kind
from figures.claims.landscape import WHY_ACCURACIES, WHY_OPTIMAL
from figures.claims.performance import WHY_LINEAR
from figures.claims.role_of_couplings import WHY_NO_BOOST, WHY_SYM1
from figures.engine import figure as making
from figures.engine.figure import Figure
from figures.paper import capacity, performance_benchmarks, qdyn_table, trained_networks
from figures.paper.registry import FIGURES
from figures.trial.designs import role_network, usual_labels_network
from figures.trial.evidence import Stored
from figures.trial.store import Store, unpack


def cells(dims: Mapping[str, Any], epochs: int, names: tuple[str, ...], **scalars: Any) -> Any:
    """Numbers on a grid, with errors."""
    shape = tuple(len(values) for values in dims.values())
    values = np.linspace(0.2, 0.8, int(np.prod(shape))).reshape(shape)
    data = xr.Dataset(coords={**dims, "epochs": epochs, **scalars})
    for name in names:
        data[name] = (tuple(dims), values + epochs / 1000)
        data[f"{name}_error"] = (tuple(dims), np.full(shape, 0.01))
    return data


def stored(data: xr.Dataset, name: str, networks: float = 2.0) -> xr.Dataset:
    return data.assign({f"{name}_networks": data[name] * 0 + networks})


def put(monkeypatch: pytest.MonkeyPatch, **data: xr.Dataset) -> None:
    for module in (trained_networks, performance_benchmarks, qdyn_table, capacity):
        monkeypatch.setattr(module, "trial_data", lambda: data)


def points(picture: Picture, panel: int) -> list[float]:
    """Abscissae of the first curve of a panel."""
    (first, *_) = (
        one for one in picture.axes[panel].containers if isinstance(one, ErrorbarContainer)
    )
    return [float(x) for x in first.lines[0].get_xdata()]


def title(picture: Picture, panel: int) -> str:
    legend = picture.axes[panel].get_legend()
    assert legend is not None
    return str(legend.get_title().get_text())


def drawn(name: str, data: xr.Dataset) -> Picture:
    figure: Figure = FIGURES[name]
    return figure.plot(data)


PARTS = ("training_accuracy", "test_accuracy")


def pair(axis: str, values: list[float], epochs: int) -> xr.Dataset:
    names = tuple(f"{part}_{axis}" for part in PARTS)
    return cells({axis: values}, epochs, names, n=30)  # type: ignore[no-any-return]


def test_a_curve_is_that_of_stored_runs_from_three_points_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    computed = pair("jd", [0.0, 0.5], 3).assign(pair("lam", [0.0, 5.0], 3))
    long = pair("jd", [0.0, 0.2, 0.7], 20).assign(pair("lam", [0.0, 1.0], 20))
    long["n"] = 400
    long = stored(long, "test_accuracy_jd")
    put(monkeypatch, jd_lambda_duality=long)
    picture = drawn("jd_lambda_duality", computed)
    assert points(picture, 0) == [0.0, 0.2, 0.7]
    assert title(picture, 0) == "$\\lambda=0$, $N=400$,\n20 epochs, 2 networks"
    assert points(picture, 1) == [0.0, 5.0]  # of lambda there are two only
    assert title(picture, 1) == "$J_D=0$, $N=30$,\n3 epochs"
    put(monkeypatch, jd_lambda_duality=long.assign_coords(epochs=3))
    assert points(drawn("jd_lambda_duality", computed), 0) == [0.0, 0.5]


def test_bars_are_those_of_stored_runs_when_there_are_all(monkeypatch: pytest.MonkeyPatch) -> None:
    dims = {
        "rule": ["asym", "sym0", "sym1", "sym2"],
        "scheme": ["full", "approximate"],
        "jd": [0.5, 0.0],
    }
    computed = cells({**dims, "jd": [0.0, 0.5]}, 3, PARTS, n=40)
    long = stored(cells(dims, 20, PARTS, n=400), "test_accuracy")
    long["test_accuracy"].loc[{"scheme": "full", "jd": 0.0, "rule": "sym1"}] = np.nan
    put(monkeypatch, symmetric_rules=long)
    picture = drawn("symmetric_rules", computed)
    assert title(picture, 0) == "full scheme, $N=40$, 3 epochs"
    assert title(picture, 1) == "approximate scheme, $N=400$, 20 epochs, 2 networks"
    heights = [bar.get_height() for bar in picture.axes[1].containers[0]]  # type: ignore[union-attr]
    assert heights == pytest.approx(long["test_accuracy"].sel(scheme="approximate", jd=0.0).values)


def test_sizes_with_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    schemes = ["full", "approximate"]
    computed = cells({"scheme": schemes, "n": [40], "jd": [0.1, 0.5]}, 3, PARTS)
    grid = {"scheme": schemes, "n": [100, 400, 1600], "jd": [0.5, 0.05, 0.2, 0.9]}
    long = cells(grid, 100, PARTS)
    for part in PARTS:
        long[part].loc[{"n": 400, "jd": [0.05, 0.2]}] = np.nan
        long[part].loc[{"n": 1600, "jd": 0.9}] = np.nan
        long[part].loc[{"scheme": "approximate", "n": 100}] = np.nan
    put(monkeypatch, self_coupling=stored(long, "test_accuracy", 3.0))
    picture = drawn("role_of_jd", computed)
    assert [len(one.lines[0].get_xdata()) for one in picture.axes[1].containers] == [4, 3]
    assert points(picture, 1) == [0.05, 0.2, 0.5, 0.9]
    assert title(picture, 1) == "100 epochs, 3 networks"
    assert title(drawn("single_double", computed), 0) == "$N=1600$, 100 epochs, 3 networks"


def test_models_that_all_have_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    models = ["ours", "random_features", "reservoir"]
    computed = cells({"model": models, "n": [40, 80]}, 3, PARTS)
    long = cells({"model": models, "n": [100, 200, 400, 800]}, 200, PARTS)
    for part in PARTS:
        long[part].loc[{"model": "ours", "n": 800}] = np.nan
    put(monkeypatch, feature_learning=stored(long, "test_accuracy"))
    picture = drawn("feature_learning", computed)
    assert points(picture, 1) == [100, 200, 400]
    assert title(picture, 1) == "200 epochs, 2 networks"


def benchmarks(epochs: int, n: list[int]) -> xr.Dataset:
    data = cells(
        {"dataset": ["mnist", "fashion_mnist", "entangled_mnist", "tiny_imagenet"], "n": n},
        epochs,
        ("accuracy", "mlp_accuracy"),
    )
    return data.assign(parameters=data["accuracy"] * 0 + data["n"])  # type: ignore[no-any-return]


def test_benchmarks_of_one_width_stand_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = benchmarks(3, [500, 1000]).where(lambda x: x["dataset"] != "tiny_imagenet")
    computed = computed.assign_coords(epochs=3)
    computed["parameters"] = computed["parameters"].fillna(7.0)
    long = stored(benchmarks(20, [1000, 2000]).isel(dataset=slice(0, 3)), "accuracy")
    put(monkeypatch, performance_benchmarks=long)
    curves = drawn("performance_benchmarks", computed)
    assert [axis.get_title() for axis in curves.axes] == [
        *("MNIST", "Fashion-MNIST", "Entangled MNIST", "ours minus the perceptron")
    ]
    assert len(curves.axes[3].containers) == 3
    for k, drawn_gaps in enumerate(curves.axes[3].containers):
        own = long.isel(dataset=k)
        gaps = (own["accuracy"] - own["mlp_accuracy"]).values
        assert drawn_gaps.lines[0].get_ydata() == pytest.approx(gaps)  # type: ignore[attr-defined]
    assert title(curves, 0) == "20 epochs, 2 networks"
    one = long.assign({name: long[name].where(long["n"] == 1000) for name in long.data_vars})
    images = np.random.default_rng(0).random((2, 3, 2, 50))
    for k, name in enumerate(("accuracy", "mlp_accuracy")):
        one[f"{name}_images"] = (("dataset", "n", "image"), images[k])
        one[f"{name}_spread"] = one[f"{name}_error"] * 0 + 0.003
    put(monkeypatch, performance_benchmarks=one)
    picture = drawn("performance_benchmarks", computed)
    assert len(picture.axes) == 2
    (difference,) = picture.axes[1].containers
    (bars,) = difference.lines[2]  # type: ignore[attr-defined]
    ends = bars.get_segments()[0][:, 1]
    each = images[0, 0, 0] - images[1, 0, 0]
    wanted = np.sqrt(2 * 0.003**2 + each.var() / 50)
    assert (ends[1] - ends[0]) / 2 == pytest.approx(wanted)
    assert "2 networks" in picture.axes[1].get_xticklabels()[0].get_text()


def test_the_fuller_table_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = tuple(f"qdyn_{level}" for level in ("median", "q25", "q75", "q05", "q95"))
    rows = {"jd": [0.5, 0.0], "lambda_x": [5.0, 2.0], "lambda_y": [0.9, 0.5]}
    computed = cells({**rows, "epoch": [0]}, 0, levels, n=60)
    long = stored(cells({**rows, "epoch": [0, 1]}, 0, levels, n=1600), "qdyn_median", 4.0)
    put(monkeypatch, qdyn_table=long)
    (legend,) = drawn("qdyn_table", computed).legends
    assert legend.get_title().get_text() == "$N=1600$, 4 networks"
    (legend,) = drawn("qdyn_table", stored(long, "qdyn_median", 9.0)).legends
    assert legend.get_title().get_text() == "$N=1600$, 9 networks"


def capacities(depths: list[int], sizes: list[int]) -> xr.Dataset:
    """P_max = N L/10 at some depths and widths, and overlaps of three layers."""
    n, layers = np.array(sizes, dtype=float), np.array(depths, dtype=float)
    p_max = 0.1 * layers[:, None] * n
    row = {"slope": 0.1 * layers, "slope_error": 0.01 * layers, "intercept": 0 * layers}
    data = xr.Dataset(
        {
            "p_max": (("protocol", "layers", "n"), p_max[None]),
            "p_max_error": (("protocol", "layers", "n"), 0.05 * p_max[None]),
            **{name: (("protocol", "layers"), values[None]) for name, values in row.items()},
        },
        {"protocol": ["reconstruction"], "layers": depths, "n": sizes},
    )
    shown = {"overlap_median": 0.9, "overlap_median_error": 0.1, "overlap_low": 0.8}
    for name, value in {**shown, "overlap_high": 1.0}.items():
        data[name] = ("layer", np.full(3, value))
    scalars = {"overlap_layers": 3, "overlap_n": 30, "patterns_low": 9, "patterns_high": 12}
    return data.assign_coords(layer=[1, 2, 3], **scalars)


def test_capacities_of_the_stored_trials_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """With few points those of the figure; with more of the trial, these, and P = N along them."""
    computed, wide = capacities([3, 5], [60, 80]), capacities([2, 3, 5, 7], [200, 400, 600, 1000])
    wide["p_max"].loc[{"n": 1000}] = np.nan  # these trials are not done yet
    put(monkeypatch, capacity=capacities([3], [200, 400, 600]))
    assert points(drawn("capacity", computed), 0) == [60, 80]
    put(monkeypatch, capacity=wide)
    picture = drawn("capacity", computed)
    assert points(picture, 0) == [200, 400, 600]
    legend = picture.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text()[0] for text in legend.get_texts()] == list("2357")
    (diagonal,) = (line for line in picture.axes[0].lines if line.get_linestyle() == ":")
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata()) == [200, 600]
    put(monkeypatch)
    assert points(drawn("capacity", computed), 0) == [60, 80]


def test_the_reason_of_the_accuracies_is_what_is_stored() -> None:
    """Networks with other labels, and with shorter phases, too: the numbers in the words."""
    stored = Stored.of(Store())
    words = claim_named("accuracy-test-0.5-5.0-0.9").why
    place = 0
    for network in (usual_labels_network, partial(role_network, "full", 1600, 0.5)):
        rows = [[stored.metrics(network(seed), epoch) for seed in range(3)] for epoch in (20, 0)]
        end, start = ([row for row in row_of_epoch if row] for row_of_epoch in rows)
        assert (len(end), len(start)) == (3, 3)
        numbers = [
            *(np.mean([unpack(row[f"{x}_correct"]) for row in end]) for x in ("train", "test")),
            np.mean([row["phases"]["q_dyn"]["median"] for row in start]),
        ]
        for number in numbers:  # in this order
            place = words.index(f"{number:.3f}", place)
    # No initialisation row has lost what it says of the labels.
    fitted = [claim for claim in CLAIMS if claim.kind is Kind.RECONSTRUCTED]
    labels = [claim.data for claim in fitted if "labels" in claim.note]
    assert (labels.count("qdyn_table"), labels.count("mean_field")) == (26, 16)
    assert len(labels) == 42


def test_the_other_reasons_are_what_is_stored() -> None:
    """Of words that are given a number, of rules, and of the best row of the overlaps."""
    data = Stored.of(Store()).data

    def said(words: str) -> list[float]:
        return [float(one) for one in re.findall(r"\b0\.\d\d\b", words)]

    bench = data["performance_benchmarks"]
    wide = bench["mlp_accuracy"].sel(dataset="entangled_mnist", n=1000)
    assert said(WHY_LINEAR) == [round(float(one), 2) for one in (bench["linear_accuracy"], wide)]
    rules = data["symmetric_rules"]
    learnt = rules["training_accuracy"].sel(jd=0.5).round(2)
    slow, *others = said(WHY_SYM1)
    assert (learnt.sel(rule="sym1") == slow).all()
    rest = learnt.sel(rule=["asym", "sym0", "sym2"])
    assert [rest.min(), rest.max()] == others
    free = rules["test_accuracy"].sel(jd=0.0).round(2)
    assert (free.sel(scheme="approximate") == said(WHY_NO_BOOST)[0]).all()
    assert (free.sel(scheme="full") < 0.2).all()
    rows = data["qdyn_table"].sel(epoch=20)
    *best, training, test = said(WHY_OPTIMAL)
    for part in (f"training accuracy of {training:.2f}", f"test accuracy of {test:.2f}"):
        assert part in WHY_ACCURACIES  # compared above, to one digit more
    for name, number in zip(("training_accuracy", "test_accuracy"), best, strict=True):
        assert float(rows[name].max()) == rows[name].sel(jd=0.5, lambda_x=5.0, lambda_y=0.5)
        assert round(float(rows[name].max()), 2) == number


def test_what_is_stored_now_is_drawn() -> None:
    """The results of the repository: those of three data sets at N = 1000, and of q_dyn."""
    data = trained_networks.trial_data()
    assert np.isfinite(data["qdyn_table"]["qdyn_median"].values).sum() >= 8
    one = performance_benchmarks._one(benchmarks(3, [1000]), "mnist")
    assert (int(one["epochs"]), float(one["accuracy_networks"].sel(n=1000)) >= 2) == (20, True)


def test_new_results_make_pictures_stale(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("root")
    trained = folder / "figures" / "data" / "trained"
    trained.mkdir(parents=True)
    monkeypatch.setattr(making, "ROOT", folder)
    before = making.drawing_hash.__wrapped__()
    (trained / "run.json").write_text("{}")
    assert making.drawing_hash.__wrapped__() != before
    assert Store().path.name == "trained"
