"""Displays that show what a fitted classifier does; they need matplotlib (extra ``plot``)."""

from sklearn_xc.inspection.label_frequency import LabelFrequencyDisplay
from sklearn_xc.inspection.metric_by_frequency import MetricByFrequencyDisplay

__all__ = ["LabelFrequencyDisplay", "MetricByFrequencyDisplay"]
