"""What the fusion learns from: pairs of a held-out instance and a label."""

from collections.abc import Iterator

import numpy as np

from sklearn_xc.embedding._examples import Examples
from sklearn_xc.embedding._fusion import Pairs
from sklearn_xc.embedding._memory import pieces_by_width
from sklearn_xc.embedding._ranking import Ranking


def pieces_of_pairs(examples: Examples, n_listed: int, n_at_most: int) -> Iterator[np.ndarray]:
    """Yield ranges of instances that have at most so many pairs, listed labels and true ones."""
    yield from pieces_by_width(n_listed + np.diff(examples.positives.indptr), n_at_most)


def pairs_of(
    examples: Examples, V: np.ndarray, ranking: Ranking, n_candidates: int, n_labels: int
) -> Pairs:
    """Return pairs of instances with the labels of their shortlists.

    Labels of their own that are not there are left out: pairs of so low scores that are always
    right would be no lesson for those that are asked about.

    Parameters
    ----------
    examples : Examples
        Held-out instances.
    V : ndarray of shape (n, dim)
        Their embeddings.
    ranking : Ranking
    n_candidates : int
        Labels of a shortlist.
    n_labels : int

    Returns
    -------
    Pairs
    """
    known = np.flatnonzero(~ranking.is_blank("fused", examples.X, V))
    examples, V = examples.take(known), V[known]
    X, true, n = examples.X, examples.positives, len(known)
    counts = np.diff(true.indptr)
    labels = ranking.shortlist(X, V, n_candidates)
    labels.sort(axis=1)
    at = labels >= 0
    of, label = np.nonzero(at)[0], labels[at]
    is_own = np.isin(
        of * n_labels + label, np.repeat(np.arange(n), counts) * n_labels + true.labels
    )
    return Pairs(ranking.scores(X, V, labels)[at], label, is_own, examples.weight[of], known[of])
