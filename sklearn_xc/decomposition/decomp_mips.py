"""Classification over many labels, trained on those that a decomposed search finds."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sklearn_xc._blank_rows import features_of
from sklearn_xc._checks import (
    check_further_targets,
    check_rows,
    check_targets,
    check_weights,
    require_labels,
)
from sklearn_xc._data import DENSE_SHARE, CsrRows, DenseRows, Targets
from sklearn_xc._sklearn import Interval, StrOptions, fit_context
from sklearn_xc._state import built_apart
from sklearn_xc.base import threshold_for
from sklearn_xc.decomposition._course import (
    Course,
    NotFiniteError,
    Rows,
    copy_of,
    with_intercepts,
    without_intercepts,
)
from sklearn_xc.decomposition._intercept import first_intercepts, frequencies_of, intercept_rate
from sklearn_xc.decomposition._model import EmbeddingModel
from sklearn_xc.decomposition._training import (
    RECALL_K,
    Guide,
    Schedule,
    SearchSettings,
    Trainer,
    announce,
    progress_of,
)
from sklearn_xc.decomposition._training_set import TrainingSet, merge_instances, share_of_nonzeros
from sklearn_xc.losses import LABEL_SET_LOSSES
from sklearn_xc.mips import INDEXES
from sklearn_xc.mips.recall import warn_of_recall
from sklearn_xc.parallel.memory import require_bytes
from sklearn_xc.parallel.row_ranges import one_blas_thread
from sklearn_xc.parallel.threads import count_threads
from sklearn_xc.solvers.averaging import CourseAverages
from sklearn_xc.solvers.batch_sgd import HiddenLayer, IdentityLayer, MovingRows
from sklearn_xc.solvers.label_gradients import SetLoss

#: hidden_dim="auto": the dimension of the hidden layer that a sparse X gets; and the blocks of
#: message passing with and without one. Source: section 5 of the paper.
_HIDDEN_DIM = 100
_HIDDEN_BLOCKS, _BLOCKS = 4, 8
#: The norm of feature vectors at the start, on average. Long ones hardly turn before the label
#: vectors fit them as they are.
_NORM = 0.3
#: n_candidates=None: this share of the labels, but at least so many.
_SHARE, _LEAST_CANDIDATES = 0.01, 64
#: smoothing=None. Source: section 5 of the paper, for one class per instance; it has 5 for several
#: labels, with which steps are smaller and no answer is better.
_SMOOTHING = 1.0
#: Training instances by which the threshold of predictions is set, but no more scores than these
#: for more than a few instances.
_THRESHOLD_INSTANCES, _THRESHOLD_SCORES, _LEAST_THRESHOLD_INSTANCES = 1000, 10**8, 50
#: And those whose vectors an index is tested with.
_QUERIES = 64


class DecompMIPSClassifier(EmbeddingModel):
    """Classifier with a label vector for each label, trained on the labels that matter.

    The score of label k is ``w_k . phi(x) + b_k``, where phi(x) is a dense instance itself, or a
    hidden layer: the sum of trained vectors of the features of a sparse one. Of a loss over all
    labels, an instance's gradient is large for its own labels and for a few others that score too
    high. Each step searches for these, instead of computing the scores of all labels, and moves
    them alone.

    The search is decomposed [1]_: the columns of the label vectors are cut into small blocks, each
    of them is clustered on its own, and a label's score is estimated by the sum of what its
    centroids score. That takes a byte operation per label and block, for all labels, 64 of them at
    a time (:class:`~sklearn_xc.mips.ProductIndex`). The best `n_candidates` are then scored
    exactly, best first, until the next ones cannot have a gradient any more.

    Parameters
    ----------
    loss : {"margin", "softmax", "triplet"}, default="margin"
        "margin" is the largest violation of ``z_own >= z_other + 1``, smoothed; its gradient has
        few labels. "softmax" is the cross-entropy, summed over the labels of an instance. "triplet"
        is the sum of all violations.
    gradient : {"decomp_mips", "mips", "sampled", "exact"}, default="decomp_mips"
        Where the gradient by the scores comes from: a decomposed search; a plain search for large
        inner products; labels drawn at random; all labels.
    index : {"product", "spherical", "exact", "faiss"} or None, default=None
        What is searched, and what ``predict_topk(exact=False)`` asks. None is "product" for a
        decomposed search, else "spherical". "faiss" needs the extra of that name.
    n_blocks : int or None, default=None
        Blocks of columns that exchange messages, where `n_rounds` is given. None is 8, or 4 with a
        hidden layer.
    n_rounds : int or None, default=None
        Rounds, at most 100,000, of greedy message passing (algorithm 2 of [1]_) between blocks that
        have an index of their own each, "spherical" unless `index` says otherwise. None couples the
        blocks within the search, which is faster and nearer to the exact gradient.
    n_candidates : int or None, default=None
        Labels that a search retrieves for an instance, or that are drawn. None is a hundredth of
        the labels, at least 64.
    hidden_dim : int, "auto" or None, default="auto"
        Dimension of the hidden layer; 0 and None are for none. "auto" looks at what is in the
        training instances, in whatever container: 100 if fewer than a fifth of the entries are not
        0, as of bags of words, and no layer for others, as for embeddings and pixels. `hidden_dim_`
        is what it has chosen.
    fit_intercept : bool, default=True
        Whether labels have intercepts. Where at least a fifth of the entries of X are not 0, these
        are trained beside the vectors, at a lower rate where labels are many, and without the
        penalty `alpha`. Where X is sparser, trained ones make no answer better, and they stay 0. In
        both cases, an instance without features, a text of which no word is known, is answered by
        how frequent labels are in training: the most frequent ones are its best, and predicted are
        those that more than half of the instances have, or the most frequent class. Without
        intercepts, all labels score 0 there.
    dropout : float, default=0.2
        The share of the features of an instance that are left out at each visit, at random, where
        there is a hidden layer; at least 0, below 1. It keeps long training from fitting the
        instances at hand better and better, and new ones worse and worse. 0 is faster at first.
    alpha : float, default=0.0
        Ridge beside the summed loss: half of it times the squared norms of all vectors, of labels
        and of features, is added; C = 1 / alpha in scikit-learn's terms. It costs no time. Good for
        few instances a label, and for Adagrad; try 0.3 to 3.
    smoothing : float or None, default=None
        mu of the smoothed margin loss: larger values spread the gradient over more labels. None is
        1.
    optimizer : {"sgd", "adagrad"}, default="sgd"
        "adagrad" divides steps by the root of the summed squares of gradients, and leaves
        `decay_interval` unused.
    learning_rate : float, default=0.3
        A step is this times the gradient of the summed loss of a mini-batch, so that a good value
        does not depend on `batch_size`. Try 0.1 to 3.
    decay_interval : float or None, default=None
        Visits of instances after which the rate has halved: it is ``learning_rate / (1 + visits /
        decay_interval)``. None is the visits of an epoch; `batch_size` is the schedule of [1]_,
        which all but stops within the first epoch; infinity keeps the rate.
    batch_size : int, default=10
        Instances whose gradients are taken at the same weights.
    max_iter : int, default=10
        Epochs.
    average : bool, default=True
        Whether the model has the averages of the weights over the steps, later ones counting more
        (polynomial-decay averaging [2]_), instead of the weights after the last step. It is far
        more accurate in the first epochs, most of all where labels are much alike, and takes the
        memory of the weights once more.
    sampled_epochs : float, default=0.2
        Epochs, or parts of one, before the search begins: at first all labels score alike, and
        drawn ones do as well.
    min_recall : float, default=0.0
        Warn if the index finds a smaller share of the 10 best labels among its candidates, for 64
        training instances, when it is built last.
    top_k : int, default=100
        After a sparse fit, how many of the best labels predict and decision_function consider.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the weights, and with the rate that they have come to. Other
        parameters may change, but for `hidden_dim`, `fit_intercept` and `optimizer`.
    max_memory : int or str, default=None
        Bytes, or a text as "8GB", that the weights may take, and each dense answer. None is what
        the machine has.
    n_jobs : int, default=None
        Threads that share the instances of a mini-batch, where labels are many, and predictions.
        The model is the same, bit for bit, for any number.
    random_state : int, RandomState instance or None, default=None
        Of the order of the instances, the hidden layer's start, features left out, drawn labels and
        centroids.
    verbose : int, default=0
        If not 0, print progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Class labels after a 1-D y, else column numbers.
    hidden_dim_ : int
        Dimension of the hidden layer, 0 if there is none.
    coef_ : ndarray of shape (n_labels, dim)
        A vector for each label, also two for two classes; averages, if asked for.
    intercept_ : ndarray of shape (n_labels,)
        Added to the inner products; zeros without `fit_intercept`, and where X is sparse. Scores
        are ``embed(X) @ coef_.T + intercept_``; those of an instance without features are the log
        odds of the labels' frequencies in training, plus `threshold_`.
    feature_embedding_ : ndarray of shape (n_features, dim) or None
        A vector for each feature, of the hidden layer.
    threshold_ : float
        After an indicator fit: labels with a higher score are predicted. Such that up to a thousand
        training instances get as many labels as they have; with intercepts, those with features.
    index_recall_ : float or None
        Recall at 10 of the last index built for training; see `min_recall`.
    n_candidates_ : int
        Given, or chosen.
    loss_curve_ : ndarray of shape (n_iter_,)
        Mean loss of each epoch as seen in its steps: over the labels that were considered.
    n_iter_ : int
        Epochs run.
    label_counts_ : ndarray of int64 of shape (n_labels,)
        Instances of each label that were passed with a weight above 0, each counted once: to the
        last fit, or to all calls of partial_fit.
    n_samples_fit_ : int
        Instances that were passed so, also those without labels.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    sklearn_xc.ImplicitSoftmaxSGD : Unbiased softmax for sparse instances, without a hidden layer.
    sklearn_xc.OvALinearXC : Exact one-vs-all, for sparse instances.

    Notes
    -----
    A hidden layer's step is divided by the squared norm of the instance where that is above 1, and
    its gradient is cut at norm 1, so that training does not diverge; normalised rows (tf-idf) are
    what it is for. Equal instances with the same labels are merged into one with a weight.

    Memory: the weights, once more for their averages and once more with Adagrad, and dim/4 bytes a
    label for the index. Time of a step,
    for each instance: dim/4 byte look-ups a label, 64 of them at once with AVX-512, and a few
    hundred inner products.

    Source: [1]_; differs in the search, as its algorithm 2 is for `n_rounds`; in that labels which
    were not retrieved are absent instead of having the score 0; and in the unit of time of the
    learning rate.

    References
    ----------
    .. [1] I. E.-H. Yen, S. Kale, F. X. Yu, D. Holtmann-Rice, S. Kumar and P. Ravikumar, "Loss
       decomposition for fast learning in large output spaces", ICML 2018.
    .. [2] O. Shamir and T. Zhang, "Stochastic gradient descent for non-smooth optimization:
       convergence results and optimal averaging schemes", ICML 2013.

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
        "loss": [StrOptions(set(LABEL_SET_LOSSES))],
        "gradient": [StrOptions({"decomp_mips", "mips", "sampled", "exact"})],
        "index": [StrOptions(set(INDEXES)), None],
        "n_blocks": [Interval(Integral, 1, None, closed="left"), None],
        "n_rounds": [Interval(Integral, 0, 100_000, closed="both"), None],
        "n_candidates": [Interval(Integral, 1, None, closed="left"), None],
        "hidden_dim": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"}), None],
        "fit_intercept": ["boolean"],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "smoothing": [Interval(Real, 0, None, closed="neither"), None],
        "optimizer": [StrOptions({"sgd", "adagrad"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "decay_interval": [Interval(Real, 0, None, closed="right"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "average": ["boolean"],
        "sampled_epochs": [Interval(Real, 0, None, closed="left")],
        "min_recall": [Interval(Real, 0, 1, closed="both")],
        "top_k": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "max_memory": [Interval(Real, 0, None, closed="neither"), str, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    hidden_dim_: int
    label_counts_: np.ndarray
    loss_curve_: np.ndarray
    n_candidates_: int
    n_iter_: int
    n_samples_fit_: int
    index_recall_: float | None
    _course: Course

    def __init__(
        self,
        loss: str = "margin",
        *,
        gradient: str = "decomp_mips",
        index: str | None = None,
        n_blocks: int | None = None,
        n_rounds: int | None = None,
        n_candidates: int | None = None,
        hidden_dim: int | str | None = "auto",
        fit_intercept: bool = True,
        dropout: float = 0.2,
        alpha: float = 0.0,
        smoothing: float | None = None,
        optimizer: str = "sgd",
        learning_rate: float = 0.3,
        decay_interval: float | None = None,
        batch_size: int = 10,
        max_iter: int = 10,
        average: bool = True,
        sampled_epochs: float = 0.2,
        min_recall: float = 0.0,
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
        self.n_blocks = n_blocks
        self.n_rounds = n_rounds
        self.n_candidates = n_candidates
        self.hidden_dim = hidden_dim
        self.fit_intercept = fit_intercept
        self.dropout = dropout
        self.alpha = alpha
        self.smoothing = smoothing
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.decay_interval = decay_interval
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.average = average
        self.sampled_epochs = sampled_epochs
        self.min_recall = min_recall
        self.top_k = top_k
        self.warm_start = warm_start
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    @built_apart
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "DecompMIPSClassifier":
        """Train the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances. float32 and float64 are kept, other dtypes become float64.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_labels)
            One class per instance, or a binary indicator, dense or sparse; rows without labels are
            passed over.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances. A weight of 2 is a repeated row, a weight of 0 a missing one.
            An instance is visited once for each unit of its weight, up to 64 times an epoch.

        Returns
        -------
        estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            For NaN, a y that is not binary, parameters that do not fit each other, or a learning
            rate at which training diverges.
        MemoryBudgetError
            If the weights do not fit into memory; nothing was allocated yet.

        Warns
        -----
        RecallWarning
            If the index finds less than `min_recall` of the best labels at its last build.
        UnseenLabelWarning
            If labels have no training instance.

        Notes
        -----
        The model does not depend on the order of the rows, nor on `n_jobs`.
        """
        is_warm = self.warm_start and hasattr(self, "coef_")
        instances, targets, weight = self._check(X, y, sample_weight, None, is_warm)
        examples = self._examples(instances, targets, weight)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if is_warm:
            self._resume(instances, examples, is_further=False)
            self._course.guide = None
        else:
            self._start(instances, targets, examples, seed)
        trainer = self._trainer(instances, examples, seed)
        show = progress_of(type(self).__name__, self.max_iter) if self.verbose else None
        losses: list[float] = []
        with self._explained(instances, weight):
            for epoch in range(self.max_iter):
                losses.append(self._pass(trainer, examples, seed))
                if show is not None:
                    show(epoch, losses[-1], trainer.guide.recall)
            self._settle(trainer)
            self._count(targets, weight)
            self._require_finite_model(instances, examples)
            self._set_threshold(instances, targets, examples, seed)
        self.n_iter_, self.loss_curve_ = len(losses), np.array(losses)
        self._finish(trainer)
        self._course.guide = None
        self._warn_of_unseen()
        return self

    @fit_context(prefer_skip_nested_validation=True)
    @built_apart
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> "DecompMIPSClassifier":
        """Go once through some instances.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_labels)
            As in ``fit``.
        classes : array-like of shape (n_classes,), default=None
            All classes, in the first call for a 1-D y; None takes those in y.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances.

        Returns
        -------
        estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            For classes, features or a container of y that differ from those of the first call.

        Notes
        -----
        The learning rate falls with all instances visited so far; None for `decay_interval`, and an
        epoch of `sampled_epochs`, mean the instances of the first call. Parameters may change
        between calls, but for `hidden_dim`, `fit_intercept` and `optimizer`.

        Each call trains a copy of the weights, which takes their place at the end: an error or an
        interrupt leaves the model as it was, and other threads never see it half trained. The copy
        takes the memory of a first call again, and its time, so pass thousands of instances at once
        where labels are many. The index is kept for the next call.
        """
        is_first = not hasattr(self, "coef_")
        instances, targets, weight = self._check(X, y, sample_weight, classes, not is_first)
        examples = self._examples(instances, targets, weight)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if is_first:
            self._start(instances, targets, examples, seed)
            self.label_counts_ = np.zeros(len(targets.classes), np.int64)
            self.n_iter_, self.n_samples_fit_, self.loss_curve_ = 0, 0, np.empty(0)
        else:
            self._resume(instances, examples, is_further=True)
        trainer = self._trainer(instances, examples, seed)
        with self._explained(instances, weight):
            loss = self._pass(trainer, examples, seed)
            self._settle(trainer)
            self._count(targets, weight, is_further=True)
            self._require_finite_model(instances, examples)
            self._set_threshold(instances, targets, examples, seed)
        self.n_iter_ += 1
        self.loss_curve_ = np.append(self.loss_curve_, loss)
        self._finish(trainer)
        return self

    # What a fit is made of

    def _check(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, is_known: bool
    ) -> tuple[CsrRows | DenseRows, Targets, np.ndarray]:
        self._check_parameters()
        if is_known:
            self._require_same_shape()
        instances = check_rows(self, X, reset=not is_known)
        n = instances.shape[0]
        check = check_further_targets if is_known else check_targets
        targets = check(self, y, n, classes)
        weight = check_weights(self, sample_weight, n)
        return instances, targets, np.ones(n) if weight is None else weight

    def _check_parameters(self) -> None:
        name = type(self).__name__
        if self.gradient == "mips" and self.index == "product":
            raise ValueError(
                f"{name}: index='product' is a decomposed search, gradient='mips' is a plain one. "
                "Set gradient='decomp_mips', or another index."
            )
        is_coupled = self.gradient == "decomp_mips" and self.n_rounds is None
        if is_coupled and self.index not in (None, "product"):
            raise ValueError(
                f"{name}: index={self.index!r} searches each block of columns on its own, and the "
                "blocks are coupled by messages: set n_rounds, for example to 1, or "
                "index='product'."
            )
        if self.n_rounds is not None and self.gradient != "decomp_mips":
            raise ValueError(
                f"{name}: n_rounds={self.n_rounds} is for gradient='decomp_mips', "
                f"gradient={self.gradient!r} came."
            )
        if self.n_rounds is not None and self.index == "product":
            raise ValueError(
                f"{name}: index='product' couples the blocks of columns itself; messages take an "
                f"index with exact scores. Leave n_rounds={self.n_rounds} or the index out."
            )
        if self.n_blocks is not None and self.n_rounds is None:
            raise ValueError(
                f"{name}: n_blocks={self.n_blocks} is for message passing; set n_rounds too."
            )
        if self.smoothing is not None and not LABEL_SET_LOSSES[self.loss].SMOOTHED:
            raise ValueError(
                f"{name}: smoothing={self.smoothing:g} is for loss='margin', "
                f"loss={self.loss!r} came."
            )
        if self.decay_interval is not None and self.optimizer == "adagrad":
            raise ValueError(
                f"{name}: decay_interval={self.decay_interval:g} is for optimizer='sgd'; "
                "'adagrad' has a schedule of its own."
            )
        if self.index == "faiss":
            INDEXES["faiss"]()

    def _require_same_shape(self) -> None:
        """Raise an error for parameters that weights of another call do not fit."""
        before: dict[str, Any] = {"optimizer": self._course.optimizer}
        before["fit_intercept"] = self._course.has_intercept
        if not isinstance(self.hidden_dim, str):
            before["hidden_dim"] = self.hidden_dim_
        for name, value in before.items():
            now = getattr(self, name)
            if (now or 0) != value:
                raise ValueError(
                    f"{type(self).__name__}: {name}={now!r} does not go with the weights to go on "
                    f"from, which were trained with {name}={value!r}. Set it back, or fit anew "
                    "with warm_start=False."
                )

    def _index_name(self) -> str:
        if self.index is not None:
            return self.index
        is_plain = self.gradient == "mips" or self.n_rounds is not None
        return "spherical" if is_plain else "product"

    def _examples(
        self, instances: CsrRows | DenseRows, targets: Targets, weight: np.ndarray
    ) -> TrainingSet:
        with np.errstate(over="ignore"):
            total = weight.sum()
        if not np.isfinite(total):
            raise ValueError(
                f"{type(self).__name__}: the sum of sample_weight must be finite, the largest is "
                f"{weight.max():g}. Divide them by it."
            )
        examples = merge_instances(instances, targets, weight)
        require_labels(self, targets, examples.rows)
        return examples

    def _start(
        self, instances: CsrRows | DenseRows, targets: Targets, examples: TrainingSet, seed: int
    ) -> None:
        """Set what training starts from."""
        n_labels, d, dtype = len(targets.classes), instances.shape[1], instances.dtype
        share = share_of_nonzeros(instances, examples.rows)
        self.hidden_dim_ = self._choose_hidden_dim(share)
        is_hidden, dim = self.hidden_dim_ > 0, self.hidden_dim_ or d
        is_trained = self.fit_intercept and share >= DENSE_SHARE
        shapes = [(n_labels, dim + is_trained)] + [(d, dim)] * is_hidden
        self._require_memory(shapes, dtype.itemsize)
        self._keep_targets(targets)
        features = None
        if is_hidden:
            rng = np.random.default_rng((seed, 2))
            vectors = rng.standard_normal(shapes[1], np.float32) * np.float32(_NORM / np.sqrt(dim))
            features = vectors.astype(dtype, copy=False)
            features[~features_of(instances, examples.rows)] = 0
        labels = np.zeros(shapes[0], dtype)
        squares: tuple[Rows, Rows] = None, None
        frequencies = frequencies_of(instances, examples, n_labels)
        if is_trained:
            labels[:, -1] = first_intercepts(frequencies, dtype)
        if self.optimizer == "adagrad":
            squares = np.zeros_like(labels), None if features is None else np.zeros_like(features)
        self._course = Course(
            labels, features, *squares, self.optimizer, int(examples.visits.sum()),
            self.fit_intercept, is_trained, frequencies,
        )  # fmt: skip

    def _choose_hidden_dim(self, share: float) -> int:
        """Return the dimension of the hidden layer, by the share of entries that are not 0."""
        how = f"hidden_dim={self.hidden_dim!r}"
        if isinstance(self.hidden_dim, str):
            dim = _HIDDEN_DIM if share < DENSE_SHARE else 0
            how += f", and {share:.1%} of the entries of X are not 0"
        else:
            dim = int(self.hidden_dim or 0)
        if self.verbose:
            layer = f"a hidden layer of {dim}" if dim else "no hidden layer"
            announce(type(self).__name__, f"{layer}: {how}")
        return dim

    def _resume(
        self, instances: CsrRows | DenseRows, examples: TrainingSet, *, is_further: bool
    ) -> None:
        """Copy what training goes on from, for further instances or for others."""
        n_labels, dim = self.coef_.shape
        shapes = [(n_labels, dim + self._course.is_trained)]
        if self.feature_embedding_ is not None:
            shapes.append(self.feature_embedding_.shape)
        self._require_memory(shapes, self.coef_.itemsize)
        course = self._course = self._course.copied()
        if course.label_rows is None:
            course.label_rows = (
                with_intercepts(self.coef_, self.intercept_)
                if course.is_trained
                else copy_of(self.coef_)
            )
            course.feature_rows = copy_of(self.feature_embedding_)
        frequencies = frequencies_of(instances, examples, n_labels)
        course.frequencies = course.frequencies.plus(frequencies) if is_further else frequencies

    def _require_memory(self, shapes: list[tuple[int, int]], itemsize: int) -> None:
        """Raise an error if weights of labels, and of features if there are, do not fit."""
        extras = ["their averages"] if self.average else []
        extras += ["adagrad"] if self.optimizer == "adagrad" else []
        arrays = [
            f"{n} {kind} x {columns} x {itemsize} bytes"
            for (n, columns), kind in zip(shapes, ("labels", "features"), strict=False)
        ]
        copies = "".join(f", as much again for {extra}" for extra in extras)
        require_bytes(
            (1 + len(extras)) * sum(math.prod(shape) for shape in shapes) * itemsize,
            self._allowed_bytes(),
            f"the weights, {' and '.join(arrays)}{copies}",
            "Pass X as float32, lower hidden_dim, set average=False, or leave rare features and "
            "labels out.",
        )

    def _trainer(self, instances: CsrRows | DenseRows, examples: TrainingSet, seed: int) -> Trainer:
        """Return what moves the weights of the course."""
        course = self._course
        W, features = course.label_rows, course.feature_rows
        assert W is not None
        rate = intercept_rate(len(W)) if course.is_trained else None
        weights = MovingRows(W, course.label_squares, course.scales[0], rate)
        layer: IdentityLayer | HiddenLayer
        if features is None:
            layer = IdentityLayer(instances.astype(W.dtype))
        else:
            # A stored zero would take part in the draw of what is left out.
            sparse = instances.to_csr().astype(W.dtype).without_zeros()
            vectors = MovingRows(features, course.feature_squares, course.scales[1])
            layer = HiddenLayer(sparse, vectors, self.dropout)
        n_labels, dim = len(W), W.shape[1] - course.is_trained
        least = max(_LEAST_CANDIDATES, int(np.ceil(_SHARE * n_labels)))
        self.n_candidates_ = min(n_labels, self.n_candidates or least)
        drawn = np.random.default_rng((seed, 3)).permutation(examples.rows)[:_QUERIES]
        guide = self._guide_to(W, self._set_loss(), self._search_settings(seed, dim))
        guide.queries = lambda: weights.scaled(layer.forward(drawn))
        is_steady = self.optimizer == "adagrad"
        schedule = Schedule(
            self.learning_rate,
            np.inf if is_steady else float(self.decay_interval or course.epoch),
            self.sampled_epochs * course.epoch,
            course.visits,
        )
        return Trainer(
            layer, weights, examples.sets, guide, schedule, self._averages(weights, layer),
            float(self.alpha) / course.epoch, self.batch_size,
            count_threads(self.n_jobs, f"{type(self).__name__}: n_jobs"),
        )  # fmt: skip

    def _averages(self, weights: MovingRows, layer: IdentityLayer | HiddenLayer) -> CourseAverages:
        """Return the averages, on from those of the model if it has any."""
        course = self._course
        if not self.average:
            return CourseAverages([])
        moving, intercept = [weights, *layer.moving], None
        if course.is_averaged:
            of_model = self.coef_, self.feature_embedding_
            means = [np.array(rows, order="C") for rows in of_model if rows is not None]
            intercept = copy_of(self.intercept_) if course.is_trained else None
        else:
            means = [rows.vectors * rows.values.dtype.type(rows.scale) for rows in moving]
            intercept = weights.values[:, -1].copy() if course.is_trained else None
            course.last_look = course.visits
        pairs = list(zip(moving, means, strict=True))
        return CourseAverages(pairs, course.last_look, intercept)

    def _guide_to(self, W: np.ndarray, loss: SetLoss, settings: SearchSettings) -> Guide:
        """Return one that goes on from the last partial fit, with its index, if that serves."""
        guide = self._course.guide
        if guide is not None and guide.serves(loss, settings):
            return guide.following(W)
        return Guide(loss, settings, self._course.n_drawn)

    def _set_loss(self) -> SetLoss:
        smoothing = _SMOOTHING if self.smoothing is None else float(self.smoothing)
        return SetLoss(LABEL_SET_LOSSES[self.loss], smoothing)

    def _search_settings(self, seed: int, dim: int) -> SearchSettings:
        n_blocks = self.n_blocks
        if n_blocks is None:
            n_blocks = _BLOCKS if self._course.feature_rows is None else _HIDDEN_BLOCKS
        if n_blocks > dim:
            if self.n_blocks is not None:
                raise ValueError(
                    f"{type(self).__name__}: n_blocks={n_blocks} is more than the {dim} columns "
                    "that are cut into them."
                )
            n_blocks = dim
        return SearchSettings(
            self.gradient, self._index_name(), n_blocks, self.n_rounds, self.n_candidates_,
            seed,
        )  # fmt: skip

    def _pass(self, trainer: Trainer, examples: TrainingSet, seed: int) -> float:
        """Go once through the instances; return the mean loss."""
        course = self._course
        order = examples.order((seed, 4, course.n_passes))
        trainer.begin_pass(seed, course.n_passes)
        total = trainer.run(order)
        if not np.isfinite(total):
            raise NotFiniteError
        trainer.averages.look(trainer.schedule.visits)
        if not self.average:
            for rows in (trainer.weights, *trainer.layer.moving):
                rows.apply_scale()
        course.n_passes += 1
        return total / float(examples.sets.weight[order].sum())

    def _settle(self, trainer: Trainer) -> None:
        """Make the weights that training has come to those of the model."""
        course, moving = self._course, [trainer.weights, *trainer.layer.moving]
        course.scales, course.is_averaged = (moving[0].scale, moving[-1].scale), self.average
        course.visits, course.n_drawn = trainer.schedule.visits, trainer.guide.n_drawn
        course.last_look = trainer.averages.last_look
        rows = trainer.averages.means if self.average else [m.values for m in moving]
        self.coef_, self.feature_embedding_ = rows[0], rows[1] if len(rows) > 1 else None
        if course.is_trained and self.average:
            self.intercept_ = trainer.averages.intercept  # type: ignore[assignment]
        elif course.is_trained:
            self.coef_, self.intercept_ = without_intercepts(rows[0])
        else:
            self.intercept_ = np.zeros(len(self.coef_), self.coef_.dtype)
        if not self.average:
            course.label_rows = course.feature_rows = None

    @contextmanager
    def _explained(self, instances: CsrRows | DenseRows, weight: np.ndarray) -> Iterator[None]:
        """Say what is wrong where the body finds numbers that are not finite.

        Raises
        ------
        ValueError
            With what was largest, for a NotFiniteError of the body.
        """
        try:
            with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
                yield
        except NotFiniteError as error:
            values = instances.arrays[-1]
            raise ValueError(
                f"{type(self).__name__}: training diverged at learning_rate="
                f"{self.learning_rate:g}. Lower it, or scale X (sklearn.preprocessing.normalize), "
                f"whose largest entry is {np.abs(values).max(initial=0):g}, or sample_weight, "
                f"whose largest is {weight.max():g}."
            ) from error

    def _set_threshold(
        self, instances: CsrRows | DenseRows, targets: Targets, examples: TrainingSet, seed: int
    ) -> None:
        """Set the score from which on a label is predicted: as many in all as there are."""
        self.threshold_ = 0.0
        if targets.kind == "classes":
            return
        rng = np.random.default_rng((seed, 5))
        n = max(_LEAST_THRESHOLD_INSTANCES, _THRESHOLD_SCORES // len(self.classes_))
        rows = np.sort(rng.permutation(examples.rows)[: min(n, _THRESHOLD_INSTANCES)])
        k, parts = self._n_considered(), self._parts(instances.take(rows), self._embed)
        scores, with_features = [], []
        for own, V in parts:
            kept = np.delete(np.arange(len(V)), self._blank(V))  # others have fixed margins
            scores.append(self._best(V[kept], k)[1])
            with_features.append(rows[own][kept])
        rows, sets = np.concatenate(with_features), examples.sets
        if not rows.size:
            return
        n_labels = int((sets.indptr[rows + 1] - sets.indptr[rows]).sum())
        self.threshold_ = threshold_for(np.concatenate(scores), n_labels)

    def _count(self, targets: Targets, weight: np.ndarray, *, is_further: bool = False) -> None:
        """Count instances; a label that any earlier call has seen is never unseen again."""
        self._count_instances(targets, weight, is_further=is_further)
        course, is_seen = self._course, self.label_counts_ > 0
        course.is_seen = is_seen if course.is_seen is None else course.is_seen | is_seen
        self._unseen_labels = np.flatnonzero(~course.is_seen)

    def _require_finite_model(self, instances: CsrRows | DenseRows, examples: TrainingSet) -> None:
        """Raise an error for weights that overflowed, or scores of training instances."""
        weights = [v for v in (self.coef_, self.feature_embedding_) if v is not None]
        sizes = [_largest(values) for values in (*weights, instances.arrays[-1])]
        if not np.isfinite(sizes).all():
            raise NotFiniteError
        # What no sum can reach needs no look at all scores.
        largest = instances.shape[1] * self.coef_.shape[1] * math.prod(sizes)
        if largest + _largest(self.intercept_) < np.finfo(weights[0].dtype).max:
            return
        for _, V in self._parts(instances.take(examples.rows), self._embed):
            for v in V:
                if not np.isfinite(self.coef_ @ v + self.intercept_).all():
                    raise NotFiniteError

    def _finish(self, trainer: Trainer) -> None:
        self.__dict__.pop("_search_index", None)  # of weights that have moved
        trainer.guide.queries = None
        self._course.guide = trainer.guide
        self.index_recall_ = trainer.guide.recall
        if self.index_recall_ is not None:
            k = min(RECALL_K, self.n_candidates_)
            how = type(self).__name__, self.index_recall_, self.min_recall, k, self.n_candidates_
            warn_of_recall(*how, "or set gradient='exact'")


def _largest(values: np.ndarray) -> float:
    """Return the largest absolute value; NaN if there is one."""
    return float(np.abs([values.min(initial=0), values.max(initial=0)]).max())
