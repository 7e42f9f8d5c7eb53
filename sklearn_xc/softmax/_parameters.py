"""The parameters that both softmax estimators have, and their documentation."""

import textwrap
from numbers import Integral, Real
from os import PathLike
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
        "checkpoint_dir": [str, PathLike, None],
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
        checkpoint_dir,
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
        self.checkpoint_dir = checkpoint_dir


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
    Ridge beside the summed log-loss: C = 1 / alpha in scikit-learn's terms. 0 by default: where
    training stops early, a ridge of 0.1 raised the held-out log-loss on half of the sets tried.""",
    "fit_intercept": """\
fit_intercept : bool, default=True
    Whether to train intercepts b, without a ridge, from the log frequencies of the classes. An
    instance without features then has these frequencies as its probabilities.""",
    "n_negatives": """\
Classes other than the instance's own that are sampled at each step. More of them cost more and
lower the variance; from n_classes - 1 on, all are taken.""",
    "sampling": """\
sampling : {"frequency", "uniform"}, default="frequency"
    How classes are sampled: as often as they occur, except for a fifth of the draws, which is
    spread evenly, or all equally often. Either way each counts for the inverse of its probability,
    and gradients are unbiased; where frequent classes hold most of the normaliser, their variance
    is far lower: the default.""",
    "n_hard_negatives": """\
n_hard_negatives : int or "auto", default="auto"
    Classes that a step takes besides: those that score best for the instance. They are searched for
    exactly, before epochs 0, 1, 2, 4, 8, 16 and so on (unless the weights are 0), which costs as
    much as a prediction for all instances; among more than 2,048 classes once, at the start.
    Sampled classes then stand for the rest. Gradients stay unbiased and lose most of their
    variance: U-max stays stable, and new instances gain about a point of precision.""",
    "init": """\
init : {"means", "zero"}, default="means"
    Where ``fit`` starts: at the means of the instances of each class, shrunken, times the factor
    that suits instances left out of them; one pass over X. Without a ridge, and with few epochs,
    the start matters for new instances: it is the better one, and the default.""",
    "u_init": """\
u_init : {"optimal", "zero"}, default="optimal"
    Where each u starts: at its optimum for the weights that ``fit`` starts from, the log-loss, or
    at 0, as in the code of the authors of [1]_. At 0 the first step of each pair is up to n_classes
    times too long. A search for hard negatives sets all u anew, to their optimum.""",
    "learning_rate": """\
learning_rate : float or "auto", default="auto"
    In units of 1 / n. "auto" climbs over powers of ten: from the one nearest to the inverse of the
    mean squared norm of the instances, times `batch_size`, to its neighbours, on where that is
    better, up to a factor of 10,000, and without hard negatives half a power back. Each trial
    starts where ``fit`` starts, and is judged by held-out instances (see `early_stopping`); it
    ends where their loss no longer falls, or cannot become the lowest.
    Together trials cost about 20 to 60 epochs. Without early stopping they run `max_iter` epochs on
    a tenth of the data.""",
    "decay_to_max_memory": """\
decay : float or "1/t", default=0.9
    Factor on the learning rate after each epoch, or "1/t" for learning_rate / (1 + epochs). A
    factor below 1 stops at a finite distance; with "1/t" and `average`, the iterates converge to
    the maximum of the likelihood.
average : bool, default=False
    Whether to return the average of the iterates at the ends of the epochs, later ones with more
    weight.
max_iter : int, default=50
    Epochs; with early stopping, at most. After 50, the default `decay` leaves 1/200 of the rate.
multilabel : {"all", "first"}, default="all"
    For an indicator y: each label of a row is an observation, or only the first column.
early_stopping : bool or "auto", default="auto"
    Whether to find the number of epochs on instances held out: training without them stops when
    their loss has not fallen by `tol` for `n_iter_no_change` epochs. It is their log-loss; where
    instances have several labels, of at most 2,048, it is one less the mean reciprocal rank of the
    best of an instance's labels, which says more of precision and less of probabilities, plus a
    hundredth of the log-loss. Then all instances are trained on, from the start, for the number of
    epochs that was best. What is held out also says how sure the model may be of its best class
    (`temperature_`, `best_map_`). "auto" does so where `learning_rate` is "auto", and otherwise
    runs `max_iter` epochs.
validation_fraction : float or "auto", default="auto"
    Share of the distinct instances that early stopping and "auto" hold out, each with all of its
    labels. Labels that no other instance has do not count. None is lost to the final training.
    "auto" is a tenth; where ranks judge, at least 256 instances, but at most a third.
n_iter_no_change : int, default=3
    See `early_stopping`; 5 lowered no log-loss by more than 0.01, and costs more.
tol : float, default=1e-3
    See `early_stopping`; a lower one trained longer for the same precision.
label_names : array-like of shape (n_labels,), default=None
    Names of the columns of an indicator y, texts or integers, which become ``classes_``. None takes
    those of a data frame, else the columns' numbers.
top_k : int, default=100
    After a sparse fit, how many of the best labels predict, decision_function and predict_proba
    consider.
warm_start : bool, default=False
    Whether ``fit`` goes on from the weights, and from u where rows and classes agree.
max_memory : int or str, default=None
    Bytes, or a text as "8GB", that a fit may hold beyond what the process had when it began, the
    model included, and each dense answer. None is what the machine has.""",
    "random_state_and_verbose": """\
random_state : int, RandomState instance or None, default=None
    Of the order of the instances and of the sampled classes.
verbose : int, default=0
    If not 0, print progress.
checkpoint_dir : str or PathLike, default=None
    A folder in which ``fit`` keeps how far it is: trials that have ended, and the weights after an
    epoch as often as that takes no more than a fiftieth of the time. If the process ends before the
    fit does, the same call goes on from there, and ends in the same bytes; with any `n_jobs`. Other
    data, parameters or versions are refused. The folder stays when the fit has ended, and takes
    about as much room as the model does in memory: it is yours to remove. One fit to a folder: not
    for searches, whose candidates would share it.""",
    "attributes": """\
classes_ : ndarray of shape (n_classes,)
    Class labels after a 1-D y, else names of columns, or their numbers.
coef_ : ndarray of shape (n_classes, n_features)
    Weights, also two rows for two classes.
intercept_ : ndarray of shape (n_classes,)
    Intercepts, also two for two classes; zeros without `fit_intercept`.
learning_rate_ : float
    Given, or found, in units of 1 / n.
temperature_ : float
    Probabilities are made of scores over it. Learned with early stopping, if the held-out
    instances are clear about it, else 1. ``partial_fit`` and a warm start leave it as it is.
best_map_ : ndarray of float64 of shape (3,)
    Likewise: numbers a, b, c by which the probability p of the best class of an instance becomes
    1 / (1 + exp(-(a log p - b log(1 - p) + c))), while all others share the rest as before.
    (1, 1, 0) leaves p as it is. Classes keep their order: the best one has at least as much as the
    second. In ``predict_proba`` and, of an indicator, ``predict``; scores are as they were.
fit_report_ : dict of str to ndarray of float64 of shape (n_iter,)
    One entry per epoch, or per call of ``partial_fit``; ``pandas.DataFrame(clf.fit_report_)`` shows
    it. `loss` is the mean of the sampled double sum, less 1, over the steps: unbiased, noisy, and
    in the mean at least the training log-loss. `log_loss` is the exact mean log-loss afterwards: of
    held-out instances after as many epochs without them, or without early stopping of 256 training
    instances; NaN after ``partial_fit``, which does not measure it. `learning_rate` is the rate at
    the beginning, in units of 1 / n. `seconds` is wall time, without what `log_loss` takes.
n_iter_ : int
    Entries of the report.
u_ : ndarray of float64 of shape (n_pairs,)
    One variable per pair of an instance and one of its classes.
u_index_ : ndarray of int64 of shape (n_pairs, 2)
    Number of the instance and position of the class of each.
label_counts_ : ndarray of int64 of shape (n_classes,)
    Instances of each class.
n_samples_fit_ : int
    Instances passed; those that come again count again, as in ``label_counts_``.
n_features_in_, feature_names_in_
    As in scikit-learn.""",
    "notes": """\
An intercept is the weight of a constant feature, the root mean square of X over the features that
occur: it takes steps like those of other features. An instance of which no feature occurred in
training scores the logarithms of the class frequencies. Memory: the weights, n_classes x n_features
values, once more for each of `average` and trials on part of the instances, and O(n). Equal
instances of one class share their u.""",
}
