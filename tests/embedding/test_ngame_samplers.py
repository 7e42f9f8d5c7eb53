"""Samplers by name or as instances, ours or a user's: what the estimator hands over and keeps."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, KFold

from sklearn_xc.mips import SphericalIndex
from sklearn_xc.samplers import (
    SAMPLERS,
    AnceSampler,
    InBatchSampler,
    NgameSampler,
    OrderedSgdSampler,
)


class InOrder(BaseEstimator):
    """Mini-batches of instances as they come, with a label each that is wrong; nothing of ours."""

    reads = ("labels",)
    n_negatives = 1

    def __init__(self, told=None):
        self.told = told

    def start(self, batch_size, n_epochs, seed, n_jobs):
        self.batch_size_ = batch_size
        self.told.append((batch_size, n_epochs, type(seed), type(n_jobs)))

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


class Told(list):
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
        make(sampler=sampler(Told()), label_features=Z, max_iter=3).fit(X, Y)
        for sampler in (Repeating, OfAll)
    )
    assert a.coef_.tobytes() == b.coef_.tobytes()


@pytest.mark.parametrize("name", sorted(SAMPLERS))
def test_a_name_is_an_instance_with_its_defaults(name, make, documents):
    X, Y, Z = documents
    a, b = (
        make(sampler=sampler, label_features=Z, max_iter=8).fit(X, Y)
        for sampler in (name, SAMPLERS[name]())
    )
    assert a.coef_.tobytes() == b.coef_.tobytes()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (NgameSampler(refresh_interval=2), NgameSampler(refresh_interval=1)),
        (AnceSampler(), AnceSampler(n_negatives=2)),
        (AnceSampler(1, n_negatives=1), AnceSampler(3, n_negatives=1)),
        (OrderedSgdSampler(), OrderedSgdSampler(share=0.2)),
    ],
    ids=str,
)
def test_parameters_matter(one, other, make, documents):
    X, Y, Z = documents
    a, b = (
        make(sampler=s, label_features=Z, max_iter=8, batch_size=5).fit(X, Y) for s in (one, other)
    )
    assert a.coef_.tobytes() != b.coef_.tobytes()


@pytest.mark.parametrize("n_shards", [1, 3])
def test_an_instance_stays(n_shards, make, documents):
    X, Y, Z = documents
    index = SphericalIndex(4)
    sampler = AnceSampler(index=index)
    before = dict(vars(sampler)), dict(vars(index))
    model = make(sampler=sampler, label_features=Z, n_shards=n_shards).fit(X, Y)
    model.partial_fit(X, Y)
    assert (vars(sampler), vars(index)) == before
    assert model.sampler is sampler
    assert clone(model).sampler.get_params()["refresh_interval"] == 5


@pytest.mark.parametrize("n_shards", [1, 3])
def test_a_users_sampler(n_shards, make, documents):
    X, Y, Z = documents
    told = Told()
    model = make(sampler=InOrder(told), label_features=Z, n_shards=n_shards, n_jobs=2)
    model.fit(X, Y)
    assert model.score(X, Y) > 0.6
    assert (30, 3, int, int) in told
    assert (30, 2, int, int) in told
    model.partial_fit(X, Y)
    assert told[-1] == (30, 1, int, int)


def test_memory_knows_further_negatives(make, documents):
    X, Y, Z = documents
    own = {"label_features": Z, "batch_size": 2}
    every = np.arange(160)

    def sizes(sampler):
        model = make(sampler=sampler, **own).fit(X, Y)
        examples = model._examples(model._instances(X), _targets(model, Y), np.ones(X.shape[0]))
        return model._sizes(examples, every[: len(examples.weight)], every[:0], None)

    assert sizes("in_batch").n_pool == 2
    assert sizes(AnceSampler(n_negatives=3)).n_pool == 2 * 4
    assert sizes(InOrder(Told())).n_pool == 2 * 2
    assert set(sizes("ance").reads) == {"instances", "labels"}


def _targets(model, Y):
    from sklearn_xc._checks import check_further_targets

    return check_further_targets(model, Y, Y.shape[0])


@pytest.mark.parametrize("reads", ["labels", ("instances", "scores"), [1]])
def test_what_it_reads_must_be_there(reads, make, documents):
    class Strange(InBatchSampler):
        pass

    Strange.reads = reads
    with pytest.raises(ValueError, match=r"sampler: Strange.reads must be a collection .* Got "):
        make(sampler=Strange()).fit(*documents[:2])


def test_a_search_over_its_parameters(make, documents):
    X, Y, _ = documents
    grid = {"sampler__cluster_size": [None, 4]}
    search = GridSearchCV(make(), grid, cv=KFold(2)).fit(X, Y.toarray())
    assert search.best_params_["sampler__cluster_size"] in (None, 4)
