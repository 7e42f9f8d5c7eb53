"""Reports on one fitted model, comparisons of two, and displays (extra ``plot``).

A display keeps its numbers as attributes, draws them with ``plot``, and draws a second model on the
axes of the first::

    MetricByFrequencyDisplay       by_frequency.py       one metric, rare to frequent labels
    ReliabilityDisplay             reliability.py        predicted probability and observed share
    compare_models                 comparison.py         metrics, groups and labels of two models
    report                         report.py             one model: HTML, and a model card
    _style.py                      colours, markers, axes, legend, and the form of y
"""

from sklearn_xc.inspection.by_frequency import MetricByFrequencyDisplay
from sklearn_xc.inspection.comparison import compare_models
from sklearn_xc.inspection.reliability import ReliabilityDisplay
from sklearn_xc.inspection.report import report

__all__ = [
    "MetricByFrequencyDisplay",
    "ReliabilityDisplay",
    "compare_models",
    "report",
]
