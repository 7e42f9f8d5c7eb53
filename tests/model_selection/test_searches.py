"""Searches of a sparse y, by this package's scorings, with ``predict_topk``."""

import inspect
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
import sklearn.model_selection
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import sklearn_xc.model_selection
from sklearn_xc import OvALinearXC, TextClassifierXC, topk
from sklearn_xc.metrics import TopKScorer, get_scorer
from sklearn_xc.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    RandomizedSearchCV,
    RareLabelSplit,
    cross_val_score,
    cross_validate,
)

CS = [0.01, 1.0, 100.0]
SEARCHES = {
    GridSearchCV: {"param_grid": {"C": CS}},
    RandomizedSearchCV: {"param_distributions": {"C": CS}, "n_iter": 2, "random_state": 0},
    HalvingGridSearchCV: {"param_grid": {"C": CS}, "random_state": 0},
    HalvingRandomSearchCV: {
        "param_distributions": {"C": CS},
        "n_candidates": 3,
        "random_state": 0,
    },
}
everyone = pytest.mark.parametrize("kind", SEARCHES)
everyone_at_once = pytest.mark.parametrize("kind", [GridSearchCV, RandomizedSearchCV])


class CountingClassifier(OvALinearXC):
    """Counts fits, and passes over X for the best labels."""

    n_fits = n_passes = 0

    def fit(self, X, y, sample_weight=None):
        CountingClassifier.n_fits += 1
        return super().fit(X, y, sample_weight=sample_weight)

    def predict_topk(self, X, k=5):
        CountingClassifier.n_passes += 1
        return super().predict_topk(X, k)


@pytest.fixture(autouse=True)
def _counts_at_zero():
    CountingClassifier.n_fits = CountingClassifier.n_passes = 0


@pytest.fixture(scope="module")
def data():
    """Return X (90, 12) and a sparse indicator (90, 6)."""
    rng = np.random.default_rng(0)
    Y = sp.random_array((90, 6), density=0.3, random_state=rng, format="csr")
    Y.data[:] = 1
    return Y @ rng.normal(0, 1, (6, 12)) + rng.normal(0, 1, (90, 12)), Y


def test_a_search_of_texts_explains_texts():
    texts, names = ["hot soup", "rye bread", "soup stock", "old bread"] * 3, None
    names = [["soup"] if "soup" in text else ["bread"] for text in texts]
    tagger = TextClassifierXC(classifier=OvALinearXC(prune=0))
    search = GridSearchCV(tagger, {"classifier__C": [0.5, 1.0]}, cv=2, scoring="P@1")
    search.fit(texts, names)
    found = search.explain("hot soup", "soup")
    assert str(found) == str(search.best_estimator_.explain("hot soup", "soup"))
    assert found.features[0] == "soup"
    with pytest.raises(TypeError, match="feature_names: TextClassifierXC takes none"):
        search.explain("hot soup", "soup", feature_names=["a"])


def a_search(kind, estimator=None, **further):
    estimator = OvALinearXC() if estimator is None else estimator
    return kind(estimator, **{"cv": 3, **SEARCHES[kind], **further})


@everyone
class TestScoring:
    def test_a_name(self, kind, data):
        X, Y = data
        search = a_search(kind, scoring="P@3").fit(X, Y)
        by_scorer = a_search(kind, scoring=get_scorer("P@3")).fit(X, Y)
        np.testing.assert_array_equal(
            search.cv_results_["mean_test_score"], by_scorer.cv_results_["mean_test_score"]
        )
        assert search.score(X, Y) == get_scorer("P@3")(search.best_estimator_, X, Y)
        assert search.scoring == "P@3"
        last = search.cv_results_["params"].index(search.best_params_)
        if kind in (GridSearchCV, RandomizedSearchCV):
            model = OvALinearXC(**search.cv_results_["params"][last])
            scores = cross_val_score(model, X, Y, cv=3, scoring="P@3")
            assert search.best_score_ == pytest.approx(scores.mean())

    @pytest.mark.parametrize(
        ("scoring", "names"),
        [
            (["P@1", "ndcg@2"], ["P@1", "ndcg@2"]),
            (("PSP@1", "P@1"), ["PSP@1", "P@1"]),
            ({"a": "P@2", "b": "R@2"}, ["a", "b"]),
            (TopKScorer((2, 1), ("ndcg", "psp")), ["nDCG@2", "nDCG@1", "PSP@2", "PSP@1"]),
        ],
        ids=["list", "tuple", "dict", "scorer"],
    )
    def test_several_metrics_of_one_pass(self, kind, scoring, names, data):
        X, Y = data
        search = a_search(kind, CountingClassifier(), scoring=scoring).fit(X, Y)
        # Training rows are scored by halving as well.
        per_fit = 2 if search.return_train_score else 1
        n_fits = CountingClassifier.n_fits - 1  # the last is of all rows
        assert CountingClassifier.n_passes == per_fit * n_fits
        for name in names:
            assert f"mean_test_{name}" in search.cv_results_
        first = search.cv_results_[f"mean_test_{names[0]}"]
        if kind in (GridSearchCV, RandomizedSearchCV):
            assert search.best_score_ == first.max()
        else:
            np.testing.assert_array_equal(first, search.cv_results_["mean_test_score"])
        by_name = a_search(kind, scoring=scoring, refit=names[1]).fit(X, Y)
        assert by_name.refit == names[1]
        assert search.refit is True
        values = TopKScorer((1, 2), ("precision", "ndcg", "psp", "recall"))(by_name, X, Y)
        meant = {"ndcg@2": "nDCG@2", "b": "R@2"}.get(names[1], names[1])
        assert by_name.score(X, Y) == pytest.approx(values[meant])

    @pytest.mark.parametrize(
        ("scoring", "refit"),
        [("P@1", "P@2"), (["P@1", "P@2"], "P@3"), ({"a": "P@1"}, "P@1"), (TopKScorer((1,)), "R@1"),
         ("accuracy", "P@1")],
    )  # fmt: skip
    def test_a_refit_of_no_metric_fails_at_once(self, kind, scoring, refit, data):
        search = a_search(kind, CountingClassifier(), scoring=scoring, refit=refit)
        message = rf"{kind.__name__}: refit must be .* one of the metrics '.*'\. Got {refit!r}"
        with pytest.raises(ValueError, match=message):
            search.fit(*data)
        assert CountingClassifier.n_fits == 0
        assert search.refit == refit

    def test_an_unknown_name_fails_at_once(self, kind, data):
        with pytest.raises(ValueError, match=r"scoring must be \"P@k\".* Got 'P@one'"):
            a_search(kind, CountingClassifier(), scoring="P@one").fit(*data)
        assert CountingClassifier.n_fits == 0

    def test_without_scoring(self, kind, data):
        X, Y = data
        search = a_search(kind).fit(X, Y)
        assert search.score(X, Y) == search.best_estimator_.score(X, Y)

    def test_an_error_leaves_what_the_user_set(self, kind, data):
        cv = KFold(3)
        search = a_search(
            kind, OvALinearXC(loss="none"), scoring=["P@1"], cv=cv, error_score="raise"
        )
        with pytest.raises(ValueError, match="loss"):
            search.fit(*data)
        assert (search.scoring, search.refit) == (["P@1"], True)
        assert search.cv is cv


@everyone_at_once
def test_scorings_of_both_packages(kind, data):
    X, Y = data

    def always_two(estimator, X, y):
        return 2.0

    search = a_search(kind, scoring={"p": "P@1", "two": always_two}, refit="p").fit(X, Y)
    assert (search.cv_results_["mean_test_two"] == 2).all()
    alone = a_search(kind, scoring="P@1").fit(X, Y)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_p"], alone.cv_results_["mean_test_score"]
    )
    chosen = a_search(kind, scoring=TopKScorer(), refit=lambda results: 1).fit(X, Y)
    assert chosen.best_index_ == 1
    none = a_search(kind, scoring=TopKScorer(), refit=False).fit(X, Y)
    assert not hasattr(none, "best_estimator_")


@everyone
class TestLifeInScikitLearn:
    def test_clone_repr_and_pickle(self, kind, data):
        X, Y = data
        search = a_search(kind, scoring=["P@1", "P@2"], cv=RareLabelSplit(3))
        copy = clone(search)
        assert repr(copy) == repr(search)
        assert repr(search).startswith(f"{kind.__name__}(cv=RareLabelSplit(n_splits=3")
        assert copy.get_params()["scoring"] == ["P@1", "P@2"]
        copy.set_params(estimator__C=3.0, scoring="P@1")
        search.fit(X, Y)
        again = pickle.loads(pickle.dumps(search))
        assert again.score(X, Y) == search.score(X, Y)
        assert again.scoring == ["P@1", "P@2"]

    def test_topk(self, kind, data):
        X, Y = data
        model = make_pipeline(MaxAbsScaler(), OvALinearXC())
        grid = {name: {"ovalinearxc__C": CS} for name in SEARCHES[kind] if name.startswith("param")}
        search = a_search(kind, model, scoring="P@1", **grid)
        assert hasattr(search, "predict_topk")
        with pytest.raises(sklearn.exceptions.NotFittedError):
            search.predict_topk(X)
        search.fit(X, Y)
        expected = topk(search.best_estimator_, X, 3)
        for found in (search.predict_topk(X, 3), search.predict_topk(X, k=3), topk(search, X, 3)):
            np.testing.assert_array_equal(found, expected)
        assert search.predict_topk(X)[0].shape == (90, 5)
        assert not hasattr(clone(search).set_params(refit=False), "predict_topk")
        with pytest.raises(AttributeError, match="predict_topk"):
            clone(search).set_params(refit=False).predict_topk(X)
        assert not hasattr(a_search(kind, LogisticRegression()), "predict_topk")

    def test_explanations(self, kind, data):
        X, Y = data
        names = [f"f{at}" for at in range(12)]
        model = make_pipeline(MaxAbsScaler(), OvALinearXC(prune=0))
        grid = {name: {"ovalinearxc__C": CS} for name in SEARCHES[kind] if name.startswith("param")}
        search = a_search(kind, model, scoring="P@1", **grid)
        with pytest.raises(sklearn.exceptions.NotFittedError):
            search.explain(X[0], 2)
        search.fit(pd.DataFrame(X, columns=names), Y)
        scaler, inside = search.best_estimator_[0], search.best_estimator_[1]
        row = pd.DataFrame(X[[0]], columns=names)
        expected = inside.explain(scaler.transform(row), 2, feature_names=names, n_features=3)
        assert str(search.explain(row, 2, n_features=3)) == str(expected)
        assert all(name in names for name in search.explain(row, 2).features)
        renamed = search.explain(row, 2, feature_names=[name.upper() for name in names])
        assert all(name.startswith("F") for name in renamed.features)
        assert not hasattr(clone(search).set_params(refit=False), "explain")
        assert not hasattr(a_search(kind, LogisticRegression()), "explain")

    @pytest.mark.parametrize("container", ["dense", "classes", "sparse"])
    def test_of_any_y(self, kind, container, data):
        X, Y = data
        y = {"dense": Y.toarray().astype(int), "classes": np.arange(90) % 3, "sparse": Y}[container]
        search = a_search(kind, scoring="P@1", cv=RareLabelSplit(2)).fit(X, y)
        assert np.isfinite(search.best_score_)
        assert search.predict(X).shape == y.shape

    def test_within_a_cross_validation(self, kind, data):
        X, Y = data
        search = a_search(kind, scoring=TopKScorer(), cv=RareLabelSplit(2))
        result = cross_validate(search, X, Y, cv=2, scoring=["P@1", "PSP@3"], n_jobs=2)
        for number, (train, test) in enumerate(KFold(2).split(X)):
            fitted = clone(search).fit(X[train], Y[train])
            values = TopKScorer((1, 3))(fitted, X[test], Y[test])
            assert result["test_P@1"][number] == pytest.approx(values["P@1"])
            assert result["test_PSP@3"][number] == pytest.approx(values["PSP@3"])
        without = cross_val_score(search, X, Y, cv=2)
        np.testing.assert_allclose(without, result["test_P@1"])

    @pytest.mark.parametrize("scoring", ["one", "many"])
    def test_weights_are_routed(self, kind, scoring, data):
        X, Y = data
        weight = np.repeat([0.1, 3.0], 45)

        def scorer():
            return TopKScorer((1,)) if scoring == "many" else get_scorer("P@1")

        whole = OvALinearXC(prune=0)  # on so few rows pruning may cost enough to be warned of
        plain = a_search(kind, whole, scoring=scorer()).fit(X, Y, sample_weight=weight)
        unweighted = a_search(kind, whole, scoring=scorer()).fit(X, Y)
        with sklearn.config_context(enable_metadata_routing=True):
            model = clone(whole).set_fit_request(sample_weight=True)
            asking = scorer().set_score_request(sample_weight=True)
            routed = a_search(kind, model, scoring=asking).fit(X, Y, sample_weight=weight)
            value = routed.score(X, Y, sample_weight=weight)
            a_search(kind, whole, scoring=["P@1", "P@2"]).fit(X, Y)
        assert value == get_scorer("P@1")(routed.best_estimator_, X, Y, sample_weight=weight)
        assert routed.best_score_ != unweighted.best_score_
        if sklearn.__version__ >= "1.9":  # earlier ones score without weights
            assert plain.best_score_ == routed.best_score_

    def test_same_parameters_as_scikit_learn(self, kind):
        ours = inspect.signature(kind).parameters
        theirs = inspect.signature(getattr(sklearn.model_selection, kind.__name__)).parameters
        assert list(map(str, ours.values())) == list(map(str, theirs.values()))


@everyone
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"cv": StratifiedKFold(2)}, "cv: StratifiedKFold.* Use RareLabelSplit"),
        ({"cv": []}, "cv gives no folds"),
        ({"cv": [([0, 1], [90])] * 2}, "the test rows of fold 0 must be from 0 to 89. Got 90"),
        ({"cv": "five"}, "'cv' parameter .* Got 'five'"),
        ({"scoring": 3}, "'scoring' parameter .* Got 3"),
        ({"n_jobs": 0.5}, "'n_jobs' parameter .* Got 0.5"),
    ],
)
def test_bad_arguments(kind, changed, message, data):
    with pytest.raises(ValueError, match=message):
        a_search(kind, **{"scoring": "P@1", **changed}).fit(*data)


@everyone
def test_malformed_input(kind, malformed, data):
    X, Y = data
    for name, arguments in (("X", (malformed(sp.csr_array(X)), Y)), ("y", (X, malformed(Y)))):
        with pytest.raises(ValueError, match=f"{kind.__name__}: {name}: this .* is malformed"):
            a_search(kind).fit(*arguments)


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_matrix, lambda Y: Y.toarray()])
def test_halving_begins_with_two_positives_per_label_and_fold(data, container):
    X, Y = data
    rows = int(np.ceil(6 / (Y.nnz / 90)))
    search = a_search(
        HalvingGridSearchCV, scoring="P@1", cv=2, factor=2, min_resources="smallest"
    ).fit(X, container(Y))
    assert search.min_resources_ == 2 * 2 * rows < 45
    wide = sp.hstack([Y, sp.csr_array(np.eye(90))], format="csr")
    search = a_search(
        HalvingGridSearchCV, scoring="P@1", cv=3, factor=2, min_resources="smallest"
    ).fit(X, container(wide))
    assert search.min_resources_ == 42  # seven rows, of which 2 * 3 are the last below a half


def test_halving_needs_the_same_folds_again(data):
    with pytest.raises(ValueError, match="consistent folds"):
        a_search(HalvingGridSearchCV, cv=RareLabelSplit(2, shuffle=True)).fit(*data)


def test_halving_is_enabled_on_demand():
    code = (
        "import sklearn_xc.model_selection as ours, sklearn.model_selection as theirs\n"
        "assert 'HalvingGridSearchCV' not in vars(theirs)\n"
        "ours.HalvingGridSearchCV; theirs.HalvingGridSearchCV"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'HalvingSearch'"):
        sklearn_xc.model_selection.HalvingSearch  # noqa: B018
    assert dir(sklearn_xc.model_selection) == sorted(sklearn_xc.model_selection.__all__)


def test_scikit_learn_still_counts_classes_where_we_expect():
    """If this fails, a new scikit-learn changed its inside: see ``_halving.py``."""
    theirs = sklearn.model_selection.HalvingGridSearchCV._check_input_parameters
    assert list(inspect.signature(theirs).parameters) == ["self", "X", "y", "split_params"]
