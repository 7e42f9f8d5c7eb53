"""The mean of each label's training instances: of their embeddings, and of their features.

The encoder's embedding of a label is that of a text, or of the mean features; a classifier takes
steps, few for a rare label. The means take none, and tell most of rare labels.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from sklearn_xc._data import CsrRows, as_csr_rows
from sklearn_xc.embedding._examples import Examples
from sklearn_xc.embedding._label_features import joined_rows

#: The norm of what stands in for the mean of a label without instances. A sixteenth of WordNet,
#: P@1 and recall@10 of unseen labels: 0.082 and 0.26 with 1, 0.123 and 0.25 with 0.65, 0.128 and
#: 0.18 with 0.5, 0.116 and 0.02 with 0.
STAND_IN = 0.65


class LabelMeans(NamedTuple):
    """Means of instances, scaled to norm 1.

    Attributes
    ----------
    vectors : ndarray of float of shape (n_labels, dim)
        Of embeddings. A label without instances has what stands in for its mean, see ``filled``.
    lengths : ndarray of float64 of shape (n_labels,)
        Norms of the weighted sums; 0 where something stands in.
    words : CsrRows of shape (n_labels, n_features) or None
        Of features; None where the encoder reads texts.
    word_lengths : ndarray of float64 of shape (n_labels,)
        As `lengths`.
    """

    vectors: np.ndarray
    lengths: np.ndarray
    words: CsrRows | None
    word_lengths: np.ndarray

    @classmethod
    def of(
        cls, examples: Examples, embedded: Iterable[tuple[np.ndarray, np.ndarray]], n_labels: int,
        dim: int, *, with_words: bool,
    ) -> "LabelMeans":  # fmt: skip
        """Return the means of instances.

        Parameters
        ----------
        examples : Examples
        embedded : iterable of tuple (rows, V)
            Embeddings (m, dim) of ranges of rows, in turn. Sums round by the ranges, so that these
            must not depend on the memory or the threads that there are.
        n_labels, dim : int
        with_words : bool
            Whether the instances are rows of features.
        """
        X, (indptr, labels), weight = examples
        values = np.repeat(weight, np.diff(indptr))
        Y = sp.csr_array((values, labels, indptr), shape=(len(weight), n_labels))
        sums = np.zeros((n_labels, dim), X.dtype)
        for rows, V in embedded:
            part = Y[rows].astype(X.dtype)
            some = np.unique(part.indices)
            sums[some] += part[:, some].T @ V
        none = None, np.zeros(n_labels)
        words = _to_unit_rows(Y.T @ _matrix(X), X.dtype) if with_words else none
        return cls(*_to_unit(sums), *words)

    def filled(self, vectors: np.ndarray, words: CsrRows | None) -> "LabelMeans":
        """Return the means with shorter others in place of those of labels without instances.

        A 0 there would be a very low score, and tell the fusion that no such label is ever right.
        The full length would put them level with labels that are known by instances.

        Parameters
        ----------
        vectors : ndarray of shape (n_labels, dim)
        words : CsrRows of shape (n_labels, n_features) or None
            Of norm 1. None leaves rows without instances empty.
        """
        is_empty = self.lengths == 0
        means, own = self.vectors.copy(), self.words
        means[is_empty] = vectors.dtype.type(STAND_IN) * vectors[is_empty]
        if own is not None and words is not None and (self.word_lengths == 0).any():
            n = len(means)
            stand_ins = _scaled(words, STAND_IN)
            own = joined_rows(own, stand_ins).take(np.arange(n) + n * (self.word_lengths == 0))
        return self._replace(vectors=means, words=own)

    def plus(self, further: "LabelMeans") -> "LabelMeans":
        """Return the means over the instances of both; this one stays as it is."""
        at = np.flatnonzero(further.lengths)
        vectors, lengths = self.vectors.copy(), self.lengths.copy()
        ours, others = (x.lengths[at, None].astype(vectors.dtype) for x in (self, further))
        vectors[at], lengths[at] = _to_unit(ours * vectors[at] + others * further.vectors[at])
        words, word_lengths = self.words, self.word_lengths
        if words is not None and further.words is not None:
            stays = further.word_lengths == 0
            old = np.where(stays, 1.0, word_lengths)  # 0: what stood in goes
            sums = sp.diags_array(old) @ _matrix(words)
            sums += sp.diags_array(further.word_lengths) @ _matrix(further.words)
            words, norms = _to_unit_rows(sums, words.dtype, stays)
            word_lengths = np.where(stays, word_lengths, norms)
        return LabelMeans(vectors, lengths, words, word_lengths)

    def joined(self, vectors: np.ndarray, words: CsrRows | None, order: np.ndarray) -> "LabelMeans":
        """Return these labels, and then others without instances, in an order of all."""
        zeros, own = np.zeros(len(vectors)), self.words
        vectors = vectors.dtype.type(STAND_IN) * vectors
        if own is not None and words is not None:
            own = joined_rows(own, _scaled(words, STAND_IN)).take(order)
        return LabelMeans(
            np.concatenate([self.vectors, vectors])[order],
            np.append(self.lengths, zeros)[order],
            own,
            np.append(self.word_lengths, zeros)[order],
        )


def _scaled(rows: CsrRows, factor: float) -> CsrRows:
    data = rows.dtype.type(factor) * rows.data
    return CsrRows(rows.indptr, rows.indices, data, rows.shape, rows.was_sparse)


def _matrix(rows: CsrRows) -> sp.csr_array:
    return sp.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)


def _to_unit(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scale rows to norm 1, in place; return them and their norms."""
    lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums, dtype=np.float64))
    sums /= np.where(lengths > 0, lengths, 1)[:, None].astype(sums.dtype)
    return sums, lengths


def _to_unit_rows(
    sums: sp.csr_array, dtype: np.dtype, stays: np.ndarray | None = None
) -> tuple[CsrRows, np.ndarray]:
    """Return rows scaled to norm 1, but for those that stay, and the norms that they had."""
    sums = sp.csr_array(sums, dtype=np.float64)
    sums.sort_indices()
    counts = np.diff(sums.indptr)
    rows = np.repeat(np.arange(len(counts)), counts)
    lengths = np.sqrt(np.bincount(rows, sums.data**2, minlength=len(counts)))
    is_scaled = lengths > 0 if stays is None else (lengths > 0) & ~stays
    sums.data /= np.where(is_scaled, lengths, 1)[rows]
    return as_csr_rows(sums.astype(dtype)).without_zeros(), lengths
