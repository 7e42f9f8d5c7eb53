"""``learning_rate="auto"`` and early stopping: what is tried, what is chosen, what comes of it."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc import DecompMIPSClassifier
from sklearn_xc.decomposition import search
from sklearn_xc.exceptions import ConvergenceWarning
from sklearn_xc.metrics import ndcg_at_k

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.ConvergenceWarning")


def texts_like(n, n_labels=12, n_words=60, seed=0, noise=0.3):
    """Return bags of words of norm 1 and their labels: each label has words of its own."""
    rng = np.random.default_rng(seed)
    words = rng.dirichlet(np.full(n_words, 0.05), n_labels)
    Y = np.zeros((n, n_labels), int)
    X = np.zeros((n, n_words))
    for i in range(n):
        own = rng.choice(n_labels, rng.integers(1, 3), replace=False)
        Y[i, own] = 1
        p = (1 - noise) * words[own].mean(axis=0) + noise / n_words
        np.add.at(X[i], rng.choice(n_words, 8, p=p), 1)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return sp.csr_array(X), sp.csr_array(Y)


@pytest.fixture(scope="module")
def data():
    return texts_like(400)


@pytest.fixture
def small_search(monkeypatch):
    """Let fewer rates be tried, so that fits are fast."""
    monkeypatch.setattr(search, "RATES", (0.1, 0.3, 1.0, 3.0, 10.0))


def make(**parameters):
    own = {"embedding_dim": 8, "max_iter": 4, "random_state": 0}
    return DecompMIPSClassifier(**{**own, **parameters})


def assert_same_model(a, b):
    np.testing.assert_array_equal(a.coef_, b.coef_)
    np.testing.assert_array_equal(a.feature_embedding_, b.feature_embedding_)
    for name in ("threshold_", "n_iter_", "learning_rate_"):
        assert getattr(a, name) == getattr(b, name)


class TestChoice:
    def test_the_model_is_that_of_a_fit_with_what_was_chosen(self, data, small_search):
        """All instances are trained on: nothing is lost to those held out."""
        model = make().fit(*data)
        same = make(learning_rate=model.learning_rate_, max_iter=model.n_iter_).fit(*data)
        assert_same_model(model, same)
        assert same.validation_scores_ is None
        assert model.n_iter_ == 1 + len(model.validation_scores_) - 1 - np.argmax(
            model.validation_scores_[::-1]
        )

    def test_scores_are_those_of_fits_without_the_held_out_instances(self, data, monkeypatch):
        """By the public metric, of a model fitted on the others for one epoch, two, and so on."""
        trials, init = [], search.Trial.__init__

        def recorded(self, config, part, held, rate):
            trials.append((part.rows, held.rows, rate))
            init(self, config, part, held, rate)

        monkeypatch.setattr(search.Trial, "__init__", recorded)
        monkeypatch.setattr(search, "RATES", (1.0,))
        X, Y = data
        model = make().fit(X, Y)
        ((others, held, _),) = trials
        assert len(held) == len(X.indptr) // 3
        assert not np.isin(held, others).any()
        for n_epochs, score in enumerate(model.validation_scores_, 1):
            other = make(learning_rate=1.0, max_iter=n_epochs).fit(X[others], Y[others])
            labels, _ = other.predict_topk(X[held], 5)
            assert ndcg_at_k(Y[held], labels, k=5) == pytest.approx(score, abs=1e-12)

    def test_a_rate_at_which_training_diverges_is_left(self, data, monkeypatch):
        monkeypatch.setattr(search, "RATES", (0.1, 0.3, 1e307, 1e308))
        monkeypatch.setattr(search, "FIRST_DENSE", 1e307)
        model = make(embedding_dim=None, gradient="exact").fit(*data)
        assert model.learning_rate_ == 0.3

    def test_a_hopeless_trial_ends_after_an_epoch(self, data, monkeypatch):
        """0.01 is far behind the first rate, 1, after one of two epochs."""
        trials, init = [], search.Trial.__init__

        def recorded(self, *args):
            trials.append(self)
            init(self, *args)

        monkeypatch.setattr(search.Trial, "__init__", recorded)
        monkeypatch.setattr(search, "RATES", (0.01, 1.0))
        model = make().fit(*data)
        assert model.learning_rate_ == 1.0
        assert [len(trial.gains) for trial in trials] == [len(model.validation_scores_), 1]

    def test_training_stops_where_labels_are_noise(self, data):
        X, Y = data
        shuffled = Y[np.random.default_rng(0).permutation(400)]
        model = make(max_iter=30).fit(X, shuffled)
        scores = model.validation_scores_
        assert model.n_iter_ < len(scores) < 30
        assert scores[model.n_iter_ - 1] == max(scores)

    def test_few_instances_are_not_asked(self, data):
        X, Y = data[0][:140], data[1][:140]
        model = make().fit(X, Y)
        assert_same_model(model, make(learning_rate=1.0).fit(X, Y))
        assert (model.learning_rate_, model.validation_scores_) == (1.0, None)
        assert make(embedding_dim=None).fit(X, Y).learning_rate_ == 0.3


class TestSameModel:
    def test_for_any_number_of_threads(self, data, small_search):
        assert_same_model(make(n_jobs=2).fit(*data), make(n_jobs=1).fit(*data))

    def test_for_any_order_of_the_rows_and_repeated_ones(self, data, small_search):
        X, Y = data
        weight = np.random.default_rng(0).integers(0, 3, 400)
        order = np.random.default_rng(1).permutation(np.repeat(np.arange(400), weight))
        model = make().fit(X, Y, sample_weight=weight)
        assert_same_model(model, make().fit(X[order], Y[order]))
        assert (model.coef_ != make().fit(X, Y).coef_).any()


class TestWarnings:
    def test_of_the_last_epoch(self, data):
        with pytest.warns(ConvergenceWarning, match=r"last of max_iter=2 epochs\. Raise") as record:
            make(max_iter=2).fit(*data)
        assert record[0].filename == __file__

    @pytest.mark.filterwarnings("error")
    def test_none_where_there_is_nothing_to_say(self, data, small_search):
        make(max_iter=12).fit(*data)

    def test_progress_is_printed(self, data, small_search, capsys):
        make(verbose=1).fit(*data)
        printed = capsys.readouterr().out
        assert "learning rate 1: held-out nDCG@5 0." in printed
        assert "best after" in printed
