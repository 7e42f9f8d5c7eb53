"""Displays that show what a fitted classifier does; they need matplotlib (extra ``plot``)."""

from sklearn_xc.inspection.label_frequency import LabelFrequencyDisplay

__all__ = ["LabelFrequencyDisplay"]
