"""Answers among some labels only: the best of those, by the scores that they have among all."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from registry import ENTRIES, VARIANTS, having, of_variant
from small_data import awkward, easy, made, rows_of_labels

from sklearn_xc._input.checks import check_targets
from sklearn_xc._topk import padded
from sklearn_xc.base import XCClassifier
from sklearn_xc.exceptions import UnseenLabelWarning

#: 5 labels of ``awkward`` data (0 and 2 tie), or 8 of which three have no instance.
N_LABELS = 8
UNSEEN = [0, 3, 6]


def wide():
    """Return ``awkward`` X, and its labels among 8 columns, three of them empty."""
    X, Y = awkward()
    known = np.delete(np.arange(N_LABELS), UNSEEN)
    Y_wide = sp.lil_array((60, N_LABELS))
    Y_wide[:, known] = Y.toarray()
    return X, Y_wide.tocsr()


def fit(name, variant="", sparse=False):
    X, Y = wide()
    further = {}
    if "features" in variant:  # two of the labels have neither instances nor features
        Z = rows_of_labels(N_LABELS).tolil()
        Z[UNSEEN[1:]] = 0
        further = {"label_features": Z.tocsr()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenLabelWarning)
        return of_variant(name, variant, **further).fit(X, Y if sparse else Y.toarray())


#: Entries, and variants whose answers take another way through the code.
MODELS = [(name, "") for name in ENTRIES] + [
    ("OvALinearXC", "no intercept"),
    ("NGAMEEmbeddingXC", "label features"),
    ("NGAMEEmbeddingXC", "in_batch, features"),
    ("StackingXC", "own learner"),
]
MODELS += [pair for pair in VARIANTS if pair == ("NGAMEEmbeddingXC transformer", "label features")]


@pytest.fixture(scope="module", params=MODELS, ids=lambda pair: "-".join(filter(None, pair)))
def model(request):
    return fit(*request.param)


@pytest.fixture(scope="module", params=ENTRIES)
def name(request):
    return request.param


def best_of(scores, allowed, unseen, k):
    """Return what ``predict_topk`` must, from dense scores and a mask, label by label."""
    labels, best = np.full((len(scores), k), -1), np.full((len(scores), k), -np.inf)
    for i, row in enumerate(scores):
        known = [label for label in np.flatnonzero(allowed[i]) if label not in unseen]
        known.sort(key=lambda label: (-row[label], label))
        others = [label for label in np.flatnonzero(allowed[i]) if label in unseen]
        lowest = row[known[-1]] - 1 if known else -np.inf
        found = [(label, row[label]) for label in known] + [(label, lowest) for label in others]
        for place, (label, score) in enumerate(found[:k]):
            labels[i, place], best[i, place] = label, score
    return labels, best


def assert_found(found, expected, dtype=None):
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-6, atol=1e-9)
    assert found[0].dtype == np.int64


def scores_of(model, X):
    """Return the scores of all labels, from the model's own ranking of all of them."""
    labels, scores = model.predict_topk(X, N_LABELS)
    dense = np.empty(scores.shape, scores.dtype)
    np.put_along_axis(dense, labels, scores, axis=1)
    return dense


def test_for_all_instances(model):
    X = wide()[0]
    scores, unseen = scores_of(model, X), model._unseen_labels
    everything = list(range(N_LABELS))
    for some, k in (([4, 1, 2], 2), ([7, 0, 3], 10), ([0, 6], 3), (everything, 10), ([], 3)):
        allowed = np.isin(np.arange(N_LABELS), some)
        expected = best_of(scores, np.tile(allowed, (60, 1)), unseen, k)
        assert_found(model.predict_topk(X, k, candidates=some), expected)
        others = np.flatnonzero(~allowed)
        assert_found(model.predict_topk(X, k, exclude=others), expected)


@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_for_each_instance(model, data):
    X = wide()[0]
    seed = data.draw(st.integers(0, 2**16))
    density = data.draw(st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]))
    k = data.draw(st.integers(1, N_LABELS + 2))
    allowed = np.random.default_rng(seed).random((60, N_LABELS)) < density
    expected = best_of(scores_of(model, X), allowed, model._unseen_labels, k)
    make = data.draw(st.sampled_from([np.asarray, sp.csr_array, sp.csc_matrix, sp.coo_array]))
    values = np.random.default_rng(seed + 1).normal(size=allowed.shape)
    assert_found(model.predict_topk(X, k, candidates=make(allowed * values)), expected)
    assert_found(model.predict_topk(X, k, exclude=make(~allowed)), expected)


def test_long_answers_without_a_few(model, monkeypatch):
    """Candidates that are nearly all labels are what is left of a longer answer."""
    X = wide()[0]
    for share in (0.0, 1.0):
        monkeypatch.setattr("sklearn_xc._labels.best_allowed._SHARE_LEFT_OUT", share)
        scores = scores_of(model, X)
        allowed = np.tile(np.arange(N_LABELS) != 4, (60, 1))
        expected = best_of(scores, allowed, model._unseen_labels, 3)
        assert_found(model.predict_topk(X, 3, exclude=[4]), expected)


def test_pieces_change_nothing(name, monkeypatch):
    model, X = fit(name), wide()[0]
    allowed = np.random.default_rng(0).random((60, N_LABELS)) < 0.5
    asked = [{"candidates": [1, 2, 5]}, {"candidates": allowed}, {"exclude": allowed}]
    whole = [model.predict_topk(X, 3, **one) for one in asked]
    monkeypatch.setattr("sklearn_xc._labels.best_allowed._CHUNK_SCORES", 7)
    monkeypatch.setattr("sklearn_xc._labels.best_allowed._MOST_DROPPED", 1)
    monkeypatch.setattr("sklearn_xc.ensemble.stacking.stacking._CHUNK_CANDIDATES", 20)
    for one, expected in zip(asked, whole, strict=True):
        assert_found(model.predict_topk(X, 3, **one), expected)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes_by_name(name, n_classes):
    X, places = easy(n_classes)
    names = np.array(["a", "b", "c", "d"])[:n_classes]
    model = of_variant(name, "").fit(X, names[places])
    labels, scores = model.predict_topk(X, n_classes)
    kept = labels != 1
    expected = labels[kept].reshape(60, -1), scores[kept].reshape(60, -1)
    assert_found(model.predict_topk(X, n_classes - 1, candidates=np.delete(names, 1)), expected)
    assert_found(model.predict_topk(X, n_classes - 1, exclude=["b", "b"]), expected)
    each = np.tile(np.arange(n_classes) == 1, (60, 1))
    assert_found(model.predict_topk(X, n_classes - 1, exclude=each), expected)
    assert_found(model.predict_topk(X, n_classes - 1, candidates=~each), expected)
    assert (model.predict_topk(X, 2, candidates=each)[0] == [1, -1]).all()


def test_other_ways_to_score():
    model, X = fit("DecompMIPSClassifier"), wide()[0]
    allowed = np.random.default_rng(0).random((60, N_LABELS)) < 0.4
    for way in ({"exact": False}, {"exact": True}):
        labels, found = model.predict_topk(X, N_LABELS, **way)
        scores = np.empty(found.shape, found.dtype)
        np.put_along_axis(scores, labels, found, axis=1)
        expected = best_of(scores, allowed, model._unseen_labels, 3)
        assert_found(model.predict_topk(X, 3, candidates=allowed, **way), expected)
        assert_found(model.predict_topk(X, 3, exclude=~allowed, **way), expected)
        some = np.tile(np.isin(np.arange(N_LABELS), [1, 2, 4]), (60, 1))
        expected = best_of(scores, some, model._unseen_labels, 3)
        assert_found(model.predict_topk(X, 3, candidates=[4, 2, 1], **way), expected)


@pytest.mark.parametrize("name", having("predict_proba_topk"))
def test_probabilities_are_those_among_all(name):
    model, X = fit(name), wide()[0]
    all_labels, all_chances = model.predict_proba_topk(X, N_LABELS)
    chances = np.empty(all_chances.shape)
    np.put_along_axis(chances, all_labels, all_chances, axis=1)
    allowed = np.random.default_rng(0).random((60, N_LABELS)) < 0.4
    for arguments in ({"candidates": allowed}, {"exclude": ~allowed}):
        labels, found = model.predict_proba_topk(X, 3, **arguments)
        np.testing.assert_array_equal(labels, model.predict_topk(X, 3, **arguments)[0])
        expected = np.where(labels < 0, 0, np.take_along_axis(chances, labels, axis=1))
        np.testing.assert_allclose(found, expected)


def test_bad_arguments(name):
    X, Y = made(5, 0)
    model = of_variant(name, "").fit(X, Y)
    who = ENTRIES[name].estimator.__name__
    for arguments, match in (
        ({"candidates": [1], "exclude": [2]}, "candidates and exclude must not be given together"),
        ({"candidates": [1, 7, "x"]}, r"candidates must be members of classes_.* Got 7, 'x'\."),
        ({"exclude": [True, False]}, r"exclude must be members of classes_.* Got True, False\."),
        ({"candidates": np.ones((60, 4))}, r"of shape \(60, 5\).* Got shape \(60, 4\)"),
        ({"exclude": sp.csr_array((59, 5))}, r"of shape \(60, 5\).* Got shape \(59, 5\)"),
        ({"candidates": [[1], [2]]}, r"exclude|candidates for each instance must be an indicator"),
        ({"exclude": np.full((60, 5), np.nan)}, "exclude must be an indicator without NaN"),
    ):
        with pytest.raises(ValueError, match=rf"^{who}: .*{match}"):
            model.predict_topk(X, 3, **arguments)
    for wrong in ("soup", 3, {"a": 1}):
        with pytest.raises(TypeError, match=rf"^{who}: candidates must be a list of members"):
            model.predict_topk(X, 3, candidates=wrong)


class OfScores(XCClassifier):
    """Defines what a subclass must, and no more: its X are the scores of the labels."""

    top_k = 100

    def fit(self, X, y):
        targets = check_targets(self, y, X.shape[0])
        self._keep_targets(targets)
        self._count_instances(targets, np.ones(X.shape[0]))
        return self

    def _all_scores(self, X):
        return np.asarray(X, np.float64)

    def _topk_scores(self, X, k):
        scores = self._all_scores(X)
        order = np.argsort(
            np.isin(np.arange(N_LABELS), self._unseen_labels) - scores * 1e-3, axis=1
        )
        return padded(order[:, :k], np.take_along_axis(scores, order, axis=1)[:, :k], k)


@pytest.mark.parametrize("room", [1, 2**22])
def test_a_class_that_only_scores(room, monkeypatch):
    monkeypatch.setattr("sklearn_xc._labels.best_allowed._CHUNK_SCORES", room)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, N_LABELS))
    model = OfScores().fit(X, wide()[1])
    allowed = rng.random((60, N_LABELS)) < rng.choice([0.0, 0.3, 0.9], 60)[:, None]
    expected = best_of(X, allowed, UNSEEN, 4)
    assert_found(model.predict_topk(X, 4, candidates=allowed), expected)
    assert_found(model.predict_topk(X, 4, exclude=~allowed), expected)
    for some in ([4, 1, 3], [0], [1, 2, 4, 5, 6, 7]):
        same = np.tile(np.isin(np.arange(N_LABELS), some), (60, 1))
        expected = best_of(X, same, UNSEEN, 4)
        assert_found(model.predict_topk(X, 4, candidates=some), expected)
        others = np.setdiff1d(np.arange(N_LABELS), some)
        assert_found(model.predict_topk(X, 4, exclude=others), expected)
