"""Softmax classification by U-max: stochastic gradients that cannot explode."""

from numbers import Real
from typing import Any

from sklearn_xc._input.sklearn_private import Interval, StrOptions
from sklearn_xc.softmax.classifier import SoftmaxClassifier
from sklearn_xc.softmax.kernels.rules import RULES, UMaxSettings
from sklearn_xc.softmax.problem import SoftmaxProblem
from sklearn_xc.softmax.sgd import SgdSettings

#: What rules need, besides no hard negatives: that of "raman" starts at u, as if scores were 0.
_NEEDS: dict[str, dict[str, Any]] = {
    "nce": {"sampling": "uniform"},
    "raman": {"init": "zero", "fit_intercept": False, "warm_start": False},
}


class SoftmaxUMax(SoftmaxClassifier):
    """Linear softmax (multinomial logistic) classifier, trained on a few sampled classes a step.

    Minimises the exact negative log-likelihood, for any number of classes::

        - sum_i log( exp(x_i.w_yi + b_yi) / sum_k exp(x_i.w_k + b_k) ) + 0.5 alpha sum_k |w_k|^2

    with stochastic gradients of a double sum over instances and classes, with an estimate u_i of
    each instance's log-normaliser [1]_. A step reads only `n_negatives` + 1 weight vectors, on the
    non-zeros of one instance: its cost depends neither on the number of classes nor on that of
    instances, and its gradients are unbiased, unlike those of sampled softmax, noise-contrastive
    estimation or one-vs-each, which `rule` offers for comparison. U-max lifts u_i where the sampled
    classes prove it too low; without this, gradients can be arbitrarily large.

    :class:`ImplicitSoftmaxSGD` tolerates larger learning rates: try it first.

    Parameters
    ----------
    alpha : float, default=0.0
        Ridge added to the summed log-loss: C = 1 / alpha in scikit-learn's terms.
    n_negatives : int, default=5
        Number of classes other than the instance's own to sample at each step. More of them cost
        more and lower the variance; from n_classes - 1 on, all are taken.
    n_hard_negatives : int or "auto", default="auto"
        Number of additional classes in a step: those that score best for the instance. An exact
        search finds them before epochs 0, 1, 2, 4, 8, 16 and so on (unless the weights are 0),
        which costs as much as a prediction for all instances; with more than 2,048 classes, only
        once, at the start. Gradients stay unbiased and lose most of their variance. "auto" is 5;
        without hard negatives, one step can undo an epoch.
    rule : {"umax", "scent", "vanilla", "raman", "ove", "nce", "is"} or float, default="umax"
        The step. "umax" lifts u_i where it is more than 1 below what the sampled classes allow; a
        float is another such bound, delta in [1]_. "scent" [2]_ replaces exp(u_i) by the mean of
        itself and the step's own estimate of it before the weights move; as u_i then depends on the
        sampled classes, the step is slightly biased. The others are there to be compared with.
        "vanilla" never lifts u_i: unbiased, and its steps may be arbitrarily long. "raman" is U-max
        with u_i plus the score of the instance's class as the variable; it needs ``init="zero"``,
        no intercepts and no warm start. Three minimise something else than the log-loss, and are
        biased: "ove", one-vs-each, minimises an upper bound of it; "is", importance sampling, what
        is on average a lower bound, because it takes the logarithm of a sampled sum; "nce",
        noise-contrastive estimation, a loss whose optimum is that of the log-loss only with a model
        that can normalise itself; it needs ``sampling="uniform"``. "raman" and "nce" take no hard
        negatives.
    fit_intercept : bool, default=True
        Whether to train intercepts b, without a ridge, starting from the log frequencies of the
        classes. An instance without features then has these frequencies as its probabilities.
    sampling : {"frequency", "uniform"}, default="frequency"
        How classes are sampled: in proportion to their frequency, except for a fifth of the draws,
        which are uniform; or all uniformly. Either way, each class is weighted by the inverse of
        its probability, so that gradients are unbiased.
    init : {"means", "zero"}, default="means"
        Where ``fit`` starts: at the shrunken means of the instances of each class, times the factor
        that best suits instances left out of the means; or at zero.
    learning_rate : float or "auto", default="auto"
        In units of 1 / n. "auto" climbs over powers of ten: it starts at the one nearest to the
        inverse of the mean squared norm of the instances, and moves on while a neighbour is better,
        up to a factor of 10,000; without hard negatives, it ends with a trial half a power away.
        Each trial is scored on held-out instances (see `early_stopping`). Together, the trials cost
        about 20 to 60 epochs.
    decay : float or "1/t", default=0.9
        Factor on the learning rate after each epoch, or "1/t" for learning_rate / (1 + epochs).
    max_iter : int, default=50
        Number of epochs; with early stopping, the maximum.
    early_stopping : bool or "auto", default="auto"
        Whether to find the number of epochs on held-out instances: training without them stops when
        their loss has not fallen by `tol` for 3 epochs, and the model is then trained from the
        start on all instances, for the best number of epochs. The loss is the log-loss; if
        instances have several labels, of at most 2,048, it is one minus the mean reciprocal rank of
        the best of an instance's labels, plus a hundredth of the log-loss. "auto" does so if
        `learning_rate` is "auto", and otherwise runs `max_iter` epochs.
    validation_fraction : float or "auto", default="auto"
        Share of the distinct instances to hold out, each with all of its labels. Labels that no
        other instance has do not count. "auto" is a tenth; where ranks decide, at least 256
        instances, but at most a third.
    tol : float, default=1e-3
        See `early_stopping`.
    label_names : array-like of shape (n_labels,), default=None
        Names of the columns of an indicator y, strings or integers, which become ``classes_``. None
        takes the column names of a data frame, otherwise the column numbers.
    top_k : int, default=100
        After a fit to a sparse y, how many of the best labels predict, decision_function and
        predict_proba consider.
    warm_start : bool, default=False
        Whether ``fit`` starts from the current weights.
    max_memory : int or str, default=None
        Limit, in bytes or as a string such as "8GB", on the memory that a fit may take, the model
        included; also on each dense answer. None allows all memory of the machine.
    n_jobs : int, default=None
        Number of threads for evaluation, searches for hard negatives and prediction. Steps are
        taken one after another. The model is bit-for-bit the same for any number.
    random_state : int, RandomState instance or None, default=None
        Seeds the order of the instances and the sampled classes.
    verbose : int, default=0
        If not 0, print progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels after a 1-D y, otherwise the names or numbers of the columns.
    coef_ : ndarray of shape (n_classes, n_features)
        Weights; two rows for two classes.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts; two for two classes; zeros without `fit_intercept`.
    temperature_ : float
        Divides scores before they become probabilities; 1 if no instances were held out.
    best_map_ : ndarray of float64 of shape (3,)
        Numbers a, b, c: the probability p of the best class becomes the logistic function of
        ``a log(p) - b log(1 - p) + c``. No change is (1, 1, 0).
    learning_rate_ : float
        Given, or found, in units of 1 / n.
    fit_report_ : dict of str to ndarray of float64 of shape (n_iter,)
        One entry per epoch; ``pandas.DataFrame(clf.fit_report_)`` shows it. `loss` is the mean over
        the steps of the sampled double sum, minus 1: unbiased, noisy, and on average at least the
        training log-loss; of no meaning for the rules "raman", "ove", "nce" and "is". `log_loss` is
        the exact mean log-loss afterwards: of held-out instances after as many epochs without them
        or, without early stopping, of 256 training instances.
        `learning_rate` is the rate at the beginning of the epoch, in units of 1 / n. `seconds` is
        wall time, without the time for `log_loss`.
    n_iter_ : int
        Number of epochs.
    label_counts_ : ndarray of int64 of shape (n_classes,)
        Instances of each class.
    n_samples_fit_ : int
        Number of instances.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    An intercept is the weight of a constant feature whose value is the root mean square of X over
    the features that occur, so that its steps are like those of other features. An instance without
    any feature that occurred in training scores the logarithms of the class frequencies. Memory:
    the weights, n_classes x n_features values, once more for trials, and O(n). Equal instances of
    one class share their u.

    Source: algorithm 2 of [1]_. It differs in that the classes of a step are distinct, that u
    starts at its optimum, and that the ridge is applied as a proximal step, 1 / (1 + r) instead of
    1 - r. Hard negatives are not in the paper.

    References
    ----------
    .. [1] F. Fagan and G. Iyengar, "Unbiased scalable softmax optimization", arXiv:1803.08577,
       2018.
    .. [2] X. Wei, L. Zhou, B. Wang, C.-J. Lin and T. Yang, "A geometry-aware efficient algorithm
       for compositional entropic risk minimization", arXiv:2602.02877, 2026.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn_xc import SoftmaxUMax
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = SoftmaxUMax(learning_rate=0.1, random_state=0).fit(X[:1500] / 16, y[:1500])
    >>> bool(clf.score(X[1500:] / 16, y[1500:]) > 0.85)
    True
    >>> clf.predict_proba(X[:1] / 16).shape
    (1, 10)
    """

    _diverging_advice = ", or use ImplicitSoftmaxSGD."
    _parameter_constraints: dict = {  # noqa: RUF012
        **SoftmaxClassifier._parameter_constraints,
        "rule": [
            StrOptions(RULES.keys() - {"implicit"}),
            Interval(Real, 0, None, closed="neither"),
        ],
    }

    def __init__(
        self,
        alpha=0.0,
        *,
        n_negatives=5,
        n_hard_negatives="auto",
        rule="umax",
        fit_intercept=True,
        sampling="frequency",
        init="means",
        learning_rate="auto",
        decay=0.9,
        max_iter=50,
        early_stopping="auto",
        validation_fraction="auto",
        tol=1e-3,
        label_names=None,
        top_k=100,
        warm_start=False,
        max_memory=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.alpha = alpha
        self.n_negatives = n_negatives
        self.n_hard_negatives = n_hard_negatives
        self.rule = rule
        self.fit_intercept = fit_intercept
        self.sampling = sampling
        self.init = init
        self.learning_rate = learning_rate
        self.decay = decay
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.tol = tol
        self.label_names = label_names
        self.top_k = top_k
        self.warm_start = warm_start
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _settings(self, problem: SoftmaxProblem, seed: int) -> SgdSettings:
        n_hard = self._n_hard()
        if self.rule in _NEEDS:
            n_hard = 0 if self.n_hard_negatives == "auto" else n_hard
            needed = _NEEDS[self.rule] | {"n_hard_negatives": 0}
            given = {name: getattr(self, name) for name in needed} | {"n_hard_negatives": n_hard}
            if given != needed:
                raise ValueError(
                    f"SoftmaxUMax: rule={self.rule!r} needs {_listed(needed)}. "
                    f"Got {_listed(given)}."
                )
        if isinstance(self.rule, Real):
            rule = RULES["umax"]._replace(settings=UMaxSettings(float(self.rule)))
        else:
            rule = RULES[self.rule]
        return SgdSettings(rule, self.n_negatives, seed, n_hard=n_hard, sampling=self.sampling)


def _listed(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in parameters.items())
