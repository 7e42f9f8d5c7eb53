"""Reliability of probabilities: observed shares of true labels against predicted ones."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_xc._topk import as_matrix, unwrap
from sklearn_xc.inspection._style import axes_for, draw_line, finish, read_targets
from sklearn_xc.metrics.calibration import bin_pairs, find_pairs

_WHO = "ReliabilityDisplay"
_REFERENCE = "perfectly calibrated"


@dataclass(kw_only=True, eq=False, repr=False)
class ReliabilityDisplay:
    r"""Observed share of true labels against their predicted probability.

    Pairs of an instance and one of its k best labels are put into bins of similar probability.
    Points on the diagonal are true as often as predicted; points below it are overconfident. Only
    the k best labels count: the many others, with probabilities near 0, would fill all bins.

    Parameters
    ----------
    mean_probability : ndarray of float64 of shape (n_used_bins,)
        Mean predicted probability of the pairs in each bin that is not empty.
    observed_share : ndarray of float64 of shape (n_used_bins,)
        Share of these pairs whose label is true.
    n_pairs : ndarray of int64 of shape (n_used_bins,)
        Number of these pairs.
    ece : float
        Expected calibration error: the mean distance between the two, over the pairs.
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
    sklearn.calibration.CalibrationDisplay : The same for a binary classifier.

    Notes
    -----
    With :math:`n_b` of n pairs in bin b,

    .. math:: ECE = \sum_b \frac{n_b}{n} |\text{observed share}_b - \text{mean probability}_b|.

    Source: [1]_, on pairs rather than instances. The error depends on the bins; compare models
    with equal `n_bins`, `strategy` and `k`. The probabilities of a softmax model for several
    labels per instance sum to 1: they are those of one label drawn from the instance's labels, and
    lie below the observed shares.

    References
    ----------
    .. [1] M. P. Naeini, G. F. Cooper and M. Hauskrecht, "Obtaining Well Calibrated Probabilities
       Using Bayesian Binning", AAAI 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_xc.inspection import ReliabilityDisplay
    >>> Y = np.array([[1, 0, 0], [0, 1, 1]])
    >>> best = np.array([[0, 1], [2, 1]]), np.array([[0.9, 0.2], [0.7, 0.4]])
    >>> display = ReliabilityDisplay.from_predictions(Y, best, k=2, n_bins=2, strategy="uniform")
    >>> display.mean_probability, display.observed_share
    (array([0.3, 0.8]), array([0.5, 1. ]))
    >>> round(display.ece, 3)
    0.2
    """

    mean_probability: np.ndarray
    observed_share: np.ndarray
    n_pairs: np.ndarray
    ece: float
    k: int
    name: str | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, k: int = 5, **options: Any
    ) -> "ReliabilityDisplay":
        """Predict and plot.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier, Pipeline or search.
        X : object of n instances
            Input for `estimator`.
        y : {array-like, sparse matrix} of shape (n, n_labels) or (n,)
            True labels, or one class per instance, in the form of the fit.
        k : int, default=5
            Number of best labels of each instance to consider.
        **options : dict
            Further arguments of ``from_predictions``. The default of `name` is that of the
            estimator's class.

        Returns
        -------
        ReliabilityDisplay

        Raises
        ------
        ValueError
            As in ``from_predictions``, and for an estimator without ``predict_proba``.

        Examples
        --------
        >>> from sklearn_xc import OvALinearXC, TopKCalibrator
        >>> from sklearn_xc.datasets import make_xc_classification
        >>> from sklearn_xc.inspection import ReliabilityDisplay
        >>> X, Y = make_xc_classification(
        ...     n_samples=600, n_features=300, n_labels=80, random_state=0, return_X_y=True
        ... )
        >>> clf = TopKCalibrator(OvALinearXC(), n_groups=2, random_state=0).fit(X[:400], Y[:400])
        >>> display = ReliabilityDisplay.from_estimator(clf, X[400:], Y[400:], k=3, n_bins=5)
        >>> bool(display.ece < 0.1)
        True
        """
        classifier, inputs = unwrap(estimator, X)
        if not hasattr(classifier, "predict_proba"):
            raise ValueError(
                f"{_WHO}: the estimator must have predict_proba. Got {type(classifier).__name__}."
            )
        y, classes = read_targets(_WHO, estimator, y)
        if hasattr(classifier, "predict_proba_topk"):
            Y_prob = classifier.predict_proba_topk(inputs, k)
        else:
            Y_prob = as_matrix(classifier.predict_proba(inputs), classifier)
            k = min(k, Y_prob.shape[1])
        options = {"classes": classes, "name": type(classifier).__name__, **options}
        return cls.from_predictions(y, Y_prob, k=k, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        Y_prob: Any,
        *,
        k: int = 5,
        n_bins: int = 15,
        strategy: str = "quantile",
        classes: Any = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> "ReliabilityDisplay":
        """Plot predictions.

        Parameters
        ----------
        y_true : {array-like, sparse matrix} of shape (n, n_labels) or (n,)
            True labels, or one class per instance, as in
            :func:`~sklearn_xc.metrics.precision_at_k`.
        Y_prob : tuple or {array, sparse matrix} of shape (n, n_labels)
            Probabilities, as in :func:`~sklearn_xc.metrics.expected_calibration_error`.
        k : int, default=5
            Number of best labels of each instance to consider.
        n_bins : int, default=15
            Number of bins. Empty bins are left out; with "quantile", those that end at equal
            probabilities are merged.
        strategy : {"quantile", "uniform"}, default="quantile"
            Bins with equally many pairs, or of equal width.
        classes : array-like of shape (n_labels,), default=None
            ``classes_`` of the classifier, if `y_true` holds class labels.
        name : str, default=None
            Name of the model, for the legend.
        ax, **kwargs
            As in ``plot``.

        Returns
        -------
        ReliabilityDisplay

        Raises
        ------
        ValueError
            If an argument is invalid; the message names it and says what was expected.
        TypeError
            For a masked array.
        """
        pairs = find_pairs(y_true, Y_prob, k, None, classes)
        n_pairs, probable, observed = bin_pairs(*pairs, n_bins, strategy)
        made = cls(
            mean_probability=probable / n_pairs,
            observed_share=observed / n_pairs,
            n_pairs=n_pairs.astype(np.int64),
            ece=float(np.abs(observed - probable).sum() / n_pairs.sum()),
            k=int(k),
            name=name,
        )
        return made.plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> "ReliabilityDisplay":
        """Draw the line, and the diagonal once.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw, such as ``ax_`` of another display; None makes a new figure.
        **kwargs : dict
            Passed to ``matplotlib.axes.Axes.plot``.

        Returns
        -------
        ReliabilityDisplay
            Itself, with `ax_`, `figure_` and `line_`.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If `ax` is not a matplotlib axes.
        """
        ax = axes_for(ax, _WHO, (5.4, 5))
        if _REFERENCE not in ax.get_legend_handles_labels()[1]:
            ax.plot([0, 1], [0, 1], ":", color="#808080", label=_REFERENCE)
        error = f"ECE = {self.ece:.3f}"
        label = error if self.name is None else f"{self.name} ({error})"
        self.line_ = draw_line(ax, self.mean_probability, self.observed_share, label, kwargs)
        ax.set_xlim(-0.02, 1.02)
        ax.set_ylim(-0.02, 1.02)
        best = "the best label" if self.k == 1 else f"the {self.k} best labels"
        ax.set_xlabel(f"mean predicted probability of {best}")
        ax.set_ylabel("observed share of true labels")
        finish(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
