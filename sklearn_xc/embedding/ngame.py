"""Siamese encoder, classifiers and fused scores, trained on mini-batches of near instances."""

from numbers import Integral, Real
from os import PathLike
from typing import Any

from sklearn.utils.validation import check_is_fitted

from sklearn_xc._checks import check_further_targets
from sklearn_xc._objective import OBJECTIVES
from sklearn_xc._sklearn import HasMethods, Interval, StrOptions, fit_context
from sklearn_xc._state import built_apart
from sklearn_xc.embedding._fusions import FUSIONS
from sklearn_xc.embedding._updating import UpdatableEmbedding
from sklearn_xc.encoders import ENCODERS
from sklearn_xc.parallel.row_ranges import one_blas_thread


class NGAMEEmbeddingXC(UpdatableEmbedding):
    """Classifier that maps instances and what is known about their labels to the same sphere.

    Labels often have a text: a product's title, a subject's name. One encoder reads instances and
    label texts, so that an instance comes to lie near its labels, even those with few or no
    training instances (module M1). Then each label gets a unit vector of its own, its classifier,
    which starts at the label's embedding and learns while the encoder is frozen (module M2). The
    probability that the label is relevant is then fused from the scores of embedding and
    classifier, the cosines with the mean embedding and the mean features of the label's instances,
    the cosine with the label's features, and the label's frequency. If the encoder reads texts,
    features are what a vectorizer makes of them.

    In training, the negatives of an instance are the labels of the other instances in its
    mini-batch. Negatives teach most when they are near, so mini-batches are made of clusters of
    the instances' embeddings (negative-mining-aware mini-batches, NGAME [1]_).

    Parameters
    ----------
    encoder : {"bag", "transformer"} or Encoder, default="bag"
        Maps features to unit vectors. "bag" is ``BagOfEmbeddings()``: a weighted sum of trained
        feature vectors, and a residual block; ``BagOfEmbeddings(embedding_init=V)`` starts from
        word vectors. "transformer" is ``TransformerEncoder()``, all of whose layers are trained
        further. An instance is cloned; if it declares ``reads = "texts"``, X and `label_features`
        are texts or ``TextsWithFeatures``.
    label_features : LabelFeatures, TextsWithFeatures, {array-like, sparse matrix} of shape \
            (n_labels, n_features), array-like of str of shape (n_labels,), or None, default=None
        What is known about each label, in the order of the columns of y (of ``classes_`` after a
        1-D y): rows with the features of X, texts, or both if X is ``TextsWithFeatures``.
        ``LabelFeatures`` keeps cross-validation from splitting them and, with ``classes``, also
        works for folds that lack a class. None takes the mean of a label's training instances; an
        encoder of texts needs texts.
    label_vectorizer : object with ``transform``, or None, default=None
        Makes rows from label texts: the fitted vectorizer that made X, or the features in
        ``TextsWithFeatures``. Searches clone parameters, which unfits the vectorizer: wrap it in
        ``sklearn.frozen.FrozenEstimator``.
    vectorizer : {"tfidf"}, transformer or None, default="tfidf"
        Makes features from texts, if the encoder reads texts. It is cloned, fitted to the distinct
        training texts, and applied to the label texts and all later texts. "tfidf" is
        ``TfidfVectorizer(sublinear_tf=True, dtype=numpy.float32)``. The vectorizer must make
        sparse rows. None leaves features out. ``TextsWithFeatures`` brings its own features, and
        an encoder that reads features takes no vectorizer.
    embedding_dim : int or "auto", default="auto"
        Dimension of the embeddings. "auto" is 256, or the dimension of a pretrained encoder.
    sampler : {"ngame", "in_batch", "ance", "tas", "o_sgd"} or BatchSampler, default="ngame"
        How mini-batches or negatives are chosen. "ngame" uses clusters of embeddings, "in_batch"
        random mini-batches, "ance" a search of labels, "tas" clusters of what the untrained
        encoder gives, and "o_sgd" the hardest half of random mini-batches. An instance, such as
        ``NgameSampler(refresh_interval=3)``, is cloned.
    margin, classifier_margin : float, default=0.3, 0.5
        Margins of the encoder and of the classifiers: a negative counts unless its score is at
        least this much below the score of the positive; scores are cosines.
    radius : float or None, default=None
        A negative counts only if its embedding is within this distance of the instance's; None
        counts all in the mini-batch. Distances on the sphere are 0 to 2.
    batch_size : int or "auto", default="auto"
        Instances per mini-batch. "auto" is a two-hundredth of the instances, from 64 to 1600.
    max_iter : int or "auto", default="auto"
        Epochs of the encoder (module M1). An instance draws one of its labels per epoch; with
        "auto", each pair is drawn 5 times on average, in 5 to 20 epochs.
    classifier_max_iter : int or "auto", default="auto"
        Epochs of the classifiers (module M2); 0 leaves them at the labels' embeddings. With
        "auto", each pair is drawn 10 times on average, in 10 to 20 epochs.
    n_shards : int, default=1
        Number of random parts into which labels are split. The classifiers of each part are
        trained separately, in threads, with only the labels of the part as negatives: this is less
        work and gives another model.
    learning_rate, classifier_learning_rate : float or "auto", default="auto"
        Initial learning rates of Adam for the encoder and for the classifiers; they fall linearly
        to 0. "auto" is 0.003 and 0.01, or what suits a pretrained encoder.
    n_candidates : int, default=100
        Number of labels with the best classifiers whose scores are fused. If label features are
        known, given or made from texts, as many labels with the nearest features are added, and
        with ``index="exact"`` as many with the nearest means.
    index : {"exact", "product", "spherical", "faiss"} or MipsIndex, default="exact"
        The index that finds the labels with the best classifiers. All but "exact" find most of
        them, in less time if there are very many labels. Built on first use and not pickled; an
        instance is cloned.
    fusion : {"boosting", "tree", "sum"}, default="boosting"
        How the scores of a pair are fused. "boosting": the probability that the label is relevant,
        by gradient boosting and a logistic model, mixed as suits held-out instances best. "tree":
        the value of a regression tree plus the sum of the scores, as in [1]_. "sum": the sum of
        the scores alone; the other two fall back to it if nothing can be held out.
    objective : {"precision", "propensity"}, default="precision"
        The metric for which labels are ordered: "precision", for precision@k, orders them by
        probability; "propensity", for propensity-scored precision@k, by probability over
        propensity, so that rare labels come first where they are nearly as likely. Frequencies are
        weighted by `sample_weight`. "propensity" needs ``fusion="boosting"``. This may be changed
        after the fit, and does not affect ``predict`` with an indicator y.
    validation_fraction : float or "auto", default="auto"
        The share of the instances to hold out for `fusion` and the threshold of predictions, at
        most 10,000 instances. 0 holds nothing out. "auto" is a tenth, or 300 instances if that is
        more, but at most three tenths. Afterwards, the classifiers are trained again with all
        instances, and so is the encoder if more than a tenth was held out.
    label_names : array-like of shape (n_labels,), default=None
        Names of the columns of an indicator y, strings or integers, which become ``classes_``.
        None takes the column names of a data frame, otherwise the column numbers.
    top_k : int, default=100
        After a fit to a sparse y, how many of the best labels predict and decision_function
        consider.
    max_memory : int or str, default=None
        Limit, in bytes or as a string such as "8GB", on what a fit may hold beyond what the
        process held when the fit began, the model included; also on each answer. A fit that needs
        more is refused before it begins, in a message that names the largest array; answers are
        computed in pieces that fit. None allows what the machine has.
    n_jobs : int, default=None
        Number of threads. The model is bit-for-bit the same for any number.
    random_state : int, RandomState instance or None, default=None
        Seeds the encoder's start, mini-batches, positives drawn, and instances held out.
    verbose : int, default=0
        If not 0, print a line per epoch, at most one per second.
    checkpoint_dir : str or PathLike, default=None
        A folder in which ``fit`` saves its progress: encoder, classifiers and optimiser after an
        epoch, at most once a minute. If the process ends before the fit does, the same call
        resumes from there and gives the same bytes, with any `n_jobs`. Other data, parameters or
        versions are refused. The folder stays after the fit, takes about as much room as training
        does in memory, and is yours to remove. Use one folder per fit; it is not for searches,
        whose candidates would share it. Not for an encoder or sampler of your own.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Class labels after a 1-D y, otherwise the names or numbers of the columns.
    encoder_ : Encoder
        Trained.
    vectorizer_ : transformer or None
        Fitted; None if there is none or if no word of the training texts was left. Absent if the
        encoder reads features.
    label_embeddings_ : ndarray of shape (n_labels, embedding_dim)
        Unit vectors from the encoder; zeros for a label of which nothing is known.
    coef_ : ndarray of shape (n_labels, embedding_dim)
        Unit vectors, the classifiers.
    fusion_ : ScoreFusion or None
        The learned fusion; None if labels are ranked by the sum of the scores.
    threshold_ : float
        After an indicator fit: labels with a higher fused score are predicted. It is chosen such
        that held-out instances (training instances, if none are held out) get as many labels as
        they have.
    fit_report_ : dict of ndarray
        One row per epoch of the last training, as ``pandas.DataFrame(clf.fit_report_)`` shows it:
        ``module`` ("encoder" or "classifier"), ``epoch`` from 1 on, ``loss``, ``violations`` (the
        share of negatives within the margin), ``seconds``.
    n_iter_ : int
        Number of rows of ``fit_report_``.
    label_counts_ : ndarray of int64 of shape (n_labels,)
        Number of instances of each label passed to fit and ``partial_fit``, including held-out and
        repeated ones. Instances of weight 0 do not count; all others count once.
    n_samples_fit_ : int
        Number of instances passed to fit and ``partial_fit``, counted likewise.
    n_features_in_, feature_names_in_
        As in scikit-learn, also for the features in ``TextsWithFeatures``; absent after a fit to
        texts alone.

    See Also
    --------
    sklearn_xc.TextsWithFeatures : Texts, and features of yours beside them, as one X.
    sklearn_xc.OvALinearXC : Exact one-vs-all, which knows labels by their instances alone.
    sklearn_xc.DecompMIPSClassifier : A hidden layer trained with the labels that matter.

    Notes
    -----
    A dense X is read as sparse rows. The encoder is made for rows of norm 1 (tf-idf). Values above
    1e100 in float64, or 1e15 in float32, are refused; those below 1e-100 or 1e-15 count as zeros,
    which are not features.

    Instances that are equal, labels included, are merged into one with the sum of their weights.
    Texts are compared as strings, in ``TextsWithFeatures`` together with their features.

    With texts, features and embeddings are float32. An encoder of texts never sees features, so
    what it learns does not depend on the `vectorizer`. For a text without a known word, the cosine
    of features is 0 with all labels. An empty text is left out of training; if
    ``TextsWithFeatures`` gives it features, they are still compared with those of labels.

    For an instance of which nothing is known, without features or with none that fit has seen,
    every component, and so the fused score, is the label's share of the instances of fit: the most
    frequent labels come first. A label of which nothing is known, neither from an instance nor
    from a feature, comes last and is never predicted.

    Source: [1]_. It differs in the encoder, which is a transformer there; in that each instance
    has the same weight in a step, however many labels are within its margin; in that fused scores
    also use the cosine of the features and the means of instances, and treat labels without
    training instances like the rarest ones; and in `fusion`, which learns only from the pairs of
    shortlists.

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
        "encoder": "no_validation",  # parts are checked as they are made
        "label_features": "no_validation",
        "label_vectorizer": "no_validation",
        "vectorizer": [StrOptions({"tfidf"}), HasMethods(["fit", "transform"]), None],
        "embedding_dim": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "sampler": "no_validation",
        "margin": [Interval(Real, 0, 2, closed="both")],
        "classifier_margin": [Interval(Real, 0, 2, closed="both")],
        "radius": [Interval(Real, 0, None, closed="neither"), None],
        "batch_size": [Interval(Integral, 2, None, closed="left"), StrOptions({"auto"})],
        "max_iter": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "classifier_max_iter": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "n_shards": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "classifier_learning_rate": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"auto"}),
        ],
        "n_candidates": [Interval(Integral, 1, None, closed="left")],
        "index": "no_validation",
        "fusion": [StrOptions({"sum", *FUSIONS})],
        "objective": [StrOptions(set(OBJECTIVES))],
        "validation_fraction": [Interval(Real, 0, 1, closed="left"), StrOptions({"auto"})],
        "label_names": ["array-like", None],
        "top_k": [Interval(Integral, 1, None, closed="left")],
        "max_memory": [Interval(Real, 0, None, closed="neither"), str, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "checkpoint_dir": [str, PathLike, None],
    }

    def __init__(
        self,
        encoder: Any = "bag",
        *,
        label_features: Any = None,
        label_vectorizer: Any = None,
        vectorizer: Any = "tfidf",
        embedding_dim: Any = "auto",
        sampler: Any = "ngame",
        margin: float = 0.3,
        classifier_margin: float = 0.5,
        radius: float | None = None,
        batch_size: Any = "auto",
        max_iter: Any = "auto",
        classifier_max_iter: Any = "auto",
        n_shards: int = 1,
        learning_rate: Any = "auto",
        classifier_learning_rate: Any = "auto",
        n_candidates: int = 100,
        index: Any = "exact",
        fusion: str = "boosting",
        objective: str = "precision",
        validation_fraction: float | str = "auto",
        label_names: Any = None,
        top_k: int = 100,
        max_memory: int | str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        checkpoint_dir: Any = None,
    ) -> None:
        self.encoder = encoder
        self.label_features = label_features
        self.label_vectorizer = label_vectorizer
        self.vectorizer = vectorizer
        self.embedding_dim = embedding_dim
        self.sampler = sampler
        self.margin = margin
        self.classifier_margin = classifier_margin
        self.radius = radius
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.classifier_max_iter = classifier_max_iter
        self.n_shards = n_shards
        self.learning_rate = learning_rate
        self.classifier_learning_rate = classifier_learning_rate
        self.n_candidates = n_candidates
        self.index = index
        self.fusion = fusion
        self.objective = objective
        self.validation_fraction = validation_fraction
        self.label_names = label_names
        self.top_k = top_k
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint_dir = checkpoint_dir

    @fit_context(prefer_skip_nested_validation=False)  # vectorizers check themselves
    @built_apart
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, label_features: Any = None
    ) -> "NGAMEEmbeddingXC":
        """Train the encoder, the classifiers and the fusion.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features), array-like of str of shape (n,), \
                or TextsWithFeatures of shape (n, n_features)
            Instances: features, where float32 and float64 are kept and other dtypes become
            float64; for an encoder that reads texts, texts, alone or with features of your own.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_labels)
            One class per instance, or a binary indicator, dense or sparse; rows without labels are
            skipped.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances, 0 or from 1e-20 to 1e20; equal rows are merged into one with
            the sum of their weights.
        label_features : LabelFeatures, TextsWithFeatures, {array-like, sparse matrix} of shape \
                (n_labels, n_features), array-like of str of shape (n_labels,), or None, \
                default=None
            None takes those of the constructor.

        Returns
        -------
        estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            For NaN, a y that is not binary, label features with a number of rows other than
            n_labels or with other features than X, incompatible parameters, a `vectorizer` that
            does not make a sparse matrix of finite numbers, and training that diverged.
        SavedModelError
            If `checkpoint_dir` is that of another fit, or damaged.
        TypeError
            For a `checkpoint_dir` with an encoder or a sampler of your own.
        OSError
            If `checkpoint_dir` cannot be written; what it already holds stays.
        MemoryBudgetError
            If training needs more memory than `max_memory` or than the machine has; raised before
            training, with the largest array named.

        Warns
        -----
        UnseenLabelWarning
            For labels of which nothing is known: without an instance and without a feature.
        """
        with one_blas_thread():
            self._fit(X, y, None, sample_weight, label_features)
        self._warn_of_unseen()
        return self

    @fit_context(prefer_skip_nested_validation=False)  # vectorizers check themselves
    @built_apart
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> "NGAMEEmbeddingXC":
        """Train the classifiers for an epoch on further instances; the encoder is not changed.

        On an unfitted estimator, the first call is a fit: the encoder learns only from its
        instances, so pass many. Later calls train the classifiers of all labels together, whatever
        `n_shards` is.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features), array-like of str of shape (n,), \
                or TextsWithFeatures of shape (n, n_features)
            Instances, in the form of fit.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_labels)
            Their labels, in the form of the first call; may include labels added by
            ``add_labels``.
        classes : array-like of shape (n_labels,), default=None
            All classes, for a first call with a 1-D y that lacks some of them.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances, not negative.

        Returns
        -------
        estimator
            Itself. Fusion and threshold stay as they are; ``label_counts_`` grows.

        Raises
        ------
        ValueError
            As in fit; also for another kind of y, or other classes or columns, than before.
        MemoryBudgetError
            As in fit.

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
        >>> clf = clf.partial_fit(vectorizer.transform(["apple race", "a red pie"]), [0, 0])
        >>> clf.label_counts_
        array([22, 20])
        """
        with one_blas_thread():
            if not hasattr(self, "encoder_"):
                self._fit(X, y, classes, sample_weight, None, is_told=False)
                return self
            instances = self._instances(X, is_training=True)
            n = instances.shape[0]
            targets = check_further_targets(self, y, n, classes)
            weight = self._weights(sample_weight, n)
            self._partial_fit(self._examples(instances, targets, weight))
            self._count_instances(targets, weight, is_further=True)
        return self

    @built_apart
    def add_labels(
        self, X: Any = None, y: Any = None, *, label_features: Any = None, classes: Any = None
    ) -> "NGAMEEmbeddingXC":
        """Add labels whose features or text are known, but that have no instances.

        Their embeddings serve as their classifiers until ``partial_fit`` trains these. Nothing
        about the other labels changes.

        Parameters
        ----------
        X, y : None
            Not used: ``partial_fit`` learns from instances.
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
            If a label has no feature, so that nothing is known of it.

        Examples
        --------
        Add a label that is known only by its text:

        >>> from sklearn.feature_extraction.text import TfidfVectorizer
        >>> from sklearn_xc import LabelFeatures, NGAMEEmbeddingXC
        >>> texts = ["a red apple", "green apple pie", "fast red car", "the car race"] * 10
        >>> names = ["apple", "car"]
        >>> vectorizer = TfidfVectorizer().fit(texts)
        >>> clf = NGAMEEmbeddingXC(
        ...     label_features=LabelFeatures(names), label_vectorizer=vectorizer, label_names=names,
        ...     random_state=0,
        ... )
        >>> clf = clf.fit(vectorizer.transform(texts), [[1, 0], [1, 0], [0, 1], [0, 1]] * 10)
        >>> clf = clf.add_labels(label_features=["pie"], classes=["pie"])
        >>> labels, _ = clf.predict_topk(vectorizer.transform(["a pie"]), k=1)
        >>> clf.classes_[labels].tolist()
        [['pie']]
        """
        check_is_fitted(self)
        if X is not None or y is not None:
            raise ValueError(
                f"{type(self).__name__}.add_labels: X and y must be None: give label_features, and "
                "instances to partial_fit, which takes all labels."
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
            self._warn_of_added()
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        encoder = ENCODERS.get(self.encoder) if isinstance(self.encoder, str) else self.encoder
        if getattr(encoder, "reads", "rows") == "texts":
            tags.input_tags.string = tags.input_tags.one_d_array = True
            tags.input_tags.sparse = tags.input_tags.two_d_array = False
        return tags

    def _warn_of_added(self) -> None:
        """Warn of unseen labels, as deep below the caller as where ``fit`` does it."""
        self._warn_of_unseen()
