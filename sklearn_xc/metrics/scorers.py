"""Scorers: the metrics as scikit-learn's searches and cross-validation call them.

One call ranks the labels of X once, finds the hits once, and computes all metrics from them.
"""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.metrics
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import MetadataRequest

from sklearn_xc._input.sklearn_private import register_scorers
from sklearn_xc._labels.names import refuse_other_columns
from sklearn_xc._state.fitted import shallow_copy
from sklearn_xc._topk import topk, unwrap
from sklearn_xc.metrics.by_name import METRICS, WEIGHTED, parse_metric
from sklearn_xc.metrics.check import as_array, check_k, check_propensities, check_sample_weight
from sklearn_xc.metrics.hits import Hits, find_hits
from sklearn_xc.metrics.propensity_scored import check_preset, propensity


class _RankingScorer(BaseEstimator):
    """Base of the scorers: one ranking of X, and the metrics of it.

    Unlike an estimator's, the constructor checks its arguments: within a search an error would
    become a column of NaN.
    """

    def __init__(
        self,
        ks: Sequence[int] = (1, 3, 5),
        metrics: Sequence[str] = ("precision", "ndcg", "psp"),
        *,
        propensities: Any = None,
        preset: str = "default",
    ) -> None:
        self.ks = ks
        self.metrics = metrics
        self.propensities = propensities
        self.preset = preset
        check_k(ks)
        known = isinstance(metrics, Sequence) and all(
            isinstance(metric, str) and metric in METRICS for metric in metrics
        )
        if isinstance(metrics, str) or not known or not metrics:
            raise ValueError(
                f"metrics: expected a sequence of names from {list(METRICS)}. Got {metrics!r}."
            )
        check_preset(preset)
        if propensities is not None:
            check_propensities(propensities)

    @property
    def names(self) -> list[str]:
        """Return the names of the metrics, such as "P@3", in the order of the results."""
        return [f"{METRICS[name].short}@{k}" for name in self.metrics for k in check_k(self.ks)]

    def _measure(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> dict[str, float]:
        """Return ``{"P@1": value, ...}``."""
        hits, weight = self._find_hits(estimator, X, y, sample_weight)
        ks = check_k(self.ks)
        propensities = self._weights(estimator) if WEIGHTED.keys() & set(self.metrics) else None
        values = []
        for metric in self.metrics:
            arguments = (propensities,) if metric in WEIGHTED else ()
            values += METRICS[metric].of_hits(hits, ks, weight, *arguments).tolist()
        return dict(zip(self.names, values, strict=True))

    def _find_hits(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Hits, np.ndarray | None]:
        """Return the hits at the largest cut-off, and the checked weights."""
        k_max = max(check_k(self.ks))
        ranked = topk(estimator, X, k_max)
        y, counts = _encoded(estimator, y)
        hits = find_hits(y, ranked, k_max, _known_classes(self, estimator, y), counts)
        return hits, check_sample_weight(sample_weight, len(hits.positions))

    def _weights(self, estimator: Any) -> Any:
        """Return the given propensities, or those of the estimator's training labels."""
        if self.propensities is not None:
            return self.propensities
        fitted = _fitted_part(estimator, "label_counts_")
        if fitted is None or not hasattr(fitted, "n_samples_fit_"):
            raise ValueError(
                f"{self!r}: propensities default to those of the rows the estimator was fitted on, "
                f"but {type(estimator).__name__} has no label_counts_ and n_samples_fit_. "
                "Pass propensities=, or leave the propensity-scored metrics out."
            )
        return propensity(fitted.label_counts_, fitted.n_samples_fit_, self.preset)

    def __sklearn_clone__(self) -> Any:
        # Nothing in a scorer is fitted, so that a search shares long arrays.
        return copy.copy(self)

    def set_score_request(self, *, sample_weight: bool | str | None = None) -> Any:
        """Request sample weights, for when metadata routing is enabled.

        Parameters
        ----------
        sample_weight : bool, str or None, default=None
            True: requested under this name; a string: requested under that name; False: not
            requested; None: passing weights is an error.

        Returns
        -------
        self

        Raises
        ------
        RuntimeError
            If metadata routing is not enabled.
        """
        if not get_config()["enable_metadata_routing"]:
            raise RuntimeError(
                "set_score_request works only with metadata routing: "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        self._sample_weight_request = sample_weight
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what this scorer requests from scikit-learn's metadata routing.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRequest
        """
        request = MetadataRequest(owner=type(self).__name__)
        alias = getattr(self, "_sample_weight_request", None)
        request.score.add_request(param="sample_weight", alias=alias)
        return request

    def _accept_sample_weight(self) -> bool:
        # Read by scikit-learn's searches where metadata routing is off.
        return True


class TopKScorer(_RankingScorer):
    """Scorer that reports several metrics at several cut-offs from one top-k pass.

    Pass it as ``scoring=`` to ``cross_validate``, ``GridSearchCV`` and the like, with or without a
    Pipeline. It returns a dict, which scikit-learn treats as several metrics, so a search needs
    ``refit="P@1"`` or another of its names.

    Parameters
    ----------
    ks : sequence of int, default=(1, 3, 5)
        The cut-offs.
    metrics : sequence of {"precision", "ndcg", "recall", "reciprocal_rank", \
            "average_precision", "lrap", "hit_rate", "psp", "psndcg", "coverage", "macro_f1"}, \
            default=("precision", "ndcg", "psp")
        The metrics, reported as "P@k", "nDCG@k", "R@k", "MRR@k", "MAP@k", "LRAP@k", "hit@k",
        "PSP@k", "PSnDCG@k", "Cov@k" and "MacroF1@k".
    propensities : array-like of shape (n_labels,), default=None
        For "psp" and "psndcg". None computes them from the rows on which the estimator was fitted
        (``label_counts_`` and ``n_samples_fit_`` of the last step of a Pipeline), so that nothing
        leaks from the test rows. To compare with published numbers, pass those of the whole
        training set.
    preset : {"default", "wikipedia", "amazon"}, default="default"
        Constants of :func:`propensity` if `propensities` is None.

    Raises
    ------
    ValueError
        For any other argument.

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
        return self._measure(estimator, X, y, sample_weight)


class AtKScorer(_RankingScorer):
    """Scorer of one metric at one cut-off, which returns a float; made by :func:`get_scorer`."""

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the metric of a fitted estimator on X and y, in [0, 1]."""
        (value,) = self._measure(estimator, X, y, sample_weight).values()
        return value


class NamesScorer:
    """A scorer of scikit-learn that also scores the lists of names of a tagger, as indicators."""

    def __init__(self, scorer: Any) -> None:
        self._scorer = scorer

    def __call__(self, estimator: Any, X: Any, y: Any, **params: Any) -> float:
        """Return the score of a fitted estimator on X and y."""
        tagger = _fitted_part(estimator, "_encode_targets")
        if getattr(tagger, "binarizer_", None) is not None:
            _, X = unwrap(estimator, X)
            y = tagger.encode_targets(y)
            estimator = shallow_copy(tagger, {**vars(tagger), "binarizer_": None})
        return self._scorer(estimator, X, y, **params)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_scorer":
            raise AttributeError(name)
        return getattr(self._scorer, name)


def get_scorer(scoring: Any, *, propensities: Any = None, preset: str = "default") -> Any:
    """Return the scorer for a name such as "P@3", ready for ``scoring=``.

    Parameters
    ----------
    scoring : str or callable
        "P@k", "nDCG@k", "R@k", "MRR@k", "MAP@k", "LRAP@k", "hit@k", "PSP@k", "PSnDCG@k", "Cov@k"
        or "MacroF1@k" with a number for k, in upper or lower case; the long names of
        :class:`TopKScorer` work as well ("precision@3").
        Other strings are looked up by :func:`sklearn.metrics.get_scorer`, and then also score a
        :class:`~sklearn_xc.TextClassifierXC` of names, which scikit-learn's scorers do not: names
        that fit has not seen are left out. A callable is returned unchanged.
    propensities : array-like of shape (n_labels,), default=None
        See :class:`TopKScorer`; for the names of this package only.
    preset : {"default", "wikipedia", "amazon"}, default="default"
        See :class:`TopKScorer`; for the names of this package only.

    Returns
    -------
    callable
        ``scorer(estimator, X, y, sample_weight=None)``, which returns a float.

    Raises
    ------
    ValueError
        If the name is unknown.

    Notes
    -----
    Where an estimator of this package has been imported, ``scoring=`` of scikit-learn's
    ``model_selection`` knows these names for k of 1, 3, 5 and 10, such as ``GridSearchCV(...,
    scoring="P@1")``.

    Examples
    --------
    >>> from sklearn_xc.metrics import get_scorer
    >>> get_scorer("psp@3", preset="amazon")
    AtKScorer(ks=(3,), metrics=('psp',), preset='amazon')

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
    parsed = parse_metric(scoring)
    if parsed is not None:
        metric, k = parsed
        return AtKScorer((k,), (metric,), propensities=propensities, preset=preset)
    if scoring in sklearn.metrics.get_scorer_names():
        return NamesScorer(sklearn.metrics.get_scorer(scoring))
    names = ", ".join(f'"{short}@k"' for short, *_ in METRICS.values())
    raise ValueError(
        f"scoring must be {names} with a number of at least 1 for k, or a name from "
        f"sklearn.metrics.get_scorer_names(). Got {scoring!r}."
    )


register_scorers(
    {
        f"{metric.short}@{k}": AtKScorer((k,), (name,))
        for name, metric in METRICS.items()
        for k in (1, 3, 5, 10)
    }
)


def _encoded(estimator: Any, y: Any) -> tuple[Any, np.ndarray | None]:
    """Return y in a form that metrics take, and the labels of each row where it was names.

    Names that the estimator does not know have no column, and count as missed.
    """
    named = _fitted_part(estimator, "_encode_targets")
    return (y, None) if named is None else named._encode_targets(y)


def _known_classes(scorer: _RankingScorer, estimator: Any, y: Any) -> Any:
    """Return the ``classes_`` of a fitted estimator, None where an indicator can do without."""
    fitted = _fitted_part(estimator, "classes_")
    shape = y.shape if sp.issparse(y) else as_array(y, "y", "class labels or an indicator").shape
    is_indicator = len(shape) == 2 and shape[1] > 1
    if fitted is None:
        if not sp.issparse(y) and not is_indicator:
            raise ValueError(
                f"{scorer!r}: y holds class labels, but {type(estimator).__name__} has no classes_ "
                "to find them in."
            )
        return None
    if is_indicator:
        if shape[1] != len(fitted.classes_):
            raise ValueError(
                f"{scorer!r}: y has {shape[1]} label columns, the estimator was fitted with "
                f"{len(fitted.classes_)}."
            )
        refuse_other_columns(y, np.asarray(fitted.classes_), repr(scorer))
    return fitted.classes_


def _fitted_part(estimator: Any, attribute: str) -> Any:
    """Return the estimator that holds `attribute`: itself, or the one a wrapper ends in."""
    while estimator is not None and not hasattr(estimator, attribute):
        if hasattr(estimator, "steps"):
            estimator = estimator.steps[-1][1]
        else:
            inner = getattr(estimator, "estimator_", None)
            estimator = getattr(estimator, "best_estimator_", inner)
    return estimator
