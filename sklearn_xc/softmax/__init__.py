"""Softmax classifiers whose training cost per step does not depend on the number of classes.

::

    SoftmaxUMax  ImplicitSoftmaxSGD    umax.py, implicit.py: what is each one's own
            |
    SoftmaxClassifier                  classifier.py: fit, partial_fit, fitted state
            |-- _parameters.py         common parameters and their documentation
            |-- _model.py              probabilities, scores, best classes
            |-- _inputs.py             weights and ids of instances checked, some held out
            |-- _memory.py             what a fit holds at its peak
            |-- pairs.py               y as (instance, class) pairs, and their u
            |-- start.py               class means
            |-- _epochs.py             the learning rate, a fit's epochs or one pass, warnings
            |     |-- search.py        learning_rate="auto"
            |     |-- judge.py         what held-out instances say
            |     |-- training.py      epochs: averaging, early stopping, the report
            |-- confidence.py          from scores to probabilities: how sure of the best class
            |
    solvers/softmax_sgd.py             one epoch
"""

from sklearn_xc.softmax.implicit import ImplicitSoftmaxSGD
from sklearn_xc.softmax.umax import SoftmaxUMax

__all__ = ["ImplicitSoftmaxSGD", "SoftmaxUMax"]
