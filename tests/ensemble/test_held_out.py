"""Answers of members to rows that they were not trained on."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from sklearn_xc import OvALinearXC
from sklearn_xc._input.checks import check_targets
from sklearn_xc._parallel.progress import Task
from sklearn_xc.ensemble.held_out import HeldOutFits, Job
from sklearn_xc.ensemble.members import Answers


class KnowsNames(ClassifierMixin, BaseEstimator):
    """Ranks labels by the columns of X, whether it has seen them or not."""

    def fit(self, X, y):
        self.classes_ = np.arange(y.shape[1])
        return self

    def predict_topk(self, X, k=5):
        labels = np.argsort(-X, axis=1)[:, :k]
        return labels, np.take_along_axis(X, labels, axis=1)


def test_answers_without_some_labels():
    answers = Answers(np.array([[3, 1, 0], [2, 3, -1]]), np.array([[9.0, 8, 7], [6, 5, -np.inf]]))
    labels, scores = answers.without(np.array([False, False, False, True]))
    np.testing.assert_array_equal(labels, [[1, 0, -1], [2, -1, -1]])
    np.testing.assert_array_equal(scores, [[8, 7, -np.inf], [6, -np.inf, -np.inf]])


@pytest.mark.parametrize(("n_unused", "is_answered"), [(0, False), (1, True)])
def test_a_label_of_held_out_rows_alone_is_no_answer_unless_labels_come_from_elsewhere(
    n_unused, is_answered
):
    Y = np.eye(4, 4 + n_unused, dtype=np.int8)[[0, 1, 2, 0, 1, 3]]
    X = Y + 0.1
    targets = check_targets(OvALinearXC(), Y, 6)
    fits = HeldOutFits(X, Y, {"it": {}}, 2, targets, "Stack", None)
    job = Job("it", KnowsNames(), np.arange(3), np.arange(3, 6), Task())
    labels, _ = fits._do(job).result
    assert (3 in labels[2]) == is_answered
    np.testing.assert_array_equal(labels[:2, 0], [0, 1])
