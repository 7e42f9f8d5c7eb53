"""The NGAME experiment, at a small size."""

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.preprocessing import normalize

from sklearn_xc import NGAMEEmbeddingXC
from sklearn_xc.bench import ngame, ngame_curves
from sklearn_xc.bench.label_texts import LabelledSet
from sklearn_xc.bench.report import Report
from sklearn_xc.embedding._training import SiameseTraining

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
            assert 0 < row["hit_share"] < 1
            assert 0 <= row["sampler_s"] < row["cpu_s"]
    ends = {row["key"]: row for row in rows if row["epoch"] == 4}
    assert min(row["P@1"] for row in ends.values()) > 0.3
    assert ends["in_batch"]["sampler_s"] < ends["ngame"]["sampler_s"]
    assert "clusters of 8" in capsys.readouterr().out
    assert (tmp_path / "ngame_samplers_english_wordnet.png").is_file()


@pytest.mark.parametrize("key", ["in_batch", "ngame", "ance"])
def test_epochs_are_those_of_a_fit(labelled, key):
    parameters = {"batch_size": 32, "embedding_dim": 16, "n_jobs": 1, "random_state": 3}
    rows = ngame_curves.follow_samplers(labelled, [key], parameters, 8, 3, Report())
    model = NGAMEEmbeddingXC(**parameters)
    X, Z, positives = ngame_curves._inputs(model, labelled)
    training = ngame_curves._epochs(model, X, Z, positives, key, {}, 3)[2]
    assert isinstance(training, SiameseTraining)
    losses = [report.loss for report in training.run()]  # no look at held-out instances between
    assert losses == [row["loss"] for row in rows]


def test_a_timed_fit_is_a_fit(labelled):
    parameters = {"label_features": labelled.Z, "embedding_dim": 8, "random_state": 0}
    plain = NGAMEEmbeddingXC(**parameters).fit(labelled.X_train, labelled.Y_train)
    timed = ngame.TimedEmbedding(**parameters).fit(labelled.X_train, labelled.Y_train)
    np.testing.assert_array_equal(plain.coef_, timed.coef_)
    stages = [timed.cpu_s_[stage] for stage in ("encoder", "classifiers", "fusion")]
    assert 0 < sum(stages) <= timed.cpu_s_["all"]


def test_components_and_tail(loaded, labelled):
    rows = ngame.main(
        parts=("components", "tail"), encoder_epochs=6, classifier_epochs=3, ova=True, **SMALL
    )
    components = {r["system"]: r for r in rows if r["part"] == "components" and "system" in r}
    assert list(components) == [
        "embedding", "classifiers", "sum of both", "fused", "OvALinearXC"
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


def test_texts_without_a_common_word_are_not_found(labelled):
    topk = ngame._by_text(labelled)
    scores = (labelled.X_test @ labelled.Z.T).toarray()
    for found, row in zip(topk, scores, strict=True):
        kept = found[found >= 0]
        assert (row[kept] > 0).all()
        expected = np.sort(row)[::-1][: len(kept)]
        np.testing.assert_allclose(np.sort(row[kept])[::-1], expected)
        assert len(kept) == min(10, np.count_nonzero(row))
