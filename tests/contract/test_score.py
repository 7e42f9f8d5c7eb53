"""``score`` takes what ``fit`` took, and nothing that only looks like it."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from sklearn_xc import ImplicitSoftmaxSGD, OvALinearXC
from sklearn_xc.metrics import precision_at_k

N = 40
MODELS = [
    lambda: OvALinearXC(),
    lambda: ImplicitSoftmaxSGD(max_iter=3, learning_rate=0.3, random_state=0),
]


@pytest.fixture(scope="module")
def X():  # noqa: N802
    rng = np.random.default_rng(0)
    X = 0.1 * rng.random((N, 6))
    X[np.arange(N), np.arange(N) % 3] += 1
    return X


@pytest.fixture(scope="module", params=MODELS, ids=["OvALinearXC", "ImplicitSoftmaxSGD"])
def fitted(request, X):
    """Return models of numbers, of texts and of an indicator, with the y of each."""
    numbers = np.arange(N) % 3
    texts = np.array(["a", "b", "c"])[numbers]
    indicator = sp.csr_array(np.eye(3)[numbers])
    return {
        kind: (request.param().fit(X, y), y)
        for kind, y in {"numbers": numbers, "texts": texts, "indicator": indicator}.items()
    }


def test_good_ones(fitted, X):
    for kind in ("numbers", "texts"):
        model, y = fitted[kind]
        accuracy = float(np.mean(model.predict(X) == y))
        assert accuracy > 0.9
        for same in (y, y.tolist(), pd.Series(y), pd.Categorical(y)):
            assert model.score(X, same) == accuracy
        flipped = y[::-1].copy()
        weight = np.arange(N) % 4
        expected = np.average(model.predict(X) == flipped, weights=weight)
        assert model.score(X, flipped, weight) == pytest.approx(expected, rel=1e-12)
    model, Y = fitted["indicator"]
    expected = precision_at_k(Y, model.predict_topk(X, 1)[0], 1)
    for same in (Y, Y.tocsc(), Y.toarray(), Y.toarray().astype(bool), sp.coo_matrix(Y)):
        assert model.score(X, same) == expected


def test_a_column_is_a_vector_with_a_warning(fitted, X):
    model, y = fitted["numbers"]
    with pytest.warns(UserWarning, match="column-vector"):
        assert model.score(X, y[:, None]) == model.score(X, y)


def test_classes_that_fit_has_not_seen_are_missed(fitted, X):
    model, y = fitted["numbers"]
    assert model.score(X, np.where(y == 2, 7, y)) < model.score(X, y)
    assert model.score(X, np.full(N, 9)) == 0
    assert fitted["texts"][0].score(X, ["z"] * N) == 0


@pytest.mark.parametrize(
    ("y", "says"),
    [
        (None, "y is None"),
        (["a"], "y has 1 rows and X has 40"),
        (np.zeros(N - 1), "y has 39 rows and X has 40"),
        (1, "y must be 1-D or 2-D"),
        (np.zeros((N, 2)), r"y was 1-D in fit. Got an array of shape \(40, 2\)"),
        (sp.csr_array(np.eye(N, 3)), r"y was 1-D in fit. Got a sparse matrix of shape \(40, 3\)"),
        (np.where(np.arange(N) == 3, np.nan, 0.0), "contains NaN or infinity"),
        (np.array([None] * N), "contains NaN or infinity"),
        (["a"] * N, "not of the kind of classes_"),
        (np.full(N, "2020-01-01", "datetime64[D]"), "not of the kind of classes_"),
        ([[0]] * (N - 1) + [[0, 1]], "rows of different lengths"),
    ],
)
def test_bad_classes(fitted, X, y, says):
    with pytest.raises(ValueError, match=says):
        fitted["numbers"][0].score(X, y)


def test_masked_classes(fitted, X):
    y = np.ma.masked_array(fitted["numbers"][1], np.arange(N) == 3)
    with pytest.raises(TypeError, match="y is a masked array"):
        fitted["numbers"][0].score(X, y)


def test_numbers_for_texts(fitted, X):
    with pytest.raises(ValueError, match=r"y holds 0 .*not of the kind of classes_"):
        fitted["texts"][0].score(X, np.arange(N) % 3)


@pytest.mark.parametrize(
    ("y", "says"),
    [
        (None, "y is None"),
        (np.arange(N) % 3, r"y has shape \(40,\), an indicator of shape \(40, 3\)"),
        (np.zeros((N, 4)), r"y has shape \(40, 4\), an indicator of shape \(40, 3\)"),
        (np.zeros((N - 1, 3)), r"y has shape \(39, 3\)"),
        (np.full((N, 3), 0.5), "y must be a binary indicator"),
        (np.full((N, 3), "a"), "a 2-D y must be a binary indicator"),
        (sp.csr_array(np.full((N, 3), 2)), "y must be a binary indicator"),
        (np.full((N, 3), np.nan), "contains NaN or infinity"),
    ],
)
def test_bad_indicators(fitted, X, y, says):
    with pytest.raises(ValueError, match=says):
        fitted["indicator"][0].score(X, y)


@pytest.mark.parametrize(
    ("weight", "says"),
    [
        (np.ones(N - 1), r"sample_weight has shape \(39,\), expected \(40,\)"),
        (-np.ones(N), "sample_weight must not be negative"),
        (np.full(N, np.nan), "sample_weight contains NaN"),
        (np.zeros(N), "all entries of sample_weight are zero"),
        (["a"] * N, "sample_weight holds 'a'"),
        (np.ones((N, 1)), r"sample_weight has shape \(40, 1\)"),
        (3.0, r"sample_weight has shape \(\)"),
    ],
)
@pytest.mark.parametrize("kind", ["numbers", "indicator"])
def test_bad_weights(fitted, X, kind, weight, says):
    model, y = fitted[kind]
    with pytest.raises(ValueError, match=says):
        model.score(X, y, sample_weight=weight)
