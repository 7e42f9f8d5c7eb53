"""Scorers: the metrics as scikit-learn's searches and cross-validation call them.

One call ranks the labels of X once, finds the hits once, and reads all metrics from them.
"""

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRequest

from sklearn_xc._label_names import refuse_other_columns
from sklearn_xc._topk import topk
from sklearn_xc.metrics._propensity import check_preset, propensity
from sklearn_xc.metrics.by_name import BY_ANY_NAME, METRICS, OF_LABELS, WEIGHTED, row_sums
from sklearn_xc.metrics.check import (
    as_array,
    check_k,
    check_probabilities,
    check_propensities,
    check_sample_weight,
)
from sklearn_xc.metrics.hits import Hits, find_hits


class _RankingScorer:
    """What the scorers share: the request for sample weights, and the one pass over X.

    Unlike an estimator's, their constructors check the arguments: later, within a search, an error
    would become a column of NaN.
    """

    propensities: Any
    preset: str

    def _check_weighting(self) -> None:
        check_preset(self.preset)
        if self.propensities is not None:
            check_probabilities(self.propensities, None)

    def _measure(
        self, pairs: dict[str, tuple[int, ...]], estimator: Any, X: Any, y: Any, sample_weight: Any
    ) -> dict[str, float]:
        """Return ``{"P@1": value, ...}`` for the cut-offs of each metric in `pairs`."""
        hits, weight = self._find_hits(pairs, estimator, X, y, sample_weight)
        propensities = None
        values: dict[str, float] = {}
        for metric, ks in pairs.items():
            short, of_hits, _ = METRICS[metric]
            if metric in WEIGHTED:
                if propensities is None:
                    propensities = check_propensities(self._weighting(estimator), hits.true)
                numbers = of_hits(hits, ks, weight, propensities)
            else:
                numbers = of_hits(hits, ks, weight)
            values |= {f"{short}@{k}": float(number) for k, number in zip(ks, numbers, strict=True)}
        return values

    def _find_hits(
        self, pairs: dict[str, tuple[int, ...]], estimator: Any, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Hits, np.ndarray | None]:
        """Return the hits at the largest cut-off in `pairs`, and the checked weights."""
        k_max = max(max(ks) for ks in pairs.values())
        ranked = topk(estimator, X, k_max)
        y, counts = _encoded(estimator, y)
        hits = find_hits(y, ranked, k_max, _known_classes(self, estimator, y), counts)
        return hits, check_sample_weight(sample_weight, len(hits.positions))

    def _pairs(self) -> dict[str, tuple[int, ...]]:
        """Return the cut-offs of each metric."""
        raise NotImplementedError  # this class is not a scorer by itself

    def _score_rows(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any = None
    ) -> tuple[float, np.ndarray]:
        """Return the score of a scorer of one number, and what each row adds to it.

        Returns
        -------
        score : float
            As the scorer itself returns it.
        added : ndarray of float64 of shape (n_samples,)
            Sums up to the score, but for rounding.
        """
        ((metric, ks),) = pairs = list(self._pairs().items())
        if not self._adds_up_rows():
            raise ValueError(
                f"{self!r}: expected a metric that is a sum over rows. Got one of labels, to which "
                "a row adds nothing of its own."
            )
        hits, weight = self._find_hits(dict(pairs), estimator, X, y, sample_weight)
        propensities = None
        if metric in WEIGHTED:
            propensities = check_propensities(self._weighting(estimator), hits.true)
        arguments = () if propensities is None else (propensities,)
        score = METRICS[metric].of_hits(hits, ks, weight, *arguments)
        gains, attainable = row_sums(metric, hits, ks[0], propensities)
        weight = np.ones(len(gains)) if weight is None else weight
        best = float(weight @ attainable)
        return float(score[0]), weight * gains / (best if best > 0 else 1.0)

    def _adds_up_rows(self) -> bool:
        """Return whether `_score_rows` knows what each row adds."""
        return not any(metric in OF_LABELS for metric in self._pairs())

    def _weighting(self, estimator: Any) -> Any:
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

    def _options(self) -> list[str]:
        options = []
        if self.propensities is not None:
            shape = np.shape(self.propensities)
            options.append(f"propensities=<array of shape {shape}>")
        if self.preset != "default":
            options.append(f"preset={self.preset!r}")
        return options

    def __sklearn_clone__(self) -> Any:
        # Nothing in a scorer is fitted, so that a search shares a long array of propensities.
        return copy.copy(self)

    # Metadata routing

    def set_score_request(self, *, sample_weight: bool | str | None = None) -> Any:
        """Ask for sample weights to be passed on when metadata routing is enabled.

        Parameters
        ----------
        sample_weight : bool, str or None, default=None
            True: wanted under this name; a string: wanted under that name; False: not wanted;
            None: an error when weights are passed.

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
        """Return what this scorer asks for, for scikit-learn's metadata routing.

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

    Give it to ``scoring=`` of ``cross_validate``, ``GridSearchCV`` and the like, with or without a
    Pipeline: it returns a dict, which scikit-learn takes for several metrics, so that a search
    needs ``refit="P@1"`` or another of its names.

    Parameters
    ----------
    ks : sequence of int, default=(1, 3, 5)
        The cut-offs.
    metrics : sequence of {"precision", "ndcg", "recall", "psp", "psndcg", "coverage", \
            "macro_f1"}, default=("precision", "ndcg", "psp")
        They are reported as "P@k", "nDCG@k", "R@k", "PSP@k", "PSnDCG@k", "Cov@k" and "MacroF1@k".
    propensities : array-like of shape (n_labels,), default=None
        For "psp" and "psndcg". None takes those of the rows on which the estimator was fitted
        (``label_counts_`` and ``n_samples_fit_`` of the last step of a Pipeline), so that nothing
        leaks from the test rows. To compare with published numbers, give those of the whole
        training set.
    preset : {"default", "wikipedia", "amazon"}, default="default"
        Constants of :func:`propensity` where `propensities` is None.

    Raises
    ------
    ValueError
        For an argument that is none of these.

    See Also
    --------
    get_scorer : One metric at one cut-off, which returns a float.
    sklearn_xc.model_selection.cross_validate : Takes a sparse indicator.

    Notes
    -----
    `y` is an indicator, or one class label per row as the estimator was fitted with. A class that
    was absent in training cannot be hit; see :func:`precision_at_k` and :func:`psp_at_k` for what
    it adds.

    With metadata routing enabled, ask for weights by ``set_score_request(sample_weight=True)``.

    Examples
    --------
    >>> from sklearn_xc.metrics import TopKScorer
    >>> TopKScorer(ks=(1, 5), metrics=("precision", "recall"))
    TopKScorer(ks=(1, 5), metrics=('precision', 'recall'))
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
        self._check_weighting()
        check_k(ks)
        known = isinstance(metrics, Sequence) and all(
            isinstance(metric, str) and metric in METRICS for metric in metrics
        )
        if isinstance(metrics, str) or not known or not metrics:
            raise ValueError(
                f"metrics: expected a sequence of names from {list(METRICS)}. Got {metrics!r}."
            )

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
        """Return the names of the metrics in results, such as "P@3", in their order."""
        return [f"{METRICS[metric][0]}@{k}" for metric, ks in self._pairs().items() for k in ks]

    def _pairs(self) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(self.metrics, check_k(self.ks))

    def __repr__(self) -> str:
        """Return the call that makes this scorer, a long array left out."""
        first = [f"ks={self.ks!r}", f"metrics={self.metrics!r}"]
        return f"TopKScorer({', '.join(first + self._options())})"


class AtKScorer(_RankingScorer):
    """Scorer of one metric at one cut-off, which returns a float; made by :func:`get_scorer`."""

    def __init__(
        self, metric: str, k: int, *, propensities: Any = None, preset: str = "default"
    ) -> None:
        self.metric = metric
        self.k = k
        self.propensities = propensities
        self.preset = preset
        self._check_weighting()

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


class ManyAtKScorer(_RankingScorer):
    """Several `AtKScorer` in one pass, as a dict; made where `scoring=` is many names.

    Parameters
    ----------
    scorers : dict of str to AtKScorer
        Without propensities of their own.
    """

    def __init__(self, scorers: Mapping[str, AtKScorer]) -> None:
        self.scorers = scorers
        self.propensities = None
        self.preset = "default"

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


def get_scorer(scoring: Any, *, propensities: Any = None, preset: str = "default") -> Any:
    """Return the scorer of a name such as "P@3", ready for ``scoring=``.

    Parameters
    ----------
    scoring : str or callable
        "P@k", "nDCG@k", "R@k", "PSP@k", "PSnDCG@k", "Cov@k" or "MacroF1@k" with a number for k, in
        any case; the long names of :class:`TopKScorer` work as well ("precision@3"). Other strings
        are looked up by :func:`sklearn.metrics.get_scorer`; a callable is returned as it is.
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
        If nobody knows the name.

    Examples
    --------
    >>> from sklearn_xc.metrics import get_scorer
    >>> get_scorer("psp@3", preset="amazon")
    get_scorer('PSP@3', preset='amazon')
    """
    if not isinstance(scoring, str):
        return scoring
    parts = re.fullmatch(r"([a-z]\w*)@([1-9][0-9]*)", scoring.lower())
    if parts is not None and parts[1] in BY_ANY_NAME:
        return AtKScorer(
            BY_ANY_NAME[parts[1]], int(parts[2]), propensities=propensities, preset=preset
        )
    import sklearn.metrics  # takes longer than all the rest of this package's imports together

    if scoring in sklearn.metrics.get_scorer_names():
        return sklearn.metrics.get_scorer(scoring)
    names = ", ".join(f'"{short}@k"' for short, *_ in METRICS.values())
    raise ValueError(
        f"scoring must be {names} with a number of at least 1 for k, or a name from "
        f"sklearn.metrics.get_scorer_names(). Got {scoring!r}."
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
    if fitted is not None and len(shape) == 2 and shape[1] not in (1, len(fitted.classes_)):
        raise ValueError(
            f"{scorer!r}: y has {shape[1]} label columns, the estimator was fitted with "
            f"{len(fitted.classes_)}."
        )
    if fitted is None and not sp.issparse(y) and (len(shape) < 2 or shape[1] == 1):
        raise ValueError(
            f"{scorer!r}: y holds class labels, but {type(estimator).__name__} has no classes_ to "
            "find them in."
        )
    if fitted is None:
        return None
    if len(shape) == 2 and shape[1] > 1:
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
