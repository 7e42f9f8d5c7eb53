"""Coverage, macro averages at k, and F1 of predicted labels, against scikit-learn and by hand."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_score, recall_score

from sklearn_xc.metrics import (
    _label_counts,
    coverage_at_k,
    instance_f1,
    macro_f1,
    macro_f1_at_k,
    macro_precision_at_k,
    macro_recall_at_k,
    micro_f1,
)

AT_K = {
    "coverage": coverage_at_k,
    "f1": macro_f1_at_k,
    "precision": macro_precision_at_k,
    "recall": macro_recall_at_k,
}
OF_SCIKIT_LEARN = {"f1": f1_score, "precision": precision_score, "recall": recall_score}
OVER = (None, "all", "present", "true")

Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
TOPK = np.array([[2, 3, 0], [3, 1, -1], [0, 1, 2]])


@st.composite
def problems(draw):
    """Return an indicator of two labels or more, a ranking with padding, k and weights."""
    n_samples, n_labels = draw(st.integers(1, 8)), draw(st.integers(2, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    Y_true = rng.random((n_samples, n_labels)) < draw(st.sampled_from([0.0, 0.2, 0.6, 1.0]))
    Y_true &= rng.random(n_labels) < 0.7  # labels without positives
    topk = np.array([rng.permutation(n_labels) for _ in range(n_samples)])
    topk[np.arange(n_labels) >= rng.integers(0, n_labels + 1, n_samples)[:, None]] = -1
    weights = draw(st.sampled_from([None, 1.0 + rng.integers(0, 3, n_samples)]))
    return Y_true.astype(int), topk, draw(st.integers(1, n_labels)), weights


def indicator_of(topk, k, n_labels):
    named = np.zeros((len(topk), n_labels), int)
    for row, labels in enumerate(topk[:, :k]):
        named[row, labels[labels >= 0]] = 1
    return named


@given(problems())
def test_macro_averages_are_those_of_scikit_learn(problem):
    Y_true, topk, k, weights = problem
    named = indicator_of(topk, k, Y_true.shape[1])
    for name, reference in OF_SCIKIT_LEARN.items():
        of_each = reference(Y_true, named, average=None, zero_division=0, sample_weight=weights)
        masks = {
            "all": np.ones(len(of_each), bool),
            "present": (Y_true | named).any(axis=0),
            "true": Y_true.any(axis=0),
        }
        expected = {over: of_each[m].mean() if m.any() else 0.0 for over, m in masks.items()}
        expected[None] = reference(
            Y_true, named, average="macro", zero_division=0, sample_weight=weights
        )
        for over in OVER:
            options = {"over": over, "sample_weight": weights}
            for spare in (_label_counts._SPARE, -1000):  # labels that do not occur are left out
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(_label_counts, "_SPARE", spare)
                    found = AT_K[name](sp.csr_array(Y_true), topk, k, **options)
                    assert found == pytest.approx(expected[over], rel=1e-12, abs=1e-15)
                    if name == "f1":
                        predicted = sp.csr_array(named)
                        found = macro_f1(Y_true, predicted, **options)
                        assert found == pytest.approx(expected[over], rel=1e-12, abs=1e-15)


@given(problems())
def test_present_is_the_nan_of_scikit_learn(problem):
    Y_true, topk, k, _ = problem
    named = indicator_of(topk, k, Y_true.shape[1])
    if (Y_true | named).any():
        expected = f1_score(Y_true, named, average="macro", zero_division=np.nan)
        assert macro_f1(Y_true, named, over="present") == pytest.approx(expected)


@given(problems())
def test_micro_and_instance_f1_are_those_of_scikit_learn(problem):
    Y_true, topk, k, weights = problem
    named = indicator_of(topk, k, Y_true.shape[1])
    for function, average in ((micro_f1, "micro"), (instance_f1, "samples")):
        expected = f1_score(Y_true, named, average=average, zero_division=0, sample_weight=weights)
        for true in (Y_true, sp.csr_matrix(Y_true), sp.coo_array(Y_true), Y_true.astype(bool)):
            for predicted in (named, sp.csc_array(named), sp.csr_array(named.astype(np.float32))):
                found = function(true, predicted, sample_weight=weights)
                assert found == pytest.approx(expected, rel=1e-12, abs=1e-15)


@given(st.data())
@pytest.mark.parametrize(
    "labels", [["ant", "bee", "cat"], [-1, 5, 2**40], [0.5, 1.0, -2.0]], ids=["text", "int", "real"]
)
def test_one_class_per_row_as_in_scikit_learn(labels, data):
    n = data.draw(st.integers(1, 8))
    true, named = (
        [labels[i] for i in data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))]
        for _ in range(2)
    )
    weights = data.draw(st.sampled_from([None, 1.0 + np.arange(n)]))
    as_texts = [[str(label) for label in y] for y in (true, named)]  # it takes no real numbers
    for function, average in ((micro_f1, "micro"), (macro_f1, "macro"), (instance_f1, "micro")):
        expected = f1_score(*as_texts, average=average, zero_division=0, sample_weight=weights)
        for container in (list, np.array, pd.Series):
            found = function(container(true), container(named), sample_weight=weights)
            assert found == pytest.approx(expected, rel=1e-12)


@given(problems())
def test_coverage_by_sets(problem):
    Y_true, topk, k, _ = problem
    sets = [set(np.flatnonzero(row)) for row in Y_true]
    true = set().union(*sets)
    found = set().union(*(s & set(row[:k]) for s, row in zip(sets, topk, strict=True)))
    expected = len(found) / len(true) if true else 0.0
    for container in (np.asarray, sp.csr_array, sp.csc_matrix):
        assert coverage_at_k(container(Y_true), topk, k) == expected


def test_coverage_of_napkinxc():
    napkinxc = pytest.importorskip("napkinxc.metrics")
    rng = np.random.default_rng(3)
    Y_true = rng.random((80, 60)) < 0.5 / np.arange(1, 61)
    topk = np.array([rng.permutation(60)[:5] for _ in range(80)])
    rankings = [[int(label) for label in row] for row in topk]
    expected = napkinxc.coverage_at_k(sp.csr_matrix(Y_true.astype(float)), rankings, k=5)
    assert 0 < expected[0] < expected[-1] < 1
    np.testing.assert_allclose(coverage_at_k(Y_true, topk, range(1, 6)), expected, rtol=1e-12)


def test_by_hand():
    # Labels 0, 1 and 2 are true; 2 is found at rank 1, 1 at rank 2, 0 at rank 3.
    assert coverage_at_k(Y, TOPK, [1, 2, 3]).tolist() == [1 / 3, 2 / 3, 1]
    # At 2: label 0 named once, wrongly; 1 twice, once rightly; 2 once, rightly; 3 twice, wrongly.
    assert macro_precision_at_k(Y, TOPK, 2) == pytest.approx((0 + 1 / 2 + 1 + 0) / 4)
    assert macro_recall_at_k(Y, TOPK, 2) == pytest.approx((0 + 1 + 1 + 0) / 4)
    assert macro_recall_at_k(Y, TOPK, 2, over="true") == pytest.approx((0 + 1 + 1) / 3)
    assert macro_f1_at_k(Y, TOPK, 2) == pytest.approx((0 + 2 / 3 + 1 + 0) / 4)
    assert macro_f1_at_k(Y[:2], TOPK[:2], 1, over="present") == pytest.approx((1 + 0 + 0 + 0) / 4)


@pytest.mark.parametrize("metric", AT_K.values(), ids=AT_K)
def test_weight_zero_drops_a_row_and_two_repeats_it(metric):
    for over in OVER if metric is not coverage_at_k else [None]:
        options = {} if metric is coverage_at_k else {"over": over}
        weighted = metric(Y, TOPK, [1, 2, 3], sample_weight=[2, 0, 1], **options)
        repeated = metric(Y[[0, 0, 2]], TOPK[[0, 0, 2]], [1, 2, 3], **options)
        np.testing.assert_allclose(weighted, repeated, rtol=1e-14)


@pytest.mark.parametrize("metric", [micro_f1, macro_f1, instance_f1])
def test_weights_of_predictions(metric):
    named = indicator_of(TOPK, 2, 4)
    rows = [0, 0, 2]
    assert metric(Y, named, sample_weight=[2, 0, 1]) == pytest.approx(metric(Y[rows], named[rows]))
    assert type(metric(Y, named)) is float


def test_class_positions_and_labels():
    y, topk = np.array([2, 0, 2, -1]), np.array([[2, 0], [1, 0], [0, 1], [1, 0]])
    assert coverage_at_k(y, topk, [1, 2]).tolist() == [1 / 2, 1]
    # Label 0: named once at rank 1, wrongly; 1: twice, wrongly; 2: once, rightly, of two.
    assert macro_f1_at_k(y, topk, 1) == pytest.approx((0 + 0 + 2 / 3) / 3)
    names = np.array(["ant", "bee", "cat", "dog"])
    labels = np.append(names[y[:3]], "eel")
    assert macro_f1_at_k(labels, topk, 1, classes=names) == pytest.approx((2 / 3) / 4)
    assert macro_f1_at_k(labels, topk, 1, classes=names, over="present") == pytest.approx(2 / 9)
    assert coverage_at_k(labels, topk, 1, classes=names) == 1 / 2


def test_sparse_scores_and_pairs_rank_alike():
    scores = sp.csr_array(np.array([[0.2, 0, 0.9, 0.5], [0, 0.4, 0, 0.6], [0.9, 0.5, 0.2, 0]]))
    ranked = np.argsort(-scores.toarray(), axis=1, kind="stable")
    for metric in AT_K.values():
        assert metric(Y, scores, 2) == metric(Y, TOPK, 2) == metric(Y, ranked, 2)


def test_nothing_true_and_nothing_named():
    nothing, empty = sp.csr_array((3, 4)), np.full((3, 2), -1)
    for metric in AT_K.values():
        assert metric(nothing, TOPK, 2) == metric(Y, empty, 2) == metric(nothing, empty, 2) == 0.0
    assert macro_f1_at_k(nothing, empty, 1, over="present") == 0.0
    for metric in (micro_f1, macro_f1, instance_f1):
        assert metric(nothing, nothing) == metric(Y, nothing) == 0.0


def test_declared_width_takes_no_memory():
    Y_true = sp.csr_array((np.ones(2), ([0, 1], [3, 2**60])), shape=(2, 2**61))
    topk = np.array([[3], [2**59]])
    assert coverage_at_k(Y_true, topk, 1) == 0.5
    assert macro_f1_at_k(Y_true, topk, 1) == 1 / 2**61
    assert macro_f1(Y_true, Y_true, over="true") == micro_f1(Y_true, Y_true) == 1.0


nan = float("nan")


@pytest.mark.parametrize("metric", [micro_f1, macro_f1, instance_f1])
@pytest.mark.parametrize(
    ("Y_true", "Y_pred", "message"),
    [
        (Y, Y[:2], r"Y_pred: expected shape \(3, 4\), that of Y_true. Got \(2, 4\)"),
        (sp.csr_array(Y), sp.csr_array(Y[:, :3]), r"Y_pred: expected shape .* Got \(3, 3\)"),
        (Y, [0, 1, 2], r"Y_pred: expected shape \(3, 4\), that of Y_true. Got \(3,\)"),
        ([0, 1, 2], Y, r"Y_pred: expected shape \(3,\)"),
        (Y, 2 * Y, "Y_pred: an indicator holds only 0 and 1. Got 2 at row 0, column 0"),
        (Y, sp.csr_array(Y * 0.5), "Y_pred: an indicator .* Got 0.5 at row 0"),
        (sp.csr_array(-Y), Y, "Y_true: an indicator .* Got -1 at row 0"),
        (Y, np.where(Y, nan, 0), "Y_pred: .* Got nan at row 0"),
        (Y, Y.astype(str), "Y_pred: expected an indicator of 0 and 1. Got dtype <U"),
        (["a", "b"], [0, 1], "Y_pred: expected class labels as those in Y_true, texts of dtype <U"),
        (["a", None], ["a", "b"], "Y_true: expected classes of one kind.* Got None at 1"),
        ([0.0, nan], [0.0, 1.0], "Y_true: expected a class for each entry. Got nan at 1"),
        (Y[:0], Y[:0], "Y_true: expected at least one row. Got none"),
        (Y[None], Y, r"Y_true: expected 1 or 2 dimensions. Got shape \(1, 3, 4\)"),
        (Y, [[0, 1], [2], []], "Y_pred: .*encode_targets.*unequal length"),
        (sp.coo_array(Y[0]), Y, "Y_true: .* 2 dimensions"),
    ],
)
def test_error_of_predictions_names_argument_and_value(metric, Y_true, Y_pred, message):
    with pytest.raises(ValueError, match=message):
        metric(Y_true, Y_pred)


@pytest.mark.parametrize("metric", [micro_f1, macro_f1, instance_f1])
def test_disguised_predictions(metric, malformed):
    with pytest.raises(ValueError, match=r"Y_pred: this .* is malformed"):
        metric(Y, malformed(Y))
    with pytest.raises(TypeError, match="Y_pred is a masked array"):
        metric(Y, np.ma.masked_equal(Y, 3))
    with pytest.raises(ValueError, match=r"sample_weight has shape \(2,\), expected \(3,\)"):
        metric(Y, Y, sample_weight=[1, 1])


@pytest.mark.parametrize("over", ["macro", "", 1, True, ["all"], np.array(["all", "true"])])
def test_over_is_one_of_three(over):
    for metric in (macro_f1_at_k, macro_precision_at_k, macro_recall_at_k):
        with pytest.raises(ValueError, match=r"over: expected None or one of .'all'.* Got "):
            metric(Y, TOPK, over=over)
    with pytest.raises(ValueError, match="over: expected None or one of"):
        macro_f1(Y, Y, over=over)


def test_all_labels_are_not_known_from_classes():
    message = 'over: "all" needs the number of labels.* Got one class per row; over="present"'
    with pytest.raises(ValueError, match=message):
        macro_f1_at_k([0, 1, 2], TOPK, 1, over="all")
    with pytest.raises(ValueError, match=message):
        macro_f1(["a", "b"], ["a", "a"], over="all")
