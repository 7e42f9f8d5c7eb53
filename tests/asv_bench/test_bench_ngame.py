"""The NGAME experiment, at a small size."""

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.preprocessing import normalize

from asv_bench.common.report import Report
from asv_bench.embedding import batches as ngame_batches
from asv_bench.embedding import curves as ngame_curves
from asv_bench.embedding import samplers as ngame
from asv_bench.embedding import theory
from asv_bench.embedding.label_texts import LabelledSet
from sklearn_xc import NGAMEEmbeddingXC
from sklearn_xc.embedding._training import SiameseTraining
from sklearn_xc.samplers import SAMPLERS
from sklearn_xc.samplers._batches import Clusters
from sklearn_xc.samplers.protocol import Positives

N_LABELS = 24
SMALL = {"batch_size": 32, "dim": 16, "rate": 0.02}


@pytest.fixture(scope="module")
def labelled():
    """Return 240 + 60 instances near the texts of 24 labels, of which the last has no training."""
    rng = np.random.default_rng(0)
    Z = normalize(np.where(rng.random((N_LABELS, 40)) < 0.2, rng.random((N_LABELS, 40)), 0))
    y = np.concatenate([rng.integers(0, N_LABELS - 1, 240), rng.integers(0, N_LABELS, 60)])
    y[-3:] = N_LABELS - 1
    noise = np.where(rng.random((300, 40)) < 0.05, rng.random((300, 40)), 0)
    X = csr_matrix(normalize(Z[y] + noise).astype(np.float32))
    Y = np.eye(N_LABELS, dtype=np.int8)[y]
    Y[0] = 0  # an instance without labels
    Y = csr_array(Y)
    Z = csr_matrix(Z.astype(np.float32))
    return LabelledSet("english_wordnet", X[:240], Y[:240], X[240:], Y[240:], Z, [], None)


@pytest.fixture
def loaded(labelled, monkeypatch):
    monkeypatch.setattr(ngame, "load_labelled_set", lambda name, data, cache: labelled)


def test_part_samplers(loaded, tmp_path, capsys):
    report = Report("ngame", out=tmp_path)
    rows = ngame.main(parts=("samplers",), epochs=4, cluster_size=8, report=report, **SMALL)
    assert {row["key"] for row in rows} == set(ngame_curves.METHODS)
    for key in ngame_curves.METHODS:
        curve = [row for row in rows if row["key"] == key]
        assert [row["epoch"] for row in curve] == [1, 2, 3, 4]
        assert curve[-1]["loss"] < curve[0]["loss"]
        for row in curve:
            assert 0 < row["violations"] < 1
            assert 0 <= row["sampler_s"] < row["cpu_s"]
    ends = {row["key"]: row for row in rows if row["epoch"] == 4}
    assert min(row["P@1"] for row in ends.values()) > 0.3
    assert ends["in_batch"]["sampler_s"] < ends["ngame"]["sampler_s"]
    assert "clusters of 8" in capsys.readouterr().out
    assert (tmp_path / "ngame_samplers_english_wordnet.png").is_file()


@pytest.mark.parametrize("key", ["in_batch", "ngame", "ance"])
def test_epochs_are_those_of_a_fit(labelled, key):
    seed = int(np.random.RandomState(3).randint(2**31 - 1))  # that of a fit with random_state=3
    parameters = {"batch_size": 32, "embedding_dim": 16, "n_jobs": 1, "random_state": seed}
    rows = ngame_curves.follow_samplers(labelled, [key], parameters, 8, 3, Report())
    model = NGAMEEmbeddingXC(**parameters)
    examples, Z = ngame_curves.examples_of(model, labelled)
    training = ngame_curves.epochs_of(model, examples, Z, SAMPLERS[key](), 3)[2]
    assert isinstance(training, SiameseTraining)
    losses = [report.loss for report in training.run()]  # no look at held-out instances between
    assert losses == [row["loss"] for row in rows]
    fitted = NGAMEEmbeddingXC(
        **{**parameters, "random_state": 3}, sampler=key, label_features=labelled.Z,
        validation_fraction=0.0, max_iter=3, classifier_max_iter=0,
    ).fit(labelled.X_train, labelled.Y_train)  # fmt: skip
    assert losses == fitted.fit_report_["loss"].tolist()


def test_a_timed_fit_is_a_fit(labelled):
    parameters = {"label_features": labelled.Z, "embedding_dim": 8, "random_state": 0}
    plain = NGAMEEmbeddingXC(**parameters).fit(labelled.X_train, labelled.Y_train)
    timed = ngame.TimedEmbedding(**parameters).fit(labelled.X_train, labelled.Y_train)
    np.testing.assert_array_equal(plain.coef_, timed.coef_)
    again = ngame.TimedEmbedding(**{**parameters, "label_features": None})
    again.fit(labelled.X_train, labelled.Y_train, label_features=labelled.Z)
    np.testing.assert_array_equal(plain.coef_, again.coef_)
    weight = np.random.default_rng(0).random(240)
    for each in (plain, timed):
        each.fit(labelled.X_train, labelled.Y_train, weight)
    np.testing.assert_array_equal(plain.coef_, timed.coef_)
    assert (plain.coef_ != again.coef_).any()
    stages = [timed.cpu_s_[stage] for stage in ("encoder", "classifiers", "fusion")]
    assert 0 < sum(stages) <= timed.cpu_s_["all"]


def test_components_and_tail(loaded, labelled):
    rows = ngame.main(
        parts=("components", "tail"), max_iter=6, classifier_max_iter=3, tree=True, ova=True,
        **SMALL,
    )  # fmt: skip
    components = {r["system"]: r for r in rows if r["part"] == "components" and "system" in r}
    assert list(components) == [
        "embedding", "classifiers", "sum of both", "fused", "fused by a tree", "OvALinearXC"
    ]  # fmt: skip
    for row in components.values():
        assert 0.3 < row["P@1"] <= 1
        assert 0 < row["PSP@1"] <= 1
        assert row["ms"] > 0
    stages = {row["stage"]: row["cpu_s"] for row in rows if "stage" in row}
    assert stages["all"] >= max(stages.values())
    tail = {row["system"]: row for row in rows if row["part"] == "tail"}
    assert tail["chance"]["unseen"] == pytest.approx(10 / N_LABELS)
    assert tail["tf-idf cosine with the label's text"]["unseen"] == 1
    assert tail["embedding"]["unseen"] > tail["chance"]["unseen"]


RADII = (0.8, 0.95, 1.1)


@pytest.fixture(scope="module")
def embedded():
    """Return 239 instances near the mean of their one to four labels, of 30."""
    rng = np.random.default_rng(0)
    W = normalize(rng.normal(size=(30, 8))).astype(np.float32)
    degrees = rng.integers(1, 5, 239)
    labels = [np.sort(rng.choice(30, degree, replace=False)) for degree in degrees]
    V = np.array([W[own].sum(axis=0) for own in labels]) + 0.3 * rng.normal(size=(239, 8))
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    positives = Positives(indptr, np.concatenate(labels).astype(np.int32))
    return ngame_batches.Embedded("made", normalize(V).astype(np.float32), W, positives, 0)


@pytest.fixture(scope="module")
def misses(embedded):
    return ngame_batches.measure_misses(embedded, (4, 16), RADII, 0.3, 32, 3, Report())


class TestMisses:
    def test_shares_are_those_of_brute_force(self, embedded, misses):
        _, V, W, (indptr, labels), _ = embedded
        Y = np.zeros((len(V), len(W)), bool)
        Y[np.repeat(np.arange(len(V)), np.diff(indptr)), labels] = True
        apart = np.linalg.norm(V[:, None].astype(float) - W[None], axis=2)
        clusters = Clusters(V, 60, (3, 0), 1)
        cluster = np.empty(len(V), int)
        cluster[clusters.rows] = np.repeat(np.arange(60), np.diff(clusters.starts))
        batches = list(clusters.batches(32, (3, 0)))[: ngame_batches.N_BATCHES]
        seen = np.concatenate(batches)
        drawn = np.zeros_like(Y)
        drawn[np.arange(len(V)), ngame_batches._drawn(embedded.positives, 3)] = True
        assert not (drawn & ~Y).any()
        in_batch, in_cluster, is_drawn = np.zeros((3, *Y.shape), bool)
        for batch in batches:
            in_batch[batch] = Y[batch].any(axis=0)
            is_drawn[batch] = drawn[batch].any(axis=0)
        for i in range(len(V)):
            in_cluster[i] = Y[cluster == cluster[i]].any(axis=0)
        for r in RADII:
            hard = (apart <= r) & ~Y
            (row,) = (
                row for row in misses
                if row["hard"] == f"r = {r:g}" and row["batches"] == "clusters of 4"
            )  # fmt: skip
            for key, found in (
                ("missed_all", in_batch), ("missed_one", is_drawn),
                ("missed_all_cluster", in_cluster),
            ):  # fmt: skip
                missed = (hard & ~found)[seen].sum() / hard[seen].sum()
                assert 0 < row[key] == pytest.approx(missed)
            n_pairs = sum(len(batch) * drawn[batch].any(axis=0).sum() for batch in batches)
            hits = (hard & is_drawn)[seen].sum() / n_pairs
            assert row["hit_share"] == pytest.approx(hits)
            pairs = (hard & ~in_cluster)[seen].mean()
            assert row["missed_pairs"] == pytest.approx(pairs, abs=1e-6)
            assert row["eps1"] == pytest.approx((apart[Y] >= r).mean())
            near = np.linalg.norm(V[:, None].astype(float) - V[None], axis=2) <= 2 * r
            assert row["eps2"] == pytest.approx((near & (cluster[:, None] != cluster)).mean())

    def test_no_more_are_missed_than_either_bound_allows(self, misses):
        of_radii = [row for row in misses if "bound" in row]
        assert len(of_radii) == 9
        for row in of_radii:
            assert row["missed_pairs"] <= row["bound_by_label"] <= min(2, row["bound"])

    def test_the_best_are_as_many_as_asked(self, misses):
        best = [row for row in misses if row["hard"] == "best 10"]
        assert [row["batches"] for row in best] == ["at random", "clusters of 4", "clusters of 16"]
        assert all(row["per_instance"] == 10 for row in best)
        for row in misses:
            assert row["pool_one"] <= row["pool_all"]
            assert row["missed_all"] <= row["missed_one"] <= 1
            if row["batches"] != "at random":
                assert row["missed_all"] <= row["missed_all_cluster"]


def test_part_clusters(loaded, capsys):
    rows = ngame.main(parts=("misses", "clusters"), max_iter=2, sizes=(8, 24), rows=100, **SMALL)
    clusters = [row for row in rows if row["part"] == "clusters"]
    assert [(row["features"], row["clusters"]) for row in clusters] == [
        ("embeddings", 13), ("embeddings", 5), ("tf-idf, SVD", 13), ("tf-idf, SVD", 5)
    ]  # fmt: skip
    for row in clusters:
        assert 0.8 < row["ratio"] < 1.5
        assert 1 <= row["least"] <= row["most"]
        assert row["ratio"] == row["inertia"] / row["free_inertia"]
    assert "Theorem 1" in capsys.readouterr().out


def test_instances_and_labels_that_nothing_is_known_of_are_left_out(labelled):
    """Of equal instances there is one, as in a fit."""
    X = labelled.X_train.copy().tolil()
    X[5] = 0
    parameters = {"embedding_dim": 16, "n_jobs": 1, "random_state": 3}
    embedded = ngame_batches.trained(labelled._replace(X_train=csr_matrix(X)), parameters, 1)
    assert embedded.W.shape == (N_LABELS - 1, 16)
    kept = np.delete(np.arange(240), [0, 5])  # the first one has no label
    both = np.hstack([X[kept].toarray(), labelled.Y_train[kept].toarray()])
    _, one_of_each = np.unique(both, axis=0, return_index=True)
    assert len(one_of_each) < 238
    expected = np.sort(labelled.Y_train[kept[one_of_each]].indices)
    assert embedded.V.shape == (len(expected), 16)
    np.testing.assert_array_equal(embedded.positives.indptr, np.arange(len(expected) + 1))
    np.testing.assert_array_equal(np.sort(embedded.positives.labels), expected)


def test_epochs_are_those_of_the_estimator(labelled):
    parameters = {"embedding_dim": 8, "n_jobs": 1, "random_state": 3}
    assert ngame_batches.trained(labelled, parameters, None).epochs == 5  # for a label each


def test_inertia():
    V = np.array([[0.0, 0], [2, 0], [5, 5]])
    assert ngame_batches._inertia(V, np.array([1, 1, 0])) == pytest.approx(2 / 3)


def test_part_shortlist(capsys, monkeypatch):
    monkeypatch.setattr(ngame, "load_labelled_set", None)  # no data set is loaded
    rows = ngame.main(parts=("shortlist",), labels=(400, 900), dims=(8,), report=Report("ngame"))
    assert [(row["labels"], row["index"]) for row in rows] == [
        (n, name) for n in (400, 900) for name in ("exact", "product", "spherical")
    ]
    for row in rows:
        assert row["recall"] == 1 if row["index"] == "exact" else row["recall"] > 0.3
        assert min(row["us"], row["us_alone"]) > 0
    assert "recall@10" in capsys.readouterr().out


def test_part_deciles(loaded, labelled, tmp_path):
    report = Report("ngame", out=tmp_path)
    rows = ngame.main(
        parts=("deciles",), max_iter=4, classifier_max_iter=2, ova=True, report=report, **SMALL
    )
    assert [row["decile"] for row in rows] == list(range(1, 11))
    assert sum(row["labels"] for row in rows) == N_LABELS
    assert rows[-1]["most"] == labelled.Y_train.sum(axis=0).max()
    for name in ("embedding", "classifiers", "fused", "OvALinearXC"):
        assert 0 < sum(row[name] for row in rows) <= 0.2  # one label each: P@5 is 0.2 at most
    assert (tmp_path / "ngame_deciles.png").is_file()


class TestTheory:
    def test_degrees_are_equal(self):
        _, V, W, (indptr, labels), epochs = theory.equal_degrees(0)
        assert epochs == 0
        assert (np.diff(indptr) == 2).all()
        assert (np.bincount(labels, minlength=len(W)) == 10).all()
        assert (labels.reshape(-1, 2)[:, 0] < labels.reshape(-1, 2)[:, 1]).all()
        np.testing.assert_allclose(np.linalg.norm(V, axis=1), 1, rtol=1e-5)

    def test_theorem_1_with_equal_degrees(self, capsys):
        rows = theory.measure_equal_degrees((25, 100), (0.6,), 0, Report())
        (of_25, of_100) = (row for row in rows if "bound" in row and "cl" in row["batches"])
        for row in (of_25, of_100):
            assert row["missed_pairs"] <= row["bound"] <= 1.001 * (row["eps1"] + row["eps2"])
        assert of_100["missed_pairs"] < of_25["missed_pairs"]
        assert "0 epochs" not in capsys.readouterr().out

    def test_gradient_of_the_surrogate(self):
        problem, rng = theory.few_topics(0), np.random.default_rng(1)
        A, move = rng.standard_normal((2, 16, 40))
        one = np.zeros(len(problem.X), int)
        objective, gradient, _, missed = problem.gradients(A, one)
        assert objective > 0
        assert missed == 0
        ahead, behind = (problem.gradients(A + step * move, one)[0] for step in (1e-6, -1e-6))
        assert (gradient * move).sum() == pytest.approx((ahead - behind) / 2e-6, rel=1e-5)

    def test_theorem_3(self, tmp_path):
        report = Report("ngame", out=tmp_path)
        rows = ngame.main(parts=("convergence",), steps=12, report=report)
        assert [row["steps"] for row in rows] == [1, 10, 12] * 3
        whole = [row for row in rows if row["clusters"] == 240]
        for row in whole:
            assert row["missed"] == 0
            assert row["norm"] <= row["proved"]
            assert row["norm"] > row["printed"]  # the misprint
        assert whole[-1]["objective"] < whole[0]["objective"]
        assert rows[0]["missed"] > 0.3
        assert (tmp_path / "ngame_convergence.png").is_file()
