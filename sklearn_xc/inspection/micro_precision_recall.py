"""Precision and recall of label sets as the threshold of the scores falls."""

from typing import Any

import numpy as np

from sklearn_xc._arguments import is_number
from sklearn_xc._topk import unwrap
from sklearn_xc.inspection._ranked_pairs import (
    RankedPairs,
    count_named,
    pairs_of_estimator,
    pairs_of_predictions,
)
from sklearn_xc.inspection._style import (
    GREY,
    axes_for,
    best_labels,
    check_name,
    finish,
    line_style,
    look,
    mark,
    next_number,
    require_matplotlib,
)

_WHO = "MicroPrecisionRecallDisplay"
_F1_LINES = (0.2, 0.4, 0.6, 0.8)
#: More points of a line than this cannot be told apart.
_DRAWN = 4000
_MARK = "labels of predict"


class MicroPrecisionRecallDisplay:
    """Micro-averaged precision and recall of label sets as the score threshold varies.

    The label set of an instance holds those of its k best labels that score at least the
    threshold. As the threshold falls, the sets grow: recall rises, and ends at the micro-averaged
    recall@k. A mark shows the label sets that ``predict`` returns.

    Parameters
    ----------
    precision : ndarray of float64 of shape (n_thresholds,)
        Share of the labels in all sets that are true.
    recall : ndarray of float64 of shape (n_thresholds,)
        Share of the true labels of all instances that are in the sets; increasing.
    thresholds : ndarray of float64 of shape (n_thresholds,)
        Each score that occurs, in decreasing order.
    best_f1, best_threshold : float
        The largest harmonic mean of precision and recall, and the largest threshold that reaches
        it.
    k : int
        Number of labels of each instance that were considered.
    predict_precision, predict_recall : float or None, default=None
        Precision and recall of the label sets that ``predict`` returns, or at a given threshold;
        None if there is neither.
    name : str, default=None
        Name of the model, for the legend.

    Attributes
    ----------
    ax_, figure_
        The matplotlib axes and figure, after ``plot``.
    line_ : matplotlib line
        The line of the model.
    mark_ : matplotlib line or None
        The mark on it.

    See Also
    --------
    sklearn.metrics.PrecisionRecallDisplay : The same for a binary classifier.

    Notes
    -----
    There is one threshold for all instances and labels. An estimator without ``predict_proba`` is
    judged by the scores of ``predict_topk``. ``predict`` may consider more than k labels; its mark
    then lies to the right of the line.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_xc.inspection import MicroPrecisionRecallDisplay
    >>> Y = np.array([[1, 0, 0], [0, 1, 1]])
    >>> best = np.array([[0, 1], [2, 1]]), np.array([[0.9, 0.2], [0.7, 0.4]])
    >>> display = MicroPrecisionRecallDisplay.from_predictions(Y, best, k=2, threshold=0.5)
    >>> display.thresholds, display.precision
    (array([0.9, 0.7, 0.4, 0.2]), array([1.  , 1.  , 1.  , 0.75]))
    >>> display.best_f1, display.best_threshold
    (1.0, 0.4)
    >>> round(display.predict_recall, 3)
    0.667
    """

    def __init__(
        self,
        *,
        precision: np.ndarray,
        recall: np.ndarray,
        thresholds: np.ndarray,
        best_f1: float,
        best_threshold: float,
        k: int,
        predict_precision: float | None = None,
        predict_recall: float | None = None,
        name: str | None = None,
    ) -> None:
        self.precision, self.recall, self.thresholds = precision, recall, thresholds
        self.best_f1, self.best_threshold, self.k, self.name = best_f1, best_threshold, k, name
        self.predict_precision, self.predict_recall = predict_precision, predict_recall

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        k: int = 20,
        response_method: str = "auto",
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> "MicroPrecisionRecallDisplay":
        """Predict and plot, with a mark for what ``predict`` returns.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier, Pipeline or search.
        X : object of n instances
            Input for `estimator`.
        y : {array-like, sparse matrix} of shape (n, n_labels) or (n,)
            True labels, or one class per instance, in the form of the fit.
        k : int, default=20
            As in ``from_predictions``.
        response_method : {"auto", "predict_proba", "predict_topk"}, default="auto"
            Which scores to use; "auto" takes ``predict_proba`` if there is one.
        name : str, default=None
            Name of the model, for the legend; None takes the name of its class.
        ax, **kwargs
            As in ``plot``.

        Returns
        -------
        MicroPrecisionRecallDisplay

        Raises
        ------
        ValueError
            As in ``from_predictions``, and for an estimator without the method.

        Examples
        --------
        >>> from sklearn_xc import OvALinearXC
        >>> from sklearn_xc.datasets import make_xc_classification
        >>> from sklearn_xc.inspection import MicroPrecisionRecallDisplay
        >>> X, Y = make_xc_classification(
        ...     n_samples=600, n_features=300, n_labels=80, random_state=0, return_X_y=True
        ... )
        >>> clf = OvALinearXC().fit(X[:400], Y[:400])
        >>> display = MicroPrecisionRecallDisplay.from_estimator(clf, X[400:], Y[400:])
        >>> bool(display.best_threshold < 0)  # the margins of few rare labels exceed 0
        True
        """
        require_matplotlib(f"{_WHO}.from_estimator")
        name = type(unwrap(estimator, None)[0]).__name__ if name is None else name
        pairs = pairs_of_estimator(_WHO, estimator, X, y, k, response_method)
        made = cls._of_pairs(pairs, k, name)
        n_named, n_right, n_true = count_named(_WHO, estimator, X, y)
        made._set_mark(n_named, n_right, n_true)
        return made.plot(ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        topk: Any,
        *,
        k: int = 20,
        threshold: float | None = None,
        classes: Any = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> "MicroPrecisionRecallDisplay":
        """Plot predictions.

        Parameters
        ----------
        y_true : {array-like, sparse matrix} of shape (n, n_labels) or (n,)
            True labels, or one class per instance, as in
            :func:`~sklearn_xc.metrics.precision_at_k`.
        topk : tuple (indices, scores), or sparse matrix of shape (n, n_labels)
            Arrays of shape (n, >= k), best first, indices padded with -1; or the scores, where any
            that are not stored are lower than all others.
        k : int, default=20
            Number of best labels of each instance to consider.
        threshold : float, default=None
            A threshold to mark: label sets hold the labels with a higher score.
        classes : array-like of shape (n_labels,), default=None
            ``classes_`` of the classifier, if `y_true` holds class labels.
        name : str, default=None
            Name of the model, for the legend.
        ax, **kwargs
            As in ``plot``.

        Returns
        -------
        MicroPrecisionRecallDisplay

        Raises
        ------
        ValueError
            If an argument is invalid; the message names it and says what was expected.
        TypeError
            For a masked array.
        """
        require_matplotlib(f"{_WHO}.from_predictions")
        if threshold is not None and not (is_number(threshold) and np.isfinite(threshold)):
            raise ValueError(
                f"{_WHO}: threshold must be a finite number or None. Got {threshold!r}."
            )
        pairs = pairs_of_predictions(_WHO, y_true, topk, k, classes)
        made = cls._of_pairs(pairs, k, name)
        if threshold is not None:
            above = pairs.score > threshold
            made._set_mark(int(above.sum()), int(pairs.hit[above].sum()), pairs.n_true)
        return made.plot(ax=ax, **kwargs)

    @classmethod
    def _of_pairs(cls, pairs: RankedPairs, k: int, name: Any) -> "MicroPrecisionRecallDisplay":
        if not pairs.n_true:
            raise ValueError(f"{_WHO}: y must hold a true label, or there is no recall. Got none.")
        order = np.argsort(-pairs.score, kind="stable")
        score = pairs.score[order]
        last = np.append(np.flatnonzero(score[1:] != score[:-1]), len(score) - 1)
        right = np.cumsum(pairs.hit[order])[last]
        precision, recall = right / (last + 1), right / pairs.n_true
        f1 = 2 * right / (last + 1 + pairs.n_true)
        best = int(f1.argmax())
        return cls(
            precision=precision,
            recall=recall,
            thresholds=score[last],
            best_f1=float(f1[best]),
            best_threshold=float(score[last[best]]),
            k=int(k),
            name=check_name(name, _WHO),
        )

    def _set_mark(self, n_named: int, n_right: int, n_true: int) -> None:
        if n_named:
            self.predict_precision, self.predict_recall = n_right / n_named, n_right / n_true

    def plot(
        self, ax: Any = None, *, name: str | None = None, f1_lines: bool = True, **kwargs: Any
    ) -> "MicroPrecisionRecallDisplay":
        """Draw the line and its mark, and the lines of equal F1 once.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw, such as ``ax_`` of another display; None makes a new figure.
        name : str, default=None
            Name of the model, for the legend; None takes `name` of the display.
        f1_lines : bool, default=True
            Whether to draw lines of equal F1 if there are none yet.
        **kwargs : dict
            Passed to ``matplotlib.axes.Axes.plot``.

        Returns
        -------
        MicroPrecisionRecallDisplay
            Itself, with `ax_`, `figure_`, `line_` and `mark_`.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If `ax` is not a matplotlib axes, or `name` is not a string.
        """
        name = check_name(self.name if name is None else name, _WHO)
        ax = axes_for(ax, f"{_WHO}.plot", (5.8, 5))
        number = next_number(ax)
        if f1_lines and not any(line.get_gid() == "F1" for line in ax.lines):
            _draw_f1_lines(ax)
        best = f"best F1 = {100 * self.best_f1:.1f} %"
        options = look(number) | {"label": best if name is None else f"{name} ({best})"}
        at = np.unique(np.linspace(0, len(self.recall) - 1, _DRAWN).astype(np.int64))
        line = line_style({**options, "marker": ""}, kwargs)
        drawn = ax.plot(100 * self.recall[at], 100 * self.precision[at], **line)
        (self.line_,) = drawn
        self.mark_ = None
        if self.predict_precision is not None and self.predict_recall is not None:
            point = {**options, "color": self.line_.get_color(), "markersize": 8, "label": None}
            (self.mark_,) = ax.plot(
                [100 * self.predict_recall], [100 * self.predict_precision],
                linestyle="", markeredgecolor="white", zorder=4, clip_on=False, **point,
            )  # fmt: skip
            drawn = [*drawn, self.mark_]
            if _MARK not in ax.get_legend_handles_labels()[1]:
                ax.plot([], [], "o", color=GREY, markersize=7, label=_MARK)
        mark(drawn, number)
        ax.set_xlim(0, 102)
        ax.set_ylim(0, 102)
        ax.set_xlabel(f"micro-averaged recall of {best_labels(self.k)} (%)")
        ax.set_ylabel("micro-averaged precision (%)")
        finish(ax, "lower left")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _draw_f1_lines(ax: Any) -> None:
    """Draw where F1 is constant: precision = F1 recall / (2 recall - F1), in percent."""
    for f1 in _F1_LINES:
        recall = np.linspace(f1 / (2 - f1), 1, 200)
        precision = f1 * recall / (2 * recall - f1)
        (line,) = ax.plot(100 * recall, 100 * precision, color=GREY, lw=0.7, alpha=0.5, zorder=1)
        line.set_gid("F1")
        ax.annotate(
            f"F1 = {100 * f1:.0f} %", (100, 100 * precision[-1]), xytext=(-2, 0),
            textcoords="offset points", ha="right", va="center", fontsize=7, color=GREY,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8}, zorder=1,
        )  # fmt: skip
