"""Assignment of rows to folds, against loops over dense indicators."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc.model_selection.kernels import ONE, assign_rows


def indicator(n, n_labels, density, seed):
    """Return a dense indicator whose columns are sorted by their sums, of at least two each."""
    Y = np.random.default_rng(seed).random((n, n_labels)) < density
    Y = Y[:, Y.sum(axis=0) >= 2]
    return Y[:, np.argsort(Y.sum(axis=0), kind="stable")].astype(np.int64)


def arrays_of(Y):
    rows, columns = sp.csr_array(Y), sp.csc_array(Y)
    return [
        tuple(array.astype(np.int64) for array in (matrix.indptr, matrix.indices))
        for matrix in (rows, columns)
    ]


def assigned_slowly(Y, room):
    """Return the folds by the rules of the docstring."""
    fold, room = np.full(len(Y), -1), [int(one) for one in room]
    folds = range(len(room))
    for label in range(Y.shape[1]):
        for i in np.flatnonzero(Y[:, label]):
            if fold[i] >= 0:
                continue
            has, barred = [0] * len(room), [0] * len(room)
            for other in np.flatnonzero(Y[i]):
                positives = np.flatnonzero(Y[:, other])
                rest = [fold[p] for p in positives if p != i]
                for j in folds:
                    has[j] += ONE // len(positives) * rest.count(j)
                    barred[j] += set(rest) == {j}
            open_folds = [j for j in folds if room[j] > 0]
            fold[i] = min(open_folds, key=lambda j: (barred[j], has[j], -room[j], j))
            room[fold[i]] -= 1
    for i in np.flatnonzero(fold < 0):
        fold[i] = np.argmax(room)
        room[fold[i]] -= 1
    return fold


@pytest.mark.parametrize("n_folds", [2, 5])
@pytest.mark.parametrize("density", [0.03, 0.2])
def test_rows_go_where_their_labels_are_fewest(n_folds, density):
    for seed in range(5):
        Y = indicator(60, 40, density, seed)
        room = np.full(n_folds, 60 // n_folds)
        fold, left = np.empty(60, np.int64), room.copy()
        assign_rows(*arrays_of(Y), left, fold)
        np.testing.assert_array_equal(fold, assigned_slowly(Y, room))
        assert not left.any()
