"""Rows dealt out to folds, against loops over dense indicators."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc.kernels.model_selection.fold_assignment import (
    WHOLE,
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


def lost_labels(Y, kind, fold):
    """Return the labels all of whose positives are in folds of one kind that is not -1."""
    kinds = [set(kind[fold[Y[:, label] == 1]]) for label in range(Y.shape[1])]
    return [len(found) == 1 and -1 not in found for found in kinds]


def assigned_slowly(Y, share, kind, room, size):
    """Return the folds as the docstring tells them, of Python's integers."""
    n, n_labels = Y.shape
    fold, room = np.full(n, -1), [int(one) for one in room]
    folds = range(len(room))
    for label in range(n_labels):
        for i in np.flatnonzero(Y[:, label]):
            if fold[i] >= 0:
                continue
            own, lacks, barred = np.flatnonzero(Y[i]), [0] * len(room), [0] * len(room)
            for other in own:
                positives = np.flatnonzero(Y[:, other])
                rest = [p for p in positives if p != i]
                for j in folds:
                    has = sum(fold[p] == j for p in positives)
                    lacks[j] += int(share[j]) - WHOLE // len(positives) * int(has)
                    is_last = all(fold[p] >= 0 for p in rest)
                    kinds = {int(kind[fold[p]]) for p in rest if fold[p] >= 0}
                    barred[j] += is_last and kinds == {int(kind[j])} and kind[j] >= 0
            open_folds = [j for j in folds if room[j] >= size[i]] or [np.argmax(room)]
            fold[i] = min(open_folds, key=lambda j: (barred[j], -lacks[j], -room[j], j))
            room[fold[i]] -= size[i]
    for i in np.flatnonzero(fold < 0):
        fold[i] = np.argmax(room)
        room[fold[i]] -= size[i]
    return fold


CASES = {
    "five folds": ([12, 12, 12, 12, 12], [0, 1, 2, 3, 4]),
    "other sizes": ([20, 20, 19, 1], [0, 1, 2, 3]),
    "training and test": ([45, 15], [-1, 0]),
    "few for training": ([5, 55], [-1, 0]),
    "some in neither": ([20, 10, 30], [-1, 0, 0]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("density", [0.03, 0.2])
def test_rows_go_where_they_lack_most(case, density):
    sizes, kind = (np.array(part) for part in CASES[case])
    share = (sizes / sizes.sum() * WHOLE).astype(np.int64)
    for seed in range(5):
        Y = indicator(60, 40, density, seed)
        by_row, by_label = arrays_of(Y)
        fold, room, size = np.empty(60, np.int64), sizes.copy(), np.ones(60, np.int64)
        assign_rows(by_row, by_label, share, kind, room, size, fold)
        np.testing.assert_array_equal(fold, assigned_slowly(Y, share, kind, sizes, size))
        assert not room.any()
        np.testing.assert_array_equal(np.bincount(fold, minlength=len(sizes)), sizes)
        size = np.random.default_rng(seed).integers(1, 9, 60)
        room = sizes * 5
        assign_rows(by_row, by_label, share, kind, room, size, fold)
        np.testing.assert_array_equal(fold, assigned_slowly(Y, share, kind, sizes * 5, size))


@pytest.mark.parametrize("case", CASES)
def test_exchanges_save_labels_and_keep_sizes(case):
    sizes, kind = (np.array(part) for part in CASES[case])
    n_before = n_after = 0
    for seed in range(20):
        Y = indicator(60, 40, 0.04, seed)
        by_row, by_label = arrays_of(Y)
        fold = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
        is_lost = np.empty(Y.shape[1], bool)
        find_lost_labels(by_label, kind, fold, is_lost)
        assert is_lost.tolist() == lost_labels(Y, kind, fold)
        before = is_lost.sum()
        swap_rows(by_row, by_label, kind, is_lost, 1000, np.uint64(seed), fold)
        find_lost_labels(by_label, kind, fold, is_lost)
        assert is_lost.tolist() == lost_labels(Y, kind, fold)
        assert is_lost.sum() <= before
        np.testing.assert_array_equal(np.bincount(fold, minlength=len(sizes)), sizes)
        n_before, n_after = n_before + before, n_after + is_lost.sum()
    assert n_before > 10
    assert n_after < n_before / (1.5 if case == "few for training" else 20)


def test_no_steps_change_nothing():
    Y = indicator(60, 40, 0.04, 0)
    by_row, by_label = arrays_of(Y)
    fold, is_lost = np.zeros(60, np.int64), np.ones(Y.shape[1], bool)
    fold[30:] = 1
    before = fold.copy()
    swap_rows(by_row, by_label, np.arange(2), is_lost, 0, np.uint64(0), fold)
    np.testing.assert_array_equal(fold, before)
