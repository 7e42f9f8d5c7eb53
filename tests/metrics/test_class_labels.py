"""True classes by their labels, of any kind, as by their positions."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.naive_bayes import GaussianNB

from sklearn_xc import topk
from sklearn_xc.metrics import TopKScorer, get_scorer, ndcg_at_k, precision_at_k, psp_at_k

P = np.array([0.5, 0.25, 0.1, 1.0])
#: Four classes, not in order, and one more that is not among them.
TEXTS = ["dog", "a", "cat", "bee", "elephant"]
INTS = [30, -7, 12, 2**40, 5]


def all_metrics(Y_true, ranked, k, **arguments):
    values = [f(Y_true, ranked, k, **arguments) for f in (precision_at_k, ndcg_at_k)]
    return [*values, psp_at_k(Y_true, ranked, k, propensities=P, **arguments)]


@pytest.mark.parametrize(
    ("labels", "container"),
    [
        (TEXTS, list),
        (TEXTS, lambda values: np.array(values, object)),
        (TEXTS, pd.Categorical),
        (INTS, np.asarray),
        (INTS, lambda values: np.array(values)[:, None]),
        (INTS, pd.Categorical),
        ([0.5, -1.0, 0.25, 1e300, 2.0], pd.Series),
    ],
)
def test_labels_count_as_their_positions(labels, container):
    positions = np.array([2, 0, 4, 1, 3, 0])
    rng = np.random.default_rng(0)
    ranked = np.array([rng.permutation(4)[:3] for _ in positions])
    y = container([labels[at] for at in positions])
    at = np.where(positions < 4, positions, -1)
    assert all_metrics(y, ranked, 2, classes=labels[:4]) == all_metrics(at, ranked, 2)


@pytest.mark.parametrize("dtype", ["str", "string", "category", object])
def test_texts_of_pandas(dtype):
    y = pd.Series(["ant", "bee", "eel"], dtype=dtype)
    assert precision_at_k(y, [[0], [1], [0]], 1, classes=["ant", "bee"]) == pytest.approx(2 / 3)


def test_minus_one_is_a_label_like_any_other_among_classes():
    assert precision_at_k([-1, 3], [[0], [1]], 1, classes=[-1, 3]) == 1.0
    assert precision_at_k([-1, 3], [[0], [1]], 1, classes=[2, 3]) == 0.5


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_an_indicator_needs_no_classes_but_may_have_them(container):
    Y = container(np.array([[1, 0, 1], [0, 1, 0]]))
    ranked = [[0, 1], [0, 1]]
    expected = precision_at_k(Y, ranked, 2)
    forest = [np.array([0, 1])] * 3  # classes_ of scikit-learn's forests
    for classes in (["a", "b", "c"], np.arange(3), forest):
        assert precision_at_k(Y, ranked, 2, classes=classes) == expected
    with pytest.raises(ValueError, match=r"classes: Y_true has 3 label columns. Got 4 classes"):
        precision_at_k(Y, ranked, 2, classes=range(4))


def test_metrics_take_what_scorers_take():
    rng = np.random.default_rng(0)
    at = rng.integers(0, 4, 60)
    X, y = rng.random((60, 4)), np.array(["dog", "ant", "cat", "bee"])[at]
    X[np.arange(60), at] += 0.4
    model = GaussianNB().fit(X, y)
    y = np.where(np.arange(60) < 5, "elephant", y)  # absent in training, and a longer text
    expected = TopKScorer((1, 3), ("precision", "ndcg", "psp"), propensities=P)(model, X, y)
    found = all_metrics(y, topk(model, X, 3), [1, 3], classes=model.classes_)
    by_name = dict(zip(("P", "nDCG", "PSP"), found, strict=True))
    assert expected == {f"{m}@{k}": by_name[m][i] for m in by_name for i, k in enumerate((1, 3))}
    assert get_scorer("P@1")(model, X, y) == pytest.approx(model.score(X, y))


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        (["a", "b"], None, r"Y_true: .* pass classes=clf.classes_"),
        ([True, False], None, r"Y_true: .* Got dtype bool. .* pass classes=clf.classes_"),
        ([-5, 3], None, r"Y_true: positions .* Got -5 at row 0. .* classes=clf.classes_"),
        ([1, 2], ["a", "b"], r"Y_true: .* such as .*'a'.*\. Got 1 at row 0"),
        (["1", "2"], [1, 2], "Y_true: .* Got '1' at row 0"),
        (["a", None], ["a", "b"], "Y_true: .* Got None at row 1"),
        (pd.Series(["a", pd.NA], dtype="string"), ["a", "b"], "Y_true: .* Got <NA> at row 1"),
        ([1.0, np.nan], [1, 2], "Y_true: .* Got nan at row 1"),
        ([1, 2], [1, 2, 1], "classes: expected different ones. Got 1 twice"),
        ([1, 2], [], r"classes: expected a sequence of class labels, .* Got list of shape \(0,\)"),
        ([1, 2], 5, r"classes: expected a sequence of class labels, .* Got int of shape \(\)"),
    ],
)
def test_errors_name_argument_and_value(y, classes, message):
    with pytest.raises(ValueError, match=message):
        precision_at_k(y, [[0, 1]] * len(y), 1, classes=classes)


def test_masks():
    for y, classes in (([1, 2], np.ma.array([1, 2])), (np.ma.array([1, 2]), [1, 2])):
        with pytest.raises(TypeError, match=r"(classes|Y_true) is a masked array"):
            precision_at_k(y, [[0], [0]], 1, classes=classes)
