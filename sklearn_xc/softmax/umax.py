"""Softmax classification by U-max: stochastic gradients that cannot explode."""

import math
from numbers import Real

from sklearn_xc._sklearn import Interval
from sklearn_xc.kernels.softmax.rules import RULES, UMaxSettings
from sklearn_xc.softmax._classifier import SoftmaxClassifier
from sklearn_xc.solvers.softmax_sgd import SgdSettings, SoftmaxProblem


class SoftmaxUMax(SoftmaxClassifier):
    """Linear softmax (multinomial logistic) classifier, trained on a few sampled classes a step.

    Minimises the exact negative log-likelihood, for any number of classes::

        - sum_i log( exp(x_i.w_yi + b_yi) / sum_k exp(x_i.w_k + b_k) ) + 0.5 alpha sum_k |w_k|^2

    with stochastic gradients of a double sum over instances and classes, which keeps an estimate
    u_i of each instance's log-normaliser [1]_. A step reads `n_negatives` + 1 weight vectors on the
    non-zeros of one instance, and no more: its cost depends neither on the number of classes nor of
    instances, and its gradients are unbiased, unlike those of sampled softmax, noise-contrastive
    estimation or one-vs-each. U-max lifts u_i where the sampled classes prove it too low by more
    than `delta`: without that, gradients can be arbitrarily large.

    :class:`ImplicitSoftmaxSGD` stands larger learning rates, and mini-batches; it is the first to
    try.

    Parameters
    ----------
    alpha : float, default=0.0
        Ridge beside the summed log-loss: C = 1 / alpha in scikit-learn's terms.
    fit_intercept : bool, default=True
        Whether to train intercepts b, without a ridge, from the log frequencies of the classes. An
        instance without features then has these frequencies as its probabilities.
    n_negatives : int, default=5
        Classes other than the instance's own that are sampled at each step. More of them cost more
        and lower the variance; from n_classes - 1 on, all are taken.
    sampling : {"frequency", "uniform"}, default="frequency"
        How classes are sampled: as often as they occur, but for a fifth of the draws, which is
        spread evenly, or all equally often. Either way each counts for the inverse of its
        probability, and gradients are unbiased; where frequent classes hold most of the
        normaliser, their variance is far lower.
    n_hard_negatives : int, default=0
        Classes that a step takes besides: those that score best for the instance. They are searched
        for exactly, before epochs 0, 1, 2, 3, 4, 6, 8, 12, 16, 24 and so on (unless the weights are
        0), which costs as much as a prediction for all instances; sampled classes then stand for
        the rest. Gradients stay unbiased and lose most of their variance, so that the likelihood
        of the training data rises far faster.
    delta : float, default=1.0
        u_i is lifted where it is lower by more than this than the sampled classes allow.
    init : {"means", "zero"}, default="means"
        Where ``fit`` starts: at the means of the instances of each class, shrunken, times the
        factor that suits instances left out of them; one pass over X. Without a ridge, and with
        few epochs, the start matters for new instances: it is the better one.
    learning_rate : float or "auto", default="auto"
        In units of 1 / n. "auto" tries seven powers of ten from 0.001 to 1000 on a tenth of the
        data (at least a thousand instances), which costs about 35 epochs.
    decay : float or "1/t", default=0.9
        Factor on the learning rate after each epoch, or "1/t" for learning_rate / (1 + epochs). A
        factor below 1 stops at a finite distance; with "1/t" and `average`, the iterates converge
        to the maximum of the likelihood.
    average : bool, default=False
        Whether to return the average of the iterates at the ends of the epochs, later ones with
        more weight.
    max_iter : int, default=50
        Epochs.
    multilabel : {"all", "first"}, default="all"
        For an indicator y: each label of a row is an observation, or only the first column.
    early_stopping : bool, default=False
        Whether to hold out `validation_fraction` of the instances, to stop when their log-loss has
        not fallen by `tol` for `n_iter_no_change` epochs, and to return the best weights.
    validation_fraction : float, default=0.1
        See `early_stopping`.
    n_iter_no_change : int, default=5
        See `early_stopping`.
    tol : float, default=1e-4
        See `early_stopping`; without it, all epochs are run.
    top_k : int, default=100
        After a sparse fit, how many of the best labels predict, decision_function and predict_proba
        consider.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the weights, and from u where rows and classes agree.
    max_memory : int or str, default=None
        Bytes, or a text as "8GB", that the weights may take, and each dense answer. None is what
        the machine has.
    n_jobs : int, default=None
        Threads for the trials of "auto", evaluation and prediction; an epoch takes one step after
        the other. The model is the same, bit for bit, for any number.
    random_state : int, RandomState instance or None, default=None
        Of the order of the instances and of the sampled classes.
    verbose : int, default=0
        If not 0, print progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels after a 1-D y, else column numbers.
    coef_ : ndarray of shape (n_classes, n_features)
        Weights, also two rows for two classes.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts, also two for two classes; zeros without `fit_intercept`.
    learning_rate_ : float
        Given, or found, in units of 1 / n.
    n_iter_ : int
        Epochs run.
    loss_curve_ : ndarray of shape (n_iter_,)
        Mean of the sampled double sum, less 1, over the steps of each epoch: unbiased, noisy, and
        in the mean at least the training log-loss.
    log_loss_ : ndarray of shape (n_iter_,)
        Exact mean log-loss after each epoch: of the held-out instances, or without early stopping
        of 256 training instances.
    u_ : ndarray of float64 of shape (n_pairs,)
        One variable per pair of an instance and one of its classes.
    u_index_ : ndarray of int64 of shape (n_pairs, 2)
        Number of the instance and position of the class of each.
    label_counts_ : ndarray of int64 of shape (n_classes,)
        Instances of each class.
    n_samples_fit_ : int
        Instances seen.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    An intercept is the weight of a constant feature, the root mean square of X over the features
    that occur: it takes steps like those of other features. An instance of which no feature
    occurred in training scores the logarithms of the class frequencies. Memory: the weights,
    n_classes x n_features values, once more for each of `average` and `early_stopping`, and O(n).
    Equal instances of one class share their u.

    Source: algorithm 2 of [1]_; differs in that a step's classes are distinct, that u starts at its
    optimum and that the ridge is applied as a proximal step, 1 / (1 + r) for 1 - r. With a ridge,
    u and W are projected on the bounds of its appendix B. Hard negatives are not in the paper.

    References
    ----------
    .. [1] F. Fagan and G. Iyengar, "Unbiased scalable softmax optimization", arXiv:1803.08577,
       2018.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn_xc import SoftmaxUMax
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = SoftmaxUMax(learning_rate=0.1, random_state=0).fit(X / 16, y)
    >>> clf.predict_proba(X[:1] / 16).shape
    (1, 10)
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        **SoftmaxClassifier._common_constraints,
        "delta": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        alpha=0.0,
        *,
        fit_intercept=True,
        n_negatives=5,
        sampling="frequency",
        n_hard_negatives=0,
        delta=1.0,
        init="means",
        learning_rate="auto",
        decay=0.9,
        average=False,
        max_iter=50,
        multilabel="all",
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=5,
        tol=1e-4,
        top_k=100,
        warm_start=False,
        max_memory=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.n_negatives = n_negatives
        self.sampling = sampling
        self.n_hard_negatives = n_hard_negatives
        self.delta = delta
        self.init = init
        self.learning_rate = learning_rate
        self.decay = decay
        self.average = average
        self.max_iter = max_iter
        self.multilabel = multilabel
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.top_k = top_k
        self.warm_start = warm_start
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    _diverging_advice = ", or use ImplicitSoftmaxSGD."

    def _settings(self, problem: SoftmaxProblem, seed: int) -> SgdSettings:
        largest_u = math.inf if self.fit_intercept else problem.largest_normaliser()
        return SgdSettings(
            RULES["umax"]._replace(settings=UMaxSettings(float(self.delta), largest_u)),
            self.n_negatives,
            1,
            seed,
            self.n_hard_negatives,
            problem.radius(),
            self.sampling,
        )
