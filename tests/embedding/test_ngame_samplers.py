"""Samplers by name or as instances, ours or a user's: what the estimator hands over and keeps."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator

from sklearn_xc.embedding.samplers import (
    InBatchSampler,
)


class InOrder(BaseEstimator):
    """Mini-batches of instances as they come, with a label each that is wrong; nothing of ours."""

    reads = ("labels",)
    n_negatives = 1

    def __init__(self, calls=None):
        self.calls = calls

    def start(self, n, n_epochs, seed, n_jobs):
        self.batch_size_ = 30
        self.calls.append((n, n_epochs, type(seed), type(n_jobs)))

    def refresh(self, epoch, state):
        self.state_ = state
        assert state.labels().ndim == 2

    def batches(self, epoch):
        for first in range(0, self.state_.n, self.batch_size_):
            yield np.arange(first, min(first + self.batch_size_, self.state_.n))

    def negatives(self, rows):
        indptr, labels = self.state_.positives
        first = labels[indptr[rows]]
        return np.where(first == 0, 1, 0).astype(np.int32)[:, None]

    def select(self, losses):
        return None


class SharedList(list):
    """A list that clones share."""

    def __sklearn_clone__(self):
        return self


class Repeating(InOrder):
    """The same with each label twice, the first one of the instance's own, and a place without."""

    n_negatives = 4

    def negatives(self, rows):
        indptr, labels = self.state_.positives
        wrong, own = super().negatives(rows), labels[indptr[rows]][:, None]
        return np.hstack([wrong, wrong, own, np.full_like(wrong, -1)])


class OfAll(InOrder):
    """The same labels, each named for another instance of the mini-batch."""

    n_negatives = 2

    def negatives(self, rows):
        indptr, labels = self.state_.positives
        return np.hstack([super().negatives(rows), labels[indptr[rows]][:, None]])[::-1]


def test_negatives_are_a_set_for_the_whole_mini_batch(make, documents):
    X, Y, Z = documents
    a, b = (
        make(sampler=sampler(SharedList()), label_features=Z, max_iter=3).fit(X, Y)
        for sampler in (Repeating, OfAll)
    )
    assert a.coef_.tobytes() == b.coef_.tobytes()


def test_a_users_sampler(make, documents):
    X, Y, Z = documents
    calls = SharedList()
    model = make(sampler=InOrder(calls), label_features=Z, n_jobs=2, validation_fraction=0)
    model.fit(X, Y)
    assert model.score(X, Y) > 0.6
    assert {(158, 3, int, int), (158, 2, int, int)} <= set(calls)


class Short(InBatchSampler):
    """Leaves out the first mini-batch."""

    def batches(self, epoch):
        return list(super().batches(epoch))[1:]


def test_all_instances_must_be_in_an_epoch(make, documents):
    message = r"sampler Short: batches must yield each of 143 instances once.* Got 113"
    with pytest.raises(ValueError, match=message):
        make(sampler=Short(30), label_features=documents.Z).fit(*documents[:2])


class ByLength(InBatchSampler):
    """Mini-batches of instances with about as many features as each other."""

    lengths = []  # noqa: RUF012

    def refresh(self, epoch, state):
        super().refresh(epoch, state)
        inputs = state.inputs()
        assert isinstance(inputs, csr_array)
        assert inputs.shape[0] == state.n == len(state.positives.indptr) - 1
        assert state.positives.labels.max() < state.n_labels
        self.lengths_ = np.diff(inputs.indptr)
        self.order_ = np.argsort(self.lengths_, kind="stable")

    def batches(self, epoch):
        for first in range(0, len(self.order_), self.batch_size_):
            rows = self.order_[first : first + self.batch_size_]
            self.lengths.append(self.lengths_[rows])
            yield rows


def test_by_number_of_features(make, documents):
    X, Y, Z = documents
    ByLength.lengths.clear()
    make(sampler=ByLength(batch_size=30), label_features=Z).fit(X, Y)
    assert all((np.diff(each) >= 0).all() for each in ByLength.lengths)
    assert {2, 5} & set(np.concatenate(ByLength.lengths))
