"""Named arrays of a network: what they may be, and their plain state."""

import pickle

import numpy as np
import pytest

from sklearn_xc._declared_state import Lengths, MisfitError, Record, check_attribute, check_record
from sklearn_xc._declared_state import declares as declares_of
from sklearn_xc._plain_state import KIND, as_plain, from_plain
from sklearn_xc.weights.tensors import Tensors


def arrays():
    return {
        "a.weight": np.ones((3, 4), np.float32), "a.bias": np.zeros(4, np.float16),
        "empty": np.empty((2, 0)), "n": np.array(5), "is": np.array([True]),
    }  # fmt: skip


def test_its_plain_state_shares_arrays():
    tensors, held = Tensors(arrays()), np.arange(3)
    flat = as_plain({"one": tensors, "two": [tensors], "held": held})
    assert flat["one"] is flat["two"][0]
    assert flat["one"][KIND] == "Tensors"
    back = from_plain(flat)
    assert back["one"] is back["two"][0]
    assert type(back["one"]) is Tensors
    assert list(back["one"].arrays) == list(tensors.arrays)
    for name, array in tensors.arrays.items():
        assert back["one"].arrays[name] is array
    assert back["one"].arrays is not tensors.arrays  # names may be added to one of them


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
        ({"a.bias": np.ones(3, complex)}, "must be an array of .*float32.* Got array"),
        ({"a.bias": np.ones(3, ">f4")}, "must be an array of"),
        ({"a.bias": np.array(["x"])}, "must be an array of"),
        ({"a.bias": np.array([None])}, "must be an array of"),
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
        check_record(made, Lengths(), "tensors")
        return
    with pytest.raises(MisfitError, match=says):
        check_record(made, Lengths(), "tensors")


@pytest.mark.parametrize("held", [None, [np.ones(3)], np.ones(3)])
def test_other_containers_are_refused(held):
    with pytest.raises(MisfitError, match=r"arrays: must be a dict of arrays\. Got"):
        check_record(Tensors(held), Lengths(), "tensors")


def test_an_owner_declares_it():
    @declares_of(network_=Record("Tensors"))
    class Owner:
        network_ = Tensors({"a": np.array([np.inf])})

    with pytest.raises(MisfitError, match=r"model\.network\.arrays\.a: must be finite numbers"):
        check_attribute(Owner(), "network_", Lengths(), lambda one: Lengths(), "model")
