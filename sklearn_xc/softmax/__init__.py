"""Softmax classifiers whose training cost per step does not depend on the number of classes.

::

    SoftmaxUMax  ImplicitSoftmaxSGD          umax.py, implicit.py: parameters and documentation
            |
    SoftmaxClassifier                        _classifier.py: fit, partial_fit, probabilities
            |-- pairs.py                     y as (instance, class) pairs, and their u
            |-- training.py                  epochs: rates, averaging, early stopping
            |-- search.py                    learning_rate="auto"
            |
    solvers/softmax_sgd.py                   one epoch
"""

from sklearn_xc.softmax.implicit import ImplicitSoftmaxSGD
from sklearn_xc.softmax.umax import SoftmaxUMax

__all__ = ["ImplicitSoftmaxSGD", "SoftmaxUMax"]
