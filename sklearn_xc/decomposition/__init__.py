"""Scores over many labels, trained on the labels that matter for each instance.

::

    DecompMIPSClassifier          decomp_mips.py: parameters, fit, partial_fit
      |-- _model.py               what a fitted model answers
      '-- _trainable.py           the way of the data through a fit:
            |-- _training_set.py    equal instances merged, in an order of their content
            |-- _settings.py        the parameters, with names resolved
            |-- search.py           rate and epochs, by instances that have no part in the trials
            |-- start.py            fresh weights, or those of an earlier call: a course.py
            |-- fitting.py          from a course down to steps, and back up to weights
            |     |-- training.py     an epoch
            |     '-- _guide.py       the gradient of the next step, and what it searches
            |-- _metric.py          scores that are distances: where proxies start
            |-- _passes.py          distinct instances of all calls, counted: what an epoch is
            |-- _intercept.py       where intercepts start; what answers without features
            |-- _finite.py          numbers that are not finite
            '-- _threshold.py       from which score on a label is predicted

    solvers/batch_sgd.py          one mini-batch
    gradients/                    exact, sampled, searched, coupled by messages
    mips/                         the searches
"""

from sklearn_xc.decomposition.decomp_mips import DecompMIPSClassifier

__all__ = ["DecompMIPSClassifier"]
