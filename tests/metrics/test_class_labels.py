"""True classes by their labels, of any kind, as by their positions."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import GaussianNB

from sklearn_xc import topk
from sklearn_xc.metrics import (
    TopKScorer,
    get_scorer,
    ndcg_at_k,
    precision_at_k,
    psndcg_at_k,
    psp_at_k,
    recall_at_k,
)

P = np.array([0.5, 0.25, 0.1, 1.0])
NAMES = ("precision", "recall", "ndcg", "psp", "psndcg")
#: Four classes, not in order, and one more that is not among them.
KINDS = {
    "texts": ["dog", "ant", "cat", "bee", "eel"],
    "texts of other lengths": ["dog", "a", "cat", "bee", "elephant"],
    "bytes": [b"dog", b"ant", b"cat", b"bee", b"eel"],
    "ints": [30, -7, 12, 2**40, 5],
    "floats": [0.5, -1.0, 0.25, 1e300, 2.0],
    "dates": np.array(["2024", "2020", "2022", "2021", "2023"], "datetime64[Y]"),
    "time spans": np.array([5, 1, 3, 2, 4], "timedelta64[D]"),
}
CONTAINERS = {
    "list": list,
    "array": np.asarray,
    "objects": lambda values: np.array(list(values), object),
    "Series": pd.Series,
    "Index": pd.Index,
    "Categorical": pd.Categorical,
}


def all_metrics(Y_true, ranked, k, **arguments):
    values = [f(Y_true, ranked, k, **arguments) for f in (precision_at_k, recall_at_k, ndcg_at_k)]
    return values + [
        f(Y_true, ranked, k, propensities=P, **arguments) for f in (psp_at_k, psndcg_at_k)
    ]


@settings(max_examples=40)
@given(st.data())
@pytest.mark.parametrize("kind", KINDS)
def test_labels_count_as_their_positions(kind, data):
    labels = KINDS[kind]
    positions = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=6))
    containers = sorted(CONTAINERS)
    if kind in ("dates", "time spans"):
        containers.remove("objects")
    container = data.draw(st.sampled_from(containers))
    of_classes = data.draw(st.sampled_from(["list", "array"]))
    rng = np.random.default_rng(0)
    ranked = np.array([rng.permutation(4)[:3] for _ in positions])
    y = CONTAINERS[container](np.asarray(labels)[positions])
    classes = CONTAINERS[of_classes](labels[:4])
    at = np.where(np.array(positions) < 4, positions, -1)
    assert all_metrics(y, ranked, 2, classes=classes) == all_metrics(at, ranked, 2)


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


@pytest.fixture
def texts():
    rng = np.random.default_rng(0)
    at = rng.integers(0, 4, 60)
    X = rng.random((60, 4))
    X[np.arange(60), at] += 0.4
    return X, np.array(["dog", "ant", "cat", "bee"])[at]


def test_metrics_take_what_scorers_take(texts):
    X, y = texts
    model = GaussianNB().fit(X, y)
    y = np.where(np.arange(60) < 5, "elephant", y)  # absent in training, and a longer text
    arguments = {"ks": (1, 3), "metrics": NAMES, "propensities": P}
    expected = TopKScorer(**arguments)(model, X, y)
    found = all_metrics(y, topk(model, X, 3), [1, 3], classes=model.classes_)
    by_name = dict(zip(("P", "R", "nDCG", "PSP", "PSnDCG"), found, strict=True))
    assert expected == {f"{m}@{k}": by_name[m][i] for m in by_name for i, k in enumerate((1, 3))}
    assert get_scorer("P@1")(model, X, y) == pytest.approx(model.score(X, y))


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        (["a", "b"], None, r"Y_true: .* pass classes=clf.classes_"),
        ([0.0, 1.0], None, r"Y_true: .* Got dtype float64. .* pass classes=clf.classes_"),
        ([True, False], None, r"Y_true: .* Got dtype bool. .* pass classes=clf.classes_"),
        ([-5, 3], None, r"Y_true: positions .* Got -5 at row 0. .* classes=clf.classes_"),
        ([1, 2], ["a", "b"], "Y_true: .* texts of dtype <U1. Got dtype int64"),
        (["1", "2"], [1, 2], "Y_true: .* numbers of dtype int64. Got dtype <U1"),
        ([b"a", b"b"], ["a", "b"], "Y_true: .* texts of dtype <U1. Got dtype [|]S1"),
        (np.array(["2020"], "datetime64[Y]"), [1, 2], "Y_true: .* Got dtype datetime64"),
        ([1, 2], np.array(["2020"], "datetime64[Y]"), "Y_true: .* dates of dtype datetime64"),
        (["a", None], ["a", "b"], "Y_true: expected classes of one kind, .* Got None at 1"),
        ([None, "a"], ["a", "b"], "Y_true: expected classes of one kind, .* Got None at 0"),
        (np.array(["a", np.nan], object), ["a", "b"], "Y_true: .* Got nan at 1"),
        (pd.Series(["a", None]), ["a", "b"], "Y_true: .* at 1"),
        (pd.Series(["a", pd.NA], dtype="string"), ["a", "b"], "Y_true: .* Got <NA> at 1"),
        (np.array(["a", 1], object), ["a", "b"], "Y_true: .* Got 1 at 1"),
        (np.array([1, "a"], object), [1, 2], "Y_true: .* Got 'a' at 1"),
        ([1.0, np.nan], [1, 2], "Y_true: expected a class for each entry. Got nan at 1"),
        (np.array(["NaT"], "datetime64[D]"), np.array(["2020"], "datetime64[D]"), "Got NaT at 0"),
        ([1j, 2j], [1, 2], "Y_true: expected numbers or texts as classes. Got dtype complex128"),
        (np.array([10**400, 1], object), [1, 2], "Y_true: expected numbers .* Got dtype object"),
        ([1, 2], [1, 2, 1], "classes: expected different ones. Got 1 twice"),
        ([1, 2], [], r"classes: expected a sequence of class labels, .* Got list of shape \(0,\)"),
        ([1, 2], 5, r"classes: expected a sequence of class labels, .* Got int of shape \(\)"),
        ([1, 2], "ab", r"classes: expected a sequence of class labels, .* Got str of shape \(\)"),
        ([1, 2], np.ones((2, 2)), r"classes: .* Got ndarray of shape \(2, 2\)"),
        ([1, 2], sp.csr_array([[1, 2]]), "classes: .* Got csr_array"),
        ([1, 2], [1, np.nan], "classes: expected a class for each entry. Got nan at 1"),
        (["a", "b"], ["a", None], "classes: expected classes of one kind, .* Got None at 1"),
    ],
)
def test_errors_name_argument_and_value(y, classes, message):
    with pytest.raises(ValueError, match=message):
        precision_at_k(y, [[0, 1]] * len(y), 1, classes=classes)


def test_masks():
    for y, classes in (([1, 2], np.ma.array([1, 2])), (np.ma.array([1, 2]), [1, 2])):
        with pytest.raises(TypeError, match=r"(classes|Y_true) is a masked array"):
            precision_at_k(y, [[0], [0]], 1, classes=classes)
