import numpy as np
import pytest
from scipy.sparse import csr_array

from sklearn_xc.datasets import generators, make_xc_classification
from sklearn_xc.exceptions import MemoryBudgetError


def assert_well_formed(X, Y, shape, dtype=np.float32):
    n_samples, n_features, n_labels = shape
    assert X.shape == (n_samples, n_features)
    assert Y.shape == (n_samples, n_labels)
    assert X.dtype == dtype
    assert Y.dtype == np.int8
    for matrix in (X, Y):
        assert isinstance(matrix, csr_array)
        assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
        matrix.check_format(full_check=True)
        assert matrix.has_canonical_format
        assert (np.diff(matrix.indptr) > 0).all()
    assert (Y.data == 1).all()
    assert (X.data > 0).all()
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel())
    np.testing.assert_allclose(norms, 1, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shapes_and_means(dtype):
    for shape, settings in (
        ((1, 1, 1), {"nnz_per_row": 1, "labels_per_row": 1}),
        ((40, 5, 3), {"nnz_per_row": 5, "labels_per_row": 3}),
    ):
        X, Y = make_xc_classification(*shape, **settings, dtype=dtype, random_state=0)
        assert_well_formed(X, Y, shape, dtype)
    X, Y = make_xc_classification(
        3000, 8000, 2000, nnz_per_row=40, labels_per_row=4, dtype=dtype, random_state=0
    )
    assert_well_formed(X, Y, (3000, 8000, 2000), dtype)
    assert X.nnz / 3000 == pytest.approx(40, rel=0.02)
    assert Y.nnz / 3000 == pytest.approx(4, rel=0.02)


def as_bytes(X, Y):
    return [a.tobytes() for M in (X, Y) for a in (M.data, M.indices, M.indptr)]


def test_the_seed_decides_every_byte():
    first = as_bytes(*make_xc_classification(random_state=3))
    assert as_bytes(*make_xc_classification(random_state=3)) == first
    assert as_bytes(*make_xc_classification(random_state=np.random.RandomState(3))) == first
    assert as_bytes(*make_xc_classification(random_state=4)) != first
    np.random.seed(3)  # noqa: NPY002 (None means numpy's global state, as in scikit-learn)
    assert as_bytes(*make_xc_classification(random_state=None)) == first


def precision_of_centroids(X, Y):
    """P@1 on the second half, for the nearest label centroid of the first."""
    half = X.shape[0] // 2
    sums = (Y[:half].T.astype(np.float64) @ X[:half]).toarray()
    sums /= np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    best = (X[half:] @ sums.T).argmax(axis=1)
    return Y[half:].toarray()[np.arange(half), best].mean()


def test_labels_can_be_predicted_as_far_as_the_signatures_go():
    settings = {"n_samples": 3000, "n_features": 2000, "n_labels": 300, "random_state": 0}
    precision = [
        precision_of_centroids(*make_xc_classification(signature_share=share, **settings))
        for share in (0, 0.1, 0.4)
    ]
    assert precision[0] < 0.35
    assert precision[0] + 0.2 < precision[1] < precision[2]
    assert precision[2] > 0.95


def test_signatures_are_where_the_words_come_from():
    data = make_xc_classification(
        500, 5000, 40, signature_share=1, nnz_per_row=6, random_state=0, return_X_y=False
    )
    for i in range(500):
        of_labels = set(data.signatures[data.Y[[i]].indices].ravel().tolist())
        found = [feature in of_labels for feature in data.X[[i]].indices.tolist()]
        assert any(found)  # the refill may add others
    assert data.signatures.shape == (40, 8)


def test_missing_labels_leave_the_features_alone():
    X, Y = make_xc_classification(random_state=0)
    X_missing, Y_missing = make_xc_classification(random_state=0, missing_rate=0.5)
    X_single, Y_single = make_xc_classification(random_state=0, missing_rate=1)
    assert_well_formed(X_missing, Y_missing, (1000, 5000, 1000))
    assert X_missing.data.tobytes() == X.data.tobytes()
    assert X_single.indices.tobytes() == X.indices.tobytes()
    assert (Y_missing - Y_missing.multiply(Y)).nnz == 0
    n_more = Y.nnz - 1000
    assert Y_missing.nnz - 1000 == pytest.approx(n_more / 2, rel=0.1)
    assert (np.diff(Y_single.indptr) == 1).all()


def test_blocks_of_rows_cover_all_rows(monkeypatch):
    monkeypatch.setattr(generators, "_BLOCK_DRAWS", 500)
    X, Y = make_xc_classification(300, random_state=0)
    assert_well_formed(X, Y, (300, 5000, 1000))
    assert X.nnz / 300 == pytest.approx(50, rel=0.05)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_samples": 0}, r"n_samples must be an integer from 1 to 2147483647. Got 0"),
        ({"n_features": 2.5}, r"n_features must be an integer from 1 to 2147483647. Got 2.5"),
        ({"nnz_per_row": 0.5}, "nnz_per_row must be a number from 1 to 5000. Got 0.5"),
        ({"labels_per_row": 0}, "labels_per_row must be a number from 1 to 1000. Got 0"),
        ({"signature_share": 1.1}, "signature_share must be a number from 0 to 1. Got 1.1"),
        ({"missing_rate": np.nan}, "missing_rate must be a number from 0 to 1. Got nan"),
        ({"dtype": int}, "dtype must be float32 or float64. Got int64"),
    ],
)
def test_parameters_are_checked(settings, message):
    with pytest.raises(ValueError, match=message):
        make_xc_classification(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_samples": 2**31 - 1, "nnz_per_row": 5000}, "features of 2,147,483,647 rows"),
        ({"n_samples": 10, "n_labels": 2**31 - 1}, "signature features of"),
    ],
)
def test_data_that_fit_no_memory(settings, message, monkeypatch):
    monkeypatch.setattr(generators, "check_random_state", lambda seed: pytest.fail("drawn"))
    with pytest.raises(
        MemoryBudgetError, match=f"^make_xc_classification: .*{message}.*Ask for less"
    ):
        make_xc_classification(**settings)
