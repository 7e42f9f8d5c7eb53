"""From scores to probabilities of the best labels of each instance.

calibrator.py    TopKCalibrator: parameters, fit and answers
pair_map.py      what a pair of an instance and a label is told by, and maps to probabilities
temperature.py   the softmax of scores, made flatter or steeper
"""

from sklearn_xc.calibration.calibrator import TopKCalibrator

__all__ = ["TopKCalibrator"]
