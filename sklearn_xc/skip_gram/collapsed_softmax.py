"""The skip-gram loss of distinct words, each against the shares of its contexts.

It stands where gradients expect the loss of label sets (:class:`~sklearn_xc.gradients.SetLoss`): a
word is an instance, and a context a label, which counts by its share.
"""

from typing import NamedTuple

import numpy as np

from sklearn_xc.gradients import LabelGradient
from sklearn_xc.kernels.skip_gram.collapsed_softmax import gradient_of_all, gradient_of_found
from sklearn_xc.mips.protocol import Candidates

#: A larger variance of scores is taken for this.
_MOST_VARIANCE = 1.0


class Others(NamedTuple):
    """Contexts that stand for all that were not found.

    Attributes
    ----------
    labels : ndarray of int32 of shape (m,)
        Distinct.
    chances : ndarray of float64 of shape (m,)
        Of being drawn.
    """

    labels: np.ndarray
    chances: np.ndarray

    @classmethod
    def none(cls) -> "Others":
        """Return those that stand for none."""
        return cls(np.empty(0, np.int32), np.empty(0))


class Kept(NamedTuple):
    """Contexts that have mattered to some words, beside their own.

    Attributes
    ----------
    labels : ndarray of int32 of shape (n, n_most)
    counts : ndarray of int64 of shape (n,)
        How many of them each word has.
    """

    labels: np.ndarray
    counts: np.ndarray

    @classmethod
    def room(cls, n: int, n_most: int) -> "Kept":
        """Return room for those of n words."""
        return cls(np.empty((n, n_most), np.int32), np.zeros(n, np.int64))


class Reference:
    """What is known of the softmax of all words, before any context is scored.

    It is the share of a context in all counts, times a straight line in the logarithm of what the
    softmax makes of it: the best such line where scores are normally distributed. The sums over all
    contexts are those of the first two moments of the output vectors.

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
        self.mean, self.second = weighted.sum(axis=0), self.W.T @ weighted
        self._a = np.zeros(W.shape[1])
        self._C = np.zeros((W.shape[1], W.shape[1]))

    def of_words(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
        """Return the part of the gradient by what scores are linear in, of shape (n, dim + 1)."""
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


class WordBatch(NamedTuple):
    """Words of a mini-batch, as a :class:`~sklearn_xc.gradients.Batch` of instances.

    Attributes
    ----------
    V : ndarray of float of shape (n, dim)
        What their scores are linear in.
    indptr : ndarray of int64 of shape (n + 1,)
    positives : ndarray of int32 of shape (indptr[-1],)
        Contexts of each word, rising.
    weight : ndarray of float64 of shape (n,)
        What losses and gradients are multiplied by.
    shares : ndarray of float of shape (indptr[-1],)
        Of the contexts of a word; they sum to 1.
    others : Others
    scores_of_others : ndarray of float of shape (n, m)
    of_others : ndarray of float of shape (n, m)
        To be written: their gradients.
    log_shares : ndarray of float64 of shape (n_contexts,)
    centres, heights : ndarray of float64 of shape (n,)
        Of the reference.
    has_reference : bool
    factors : ndarray of float64 of shape (n,)
        To be written: what the reference counts in the gradient.
    kept : Kept
        To be written: contexts found that matter.
    of_all : dict
        The gradients over all contexts, (n_part, n_contexts), by the first word of each part: where
        there are some, of an exact gradient, they take the place of all others.
    first : int
        The first word of this part of a batch.
    """

    V: np.ndarray
    indptr: np.ndarray
    positives: np.ndarray
    weight: np.ndarray
    shares: np.ndarray
    others: Others
    scores_of_others: np.ndarray
    of_others: np.ndarray
    log_shares: np.ndarray
    centres: np.ndarray
    heights: np.ndarray
    has_reference: bool
    factors: np.ndarray
    kept: "Kept"
    of_all: dict[int, np.ndarray]
    first: int = 0

    def part(self, first: int, last: int) -> "WordBatch":
        """Return some of the words."""
        indptr = self.indptr[first : last + 1]
        own = slice(indptr[0], indptr[-1])
        return self._replace(
            V=self.V[first:last],
            indptr=indptr - indptr[0],
            positives=self.positives[own],
            weight=self.weight[first:last],
            shares=self.shares[own],
            scores_of_others=self.scores_of_others[first:last],
            of_others=self.of_others[first:last],
            centres=self.centres[first:last],
            heights=self.heights[first:last],
            factors=self.factors[first:last],
            kept=Kept(self.kept.labels[first:last], self.kept.counts[first:last]),
            first=self.first + first,
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
        gradient_of_found(
            W, batch.V, batch.indptr, batch.positives, batch.shares, batch.weight,
            found.labels, found.scores, found.counts, is_exact,
            *batch.others, batch.scores_of_others, batch.of_others,
            batch.log_shares, batch.centres, batch.heights, batch.has_reference, batch.factors,
            *out, wants_more, *batch.kept,
        )  # fmt: skip
        return wants_more

    def over_all(self, scores: np.ndarray, batch: WordBatch, out: LabelGradient) -> None:
        """Turn the scores of all contexts into gradients, which the batch keeps; `out` has none."""
        out.counts[...] = 0
        gradient_of_all(
            scores, batch.indptr, batch.positives, batch.shares, batch.weight, out.losses
        )
        batch.of_all[batch.first] = scores
