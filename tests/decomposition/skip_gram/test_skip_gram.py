"""DecompMIPSSkipGram: what it learns, refuses, keeps and answers."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import sklearn_xc
from sklearn_xc import DecompMIPSSkipGram, load
from sklearn_xc.decomposition.gradients import MessagePassing
from sklearn_xc.decomposition.skip_gram import count_contexts
from sklearn_xc.exceptions import MemoryBudgetError

GROUPS = ["apple cherry plum pear", "cat dog horse cow", "red blue green grey", "one two six ten"]


def make_sentences(n=1500, seed=0):
    """Return sentences whose words are of one group each, beside words of all."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        own = GROUPS[rng.integers(len(GROUPS))].split()
        words = [*rng.choice(own, 3), *rng.choice(["the", "a", "of"], 3)]
        found.append([str(word) for word in rng.permutation(words)])
    return found


SENTENCES = make_sentences()
QUICK = {"embedding_dim": 8, "subsample": None, "max_iter": 15, "random_state": 0, "alpha": 1.0}


def quick(**parameters):
    return DecompMIPSSkipGram(**{**QUICK, **parameters})


@pytest.fixture(scope="module")
def fitted():
    return quick().fit(SENTENCES)


@pytest.fixture(scope="module")
def counts():
    return count_contexts(SENTENCES, subsample=None)


@pytest.fixture(scope="module")
def N(counts):
    """Return the counts of pairs as a matrix, words by contexts."""
    return sp.csr_array((counts.counts, counts.indices, counts.indptr))


def state(model):
    names = (
        "words_",
        "contexts_",
        "word_counts_",
        "input_vectors_",
        "output_vectors_",
        "intercept_",
    )
    found = {name: getattr(model, name) for name in names}
    return {name: value.tolist() for name, value in found.items()} | {
        "vectors": model.vectors_.tobytes(),
        "loss": model.fit_report_["loss"].tobytes(),
    }


class TestWhatItLearns:
    @pytest.mark.parametrize(
        ("gradient", "vectors"),
        [("sampled", "sum"), ("decomp_mips", "input"), ("exact", "input")],
    )
    def test_words_of_a_group_are_alike(self, gradient, vectors):
        model = quick(gradient=gradient, vectors=vectors).fit(SENTENCES)
        for group in GROUPS:
            words = group.split()
            V = model.vectors_ / np.linalg.norm(model.vectors_, axis=1, keepdims=True)
            for u in V[np.isin(model.words_, words)]:
                assert set(model.words_[np.argsort(-V @ u)[: len(words)]]) == set(words)

    def test_the_loss_falls_to_the_entropy_of_contexts(self, fitted, N):
        loss = fitted.fit_report_["loss"]
        assert loss[-1] < loss[0] - 0.2
        N = N.toarray()
        q = N / N.sum(axis=1, keepdims=True)
        entropy = -(N * np.log(np.where(N > 0, q, 1))).sum() / N.sum()
        reached = fitted.objective(N)
        assert entropy < reached < entropy + 0.1

    def test_the_objective_is_the_mean_over_single_pairs(self, fitted, counts, N):
        scores = fitted.input_vectors_.astype(float) @ fitted.output_vectors_.T + fitted.intercept_
        log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        rows = np.repeat(np.arange(len(counts.words)), np.diff(counts.indptr))
        expected = -(counts.counts * log_p[rows, counts.indices]).sum() / counts.counts.sum()
        assert fitted.objective(N) == pytest.approx(expected, rel=1e-5)


class TestContainers:
    def test_sentences_and_counts_are_the_same(self, fitted, counts, N):
        expected = state(fitted)
        assert state(quick().fit(iter(SENTENCES))) == expected
        for X in (N, N.tocoo(), N.toarray(), N.astype(np.float64)):
            model = quick().fit(X, words=counts.words)
            np.testing.assert_array_equal(model.vectors_, fitted.vectors_)
            np.testing.assert_array_equal(model.words_, fitted.words_)

    def test_a_matrix_of_words_and_other_contexts(self):
        rng = np.random.default_rng(0)
        N = rng.poisson(0.5, (30, 12))
        model = quick(vectors="input").fit(N, contexts=[f"doc {k}" for k in range(12)])
        assert model.words_.tolist() == [str(k) for k in range(30)]
        assert model.contexts_[3] == "doc 3"
        assert model.transform(["7"]).shape == (1, 8)
        np.testing.assert_array_equal(model.word_counts_, N.sum(axis=1))
        with pytest.raises(
            ValueError, match=r"vectors='sum' needs words and contexts.*30 words and 12"
        ):
            quick().fit(N)
        with pytest.raises(ValueError, match=r"the shape of the counts of fit, \(30, 12\)"):
            model.objective(N.T)

    def test_transformer_in_a_pipeline_and_frames(self, fitted):
        pipeline = make_pipeline(clone(fitted).set_output(transform="pandas"))
        pipeline.fit(SENTENCES)
        frame = pipeline.transform(pd.Series(["cat", "dog"]))
        assert frame.columns[0] == "decompmipsskipgram0"
        np.testing.assert_array_equal(frame.to_numpy(), fitted.transform(["cat", "dog"]))
        np.testing.assert_array_equal(quick().fit_transform(SENTENCES), fitted.vectors_)


class TestSameBytes:
    def test_any_number_of_threads(self):
        one, two = (quick(n_jobs=n, max_iter=4).fit(SENTENCES) for n in (1, 2))
        assert state(one) == state(two)

    def test_saved_and_pickled(self, fitted, tmp_path):
        fitted.save(tmp_path / "model")
        joblib.dump(fitted, tmp_path / "dumped")
        for model in (
            load(tmp_path / "model"),
            sklearn_xc.load(tmp_path / "model", verify=True),
            pickle.loads(pickle.dumps(fitted)),
            joblib.load(tmp_path / "dumped"),
        ):
            assert state(model) == state(fitted)
            np.testing.assert_array_equal(model.transform(["cat"]), fitted.transform(["cat"]))
            assert model.get_params() == fitted.get_params()


class TestBadInput:
    @pytest.mark.parametrize(
        ("X", "error", "match"),
        [
            ([["alone"]] * 9, ValueError, "X must hold a pair of words"),
            (np.full((3, 3), -1.0), ValueError, "none negative. Got -1"),
            (np.full((3, 3), np.nan), ValueError, "finite counts"),
            (sp.csr_array((3, 3)), ValueError, "X must hold a pair"),
            (sp.csr_array(np.eye(3, dtype=complex)), TypeError, "must hold numbers"),
            (None, TypeError, "None"),
        ],
    )
    def test_x(self, X, error, match):
        with pytest.raises(error, match=match):
            quick().fit(X)

    @pytest.mark.parametrize(
        ("parameters", "match"),
        [
            ({"gradient": "guess"}, "gradient"),
            ({"gradient": MessagePassing()}, "MessagePassing"),
            ({"n_sampled": 0}, "n_sampled"),
            ({"max_memory": "much"}, "max_memory"),
        ],
    )
    def test_parameters(self, parameters, match):
        with pytest.raises((ValueError, TypeError), match=match):
            quick(**parameters).fit(SENTENCES)

    def test_names_of_sentences(self):
        with pytest.raises(ValueError, match="words must be None where X is sentences"):
            quick().fit(SENTENCES, words=["a"])
        with pytest.raises(ValueError, match=r"words must be 3 names, .*one for each\. Got 1"):
            quick().fit(np.eye(3), words=["a"])

    def test_memory(self):
        with pytest.raises(MemoryBudgetError, match="19 words and 19 contexts x 100000"):
            quick(embedding_dim=100_000, max_memory="10MB").fit(SENTENCES)

    def test_divergence(self):
        with pytest.raises(ValueError, match="training diverged at learning_rate=1e\\+38"):
            quick(learning_rate=1e38, alpha=0).fit(SENTENCES)

    def test_not_fitted(self):
        for ask in (lambda m: m.transform(["a"]), lambda m: m.objective(np.eye(2))):
            with pytest.raises(NotFittedError):
                ask(quick())


def test_vectors_of_the_sum_are_those_of_both_kinds(fitted):
    U, W = fitted.input_vectors_, fitted.output_vectors_
    U, W = U - U.mean(axis=0), W - W.mean(axis=0)
    expected = U / np.linalg.norm(U, axis=1).mean() + W / np.linalg.norm(W, axis=1).mean()
    np.testing.assert_allclose(fitted.vectors_, expected, rtol=1e-4, atol=1e-6)
