"""Assignment of rows to folds, against loops over dense indicators."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc.model_selection.kernels import (
    ONE,
    assign_rows,
    find_lost_labels,
    swap_rows,
)


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


def lost_labels(Y, fold):
    """Return whether one fold has all positives of each label."""
    return [len(set(fold[Y[:, label] == 1])) == 1 for label in range(Y.shape[1])]


def assigned_slowly(Y, room, size):
    """Return the folds by the rules of the docstring."""
    n, n_labels = Y.shape
    fold, room = np.full(n, -1), [int(one) for one in room]
    folds = range(len(room))
    for label in range(n_labels):
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
            open_folds = [j for j in folds if room[j] >= size[i]] or [np.argmax(room)]
            fold[i] = min(open_folds, key=lambda j: (barred[j], has[j], -room[j], j))
            room[fold[i]] -= size[i]
    for i in np.flatnonzero(fold < 0):
        fold[i] = np.argmax(room)
        room[fold[i]] -= size[i]
    return fold


@pytest.mark.parametrize("n_folds", [2, 5])
@pytest.mark.parametrize("density", [0.03, 0.2])
def test_rows_go_where_their_labels_are_fewest(n_folds, density):
    for seed in range(5):
        Y = indicator(60, 40, density, seed)
        by_row, by_label = arrays_of(Y)
        for size in (np.ones(60, np.int64), np.random.default_rng(seed).integers(1, 9, 60)):
            room = np.full(n_folds, -(-size.sum() // n_folds))
            fold, left = np.empty(60, np.int64), room.copy()
            assign_rows(by_row, by_label, left, size, fold)
            np.testing.assert_array_equal(fold, assigned_slowly(Y, room, size))
            np.testing.assert_array_equal(left, room - np.bincount(fold, size, n_folds))


@pytest.mark.parametrize("n_folds", [2, 5])
def test_exchanges_save_labels_and_keep_sizes(n_folds):
    n_before = n_after = 0
    for seed in range(20):
        Y = indicator(60, 40, 0.04, seed)
        by_row, by_label = arrays_of(Y)
        fold = np.random.default_rng(seed).permutation(60) % n_folds
        is_lost = np.empty(Y.shape[1], bool)
        find_lost_labels(by_label, fold, is_lost)
        assert is_lost.tolist() == lost_labels(Y, fold)
        before, first = is_lost.sum(), fold.copy()
        swap_rows(by_row, by_label, is_lost.copy(), 0, np.uint64(seed), fold)
        np.testing.assert_array_equal(fold, first)  # no steps, no change
        swap_rows(by_row, by_label, is_lost, 1000, np.uint64(seed), fold)
        find_lost_labels(by_label, fold, is_lost)
        assert is_lost.tolist() == lost_labels(Y, fold)
        assert is_lost.sum() <= before
        np.testing.assert_array_equal(np.bincount(fold, minlength=n_folds), 60 // n_folds)
        n_before, n_after = n_before + before, n_after + is_lost.sum()
    assert n_before > 10
    assert n_after < n_before / 20
