"""Precision and recall of the best labels, by how often a label occurs in training."""

from typing import Any

import numpy as np

from sklearn_xc._arguments import check_count
from sklearn_xc._frequency_groups import check_length, frequency_groups
from sklearn_xc._topk import topk, unwrap
from sklearn_xc.metrics.hits import find_hits


class LabelFrequencyDisplay:
    """Precision and recall of the k best labels in groups of labels of similar frequency.

    Labels that occur in training are sorted by their number of instances and cut into ten groups
    of about equal size. Groups that end at the same frequency are merged: on long-tailed data
    several tenths of the labels have a single instance.

    Parameters
    ----------
    lower, upper : ndarray of int of shape (n_groups,)
        The least and the largest number of training instances of each group's labels.
    n_labels : ndarray of int of shape (n_groups,)
        Labels in each group.
    precision : ndarray of float of shape (n_groups,)
        Of the predictions that name a label of the group, the share that is right; NaN without any.
    recall : ndarray of float of shape (n_groups,)
        Of the group's labels that are true for an instance, the share among its k best; NaN
        without any.
    k : int
        How many labels of each instance were considered.

    Attributes
    ----------
    ax_, figure_
        The matplotlib axes and figure, after ``plot``.
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
    ) -> None:
        self.lower, self.upper, self.n_labels = lower, upper, n_labels
        self.precision, self.recall, self.k = precision, recall, k

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, Y: Any, *, k: int = 5, n_groups: int = 10, ax: Any = None
    ) -> "LabelFrequencyDisplay":
        """Predict and plot.

        Parameters
        ----------
        estimator : estimator
            Fitted; its last step has ``label_counts_``.
        X : object of n instances
            Input for `estimator`.
        Y : {array-like, sparse matrix} of shape (n, n_labels) or (n,)
            True labels, or one class per instance, as the estimator was fitted with.
        k, n_groups, ax
            As in ``from_predictions``.

        Returns
        -------
        LabelFrequencyDisplay

        Raises
        ------
        ValueError
            As in ``from_predictions``; for an estimator without ``label_counts_``.
        """
        classifier, _ = unwrap(estimator, None)
        if not hasattr(classifier, "label_counts_"):
            raise ValueError(
                f"LabelFrequencyDisplay: {type(classifier).__name__} has no label_counts_. Pass "
                "its predictions, and the counts, to from_predictions."
            )
        return cls.from_predictions(
            Y,
            topk(estimator, X, k)[0],
            classifier.label_counts_,
            classes=getattr(classifier, "classes_", None),
            k=k,
            n_groups=n_groups,
            ax=ax,
        )

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
        ax: Any = None,
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
            Training instances of each label.
        classes : array-like of shape (n_labels,), default=None
            ``classes_`` of the classifier, where `Y_true` holds class labels.
        k : int, default=5
            How many of the best labels to consider.
        n_groups : int, default=10
            Groups before merging.
        ax : matplotlib axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        LabelFrequencyDisplay

        Raises
        ------
        ValueError
            Where an argument does not fit: the message names it, and says what was expected.
        TypeError
            For a masked array.
        """
        k = check_count(k, "LabelFrequencyDisplay: k")
        who = "LabelFrequencyDisplay"
        group, lower, upper = frequency_groups(label_counts, n_groups, who)
        hits = find_hits(Y_true, indices, k, classes)
        check_length(len(group), hits.true.n_labels, (hits.positions, hits.true.columns), who)
        named = hits.positions >= 0
        ranked = group[hits.positions[named]]
        size = len(lower) + 1  # the last one holds the labels that training never saw
        predicted = np.bincount(ranked, minlength=size)[:-1]
        right = np.bincount(ranked, weights=hits.hit[named], minlength=size)[:-1]
        true = np.bincount(group[hits.true.columns], minlength=size)[:-1]
        with np.errstate(invalid="ignore", divide="ignore"):
            display = cls(
                lower=lower,
                upper=upper,
                n_labels=np.bincount(group, minlength=size)[:-1],
                precision=right / predicted,
                recall=right / true,
                k=k,
            )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> "LabelFrequencyDisplay":
        """Draw the groups as pairs of bars.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        LabelFrequencyDisplay
            Itself, with `ax_` and `figure_`.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
        at = np.arange(len(self.lower))
        ax.bar(at - 0.2, 100 * self.precision, 0.38, label=f"precision@{self.k}", color="#0072B2")
        ax.bar(at + 0.2, 100 * self.recall, 0.38, label=f"recall@{self.k}", color="#E69F00")
        ranges = [
            f"{low:,}" if low == high else f"{low:,} to {high:,}"
            for low, high in zip(self.lower, self.upper, strict=True)
        ]
        ax.set_xticks(
            at, [f"{r}\n({n:,})" for r, n in zip(ranges, self.n_labels, strict=True)], fontsize=8
        )
        ax.set_xlabel("training instances of the label (number of such labels)")
        ax.set_ylabel("%")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
