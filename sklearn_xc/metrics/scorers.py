"""Scorers: the metrics as scikit-learn's searches and cross-validation call them.

One call ranks the labels of X once, finds the hits once, and reads all metrics from them.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sklearn_xc.metrics.by_name import BY_ANY_NAME, METRICS
from sklearn_xc.metrics.check import check_k
from sklearn_xc.metrics.ranking_scorer import RankingScorer


class TopKScorer(RankingScorer):
    """Scorer that reports several metrics at several cut-offs from one top-k pass.

    Pass it as ``scoring=`` to ``cross_validate``, ``GridSearchCV`` and the like, with or without a
    Pipeline. It returns a dict, which scikit-learn treats as several metrics, so a search needs
    ``refit="P@1"`` or another of its names.

    Parameters
    ----------
    ks : sequence of int, default=(1, 3, 5)
        The cut-offs.
    metrics : sequence of {"precision", "ndcg", "recall", "psp", "psndcg", "coverage", \
            "macro_f1", "hierarchical_precision", "hierarchical_recall", "hierarchical_f1"}, \
            default=("precision", "ndcg", "psp")
        The metrics, reported as "P@k", "nDCG@k", "R@k", "PSP@k", "PSnDCG@k", "Cov@k", "MacroF1@k",
        "hP@k", "hR@k" and "hF1@k".
    propensities : array-like of shape (n_labels,), default=None
        For "psp" and "psndcg". None computes them from the rows on which the estimator was fitted
        (``label_counts_`` and ``n_samples_fit_`` of the last step of a Pipeline), so that nothing
        leaks from the test rows. To compare with published numbers, pass those of the whole
        training set.
    preset : {"default", "wikipedia", "amazon"}, default="default"
        Constants of :func:`propensity` if `propensities` is None.
    hierarchy : LabelHierarchy, default=None
        For the hierarchical metrics. The labels of the estimator are looked up in it by name
        (:meth:`~sklearn_xc.LabelHierarchy.aligned`).

    Raises
    ------
    ValueError
        For any other argument, and for hierarchical metrics without a `hierarchy`.
    TypeError
        For a `hierarchy` that is not a LabelHierarchy.

    See Also
    --------
    get_scorer : One metric at one cut-off, which returns a float.
    sklearn_xc.model_selection.cross_validate : Takes a sparse indicator.

    Notes
    -----
    `y` is an indicator, or one class label per row, as in the fit of the estimator. A class that
    was absent in training cannot be hit; see :func:`precision_at_k` and :func:`psp_at_k` for how
    it counts.

    With metadata routing enabled, request weights by ``set_score_request(sample_weight=True)``.

    Examples
    --------
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> from sklearn_xc.metrics import TopKScorer
    >>> X, Y = make_xc_classification(
    ...     n_samples=600, n_features=300, n_labels=80, random_state=0, return_X_y=True
    ... )
    >>> clf = OvALinearXC().fit(X[:400], Y[:400])
    >>> scorer = TopKScorer(ks=(1, 5), metrics=("precision", "recall"))
    >>> {name: round(value, 1) for name, value in scorer(clf, X[400:], Y[400:]).items()}
    {'P@1': 0.7, 'P@5': 0.3, 'R@1': 0.3, 'R@5': 0.6}
    """

    def __init__(
        self,
        ks: Sequence[int] = (1, 3, 5),
        metrics: Sequence[str] = ("precision", "ndcg", "psp"),
        *,
        propensities: Any = None,
        preset: str = "default",
        hierarchy: Any = None,
    ) -> None:
        self.ks = ks
        self.metrics = metrics
        self.propensities = propensities
        self.preset = preset
        self.hierarchy = hierarchy
        check_k(ks)
        known = isinstance(metrics, Sequence) and all(
            isinstance(metric, str) and metric in METRICS for metric in metrics
        )
        if isinstance(metrics, str) or not known or not metrics:
            raise ValueError(
                f"metrics: expected a sequence of names from {list(METRICS)}. Got {metrics!r}."
            )
        self._check()

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> dict:
        """Return the metrics of a fitted estimator on X and y.

        Parameters
        ----------
        estimator : object
            Fitted, with ``predict_topk``; also within a Pipeline or a search.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Test rows.
        y : {sparse matrix, array-like} of shape (n_samples, n_labels) or (n_samples,)
            The true labels, in the form of the fit.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        dict of str to float
            ``{"P@1": ..., "P@3": ..., ...}``, each in [0, 1].
        """
        return self._measure(self._pairs(), estimator, X, y, sample_weight)

    @property
    def names(self) -> list[str]:
        """Return the names of the metrics, such as "P@3", in the order of the results."""
        return [f"{METRICS[metric][0]}@{k}" for metric, ks in self._pairs().items() for k in ks]

    def _pairs(self) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(self.metrics, check_k(self.ks))

    def __repr__(self) -> str:
        """Return the call that makes this scorer, a long array left out."""
        first = [f"ks={self.ks!r}", f"metrics={self.metrics!r}"]
        return f"TopKScorer({', '.join(first + self._options())})"


class AtKScorer(RankingScorer):
    """Scorer of one metric at one cut-off, which returns a float; made by :func:`get_scorer`."""

    def __init__(
        self,
        metric: str,
        k: int,
        *,
        propensities: Any = None,
        preset: str = "default",
        hierarchy: Any = None,
    ) -> None:
        self.metric = metric
        self.k = k
        self.propensities = propensities
        self.preset = preset
        self.hierarchy = hierarchy
        self._check()

    @property
    def name(self) -> str:
        """Return the name in results, such as "P@3"."""
        return f"{METRICS[self.metric][0]}@{self.k}"

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the metric of a fitted estimator on X and y, in [0, 1]."""
        return self._measure(self._pairs(), estimator, X, y, sample_weight)[self.name]

    def _pairs(self) -> dict[str, tuple[int, ...]]:
        return {self.metric: (self.k,)}

    def __repr__(self) -> str:
        """Return the call that makes this scorer, a long array left out."""
        return f"get_scorer({', '.join([repr(self.name), *self._options()])})"


class ManyAtKScorer(RankingScorer):
    """Several `AtKScorer` in one pass, as a dict; made where `scoring=` is many names.

    Parameters
    ----------
    scorers : dict of str to AtKScorer
        Without propensities of their own.
    """

    def __init__(self, scorers: Mapping[str, AtKScorer]) -> None:
        self.scorers = scorers

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> dict:
        """Return the metrics of a fitted estimator on X and y, under the names of `scorers`."""
        values = self._measure(self._pairs(), estimator, X, y, sample_weight)
        return {name: values[scorer.name] for name, scorer in self.scorers.items()}

    @property
    def names(self) -> list[str]:
        """Return the names of the metrics in results, in their order."""
        return list(self.scorers)

    def _pairs(self) -> dict[str, tuple[int, ...]]:
        pairs: dict[str, tuple[int, ...]] = {}
        for scorer in self.scorers.values():
            pairs[scorer.metric] = (*pairs.get(scorer.metric, ()), scorer.k)
        return pairs

    def __repr__(self) -> str:
        """Return the scorers and the names that they go by."""
        return repr(self.scorers)


def get_scorer(
    scoring: Any, *, propensities: Any = None, preset: str = "default", hierarchy: Any = None
) -> Any:
    """Return the scorer for a name such as "P@3", ready for ``scoring=``.

    Parameters
    ----------
    scoring : str or callable
        "P@k", "nDCG@k", "R@k", "PSP@k", "PSnDCG@k", "Cov@k", "MacroF1@k", "hP@k", "hR@k" or
        "hF1@k" with a number for k, in upper or lower case; the long names of :class:`TopKScorer`
        work as well ("precision@3"). Other strings are looked up by
        :func:`sklearn.metrics.get_scorer`; a callable is returned as it is.
    propensities : array-like of shape (n_labels,), default=None
        See :class:`TopKScorer`; for the names of this package only.
    preset : {"default", "wikipedia", "amazon"}, default="default"
        See :class:`TopKScorer`; for the names of this package only.
    hierarchy : LabelHierarchy, default=None
        See :class:`TopKScorer`; "hP@k", "hR@k" and "hF1@k" need one.

    Returns
    -------
    callable
        ``scorer(estimator, X, y, sample_weight=None)``, which returns a float.

    Raises
    ------
    ValueError
        If the name is unknown or needs a `hierarchy`.

    Examples
    --------
    >>> from sklearn_xc.metrics import get_scorer
    >>> get_scorer("psp@3", preset="amazon")
    get_scorer('PSP@3', preset='amazon')

    Apply it to a fitted classifier:

    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> X, Y = make_xc_classification(
    ...     n_samples=600, n_features=300, n_labels=80, random_state=0, return_X_y=True
    ... )
    >>> clf = OvALinearXC().fit(X[:400], Y[:400])
    >>> round(get_scorer("R@5")(clf, X[400:], Y[400:]), 1)
    0.6
    """
    if not isinstance(scoring, str):
        return scoring
    parts = re.fullmatch(r"([a-z]\w*)@([1-9][0-9]*)", scoring.lower())
    if parts is not None and parts[1] in BY_ANY_NAME:
        return AtKScorer(
            BY_ANY_NAME[parts[1]],
            int(parts[2]),
            propensities=propensities,
            preset=preset,
            hierarchy=hierarchy,
        )
    import sklearn.metrics  # takes longer than all the rest of this package's imports together

    if scoring in sklearn.metrics.get_scorer_names():
        return sklearn.metrics.get_scorer(scoring)
    names = ", ".join(f'"{short}@k"' for short, *_ in METRICS.values())
    raise ValueError(
        f"scoring must be {names} with a number of at least 1 for k, or a name from "
        f"sklearn.metrics.get_scorer_names(). Got {scoring!r}."
    )
