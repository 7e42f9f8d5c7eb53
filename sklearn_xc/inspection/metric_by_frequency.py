"""A metric of the best labels of several models, over how often a label occurs in training."""

from typing import Any

import numpy as np

from sklearn_xc._arguments import check_count
from sklearn_xc._topk import topk, unwrap
from sklearn_xc.inspection._group_counts import GroupCounts, count_by_group
from sklearn_xc.inspection._ranked_pairs import encoded
from sklearn_xc.inspection._style import (
    axes_for,
    check_name,
    finish,
    line_style,
    log_ticks,
    look,
    mark,
    next_number,
    require_matplotlib,
    start_at_zero,
)
from sklearn_xc.metrics import propensity, psp_at_k
from sklearn_xc.metrics.check import check_propensities

_WHO = "MetricByFrequencyDisplay"
_AXIS = {
    "precision": "precision@{k} (%)",
    "recall": "recall@{k} (%)",
    "psp": "contribution to PSP@{k} (percentage points)",
}


class MetricByFrequencyDisplay:
    """One metric of the k best labels over the training frequency of the labels, as a line.

    Labels are grouped as in :class:`LabelFrequencyDisplay`. To draw the line of another model on
    the same axes, call ``display.plot(ax=first.ax_)``; its groups may differ.

    Parameters
    ----------
    frequency : ndarray of float of shape (n_groups,)
        Geometric mean of the number of training instances of each group's labels.
    lower, upper : ndarray of int of shape (n_groups,)
        Smallest and largest number of training instances of the labels in each group.
    n_labels : ndarray of int of shape (n_groups,)
        Number of labels in each group.
    values : ndarray of float of shape (n_groups,)
        The metric in each group, a fraction. "precision" and "recall" are those of
        :class:`LabelFrequencyDisplay`, NaN if nothing was predicted or nothing is true; "psp" is
        what the group contributes to :func:`~sklearn_xc.metrics.psp_at_k`.
    metric : {"precision", "recall", "psp"}
        Which metric it is.
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

    See Also
    --------
    LabelFrequencyDisplay : Precision and recall of one model, or a few, as bars.

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

    def __init__(
        self,
        *,
        frequency: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
        n_labels: np.ndarray,
        values: np.ndarray,
        metric: str,
        k: int,
        name: str | None = None,
    ) -> None:
        self.frequency, self.lower, self.upper, self.n_labels = frequency, lower, upper, n_labels
        self.values, self.metric, self.k, self.name = values, metric, k, name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        metric: str = "precision",
        k: int = 5,
        n_groups: int = 10,
        propensities: Any = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
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
        metric, k, n_groups
            As in ``from_predictions``.
        propensities : array-like of shape (n_labels,), default=None
            For "psp"; None takes :func:`~sklearn_xc.metrics.propensity` of the training data.
        name : str, default=None
            Name of the model, for the legend; None takes the name of its class.
        ax, **kwargs
            As in ``plot``.

        Returns
        -------
        MetricByFrequencyDisplay

        Raises
        ------
        ValueError
            As in ``from_predictions``, and for an estimator without ``label_counts_``.

        Examples
        --------
        >>> from sklearn_xc import OvALinearXC
        >>> from sklearn_xc.datasets import make_xc_classification
        >>> from sklearn_xc.inspection import MetricByFrequencyDisplay
        >>> X, Y = make_xc_classification(
        ...     n_samples=600, n_features=300, n_labels=80, random_state=0, return_X_y=True
        ... )
        >>> clf = OvALinearXC().fit(X[:400], Y[:400])
        >>> display = MetricByFrequencyDisplay.from_estimator(
        ...     clf, X[400:], Y[400:], metric="recall"
        ... )
        >>> bool(display.values[0] < display.values[-1])
        True
        """
        require_matplotlib(f"{_WHO}.from_estimator")
        classifier, _ = unwrap(estimator, None)
        if not hasattr(classifier, "label_counts_"):
            raise ValueError(
                f"{_WHO}: {type(classifier).__name__} has no label_counts_. Pass its predictions, "
                "and the counts, to from_predictions."
            )
        if metric == "psp" and propensities is None:
            propensities = propensity(classifier.label_counts_, classifier.n_samples_fit_)
        y, n_true, classes = encoded(_WHO, estimator, y)
        return cls._of_predictions(
            y, topk(estimator, X, k)[0], classifier.label_counts_, metric, n_groups, k,
            propensities, classes, n_true, type(classifier).__name__ if name is None else name,
        ).plot(ax=ax, **kwargs)  # fmt: skip

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
        require_matplotlib(f"{_WHO}.from_predictions")
        made = cls._of_predictions(
            y_true, topk, label_counts, metric, n_groups, k, propensities, classes, None, name
        )
        return made.plot(ax=ax, **kwargs)

    @classmethod
    def _of_predictions(
        cls, y_true: Any, topk: Any, label_counts: Any, metric: Any, n_groups: Any, k: Any,
        propensities: Any, classes: Any, n_true: np.ndarray | None, name: Any,
    ) -> "MetricByFrequencyDisplay":  # fmt: skip
        k = check_count(k, f"{_WHO}: k")
        if not isinstance(metric, str) or metric not in _AXIS:
            raise ValueError(f"{_WHO}: metric must be one of {(*_AXIS,)}. Got {metric!r}.")
        if metric == "psp" and propensities is None:
            raise ValueError(f'{_WHO}: metric="psp" needs propensities. Got None.')
        found = count_by_group(_WHO, y_true, topk, label_counts, n_groups, k, classes, n_true)
        if metric == "psp":
            p = check_propensities(propensities, found.hits.true)
            psp = psp_at_k(y_true, topk, k, propensities=p, classes=classes)
            values = _shares_of_psp(found, psp, p)
        else:
            values = _values_of(found, metric)
        seen = np.flatnonzero(found.counts)
        logs = np.log(found.counts[seen].astype(np.float64))
        return cls(
            frequency=np.exp(found.sums(seen, logs) / found.n_labels),
            lower=found.lower,
            upper=found.upper,
            n_labels=found.n_labels,
            values=values,
            metric=metric,
            k=k,
            name=check_name(name, _WHO),
        )

    def plot(
        self, ax: Any = None, *, name: str | None = None, **kwargs: Any
    ) -> "MetricByFrequencyDisplay":
        """Draw the line.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw, such as ``ax_`` of another display; None makes a new figure.
        name : str, default=None
            Name of the model, for the legend; None takes `name` of the display.
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
            If `ax` is not a matplotlib axes, or `name` is not a string.
        """
        name = check_name(self.name if name is None else name, _WHO)
        ax = axes_for(ax, f"{_WHO}.plot")
        number = next_number(ax)
        options = look(number) | ({} if name is None else {"label": name})
        drawn = ax.plot(self.frequency, 100 * self.values, **line_style(options, kwargs))
        (self.line_,) = drawn
        mark(drawn, number)
        log_ticks(ax)
        ax.set_xlabel("training instances of the label (geometric mean of each group)")
        ax.set_ylabel(_AXIS[self.metric].format(k=self.k))
        start_at_zero(ax)
        finish(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _values_of(found: GroupCounts, metric: str) -> np.ndarray:
    counted = found.predicted if metric == "precision" else found.true
    with np.errstate(invalid="ignore", divide="ignore"):
        return found.right / counted


def _shares_of_psp(found: GroupCounts, psp: float, propensities: np.ndarray) -> np.ndarray:
    """Return what each group adds to PSP@k, by what its hits are worth."""
    right = found.hits.positions[found.hits.hit]
    worth = 1.0 / propensities[right]
    total = float(worth.sum())
    return found.sums(right, worth) * (psp / total if total > 0 else 0.0)
