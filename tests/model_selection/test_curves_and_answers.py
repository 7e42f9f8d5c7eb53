"""Predictions, curves, permutations and plots for a sparse y equal those for its dense copy."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
import sklearn.model_selection
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import sklearn_xc.model_selection
from sklearn_xc import OvALinearXC, SoftmaxUMax
from sklearn_xc.model_selection import (
    LearningCurveDisplay,
    RareLabelSplit,
    ValidationCurveDisplay,
    cross_val_predict,
    cross_val_score,
    learning_curve,
    permutation_test_score,
    validation_curve,
)

FUNCTIONS = [cross_val_predict, validation_curve, permutation_test_score]
CURVE = {"param_name": "C", "param_range": [0.1, 10.0]}


@pytest.fixture(scope="module")
def data():
    """Return X (60, 12) and a sparse indicator (60, 6)."""
    rng = np.random.default_rng(0)
    Y = sp.random_array((60, 6), density=0.3, random_state=rng, format="csr")
    Y.data[:] = 1
    return Y @ rng.normal(0, 1, (6, 12)) + rng.normal(0, 0.5, (60, 12)), Y


class TestPredictions:
    @pytest.mark.parametrize("wrapped", [False, True])
    @pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba"])
    @pytest.mark.parametrize("cv", [3, RareLabelSplit(4), KFold(3, shuffle=True, random_state=1)])
    def test_each_row_from_a_model_without_it(self, data, wrapped, method, cv):
        X, Y = data
        model = OvALinearXC(prune=0)
        if method == "predict_proba":
            model = SoftmaxUMax(learning_rate=0.01, max_iter=2, random_state=0)
        model = make_pipeline(MaxAbsScaler(), model) if wrapped else model
        found = cross_val_predict(model, X, Y, cv=cv, method=method)
        assert sp.issparse(found)
        assert found.format == "csr"
        assert found.shape == Y.shape
        splitter = KFold(cv) if isinstance(cv, int) else cv
        for train, test in splitter.split(X, Y):
            expected = getattr(model.fit(X[train], Y[train]), method)(X[test])
            np.testing.assert_array_equal(found[test].toarray(), expected.toarray())
            assert found[test].nnz == expected.nnz

    @pytest.mark.parametrize("method", ["predict", "decision_function"])
    @pytest.mark.parametrize("kind", ["dense", "classes"])
    def test_other_targets_are_scikit_learns(self, data, method, kind):
        X, Y = data
        y = Y.toarray().astype(int) if kind == "dense" else np.arange(60) % 3
        ours = cross_val_predict(OvALinearXC(prune=0), X, y, cv=3, method=method)
        theirs = sklearn.model_selection.cross_val_predict(
            OvALinearXC(prune=0), X, y, cv=3, method=method
        )
        np.testing.assert_array_equal(ours, theirs)

    def test_routed_weights_and_jobs(self, data):
        X, Y = data
        weight = np.repeat([1.0, 3.0], 30)
        plain = cross_val_predict(
            OvALinearXC(), X, Y, cv=3, method="decision_function", n_jobs=2,
            params={"sample_weight": weight},
        )  # fmt: skip
        with sklearn.config_context(enable_metadata_routing=True):
            model = OvALinearXC().set_fit_request(sample_weight=True)
            routed = cross_val_predict(
                model, X, Y, cv=3, method="decision_function", params={"sample_weight": weight}
            )
        np.testing.assert_array_equal(plain.toarray(), routed.toarray())
        unweighted = cross_val_predict(OvALinearXC(), X, Y, cv=3, method="decision_function")
        assert (plain != unweighted).nnz

    def test_messages(self, data):
        X, Y = data
        with pytest.raises(ValueError, match=r"The 'method' parameter of .* Got 'guess'"):
            cross_val_predict(OvALinearXC(), X, Y, method="guess")
        with pytest.raises(ValueError, match=r"only works for partitions"):
            cross_val_predict(OvALinearXC(), X, Y, cv=[([0, 1], [2, 3])], method="predict_proba")
        with pytest.raises(ValueError, match=r"cv: StratifiedKFold.* Use RareLabelSplit"):
            cross_val_predict(OvALinearXC(), X, Y, cv=StratifiedKFold(2))
        with pytest.raises(ValueError, match=r"The 'estimator' parameter of .* Got 'tree'"):
            cross_val_predict("tree", X, Y, method="predict_proba")
        with pytest.raises(AttributeError, match="decision_function"):
            cross_val_predict(OnlyPredicts(), X, Y, cv=2, method="decision_function")


class OnlyPredicts(BaseEstimator):
    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


def test_validation_curve(data):
    X, Y = data
    train, test = validation_curve(OvALinearXC(), X, Y, cv=3, scoring="P@1", **CURVE)
    assert train.shape == test.shape == (2, 3)
    for row, C in zip(test, CURVE["param_range"], strict=True):
        expected = cross_val_score(OvALinearXC(C=C), X, Y, cv=3, scoring="P@1")
        np.testing.assert_array_equal(row, expected)
    dense = Y.toarray().astype(int)
    np.testing.assert_array_equal(
        validation_curve(OvALinearXC(), X, dense, cv=3, scoring="P@1", **CURVE)[1], test
    )
    with pytest.raises(ValueError, match="scoring: validation_curve reports one number"):
        validation_curve(OvALinearXC(), X, Y, scoring=["P@1"], **CURVE)
    with pytest.raises(ValueError, match="Invalid parameter 'D'"):
        validation_curve(OvALinearXC(), X, Y, param_name="D", param_range=[1])


class TestPermutations:
    @pytest.mark.parametrize("grouped", [False, True])
    def test_equals_that_of_a_dense_copy(self, data, grouped):
        X, Y = data
        arguments = {
            "cv": KFold(3), "n_permutations": 5, "scoring": "P@1", "random_state": 4,
        }  # fmt: skip
        if grouped:
            arguments |= {"groups": np.arange(60) % 4, "cv": sklearn.model_selection.GroupKFold(2)}
        sparse = permutation_test_score(OvALinearXC(), X, Y, **arguments)
        dense = permutation_test_score(OvALinearXC(), X, Y.toarray().astype(int), **arguments)
        for one, other in zip(sparse, dense, strict=True):
            np.testing.assert_allclose(one, other)
        assert sparse[0] > sparse[1].max()
        assert sparse[2] == pytest.approx(1 / 6)

    def test_folds_that_are_used_up(self, data):
        X, Y = data
        folds = list(KFold(3).split(X))
        expected = permutation_test_score(OvALinearXC(), X, Y, cv=folds, n_permutations=2)
        found = permutation_test_score(OvALinearXC(), X, Y, cv=iter(folds), n_permutations=2)
        np.testing.assert_array_equal(found[1], expected[1])

    def test_messages(self, data):
        X, Y = data
        with pytest.raises(ValueError, match=r"n_permutations must be .* Got 0"):
            permutation_test_score(OvALinearXC(), X, Y, n_permutations=0)
        with pytest.raises(ValueError, match=r"scoring: permutation_test_score reports one"):
            permutation_test_score(OvALinearXC(), X, Y, scoring=["P@1"])
        with pytest.raises(ValueError, match=r"C"):  # an error in a fit is no score
            permutation_test_score(OvALinearXC(C=-1), X, Y, n_permutations=2)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_same_parameters_as_scikit_learn(function):
    ours = inspect.signature(function).parameters
    theirs = inspect.signature(getattr(sklearn.model_selection, function.__name__)).parameters
    assert set(theirs) - set(ours) <= {"fit_params"}  # deprecated before scikit-learn 1.8
    for name, parameter in ours.items():
        assert parameter.kind == theirs[name].kind
        np.testing.assert_equal(parameter.default, theirs[name].default)


class TestPlots:
    @pytest.fixture(autouse=True)
    def _closed(self):
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("Agg")
        yield
        matplotlib.pyplot.close("all")

    def test_learning_curve(self, data):
        X, Y = data
        arguments = {"cv": 3, "scoring": "psp@1", "train_sizes": [20, 40]}
        display = LearningCurveDisplay.from_estimator(
            OvALinearXC(), X, Y, score_type="test", **arguments
        )
        _, train, test = learning_curve(OvALinearXC(), X, Y, **arguments)
        np.testing.assert_array_equal(display.test_scores, test)
        np.testing.assert_array_equal(display.train_scores, train)
        assert display.ax_.get_ylabel() == "PSP@1"
        np.testing.assert_allclose(display.lines_[0].get_ydata(), test.mean(axis=1))
        assert isinstance(display, sklearn.model_selection.LearningCurveDisplay)

    def test_validation_curve(self, data):
        X, Y = data
        display = ValidationCurveDisplay.from_estimator(
            OvALinearXC(), X, Y, cv=3, scoring="nDCG@3", fit_params={}, **CURVE
        )
        _, test = validation_curve(OvALinearXC(), X, Y, cv=3, scoring="nDCG@3", **CURVE)
        np.testing.assert_array_equal(display.test_scores, test)
        assert display.ax_.get_ylabel() == "nDCG@3"

    @pytest.mark.parametrize("scoring", [None, "accuracy", "neg_log_loss", "P@1"])
    @pytest.mark.parametrize("negate_score", [False, True])
    def test_names_are_scikit_learns(self, scoring, negate_score):
        X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 2
        arguments = {"cv": 2, "train_sizes": [0.5, 1.0], "negate_score": negate_score}
        ours = LearningCurveDisplay.from_estimator(
            LogisticRegression(), X, y, scoring=scoring, **arguments
        )
        if scoring == "P@1":
            expected = "Negative P@1" if negate_score else "P@1"
        else:
            expected = sklearn.model_selection.LearningCurveDisplay.from_estimator(
                LogisticRegression(), X, y, scoring=scoring, **arguments
            ).ax_.get_ylabel()
        assert ours.ax_.get_ylabel() == expected
        named = LearningCurveDisplay.from_estimator(
            LogisticRegression(), X, y, scoring=scoring, score_name="own", **arguments
        )
        assert named.ax_.get_ylabel() == "own"

    @pytest.mark.parametrize("name", ["LearningCurveDisplay", "ValidationCurveDisplay"])
    def test_all_arguments_of_scikit_learn_arrive(self, data, name):
        X, Y = data
        theirs = getattr(sklearn.model_selection, name).from_estimator
        given = {
            parameter.name: parameter.default
            for parameter in inspect.signature(theirs).parameters.values()
            if parameter.default is not parameter.empty
        }
        given |= {"cv": 2} | (CURVE if name == "ValidationCurveDisplay" else {})
        display = getattr(sklearn_xc.model_selection, name).from_estimator(
            OvALinearXC(), X, Y, **given
        )
        assert np.isfinite(display.test_scores).all()

    def test_an_unknown_argument(self, data):
        with pytest.raises(TypeError, match="colour"):
            LearningCurveDisplay.from_estimator(OvALinearXC(), *data, colour="red")
