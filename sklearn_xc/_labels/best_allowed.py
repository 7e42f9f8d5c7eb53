"""Top k of the labels that an answer may contain.

two classes                    both are scored
candidates for all instances   scores of these labels, in pieces of rows
candidates for each instance   scores of these pairs
exclusions                     a longer answer, from which they are dropped; if they are many and
                               the model makes no shortlist, the scores of all other labels
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sklearn_xc._input.data import as_rows, n_rows
from sklearn_xc._input.sklearn_private import safe_indexing
from sklearn_xc._labels.allowed import AllowedLabels
from sklearn_xc._topk import first_kept, just_below, padded
from sklearn_xc._weights.kernels.class_scores import topk_scores

Found = tuple[np.ndarray, np.ndarray]
#: From instances to dense scores of some labels.
Scorer = Callable[[Any], np.ndarray]

#: Scores, or entries of an answer, in memory at a time.
_CHUNK_SCORES = 2**22
#: More exclusions than these are not dropped from a longer answer, if all labels can be scored: the
#: k best of 200,000 take twice the time for k=500, and five times for k=1,000.
_MOST_DROPPED = 256
#: Candidates for all instances that lack at most this share of the labels: a longer answer.
_SHARE_LEFT_OUT = 1 / 64


class BestAllowed:
    """The answer of a classifier among allowed labels.

    Parameters
    ----------
    model : XCClassifier
        Fitted; its hooks score labels.
    X : object of n instances
    k : int
    allowed : AllowedLabels
    how : mapping
        Further arguments of the hooks.
    """

    def __init__(self, model: Any, X: Any, k: int, allowed: AllowedLabels, how: Any) -> None:
        self._model = model
        self._X = as_rows(X)
        self._k = k
        self._how = how
        self._n = n_rows(X, type(model).__name__)
        self._allowed = allowed
        unseen = model._unseen_labels
        self._unseen = unseen if len(unseen) < allowed.n_labels else unseen[:0]
        self._room = _CHUNK_SCORES
        if model._allowed_bytes() is not None:
            self._room = min(_CHUNK_SCORES, model._allowed_bytes() // 32)

    def found(self) -> Found:
        """Return labels and scores, (n, k) each, padded."""
        seen = self._allowed.but(self._unseen)
        if self._model._is_binary:
            found = self._without(seen, self._model._topk_longer(self._X, 2, 0, **self._how))
        elif seen.indptr is None:
            found = self._of_all(seen)
        elif seen.are_excluded:
            found = self._all_but(seen)
        else:
            found = self._of_rows(np.arange(self._n), seen)
        return self._with_unseen(*found)

    def _of_all(self, allowed: AllowedLabels) -> Found:
        """Return the top k of candidates for all rows."""
        labels = allowed.labels
        n_left_out = allowed.n_labels - len(labels)
        if not len(labels):
            shape = self._n, self._k
            return np.full(shape, -1, np.int64), np.full(shape, -np.inf, np.float32)
        is_few = n_left_out <= _MOST_DROPPED or self._model._has_shortlist
        if is_few and n_left_out <= _SHARE_LEFT_OUT * allowed.n_labels:
            n_more = power_of_two(n_left_out)
            step = max(1, self._room // (self._k + n_more)) if n_more else self._n
            return joined([self._longer(rows, n_more, allowed) for rows in self._pieces(step)])
        found = self._model._best_among(self._X, self._k, labels, **self._how)
        if found is not None:
            return found
        score = self._model._scorer_of(labels, **self._how)
        step = max(1, self._room // len(labels))
        return joined(
            [
                best_of_scores(score(self._rows(rows)), labels, self._k)
                for rows in self._pieces(step)
            ]
        )

    def _all_but(self, allowed: AllowedLabels) -> Found:
        """Return the top k of rows with exclusions."""
        counts = allowed.counts
        parts = []
        order = []
        is_many = (counts > _MOST_DROPPED) & (not self._model._has_shortlist)
        few = np.flatnonzero(~is_many)
        for rows, n_more in rows_of_like_size(counts[few], self._k, self._room):
            parts.append(self._longer(few[rows], n_more, allowed))
            order.append(few[rows])
        if is_many.any():
            many = np.flatnonzero(is_many)
            parts.append(self._picked(many, allowed.take(many)))
            order.append(many)
        back = np.argsort(np.concatenate(order), kind="stable")
        labels, scores = joined(parts)
        return labels[back], scores[back]

    def _longer(self, rows: np.ndarray, n_more: int, allowed: AllowedLabels) -> Found:
        """Return the top k of some rows from longer answers, without exclusions."""
        k = min(self._k + n_more, allowed.n_labels)
        found = self._model._topk_longer(self._rows(rows), k, n_more, **self._how)
        return self._without(allowed.take(rows), found)

    def _of_rows(self, rows: np.ndarray, allowed: AllowedLabels) -> Found:
        """Return the top k of candidates of each of some rows."""
        assert allowed.indptr is not None
        parts = []
        first = 0
        while first < len(rows):  # as many pairs as there is room for
            last = np.searchsorted(allowed.indptr, allowed.indptr[first] + self._room, "right") - 1
            last = min(max(int(last), first + 1), len(rows))
            own = allowed.take(np.arange(first, last))
            X = self._rows(rows[first:last])
            found = self._model._best_of_rows(X, self._k, own, **self._how)
            parts.append(self._picked(rows[first:last], own) if found is None else found)
            first = last
        return joined(parts)

    def _picked(self, rows: np.ndarray, allowed: AllowedLabels) -> Found:
        """Return the top k of some rows, from the scores of all labels."""
        labels = np.delete(np.arange(allowed.n_labels), self._unseen)
        score = self._model._scorer_of(labels, **self._how)
        step = max(1, self._room // len(labels))
        parts = []
        for first in range(0, len(rows), step):
            own = allowed.take(np.arange(first, min(first + step, len(rows)))).but(self._unseen)
            scores = score(self._rows(rows[first : first + step]))
            named = np.zeros(scores.shape, bool)
            is_seen = ~np.isin(own.labels, self._unseen)
            named[own.rows[is_seen], np.searchsorted(labels, own.labels[is_seen])] = True
            scores[named == own.are_excluded] = -np.inf
            parts.append(best_of_scores(scores, labels, self._k))
        return joined(parts)

    def _without(self, allowed: AllowedLabels, found: Found) -> Found:
        """Return the allowed labels of longer answers."""
        labels, scores = found
        kept = allowed.has(labels)
        if self._unseen.size:
            kept &= ~np.isin(labels, self._unseen)
        return first_kept(labels, scores, kept, self._k)

    def _with_unseen(self, labels: np.ndarray, scores: np.ndarray) -> Found:
        """Fill short answers with allowed labels without a training instance."""
        if not self._unseen.size:
            return labels, scores
        short = np.flatnonzero(labels[:, -1] < 0)
        step = max(1, self._room // len(self._unseen))
        for first in range(0, len(short), step):
            rows = short[first : first + step]
            n_found = (labels[rows] >= 0).sum(axis=1)
            allowed = self._allowed.take(rows)
            last = np.full(len(rows), -np.inf, scores.dtype)
            some = n_found > 0
            last[some] = just_below(scores[rows[some], n_found[some] - 1])
            if allowed.indptr is None:
                one = np.intersect1d(allowed.labels, self._unseen)
                own = np.tile(one, len(rows))
                at = np.repeat(np.arange(len(rows)), len(one))
                place = n_found[at] + np.tile(np.arange(len(one)), len(rows))
            else:
                allowed = allowed.only(self._unseen)
                own, at = allowed.labels, allowed.rows
                place = n_found[at] + allowed.places
            kept = place < self._k
            labels[rows[at[kept]], place[kept]] = own[kept]
            scores[rows[at[kept]], place[kept]] = last[at[kept]]
        return labels, scores

    def _rows(self, rows: np.ndarray) -> Any:
        return self._X if len(rows) == self._n else safe_indexing(self._X, rows)

    def _pieces(self, step: int) -> Iterator[np.ndarray]:
        for first in range(0, self._n, step):
            yield np.arange(first, min(first + step, self._n))


def joined(parts: list[Found]) -> Found:
    """Return the answers of all parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def best_of_scores(scores: np.ndarray, labels: np.ndarray, k: int) -> Found:
    """Top k of dense scores (n, n_labels); excluded labels score -inf."""
    n_found = min(k, len(labels))
    places = np.empty((len(scores), n_found), np.int64)
    best = np.empty(places.shape, scores.dtype)
    topk_scores(np.ascontiguousarray(scores), n_found, places, best)
    return padded(np.where(np.isneginf(best), -1, labels[places]), best, k)


def best_of_pairs(allowed: AllowedLabels, values: np.ndarray, k: int) -> Found:
    """Return the k candidates of each row with the largest values; ties go to the smaller label."""
    n = len(allowed.counts)
    labels, best = np.full((n, k), -1, np.int64), np.full((n, k), -np.inf, values.dtype)
    assert allowed.indptr is not None
    for rows, size in rows_of_like_size(allowed.counts, 0, _CHUNK_SCORES):
        if size:
            own = allowed.take(rows)
            assert own.indptr is not None
            table = own.table(size)
            scores = np.full(table.shape, -np.inf, values.dtype)
            starts = np.repeat(allowed.indptr[rows] - own.indptr[:-1], own.counts)
            scores[table >= 0] = values[starts + np.arange(len(starts))]
            n_found = min(k, size)
            places = np.empty((len(rows), n_found), np.int64)
            found = np.empty(places.shape, values.dtype)
            topk_scores(scores, n_found, places, found)
            labels[rows, :n_found] = np.take_along_axis(table, places, axis=1)
            best[rows, :n_found] = found
    return labels, best


def power_of_two(count: int) -> int:
    """Return the least power of two that is at least a count; 0 for none."""
    return 1 << (count - 1).bit_length() if count else 0


def rows_of_like_size(counts: np.ndarray, k: int, room: int) -> Iterator[tuple[np.ndarray, int]]:
    """Yield rows, and the least power of two not below their counts (0 for a count of 0).

    The answer of a row depends on its own count, not on other rows.

    Parameters
    ----------
    counts : ndarray of int of shape (n,)
    k, room : int
        A piece of rows has at most `room` entries.
    """
    sizes = np.array([power_of_two(count) for count in counts.tolist()], np.int64)
    for size in np.unique(sizes).tolist():
        rows = np.flatnonzero(sizes == size)
        step = max(1, room // max(1, k + size))
        for first in range(0, len(rows), step):
            yield rows[first : first + step], size
