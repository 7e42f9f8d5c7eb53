"""An index by name or by an instance of the caller's own."""

import numpy as np
import pytest

from sklearn_xc._input.parts import same_part
from sklearn_xc.decomposition.gradients import SearchedGradient
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
    given = SphericalIndex(n_clusters=4)
    first, second = make_index(given, n_jobs=2), make_index(given)
    assert first.n_clusters == second.n_clusters == 4
    assert first.n_jobs is None  # its own
    first.build(np.ones((30, 4), np.float32))
    assert not hasattr(given, "centroids_")
    assert not hasattr(second, "centroids_")
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
    ("labels", lambda labels: labels.tolist(), "labels as an ndarray .* Got list"),
    ("labels", lambda labels: labels[:, :-1], r"int32 of shape \(3, 2\). Got .* \(3, 1\)"),
    ("scores", lambda scores: scores.astype(np.float32), "scores .* float64 .* Got float32"),
    ("counts", lambda counts: counts[:, None], r"int64 of shape \(3,\). Got .* \(3, 1\)"),
    ("counts", with_entry(3, 1), r"counts from 0 to 2. Got \[2 3 2\]"),
    ("counts", with_entry(1, 1), r"-1 behind. Got \[4 3\]"),
    ("labels", with_entry(5), r"labels from 0 to 4, .* Got \[5 3\]"),
    ("labels", with_entry(3), r"distinct labels .* Got \[3 3\]"),
]


@pytest.mark.parametrize(("name", "change", "problem"), WRONG_ANSWERS)
def test_wrong_answers_of_an_index_from_outside_are_told(name, change, problem):
    made = make_index(Answering(name, change), caller="Me: index")
    made.build(np.ones((5, 2)))
    for index in (made, made.following(np.ones((5, 2)))):
        with pytest.raises(ValueError, match=rf"^Me: index: Answering.query must .*{problem}"):
            index.query(np.ones((3, 2)), 2)


@pytest.mark.parametrize("index", ["sphere", None, ExactIndex, object()])
def test_what_is_no_index_is_told(index):
    with pytest.raises(ValueError, match=r"Me: index must be one of 'exact', .*query.* Got "):
        make_index(index, caller="Me: index")


def test_the_same_part_has_the_same_parameters():
    assert same_part("exact", "exact")
    assert same_part(ProductIndex(), ProductIndex())
    assert same_part(Last(step=2), Last(step=2))
    assert same_part(ExactIndex(offsets=np.ones(3)), ExactIndex(offsets=np.ones(3)))
    built = ProductIndex()
    built.build(np.ones((30, 4), np.float32))
    assert same_part(built, ProductIndex())
    assert same_part(SearchedGradient(ProductIndex()), SearchedGradient(ProductIndex()))


class Coded(Last):
    row_copies = 0.25


@pytest.mark.parametrize(
    ("index", "copies"),
    [("exact", 0), ("product", 0.1), ("spherical", 1), (FaissIndex(), 1.5), (Last(), 2)],
    ids=["exact", "product", "spherical", "a faiss one", "silent"],
)
def test_how_much_memory_an_index_takes(index, copies):
    assert index_bytes(index, (1000, 20), 4) == 80_000 * copies
    assert index_bytes(Coded(), (1000, 20), 4) == 20_000
