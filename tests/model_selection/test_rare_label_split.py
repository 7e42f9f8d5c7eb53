"""RareLabelSplit against counts by hand."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold

from sklearn_xc.exceptions import UnseenLabelWarning
from sklearn_xc.model_selection import RareLabelSplit


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


@settings(max_examples=100, deadline=None)
@given(
    n=st.integers(4, 30),
    n_labels=st.integers(2, 40),
    density=st.floats(0.02, 0.6),
    n_splits=st.integers(2, 4),
    seed=st.integers(0, 10**6),
    shuffle=st.booleans(),
)
def test_sizes_are_even_and_the_warning_counts_lost_labels(
    n, n_labels, density, n_splits, seed, shuffle
):
    Y = (np.random.default_rng(seed).random((n, n_labels)) < density).astype(np.int64)
    splitter = RareLabelSplit(n_splits, shuffle=shuffle, random_state=seed if shuffle else None)
    tests, n_warned = folds_of(splitter, Y)
    sizes = [len(test) for test in tests]
    assert max(sizes) - min(sizes) <= 1
    np.testing.assert_array_equal(np.sort(np.concatenate(tests)), np.arange(n))
    assert sum(n_warned) == n_lost_of(Y, tests)
    assert len(n_warned) <= 1


def test_three_rows_that_share_labels_do_not_fit_into_two_folds():
    Y = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 0]])
    with pytest.warns(UnseenLabelWarning, match="RareLabelSplit: 1 labels have no training"):
        list(RareLabelSplit(2).split(Y, Y))
    assert folds_of(RareLabelSplit(3), Y)[1] == []


@pytest.mark.parametrize("n_splits", [3, 10])
def test_labels_are_spread_better_than_at_random(n_splits):
    Y = power_law(2000, 1500, 5)
    expected = Y.sum(axis=0) / n_splits

    def deviation(tests):
        return np.mean([np.abs(Y[test].sum(axis=0) - expected).mean() for test in tests])

    ours, _ = folds_of(RareLabelSplit(n_splits), Y)
    assert n_lost_of(Y, ours) == 0
    at_random, _ = folds_of(KFold(n_splits, shuffle=True, random_state=0), Y)
    assert n_lost_of(Y, at_random) > 10
    assert deviation(ours) < 0.8 * deviation(at_random)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), n_splits=st.integers(2, 6), shuffle=st.booleans())
def test_classes_are_spread_evenly(seed, n_splits, shuffle):
    rng = np.random.default_rng(seed)
    y = rng.zipf(1.5, rng.integers(n_splits, 60)).clip(max=30) + 0
    y[:2] = 1, 2
    splitter = RareLabelSplit(n_splits, shuffle=shuffle, random_state=0 if shuffle else None)
    tests, n_warned = folds_of(splitter, np.array([f"class {one}" for one in y]))
    assert not n_warned
    for one in np.unique(y):
        counts = [np.sum(y[test] == one) for test in tests]
        assert max(counts) - min(counts) <= 1 or np.sum(y == one) == 1


def bytes_of(splitter, Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenLabelWarning)
        splits = list(splitter.split(np.zeros((Y.shape[0], 1)), Y))
    return [part.tobytes() for fold in splits for part in fold]


def test_folds_depend_on_the_seed_alone():
    Y = power_law(300, 400, 4)

    def shuffled(seed):
        return bytes_of(RareLabelSplit(3, shuffle=True, random_state=seed), Y)

    expected = shuffled(7)
    assert shuffled(7) == shuffled(np.random.RandomState(7)) == expected
    assert shuffled(8) != expected
    unsorted = Y.copy()
    for i in range(300):
        own = slice(Y.indptr[i], Y.indptr[i + 1])
        unsorted.indices[own] = Y.indices[own][::-1]
    expected = bytes_of(RareLabelSplit(3), Y)
    for other in (sp.csc_array(Y), Y.astype(np.int8), Y.toarray(), unsorted):
        assert bytes_of(RareLabelSplit(3), other) == expected


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RareLabelSplit(1), "RareLabelSplit: n_splits must be .* at least 2. Got 1"),
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
        (["a"] * 6, "y holds one class, 'a'; at least two classes are needed"),
    ],
)
def test_bad_targets(y, message):
    with pytest.raises(ValueError, match=rf"^RareLabelSplit.*{message}"):
        list(RareLabelSplit(3).split(np.zeros((6, 1)), y))


def test_bad_folds():
    Y = np.eye(4, dtype=int)
    with pytest.raises(ValueError, match=r"n_splits must be at most .* rows, 4. Got n_splits=5"):
        list(RareLabelSplit(5).split(Y, Y))
    with pytest.raises(ValueError, match=r"groups must be None: GroupKFold keeps groups"):
        list(RareLabelSplit(2).split(Y, Y, groups=[0, 0, 1, 1]))
