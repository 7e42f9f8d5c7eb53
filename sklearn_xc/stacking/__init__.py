"""Several estimators as one: what each ranks high, ordered by what all of them say.

stacking.py     StackingXC: parameters and fit
members.py      the estimators of a stack: checked, worked with side by side
steps.py        folds and the last fit, as callbacks are told of them
candidates.py   pairs of an instance and a label that some member ranks high; their features
training.py     a lesson of pairs, and what the learner makes of it
learner.py      the default learners, their mixture, and what follows from its probabilities
model.py        answers
"""

from sklearn_xc.stacking.stacking import StackingXC

__all__ = ["StackingXC"]
