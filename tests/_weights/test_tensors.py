"""Named arrays of a network."""

import pickle

import numpy as np
import pytest

from sklearn_xc._state.schema import MisfitError, Record, check_attributes
from sklearn_xc._state.schema import declares as declares_of
from sklearn_xc._weights.tensors import Tensors


def arrays():
    return {
        "a.weight": np.ones((3, 4), np.float32), "a.bias": np.zeros(4, np.float16),
        "empty": np.empty((2, 0)), "n": np.array(5), "is": np.array([True]),
    }  # fmt: skip


def test_a_pickle():
    back = pickle.loads(pickle.dumps(Tensors(arrays())))
    for name, array in arrays().items():
        found = back.arrays[name]
        assert (found.dtype, found.tobytes()) == (array.dtype, array.tobytes())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, ""),
        ({"a.bias": np.array([1, np.nan])}, r"tensors\.arrays\.a\.bias: must be finite numbers"),
        ({"a.bias": np.array(np.inf)}, "must be finite numbers"),
        ({"a.bias": np.ones((4, 3)).T}, "must be an array of"),
        ({"a.bias": np.ones(6)[::2]}, "must be an array of"),
        ({"a.bias": None}, r"a\.bias: must be an array of .* Got None"),
        ({"a.bias": {"b": np.ones(3)}}, "must be an array of"),
        ({3: np.ones(3)}, "arrays: must be a dict of arrays"),
    ],
)
def test_what_is_refused(change, says):
    made = Tensors(arrays() | change)
    if not says:
        check_attributes(made, "tensors")
        return
    with pytest.raises(MisfitError, match=says):
        check_attributes(made, "tensors")


@pytest.mark.parametrize("held", [None, [np.ones(3)], np.ones(3)])
def test_other_containers_are_refused(held):
    with pytest.raises(MisfitError, match=r"arrays: must be a dict of arrays\. Got"):
        check_attributes(Tensors(held), "tensors")


def test_an_owner_declares_it():
    @declares_of(network_=Record("Tensors"))
    class Owner:
        network_ = Tensors({"a": np.array([np.inf])})

    with pytest.raises(MisfitError, match=r"model\.network\.arrays\.a: must be finite numbers"):
        check_attributes(Owner(), "model")
