"""Siamese encoder, classifiers and fused scores, trained on mini-batches of near instances."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import _fit_context, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._topk import check_k, padded
from sklearn_xc._validation import CsrRows, check_instances, check_targets, require_labels
from sklearn_xc.base import XCClassifier, restored_on_error, threshold_for
from sklearn_xc.embedding._fusion import ScoreFusion
from sklearn_xc.embedding._label_features import label_rows, mean_rows
from sklearn_xc.embedding._training import (
    ClassifierModule,
    EpochReport,
    Module,
    SiameseModule,
    SiameseTraining,
    TripletLoss,
    show_epoch,
)
from sklearn_xc.encoders import ENCODERS
from sklearn_xc.encoders.protocol import Encoder
from sklearn_xc.mips import ExactIndex
from sklearn_xc.mips._threads import one_blas_thread
from sklearn_xc.samplers import SAMPLERS
from sklearn_xc.samplers.protocol import Positives
from sklearn_xc.solvers.batch_sgd import entry_places

COMPONENTS = ("fused", "embedding", "classifier")
#: Held-out instances by which scores are fused and the threshold is set, at most. Source: appendix
#: C of the paper.
_MOST_HELD_OUT = 10_000
#: Instances whose scores of all labels are held at a time.
_SCORES = 2**24


class NGAMEEmbeddingXC(XCClassifier):
    """Classifier that maps instances and what is known of their labels to the same sphere.

    Labels often have a text of their own: a product's title, a subject's name. One encoder reads
    instances and label texts, so that an instance comes to lie near its labels, also near those
    with few training instances or none (module M1). Then each label gets a unit vector of its own,
    its classifier, which starts at the label's embedding and learns with the encoder frozen (module
    M2). Both scores, and how frequent the label is, are fused by a regression tree.

    Training sets an instance against the labels of the other instances of its mini-batch. They are
    worth it where they are near: mini-batches are made of clusters of the instances' embeddings
    (negative-mining-aware mini-batches, NGAME [1]_).

    Parameters
    ----------
    encoder : {"bag"} or Encoder, default="bag"
        What maps features to unit vectors. "bag" is ``BagOfEmbeddings()``: a weighted sum of
        trained vectors of the features, and a residual block. An instance is cloned.
    label_features : LabelFeatures, {array-like, sparse matrix} of shape (n_labels, n_features), \
            array-like of str, or None, default=None
        What is known of each label, in the order of the columns of y (of ``classes_`` after a 1-D
        y): rows with the features of X, or texts. ``LabelFeatures`` keeps cross-validation from
        cutting them. None takes the mean of a label's training instances.
    label_vectorizer : object with ``transform``, or None, default=None
        Makes rows of label texts: the fitted vectorizer that made X. Searches clone parameters,
        which unfits it: wrap it in ``sklearn.frozen.FrozenEstimator``.
    embedding_dim : int, default=128
        Dimension of the sphere's space.
    sampler : {"ngame", "in_batch", "ance", "tas", "o_sgd"}, default="ngame"
        Where mini-batches come from, or the negatives: clusters of embeddings; at random; a search
        of labels; clusters of what the untrained encoder gives; at random, the hardest half.
    margin : float, default=0.3
        A negative counts if its score is not that much below the positive's; scores are cosines.
    radius : float or None, default=None
        A negative counts only if its embedding is within this distance from the instance's; None
        is for all in the mini-batch. Distances on the sphere are 0 to 2.
    batch_size : int, default=1600
        Instances of a mini-batch.
    refresh_interval : int, default=5
        Epochs between clusterings, or searches.
    cluster_size : int or None, default=None
        Instances of a cluster, for "ngame" and "tas". None is a curriculum for "ngame": 8, doubled
        every twelfth of the epochs; for "tas" a cluster is a mini-batch.
    encoder_epochs : int, default=10
        Epochs of module M1.
    classifier_epochs : int, default=10
        Epochs of module M2; 0 leaves the classifiers at the labels' embeddings.
    encoder_learning_rate, classifier_learning_rate : float, default=0.003, 0.003
        Of Adam's steps at the beginning; they fall to 0 in a line.
    shortlist_size : int, default=100
        Labels with the largest classifier scores, whose scores are fused.
    fusion : bool, default=True
        Whether a regression tree takes part in fused scores. They are the sum of both scores
        without one, or if nothing can be held out.
    fusion_weight : float, default=0.1
        Of the sum of both scores beside the tree; 1 is the paper's. Smaller values leave more to
        the tree, which is better for the first label and worse for the fifth.
    validation_fraction : float, default=0.1
        The share of the instances that is held out for the tree and the threshold of predictions,
        at most 10,000 of them. 0 holds nothing out.
    top_k : int, default=100
        After a sparse fit, how many of the best labels predict and decision_function consider.
    n_jobs : int, default=None
        Threads. The model is the same, bit for bit, for any number.
    random_state : int, RandomState instance or None, default=None
        Of the encoder's start, mini-batches, positives drawn, and instances held out.
    verbose : int, default=0
        If not 0, print a line for each epoch.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Class labels after a 1-D y, else column numbers.
    encoder_ : Encoder
        Trained.
    label_embeddings_ : ndarray of shape (n_labels, embedding_dim)
        Unit vectors, the encoder's; 0 for a label of which nothing is known.
    coef_ : ndarray of shape (n_labels, embedding_dim)
        Unit vectors, the classifiers.
    fusion_ : ScoreFusion or None
        The tree.
    threshold_ : float
        After an indicator fit: labels with a higher fused score are predicted. Such that held-out
        instances (training instances, if none are) get as many labels as they have.
    encoder_curve_, classifier_curve_ : list of EpochReport
        Loss, the share of hits in the margin, and seconds of each epoch.
    label_counts_ : ndarray of int64 of shape (n_labels,)
        Training instances of each label, without those held out.
    n_samples_fit_ : int
        Instances trained on.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    sklearn_xc.OvALinearXC : Exact one-vs-all, which knows labels by their instances alone.
    sklearn_xc.DecompMIPSClassifier : A hidden layer trained with the labels that matter.

    Notes
    -----
    A dense X is read as sparse rows. Rows of norm 1 (tf-idf) are what the encoder is made for.

    Source: [1]_; differs in the encoder, whose place a transformer has there, in that each instance
    counts alike in a step, however many labels are within its margin, and in `fusion_weight`.

    References
    ----------
    .. [1] K. Dahiya et al., "NGAME: negative mining-aware mini-batching for extreme
       classification", WSDM 2023.

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
    >>> clf.predict(vectorizer.transform(["an apple", "my car"])).tolist()
    [0, 1]
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        "encoder": [StrOptions(set(ENCODERS)), HasMethods(["start", "encode", "visit", "learn"])],
        "label_features": "no_validation",
        "label_vectorizer": "no_validation",
        "embedding_dim": [Interval(Integral, 1, None, closed="left")],
        "sampler": [StrOptions(set(SAMPLERS))],
        "margin": [Interval(Real, 0, 2, closed="both")],
        "radius": [Interval(Real, 0, None, closed="neither"), None],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
        "refresh_interval": [Interval(Integral, 1, None, closed="left")],
        "cluster_size": [Interval(Integral, 1, None, closed="left"), None],
        "encoder_epochs": [Interval(Integral, 0, None, closed="left")],
        "classifier_epochs": [Interval(Integral, 0, None, closed="left")],
        "encoder_learning_rate": [Interval(Real, 0, None, closed="neither")],
        "classifier_learning_rate": [Interval(Real, 0, None, closed="neither")],
        "shortlist_size": [Interval(Integral, 1, None, closed="left")],
        "fusion": ["boolean"],
        "fusion_weight": [Interval(Real, 0, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "top_k": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    classes_: np.ndarray
    coef_: np.ndarray
    label_embeddings_: np.ndarray
    label_counts_: np.ndarray
    encoder_: Encoder
    fusion_: ScoreFusion | None
    threshold_: float
    encoder_curve_: list[EpochReport]
    classifier_curve_: list[EpochReport]
    n_samples_fit_: int

    def __init__(
        self,
        encoder: Any = "bag",
        *,
        label_features: Any = None,
        label_vectorizer: Any = None,
        embedding_dim: int = 128,
        sampler: str = "ngame",
        margin: float = 0.3,
        radius: float | None = None,
        batch_size: int = 1600,
        refresh_interval: int = 5,
        cluster_size: int | None = None,
        encoder_epochs: int = 10,
        classifier_epochs: int = 10,
        encoder_learning_rate: float = 0.003,
        classifier_learning_rate: float = 0.003,
        shortlist_size: int = 100,
        fusion: bool = True,
        fusion_weight: float = 0.1,
        validation_fraction: float = 0.1,
        top_k: int = 100,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.encoder = encoder
        self.label_features = label_features
        self.label_vectorizer = label_vectorizer
        self.embedding_dim = embedding_dim
        self.sampler = sampler
        self.margin = margin
        self.radius = radius
        self.batch_size = batch_size
        self.refresh_interval = refresh_interval
        self.cluster_size = cluster_size
        self.encoder_epochs = encoder_epochs
        self.classifier_epochs = classifier_epochs
        self.encoder_learning_rate = encoder_learning_rate
        self.classifier_learning_rate = classifier_learning_rate
        self.shortlist_size = shortlist_size
        self.fusion = fusion
        self.fusion_weight = fusion_weight
        self.validation_fraction = validation_fraction
        self.top_k = top_k
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, label_features: Any = None) -> "NGAMEEmbeddingXC":
        """Train encoder, classifiers and fusion.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances. float32 and float64 are kept, other dtypes become float64.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_labels)
            One class per instance, or a binary indicator, dense or sparse; rows without labels are
            passed over.
        label_features : LabelFeatures, matrix or texts, default=None
            Those of the constructor, if None.

        Returns
        -------
        estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            For NaN, a y that is not binary, label features with other than n_labels rows or other
            features than X, parameters that do not fit each other, and training that diverged.
        """
        with restored_on_error(self), one_blas_thread():
            self._check_parameters()
            instances = check_instances(self, X, reset=True)
            n = instances.shape[0]
            targets = check_targets(self, y, n)
            indptr, labels = targets.by_instance(n)
            with_labels = np.flatnonzero(np.diff(indptr) > 0)
            require_labels(self, targets, with_labels)
            self._keep_targets(targets)
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            train, held_out = self._split(with_labels, indptr, labels, seed)
            self._train(instances, indptr, labels, train, label_features, seed)
            self._fuse(instances, indptr, labels, held_out, train, seed)
        return self

    def embed(self, X: Any) -> np.ndarray:
        """Return the embeddings of instances.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances, or other texts with the same features.

        Returns
        -------
        ndarray of shape (n, embedding_dim)
            Unit vectors; 0 for a row without features.
        """
        check_is_fitted(self)
        return self._embed(check_instances(self, X, reset=False))

    def embed_labels(self) -> np.ndarray:
        """Return the embeddings of the labels: a copy of ``label_embeddings_``.

        Returns
        -------
        ndarray of shape (n_labels, embedding_dim)
            Unit vectors; 0 for a label of which nothing is known.
        """
        check_is_fitted(self)
        return self.label_embeddings_.copy()

    def predict_topk(
        self, X: Any, k: int = 5, component: str = "fused"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best labels of each instance and their scores, best first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.
        k : int, default=5
            How many labels; may exceed their number.
        component : {"fused", "embedding", "classifier"}, default="fused"
            What scores: the cosine with the label's embedding, with its classifier, or both and the
            tree, for the ``shortlist_size`` labels (at least k; both of two classes) of the largest
            classifier scores.

        Returns
        -------
        indices : ndarray of int64 of shape (n, k)
            Positions in ``classes_``, padded with -1. Ties go to the smaller position.
        scores : ndarray of float of shape (n, k)
            Their scores, padded with -inf.
        """
        check_is_fitted(self)
        k = check_k(k)
        if component not in COMPONENTS:
            raise ValueError(f"component must be one of {COMPONENTS}, got {component!r}.")
        return self._topk_of(self._embed(check_instances(self, X, reset=False)), k, component)

    # What a fit is made of

    def _check_parameters(self) -> None:
        name = type(self).__name__
        if self.cluster_size is not None and self.sampler not in ("ngame", "tas"):
            raise ValueError(
                f"{name}: cluster_size={self.cluster_size} is for sampler='ngame' and 'tas', "
                f"sampler={self.sampler!r} came."
            )

    def _split(
        self, rows: np.ndarray, indptr: np.ndarray, labels: np.ndarray, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows to train on and those held out, of which no label is the last."""
        n_wanted = min(_MOST_HELD_OUT, int(self.validation_fraction * len(rows)))
        left = np.bincount(labels, minlength=len(self.classes_))
        held_out: list[int] = []
        for i in np.random.default_rng((seed, 1)).permutation(rows):
            if len(held_out) >= n_wanted:
                break
            own = labels[indptr[i] : indptr[i + 1]]
            if (left[own] > 1).all():
                left[own] -= 1
                held_out.append(i)
        chosen = np.sort(np.array(held_out, np.int64))
        return np.setdiff1d(rows, chosen), chosen

    def _train(
        self, instances: CsrRows, indptr: np.ndarray, labels: np.ndarray, train: np.ndarray,
        label_features: Any, seed: int,
    ) -> None:  # fmt: skip
        n_labels, name = len(self.classes_), type(self).__name__
        X, positives = instances.take(train), _positives(indptr, labels, train)
        given = self.label_features if label_features is None else label_features
        Z = label_rows(name, given, self.label_vectorizer, n_labels, X.shape[1], X.dtype)
        if Z is None:
            Z = mean_rows(X, positives.indptr, positives.labels, n_labels)
        self.label_counts_ = np.bincount(positives.labels, minlength=n_labels)
        self.n_samples_fit_ = len(train)
        is_name = isinstance(self.encoder, str)
        self.encoder_ = ENCODERS[self.encoder]() if is_name else clone(self.encoder)
        self.encoder_.start(X, self.embedding_dim, seed)
        siamese = SiameseModule(self.encoder_, X, Z, self.n_jobs)
        self.encoder_curve_ = self._run(
            "encoder", siamese, positives, self.encoder_epochs, self.encoder_learning_rate, seed
        )
        V, self.label_embeddings_ = siamese.instances(), siamese.labels()
        self._require_finite("encoder_learning_rate", V, self.label_embeddings_)
        self.coef_ = self.label_embeddings_.copy()
        classifiers = ClassifierModule(V, self.coef_)
        self.classifier_curve_ = self._run(
            "classifiers", classifiers, positives, self.classifier_epochs,
            self.classifier_learning_rate, seed + 1,
        )  # fmt: skip
        self._require_finite("classifier_learning_rate", self.coef_)

    def _require_finite(self, rate: str, *vectors: np.ndarray) -> None:
        """Raise an error for what overflowed: NaN is within no margin, so that no loss tells."""
        for values in vectors:
            # A NaN is the smallest entry and the largest.
            if not np.isfinite([values.min(), values.max()]).all():
                raise ValueError(
                    f"{type(self).__name__}: training diverged at {rate}={getattr(self, rate):g}. "
                    "Lower it, or scale X and label_features (sklearn.preprocessing.normalize)."
                )

    def _run(
        self, what: str, module: Module, positives: Positives, n_epochs: int, rate: float,
        seed: int,
    ) -> list[EpochReport]:  # fmt: skip
        options: dict[str, Any] = {}
        if self.sampler in ("ngame", "tas"):
            options["cluster_size"] = self.cluster_size
        make: Callable[..., Any] = SAMPLERS[self.sampler]
        sampler = make(self.batch_size, self.refresh_interval, seed, self.n_jobs, **options)
        loss = TripletLoss(float(self.margin), self.radius)
        training = SiameseTraining(
            module, positives, len(self.classes_), sampler, loss, rate, n_epochs, seed,
            effective_n_jobs(self.n_jobs),
        )  # fmt: skip
        reports = []
        for report in training.run():
            reports.append(report)
            if self.verbose:
                show_epoch(type(self).__name__, what, len(reports) - 1, n_epochs, report)
        return reports

    def _fuse(
        self, instances: CsrRows, indptr: np.ndarray, labels: np.ndarray, held_out: np.ndarray,
        train: np.ndarray, seed: int,
    ) -> None:  # fmt: skip
        """Grow the tree by held-out instances, and set the threshold of predictions."""
        self.fusion_ = None
        rng = np.random.default_rng((seed, 2))
        rows = held_out if len(held_out) else np.sort(rng.permutation(train)[:_MOST_HELD_OUT])
        V = self._embed(instances.take(rows))
        true = _positives(indptr, labels, rows)
        if self.fusion and len(held_out):
            self._grow_tree(V, true, seed)
        self._set_threshold(V, true)

    def _grow_tree(self, V: np.ndarray, true: Positives, seed: int) -> None:
        n_labels, n = len(self.classes_), len(V)
        found, _ = self._best(self.coef_, V, min(self.shortlist_size, n_labels))
        counts = np.diff(true.indptr)
        pairs = np.concatenate([
            (np.arange(n)[:, None] * n_labels + found).ravel(),
            np.repeat(np.arange(n), counts) * n_labels + true.labels,
        ])  # fmt: skip
        pairs = np.unique(pairs)
        relevant = np.isin(pairs, np.repeat(np.arange(n), counts) * n_labels + true.labels)
        of, label = pairs // n_labels, pairs % n_labels
        by_embedding, by_classifier = (
            np.einsum("ij,ij->i", V[of], vectors[label])
            for vectors in (self.label_embeddings_, self.coef_)
        )
        fusion = ScoreFusion(weight=float(self.fusion_weight), random_state=seed)
        self.fusion_ = fusion.fit(by_embedding, by_classifier, self.label_counts_[label], relevant)

    def _set_threshold(self, V: np.ndarray, true: Positives) -> None:
        self.threshold_ = 0.0
        if self._targets_kind == "classes":
            return
        _, scores = self._topk_of(V, min(self.top_k, len(self.classes_)), "fused")
        self.threshold_ = threshold_for(scores, len(true.labels))

    # What a fitted model answers

    def _embed(self, instances: CsrRows) -> np.ndarray:
        return self.encoder_.encode(instances, n_jobs=self.n_jobs)

    def _best(self, vectors: np.ndarray, V: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        index = ExactIndex(self.n_jobs)
        index.build(vectors)
        found = index.query(V, k)
        return found.labels.astype(np.int64), found.scores

    def _topk_of(self, V: np.ndarray, k: int, component: str) -> tuple[np.ndarray, np.ndarray]:
        n_labels = len(self.classes_)
        n_found = min(k, n_labels)
        if component == "fused":
            n_listed = n_labels if self._is_binary else min(max(self.shortlist_size, k), n_labels)
            labels, by_classifier = self._best(self.coef_, V, n_listed)
            by_embedding = np.empty_like(by_classifier)
            with one_blas_thread():
                for i in range(len(V)):
                    by_embedding[i] = self.label_embeddings_[labels[i]] @ V[i]
            scores = self._fused(by_embedding, by_classifier, labels)
            order = np.lexsort((labels, -scores), axis=1)[:, :n_found]
            labels = np.take_along_axis(labels, order, axis=1)
            scores = np.take_along_axis(scores, order, axis=1)
        else:
            vectors = self.label_embeddings_ if component == "embedding" else self.coef_
            labels, scores = self._best(vectors, V, n_found)
        return padded(labels, scores, k)

    def _fused(
        self, by_embedding: np.ndarray, by_classifier: np.ndarray, labels: np.ndarray
    ) -> np.ndarray:
        """Return fused scores of some labels of each instance."""
        if self.fusion_ is None:
            return by_embedding + by_classifier
        return self.fusion_(by_embedding, by_classifier, self.label_counts_[labels])

    def _topk_scores(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        return self._topk_of(self._embed(check_instances(self, X, reset=False)), k, "fused")

    def _all_scores(self, X: Any) -> np.ndarray:
        V = self._embed(check_instances(self, X, reset=False))
        n, n_labels = len(V), len(self.classes_)
        scores = np.empty((n, n_labels), V.dtype)
        labels = np.arange(n_labels)
        step = max(1, _SCORES // n_labels)
        with one_blas_thread():
            for first in range(0, n, step):
                part = V[first : first + step]
                both = part @ self.label_embeddings_.T, part @ self.coef_.T
                scores[first : first + step] = self._fused(*both, labels)
        return scores[:, 1:] - scores[:, :1] if self._is_binary else scores

    def _topk_margins(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        labels, scores = self._topk_scores(X, k)
        return labels, scores - self.threshold_

    def _all_margins(self, X: Any) -> np.ndarray:
        return self._all_scores(X) - self.threshold_


def _positives(indptr: np.ndarray, labels: np.ndarray, rows: np.ndarray) -> Positives:
    """Return the labels of some rows."""
    at, bounds = entry_places(indptr[rows], indptr[rows + 1] - indptr[rows])
    return Positives(bounds, labels[at])
