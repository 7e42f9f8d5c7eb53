"""From scores to label sets: from which score on a label is predicted.

tuner.py    ThresholdTuner: parameters, fit and answers
search.py   the thresholds that are best for held-out pairs
"""

from sklearn_xc.ensemble.thresholds.tuner import ThresholdTuner

__all__ = ["ThresholdTuner"]
