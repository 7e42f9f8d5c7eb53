"""Labels that are probably wrong or missing, by scores of models that were not trained on them."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import KFold

from sklearn_xc._input.arguments import check_count, draw_seed
from sklearn_xc.ensemble.members import tagger_in
from sklearn_xc.metrics.check import check_y_true
from sklearn_xc.model_selection._cross_val_topk import cross_val_topk

_WHO = "find_label_errors"
#: Best labels of each row that count as context, and that may be missing.
_N_BEST = 10
#: Planted errors for each row.
_N_PLANTED = 3
#: Pseudo-counts: of a label's mean score, and of a share of rows.
_PRIOR = 5.0
_FEW = 0.3
#: Columns of `_Evidence.of` about labels that the row lacks.
_N_LACKING = 2


class LabelErrors(NamedTuple):
    """Candidates for label errors, most likely first, as ``find_label_errors`` finds them.

    ``pandas.DataFrame(found._asdict())`` shows them as a table.

    Attributes
    ----------
    row : ndarray of int64 of shape (m,)
        Rows of X and y.
    label : ndarray of shape (m,)
        Names if y is names, classes, or column numbers.
    kind : ndarray of str of shape (m,)
        "given": y has this label and it is probably wrong; "missing": y lacks it.
    score : ndarray of float64 of shape (m,)
        In [0, 1]. For "given", the probability that the label is a random one, if half of all were;
        for "missing", the share of the labels with such features that are given.
    """

    row: np.ndarray
    label: np.ndarray
    kind: np.ndarray
    score: np.ndarray


def find_label_errors(
    model: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = None,
    k: int = 100,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> LabelErrors:
    """Return the labels that are most likely wrong, and those most likely missing.

    Errors are planted: random labels, drawn by frequency, replace some of those given. A small
    classifier learns to tell them from the labels given, which are mostly right. It knows the score
    and the rank of the label by a model that was not trained on the row, how often the label occurs
    and what scores its other rows get, how good the best label is that the row lacks, and how often
    the label occurs with the row's other labels and with its best ones.

    Parameters
    ----------
    model : classifier
        Anything that :func:`cross_val_topk` can fit. Cloned, and fitted in each fold: one that
        tries or tunes others does it again there, for which a plain classifier is as good.
    X : {array-like, sparse matrix} of shape (n, n_features), data frame or list of str
        Whatever the model accepts.
    y : {array-like, sparse matrix} of shape (n,) or (n, n_labels), or names
        Labels, some of which may be wrong, as in :func:`cross_val_topk`.
    cv : int, splitter or iterable, default=None
        As in :func:`cross_val_topk`, but None makes five shuffled folds: rows are often sorted, and
        a fold of neighbours lacks their labels. Rows that no fold tests have no candidates.
    k : int, default=100
        Number of scores known for each row.
    n_jobs : int, default=None
        Number of folds fitted in parallel.
    random_state : int, RandomState instance or None, default=None
        Draws the folds and the planted errors.

    Returns
    -------
    LabelErrors
        A named tuple of arrays ``row``, ``label``, ``kind`` and ``score``: all labels given, and
        those missing that are among the ten best of their row. Each kind is sorted by score, and
        the kinds take turns, as their scores cannot be compared.

    Raises
    ------
    ValueError, TypeError
        As :func:`cross_val_topk`; also if fewer than two labels occur.

    See Also
    --------
    cross_val_topk : The scores used.

    Notes
    -----
    As in confident learning [1]_, a score counts by what is usual for the label. The thresholds are
    learned from planted errors instead of set at the mean.

    Scores are for ranking: the true share of errors is unknown. Check the first by hand.

    Time: `cv` fits of the model, and O(n_pairs) for the rest. Memory: 64 bytes for each of the
    ``n * k`` scores, and about 1 kB for each pair of row and label.

    References
    ----------
    .. [1] C. Northcutt, L. Jiang and I. Chuang, "Confident Learning: Estimating Uncertainty in
       Dataset Labels", J. Artif. Intell. Res. 70, 2021.

    Examples
    --------
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> from sklearn_xc.model_selection import find_label_errors
    >>> X, Y = make_xc_classification(
    ...     n_samples=600, n_features=300, n_labels=30, random_state=0, return_X_y=True
    ... )
    >>> found = find_label_errors(OvALinearXC(), X, Y, random_state=0)
    >>> first = found.row[0], found.label[0], found.kind[0]
    """
    k = check_count(k, f"{_WHO}: k")
    seed = draw_seed(random_state)
    if cv is None:
        cv = KFold(5, shuffle=True, random_state=seed % 2**32)
    scores = cross_val_topk(model, X, y, cv=cv, k=k, n_jobs=n_jobs)
    tagger = tagger_in(model)
    names, y = (None, y) if tagger is None else tagger._read_targets(y)
    classes = np.unique(y) if np.ndim(y) == 1 and not sp.issparse(y) else None
    true = check_y_true(y, classes)
    if names is not None:
        classes = np.asarray(names.classes_)
    given = sp.csr_array((np.ones(len(true.rows)), (true.rows, true.columns)), shape=scores.shape)
    tested = np.flatnonzero(np.diff(scores.indptr))
    given = given[tested]
    rows, labels = given.nonzero()
    if len(np.unique(labels)) < 2:
        raise ValueError(f"{_WHO}: y must have at least two labels in tested rows.")
    evidence = _Evidence(scores[tested], given)
    rng = np.random.default_rng(seed)
    # 1. Labels given, against random ones in the place of one of the row's labels.
    at = np.concatenate([_one_each(rows, rng) for _ in range(_N_PLANTED)])
    drawn = rng.choice(labels, len(at))
    new = _entries(given, rows[at], drawn) == 0
    planted = evidence.of(rows[at][new], drawn[new], labels[at][new])
    of_given = evidence.of(rows, labels)
    wrong = _fitted(planted, of_given).predict_proba(of_given)[:, 1]
    # 2. Labels missing, against those given that are as high in the ranking.
    best_rows, ranks = np.nonzero(evidence.best >= 0)
    best = evidence.best[best_rows, ranks]
    absent = _entries(given, best_rows, best) == 0
    lacking = best_rows[absent], best[absent]
    replaced = np.full(len(tested), -1)  # so that rows of both kinds have as many other labels
    replaced[rows[at]] = labels[at]
    of_lacking = evidence.of(*lacking, replaced[lacking[0]])[:, :-_N_LACKING]
    of_present = of_given[evidence.look_up(rows, labels)[1] < _N_BEST, :-_N_LACKING]
    likely = np.zeros(len(of_lacking))
    if len(of_present) and len(of_lacking):
        likely = _fitted(of_present, of_lacking).predict_proba(of_lacking)[:, 1]
    both = np.concatenate([wrong, likely])
    places = [np.argsort(np.argsort(-one, kind="stable")) for one in (wrong, likely)]
    order = np.argsort(np.concatenate(places), kind="stable")  # the kinds take turns
    label = np.concatenate([labels, lacking[1]])[order]
    return LabelErrors(
        tested[np.concatenate([rows, lacking[0]])[order]],
        label if classes is None else classes[label],
        np.repeat(["given", "missing"], [len(wrong), len(likely)])[order],
        both[order],
    )


def _one_each(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the position of one pair of each row, drawn at random; `rows` is sorted."""
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    sizes = np.diff(np.append(starts, len(rows)))
    return starts + rng.integers(0, sizes)


def _fitted(first: np.ndarray, second: np.ndarray) -> HistGradientBoostingClassifier:
    """Return a classifier that tells the first pairs from the second, as if equally many."""
    y = np.repeat([True, False], [len(first), len(second)])
    model = HistGradientBoostingClassifier(
        learning_rate=0.05,
        max_iter=300,
        max_leaf_nodes=7,
        min_samples_leaf=100,
        l2_regularization=10,
        early_stopping=False,
        class_weight="balanced",
    )
    return model.fit(np.concatenate([first, second]), y)


def _entries(matrix: sp.csr_array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    # An empty index returns a sparse array.
    return np.asarray(matrix[rows, columns]).ravel() if len(rows) else np.zeros(0)


class _Evidence:
    """What is known of pairs of row and label, whose own pair is never counted."""

    def __init__(self, scores: sp.csr_array, given: sp.csr_array) -> None:
        self.n, n_labels = scores.shape
        starts, rows = scores.indptr[:-1], np.repeat(np.arange(self.n), np.diff(scores.indptr))
        data = scores.data.astype(np.float64)
        self.low, self.top = (of.reduceat(data, starts) for of in (np.minimum, np.maximum))
        order = np.lexsort((-data, rows))
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order)) - starts[rows]
        self.lowest = 2 * ranks.max()
        like = scores.indices, scores.indptr
        # Absent entries are 0, so those present are above it.
        self.ranks = sp.csr_array((ranks + 1, *like), shape=scores.shape)
        self.above = sp.csr_array((data - self.low[rows], *like), shape=scores.shape)
        self.best = np.full((self.n, _N_BEST), -1)
        high = ranks < _N_BEST
        self.best[rows[high], ranks[high]] = scores.indices[high]
        absent = _entries(given, rows, scores.indices) == 0
        self.lacks = np.maximum.reduceat(np.where(absent, data, self.low[rows]), starts)
        self.given, self.together = given, (given.T @ given).tocsr()
        self.counts = given.sum(axis=0)
        rows, labels = given.nonzero()
        own, _ = self.look_up(rows, labels)
        self.mean, self.sums = own.mean(), np.bincount(labels, own, n_labels)

    def look_up(self, rows: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return scores and ranks; a label that was not scored is as low as the lowest."""
        rank = _entries(self.ranks, rows, labels)
        score = self.low[rows] + _entries(self.above, rows, labels)
        return score, np.where(rank > 0, rank - 1, self.lowest)

    def of(self, rows: np.ndarray, labels: np.ndarray, removed: Any = -1) -> np.ndarray:
        """Return the evidence about pairs, shape (m, 12); `removed` labels count as not given."""
        score, rank = self.look_up(rows, labels)
        own = _entries(self.given, rows, labels)
        # 1. Score of the label, and the mean score of the other rows that have it.
        count = self.counts[labels] - own
        mean = self.sums[labels] - own * score + _PRIOR * self.mean
        mean /= count + _PRIOR
        # 2. How often the label occurs with the others of the row, and with the best ones.
        pair, removed = self.given[rows], np.broadcast_to(removed, len(rows))
        at, near = pair.nonzero()
        kept = (near != labels[at]) & (near != removed[at])
        with_others = self._lift(rows, labels, at[kept], near[kept], np.ones(kept.sum()))
        near = self.best[rows]
        at, ranks = np.nonzero((near >= 0) & (near != labels[:, None]))
        near = near[at, ranks]
        weights = expit(3 * self.look_up(rows[at], near)[0])
        with_best = self._lift(rows, labels, at, near, weights)
        # 3. Score of the best label that the row lacks.
        lost, _ = self.look_up(rows, removed)
        lacks = np.where(removed < 0, self.lacks[rows], np.maximum(self.lacks[rows], lost))
        columns = [score, np.log(count + 0.5), score - mean, mean, *with_others, *with_best]
        return np.column_stack([*columns, np.log1p(rank), self.top[rows], lacks, score - lacks])

    def _lift(
        self, rows: np.ndarray, labels: np.ndarray, at: np.ndarray, near: np.ndarray, w: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return logs of mean and largest share of rows with labels `near`, by that of all rows."""
        own = _entries(self.given, rows, labels)
        prior = (self.counts[labels] - own + 0.5) / self.n
        is_near = _entries(self.given, rows[at], near)
        both = _entries(self.together, labels[at], near) - own[at] * is_near
        n_near = self.counts[near] - is_near
        shares = np.bincount(at, w * both / np.maximum(n_near, 1), len(rows))
        mean = (shares + _FEW * prior) / (np.bincount(at, w, len(rows)) + _FEW)
        most = np.zeros(len(rows))
        np.maximum.at(most, at, (both + 2 * prior[at]) / (n_near + 2) / prior[at])
        return np.log(mean / prior), np.log(most + 0.05)
