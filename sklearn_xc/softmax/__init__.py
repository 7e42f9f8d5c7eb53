"""Softmax classifiers whose training cost per step does not depend on the number of classes.

::

    SoftmaxUMax  ImplicitSoftmaxSGD    umax.py, implicit.py: the step
            |
    SoftmaxClassifier                  classifier.py: parameters and fit
            |-- _model.py              probabilities, scores, best classes
            |-- pairs.py               y as (instance, class) pairs; those held out
            |-- start.py               class means
            |-- calibration.py         probabilities fitted to held-out instances
            |-- training.py            learning rates, the search for one and a number of epochs
            |-- problem.py             what is trained: rows, pairs, penalties
            |-- sgd.py                 one epoch
            |-- sampling.py            the classes that its steps sample
            '-- state.py               the variables that it moves
"""

from sklearn_xc.softmax.implicit import ImplicitSoftmaxSGD
from sklearn_xc.softmax.umax import SoftmaxUMax

__all__ = ["ImplicitSoftmaxSGD", "SoftmaxUMax"]
