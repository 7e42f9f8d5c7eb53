"""Siamese encoder, classifiers and fused scores, trained on mini-batches of near instances."""

import copy
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._blank_rows import features_of
from sklearn_xc._checks import (
    check_further_targets,
    check_targets,
    check_weights,
    distinct_classes,
    require_labels,
)
from sklearn_xc._data import CsrRows, Targets
from sklearn_xc._sklearn import HasMethods, Interval, StrOptions, fit_context
from sklearn_xc._state import built_apart
from sklearn_xc.base import threshold_for
from sklearn_xc.embedding._encoding import first_strange, name_of
from sklearn_xc.embedding._examples import Examples, label_shards
from sklearn_xc.embedding._fusion import ScoreFusion
from sklearn_xc.embedding._label_features import held_features, label_rows, mean_rows
from sklearn_xc.embedding._memory import FitSizes, of_added, pieces_by_width
from sklearn_xc.embedding._model import RankingModel
from sklearn_xc.embedding._ranking import KnownFeatures, each_once
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
from sklearn_xc.parallel.row_ranges import for_row_ranges, one_blas_thread
from sklearn_xc.parallel.threads import count_threads
from sklearn_xc.samplers import SAMPLERS
from sklearn_xc.samplers.ance import N_NEGATIVES
from sklearn_xc.samplers.protocol import Positives
from sklearn_xc.solvers.adam import LazyAdam

#: Held-out instances by which scores are fused and the threshold is set, at most. Source: appendix
#: C of the paper.
_MOST_HELD_OUT = 10_000
#: Instances of a mini-batch by default: an epoch has 200 of them, but for very few or many
#: instances. The largest is the paper's.
_STEPS_OF_EPOCH, _SMALLEST_BATCH, _LARGEST_BATCH = 200, 64, 1600
#: Weights of instances between which sums and products stay numbers, also of float32 in the tree.
_LIGHTEST, _HEAVIEST = 1e-20, 1e20
#: Scores times so much stay numbers, also of float32.
_LARGEST_FUSION_WEIGHT = 1e30
#: How often a pair of an instance and a label is drawn by default, and epochs at most. The fewest
#: epochs are those of one label each.
_DRAWS, _MOST_EPOCHS = {"encoder": 5, "classifier": 10}, 20


class NGAMEEmbeddingXC(RankingModel):
    """Classifier that maps instances and what is known of their labels to the same sphere.

    Labels often have a text of their own: a product's title, a subject's name. One encoder reads
    instances and label texts, so that an instance comes to lie near its labels, also near those
    with few training instances or none (module M1). Then each label gets a unit vector of its own,
    its classifier, which starts at the label's embedding and learns with the encoder frozen (module
    M2). The scores of both, the cosine of the features themselves,
    and how frequent the label is, are fused by a regression tree.

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
    embedding_dim : int, default=256
        Dimension of the sphere's space.
    sampler : {"ngame", "in_batch", "ance", "tas", "o_sgd"}, default="ngame"
        Where mini-batches come from, or the negatives: clusters of embeddings; at random; a search
        of labels; clusters of what the untrained encoder gives; at random, the hardest half.
    margin, classifier_margin : float, default=0.3, 0.5
        Of the encoder and of the classifiers: a negative counts if its score is not that much below
        the positive's; scores are cosines.
    radius : float or None, default=None
        A negative counts only if its embedding is within this distance from the instance's; None
        is for all in the mini-batch. Distances on the sphere are 0 to 2.
    batch_size : int or "auto", default="auto"
        Instances of a mini-batch. "auto" takes a two-hundredth of the instances, from 64 to 1600.
    refresh_interval : int, default=5
        Epochs between clusterings of "ngame", from the second epoch on, or searches of "ance".
    cluster_size : int or None, default=None
        Instances of a cluster, for "ngame" and "tas". None is a curriculum for "ngame": 8, doubled
        every twelfth of the epochs; for "tas" a cluster is a mini-batch.
    encoder_epochs : int or "auto", default="auto"
        Epochs of module M1. An instance draws one of its labels in an epoch; "auto" has each pair
        drawn 5 times on average, in 5 to 20 epochs.
    classifier_epochs : int or "auto", default="auto"
        Epochs of module M2; 0 leaves the classifiers at the labels' embeddings. "auto" has each
        pair drawn 10 times on average, in 10 to 20 epochs.
    n_shards : int, default=1
        Random parts of the labels whose classifiers are trained each on their own, in threads, with
        the labels of the part as the only negatives: less work, and another model.
    encoder_learning_rate, classifier_learning_rate : float, default=0.003, 0.01
        Of Adam's steps at the beginning; they fall to 0 in a line.
    shortlist_size : int, default=100
        Labels with the best classifiers, whose scores are fused; where label features are known
        also as many labels of the nearest features.
    fusion : bool, default=True
        Whether a regression tree takes part in fused scores. They are the sum of the scores
        without one, or if nothing can be held out.
    fusion_weight : float, default=0.1
        Of the sum of the scores beside the tree; 1 is the paper's. Smaller values leave more to
        the tree, which is better for the first label and worse for the fifth.
    validation_fraction : float, default=0.1
        The share of the instances that is held out for the tree and the threshold of predictions,
        at most 10,000 of them. 0 holds nothing out.
    top_k : int, default=100
        After a sparse fit, how many of the best labels predict and decision_function consider.
    max_memory : int or str, default=None
        Bytes, or a text as "8GB", that the arrays of a fit or of an answer may take together.
        What needs more is refused before it is begun, with the largest array named; answers are cut
        into pieces that fit. None is what the machine has.
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
        Instances of each label that were passed to fit and ``partial_fit``, those held out and
        repeated ones included. Instances of weight 0 do not count, all others count once.
    n_samples_fit_ : int
        Instances that were passed to fit and ``partial_fit``, counted likewise.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    sklearn_xc.OvALinearXC : Exact one-vs-all, which knows labels by their instances alone.
    sklearn_xc.DecompMIPSClassifier : A hidden layer trained with the labels that matter.

    Notes
    -----
    A dense X is read as sparse rows. Rows of norm 1 (tf-idf) are what the encoder is made for;
    values above 1e100 in float64, or 1e15 in float32, are refused, and those below 1e-100 or 1e-15
    are zeros, which are no features.

    Instances that are equal, labels included, are one with the sum of their weights.

    An instance of which nothing is known, without features or with none that fit has seen, scores
    each label by its share of the instances of fit, of each component: the most frequent labels
    come first. So a leaf of the tree scores, too. A label of which nothing is known, neither by an
    instance nor by a feature, comes last and is never predicted.

    Source: [1]_; differs in the encoder, whose place a transformer has there; in that each instance
    counts alike in a step, however many labels are within its margin; in that fused scores look at
    the cosine of the features, too, and at labels without training instances as at the rarest ones;
    and in `fusion_weight`.

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
        "classifier_margin": [Interval(Real, 0, 2, closed="both")],
        "radius": [Interval(Real, 0, None, closed="neither"), None],
        "batch_size": [Interval(Integral, 2, None, closed="left"), StrOptions({"auto"})],
        "refresh_interval": [Interval(Integral, 1, None, closed="left")],
        "cluster_size": [Interval(Integral, 1, None, closed="left"), None],
        "encoder_epochs": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "classifier_epochs": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "n_shards": [Interval(Integral, 1, None, closed="left")],
        "encoder_learning_rate": [Interval(Real, 0, None, closed="neither")],
        "classifier_learning_rate": [Interval(Real, 0, None, closed="neither")],
        "shortlist_size": [Interval(Integral, 1, None, closed="left")],
        "fusion": ["boolean"],
        "fusion_weight": [Interval(Real, 0, _LARGEST_FUSION_WEIGHT, closed="both")],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "top_k": [Interval(Integral, 1, None, closed="left")],
        "max_memory": [Interval(Real, 0, None, closed="neither"), str, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    encoder_curve_: list[EpochReport]
    classifier_curve_: list[EpochReport]
    _steps: LazyAdam | None

    def __init__(
        self,
        encoder: Any = "bag",
        *,
        label_features: Any = None,
        label_vectorizer: Any = None,
        embedding_dim: int = 256,
        sampler: str = "ngame",
        margin: float = 0.3,
        classifier_margin: float = 0.5,
        radius: float | None = None,
        batch_size: Any = "auto",
        refresh_interval: int = 5,
        cluster_size: int | None = None,
        encoder_epochs: Any = "auto",
        classifier_epochs: Any = "auto",
        n_shards: int = 1,
        encoder_learning_rate: float = 0.003,
        classifier_learning_rate: float = 0.01,
        shortlist_size: int = 100,
        fusion: bool = True,
        fusion_weight: float = 0.1,
        validation_fraction: float = 0.1,
        top_k: int = 100,
        max_memory: int | str | None = None,
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
        self.classifier_margin = classifier_margin
        self.radius = radius
        self.batch_size = batch_size
        self.refresh_interval = refresh_interval
        self.cluster_size = cluster_size
        self.encoder_epochs = encoder_epochs
        self.classifier_epochs = classifier_epochs
        self.n_shards = n_shards
        self.encoder_learning_rate = encoder_learning_rate
        self.classifier_learning_rate = classifier_learning_rate
        self.shortlist_size = shortlist_size
        self.fusion = fusion
        self.fusion_weight = fusion_weight
        self.validation_fraction = validation_fraction
        self.top_k = top_k
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    @built_apart
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, label_features: Any = None
    ) -> "NGAMEEmbeddingXC":
        """Train encoder, classifiers and fusion.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances. float32 and float64 are kept, other dtypes become float64.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_labels)
            One class per instance, or a binary indicator, dense or sparse; rows without labels are
            passed over.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances, 0 or from 1e-20 to 1e20; equal rows are one row with the sum
            of theirs.
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
        MemoryBudgetError
            If training needs more memory than `max_memory`, or than the machine has; it is not
            begun then, and the largest array is named.

        Warns
        -----
        UnseenLabelWarning
            For labels of which nothing is known: without an instance, and without a feature.
        """
        with one_blas_thread():
            self._fit(X, y, None, sample_weight, label_features)
        self._warn_of_unseen()
        return self

    @fit_context(prefer_skip_nested_validation=True)
    @built_apart
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> "NGAMEEmbeddingXC":
        """Train the classifiers for an epoch on further instances; the encoder stays.

        The first call of an estimator that is not fitted is a fit: the encoder learns from its
        instances alone, so that they should be many. Later calls train the classifiers of all
        labels together, whatever `n_shards` is.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_labels)
            Their labels, in the form of the first call; also labels that ``add_labels`` has added.
        classes : array-like of shape (n_labels,), default=None
            All classes, in the first call with a 1-D y that lacks some of them.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances, not negative.

        Returns
        -------
        estimator
            Itself. Fusion and threshold stay as they are, ``label_counts_`` grows.

        Raises
        ------
        ValueError
            As in fit; and for another kind of y, other classes or columns than before.
        MemoryBudgetError
            As in fit.
        """
        with one_blas_thread():
            if not hasattr(self, "encoder_"):
                self._fit(X, y, classes, sample_weight, None)
                return self
            instances = self._instances(X, is_training=True)
            n = instances.shape[0]
            targets = check_further_targets(self, y, n, classes)
            weight = self._weights(sample_weight, n)
            self._partial_fit(self._examples(instances, targets, weight))
            self._count_instances(targets, weight, is_further=True)
        return self

    @built_apart
    def add_labels(self, label_features: Any, classes: Any = None) -> "NGAMEEmbeddingXC":
        """Add labels of which the features are known, or a text, but no instance.

        Their classifiers are their embeddings; ``partial_fit`` trains them. What is known of the
        other labels does not change.

        Parameters
        ----------
        label_features : LabelFeatures, {array-like, sparse matrix} of shape (n_new, n_features), \
                or array-like of str
            As in the constructor.
        classes : array-like of shape (n_new,), default=None
            Their class labels, after a fit with a 1-D y. After an indicator they are the next
            columns.

        Returns
        -------
        estimator
            Itself. ``classes_`` stay sorted, and new columns come after the others.

        Raises
        ------
        ValueError
            For other features than X had, classes that are missing, not distinct, or known already,
            and if the labels were fitted without label features: the cosine of a text and that of
            the mean of instances are not alike.

        Warns
        -----
        UnseenLabelWarning
            If a label has no feature: nothing is known of it then.
        """
        check_is_fitted(self)
        if self._features is None:
            raise ValueError(
                f"{type(self).__name__}.add_labels needs a fit with label_features; labels were "
                "the means of their instances, which new ones do not have."
            )
        n_unseen = len(self._unseen_labels)
        with one_blas_thread():
            self._add_labels(label_features, classes)
        if len(self._unseen_labels) > n_unseen:
            self._warn_of_added()
        return self

    def _warn_of_added(self) -> None:
        """Warn of unseen labels, as deep below the caller as where ``fit`` does it."""
        self._warn_of_unseen()

    # What a fit is made of

    def _check_parameters(self) -> None:
        name = type(self).__name__
        if self.cluster_size is not None and self.sampler not in ("ngame", "tas"):
            raise ValueError(
                f"{name}: cluster_size={self.cluster_size} is for sampler='ngame' and 'tas', "
                f"sampler={self.sampler!r} came."
            )

    def _fit(self, X: Any, y: Any, classes: Any, sample_weight: Any, label_features: Any) -> None:
        self._check_parameters()
        instances = self._instances(X, reset=True, is_training=True)
        targets = check_targets(self, y, instances.shape[0], classes)
        weight = self._weights(sample_weight, instances.shape[0])
        examples = self._examples(instances, targets, weight)
        self._keep_targets(targets)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        train, held_out = self._split(examples.positives, seed)
        self._train(examples, train, held_out, label_features, seed)
        self._seen = examples.frequencies(len(self.classes_))
        self._count_instances(targets, weight)
        self._fuse(examples, train, held_out, seed)
        self._seed, self._n_further, self._steps = seed, 0, None

    def _weights(self, sample_weight: Any, n: int) -> np.ndarray:
        weight = check_weights(self, sample_weight, n)
        if weight is None:
            return np.ones(n)
        strange = (weight > 0) & ((weight < _LIGHTEST) | (weight > _HEAVIEST))
        if strange.any():
            at = int(strange.argmax())
            raise ValueError(
                f"{type(self).__name__}: sample_weight holds {weight[at]:g} in row {at}; 0 and "
                f"weights from {_LIGHTEST:g} to {_HEAVIEST:g} were expected. Divide all by their "
                "mean."
            )
        return weight

    def _examples(self, instances: CsrRows, targets: Targets, weight: np.ndarray) -> Examples:
        indptr, labels = targets.by_instance(instances.shape[0])
        examples = Examples.distinct(instances, indptr, labels, weight)
        require_labels(self, targets, examples.weight)
        return examples

    def _split(self, positives: Positives, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows to train on and those held out, of which no label is the last."""
        indptr, labels = positives
        n = len(indptr) - 1
        n_wanted = min(_MOST_HELD_OUT, int(self.validation_fraction * n))
        left = np.bincount(labels, minlength=len(self.classes_))
        held_out: list[int] = []
        for i in np.random.default_rng((seed, 1)).permutation(n):
            if len(held_out) >= n_wanted:
                break
            own = labels[indptr[i] : indptr[i + 1]]
            if (left[own] > 1).all():
                left[own] -= 1
                held_out.append(i)
        chosen = np.sort(np.array(held_out, np.int64))
        return np.setdiff1d(np.arange(n), chosen), chosen

    def _train(
        self, every: Examples, train: np.ndarray, held_out: np.ndarray, label_features: Any,
        seed: int,
    ) -> None:  # fmt: skip
        """Train encoder and classifiers on some of the examples."""
        n_labels = len(self.classes_)
        Z = self._label_rows(label_features, n_labels, every.X.dtype)
        is_name = isinstance(self.encoder, str)
        self.encoder_ = ENCODERS[self.encoder]() if is_name else clone(self.encoder)
        self._budget.require(self._sizes(every, train, held_out, Z).largest_phase())
        examples = every.take(train)
        X = examples.X
        self._features = None if Z is None else KnownFeatures(Z)
        self._known = features_of(every.X)
        if Z is not None:
            self._known |= features_of(Z)
        else:
            Z = mean_rows(X, *examples.positives, n_labels, examples.weight)
        self._frequencies = examples.frequencies(n_labels).counts
        self.encoder_.start(X, self.embedding_dim, seed)
        self.encoder_curve_ = self._train_encoder(examples.with_features(), Z, seed)
        self.label_embeddings_ = self._encode(Z, int(self.embedding_dim), Z.dtype)
        self._require_finite("encoder_learning_rate", self.label_embeddings_)
        self.coef_ = self.label_embeddings_.copy()
        self.classifier_curve_ = self._train_classifiers(examples.with_features(), seed + 1)
        self._require_finite("classifier_learning_rate", self.coef_)

    def _sizes(
        self, every: Examples, train: np.ndarray, held_out: np.ndarray, Z: CsrRows | None
    ) -> FitSizes:
        """Return what memory is told by: of a fit, or of further training without held-out rows."""
        X, n_labels, n = every.X, len(self.classes_), len(train)
        shapes: Any = getattr(self.encoder_, "parameter_shapes", lambda n_features, dim: [])
        batch_size = min(self._batch_size_for(n), n)
        n_further = N_NEGATIVES if self.sampler == "ance" else 0
        counts, n_values = np.diff(every.positives.indptr), np.diff(X.indptr)
        n_of_means = np.bincount(
            every.positives.labels, np.repeat(n_values, counts), minlength=n_labels
        )
        n_shards = min(self.n_shards, n_labels)
        n_scores = 2 if Z is None else 3
        return FitSizes(
            n=n,
            n_held_out=len(held_out),
            n_values=len(X.data),
            n_true=int(counts[held_out].sum()),
            n_labels=n_labels,
            n_label_values=len(Z.data)
            if Z is not None
            else int(np.minimum(n_of_means, X.shape[1]).sum()),
            dim=int(self.embedding_dim),
            itemsize=X.dtype.itemsize,
            parameters=shapes(X.shape[1], int(self.embedding_dim)),
            batch_size=batch_size,
            n_pool=min(batch_size * (1 + n_further), n_labels),
            sampler=self.sampler,
            n_copies=min(n_shards, count_threads(self.n_jobs)) if n_shards > 1 else 0,
            n_listed=min((n_scores - 1) * self.shortlist_size, n_labels),
            n_scores=n_scores,
        )

    def _train_encoder(self, examples: Examples, Z: CsrRows, seed: int) -> list[EpochReport]:
        """Train the encoder on what it can embed: instances and labels that have a feature."""
        known, n_jobs = np.flatnonzero(np.diff(Z.indptr) > 0), count_threads(self.n_jobs)
        _, examples = examples.of_labels(known, Z.shape[0])
        module = SiameseModule(
            self.encoder_, examples.X, Z.take(known), int(self.embedding_dim), n_jobs,
            type(self).__name__, keep=self.sampler == "ngame",
        )  # fmt: skip
        return self._run("encoder", module, examples, self._epochs_for("encoder", examples), seed)

    def _label_rows(self, label_features: Any, n_labels: int, dtype: Any) -> CsrRows | None:
        given = self.label_features if label_features is None else label_features
        return label_rows(
            type(self).__name__, given, self.label_vectorizer, n_labels, self.n_features_in_, dtype
        )

    def _train_classifiers(self, examples: Examples, seed: int) -> list[EpochReport]:
        """Train the classifiers, of all labels together or shard by shard."""
        V = self._encode(examples.X, self.coef_.shape[1], self.coef_.dtype)
        self._require_finite("encoder_learning_rate", V)
        n_labels, n_epochs = len(self.classes_), self._epochs_for("classifier", examples)
        if min(self.n_shards, n_labels) < 2:
            module = ClassifierModule(V, self.coef_)
            return self._run("classifiers", module, examples, n_epochs, seed)
        shards = label_shards(n_labels, min(self.n_shards, n_labels), seed)
        reports: list[list[EpochReport]] = [[] for _ in shards]

        def work(first: int, last: int) -> None:
            for s in range(first, last):
                rows, own = examples.of_labels(shards[s], n_labels)
                W, what = self.coef_[shards[s]], f"classifiers, shard {s + 1}"
                reports[s] = self._run(
                    what, ClassifierModule(V[rows], W), own, n_epochs, seed + s, 1
                )
                self.coef_[shards[s]] = W

        for_row_ranges(work, len(shards), 1, count_threads(self.n_jobs))
        return [
            EpochReport.joined(of_epoch) for of_epoch in zip(*filter(None, reports), strict=True)
        ]

    def _partial_fit(self, examples: Examples) -> None:
        self._n_further += 1
        further = examples.frequencies(len(self.classes_))
        self._seen = self._seen.plus(further)
        self._frequencies = self._frequencies + further.counts
        examples = examples.with_features()
        everything = np.arange(len(examples.weight))
        sizes = self._sizes(examples, everything, everything[:0], None)
        self._budget.require(sizes._replace(dim=self.coef_.shape[1]).further())
        V = self._embed(examples.X, "a row")  # equal ones are one: their numbers say nothing
        self.coef_ = self.coef_.copy()
        steps = copy.deepcopy(self._steps)  # this call may be interrupted
        if steps is None:
            steps = LazyAdam(self.coef_.shape, self.coef_.dtype)
        module, self._steps = ClassifierModule(V, self.coef_, steps), steps
        seed = self._seed + self._n_further + 1
        self.classifier_curve_ = [
            *self.classifier_curve_, *self._run("classifiers", module, examples, 1, seed)
        ]  # fmt: skip
        self._require_finite("classifier_learning_rate", self.coef_)

    def _add_labels(self, label_features: Any, classes: Any) -> None:
        assert self._features is not None
        held = held_features(label_features, f"{type(self).__name__}: label_features")
        Z = self._label_rows(held, held.n_labels, self.coef_.dtype)
        assert Z is not None
        classes = self._classes_with(classes, held.n_labels)
        n_values = len(Z.data) + len(self._features.rows.data)
        dim, itemsize = self.coef_.shape[1], self.coef_.itemsize
        self._budget.require(of_added(len(classes), dim, itemsize, n_values))
        order = np.argsort(classes, kind="stable")
        self.classes_ = classes[order]
        self._features = self._features.joined(Z, order)
        self._known = self._known | features_of(Z)
        vectors, zeros = self._embed(Z, "new label {}"), np.zeros(held.n_labels, np.int64)
        for name, new in (
            ("label_embeddings_", vectors), ("coef_", vectors), ("label_counts_", zeros),
            ("_frequencies", zeros),
        ):  # fmt: skip
            setattr(self, name, np.concatenate([getattr(self, name), new])[order])
        self._seen = self._seen.with_labels(held.n_labels, order)
        self._unseen_labels = self._find_unseen()
        self._steps = None

    def _classes_with(self, classes: Any, n_new: int) -> np.ndarray:
        """Return the classes, and new ones after them."""
        name, n_old = type(self).__name__, len(self.classes_)
        if self._targets_kind != "classes":
            if classes is not None:
                raise ValueError(
                    f"{name}: classes are the columns of an indicator y, the new ones follow from "
                    f"{n_old} on; classes must be None, {type(classes).__name__} came."
                )
            return np.arange(n_old + n_new)
        if self._is_binary:
            raise ValueError(
                f"{name}: add_labels would make more than two classes of two; fit with an "
                "indicator y, or with more classes."
            )
        if classes is None:
            raise ValueError(f"{name}: classes must name the {n_new} new labels, None came.")
        n_distinct, new = len(distinct_classes(classes, name)), np.asarray(classes)
        if len(new) != n_new:
            raise ValueError(
                f"{name}: classes must name the {n_new} new labels, one each; {len(new)} came."
            )
        both = _joined_classes(self.classes_, new)
        if both is None:
            raise ValueError(
                f"{name}: classes must be of the kind of those known, {self.classes_.dtype}; "
                f"{new.dtype} came."
            )
        if n_distinct < n_new or len(np.unique(both)) < len(both):
            raise ValueError(f"{name}: classes hold one that is known already, or one twice.")
        return both

    def _require_finite(self, rate: str, values: np.ndarray) -> None:
        """Raise an error for what overflowed: NaN is within no margin, so that no loss tells."""
        if first_strange(values) < 0:
            return
        whose = name_of(self.encoder_) if rate == "encoder_learning_rate" else "a label's vector"
        raise ValueError(
            f"{type(self).__name__}: training diverged at {rate}={getattr(self, rate):g}: "
            f"{whose} has NaN or infinity. Lower it, or scale X and label_features "
            "(sklearn.preprocessing.normalize)."
        )

    def _run(
        self, what: str, module: Module, examples: Examples, n_epochs: int, seed: int,
        n_workers: int | None = None,
    ) -> list[EpochReport]:  # fmt: skip
        """Train a module; what it is for names its parameters."""
        kind = "encoder" if module.moves_instances else "classifier"
        margin = self.margin if kind == "encoder" else self.classifier_margin
        n = len(examples.weight)
        if n == 0:  # nothing of what there is has a feature
            return []
        options: dict[str, Any] = {}
        if self.sampler in ("ngame", "tas"):
            options["cluster_size"] = self.cluster_size
        make: Callable[..., Any] = SAMPLERS[self.sampler]
        n_jobs = count_threads(self.n_jobs)
        sampler = make(self._batch_size_for(n), self.refresh_interval, seed, n_jobs, **options)
        training = SiameseTraining(
            module, examples.positives, examples.weight, sampler,
            TripletLoss(float(margin), self.radius), getattr(self, f"{kind}_learning_rate"),
            n_epochs, seed, n_workers or n_jobs,
        )  # fmt: skip
        reports = []
        for report in training.run():
            reports.append(report)
            if self.verbose:
                show_epoch(type(self).__name__, what, len(reports) - 1, n_epochs, report)
        return reports

    def _epochs_for(self, kind: str, examples: Examples) -> int:
        n_epochs = getattr(self, f"{kind}_epochs")
        if n_epochs != "auto":
            return int(n_epochs)
        n_pairs, n = len(examples.positives.labels), len(examples.weight)
        return round(min(_MOST_EPOCHS, _DRAWS[kind] * n_pairs / max(1, n)))

    def _batch_size_for(self, n: int) -> int:
        if self.batch_size != "auto":
            return int(self.batch_size)
        return min(_LARGEST_BATCH, max(_SMALLEST_BATCH, n // _STEPS_OF_EPOCH))

    def _fuse(self, examples: Examples, train: np.ndarray, held_out: np.ndarray, seed: int) -> None:
        """Grow the tree by held-out instances, and set the threshold of predictions."""
        self.fusion_ = None
        rng = np.random.default_rng((seed, 2))
        rows = held_out if len(held_out) else np.sort(rng.permutation(train)[:_MOST_HELD_OUT])
        unseen = examples.take(rows)
        if self.fusion and len(held_out):
            self._grow_tree(unseen, seed)
        self.threshold_ = 0.0
        if self._targets_kind != "classes":
            _, scores = self._topk_of(unseen.X, self._n_considered(), "fused", n_copies=2)
            self.threshold_ = threshold_for(scores, len(unseen.positives.labels))

    def _grow_tree(self, examples: Examples, seed: int) -> None:
        """Grow the tree by pairs of the shortlists, and the true ones."""
        n_listed, n_scores = self._n_listed(1), self._ranking.n_scores
        widths = n_listed + np.diff(examples.positives.indptr)
        lessons = [
            self._lessons(examples.take(rows))
            for rows in pieces_by_width(widths, self._budget.piece // (100 * n_scores))
        ]
        scores, label, is_own, weight = (
            np.concatenate(part) for part in zip(*lessons, strict=True)
        )
        if len(weight):  # otherwise the tree would be asked of no instance
            fusion = ScoreFusion(weight=float(self.fusion_weight), random_state=seed)
            self.fusion_ = fusion.fit(scores, self._frequencies[label], is_own, weight)

    def _lessons(self, examples: Examples) -> tuple[np.ndarray, ...]:
        """Return scores, label, truth and weight of pairs of some instances, for the tree."""
        V, ranking = self._embed(examples.X, "a row"), self._ranking
        known = np.flatnonzero(~ranking.is_blank("fused", examples.X, V))
        examples, V = examples.take(known), V[known]
        X, true, n_labels, n = examples.X, examples.positives, len(self.classes_), len(known)
        listed = ranking.shortlist(X, V, self.shortlist_size)
        counts = np.diff(true.indptr)
        own = np.full((n, counts.max(initial=0)), -1, np.int64)
        own[np.arange(own.shape[1]) < counts[:, None]] = true.labels
        labels = each_once(np.concatenate([listed, own], axis=1))
        # No label of a held-out instance is without training instances, by choice. The tree would
        # take it for a fact about such labels; so they are left out, and like the rarest it knows.
        labels[self._frequencies[labels] == 0] = -1
        at = labels >= 0
        of, label = np.nonzero(at)[0], labels[at]
        is_own = np.isin(
            of * n_labels + label, np.repeat(np.arange(n), counts) * n_labels + true.labels
        )
        return ranking.scores(X, V, labels)[at], label, is_own, examples.weight[of]


def _joined_classes(known: np.ndarray, new: np.ndarray) -> np.ndarray | None:
    """Return known classes and new ones in one array, or None if they are not of one kind."""
    new = np.asarray(new.tolist()) if new.dtype == object else new
    try:
        both = np.concatenate([known, new])
    except TypeError:  # dates and texts
        return None
    # As texts, numbers and bytes would be something else; so would a bool that is a number.
    kinds = {"n" if part.dtype.kind in "iuf" else part.dtype.kind for part in (known, new, both)}
    if known.dtype == object:
        kinds = {"U" if isinstance(one, str) else "O" for one in both.tolist()}
    is_whole = known.dtype.kind in "iu" and both.dtype.kind not in "iu"
    rounds = both[len(known) :].tolist() != new.tolist()
    return None if len(kinds) > 1 or is_whole or rounds else both
