"""Classification over many labels, trained on those that a decomposed search finds."""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np

from sklearn_xc._input.arguments import draw_seed
from sklearn_xc._input.checks import (
    check_class_array,
    check_rows,
    check_targets,
    check_weights,
    require_labels,
)
from sklearn_xc._input.data import DENSE_SHARE, LabelFrequencies
from sklearn_xc._input.given_vectors import GivenVectors
from sklearn_xc._input.sklearn_private import Interval, StrOptions, fit_context
from sklearn_xc._parallel.progress import Fit
from sklearn_xc._parallel.threads import count_threads, one_blas_thread
from sklearn_xc._state.fitted import fits_in_one_step, shallow_copy
from sklearn_xc._warnings import warn
from sklearn_xc.base import threshold_for
from sklearn_xc.decomposition._model import HiddenLayerModel
from sklearn_xc.decomposition._training_set import TrainingConfig, TrainingSet, merge_instances
from sklearn_xc.decomposition._weights import (
    KnownWeights,
    Weights,
    common_places,
    frequencies_of,
    hidden_dim_for,
    initial_weights,
    require_training_bytes,
)
from sklearn_xc.decomposition.gradients import make_gradient
from sklearn_xc.decomposition.gradients.protocol import Gradient, SetLoss
from sklearn_xc.decomposition.losses import LabelSetLoss, make_label_set_loss
from sklearn_xc.decomposition.search import RateAndEpochs, choose_rate_and_epochs
from sklearn_xc.decomposition.training import (
    RECALL_K,
    EpochReport,
    NotFiniteError,
    Trainer,
)
from sklearn_xc.exceptions import ConvergenceWarning
from sklearn_xc.search import MipsIndex, make_index

#: n_candidates=None: this share of the labels, but at least 64.
_SHARE, _LEAST_CANDIDATES = 0.01, 64
#: A warning says that nDCG@5 of held-out instances still rose by this in the last epoch.
_STILL_RISING = 0.01
#: Most training instances and scores that the threshold is set by, and the fewest instances.
_INSTANCES = 1000
_SCORES = 10**8
_LEAST_INSTANCES = 50


class DecompMIPSClassifier(HiddenLayerModel):
    """Classifier with a label vector for each label, trained on the labels that matter.

    The score of label k is ``w_k . phi(x) + b_k``, where phi(x) is a dense instance itself, or the
    hidden layer of a sparse one: the sum of the trained vectors of its features. With a loss over
    all labels, an instance's gradient is large only for its own labels and for a few others that
    score too high. Instead of computing the scores of all labels, each step searches for these and
    moves only them.

    The search is decomposed [1]_: the columns of the label vectors are cut into small blocks, each
    block is clustered separately, and a label's score is estimated by the sum of the scores of its
    centroids. That takes one byte operation per label and block, 64 labels at a time
    (:class:`~sklearn_xc.search.ProductIndex`). The best `n_candidates` are then scored exactly,
    best first, until no further label can have a gradient.

    Parameters
    ----------
    loss : {"margin", "softmax", "triplet"} or LabelSetLoss, default="margin"
        "margin" is the largest violation of ``z_own >= z_other + 1``, smoothed; its gradient
        involves few labels. "softmax" is the cross-entropy, summed over the labels of an instance.
        "triplet" is the sum of all violations. An object has its own parameters, such as
        ``MaxMargin(smoothing=5.0)``; see :mod:`sklearn_xc.decomposition.losses`.
    gradient : {"decomp_mips", "mips", "sampled", "exact"} or Gradient, default="decomp_mips"
        Which labels the gradient with respect to the scores is computed for: those that a
        decomposed search finds; those that a plain search for large inner products finds; labels
        drawn at random; all labels. Algorithm 2 of [1]_ is ``MessagePassing(1, absent="zero")``;
        see :mod:`sklearn_xc.decomposition.gradients`.
    index : {"product", "spherical", "exact", "faiss"} or MipsIndex or None, default=None
        The index to search in training and in ``predict_topk(exact=False)``. None leaves the
        choice to the gradient: "product" for a decomposed search, otherwise "spherical". "product"
        reads the codes of all labels; "spherical" reads few rows, but finds less of trained weights
        at the same cost: see ``docs/tried.md``. "faiss" needs the extra of that name.
        An object, such as ``SphericalIndex(n_clusters=500)``, is copied for each use; see
        :mod:`sklearn_xc.search`.
    n_candidates : int or None, default=None
        Number of labels to retrieve, or to draw, for an instance. None is a hundredth of the
        labels, at least 64.
    embedding_dim : int, "auto" or None, default="auto"
        Dimension of the learned embedding, a hidden layer; 0 and None mean no hidden layer. "auto"
        is 100 if fewer than a fifth of the entries of X are non-zero, as in bags of words, and no
        layer otherwise, as for embeddings and pixels; see `embedding_dim_`. With
        ``metric="mahalanobis"``, "auto" is the number of features, or 100 for more than 1,000; 0
        and None are the number of features. With `embedding_init`, "auto" is the dimension of these
        vectors.
    embedding_init : array-like of shape (n_features, embedding_dim), fitted DecompMIPSSkipGram, \
            tuple of (words, vectors), or None, default=None
        Vectors of features from which the hidden layer starts; None is for random ones. Features
        that are not among the words, or whose row is zero, start at random. The others are scaled
        to the mean norm of random ones and are used from then on, even for features that no
        training instance has. Words are matched with the feature names of a data frame; without
        names, pass the array that ``vectors.transform(vectorizer.get_feature_names_out())`` makes,
        with ``handle_unknown="zero"``. Searches clone parameters, which unfits them: pass
        ``(vectors.words_, vectors.vectors_)``. This helps with few instances, if the vectors come
        from many more texts like them: see ``docs/word_vectors.md``. Not for
        ``metric="mahalanobis"``.
    metric : {"inner_product", "euclidean", "mahalanobis"}, default="inner_product"
        How scores are computed. "euclidean" is metric learning with proxies [3]_: the score of
        label k is ``-||phi(x) - y_k||^2``, where y_k is a trained point for each label and phi(x)
        is as above. "mahalanobis" is ``-(x - p_k)' M (x - p_k)`` with a trained M, which begins as
        the identity: the Euclidean distance of ``L'x`` from ``L'p_k`` with ``M = L L'``, where L
        is a hidden layer of all features, even for a dense X. Both distances are for dense
        instances between which distances are meaningful, such as embeddings of faces or images,
        and for labels with few instances each. "mahalanobis" learns which columns matter; it takes
        n_features times `embedding_dim_` multiplications per instance. The margin and the scale of
        losses are 1: scale X such that squared distances between classes are of that order, or use
        "mahalanobis", which learns the scale. With 100,000 labels or more, try rows of norm 5.
        Distances are not for bags of words, where inner products rank better. With them, "triplet"
        needs small rates, which "auto" finds, and L or phi(x) of full dimension. The loss must
        depend only on differences of scores, as the named ones do: its gradient sums to 0.
    fit_intercept : bool, default=True
        Whether labels have intercepts. If at least a fifth of the entries of X are non-zero,
        intercepts are trained together with the vectors, at a lower rate where labels are many.
        If X is sparser, trained intercepts improve no answer, and they stay 0. In both cases, an
        instance without features, such as a text without a known word, is answered by the training
        frequencies of the labels: the most frequent labels rank first, and the prediction is the
        labels that more than half of the instances have, or the most frequent class. Without
        intercepts, all labels score 0 for such an instance. With proxies (`metric`) there is
        nothing to train, and this only decides whether frequencies answer for a row of zeros;
        False makes it a point like any other.
    dropout : float, default=0.2
        The share of the features of an instance that are left out at random at each visit, if
        there is a hidden layer; at least 0 and below 1. It keeps long training from overfitting. 0
        is faster at first. Not used with ``metric="mahalanobis"``.
    learning_rate : float or "auto", default="auto"
        Step size, for the gradient of the summed loss of a mini-batch, so that a good value does
        not depend on `batch_size`; it falls as ``learning_rate / (1 + epochs)``. "auto" tries 1
        (0.3 without a hidden layer, 0.1 for proxies without one or with a full L), a third and
        three times as much, and continues in the direction that helps: two epochs each, compared
        by nDCG@5 on up to 2,000 held-out instances. Another rate must be better by two standard
        errors. The trial of the best rate continues until nDCG@5 has not improved for two epochs,
        and the model is then trained on all instances for the best number of epochs. With fewer
        than 150 instances, the first rate and `max_iter` epochs are taken.
    batch_size : int, default=10
        Number of instances whose gradients are taken at the same weights.
    max_iter : int, default=10
        Number of epochs; with ``learning_rate="auto"``, the maximum.
    label_names : array-like of shape (n_labels,), default=None
        Names of the columns of an indicator y, strings or integers, which become ``classes_``.
        None takes the column names of a data frame, otherwise the column numbers.
    top_k : int, default=100
        After a fit to a sparse y, how many of the best labels predict and decision_function
        consider.
    warm_start : bool, default=False
        Whether ``fit`` starts from the current weights, for labels and features with the same
        names, and continues at the current learning rate for `max_iter` epochs. Labels and
        features may be added or left out; `metric`, `fit_intercept` and `embedding_dim` must
        stay.
    max_memory : int or str, default=None
        Limit, in bytes or as a string such as "8GB", on what a fit may hold beyond what the
        process held when the fit began, the model included; also on each dense answer. None allows
        what the machine has.
    n_jobs : int, default=None
        Number of threads that share predictions and, where labels are many, the instances of a
        mini-batch. The model is bit-for-bit the same for any number.
    random_state : int, RandomState instance or None, default=None
        Seeds the order of the instances, initial weights, dropout, label samples and centroids.
    verbose : int, default=0
        If not 0, print progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Class labels after a 1-D y, otherwise the names or numbers of the columns.
    embedding_dim_ : int
        Dimension of the hidden layer, 0 if there is none.
    coef_ : ndarray of shape (n_labels, dim)
        A vector for each label; two for two classes. They are averages over the steps, where later
        steps count more [2]_. Where scores are distances, twice the proxies.
    intercept_ : ndarray of shape (n_labels,)
        Added to the inner products; zeros without `fit_intercept`, and where X is sparse. Scores
        are ``embed(X) @ coef_.T + intercept_``; those of an instance without features are the log
        odds of the labels' frequencies in training, plus `threshold_`. With proxies, the
        intercepts are minus the squared norms of the proxies; the squared norm of the embedded
        instance is also subtracted from scores, so that they are minus squared distances.
    feature_embedding_ : ndarray of shape (n_features, dim) or None
        The hidden layer: a vector for each feature. L of a Mahalanobis distance, whose M is ``L @
        L.T``.
    threshold_ : float
        After an indicator fit: labels with a higher score are predicted. It is chosen such that up
        to a thousand training instances (with intercepts, only those with features) get as many
        labels as they have. With proxies it is minus a squared distance: labels nearer than that
        are predicted.
    index_recall_ : float or None
        Recall at 10 of the last index built for training, for 64 training instances.
    n_candidates_ : int
        As given or as chosen.
    learning_rate_ : float
        As given or as found.
    validation_scores_ : ndarray of shape (n_epochs,) or None
        nDCG@5 of the held-out instances after each epoch of the trial of the best rate; None with
        a given learning rate or too few instances.
    fit_report_ : dict of ndarray of shape (n_iter,)
        One row per epoch: ``loss``, the mean over its steps, over the labels considered;
        ``learning_rate``, at its beginning; ``index_recall``, NaN if no index was built;
        ``seconds``. ``pandas.DataFrame(clf.fit_report_)`` shows it as a table.
    n_iter_ : int
        Number of epochs of the last fit.
    label_counts_ : ndarray of int64 of shape (n_labels,)
        Number of instances of each label in the last fit, with a weight above 0.
    n_samples_fit_ : int
        Number of instances with a weight above 0, including those without labels.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    sklearn_xc.ImplicitSoftmaxSGD : Unbiased softmax for sparse instances, without a hidden layer.
    sklearn_xc.OvALinearXC : Exact one-vs-all, for sparse instances.

    Notes
    -----
    A step of the hidden layer is divided by the squared norm of the instance if that is above 1,
    and its gradient is cut at norm 1, so that training does not diverge; the layer is meant for
    normalised rows (tf-idf). Equal instances with the same labels are merged into one with a
    weight.

    Proxies start three tenths of the way from the mean of all instances to the mean of their own.
    Their steps are divided by 1 plus twice the rate times the absolute sum of the gradients with
    respect to the label's scores: no proxy moves farther than to the farthest instance that moves
    it.

    Memory: twice the weights, for their averages, and dim/4 bytes per label for the index. Time of
    a step, per instance: dim/4 byte look-ups per label, 64 at once with AVX-512, and a few hundred
    inner products.

    Source: [1]_. It differs in the search, as algorithm 2 of the paper is `MessagePassing` here;
    in that labels that were not retrieved are absent instead of having the score 0; and in the
    unit of time of the learning rate.

    References
    ----------
    .. [1] I. E.-H. Yen, S. Kale, F. X. Yu, D. Holtmann-Rice, S. Kumar and P. Ravikumar, "Loss
       decomposition for fast learning in large output spaces", ICML 2018.
    .. [2] O. Shamir and T. Zhang, "Stochastic gradient descent for non-smooth optimization:
       convergence results and optimal averaging schemes", ICML 2013.
    .. [3] Y. Movshovitz-Attias, A. Toshev, T. K. Leung, S. Ioffe and S. Singh, "No fuss distance
       metric learning using proxies", ICCV 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn_xc import DecompMIPSClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = DecompMIPSClassifier(random_state=0).fit(X / 16, y)
    >>> bool(clf.score(X / 16, y) > 0.95)
    True
    >>> clf.embed(X / 16).shape
    (1797, 64)
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        # make_label_set_loss, make_gradient and make_index check these
        "loss": "no_validation",
        "gradient": "no_validation",
        "index": "no_validation",
        "n_candidates": [Interval(Integral, 1, None, closed="left"), None],
        "embedding_dim": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"}), None],
        "embedding_init": "no_validation",  # GivenVectors checks it
        "metric": [StrOptions({"inner_product", "euclidean", "mahalanobis"})],
        "fit_intercept": ["boolean"],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "label_names": ["array-like", None],
        "top_k": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "max_memory": [Interval(Real, 0, None, closed="neither"), str, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        loss: str | LabelSetLoss = "margin",
        *,
        gradient: str | Gradient = "decomp_mips",
        index: str | MipsIndex | None = None,
        n_candidates: int | None = None,
        embedding_dim: int | str | None = "auto",
        embedding_init: Any = None,
        metric: str = "inner_product",
        fit_intercept: bool = True,
        dropout: float = 0.2,
        learning_rate: float | str = "auto",
        batch_size: int = 10,
        max_iter: int = 10,
        label_names: Any = None,
        top_k: int = 100,
        warm_start: bool = False,
        max_memory: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.gradient = gradient
        self.index = index
        self.n_candidates = n_candidates
        self.embedding_dim = embedding_dim
        self.embedding_init = embedding_init
        self.metric = metric
        self.fit_intercept = fit_intercept
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.label_names = label_names
        self.top_k = top_k
        self.warm_start = warm_start
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    embedding_dim_: int
    fit_report_: dict[str, np.ndarray]
    index_recall_: float | None
    learning_rate_: float
    validation_scores_: np.ndarray | None
    n_iter_: int

    @fit_context(prefer_skip_nested_validation=True)
    @fits_in_one_step
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "DecompMIPSClassifier":
        """Train the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances. float32 and float64 are kept; other dtypes become float64.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_labels)
            One class per instance, or a binary indicator, dense or sparse; rows without labels are
            skipped.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances. A weight of 2 is a repeated row, a weight of 0 a missing one.
            An instance is visited once per unit of its weight, up to 64 times per epoch.

        Returns
        -------
        estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            For NaN, a y that is not binary, incompatible parameters, or a learning rate at which
            training diverges.
        MemoryBudgetError
            If the weights do not fit into memory; raised before anything is allocated.

        Warns
        -----
        ConvergenceWarning
            If ``learning_rate="auto"`` and held-out instances were still ranked much better in the
            last of `max_iter` epochs.
        UnseenLabelWarning
            If labels have no training instance.

        Notes
        -----
        The model depends neither on the order of the rows nor on `n_jobs`.
        """
        seed = draw_seed(self.random_state)
        before = None
        if self.warm_start and hasattr(self, "coef_"):
            before = dict(vars(self))
        # 1. The problem: distinct instances and their label sets, the loss and the gradient.
        training = self._read(X, y, sample_weight, before)
        known = None if before is None else self._known_weights(before, training)
        config = self._config(training, seed, known)
        searches = isinstance(self.learning_rate, str) and known is None
        require_training_bytes(config, training, 1 + searches, self._allowed_bytes())
        fit = Fit(self, X, y, sample_weight, n_stages=1 + searches)
        try:
            with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
                # 2. The learning rate and the number of epochs, by held-out instances.
                if searches:
                    progress = fit.parts("trial", None, stage="search")
                    choice = choose_rate_and_epochs(config, training, self.max_iter, progress)
                    progress.close()
                else:
                    is_known = isinstance(self.learning_rate, str)
                    rate = float(self.learning_rate_ if is_known else self.learning_rate)
                    choice = RateAndEpochs(rate, self.max_iter)
                self.learning_rate_, self.validation_scores_ = choice.rate, choice.scores
                # 3. Epochs of mini-batches. For each: a guided search for the labels that matter,
                #    the gradient of the loss over them, a step of their vectors (batch_sgd.py).
                frequencies = frequencies_of(training)
                weights = initial_weights(config, training, frequencies, known)
                done = 0.0 if known is None else self._epochs_done
                trainer = Trainer(config, training, weights, choice.rate, done)
                self._keep_training_set(config, training, frequencies, known)
                self._run_epochs(trainer, choice.n_epochs, fit)
        except NotFiniteError as error:
            raise self._diverged(training) from error
        fit.end()
        self._warn_of_unseen()
        self._warn_of_epochs(choice)
        return self

    # The steps of a fit

    def _read(
        self, X: Any, y: Any, sample_weight: Any, before: dict[str, Any] | None
    ) -> TrainingSet:
        """Validate the data, and merge equal instances."""
        instances = check_rows(self, X, reset=True)
        n = instances.shape[0]
        classes = None
        if before is not None and before["_targets_kind"] == "classes" and np.ndim(y) == 1:
            now = np.asarray(check_class_array(y, f"{type(self).__name__}: y"))
            classes = np.union1d(before["classes_"], now)
        targets = check_targets(self, y, n, classes)
        weight = check_weights(self, sample_weight, n)
        weight = np.ones(n) if weight is None else weight
        training = merge_instances(instances, targets, weight)
        require_labels(self, targets, training.rows)
        return training

    def _known_weights(self, before: dict[str, Any], training: TrainingSet) -> KnownWeights:
        """Return the weights of the last fit, with the labels and features that both fits have."""
        caller = type(self).__name__
        d = training.instances.shape[1]
        fixed = {"fit_intercept": before["_has_intercept"], "metric": before["_metric"]}
        if not isinstance(self.embedding_dim, str) and self.metric != "mahalanobis":
            fixed["embedding_dim"] = before["embedding_dim_"]
        for name, value in fixed.items():
            if (getattr(self, name) or 0) != value:
                raise ValueError(
                    f"{caller}: {name}={getattr(self, name)!r} does not fit the weights of the "
                    f"last fit, which had {name}={value!r}. Set it back, or set warm_start=False."
                )
        kinds = {"classes": "1-D", "dense": "a dense indicator", "sparse": "a sparse indicator"}
        was, now = kinds[before["_targets_kind"]], kinds[training.targets.kind]
        if was != now:
            raise ValueError(f"{caller}: y was {was} in the first call, now it is {now}.")
        names = before.get("feature_names_in_"), vars(self).get("feature_names_in_")
        if names[0] is not None and names[1] is not None:
            features = common_places(*names)
        elif before["n_features_in_"] == d:
            features = np.arange(d), np.arange(d)
        else:
            raise ValueError(
                f"X has {d} features, but {caller} is expecting {before['n_features_in_']} "
                "features as input. Features of a data frame are matched by name."
            )
        labels = common_places(before["classes_"], training.targets.classes)
        weights = Weights(before["coef_"], before["intercept_"], before["feature_embedding_"])
        return KnownWeights(weights, labels, features)

    def _config(
        self, training: TrainingSet, seed: int, known: KnownWeights | None
    ) -> TrainingConfig:
        """Return the parameters, validated and resolved for the training set."""
        name, share = type(self).__name__, training.share_of_nonzeros
        loss = make_label_set_loss(self.loss, f"{name}: loss")
        make_index(self._index_kind(), caller=f"{name}: index")
        dim = self.embedding_dim
        given = self._given_vectors()
        if known is not None:
            dim = 0 if known.weights.features is None else known.weights.features.shape[1]
        elif given is not None:
            dim = given.dim
        least = max(_LEAST_CANDIDATES, math.ceil(_SHARE * training.n_labels))
        if known is None:
            is_dense = share >= DENSE_SHARE
            self._trains_intercept = self.metric != "inner_product" or (
                self.fit_intercept and is_dense
            )
        return TrainingConfig(
            name=name,
            loss=SetLoss.of(loss),
            gradient=make_gradient(self.gradient, f"{name}: gradient"),
            index=self._index_kind(),
            n_candidates=min(training.n_labels, self.n_candidates or least),
            hidden_dim=hidden_dim_for(dim, self.metric, share, training.instances.shape[1]),
            has_intercept=self._trains_intercept,
            embedding_init=given if known is None else None,
            feature_names=vars(self).get("feature_names_in_"),
            metric=self.metric,
            dropout=0.0 if self.metric == "mahalanobis" else self.dropout,
            batch_size=self.batch_size,
            n_workers=count_threads(self.n_jobs, f"{name}: n_jobs"),
            seed=seed,
        )

    def _given_vectors(self) -> GivenVectors | None:
        """Return `embedding_init`, validated."""
        name, dim = type(self).__name__, self.embedding_dim
        if self.embedding_init is None:
            return None
        given = GivenVectors.read(self.embedding_init, f"{name}: embedding_init")
        if self.metric == "mahalanobis":
            raise ValueError(
                f"{name}: embedding_init is for metric='inner_product' or 'euclidean'. Got "
                "metric='mahalanobis', whose hidden layer starts as the identity."
            )
        if not isinstance(dim, str) and dim != given.dim:
            raise ValueError(
                f"{name}: embedding_dim={dim!r} does not go with embedding_init, whose vectors "
                f"have dimension {given.dim}. Set it to {given.dim}, or to 'auto'."
            )
        return given

    def _index_kind(self) -> str | MipsIndex:
        if self.index is not None:
            return self.index
        return make_gradient(self.gradient, f"{type(self).__name__}: gradient").default_index

    def _keep_training_set(
        self,
        config: TrainingConfig,
        training: TrainingSet,
        frequencies: LabelFrequencies,
        known: KnownWeights | None,
    ) -> None:
        """Set the fitted attributes that do not depend on the weights."""
        seen_before = np.zeros(training.n_labels, bool)
        if known is not None:
            was_seen = np.ones(len(self.classes_), bool)
            was_seen[self._unseen_labels] = False
            seen_before[known.labels[1]] = was_seen[known.labels[0]]
        self._keep_targets(training.targets)
        self._count_instances(training.targets, training.given_weight)
        self._unseen_labels = np.flatnonzero((self.label_counts_ == 0) & ~seen_before)
        self.embedding_dim_, self.n_candidates_ = config.hidden_dim, config.n_candidates
        self._metric, self._has_intercept = config.metric, bool(self.fit_intercept)
        self._frequencies = frequencies

    def _run_epochs(self, trainer: Trainer, n_epochs: int, fit: Fit) -> None:
        """Train, and set the other fitted attributes."""
        progress = fit.parts("epoch", n_epochs, stage="training")
        reports: list[EpochReport] = []

        def model_now() -> dict[str, Any]:  # for callbacks
            model = shallow_copy(self, dict(vars(self)))
            copies = (None if array is None else array.copy() for array in trainer.weights())
            model._keep_weights(trainer, Weights(*copies), reports)
            return vars(model)

        for _ in range(n_epochs):
            task = progress.begin()
            reports.append(trainer.epoch())
            text = f"loss {reports[-1].loss:.4g}"
            if trainer.recall is not None:
                text += f", recall@{RECALL_K} of the index {trainer.recall:.3f}"
            if progress.end(task, text, model_now):
                break
        progress.close()
        self._keep_weights(trainer, trainer.weights(), reports)

    def _keep_weights(self, trainer: Trainer, weights: Weights, reports: list[EpochReport]) -> None:
        """Set the fitted attributes that depend on the weights.

        Raises
        ------
        NotFiniteError
            If weights, or scores of the training instances, are not finite.
        """
        self.coef_, self.intercept_, self.feature_embedding_ = weights
        self._epochs_done, self.index_recall_ = trainer.epochs_done, trainer.recall
        columns = zip(EpochReport._fields, zip(*reports, strict=True), strict=True)
        self.fit_report_ = {name: np.array(values) for name, values in columns}
        self.n_iter_ = len(reports)
        if not self._is_finite_on(trainer.training):
            raise NotFiniteError
        self.threshold_ = 0.0
        self.threshold_ = self._threshold_for(trainer.training, trainer.config.seed)

    def _is_finite_on(self, training: TrainingSet) -> bool:
        """Return whether weights are finite, and no score of an instance can overflow."""
        arrays = [self.coef_, self.feature_embedding_, training.instances.arrays[-1]]
        sizes = [
            np.abs([a.min(initial=0), a.max(initial=0)]).max() for a in arrays if a is not None
        ]
        n_terms = training.instances.shape[1] * self.coef_.shape[1]
        largest = n_terms * math.prod(map(float, sizes)) + np.abs(self.intercept_).max()
        return bool(largest < np.finfo(self.coef_.dtype).max)

    def _threshold_for(self, training: TrainingSet, seed: int) -> float:
        """Return the score above which instances have as many labels as in training.

        0 for classes. Instances without features do not count, as their margins are fixed.
        """
        if training.targets.kind == "classes":
            return 0.0
        rng = np.random.default_rng((seed, 5))
        n = max(_LEAST_INSTANCES, _SCORES // training.n_labels)
        rows = np.sort(rng.permutation(training.rows)[: min(n, _INSTANCES)])
        k = self._n_considered()
        scores = []
        with_features = []
        for own, V in self._pieces(training.instances.take(rows)):
            kept = np.delete(np.arange(len(V)), self._blank(V))
            scores.append(self._best(V[kept], k)[1])
            self._as_scores(V[kept], scores[-1])
            with_features.append(rows[own][kept])
        rows = np.concatenate(with_features)
        if not rows.size:
            return 0.0
        n_labels = int((training.sets.indptr[rows + 1] - training.sets.indptr[rows]).sum())
        return threshold_for(np.concatenate(scores), n_labels)

    def _diverged(self, training: TrainingSet) -> ValueError:
        """Return the error of a training that diverged."""
        return ValueError(
            f"{type(self).__name__}: training diverged at learning_rate={self.learning_rate_:g}. "
            "Lower it, or scale X (sklearn.preprocessing.normalize), whose largest entry is "
            f"{np.abs(training.instances.arrays[-1]).max(initial=0):g}, or sample_weight, whose "
            f"largest is {training.given_weight.max():g}."
        )

    def _warn_of_epochs(self, choice: RateAndEpochs) -> None:
        """Warn if held-out instances were still ranked better in the last epoch."""
        scores = choice.scores
        if scores is None or len(scores) < max(2, self.max_iter):
            return
        gain = float(scores[-1] - scores[:-1].max())
        if gain > _STILL_RISING:
            warn(
                f"{type(self).__name__}: held-out instances were still ranked better, by "
                f"{gain:.2g} of nDCG@5, in the last of max_iter={self.max_iter} epochs. Raise "
                "max_iter or learning_rate.",
                ConvergenceWarning,
            )
