"""What a fitted classifier does: explanations, and displays (extra ``plot``, for matplotlib)."""

from sklearn_xc._explanation import Explanation
from sklearn_xc.inspection.label_frequency import LabelFrequencyDisplay

__all__ = ["Explanation", "LabelFrequencyDisplay"]
