"""The scikit-learn classifier: its checks, pipelines, and equality with the functional core."""

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from joblib import parallel_config
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from rmsim.data import synthetic
from rmsim.learning import epoch_order, initialise, predict, train_epoch
from rmsim.learning.estimator import RMClassifier
from rmtheory.base.errors import InvalidInputError, NotConvergedError
from tests.forked import in_child

pytestmark = pytest.mark.numerical

DATA = synthetic(classes=4, train=200, test=200)
X, Y = DATA.train.inputs, DATA.train.labels


def small(**others: Any) -> RMClassifier:
    return RMClassifier(**{"n": 50, "epochs": 2, **others})


def test_scikit_learn_accepts_it() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the data that the checks use
        answers = check_estimator(RMClassifier(n=60, epochs=4), on_fail=None)
    failed = {
        answer["check_name"]: answer["exception"]
        for answer in answers
        if answer["status"] == "failed"
    }
    assert failed == {}
    # None is excluded by us (no expected failures are named); those that scikit-learn skips itself
    # are for a setting of its own (the array API) or for estimators of another kind.
    left_out = {answer["check_name"] for answer in answers if answer["status"] == "skipped"}
    assert left_out <= {"check_array_api_input"}
    assert sum(answer["status"] == "passed" for answer in answers) > 40


def assert_equal_fits(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert other["test_score"].tolist() == one["test_score"].tolist()
    for alone, beside in zip(one["estimator"], other["estimator"], strict=True):
        for name, weights in alone.state_.tensors().items():
            assert torch.equal(beside.state_.tensors()[name], weights), name


def validated() -> dict[str, Any]:
    """Three fits; at a time, if a configuration of joblib says so."""
    fits: dict[str, Any] = cross_validate(small(n=40, epochs=1), X, Y, cv=3, return_estimator=True)
    return fits


def test_fits_side_by_side_in_threads() -> None:
    alone = validated()
    with parallel_config(backend="threading", n_jobs=3):
        assert_equal_fits(alone, validated())


def test_a_fit_in_another_process() -> None:
    """What a worker of joblib does: the model arrives as bytes, the fitted one goes back so."""

    def work(model: bytes) -> bytes:
        return pickle.dumps(pickle.loads(model).fit(X, Y))

    here = small(n=40, epochs=1).fit(X, Y)
    there = pickle.loads(in_child(work, pickle.dumps(small(n=40, epochs=1))))
    for name, weights in here.state_.tensors().items():
        assert torch.equal(there.state_.tensors()[name], weights), name
    assert np.array_equal(there.predict_proba(X), here.predict_proba(X))


def test_it_is_the_functional_core() -> None:
    fitted = small(random_state=5).fit(X, Y)
    state = initialise(fitted.parameters_, 100, 4, 5)
    for epoch in range(2):
        state = train_epoch(
            fitted.parameters_, state, torch.tensor(X), torch.tensor(Y), epoch_order(5, epoch, 200)
        )
    assert torch.equal(fitted.state_.j, state.j)
    assert torch.equal(fitted.state_.w_out, state.w_out)
    wanted = predict(fitted.parameters_, state, torch.tensor(DATA.test.inputs))
    assert np.array_equal(fitted.predict(DATA.test.inputs), wanted.numpy())
    assert fitted.parameters_.w_back.label_true == 1  # sqrt(4)/2


def test_partial_fit_is_one_epoch_of_fit() -> None:
    whole = small().fit(X, Y)
    steps = small().partial_fit(X, Y).partial_fit(X, Y)
    assert torch.equal(whole.state_.j, steps.state_.j)
    stream = small().partial_fit(X[:4], Y[:4], classes=[0, 1, 2, 3, 7])
    assert stream.classes_.tolist() == [0, 1, 2, 3, 7]
    stream.partial_fit(X[4:20], np.where(Y[4:20] == 0, 7, Y[4:20]))
    with pytest.raises(InvalidInputError, match="one of the classes 0, 1, 2, 3, 7, got 5"):
        stream.partial_fit(X[:4], [0, 1, 5, 3])
    with pytest.raises(ValueError, match="100 features"):
        stream.partial_fit(X[:4, :50], Y[:4])


def test_pipelines_and_searches() -> None:
    names = np.array(["north", "east", "south", "west"])[Y]
    model = make_pipeline(StandardScaler(), small())
    assert cross_val_score(model, X, names, cv=2).min() > 0.8
    search = GridSearchCV(small(), {"n": [20, 50], "settings": [None, {"eta_j": 0.0}]}, cv=2)
    assert search.fit(X, names).score(DATA.test.inputs, np.array(names[:4])[DATA.test.labels]) > 0.8
    copy = clone(search.best_estimator_)
    assert copy.get_params() == search.best_estimator_.get_params()
    assert not hasattr(copy, "state_")
    assert copy.set_params(n=30).fit(X, names).states(X).shape == (200, 30)


def test_probe_and_seeds() -> None:
    probe = small(readout="probe", preset="entangled-mnist-sparse", n=200).fit(X, Y)
    assert probe.score(DATA.test.inputs, DATA.test.labels) > 0.9
    assert set(np.unique(probe.states(X))) == {-1, 1}
    random = [small(random_state=np.random.RandomState(k)).fit(X, Y).seed_ for k in (0, 0, 1)]
    assert random[0] == random[1] != random[2]
    with pytest.raises(InvalidInputError, match="readout must be perceptron for partial_fit"):
        probe.partial_fit(X, Y)


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ({"n": 3}, "such that 4 classes fit"),
        ({"epochs": 0}, "epochs must be an integer >= 1"),
        ({"readout": "oracle"}, "readout must be one of perceptron, probe"),
        ({"preset": "nosuch"}, "preset must be one of"),
        ({"settings": {"eta": 1}}, "parameter must be a parameter that exists, such as eta_j"),
        ({"settings": {"lam": 1}}, "such as lam_left or lam_right"),
        ({"settings": {"jd": "a"}}, "jd must be a finite real number, got a"),
        ({"settings": [1]}, "settings must be a dict of parameters"),
        ({"settings": {"n": 9}}, "settings must be another parameter"),
        ({"settings": {"classes": 4}}, "settings must be another parameter"),
        ({"settings": {"readout": "none"}}, "readout must be probe"),
        ({"device": "abacus"}, "device must be"),
        ({"random_state": -1}, "seed must be an integer"),
        ({"settings": {"decay_j": 1e9}}, "decay_j must be at most"),
    ],
)
def test_bad_parameters(others: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        small(**others).fit(X, Y)


def test_weights_that_overflow_are_told() -> None:
    with pytest.raises(NotConvergedError, match="no longer finite"):
        small(settings={"eta_back": 1e30, "label_true": 1e9}).fit(X, Y)


def test_bad_samples() -> None:
    with pytest.raises(InvalidInputError, match="of 2 classes or more"):
        small().fit(X, np.zeros(200))
    with pytest.raises(ValueError, match="NaN"):
        small().fit(np.full((4, 2), np.nan), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="Unknown label type"):
        small().fit(X, np.linspace(0, 1, 200))
