"""Precision and recall over the threshold: beside plain loops, scikit-learn and predict."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import precision_recall_curve, precision_score, recall_score

from sklearn_xc import SoftmaxUMax, TextClassifierXC
from sklearn_xc.inspection import MicroPrecisionRecallDisplay

draw = MicroPrecisionRecallDisplay.from_predictions


def made(seed=0, n=40, n_labels=9):
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(n, n_labels)).round(1)  # with ties
    return (rng.random(S.shape) < 1 / (1 + np.exp(1 - S))).astype(int), S


def ranked(S, k):
    best = np.argsort(-S, axis=1, kind="stable")[:, :k]
    return best, np.take_along_axis(S, best, axis=1)


@pytest.mark.parametrize("k", [1, 3, 9])
def test_as_in_plain_loops(k):
    Y, S = made()
    best, scores = ranked(S, k)
    display = draw(Y, (best, scores), k=k, threshold=0.25)
    assert display.thresholds.tolist() == sorted(set(scores.ravel()), reverse=True)
    f1s = []
    for at, threshold in enumerate(display.thresholds):
        named = np.zeros_like(Y)
        for row in range(len(Y)):
            for label, score in zip(best[row], scores[row], strict=True):
                named[row, label] = score >= threshold
        assert display.precision[at] == precision_score(Y, named, average="micro")
        assert display.recall[at] == recall_score(Y, named, average="micro")
        f1s.append(2 * (Y & named).sum() / (Y.sum() + named.sum()))
    assert display.best_f1 == pytest.approx(max(f1s))
    assert display.best_threshold == display.thresholds[int(np.argmax(f1s))]
    above = [
        (row, label)
        for row in range(len(Y))
        for label, score in zip(best[row], scores[row], strict=True)
        if score > 0.25
    ]
    right = sum(Y[i, label] for i, label in above)
    assert display.predict_precision == right / len(above)
    assert display.predict_recall == right / Y.sum()
    assert display.mark_.get_xdata() == [100 * display.predict_recall]
    np.testing.assert_array_equal(display.line_.get_xdata(), 100 * display.recall)
    np.testing.assert_array_equal(display.line_.get_ydata(), 100 * display.precision)


def test_all_labels_as_in_scikit_learn():
    Y, S = made(3)
    display = draw(Y, ranked(S, 9), k=9)
    precision, recall, thresholds = precision_recall_curve(Y.ravel(), S.ravel())
    np.testing.assert_allclose(display.thresholds, thresholds[::-1])
    np.testing.assert_allclose(display.precision, precision[:-1][::-1])
    np.testing.assert_allclose(display.recall, recall[:-1][::-1])
    assert display.predict_precision is None
    assert display.mark_ is None


def test_sparse_scores_are_the_same():
    Y, S = made(1)
    S = np.where(np.abs(S) < 0.05, 0.05, S)
    a, b = draw(sp.csr_array(Y), sp.csr_array(S), k=4), draw(Y, ranked(S, 4), k=4)
    for name in ("precision", "recall", "thresholds"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("kind", ["ova", "softmax", "decomposition"])
def test_the_mark_is_that_of_predict_and_on_the_line(fitted_models, xy, kind):
    X, Y = xy
    model = fitted_models[kind]
    display = MicroPrecisionRecallDisplay.from_estimator(model, X, Y, k=15)
    named = model.predict(X).toarray()
    truth = Y.toarray()
    assert display.predict_precision == pytest.approx(
        precision_score(truth, named, average="micro")
    )
    assert display.predict_recall == pytest.approx(recall_score(truth, named, average="micro"))
    distance = np.hypot(
        display.precision - display.predict_precision, display.recall - display.predict_recall
    )
    assert distance.min() < 1e-12


@pytest.mark.parametrize("container", [np.asarray, "classes"])
def test_of_dense_targets_and_classes(xy, container):
    X, Y = xy
    if container == "classes":
        y = np.array(["bee", "ant", "cat"])[X.toarray()[:, :3].argmax(axis=1)]
    else:
        y = Y.toarray().astype(int)
    model = SoftmaxUMax(learning_rate=0.1, max_iter=2, random_state=0).fit(X, y)
    display = MicroPrecisionRecallDisplay.from_estimator(model, X, y, k=3)
    named = model.predict(X)
    expected = np.mean(named == y) if y.ndim == 1 else precision_score(y, named, average="micro")
    assert display.predict_precision == pytest.approx(expected)


def test_of_texts_with_names():
    texts = ["red apple", "green pear", "red rose", "green leaf"] * 5
    names = [["fruit", "red"], ["fruit"], ["red"], []] * 5
    model = TextClassifierXC().fit(texts, names)
    names[0] = ["fruit", "red", "never seen"]
    display = MicroPrecisionRecallDisplay.from_estimator(model, texts, names, k=2)
    named = model.predict(texts)
    right = sum(len(set(a) & set(b)) for a, b in zip(names, named, strict=True))
    assert display.predict_recall == right / sum(map(len, names))
    assert display.predict_precision == right / sum(map(len, named))
    assert display.recall[-1] <= 20 / 21


def test_a_model_that_names_nothing_has_no_mark():
    Y, S = made()
    display = draw(Y, ranked(S, 3), k=3, threshold=1e9)
    assert display.predict_precision is None
    assert display.mark_ is None


def test_lines_of_f1():
    Y, S = made()
    display = draw(Y, ranked(S, 3), k=3)
    lines = [line for line in display.ax_.lines if line.get_gid() == "F1"]
    assert len(lines) == 4
    for line, f1 in zip(lines, (0.2, 0.4, 0.6, 0.8), strict=True):
        recall, precision = line.get_data()
        np.testing.assert_allclose(2 * precision * recall / (precision + recall), 100 * f1)
    draw(Y, ranked(S, 3), k=3, ax=display.ax_)
    assert len([line for line in display.ax_.lines if line.get_gid() == "F1"]) == 4
    assert len(display.plot(f1_lines=False).ax_.lines) == 1


def test_a_long_curve_is_drawn_with_fewer_points():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (2000, 5))
    display = draw(Y, ranked(rng.random((2000, 5)), 5), k=5)
    assert len(display.recall) == 10_000
    drawn = display.line_.get_xdata()
    assert len(drawn) <= 4000
    assert drawn[0] == 100 * display.recall[0]
    assert drawn[-1] == 100 * display.recall[-1]


GOOD = {"y_true": np.eye(3, dtype=int), "k": 2, "topk": ranked(np.full((3, 3), 0.5), 2)}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"threshold": np.nan}, "threshold must be a finite number or None. Got nan"),
        ({"threshold": "0"}, "threshold must be a finite number or None. Got '0'"),
        ({"threshold": True}, "threshold must be a finite number"),
        ({"k": 0}, "MicroPrecisionRecallDisplay: k must be an integer of at least 1. Got 0"),
        ({"k": 3}, "k must be at most 2"),
        ({"topk": GOOD["topk"][0]}, r"topk must be a tuple \(indices, .* Got ndarray"),
        ({"topk": [*GOOD["topk"]]}, r"topk must be a tuple \(indices, .* Got list"),
        ({"topk": GOOD["topk"][::-1]}, "topk: expected the best score first"),
        ({"y_true": np.zeros((3, 3))}, "y must hold a true label.* Got none"),
        ({"y_true": ["a", "b", "c"]}, r"Y_true: .* pass classes=clf\.classes_"),
    ],
)
def test_errors_name_argument_and_value(changed, message):
    with pytest.raises(ValueError, match=message):
        draw(**(GOOD | changed))


def test_index_arrays_that_lie(malformed, fitted_models, xy):
    Y, S = made()
    with pytest.raises(ValueError, match=r"Y_true: this .* is malformed"):
        draw(malformed(sp.csr_array(Y)), ranked(S, 2), k=2)
    with pytest.raises(ValueError, match=r"topk: this .* is malformed"):
        draw(Y, malformed(sp.csr_array(S)), k=2)
    with pytest.raises(ValueError, match=r"X: this .* is malformed"):
        MicroPrecisionRecallDisplay.from_estimator(fitted_models["ova"], malformed(xy[0]), xy[1])


def test_the_axis_of_one_label():
    Y, S = made()
    for k, says in ((1, "of the best label (%)"), (2, "of the 2 best labels (%)")):
        found = draw(Y, ranked(S, k), k=k)
        assert found.ax_.get_xlabel() == f"micro-averaged recall {says}"
