"""The skip-gram loss of distinct words, each against the shares of its contexts.

It takes the place of a ``SetLoss`` in gradients: a word is an instance, and a context a label,
weighted by its share.
"""

from typing import NamedTuple

import numpy as np

from sklearn_xc.decomposition.gradients.protocol import LabelGradient
from sklearn_xc.decomposition.skip_gram.kernels.collapsed_softmax import gradient_of_found
from sklearn_xc.search.protocol import Candidates

#: Largest variance of scores in the reference.
_MOST_VARIANCE = 1.0
#: Share of the draws by frequency; the others are uniform.
_BY_FREQUENCY = 0.5


class Reference:
    """Approximation of the softmax of all words, before any context is scored.

    The weight of a context is its share of all counts, times a linear function of its score less
    the logarithm of the share: the best one for normally distributed scores. Sums over all contexts
    follow from the first two moments of the output vectors.

    Parameters
    ----------
    W : ndarray of float of shape (n_contexts, dim + 1)
    log_shares : ndarray of float64 of shape (n_contexts,)
        Of all counts; -inf for contexts that have none.
    """

    def __init__(self, W: np.ndarray, log_shares: np.ndarray) -> None:
        self.log_shares = log_shares
        self.shares = np.exp(log_shares).astype(W.dtype)
        self.W = W.copy()
        self.W[:, -1] -= log_shares
        weighted = self.shares[:, None] * self.W
        self.mean = weighted.sum(axis=0)
        self.second = self.W.T @ weighted
        self._a = np.zeros(W.shape[1])
        self._C = np.zeros((W.shape[1], W.shape[1]))

    def centres_and_heights(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the centre and the logarithm of the height for each word, float64 (n,)."""
        centres = (V @ self.mean).astype(np.float64)
        squares = np.einsum("ij,ij->i", V @ self.second, V).astype(np.float64)
        variance = np.clip(squares - centres * centres, 0.0, _MOST_VARIANCE)
        return centres, centres + variance / 2

    def covariance(self) -> np.ndarray:
        """Return the covariance of output vectors, without intercepts, float64 (dim, dim)."""
        mean = self.mean[:-1].astype(np.float64)
        return self.second[:-1, :-1].astype(np.float64) - np.outer(mean, mean)

    def by_inputs(self, batch: "WordBatch") -> np.ndarray:
        """Return the part of the gradient by V, of shape (n, dim + 1)."""
        factors, centres = batch.factors[:, None], batch.centres[:, None]
        gradient = factors * ((1.0 - centres) * self.mean + batch.V @ self.second)
        return gradient.astype(batch.V.dtype)

    def add(self, batch: "WordBatch") -> None:
        """Count some words for the gradient by W."""
        weighted = batch.factors[:, None] * batch.V
        self._a += (1.0 - batch.centres) @ weighted
        self._C += batch.V.T @ weighted

    def by_outputs(self) -> np.ndarray:
        """Return the part of the gradient by W of the words counted, (n_contexts, dim + 1)."""
        dtype = self.W.dtype
        gradient = self.W @ self._C.astype(dtype) + self._a.astype(dtype)
        return self.shares[:, None] * gradient


class Drawn(NamedTuple):
    """Contexts drawn from those that were not found.

    Attributes
    ----------
    labels : ndarray of int32 of shape (m,)
        Distinct.
    probabilities : ndarray of float64 of shape (m,)
        Of each to be drawn.
    """

    labels: np.ndarray
    probabilities: np.ndarray


class WordBatch(NamedTuple):
    """Words of a mini-batch, as a ``RowBatch`` of instances.

    Attributes
    ----------
    V : ndarray of float of shape (n, dim + 1)
        Input vectors, with a 1 for the intercept.
    indptr : ndarray of int64 of shape (n + 1,)
    positives : ndarray of int32 of shape (indptr[-1],)
        Contexts of each word, in ascending order.
    weight : ndarray of float64 of shape (n,)
        Of losses and gradients.
    shares : ndarray of float of shape (indptr[-1],)
        Of the contexts of a word; they sum to 1.
    drawn : Drawn
    drawn_scores, drawn_gradient : ndarray of float of shape (n, m)
        Scores of the contexts drawn; their gradients, to be written.
    log_shares : ndarray of float64 of shape (n_contexts,)
    centres, heights, factors : ndarray of float64 of shape (n,)
        Of the reference; its factors in the gradient are to be written.
    kept, n_kept : ndarray of int32 of shape (n, n_most), and of int64 of shape (n,)
        To be written: contexts found that matter to each word, other than its own, and how many.
    """

    V: np.ndarray
    indptr: np.ndarray
    positives: np.ndarray
    weight: np.ndarray
    shares: np.ndarray
    drawn: Drawn
    drawn_scores: np.ndarray
    drawn_gradient: np.ndarray
    log_shares: np.ndarray
    centres: np.ndarray
    heights: np.ndarray
    factors: np.ndarray
    kept: np.ndarray
    n_kept: np.ndarray

    def part(self, first: int, last: int) -> "WordBatch":
        """Return a range of the words."""
        indptr = self.indptr[first : last + 1]
        pairs, rows = slice(indptr[0], indptr[-1]), slice(first, last)
        of_rows = ("V", "weight", "drawn_scores", "drawn_gradient", "centres", "heights")
        return self._replace(
            indptr=indptr - indptr[0],
            positives=self.positives[pairs],
            shares=self.shares[pairs],
            **{name: getattr(self, name)[rows] for name in (*of_rows, "factors", "kept", "n_kept")},
        )


class CollapsedSoftmax:
    """Losses and gradients of mini-batches of words."""

    def over_found(
        self, W: np.ndarray, batch: WordBatch, found: Candidates, is_exact: bool, out: LabelGradient
    ) -> np.ndarray:
        """Write the gradient, and return where more contexts may matter, by estimates.

        That of own contexts and those found goes to `out`, that of contexts drawn to the batch.
        """
        wants_more = np.empty(len(batch.V), np.bool_)
        words = batch.V, batch.indptr, batch.positives, batch.shares, batch.weight
        drawn = *batch.drawn, batch.drawn_scores, batch.drawn_gradient
        reference = batch.log_shares, batch.centres, batch.heights, batch.factors
        kept = batch.kept, batch.n_kept
        how = is_exact, tuple(out), wants_more, kept
        gradient_of_found(W, words, tuple(found), drawn, reference, *how)
        return wants_more


class ContextSampler:
    """Draws contexts, each with a probability of its own, and at most once.

    A context drawn with probability r counts as 1 / r contexts, so that sums are unbiased [1]_.
    Half of the draws are by frequency and half are uniform, so that rare contexts are drawn as
    well. Sampling is systematic [2]_: at equal distances along the cumulative probabilities.

    Parameters
    ----------
    frequencies : ndarray of float64 of shape (n_contexts,)
        Not negative, with a positive sum.
    n_drawn : int
        Mean number of draws.

    References
    ----------
    .. [1] S. Mussmann, D. Levy and S. Ermon, "Fast amortized inference and learning in log-linear
       models with randomly perturbed nearest neighbor search", UAI 2017.
    .. [2] W. G. Madow, "On the theory of systematic sampling, II", Annals of Mathematical
       Statistics 20, 1949.
    """

    def __init__(self, frequencies: np.ndarray, n_drawn: int) -> None:
        self.probabilities = _probabilities(frequencies, n_drawn)
        self._line = np.cumsum(self.probabilities)

    def draw(self, rng: np.random.Generator) -> Drawn:
        """Return the contexts of the next mini-batch."""
        points = np.arange(rng.random(), self._line[-1], 1.0)
        drawn = np.searchsorted(self._line, points, side="right").astype(np.int32)
        drawn = np.unique(np.minimum(drawn, len(self._line) - 1))
        return Drawn(drawn, self.probabilities[drawn])


def _probabilities(frequencies: np.ndarray, n_drawn: int) -> np.ndarray:
    """Return the probability of each context; they sum to `n_drawn`, or are all 1."""
    n = len(frequencies)
    if n_drawn >= n:
        return np.ones(n)
    shares = _BY_FREQUENCY * frequencies / frequencies.sum() + (1 - _BY_FREQUENCY) / n
    probabilities = n_drawn * shares
    # Contexts with a probability above 1 are always drawn; the excess goes to the others.
    while (probabilities > 1.0).any():
        is_sure = probabilities >= 1.0
        probabilities = (n_drawn - is_sure.sum()) * shares / shares[~is_sure].sum()
        probabilities[is_sure] = 1.0
    return probabilities
