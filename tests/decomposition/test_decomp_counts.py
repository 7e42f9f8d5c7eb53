"""What is counted, and what of rows, their order, weights and zeros changes nothing."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp

PROMISED = (
    "coef_", "intercept_", "feature_embedding_", "fit_report_", "threshold_", "label_counts_",
)  # fmt: skip


def value_of(model, name):
    """Return an attribute; of what training did, the losses: seconds differ."""
    return model.fit_report_["loss"] if name == "fit_report_" else getattr(model, name)


def bytes_of(model):
    arrays = [np.asarray(value_of(model, name)) for name in PROMISED]
    return [(a.dtype, a.shape, a.tobytes()) for a in arrays], model.n_samples_fit_


@st.composite
def problems(draw, weights):
    """Return X with few distinct rows, zeros of both signs among them, Y and weights."""
    n = draw(st.integers(6, 14))
    kinds = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    rows = rng.choice([0.0, -0.0, 0.5, 0.1, -1.25], (4, 7), p=[0.3, 0.2, 0.2, 0.2, 0.1])
    labels = rng.random((4, 3)) < 0.4
    labels[0] = [True, False, True]
    X, Y = rows[kinds], labels[kinds].astype(int)
    X[0], Y[0] = 1.0, [0, 1, 0]
    weight = np.array(draw(st.lists(st.sampled_from(weights), min_size=n, max_size=n)))
    weight[0] = max(weight)
    hypothesis.assume(weight[0] > 0)
    return X, Y, weight


def with_stored_zeros(X, rng):
    """Return a CSR that holds all non-zeros, and some zeros of either sign."""
    stored = (X != 0) | (rng.random(X.shape) < 0.4)
    i, j = np.nonzero(stored)
    return sp.csr_array(sp.coo_array((X[i, j], (i, j)), shape=X.shape))


METHODS = (
    {"gradient": "exact"},
    {"gradient": "exact", "dropout": 0.5, "optimizer": "adagrad", "alpha": 1.0},
    {"gradient": "decomp_mips", "sampled_epochs": 0.5, "n_candidates": 2, "loss": "softmax"},
)


@pytest.mark.parametrize("embedding_dim", [None, 4])
@pytest.mark.parametrize("method", METHODS, ids=str)
@hypothesis.settings(max_examples=15)
@hypothesis.given(problem=problems([0.0, 0.1, 0.2, 0.3, 0.5, 1.0, 7.3]), seed=st.integers(0, 99))
def test_rows_in_another_order_and_zeros_of_any_kind(problem, seed, method, embedding_dim, make):
    X, Y, weight = problem
    rng = np.random.default_rng(seed)
    expected = bytes_of(make(embedding_dim=embedding_dim, **method).fit(X, Y, weight))
    order = rng.permutation(len(X))
    signs = np.where((X == 0) & (rng.random(X.shape) < 0.5), -X, X)
    others = [X[order], signs[order], np.asfortranarray(X[order])]
    if embedding_dim is not None:
        others += [with_stored_zeros(x, rng).asformat(f) for x in others for f in ("csr", "csc")]
    for x in others:
        model = make(embedding_dim=embedding_dim, **method)
        assert bytes_of(model.fit(x, Y[order], weight[order])) == expected


@pytest.mark.parametrize("method", METHODS, ids=str)
@hypothesis.settings(max_examples=15)
@hypothesis.given(problem=problems([0, 1, 2, 3, 66]), seed=st.integers(0, 99))
def test_whole_weights_are_repeated_rows(problem, seed, method, make):
    """In all but the counts, which are of the instances that were passed."""
    X, Y, weight = problem
    rows = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(X)), weight))
    weighted, repeated = make(**method).fit(X, Y, weight), make(**method).fit(X[rows], Y[rows])
    for name in PROMISED[:-1]:
        a, b = value_of(weighted, name), value_of(repeated, name)
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), name
    assert weighted.n_samples_fit_ == np.count_nonzero(weight)
    np.testing.assert_array_equal(weighted.label_counts_, Y[weight > 0].sum(axis=0))
    assert repeated.n_samples_fit_ == len(rows)
    np.testing.assert_array_equal(repeated.label_counts_, Y[rows].sum(axis=0))


class TestCounts:
    """Instances that were passed, with any weight above 0."""

    X = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1], [1, 1], [0, 0]])
    Y = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0], [1, 1, 0], [0, 1, 0]])
    weight = np.array([0.5, 0.5, 0.0, 0.5, 1e-9, 3.0])

    @pytest.mark.parametrize("container", [sp.csr_array, np.asarray])
    def test_fit_and_partial_fit(self, container, make):
        model = make().partial_fit(self.X, container(self.Y), sample_weight=self.weight)
        assert model.label_counts_.tolist() == [3, 2, 0]
        assert model.label_counts_.dtype == np.int64
        assert model.n_samples_fit_ == 5
        model.partial_fit(self.X, container(self.Y))
        assert model.label_counts_.tolist() == [6, 5, 0]
        assert model.n_samples_fit_ == 11
        with pytest.warns(UserWarning, match="1 of 3 labels have no training instance"):
            model.fit(self.X, container(self.Y), self.weight)
        assert model.label_counts_.tolist() == [3, 2, 0]
        assert model.n_samples_fit_ == 5

    @pytest.mark.parametrize("names", [["a", "b"], ["a", "b", "c"]], ids=len)
    def test_classes(self, names, make):
        y = np.array(["a", "b", "a", "b", "b", "a"])
        model = make().partial_fit(self.X, y, names, self.weight)
        assert model.label_counts_.tolist() == [2, 3, 0][: len(names)]
        assert model.n_samples_fit_ == 5

    def test_a_warm_start_counts_its_own_and_forgets_no_label(self, make):
        model = make(warm_start=True).fit(self.X[:4], self.Y[:4, :2])
        model.fit(self.X[:2], self.Y[:2, :2])
        assert model.label_counts_.tolist() == [2, 0]
        assert model.n_samples_fit_ == 2
        assert len(model._unseen_labels) == 0
        assert model.predict_topk(self.X[2:3], 1)[0].tolist() == [[1]]
