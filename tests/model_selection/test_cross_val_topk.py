"""Out-of-fold scores against fits by hand."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from joblib import parallel_config
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from sklearn_xc import ImplicitSoftmaxSGD, OvALinearXC, TextClassifierXC, topk
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.metrics import precision_at_k
from sklearn_xc.model_selection import cross_val_topk

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.UnseenLabelWarning"),
]


@pytest.fixture(scope="module")
def data():
    return make_xc_classification(
        n_samples=120, n_features=60, n_labels=20, random_state=0, return_X_y=True
    )


def by_hand(estimator, X, Y, folds, k):
    """Return a dense array of the scores, NaN where there is none."""
    expected = np.full(Y.shape, np.nan)
    for train, test in folds:
        fitted = sklearn.clone(estimator).fit(X[train], Y[train])
        labels, scores = topk(fitted, X[test], k)
        expected[test[:, None], labels] = scores
    return expected


def with_gaps(scores):
    """Return a CSR as a dense array, NaN where nothing is stored."""
    dense = np.full(scores.shape, np.nan)
    rows = np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))
    dense[rows, scores.indices] = scores.data
    return dense


@pytest.mark.parametrize("container", [sp.csr_matrix, lambda Y: Y.toarray()])
def test_each_row_is_scored_by_a_model_without_it(container, data):
    X, Y = data
    estimator = make_pipeline(MaxAbsScaler(), OvALinearXC())
    scores = cross_val_topk(estimator, X, container(Y), cv=3, k=4)
    assert isinstance(scores, sp.csr_array)
    assert scores.shape == Y.shape
    assert scores.has_sorted_indices
    expected = by_hand(estimator, X, Y, KFold(3).split(X), 4)
    np.testing.assert_array_equal(with_gaps(scores), expected)
    assert precision_at_k(Y, scores, k=1) > 0.3


def test_all_scores_are_those_of_scikit_learn(data):
    X, Y = data
    model = OneVsRestClassifier(LogisticRegression())
    expected = cross_val_predict(model, X, Y.toarray(), cv=4, method="decision_function")
    scores = cross_val_topk(model, X, Y, cv=4, k=1000)
    np.testing.assert_allclose(with_gaps(scores), expected)


def test_jobs_change_no_bit(data):
    with parallel_config("threading"):
        one, two = (cross_val_topk(OvALinearXC(), *data, k=3, n_jobs=n) for n in (None, 2))
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_folds_that_lack_a_class():
    X = np.tile(np.eye(4), (3, 1))
    y = np.array(["d", "b", "a", "c"] * 3)
    y[0] = "single"  # in the test rows of the first fold only
    softmax = ImplicitSoftmaxSGD(max_iter=3, random_state=0)
    scores = cross_val_topk(softmax, X, y, cv=KFold(3), k=5)
    dense = with_gaps(scores)
    assert dense.shape == (12, 5)
    assert np.isnan(dense[:4, 4]).all()
    assert np.isfinite(dense[:4, :4]).all()
    assert np.isfinite(dense[4:]).all()
    best = np.array(["a", "b", "c", "d", "single"])[np.nanargmax(dense, axis=1)]
    assert (best[1:4] == y[1:4]).all()


@pytest.mark.parametrize("is_joined", [True, False])
def test_names_that_a_tagger_takes(is_joined):
    texts = ["freeze soup", "freeze bread", "soup stock", "rye bread", "apple pie"] * 4
    lists = [["cold", "soup"], ["cold", "bread"], ["soup"], ["bread"], ["pie"]] * 4
    lists[0] = ["cold", "single"]  # known to the second model only
    y = [";".join(names) for names in lists] if is_joined else lists
    tagger = TextClassifierXC(classifier=OvALinearXC(), separator=";" if is_joined else None)
    search = GridSearchCV(tagger, {"min_count": [1]}, scoring=lambda one, X, y: one.score(X, y))
    scores = cross_val_topk(search, texts, y, cv=2, k=9)
    classes = np.array(["bread", "cold", "pie", "single", "soup"])
    expected = np.full((20, 5), np.nan)
    for train, test in KFold(2).split(texts):
        fitted = sklearn.clone(tagger).fit([texts[i] for i in train], [y[i] for i in train])
        labels, found = fitted.predict_topk([texts[i] for i in test], len(fitted.classes_))
        columns = np.searchsorted(classes, fitted.classes_[labels])
        expected[test[:, None], columns] = found
    assert np.isnan(expected).sum() == 10
    np.testing.assert_array_equal(with_gaps(scores), expected)


def test_rows_that_no_fold_tests_are_empty(data):
    X, Y = data
    scores = cross_val_topk(OvALinearXC(), X, Y, cv=ShuffleSplit(1, test_size=30), k=2)
    assert np.bincount(np.diff(scores.indptr)).tolist() == [90, 0, 30]


def test_metadata_is_routed(data):
    X, Y = data
    weight, groups = np.arange(120) % 3 + 1.0, np.arange(120) // 40
    expected = cross_val_topk(
        OvALinearXC(), X, Y, groups=groups, cv=GroupKFold(3), k=2, params={"sample_weight": weight}
    )
    train, test = next(GroupKFold(3).split(X, groups=groups))
    fitted = OvALinearXC().fit(X[train], Y[train], sample_weight=weight[train])
    labels, scores = topk(fitted, X[test], 2)
    np.testing.assert_array_equal(with_gaps(expected)[test[:, None], labels], scores)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"k": 0}, "cross_val_topk: k must be an integer of at least 1. Got 0"),
        ({"cv": RepeatedKFold(n_splits=2, n_repeats=2)}, "cv must test each row at most once"),
        ({"cv": StratifiedKFold(2)}, "a sparse indicator does not have"),
    ],
)
def test_bad_arguments(arguments, says, data):
    with pytest.raises(ValueError, match=says):
        cross_val_topk(OvALinearXC(), *data, **arguments)


def test_bad_data(data):
    X, Y = data
    with pytest.raises(ValueError, match="y has 119 rows and X has 120"):
        cross_val_topk(OvALinearXC(), X, Y[:119])
    with pytest.raises(TypeError, match="cross_val_topk: X is a masked array"):
        cross_val_topk(OvALinearXC(), np.ma.masked_equal(X.toarray(), 0), Y)
    with pytest.raises(TypeError, match="topk needs predict_topk"):
        cross_val_topk(_Silent(), X, Y, cv=2)


class _Silent(sklearn.base.ClassifierMixin, sklearn.base.BaseEstimator):
    """A classifier without scores."""

    def fit(self, X, y):
        self.classes_ = np.arange(y.shape[1])
        return self
