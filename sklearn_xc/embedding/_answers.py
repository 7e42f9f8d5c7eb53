"""A fitted model: embeddings, fused scores and other answers; labels that are added."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._input.arguments import check_count
from sklearn_xc._input.checks import check_instances
from sklearn_xc._input.data import CsrRows, features_of, shares_any
from sklearn_xc._input.parts import is_vectorizer
from sklearn_xc._input.texts_with_features import TextsWithFeatures
from sklearn_xc._labels.allowed import AllowedLabels
from sklearn_xc._labels.best_allowed import rows_of_like_size
from sklearn_xc._labels.changes import are_names, with_new_classes, with_new_names
from sklearn_xc._parallel.threads import count_threads, one_blas_thread
from sklearn_xc._state.fitted import fits_in_one_step, reads_snapshot
from sklearn_xc._state.schema import Array, Number, Record, Tested, declares
from sklearn_xc._topk import padded
from sklearn_xc.base import ThresholdedScores, XCClassifier
from sklearn_xc.embedding._inputs import (
    DTYPE,
    TextRows,
    as_label_features,
    encoded,
    is_described,
    label_rows,
    label_texts,
    looks_like_texts,
    rows_in_range,
    sparse_features,
    text_rows,
    vectorized_rows,
)
from sklearn_xc.embedding._memory import Allocation, require_memory
from sklearn_xc.embedding._ranking import CHUNK_ROWS, LabelRanking, is_exact
from sklearn_xc.search.label_index import LabelIndex, label_index

#: Bytes of work space of the rows that are answered together.
_CHUNK_BYTES = 2**28


@declares(
    encoder_=Record("BagOfEmbeddings", "TransformerEncoder", foreign="encode"),
    label_embeddings_=Array("real", "labels", "dim"),
    coef_=Array("real", "labels", "dim"),
    threshold_=Number(),
    fusion_=Record("BoostedFusion", "TreeFusion", optional=True),
    vectorizer_=Tested("a vectorizer with a word per feature", is_vectorizer, optional="missing"),
    _reads_texts=Number("bool"),
    _has_two_scores=Number("bool", optional="missing"),
    _features=Record("KnownFeatures", optional=True),
    _described=Array("bool", "labels", optional=True),
    _known=Array("bool", lambda model: model._n_known()),
    _means=Record("LabelMeans"),
    _seen=Record("LabelFrequencies"),
    _substitute_norms=Record("SubstituteNorms"),
)
class EmbeddingAnswers(ThresholdedScores, XCClassifier):
    """Answers of an encoder, several vectors for each label, and a fusion of their scores.

    A subclass has the parameters ``n_candidates``, ``index``, ``top_k``, ``max_memory`` and
    ``n_jobs``. Its fit sets the public attributes and

    * ``_features``, ``_means``, ``_substitute_norms``: features of the labels, means of their
      instances, and norms of the substitutes for these;
    * ``_described``: labels with features or a text of their own, bool of shape (n_labels,); None
      after a fit without label features;
    * ``_known``: features of instances or label texts in the fit, bool of shape (n_features,); for
      texts, whether there were any, bool of shape (1,);
    * ``_seen``: summed weights of the training instances of each label;
    * ``_has_two_scores``: whether a label has the scores of embedding and classifier alone.
    """

    _has_shortlist = True
    _has_two_scores = False  # of models that were saved before there was this attribute

    @reads_snapshot
    def embed(self, X: Any) -> np.ndarray:
        """Return the embeddings of instances.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features), array-like of str of shape (n,), \
                or TextsWithFeatures of shape (n, n_features)
            Instances, in the form of fit; texts of other things may be passed as well.

        Returns
        -------
        ndarray of shape (n, embedding_dim)
            Unit vectors; zeros for a row without features. Their inner products with the rows of
            ``label_embeddings_`` and of ``coef_`` are scores of the labels.

        Examples
        --------
        Instances lie near their labels:

        >>> from sklearn.feature_extraction.text import TfidfVectorizer
        >>> from sklearn_xc import NGAMEEmbeddingXC
        >>> texts = ["a red apple", "green apple pie", "fast red car", "the car race"] * 10
        >>> vectorizer = TfidfVectorizer().fit(texts)
        >>> names = vectorizer.transform(["apple", "car"])
        >>> clf = NGAMEEmbeddingXC(label_features=names, random_state=0)
        >>> clf = clf.fit(vectorizer.transform(texts), [0, 0, 1, 1] * 10)
        >>> V = clf.embed(vectorizer.transform(["an apple", "my car"]))
        >>> (V @ clf.label_embeddings_.T).argmax(axis=1)
        array([0, 1])
        """
        check_is_fitted(self)
        instances = self._instances(X)
        shape = instances.shape[0], self.coef_.shape[1]
        array = Allocation("embeddings of the instances", shape, self.coef_.itemsize)
        self._require(array, "Ask for fewer instances at a time.")
        return self._embed(instances)

    @fits_in_one_step
    def add_labels(
        self, X: Any = None, y: Any = None, *, label_features: Any = None, classes: Any = None
    ) -> "EmbeddingAnswers":
        """Add labels whose features or text are known, but that have no instances.

        Their embeddings serve as their classifiers. Nothing about the other labels changes.

        Parameters
        ----------
        X, y : None
            Not used: ``fit`` learns from instances.
        label_features : LabelFeatures, TextsWithFeatures, {array-like, sparse matrix} of shape \
                (n_new, n_features), or array-like of str of shape (n_new,)
            As in the constructor.
        classes : array-like of shape (n_new,), default=None
            Their class labels, after a fit with a 1-D y, or their names, after a fit with column
            names; None takes those of a ``LabelFeatures`` that has them. After a fit with an
            indicator, they are the next columns.

        Returns
        -------
        estimator
            Itself. Classes stay sorted in ``classes_``; new columns come after the others.

        Raises
        ------
        ValueError
            For other features than X had; for classes that are missing, not distinct or already
            known; and if the labels were fitted without label features, because the cosine with a
            text is not comparable to the cosine with the mean of instances.

        Warns
        -----
        UnseenLabelWarning
            If a label has no feature, so that nothing is known about it.

        Examples
        --------
        Add a label that is known only by its text:

        >>> from sklearn.feature_extraction.text import TfidfVectorizer
        >>> from sklearn_xc import NGAMEEmbeddingXC
        >>> texts = ["a red apple", "green apple pie", "fast red car", "the car race"] * 10
        >>> vectorizer = TfidfVectorizer().fit(texts)
        >>> clf = NGAMEEmbeddingXC(
        ...     label_features=vectorizer.transform(["apple", "car"]),
        ...     label_names=["apple", "car"], random_state=0,
        ... )
        >>> clf = clf.fit(vectorizer.transform(texts), [[1, 0], [1, 0], [0, 1], [0, 1]] * 10)
        >>> pie = vectorizer.transform(["pie"])
        >>> clf = clf.add_labels(label_features=pie, classes=["pie"])
        >>> labels, _ = clf.predict_topk(vectorizer.transform(["a pie"]), k=1)
        >>> clf.classes_[labels].tolist()
        [['pie']]
        """
        check_is_fitted(self)
        if X is not None or y is not None:
            raise ValueError(
                f"{type(self).__name__}.add_labels: X and y must be None: give label_features, and "
                "instances to fit."
            )
        if self._described is None:
            raise ValueError(
                f"{type(self).__name__}.add_labels needs a fit with label_features; labels were "
                "the means of their instances, which new ones do not have."
            )
        n_unseen = len(self._unseen_labels)
        with one_blas_thread():
            self._add_labels(label_features, classes)
        if len(self._unseen_labels) > n_unseen:
            self._warn_of_unseen()
        return self

    def _instances(self, X: Any, *, reset: bool = False) -> CsrRows:
        """Return X as rows that the encoder reads."""
        name = f"{type(self).__name__}: X"
        if self._reads_texts:
            return self._texts(X, name, reset=reset)
        if isinstance(X, TextsWithFeatures) or looks_like_texts(X):
            raise ValueError(
                f"{name} must be a matrix of features, which the encoder reads. Got "
                f"{'texts' if looks_like_texts(X) else 'TextsWithFeatures'}: pass features, put a "
                f"vectorizer before the classifier, make_pipeline(TfidfVectorizer(), "
                f"{type(self).__name__}()), or pass an encoder that reads texts."
            )
        return rows_in_range(check_instances(self, X, reset=reset), name)

    def _texts(self, X: Any, name: str, *, reset: bool) -> TextRows:
        """Return texts as rows, with features if fit had some."""
        has_features = isinstance(X, TextsWithFeatures)
        if reset:  # an earlier fit may have set them
            self.__dict__.pop("n_features_in_", None)
            self.__dict__.pop("feature_names_in_", None)
        elif has_features != self._has_given_features:
            wanted = "texts alone"
            if self._has_given_features:
                wanted = f"TextsWithFeatures of {self.n_features_in_} features"
            raise ValueError(f"{name} must be {wanted}, as in fit. Got {type(X).__name__}.")
        if not has_features:
            return text_rows(X, name)
        texts = text_rows(X.texts, name).texts
        rows = check_instances(self, X.features, reset=reset)
        return TextRows.of(texts, rows_in_range(rows, f"{name}: features", DTYPE))

    @property
    def _has_given_features(self) -> bool:
        """Whether texts come with features of the user's, as in fit."""
        return self._reads_texts and hasattr(self, "n_features_in_")

    def _with_features(self, rows: CsrRows, n_features: int | None = None) -> CsrRows:
        """Return texts with the features that the vectorizer makes; other rows unchanged."""
        vectorizer = getattr(self, "vectorizer_", None)
        if vectorizer is None or not isinstance(rows, TextRows) or rows.features is not None:
            return rows
        if n_features is None:
            assert self._features is not None
            n_features = self._features.rows.shape[1]
        made = vectorized_rows(vectorizer, rows.texts, type(self).__name__, n_features)
        return TextRows.of(rows.texts, made)

    def _n_known(self) -> int | str:
        """Return the length of `_known`, for its declaration."""
        return 1 if getattr(self, "_reads_texts", False) else "features"

    def _encode(self, rows: CsrRows, dim: int, dtype: Any) -> np.ndarray:
        """Return the encoder's embeddings of rows, (n, dim)."""
        return encoded(self.encoder_, rows, dim, dtype, self._n_threads, type(self).__name__)

    def _embed(self, rows: CsrRows) -> np.ndarray:
        """Return embeddings by a fitted model; 0 for rows without any feature of training.

        Vectors of features that training has not seen are random.
        """
        V = self._encode(rows, self.coef_.shape[1], self.coef_.dtype)
        V[~shares_any(rows, self._known)] = 0
        return V

    @property
    def _n_threads(self) -> int | None:
        """Number of threads, None for one."""
        n_threads = count_threads(self.n_jobs)
        return n_threads if n_threads > 1 else None

    def _ranking(self, *, with_index: bool, among: np.ndarray | None = None) -> LabelRanking:
        """Return the scores of labels, all or those in `among`."""
        index = self._shortlist_index() if with_index and among is None else None
        unseen = self._unseen_labels
        if among is not None:
            unseen = np.delete(np.arange(len(self.classes_)), among)
        return LabelRanking(
            self.label_embeddings_,
            self.coef_,
            None if self._has_two_scores else self._features,
            None if self._has_two_scores else self._means,
            unseen,
            self._n_threads,
            index,
        )

    def _shortlist_index(self) -> LabelIndex | None:
        """Return the index of the classifiers, built on first use; None for an exact one."""
        if is_exact(self.index):
            return None

        def require(n_bytes: int) -> None:
            array = Allocation("the index of the labels", (n_bytes,), 1)
            self._require(array, "Use index='exact' or index='product'.")

        return label_index(self, self.index, None, require)

    def _require(self, array: Allocation, advice: str) -> None:
        """Raise MemoryBudgetError if an array does not fit into memory."""
        require_memory([array], self._allowed_bytes(), type(self).__name__, advice)

    def _rows_together(self, n_listed: int, k: int) -> int:
        """Return how many rows are ranked at a time, for a shortlist and an answer of k labels."""
        n_labels, dim = self.coef_.shape
        bytes_of_row = 3 * dim * self.coef_.itemsize + 100 * min(n_listed, n_labels) + 48 * k
        n_rows = max(1, _CHUNK_BYTES // bytes_of_row)
        return n_rows - n_rows % CHUNK_ROWS if n_rows > CHUNK_ROWS else n_rows

    def _chunks(
        self, instances: CsrRows, n_together: int, embedded: np.ndarray | None = None
    ) -> Iterator[tuple[np.ndarray, CsrRows, np.ndarray]]:
        """Yield numbers of rows, these rows with features, and their embeddings."""
        n = instances.shape[0]
        for first in range(0, n, n_together):
            rows = np.arange(first, min(first + n_together, n))
            part = instances if len(rows) == n else instances.take(rows)
            V = self._embed(part) if embedded is None else embedded[rows]
            yield rows, self._with_features(part), V

    def _topk_of(
        self,
        instances: CsrRows,
        k: int,
        *,
        n_more: int = 0,
        among: np.ndarray | None = None,
        embedded: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best labels and their scores, those that nothing is known about last.

        A shortlist is longer by `n_more` labels; with `among`, known labels, there are no others.
        `embedded` are the embeddings of the instances, if they are known.
        """
        ranking = self._ranking(with_index=True, among=among)
        n = instances.shape[0]
        n_found = min(k, ranking.n_known)
        labels = np.full((n, k), -1, np.int64)
        scores = np.full((n, k), -np.inf, self.coef_.dtype)
        size = self._shortlist_size(n_found, n_more)
        n_together = self._rows_together(3 * size, n_found)
        for rows, part, V in self._chunks(instances, n_together, embedded):
            listed = ranking.shortlist(part, V, size, at_least=n_found)
            best = self._best_listed(part, V, listed, n_found, ranking, is_shortlist=True)
            labels[rows, :n_found], scores[rows, :n_found] = best
        if among is None:
            n_unseen = min(k, len(self.classes_)) - n_found
            labels[:, n_found : n_found + n_unseen] = self._unseen_labels[:n_unseen]
        return labels, scores

    def _best_listed(
        self,
        rows: CsrRows,
        V: np.ndarray,
        listed: np.ndarray,
        k: int,
        ranking: LabelRanking,
        *,
        is_shortlist: bool = False,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best of the labels listed for each row, -1 in places of no label.

        A blank row has the most frequent labels: of all, if `listed` is a shortlist.
        """
        scores = self._fused(ranking.scores(rows, V, listed), listed)
        is_blank = ranking.is_blank(rows, V)
        shares = self._shares(V.dtype)
        if is_blank.any() and not is_shortlist:
            scores[is_blank] = shares[listed[is_blank]]
        scores[listed < 0] = -np.inf
        order = np.lexsort((listed, -scores), axis=1)[:, :k]
        labels, scores = (np.take_along_axis(all_, order, axis=1) for all_ in (listed, scores))
        labels[np.isneginf(scores)] = -1
        if is_blank.any() and is_shortlist:
            order = np.argsort(-shares, kind="stable")
            most = order[~np.isin(order, ranking.unseen)][:k]
            labels[is_blank], scores[is_blank] = most, shares[most]
        return labels, scores

    def _shortlist_size(self, k: int, n_more: int = 0) -> int:
        """Return the number of labels of each kind in a shortlist for the k best."""
        n_labels = len(self.classes_)
        size = check_count(self.n_candidates, f"{type(self).__name__}: n_candidates") + n_more
        return n_labels if self._is_binary else min(max(size, k), n_labels)

    def _shares(self, dtype: Any) -> np.ndarray:
        """Return the share of the instances without features that have each label."""
        return (self._seen.of_blank() / self._seen.total).astype(dtype)

    def _fused(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return fused scores of the labels listed for each instance."""
        if self.fusion_ is None:
            return scores.sum(axis=-1)
        return self.fusion_(scores, self._seen.counts[labels])

    def _topk_longer(
        self, X: Any, k: int, n_more: int, **how: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._topk_of(self._instances(X), k, n_more=n_more)

    def _best_among(
        self, X: Any, k: int, labels: np.ndarray, **how: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._topk_of(self._instances(X), k, among=labels)

    def _best_of_rows(
        self, X: Any, k: int, allowed: AllowedLabels, **how: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        instances = self._instances(X)
        ranking = self._ranking(with_index=False)
        n = instances.shape[0]
        labels = np.full((n, k), -1, np.int64)
        scores = np.full((n, k), -np.inf, self.coef_.dtype)
        for rows, size in rows_of_like_size(allowed.counts, 0, self._rows_together(1, k)):
            if size:
                listed = allowed.take(rows).table(size)
                for _, part, V in self._chunks(instances.take(rows), len(rows)):
                    best = self._best_listed(part, V, listed, min(k, size), ranking)
                    labels[rows], scores[rows] = padded(*best, k)
        return labels, scores

    def _topk_scores(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        return self._topk_of(self._instances(X), k)

    def _all_scores(self, X: Any) -> np.ndarray:
        instances = self._instances(X)
        n_labels = len(self.classes_)
        n = instances.shape[0]
        dtype = self.coef_.dtype
        advice = "Use predict_topk, which never makes them, or fit with a sparse y."
        self._require(Allocation("scores of all labels", (n, n_labels), dtype.itemsize, 2), advice)
        ranking = self._ranking(with_index=False)
        scores = np.empty((n, n_labels), dtype)
        for rows, part, V in self._chunks(instances, self._rows_together(n_labels, 0)):
            labels = np.tile(np.arange(n_labels), (len(rows), 1))
            scores[rows] = self._fused(ranking.scores(part, V, labels), labels)
            scores[rows[ranking.is_blank(part, V)]] = self._shares(dtype)
        if self._is_binary:
            scores = self._below_trained(scores)
            return scores[:, 1:] - scores[:, :1]
        return scores

    @property
    def _also_lacking(self) -> str:  # type: ignore[override]
        return "" if self._described is None else " and no known word or feature"

    def _label_rows(
        self, given: Any, n_labels: int, dtype: Any, n_features: int | None
    ) -> CsrRows | None:
        """Return the rows of labels; instances have `n_features`, None for texts alone."""
        name = type(self).__name__
        if not self._reads_texts:
            return label_rows(given, n_labels, self.n_features_in_, dtype, name)
        width = n_features if self._has_given_features else None
        return self._with_features(label_texts(given, n_labels, width, name), n_features)

    def _add_labels(self, label_features: Any, classes: Any) -> None:
        """Add labels; see ``add_labels``."""
        name = type(self).__name__
        n_old = len(self.classes_)
        is_one_d = self._targets_kind == "classes"
        if is_one_d and self._is_binary:
            raise ValueError(
                f"{name}: add_labels would make more than two classes of two; fit with an "
                "indicator y, or with more classes."
            )
        given = as_label_features(label_features, f"{name}: label_features")
        if given.classes is not None:
            wanted = np.arange(n_old, n_old + given.n_labels)
            if is_one_d or are_names(self.classes_):
                wanted = classes = given.classes if classes is None else np.asarray(classes)
            given = given.of_classes(wanted, f"{name}: label_features")
        width = None if self._features is None else self._features.rows.shape[1]
        Z = self._label_rows(given, given.n_labels, self.coef_.dtype, width)
        assert Z is not None
        n_new = given.n_labels
        joined = with_new_classes if is_one_d else with_new_names
        classes = joined(name, self.classes_, classes, n_new)
        # Columns stay where they are, classes are sorted.
        order = np.argsort(classes, kind="stable") if is_one_d else np.arange(len(classes))
        self.classes_ = classes[order]
        features = sparse_features(Z)
        words = None
        if self._features is not None and features is not None:
            self._features = self._features.joined(features, order)
            words = self._features.rows.take(np.argsort(order)[n_old:])
        self._known = self._known | features_of(Z)
        vectors = self._embed(Z)
        zeros = np.zeros(n_new, np.int64)
        self._means = self._means.joined(vectors, words, order, self._substitute_norms)
        for attribute, new in (
            ("label_embeddings_", vectors),
            ("coef_", vectors),
            ("label_counts_", zeros),
            ("_described", is_described(Z)),
        ):
            both = np.concatenate([getattr(self, attribute), new])
            setattr(self, attribute, both[order])
        self._seen = self._seen.with_labels(n_new, order)
        self._unseen_labels = self._find_unseen()

    def _find_unseen(self) -> np.ndarray:
        unseen = super()._find_unseen()
        return unseen if self._described is None else unseen[~self._described[unseen]]
