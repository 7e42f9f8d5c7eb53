"""The defaults of the softmax estimators beside one-vs-all, on sets of classes at several sizes.

Precision, log-loss and calibration of test instances, at most 3,000 of them; log-losses are of the
test instances whose class has a training instance. The log-losses of guessing, log(n_classes), and
of the class frequencies stand beside. ``grid`` adds six settings of two parameters, each with early
stopping: what a user could find who had the test set.
"""

import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from asv_bench.common.measure import cpu_seconds
from asv_bench.common.report import Column, Report
from asv_bench.common.sized_sets import CLASS_SETS, load_sized_set, sizes_of
from sklearn_xc import ImplicitSoftmaxSGD, OvALinearXC, SoftmaxUMax
from sklearn_xc._checks import check_instances

#: Settings of the grid.
RATES, N_HARD = (0.1, 1.0, 10.0), (0, 5)
#: Sets and sizes with more weights than this are left out.
MOST_WEIGHTS = 2.5e8
_MOST_TESTED = 3000
#: Bins of equally many instances, of the calibration error.
_N_BINS = 15

COLUMNS = [
    Column("set", "set"),
    Column("size", "size"),
    Column("n_classes", "classes", ",d"),
    Column("method", "method"),
    Column("rate", "rate x n", "g"),
    Column("n_epochs", "epochs", "d"),
    Column("precision", "P@1", ".1f"),
    Column("log_loss", "log-loss", ".3f"),
    Column("guessing", "guessing", ".3f"),
    Column("prior", "frequencies", ".3f"),
    Column("error", "ECE", ".1f"),
    Column("cpu_s", "CPU s", ",.2f"),
]


def compare_defaults(
    data: Any, sizes: Sequence[str], report: Report, *, grid: bool = False, cache: Any = None
) -> list[dict[str, Any]]:
    """Return a row for each set, size and method.

    Parameters
    ----------
    data : path-like
        Folder of the data sets.
    sizes : sequence of {"1/16", "1/4", "all"}
        Shares of the training instances.
    report : Report
        Where to tell what is done.
    grid : bool, default=False
        Whether to fit six settings of each estimator besides.
    cache : path-like, default=None
        See ``load_sized_set``.

    Returns
    -------
    list of dict
        What ``COLUMNS`` names.
    """
    rows = []
    for name, size in itertools.product(CLASS_SETS, sizes):
        if size not in sizes_of(name):
            continue
        sized = load_sized_set(name, size, data, cache=cache)
        n_classes = len(np.unique(sized.y_train))
        if n_classes * sized.X_train.shape[1] > MOST_WEIGHTS:
            continue
        drawn = np.random.default_rng(1).permutation(sized.X_test.shape[0])[:_MOST_TESTED]
        tested = np.sort(drawn)
        X_test, y_test = sized.X_test[tested], sized.Y_test.indices[tested]
        for method, model in methods(grid).items():
            found = measure(model, sized.X_train, sized.y_train, X_test, y_test)
            row = {"set": name, "size": size, "n_classes": n_classes, "method": method, **found}
            report.line(f"{name}, {size}, {method}: P@1 {row['precision']:.1f}")
            rows.append(row)
    return rows


def methods(grid: bool) -> dict[str, Any]:
    """Return unfitted estimators by name."""
    models: dict[str, Any] = {"one-vs-all": OvALinearXC(n_jobs=1)}
    estimators = {"U-max": SoftmaxUMax, "implicit": ImplicitSoftmaxSGD}
    for name, estimator in estimators.items():
        models[name] = estimator(n_jobs=1, random_state=0)
    for name, rate, n_hard in itertools.product(estimators, RATES, N_HARD) if grid else ():
        models[f"{name}, rate {rate:g}, {n_hard} hard"] = estimators[name](
            learning_rate=rate, n_hard_negatives=n_hard, early_stopping=True, n_jobs=1,
            random_state=0,
        )  # fmt: skip
    return models


def measure(
    model: Any, X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray
) -> dict[str, Any]:  # fmt: skip
    """Fit an estimator; return what is measured of it.

    Parameters
    ----------
    model : estimator
        Unfitted.
    X, X_test : csr_array of shape (n, n_features)
        Instances.
    y, y_test : ndarray of int of shape (n,)
        Classes.

    Returns
    -------
    dict
        precision and error in percent, and cpu_s; of softmax models also rate, n_epochs, and
        log-losses; of one that diverges a precision of 0.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            _, seconds = cpu_seconds(model.fit, X, y)
        except ValueError as error:
            if "diverged" not in str(error):
                raise
            return {"precision": 0.0, "cpu_s": np.nan}
    best, scores = (answer.ravel() for answer in model.predict_topk(X_test, 1))
    is_right = model.classes_[best] == y_test
    row = {"precision": 100.0 * is_right.mean(), "cpu_s": seconds}
    if isinstance(model, OvALinearXC):
        return row
    weights = model._weights()
    instances = check_instances(model, X_test, reset=False).without_zeros()
    claimed = np.exp(scores - weights.log_normalisers(instances, 1))
    place = np.minimum(np.searchsorted(model.classes_, y_test), len(model.classes_) - 1)
    known = np.flatnonzero(model.classes_[place] == y_test)
    losses = weights.log_losses(instances, known, place[known], 1)
    shares = model.label_counts_ / model.label_counts_.sum()
    return {
        **row,
        "rate": model.learning_rate_, "n_epochs": model.n_iter_, "log_loss": float(losses.mean()),
        "guessing": float(np.log(len(model.classes_))),
        "prior": float(-np.log(shares[place[known]]).mean()),
        "error": 100.0 * calibration_error(claimed, is_right),
    }  # fmt: skip


def calibration_error(claimed: np.ndarray, is_right: np.ndarray) -> float:
    """Return the mean distance of probabilities from the share that is right, in bins.

    Parameters
    ----------
    claimed : ndarray of shape (n,)
        The probability of the best class.
    is_right : ndarray of bool of shape (n,)
        Whether it is the class.
    """
    bins = np.array_split(np.argsort(claimed, kind="stable"), _N_BINS)
    gaps = [len(b) * abs(claimed[b].mean() - is_right[b].mean()) for b in bins if len(b)]
    return float(sum(gaps) / len(claimed))
