"""The metrics at k by their names: from a record of hits to numbers, and row by row."""

from typing import Any, NamedTuple

import numpy as np

from sklearn_xc.metrics._coverage import coverage_of_hits
from sklearn_xc.metrics._hierarchical_at_k import (
    hierarchical_f1_of_hits,
    hierarchical_precision_of_hits,
    hierarchical_recall_of_hits,
)
from sklearn_xc.metrics._macro import macro_f1_of_hits
from sklearn_xc.metrics._ndcg import ndcg_of_hits, ndcg_of_rows
from sklearn_xc.metrics._precision import precision_of_hits, precision_of_rows
from sklearn_xc.metrics._propensity_scored import (
    psndcg_of_hits,
    psndcg_of_rows,
    psp_of_hits,
    psp_of_rows,
)
from sklearn_xc.metrics._recall import recall_of_hits, recall_of_rows
from sklearn_xc.metrics.hits import Hits


class Metric(NamedTuple):
    """A metric at k.

    Attributes
    ----------
    short : str
        Its name in results.
    of_hits : callable
        From hits, cut-offs, weights (and propensities, or a hierarchy) to one number for each
        cut-off.
    of_rows : callable or None
        What each row adds: a term of a mean, or a term of both sums of a ratio. None where labels
        are counted, so that a row adds nothing of its own, and where both sums depend on the
        ranking.
    """

    short: str
    of_hits: Any
    of_rows: Any


#: Means over rows.
PLAIN = {
    "precision": Metric("P", precision_of_hits, precision_of_rows),
    "ndcg": Metric("nDCG", ndcg_of_hits, ndcg_of_rows),
    "recall": Metric("R", recall_of_hits, recall_of_rows),
}
#: Ratios of sums over rows, weighted by propensities.
WEIGHTED = {
    "psp": Metric("PSP", psp_of_hits, psp_of_rows),
    "psndcg": Metric("PSnDCG", psndcg_of_hits, psndcg_of_rows),
}
#: Over labels.
OF_LABELS = {
    "coverage": Metric("Cov", coverage_of_hits, None),
    "macro_f1": Metric("MacroF1", macro_f1_of_hits, None),
}
#: Over all nodes that a hierarchy has above labels.
OF_HIERARCHY = {
    "hierarchical_precision": Metric("hP", hierarchical_precision_of_hits, None),
    "hierarchical_recall": Metric("hR", hierarchical_recall_of_hits, None),
    "hierarchical_f1": Metric("hF1", hierarchical_f1_of_hits, None),
}
METRICS = {**PLAIN, **WEIGHTED, **OF_LABELS, **OF_HIERARCHY}
BY_ANY_NAME = {
    name.lower(): metric for metric, (short, *_) in METRICS.items() for name in (metric, short)
}


def row_sums(
    metric: str, hits: Hits, k: int, propensities: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return what each row adds to the two sums whose ratio a metric is, each (n_samples,).

    Parameters
    ----------
    metric : str
        One that has `of_rows`.
    hits : Hits
    k : int
    propensities : ndarray of shape (n_labels,) or None
        Checked; for those of ``WEIGHTED``.
    """
    if metric in WEIGHTED:
        gains, attainable = WEIGHTED[metric].of_rows(hits, (k,), propensities)
    else:
        gains = PLAIN[metric].of_rows(hits, (k,))
        attainable = np.ones_like(gains)
    return gains[:, 0], attainable[:, 0]
