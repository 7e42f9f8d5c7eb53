"""What a maximum inner product search is."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np


class Candidates(NamedTuple):
    """Labels that a search returns, for each of n queries.

    Attributes
    ----------
    labels : ndarray of int32 of shape (n, n_candidates)
        Rows of W, distinct, best first; padded with -1.
    scores : ndarray of shape (n, n_candidates)
        Their inner products with the query, or the index's estimates of them, in the dtype of W;
        padded with -inf.
    counts : ndarray of int64 of shape (n,)
        Number of candidates found.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_xc.search import Candidates, ExactIndex
    >>> index = ExactIndex()
    >>> index.build(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]))
    >>> found = index.query(np.array([[1.0, 0.0], [0.0, 1.0]]), n_candidates=2)
    >>> found.labels
    array([[0, 2],
           [1, 2]], dtype=int32)
    >>> found.scores
    array([[1. , 0.6],
           [1. , 0.8]])
    >>> Candidates.joined([found.part(1, 2), found.part(0, 1)]).labels[:, 0]
    array([1, 0], dtype=int32)
    """

    labels: np.ndarray
    scores: np.ndarray
    counts: np.ndarray

    @classmethod
    def empty(cls, n: int, n_candidates: int, dtype: np.dtype) -> "Candidates":
        """Return space for the candidates of n queries, none so far.

        Parameters
        ----------
        n, n_candidates : int
            Number of queries, and of labels for each.
        dtype : {numpy.float32, numpy.float64}
            Dtype of the scores.

        Returns
        -------
        Candidates
        """
        return cls(
            np.full((n, n_candidates), -1, np.int32),
            np.full((n, n_candidates), -np.inf, dtype),
            np.zeros(n, np.int64),
        )

    @classmethod
    def joined(cls, parts: Sequence["Candidates"]) -> "Candidates":
        """Return the candidates of all queries, concatenated part by part.

        Parameters
        ----------
        parts : sequence of Candidates
            At least one part; all have the same number of candidates.

        Returns
        -------
        Candidates
            If there is only one part, that part itself; otherwise a copy.
        """
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def part(self, first: int, last: int) -> "Candidates":
        """Return a view of the candidates of some queries.

        Parameters
        ----------
        first, last : int
            The queries from `first` up to, but not including, `last`.

        Returns
        -------
        Candidates
        """
        return Candidates(*(array[first:last] for array in self))


class MipsIndex(Protocol):
    """Finds rows of W with large inner products while W changes.

    Attributes
    ----------
    has_exact_scores : bool
        Whether the scores of candidates are exact inner products, not estimates.

    Notes
    -----
    The attribute ``row_copies`` is optional. It is the memory that an index takes besides W, in
    copies of the indexed columns; it is less than 1 for an
    index that holds codes. Without it, 2 copies are assumed.

    Examples
    --------
    All indexes have the same methods:

    >>> import numpy as np
    >>> from sklearn_xc.search import make_index
    >>> W = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    >>> for name in ("exact", "spherical", "product"):
    ...     index = make_index(name)
    ...     index.build(W)
    ...     print(name, index.query(np.array([[0.5, 1.0]]), n_candidates=1).labels)
    exact [[2]]
    spherical [[2]]
    product [[2]]

    An index of a copy of W, which changes independently from there on:

    >>> index = make_index("exact")
    >>> index.build(W)
    >>> W_next = W.copy()
    >>> following = index.following(W_next)
    >>> W_next[0] = [0.0, 2.0]
    >>> following.update(np.array([0], np.int32))
    >>> following.query(np.array([[0.5, 1.0]]), n_candidates=1).labels
    array([[0]], dtype=int32)
    """

    has_exact_scores: bool

    def build(self, W: np.ndarray, first: int = 0, last: int | None = None, seed: int = 0) -> None:
        """Index columns `first` to `last` of W.

        Parameters
        ----------
        W : ndarray of float32 or float64 of shape (n_labels, dim)
            C-contiguous. The index may keep a reference to it, but never changes it.
        first, last : int
            The range of columns; a `last` of None is dim.
        seed : int
            Random seed. The index depends only on W, the columns and the seed.
        """

    def update(self, rows: np.ndarray) -> None:
        """Register that some rows of W, the array given to ``build``, have changed.

        The cost depends on the number of these rows, not on n_labels.

        Parameters
        ----------
        rows : ndarray of int32 of shape (m,)
            All rows that have changed since the last call, each once.
        """

    def following(self, W: np.ndarray) -> "MipsIndex":
        """Return an index in the state of this one that follows a copy of W from here on.

        Parameters
        ----------
        W : ndarray of float32 or float64 of shape (n_labels, dim)
            A copy of the array given to ``build``, as it was at the last update. Later updates of
            either index do not affect the other.

        Returns
        -------
        MipsIndex
        """

    def query(self, V: np.ndarray, n_candidates: int) -> Candidates:
        """Return the rows with (nearly) the largest inner products for each query.

        Parameters
        ----------
        V : ndarray of shape (n, last - first)
            C-contiguous, of the dtype of W.
        n_candidates : int
            Number of rows to return, from 1 to n_labels.

        Returns
        -------
        Candidates
            They depend only on the index and the query: not on the number of threads, nor on the
            other queries, except through the rounding of scores that almost tie.
        """
