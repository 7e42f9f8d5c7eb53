"""Cross-validation of a sparse indicator equals that of its dense copy, errors included."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.model_selection
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

import sklearn_xc.model_selection
from sklearn_xc.metrics import TopKScorer, get_scorer
from sklearn_xc.model_selection import _sparse_y, cross_val_score, cross_validate, learning_curve

FUNCTIONS = [cross_validate, cross_val_score, learning_curve]


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
        MatchingClassifier.n_passes += 1
        scores = (sp.csr_array(X) @ self.coef_.T).toarray()
        indices = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return indices, np.take_along_axis(scores, indices, axis=1)

    def score(self, X, y):
        indices, _ = self.predict_topk(X, 1)
        return float(np.mean(y[np.arange(X.shape[0]), indices[:, 0]]))

    n_passes = 0


@pytest.fixture
def matching_classifier():
    """Return an estimator, its count of top-k passes at zero."""
    MatchingClassifier.n_passes = 0
    return MatchingClassifier()


@pytest.fixture
def problem():
    """Return X (90, 20) and a csr_matrix indicator (90, 8)."""
    rng = np.random.default_rng(0)
    Y = sp.random_array((90, 8), density=0.25, random_state=rng, format="csr")
    Y.data[:] = 1
    X = Y @ rng.normal(0, 1, (8, 20)) + rng.normal(0, 0.5, (90, 20))
    return X, sp.csr_matrix(Y)


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array, sp.csc_matrix])
def test_cross_validate_equals_scikit_learn_on_dense_y(matching_classifier, problem, container):
    X, Y = problem
    arguments = {
        "cv": KFold(3, shuffle=True, random_state=0),
        "return_train_score": True,
        "return_indices": True,
        "return_estimator": True,
    }
    sparse = cross_validate(matching_classifier, X, container(Y), scoring=TopKScorer(), **arguments)
    dense = sklearn.model_selection.cross_validate(
        matching_classifier, X, Y.toarray().astype(int), scoring=TopKScorer(), **arguments
    )
    assert sparse.keys() == dense.keys()
    assert all(
        issubclass(fitted.seen_, sp.csr_array | sp.csr_matrix) for fitted in sparse["estimator"]
    )
    for name in sparse:
        if name.startswith(("test_", "train_")):
            np.testing.assert_array_equal(sparse[name], dense[name])
            assert sparse[name].shape == (3,)
    np.testing.assert_array_equal(sparse["indices"]["test"], dense["indices"]["test"])
    assert 0.5 < sparse["test_P@1"].mean() < 1


def test_names_share_one_pass(matching_classifier, problem):
    X, Y = problem
    names = ["P@1", "psp@3", "P@3"]
    together = cross_validate(matching_classifier, X, Y, cv=2, scoring=names)
    assert type(matching_classifier).n_passes == 2
    for name in names:
        alone = cross_validate(matching_classifier, X, Y, cv=2, scoring=get_scorer(name))
        np.testing.assert_array_equal(together[f"test_{name}"], alone["test_score"])
    named = cross_validate(matching_classifier, X, Y, cv=2, scoring={"first": "P@1"})
    np.testing.assert_array_equal(named["test_first"], together["test_P@1"])


def test_names_next_to_other_scorers(matching_classifier, problem):
    X, Y = problem

    def always_two(estimator, X, y):
        return 2.0

    result = cross_validate(
        matching_classifier, X, Y, cv=2, scoring={"p": "P@1", "two": always_two}
    )
    assert result["test_two"].tolist() == [2.0, 2.0]
    np.testing.assert_array_equal(
        result["test_p"], cross_val_score(matching_classifier, X, Y, cv=2, scoring="P@1")
    )


def test_without_scoring_the_estimator_scores_itself(matching_classifier, problem):
    X, Y = problem
    np.testing.assert_allclose(
        cross_val_score(matching_classifier, X, Y, cv=3),
        cross_val_score(matching_classifier, X, Y, cv=3, scoring="P@1"),
    )


def test_groups_and_jobs_reach_scikit_learn(matching_classifier, problem):
    X, Y = problem
    groups = np.arange(90) % 3
    result = cross_validate(
        matching_classifier,
        X,
        Y,
        groups=groups,
        cv=GroupKFold(3),
        n_jobs=1,
        pre_dispatch=1,
        return_indices=True,
        scoring="P@1",
    )
    assert [len(set(groups[test])) for test in result["indices"]["test"]] == [1, 1, 1]


def test_learning_curve(matching_classifier, problem):
    X, Y = problem
    arguments = {"cv": 3, "scoring": "P@1", "train_sizes": [10, 60], "return_times": True}
    sizes, train, test, fit_times, _ = learning_curve(matching_classifier, X, Y, **arguments)
    assert sizes.tolist() == [10, 60]
    assert train.shape == test.shape == fit_times.shape == (2, 3)
    dense = learning_curve(matching_classifier, X, Y.toarray().astype(int), **arguments)
    np.testing.assert_array_equal(dense[2], test)
    np.testing.assert_array_equal(
        test[1], cross_val_score(matching_classifier, X, Y, cv=3, scoring="P@1")
    )
    with pytest.raises(ValueError, match=r"exploit_incremental_learning: .* Got a sparse y"):
        learning_curve(matching_classifier, X, Y, exploit_incremental_learning=True)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"scoring": "P@zero"}, "scoring must be \"P@k\".* Got 'P@zero'"),
        ({"y": "short"}, r"inconsistent numbers of samples: \[90, 89\]"),
        ({"cv": "five"}, "The 'cv' parameter of .* must be .* Got 'five'"),
        ({"cv": 1}, "'cv' parameter|train/test split"),
        ({"cv": 100}, "number of splits n_splits=100 greater than the number of samples"),
        ({"n_jobs": 1.5}, "The 'n_jobs' parameter of .* must be .* Got 1.5"),
        ({"params": 3}, "The 'params' parameter of .* must be .* Got 3"),
        ({"error_score": "zero"}, "The 'error_score' parameter of .* Got 'zero'"),
        ({"estimator": "tree"}, "The 'estimator' parameter of .* 'fit'. Got 'tree'"),
        ({"X": None}, "The 'X' parameter of .* must be .* Got None"),
    ],
)
def test_other_arguments_are_still_checked(
    matching_classifier, problem, function, dense, changed, message
):
    X, Y = problem
    arguments = {"estimator": matching_classifier, "X": X, "y": Y, "scoring": "P@1"} | changed
    if "y" in changed:
        arguments["y"] = Y[:89]
    if dense:
        arguments["y"] = arguments["y"].toarray().astype(int)
    with pytest.raises(ValueError, match=message):
        function(**arguments)


@pytest.mark.parametrize("scoring", [["P@1"], {"a": "P@1"}, TopKScorer()])
@pytest.mark.parametrize("function", [cross_val_score, learning_curve])
def test_one_number_functions_refuse_several(matching_classifier, problem, function, scoring):
    with pytest.raises(ValueError, match=f"scoring: {function.__name__} reports one number.*P@1"):
        function(matching_classifier, *problem, scoring=scoring)


@pytest.mark.parametrize(
    ("scoring", "message"),
    [
        (["P@1", "P@1"], "Duplicate"),
        (["P@1", "accuracies"], "scoring must be .* Got 'accuracies'"),
        ([], "Empty list"),
        ({}, "empty dict"),
        ([print], "strings"),
        ({"P@1"}, "The 'scoring' parameter of cross_validate must be"),
        (3, "The 'scoring' parameter of cross_validate must be"),
    ],
)
def test_wrong_containers_of_scorers(matching_classifier, problem, scoring, message):
    with pytest.raises(ValueError, match=message):
        cross_validate(matching_classifier, *problem, scoring=scoring)


def test_an_indicator_cannot_be_stratified(matching_classifier, problem):
    with pytest.raises(ValueError, match=r"cv: StratifiedKFold.* Use RareLabelSplit.* KFold"):
        cross_validate(matching_classifier, *problem, cv=StratifiedKFold(3), scoring="P@1")


@pytest.mark.parametrize("function", FUNCTIONS)
def test_same_parameters_as_scikit_learn(function):
    ours = inspect.signature(function).parameters
    theirs = inspect.signature(getattr(sklearn.model_selection, function.__name__)).parameters
    assert set(theirs) - set(ours) <= {"fit_params"}  # deprecated before scikit-learn 1.8
    for name, parameter in ours.items():
        assert parameter.kind == theirs[name].kind
        np.testing.assert_equal(parameter.default, theirs[name].default)


@pytest.mark.parametrize("name", [f.__name__ for f in FUNCTIONS if f is not cross_val_score])
def test_scikit_learn_still_shows_what_we_rely_on(name):
    """If this fails, a new scikit-learn changed its inside: see ``_sparse_y.py``."""
    function = getattr(sklearn.model_selection, name)
    hint = f"scikit-learn {sklearn.__version__}: adapt sklearn_xc/model_selection/_sparse_y.py"
    assert hasattr(function, "__wrapped__"), hint
    assert "y" in function._skl_parameter_constraints, hint
    ours = inspect.signature(getattr(sklearn_xc.model_selection, name)).parameters
    accepting = _sparse_y._accepting_sparse_y(function)
    assert set(ours) <= set(inspect.signature(accepting).parameters), hint


def test_message_when_scikit_learn_changed_its_inside():
    def cross_validate(y, cv):
        return y

    assert _sparse_y.call(cross_validate, [1, 2], cv=None) == [1, 2]
    with pytest.raises(NotImplementedError, match=r"cross_validate: scikit-learn .*__wrapped__"):
        _sparse_y.call(cross_validate, sp.csr_array((2, 2)), cv=None)


def test_nothing_to_do_here_once_scikit_learn_takes_sparse_y(matching_classifier, problem):
    """If this fails, scikit-learn takes a sparse y, and ``_sparse_y.py`` can go."""
    with pytest.raises(ValueError, match="The 'y' parameter of cross_validate must be"):
        sklearn.model_selection.cross_validate(matching_classifier, *problem)
