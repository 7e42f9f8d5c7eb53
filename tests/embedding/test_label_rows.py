"""Features of labels as the encoder reads them, and means of instances in their place."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc import LabelFeatures
from sklearn_xc._input.data import CsrRows, as_csr_rows
from sklearn_xc.embedding._examples import Examples, mean_rows
from sklearn_xc.embedding._inputs import label_rows
from sklearn_xc.embedding.samplers import Positives

NAME = "NGAMEEmbeddingXC"
Z = np.array([[0, 2.5, 0], [0, 0, 0], [-1, 0, 4], [1, 1, 1]])


def resolve(label_features, n_labels=4, n_features=3, dtype=np.float32):
    return label_rows(label_features, n_labels, n_features, dtype, NAME)


def dense(rows):
    assert isinstance(rows, CsrRows)
    assert rows.indptr.dtype == np.int64
    assert rows.indices.dtype == np.int32
    matrix = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
    assert matrix.has_canonical_format
    return matrix.toarray()


@pytest.mark.parametrize("make", [np.array, sp.csr_array, sp.coo_array, np.ndarray.tolist])
def test_matrices_keep_their_values(make):
    rows = resolve(make(Z))
    np.testing.assert_array_equal(dense(resolve(LabelFeatures(make(Z)))), Z)
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(dense(rows), Z)


def test_another_number_of_rows_names_the_trap():
    expected = r"NGAMEEmbeddingXC: label_features must have a row for each of the 7 labels"
    with pytest.raises(ValueError, match=f"{expected}.*slices a bare.*LabelFeatures"):
        resolve(Z, n_labels=7)
    with pytest.raises(ValueError, match=rf"{expected} of y\. Got 4 rows\. If y is a part"):
        resolve(LabelFeatures(Z), n_labels=7)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (Z[:, :2], ValueError, "must have the 3 features of X. Got 2: vectorize label texts"),
        (["a", "b", "c", "d"], ValueError, r"Got texts: pass vectorizer.transform\(texts\)"),
        (Z * 1j, ValueError, "Complex data not supported"),
        (np.ma.masked_array(Z, Z > 1), TypeError, "is a masked array"),
        (Z * 1e20, ValueError, r"must have values up to 1e\+15 in float32. Got 4e\+20 in row 2"),
    ],
    ids=["width", "texts", "complex", "masked", "large"],
)
def test_what_is_refused(given, error, message):
    with pytest.raises(error, match=f"^NGAMEEmbeddingXC: label_features.*{message}"):
        resolve(given)


# Means of instances


def reference_means(X, Y, weight):
    means = (weight[:, None] * Y).T @ X
    norms = np.linalg.norm(means, axis=1, keepdims=True)
    return means / np.where(norms > 0, norms, 1)


@pytest.mark.parametrize(("dtype", "weighted"), [(np.float32, True), (np.float64, False)])
def test_means_equal_a_dense_product(xy, dtype, weighted):
    X, Y = xy
    weight = np.random.default_rng(0).random(X.shape[0]) if weighted else None
    if weighted:
        weight[:20] = 0
    rows = as_csr_rows(sp.csr_array(X, dtype=dtype))
    weight = np.ones(120) if weight is None else weight
    positives = Positives(Y.indptr.astype(np.int64), Y.indices)
    means = mean_rows(rows, Examples(rows, positives, weight).label_matrix(Y.shape[1]))
    expected = reference_means(
        X.astype(dtype).toarray().astype(float),
        Y.toarray(),
        weight,
    )
    assert means.dtype == dtype
    assert means.indptr[5] == means.indptr[4]  # label 4 has no instances
    np.testing.assert_allclose(dense(means), expected, atol=2 * np.finfo(dtype).eps)


def test_shares_that_are_too_small_for_the_dtype_are_no_features():
    X = as_csr_rows(sp.csr_array(np.array([[1e10, 0.0], [0.0, 1e-10]], np.float32)))
    positives = Positives(np.array([0, 1, 2]), np.array([0, 0]))
    Y = Examples(X, positives, np.array([1e20, 1e-20])).label_matrix(1)
    means = mean_rows(X, Y)
    np.testing.assert_array_equal(dense(means), [[1, 0]])
    assert len(means.data) == 1
