"""What a trained model of embeddings, classifiers and fused scores answers."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._allowed_labels import AllowedLabels
from sklearn_xc._arguments import check_count
from sklearn_xc._best_allowed import rows_of_like_size
from sklearn_xc._blank_rows import LabelFrequencies, shares_any
from sklearn_xc._checks import check_instances
from sklearn_xc._data import CsrRows
from sklearn_xc._declared_state import Array, Number, Record, Tested, declares
from sklearn_xc._objective import gains_of
from sklearn_xc._state import reads_one_state
from sklearn_xc._texts_with_features import TextsWithFeatures
from sklearn_xc._topk import padded
from sklearn_xc.base import XCClassifier
from sklearn_xc.embedding._encoding import encoded, first_non_finite, name_of
from sklearn_xc.embedding._fusion import ScoreFusion
from sklearn_xc.embedding._label_means import LabelMeans, StandIns
from sklearn_xc.embedding._memory import Asked, Budget, of_index, pieces_of
from sklearn_xc.embedding._ranking import KnownFeatures, Ranking
from sklearn_xc.embedding._remembered import Remembered
from sklearn_xc.embedding._rows import readable_rows
from sklearn_xc.embedding._shortlist import ShortlistIndex, is_exact
from sklearn_xc.embedding._texts import DTYPE, TextRows, looks_like_texts, text_rows
from sklearn_xc.embedding._vectorizer import is_vectorizer, vectorized_rows
from sklearn_xc.encoders.protocol import Encoder
from sklearn_xc.mips import index_bytes, make_index
from sklearn_xc.parallel.threads import count_threads

COMPONENTS = ("fused", "embedding", "classifier", "mean", "features")
#: Characters of a text that make one of its features, about.
_CHARACTERS = 4


@declares(
    encoder_=Record("BagOfEmbeddings", "TransformerEncoder", foreign="encode"),
    label_embeddings_=Array("real", "labels", "dim"),
    coef_=Array("real", "labels", "dim"),
    threshold_=Number(),
    fusion_=Record("BoostedFusion", "TreeFusion", optional=True),
    vectorizer_=Tested("a vectorizer of as many words as features", is_vectorizer, optional=True),
    _reads_texts=Number("bool"),
    _seed=Number("int", least=0),
    _features=Record("KnownFeatures", optional=True),
    _described=Array("bool", "labels", optional=True),
    _known=Array("bool", lambda model: model._n_known()),
    _trained_counts=Array("count", "labels", least=0),
    _means=Record("LabelMeans"),
    _seen=Record("LabelFrequencies"),
    _stand_ins=Record("StandIns"),
    _n_further=Number("int", least=0),
    _steps=Record("LazyAdam", rows="labels", optional=True),
)
class RankingModel(XCClassifier):
    """Answers of an encoder, a vector or two for each label, and a fusion of their scores.

    A subclass sets the attributes below in fit, and has the parameters ``n_candidates``, ``index``,
    ``objective``, ``top_k``, ``max_memory`` and ``n_jobs``.
    """

    classes_: np.ndarray
    coef_: np.ndarray
    label_embeddings_: np.ndarray
    label_counts_: np.ndarray
    encoder_: Encoder
    fusion_: ScoreFusion | None
    threshold_: float
    vectorizer_: Any
    n_candidates: int
    index: Any
    fusion: str
    objective: str
    top_k: int
    max_memory: int | str | None
    n_jobs: int | None
    _has_shortlist = True
    #: Features of the labels, of which the cosine with those of an instance is a score.
    _features: KnownFeatures | None
    #: Means of the labels' training instances.
    _means: LabelMeans
    #: What stands in for means of labels without instances.
    _stand_ins: StandIns
    #: Which labels have features or a text of their own, bool of shape (n_labels,); None if fit had
    #: no label features.
    _described: np.ndarray | None
    #: Whether the encoder reads texts.
    _reads_texts: bool
    _seed: int
    #: Summed weights of the instances of each label that were trained on, float64: what the fusion
    #: takes for its frequency.
    _trained_counts: np.ndarray
    #: Features that instances of the fit or texts of labels have, bool of shape (n_features,); of
    #: texts whether any had a word, bool of shape (1,).
    _known: np.ndarray
    #: How often labels are on all instances that were passed.
    _seen: LabelFrequencies

    @reads_one_state
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
            Unit vectors; zeros for a row without features.

        Examples
        --------
        Instances lie near their labels:

        >>> from sklearn.feature_extraction.text import TfidfVectorizer
        >>> from sklearn_xc import LabelFeatures, NGAMEEmbeddingXC
        >>> texts = ["a red apple", "green apple pie", "fast red car", "the car race"] * 10
        >>> names = ["apple", "car"]
        >>> vectorizer = TfidfVectorizer().fit(texts)
        >>> clf = NGAMEEmbeddingXC(
        ...     label_features=LabelFeatures(names), label_vectorizer=vectorizer, random_state=0
        ... )
        >>> clf = clf.fit(vectorizer.transform(texts), [0, 0, 1, 1] * 10)
        >>> V = clf.embed(vectorizer.transform(["an apple", "my car"]))
        >>> cosines = V @ clf.embed_labels().T
        >>> cosines.argmax(axis=1)
        array([0, 1])
        """
        check_is_fitted(self)
        instances = self._instances(X)
        self._budget.require(self._asked.embeddings(instances.shape[0]))
        return self._embed(instances)

    @reads_one_state
    def embed_labels(self) -> np.ndarray:
        """Return the embeddings of the labels: a copy of ``label_embeddings_``.

        Returns
        -------
        ndarray of shape (n_labels, embedding_dim)
            Unit vectors; zeros for a label of which nothing is known.
        """
        check_is_fitted(self)
        return self.label_embeddings_.copy()

    @reads_one_state
    def predict_topk(
        self,
        X: Any,
        k: int = 5,
        *,
        component: str = "fused",
        candidates: Any = None,
        exclude: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best labels of each instance and their scores, best first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features), array-like of str of shape (n,), \
                or TextsWithFeatures of shape (n, n_features)
            Instances, in the form of fit.
        k : int, default=5
            How many labels; may exceed their number.
        component : {"fused", "embedding", "classifier", "mean", "features"}, default="fused"
            What the score is. "embedding", "classifier" and "mean" are the cosine with the label's
            embedding, with its classifier, and with the mean embedding of its training instances
            (the label's own embedding if it has none). "features" is the cosine of the features of
            both, without any training, if label features are known, given or made from texts.
            "fused" combines all of these for a shortlist: the ``n_candidates`` labels (at least k;
            both of two classes) with the best classifiers and, if label features are known, as
            many with the nearest features and, with the exact index, as many with the nearest
            means. An instance of which nothing is known, without features or with none that fit
            has seen, gets the most frequent labels, scored by the share of the instances that have
            them.
        candidates : sequence, or indicator of shape (n, n_labels), default=None
            The labels that may be returned: members of ``classes_``, for all instances; or a
            sparse matrix or array whose non-zeros mark the labels allowed for each instance. None
            allows all. They are the shortlist of fused scores; from more than ``n_candidates``
            given for all instances, the shortlist is made as from all labels.
        exclude : sequence, or indicator of shape (n, n_labels), default=None
            The labels that may not be returned, in the same forms. Not together with `candidates`.
            A shortlist gets that many more labels before the excluded ones are removed.

        Returns
        -------
        indices : ndarray of int64 of shape (n, k)
            Positions in ``classes_``, padded with -1. Ties go to the smaller position.
        scores : ndarray of float of shape (n, k)
            Their scores, padded with -inf. Labels of which nothing is known, neither by an instance
            nor by a feature, come last, 1 below the others.

        Raises
        ------
        ValueError
            If `k` is not a positive integer, if `component` is none of these, or if it is
            "features" and no label features are known.
        MemoryBudgetError
            If the answer, or what it is computed from, does not fit into `max_memory`.

        Examples
        --------
        >>> from sklearn.feature_extraction.text import TfidfVectorizer
        >>> from sklearn_xc import LabelFeatures, NGAMEEmbeddingXC
        >>> texts = ["a red apple", "green apple pie", "fast red car", "the car race"] * 10
        >>> names = ["apple", "car"]
        >>> vectorizer = TfidfVectorizer().fit(texts)
        >>> clf = NGAMEEmbeddingXC(
        ...     label_features=LabelFeatures(names), label_vectorizer=vectorizer, random_state=0
        ... )
        >>> clf = clf.fit(vectorizer.transform(texts), [0, 0, 1, 1] * 10)
        >>> labels, scores = clf.predict_topk(vectorizer.transform(["my car"]), k=2)
        >>> [names[label] for label in labels[0]]
        ['car', 'apple']

        Scored by the words that text and label have in common, without any training:

        >>> clf.predict_topk(vectorizer.transform(["my car"]), k=2, component="features")[1]
        array([[1., 0.]])
        """
        check_is_fitted(self)
        k = self._check_topk_size(k, X)
        if not isinstance(component, str) or component not in COMPONENTS:
            raise ValueError(
                f"{type(self).__name__}: component must be one of {COMPONENTS}. Got {component!r}."
            )
        if component == "features" and self._features is None:
            why = "it had none in fit"
            if self._reads_texts:
                why = "its encoder reads texts, and fit had no vectorizer, or no word for it"
            raise ValueError(
                f"{type(self).__name__}: component='features' must have features of the labels to "
                f"compare with. Got none: {why}."
            )
        if candidates is not None or exclude is not None:
            allowed = self._read_allowed(X, candidates, exclude)
            assert allowed is not None
            return self._allowed_topk(X, k, allowed, component=component)
        return self._unseen_last(*self._topk_of(self._instances(X), k, component, n_copies=1))

    def _topk_longer(
        self, X: Any, k: int, n_more: int, *, component: str = "fused", **how: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._topk_of(self._instances(X), k, component, n_copies=4, n_more=n_more)

    def _best_among(
        self, X: Any, k: int, labels: np.ndarray, *, component: str = "fused", **how: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._topk_of(self._instances(X), k, component, n_copies=1, among=labels)

    def _best_of_rows(
        self, X: Any, k: int, allowed: AllowedLabels, *, component: str = "fused", **how: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        instances = self._instances(X)
        ranking, asked = self._ranking(with_shortlists=False), self._asked_of(instances)
        gains = self._gains() if component == "fused" else None
        n, dtype = instances.shape[0], self.coef_.dtype
        labels, scores = np.full((n, k), -1, np.int64), np.full((n, k), -np.inf, dtype)
        room = self._budget.rows_together(asked.row(0, 1), asked.topk(n, k, 1))
        for rows, size in rows_of_like_size(allowed.counts, 0, room):
            if size:
                own = allowed.take(rows)
                listed = own.table(size)
                found = self._best_listed(
                    instances.take(rows), listed, min(k, size), component, ranking, gains
                )
                labels[rows], scores[rows] = padded(*found, k)
        return labels, scores

    def _best_listed(
        self,
        instances: CsrRows,
        listed: np.ndarray,
        k: int,
        component: str,
        ranking: Ranking,
        gains: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best of the labels listed for each instance, -1 in places of no label."""
        V, instances = self._embed(instances), self._with_features(instances)
        each = ranking.scores(instances, V, listed)
        is_blank = ranking.is_blank(component, instances, V)
        if component == "fused":
            scores = self._fused(each, listed)
        else:
            scores = each[:, :, ranking.place_of(component)].copy()
        if is_blank.any():
            scores[is_blank] = self._shares(V.dtype)[listed[is_blank]]
        if gains is not None:
            scores *= gains[listed]
        scores[listed < 0] = -np.inf
        order = np.lexsort((listed, -scores), axis=1)[:, :k]
        labels, scores = (np.take_along_axis(all_, order, axis=1) for all_ in (listed, scores))
        return np.where(np.isneginf(scores), -1, labels), scores

    def _instances(self, X: Any, *, reset: bool = False, is_training: bool = False) -> CsrRows:
        """Check X, and return its rows as the encoder reads them."""
        name = f"{type(self).__name__}: X"
        if self._reads_texts:
            return self._texts(X, name, reset=reset, is_training=is_training)
        if isinstance(X, TextsWithFeatures):
            raise ValueError(
                f"{name} must be a matrix of features, which the encoder reads. Got "
                "TextsWithFeatures: pass its features, or an encoder that reads texts."
            )
        if looks_like_texts(X):
            raise ValueError(
                f"{name} must be a matrix of features, which the encoder reads. Got texts: put a "
                "vectorizer before the classifier, make_pipeline(TfidfVectorizer(), "
                f"{type(self).__name__}()), or pass an encoder that reads texts."
            )
        instances = check_instances(self, X, reset=reset)
        return readable_rows(instances, name, is_training=is_training)

    def _texts(self, X: Any, name: str, *, reset: bool, is_training: bool) -> TextRows:
        """Check texts, with features if the fit has some that are given."""
        has_features = isinstance(X, TextsWithFeatures)
        if reset:  # an earlier fit may have set them
            self.__dict__.pop("n_features_in_", None)
            self.__dict__.pop("feature_names_in_", None)
        elif has_features != self._is_given_features:
            raise ValueError(f"{name} {self._wanted_texts()} Got {type(X).__name__}.")
        if not has_features:
            return text_rows(X, name)
        texts = text_rows(X.texts, name).texts
        rows = check_instances(self, X.features, reset=reset)
        name = f"{name}: features"
        return TextRows.of(texts, readable_rows(rows, name, is_training=is_training, dtype=DTYPE))

    @property
    def _is_given_features(self) -> bool:
        """Whether texts come with features of their own, as in fit."""
        return self._reads_texts and hasattr(self, "n_features_in_")

    def _wanted_texts(self) -> str:
        """Return what X must be, as in fit."""
        if self._is_given_features:
            n_features = self.n_features_in_  # type: ignore[attr-defined]
            return f"must be TextsWithFeatures, as in fit, of {n_features} features."
        made = getattr(self, "vectorizer_", None) is not None
        return "must be texts alone, as in fit" + (
            ", of which the vectorizer makes features." if made else "."
        )

    def _with_features(self, rows: CsrRows, n_features: int | None = None) -> CsrRows:
        """Return texts with the features that the vectorizer makes; other rows as they are.

        There must be `n_features` of them; None is for as many as fit had.
        """
        vectorizer = getattr(self, "vectorizer_", None)
        if vectorizer is None or not isinstance(rows, TextRows) or rows.features is not None:
            return rows
        if n_features is None:
            assert self._features is not None
            n_features = self._features.rows.shape[1]
        made = vectorized_rows(vectorizer, rows.texts, type(self).__name__, n_features)
        return TextRows.of(rows.texts, made)

    def _n_known(self) -> int | str:
        """Return of how many features it is known whether anything has them: texts are one."""
        return 1 if getattr(self, "_reads_texts", False) else "features"

    def _encode(self, inputs: CsrRows, dim: int, dtype: Any) -> np.ndarray:
        """Return embeddings; there may be NaN or infinity among them."""

        def encode(rows: CsrRows) -> np.ndarray:
            return encoded(self.encoder_, rows, dim, dtype, self._n_threads, type(self).__name__)

        remembered: Remembered | None = self.__dict__.get("_remembered")  # in a fit
        if remembered is not None and isinstance(inputs, TextRows):
            return remembered.encoded(inputs, encode)
        return encode(inputs)

    def _embed(self, inputs: CsrRows, what: str = "row {}") -> np.ndarray:
        """Return embeddings of a fitted model; messages name one by its number in `what`.

        Vectors of features that training has not seen are random: a row without others is blank.
        """
        V = self._encode(inputs, self.coef_.shape[1], self.coef_.dtype)
        V[~shares_any(inputs, self._known)] = 0
        row = first_non_finite(V)
        if row >= 0:
            raise ValueError(
                f"{type(self).__name__}: {name_of(self.encoder_)} gives NaN or infinity for "
                f"{what.format(row)}. Are its values as large as those of fit?"
            )
        return V

    @property
    def _n_threads(self) -> int | None:
        """Return how many threads answer, None for one: then nobody has to count again."""
        n_threads = count_threads(self.n_jobs)
        return n_threads if n_threads > 1 else None

    def _ranking(self, *, with_shortlists: bool, among: np.ndarray | None = None) -> Ranking:
        """Return what scores labels; the index of shortlists is built only if it is needed.

        With `among` these labels are all that it knows, and there is no index.
        """
        index = self._shortlist_index() if with_shortlists and among is None else None
        unseen = self._unseen_labels
        if among is not None:
            unseen = np.delete(np.arange(len(self.classes_)), among)
        return Ranking(
            self.label_embeddings_, self.coef_, self._features, unseen,
            self._n_threads, index, self._means,
        )  # fmt: skip

    def _shortlist_index(self) -> ShortlistIndex | None:
        """Return the index of these classifiers, which is built on first use; None for "exact"."""
        if isinstance(self.index, str) and self.index == "exact":
            return None
        of_model = self.coef_, self._unseen_labels, self.index
        found = self.__dict__.get("_search_index")
        if found is None or not found.is_of(*of_model):
            make_index(self.index, who=f"{type(self).__name__}: index")
            n_bytes = index_bytes(self.index, self.coef_.shape, self.coef_.itemsize)
            self._budget.require(of_index(n_bytes))
            found = ShortlistIndex.built(*of_model, self._n_threads, self._seed)
            self._search_index = found
        return found

    @property
    def _budget(self) -> Budget:
        return Budget(self.max_memory, type(self).__name__)

    @property
    def _asked(self) -> Asked:
        n_labels, dim = self.coef_.shape
        n_copied = n_labels if self._unseen_labels.size else 0
        n_values = 0 if self._features is None else len(self._features.rows.data)
        n_scores = 3 + (self._features is not None) + (self._means.words is not None)
        return Asked(n_labels, n_values, dim, self.coef_.itemsize, n_scores, n_copied)

    def _asked_of(self, instances: CsrRows) -> Asked:
        """Return what an answer is made of, with the features that are made of texts for it."""
        if not isinstance(instances, TextRows) or instances.features is not None:
            return self._asked
        if getattr(self, "vectorizer_", None) is None:
            return self._asked
        n_characters = sum(len(text) for text in instances.texts) // len(instances.texts)
        return self._asked._replace(n_made_values=n_characters // _CHARACTERS)

    def _topk_of(
        self,
        instances: CsrRows,
        k: int,
        component: str,
        n_copies: int,
        with_gains: bool = True,
        *,
        n_more: int = 0,
        among: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best labels and their scores, those that nothing is known of last.

        The caller makes `n_copies` of them in all. A shortlist has `n_more` labels more than else,
        and all are of `among`, known ones.
        """
        gains = self._gains() if with_gains and component == "fused" else None
        ranking = self._ranking(with_shortlists=component == "fused", among=among)
        asked = self._asked_of(instances)
        if among is not None:
            asked = asked._replace(n_copied=len(among))
        n, n_found = instances.shape[0], min(k, ranking.n_known)
        n_listed = self._n_listed(n_found, n_more) if component == "fused" else 0
        n_together = self._budget.rows_together(
            asked.row(n_found, n_listed), asked.topk(n, k, n_copies)
        )
        dtype = self.coef_.dtype
        labels, scores = np.full((n, k), -1, np.int64), np.full((n, k), -np.inf, dtype)
        for rows in pieces_of(n, n_together):
            part = instances if len(rows) == n else instances.take(rows)
            best = self._best_of(part, n_found, component, ranking, gains, n_more)
            labels[rows, :n_found], scores[rows, :n_found] = best
        if among is not None:
            return labels, scores
        n_unseen = min(k, len(self.classes_)) - n_found
        labels[:, n_found : n_found + n_unseen] = self._unseen_labels[:n_unseen]
        return labels, scores

    def _best_of(
        self,
        instances: CsrRows,
        k: int,
        component: str,
        ranking: Ranking,
        gains: np.ndarray | None,
        n_more: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best labels of some instances and their scores, best first."""
        V = self._embed(instances)
        if component in ("fused", "features"):
            instances = self._with_features(instances)
        if component != "fused":
            labels, scores = ranking.best(component, instances, V, k)
        else:
            listed = ranking.shortlist(instances, V, self._n_candidates_for(k, n_more), at_least=k)
            fused = self._fused(ranking.scores(instances, V, listed), listed)
            if gains is not None:
                fused *= gains[listed]  # of -1, whose score is -inf, any
            order = np.lexsort((listed, -fused), axis=1)[:, :k]
            labels, scores = (np.take_along_axis(all_, order, axis=1) for all_ in (listed, fused))
        is_blank = ranking.is_blank(component, instances, V)
        if is_blank.any():
            labels[is_blank], shares = self._most_frequent(k, V.dtype, ranking.unseen)
            scores[is_blank] = shares if gains is None else shares * gains[labels[is_blank]]
        return labels, scores

    def _n_candidates_for(self, k: int, n_more: int = 0) -> int:
        """Return how many labels of the best classifiers a shortlist for the k best has."""
        size, n_labels = self.n_candidates, len(self.classes_)
        size = check_count(size, f"{type(self).__name__}: n_candidates") + n_more
        return n_labels if self._is_binary else min(max(size, k), n_labels)

    def _n_listed(self, k: int, n_more: int = 0) -> int:
        """Return how many labels a shortlist for the k best has at most."""
        n_kinds = 1
        if self._features is not None:
            n_kinds += 1 + is_exact(self.index)
        return min(n_kinds * self._n_candidates_for(k, n_more), len(self.classes_))

    def _most_frequent(
        self, k: int, dtype: Any, unseen: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return what is to be said of an instance of which nothing is known.

        Returns
        -------
        labels : ndarray of int64 of shape (k,)
            The most frequent ones, ties by position.
        shares : ndarray of float of shape (k,)
            Of the instances, by weight.
        """
        shares = self._shares(dtype)
        order = np.argsort(-shares, kind="stable")
        if unseen.size:
            order = order[~np.isin(order, unseen)]
        return order[:k], shares[order[:k]]

    def _shares(self, dtype: Any) -> np.ndarray:
        """Return the share of the instances without features that have each label."""
        return (self._seen.of_blank() / self._seen.total).astype(dtype)

    def _fused(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return fused scores of some labels of each instance, from all scores of each."""
        if self.fusion_ is None:
            return scores.sum(axis=-1)
        return self.fusion_(scores, self._trained_counts[labels])

    def _gains(self) -> np.ndarray | None:
        """Return what a hit of each label counts; None if all count alike."""
        if self.objective == "precision" or self.fusion_ is None:
            return None
        if not self.fusion_.gives_chances:
            raise ValueError(
                f"{type(self).__name__}: objective='propensity' must have probabilities to weigh, "
                f"which fusion='boosting' gives. Got fusion={self.fusion!r}."
            )
        gains = gains_of(self.objective, self._seen.counts, self._seen.total)
        return gains.astype(self.coef_.dtype)

    @property
    def _nor_known_by(self) -> str:  # type: ignore[override]
        return "" if self._described is None else " and no known word or feature"

    def _find_unseen(self) -> np.ndarray:
        unseen = super()._find_unseen()
        return unseen if self._described is None else unseen[~self._described[unseen]]

    def _topk_scores(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        return self._topk_of(self._instances(X), k, "fused", n_copies=4)  # a CSR is made of them

    def _all_scores(self, X: Any, n_copies: int = 1, with_gains: bool = True) -> np.ndarray:
        """Return the scores of all labels, of which the caller makes `n_copies` in all."""
        gains = self._gains() if with_gains else None
        instances, n_labels = self._instances(X), len(self.classes_)
        ranking, asked = self._ranking(with_shortlists=False), self._asked_of(instances)
        n = instances.shape[0]
        n_together = self._budget.rows_together(
            asked.row(0, n_labels), asked.all_scores(n, n_copies)
        )
        scores = np.empty((n, n_labels), self.coef_.dtype)
        for rows in pieces_of(n, n_together):
            part = self._with_features(instances.take(rows))
            V, labels = self._embed(part), np.tile(np.arange(n_labels), (len(rows), 1))
            of_piece = self._fused(ranking.scores(part, V, labels), labels)
            of_piece[ranking.is_blank("fused", part, V)] = self._shares(V.dtype)
            scores[rows] = of_piece if gains is None else of_piece * gains
        if self._is_binary:
            scores = self._below_trained(scores)
            return scores[:, 1:] - scores[:, :1]
        return scores

    def _topk_margins(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        instances = self._instances(X)
        labels, scores = self._topk_of(instances, k, "fused", n_copies=4, with_gains=False)
        return labels, scores - self.threshold_

    def _all_margins(self, X: Any) -> np.ndarray:
        # The scores, then which are above the threshold, and these in the dtype of y.
        scores = self._all_scores(X, n_copies=3, with_gains=False)
        scores -= self.threshold_
        return scores

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_search_index", None)  # is built again where it is asked for
        return state
