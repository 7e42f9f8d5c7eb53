"""``learning_rate="auto"`` and early stopping: what is tried, what is chosen, what comes of it."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc import DecompMIPSClassifier
from sklearn_xc.decomposition import search
from sklearn_xc.decomposition._passes import InstanceSketch
from sklearn_xc.exceptions import ConvergenceWarning
from sklearn_xc.metrics import ndcg_at_k
from sklearn_xc.metrics.gains import ranking_gains

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


def search_of(model, X, Y, seed=0, *, is_dense=False):
    """Return the training set of a fit, and its search."""
    training = model._check(X, Y, None, None, False)
    return training, search.Search(model._settings(), training, seed, 0.1, is_dense=is_dense)


def assert_same_model(a, b):
    np.testing.assert_array_equal(a.coef_, b.coef_)
    np.testing.assert_array_equal(a.feature_embedding_, b.feature_embedding_)
    for name in ("threshold_", "n_iter_", "learning_rate_"):
        assert getattr(a, name) == getattr(b, name)


class TestGains:
    def test_are_the_public_metric_row_by_row(self):
        rng = np.random.default_rng(0)
        Y = sp.csr_array((rng.random((40, 9)) < 0.2).astype(int))
        topk = np.array([rng.permutation(9)[:5] for _ in range(40)])
        topk[3, 2:] = -1
        gains = ranking_gains(topk, Y.indptr, Y.indices)
        for i in range(40):
            assert gains[i] == pytest.approx(ndcg_at_k(Y[[i]], topk[[i]], k=5), abs=1e-12)

    def test_without_labels_they_are_zero(self):
        assert not ranking_gains(np.zeros((3, 2), int), np.zeros(4, int), np.empty(0, int)).any()


class TestChoice:
    def test_the_model_is_that_of_a_fit_with_what_was_chosen(self, data, small_search):
        """All instances are trained on: nothing is lost to those held out."""
        model = make().fit(*data)
        same = make(
            learning_rate=model.learning_rate_, max_iter=model.n_iter_, early_stopping=False
        ).fit(*data)
        assert_same_model(model, same)
        assert same.validation_scores_ is None
        assert model.n_iter_ == 1 + len(model.validation_scores_) - 1 - np.argmax(
            model.validation_scores_[::-1]
        )

    def test_scores_are_those_of_fits_without_the_held_out_instances(self, data):
        """By the public metric, of a model fitted on the others for one epoch, two, and so on."""
        X, Y = data
        model = make(learning_rate=1.0, early_stopping=True, n_iter_no_change=9).fit(X, Y)
        assert len(model.validation_scores_) == 4
        training, of_search = search_of(model, X, Y, _seed(0))
        held = of_search.held.rows
        others = np.setdiff1d(training.rows, held)
        assert len(held) == len(training.rows) // 3
        for n_epochs, score in enumerate(model.validation_scores_, 1):
            other = make(learning_rate=1.0, max_iter=n_epochs).fit(X[others], Y[others])
            labels, _ = other.predict_topk(X[held], 5)
            assert ndcg_at_k(Y[held], labels, k=5) == pytest.approx(score, abs=1e-12)

    def test_no_rate_tried_is_clearly_better(self, small_search):
        """Of a walk from 1 on, by instances that are new to both search and fit."""
        X, Y = texts_like(1200)
        model = make(max_iter=2, early_stopping=False).fit(X[:600], Y[:600])
        scores = {}
        for rate in (0.1, 1.0, 10.0, model.learning_rate_):
            fixed = make(max_iter=2, learning_rate=rate).fit(X[:600], Y[:600])
            labels, _ = fixed.predict_topk(X[600:], 5)
            scores[rate] = ndcg_at_k(Y[600:], labels, k=5)
        assert scores[model.learning_rate_] > max(scores.values()) - 0.02
        assert min(scores.values()) < max(scores.values()) - 0.05

    def test_a_rate_at_which_training_diverges_is_left(self, data, monkeypatch):
        monkeypatch.setattr(search, "RATES", (0.1, 0.3, 1e307, 1e308))
        monkeypatch.setitem(search._FIRST, "no layer", 1e307)
        model = make(embedding_dim=None, gradient="exact").fit(*data)
        assert model.learning_rate_ == 0.3

    @pytest.mark.parametrize(
        ("shares", "chosen", "tried"),
        [
            # The share of held-out instances answered right at 10, 3, 1, 0.3, 0.1 and 0.03; None:
            # diverged. 1 is the first rate to be tried.
            ((0.4, 0.6, 0.5, 0.4, 0.3, 0.2), 3.0, [1.0, 3.0, 10.0]),
            ((0.0, 0.0, 0.0, 0.0, 0.5, 0.5), 0.1, [1.0, 3.0, 0.3, 0.1, 0.03]),
            ((0.0, 0.0, 0.0, 0.0, 0.0, 0.5), 0.03, [1.0, 3.0, 0.3, 0.1, 0.03]),
            ((0.0, 0.0, 0.0, 0.0, 0.0, 0.0), 1.0, [1.0, 3.0, 0.3, 0.1, 0.03]),
            ((None, None, None, None, 0.5, 0.5), 0.1, [1.0, 0.3, 0.1, 0.03]),
            ((None, None, None, 0.0, 0.0, 0.4), 0.03, [1.0, 0.3, 0.1, 0.03]),
            ((None, None, None, 0.0, 0.0, 0.0), 0.3, [1.0, 0.3, 0.1, 0.03]),
            # Better than frequencies (0), and worse than the start (0.1), with five of 100.
            ((0.05, 0.05, 0.05, 0.05, 0.05, 0.5), 0.03, [1.0, 3.0, 0.3, 0.1, 0.03]),
        ],
    )
    def test_where_training_is_of_no_use_smaller_rates_are_tried(
        self, data, monkeypatch, shares, chosen, tried
    ):
        rates = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
        monkeypatch.setattr(search, "RATES", rates)
        _, of_search = search_of(make(), *data)
        n, seen = len(of_search.held.rows), []

        def run(rate, *_):
            seen.append(rate)
            share = dict(zip(rates[::-1], shares, strict=True))[rate]
            gains = np.full(n, -1.0) if share is None else np.arange(n) % 20 < 20 * share
            return SimpleNamespace(
                rate=rate, gains=[gains.astype(float)], has_diverged=share is None, may_stay=False
            )

        monkeypatch.setattr(of_search, "_tried", run)
        by_frequency, at_start = np.zeros(n), np.arange(n) % 20 < 2
        monkeypatch.setattr(of_search, "_gains_untrained", lambda _: (by_frequency, at_start))
        assert of_search.best_rate(2) == (chosen, chosen in (0.03, 10.0))
        assert seen == tried

    def test_what_is_of_use_ranks_labels_better_than_their_frequency(self, data):
        """By a count of the labels of the instances that are not held out."""
        X, Y = data
        training, of_search = search_of(make(), X, Y)
        held = of_search.held.rows
        counts = Y[np.setdiff1d(training.rows, held)].sum(axis=0)
        most = np.argsort(-counts, kind="stable")[:5]
        score = ndcg_at_k(Y[held], np.tile(most, (len(held), 1)), k=5)
        others = training.part(np.flatnonzero(~np.isin(training.rows, held)))
        by_frequency, at_start = of_search._gains_untrained(others)
        assert by_frequency.mean() == pytest.approx(score, abs=1e-12)
        np.testing.assert_array_equal(at_start, by_frequency)

    def test_proxies_are_of_use_if_they_are_no_worse_than_at_their_start(self, data):
        """The start is that of a fit whose steps are too short to matter."""
        X, Y = data
        own = {"loss": "triplet", "metric": "euclidean", "embedding_dim": None}
        training, of_search = search_of(make(**own), X, Y, _seed(0), is_dense=True)
        held = of_search.held.rows
        places = np.flatnonzero(~np.isin(training.rows, held))
        others = training.rows[places]
        _, at_start = of_search._gains_untrained(training.part(places))
        still = make(learning_rate=1e-12, max_iter=1, **own).fit(X[others], Y[others])
        labels, _ = still.predict_topk(X[held], 5)
        assert at_start.mean() == pytest.approx(ndcg_at_k(Y[held], labels, k=5), abs=1e-12)

    def test_proxies_that_collapse_at_the_first_rate_are_trained_at_a_smaller_one(self):
        """With steps of 0.1 the proxies of a triplet loss fly apart."""
        rng = np.random.default_rng(0)
        centres = rng.normal(size=(300, 16)) / 4
        y = np.repeat(np.arange(300), 5)
        X = centres[y] + 0.2 * rng.normal(size=(1500, 16))
        held = np.arange(1500) % 5 == 0
        own = {"loss": "triplet", "metric": "euclidean", "embedding_dim": None, "max_iter": 10}
        fixed = make(learning_rate=0.1, **own).fit(X[~held], y[~held])
        assert fixed.score(X[held], y[held]) < 0.1
        model = make(**own).fit(X[~held], y[~held])
        assert model.learning_rate_ < 0.03
        assert model.score(X[held], y[held]) > 0.5

    def test_training_stops_where_labels_are_noise(self, data):
        X, Y = data
        shuffled = Y[np.random.default_rng(0).permutation(400)]
        model = make(max_iter=30, learning_rate=1.0, early_stopping=True).fit(X, shuffled)
        assert model.n_iter_ < 30
        assert len(model.validation_scores_) < 30

    @pytest.mark.parametrize("parameters", [{}, {"learning_rate": 0.3, "early_stopping": True}])
    def test_few_instances_are_not_asked(self, parameters, data):
        X, Y = data[0][:140], data[1][:140]
        model = make(**parameters).fit(X, Y)
        rate = parameters.get("learning_rate", 1.0)
        assert_same_model(model, make(learning_rate=rate).fit(X, Y))
        assert (model.learning_rate_, model.validation_scores_) == (rate, None)
        assert make(embedding_dim=None).fit(X, Y).learning_rate_ == 0.3

    def test_a_rate_alone_is_searched_for(self, data, small_search):
        model = make(early_stopping=False).fit(*data)
        assert model.n_iter_ == 4
        assert model.validation_scores_ is None

    def test_a_trial_is_not_gone_on_with_if_its_weights_are_large(
        self, data, small_search, monkeypatch
    ):
        kept = make().fit(*data)
        monkeypatch.setattr(search, "_MOST_BYTES", 0)
        again = make().fit(*data)
        assert_same_model(kept, again)
        np.testing.assert_array_equal(kept.validation_scores_, again.validation_scores_)


def _seed(random_state):
    from sklearn_xc._seeds import draw_seed

    return draw_seed(random_state)


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

    def test_float32_and_classes(self, small_search):
        X, Y = texts_like(300)
        y = Y.toarray().argmax(axis=1)
        model = make().fit(X.astype(np.float32), y)
        assert model.coef_.dtype == np.float32
        assert model.score(X.astype(np.float32), y) > 0.5


class TestWarnings:
    def test_of_the_last_rate(self, data, monkeypatch):
        monkeypatch.setattr(search, "RATES", (1.0, 3.0))
        with pytest.warns(ConvergenceWarning, match=r"came to 1, the last of the rates") as record:
            make().fit(*data)
        assert any(warning.filename == __file__ for warning in record)

    def test_of_the_last_epoch(self, data):
        with pytest.warns(ConvergenceWarning, match=r"last of max_iter=2 epochs\. Raise") as record:
            make(learning_rate=0.05, early_stopping=True, max_iter=2).fit(*data)
        assert record[0].filename == __file__

    @pytest.mark.filterwarnings("error")
    def test_none_where_there_is_nothing_to_say(self, data, small_search):
        make(max_iter=12).fit(*data)

    def test_progress_is_printed(self, data, small_search, capsys):
        make(verbose=1).fit(*data)
        printed = capsys.readouterr().out
        assert "learning rate 1, epoch 2: held-out nDCG@5 0." in printed
        assert "best after" in printed


class TestFurtherCalls:
    def test_the_rate_of_the_first_call_stays(self, data, small_search):
        X, Y = data
        model = make().partial_fit(X[:200], Y[:200])
        rate = model.learning_rate_
        model.partial_fit(X[200:], Y[200:])
        assert model.learning_rate_ == rate
        assert model.validation_scores_ is None
        fixed = make(learning_rate=rate)
        fixed.partial_fit(X[:200], Y[:200]).partial_fit(X[200:], Y[200:])
        assert_same_model(model, fixed)

    def test_a_warm_start_runs_all_epochs_at_the_rate_of_before(self, data, small_search):
        model = make(warm_start=True).fit(*data)
        rate = model.learning_rate_
        model.set_params(max_iter=3).fit(*data)
        assert (model.n_iter_, model.learning_rate_) == (3, rate)

    def test_the_rate_falls_by_passes_and_not_by_calls(self, data):
        """Over ten pieces of equal size, twice: an epoch is a pass over what there has been."""
        X, Y = data
        training = make()._check(X, Y, None, None, False)
        X, Y = X[training.rows], Y[training.rows]
        pieces = np.array_split(np.arange(X.shape[0] // 10 * 10), 10)
        model = make(learning_rate=1.0)
        for rows in pieces + pieces:
            model.partial_fit(X[rows], Y[rows])
        done = np.arange(20)
        epochs = np.where(done < 10, done / (done + 1), done / 10)
        np.testing.assert_allclose(model.fit_report_["learning_rate"], 1 / (1 + epochs))

    def test_pieces_come_to_where_a_fit_comes(self):
        X, Y = texts_like(1500, seed=3)
        own = {"learning_rate": 1.0, "max_iter": 3}
        model = make(**own)
        for _ in range(3):
            for rows in np.array_split(np.arange(1000), 25):
                model.partial_fit(X[rows], Y[rows])
        whole = make(**own).fit(X[:1000], Y[:1000])
        scores = [
            ndcg_at_k(Y[1000:], each.predict_topk(X[1000:], 5)[0], k=5) for each in (model, whole)
        ]
        assert scores[0] > scores[1] - 0.02


class TestSketch:
    def test_counts_distinct_instances(self, monkeypatch):
        rng = np.random.default_rng(0)
        monkeypatch.setattr("sklearn_xc.decomposition._passes._KEPT", 512)

        def of(numbers):
            return InstanceSketch(np.unique(mixed[numbers])[:512])

        mixed = rng.integers(0, 2**64, 20_000, dtype=np.uint64)
        assert of(np.arange(300)).n_distinct() == 300
        assert of(np.arange(300)).plus(of(np.arange(200, 400))).n_distinct() == 400
        whole = of(np.arange(20_000))
        assert whole.n_distinct() == pytest.approx(20_000, rel=0.15)
        assert len(whole.hashes) == 512
        in_pieces = of(np.arange(10))
        for rows in np.array_split(rng.permutation(20_000), 7):
            in_pieces = in_pieces.plus(of(rows))
        np.testing.assert_array_equal(in_pieces.hashes, whole.hashes)
        assert in_pieces.plus(in_pieces).n_distinct() == whole.n_distinct()

    def test_equal_rows_count_once(self, data):
        X, Y = data
        training = make()._check(X, Y, None, None, False)
        sketch = InstanceSketch.of(training.instances, training.rows)
        assert sketch.n_distinct() == len(np.unique(X.toarray(), axis=0))


class CubicPairs:
    """The cube of each violation, whose gradient has no bound: common rates diverge."""

    parameters = ()

    @staticmethod
    def gradient(scores, n_positive, n, parameters, out, work):
        loss, smallest = 0.0, scores[0]
        for j in range(n):
            out[j] = 0.0
        for k in range(n_positive):
            smallest = min(smallest, scores[k])
            for j in range(n_positive, n):
                gap = max(0.0, 1.0 - scores[k] + scores[j])
                loss += gap**3
                out[j] += 3.0 * gap**2
                out[k] -= 3.0 * gap**2
        return loss, smallest - 1.0

    @staticmethod
    def support_floor(largest_negative, smallest_positive, parameters):
        return smallest_positive - 1.0


class TestRatesThatDiverge:
    def test_smaller_ones_are_tried_until_one_does_not(self, data):
        X, Y = data
        loss, gradient = CubicPairs(), "exact"
        for rate in (0.3, 1.0):
            with pytest.raises(ValueError, match="training diverged"):
                make(loss=loss, gradient=gradient, learning_rate=rate).fit(X, Y)
        model = make(loss=loss, gradient=gradient).fit(X, Y)
        assert model.learning_rate_ < 0.3
        assert model.score(X, Y) > 0.5
