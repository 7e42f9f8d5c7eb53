"""Several estimators as one, which re-ranks the labels that each of them ranks high.

stacking.py     StackingXC: parameters, fit and answers
pairs.py        pairs of an instance and a label that some member ranks high; training on them
learner.py      a logistic model, trees, their mixture, and the threshold of its probabilities
"""

from sklearn_xc.ensemble.stacking.stacking import StackingXC

__all__ = ["StackingXC"]
