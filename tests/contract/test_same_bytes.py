"""What must not change a model or an answer by a single bit, and inputs that are left alone."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from fitted import answers, assert_same_answers, assert_same_model, state
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from registry import ENTRIES, VARIANTS, having, of_variant
from small_data import awkward, made
from stored_forms import FORMS, OF_DENSE, read_only

X, Y = awkward()
WEIGHT = np.random.default_rng(1).choice([0.3, 1.0, 2.5], 60)
#: What is different if the same rows come in another order, or several as one with their weight.
OF_ROWS = ("n_samples_fit_", "label_counts_")

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning"),
]


def as_id(pair):
    return ", ".join(filter(None, pair))


def on(pairs):
    """Try these estimators or variants alone."""
    return pytest.mark.parametrize("pair", pairs, indirect=True, ids=as_id)


#: For tests that need no variants.
PLAIN = on([(name, "") for name in ENTRIES])


@pytest.fixture(scope="module", params=VARIANTS, ids=as_id)
def pair(request):
    return request.param


@pytest.fixture(scope="module")
def entry(pair):
    return ENTRIES[pair[0]]


@pytest.fixture(scope="module")
def fit(pair):
    """Return a function that fits an estimator of a variant."""

    def fit(x=X, y=Y, sample_weight=None, **parameters):
        return of_variant(*pair, **parameters).fit(x, y, sample_weight=sample_weight)

    return fit


@functools.cache
def fitted_of(pair):
    return of_variant(*pair).fit(X, Y)


@pytest.fixture
def fitted(pair):
    """Return a model that no test may change."""
    return fitted_of(pair)


@pytest.fixture
def cut_up(entry, monkeypatch):
    """Have even this little work cut up for several threads."""
    for name, value in entry.pieces.items():
        monkeypatch.setattr(name, value)


class TestThreads:
    def test_n_jobs(self, pair, entry, fit, cut_up):
        # Variants have loops of their own, which take their time to compile: once will do.
        dtype = np.float64 if pair[1] else np.float32
        for x, n_jobs in ((X, 3), (X.toarray().astype(dtype), 2)):
            alone, together = fit(x, n_jobs=1), fit(x, n_jobs=n_jobs)
            assert_same_model(together, alone)
            assert_same_answers(together, alone, x, entry)

    @PLAIN
    def test_pieces(self, entry, fitted, fit, cut_up, monkeypatch):
        """Of an answer, and of more rows than one task takes."""
        slow = entry.reads_texts or entry.has("estimators")
        many = sp.vstack([X] * (3 if slow else 20), format="csr")
        model = fit(n_jobs=2)
        assert_same_answers(model, fit(n_jobs=1), many, entry)
        monkeypatch.undo()
        if not entry.labels_apart:  # whose lanes are part of the arithmetic
            assert_same_model(model, fitted)
            assert_same_answers(model, fitted, many, entry)


class TestRandomState:
    def test_a_second_fit_starts_anew(self, fit, fitted):
        """It is that of another model, and changes no array that the first has given."""
        model = fit(*made(5, 0))
        held = {name: getattr(model, name) for name in state(model)}
        copies = {name: np.copy(v) for name, v in held.items() if isinstance(v, np.ndarray)}
        assert_same_model(model.fit(X, Y), fitted)
        for name, copy in copies.items():
            np.testing.assert_array_equal(held[name], copy, name)

    @on([(name, "") for name in having("random_state") if name not in having("cv")])
    def test_a_generator_moves_on(self, entry, fit):
        """Another seed gives another model."""
        generator = np.random.RandomState(0)
        a, b = (fit(random_state=generator) for _ in range(2))
        assert (entry.learnt(a) != entry.learnt(b)).any()
        assert_same_model(a, fit(random_state=np.random.RandomState(0)))


class TestStoredForms:
    @on([("NGAMEEmbeddingXC", "label features")])
    def test_of_label_features(self, fit, fitted):
        Z, rng = fitted.label_features, np.random.default_rng(0)
        forms = [FORMS[name](Z, rng) for name in ("zeros and halves", "unsorted", "csc")]
        for other in [*forms, read_only(Z.toarray()), Z.toarray().tolist()]:
            assert_same_model(fit(label_features=other), fitted)


@PLAIN
class TestInputs:
    def test_memory_maps(self, entry, fit, fitted, tmp_path):
        """They are read-only."""
        joblib.dump((X, Y, WEIGHT), tmp_path / "data.joblib")
        x, y, weight = joblib.load(tmp_path / "data.joblib", mmap_mode="r")
        assert isinstance(x.data, np.memmap)
        assert_same_model(fit(x, y), fitted)
        assert_same_answers(fitted, fitted, x, entry, X)
        dense = read_only(X.toarray())
        of_dense = fit(dense, read_only(Y.toarray()), weight)
        assert_same_model(of_dense, fit(X.toarray(), Y, WEIGHT))
        assert_same_answers(of_dense, of_dense, dense, entry, X.toarray())

    def test_nothing_is_changed_in_place(self, entry, fit):
        rng = np.random.default_rng(0)
        x, y, dense_x, weight = FORMS["zeros"](X, rng), FORMS["zeros"](Y, rng), X.toarray(), WEIGHT
        arrays = [getattr(a, n) for a in (x, y) for n in ("data", "indices", "indptr")]
        arrays += [dense_x, weight]
        before = [(a, a.copy()) for a in arrays]
        model = fit(x, y, weight)
        fit(dense_x, y.toarray(), weight)
        for asked in (x, dense_x):
            answers(model, asked, entry)
            model.score(asked, y)
        for array, copy in before:
            np.testing.assert_array_equal(array, copy)
            assert array.dtype == copy.dtype


class TestRows:
    @PLAIN
    def test_their_order(self, entry, fit):
        order = np.random.default_rng(0).permutation(60)
        again = X[order], Y[order], WEIGHT[order]
        if entry.is_exact:
            a, b = fit(X, Y, WEIGHT), fit(*again)
            assert_same_model(a, b, but=OF_ROWS)
            assert_same_answers(a, b, X, entry)
        elif not entry.has("cv"):  # whose folds go by the order
            a, b = fit(X, Y, WEIGHT, **entry.precise), fit(*again, **entry.precise)
            a_weights, b_weights = entry.label_weights(a), entry.label_weights(b)
            np.testing.assert_allclose(a_weights, b_weights, atol=1e-5)
            np.testing.assert_array_equal(a.label_counts_, b.label_counts_)

    @on([pair for pair in VARIANTS if ENTRIES[pair[0]].labels_apart])
    def test_a_permutation_of_labels_permutes_their_weights(self, fit, fitted):
        order = np.random.default_rng(0).permutation(5)
        a = fit(y=Y[:, order])
        np.testing.assert_array_equal(a.coef_.toarray(), fitted.coef_.toarray()[order])
        np.testing.assert_array_equal(a.intercept_, fitted.intercept_[order])


@on([(name, "") for name, one in ENTRIES.items() if one.is_exact and not one.reads_texts])
@given(
    seed=st.integers(0, 2**16),
    kind=st.sampled_from(["classes", "dense", "sparse"]),
    form=st.sampled_from(sorted({**FORMS, **OF_DENSE})),
    dtype=st.sampled_from([np.float32, np.float64]),
    round_weights=st.booleans(),
)
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_small_problem(fit, entry, seed, kind, form, dtype, round_weights):
    """Few distinct rows, many of them equal and some empty, weights of any size, any order."""
    rng = np.random.default_rng(seed)
    n = 24
    x = rng.choice([0.0, -0.0, 1.0, -1.0, 0.3], (5, 15), p=[0.3, 0.2, 0.2, 0.2, 0.1])
    x[0] = 0
    kinds = rng.integers(0, 5, n)
    x = x[kinds].astype(dtype)
    labels = rng.random((n, 5)) < 0.35
    labels[:10] = np.tile(np.eye(5, dtype=bool), (2, 1))
    y = {"classes": labels.argmax(axis=1), "dense": labels, "sparse": sp.csr_array(labels)}[kind]
    weight = rng.choice([1.0, 2.0, 3.0] if round_weights else [0.1, 0.2, 0.3, 7.3], n)
    weight[10:] *= rng.choice([0, 1], n - 10)
    assume(np.unique(x[weight > 0], axis=0).shape[0] > 2)
    order = rng.permutation(n)
    expected = fit(sp.csr_array(x), y, weight)
    store = {**FORMS, **OF_DENSE}[form]
    other = store(sp.csr_array(x[order]), rng)
    model = fit(other, y[order], weight[order], n_jobs=2)
    assert_same_model(model, expected, but=OF_ROWS)
    assert_same_answers(model, expected, sp.csr_array(x), entry)
    assert np.isfinite(entry.learnt(expected)).all()
    if round_weights:
        rows = rng.permutation(np.repeat(np.arange(n), weight.astype(int)))
        repeated = fit(x[rows], y[rows])
        assert_same_model(repeated, expected, but=OF_ROWS)


def test_processes_with_other_hash_seeds(tmp_path):
    """Texts in a set come in another order there."""
    script = Path(__file__).with_name("saved_by_seed.py")
    children = [
        subprocess.Popen(
            [sys.executable, script, tmp_path / seed], env={**os.environ, "PYTHONHASHSEED": seed}
        )
        for seed in "01"
    ]
    assert [child.wait(600) for child in children] == [0, 0]
    one, other = (
        {path.relative_to(tmp_path / seed): path.read_bytes() for path in files}
        for seed in "01"
        if (files := sorted(path for path in (tmp_path / seed).rglob("*") if path.is_file()))
    )
    assert len(one) >= 14  # two files for each model
    assert one == other
