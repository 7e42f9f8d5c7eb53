"""Metrics on the k best labels of every instance, and scorers for searches.

Nothing here makes an array of n_samples x n_labels entries::

    Y_true, topk                    indicator or classes; positions or sparse scores
        |          check.py         checks of all arguments, class labels to positions
        v
      Hits         hits.py          which of the k best are true; all metrics at k read this record
        |
        +-- at_k.py                 precision, recall, nDCG, MRR, MAP, LRAP, hit rate, coverage,
        |                           macro-F1
        +-- propensity_scored.py    propensities, PSP, PSnDCG, and what an order is best for
        v
    gains.py                        nDCG of each instance, for choices on held-out instances
    by_name.py                      the metrics by name, and their row-wise terms
    bootstrap.py                    the difference of two rankings, and its interval
    frequency_groups.py             labels in groups of similar training frequency
    scorers.py                      one or many metrics from one top-k pass

    Y_true, Y_pred                  from predict
        +-- hierarchical.py         with all ancestors

    Y_true, Y_prob                  from predict_proba
        +-- calibration.py          calibration error
"""

from sklearn_xc.metrics.at_k import (
    average_precision_at_k,
    coverage_at_k,
    hit_rate_at_k,
    lrap_at_k,
    macro_f1_at_k,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
    reciprocal_rank_at_k,
)
from sklearn_xc.metrics.bootstrap import paired_bootstrap
from sklearn_xc.metrics.calibration import expected_calibration_error
from sklearn_xc.metrics.hierarchical import hierarchical_f1, hierarchical_precision_recall_f1
from sklearn_xc.metrics.propensity_scored import propensity, psndcg_at_k, psp_at_k
from sklearn_xc.metrics.scorers import TopKScorer, get_scorer

__all__ = [
    "TopKScorer",
    "average_precision_at_k",
    "coverage_at_k",
    "expected_calibration_error",
    "get_scorer",
    "hierarchical_f1",
    "hierarchical_precision_recall_f1",
    "hit_rate_at_k",
    "lrap_at_k",
    "macro_f1_at_k",
    "ndcg_at_k",
    "paired_bootstrap",
    "precision_at_k",
    "propensity",
    "psndcg_at_k",
    "psp_at_k",
    "recall_at_k",
    "reciprocal_rank_at_k",
]
