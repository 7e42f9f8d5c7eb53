"""Labels without a training instance."""

import pickle

import numpy as np
import pytest

from sklearn_xc.exceptions import UnseenLabelWarning

UNSEEN = [1, 2, 6, 11, 12, 13]
WAYS = {
    "product": {"gradient": "decomp_mips"},
    "spherical": {"gradient": "mips"},
    "faiss": {"gradient": "mips", "index": "faiss"},
    "exact": {"gradient": "mips", "index": "exact"},
    "rounds": {"gradient": "decomp_mips", "n_rounds": 1},
}


@pytest.fixture
def data():
    """Return X, which is all positive, and Y: labels that never hold would score well."""
    rng = np.random.default_rng(0)
    X = rng.random((90, 8))
    Y = np.zeros((90, 14), int)
    seen = np.setdiff1d(np.arange(14), UNSEEN)
    Y[np.arange(90), rng.choice(seen, 90)] = 1
    Y[np.arange(90), rng.choice(seen, 90)] = 1
    return X, Y


@pytest.mark.parametrize("hidden_dim", [None, 4])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("exact", [True, False])
def test_they_come_last(exact, way, hidden_dim, make, data):
    if way == "faiss":
        pytest.importorskip("faiss")
    X, Y = data
    model = make(hidden_dim=hidden_dim, n_candidates=1, sampled_epochs=0.2, **WAYS[way])
    with pytest.warns(UnseenLabelWarning):
        model.fit(X, Y)
    coef = model.coef_.copy()
    coef[UNSEEN] = 100 * np.sign(model.embed(X).sum(axis=0))
    assert ((model.embed(X) @ coef[1]) > 10).mean() > 0.4
    model.coef_ = coef
    for k in (1, 5, 8, 10, 14, 17):
        labels, scores = model.predict_topk(X, k, exact=exact)
        assert not np.isin(labels[:, :8], UNSEEN).any()
        expected = np.concatenate([UNSEEN, [-1] * 3])[: max(0, k - 8)]
        np.testing.assert_array_equal(labels[:, 8:], np.tile(expected, (90, 1)))
        np.testing.assert_array_equal(
            scores[:, 8:14], np.tile(scores[:, 7:8] - 1, (1, len(UNSEEN)))[:, : max(0, k - 8)]
        )
        assert (scores[:, 14:] == -np.inf).all()
        assert (np.diff(np.sort(labels[:, :8])) > 0).all()
        if k == 8:
            inner = np.take_along_axis(model.embed(X) @ coef.T + model.intercept_, labels, axis=1)
            np.testing.assert_allclose(scores, inner, atol=1e-12)


@pytest.mark.parametrize("seen", [0, 1])
def test_two_classes_of_which_one_is_there(seen, make, data):
    X, _ = data
    y = np.full(90, ["no", "yes"][seen])
    model = make(hidden_dim=None).partial_fit(X, y, ["no", "yes"])
    for coef in (model.coef_, -model.coef_):
        model.coef_ = coef
        assert (model.predict(X) == y).all()
        assert (model.decision_function(X) == (1 if seen else -1)).all()
        labels, scores = model.predict_topk(X, 2)
        np.testing.assert_array_equal(labels, [[seen, 1 - seen]] * 90)
        np.testing.assert_array_equal(scores[:, 1], scores[:, 0] - 1)


def test_a_label_that_comes_later_is_one_of_the_others(make, data):
    X, Y = data
    model = make(hidden_dim=None).partial_fit(X, Y)
    assert not np.isin(model.predict_topk(X, 8)[0], UNSEEN).any()
    model.predict_topk(X, 3, exact=False)
    later = Y.copy()
    later[:, 6] = 1
    for _ in range(5):
        model.partial_fit(X, later)
    for exact in (True, False):
        assert (model.predict_topk(X, 3, exact=exact)[0] == 6).any(axis=1).mean() > 0.9
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_topk(X, 14)[0], model.predict_topk(X, 14)[0])
    np.testing.assert_array_equal(
        np.sort(model.predict_topk(X, 14)[0][:, 9:]), [[1, 2, 11, 12, 13]] * 90
    )
