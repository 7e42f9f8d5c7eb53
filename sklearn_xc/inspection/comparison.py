"""Two models on the same instances: metrics, groups of labels and single labels, with intervals."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import binom, false_discovery_control

from sklearn_xc._input.arguments import (
    as_sequence,
    check_count,
    draw_seed,
    frame_columns,
    is_number,
    refuse_masks_and_dates,
)
from sklearn_xc._input.data import check_sparse
from sklearn_xc._input.sklearn_private import num_samples
from sklearn_xc._labels.name_lists import are_name_lists, read_name_lists
from sklearn_xc._labels.names import check_label_names, column_names
from sklearn_xc._topk import classes_of, topk, unwrap
from sklearn_xc.inspection._style import COLOURS, axes_for, finish
from sklearn_xc.metrics import propensity
from sklearn_xc.metrics.bootstrap import bootstrap_ratio
from sklearn_xc.metrics.by_name import SUMS, row_sums
from sklearn_xc.metrics.check import as_array, check_y_true
from sklearn_xc.metrics.frequency_groups import frequency_edges, group_of
from sklearn_xc.metrics.hits import Hits, hits_of

_WHO = "compare_models"
#: Number of training instances that the propensity formula needs.
_LEAST_TRAINED = 3
#: Groups of labels by training frequency.
_N_GROUPS = 5


@dataclass(frozen=True, repr=False)
class ModelComparison:
    """Result of :func:`compare_models`.

    Values and differences (second model minus first, with the ends of their intervals) are
    fractions.

    Attributes
    ----------
    names : tuple of two str
        The names of the models.
    n : int
        Number of instances.
    metrics : DataFrame
        A row for each metric: ``metric``, ``a``, ``b``, ``difference``, ``low``, ``high``,
        ``p_value``.
    groups : DataFrame
        Recall of the k best labels for groups of labels by training frequency: ``lower``,
        ``upper``, ``n_labels`` and ``n_true`` that occur, ``a``, ``b``, ``difference``, ``low``,
        ``high``, ``p_value``. Empty if no model has ``label_counts_``.
    labels : DataFrame
        The labels that occur, largest gains first: ``label``, ``n_train`` (-1 if unknown),
        ``n_true``, ``found_a``, ``found_b``, ``p_value`` of a sign test on the instances where only
        one model finds the label, and ``q_value``, the false discovery rate among all labels with a
        p-value as small.
    """

    names: tuple[str, str]
    n: int
    metrics: Any
    groups: Any
    labels: Any

    def __str__(self) -> str:
        """Return metrics and groups as text."""
        a, b = self.names
        tables = [table.to_string(index=False) for table in (self.metrics, self.groups)]
        return "\n\n".join([f"a: {a}, b: {b}, {self.n:,} instances", *tables])

    __repr__ = __str__

    def plot(self, ax: Any = None) -> Any:
        """Draw the differences of the metrics, with their intervals, in percentage points.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib axes
        """
        ax = axes_for(ax, "ModelComparison.plot")
        table = 100 * self.metrics[["difference", "low", "high"]]
        places = range(len(self.metrics))
        ends = table["difference"] - table["low"], table["high"] - table["difference"]
        ax.axvline(0, color="#808080", lw=1)
        ax.errorbar(table["difference"], places, xerr=ends, fmt="o", color=COLOURS[0], capsize=3)
        ax.set_yticks(places, self.metrics["metric"])
        ax.invert_yaxis()
        ax.set_xlabel(f"{self.names[1]} minus {self.names[0]} (percentage points)")
        finish(ax)
        return ax


def compare_models(
    model_a: Any,
    model_b: Any,
    X: Any,
    y: Any,
    *,
    k: int = 5,
    names: Any = ("A", "B"),
    classes: Any = None,
    confidence: float = 0.95,
    n_resamples: int = 9999,
    random_state: Any = None,
) -> ModelComparison:
    """Compare two models on the same instances: metrics, label frequencies and single labels.

    Neither model should have been trained on these instances. The tables, of pandas, show which
    metrics differ by more than chance, for which label frequencies, and which labels gain and lose.

    Parameters
    ----------
    model_a, model_b : classifiers
        Fitted: any that :func:`~sklearn_xc.topk` can query, including Pipelines and searches.
        Their labels are matched by name; they may be in any order, and need not be the same.
    X : object of n instances
        Input for both models, such as texts.
    y : {array-like, sparse matrix} of shape (n, n_labels) or (n,), or n lists of names
        True labels, in a form that one of the models was fitted with. Names that neither model
        knows count as missed by both.
    k : int, default=5
        Number of best labels of each instance to consider.
    names : tuple of two str, default=("A", "B")
        The names of the models.
    classes : array-like of shape (n_labels,), default=None
        Names of the columns of y if it is an indicator. None takes those of a data frame,
        otherwise ``classes_`` of the models.
    confidence : float, default=0.95
        Confidence level of all intervals, in (0, 1).
    n_resamples : int, default=9999
        Number of resamples of each bootstrap.
    random_state : int, RandomState instance or None, default=None
        Pass an int for reproducible resamples.

    Returns
    -------
    ModelComparison
        Tables ``metrics``, ``groups`` and ``labels``; it prints as text and has ``plot``.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid or labels cannot be matched by name; the message says what was
        expected.
    ImportError
        If pandas is not installed.

    See Also
    --------
    sklearn_xc.metrics.paired_bootstrap : The interval of one metric.
    MetricByFrequencyDisplay : A metric over label frequency, as a figure.

    Notes
    -----
    The metrics are P@1, P@k, nDCG@k, R@k, and PSP@1 and PSP@k if a model has ``label_counts_``;
    the labels are in five groups with about equally many training pairs. Intervals and p-values are
    those of :func:`~sklearn_xc.metrics.paired_bootstrap`, which resamples instances, with the
    models fixed. Each metric and group is tested by itself: of equal
    models, one in twenty differs at a confidence of 0.95. Rates of false discoveries are those of
    [1]_.

    If both models have ``label_counts_``, the larger count of a label is its frequency.

    References
    ----------
    .. [1] Y. Benjamini and Y. Hochberg, "Controlling the False Discovery Rate: a Practical and
       Powerful Approach to Multiple Testing", J. R. Stat. Soc. B 57 (1), 1995.

    Examples
    --------
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> from sklearn_xc.inspection import compare_models
    >>> X, Y = make_xc_classification(
    ...     n_samples=600, n_features=300, n_labels=80, random_state=0, return_X_y=True
    ... )
    >>> few, all_ = OvALinearXC().fit(X[:100], Y[:100]), OvALinearXC().fit(X[:400], Y[:400])
    >>> found = compare_models(few, all_, X[400:], Y[400:], random_state=0)
    >>> bool(found.metrics["low"][0] > 0)
    True
    """
    from pandas import DataFrame

    k = check_count(k, f"{_WHO}: k")
    settings = bootstrap_settings(n_resamples, confidence, random_state, _WHO)
    names = tuple(names)
    if len(set(names)) != 2 or not all(isinstance(one, str) for one in names):
        raise ValueError(f"{_WHO}: names must be two different texts. Got {names!r}.")
    check_sparse(X, "X", _WHO)
    refuse_masks_and_dates(X, f"{_WHO}: X")
    models = (model_a, model_b)
    for name, model in zip(("model_a", "model_b"), models, strict=True):
        if not hasattr(unwrap(model, None)[0], "classes_"):
            raise TypeError(f"{_WHO}: {name} must be a fitted classifier, with classes_.")
    Y, labels, n_known, places = match_labels(models, y, classes, _WHO)
    n = Y.shape[0]
    ranked = []
    if num_samples(X) != n:
        raise ValueError(f"{_WHO}: X must have {n} rows, as many as y. Got {num_samples(X)}.")
    if not Y.nnz:
        raise ValueError(f"{_WHO}: y must have true labels. Got none in {n} rows.")
    for model, place in zip(models, places, strict=True):
        best, _ = topk(model, X, k)
        ranked.append(np.where(best >= 0, place[best], -1))
    counts, n_trained = training_counts(models, places, len(labels))
    hits = [hits_of(check_y_true(Y), best, k) for best in ranked]
    metrics = [("precision", 1), ("precision", k), ("ndcg", k), ("recall", k)]
    rows = [
        _compare_metric(metric, at, hits, None, settings) for metric, at in dict.fromkeys(metrics)
    ]
    if counts is not None and n_trained >= _LEAST_TRAINED:
        weights = propensity(counts[:n_known], n_trained)
        known = check_y_true(Y[:, :n_known])
        hits_of_known = [hits_of(known, best, k) for best in ranked]
        rows += [
            _compare_metric("psp", at, hits_of_known, weights, settings) for at in sorted({1, k})
        ]
    found = tuple(found_pairs(one) for one in hits)
    groups = [] if counts is None else compare_groups(hits[0].true, counts, found, settings)
    differences = ["a", "b", "difference", "low", "high", "p_value"]
    of_groups = ["lower", "upper", "n_labels", "n_true", *differences]
    return ModelComparison(
        names=names,
        n=n,
        metrics=DataFrame(rows, columns=["metric", *differences]),
        groups=DataFrame(groups, columns=of_groups),
        labels=DataFrame(_compare_labels(hits[0].true, labels, counts, found)),
    )


def bootstrap_settings(n_resamples: Any, confidence: Any, random_state: Any, who: str) -> tuple:
    """Return the last arguments of :func:`~sklearn_xc.metrics.bootstrap.bootstrap_ratio`."""
    n_resamples = check_count(n_resamples, f"{who}: n_resamples", least=100)
    if not is_number(confidence) or not 0 < float(confidence) < 1:
        raise ValueError(f"{who}: confidence must be between 0 and 1. Got {confidence!r}.")
    return n_resamples, float(confidence), np.random.default_rng(draw_seed(random_state))


def match_labels(
    models: tuple[Any, Any], y: Any, classes: Any, who: str
) -> tuple[sp.csr_array, list, int, list[np.ndarray]]:
    """Match the labels of the models and of y by name.

    Returns
    -------
    Y : csr_array of shape (n, n_labels)
        The true labels.
    labels : list of length n_labels
        Names: those of the models and of the columns of y, then those that only y has.
    n_known : int
        Number of the former.
    places : list of ndarray of int64
        Columns in Y of the classes of each model.
    """
    own = [np.asarray(classes_of(model)).tolist() for model in models]
    y, rows = _read_names(models, y, who)
    if rows is None and not _is_table(y) and y.size == len(y) and len(own[0]) > 1:
        rows = [[name] for name in y.ravel().tolist()]
    columns = [] if rows is not None else _columns_of(y, own, classes, who)
    at: dict[Any, int] = {}
    for name in (*columns, *own[0], *own[1]):
        at.setdefault(name, len(at))
    n_known = len(at)
    for name in (name for row in rows or () for name in row):
        at.setdefault(name, len(at))
    if len({isinstance(name, str) for name in at}) > 1:
        raise ValueError(
            f"{who}: labels are matched by name, which must be all texts or all numbers. Got "
            f"{own[0][:1]} in model_a, {own[1][:1]} in model_b and {list(at)[-1:]} in y: fit with "
            "label_names, or pass y as an indicator with classes, the names of its columns."
        )
    if rows is not None:
        indices = np.array([at[name] for row in rows for name in row], np.int64)
        indptr = np.cumsum([0, *map(len, rows)])
    else:
        true = check_y_true(y)
        indices = true.columns
        indptr = np.cumsum([0, *true.counts])
    ones = np.ones(len(indices), np.int8)
    Y = sp.csr_array((ones, indices, indptr), shape=(len(indptr) - 1, len(at)))
    return Y, list(at), n_known, [np.array([at[name] for name in each]) for each in own]


def _read_names(models: tuple[Any, Any], y: Any, who: str) -> tuple[Any, list[list] | None]:
    """Return y as an array or table, and its lists of names if it has such."""
    refuse_masks_and_dates(y, f"{who}: y")
    y = as_sequence(y)
    if _is_table(y):
        return y, None
    binarizers = [getattr(unwrap(model, None)[0], "binarizer_", None) for model in models]
    readers = [one for one in binarizers if one is not None]
    if are_name_lists(y) or (readers and len(np.shape(y)) == 1):
        separator = next((one.separator for one in readers if one.separator is not None), None)
        return y, read_name_lists(y, separator, who)
    expected = "an indicator, one class per row, or lists of names"
    return as_array(y, f"{who}: y", expected), None


def _is_table(y: Any) -> bool:
    return sp.issparse(y) or frame_columns(y) is not None


def _columns_of(y: Any, own: list[list], classes: Any, who: str) -> list:
    """Return the names of the columns of an indicator."""
    names = column_names(y) if classes is None else classes
    n_columns = y.shape[1]
    if names is not None:
        return check_label_names(names, n_columns, f"{who}: classes").tolist()
    for name, each in zip(("model_a", "model_b"), own, strict=True):
        if each != own[0] or len(each) != n_columns:
            raise ValueError(
                f"{who}: without classes, y must have a column for each of the same labels of "
                f"both models. Got {n_columns} columns, and {len(each)} labels of {name} that "
                f"begin with {each[:3]}. Pass classes, the names of y's columns."
            )
    return own[0]


def training_counts(
    models: tuple[Any, ...], places: list[np.ndarray], n_labels: int
) -> tuple[np.ndarray | None, int]:
    """Return the larger training count of each label, and the larger number of instances."""
    counts, n_trained = None, 0
    for model, place in zip(models, places, strict=True):
        inside = unwrap(model, None)[0]
        own = getattr(inside, "label_counts_", None)
        if own is not None and len(own) == len(place):
            counts = np.zeros(n_labels, np.int64) if counts is None else counts
            counts[place] = np.maximum(counts[place], np.asarray(own).astype(np.int64))
            n_trained = max(n_trained, getattr(inside, "n_samples_fit_", 0))
    return counts, n_trained


def _compare_metric(
    metric: str, k: int, hits: list[Hits], weights: np.ndarray | None, settings: tuple
) -> tuple:
    """Return name, both values, difference, interval and p-value of a metric."""
    (a, by), (b, _) = (row_sums(metric, one, k, weights) for one in hits)
    total = by.sum() or 1.0
    compared = bootstrap_ratio(b - a, by, *settings)
    return (f"{SUMS[metric].short}@{k}", a.sum() / total, b.sum() / total, *compared)


def found_pairs(hits: Hits) -> np.ndarray:
    """Return which of the true pairs are among the k best labels."""
    true = hits.true
    width = 1 + int(true.columns.max(initial=0))
    rows, ranks = np.nonzero(hits.hit)
    keys = true.rows * width + true.columns
    return np.isin(keys, rows * width + hits.positions[rows, ranks], assume_unique=True)


def compare_groups(true: Any, counts: np.ndarray, found: tuple, settings: tuple) -> list[tuple]:
    """Return the recall of both models for groups of labels by frequency."""
    group = np.where(counts > 0, 1 + group_of(counts, frequency_edges(counts, _N_GROUPS)), 0)
    n = len(true.counts)
    of_pair = group[true.columns]
    rows = []
    for number in np.unique(of_pair).tolist():
        here = of_pair == number
        a, b = (np.bincount(true.rows[here], each[here], n) for each in found)
        by = np.bincount(true.rows[here], minlength=n).astype(np.float64)
        total = by.sum()
        members = counts[group == number]
        compared = bootstrap_ratio(b - a, by, *settings)
        sizes = len(np.unique(true.columns[here])), int(total)
        shares = a.sum() / total, b.sum() / total
        rows.append((members.min(), members.max(), *sizes, *shares, *compared))
    return rows


def _compare_labels(
    true: Any, labels: list, counts: np.ndarray | None, found: tuple
) -> dict[str, Any]:
    """Return how often each label that occurs is found by both models, largest gains first."""
    a, b = found

    def count(which: np.ndarray) -> np.ndarray:
        return np.bincount(true.columns[which], minlength=len(labels))

    only_a, only_b = count(a & ~b), count(b & ~a)
    p_value = np.minimum(1.0, 2 * binom.cdf(np.minimum(only_a, only_b), only_a + only_b, 0.5))
    n_true = count(np.ones(len(true.columns), bool))
    q_value = np.ones(len(labels))
    tested = p_value < 1  # others do not count as tests
    if tested.any():
        q_value[tested] = false_discovery_control(p_value[tested])
    order = np.lexsort((p_value, only_a - only_b))
    order = order[n_true[order] > 0]
    names = np.empty(len(labels), object)
    names[:] = labels
    return {
        "label": names[order],
        "n_train": np.full(len(order), -1) if counts is None else counts[order],
        "n_true": n_true[order],
        "found_a": count(a)[order],
        "found_b": count(b)[order],
        "p_value": p_value[order],
        "q_value": q_value[order],
    }
