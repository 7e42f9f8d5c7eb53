"""From scores to decisions: what tuned thresholds gain in F1, and how right probabilities are.

The first table has micro- and macro-averaged F1 of ``predict`` on test rows, in percent, by plain
``OvALinearXC`` and by ``ThresholdTuner`` around it: of all labels, of those with at most 20
training instances, and of the three rarest of five groups with the same share of all pairs. The
macro average of all counts labels without a test row as 0, the others leave them out. The second
table has the expected calibration error (15 bins of equal numbers of pairs) of ``TopKCalibrator``:
over the five best labels of each test row, over the best alone, and the largest of all groups of
labels by frequency with at least 200 relevant pairs; beside each the error that perfect
probabilities would show on as many rows. The debiased error is the root of the mean squared
distance less what chance adds to it, negative where that is more [1]_. The third table has the
probabilities that the logistic loss gives without held-out rows, by C. The fourth has metrics at
5, in percent, of the rankings that ``TopKCalibrator`` makes for macro-averaged metrics, and of
weights by propensity, which do not depend on the seed. The first table also has F1 averaged over
rows, and the percentage of rows that are predicted no label.

References
----------
.. [1] A. Kumar, P. Liang and T. Ma, "Verified uncertainty calibration", NeurIPS 2019.
"""

import argparse
from collections.abc import Sequence
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from asv_bench.common.measure import quietly
from asv_bench.common.report import Report
from asv_bench.common.sets import CLASS_SETS, LABEL_SETS, SIZES, DataSet, load
from sklearn_xc import (
    ImplicitSoftmaxSGD,
    OvALinearXC,
    SoftmaxUMax,
    ThresholdTuner,
    TopKCalibrator,
    topk,
)
from sklearn_xc.ensemble.macro_gains import OBJECTIVES
from sklearn_xc.metrics import coverage_at_k, macro_f1_at_k, precision_at_k

SETS = (
    "cooking_stackexchange",
    "tate",
    "english_wordnet",
    "delicious",
    "bibtex",
    "citeulike_t",
)
#: Parameters of the tuner.
THRESHOLDS: dict[str, dict[str, Any]] = {
    "default": {},
    "one threshold": {"per": "all"},
    "per label": {"per": "label"},
    "macro_f1": {"objective": "macro_f1"},
    "count": {"objective": "count"},
    "one label": {"min_labels": 1},
}
METHODS = ("spline", "sigmoid")
PARTS = ("f1", "ece", "logistic", "macro")
#: Of the logistic loss.
_CS = (0.5, 3.0, 10.0, 30.0)
#: A label with as many training instances is rare.
_RARE = 20
_BINS = 15
_FEW = 200


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    known = LABEL_SETS + CLASS_SETS
    parser.add_argument("--sets", nargs="+", choices=known, default=SETS, help="data sets")
    parser.add_argument("--size", choices=SIZES, default="1/4", help="share of training rows (1/4)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="tables (all)")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["spline"])
    parser.add_argument(
        "--cv", type=_share_or_folds, default=None, help="folds, or a share (the default of both)"
    )


def main(options: argparse.Namespace, report: Report) -> list[dict[str, Any]]:
    """Tune and calibrate on training rows, measure on test rows; return the rows of all tables."""
    found: dict[str, list[dict[str, Any]]] = {part: [] for part in PARTS}
    for name in options.sets:
        sized = load(name, options.data, options.size, cache=options.cache)
        for label, estimator in _estimators(sized.one_class).items():
            kept, cv = Remembered(estimator), options.cv
            if "f1" in options.parts and not sized.one_class:
                found["f1"] += quietly(_thresholds, sized, kept, cv)
            if "ece" in options.parts:
                found["ece"] += quietly(_calibration, sized, kept, label, options.methods, cv)
            Remembered.fitted.clear()
        if "logistic" in options.parts and not sized.one_class:
            found["logistic"] += [_logistic(sized, C) for C in _CS]
        if "macro" in options.parts and not sized.one_class:
            found["macro"] += [row for seed in range(3) for row in _macro(sized, seed)]
    for part, rows in found.items():
        if rows:
            report.table(f"{part}, test set", rows)
    return [{"part": part, **row} for part, rows in found.items() for row in rows]


def _share_or_folds(text: str) -> float:
    return float(text) if "." in text else int(text)


def _estimators(one_class: bool) -> dict[str, Any]:
    if not one_class:
        return {"ova": OvALinearXC(n_jobs=-1)}
    return {
        "implicit": ImplicitSoftmaxSGD(n_jobs=-1, random_state=0),
        "umax": SoftmaxUMax(n_jobs=-1, random_state=0),
    }


def _thresholds(sized: DataSet, estimator: Any, cv: float | None) -> list[dict[str, Any]]:
    Y = sp.csr_array(sized.Y_test)
    common = {
        "set": sized.name,
        "rows": sized.X_train.shape[0],
        "labels": Y.shape[1],
        "true": Y.nnz / Y.shape[0],
    }
    counts = np.asarray(sized.Y_train.sum(axis=0)).ravel()
    order = np.argsort(counts, kind="stable")
    fifth = np.empty(len(counts), np.int64)  # of the pairs, rare labels first
    fifth[order] = 5 * (np.cumsum(counts[order]) - counts[order]) // max(1, counts.sum())
    groups = {
        "rare": (counts > 0) & (counts <= _RARE),
        "group": (counts > 0) & (fifth < 3),
    }
    rows = []
    for name, parameters in {"0": None, **THRESHOLDS}.items():
        if parameters is None:
            model = clone(estimator)
        else:
            model = ThresholdTuner(estimator, cv=cv, random_state=0, **parameters)
        predicted = model.fit(sized.X_train, sized.Y_train).predict(sized.X_test)
        rows.append({**common, "thresholds": name, **_f1(Y, sp.csr_array(predicted), groups)})
    return rows


def _f1(Y: Any, predicted: Any, groups: dict[str, np.ndarray]) -> dict[str, float]:
    """Return both averages of F1 in percent, of all labels and groups, and labels a row."""
    hits, named, true = (
        np.asarray(one.sum(axis=0), np.float64).ravel()
        for one in (Y.multiply(predicted != 0), predicted != 0, Y)
    )
    of_labels = 2 * hits / np.maximum(named + true, 1)
    micro = 2 * hits.sum() / max(named.sum() + true.sum(), 1)
    in_row, named_in_row, true_in_row = (
        np.asarray(one.sum(axis=1), np.float64).ravel()
        for one in (Y.multiply(predicted != 0), predicted != 0, Y)
    )
    of_rows = 2 * in_row / np.maximum(named_in_row + true_in_row, 1)
    found = {
        "named": named.sum() / Y.shape[0],
        "empty": 100 * (named_in_row == 0).mean(),
        "samples": 100 * of_rows.mean(),
        "micro": 100 * micro,
        "macro": 100 * of_labels.mean(),
    }
    for name, inside in groups.items():
        both = max(named[inside].sum() + true[inside].sum(), 1)
        tested = of_labels[inside & (true > 0)]
        found[f"{name}_micro"] = 100 * 2 * hits[inside].sum() / both
        found[f"{name}_macro"] = 100 * tested.mean() if tested.size else np.nan
    return found


def _calibration(
    sized: DataSet, estimator: Any, label: str, methods: Sequence[str], cv: float | None
) -> list[dict[str, Any]]:
    rows = []
    for method in methods:
        model = TopKCalibrator(estimator, method=method, cv=cv, random_state=0)
        model.fit(sized.X_train, sized.target)
        positions, chances = model.predict_proba_topk(sized.X_test, 5)
        labels = np.asarray(model.classes_)[positions]
        hits = _hits(sized, labels)
        groups = np.searchsorted(model.group_edges_, model.label_counts_, side="right")[positions]
        of_groups = [
            (calibration_error(chances[inside], hits[inside]), _of_perfect(chances[inside]))
            for inside in (groups == group for group in range(groups.max() + 1))
            if hits[inside].sum() >= _FEW
        ]
        worst, perfect_group = max(of_groups, default=(np.nan, np.nan))
        first = chances[:, 0]
        rows.append(
            {
                "set": sized.name,
                "rows": sized.X_train.shape[0],
                "estimator": label,
                "method": method,
                "top5": calibration_error(chances, hits),
                "perfect5": _of_perfect(chances),
                "top1": calibration_error(first, hits[:, 0]),
                "perfect": _of_perfect(first),
                "debiased": debiased_error(first, hits[:, 0]),
                "group": worst,
                "perfect_group": perfect_group,
                "mean": first.mean(),
                "right": hits[:, 0].mean(),
            }
        )
    return rows


def _logistic(sized: DataSet, C: float) -> dict[str, Any]:
    """Return how right the probabilities of the logistic loss are that no row was held out for."""
    model = quietly(OvALinearXC(loss="logistic", C=C, n_jobs=-1).fit, sized.X_train, sized.Y_train)
    positions, chances = model.predict_proba_topk(sized.X_test, 5)
    hits = _hits(sized, np.asarray(model.classes_)[positions])
    return {
        "set": sized.name,
        "rows": sized.X_train.shape[0],
        "C": C,
        "P@1": 100 * hits[:, 0].mean(),
        "mean": chances[:, 0].mean(),
        "top1": calibration_error(chances[:, 0], hits[:, 0]),
        "top5": calibration_error(chances, hits),
    }


def _macro(sized: DataSet, seed: int) -> list[dict[str, Any]]:
    """Return metrics at 5 of plain rankings and of those for macro-averaged metrics."""
    plain, rows = Remembered(OvALinearXC(n_jobs=-1)), []
    systems = {"score": plain, "propensity": OvALinearXC(class_weight="propensity", n_jobs=-1)}
    systems |= {
        name: TopKCalibrator(plain, objective=name, random_state=seed) for name in OBJECTIVES
    }
    for name, model in systems.items():
        quietly(model.fit, sized.X_train, sized.Y_train)
        labels = topk(model, sized.X_test, 5)[0]
        row = {"set": sized.name, "rows": sized.X_train.shape[0], "seed": seed, "ranked for": name}
        found = np.bincount(labels[_hits(sized, labels)], minlength=sized.Y_test.shape[1])
        true = np.asarray(sized.Y_test.sum(axis=0)).ravel()
        row["P@5"] = 100 * precision_at_k(sized.Y_test, labels, 5)
        row["macro-F1@5"] = 100 * macro_f1_at_k(sized.Y_test, labels, 5)
        row["macro-recall@5"] = 100 * np.mean(found[true > 0] / true[true > 0])
        row["coverage@5"] = 100 * coverage_at_k(sized.Y_test, labels, 5)
        rows.append(row)
    return rows


def _hits(sized: DataSet, labels: np.ndarray) -> np.ndarray:
    """Return which of the labels of each test row are true."""
    rows = np.repeat(np.arange(len(labels)), labels.shape[1])
    found = np.asarray(sp.csr_array(sized.Y_test)[rows, labels.ravel()]).ravel() > 0
    return found.reshape(labels.shape)


def calibration_error(chances: np.ndarray, hits: np.ndarray) -> float:
    """Return the mean distance of probabilities and shares of hits, over bins of equal numbers."""
    order = np.argsort(chances, axis=None, kind="stable")
    chances, hits = chances.ravel()[order], hits.ravel()[order]
    parts = [part for part in np.array_split(np.arange(len(order)), _BINS) if len(part)]
    gaps = [len(part) * abs(chances[part].mean() - hits[part].mean()) for part in parts]
    return float(sum(gaps) / len(order))


def debiased_error(chances: np.ndarray, hits: np.ndarray) -> float:
    """Return the root of the mean squared distance, less what chance adds; negative below 0."""
    order = np.argsort(chances, kind="stable")
    found = 0.0
    for part in np.array_split(order, _BINS):
        if len(part) > 1:
            rate = hits[part].mean()
            chance = rate * (1.0 - rate) / (len(part) - 1)
            found += len(part) * ((chances[part].mean() - rate) ** 2 - chance)
    found /= len(order)
    return float(np.sign(found) * np.sqrt(abs(found)))


def _of_perfect(chances: np.ndarray) -> float:
    """Return the mean error of 20 draws of hits from these probabilities."""
    draws = np.random.default_rng(0).random((20, *chances.shape)) < chances
    return float(np.mean([calibration_error(chances, draw) for draw in draws]))


class Remembered(ClassifierMixin, BaseEstimator):
    """A classifier that is fitted once to the same rows, whatever it is a part of."""

    fitted: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> "Remembered":
        """Fit, or take the one that was fitted to the same before."""
        key = joblib.hash((repr(self.estimator), X.data, X.indices, X.indptr, y))
        if key not in self.fitted:
            self.fitted[key] = clone(self.estimator).fit(X, y)
        self.estimator_ = self.fitted[key]
        self.classes_ = self.estimator_.classes_
        return self

    def predict(self, X: Any) -> Any:
        """Ask it."""
        return self.estimator_.predict(X)
