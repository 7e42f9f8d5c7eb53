"""Checked instances, targets and problems, for tests of the parts of a softmax fit."""

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_xc._input.checks import check_instances, check_targets
from sklearn_xc.softmax.problem import SoftmaxProblem


class Someone(BaseEstimator):
    """An estimator to name in messages."""


def targets_of(y):
    return check_targets(Someone(), y, y.shape[0])


def instances_of(X):
    return check_instances(Someone(), X, reset=True)


def problem_of(make_xy):
    """Return a problem without a ridge: 60 instances with each of their 11 labels."""
    X, Y = make_xy(n=60, n_labels=11)
    rows, classes = (c.astype(np.int32) for c in Y.tocoo().coords)
    return SoftmaxProblem(instances_of(X), rows, classes, np.ones(len(rows)), 11, 0.0)
