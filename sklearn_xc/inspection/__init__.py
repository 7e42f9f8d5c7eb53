"""What a fitted classifier does: explanations, comparisons, and displays (extra ``plot``).

``compare_models`` (comparison/) puts two classifiers side by side in one report. ``similar_labels``
and ``similar_instances`` (similarity.py, by the vectors of _vectors.py) tell what is alike.

A display keeps its numbers as attributes, draws them with ``plot``, and draws a second model on the
axes of a first::

    LabelFrequencyDisplay          label_frequency.py         precision and recall, rare to frequent
    MetricByFrequencyDisplay       metric_by_frequency.py     one metric of several models
        _group_counts.py           what was predicted of each group of labels
    ReliabilityDisplay             reliability.py             do probabilities hold?
    MicroPrecisionRecallDisplay    micro_precision_recall.py  label sets over the threshold
        _ranked_pairs.py           the k best labels of each instance: scores, and which are true
    ConvergenceDisplay             convergence.py             how training went
    ParetoFrontDisplay             pareto_front.py            quality against cost
        _names_beside_points.py    names without overlaps
    _style.py                      colours, spines, one legend
"""

from sklearn_xc._explanation import Explanation
from sklearn_xc.inspection.comparison import ModelComparison, compare_models
from sklearn_xc.inspection.convergence import ConvergenceDisplay
from sklearn_xc.inspection.label_frequency import LabelFrequencyDisplay
from sklearn_xc.inspection.metric_by_frequency import MetricByFrequencyDisplay
from sklearn_xc.inspection.micro_precision_recall import MicroPrecisionRecallDisplay
from sklearn_xc.inspection.pareto_front import ParetoFrontDisplay
from sklearn_xc.inspection.reliability import ReliabilityDisplay
from sklearn_xc.inspection.similarity import similar_instances, similar_labels

__all__ = [
    "ConvergenceDisplay",
    "Explanation",
    "LabelFrequencyDisplay",
    "MetricByFrequencyDisplay",
    "MicroPrecisionRecallDisplay",
    "ModelComparison",
    "ParetoFrontDisplay",
    "ReliabilityDisplay",
    "compare_models",
    "similar_instances",
    "similar_labels",
]
