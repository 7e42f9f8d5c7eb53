"""RareLabelSplit against counts by hand."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import KFold, check_cv

from sklearn_xc.exceptions import UnseenLabelWarning
from sklearn_xc.model_selection import RareLabelSplit, cross_validate


def power_law(n, n_labels, mean, seed=0):
    """Return a CSR indicator whose r-th label has about 1/r of the positives of the first."""
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1, n_labels + 1)
    drawn = rng.choice(n_labels, size=n * mean, p=shares / shares.sum())
    Y = sp.csr_array(
        (np.ones(n * mean), drawn, np.arange(0, n * mean + 1, mean)), shape=(n, n_labels)
    )
    Y.sum_duplicates()
    Y.data[:] = 1
    return Y


def folds_of(splitter, Y):
    """Return the tests of each split, which must be a partition, and the number in the warning."""
    n = Y.shape[0] if hasattr(Y, "shape") else len(Y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnseenLabelWarning)
        splits = list(splitter.split(np.zeros((n, 1)), Y))
    for train, test in splits:
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(n))
    n_lost = [int(str(one.message).split(":")[1].split()[0]) for one in caught]
    return [test for _, test in splits], n_lost


def n_lost_of(Y, tests):
    """Return how many labels with two positives have all of them in one of the tests."""
    counts = Y.sum(axis=0)
    lost = np.zeros(Y.shape[1], bool)
    for test in tests:
        lost |= (counts >= 2) & (Y[test].sum(axis=0) == counts)
    return int(lost.sum())


indicators = st.builds(
    lambda n, n_labels, density, seed: (
        (np.random.default_rng(seed).random((n, n_labels)) < density).astype(np.int64)
    ),
    st.integers(4, 30), st.integers(2, 40), st.floats(0.02, 0.6), st.integers(0, 10**6),
)  # fmt: skip


class TestFolds:
    @settings(max_examples=150, deadline=None)
    @given(Y=indicators, n_splits=st.integers(2, 4), seed=st.none() | st.integers(0, 99))
    def test_promises(self, Y, n_splits, seed):
        splitter = RareLabelSplit(n_splits, shuffle=seed is not None, random_state=seed)
        tests, n_warned = folds_of(splitter, Y)
        sizes = [len(test) for test in tests]
        assert max(sizes) - min(sizes) <= 1
        np.testing.assert_array_equal(np.sort(np.concatenate(tests)), np.arange(len(Y)))
        assert sum(n_warned) == n_lost_of(Y, tests)
        assert len(n_warned) <= 1

    @settings(max_examples=60, deadline=None)
    @given(n=st.integers(4, 9), seed=st.integers(0, 10**6), n_splits=st.integers(2, 3))
    def test_a_split_is_found_where_there_is_one(self, n, seed, n_splits):
        """Of label pairs of rows, the hardest: all splits of so few rows can be tried."""
        rng = np.random.default_rng(seed)
        pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(n - 1)])
        Y = np.zeros((n, n - 1), int)
        Y[pairs.ravel(), np.repeat(np.arange(n - 1), 2)] = 1
        tests, _ = folds_of(RareLabelSplit(n_splits), Y)
        assert n_lost_of(Y, tests) == self.fewest_lost(pairs, n, n_splits)

    @staticmethod
    def fewest_lost(pairs, n, n_splits):
        sizes = np.full(n_splits, n // n_splits) + (np.arange(n_splits) < n % n_splits)
        all_folds = np.stack(np.unravel_index(np.arange(n_splits**n), (n_splits,) * n))
        counts = np.array([(all_folds == j).sum(axis=0) for j in range(n_splits)])
        all_folds = all_folds[:, (np.sort(counts, axis=0) == np.sort(sizes)[:, None]).all(axis=0)]
        one, other = all_folds[pairs[:, 0]], all_folds[pairs[:, 1]]
        return int((one == other).sum(axis=0).min())

    def test_three_rows_that_share_labels_do_not_fit_into_two_folds(self):
        Y = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]])
        with pytest.warns(UnseenLabelWarning, match="RareLabelSplit: 1 labels have no training"):
            list(RareLabelSplit(2).split(Y, Y))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            list(RareLabelSplit(3).split(Y, Y))

    @pytest.mark.parametrize("n_splits", [2, 5, 10])
    def test_labels_are_spread_better_than_at_random(self, n_splits):
        Y = power_law(2000, 1500, 5)
        expected = Y.sum(axis=0) / n_splits

        def deviation(tests):
            return np.mean([np.abs(Y[test].sum(axis=0) - expected).mean() for test in tests])

        ours, n_warned = folds_of(RareLabelSplit(n_splits), Y)
        assert not n_warned
        assert n_lost_of(Y, ours) == 0
        at_random, _ = folds_of(KFold(n_splits, shuffle=True, random_state=0), Y)
        assert n_lost_of(Y, at_random) > 10
        assert deviation(ours) < 0.8 * deviation(at_random)

    @settings(max_examples=60, deadline=None)
    @given(seed=st.integers(0, 10**6), n_splits=st.integers(2, 6), shuffle=st.booleans())
    def test_classes_are_spread_evenly(self, seed, n_splits, shuffle):
        rng = np.random.default_rng(seed)
        y = rng.zipf(1.5, rng.integers(n_splits, 60)).clip(max=30) + 0
        y[:2] = 1, 2
        splitter = RareLabelSplit(n_splits, shuffle=shuffle, random_state=0 if shuffle else None)
        tests, n_warned = folds_of(splitter, np.array([f"class {one}" for one in y]))
        assert not n_warned
        for one in np.unique(y):
            counts = [np.sum(y[test] == one) for test in tests]
            assert max(counts) - min(counts) <= 1 or np.sum(y == one) == 1
            assert np.sum(y == one) == 1 or max(counts) < np.sum(y == one)


SPLITTERS = [
    lambda seed: RareLabelSplit(3),
    lambda seed: RareLabelSplit(3, shuffle=True, random_state=seed),
]
everyone = pytest.mark.parametrize("make", SPLITTERS, ids=["folds", "shuffled"])


def bytes_of(splitter, Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenLabelWarning)
        return [part.tobytes() for fold in splitter.split(np.zeros((Y.shape[0], 1)), Y)
                for part in fold]  # fmt: skip


@everyone
class TestSameBytes:
    def test_of_a_seed(self, make):
        Y = power_law(300, 400, 4)
        expected = bytes_of(make(7), Y)
        assert bytes_of(make(7), Y) == expected
        assert bytes_of(make(np.random.RandomState(7)), Y) == expected
        if "shuffle=False" not in repr(make(0)):
            assert bytes_of(make(8), Y) != expected

    def test_of_any_container(self, make):
        Y = power_law(60, 80, 4)
        expected = bytes_of(make(0), Y)
        wide = sp.csr_array(Y)
        wide.indptr, wide.indices = Y.indptr.astype(np.int64), Y.indices.astype(np.int64)
        backwards = Y.copy()
        for i in range(60):
            own = slice(Y.indptr[i], Y.indptr[i + 1])
            backwards.indices[own] = Y.indices[own][::-1]
        zeros = sp.csr_array(
            (np.r_[Y.data, 0.0], (np.r_[Y.tocoo().row, 0], np.r_[Y.tocoo().col, 3])), shape=Y.shape
        )
        others = [
            sp.csr_matrix(Y), sp.csc_array(Y), sp.coo_array(Y), sp.lil_array(Y), Y.astype(bool),
            Y.astype(np.int8), Y.toarray(), Y.toarray().astype(bool), wide, backwards, zeros,
        ]  # fmt: skip
        for other in others:
            assert bytes_of(make(0), other) == expected


class TestGroups:
    @settings(max_examples=100, deadline=None)
    @given(Y=indicators, n_groups=st.integers(2, 12), seed=st.integers(0, 99))
    def test_promises(self, Y, n_groups, seed):
        """No group on both sides, and labels of two groups in training, or counted in a warning."""
        rng = np.random.default_rng(seed)
        groups = np.char.add("author ", rng.zipf(1.5, len(Y)).clip(max=n_groups).astype(str))
        names, numbers = np.unique(groups, return_inverse=True)
        if len(names) < 2:
            return
        of_group = np.array([Y[numbers == number].any(axis=0) for number in range(len(names))])
        splitter = RareLabelSplit(rng.integers(2, min(4, len(names)) + 1))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UnseenLabelWarning)
            splits = list(splitter.split(Y, Y, groups))
        lost = [(of_group.sum(axis=0) >= 2) & ~Y[train].any(axis=0) for train, _ in splits]
        for train, test in splits:
            assert len(test)
            assert not set(groups[train]) & set(groups[test])
            assert len(train) + len(test) == len(Y)
        n_warned = sum(int(str(one.message).split(":")[1].split()[0]) for one in caught)
        assert n_warned == np.any(lost, axis=0).sum()
        assert sum(len(test) for _, test in splits) == len(Y)

    def test_rare_labels_and_even_folds(self):
        Y, groups = power_law(2000, 800, 4), np.random.default_rng(0).integers(0, 150, 2000)
        of_group = sp.csr_array((np.ones(2000), (groups, np.arange(2000)))) @ Y > 0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            splits = list(RareLabelSplit(5).split(Y, Y, groups))
        for train, test in splits:
            assert (Y[train].sum(axis=0)[of_group.sum(axis=0) >= 2] > 0).all()
            assert abs(len(test) - 400) < 20

    def test_metadata_routing(self):
        splitter = RareLabelSplit(3)
        Y, groups = power_law(40, 6, 3), np.arange(40) // 4
        model = DummyClassifier()
        with sklearn.config_context(enable_metadata_routing=True):
            params, y = {"groups": groups}, Y.toarray()[:, 0]
            found = cross_validate(model, Y, y, cv=splitter, params=params, return_indices=True)
        for train in found["indices"]["train"]:
            assert np.isin(groups, groups[train]).sum() == len(train)

    @pytest.mark.parametrize(
        ("groups", "message"),
        [
            (np.arange(5), r"groups must have shape \(6,\). Got \(5,\)"),
            (np.ones((6, 2)), r"groups must have shape \(6,\). Got \(6, 2\)"),
            ([1, 1, 2, 2, np.nan, np.nan], "groups contains NaN"),
            ([0, 0, 0, 1, 1, 1], "at most the number of groups, 2. Got n_splits=3"),
        ],
    )
    def test_wrong_groups(self, groups, message):
        Y = np.eye(6, dtype=int)
        with pytest.raises(ValueError, match=message):
            list(RareLabelSplit(3).split(Y, Y, groups))


class TestInScikitLearn:
    def test_repr_and_check_cv(self):
        splitter = RareLabelSplit(3, shuffle=True, random_state=0)
        assert (
            repr(splitter)
            == "RareLabelSplit(n_splits=3, random_state=0, separator=None, shuffle=True)"
        )
        assert splitter.get_n_splits() == 3
        assert check_cv(splitter) is splitter
        assert clone(splitter, safe=False).n_splits == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RareLabelSplit(1), "RareLabelSplit: n_splits must be .* at least 2. Got 1"),
        (lambda: RareLabelSplit(2.0), "n_splits must be an integer of at least 2. Got 2.0"),
        (lambda: RareLabelSplit(shuffle="yes"), "shuffle must be True or False. Got 'yes'"),
        (lambda: RareLabelSplit(random_state=3), "random_state has no effect .* Got 3"),
    ],
)
def test_bad_constructors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        (sp.csr_array((5, 3)), "y has 5 rows and X has 6"),
        (sp.csr_array(np.full((6, 3), 2)), "y must be a binary indicator .* holds 2"),
        (np.full((6, 3), 0.5), "y must be a binary indicator .* holds 0.5"),
        (np.ma.array(np.ones((6, 3))), "y is a masked array"),
        (np.linspace(0, 1, 6), "Unknown label type: continuous"),
        (["a"] * 6, "y holds one class, 'a'; at least two classes are needed"),
        (np.ones((6, 2, 2)), "y must be 1-D or 2-D"),
    ],
)
def test_bad_targets(y, message):
    with pytest.raises((ValueError, TypeError), match=rf"^RareLabelSplit.*{message}"):
        list(RareLabelSplit(3).split(np.zeros((6, 1)), y))


def test_malformed_targets(malformed):
    with pytest.raises(ValueError, match=r"RareLabelSplit: y: this .* is malformed"):
        list(RareLabelSplit(2).split(np.zeros((30, 1)), malformed(power_law(30, 5, 2))))


def test_more_folds_than_rows():
    Y = np.eye(4, dtype=int)
    with pytest.raises(ValueError, match=r"n_splits must be at most .* rows, 4. Got n_splits=5"):
        list(RareLabelSplit(5).split(Y, Y))
    assert folds_of(RareLabelSplit(4), Y)[1] == []
