"""Weights of instances, and warm starts."""

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from fitted import Unchanged, assert_same_answers, assert_same_model
from registry import ENTRIES, VARIANTS, having, of_variant
from small_data import awkward, easy

from sklearn_xc.embedding.samplers import NgameSampler

X, Y = awkward()
EASY, PLACES = easy()
NAMES = np.array(["zebra", "ape", "cat", "emu"])
#: One class each; positions of the sorted names are 3, 0, 1, 2.
EASY_Y = NAMES[PLACES]
OF_ROWS = ("n_samples_fit_", "label_counts_")

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning"),
]


def as_id(pair):
    return ", ".join(filter(None, pair)) if isinstance(pair, tuple) else None


#: Where a repeated row is not one of weight two to the bit, but rows of weight 0 are in no fold.
ROUNDING = [
    pair
    for pair in VARIANTS
    if not ENTRIES[pair[0]].is_exact
    and (ENTRIES[pair[0]].folds_of_weighted or not ENTRIES[pair[0]].has("cv"))
    and pair[1] not in ("listed folds", "prefit")
]


class TestWeights:
    @pytest.mark.parametrize("pair", VARIANTS, ids=as_id)
    def test_two_is_a_repeated_row_and_zero_a_missing_one(self, pair):
        """In any order; with folds that hold the same rows."""
        entry = ENTRIES[pair[0]]
        counts = np.random.default_rng(0).integers(0, 4, 60)
        rows = np.repeat(np.arange(60), counts)
        if entry.is_exact:
            rows = np.random.default_rng(1).permutation(rows)
        if entry.has("cv"):
            folds = [np.arange(60) % 2 == side for side in (0, 1)]
            cv, cv_of_rows = (
                [(np.flatnonzero(f[at]), np.flatnonzero(~f[at])) for f in folds]
                for at in (np.arange(60), rows)
            )
            weighted = of_variant(*pair, cv=cv, **entry.precise)
            repeated = of_variant(*pair, cv=cv_of_rows, **entry.precise)
        else:
            own = {} if entry.is_exact else entry.precise
            weighted, repeated = of_variant(*pair, **own), of_variant(*pair, **own)
        weighted.fit(X, Y, sample_weight=counts)
        repeated.fit(X[rows], Y[rows])
        if entry.is_exact:
            assert_same_model(weighted, repeated, but=OF_ROWS)
            assert_same_answers(weighted, repeated, X, entry)
        else:
            plain = of_variant(*pair).fit(X, Y)
            assert (entry.learnt(weighted) != entry.learnt(plain)).any()
            if pair[1] != "label weights":  # propensities go by counts of rows
                both = (entry.label_weights(model) for model in (weighted, repeated))
                np.testing.assert_allclose(*both, rtol=1e-5, atol=1e-5)
        assert weighted.n_samples_fit_ == np.count_nonzero(counts)
        np.testing.assert_array_equal(weighted.label_counts_, Y[counts > 0].sum(axis=0))
        assert repeated.n_samples_fit_ == len(rows)
        np.testing.assert_array_equal(repeated.label_counts_, Y[rows].sum(axis=0))

    @pytest.mark.parametrize("pair", ROUNDING, ids=as_id)
    def test_rows_of_weight_zero_are_not_there(self, pair):
        kept = np.arange(60) % 3 > 0
        weighted = of_variant(*pair).fit(X, Y, sample_weight=kept.astype(float))
        assert_same_model(weighted, of_variant(*pair).fit(X[kept], Y[kept]))
        assert weighted.n_samples_fit_ == 40

    @pytest.mark.parametrize("name", ENTRIES)
    def test_equal_rows_with_other_labels_are_not_one(self, name):
        x, entry = sp.vstack([X, X[:1]], format="csr"), ENTRIES[name]
        assert (Y[[0]] != Y[[1]]).nnz
        models = [entry.make().fit(x, sp.vstack([Y, Y[[row]]], format="csr")) for row in (0, 1)]
        assert (entry.learnt(models[0]) != entry.learnt(models[1])).any()


@pytest.mark.parametrize("name", ENTRIES)
def test_counts_are_of_instances(name):
    """Those that were passed, with any weight above 0, whatever else becomes of them."""
    x = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1], [1, 1], [0, 0]] * 2)
    y = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0], [1, 1, 0], [0, 1, 0]] * 2)
    weight = np.array([0.5, 0.5, 0.0, 0.5, 1e-9, 3.0] * 2)
    own = {"sampler": NgameSampler(batch_size=2)} if ENTRIES[name].has("encoder") else {}
    model = ENTRIES[name].make(**own).fit(x, y, sample_weight=weight)
    assert model.label_counts_.tolist() == [6, 4, 0]
    assert model.label_counts_.dtype == np.int64
    assert model.n_samples_fit_ == 10
    by_class = ENTRIES[name].make(**own).fit(x, np.array(list("ababba") * 2), sample_weight=weight)
    assert by_class.label_counts_.tolist() == [4, 6]
    assert by_class.n_samples_fit_ == 10


@pytest.mark.parametrize("name", having("warm_start"))
def test_a_warm_start_of_a_memory_mapped_model(name, tmp_path):
    model = ENTRIES[name].make(warm_start=True).fit(X, Y)
    joblib.dump(model, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib", mmap_mode="r").fit(X, Y)
    assert_same_model(again, model.fit(X, Y))


#: Whose warm starts change weights step by step, and keep rows of labels that are no longer there;
#: one-vs-all ends at its optimum.
STEPPING = [name for name in having("warm_start") if not name.startswith("OvA")]


class TestWarmSteps:
    @pytest.mark.parametrize("pair", [p for p in VARIANTS if p[0] in STEPPING], ids=as_id)
    def test_it_goes_on(self, pair):
        model = of_variant(*pair, warm_start=True).fit(X, Y)
        assert_same_model(model, of_variant(*pair).fit(X, Y))
        coef, n_iter = model.coef_.copy(), model.n_iter_
        model.fit(X, Y)
        assert (model.coef_ != coef).any()
        assert model.n_iter_ <= n_iter or "early" in pair[1]
        assert model.n_samples_fit_ == 60
        np.testing.assert_array_equal(model.label_counts_, Y.toarray().sum(axis=0))

    @pytest.mark.parametrize("name", STEPPING)
    def test_fewer_classes_keep_their_rows(self, name):
        model = ENTRIES[name].make(warm_start=True).fit(EASY, EASY_Y)
        kept = EASY_Y != "emu"
        model.fit(EASY[kept], EASY_Y[kept])
        assert model.classes_.tolist() == sorted(NAMES)
        assert model.decision_function(EASY).shape == (60, 4)
        assert model.label_counts_.tolist() == [15, 15, 0, 15]
        assert model.n_samples_fit_ == 45
        assert np.isfinite(model.decision_function(EASY)).all()
        labels, _ = model.predict_topk(EASY, 4)
        assert (np.sort(labels, axis=1) == range(4)).all()

    @pytest.mark.parametrize("name", STEPPING)
    def test_what_does_not_fit_is_refused(self, name):
        model = ENTRIES[name].make(warm_start=True).fit(EASY, EASY_Y)
        before, gnus = Unchanged(model), np.where(EASY_Y == "ape", "gnu", EASY_Y)
        for x, y, match in (
            (EASY[:, :3], EASY_Y, "X has 3 features, .* expecting 15"),
            (EASY, gnus, "y holds .*'gnu'.*, which is not in"),
            (EASY, Y, "y was 1-D in the first call, now it is an? .*indicator"),
        ):
            if y is gnus and name.startswith("Decomp"):
                continue  # labels are matched by name, and may be new
            with pytest.raises(ValueError, match=match):
                model.fit(x, y)
            before.check()
        assert model.set_params(warm_start=False).fit(EASY[:, :3], EASY_Y).n_features_in_ == 3
