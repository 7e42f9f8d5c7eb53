"""The decomposition experiment, at a small size."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from asv_bench.common.data import SplitSet
from asv_bench.common.report import Report
from asv_bench.decomposition import curves, gradients
from asv_bench.decomposition import progress as decomposition
from asv_bench.decomposition.training import Training, held_out, mean_loss, train_state
from sklearn_xc import DecompMIPSClassifier
from sklearn_xc.datasets import make_hierarchical_classes, make_xc_classification
from sklearn_xc.gradients import LabelGradient
from sklearn_xc.gradients.exact import Exact
from sklearn_xc.gradients.message_passing import Coupled
from sklearn_xc.gradients.watched_index import WatchedIndex
from sklearn_xc.mips import ProductIndex
from sklearn_xc.mips.protocol import Candidates
from sklearn_xc.parallel.team import Team

SMALL = {"levels": (2,), "branching": 12, "instances": 6, "per_class": 4, "state_epochs": 0.2}


@pytest.fixture(scope="module")
def made():
    return make_hierarchical_classes(2, 20, 32, n_per_class=4, n_test=40, random_state=0)


@pytest.fixture(scope="module")
def state(made):
    return train_state(
        made.X_train, made.y_train, rate=0.1, sampled=1.0, gradient="exact", further=0.2, most_s=60
    )[0]


@pytest.fixture(scope="module")
def batch(made, state):
    return held_out(made.X_test, made.y_test, 11, state.label_vectors)


@pytest.mark.parametrize("gradient", ["decomp_mips", "mips", "sampled", "exact"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_training_in_pieces_is_a_fit(made, gradient, is_sparse):
    if is_sparse:
        X, y = make_xc_classification(150, 80, 90, random_state=0)
        parameters = {"embedding_dim": 12}
    else:
        X, y, parameters = made.X_train[:303], made.y_train[:303], {}
    model = DecompMIPSClassifier(
        gradient=gradient, max_iter=2, sampled_epochs=0.5, n_candidates=30, random_state=3,
        learning_rate=0.3, **parameters,
    )  # fmt: skip
    fitted = DecompMIPSClassifier(**model.get_params()).fit(X, y)
    training = Training(model, X, y)
    while training.visits < 2 * training.n_visits:
        left = training.n_visits - training.visits % training.n_visits
        training.advance(min(66, left))
        if left <= 66:
            training.answer()  # as a fit does after each epoch
    assert training.visits == 2 * training.n_visits
    assert training.answer() is model
    np.testing.assert_array_equal(model.coef_, fitted.coef_)
    np.testing.assert_array_equal(model.intercept_, fitted.intercept_)
    if is_sparse:
        np.testing.assert_array_equal(model.feature_embedding_, fitted.feature_embedding_)
    without_features = csr_array((1, X.shape[1])) if is_sparse else np.zeros((1, X.shape[1]))
    for instances in (X, without_features):
        of_both = model.predict_topk(instances), fitted.predict_topk(instances)
        for found, expected in zip(*of_both, strict=True):
            np.testing.assert_array_equal(found, expected)


def test_answers_between_leave_the_last_step_as_it_is(made):
    parameters = {"learning_rate": 0.3, "average": False, "random_state": 0}
    X, y = made.X_train[:300], made.y_train[:300]
    fitted = DecompMIPSClassifier(**parameters, max_iter=2, early_stopping=False).fit(X, y)
    training = Training(DecompMIPSClassifier(**parameters), X, y)
    for _ in range(2):
        training.advance(training.n_visits)
        training.answer()
    np.testing.assert_array_equal(training.answer().coef_, fitted.coef_)
    np.testing.assert_array_equal(training.model.intercept_, fitted.intercept_)


def test_a_fork_goes_its_own_way(state):
    W = state.label_vectors.copy()
    fork, twin = state.fork(gradient="mips", n_candidates=20), state.fork(gradient="exact")
    for training in (fork, twin):
        training.advance(200)
        assert training.visits == state.visits + 200
    np.testing.assert_array_equal(state.label_vectors, W)
    assert fork.trainer.guide.recall > 0
    assert not np.array_equal(fork.label_vectors, twin.label_vectors)
    state_again = state.fork()
    state_again.advance(200)
    np.testing.assert_array_equal(state_again.label_vectors, twin.label_vectors)


def test_the_loss_over_all_labels(state, batch):
    W, loss = state.label_vectors, state.loss
    with Team(1) as team:
        expected = Exact(loss).of(W, batch, None, team).losses.mean()
        assert mean_loss(W, batch, loss, team) == pytest.approx(expected)


def dense(gradients_, n_labels):
    out = np.zeros((len(gradients_), n_labels))
    for row, gradient in zip(out, gradients_, strict=True):
        row[gradient.labels] = gradient.values
    return out


def test_error_and_mass_are_those_of_dense_vectors(state, batch):
    W, loss = state.label_vectors, state.loss
    exact = gradients.gradients_of(Exact(loss), W, batch)
    outcome = gradients.Searches(W, loss).find("mips", batch, 15)
    a, b = dense(exact, len(W)), dense(outcome.gradients, len(W))
    expected = np.linalg.norm(a - b, axis=1) / np.linalg.norm(a, axis=1)
    found = gradients.relative_errors(exact, outcome.gradients)
    np.testing.assert_allclose(found, expected)
    a, b = np.maximum(a, 0), np.maximum(b, 0)
    expected = np.linalg.norm(a - b, axis=1) / np.linalg.norm(a, axis=1)
    found = gradients.relative_errors(exact, outcome.gradients, on_negatives=True)
    np.testing.assert_allclose(found, expected)
    mass = [row[labels].sum() / row.sum() for row, labels in zip(a, outcome.retrieved, strict=True)]
    np.testing.assert_allclose(gradients.retrieved_mass(exact, outcome.retrieved), mass)
    assert 0.1 < np.mean(mass) < 1


def test_instances_without_a_gradient_are_left_out():
    none = gradients.SparseGradient(np.empty(0, np.int32), np.empty(0))
    some = gradients.SparseGradient(np.array([3, 5], np.int32), np.array([-1.0, 1.0]))
    np.testing.assert_allclose(gradients.relative_errors([none, some], [some, none]), [1.0])
    np.testing.assert_allclose(gradients.retrieved_mass([none, some], [some.labels] * 2), [1.0])


@pytest.mark.parametrize("key", gradients.METHODS)
def test_all_labels_retrieved(state, batch, key):
    W, loss = state.label_vectors, state.loss
    outcome = gradients.Searches(W, loss).find(key, batch, len(W))
    exact = gradients.gradients_of(Exact(loss), W, batch)
    assert gradients.retrieved_mass(exact, outcome.retrieved) == pytest.approx(1)
    error = gradients.relative_errors(exact, outcome.gradients).max()
    assert error < 0.03 if not key.startswith("alg2") else error > 0.01
    assert outcome.scored <= 2 * len(W) + 100


def test_blocks_are_coupled_as_in_training(state, batch):
    W, loss = state.label_vectors, state.loss
    searches = gradients.Searches(W, loss)
    bounds = np.array([0, *(last for _, last in searches._columns)])
    blocks = [WatchedIndex(index) for index in searches._spherical_blocks]
    method = Coupled(loss, 9, blocks, bounds, 1)
    expected = gradients.gradients_of(method, W, batch)
    found = searches.find("alg2", batch, 9).gradients
    np.testing.assert_allclose(dense(found, len(W)), dense(expected, len(W)), atol=1e-6)


def test_labels_visited_are_those_of_the_search(state, batch):
    searches = gradients.Searches(state.label_vectors, state.loss)
    index = searches._spherical
    visited = gradients.labels_visited(index, batch.V, 15) - len(index.centroids_)
    assert (visited >= 15).all()
    sizes = index._layout.size
    assert (visited < 15 + sizes.max()).all()
    labels = index.query(batch.V, 15).labels
    for i, n in enumerate(visited):  # all of these clusters together hold so many
        clusters = np.unique(index._layout.cluster[labels[i]])
        assert sizes[clusters].sum() <= n


def test_labels_rescored_are_enough(state, batch):
    W, loss = state.label_vectors, state.loss
    index = ProductIndex()
    index.build(W)
    found = index.query(batch.V, 300)
    n_scored = gradients.labels_rescored(loss, W, batch, found)
    assert n_scored.max() <= 300
    assert n_scored.min() < 300

    def gradient(counts):
        out = LabelGradient.empty(len(batch.V), 301, W.dtype)
        loss.over_found(W, batch, Candidates(found.labels, found.scores, counts), False, out)
        return dense(gradients.as_list(out), len(W))

    np.testing.assert_array_equal(
        gradient(np.minimum(n_scored, found.counts)), gradient(found.counts)
    )
    fewer = gradient(np.where(n_scored > 32, n_scored // 2, n_scored))
    assert (n_scored == 32).all() or not np.array_equal(fewer, gradient(found.counts))


def test_rounds_lead_to_the_exact_gradient(state, batch):
    rows = gradients.compare_rounds(state.label_vectors, batch, state.loss, 20, (0, 1, 64))
    assert [row["rounds"] for row in rows] == [0, 1, 64]
    assert rows[2]["all"] < 0.2 * rows[0]["all"]


def test_builds_follow_the_rule():
    assert [curves.builds_of(n, 100) for n in (0, 100, 101, 230, 231, 400)] == [1, 1, 2, 2, 3, 4]


def test_part_error(tmp_path, capsys):
    report = Report("decomposition", out=tmp_path)
    rows = decomposition.main(parts=("error",), report=report, **SMALL)
    searched = [row for row in rows if row["part"] == "error"]
    assert {row["key"] for row in searched} == set(gradients.METHODS)
    for row in searched:
        assert 0 <= row["recall"] <= 1
        assert np.isfinite(row["error"])
    assert [row["rounds"] for row in rows if row["part"] == "rounds"] == [0, 1, 2, 4, 8, 16, 32]
    assert "held-out accuracy" in capsys.readouterr().out
    assert (tmp_path / "decomposition_error_144.png").is_file()
    assert (tmp_path / "decomposition_rounds_144.png").is_file()


def test_part_speed(tmp_path):
    report = Report("decomposition", out=tmp_path)
    rows = decomposition.main(parts=("speed",), batches=6, report=report, **SMALL)
    assert [row["key"] for row in rows] == [*curves.METHODS, "few", "alg2"]
    by_key = {row["key"]: row for row in rows}
    assert by_key["exact"]["ratio"] == 1
    assert by_key["exact"]["error"] == 0
    for row in rows:
        assert row["instance_ms"] == pytest.approx(
            (row["step_ms"] + row["build_ms"] + row["average_ms"]) / 10
        )
        assert (row["build_s"] is None) == (row["key"] in ("exact", "sampled"))
        assert row["moved"] > 0 or row["n_candidates"] == 1  # which may be a positive
    assert (tmp_path / "decomposition_speed.png").is_file()


def test_part_epochs(tmp_path):
    report = Report("decomposition", out=tmp_path)
    rows = decomposition.main(parts=("epochs",), epochs=3, report=report, **SMALL)
    first = {row["key"]: row["loss"] for row in rows if row["epoch"] == 1}
    assert len(set(first.values())) > 2
    for key in first:
        losses = [row["loss"] for row in rows if row["key"] == key]
        assert len(losses) == 3
        assert losses[2] < losses[0]
    assert (tmp_path / "decomposition_epochs_144.png").is_file()


def test_part_accuracy(tmp_path, monkeypatch):
    X, Y = make_xc_classification(260, 80, 40, random_state=0)
    split = SplitSet("yso_finna_en", X[:200], csr_array(Y[:200]), X[200:], csr_array(Y[200:]))
    monkeypatch.setattr(decomposition, "load_set", lambda name, data, cache: split)
    report = Report("decomposition", out=tmp_path)
    rows = decomposition.main(
        parts=("accuracy",), rates=(0.1, 0.01), alphas=(1.0, 3.0), budget=0.02,
        methods=("exact", "decomp_mips"), report=report, **SMALL,
    )  # fmt: skip
    assert len({(row["set"], row["key"], row["learning_rate"], row["alpha"]) for row in rows}) == 16
    for row in rows:
        assert 0 <= row["P@1"] <= 1
        assert ("P@5" in row) == row["set"].startswith("yso")
    for name in ("hierarchy_144", "yso_finna_en"):
        assert (tmp_path / f"decomposition_accuracy_{name}.png").is_file()
