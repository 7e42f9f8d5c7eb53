"""Scorers within pipelines, searches and cross-validation; what they say when they cannot score."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from sklearn_xc.metrics import (
    TopKScorer,
    average_precision_at_k,
    coverage_at_k,
    get_scorer,
    hit_rate_at_k,
    lrap_at_k,
    macro_f1_at_k,
    ndcg_at_k,
    precision_at_k,
    propensity,
    psndcg_at_k,
    psp_at_k,
    recall_at_k,
    reciprocal_rank_at_k,
)

ALL = ("precision", "ndcg", "psp", "psndcg", "recall", "coverage", "macro_f1")
ALL += ("reciprocal_rank", "average_precision", "lrap", "hit_rate")
SHORT = ("P", "nDCG", "PSP", "PSnDCG", "R", "Cov", "MacroF1", "MRR", "MAP", "LRAP", "hit")


class CopyingClassifier(ClassifierMixin, BaseEstimator):
    """Take the columns of X as labels and their values as scores, plus `shift` columns."""

    def __init__(self, shift=0):
        self.shift = shift

    def fit(self, X, y, sample_weight=None):
        if sp.issparse(y) or np.ndim(y) == 2:
            self.classes_ = np.arange(y.shape[1])
            self.label_counts_ = np.asarray(y.sum(axis=0)).ravel()
        else:
            self.classes_, self.label_counts_ = np.unique(y, return_counts=True)
        self.n_samples_fit_ = X.shape[0]
        self.fit_weight_ = sample_weight
        return self

    def predict_topk(self, X, k=5):
        CopyingClassifier.n_passes += 1
        X = sp.csr_array(X)
        indices, scores = np.full((X.shape[0], k), -1), np.full((X.shape[0], k), -np.inf)
        for row in range(X.shape[0]):
            stored = slice(X.indptr[row], X.indptr[row + 1])
            best = np.argsort(-X.data[stored], kind="stable")[:k]
            labels = (X.indices[stored][best] + self.shift) % len(self.classes_)
            indices[row, : len(best)], scores[row, : len(best)] = labels, X.data[stored][best]
        return indices, scores

    n_passes = 0


@pytest.fixture
def copying_classifier():
    """Return the class, its count of top-k passes at zero."""
    CopyingClassifier.n_passes = 0
    return CopyingClassifier


def indicator_problem(n_samples=60, n_labels=30, seed=0):
    """Return features that mostly are the labels, and a sparse indicator of about 4 per row."""
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(n_samples), 4)
    Y = sp.csr_matrix(
        (np.ones(rows.size), (rows, rng.integers(0, n_labels, rows.size))), (n_samples, n_labels)
    )
    Y.sum_duplicates()  # some versions of scipy keep them
    Y.data[:] = 1
    kept = Y.copy()
    kept.data = rng.random(Y.nnz) * (rng.random(Y.nnz) < 0.7)
    noise = (0.5 * rng.random(rows.size), (rows, rng.integers(0, n_labels, rows.size)))
    X = kept + sp.csr_matrix(noise, Y.shape)
    return X, Y


def class_problem(labels=("ant", "bee", "cat", "dog"), n_samples=40):
    """Return features whose largest column is mostly the position of the class."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, len(labels), n_samples)
    X = rng.random((n_samples, len(labels)))
    X[np.arange(n_samples), y] += 0.5
    return X, np.asarray(labels)[y]


def test_all_metrics_come_from_one_pass(copying_classifier):
    X, Y = indicator_problem()
    model = copying_classifier().fit(X, Y)
    scores = TopKScorer(ks=(1, 3), metrics=ALL)(model, X, Y)
    assert copying_classifier.n_passes == 1
    assert list(scores) == [f"{m}@{k}" for m in SHORT for k in (1, 3)]
    assert {type(value) for value in scores.values()} == {float}
    ranked = model.predict_topk(X, 3)
    p = propensity(model.label_counts_, model.n_samples_fit_)
    for k in (1, 3):
        assert scores[f"P@{k}"] == precision_at_k(Y, ranked, k)
        assert scores[f"nDCG@{k}"] == ndcg_at_k(Y, ranked, k)
        assert scores[f"R@{k}"] == recall_at_k(Y, ranked, k)
        assert scores[f"MRR@{k}"] == reciprocal_rank_at_k(Y, ranked, k)
        assert scores[f"MAP@{k}"] == average_precision_at_k(Y, ranked, k)
        assert scores[f"LRAP@{k}"] == lrap_at_k(Y, ranked, k)
        assert scores[f"hit@{k}"] == hit_rate_at_k(Y, ranked, k)
        assert scores[f"Cov@{k}"] == coverage_at_k(Y, ranked, k)
        assert scores[f"MacroF1@{k}"] == macro_f1_at_k(Y, ranked, k)
        assert scores[f"PSP@{k}"] == psp_at_k(Y, ranked, k, propensities=p)
        assert scores[f"PSnDCG@{k}"] == psndcg_at_k(Y, ranked, k, propensities=p)
    assert len({round(value, 12) for value in scores.values()}) > 6
    assert scores == {name: get_scorer(name)(model, X, Y) for name in scores}


def test_grid_search_with_50_000_labels_makes_nothing_dense(copying_classifier):
    X, Y = indicator_problem(n_samples=1_500, n_labels=50_000)
    pipeline = make_pipeline(MaxAbsScaler(), copying_classifier())
    search = GridSearchCV(
        pipeline,
        {"copyingclassifier__shift": [1, 0]},
        scoring=TopKScorer(),
        refit="P@1",
        cv=2,
        error_score="raise",
    )
    tracemalloc.start()
    try:
        search.fit(X, Y)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 0.25 * Y.shape[0] * Y.shape[1]  # a dense bool array of half the rows: 0.5
    assert search.best_params_ == {"copyingclassifier__shift": 0}
    assert search.cv_results_["mean_test_P@1"][0] < 0.01 < search.best_score_
    names = {name for name in search.cv_results_ if name.startswith("mean_test")}
    assert names == {f"mean_test_{m}@{k}" for m in ("P", "nDCG", "PSP") for k in (1, 3, 5)}
    # The search itself is scored as the estimator that it found.
    assert TopKScorer()(search, X, Y) == TopKScorer()(search.best_estimator_, X, Y)


def test_propensities_default_to_those_of_the_rows_fitted_on(copying_classifier):
    X, Y = indicator_problem()
    half = slice(0, 30)
    model = make_pipeline(MaxAbsScaler(), copying_classifier()).fit(X[half], Y[half])
    scaled = model[0].transform(X)
    counts = np.asarray(Y[half].sum(axis=0)).ravel()
    scores = {
        name: psp_at_k(Y, model[-1].predict_topk(scaled, 3), 3, propensities=p)
        for name, p in {
            "train": propensity(counts, 30, "amazon"),
            "given": np.linspace(0.1, 1, Y.shape[1]),
        }.items()
    }
    assert scores["train"] != pytest.approx(scores["given"])
    scorer = TopKScorer(ks=(3,), metrics=("psp",), preset="amazon")
    assert scorer(model, X, Y) == {"PSP@3": scores["train"]}
    given = np.linspace(0.1, 1, Y.shape[1])
    assert get_scorer("PSP@3", propensities=given)(model, X, Y) == scores["given"]


def test_sample_weight(copying_classifier):
    X, Y = indicator_problem()
    model = copying_classifier().fit(X, Y)
    weight = np.arange(60) % 3
    repeated = np.repeat(np.arange(60), weight)
    scorer = TopKScorer(metrics=ALL)
    assert scorer(model, X, Y, sample_weight=weight) == pytest.approx(
        scorer(model, X[repeated], Y[repeated])
    )
    assert scorer(model, X, Y, weight) != pytest.approx(scorer(model, X, Y))


@pytest.mark.parametrize(
    "make", [lambda: TopKScorer((1,), ("precision",)), lambda: get_scorer("P@1")]
)
def test_metadata_routing_brings_the_weights_of_the_test_rows(copying_classifier, make):
    X, Y = indicator_problem()
    dense = Y.toarray().astype(np.int64)
    weight = np.arange(60) % 3
    test = np.arange(30)
    model = copying_classifier().fit(X[30:], Y[30:])
    expected = get_scorer("P@1")(model, X[test], Y[test], sample_weight=weight[test])
    arguments = {"cv": [(np.arange(30, 60), test)], "params": {"sample_weight": weight}}
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make().set_score_request(sample_weight=True)
        model.set_fit_request(sample_weight=True)
        result = cross_validate(model, X, dense, scoring=scorer, return_estimator=True, **arguments)
        key = "test_P@1" if isinstance(scorer, TopKScorer) else "test_score"
        assert result[key] == [expected]
        np.testing.assert_array_equal(result["estimator"][0].fit_weight_, weight[30:])
        unweighted = make().set_score_request(sample_weight=False)
        result = cross_validate(model, X, dense, scoring=unweighted, **arguments)
        assert result[key] == [get_scorer("P@1")(model, X[test], Y[test])]
        assert result[key] != [expected]
        with pytest.raises(UnsetMetadataPassedError, match=r"sample_weight.*not explicitly set"):
            cross_validate(model, X, dense, scoring=make(), **arguments)
    with pytest.raises(RuntimeError, match="enable_metadata_routing=True"):
        make().set_score_request(sample_weight=True)


def test_get_scorer_names():
    for names in (("P@3", "precision@3"), ("cov@3", "Coverage@3"), ("macro_f1@3", "MACROF1@3")):
        first, other = map(get_scorer, names)
        assert (first.ks, first.metrics) == (other.ks, other.metrics)
    assert get_scorer("psndcg@2", preset="amazon").preset == "amazon"
    assert get_scorer("accuracy")._score_func is sklearn.metrics.accuracy_score
    assert get_scorer(print) is print
    assert get_scorer(None) is None


@pytest.mark.parametrize("name", ["P@1", "MacroF1@10"])
def test_scikit_learn_knows_the_names(name, copying_classifier):
    X, Y = indicator_problem()
    for scoring in (name, [name]):
        found = cross_validate(copying_classifier(), X, Y.toarray(), scoring=scoring, cv=2)
        expected = cross_validate(
            copying_classifier(), X, Y.toarray(), scoring=get_scorer(name), cv=2
        )
        key = "test_score" if scoring is name else f"test_{name}"
        np.testing.assert_array_equal(found[key], expected["test_score"])
    search = GridSearchCV(copying_classifier(), {"shift": [0]}, scoring=name, cv=2)
    assert search.fit(X, Y).best_score_ == expected["test_score"].mean()


@pytest.mark.parametrize("name", ["P@0", "P@1.5", "AUC@3"])
def test_unknown_name(name):
    with pytest.raises(
        ValueError, match=f'scoring must be "P@k", "nDCG@k", .*"R@k".* Got {name!r}'
    ):
        get_scorer(name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ks": ()}, "k: expected an int of at least 1, or a sequence of them"),
        ({"metrics": "psp"}, "metrics: .* Got 'psp'"),
        ({"metrics": ("psp", "map")}, "metrics: .* Got .'psp', 'map'"),
        ({"preset": "eurlex"}, "preset: expected one of .* Got 'eurlex'"),
    ],
)
def test_wrong_parameters_fail_before_any_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        TopKScorer(**arguments)


def test_errors_of_scoring(copying_classifier):
    X, Y = indicator_problem()
    model = copying_classifier().fit(X, Y)
    with pytest.raises(
        ValueError, match="y has 29 label columns, the estimator was fitted with 30"
    ):
        TopKScorer()(model, X, Y[:, :29])
    del model.label_counts_
    assert get_scorer("P@1")(model, X, Y) > 0
    with pytest.raises(ValueError, match=r"Pipeline has no label_counts_ .*Pass propensities="):
        TopKScorer()(make_pipeline(model), X, Y)
    X, y = class_problem()
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"Y_true: .* such as .*'ant'.*Got 0 at row 0"):
        TopKScorer()(model, X, np.arange(40) % 4)
    del model.classes_
    with pytest.raises(ValueError, match="CopyingClassifier has no classes_"):
        _without_classes(model, X, y)


def _without_classes(model, X, y):
    model.predict_topk = lambda X, k: (np.zeros((len(X), k), dtype=int) - 1, np.zeros((len(X), k)))
    TopKScorer()(model, X, y)


def test_import_does_not_start_the_compiler():
    code = "import sys, sklearn_xc.metrics; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
