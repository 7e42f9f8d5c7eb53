"""Several estimators as one, which re-ranks the labels that each of them ranks high.

stacking.py     StackingXC: parameters and fit
candidates.py   pairs of an instance and a label that some member ranks high; their features
training.py     pairs of held-out rows, and the learner that is trained on them
learner.py      the default learners, their mixture, and the threshold of its probabilities
model.py        answers
"""

from sklearn_xc.ensemble.stacking.stacking import StackingXC

__all__ = ["StackingXC"]
