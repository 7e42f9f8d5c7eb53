"""Weights of instances, training in pieces, and warm starts."""

import copy
import pickle
from inspect import signature
from numbers import Real

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from fitted import Unchanged, assert_same_answers, assert_same_model, fitted_names
from registry import ENTRIES, VARIANTS, having, of_variant
from small_data import awkward, easy, made

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
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.RecallWarning"),
]


def taking(attribute):
    """Return the variants of estimators that have a method or a parameter."""
    return [pair for pair in VARIANTS if pair[0] in having(attribute)]


def own_cv(pair):
    return of_variant(*pair).get_params()["cv"]


def as_id(pair):
    return ", ".join(filter(None, pair)) if isinstance(pair, tuple) else None


class TestWeights:
    @pytest.fixture(params=VARIANTS, ids=as_id)
    def pair(self, request):
        return request.param

    def test_two_is_a_repeated_row_and_zero_a_missing_one(self, pair):
        """With folds that hold the same rows."""
        entry = ENTRIES[pair[0]]
        counts = np.random.default_rng(0).integers(0, 4, 60)
        rows = np.repeat(np.arange(60), counts)
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
        elif pair[1] != "label weights":  # propensities go by counts of rows
            both = (entry.label_weights(model) for model in (weighted, repeated))
            np.testing.assert_allclose(*both, rtol=1e-5, atol=1e-5)
        assert weighted.n_samples_fit_ == np.count_nonzero(counts)
        np.testing.assert_array_equal(weighted.label_counts_, Y[counts > 0].sum(axis=0))
        assert repeated.n_samples_fit_ == len(rows)
        np.testing.assert_array_equal(repeated.label_counts_, Y[rows].sum(axis=0))
        plain = of_variant(*pair).fit(X, Y)
        assert (entry.learnt(weighted) != entry.learnt(plain)).any()

    def test_rows_of_weight_zero_are_not_there(self, pair):
        kept = np.arange(60) % 3 > 0
        own = {}
        entry = ENTRIES[pair[0]]
        if entry.has("cv") and not (entry.folds_of_weighted and isinstance(own_cv(pair), Real)):
            pytest.skip("folds are of all rows")
        weighted = of_variant(*pair, **own).fit(X, Y, sample_weight=kept.astype(float))
        without = of_variant(*pair, **own).fit(X[kept], Y[kept])
        assert_same_model(weighted, without)
        assert weighted.n_samples_fit_ == 40

    def test_ones_are_none(self, pair):
        a, b = of_variant(*pair).fit(X, Y, sample_weight=np.ones(60)), of_variant(*pair).fit(X, Y)
        assert_same_model(a, b)

    def test_equal_rows_with_other_labels_are_not_one(self, pair):
        x = sp.vstack([X, X[:1]], format="csr")
        assert (Y[[0]] != Y[[1]]).nnz
        models = [
            of_variant(*pair).fit(x, sp.vstack([Y, Y[[row]]], format="csr")) for row in (0, 1)
        ]
        entry = ENTRIES[pair[0]]
        assert (entry.learnt(models[0]) != entry.learnt(models[1])).any()


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize("container", [sp.csr_array, np.asarray])
def test_counts_are_of_instances(name, container):
    """Those that were passed, with any weight above 0, whatever else becomes of them."""
    x = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1], [1, 1], [0, 0]] * 2)
    y = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0], [1, 1, 0], [0, 1, 0]] * 2)
    weight = np.array([0.5, 0.5, 0.0, 0.5, 1e-9, 3.0] * 2)
    own = {"sampler": NgameSampler(batch_size=2)} if ENTRIES[name].has("encoder") else {}
    model = ENTRIES[name].make(**own).fit(x, container(y), sample_weight=weight)
    assert model.label_counts_.tolist() == [6, 4, 0]
    assert model.label_counts_.dtype == np.int64
    assert model.n_samples_fit_ == 10
    by_class = ENTRIES[name].make(**own).fit(x, np.array(list("ababba") * 2), sample_weight=weight)
    assert by_class.label_counts_.tolist() == [4, 6]
    assert by_class.n_samples_fit_ == 10
    if hasattr(model, "partial_fit"):
        model.partial_fit(x, container(y))
        assert model.label_counts_.tolist() == [12, 10, 0]
        assert model.n_samples_fit_ == 22


@pytest.mark.parametrize("name", having("partial_fit"))
class TestPartialFits:
    def test_classes_that_come_later(self, name):
        entry = ENTRIES[name]
        first, model = EASY_Y == "ape", entry.make(able=True)
        model.partial_fit(EASY[first], EASY_Y[first], classes=["emu", "cat", "ape", "zebra"])
        assert model.classes_.tolist() == sorted(NAMES)
        assert model.label_counts_.tolist() == [15, 0, 0, 0]
        assert set(model.predict(EASY)) == {"ape"}
        for _ in range(25):
            model.partial_fit(EASY, EASY_Y)
        assert model.score(EASY, EASY_Y) > 0.8
        assert set(model.predict(EASY)) == set(NAMES)

    def test_classes_change_nothing_where_all_are_there(self, name):
        a, b = (ENTRIES[name].make() for _ in range(2))
        assert_same_model(
            a.partial_fit(EASY, EASY_Y), b.partial_fit(EASY, EASY_Y, classes=np.unique(EASY_Y))
        )

    @pytest.mark.parametrize("seen", ["ape", "zoo"])
    def test_two_classes_of_which_one_is_there(self, name, seen):
        """What is not known may not win."""
        model = ENTRIES[name].make().partial_fit(X, np.full(60, seen), classes=["ape", "zoo"])
        both = sp.vstack([X, -X], format="csr")
        assert set(model.predict(both)) == {seen}
        assert ((model.decision_function(both) > 0) == (seen == "zoo")).all()
        labels, scores = model.predict_topk(both, 2)
        assert set(model.classes_[labels[:, 0]]) == {seen}
        assert (scores[:, 1] < scores[:, 0]).all()

    @pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix, sp.csr_array.toarray])
    def test_indicators_need_no_classes(self, name, container):
        model = ENTRIES[name].make().partial_fit(X[:30], container(Y[:30]), classes=np.arange(5))
        model.partial_fit(X[30:], container(Y[30:]))
        assert type(model.predict(X)) is type(container(Y))
        assert model.decision_function(X).shape == (60, 5)
        same = ENTRIES[name].make().partial_fit(X[:30], Y[:30]).partial_fit(X[30:], Y[30:])
        np.testing.assert_array_equal(same.coef_, model.coef_)

    def test_counts(self, name):
        y = EASY_Y
        model = ENTRIES[name].make().partial_fit(EASY[:40], y[:40], classes=sorted(NAMES))
        weight = np.r_[np.zeros(5), np.full(25, 0.5)]
        model.partial_fit(EASY[30:], y[30:], sample_weight=weight)
        assert model.n_samples_fit_ == 65
        expected = [(y[:40] == c).sum() + (y[35:] == c).sum() for c in sorted(NAMES)]
        assert model.label_counts_.tolist() == expected
        assert type(model.n_samples_fit_) is int

    def test_weights_of_zero_and_rows_without_labels(self, name):
        weight = np.arange(60) % 3
        kept = (weight > 0) & Y.toarray().any(axis=1)
        fitted = ENTRIES[name].make().fit(X, Y)
        a, b = copy.deepcopy(fitted), copy.deepcopy(fitted)
        a.partial_fit(X, Y, sample_weight=weight)
        b.partial_fit(X[kept], Y[kept], sample_weight=weight[kept])
        assert_same_model(a, b, but=OF_ROWS)
        np.testing.assert_array_equal(a.label_counts_, b.label_counts_)
        c = copy.deepcopy(fitted).partial_fit(X, Y)
        assert (a.coef_ != c.coef_).any()

    def test_float32_after_float64_and_the_other_container(self, name):
        model = ENTRIES[name].make().partial_fit(X.astype(np.float32), Y)
        model.partial_fit(X, Y).partial_fit(X.toarray(), Y)
        assert model.coef_.dtype == np.float32
        assert np.isfinite(model.coef_).all()
        wide = ENTRIES[name].make().partial_fit(X, Y).partial_fit(X.astype(np.float32), Y)
        assert wide.coef_.dtype == (np.float32 if ENTRIES[name].reads_texts else np.float64)

    def test_a_fit_begins_anew(self, name):
        model = ENTRIES[name].make().fit(X, Y).partial_fit(X, Y).partial_fit(X, Y)
        assert_same_model(model.fit(X, Y), ENTRIES[name].make().fit(X, Y))

    def test_each_call_moves_the_model(self, name):
        model = ENTRIES[name].make()
        coefs = [model.partial_fit(X, Y).coef_ for _ in range(3)]
        assert (coefs[0] != coefs[1]).any()
        assert (coefs[1] != coefs[2]).any()

    def test_a_first_call_that_fails_leaves_nothing(self, name):
        model = ENTRIES[name].make()
        for arguments in ((X[:7], Y), (X, 2 * Y), (X * np.nan, Y)):
            with pytest.raises(ValueError, match=r"."):
                model.partial_fit(*arguments)
            assert not [n for n in fitted_names(model) if n[-1] == "_"]
        assert model.partial_fit(X[:, :3], Y).n_features_in_ == 3

    @pytest.mark.parametrize(
        ("arguments", "match"),
        [
            ({"classes": ["ape", "cat", "emu"]}, "classes are not the same .*had 4.* 3|Got 3"),
            ({"classes": [*NAMES, "gnu"]}, "classes are not the same .*had 4.* 5|Got 5"),
            ({"y": np.full(60, "gnu")}, "y holds .*'gnu'.*, which is not in classes"),
            ({"y": Y}, "y was 1-D in the first call, now it is an indicator"),
            ({"y": Y.toarray()}, "y was 1-D in the first call, now it is an indicator"),
            ({"X": EASY[:, :14]}, "X has 14 features, .* expecting 15"),
        ],
        ids=range(6),
    )
    def test_what_does_not_go_with_the_first_call(self, name, arguments, match):
        model = ENTRIES[name].make().partial_fit(EASY, EASY_Y)
        given = {"X": EASY, "y": EASY_Y, **arguments}
        if "classes" in arguments and "classes" not in signature(model.partial_fit).parameters:
            pytest.skip("takes no classes")
        before = Unchanged(model)
        with pytest.raises(ValueError, match=match):
            model.partial_fit(**given)
        before.check()

    def test_another_indicator(self, name):
        model = ENTRIES[name].make().partial_fit(X, Y)
        before = Unchanged(model)
        for arguments, match in (
            ((X, PLACES), "y was an indicator in the first call, now it is 1-D"),
            ((X, Y[:, :4]), "y has 4 label columns, before it had 5"),
            ((X, Y, np.arange(4)), "classes are not the same as in the first call"),
        ):
            with pytest.raises(ValueError, match=match):
                model.partial_fit(*arguments)
            before.check()
        model.partial_fit(X, Y.toarray())

    def test_classes_of_a_first_call_that_do_not_hold_y(self, name):
        model = ENTRIES[name].make()
        for y, classes, match in (
            (EASY_Y, ["ape", "cat", "zebra"], r"y holds .*'emu'.*, which is not in classes"),
            (np.full(60, "ape"), None, "one class, 'ape'; at least two classes are needed"),
            (np.full(60, "ape"), ["ape"], "at least two classes"),
            (Y, np.arange(4), "classes must be 5 names, .* one for each label. Got 4"),
            (Y, list("abc"), "classes must be 5 names, .* one for each label. Got 3"),
        ):
            with pytest.raises(ValueError, match=match):
                model.partial_fit(EASY, y, classes)
            assert not [n for n in fitted_names(model) if n[-1] == "_"]


@pytest.mark.parametrize("pair", taking("partial_fit"), ids=as_id)
class TestGoingOn:
    def test_arrays_that_others_hold_are_left_as_they_are(self, pair):
        """Another thread may be predicting with them."""
        model = of_variant(*pair).fit(X, Y)
        for _ in range(2):
            shared = copy.copy(model)
            held = Unchanged(shared)
            model.partial_fit(X, Y)
            held.check()

    @pytest.mark.parametrize("way", ["pickle", "joblib", "memory map", "deep copy"])
    def test_a_copy_goes_on_as_the_model_does(self, pair, way, tmp_path):
        model = of_variant(*pair).fit(X, Y).partial_fit(X, Y)
        if way == "pickle":
            again = pickle.loads(pickle.dumps(model))
        elif way == "deep copy":
            again = copy.deepcopy(model)
        else:
            joblib.dump(model, tmp_path / "model.joblib")
            mode = "r" if way == "memory map" else None
            again = joblib.load(tmp_path / "model.joblib", mmap_mode=mode)
            assert isinstance(again.coef_, np.memmap) == (mode == "r")
        before = again.coef_.copy()
        for one in (model, again):
            one.partial_fit(X, Y).partial_fit(X[:20], Y[:20])
        if pair[1] not in ENTRIES[pair[0]].by_search:
            assert_same_model(again, model)
        np.testing.assert_array_equal(again.label_counts_, model.label_counts_)
        assert (again.coef_ != before).any()

    def test_a_call_that_fails_is_as_if_it_had_not_been(self, pair):
        model, other = (of_variant(*pair).fit(X, Y).partial_fit(X, Y) for _ in range(2))
        before = Unchanged(model)
        with pytest.raises(ValueError, match="binary"):
            model.partial_fit(X, 2 * Y)
        before.check()
        assert_same_model(model.partial_fit(X, Y), other.partial_fit(X, Y))


@pytest.mark.parametrize(
    "pair", [pair for pair in taking("warm_start") if pair in taking("partial_fit")], ids=as_id
)
class TestWarmStarts:
    def test_without_it_a_fit_starts_anew(self, pair):
        model = of_variant(*pair).fit(X, Y)
        again = of_variant(*pair).fit(*made(5, 0))
        assert_same_model(again.fit(X, Y), model)

    def test_it_goes_on(self, pair):
        model = of_variant(*pair, warm_start=True).fit(X, Y)
        assert_same_model(model, of_variant(*pair).fit(X, Y))
        coef, n_iter = model.coef_.copy(), model.n_iter_
        model.fit(X, Y)
        assert (model.coef_ != coef).any()
        assert model.n_iter_ <= n_iter or "early" in pair[1]
        assert model.n_samples_fit_ == 60
        np.testing.assert_array_equal(model.label_counts_, Y.toarray().sum(axis=0))

    def test_a_memory_mapped_model(self, pair, tmp_path):
        model = of_variant(*pair, warm_start=True).fit(X, Y)
        joblib.dump(model, tmp_path / "model.joblib")
        again = joblib.load(tmp_path / "model.joblib", mmap_mode="r").fit(X, Y)
        assert_same_model(again, model.fit(X, Y))

    def test_fewer_classes_keep_their_rows(self, pair):
        model = of_variant(*pair, warm_start=True).fit(EASY, EASY_Y)
        kept = EASY_Y != "emu"
        model.fit(EASY[kept], EASY_Y[kept])
        assert model.classes_.tolist() == sorted(NAMES)
        assert model.decision_function(EASY).shape == (60, 4)
        assert model.label_counts_.tolist() == [15, 15, 0, 15]
        assert model.n_samples_fit_ == 45
        assert np.isfinite(model.decision_function(EASY)).all()
        labels, _ = model.predict_topk(EASY, 4)
        assert (np.sort(labels, axis=1) == range(4)).all()

    def test_what_does_not_fit_is_refused(self, pair):
        model = of_variant(*pair, warm_start=True).fit(EASY, EASY_Y)
        before, gnus = Unchanged(model), np.where(EASY_Y == "ape", "gnu", EASY_Y)
        for x, y, match in (
            (EASY[:, :3], EASY_Y, "X has 3 features, .* expecting 15"),
            (EASY, gnus, "y holds .*'gnu'.*, which is not in"),
            (EASY, Y, "y was 1-D in the first call, now it is an indicator"),
        ):
            if y is gnus and pair[0].startswith("Decomp"):
                continue  # labels are matched by name, and may be new
            with pytest.raises(ValueError, match=match):
                model.fit(x, y)
            before.check()
        assert model.set_params(warm_start=False).fit(EASY[:, :3], EASY_Y).n_features_in_ == 3

    def test_another_dtype(self, pair):
        model = of_variant(*pair, warm_start=True).fit(X, Y)
        model.fit(X.astype(np.float32), Y)
        assert np.isfinite(model.coef_).all()

    def test_it_goes_on_after_partial_fits(self, pair):
        model = of_variant(*pair, warm_start=True)
        if not hasattr(model, "partial_fit"):
            pytest.skip("no partial_fit")
        model.partial_fit(X, Y)
        coef = model.coef_.copy()
        model.fit(X, Y)
        assert (model.coef_ != coef).any()
        assert (model.coef_ != of_variant(*pair).fit(X, Y).coef_).any()
