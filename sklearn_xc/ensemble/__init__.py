"""Classifiers around other classifiers: stacking, thresholds and calibration."""

from sklearn_xc.ensemble.auto import AutoXC
from sklearn_xc.ensemble.calibration import TopKCalibrator
from sklearn_xc.ensemble.stacking import StackingXC
from sklearn_xc.ensemble.thresholds import ThresholdTuner

__all__ = ["AutoXC", "StackingXC", "ThresholdTuner", "TopKCalibrator"]
