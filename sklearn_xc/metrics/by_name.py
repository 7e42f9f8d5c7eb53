"""The metrics at k by name, and their row-wise terms."""

import re
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc.metrics.at_k import (
    average_precision_of_rows,
    coverage_of_hits,
    hit_rate_of_rows,
    lrap_of_rows,
    macro_f1_of_hits,
    ndcg_of_rows,
    precision_of_rows,
    recall_of_rows,
    reciprocal_rank_of_rows,
)
from sklearn_xc.metrics.hits import Hits, mean_of, ratio_of
from sklearn_xc.metrics.propensity_scored import psndcg_of_rows, psp_of_rows


class Metric(NamedTuple):
    """A metric at k.

    Attributes
    ----------
    short : str
        Its name in results.
    of_hits : callable
        From hits, cut-offs, weights (and propensities) to one number for each cut-off.
    of_rows : callable or None
        The terms of each row, of a mean or of both sums of a ratio. None for metrics that count
        labels.
    """

    short: str
    of_hits: Any
    of_rows: Any


#: Means over rows.
PLAIN = {
    "precision": Metric("P", mean_of(precision_of_rows), precision_of_rows),
    "ndcg": Metric("nDCG", mean_of(ndcg_of_rows), ndcg_of_rows),
    "recall": Metric("R", mean_of(recall_of_rows), recall_of_rows),
    "reciprocal_rank": Metric("MRR", mean_of(reciprocal_rank_of_rows), reciprocal_rank_of_rows),
    "average_precision": Metric(
        "MAP", mean_of(average_precision_of_rows), average_precision_of_rows
    ),
    "lrap": Metric("LRAP", mean_of(lrap_of_rows), lrap_of_rows),
    "hit_rate": Metric("hit", mean_of(hit_rate_of_rows), hit_rate_of_rows),
}
#: Ratios of sums over rows, weighted by propensities.
WEIGHTED = {
    "psp": Metric("PSP", ratio_of(psp_of_rows), psp_of_rows),
    "psndcg": Metric("PSnDCG", ratio_of(psndcg_of_rows), psndcg_of_rows),
}
#: Metrics that are sums over rows.
SUMS = {**PLAIN, **WEIGHTED}
METRICS = {
    **SUMS,
    "coverage": Metric("Cov", coverage_of_hits, None),
    "macro_f1": Metric("MacroF1", macro_f1_of_hits, None),
}
BY_ANY_NAME = {
    name.lower(): metric for metric, (short, *_) in METRICS.items() for name in (metric, short)
}


def parse_metric(name: Any) -> tuple[str, int] | None:
    """Return the long name and the cut-off of a metric such as "P@3", None for anything else."""
    parts = re.fullmatch(r"([a-z]\w*)@([1-9][0-9]*)", name.lower() if isinstance(name, str) else "")
    if parts is None or parts[1] not in BY_ANY_NAME:
        return None
    return BY_ANY_NAME[parts[1]], int(parts[2])


def row_sums(
    metric: str, hits: Hits, k: int, propensities: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the terms of each row in the two sums whose ratio is the metric, each (n_samples,).

    `metric` is one of ``SUMS``; those of ``WEIGHTED`` need checked `propensities`.
    """
    if metric in WEIGHTED:
        gains, attainable = WEIGHTED[metric].of_rows(hits, (k,), propensities)
    else:
        gains = PLAIN[metric].of_rows(hits, (k,))
        attainable = np.ones_like(gains)
    return gains[:, 0], attainable[:, 0]
