"""The checks for others' estimators: an honest one passes, and each check has what it catches."""

import copy
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from centroids import CentroidXC
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from sklearn_xc.testing import (
    check_sparse_targets,
    parametrize_with_sparse_checks,
    sparse_checks_generator,
)
from sklearn_xc.testing.running import CHECKS, TOPK_CHECKS


@parametrize_with_sparse_checks([CentroidXC()], rtol=0.0)
def test_an_honest_estimator_passes(estimator, check):
    check(estimator)


class FewMethods(CentroidXC):
    """What is not there when it is asked for, ``hasattr`` included."""

    predict_topk = decision_function = predict_proba = predict_log_proba = property()
    top_k, n_jobs = 100, None

    def __init__(self):
        pass

    def fit(self, X, y):
        return super().fit(X, y)

    def score(self, X, y):
        return super().score(X, y)


def test_what_is_optional_is_not_asked_for():
    results = check_sparse_targets(FewMethods())
    assert [result["status"] for result in results] == ["passed"] * len(CHECKS)


#: Checks, and what is done wrong: methods of a class, or a function that makes them of the old one.
MUTANTS = []


def mutant(*checks):
    """Register methods that break the toy, which some checks must catch."""

    def register(function):
        MUTANTS.extend(pytest.param(c, function, id=f"{function.__name__}, {c}") for c in checks)
        return function

    return register


def overriding(**methods):
    """Return a class that can be pickled while no other is made."""
    globals()["Mutant"] = type("Mutant", (CentroidXC,), {**methods, "__module__": __name__})
    return Mutant  # noqa: F821


@mutant("check_predict_follows_sparse_y")
def always_an_array(old):
    return overriding(predict=lambda self, X: made_sparse(old.predict(self, X)))


def made_sparse(answer):
    return sp.csr_array(answer) if sp.issparse(answer) else answer


def densified(answer):
    return answer.toarray() if sp.issparse(answer) else answer


@mutant(
    "check_predict_follows_sparse_y", "check_pipeline", "check_cross_val_predict",
    "check_grid_search",
)  # fmt: skip
def dense_labels(old):
    return overriding(predict=lambda self, X: densified(old.predict(self, X)))


@mutant("check_scores_follow_sparse_y", "check_no_dense_array")
def dense_scores(old):
    return overriding(decision_function=lambda self, X: densified(old.decision_function(self, X)))


@mutant("check_scores_follow_sparse_y")
def infinite_logarithms(old):
    def predict_log_proba(self, X):
        with np.errstate(divide="ignore"):
            return old.answer(self, X, lambda scores: np.log((scores > 0).astype(float)))

    return overriding(predict_log_proba=predict_log_proba)


@mutant("check_answers_follow_dense_y")
def sparse_whatever_y_was(old):
    return overriding(
        predict=lambda self, X: sp.csr_array(np.atleast_2d(densified(old.predict(self, X))))
    )


@mutant("check_answers_follow_dense_y")
def another_model_of_a_dense_y(old):
    def fit(self, X, y, sample_weight=None):
        old.fit(self, X, y, sample_weight)
        self.intercept_ = self.intercept_ + 0.1 * (self._kind == "dense")
        return self

    return overriding(fit=fit)


@mutant("check_classes")
def a_column_of_classes(old):
    return overriding(predict=lambda self, X: np.atleast_2d(old.predict(self, X)).T)


@mutant("check_dtype_of_y")
def always_integers(old):
    return overriding(predict=lambda self, X: old.predict(self, X).astype(int))


@mutant("check_dtype_of_y")
def narrow_arithmetic(old):
    def fit(self, X, y, sample_weight=None):
        old.fit(self, X, y, sample_weight)
        self.intercept_ = self.intercept_ + 0.1 * (self._dtype == np.uint8)
        return self

    return overriding(fit=fit)


@mutant("check_stored_forms_of_y")
def stored_zeros_are_labels(old):
    def read_targets(self, y):
        Y, *rest = old.read_targets(self, y)
        if sp.issparse(y):
            Y = y.tocsr().astype(float).copy()
            Y.data[:] = 1
        return Y, *rest

    return overriding(read_targets=read_targets)


@mutant("check_repeated_entries_of_y")
def repeated_labels_count_twice(old):
    def read_targets(self, y):
        if not sp.issparse(y):
            return old.read_targets(self, y)
        Y = y.tocsr().astype(float).copy()
        return Y, np.arange(Y.shape[1]), "array", y.dtype

    return overriding(read_targets=read_targets)


@mutant("check_length_of_y", "check_failed_first_fit", "check_failed_fit")
def cut_to_the_shorter(old):
    def fit(self, X, y, sample_weight=None):
        n = min(X.shape[0], np.shape(y)[0])
        return old.fit(self, X[:n], y[:n], sample_weight)

    return overriding(fit=fit)


@mutant("check_two_label_columns")
def two_columns_are_binary(old):
    def decision_function(self, X):
        scores = old.decision_function(self, X)
        return scores[:, [1]] if len(self.classes_) == 2 else scores

    return overriding(decision_function=decision_function)


@mutant("check_single_label_column")
def one_column_becomes_flat(old):
    def predict(self, X):
        labels = old.predict(self, X)
        return labels.toarray().ravel() if labels.shape[1] == 1 else labels

    return overriding(predict=predict)


@mutant("check_rows_without_labels")
def shares_of_labels(old):
    def fit(self, X, y, sample_weight=None):
        old.fit(self, X, y, sample_weight)
        sizes = np.asarray(self.read_targets(y)[0].sum(axis=1))
        with np.errstate(all="ignore"):
            self.intercept_ = self.intercept_ * (sizes / sizes).mean()
        return self

    return overriding(fit=fit)


@mutant("check_labels_without_positives")
def unseen_labels_win(old):
    def fit(self, X, y, sample_weight=None):
        old.fit(self, X, y, sample_weight)
        self.intercept_ = np.where(self.intercept_ == -1, 1.0, self.intercept_)
        return self

    return overriding(fit=fit)


@mutant("check_labels_on_every_row")
def no_negatives_no_number(old):
    def fit(self, X, y, sample_weight=None):
        old.fit(self, X, y, sample_weight)
        count = np.asarray(self.read_targets(y)[0].sum(axis=0)).ravel()
        self.intercept_ = np.where(count == X.shape[0], np.nan, self.intercept_)
        return self

    return overriding(fit=fit)


@mutant("check_containers_of_X")
def only_rows_are_understood(old):
    def read(self, X):
        if sp.issparse(X) and X.format == "csc":  # its arrays taken for those of rows
            X = sp.csr_array(
                (X.data, X.indices % X.shape[1], np.linspace(0, X.nnz, X.shape[0] + 1).astype(int)),
                shape=X.shape,
            )
        return old.read(self, X)

    return overriding(read=read)


@mutant("check_stored_forms_of_X")
def rows_are_as_long_as_they_are_stored(old):
    def read(self, X):
        sizes = np.diff(X.tocsr().indptr) if sp.issparse(X) else np.ones(len(X))
        return sp.csr_array(sp.diags_array(1 / np.maximum(sizes, 1)) @ old.read(self, X))

    return overriding(read=read, read_targets=lambda self, y: CentroidXC().read_targets(y))


@mutant("check_sparse_and_dense_X")
def dense_instances_are_scaled(old):
    return overriding(read=lambda self, X: old.read(self, X) * (1 if sp.issparse(X) else 2))


@mutant("check_float32_X")
def narrow_numbers_are_lost(old):
    def decision_function(self, X):
        return old.decision_function(self, X) * (np.nan if X.dtype == np.float32 else 1)

    return overriding(decision_function=decision_function)


@mutant("check_empty_rows_of_X")
def rows_of_length_one(old):
    def scores(self, X):
        with np.errstate(all="ignore"):
            return old.scores(self, X) / np.sqrt((X.toarray() ** 2).sum(axis=1))[:, None]

    return overriding(scores=scores)


@mutant("check_n_features")
def further_features_are_cut(old):
    return overriding(pieces=lambda self, X: old.pieces(self, X[:, : self.n_features_in_]))


@mutant("check_read_only_memory")
def writes_into_y(old):
    def fit(self, X, y, sample_weight=None):
        if sp.issparse(y):
            y.data[:] = y.data
        return old.fit(self, X, y, sample_weight)

    return overriding(fit=fit)


@mutant("check_inputs_are_left_alone", "check_read_only_memory")
def sorts_in_place(old):
    def fit(self, X, y, sample_weight=None):
        for part in (X, y):
            if sp.issparse(part) and part.format == "csr":
                part.has_sorted_indices = False
                part.sort_indices()
        return old.fit(self, X, y, sample_weight)

    return overriding(fit=fit)


@mutant("check_rows_alone")
def centred_in_each_call(old):
    return overriding(scores=lambda self, X: old.scores(self, X) - old.scores(self, X).mean(axis=0))


@mutant("check_top_k")
def top_k_is_ignored(old):
    def answer(self, X, *rest):
        return old.answer(copy.copy(self).set_params(top_k=1000), X, *rest)

    return overriding(answer=answer)


@mutant("check_predict_proba")
def scores_as_probabilities(old):
    return overriding(predict_proba=lambda self, X: old.decision_function(self, X))


@mutant("check_predict_proba")
def logarithms_to_another_base(old):
    return overriding(predict_log_proba=lambda self, X: old.predict_log_proba(self, X) / np.log(2))


@mutant("check_score")
def weights_are_ignored_in_score(old):
    return overriding(score=lambda self, X, y, sample_weight=None: old.score(self, X, y))


@mutant("check_score")
def columns_are_other_labels(old):
    def score(self, X, y, sample_weight=None):
        return old.score(self, X, y, sample_weight) / (
            1 + (y.format == "csc" if sp.issparse(y) else 0)
        )

    return overriding(score=score)


@mutant("check_sample_weight")
def weights_are_ignored(old):
    return overriding(fit=lambda self, X, y, sample_weight=None: old.fit(self, X, y))


@mutant("check_fit_twice")
def goes_on_from_the_last_fit(old):
    def fit(self, X, y, sample_weight=None):
        before = getattr(self, "intercept_", np.zeros(1))
        old.fit(self, X, y, sample_weight)
        self.intercept_ = self.intercept_ + 0.1 * before.mean()
        return self

    return overriding(fit=fit)


@mutant("check_n_jobs")
def threads_race(old):
    def scores(self, X):
        return old.scores(self, X) + 0.01 * (self.n_jobs or 1)

    return overriding(scores=scores)


@mutant("check_failed_fit", "check_failed_first_fit")
def keeps_the_width_before_it_looks(old):
    def fit(self, X, y, sample_weight=None):
        self.n_features_in_ = X.shape[1]
        return old.fit(self, X, y, sample_weight)

    return overriding(fit=fit)


@mutant("check_pickle")
def a_pickle_lacks_the_intercepts(old):
    def __getstate__(self):  # noqa: N807
        kept = dict(vars(self))
        if "intercept_" in kept:
            kept["intercept_"] = np.zeros_like(kept["intercept_"])
        return kept

    return overriding(__getstate__=__getstate__)


@mutant("check_clone")
def a_fit_sets_a_parameter(old):
    def fit(self, X, y, sample_weight=None):
        self.n_jobs = 1
        return old.fit(self, X, y, sample_weight)

    return overriding(fit=fit)


@mutant("check_cross_val_score")
def scores_are_percentages_of_calls(old):
    def score(self, X, y, sample_weight=None):
        type(self).calls += 1
        return old.score(self, X, y, sample_weight) / type(self).calls

    return overriding(score=score, calls=0)


@mutant("check_grid_search")
def no_score(old):
    return overriding(score=lambda self, X, y, sample_weight=None: np.nan)


@mutant("check_indices_of_y", "check_indices_of_X")
def indices_outside_are_dropped(old):
    def read(self, X):
        if sp.issparse(X) and X.format == "csr":
            X = X.copy()
            is_inside = X.indices < X.shape[1]
            X.data, X.indices = np.where(is_inside, X.data, 0), np.where(is_inside, X.indices, 0)
        return old.read(self, X)

    return overriding(read=read)


@mutant("check_predict_topk")
def columns_are_not_padded(old):
    def predict_topk(self, X, k=5):
        return old.predict_topk(self, X, min(k, len(self.classes_)))

    return overriding(predict_topk=predict_topk)


@mutant("check_predict_topk")
def the_best_come_last(old):
    def best(self, scores, k):
        labels, found = old.best(self, scores, k)
        known = min(k, scores.shape[1])
        labels[:, :known], found[:, :known] = labels[:, known - 1 :: -1], found[:, known - 1 :: -1]
        return labels, found

    return overriding(best=best)


@mutant("check_predict_topk")
def narrow_labels(old):
    def predict_topk(self, X, k=5):
        labels, scores = old.predict_topk(self, X, k)
        return labels.astype(np.int32), scores

    return overriding(predict_topk=predict_topk)


@mutant("check_predict_topk_goes_with_scores")
def neighbours_for_labels(old):
    def predict_topk(self, X, k=5):
        labels, scores = old.predict_topk(self, X, k)
        return np.where(labels >= 0, (labels + 1) % len(self.classes_), -1), scores

    return overriding(predict_topk=predict_topk)


@mutant("check_ties")
def ties_go_to_the_larger(old):
    def best(self, scores, k):
        labels, found = old.best(self, scores[:, ::-1], k)
        return np.where(labels >= 0, scores.shape[1] - 1 - labels, -1), found

    return overriding(best=best)


@mutant("check_ties")
def a_cut_takes_the_other_of_two(old):
    def best(self, scores, k):
        labels, found = old.best(self, scores, k)
        if k == 2:
            labels[:, 1] = old.best(self, scores, 3)[0][:, 2]
        return labels, found

    return overriding(best=best)


@pytest.mark.parametrize(("name", "break_it"), MUTANTS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_broken_estimator_is_caught(name, break_it):
    broken = break_it(CentroidXC)()
    check = next(c for _, c in sparse_checks_generator(broken) if c.func.__name__ == name)
    with pytest.raises((AssertionError, ValueError)) as caught:
        check(broken)
    if caught.type is AssertionError:
        assert re.match(r"(?s)Mutant: .*\. Got .*\.$|Mutant: .* Got .*: .*", str(caught.value))


def test_each_check_has_something_to_catch():
    assert {case.values[0] for case in MUTANTS} == {c.__name__ for c in (*CHECKS, *TOPK_CHECKS)}


#: What an estimator of scikit-learn does otherwise.
OF_SCIKIT_LEARN = {
    "check_predict_follows_sparse_y": "predict is a csr_matrix of int64 whatever y was",
    "check_scores_follow_sparse_y": "scores are dense",
    "check_dtype_of_y": "predict is of int64",
    "check_failed_first_fit": "what was learned of y stays",
    "check_no_dense_array": "a classifier and a column of scores for each label",
    "check_repeated_entries_of_y": "a label that is stored twice ends the process",
    "check_indices_of_y": "indices are not looked at",
    "check_indices_of_X": "indices are not looked at",
}


@parametrize_with_sparse_checks(
    [OneVsRestClassifier(LogisticRegression())], expected_failed_checks=OF_SCIKIT_LEARN
)
@pytest.mark.filterwarnings("ignore:Label .* is present in all training examples")
@pytest.mark.filterwarnings("ignore:Label not .* is present in all training examples")
def test_an_estimator_of_scikit_learn(estimator, check):
    check(estimator)


#: Which takes seconds.
QUICK = {"check_no_dense_array": "not tried"}


def statuses(estimator, reasons=QUICK, **named):
    results = check_sparse_targets(estimator, expected_failed_checks=reasons, **named)
    return {result["check_name"]: result["status"] for result in results}


class TestRunning:
    """The same keys, states and errors as scikit-learn's ``check_estimator``."""

    @pytest.fixture
    def broken(self):
        return scores_as_probabilities(CentroidXC)()

    def test_the_first_failure_is_raised(self, broken):
        with pytest.raises(AssertionError, match=r"^Mutant: predict_proba must lie in \[0, 1\]"):
            check_sparse_targets(broken)

    def test_failures_are_listed(self, broken):
        expected = statuses(CentroidXC())
        assert set(expected.values()) == {"passed", "xfail"}
        expected["check_predict_proba"] = "failed"
        assert statuses(broken, on_fail=None) == expected
        expected["check_predict_proba"] = "xfail"
        reasons = {"check_predict_proba": "they are scores", **QUICK}
        assert statuses(broken, reasons) == expected

    def test_results_are_told_one_by_one(self, broken):
        told = []
        reason = {"check_predict_proba": "they are scores", **QUICK}
        results = check_sparse_targets(
            broken, on_fail=None, expected_failed_checks=reason,
            callback=lambda **result: told.append(result),
        )  # fmt: skip
        assert told == results
        assert all(result["estimator"] is broken for result in results)
        found = {result["check_name"]: result for result in results}
        assert isinstance(found["check_predict_proba"]["exception"], AssertionError)
        assert found["check_predict_proba"]["expected_to_fail_reason"] == "they are scores"
        assert found["check_no_dense_array"]["status"] == "xfail"
        assert found["check_no_dense_array"]["exception"] is None
        assert not found["check_score"]["expected_to_fail"]

    def test_a_failure_may_warn(self, broken):
        with pytest.warns(UserWarning, match="check_predict_proba failed for Mutant: Mutant: pred"):
            statuses(broken, on_fail="warn")

    @pytest.mark.parametrize(
        ("named", "error", "says"),
        [
            ({"estimator": CentroidXC}, TypeError, "an instance, not a class. Got <class"),
            ({"on_fail": "stop"}, ValueError, r"on_fail must be one of .* Got 'stop'\."),
            ({"on_skip": "raise"}, ValueError, r"on_skip must be one of .* Got 'raise'\."),
            ({"callback": print}, ValueError, "on_fail='raise'"),
            ({"expected_failed_checks": {"check_x": "y"}}, ValueError, r"Got 'check_x'\."),
        ],
        ids=range(5),
    )
    def test_arguments_are_refused(self, named, error, says):
        with pytest.raises(error, match=says):
            check_sparse_targets(**{"estimator": CentroidXC(), **named})

    def test_expected_failures_of_each_estimator(self):
        marked = parametrize_with_sparse_checks(
            [CentroidXC(), CentroidXC(top_k=3)],
            expected_failed_checks=lambda e: {"check_score": "?"} if e.top_k == 3 else {},
            xfail_strict=False,
        )
        cases = marked.args[1]
        (of_three,) = [case for case in cases if case.marks]
        assert of_three.values[0].top_k == 3
        assert of_three.values[1].func.__name__ == "check_score"
        assert of_three.marks[0].kwargs == {"reason": "?", "run": True, "strict": False}
        assert len(cases) == len(set(marked.kwargs["ids"])) == 2 * len([*CHECKS, *TOPK_CHECKS])
        with pytest.raises(ValueError, match=r"Got 'check_x'\."):
            parametrize_with_sparse_checks([CentroidXC()], expected_failed_checks={"check_x": ""})


def test_pytest_is_not_needed():
    code = "import sys, sklearn_xc.testing as t; assert t.__all__; print('pytest' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
