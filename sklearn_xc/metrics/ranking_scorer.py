"""What scorers share: one ranking of the labels of X, in which all metrics look for hits."""

import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRequest

from sklearn_xc._label_names import refuse_other_columns
from sklearn_xc._topk import topk
from sklearn_xc.metrics._classes import check_classes
from sklearn_xc.metrics._hierarchical import check_hierarchy
from sklearn_xc.metrics._propensity import check_preset, propensity
from sklearn_xc.metrics.by_name import METRICS, OF_HIERARCHY, WEIGHTED, row_sums
from sklearn_xc.metrics.check import (
    as_array,
    check_probabilities,
    check_propensities,
    check_sample_weight,
)
from sklearn_xc.metrics.hits import Hits, find_hits


class RankingScorer:
    """What the scorers share: the request for sample weights, and the one pass over X.

    Unlike an estimator's, their constructors check the arguments: later, within a search, an error
    would become a column of NaN.
    """

    propensities: Any = None
    preset: str = "default"
    hierarchy: Any = None

    def _check(self) -> None:
        """Check what some of the metrics need. For constructors to call at their end."""
        check_preset(self.preset)
        if self.propensities is not None:
            check_probabilities(self.propensities, None)
        needs = [metric for metric in self._pairs() if metric in OF_HIERARCHY]
        if needs and self.hierarchy is None:
            raise ValueError(
                f"hierarchy: {METRICS[needs[0]].short}@k needs a LabelHierarchy. Got None: pass "
                "hierarchy= to get_scorer or TopKScorer."
            )
        if self.hierarchy is not None:
            check_hierarchy(self.hierarchy)

    def _measure(
        self, pairs: dict[str, tuple[int, ...]], estimator: Any, X: Any, y: Any, sample_weight: Any
    ) -> dict[str, float]:
        """Return ``{"P@1": value, ...}`` for the cut-offs of each metric in `pairs`."""
        hits, weight = self._find_hits(pairs, estimator, X, y, sample_weight)
        propensities = hierarchy = None
        values: dict[str, float] = {}
        for metric, ks in pairs.items():
            short, of_hits, _ = METRICS[metric]
            if metric in WEIGHTED:
                if propensities is None:
                    propensities = check_propensities(self._weighting(estimator), hits.true)
                numbers = of_hits(hits, ks, weight, propensities)
            elif metric in OF_HIERARCHY:
                if hierarchy is None:
                    hierarchy = self._nodes(estimator)
                numbers = of_hits(hits, ks, weight, hierarchy)
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
                f"{self!r}: expected a metric that is a sum over rows. Got one of labels or of a "
                "hierarchy, to which a row adds nothing of its own."
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
        return all(METRICS[metric].of_rows is not None for metric in self._pairs())

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

    def _nodes(self, estimator: Any) -> Any:
        """Return the hierarchy, the labels of a fitted estimator first."""
        fitted = _fitted_part(estimator, "classes_")
        if fitted is None:
            return self.hierarchy
        return self.hierarchy.aligned(check_classes(fitted.classes_))

    def _options(self) -> list[str]:
        options = []
        if self.propensities is not None:
            shape = np.shape(self.propensities)
            options.append(f"propensities=<array of shape {shape}>")
        if self.preset != "default":
            options.append(f"preset={self.preset!r}")
        if self.hierarchy is not None:
            options.append(f"hierarchy={self.hierarchy!r}")
        return options

    def __sklearn_clone__(self) -> Any:
        # Nothing in a scorer is fitted, so that a search shares long arrays.
        return copy.copy(self)

    # Metadata routing

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


def _encoded(estimator: Any, y: Any) -> tuple[Any, np.ndarray | None]:
    """Return y in a form that metrics take, and the labels of each row where it was names.

    Names that the estimator does not know have no column, and count as missed.
    """
    named = _fitted_part(estimator, "_encode_targets")
    return (y, None) if named is None else named._encode_targets(y)


def _known_classes(scorer: RankingScorer, estimator: Any, y: Any) -> Any:
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
