"""A stack asked for some labels: those of its shortlist keep their probabilities."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from sklearn_xc import OvALinearXC, StackingXC, topk
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.ensemble.stacking.pairs import among, gather

N_LABELS = 30


@pytest.fixture(scope="module", params=[1, 5])
def case(request):
    X, Y = make_xc_classification(
        n_samples=200, n_features=80, n_labels=N_LABELS, random_state=0, return_X_y=True
    )
    Y = (Y.toarray() != 0).astype(int)
    Y[:N_LABELS] |= np.eye(N_LABELS, dtype=int)
    members = [("ova", OvALinearXC()), ("one", OneVsRestClassifier(LogisticRegression()))]
    stack = StackingXC(members, n_candidates=request.param, cv=0.4, random_state=0)
    return stack.fit(X, Y), X[:60]


def listed(stack, X):
    """Return which labels a plain call makes candidates, (n, n_labels)."""
    found = np.zeros((X.shape[0], N_LABELS), bool)
    for member in stack.estimators_:
        np.put_along_axis(found, topk(member, X, stack.n_candidates)[0], True, axis=1)
    return found


def test_the_shortlist_keeps_its_scores(case):
    stack, X = case
    scores, own = stack.decision_function(X), listed(stack, X)
    allowed = np.random.default_rng(0).random(own.shape) < 0.5
    for arguments in ({"candidates": allowed}, {"exclude": ~allowed}):
        labels, found = stack.predict_topk(X, N_LABELS, **arguments)
        for i in range(len(labels)):
            for label, score in zip(labels[i], found[i], strict=True):
                if label >= 0 and own[i, label]:
                    assert score == pytest.approx(scores[i, label])


def test_all_candidates_have_probabilities(case):
    stack, X = case
    rng = np.random.default_rng(0)
    each = rng.random((60, N_LABELS)) < 0.3
    labels, found = stack.predict_topk(X, N_LABELS, candidates=each)
    np.testing.assert_array_equal((labels >= 0).sum(axis=1), each.sum(axis=1))
    assert (found[labels >= 0] > 0).all()
    some = rng.choice(N_LABELS, 4, replace=False)
    labels, found = stack.predict_topk(X, 4, candidates=some)
    same = np.tile(np.isin(np.arange(N_LABELS), some), (60, 1))
    of_each = stack.predict_topk(X, 4, candidates=same)
    np.testing.assert_array_equal(np.sort(labels, axis=1), np.sort([some] * 60, axis=1))
    np.testing.assert_array_equal(labels, of_each[0])
    np.testing.assert_allclose(found, of_each[1], rtol=1e-5)


def test_what_members_say_of_labels_that_they_do_not_name():
    """Of two members, depth 2: label 9 is named by none, label 5 by the first, in its shortlist."""
    plain = [
        (np.array([[5, 3]]), np.array([[2.0, 1.0]])),
        (np.array([[3, 7]]), np.array([[4.0, 3.0]])),
    ]
    asked = [
        (np.array([[5, 9]]), np.array([[2.0, 0.5]])),
        (np.array([[9, 5]]), np.array([[2.5, 1.5]])),
    ]
    shortlist = gather(plain, 1)
    found = among(plain, asked, shortlist, 2, depth=2)
    assert found.labels.tolist() == [5, 9]
    np.testing.assert_array_equal(found.scores, [[2.0, np.nan], [0.5, 2.5]])
    np.testing.assert_array_equal(found.ranks, [[1, np.nan], [4, 3]])
