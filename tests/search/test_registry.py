"""An index by name or by an instance of the caller's own."""

import numpy as np
import pytest

from sklearn_xc import NGAMEEmbeddingXC
from sklearn_xc._input.parts import same_part
from sklearn_xc.decomposition.gradients import SearchedGradient
from sklearn_xc.embedding._ranking import ShortlistIndex
from sklearn_xc.embedding.samplers import AnceSampler
from sklearn_xc.search import (
    INDEXES,
    Candidates,
    ExactIndex,
    FaissIndex,
    ProductIndex,
    SphericalIndex,
    index_bytes,
    make_index,
)


class Last:
    """An index from outside the package: finds the last rows."""

    has_exact_scores = False

    def __init__(self, step=1):
        self.step = step

    def build(self, W, first=0, last=None, seed=0):
        self.n = len(W)

    def update(self, rows):
        pass

    def following(self, W):
        return self

    def query(self, V, n_candidates):
        labels = np.tile(np.arange(self.n, dtype=np.int32)[:: -self.step], (len(V), 1))
        labels = labels[:, :n_candidates]
        return Candidates(labels, np.zeros(labels.shape), np.full(len(V), n_candidates))


@pytest.mark.parametrize("name", INDEXES)
def test_a_name_makes_an_index_with_these_threads(name):
    made = make_index(name, n_jobs=2)
    assert type(made) is INDEXES[name]
    assert made.n_jobs == 2


def test_an_instance_is_copied_with_its_parameters_and_stays_unbuilt():
    given = ProductIndex(block_width=4)
    first, second = make_index(given, n_jobs=2), make_index(given)
    assert first.block_width == second.block_width == 4
    assert first.n_jobs is None  # its own
    first.build(np.ones((30, 4), np.float32))
    assert not hasattr(given, "_codes")
    assert not hasattr(second, "_codes")
    assert make_index(FaissIndex(n_probe=3)).n_probe == 3


def test_an_index_from_outside_the_package():
    given = Last(step=2)
    made = make_index(given)
    made.build(np.ones((5, 2)))
    assert made is not given
    assert not hasattr(given, "n")
    assert made.query(np.ones((1, 2)), 2).labels.tolist() == [[4, 2]]
    assert repr(made) == repr(given).replace(hex(id(given)), hex(id(made.index)))
    other = made.following(np.ones((5, 2)))
    assert other.query(np.ones((1, 2)), 1).labels.tolist() == [[4]]


def test_the_package_s_own_are_not_checked():
    assert type(make_index(ExactIndex())) is ExactIndex


class Answering(Last):
    """Changes one part of what it finds."""

    def __init__(self, name="labels", change=None):
        self.name, self.change = name, change
        self.step = 1

    def query(self, V, n_candidates):
        found = super().query(V, n_candidates)
        if self.name is None:
            return self.change(found)
        return found._replace(**{self.name: self.change(getattr(found, self.name))})


def with_entry(value, at=(1, 0)):
    def change(array):
        array = array.copy()
        array[at] = value
        return array

    return change


WRONG_ANSWERS = [
    (None, lambda found: found.labels, r"return Candidates\(.* Got ndarray"),
    (None, lambda found: None, r"return Candidates\(.* Got NoneType"),
    ("labels", lambda labels: labels.tolist(), "labels as an ndarray. Got list"),
    ("labels", lambda labels: labels[:, :-1], r"labels of shape \(3, 2\) .* Got shape \(3, 1\)"),
    ("labels", lambda labels: labels.astype(np.int64), "dtype int32. Got .* int64"),
    ("scores", lambda scores: scores[:-1], r"scores of shape \(3, 2\) .* Got shape \(2, 2\)"),
    ("scores", lambda scores: scores.astype(np.float32), "dtype float64. Got .* float32"),
    ("counts", lambda counts: counts[:, None], r"counts of shape \(3,\) .* Got shape \(3, 1\)"),
    ("counts", with_entry(3, 1), "counts from 0 to 2. Got 3"),
    ("counts", with_entry(-1, 1), "counts from 0 to 2. Got -1"),
    ("counts", with_entry(1, 1), "-1 behind as many as counts tells. Got 3"),
    ("labels", with_entry(5), "labels from 0 to 4. Got 5"),
    ("labels", with_entry(-1), "labels from 0 to 4. Got -1"),
    ("labels", with_entry(3), "distinct labels for each query. Got 3 more"),
]


@pytest.mark.parametrize(("name", "change", "problem"), WRONG_ANSWERS)
def test_wrong_answers_of_an_index_from_outside_are_told(name, change, problem):
    made = make_index(Answering(name, change), who="Me: index")
    made.build(np.ones((5, 2)))
    for index in (made, made.following(np.ones((5, 2)))):
        with pytest.raises(ValueError, match=rf"^Me: index: Answering.query must .*{problem}"):
            index.query(np.ones((3, 2)), 2)


def test_what_lacks_a_method_is_told():
    class Unfollowed:
        has_exact_scores = True
        build = update = query = Last.build

    message = "must be one of 'exact', 'faiss', 'product', 'spherical', .*Index.* without following"
    with pytest.raises(ValueError, match=message):
        make_index(Unfollowed())


@pytest.mark.parametrize("index", ["sphere", 3, None, ExactIndex, object()])
def test_what_is_no_index_is_told(index):
    with pytest.raises(ValueError, match=r"Me: index must be one of 'exact', .*query.* Got "):
        make_index(index, who="Me: index")


def test_the_same_part_has_the_same_parameters():
    assert same_part("exact", "exact")
    assert same_part(ProductIndex(), ProductIndex())
    assert same_part(Last(step=2), Last(step=2))
    assert same_part(ExactIndex(offsets=np.ones(3)), ExactIndex(offsets=np.ones(3)))
    built = ProductIndex()
    built.build(np.ones((30, 4), np.float32))
    assert same_part(built, ProductIndex())
    assert same_part(SearchedGradient(ProductIndex()), SearchedGradient(ProductIndex()))


@pytest.mark.parametrize(
    "pair",
    [
        ("exact", "product"), ("exact", ExactIndex()), (ExactIndex(), "exact"),
        (ProductIndex(), ProductIndex(block_width=4)), (Last(), Last(step=2)),
        (SphericalIndex(n_clusters=3), FaissIndex(n_clusters=3)),
        (ExactIndex(offsets=np.ones(3)), ExactIndex(offsets=np.zeros(3))), (Last(), ExactIndex()),
        (SearchedGradient(ProductIndex()), SearchedGradient(ProductIndex(block_width=2))),
    ],
)  # fmt: skip
def test_other_parameters_are_another_index(pair):
    assert not same_part(*pair)


def test_ngame_tells_of_wrong_answers():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 6)), np.arange(40) % 8
    wrong = Answering("labels", lambda labels: labels + 100)
    index = ShortlistIndex(X[:8], np.array([2]), wrong, None)
    with pytest.raises(ValueError, match=r"NGAMEEmbeddingXC: index: Answering.query must"):
        index.query(X, 3)
    model = NGAMEEmbeddingXC(max_iter=1, random_state=0, sampler=AnceSampler(index=wrong))
    with pytest.raises(ValueError, match=r"^AnceSampler: index: Answering.query must "):
        model.fit(X, y)


class Coded(Last):
    row_copies = 0.25


@pytest.mark.parametrize(
    ("index", "copies"),
    [
        ("exact", 0), (ExactIndex(), 0), ("product", 0.1), ("spherical", 2), (FaissIndex(), 1.5),
        (Last(), 2), (Coded(), 0.25),
    ],
    ids=["exact", "an exact one", "product", "spherical", "a faiss one", "silent", "telling"],
)  # fmt: skip
def test_how_much_memory_an_index_takes(index, copies):
    assert index_bytes(index, (1000, 20), 4) == 80_000 * copies
