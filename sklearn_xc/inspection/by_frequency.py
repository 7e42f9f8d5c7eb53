"""A metric of the best labels by how often a label occurs in training."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_xc._input.arguments import check_count
from sklearn_xc._topk import topk, unwrap
from sklearn_xc.inspection._style import (
    axes_for,
    draw_line,
    finish,
    read_targets,
)
from sklearn_xc.metrics import propensity
from sklearn_xc.metrics.check import check_propensities
from sklearn_xc.metrics.frequency_groups import check_length, frequency_groups
from sklearn_xc.metrics.hits import find_hits
from sklearn_xc.metrics.propensity_scored import psp_of_rows

_AXIS = {
    "precision": "precision@{k} (%)",
    "recall": "recall@{k} (%)",
    "psp": "contribution to PSP@{k} (percentage points)",
}


@dataclass(kw_only=True, eq=False, repr=False)
class MetricByFrequencyDisplay:
    r"""One metric of the k best labels, over the training frequency of labels.

    Labels that occur in training are sorted by their number of instances and cut into ten groups
    of about equal size; each is a point of the line. Groups that end at the same frequency are
    merged: on long-tailed data several tenths of the labels have a single instance. Pass
    ``ax=first.ax_`` to draw another model on the axes of the first one.

    Parameters
    ----------
    frequency : ndarray of float of shape (n_groups,)
        Geometric mean of the numbers of training instances of the labels in each group.
    lower, upper : ndarray of int of shape (n_groups,)
        Smallest and largest of these numbers.
    n_labels : ndarray of int of shape (n_groups,)
        Number of labels in each group.
    values : ndarray of float of shape (n_groups,)
        Precision: the share of the predictions of a label in the group that are right. Recall: the
        share of the true labels in the group that are among the k best of their instance. Both are
        NaN if there are none. Or the share that the hits of the group contribute to PSP@k: all of
        them sum to PSP@k.
    metric : {"precision", "recall", "psp"}
        The metric.
    k : int
        Number of labels of each instance that were considered.
    name : str, default=None
        Name of the model, for the legend.

    Attributes
    ----------
    ax_, figure_
        The matplotlib axes and figure, after ``plot``.
    line_ : matplotlib line
        The line of the model.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_xc.inspection import MetricByFrequencyDisplay
    >>> Y = np.array([[1, 0, 1], [0, 1, 0], [0, 1, 0]])
    >>> first = MetricByFrequencyDisplay.from_predictions(
    ...     Y, np.array([[2], [1], [0]]), [1, 9, 1], metric="recall", k=1, name="first"
    ... )
    >>> first.frequency.round(2), first.values
    (array([1., 9.]), array([0.5, 0.5]))
    >>> second = MetricByFrequencyDisplay.from_predictions(
    ...     Y, np.array([[2], [1], [1]]), [1, 9, 1], metric="recall", k=1, name="second",
    ...     ax=first.ax_,
    ... )
    >>> second.values
    array([0.5, 1. ])
    """

    frequency: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    n_labels: np.ndarray
    values: np.ndarray
    metric: str
    k: int
    name: str | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, k: int = 5, **options: Any
    ) -> "MetricByFrequencyDisplay":
        """Predict and plot.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator whose last step has ``label_counts_``.
        X : object of n instances
            Input for `estimator`.
        y : {array-like, sparse matrix} of shape (n, n_labels) or (n,)
            True labels, or one class per instance, in the form of the fit.
        k : int, default=5
            Number of best labels to consider.
        **options : dict
            Further arguments of ``from_predictions``. The default of `name` is that of the
            estimator's class, and of `propensities` that of its training data.

        Returns
        -------
        MetricByFrequencyDisplay

        Raises
        ------
        ValueError
            As in ``from_predictions``, and for an estimator without ``label_counts_``.

        Examples
        --------
        Rare labels are found less often:

        >>> from sklearn_xc import OvALinearXC
        >>> from sklearn_xc.datasets import make_xc_classification
        >>> from sklearn_xc.inspection import MetricByFrequencyDisplay
        >>> X, Y = make_xc_classification(
        ...     n_samples=600, n_features=300, n_labels=80, random_state=0, return_X_y=True
        ... )
        >>> clf = OvALinearXC().fit(X[:400], Y[:400])
        >>> display = MetricByFrequencyDisplay.from_estimator(
        ...     clf, X[400:], Y[400:], metric="recall", n_groups=4
        ... )
        >>> bool(display.values[0] < display.values[-1])
        True
        """
        classifier, _ = unwrap(estimator, None)
        if not hasattr(classifier, "label_counts_"):
            raise ValueError(
                f"{cls.__name__}: {type(classifier).__name__} has no label_counts_. Pass its "
                "predictions, and the counts, to from_predictions."
            )
        y, classes = read_targets(cls.__name__, estimator, y)
        defaults = {"classes": classes, "name": type(classifier).__name__}
        if options.get("metric") == "psp":
            n = classifier.n_samples_fit_
            defaults["propensities"] = propensity(classifier.label_counts_, n)
        best = topk(estimator, X, k)
        return cls.from_predictions(y, best, classifier.label_counts_, k=k, **defaults | options)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        topk: Any,
        label_counts: Any,
        *,
        metric: str = "precision",
        k: int = 5,
        n_groups: int = 10,
        propensities: Any = None,
        classes: Any = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> "MetricByFrequencyDisplay":
        """Plot predictions.

        Parameters
        ----------
        y_true : {array-like, sparse matrix} of shape (n, n_labels) or (n,)
            True labels, or one class per instance, as in
            :func:`~sklearn_xc.metrics.precision_at_k`.
        topk : ndarray of int of shape (n, >= k), tuple or sparse matrix
            The ranked labels, as in :func:`~sklearn_xc.metrics.precision_at_k`.
        label_counts : array-like of int of shape (n_labels,)
            Number of training instances of each label.
        metric : {"precision", "recall", "psp"}, default="precision"
            The metric to draw.
        k : int, default=5
            Number of best labels to consider.
        n_groups : int, default=10
            Number of groups, before those that end at the same frequency are merged.
        propensities : array-like of shape (n_labels,), default=None
            Required for "psp".
        classes : array-like of shape (n_labels,), default=None
            ``classes_`` of the classifier, if `y_true` holds class labels.
        name : str, default=None
            Name of the model, for the legend.
        ax, **kwargs
            As in ``plot``.

        Returns
        -------
        MetricByFrequencyDisplay

        Raises
        ------
        ValueError
            If an argument is invalid; the message names it and says what was expected.
        TypeError
            For a masked array.
        """
        caller = cls.__name__
        k = check_count(k, f"{caller}: k")
        group, lower, upper = frequency_groups(label_counts, n_groups, caller)
        hits = find_hits(y_true, topk, k, classes)
        check_length(len(group), hits.true.n_labels, (hits.positions, hits.true.columns), caller)
        if not isinstance(metric, str) or metric not in _AXIS:
            raise ValueError(f"{caller}: metric must be one of {(*_AXIS,)}. Got {metric!r}.")
        if metric == "psp" and propensities is None:
            raise ValueError(f'{caller}: metric="psp" needs propensities. Got None.')

        def sums(labels: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
            """Return how often labels of each group occur, or the sums of their weights."""
            return np.bincount(group[labels], weights, len(lower) + 1)[:-1]

        right = hits.positions[hits.hit]
        if metric == "psp":
            p = check_propensities(propensities, hits.true)
            _, attainable = psp_of_rows(hits, (k,), p)
            values = sums(right, 1.0 / p[right]) / (attainable.sum() or 1.0)
        else:
            named = hits.positions[hits.positions >= 0]
            with np.errstate(invalid="ignore", divide="ignore"):
                values = sums(right) / sums(named if metric == "precision" else hits.true.columns)
        counts = np.asarray(label_counts, np.float64)
        seen = np.flatnonzero(counts)
        n_labels = sums(seen)
        display = cls(
            frequency=np.exp(sums(seen, np.log(counts[seen])) / n_labels),
            lower=lower,
            upper=upper,
            n_labels=n_labels,
            values=values,
            metric=metric,
            k=k,
            name=name,
        )
        return display.plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> "MetricByFrequencyDisplay":
        """Draw the line.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw, such as ``ax_`` of another display; None makes a new figure.
        **kwargs : dict
            Passed to ``matplotlib.axes.Axes.plot``.

        Returns
        -------
        MetricByFrequencyDisplay
            Itself, with `ax_`, `figure_` and `line_`.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If `ax` is not a matplotlib axes.
        """
        ax = axes_for(ax, type(self).__name__)
        from matplotlib.ticker import LogLocator

        self.line_ = draw_line(ax, self.frequency, 100 * self.values, self.name, kwargs)
        ax.set_xscale("log", subs=())
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:,.10g}")
        ax.set_xlabel("training instances of the label (geometric mean of each group)")
        ax.set_ylabel(_AXIS[self.metric].format(k=self.k))
        ax.set_ylim(bottom=0, auto=True)
        finish(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
