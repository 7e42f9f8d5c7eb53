"""Cross-validation of a sparse indicator equals that of its dense copy."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.model_selection
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from sklearn_xc.metrics import TopKScorer, get_scorer
from sklearn_xc.model_selection import cross_val_score, cross_validate, learning_curve


class MatchingClassifier(ClassifierMixin, BaseEstimator):
    """Score labels by the inner product of x with the sum of their rows."""

    def fit(self, X, y):
        self.seen_ = type(y)
        self.coef_ = sp.csr_array(y).T @ sp.csr_array(X)
        self.classes_ = np.arange(y.shape[1])
        self.label_counts_ = np.asarray(y.sum(axis=0)).ravel()
        self.n_samples_fit_ = X.shape[0]
        return self

    def predict_topk(self, X, k=5):
        scores = (sp.csr_array(X) @ self.coef_.T).toarray()
        indices = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return indices, np.take_along_axis(scores, indices, axis=1)

    def score(self, X, y):
        indices, _ = self.predict_topk(X, 1)
        return float(np.mean(y[np.arange(X.shape[0]), indices[:, 0]]))


@pytest.fixture
def problem():
    """Return X (90, 20) and a csr_matrix indicator (90, 8)."""
    rng = np.random.default_rng(0)
    Y = sp.random_array((90, 8), density=0.25, random_state=rng, format="csr")
    Y.data[:] = 1
    X = Y @ rng.normal(0, 1, (8, 20)) + rng.normal(0, 0.5, (90, 20))
    return X, sp.csr_matrix(Y)


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csc_array])
def test_cross_validate_equals_scikit_learn_on_dense_y(problem, container):
    X, Y = problem
    arguments = {
        "cv": KFold(3, shuffle=True, random_state=0),
        "scoring": TopKScorer(),
        "return_train_score": True,
        "return_estimator": True,
    }
    model = MatchingClassifier()
    sparse = cross_validate(model, X, container(Y), **arguments)
    dense = sklearn.model_selection.cross_validate(model, X, Y.toarray().astype(int), **arguments)
    assert sparse.keys() == dense.keys()
    assert all(sp.issparse(fitted.coef_) for fitted in sparse["estimator"])
    assert all(issubclass(one.seen_, sp.sparray | sp.spmatrix) for one in sparse["estimator"])
    for name in sparse:
        if name.startswith(("test_", "train_")):
            np.testing.assert_array_equal(sparse[name], dense[name])
    assert 0.5 < sparse["test_P@1"].mean() < 1


def test_names_and_scorers(problem):
    X, Y = problem

    def always_two(estimator, X, y):
        return 2.0

    model = MatchingClassifier()
    several = cross_validate(model, X, Y, cv=2, scoring=["P@1", "psp@3"])
    mixed = cross_validate(model, X, Y, cv=2, scoring={"p": "P@1", "two": always_two})
    for name in ("P@1", "psp@3"):
        alone = cross_validate(model, X, Y, cv=2, scoring=get_scorer(name))["test_score"]
        np.testing.assert_array_equal(several[f"test_{name}"], alone)
    np.testing.assert_array_equal(mixed["test_p"], several["test_P@1"])
    np.testing.assert_array_equal(mixed["test_two"], [2.0, 2.0])
    by_itself = cross_val_score(model, X, Y, cv=2)
    np.testing.assert_allclose(by_itself, several["test_P@1"])


def test_learning_curve(problem):
    X, Y = problem
    model = MatchingClassifier()
    groups = np.arange(90) % 3
    arguments = {"scoring": "P@1", "train_sizes": [10, 60], "groups": groups, "cv": GroupKFold(3)}
    sizes, train, test = learning_curve(model, X, Y, **arguments)
    assert sizes.tolist() == [10, 60]
    assert train.shape == test.shape == (2, 3)
    dense = learning_curve(model, X, Y.toarray().astype(int), **arguments)
    np.testing.assert_array_equal(dense[2], test)
    scores = cross_val_score(model, X, Y, cv=GroupKFold(3), groups=groups, scoring="P@1")
    np.testing.assert_array_equal(test[1], scores)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"scoring": "P@zero"}, "scoring must be \"P@k\".* Got 'P@zero'"),
        ({"rows": 89}, r"inconsistent numbers of samples: \[90, 89\]"),
        ({"cv": StratifiedKFold(3)}, r"cv: StratifiedKFold.* Use RareLabelSplit.* KFold"),
    ],
)
def test_bad_arguments(problem, changed, message):
    X, Y = problem
    arguments = {"scoring": "P@1", **changed}
    Y = Y[: arguments.pop("rows", 90)]
    with pytest.raises(ValueError, match=message):
        cross_validate(MatchingClassifier(), X, Y, **arguments)


def test_malformed_matrices(problem, malformed):
    X, Y = problem
    for name, arguments in (("X", (malformed(sp.csr_array(X)), Y)), ("y", (X, malformed(Y)))):
        with pytest.raises(ValueError, match=f": {name}: this .* is malformed"):
            cross_validate(MatchingClassifier(), *arguments, cv=2)


@pytest.mark.parametrize("function", [cross_val_score, learning_curve])
def test_one_number_functions_refuse_several(problem, function):
    for scoring in (["P@1"], TopKScorer()):
        with pytest.raises(ValueError, match=f"scoring: {function.__name__} reports one number.*P"):
            function(MatchingClassifier(), *problem, scoring=scoring)


def test_scikit_learn_refuses_a_sparse_y(problem):
    """If this fails, scikit-learn takes a sparse y, and these functions can go."""
    with pytest.raises(ValueError, match="The 'y' parameter of cross_validate must be"):
        sklearn.model_selection.cross_validate(MatchingClassifier(), *problem)
