"""What one model gains on another: in metrics, groups of labels, and single labels."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.stats import binom

from sklearn_xc._frequency_groups import frequency_edges, group_of
from sklearn_xc.inspection.comparison.common_labels import CommonLabels
from sklearn_xc.metrics import paired_bootstrap, propensity
from sklearn_xc.metrics.by_name import METRICS, PLAIN, WEIGHTED
from sklearn_xc.metrics.check import TrueLabels
from sklearn_xc.metrics.hits import Hits, hits_of
from sklearn_xc.metrics.resampling import bootstrap_difference, bootstrap_ratio
from sklearn_xc.metrics.scorers import AtKScorer, get_scorer

#: Metrics of what ``predict`` names.
OF_SETS = ("micro-F1", "macro-F1")
#: A logarithm of the number of training instances must be above 1.
_LEAST_TRAINED = 3


class Difference(NamedTuple):
    """A metric of two models.

    Attributes
    ----------
    name : str
    a, b : float
        Fractions.
    difference, low, high : float
        ``b - a`` and its confidence interval.
    p_value : float
        Of no difference.
    """

    name: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    p_value: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0


class Group(NamedTuple):
    """Labels of similar frequency in training, and the share of their occurrences that is found.

    Attributes
    ----------
    lower, upper : int
        The least and the largest number of training instances.
    n_labels : int
        Labels of the group that are true of some instance.
    n_true : int
        Pairs of an instance and a true label of the group.
    recall : Difference
        The share of them that is among the k best.
    """

    lower: int
    upper: int
    n_labels: int
    n_true: int
    recall: Difference


class LabelChanges(NamedTuple):
    """Single labels that are true of some instance, each an array of shape (n,).

    Attributes
    ----------
    label : ndarray of int64
        Positions among the names.
    n_train, n_true : ndarray of int64
        Training instances (-1 where no model says), and instances of which it is true.
    found_a, found_b : ndarray of int64
        Of these, where it is among the k best.
    only_a, only_b : ndarray of int64
        Of these, where one model alone has found it.
    named_a, named_b : ndarray of int64
        Instances in which it is among the k best, rightly or not.
    p_value : ndarray of float64
        Of the sign test of `only_a` against `only_b`; 1 where models do not differ.
    q_value : ndarray of float64
        The false discovery rate among labels whose p-value is as small.
    """

    label: np.ndarray
    n_train: np.ndarray
    n_true: np.ndarray
    found_a: np.ndarray
    found_b: np.ndarray
    only_a: np.ndarray
    only_b: np.ndarray
    named_a: np.ndarray
    named_b: np.ndarray
    p_value: np.ndarray
    q_value: np.ndarray

    def best_gains(self, n: int, sign: int) -> np.ndarray:
        """Return where the labels are that gain (sign 1) or lose (-1) most, n at most."""
        change = sign * (self.only_b - self.only_a)
        order = np.lexsort((self.label, self.p_value, -change))
        return order[change[order] > 0][:n]


class Settings(NamedTuple):
    """How differences are measured.

    Attributes
    ----------
    n_resamples : int
    confidence : float
    rng : Generator
    """

    n_resamples: int
    confidence: float
    rng: np.random.Generator


def check_metrics(metrics: Any, k: int, who: str) -> list[AtKScorer | str]:
    """Return the metrics to measure: scorers of one number, and names of those of label sets.

    Raises
    ------
    ValueError
        For other names.
    """
    if metrics is None:
        ks = sorted({1, k})
        names = [f"P@{one}" for one in ks] + [f"nDCG@{k}", f"R@{k}"]
        metrics = [*names, *(f"PSP@{one}" for one in ks), *OF_SETS]
    found: list[AtKScorer | str] = []
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    for name in names:
        if name in OF_SETS:
            found.append(name)
            continue
        try:
            scorer = get_scorer(name)
        except ValueError:
            scorer = None
        if not isinstance(scorer, AtKScorer) or scorer.metric not in {**PLAIN, **WEIGHTED}:
            raise ValueError(
                f"{who}: metrics must be names such as 'P@1', 'nDCG@5', 'R@5', 'PSP@5', 'PSnDCG@5' "
                f"and 'micro-F1', 'macro-F1'. Got {name!r}."
            )
        found.append(scorer)
    if not found:
        raise ValueError(f"{who}: metrics must be at least one name. Got none.")
    return found


def differences(
    labels: CommonLabels, ranked: tuple[np.ndarray, np.ndarray],
    named: tuple[Any, Any], metrics: list[Any], settings: Settings, *, is_default: bool,
) -> list[Difference]:  # fmt: skip
    """Return the metrics of both models.

    Parameters
    ----------
    labels : CommonLabels
    ranked : tuple of two ndarray of int64 of shape (n, k)
    named : tuple of two csr_array or None of shape (n, n_labels)
    metrics : list
        From `check_metrics`.
    settings : Settings
    is_default : bool
        Whether metrics that cannot be had are left out.

    Raises
    ------
    ValueError
        For a metric that cannot be had and was asked for.
    """
    n_trained = max(n or 0 for n in labels.n_trained)
    weights = None
    if labels.counts is not None and n_trained >= _LEAST_TRAINED:
        weights = propensity(labels.counts[: labels.n_known], n_trained)
    has_sets = named[0] is not None and named[1] is not None
    found = []
    for metric in metrics:
        if isinstance(metric, str):
            if has_sets:
                function = _micro_f1 if metric == "micro-F1" else _macro_f1
                found.append(function(labels.true, named[0], named[1], settings))
            elif not is_default:
                raise ValueError(
                    f"compare_models: {metric} needs models whose predict gives label sets. Got "
                    "one class for each instance."
                )
        elif metric.metric not in WEIGHTED:
            found.append(_at_k(metric, labels.true, ranked, None, settings))
        elif weights is not None:
            known = _without_unknown(labels.true, labels.n_known)
            found.append(_at_k(metric, known, ranked, weights, settings))
        elif not is_default:
            raise ValueError(
                f"compare_models: {metric.name} needs a model with label_counts_ and "
                f"n_samples_fit_ of at least {_LEAST_TRAINED}, as those of sklearn_xc. Got none."
            )
    return found


def groups_of(
    labels: CommonLabels, found: tuple[np.ndarray, np.ndarray], n_groups: int, settings: Settings
) -> list[Group]:
    """Return the share of true labels that is found, rare labels first.

    Parameters
    ----------
    labels : CommonLabels
        With counts.
    found : tuple of two ndarray of bool of shape (n_pairs,)
        Which true pairs each model has among its best.
    n_groups : int
    settings : Settings
    """
    if labels.counts is None:
        return []
    edges = frequency_edges(labels.counts, n_groups)
    group = np.where(labels.counts > 0, 1 + group_of(labels.counts, edges), 0)
    true = labels.true
    n, of_pair = len(true.counts), group[true.columns]
    result = []
    for number in np.unique(of_pair).tolist():
        rows, columns = true.rows[of_pair == number], true.columns[of_pair == number]
        a, b = (np.bincount(rows, each[of_pair == number], n) for each in found)
        by = np.bincount(rows, minlength=n).astype(np.float64)
        gained = bootstrap_ratio(b - a, by, *settings)
        recall = Difference("found", a.sum() / by.sum(), b.sum() / by.sum(), *gained)
        members = labels.counts[group == number]
        result.append(Group(int(members.min()), int(members.max()), len(np.unique(columns)),
                            len(rows), recall))  # fmt: skip
    return result


def label_changes(
    labels: CommonLabels, hits: tuple[Hits, Hits], found: tuple[np.ndarray, np.ndarray]
) -> LabelChanges:
    """Return what is found of each label that is true of some instance.

    Parameters
    ----------
    labels : CommonLabels
    hits : tuple of two Hits
        At k.
    found
        As in `groups_of`.
    """
    columns, size = labels.true.columns, len(labels.names)

    def count(which: np.ndarray) -> np.ndarray:
        return np.bincount(columns[which], minlength=size)

    a, b = found
    n_true = count(np.ones(len(columns), bool))
    occurring = np.flatnonzero(n_true)
    only_a, only_b = count(a & ~b)[occurring], count(b & ~a)[occurring]
    p_value = np.minimum(1.0, 2 * binom.cdf(np.minimum(only_a, only_b), only_a + only_b, 0.5))
    named = [
        np.bincount(each.positions[each.positions >= 0], minlength=size)[occurring] for each in hits
    ]
    counts = np.full(size, -1) if labels.counts is None else labels.counts
    return LabelChanges(
        occurring, counts[occurring], n_true[occurring], count(a)[occurring], count(b)[occurring],
        only_a, only_b, named[0], named[1], p_value, false_discovery_rates(p_value),
    )  # fmt: skip


def false_discovery_rates(p_values: np.ndarray) -> np.ndarray:
    """Return the rate of false discoveries among p-values that are as small, those of 1 left out.

    Notes
    -----
    Source: Benjamini and Hochberg, "Controlling the False Discovery Rate", Journal of the Royal
    Statistical Society B 57 (1), 1995.
    """
    rates = np.ones(len(p_values))
    tested = np.flatnonzero(p_values < 1)
    order = tested[np.argsort(p_values[tested], kind="stable")]
    of_rank = p_values[order] * len(order) / np.arange(1, len(order) + 1)
    rates[order] = np.minimum(1.0, np.minimum.accumulate(of_rank[::-1])[::-1])
    return rates


def found_pairs(true: TrueLabels, hits: Hits) -> np.ndarray:
    """Return which of the true pairs are among the ranked ones, bool of shape (n_pairs,)."""
    width = 1 + int(true.columns.max(initial=0))
    rows, ranks = np.nonzero(hits.hit)
    keys = true.rows * width + true.columns
    wanted = rows * width + hits.positions[rows, ranks]
    found = np.zeros(len(keys), bool)
    found[np.searchsorted(keys, wanted)] = True
    return found


def _at_k(
    scorer: AtKScorer, true: TrueLabels, ranked: tuple[np.ndarray, np.ndarray],
    weights: np.ndarray | None, settings: Settings,
) -> Difference:  # fmt: skip
    arguments = () if weights is None else (weights,)
    k, of_hits = scorer.k, METRICS[scorer.metric].of_hits
    a, b = (float(of_hits(hits_of(true, each, k), (k,), None, *arguments)[0]) for each in ranked)
    Y = sp.csr_array(
        (np.ones(len(true.rows), np.int8), (true.rows, true.columns)),
        shape=(len(true.counts), int(true.n_labels or 0)),
    )
    found = paired_bootstrap(
        Y, *ranked, metric=scorer.name, propensities=weights, n_resamples=settings.n_resamples,
        confidence=settings.confidence, random_state=int(settings.rng.integers(2**31)),
    )  # fmt: skip
    return Difference(scorer.name, a, b, *found[:4])


def _without_unknown(true: TrueLabels, n_known: int) -> TrueLabels:
    """Return the truth without labels that no ranking can have found."""
    kept = true.columns < n_known
    rows = true.rows[kept]
    counts = np.bincount(rows, minlength=len(true.counts))
    return TrueLabels(rows, true.columns[kept], counts, n_known)


def _micro_f1(true: TrueLabels, a: Any, b: Any, settings: Settings) -> Difference:
    (of_a, by_a), (of_b, by_b) = (_f1_sums(true, named) for named in (a, b))
    found = bootstrap_difference(of_a, by_a, of_b, by_b, *settings)
    value_a, value_b = (
        float(of.sum() / by.sum()) if by.any() else 0.0 for of, by in ((of_a, by_a), (of_b, by_b))
    )
    return Difference("micro-F1", value_a, value_b, *found)


def _f1_sums(true: TrueLabels, named: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return what each row adds to the two sums whose ratio micro-F1 is."""
    rows = np.repeat(np.arange(named.shape[0]), np.diff(named.indptr))
    n_right = np.bincount(rows[_right_of(true, named)], minlength=named.shape[0])
    return 2.0 * n_right, (np.diff(named.indptr) + true.counts).astype(np.float64)


def _macro_f1(true: TrueLabels, a: Any, b: Any, settings: Settings) -> Difference:
    """Return macro-F1 over the labels that are true or named for some row; labels are drawn again.

    Source: the macro t-test of Yang and Liu, "A Re-examination of Text Categorization Methods",
    SIGIR 1999, pairs the F1 of each label likewise; with the bootstrap instead of a t distribution.
    """
    n_true = np.bincount(true.columns, minlength=a.shape[1])
    counts = [np.bincount(named.indices, minlength=named.shape[1]) + n_true for named in (a, b)]
    occurring = np.flatnonzero(counts[0] + counts[1])
    sums = []
    for named, count in zip((a, b), counts, strict=True):
        right = np.bincount(named.indices[_right_of(true, named)], minlength=named.shape[1])
        f1 = 2.0 * right / np.maximum(count, 1)
        sums.append((f1[occurring], (count[occurring] > 0).astype(np.float64)))
    (f1_a, is_a), (f1_b, is_b) = sums
    found = bootstrap_difference(f1_a, is_a, f1_b, is_b, *settings)
    value_a, value_b = (
        float(f1.sum() / is_there.sum()) if is_there.any() else 0.0 for f1, is_there in sums
    )
    return Difference("macro-F1", value_a, value_b, *found)


def _right_of(true: TrueLabels, named: Any) -> np.ndarray:
    """Return which entries of an indicator are true."""
    rows = np.repeat(np.arange(named.shape[0], dtype=np.int64), np.diff(named.indptr))
    width = named.shape[1]
    return np.isin(rows * width + named.indices, true.rows * width + true.columns)
