"""Displays that show what a fitted classifier does; they need matplotlib (extra ``plot``)."""

from sklearn_xc.inspection.label_frequency import LabelFrequencyDisplay
from sklearn_xc.inspection.metric_by_frequency import MetricByFrequencyDisplay
from sklearn_xc.inspection.micro_precision_recall import MicroPrecisionRecallDisplay
from sklearn_xc.inspection.reliability import ReliabilityDisplay

__all__ = [
    "LabelFrequencyDisplay",
    "MetricByFrequencyDisplay",
    "MicroPrecisionRecallDisplay",
    "ReliabilityDisplay",
]
