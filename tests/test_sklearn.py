"""Modules as estimators: they pass scikit-learn's own checks, and work where its estimators do."""

import pickle
import warnings

import numpy as np
import pytest

import symgrad as sg

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from symgrad.sklearn import Classifier, Regressor

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
NAMES = np.where(X[:, 0] > X[:, 1], "left", "right")
SMALL = {"hidden": 8, "epochs": 12, "learning_rate": 0.05}


def narrow(features, outputs, key):
    """A net of float32 with state of its own, and noise in training."""
    first, second, third = sg.random.split(key, 3)
    return sg.nn.Sequential(
        sg.nn.Linear(features, 8, key=first, dtype="float32"),
        sg.nn.BatchNorm(8, dtype="float32"),
        sg.relu,
        sg.nn.Dropout(0.1, key=second),
        sg.nn.Linear(8, outputs, key=third, dtype="float32"),
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [Classifier, Regressor])
def test_scikit_learns_checks_pass(kind):
    estimator = kind(hidden=16, epochs=15, learning_rate=0.04)
    told = check_estimator(estimator, on_fail=None)
    assert len(told) > 45
    assert [one for one in told if one["status"] not in ("passed", "skipped")] == []


def test_a_search_in_a_pipeline_scores_and_clones():
    pipeline = make_pipeline(StandardScaler(), Classifier(**SMALL))
    assert cross_val_score(pipeline, X, NAMES, cv=2).mean() > 0.8
    search = GridSearchCV(pipeline, {"classifier__hidden": [1, 8]}, cv=2).fit(10 * X + 5, NAMES)
    assert search.best_score_ > 0.8
    fresh = clone(search.best_estimator_)
    assert not hasattr(fresh[-1], "net_")
    assert fresh[-1].get_params() == search.best_estimator_[-1].get_params()
    again = fresh.fit(10 * X + 5, NAMES)
    probabilities = search.predict_proba(10 * X)
    assert again.predict_proba(10 * X).tobytes() == probabilities.tobytes()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert set(search.predict(X)) <= {"left", "right"}


@pytest.mark.parametrize("estimator", [Classifier(narrow, **SMALL), Regressor(narrow, **SMALL)])
def test_a_module_of_ones_own_and_its_pickle(estimator):
    fitted = clone(estimator).fit(X, NAMES == "left")
    assert fitted.net_.parameters()[0].dtype == "float32"
    assert fitted.score(X, NAMES == "left") > 0.5
    assert len(fitted.history_.losses) == 12 * 2
    copied = pickle.loads(pickle.dumps(fitted))
    assert copied.predict(X).tobytes() == fitted.predict(X).tobytes()
    for alone in (0, 7):  # no noise, and no statistics of the batch
        row = X[alone : alone + 1]
        np.testing.assert_allclose(fitted.predict(row), fitted.predict(X)[alone], rtol=1e-5)


def test_several_targets_keep_their_form():
    targets = np.stack([X[:, 0], 2 * X[:, 1]], axis=1)
    fitted = Regressor(**(SMALL | {"epochs": 40})).fit(X, targets)
    assert fitted.predict(X).shape == (60, 2)
    assert fitted.score(X, targets) > 0.8
    assert fitted.fit(X, targets[:, 0]).predict(X).shape == (60,)
    assert fitted.fit(X, (10 * X[:, 0]).astype(int)).predict(X).dtype == "float64"


def test_data_that_do_not_fit_are_refused_as_scikit_learn_does():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = Classifier(**SMALL).fit(X, NAMES)
    for wrong in (X[:, :2], X * np.nan, X[0]):
        with pytest.raises(ValueError):
            fitted.predict(wrong)
    with pytest.raises(ValueError, match="Unknown label type"):
        Classifier().fit(X, X[:, 0])
