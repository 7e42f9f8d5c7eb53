"""An index by name or by an instance of the caller's own."""

import numpy as np
import pytest

from sklearn_xc.mips import (
    INDEXES,
    ExactIndex,
    FaissIndex,
    ProductIndex,
    SphericalIndex,
    make_index,
    same_index,
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
        return np.arange(self.n)[:: -self.step][:n_candidates]


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
    assert made.query(None, 2).tolist() == [4, 2]


@pytest.mark.parametrize("index", ["sphere", 3, None, ExactIndex, object()])
def test_what_is_no_index_is_told(index):
    with pytest.raises(ValueError, match=r"Me: index must be one of 'exact', .*query.* Got "):
        make_index(index, who="Me: index")


def test_the_same_index_has_the_same_parameters():
    assert same_index("exact", "exact")
    assert same_index(ProductIndex(), ProductIndex())
    assert same_index(Last(step=2), Last(step=2))
    assert same_index(ExactIndex(offsets=np.ones(3)), ExactIndex(offsets=np.ones(3)))
    built = ProductIndex()
    built.build(np.ones((30, 4), np.float32))
    assert same_index(built, ProductIndex())


@pytest.mark.parametrize(
    "pair",
    [
        ("exact", "product"), ("exact", ExactIndex()), (ExactIndex(), "exact"),
        (ProductIndex(), ProductIndex(block_width=4)), (Last(), Last(step=2)),
        (SphericalIndex(n_clusters=3), FaissIndex(n_clusters=3)),
        (ExactIndex(offsets=np.ones(3)), ExactIndex(offsets=np.zeros(3))), (Last(), ExactIndex()),
    ],
)  # fmt: skip
def test_other_parameters_are_another_index(pair):
    assert not same_index(*pair)
