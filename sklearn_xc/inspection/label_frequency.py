"""Precision and recall of the best labels, by how often a label occurs in training."""

from typing import Any

import numpy as np

from sklearn_xc._arguments import check_count
from sklearn_xc._topk import topk, unwrap
from sklearn_xc.inspection._group_counts import count_by_group
from sklearn_xc.inspection._ranked_pairs import encoded
from sklearn_xc.inspection._style import (
    COLOURS,
    axes_for,
    check_name,
    finish,
    mark,
    next_number,
    number_of,
    require_matplotlib,
    tint,
)

_WHO = "LabelFrequencyDisplay"
#: How much of its place a group of bars takes, and how pale those of recall are.
_WIDTH, _PALE = 0.8, 0.45
#: Models side by side in the legend, and the share of the height that a row of it takes.
_COLUMNS, _ROW = 3, 0.06


class LabelFrequencyDisplay:
    """Precision and recall of the k best labels in groups of labels of similar frequency.

    Labels that occur in training are sorted by their number of instances and cut into ten groups
    of about equal size. Groups that end at the same frequency are merged: on long-tailed data
    several tenths of the labels have a single instance.

    To draw a second model with the same groups beside the first one, call
    ``display.plot(ax=first.ax_)``: all bars become narrower. More than three models are easier to
    read as lines; see :class:`MetricByFrequencyDisplay`.

    Parameters
    ----------
    lower, upper : ndarray of int of shape (n_groups,)
        Smallest and largest number of training instances of the labels in each group.
    n_labels : ndarray of int of shape (n_groups,)
        Number of labels in each group.
    precision : ndarray of float of shape (n_groups,)
        Share of the predictions of a label in the group that are right; NaN if there are none.
    recall : ndarray of float of shape (n_groups,)
        Share of the true labels in the group that are among the k best of their instance; NaN if
        there are none.
    k : int
        Number of labels of each instance that were considered.
    name : str, default=None
        Name of the model, for the legend.

    Attributes
    ----------
    ax_, figure_
        The matplotlib axes and figure, after ``plot``.
    bars_ : tuple of two matplotlib containers
        The bars of precision and of recall.

    See Also
    --------
    MetricByFrequencyDisplay : One metric of several models as lines.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_xc.inspection import LabelFrequencyDisplay
    >>> Y = np.array([[1, 0, 1], [0, 1, 0], [0, 1, 0]])
    >>> best = np.array([[2], [1], [0]])
    >>> display = LabelFrequencyDisplay.from_predictions(
    ...     Y, best, label_counts=[1, 9, 1], k=1, n_groups=2, name="frequent first"
    ... )
    >>> display.precision, display.recall
    (array([0.5, 1. ]), array([0.5, 0.5]))
    """

    def __init__(
        self,
        *,
        lower: np.ndarray,
        upper: np.ndarray,
        n_labels: np.ndarray,
        precision: np.ndarray,
        recall: np.ndarray,
        k: int,
        name: str | None = None,
    ) -> None:
        self.lower, self.upper, self.n_labels = lower, upper, n_labels
        self.precision, self.recall, self.k, self.name = precision, recall, k, name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        Y: Any,
        *,
        k: int = 5,
        n_groups: int = 10,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> "LabelFrequencyDisplay":
        """Predict and plot.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator whose last step has ``label_counts_``.
        X : object of n instances
            Input for `estimator`.
        Y : {array-like, sparse matrix} of shape (n, n_labels) or (n,)
            True labels, or one class per instance, in the form of the fit.
        k, n_groups
            As in ``from_predictions``.
        name : str, default=None
            Name of the model, for the legend; None takes the name of its class.
        ax, **kwargs
            As in ``plot``.

        Returns
        -------
        LabelFrequencyDisplay

        Raises
        ------
        ValueError
            As in ``from_predictions``, and for an estimator without ``label_counts_``.

        Examples
        --------
        Rare labels are found less often:

        >>> from sklearn_xc import OvALinearXC
        >>> from sklearn_xc.datasets import make_xc_classification
        >>> from sklearn_xc.inspection import LabelFrequencyDisplay
        >>> X, Y = make_xc_classification(
        ...     n_samples=600, n_features=300, n_labels=80, random_state=0, return_X_y=True
        ... )
        >>> clf = OvALinearXC().fit(X[:400], Y[:400])
        >>> display = LabelFrequencyDisplay.from_estimator(clf, X[400:], Y[400:], k=5, n_groups=4)
        >>> bool(display.recall[0] < display.recall[-1])
        True
        """
        require_matplotlib(f"{_WHO}.from_estimator")
        classifier, _ = unwrap(estimator, None)
        if not hasattr(classifier, "label_counts_"):
            raise ValueError(
                f"{_WHO}: {type(classifier).__name__} has no label_counts_. Pass its predictions, "
                "and the counts, to from_predictions."
            )
        Y, n_true, classes = encoded(_WHO, estimator, Y)
        return cls._of_predictions(
            Y, topk(estimator, X, k)[0], classifier.label_counts_, n_groups, k, classes, n_true,
            type(classifier).__name__ if name is None else name,
        ).plot(ax=ax, **kwargs)  # fmt: skip

    @classmethod
    def from_predictions(
        cls,
        Y_true: Any,
        indices: np.ndarray,
        label_counts: np.ndarray,
        *,
        classes: Any = None,
        k: int = 5,
        n_groups: int = 10,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> "LabelFrequencyDisplay":
        """Plot predictions.

        Parameters
        ----------
        Y_true : {array-like, sparse matrix} of shape (n, n_labels) or (n,)
            True labels, or one class per instance, as in
            :func:`~sklearn_xc.metrics.precision_at_k`.
        indices : ndarray of int of shape (n, >= k)
            Best labels first, padded with -1, as ``predict_topk`` returns them.
        label_counts : ndarray of int of shape (n_labels,)
            Number of training instances of each label.
        classes : array-like of shape (n_labels,), default=None
            ``classes_`` of the classifier, if `Y_true` holds class labels.
        k : int, default=5
            Number of best labels to consider.
        n_groups : int, default=10
            Number of groups before merging.
        name : str, default=None
            Name of the model, for the legend.
        ax, **kwargs
            As in ``plot``.

        Returns
        -------
        LabelFrequencyDisplay

        Raises
        ------
        ValueError
            If an argument is invalid; the message names it and says what was expected.
        TypeError
            For a masked array.
        """
        require_matplotlib(f"{_WHO}.from_predictions")
        made = cls._of_predictions(Y_true, indices, label_counts, n_groups, k, classes, None, name)
        return made.plot(ax=ax, **kwargs)

    @classmethod
    def _of_predictions(
        cls, Y_true: Any, indices: Any, label_counts: Any, n_groups: Any, k: Any, classes: Any,
        n_true: np.ndarray | None, name: Any,
    ) -> "LabelFrequencyDisplay":  # fmt: skip
        k = check_count(k, f"{_WHO}: k")
        found = count_by_group(_WHO, Y_true, indices, label_counts, n_groups, k, classes, n_true)
        with np.errstate(invalid="ignore", divide="ignore"):
            return cls(
                lower=found.lower,
                upper=found.upper,
                n_labels=found.n_labels,
                precision=found.right / found.predicted,
                recall=found.right / found.true,
                k=k,
                name=check_name(name, _WHO),
            )

    def plot(
        self, ax: Any = None, *, name: str | None = None, **kwargs: Any
    ) -> "LabelFrequencyDisplay":
        """Draw the groups as bars, beside those of other models with the same groups.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw, such as ``ax_`` of another display; None makes a new figure.
        name : str, default=None
            Name of the model, for the legend; None takes `name` of the display.
        **kwargs : dict
            Passed to ``matplotlib.axes.Axes.bar``, such as a `color` for precision; recall has a
            pale one.

        Returns
        -------
        LabelFrequencyDisplay
            Itself, with `ax_`, `figure_` and `bars_`.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If `ax` is not a matplotlib axes, or `name` is not a string.
        ValueError
            If other groups have already been drawn on the axes.
        """
        name = check_name(self.name if name is None else name, _WHO)
        ax = axes_for(ax, f"{_WHO}.plot", (8, 4.5))
        number, ticks = next_number(ax), self._ticks()
        if number and [tick.get_text() for tick in ax.get_xticklabels()] != ticks:
            raise ValueError(
                f"{_WHO}: ax must have the same groups of labels, or none. Got axes with others: "
                "MetricByFrequencyDisplay draws lines over any."
            )
        start = "" if name is None else f"{name}: "
        colour = kwargs.pop("color", COLOURS[number % len(COLOURS)])
        self.bars_ = tuple(
            ax.bar(
                np.arange(len(self.lower)),
                100 * values,
                **{"label": f"{start}{metric}@{self.k}", "color": shade} | kwargs,
            )
            for metric, values, shade in (
                ("precision", self.precision, colour),
                ("recall", self.recall, tint(colour, _PALE)),
            )
        )
        for bars, metric in zip(self.bars_, ("precision", "recall"), strict=True):
            mark(bars, number, metric)
        _arrange(ax, number + 1)
        ax.set_xticks(np.arange(len(ticks)), ticks, fontsize=8)
        ax.set_xlim(-0.6, len(ticks) - 0.4)
        ax.set_xlabel("training instances of the label (number of such labels)")
        ax.set_ylabel("precision and recall (%)")
        n_rows = _leave_room(ax, number + 1)
        finish(ax, "upper left", ncols=-(-2 * (number + 1) // n_rows))
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _ticks(self) -> list[str]:
        """Return what stands below each group."""
        ranges = [
            f"{low:,}" if low == high else f"{low:,} to\n{high:,}"
            for low, high in zip(self.lower, self.upper, strict=True)
        ]
        return [f"{r}\n({n:,})" for r, n in zip(ranges, self.n_labels, strict=True)]


def _leave_room(ax: Any, n_models: int) -> int:
    """Make room for the legend above all bars, and return how many rows it has."""
    from matplotlib.ticker import MaxNLocator

    n_rows = 2 * -(-n_models // _COLUMNS)  # both bars of a model stand in one column
    heights = np.array([bar.get_height() for bar in ax.patches])
    top = max(1.0, heights.max(initial=0.0, where=np.isfinite(heights)))
    ticks = np.array(MaxNLocator(6).tick_values(0, top))
    ax.set_yticks(ticks[(ticks >= 0) & (ticks <= top)])
    ax.set_ylim(0, top / (1 - _ROW * n_rows - 0.02))
    return n_rows


def _arrange(ax: Any, n_models: int) -> None:
    """Make all bars so narrow that they fit: precision of all models, then recall of all."""
    width = _WIDTH / (2 * n_models)
    for bar in ax.patches:
        number = number_of(bar)
        if number is not None:
            place = number + n_models * bar.get_gid().endswith("recall")
            centre = np.rint(bar.get_x() + bar.get_width() / 2)
            bar.set_width(0.94 * width)
            bar.set_x(centre - _WIDTH / 2 + (place + 0.03) * width)
