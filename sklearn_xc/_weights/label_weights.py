"""Sparse weights of many labels, and the scores they give."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed

from sklearn_xc._input.blank_rows import shares_any
from sklearn_xc._input.data import CsrRows, read_only
from sklearn_xc._parallel.memory import require_bytes
from sklearn_xc._parallel.threads import count_threads
from sklearn_xc._state.schema import Array, Dtype, Record, Shape, declares
from sklearn_xc._weights.by_feature import (
    StoredWeights,
    WeightsByFeature,
    arrange_by_feature,
    as_stored,
    only_labels,
    reach_of,
)
from sklearn_xc._weights.compact import CompactWeights, HeldCompact, compact
from sklearn_xc._weights.kernels.topk import score_rows, topk_rows

#: Rows of X scored by one task.
ROWS_PER_TASK = 256
#: Attributes beside the weights.
_BESIDE = ("intercept", "prior", "unseen")
#: Weights of pairs, or dense scores, that are held at a time.
_PIECE = 2**20
#: What a weight of a pair costs, beside a posting that is read for all labels.
_COST_OF_ENTRY = 8


_Weights = TypeVar("_Weights", bound="LabelWeights")


@declares(
    shape=Shape("labels", "features"),
    dtype=Dtype(),
    intercept=Array("real", "labels"),
    prior=Array("real", "labels", optional=True),
    unseen=Array("int64", None, below="labels", rises=True),
    _held=Record(
        "StoredWeights", "HeldCompact", n_labels="labels", n_features="features", optional=True
    ),
)
class LabelWeights:
    """One sparse weight vector and one intercept per label.

    Parameters
    ----------
    coef : csr_array of shape (n_labels, n_features)
        Weights, one row per label.
    intercept : ndarray of shape (n_labels,)
        Intercepts, of the same dtype.
    prior : ndarray of shape (n_labels,), default=None
        Scores of a row of which no feature has a weight, of the same dtype; None for `intercept`.
    unseen : ndarray of int64, default=()
        Labels that score -inf, so that they come last; none if they are all.
    """

    #: Labels that ``topk`` finds at most, if not all.
    _n_ranked: int | None = None

    def __init__(
        self,
        coef: sp.csr_array,
        intercept: np.ndarray,
        prior: np.ndarray | None = None,
        unseen: Any = (),
    ) -> None:
        self._coef: sp.csr_array | None = coef
        self._held: StoredWeights | HeldCompact | None = None
        self.intercept = intercept
        self.prior = prior
        self.unseen = np.asarray(unseen, np.int64)
        self._scoring: _Scoring | None = None

    @classmethod
    def held_by(
        cls: type[_Weights], held: StoredWeights | HeldCompact, intercept: np.ndarray,
        prior: np.ndarray | None, unseen: Any,
    ) -> _Weights:  # fmt: skip
        """Return weights in files, which are read as far as they are used, or compact ones."""
        made = object.__new__(cls)
        made._coef, made._held, made._scoring = None, held, None
        made.intercept, made.prior, made.unseen = intercept, prior, np.asarray(unseen, np.int64)
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("coef", "intercept", "prior", "unseen")}

    def _folder_state(self) -> dict[str, Any]:
        """Return the attributes as the folder of a model has them; see ``_state/values.py``."""
        held = as_stored(self.coef) if self._held is None else self._held
        if held is None:
            return self.__getstate__()
        return {**vars(held), **{name: getattr(self, name) for name in _BESIDE}}

    @classmethod
    def _from_folder_state(cls, state: dict[str, Any]) -> "LabelWeights":
        """Return weights made of ``_folder_state``."""
        if "coef" in state:
            return cls(**state)
        beside = [state.pop(name) for name in _BESIDE]
        return cls.held_by(StoredWeights(**state), *beside)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._coef, self._held, self._scoring = state["coef"], None, None
        self.intercept, self.prior = state["intercept"], state["prior"]
        self.unseen = np.asarray(state["unseen"], np.int64)

    @property
    def shape(self) -> tuple[int, ...]:
        """(n_labels, n_features)."""
        if self._coef is not None:
            return self._coef.shape
        assert self._held is not None
        return self._held.shape

    @property
    def dtype(self) -> np.dtype:
        """Of the weights."""
        if self._coef is not None:
            return self._coef.dtype
        assert self._held is not None
        return np.dtype(self._held.dtype)

    @property
    def coef(self) -> sp.csr_array:
        """The weights, one row per label; of held ones made when first needed."""
        if self._coef is None:
            assert self._held is not None
            self._coef = self._held.by_label()
        return self._coef

    def compact(self) -> "CompactLabelWeights":
        """Return the same weights in a quarter of the memory, rounded."""
        return CompactLabelWeights.held_by(
            compact(self.coef), self.intercept, self.prior, self.unseen
        )

    def with_intercept(self, intercept: np.ndarray) -> "LabelWeights":
        """Return the same weights with other intercepts; their arrangement is shared."""
        other = self._with(intercept)
        other._scoring = _Scoring.of(other, self._for_scoring())
        return other

    def _with(self, intercept: np.ndarray, prior: np.ndarray | None = None) -> "LabelWeights":
        """Return the same weights with others beside them, and no label unseen."""
        other = object.__new__(LabelWeights)
        other._coef, other._held, other._scoring = self._coef, self._held, None
        other.intercept, other.prior = intercept, prior
        other.unseen = np.empty(0, np.int64)
        return other

    @property
    def by_feature(self) -> WeightsByFeature | CompactWeights:
        """The weights by feature: the order that scoring reads; made when first needed."""
        return self._for_scoring().weights

    def _for_scoring(self) -> "_Scoring":
        if self._scoring is None:
            self._scoring = _Scoring.of(self)
        return self._scoring

    def topk(
        self, X: CsrRows, k: int, n_jobs: int | None, who: str = ""
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best labels of each row, exactly, and their scores.

        Parameters
        ----------
        X : CsrRows of shape (n, n_features)
            Instances.
        k : int
            How many, 0 among them; places beyond the number of labels hold -1 and -inf.
        n_jobs : int or None
            Threads, as joblib counts them.
        who : str, default=""
            Name of the estimator, for messages.

        Returns
        -------
        labels, scores : ndarray of int64 and of the weights' dtype, of shape (n, k)
            Best first; ties go to the smaller label. O(n_labels) memory for each thread.

        Raises
        ------
        ValueError
            If X has entries so large that scores could leave the range of their dtype.
        """
        rows, scoring = self._readable(X, who), self._for_scoring()
        n_ranked = len(self.intercept) if self._n_ranked is None else self._n_ranked
        known = min(k, n_ranked)

        def task(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
            labels = np.full((last - first, k), -1, np.int64)
            scores = np.full((last - first, k), -np.inf, self.intercept.dtype)
            if known:
                topk_rows(
                    rows.arrays, first, scoring.weights.arrays, scoring.bases, known, labels, scores
                )
            return labels, scores

        parts = self._map_rows(task, X.shape[0], n_jobs)
        labels = np.concatenate([part[0] for part in parts])
        return labels, np.concatenate([part[1] for part in parts])

    def scores(
        self, X: CsrRows, n_jobs: int | None, allowed: int | None = None, who: str = ""
    ) -> np.ndarray:
        """Return the scores of every label, dense, of shape (n, n_labels).

        Parameters
        ----------
        X : CsrRows of shape (n, n_features)
            Instances.
        n_jobs : int or None
            Threads, as joblib counts them.
        allowed : int or None, default=None
            Bytes that the array may take; None for what the machine has.
        who : str, default=""
            Name of the estimator, for messages.

        Raises
        ------
        MemoryBudgetError
            If the dense array does not fit into memory.
        ValueError
            As in ``topk``.
        """
        n_labels, dtype = len(self.intercept), self.intercept.dtype
        require_bytes(
            X.shape[0] * n_labels * dtype.itemsize,
            allowed,
            f"the dense scores, {X.shape[0]} instances x {n_labels} labels",
            "Use predict_topk, which never makes it.",
            who,
        )
        rows, scoring = self._readable(X, who), self._for_scoring()
        out = np.empty((X.shape[0], n_labels), dtype)

        def task(first: int, last: int) -> None:
            score_rows(rows.arrays, first, scoring.weights.arrays, scoring.bases, out[first:last])

        self._map_rows(task, X.shape[0], n_jobs)
        return out

    def among(self, labels: np.ndarray) -> "LabelWeights":
        """Return the same weights, of which ``topk`` finds some labels only, -1 and -inf after."""
        other = self._with(self.intercept, self.prior)
        scoring = self._for_scoring()
        bases = np.full_like(scoring.bases, -np.inf)
        bases[:, labels] = scoring.bases[:, labels]
        n_last = bases.shape[1] - len(labels)
        other._scoring = scoring._replace(bases=read_only(bases), n_last=n_last)
        other._n_ranked = len(labels)
        return other

    def pair_scores(
        self, X: CsrRows, indptr: np.ndarray, labels: np.ndarray, who: str = ""
    ) -> np.ndarray:
        """Return the scores of some labels of each row, in the time that these take.

        Parameters
        ----------
        X : CsrRows of shape (n, n_features)
            Instances.
        indptr, labels : ndarray of int64
            The labels of each row, as in a CSR.
        who : str, default=""
            Name of the estimator, for messages.

        Returns
        -------
        ndarray of the weights' dtype, of shape (n_pairs,)
            Those of ``scores``, but for rounding: where there are few they are summed in float64,
            in another order. Which way a row goes depends on it alone.

        Raises
        ------
        ValueError
            As in ``topk``.
        """
        rows, scoring = self._readable(X, who), self._for_scoring()
        work = scoring.weights.work
        is_blank, out = ~shares_any(rows, work > 0), np.empty(len(labels), self.intercept.dtype)
        prior = self.intercept if self.prior is None else self.prior
        n_entries = np.concatenate(([0], np.cumsum(np.diff(self.coef.indptr)[labels])))[indptr]
        postings = np.concatenate(([0.0], np.cumsum(work[rows.indices])))[rows.indptr]
        of_all = np.diff(postings) + len(self.intercept)
        is_long = _COST_OF_ENTRY * np.diff(n_entries) > of_all
        step = max(1, _PIECE // len(self.intercept))
        long = np.flatnonzero(is_long & ~is_blank)
        for first in range(0, len(long), step):
            some = long[first : first + step]
            for i, scores in zip(some, self.scores(X.take(some), 1, None, who), strict=True):
                own = slice(indptr[i], indptr[i + 1])
                out[own] = scores[labels[own]]
        x, first = np.zeros(X.shape[1]), 0
        while first < X.shape[0]:
            last = int(np.searchsorted(n_entries, n_entries[first] + _PIECE, "right")) - 1
            last = min(max(last, first + 1), X.shape[0])
            is_asked = ~(is_long | is_blank)[first:last]
            asked = np.repeat(is_asked, np.diff(indptr[first : last + 1]))
            part = self.coef[labels[indptr[first] : indptr[last]][asked]]
            pair = 0
            for i in first + np.flatnonzero(is_asked):
                own, n = slice(indptr[i], indptr[i + 1]), int(indptr[i + 1] - indptr[i])
                ends = part.indptr[pair : pair + n + 1]
                entries, features = (
                    slice(ends[0], ends[-1]),
                    rows.indices[rows.indptr[i] : rows.indptr[i + 1]],
                )
                x[features] = rows.data[rows.indptr[i] : rows.indptr[i + 1]]
                terms = x[part.indices[entries]] * part.data[entries]
                x[features] = 0.0
                has_any, sums = ends[1:] > ends[:-1], np.zeros(n)
                if len(terms):
                    sums[has_any] = np.add.reduceat(terms, ends[:-1][has_any] - ends[0])
                out[own] = sums + self.intercept[labels[own]]
                pair += n
            first = last
        for i in np.flatnonzero(is_blank):
            own = slice(indptr[i], indptr[i + 1])
            out[own] = prior[labels[own]]
        return out

    def scorer_of(
        self, labels: np.ndarray, n_jobs: int | None, allowed: int | None = None, who: str = ""
    ) -> Callable[[CsrRows], np.ndarray]:
        """Return what gives the scores of some labels, with the bits that they have among all.

        Parameters
        ----------
        labels : ndarray of int64
            Distinct, and none of `unseen`.
        n_jobs, allowed, who
            As of ``scores``.

        Returns
        -------
        callable
            From CsrRows to scores, (n, len(labels)), with the errors of ``scores``.
        """
        everything = self._for_scoring()
        some = LabelWeights(self.coef, self.intercept[labels])
        bases = np.stack([some.intercept, some.intercept])
        some._scoring = _Scoring(
            only_labels(everything.weights, self.coef, labels), everything.reach,
            read_only(bases), 0, everything.largest_entry,
        )  # fmt: skip
        prior = (self.intercept if self.prior is None else self.prior)[labels]
        is_weighted = everything.weights.work > 0

        def score(X: CsrRows) -> np.ndarray:
            scores = some.scores(X, n_jobs, allowed, who)
            scores[~shares_any(X.without_zeros(), is_weighted)] = prior
            return scores

        return score

    def _readable(self, X: CsrRows, who: str) -> CsrRows:
        """Return rows in the dtype of the weights, without stored zeros, small enough to score."""
        dtype, most = self.intercept.dtype, self._for_scoring().largest_entry
        with np.errstate(over="ignore"):
            rows = (X if X.dtype == dtype else X.astype(dtype)).without_zeros()
            norm2 = float(np.dot(rows.data, rows.data))
        # The norm bounds the largest magnitude, and is found faster.
        if not norm2 < most * most and np.abs(X.data).max() > most:
            raise ValueError(
                f"{who}{': ' if who else ''}X has entries up to {np.abs(X.data).max():.3g} in "
                f"magnitude; from {most:.3g} on scores may leave the range of {dtype}. Scale X as "
                "in fit."
            )
        return rows

    @staticmethod
    def _map_rows(task: Any, n: int, n_jobs: int | None) -> list[Any]:
        """Run `task` over ranges of rows, in threads: they share the output."""
        # To count threads takes 10 us, a third of the time of a row.
        n_threads = 1 if n_jobs is None and n <= ROWS_PER_TASK else count_threads(n_jobs)
        ranges = [
            (first, min(first + ROWS_PER_TASK, n)) for first in range(0, max(n, 1), ROWS_PER_TASK)
        ]
        if len(ranges) == 1:  # starting threads would take longer than a few rows do
            return [task(*ranges[0])]
        return Parallel(n_jobs=n_threads, require="sharedmem")(
            delayed(task)(first, last) for first, last in ranges
        )


class CompactLabelWeights(LabelWeights):
    """Label weights that are held, saved and pickled in compact form."""

    _held: HeldCompact

    def _folder_state(self) -> dict[str, Any]:
        """Return the attributes as the folder of a model has them."""
        return self.__getstate__()

    @classmethod
    def _from_folder_state(cls, state: dict[str, Any]) -> "CompactLabelWeights":
        """Return weights made of ``_folder_state``."""
        made = object.__new__(cls)
        made.__setstate__(state)
        return made

    def __getstate__(self) -> dict[str, Any]:
        beside = {name: getattr(self, name) for name in ("intercept", "prior", "unseen")}
        return self._held.state() | beside

    def __setstate__(self, state: dict[str, Any]) -> None:
        beside = {name: state[name] for name in ("intercept", "prior", "unseen")}
        held = {name: value for name, value in state.items() if name not in beside}
        self._coef, self._held, self._scoring = None, HeldCompact(**held), None
        self.intercept, self.prior, self.unseen = beside.values()

    def compact(self) -> "CompactLabelWeights":
        """Return these weights, which are compact."""
        return self


class _Scoring(NamedTuple):
    """What scoring reads.

    Attributes
    ----------
    weights : WeightsByFeature or CompactWeights
        The weights.
    reach : float
        The largest sum of magnitudes of a label's weights.
    bases : ndarray of shape (2, n_labels)
        What scores are added to, as ``topk_rows`` takes it.
    n_last : int
        Labels that score -inf because they are unseen.
    largest_entry : float
        With entries of X up to here no score leaves the range of its dtype.
    """

    weights: WeightsByFeature | CompactWeights
    reach: float
    bases: np.ndarray
    n_last: int
    largest_entry: float

    @classmethod
    def of(cls, model: LabelWeights, known: "_Scoring | None" = None) -> "_Scoring":
        """Return what scoring with a model reads, given that of one of the same weights."""
        weights: WeightsByFeature | CompactWeights
        if known is not None:
            weights, reach = known.weights, known.reach
        elif model._held is not None:
            weights, reach = model._held.by_feature, model._held.reach
        else:
            weights, reach = arrange_by_feature(model.coef), reach_of(model.coef)
        bases = np.stack([model.intercept, model.intercept if model.prior is None else model.prior])
        offset = float(np.abs(bases).max(where=np.isfinite(bases), initial=1.0))
        largest = float(np.finfo(bases.dtype).max) / 4.0 / max(reach, offset)
        n_last = len(model.unseen) if len(model.unseen) < bases.shape[1] else 0
        if n_last:
            bases[:, model.unseen] = -np.inf
        return cls(weights, reach, read_only(bases), n_last, largest)
