"""Classification over many labels, trained on those that a decomposed search finds."""

from numbers import Integral, Real
from typing import Any

from sklearn_xc._sklearn import Interval, StrOptions, fit_context
from sklearn_xc._state import built_apart
from sklearn_xc.decomposition._trainable import TrainableModel
from sklearn_xc.gradients import Gradient
from sklearn_xc.losses import LabelSetLoss
from sklearn_xc.mips import MipsIndex


class DecompMIPSClassifier(TrainableModel):
    """Classifier with a label vector for each label, trained on the labels that matter.

    The score of label k is ``w_k . phi(x) + b_k``, where phi(x) is a dense instance itself, or the
    hidden layer of a sparse one: the sum of the trained vectors of its features. With a loss over
    all labels, an instance's gradient is large only for its own labels and for a few others that
    score too high. Instead of computing the scores of all labels, each step searches for these and
    moves only them.

    The search is decomposed [1]_: the columns of the label vectors are cut into small blocks, each
    block is clustered separately, and a label's score is estimated by the sum of the scores of its
    centroids. That takes one byte operation per label and block, 64 labels at a time
    (:class:`~sklearn_xc.mips.ProductIndex`). The best `n_candidates` are then scored exactly, best
    first, until no further label can have a gradient.

    Parameters
    ----------
    loss : {"margin", "softmax", "triplet"} or LabelSetLoss, default="margin"
        "margin" is the largest violation of ``z_own >= z_other + 1``, smoothed; its gradient
        involves few labels. "softmax" is the cross-entropy, summed over the labels of an instance.
        "triplet" is the sum of all violations. An object has its own parameters, such as
        ``MaxMargin(smoothing=5.0)``; see :mod:`sklearn_xc.losses`.
    gradient : {"decomp_mips", "mips", "sampled", "exact"} or Gradient, default="decomp_mips"
        Which labels the gradient with respect to the scores is computed for: those that a
        decomposed search finds; those that a plain search for large inner products finds; labels
        drawn at random; all labels. ``MessagePassing(n_rounds=1)`` is algorithm 2 of [1]_; see
        :mod:`sklearn_xc.gradients`.
    index : {"product", "spherical", "exact", "faiss"} or MipsIndex or None, default=None
        The index to search in training and in ``predict_topk(exact=False)``. None leaves the
        choice to the gradient: "product" for a decomposed search, otherwise "spherical". "faiss"
        needs the extra of that name. An object, such as ``SphericalIndex(n_clusters=500)``, is
        copied for each use; see :mod:`sklearn_xc.mips`.
    n_candidates : int or None, default=None
        Number of labels to retrieve, or to draw, for an instance. None is a hundredth of the
        labels, at least 64.
    embedding_dim : int, "auto" or None, default="auto"
        Dimension of the learned embedding, a hidden layer; 0 and None mean no hidden layer. "auto"
        looks at the training instances, in whatever container: it is 100 if fewer than a fifth of
        the entries are non-zero, as in bags of words, and no layer otherwise, as for embeddings
        and pixels. `embedding_dim_` tells its choice. With ``metric="mahalanobis"``, "auto" is the
        number of features, or 100 for more than 1,000; 0 and None are the number of features. With
        `embedding_init`, "auto" is the dimension of these vectors.
    embedding_init : array-like of shape (n_features, embedding_dim), fitted DecompMIPSSkipGram, \
            tuple of (words, vectors), or None, default=None
        Vectors of features from which the hidden layer starts, in a first call; None is for random
        ones. Features that are not among the words, or whose row is zero, start at random. The
        others are scaled to the mean norm of random ones and are used from then on, even for
        features that no training instance has. Words are matched with the feature names of a data
        frame; without names, pass the array that
        ``vectors.transform(vectorizer.get_feature_names_out())`` makes, with
        ``handle_unknown="zero"``. Searches clone parameters, which unfits them: pass
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
        depend only on differences of scores, as the named ones do.
    fit_intercept : bool, default=True
        Whether labels have intercepts. If at least a fifth of the entries of X are non-zero,
        intercepts are trained together with the vectors, at a lower rate where labels are many,
        and without the penalty `alpha`. If X is sparser, trained intercepts improve no answer, and
        they stay 0. In both cases, an instance without features, such as a text without a known
        word, is answered by the training frequencies of the labels: the most frequent labels rank
        first, and the prediction is the labels that more than half of the instances have, or the
        most frequent class. Without intercepts, all labels score 0 for such an instance. With
        proxies (`metric`) there is nothing to train, and this only decides whether frequencies
        answer for a row of zeros; False makes it a point like any other.
    dropout : float, default=0.2
        The share of the features of an instance that are left out at random at each visit, if
        there is a hidden layer; at least 0 and below 1. It keeps long training from overfitting. 0
        is faster at first. Not used with ``metric="mahalanobis"``.
    alpha : float, default=0.0
        Ridge added to the summed loss: half of `alpha` times the squared norms of all label and
        feature vectors; C = 1 / alpha in scikit-learn's terms. It costs no time. It helps Adagrad
        where instances per label are few; try 1 to 3. For proxies, the squared norm of the proxy
        is added: centre X.
    optimizer : {"sgd", "adagrad"}, default="sgd"
        "adagrad" divides steps by the root of the summed squared gradients.
    learning_rate : float or "auto", default="auto"
        A step is this times the gradient of the summed loss of a mini-batch, so that a good value
        does not depend on `batch_size`. "auto" tries 1 (0.3 without a hidden layer, 0.1 for
        proxies without one or with a full L), a third and three times as much, and goes on in the
        direction that helps. It trains for two epochs each on part of the instances, and compares
        nDCG@5 on those held out (`validation_fraction`). A rate other than the first must be
        better by more than twice the standard error of the difference. If the best one ranks
        labels hardly better than their frequency does, or worse than proxies do at their start, it
        may be too large: smaller ones are tried, too. With fewer than 150 instances, the first rate
        is taken; if training continues, by `warm_start` or ``partial_fit``, the previous rate.
    decay : float, "1/t" or "auto", default="auto"
        How the learning rate falls: a factor in (0, 1] applied after each epoch, or "1/t", which
        is ``learning_rate / (1 + epochs)`` and falls within an epoch as well. "auto" is "1/t" for
        "sgd" and 1.0 for "adagrad".
    batch_size : int, default=10
        Number of instances whose gradients are taken at the same weights.
    max_iter : int, default=10
        Number of epochs; with `early_stopping`, the maximum.
    average : bool, default=True
        Whether the model has the average of the weights over the steps, where later steps count
        more (polynomial-decay averaging [2]_), instead of the weights after the last step.
        Averages are far more accurate in the first epochs, especially where labels are much alike,
        and take the memory of the weights once more.
    sampled_epochs : float, default=0.2
        Epochs, or the part of one, before the search begins: at first all labels score alike, and
        labels drawn at random do as well.
    min_recall : float, default=0.0
        Warn if the last index built finds a smaller share of the 10 best labels among its
        candidates, for 64 training instances.
    early_stopping : bool or "auto", default="auto"
        Whether to find the number of epochs first, in a fit that leaves out `validation_fraction`
        of the instances and ends when their nDCG@5 has not improved for `n_iter_no_change` epochs.
        The model is then trained on all instances for the best number of epochs. "auto" is True
        with ``learning_rate="auto"``, otherwise False. With fewer than 150 instances, in
        ``partial_fit`` and after a warm start, all epochs are run.
    validation_fraction : float, default=0.1
        The share of the instances to hold out for choosing rate and epochs: at most 2,000
        instances; of fewer than 10,000 instances, up to a third, so that 1,000 are held out. The
        final training uses all instances.
    n_iter_no_change : int, default=2
        See `early_stopping`.
    label_names : array-like of shape (n_labels,), default=None
        Names of the columns of an indicator y, strings or integers, which become ``classes_``.
        None takes the column names of a data frame, otherwise the column numbers.
    top_k : int, default=100
        After a fit to a sparse y, how many of the best labels predict and decision_function
        consider.
    warm_start : bool, default=False
        Whether ``fit`` continues from the current weights and learning rate. Parameters may
        change, except `embedding_dim`, `metric`, `fit_intercept` and `optimizer`.
    max_memory : int or str, default=None
        Limit, in bytes or as a string such as "8GB", on what a fit may hold beyond what the
        process held when the fit began, the model included; also on each dense answer. None allows
        what the machine has.
    n_jobs : int, default=None
        Number of threads that share predictions and, where labels are many, the instances of a
        mini-batch. The model is bit-for-bit the same for any number.
    random_state : int, RandomState instance or None, default=None
        Seeds the order of the instances, the start of the hidden layer, the features left out, the
        labels drawn, and the centroids.
    verbose : int, default=0
        If not 0, print progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Class labels after a 1-D y, otherwise the names or numbers of the columns.
    embedding_dim_ : int
        Dimension of the hidden layer, 0 if there is none.
    coef_ : ndarray of shape (n_labels, dim)
        A vector for each label; two for two classes; averages, if `average`. Where scores are
        distances, twice the proxies.
    intercept_ : ndarray of shape (n_labels,)
        Added to the inner products; zeros without `fit_intercept`, and where X is sparse. Scores
        are ``embed(X) @ coef_.T + intercept_``; those of an instance without features are the log
        odds of the labels' frequencies in training, plus `threshold_`. With proxies, the
        intercepts are minus the squared norms of the proxies; the squared norm of the embedded
        instance is also subtracted from scores, so that they are minus squared distances.
    feature_embedding_ : ndarray of shape (n_features, dim) or None
        The hidden layer: a vector for each feature. The L of a Mahalanobis distance.
    metric_ : ndarray of shape (n_features, n_features)
        M, only with ``metric="mahalanobis"``; computed on access.
    threshold_ : float
        After an indicator fit: labels with a higher score are predicted. It is chosen such that up
        to a thousand training instances (with intercepts, only those with features) get as many
        labels as they have. With proxies it is minus a squared distance: labels nearer than that
        are predicted.
    index_recall_ : float or None
        Recall at 10 of the last index built for training; see `min_recall`.
    n_candidates_ : int
        As given or as chosen.
    learning_rate_ : float
        As given or as found.
    validation_scores_ : ndarray of shape (n_epochs,) or None
        nDCG@5 of the held-out instances after each epoch of the fit without them; None without
        `early_stopping` or with too few instances.
    fit_report_ : dict of ndarray of shape (n_iter,)
        One row per epoch: ``loss``, the mean as seen in its steps, over the labels considered;
        ``learning_rate``, at its beginning; ``index_recall``, as in `index_recall_`, NaN where no
        index was built; ``seconds``. ``pandas.DataFrame(clf.fit_report_)`` shows it as a table.
    n_iter_ : int
        Number of epochs of the last fit, or of all calls of partial_fit.
    label_counts_ : ndarray of int64 of shape (n_labels,)
        Number of instances of each label passed with a weight above 0, each counted once: to the
        last fit, or to all calls of partial_fit.
    n_samples_fit_ : int
        Number of instances passed likewise, including those without labels.
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

    Memory: the weights, once more for their averages and once more with Adagrad, and dim/4 bytes
    per label for the index. Time of a step, per instance: dim/4 byte look-ups per label, 64 at
    once with AVX-512, and a few hundred inner products.

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
        "alpha": [Interval(Real, 0, None, closed="left")],
        "optimizer": [StrOptions({"sgd", "adagrad"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "decay": [Interval(Real, 0, 1, closed="right"), StrOptions({"1/t", "auto"})],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "average": ["boolean"],
        "sampled_epochs": [Interval(Real, 0, None, closed="left")],
        "min_recall": [Interval(Real, 0, 1, closed="both")],
        "early_stopping": ["boolean", StrOptions({"auto"})],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
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
        alpha: float = 0.0,
        optimizer: str = "sgd",
        learning_rate: float | str = "auto",
        decay: float | str = "auto",
        batch_size: int = 10,
        max_iter: int = 10,
        average: bool = True,
        sampled_epochs: float = 0.2,
        min_recall: float = 0.0,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 2,
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
        self.alpha = alpha
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.decay = decay
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.average = average
        self.sampled_epochs = sampled_epochs
        self.min_recall = min_recall
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.label_names = label_names
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
            If ``learning_rate="auto"`` ends at the smallest or largest rate that it tries, or if
            held-out instances were still ranked much better in the last of `max_iter` epochs.
        RecallWarning
            If the index finds less than `min_recall` of the best labels at its last build.
        UnseenLabelWarning
            If labels have no training instance.

        Notes
        -----
        The model depends neither on the order of the rows nor on `n_jobs`.
        """
        goes_on = self.warm_start and hasattr(self, "coef_")
        training = self._check(X, y, sample_weight, None, goes_on)
        given = X, y, sample_weight
        self._train(training, self.max_iter, given, goes_on=goes_on, is_partial=False)
        self._warn_of_unseen()
        return self

    @fit_context(prefer_skip_nested_validation=True)
    @built_apart
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> "DecompMIPSClassifier":
        """Train for one pass over some instances.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_labels)
            As in ``fit``.
        classes : array-like of shape (n_classes,), default=None
            All classes, for the first call with a 1-D y; None takes those in y.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances.

        Returns
        -------
        estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            If the classes, features or container of y differ from those of the first call.

        Notes
        -----
        The learning rate falls with all instances visited so far; for `decay` and
        `sampled_epochs`, an epoch is as many instances as the first call had. Parameters may
        change between calls, except `embedding_dim`, `metric`, `fit_intercept` and `optimizer`.
        The proxy of a label without an instance starts anew when its first instances arrive.

        Each call trains a copy of the weights, which replaces them at the end: an error or an
        interrupt leaves the model as it was, and other threads never see it half trained. The copy
        takes time, and the memory of a first call again, so pass thousands of instances at once
        where labels are many. The index is kept for the next call.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from sklearn_xc import DecompMIPSClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> clf = DecompMIPSClassifier(random_state=0)
        >>> for first in range(0, 1500, 500):
        ...     rows = slice(first, first + 500)
        ...     clf = clf.partial_fit(X[rows] / 16, y[rows], classes=range(10))
        >>> bool(clf.score(X[1500:] / 16, y[1500:]) > 0.8)
        True
        """
        goes_on = hasattr(self, "coef_")
        training = self._check(X, y, sample_weight, classes, goes_on)
        self._train(training, 1, None, goes_on=goes_on, is_partial=True)
        return self
