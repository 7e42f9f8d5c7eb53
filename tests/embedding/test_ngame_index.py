"""The index of shortlists: exact by default, near it otherwise, built when it is needed."""

from contextlib import nullcontext

import numpy as np
import pytest

from sklearn_xc.exceptions import MemoryBudgetError, UnseenLabelWarning
from sklearn_xc.search import ExactIndex, SphericalIndex, label_index


@pytest.fixture
def built(monkeypatch):
    """Return a list of the indexes that were built."""
    kept, plain = [], label_index.LabelIndex

    def noted(*args):
        kept.append(plain(*args))
        return kept[-1]

    monkeypatch.setattr(label_index, "LabelIndex", noted)
    return kept


def as_bytes(answer):
    return [part.tobytes() for part in answer]


def test_the_default_builds_none(make, documents, built):
    X, Y, Z = documents
    model = make(label_features=Z).fit(X, Y)
    model.predict_topk(X)
    assert not built
    assert not hasattr(model, "_search_index")


@pytest.mark.parametrize(
    ("index", "known"),
    [("product", True), ("spherical", False), (SphericalIndex(3), True)],
    ids=str,
)
def test_answers_are_scored_alike(index, known, make, make_documents):
    """What is found has the score that it has among all labels, best first, and most is found."""
    X, Y, Z = make_documents(n=300, n_topics=10, rare=3)
    model = make(index=index, label_features=Z if known else None, n_candidates=12)
    with pytest.warns(UnseenLabelWarning) if not known else nullcontext():
        model.fit(X, Y)
    labels, scores = model.predict_topk(X, 5)
    every, all_scores = model.predict_topk(X, Y.shape[1])
    assert (labels >= 0).all()
    assert (np.diff(scores, axis=1) <= 0).all()
    assert (np.diff(np.sort(labels, axis=1), axis=1) > 0).all()
    assert np.isin(labels, model._unseen_labels).sum() == 0
    of_label = np.empty_like(all_scores)
    np.put_along_axis(of_label, every, all_scores, axis=1)
    np.testing.assert_allclose(np.take_along_axis(of_label, labels, axis=1), scores)
    assert (labels[:, 0] == every[:, 0]).mean() > 0.7


class TestWhenItIsBuilt:
    def test_once_and_again_after_changes(self, make, documents, built):
        X, Y, Z = documents
        model = make(index="spherical", label_features=Z).fit(X, Y)
        assert len(built) == 1  # the fusion asks for it; then classifiers are trained again
        built.clear()
        for _ in range(2):
            model.predict_topk(X)
        assert len(built) == 1
        model.predict(X)
        assert len(built) == 1
        model.add_labels(label_features=Z[:2])
        model.predict_topk(X)
        assert len(built) == 2
        assert len(built[-1].labels) == 22
        model.set_params(index="product").predict_topk(X)
        assert len(built) == 3
        model.set_params(index="exact").predict_topk(X)
        assert len(built) == 3

    def test_it_must_fit_into_memory(self, make, documents):
        X, Y, Z = documents
        model = make(index="spherical", label_features=Z, fusion="sum", validation_fraction=0.0)
        model.fit(X, Y.toarray())
        del model.__dict__["_search_index"]
        model.max_memory = 1000
        with pytest.raises(MemoryBudgetError, match="the index of the labels"):
            model.predict_topk(X[:1])


class Forgetful(ExactIndex):
    """An index that finds one label of those it is asked for."""

    def query(self, V, n_candidates):
        found = super().query(V, n_candidates)
        found.labels[:, 1:], found.scores[:, 1:], found.counts[:] = -1, -np.inf, 1
        return found


def test_where_an_index_finds_too_few_all_labels_are_searched(make, documents):
    X, Y, _ = documents
    a, b = (make(index=index, fusion="sum").fit(X, Y) for index in ("exact", Forgetful()))
    assert as_bytes(a.predict_topk(X, 5)) == as_bytes(b.predict_topk(X, 5))
    labels, scores = b.predict_topk(X, 1)
    assert (labels >= 0).all()
    assert np.isfinite(scores).all()
