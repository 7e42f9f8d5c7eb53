"""Assignment of rows to folds, the positives of every label spread evenly.

Integers throughout: the folds are the same on every machine.
"""

import numpy as np

from sklearn_xc._compile.jit import inlined, kernel

#: Fixed-point one: the positives of a label weigh this much together.
ONE = 2**32


@inlined
def _is_better(j, best, barred, has, room):
    """Compare two folds: fewer labels barred, then fewer positives, then more room."""
    if barred[j] != barred[best]:
        return barred[j] < barred[best]
    if has[j] != has[best]:
        return has[j] < has[best]
    return room[j] > room[best]


@kernel
def assign_rows(Y, columns, room, fold):
    """Assign each row to the fold with the smallest share of its labels, rare labels first.

    The share is the sum, over the row's labels, of the fraction of the label's positives in the
    fold. The last positive of a label avoids a fold that has all others, where another fold has
    room. Ties go to the fold with more room, then to the first.

    Parameters
    ----------
    Y : tuple of ndarray of int64
        ``(indptr, labels)``: the labels of each row, CSR.
    columns : tuple of ndarray of int64
        ``(indptr, rows)``: the rows of each label, CSC; labels in the order of assignment.
    room : ndarray of int64 of shape (n_folds,)
        Rows that each fold can take, n in all. Overwritten.
    fold : ndarray of int64 of shape (n,)
        Overwritten.
    """
    indptr, labels = Y
    starts, rows = columns
    n = fold.shape[0]
    n_labels = starts.shape[0] - 1
    n_folds = room.shape[0]
    counts = np.zeros((n_labels, n_folds), np.int32)
    left = np.empty(n_labels, np.int64)
    only = np.full(n_labels, -2)  # the fold that has the label; -2 none yet, -1 several
    has, barred = np.empty(n_folds, np.int64), np.empty(n_folds, np.int64)
    for label in range(n_labels):
        left[label] = starts[label + 1] - starts[label]
    fold[:] = -1
    for at in range(rows.shape[0]):
        i = rows[at]
        if fold[i] >= 0:
            continue
        # 1. Share of the row's labels in each fold, and labels that the fold must not complete.
        has[:] = 0
        barred[:] = 0
        for t in range(indptr[i], indptr[i + 1]):
            label = labels[t]
            weight = ONE // (starts[label + 1] - starts[label])
            for j in range(n_folds):
                has[j] += weight * counts[label, j]
            if left[label] == 1 and only[label] >= 0:
                barred[only[label]] += 1
        # 2. The best fold with room.
        best = -1
        for j in range(n_folds):
            if room[j] > 0 and (best < 0 or _is_better(j, best, barred, has, room)):
                best = j
        # 3. Update the counts.
        fold[i] = best
        room[best] -= 1
        for t in range(indptr[i], indptr[i + 1]):
            label = labels[t]
            left[label] -= 1
            counts[label, best] += 1
            if only[label] == -2:
                only[label] = best
            elif only[label] != best:
                only[label] = -1
    # 4. Rows without labels fill up.
    for i in range(n):
        if fold[i] < 0:
            fold[i] = np.argmax(room)
            room[fold[i]] -= 1
