"""What all samplers promise, over the registry; then what each does."""

import dataclasses

import numpy as np
import pytest

from sklearn_xc.embedding.samplers import SAMPLERS

each_sampler = pytest.mark.parametrize("name", SAMPLERS)


def refuse():
    raise AssertionError("no embeddings should be read")


def blind(state):
    """Return the state without its embeddings."""
    return dataclasses.replace(
        state, instances=refuse, labels=refuse, initial=refuse, last_seen=refuse
    )


def started(name, n_epochs=30, batch_size=32, seed=0, n_jobs=None, n=300, **parameters):
    """Return a sampler that has started."""
    sampler = SAMPLERS[name](batch_size=batch_size, **parameters)
    sampler.start(n, n_epochs, seed, n_jobs)
    return sampler


def outcome(sampler, epoch, n):
    """Return the mini-batches of an epoch and all negatives, as bytes."""
    negatives = sampler.negatives(np.arange(n))
    batches = [batch.tobytes() for batch in sampler.batches(epoch)]
    return batches, None if negatives is None else negatives.tobytes()


def run(sampler, epochs, state):
    """Return the outcome of each epoch, refreshed before it."""
    outcomes = []
    for epoch in epochs:
        sampler.refresh(epoch, state)
        outcomes.append(outcome(sampler, epoch, state.n))
    return outcomes


@each_sampler
class TestEach:
    def test_each_instance_is_in_one_mini_batch(self, name, make_state):
        for n, batch_size in ((1, 2), (7, 7), (64, 7), (64, 1000), (300, 64), (300, 2)):
            state, sampler = make_state(n), started(name, batch_size=batch_size, n=n)
            for epoch in (0, 1, 6, 11):
                sampler.refresh(epoch, state)
                batches = list(sampler.batches(epoch))
                assert all(batch.dtype == np.int64 for batch in batches)
                np.testing.assert_array_equal(np.sort(np.concatenate(batches)), np.arange(n))
                sizes = [len(batch) for batch in batches]
                assert sizes[:-1] == [batch_size] * (-(-n // batch_size) - 1)

    def test_what_it_reads_and_gives_is_what_it_says(self, name, make_state):
        sampler, state = started(name), make_state()
        asked = {
            each: refuse
            for each in ("instances", "last_seen", "initial", "labels")
            if each not in sampler.reads
        }
        run(sampler, range(7), dataclasses.replace(state, **asked))
        negatives = sampler.negatives(np.arange(9))
        assert (0 if negatives is None else negatives.shape[1]) == sampler.n_negatives

    def test_an_epoch_can_be_repeated_and_the_next_differs(self, name, make_state):
        state = make_state()
        once = run(started(name, batch_size=32, seed=3), range(8), state)
        assert run(started(name, batch_size=32, seed=3), range(8), state) == once
        assert len({str(batches) for batches, _ in once}) == 8
        other = run(started(name, batch_size=32, seed=4), range(8), state)
        assert all(a[0] != b[0] for a, b in zip(once, other, strict=True))

    def test_threads_change_nothing(self, name, make_state):
        state = make_state(1500)
        once = run(started(name, n=1500, n_jobs=1), [0, 1], state)
        for n_jobs in (None, 3):
            assert run(started(name, n_jobs=n_jobs, n=1500), [0, 1], state) == once

    def test_embeddings_are_read_when_due_alone(self, name, make_state):
        state = make_state()
        sampler = started(name, n_epochs=10_000)
        first = 1 if name == "ngame" else 0
        run(sampler, range(first), blind(state))
        run(sampler, [first], state)
        run(sampler, range(first + 1, first + 5), blind(state))
        run(sampler, [first + 5], state)


@pytest.mark.parametrize("name", ["ngame", "ance", "tas"])
def test_a_checkpoint_has_what_a_sampler_found(name, make_state):
    state = make_state()
    sampler, resumed = started(name, seed=3), started(name, seed=3)
    expected = run(sampler, range(9), state)
    run(again := started(name, seed=3), range(4), state)
    resumed._resume(again._kept())
    assert run(resumed, range(4, 9), state) == expected[4:]


@pytest.mark.parametrize(
    ("n", "size"), [(1, 64), (12_800, 64), (20_000, 100), (320_000, 1600), (10**7, 1600)]
)
def test_automatic_batch_size(n, size):
    """A two-hundredth of the instances, from 64 to 1600."""
    assert started("in_batch", batch_size="auto", n=n).batch_size_ == size
    assert started("in_batch", batch_size=7, n=n).batch_size_ == 7


class TestNgame:
    def test_curriculum(self):
        def sizes(n_epochs, batch_size=100):
            sampler = started("ngame", n_epochs, batch_size)
            return [sampler.cluster_size_at(epoch) for epoch in range(n_epochs)]

        assert sizes(36) == [8] * 3 + [16] * 3 + [32] * 3 + [64] * 27
        assert sizes(5) == [8, 16, 32, 64, 64]
        assert started("ngame", 1, 100).cluster_size_at(100_000) == 64
        assert sizes(36, batch_size=5) == [5] * 36

    def test_a_given_size_stays(self):
        sampler = started("ngame", batch_size=100, cluster_size=20)
        assert {sampler.cluster_size_at(epoch) for epoch in range(36)} == {20}
        assert started("ngame", batch_size=10, cluster_size=20).cluster_size_at(0) == 10

    @pytest.mark.parametrize(("moves", "read"), [(True, [1, 6, 11, 16, 21]), (False, [0])])
    def test_clusters_grow_between_clusterings(self, moves, read, make_state):
        state, seen = make_state(), []
        last_seen = state.last_seen
        epoch = 0
        state = dataclasses.replace(
            state, last_seen=lambda: seen.append(epoch) or last_seen(), moves=moves
        )
        sampler = started("ngame", 48, batch_size=64, refresh_interval=5)
        for epoch in range(26):
            sampler.refresh(epoch, state)
            if moves and epoch == 0:
                random = started("in_batch", batch_size=64)
                random.refresh(0, state)
                assert outcome(sampler, 0, state.n) == outcome(random, 0, state.n)
                continue
            sizes = np.diff(sampler._starts_at(epoch))
            assert sizes.max() <= sampler.cluster_size_at(epoch) < 2 * sizes.max() + 2
            assert sizes.max() - sizes.min() <= sampler.cluster_size_at(epoch) // 8
        assert seen == read

    @pytest.mark.parametrize(("n", "cluster_size"), [(320, 16), (313, 16), (300, 20), (290, 64)])
    def test_clusters_stay_whole_but_for_a_few(self, n, cluster_size, make_state):
        state, batch_size = make_state(n), 64
        sampler = started("ngame", batch_size=batch_size, cluster_size=cluster_size, n=n)
        sampler.refresh(1, state)
        rows, starts = sampler._rows, sampler._starts_at(1)
        sizes = np.diff(starts)
        assert sizes.max() <= cluster_size
        assert sizes.max() - sizes.min() <= 1
        cluster = np.empty(n, np.int64)
        cluster[rows] = np.repeat(np.arange(len(sizes)), sizes)
        batches = list(sampler.batches(3))
        parts = sum(len(np.unique(cluster[batch])) for batch in batches)
        # Without singles each cluster is in one mini-batch; a single adds a part.
        n_whole = batch_size // sizes.max()
        n_single = batch_size - n_whole * sizes.min()
        assert parts <= len(sizes) + n_single * len(batches)
        for batch in batches[:-1]:
            counts = np.bincount(cluster[batch], minlength=len(sizes))
            assert (counts == sizes)[counts > 0].sum() >= n_whole - (n % batch_size != 0)

    def test_near_instances_are_together(self, make_state):
        state = make_state(640)
        V = state.instances()

        def mean_product(cluster_size):
            sampler = started("ngame", batch_size=32, cluster_size=cluster_size, n=640)
            sampler.refresh(1, state)
            return np.mean([(V[batch] @ V[batch].T).mean() for batch in sampler.batches(1)])

        alone, few, all_ = (mean_product(size) for size in (1, 8, 32))
        assert alone + 0.05 < few < all_ - 0.1


class TestAnce:
    @pytest.mark.parametrize("n_negatives", [1, 38, 50])
    def test_negatives_are_those_of_brute_force(self, n_negatives, make_state):
        state = make_state()
        sampler = started("ance", batch_size=32, n_negatives=n_negatives)
        sampler.refresh(0, state)
        rows = np.random.default_rng(0).permutation(300)[:77]
        found = sampler.negatives(rows)
        assert found.dtype == np.int32
        assert found.shape == (77, n_negatives)
        indptr, labels = state.positives
        scores = state.instances().astype(float) @ state.labels().astype(float).T
        for row, negatives in zip(rows, found, strict=True):
            own = labels[indptr[row] : indptr[row + 1]]
            ranked = np.argsort(-scores[row])
            wrong = ranked[~np.isin(ranked, own)][:n_negatives].tolist()
            assert negatives.tolist() == wrong + [-1] * (n_negatives - len(wrong))


class TestTas:
    def test_a_mini_batch_is_a_cluster(self, make_state):
        state = make_state(320)
        sampler = started("tas", batch_size=32, n=320)
        sampler.refresh(0, state)
        first, second = ({frozenset(b) for b in sampler.batches(e)} for e in (0, 1))
        assert len(first) == 10
        assert first == second


class TestOrderedSgd:
    @pytest.mark.parametrize(
        ("share", "n", "q"), [(0.5, 8, 4), (0.25, 8, 2), (0.35, 8, 3), (1.0, 3, 3)]
    )
    def test_the_largest_losses_count(self, share, n, q):
        sampler = started("o_sgd", batch_size=8, share=share)
        losses = np.random.default_rng(0).permutation(n).astype(np.float32)
        np.testing.assert_array_equal(sampler.select(losses), losses >= n - q)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("ngame", {"cluster_size": 2.0}),
        ("in_batch", {"batch_size": 1}),
        ("ance", {"index": "fast"}),
        ("tas", {"cluster_size": 0}),
        ("o_sgd", {"share": 1.1}),
    ],
    ids=str,
)
def test_parameters_out_of_range(name, parameters):
    parameter, kind = next(iter(parameters)), SAMPLERS[name].__name__
    message = f"The '{parameter}' parameter of {kind} must be|{kind}: {parameter} must be"
    with pytest.raises(ValueError, match=message):
        started(name, **parameters)
