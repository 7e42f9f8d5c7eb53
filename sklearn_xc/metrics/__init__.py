"""Metrics on the k best labels of every instance, and scorers that carry them into searches.

Nothing here makes an array of n_samples x n_labels entries::

    Y_true, topk                    what is given: indicator or classes; positions or sparse scores
        |          check.py         the door: one error per way to get it wrong
        |          _classes.py      class labels to positions
        |          _csr_topk.py     sparse scores to positions, best first
        v
      Hits         hits.py          which of the k best are true; all metrics at k read this record
        |
        +-- _precision.py  _recall.py  _ndcg.py
        +-- _propensity_scored.py   with the weights of _propensity.py
        +-- _coverage.py  _macro.py over labels, counted by _label_counts.py
        +-- _hierarchical_at_k.py   over labels and all that is above them
        v
    gains.py                        nDCG of each instance, for choices by held-out instances
    by_name.py                      "precision" to functions of the hits, and row by row

    TopKScorer     scorers.py       many numbers, by name
        |          ranking_scorer.py    from one top-k pass per fitted estimator
    _paired_bootstrap.py            the difference of two rankings, and its interval
        resampling.py               sums over rows, drawn again

    Y_true, Y_pred                  what predict gives
        +-- _f1.py                  micro-F1, macro-F1, F1 of instances
        +-- _hierarchical.py        with all that is above both

    Y_true, Y_prob                  what predict_proba gives
        |    _pair_probabilities.py probabilities of pairs beside the truth
        +-- _calibration.py         Brier score, calibration error
        +-- _calibration_by_frequency.py    both for rare and for frequent labels
"""

from sklearn_xc.metrics._calibration import brier_score, expected_calibration_error
from sklearn_xc.metrics._calibration_by_frequency import calibration_by_frequency
from sklearn_xc.metrics._coverage import coverage_at_k
from sklearn_xc.metrics._f1 import instance_f1, macro_f1, micro_f1
from sklearn_xc.metrics._hierarchical import (
    hierarchical_f1,
    hierarchical_precision,
    hierarchical_recall,
)
from sklearn_xc.metrics._hierarchical_at_k import (
    hierarchical_f1_at_k,
    hierarchical_precision_at_k,
    hierarchical_recall_at_k,
)
from sklearn_xc.metrics._macro import macro_f1_at_k, macro_precision_at_k, macro_recall_at_k
from sklearn_xc.metrics._ndcg import ndcg_at_k
from sklearn_xc.metrics._paired_bootstrap import paired_bootstrap
from sklearn_xc.metrics._precision import precision_at_k
from sklearn_xc.metrics._propensity import propensity
from sklearn_xc.metrics._propensity_scored import psndcg_at_k, psp_at_k
from sklearn_xc.metrics._recall import recall_at_k
from sklearn_xc.metrics.scorers import TopKScorer, get_scorer

__all__ = [
    "TopKScorer",
    "brier_score",
    "calibration_by_frequency",
    "coverage_at_k",
    "expected_calibration_error",
    "get_scorer",
    "hierarchical_f1",
    "hierarchical_f1_at_k",
    "hierarchical_precision",
    "hierarchical_precision_at_k",
    "hierarchical_recall",
    "hierarchical_recall_at_k",
    "instance_f1",
    "macro_f1",
    "macro_f1_at_k",
    "macro_precision_at_k",
    "macro_recall_at_k",
    "micro_f1",
    "ndcg_at_k",
    "paired_bootstrap",
    "precision_at_k",
    "propensity",
    "psndcg_at_k",
    "psp_at_k",
    "recall_at_k",
]
