"""The parameters that both softmax estimators have, and their documentation."""

import textwrap
from numbers import Integral, Real
from typing import TypeVar

from sklearn_xc._sklearn import Interval, StrOptions
from sklearn_xc.softmax._model import SoftmaxModel

Estimator = TypeVar("Estimator", bound=type)


class SoftmaxParameters(SoftmaxModel):
    """Parameters of both estimators. A subclass has a signature of its own, with defaults."""

    _parameter_constraints: dict = {  # noqa: RUF012
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "n_negatives": [Interval(Integral, 1, None, closed="left")],
        "sampling": [StrOptions({"uniform", "frequency"})],
        "n_hard_negatives": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "init": [StrOptions({"means", "zero"})],
        "u_init": [StrOptions({"optimal", "zero"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "decay": [Interval(Real, 0, 1, closed="right"), StrOptions({"1/t"})],
        "average": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "multilabel": [StrOptions({"all", "first"})],
        "early_stopping": ["boolean", StrOptions({"auto"})],
        "validation_fraction": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
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
        *,
        alpha,
        fit_intercept,
        n_negatives,
        sampling,
        n_hard_negatives,
        init,
        u_init,
        learning_rate,
        decay,
        average,
        max_iter,
        multilabel,
        early_stopping,
        validation_fraction,
        n_iter_no_change,
        tol,
        label_names,
        top_k,
        warm_start,
        max_memory,
        n_jobs,
        random_state,
        verbose,
    ):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.n_negatives = n_negatives
        self.sampling = sampling
        self.n_hard_negatives = n_hard_negatives
        self.init = init
        self.u_init = u_init
        self.learning_rate = learning_rate
        self.decay = decay
        self.average = average
        self.max_iter = max_iter
        self.multilabel = multilabel
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.label_names = label_names
        self.top_k = top_k
        self.warm_start = warm_start
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose


def documented(estimator: Estimator) -> Estimator:
    """Put the shared parts in place of their names in the docstring of an estimator.

    Its docstring holds ``{name}`` for each of ``SHARED``, on a line of its own.
    """
    if estimator.__doc__ is not None:  # python -OO
        lines = []
        for line in estimator.__doc__.splitlines():
            name = line.strip().removeprefix("{").removesuffix("}")
            is_shared = line.strip() == f"{{{name}}}"
            indent = line[: len(line) - len(line.lstrip())]
            lines.append(textwrap.indent(SHARED[name], indent) if is_shared else line)
        estimator.__doc__ = "\n".join(lines)
    return estimator


#: Parts of the docstrings of both estimators.
SHARED = {
    "alpha": """\
alpha : float, default=0.0
    Ridge added to the summed log-loss: C = 1 / alpha in scikit-learn's terms. 0 by default: with
    early stopping, a ridge of 0.1 raised the held-out log-loss on half of the data sets tried.""",
    "fit_intercept": """\
fit_intercept : bool, default=True
    Whether to train intercepts b, without a ridge, starting from the log frequencies of the
    classes. An instance without features then has these frequencies as its probabilities.""",
    "n_negatives": """\
Number of classes other than the instance's own to sample at each step. More of them cost
more and lower the variance; from n_classes - 1 on, all are taken.""",
    "sampling": """\
sampling : {"frequency", "uniform"}, default="frequency"
    How classes are sampled: in proportion to their frequency, except for a fifth of the draws,
    which are uniform; or all uniformly. Either way, each class is weighted by the inverse of its
    probability, so that gradients are unbiased. Where frequent classes make up most of the
    normaliser, the default gives gradients of far lower variance.""",
    "n_hard_negatives": """\
n_hard_negatives : int or "auto", default="auto"
    Number of additional classes in a step: those that score best for the instance. An exact search
    finds them before epochs 0, 1, 2, 4, 8, 16 and so on (unless the weights are 0), which costs as
    much as a prediction for all instances; with more than 2,048 classes, only once, at the start.
    Sampled classes then stand for the rest. Gradients stay unbiased and lose most of their
    variance: U-max stays stable, and precision on new instances rises by about a point.""",
    "init": """\
init : {"means", "zero"}, default="means"
    Where ``fit`` starts: at zero, or at the shrunken means of the instances of each class, times
    the factor that best suits instances left out of the means; this takes one pass over X. Without
    a ridge and with few epochs, the start matters for new instances, and "means" is the better
    one.""",
    "u_init": """\
u_init : {"optimal", "zero"}, default="optimal"
    Where each u starts: at its optimum for the initial weights, which is the log-loss; or at 0, as
    in the code of the authors of [1]_. From 0, the first step of each pair is up to n_classes
    times too long. A search for hard negatives resets all u to their optimum.""",
    "learning_rate": """\
learning_rate : float or "auto", default="auto"
    In units of 1 / n. "auto" climbs over powers of ten: it starts at the one nearest to the
    inverse of the mean squared norm of the instances, times `batch_size`, tries its neighbours,
    goes on while that is better, up to a factor of 10,000, and, without hard negatives, half a
    power back. Each trial starts where ``fit`` starts and is judged by held-out instances (see
    `early_stopping`); it ends when their loss no longer falls or cannot become the lowest.
    Together, the trials cost about 20 to 60 epochs. Without early stopping, they run `max_iter`
    epochs on a tenth of the data.""",
    "decay_to_max_memory": """\
decay : float or "1/t", default=0.9
    Factor on the learning rate after each epoch, or "1/t" for learning_rate / (1 + epochs). With a
    factor below 1, the total distance moved is finite; with "1/t" and `average`, the iterates
    converge to the maximum of the likelihood.
average : bool, default=False
    Whether to return the average of the iterates at the ends of the epochs, where later ones have
    more weight.
max_iter : int, default=50
    Number of epochs; with early stopping, the maximum. After 50, the default `decay` leaves 1/200
    of the rate.
multilabel : {"all", "first"}, default="all"
    For an indicator y: whether each label of a row is an observation, or only its first, in the
    order of columns.
early_stopping : bool or "auto", default="auto"
    Whether to find the number of epochs on held-out instances: training without them stops when
    their loss has not fallen by `tol` for `n_iter_no_change` epochs. Their loss is the log-loss;
    if instances have several labels, of at most 2,048, it is one minus the mean reciprocal rank of
    the best of an instance's labels, which reflects precision more and probabilities less, plus a
    hundredth of the log-loss. The model is then trained from the start on all instances, for the
    best number of epochs. The held-out instances also determine how confident the model may be of
    its best class (`temperature_`, `best_map_`). "auto" does so if `learning_rate` is "auto", and
    otherwise runs `max_iter` epochs.
validation_fraction : float or "auto", default="auto"
    Share of the distinct instances that early stopping and "auto" hold out, each with all of its
    labels. Labels that no other instance has do not count. The final training uses all instances.
    "auto" is a tenth; where ranks judge, at least 256 instances, but at most a third.
n_iter_no_change : int, default=3
    See `early_stopping`; 5 costs more, and lowered no log-loss by more than 0.01.
tol : float, default=1e-3
    See `early_stopping`; a lower value trained longer for the same precision.
label_names : array-like of shape (n_labels,), default=None
    Names of the columns of an indicator y, strings or integers, which become ``classes_``. None
    takes the column names of a data frame, otherwise the column numbers.
top_k : int, default=100
    After a fit to a sparse y, how many of the best labels predict, decision_function and
    predict_proba consider.
warm_start : bool, default=False
    Whether ``fit`` continues from the current weights, and from u where rows and classes agree.
max_memory : int or str, default=None
    Limit, in bytes or as a string such as "8GB", on what a fit may hold beyond what the process
    held when the fit began, the model included; also on each dense answer. None allows what the
    machine has.""",
    "random_state_and_verbose": """\
random_state : int, RandomState instance or None, default=None
    Seeds the order of the instances and the sampled classes.
verbose : int, default=0
    If not 0, print progress.""",
    "attributes": """\
classes_ : ndarray of shape (n_classes,)
    Class labels after a 1-D y, otherwise the names or numbers of the columns.
coef_ : ndarray of shape (n_classes, n_features)
    Weights; two rows for two classes.
intercept_ : ndarray of shape (n_classes,)
    Intercepts; two for two classes; zeros without `fit_intercept`.
learning_rate_ : float
    Given, or found, in units of 1 / n.
temperature_ : float
    Scores are divided by it to get probabilities. Learned with early stopping, if the held-out
    instances are clear about it, otherwise 1. ``partial_fit`` and a warm start leave it as it is.
best_map_ : ndarray of float64 of shape (3,)
    Learned likewise: numbers a, b, c that map the probability p of the best class of an instance
    to 1 / (1 + exp(-(a log p - b log(1 - p) + c))), while the others share the rest as before. (1,
    1, 0) leaves p as it is. Classes keep their order: the best one has at least the probability of
    the second. Applied in ``predict_proba`` and, for an indicator, ``predict``; scores do not
    change.
fit_report_ : dict of str to ndarray of float64 of shape (n_iter,)
    One entry per epoch, or per call of ``partial_fit``; ``pandas.DataFrame(clf.fit_report_)``
    shows it. `loss` is the mean over the steps of the sampled double sum, minus 1: unbiased,
    noisy, and on average at least the training log-loss. `log_loss` is the exact mean log-loss
    afterwards: of held-out instances after as many epochs without them or, without early stopping,
    of 256 training instances; NaN after ``partial_fit``, which does not measure it.
    `learning_rate` is the rate at the beginning of the epoch, in units of 1 / n. `seconds` is wall
    time, without the time for `log_loss`.
n_iter_ : int
    Entries of the report.
u_ : ndarray of float64 of shape (n_pairs,)
    One variable per pair of an instance and one of its classes.
u_index_ : ndarray of int64 of shape (n_pairs, 2)
    Instance number and class position of each entry of ``u_``.
label_counts_ : ndarray of int64 of shape (n_classes,)
    Instances of each class.
n_samples_fit_ : int
    Number of instances passed; repeated ones count again, as in ``label_counts_``.
n_features_in_, feature_names_in_
    As in scikit-learn.""",
    "notes": """\
An intercept is the weight of a constant feature whose value is the root mean square of X over the
features that occur, so that its steps are like those of other features. An instance without any
feature that occurred in training scores the logarithms of the class frequencies. Memory: the
weights, n_classes x n_features values, once more for `average`, once more for trials on part of
the instances, and O(n). Equal instances of one class share their u.""",
}
