"""Features of labels as the encoder reads them, and means of instances in their place."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator

from sklearn_xc import LabelFeatures
from sklearn_xc._data import CsrRows, as_csr_rows
from sklearn_xc.embedding._label_features import label_rows, mean_rows

NAME = "NGAMEEmbeddingXC"
Z = np.array([[0, 2.5, 0], [0, 0, 0], [-1, 0, 4], [1, 1, 1]])
TEXTS = ["grey whale", "", "blue whale song", "bird song"]


@pytest.fixture(scope="module")
def vectorizer():
    return TfidfVectorizer().fit(["whale song", "grey bird"])


def resolve(label_features, vectorizer=None, n_labels=4, n_features=3, dtype=np.float32):
    return label_rows(NAME, label_features, vectorizer, n_labels, n_features, dtype)


def dense(rows):
    assert isinstance(rows, CsrRows)
    assert rows.indptr.dtype == np.int64
    assert rows.indices.dtype == np.int32
    matrix = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
    assert matrix.has_canonical_format
    return matrix.toarray()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "make", [np.array, sp.csr_array, sp.csc_matrix, sp.coo_array, np.ndarray.tolist]
)
@pytest.mark.parametrize("wrap", [LabelFeatures, lambda features: features])
def test_matrices_keep_their_values(make, wrap, dtype):
    rows = resolve(wrap(make(Z)), dtype=dtype)
    assert rows.dtype == dtype
    np.testing.assert_array_equal(dense(rows), Z)


def test_duplicates_and_order_are_set_right_in_a_copy():
    Z = sp.csr_array((np.ones(4), [2, 0, 2, 1], [0, 3, 3, 4, 4]), shape=(4, 3))
    kept = Z.copy()
    expected = [[1, 0, 2], [0, 0, 0], [0, 1, 0], [0, 0, 0]]
    np.testing.assert_array_equal(dense(resolve(LabelFeatures(Z))), expected)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(Z, part), getattr(kept, part))


def test_none_needs_no_vectorizer(vectorizer):
    assert resolve(None) is None
    assert resolve(None, TfidfVectorizer()) is None


@pytest.mark.parametrize("wrap", [LabelFeatures, list, np.array])
def test_texts_are_vectorized(wrap, vectorizer):
    rows = resolve(wrap(TEXTS), vectorizer, n_features=4)
    expected = vectorizer.transform(TEXTS).toarray()
    np.testing.assert_allclose(dense(rows), expected, rtol=1e-6)
    assert rows.indptr[2] == rows.indptr[1]  # the empty text


def test_matrices_go_through_the_vectorizer_too():
    class Double:  # has transform, and nothing to fit
        def transform(self, features):
            return 2 * features

    np.testing.assert_array_equal(dense(resolve(Z, Double())), 2 * Z)


def test_a_vectorizer_without_state():
    rows = resolve(TEXTS, HashingVectorizer(n_features=16), n_features=16)
    assert rows.shape == (4, 16)


def test_an_unfitted_vectorizer_is_named_with_what_keeps_it_fitted(vectorizer):
    with pytest.raises(NotFittedError, match=r"label_vectorizer is a TfidfVectorizer.*FrozenEst"):
        resolve(TEXTS, clone(vectorizer), n_features=4)
    assert resolve(TEXTS, clone(FrozenEstimator(vectorizer)), n_features=4).shape == (4, 4)


def test_texts_need_a_vectorizer():
    with pytest.raises(ValueError, match="label_features are texts, label_vectorizer is None"):
        resolve(LabelFeatures(TEXTS))


def test_a_vectorizer_transforms():
    with pytest.raises(TypeError, match="label_vectorizer must have a method transform, str has"):
        resolve(TEXTS, "tfidf")


def test_another_number_of_rows_names_the_trap():
    expected = r"NGAMEEmbeddingXC: label_features must have a row for each of the 7 labels"
    with pytest.raises(ValueError, match=f"{expected}.*slices a bare.*LabelFeatures"):
        resolve(Z, n_labels=7)
    with pytest.raises(ValueError, match=rf"{expected} of y\. Got 4 rows\. If y is a part"):
        resolve(LabelFeatures(Z), n_labels=7)


def test_another_number_of_features_names_the_way(vectorizer):
    way = "with the vectorizer that made X"
    with pytest.raises(ValueError, match=f"label_features have 3 features, X has 9.*{way}"):
        resolve(Z, n_features=9)
    with pytest.raises(ValueError, match=f"label_vectorizer made 4 features, X has 9.*{way}"):
        resolve(TEXTS, vectorizer, n_features=9)


def test_a_vectorizer_that_drops_rows():
    class First:
        def transform(self, features):
            return features[:1]

    with pytest.raises(ValueError, match="label_vectorizer made 1 rows of 4 labels"):
        resolve(Z, First())


def edited(Z):
    Z = sp.csr_array(Z)
    Z.indices[0] = 10**6
    return Z


MADE = {
    "malformed": (edited(Z), ValueError, "what it made: this csr_array .* is malformed: column"),
    "masked": (np.ma.masked_array(Z, Z > 1), TypeError, "what it made is a masked array"),
    "dates": (Z.astype("M8[s]"), ValueError, "what it made holds dates or times"),
    "NaN": (Z * np.nan, ValueError, "Input label_features contains NaN"),
    "inf": (
        sp.csr_array(np.full((4, 3), np.inf)),
        ValueError,
        "Input label_features contains infinity",
    ),
    "complex": (Z * 1j, ValueError, "Complex data not supported. Got dtype complex128"),
    "sparse complex": (sp.csr_array(Z * 1j), ValueError, "Complex data not supported"),
    "vector": (Z[0], ValueError, r"must make a matrix .* Got ndarray of shape \(3,\)"),
    "None": (None, ValueError, r"must make a matrix .* Got NoneType of shape \(\)"),
    "texts": (TEXTS, ValueError, r"must make a matrix .* Got list of shape \(4,\)"),
    "large": (
        Z * 1e20,
        ValueError,
        r"must have values up to 1e\+15 in float32. Got 4e\+20 in row 2",
    ),
}


@pytest.mark.parametrize("which", MADE)
def test_what_a_vectorizer_makes_is_checked(which):
    made, error, message = MADE[which]

    class Maker:
        def transform(self, features):
            return made

    with pytest.raises(error, match=f"^NGAMEEmbeddingXC: label_vectorizer:? {message}"):
        resolve(TEXTS, Maker())


@pytest.mark.parametrize("which", ["malformed", "masked", "dates"])
@pytest.mark.parametrize("wrap", [LabelFeatures, lambda features: features])
def test_features_are_checked_when_they_are_used(which, wrap):
    """A holder does not copy them."""
    wrong, error, message = MADE[which]
    held = wrap(sp.csr_array(Z) if which == "malformed" else Z.copy())
    if wrap is LabelFeatures:
        held.features = wrong
    else:
        held = wrong
    message = message.replace("what it made", "label_features")
    with pytest.raises(error, match=f"^NGAMEEmbeddingXC: {message}"):
        resolve(held)


def test_complex_and_matrix():
    with pytest.raises(ValueError, match="label_features: Complex data not supported"):
        resolve(sp.csr_array(Z * 1j))
    with pytest.raises(TypeError, match=r"NGAMEEmbeddingXC: label_features: np\.matrix is not"):
        resolve(np.eye(4, 3).view(np.matrix))


def test_a_holder_of_other_rows_than_it_says():
    held = LabelFeatures(Z)
    held.features = Z[:2]
    with pytest.raises(ValueError, match="label_features have 2 rows of 4 labels"):
        resolve(held)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("make", [np.array, sp.csr_array])
def test_nan_and_inf_are_refused(make, wrong):
    features = Z.copy()
    features[2, 1] = wrong
    with pytest.raises(ValueError, match=r"NGAMEEmbeddingXC: label_features: .*(NaN|infinity)"):
        resolve(LabelFeatures(make(features)))


# Means of instances


def reference_means(X, Y, weight):
    means = (weight[:, None] * Y).T @ X
    norms = np.linalg.norm(means, axis=1, keepdims=True)
    return means / np.where(norms > 0, norms, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_means_equal_a_dense_product(xy, dtype, weighted):
    X, Y = xy
    weight = np.random.default_rng(0).random(X.shape[0]) if weighted else None
    if weighted:
        weight[:20] = 0
    rows = as_csr_rows(sp.csr_array(X, dtype=dtype))
    means = mean_rows(rows, Y.indptr, Y.indices, Y.shape[1], weight)
    expected = reference_means(
        X.astype(dtype).toarray().astype(float),
        Y.toarray(),
        np.ones(120) if weight is None else weight,
    )
    assert means.dtype == dtype
    assert means.indptr[5] == means.indptr[4]  # label 4 has no instances
    np.testing.assert_allclose(dense(means), expected, atol=2 * np.finfo(dtype).eps)


def test_labels_whose_instances_weigh_nothing_have_empty_rows():
    X = as_csr_rows(sp.csr_array(np.array([[1.0, 2.0], [3.0, 0.0]])))
    means = mean_rows(X, np.array([0, 1, 2]), np.array([0, 1]), 3, weight=[0.0, 1.0])
    np.testing.assert_array_equal(dense(means), [[0, 0], [1, 0], [0, 0]])
    assert len(means.data) == 1


def test_instances_that_cancel_leave_an_empty_row():
    X = as_csr_rows(sp.csr_array(np.array([[1.0, 2.0], [-1.0, -2.0]])))
    means = mean_rows(X, np.array([0, 1, 2]), np.array([0, 0]), 1)
    assert len(means.data) == 0


def test_shares_that_are_too_small_for_the_dtype_are_no_features():
    X = as_csr_rows(sp.csr_array(np.array([[1e10, 0.0], [0.0, 1e-10]], np.float32)))
    means = mean_rows(X, np.array([0, 1, 2]), np.array([0, 0]), 1, weight=[1e20, 1e-20])
    np.testing.assert_array_equal(dense(means), [[1, 0]])
    assert len(means.data) == 1
