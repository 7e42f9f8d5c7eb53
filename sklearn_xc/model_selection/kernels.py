"""Assignment of rows to folds, the positives of every label spread evenly.

Integers throughout: the folds are the same on every machine.
"""

import numpy as np

from sklearn_xc._compile.jit import inlined, kernel

#: Fixed-point one: the positives of a label weigh this much together.
ONE = 2**32
#: Rows tried for an exchange in each step of a search.
_CANDIDATES = 64
#: A step may lose a label if a random number shifted by this many bits is 0: one of 16.
_NOISE = np.uint64(60)
# Numerical Recipes' multiplier and increment of a 64-bit linear congruential generator.
_MULTIPLIER, _INCREMENT = np.uint64(6364136223846793005), np.uint64(1442695040888963407)


@inlined
def _is_better(j, best, barred, has, room):
    """Compare two folds: fewer labels barred, then fewer positives, then more room."""
    if barred[j] != barred[best]:
        return barred[j] < barred[best]
    if has[j] != has[best]:
        return has[j] < has[best]
    return room[j] > room[best]


@kernel
def assign_rows(Y, columns, room, size, fold):
    """Assign each row to the fold that has its labels least, rows of rare labels first.

    A fold has of a row the sum, over the row's labels, of the share of the label's positives in the
    fold. A fold that would take the last positive of a label whose others it has already is left
    out where another one has room. Ties go to the fold with more room, then to the first. A "row"
    may stand for a group of rows; one that fits nowhere goes to the fold with most room.

    Parameters
    ----------
    Y : tuple of ndarray of int64
        ``(indptr, labels)``: the labels of each row, CSR.
    columns : tuple of ndarray of int64
        ``(indptr, rows)``: the rows of each label, CSC; labels in the order of assignment.
    room : ndarray of int64 of shape (n_folds,)
        Rows that each fold can take; together at least the sum of `size`. Decremented, below zero
        where a group did not fit.
    size : ndarray of int64 of shape (n,)
        Rows in each group.
    fold : ndarray of int64 of shape (n,)
        Overwritten.
    """
    indptr, labels = Y
    starts, rows = columns
    n, n_labels, n_folds = fold.shape[0], starts.shape[0] - 1, room.shape[0]
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
        # 1. What each fold has of the row, and the labels that it must not complete.
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
            if room[j] < size[i]:
                continue
            if best < 0 or _is_better(j, best, barred, has, room):
                best = j
        if best < 0:
            best = np.argmax(room)
        # 3. Update the counts.
        fold[i] = best
        room[best] -= size[i]
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
            room[fold[i]] -= size[i]


@inlined
def _is_lost(label, columns, fold, one, other):
    """Tell whether one fold has all positives once two rows, -1 for none, are exchanged."""
    starts, rows = columns
    first = -1
    for at in range(starts[label], starts[label + 1]):
        i = rows[at]
        where = fold[other] if i == one else fold[one] if i == other else fold[i]
        if first >= 0 and where != first:
            return False
        first = where
    return True


@kernel
def find_lost_labels(columns, fold, is_lost):
    """Write for each label whether one fold has all of its positives.

    Parameters
    ----------
    columns, fold
        As in `assign_rows`.
    is_lost : ndarray of bool of shape (n_labels,)
        Overwritten.
    """
    for label in range(is_lost.shape[0]):
        is_lost[label] = _is_lost(label, columns, fold, -1, -1)


@inlined
def _gain(Y, columns, fold, one, other):
    """Return how many labels an exchange of two rows saves, less those that it loses."""
    indptr, labels = Y
    gain = 0
    for i in (one, other):
        for t in range(indptr[i], indptr[i + 1]):
            before = _is_lost(labels[t], columns, fold, -1, -1)
            after = _is_lost(labels[t], columns, fold, one, other)
            # Labels of both rows come twice: nothing changes for them.
            if before and not after:
                gain += 1
            elif after and not before:
                gain -= 1
    return gain


@kernel
def swap_rows(Y, columns, is_lost, n_steps, seed, fold):
    """Exchange rows between folds until no label is lost, or for a number of steps.

    Each step takes a row of a lost label, and of some rows in other folds the one whose exchange
    saves most labels. Exchanges that save as many as they lose are made too, and sometimes one that
    loses a label: they lead out of dead ends. The best folds found are kept.

    Parameters
    ----------
    Y, columns
        As in `assign_rows`.
    is_lost : ndarray of bool of shape (n_labels,)
        From `find_lost_labels`; overwritten.
    n_steps : int
        Most steps.
    seed : uint64
        Seeds the choices.
    fold : ndarray of int64 of shape (n,)
        Changed in place.
    """
    indptr, labels = Y
    starts, rows = columns
    n, n_labels = fold.shape[0], is_lost.shape[0]
    lost, place, n_lost = np.empty(n_labels, np.int64), np.empty(n_labels, np.int64), 0
    for label in range(n_labels):
        if is_lost[label]:
            lost[n_lost], place[label] = label, n_lost
            n_lost += 1
    state, n_best, best_folds = np.uint64(seed), n_lost, fold.copy()
    for _ in range(n_steps):
        if n_lost == 0:
            break
        # 1. A lost label, and a row of it.
        state = state * _MULTIPLIER + _INCREMENT
        label = lost[np.int64(state >> np.uint64(33)) % n_lost]
        state = state * _MULTIPLIER + _INCREMENT
        count = starts[label + 1] - starts[label]
        one = rows[starts[label] + np.int64(state >> np.uint64(33)) % count]
        # 2. The row to exchange it for.
        best, best_gain = -1, -2 if state >> _NOISE == 0 else -1
        for _ in range(_CANDIDATES):
            state = state * _MULTIPLIER + _INCREMENT
            other = np.int64(state >> np.uint64(33)) % n
            if fold[other] == fold[one]:
                continue
            gain = _gain(Y, columns, fold, one, other)
            if gain > best_gain:
                best, best_gain = other, gain
        if best < 0:
            continue
        fold[one], fold[best] = fold[best], fold[one]
        # 3. Update the list of lost labels.
        for i in (one, best):
            for t in range(indptr[i], indptr[i + 1]):
                label = labels[t]
                now = _is_lost(label, columns, fold, -1, -1)
                if now and not is_lost[label]:
                    lost[n_lost], place[label] = label, n_lost
                    n_lost += 1
                elif is_lost[label] and not now:
                    n_lost -= 1
                    lost[place[label]] = lost[n_lost]
                    place[lost[n_lost]] = place[label]
                is_lost[label] = now
        if n_lost < n_best:
            n_best = n_lost
            best_folds[:] = fold
    fold[:] = best_folds
