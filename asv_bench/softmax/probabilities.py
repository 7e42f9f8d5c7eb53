"""How good the probabilities of the softmax estimators are, on sets of classes at several sizes.

Both with their defaults, on at most 3,000 test instances: log-loss, of those whose class has a
training instance, and calibration error. The log-losses of guessing, log(n_classes), and of the
class frequencies stand beside. A second table tells in bands how often the best class is right,
beside its mean probability. Precision, and what other settings give, is told by
``python -m asv_bench defaults``.
"""

import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from asv_bench.common.report import Column, Report
from asv_bench.common.sized_sets import CLASS_SETS, load_sized_set, sizes_of
from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax

#: Sets and sizes with more weights than this are left out.
MOST_WEIGHTS = 2.5e8
_MOST_TESTED = 3000
#: Rows whose probabilities are there at a time.
_ROWS = 512
#: Bins of equally many instances, of the calibration error.
_N_BINS = 15

COLUMNS = [
    Column("set", "set"),
    Column("size", "size"),
    Column("n_classes", "classes", ",d"),
    Column("estimator", "estimator"),
    Column("log_loss", "log-loss", ".2f"),
    Column("frequencies", "frequencies", ".2f"),
    Column("guessing", "guessing", ".2f"),
    Column("error", "ECE, %", ".1f"),
]
#: Of the probability of the best class.
_EDGES = (0.5, 0.8, 0.95, 0.999)
#: A band of fewer instances is left out.
_FEW = 50
BANDS = [
    Column("set", "set"),
    Column("size", "size"),
    Column("estimator", "estimator"),
    Column("band", "band"),
    Column("n", "instances", ",d"),
    Column("claimed", "mean probability", ".3f"),
    Column("right", "right", ".3f"),
]


def measure_probabilities(
    data: Any, sizes: Sequence[str], report: Report, *, cache: Any = None
) -> list[dict[str, Any]]:
    """Return a row for each set, size and estimator.

    Parameters
    ----------
    data : path-like
        Folder of the data sets.
    sizes : sequence of {"1/16", "1/4", "all"}
        Shares of the training instances.
    report : Report
        Where to tell what is done.
    cache : path-like, default=None
        See ``load_sized_set``.

    Returns
    -------
    list of dict
        What ``COLUMNS`` names; and ``bands``, of what ``BANDS`` does.
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
        for estimator in (SoftmaxUMax, ImplicitSoftmaxSGD):
            model = estimator(n_jobs=1, random_state=0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(sized.X_train, sized.y_train)
            found = judge(model, X_test, y_test)
            of_set = {"set": name, "size": size, "estimator": estimator.__name__}
            bands = [{**of_set, **band} for band in found.pop("bands")]
            rows.append({**of_set, "n_classes": n_classes, **found, "bands": bands})
            report.line(f"{name}, {size}, {estimator.__name__}: log-loss {found['log_loss']:.3f}")
    return rows


def judge(model: Any, X: Any, y: np.ndarray) -> dict[str, Any]:
    """Return how good the probabilities of a softmax model are.

    Parameters
    ----------
    model : SoftmaxUMax or ImplicitSoftmaxSGD
        Fitted.
    X : csr_array of shape (n, n_features)
        Test instances.
    y : ndarray of int of shape (n,)
        Their classes, also such as the model does not know.

    Returns
    -------
    dict
        ``log_loss``, and those of ``guessing`` and of the class ``frequencies``, means over the
        instances of known classes; ``error`` in percent, over all instances, and their ``bands``.
    """
    claimed, is_right, losses = [], [], []
    place = np.minimum(np.searchsorted(model.classes_, y), len(model.classes_) - 1)
    is_known = model.classes_[place] == y
    for first in range(0, len(y), _ROWS):
        rows = slice(first, first + _ROWS)
        found = model.predict_log_proba(X[rows])
        best = found.argmax(axis=1)
        claimed.append(np.exp(found.max(axis=1)))
        is_right.append(is_known[rows] & (best == place[rows]))
        known = np.flatnonzero(is_known[rows])
        losses.append(-found[known, place[rows][known]])
    shares = model.label_counts_ / model.label_counts_.sum()
    probability, right = np.concatenate(claimed), np.concatenate(is_right)
    error = calibration_error(probability, right)
    return {
        "log_loss": float(np.concatenate(losses).mean()),
        "guessing": float(np.log(len(model.classes_))),
        "frequencies": float(-np.log(shares[place[is_known]]).mean()),
        "error": 100.0 * error,
        "bands": bands_of(probability, right),
    }


def bands_of(claimed: np.ndarray, is_right: np.ndarray) -> list[dict[str, Any]]:
    """Return how often the best class is right, by its probability, in bands of 50 or more.

    Parameters
    ----------
    claimed, is_right
        As of ``calibration_error``.
    """
    names = [f"{low:g} to {high:g}" for low, high in itertools.pairwise((0.0, *_EDGES, 1.0))]
    band = np.searchsorted(_EDGES, claimed, side="right")
    parts = [(name, np.flatnonzero(band == number)) for number, name in enumerate(names)]
    return [
        {
            "band": name, "n": len(part), "claimed": float(claimed[part].mean()),
            "right": float(is_right[part].mean()),
        }
        for name, part in parts if len(part) >= _FEW
    ]  # fmt: skip


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
