"""Recall of an index that is known."""

import numpy as np
import pytest

from sklearn_xc.search import Candidates, search_recall


class EvenLabels:
    """Finds the smallest even labels, whatever is asked."""

    has_exact_scores = False

    def query(self, V, n_candidates):
        found = Candidates.empty(len(V), n_candidates, V.dtype)
        found.labels[:, :-1] = 2 * np.arange(n_candidates - 1)
        return found


@pytest.fixture
def ladder():
    """Return weights whose second column rates the labels 0, 1, 2, ... for query 0, best first."""
    W = np.zeros((20, 4), np.float32)
    W[:, 1] = -np.arange(20)
    return W, np.array([[1.0], [-1.0]], np.float32)


def test_recall_of_a_known_index(ladder):
    W, V = ladder
    # Of 0..3 there are 0 and 2, of 19..16 there is none below 10.
    assert search_recall(EvenLabels(), W, 1, 2, V, 4, 6) == 0.25
    # Of 0..3 there is 0.
    assert search_recall(EvenLabels(), W, 1, 2, V[:1], 4, 2) == 0.25
