"""From scores to probabilities of the best labels of each instance.

calibrator.py    TopKCalibrator: parameters, fit and answers
pair_map.py      maps from scores of pairs of an instance and a label to probabilities
"""

from sklearn_xc.ensemble.calibration.calibrator import TopKCalibrator

__all__ = ["TopKCalibrator"]
