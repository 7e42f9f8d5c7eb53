"""Siamese encoder, classifiers and fused scores, trained on mini-batches of near instances."""

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._input.arguments import draw_seed
from sklearn_xc._input.checks import check_targets, check_weights, require_labels
from sklearn_xc._input.data import CsrRows, features_of
from sklearn_xc._input.parts import new_part
from sklearn_xc._input.sklearn_private import HasMethods, Interval, StrOptions, fit_context
from sklearn_xc._labels.features import LabelFeatures
from sklearn_xc._parallel.progress import Fit, check_time
from sklearn_xc._parallel.threads import count_threads, one_blas_thread
from sklearn_xc._state.checkpoints import Loop, checkpointed_loop, data_of
from sklearn_xc._state.fitted import fits_in_one_step
from sklearn_xc.base import threshold_for
from sklearn_xc.embedding._answers import EmbeddingAnswers
from sklearn_xc.embedding._examples import (
    Examples,
    LabelMeans,
    SubstituteNorms,
    held_out,
    mean_rows,
)
from sklearn_xc.embedding._fusion import FUSIONS, ShortlistPairs
from sklearn_xc.embedding._inputs import (
    TextRows,
    contents,
    encoder_input,
    fitted_vectorizer,
    is_described,
    sparse_features,
    vectorized_rows,
)
from sklearn_xc.embedding._memory import fit_arrays, require_memory
from sklearn_xc.embedding._ranking import KnownFeatures, is_exact
from sklearn_xc.embedding._training import (
    ClassifierModule,
    EncoderModule,
    SiameseEpoch,
    SiameseTraining,
    as_fit_report,
)
from sklearn_xc.embedding.encoders import ENCODERS
from sklearn_xc.embedding.encoders.protocol import Encoder, part_of
from sklearn_xc.embedding.samplers import SAMPLERS
from sklearn_xc.embedding.samplers.protocol import BatchSampler, Positives
from sklearn_xc.search import copy_index

#: Methods of every encoder and sampler; see `Encoder` and `BatchSampler`.
_ENCODER_METHODS = ("start", "encode", "forward", "learn")
_SAMPLER_METHODS = ("start", "refresh", "batches", "negatives", "select")
_CHECKPOINT_METHODS = ("_kept", "_resume")
#: Of the two modules: margin, and draws of a pair of an instance and a label with
#: ``max_iter="auto"``, in at most `_MOST_EPOCHS`.
_MARGIN = {"encoder": 0.3, "classifier": 0.5}
_DRAWS = {"encoder": 5, "classifier": 10}
_MOST_EPOCHS = 20
#: Held-out instances for fusion and threshold, at most. Source: appendix C of the paper.
_MOST_HELD_OUT = 10_000
#: ``validation_fraction="auto"``: a share, or as many as are enough, but no larger share than that.
#: P@1 at 305, 775 and 1,294 rows with three tenths, and a tenth: 46.0 and 41.6, 56.3 and 56.2, 44.6
#: and 43.2, all rows being trained on afterwards.
_SHARE, _ENOUGH, _LARGEST_SHARE = 0.1, 300, 0.3
#: Held-out instances that determine the norms of substitutes for means, at most.
_MOST_FOR_NORMS = 500
#: Weights of instances between which sums and products stay numbers, also of float32 in a tree.
_LIGHTEST, _HEAVIEST = 1e-20, 1e20


def _with_checkpoints(table: Mapping[str, type], protocol: type) -> dict[str, type]:
    """Return the parts of a registry that define the methods of checkpoints themselves."""
    defaults = [(name, getattr(protocol, name)) for name in _CHECKPOINT_METHODS]
    return {
        key: kind
        for key, kind in table.items()
        if all(getattr(kind, name, default) is not default for name, default in defaults)
    }


class Stages(NamedTuple):
    """The seed, the progress and the checkpoints of a training."""

    seed: int
    fit: Fit
    loop: Loop


class NGAMEEmbeddingXC(EmbeddingAnswers):
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
        1-D y), in the form of X: features, such as those that the vectorizer of X makes of label
        texts; texts, if the encoder reads texts; or both if X is ``TextsWithFeatures``.
        ``LabelFeatures`` keeps cross-validation from splitting them and, with ``classes``, also
        works for folds that lack a class. None takes the mean of a label's training instances; an
        encoder of texts needs texts.
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
        ``NgameSampler(batch_size=256)``, is cloned.
    max_iter : int or "auto", default="auto"
        Epochs of the encoder (module M1). An instance draws one of its labels per epoch; with
        "auto", each pair is drawn 5 times on average, in 5 to 20 epochs.
    classifier_max_iter : int or "auto", default="auto"
        Epochs of the classifiers (module M2); 0 leaves them at the labels' embeddings. With
        "auto", each pair is drawn 10 times on average, in 10 to 20 epochs.
    learning_rate : float or "auto", default="auto"
        Initial learning rate of Adam for the encoder; it falls linearly to 0. "auto" is 0.003, or
        what suits a pretrained encoder.
    n_candidates : int, default=100
        Number of labels with the best classifiers whose scores are fused. If label features are
        known, given or made from texts, as many labels with the nearest features are added, and
        with ``index="exact"`` as many with the nearest means.
    index : {"exact", "product", "spherical", "faiss"} or MipsIndex, default="exact"
        The index that finds the labels with the best classifiers. With very many labels, "product"
        finds nearly as many as "exact" in less time. "spherical" found fewer of trained classifiers
        in more time: see ``docs/tried.md``. Built on first use and not pickled; an instance is
        cloned.
    fusion : {"boosting", "tree", "sum"}, default="boosting"
        How the scores of a pair are fused. "boosting": the probability that the label is relevant,
        by gradient boosting and a logistic model, mixed as suits held-out instances best, from up
        to five scores; their sum if nothing can be held out. "sum": the sum of two, the inner
        products with embedding and classifier, of labels with the best classifiers. "tree": this
        sum plus the value of a regression tree, as in [1]_.
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
        process held when the fit began, the model included; also on dense answers. A fit that
        needs more is refused before it begins, in a message that names the largest array. None
        allows what the machine has.
    n_jobs : int, default=None
        Number of threads. The model is bit-for-bit the same for any number.
    random_state : int, RandomState instance or None, default=None
        Seeds the encoder's start, mini-batches, positives drawn, and instances held out.
    verbose : int, default=0
        If not 0, print a line per epoch, at most one per second.
    checkpoint_dir : str or PathLike, default=None
        A folder in which ``fit`` saves its progress: encoder, classifiers and optimiser after an
        epoch, at most once a minute. If the process ends before the fit does, the same call
        resumes from there and gives the same bytes, with any `n_jobs` or `max_memory`. Other data,
        parameters or versions are refused. The folder stays after the fit, takes about as much
        room as training does in memory, and is yours to remove. Use one folder per fit; it is not
        for searches, whose candidates would share it. Not for an encoder or sampler of your own.

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
        Unit vectors from the encoder; zeros for a label that nothing is known about.
    coef_ : ndarray of shape (n_labels, embedding_dim)
        Unit vectors, the classifiers.
    fusion_ : object or None
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
        Number of instances of each label passed to fit, including held-out and repeated ones.
        Instances of weight 0 do not count; all others count once.
    n_samples_fit_ : int
        Number of instances passed to fit, counted likewise.
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

    For an instance that nothing is known about, without features or with none that fit has seen,
    the score of a label is its share of the instances of fit: the most frequent labels come first.
    A label that nothing is known about, neither from an instance nor from a feature, comes last
    and is never predicted.

    Source: [1]_. It differs in the encoder, which is a transformer there; in that each instance
    has the same weight in a step, however many labels are within its margin; in the margin of the
    classifiers, 0.5; and, with "boosting", in that fused scores also use the cosine of the features
    and the means of instances, treat labels without training instances like the rarest ones, and
    are learned only from the pairs of shortlists.

    References
    ----------
    .. [1] K. Dahiya et al., "NGAME: negative mining-aware mini-batching for extreme
       classification", WSDM 2023.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn_xc import NGAMEEmbeddingXC
    >>> texts = ["a red apple", "green apple pie", "fast red car", "the car race"] * 10
    >>> vectorizer = TfidfVectorizer().fit(texts)
    >>> names = vectorizer.transform(["apple", "car"])
    >>> clf = NGAMEEmbeddingXC(label_features=names, random_state=0)
    >>> clf = clf.fit(vectorizer.transform(texts), [0, 0, 1, 1] * 10)
    >>> clf.predict(vectorizer.transform(["an apple", "my car"])).tolist()
    [0, 1]
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        "encoder": "no_validation",  # parts are checked as they are made
        "label_features": "no_validation",
        "vectorizer": [StrOptions({"tfidf"}), HasMethods(["fit", "transform"]), None],
        "embedding_dim": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "sampler": "no_validation",
        "max_iter": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "classifier_max_iter": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "n_candidates": [Interval(Integral, 1, None, closed="left")],
        "index": "no_validation",
        "fusion": [StrOptions({"sum", *FUSIONS})],
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
        vectorizer: Any = "tfidf",
        embedding_dim: Any = "auto",
        sampler: Any = "ngame",
        max_iter: Any = "auto",
        classifier_max_iter: Any = "auto",
        learning_rate: Any = "auto",
        n_candidates: int = 100,
        index: Any = "exact",
        fusion: str = "boosting",
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
        self.vectorizer = vectorizer
        self.embedding_dim = embedding_dim
        self.sampler = sampler
        self.max_iter = max_iter
        self.classifier_max_iter = classifier_max_iter
        self.learning_rate = learning_rate
        self.n_candidates = n_candidates
        self.index = index
        self.fusion = fusion
        self.validation_fraction = validation_fraction
        self.label_names = label_names
        self.top_k = top_k
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint_dir = checkpoint_dir

    @fit_context(prefer_skip_nested_validation=False)  # vectorizers check themselves
    @fits_in_one_step
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
            For labels that nothing is known about: without an instance and without a feature.
        """
        with one_blas_thread():
            self._set_parts()
            instances = self._instances(X, reset=True)
            n = instances.shape[0]
            targets = check_targets(self, y, n)
            weight = self._check_sample_weight(sample_weight, n)
            self._keep_targets(targets)
            every = Examples.distinct(instances, Positives(*targets.by_instance(n)), weight)
            require_labels(self, targets, every.weight)
            every = every._replace(X=self._fit_vectorizer(every.X))
            Z = self._label_rows_of_fit(label_features, every)
            data = data_of(instances, targets, weight) | {"X": contents(instances)}
            data["label_features"] = None if Z is None else contents(Z)
            with checkpointed_loop(self, data, draw_seed(self.random_state)) as (loop, seed):
                n = len(every.weight)
                train, held = held_out(every, len(self.classes_), self._n_to_hold_out(n), seed)
                self._require_memory(every, len(held), Z)
                encodes_again = len(held) > _SHARE * n and not self._ask("is_frozen")
                fit = Fit(self, X, y, sample_weight, 3 + bool(len(held)) + encodes_again)
                stages = Stages(seed, fit, loop.within("held-out"))
                epochs: dict[str, Sequence[SiameseEpoch]] = {}
                V, epochs["encoder"] = self._train_encoder(every, train, Z, stages)
                means, epochs["classifier"] = self._train_classifiers(every, train, V, stages)
                self._count_instances(targets, weight)
                fusing = fit.parts("fusion", 0, stage="fusion")
                self._learn_fusion(every, train, held, V, means, seed)
                fusing.close()
                if len(held):  # now with all instances
                    rows, stages = np.arange(n), stages._replace(loop=loop.within("all"))
                    if encodes_again:
                        V, epochs["encoder"] = self._train_encoder(every, rows, Z, stages)
                    means, epochs["classifier"] = self._train_classifiers(every, rows, V, stages)
                    self._keep_means(means)
                self.fit_report_ = as_fit_report(epochs)
                self.n_iter_ = len(self.fit_report_["loss"])
                self._ask("finish")()
                fit.end()
        self._warn_of_unseen()
        return self

    def _set_parts(self) -> None:
        """Set the encoder, and check the other parts."""
        name = type(self).__name__
        protocol = "sklearn_xc.embedding.encoders.Encoder"
        caller = f"{name}: encoder"
        self.encoder_ = new_part(self.encoder, ENCODERS, _ENCODER_METHODS, caller, protocol)
        sampler = self._new_sampler()
        copy_index(self.index, f"{name}: index")
        self._reads_texts = self._ask("reads") == "texts"
        self._has_two_scores = self.fusion != "boosting"
        self.__dict__.pop("vectorizer_", None)  # of an earlier fit
        if not self._reads_texts and not isinstance(self.vectorizer, str | None):
            raise ValueError(
                f"{name}: vectorizer must be 'tfidf', its default, or None: the encoder reads "
                f"features, not texts. Got {type(self.vectorizer).__name__}."
            )
        known = {
            "encoder": (self.encoder_, _with_checkpoints(ENCODERS, Encoder)),
            "sampler": (sampler, _with_checkpoints(SAMPLERS, BatchSampler)),
        }
        for part, (own, table) in known.items():
            if self.checkpoint_dir is not None and type(own) not in table.values():
                raise TypeError(
                    f"{name}: with checkpoint_dir, {part} must be one of {sorted(table)}, or an "
                    "object of their classes: what others learn cannot be saved. Fit without "
                    f"checkpoint_dir. Got {type(own).__name__}."
                )

    def _new_sampler(self) -> BatchSampler:
        """Return a sampler that has not started."""
        caller = f"{type(self).__name__}: sampler"
        protocol = "sklearn_xc.embedding.samplers.BatchSampler"
        return new_part(self.sampler, SAMPLERS, _SAMPLER_METHODS, caller, protocol)

    def _check_sample_weight(self, sample_weight: Any, n: int) -> np.ndarray:
        weight = check_weights(self, sample_weight, n)
        weight = np.ones(n) if weight is None else weight
        strange = weight[(weight > 0) & ((weight < _LIGHTEST) | (weight > _HEAVIEST))]
        if len(strange):
            raise ValueError(
                f"{type(self).__name__}: sample_weight must be 0 or from {_LIGHTEST:g} to "
                f"{_HEAVIEST:g}. Got {strange[0]:g}. Divide all by their mean."
            )
        return weight

    def _fit_vectorizer(self, X: CsrRows) -> CsrRows:
        """Return texts with features, given ones or made ones; other rows unchanged."""
        if not isinstance(X, TextRows):
            return X
        self.vectorizer_ = None
        if X.features is None:
            self.vectorizer_ = fitted_vectorizer(self.vectorizer, X.texts, type(self).__name__)
        if self.vectorizer_ is None:
            return X
        return TextRows.of(X.texts, vectorized_rows(self.vectorizer_, X.texts, type(self).__name__))

    def _label_rows_of_fit(self, label_features: Any, examples: Examples) -> CsrRows | None:
        """Return the rows of the labels of y, None if only instances are known."""
        given = self.label_features if label_features is None else label_features
        if isinstance(given, LabelFeatures):
            given = given.of_classes(self.classes_, f"{type(self).__name__}: label_features")
        features = sparse_features(examples.X)
        width = None if features is None else features.shape[1]
        return self._label_rows(given, len(self.classes_), examples.X.dtype, width)

    def _n_to_hold_out(self, n: int) -> int:
        share = self.validation_fraction
        if isinstance(share, str):
            share = min(_LARGEST_SHARE, max(_SHARE, _ENOUGH / max(1, n)))
        return min(_MOST_HELD_OUT, int(share * n))

    def _require_memory(self, every: Examples, n_held_out: int, Z: CsrRows | None) -> None:
        """Raise MemoryBudgetError for a fit that does not fit into memory."""
        n = len(every.weight)
        sampler = self._new_sampler()
        sampler.start(n, self._n_epochs("encoder", every), 0, None)
        has_words, has_features = (
            rows is not None and sparse_features(rows) is not None for rows in (every.X, Z)
        )
        n_kinds = 1 + has_features * (1 + is_exact(self.index))
        n_listed = min(n_kinds * self.n_candidates, len(self.classes_))
        pairs = n_held_out * (n_listed + 1), 3 + has_features + has_words
        arrays = fit_arrays(every, Z, self.encoder_, sampler, self._dim, len(self.classes_), pairs)
        require_memory(arrays, self._allowed_bytes(), type(self).__name__)

    def _train_encoder(
        self, every: Examples, rows: np.ndarray, Z: CsrRows | None, stages: Stages
    ) -> tuple[np.ndarray, Sequence[SiameseEpoch]]:
        """Train the encoder (M1) on some of the examples; return embeddings of all, and epochs."""
        n_labels = len(self.classes_)
        features = None if Z is None else sparse_features(Z)
        self._features = None if features is None else KnownFeatures(features)
        self._described = None if Z is None else is_described(Z)
        self._known = features_of(every.X)
        examples = every.take(rows)
        if Z is None:
            Z = mean_rows(examples.X, examples.label_matrix(n_labels))
        else:
            self._known |= features_of(Z)
        # Others cannot be embedded.
        examples = examples.take(np.flatnonzero(np.diff(examples.X.indptr) > 0))
        self._ask("name_features")(getattr(self, "feature_names_in_", None))
        self.encoder_.start(encoder_input(examples.X), self._dim, stages.seed)
        if (is_given := self._ask("is_given_")) is not None:
            self._known |= is_given
        known = np.flatnonzero(np.diff(Z.indptr) > 0)
        own = examples.of_labels(known, n_labels)
        dim = self._dim
        name = type(self).__name__
        n_jobs = count_threads(self.n_jobs)
        reads = self._new_sampler().reads
        module = EncoderModule(self.encoder_, own.X, Z.take(known), dim, n_jobs, name, reads)
        epochs = self._run("encoder", module, own, stages)
        self.label_embeddings_ = self._encode(Z, dim, Z.dtype)
        return self._encode(every.X, dim, Z.dtype), epochs

    def _train_classifiers(
        self, every: Examples, rows: np.ndarray, V: np.ndarray, stages: Stages
    ) -> tuple[LabelMeans, Sequence[SiameseEpoch]]:
        """Train classifiers (M2) on some of the examples, embedded by V; return means, epochs."""
        n_labels = len(self.classes_)
        self._seen = every.take(rows).frequencies(n_labels)
        rows = rows[np.diff(every.X.indptr)[rows] > 0]  # others cannot be embedded
        examples, V = every.take(rows), V[rows]
        self.coef_ = self.label_embeddings_.copy()
        module = ClassifierModule(V, self.coef_)
        epochs = self._run("classifier", module, examples, stages)
        return LabelMeans.of(examples, V, n_labels), epochs

    def _run(
        self, kind: str, module: EncoderModule | ClassifierModule, data: Examples, stages: Stages
    ) -> Sequence[SiameseEpoch]:
        """Train a module, a stage of the fit; a callback may stop it early."""
        n = len(data.weight)
        n_epochs = self._n_epochs(kind, data)
        n_parts = n_epochs if n else 0  # no instance may have a feature
        progress = stages.fit.parts("epoch", n_parts, stage=kind, unit=f"{kind} epoch")
        reports: Sequence[SiameseEpoch] = []
        if n:
            seed = stages.seed + (kind == "classifier")
            sampler = self._new_sampler()
            n_jobs = count_threads(self.n_jobs)
            sampler.start(n, n_epochs, seed, n_jobs)
            training = SiameseTraining(
                module,
                data,
                sampler,
                margin=_MARGIN[kind],
                rate=self._rate(kind),
                n_epochs=n_epochs,
                seed=seed,
                n_workers=n_jobs,
            )
            reports = training.fit(progress, stages.loop.within(kind))
        progress.close()
        return reports

    def _ask(self, name: str) -> Any:
        """Return an attribute or a method of the encoder, or the default of the protocol."""
        return part_of(self.encoder_, name)

    @property
    def _dim(self) -> int:
        """Dimension of the embeddings."""
        own = self.embedding_dim
        return int(self._ask("default_dim")() if own == "auto" else own)

    def _rate(self, kind: str) -> float:
        """Return the initial learning rate of a module."""
        if kind == "classifier":
            return float(self._ask("default_classifier_learning_rate"))
        own = self.learning_rate
        return float(self._ask("default_learning_rate") if own == "auto" else own)

    def _n_epochs(self, kind: str, examples: Examples) -> int:
        if kind == "encoder" and self._ask("is_frozen"):
            return 0
        n_epochs = self.max_iter if kind == "encoder" else self.classifier_max_iter
        if n_epochs != "auto":
            return int(n_epochs)
        n_pairs, n = len(examples.positives.labels), len(examples.weight)
        return round(min(_MOST_EPOCHS, _DRAWS[kind] * n_pairs / max(1, n)))

    def _learn_fusion(
        self,
        every: Examples,
        train: np.ndarray,
        held: np.ndarray,
        V: np.ndarray,
        means: LabelMeans,
        seed: int,
    ) -> None:
        """Learn to fuse scores from held-out instances, and set the threshold of predictions."""
        self.fusion_ = None
        self.threshold_ = 0.0
        self._substitute_norms = SubstituteNorms()
        some = held[:_MOST_FOR_NORMS]
        words = self._label_words
        if len(some) and words is not None:
            features = sparse_features(every.X.take(some))
            self._substitute_norms = means.substitute_norms(
                V[some], features, self.label_embeddings_, words
            )
        self._keep_means(means)
        check_time()
        if self.fusion != "sum" and len(held):
            self._fit_fusion(every.take(held), V[held], seed)
        check_time()
        if self._targets_kind != "classes":
            rng = np.random.default_rng((seed, 2))
            rows = held if len(held) else np.sort(rng.permutation(train)[:_MOST_HELD_OUT])
            examples = every.take(rows)
            k = self._n_considered()
            _, scores = self._topk_of(examples.X, k, embedded=V[rows])
            self.threshold_ = threshold_for(scores, len(examples.positives.labels))

    def _fit_fusion(self, examples: Examples, V: np.ndarray, seed: int) -> None:
        """Fit the fusion to the pairs of shortlists, if some are relevant and some are not."""
        pairs = ShortlistPairs.of_shortlists(
            examples,
            V,
            self._ranking(with_index=True),
            self.n_candidates,
            len(self.classes_),
            with_own=self._has_two_scores,
        )
        if not self._has_two_scores:
            # Every label of a held-out instance also has training instances, by choice: labels
            # without any would seem to be always wrong. When fused, they count as the rarest.
            pairs = pairs.take(np.flatnonzero(self._seen.counts[pairs.label] > 0))
        if pairs.is_own.any() and not pairs.is_own.all():
            fusion = FUSIONS[self.fusion](random_state=seed)
            self.fusion_ = fusion.fit(pairs, self._seen.counts[pairs.label])

    @property
    def _label_words(self) -> CsrRows | None:
        """Features of the labels, in rows of norm 1."""
        return None if self._features is None else self._features.rows

    def _keep_means(self, means: LabelMeans) -> None:
        """Keep means, with substitutes for labels without instances."""
        own = self.label_embeddings_, self._label_words
        self._means = means.filled(*own, self._substitute_norms)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        encoder = ENCODERS.get(self.encoder) if isinstance(self.encoder, str) else self.encoder
        if part_of(encoder, "reads") == "texts":
            tags.input_tags.string = tags.input_tags.one_d_array = True
            tags.input_tags.sparse = tags.input_tags.two_d_array = False
        return tags
