"""Fused scores of some labels: the shortlist is of labels that may be returned."""

import copy

import numpy as np
import pytest


@pytest.fixture(scope="module", params=["exact", "product"])
def case(request, make, make_documents):
    documents = make_documents()
    model = make(n_candidates=4, index=request.param, label_features=documents.Z)
    return model.fit(documents.X, documents.Y), documents.X[:50]


def fused(model, X):
    """Return the fused scores of all labels, from a copy that lists them all."""
    other = copy.copy(model).set_params(n_candidates=len(model.classes_))
    labels, scores = other.predict_topk(X, len(model.classes_))
    found = np.empty(scores.shape, scores.dtype)
    np.put_along_axis(found, labels, scores, axis=1)
    return found


def best(scores, k):
    order = np.lexsort((np.tile(np.arange(scores.shape[1]), (len(scores), 1)), -scores), axis=1)
    return order[:, :k], np.take_along_axis(scores, order[:, :k], axis=1)


def test_candidates_of_each_row_are_the_shortlist(case):
    model, X = case
    scores = fused(model, X)
    allowed = np.random.default_rng(0).random(scores.shape) < 0.6
    labels, found = model.predict_topk(X, 6, candidates=allowed)
    expected = best(np.where(allowed, scores, -np.inf), 6)
    np.testing.assert_array_equal(labels, expected[0])
    np.testing.assert_allclose(found, expected[1], rtol=1e-6)


def test_few_candidates_for_all_are_the_shortlist(case):
    model, X = case
    scores = fused(model, X)
    some = [2, 5, 11, 17]
    only = np.full_like(scores, -np.inf)
    only[:, some] = scores[:, some]
    labels, found = model.predict_topk(X, 3, candidates=some)
    expected = best(only, 3)
    np.testing.assert_array_equal(labels, expected[0])
    np.testing.assert_allclose(found, expected[1], rtol=1e-6)


def test_many_candidates_have_a_shortlist_of_their_own(case):
    model, X = case
    some = np.arange(0, len(model.classes_), 2)
    scores = fused(model, X)
    labels, found = model.predict_topk(X, 4, candidates=some)
    assert np.isin(labels, some).all()
    np.testing.assert_allclose(found, np.take_along_axis(scores, labels, axis=1), rtol=1e-6)
    classifiers = some[np.argsort(-model.embed(X) @ model.coef_[some].T, axis=1)[:, :4]]
    of_classifiers = np.take_along_axis(scores, classifiers, axis=1)
    assert (found[:, 0] >= of_classifiers.max(axis=1) * (1 - 1e-6)).all()


def test_what_is_excluded_takes_no_place_of_a_shortlist(case):
    model, X = case
    scores = fused(model, X)
    exclude = np.zeros(scores.shape, bool)
    np.put_along_axis(exclude, model.predict_topk(X, 4)[0], True, axis=1)
    labels, found = model.predict_topk(X, 4, exclude=exclude)
    assert not np.take_along_axis(exclude, labels, axis=1).any()
    np.testing.assert_allclose(found, np.take_along_axis(scores, labels, axis=1), rtol=1e-6)
    near = np.where(exclude, -2, model.embed(X) @ model.coef_.T).argsort(axis=1)[:, -4:]
    if model.index == "exact":  # the best classifiers that are not excluded are all listed
        of_near = np.take_along_axis(scores, near, axis=1).max(axis=1)
        assert (found[:, 0] >= of_near * (1 - 1e-6)).all()
