"""``fusion_weight="auto"``: how scores are fused, by instances that no tree of the trial has seen.

Fused scores may be the tree's value and more or less of the sum of all scores, the sum alone, or
one of the scores alone. Each is asked to rank the labels of held-out instances. A tree must not be
judged by the instances that it has grown by, so that there is one for each half of them, grown by
the other.
"""

from typing import NamedTuple

import numpy as np

from sklearn_xc.embedding._fusion import ScoreFusion
from sklearn_xc.metrics.gains import ranking_gains

#: Of the sum beside the tree; the first is kept unless another way is clearly better.
WEIGHTS = (0.1, 0.3, 1.0)
#: What `only` is for the sum of all scores.
ALL = -1
#: Instances that the choice is made by, at most and at least, and the trees that are grown for it.
_MOST, _FEWEST, _FOLDS = 1000, 50, 2
#: Standard errors of a difference that make it a clear one.
_ERRORS = 2.0
#: Labels of an instance that are ranked.
_K = 5


class Way(NamedTuple):
    """How scores are fused.

    Attributes
    ----------
    weight : float
        Of the sum of the scores beside the tree.
    only : int or None
        The score that speaks alone, by its column, -1 for the sum of all; None for the tree.
    """

    weight: float
    only: int | None = None

    def __str__(self) -> str:
        if self.only is None:
            return f"the tree, and {self.weight:g} of the sum of all scores"
        return "the sum of all scores" if self.only < 0 else f"score {self.only + 1} alone"


class Judged(NamedTuple):
    """Pairs of held-out instances and labels.

    Attributes
    ----------
    scores : ndarray of float of shape (n_pairs, n_scores)
    label : ndarray of int64 of shape (n_pairs,)
    is_own : ndarray of bool of shape (n_pairs,)
    weight : ndarray of float of shape (n_pairs,)
    of : ndarray of int64 of shape (n_pairs,)
        Which instance, rising.
    """

    scores: np.ndarray
    label: np.ndarray
    is_own: np.ndarray
    weight: np.ndarray
    of: np.ndarray


def choose_way(pairs: Judged, frequencies: np.ndarray, seed: int) -> Way:
    """Return the way to fuse that ranks best, or the first one if none is clearly better.

    Parameters
    ----------
    pairs : Judged
    frequencies : ndarray of float of shape (n_pairs,)
        Training instances of the label of each. Pairs of labels without any are judged, but no
        tree is grown by them.
    seed : int
    """
    ids, first = np.unique(pairs.of, return_index=True)
    chosen = np.random.default_rng((seed, 4)).permutation(len(ids))[:_MOST]
    if len(chosen) < _FEWEST:
        return Way(WEIGHTS[0])
    fold = np.full(len(ids), -1)
    fold[chosen] = np.arange(len(chosen)) % _FOLDS
    fold = np.repeat(fold, np.diff(np.append(first, len(pairs.of))))
    values = np.zeros(len(fold))
    for f in range(_FOLDS):
        others = np.flatnonzero((fold >= 0) & (fold != f) & (frequencies > 0))
        own = np.flatnonzero(fold == f)
        if not others.size:
            return Way(WEIGHTS[0])
        tree = ScoreFusion(weight=0.0, random_state=seed)
        tree.fit(pairs.scores[others], frequencies[others], pairs.is_own[others],
                 pairs.weight[others])  # fmt: skip
        values[own] = tree(pairs.scores[own], frequencies[own])
    some = np.flatnonzero(fold >= 0)
    pairs = Judged(*(column[some] for column in pairs))
    return _best_way(pairs, values[some], with_simple=bool((frequencies[some] > 0).all()))


def _best_way(pairs: Judged, values: np.ndarray, *, with_simple: bool) -> Way:
    """Return the way that ranks best, of those that are clearly better than the first.

    Without a tree only if all labels have instances: held-out instances have no other ones, and
    would choose a score that has never heard of them.
    """
    total = pairs.scores.sum(axis=1, dtype=np.float64)
    ways = [(Way(weight), values + weight * total) for weight in WEIGHTS]
    if with_simple:
        ways.append((Way(1.0, ALL), total))
        ways += [(Way(1.0, j), column) for j, column in enumerate(pairs.scores.T)]
    _, first = np.unique(pairs.of, return_index=True)
    weight = pairs.weight[first] / pairs.weight[first].sum()
    best, best_mean, gains_of_first = ways[0][0], 0.0, _gains(pairs, ways[0][1])
    for way, fused in ways[1:]:
        difference = _gains(pairs, fused) - gains_of_first
        mean = float(weight @ difference)
        error = np.sqrt(weight**2 @ (difference - mean) ** 2)
        if mean > max(best_mean, _ERRORS * error):
            best, best_mean = way, mean
    return best


def _gains(pairs: Judged, fused: np.ndarray) -> np.ndarray:
    """Return the mean of precision@1 and nDCG@5 of each instance."""
    _, first, instance = np.unique(pairs.of, return_index=True, return_inverse=True)
    order = np.lexsort((pairs.label, -fused, instance))
    rank = np.arange(len(order)) - first[instance]  # of sorted pairs: instances stay in place
    topk = np.full((len(first), _K), -1, np.int64)
    is_top = rank < _K
    topk[instance[is_top], rank[is_top]] = pairs.label[order][is_top]
    own = pairs.is_own
    indptr = np.append(0, np.cumsum(np.bincount(instance[own], minlength=len(first))))
    labels = pairs.label[own]
    return (ranking_gains(topk[:, :1], indptr, labels) + ranking_gains(topk, indptr, labels)) / 2
