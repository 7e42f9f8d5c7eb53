"""Metrics on the k best labels of every instance, and scorers that carry them into searches.

Nothing here makes an array of n_samples x n_labels entries::

    Y_true, topk                    what is given: indicator or classes; positions or sparse scores
        |          check.py         the door: one error per way to get it wrong
        |          _classes.py      class labels to positions
        |          _csr_topk.py     sparse scores to positions, best first
        v
      Hits         hits.py          which of the k best are true; all metrics read this record
        |
        +-- _precision.py  _recall.py  _ndcg.py
        +-- _propensity_scored.py   with the weights of _propensity.py
        v
    gains.py                        nDCG of each instance, for choices by held-out instances

    TopKScorer     scorers.py       one top-k pass per fitted estimator, many numbers
"""

from sklearn_xc.metrics._ndcg import ndcg_at_k
from sklearn_xc.metrics._precision import precision_at_k
from sklearn_xc.metrics._propensity import propensity
from sklearn_xc.metrics._propensity_scored import psndcg_at_k, psp_at_k
from sklearn_xc.metrics._recall import recall_at_k
from sklearn_xc.metrics.scorers import TopKScorer, get_scorer

__all__ = [
    "TopKScorer",
    "get_scorer",
    "ndcg_at_k",
    "precision_at_k",
    "propensity",
    "psndcg_at_k",
    "psp_at_k",
    "recall_at_k",
]
