"""``fusion_weight="auto"``: the way to fuse is the best of those that are clearly better."""

import numpy as np
import pytest

from sklearn_xc.embedding._fusion import ScoreFusion
from sklearn_xc.embedding._fusion_choice import ALL, Judged, Way, _gains, choose_way
from sklearn_xc.metrics import ndcg_at_k, precision_at_k

N, M = 400, 12


def pairs_of(scores, is_own, seed=0):
    """Return pairs of N instances with M labels each, of scores (N, M, n_scores)."""
    rng = np.random.default_rng(seed)
    label = np.sort(np.array([rng.permutation(40)[:M] for _ in range(N)]), axis=1)
    return Judged(
        scores.reshape(N * M, -1), label.ravel(), is_own.ravel(), np.ones(N * M),
        np.repeat(np.arange(N), M),
    )  # fmt: skip


@pytest.fixture
def truth():
    rng = np.random.default_rng(1)
    return rng.random((N, M)) < 0.15


def noisy(truth, noise, seed):
    return truth + noise * np.random.default_rng(seed).standard_normal(truth.shape)


def test_gains_are_the_public_metrics(truth):
    pairs = pairs_of(noisy(truth, 0.5, 0)[..., None], truth)
    fused = np.round(pairs.scores[:, 0], 1)  # with ties, which go to the smaller label
    gains = _gains(pairs, fused)
    Y = np.zeros((N, 40), int)
    Y[pairs.of[pairs.is_own], pairs.label[pairs.is_own]] = 1
    order = np.argsort(-fused.reshape(N, M), axis=1, kind="stable")[:, :5]
    topk = np.take_along_axis(pairs.label.reshape(N, M), order, axis=1)
    expected = (precision_at_k(Y, topk, k=1) + ndcg_at_k(Y, topk, k=5)) / 2
    assert gains.mean() == pytest.approx(expected, abs=1e-12)


def test_one_score_that_knows_all_speaks_alone(truth):
    """The others are noise that the sum cannot get rid of, and a tree of leaves knows ties."""
    rng = np.random.default_rng(2)
    exact = 0.01 * rng.random(truth.shape) + 0.02 * truth * rng.random((N, 1))
    exact += np.where(truth.cumsum(axis=1) * truth == 1, 0.01, 0)
    scores = np.stack([noisy(0 * truth, 1, 3), exact, noisy(0 * truth, 1, 4)], axis=-1)
    assert choose_way(pairs_of(scores, truth), np.ones(N * M), 0) == Way(1.0, 1)


def test_more_of_the_sum_where_the_tree_is_misled(truth):
    """Offsets of each instance, which say nothing of ranks, mislead a tree."""
    shift = 20 * np.random.default_rng(5).standard_normal((N, 1, 1))
    scores = np.stack([noisy(truth, 0.7, seed) for seed in range(3)], axis=-1) + shift
    way = choose_way(pairs_of(scores, truth), np.ones(N * M), 0)
    assert way != Way(0.1)
    pairs = pairs_of(scores, truth)
    assert _gains(pairs, pairs.scores.sum(axis=1)).mean() > 0.7


def test_unseen_labels_are_rivals_but_no_lessons(truth, monkeypatch):
    frequencies = np.ones(N * M)
    frequencies[:: M // 2] = 0
    seen = []
    fit = ScoreFusion.fit

    def recorded(self, scores, counts, *others):
        seen.append(counts)
        return fit(self, scores, counts, *others)

    monkeypatch.setattr(ScoreFusion, "fit", recorded)
    choose_way(pairs_of(noisy(truth, 0.5, 0)[..., None], truth), frequencies, 0)
    assert [len(counts) for counts in seen] == [N * (M - 2) // 2] * 2
    assert all(counts.all() for counts in seen)


def test_nothing_speaks_alone_where_labels_are_unseen(truth):
    """Held-out instances do not have them, and would choose what does not know them."""
    scores = np.stack([noisy(0 * truth, 1, 3), truth.astype(float)], axis=-1)
    frequencies = np.ones(N * M)
    frequencies[::M] = 0
    assert choose_way(pairs_of(scores, truth), frequencies, 0).only is None


def test_the_first_way_stays_where_there_is_no_signal(truth):
    scores = np.random.default_rng(6).standard_normal((N, M, 2))
    assert choose_way(pairs_of(scores, truth), np.ones(N * M), 0) == Way(0.1)


def test_few_instances_are_not_asked(truth):
    pairs = pairs_of(noisy(truth, 0.1, 0)[..., None], truth)
    few = Judged(*(column[: 40 * M] for column in pairs))
    assert choose_way(few, np.ones(40 * M), 0) == Way(0.1)


@pytest.mark.parametrize("only", [ALL, 0, 2])
def test_a_score_alone(only, truth):
    rng = np.random.default_rng(0)
    scores, relevant = rng.random((200, 3)).astype(np.float32), rng.random(200) < 0.3
    fusion = ScoreFusion(only=only, random_state=0).fit(scores, np.ones(200), relevant)
    expected = scores.sum(axis=1) if only == ALL else scores[:, only]
    found = fusion(scores.reshape(20, 10, 3), np.ones((20, 10)))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.ravel(), expected)


def test_texts_of_ways():
    assert str(Way(0.1)) == "the tree, and 0.1 of the sum of all scores"
    assert str(Way(1.0, ALL)) == "the sum of all scores"
    assert str(Way(1.0, 2)) == "score 3 alone"


class TestOfAnEstimator:
    def test_a_number_is_taken(self, make, documents):
        X, Y, Z = documents
        for weight in (0.0, 0.1, 2.0):
            model = make(label_features=Z, validation_fraction=0.3, fusion_weight=weight)
            model.fit(X, Y)
            assert (model.fusion_.weight, model.fusion_.only) == (weight, None)

    def test_auto_is_one_of_the_ways(self, make, documents):
        X, Y, Z = documents
        model = make(label_features=Z, validation_fraction=0.5, fusion_weight="auto").fit(X, Y)
        assert model.fusion_.weight in (0.1, 0.3, 1.0)
        again = make(label_features=Z, validation_fraction=0.5, fusion_weight="auto", n_jobs=2)
        again.fit(X, Y)
        assert (again.fusion_.weight, again.fusion_.only) == (
            model.fusion_.weight, model.fusion_.only,
        )  # fmt: skip

    def test_the_mean_is_a_component(self, make, documents):
        """The cosine with the mean embedding of the instances that were trained on."""
        X, Y, Z = documents
        model = make(label_features=Z, validation_fraction=0.0).fit(X, Y)
        from sklearn.preprocessing import normalize

        means = normalize(np.asarray(Y.T @ model.embed(X)))
        labels, scores = model.predict_topk(X, 3, component="mean")
        seen = np.asarray(Y.sum(axis=0)).ravel() > 0
        expected = model.embed(X) @ means.T
        for i in range(0, X.shape[0], 7):
            for label, score in zip(labels[i], scores[i], strict=True):
                if seen[label] and model.embed(X)[i].any():
                    assert score == pytest.approx(expected[i, label], abs=1e-6)
