"""States of trainings as arrays: what comes back, and what is refused."""

import functools
import os
import pickle

import numpy as np
import pytest

from sklearn_xc.mips import ProductIndex, SphericalIndex
from sklearn_xc.solvers.adam import LazyAdam
from sklearn_xc.storage.checkpoints import Checkpoints
from sklearn_xc.storage.packed import pack, unpack


def there_and_back(state, own=()):
    """Return a state as it is read."""
    return unpack({name: array.copy() for name, array in pack(state, own).items()}, own)


@pytest.mark.parametrize("index", [ProductIndex(), SphericalIndex(n_clusters=5)])
def test_arrays_of_one_place_stay_one(index):
    W = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
    index.build(W)
    again = there_and_back({"index": index, "W": W})
    assert np.shares_memory(again["index"]._W, again["W"])
    assert not again["index"]._W.flags.writeable
    assert again["W"].flags.writeable
    V = W[:20] + 1
    np.testing.assert_array_equal(again["index"].query(V, 5).labels, index.query(V, 5).labels)


def test_numbers_and_objects_come_back():
    steps = LazyAdam((3, 2), np.dtype(np.float32))
    steps.first += 2
    state = {
        "steps": steps, "numbers": [1, 2.5, np.float32(0.1), np.int64(3), True, None],
        "texts": ("a", "ü"), "objects": np.array(["x", None], object), "range": range(3),
        "set": {1, 2}, "dtype": np.dtype(np.float64), "slice": slice(1, 2),
    }  # fmt: skip
    again = there_and_back(state)
    np.testing.assert_array_equal(again.pop("steps").first, steps.first)
    state.pop("steps")
    assert again.pop("objects").tolist() == state.pop("objects").tolist()
    assert again == state
    assert type(again["numbers"][2]) is np.float32


class OfAUser:
    def __init__(self, held):
        self.held = held


def test_classes_of_parts_that_were_given_are_known():
    state = {"part": OfAUser(np.arange(3))}
    with pytest.raises(TypeError, match=r"OfAUser is no class of sklearn_xc, numpy"):
        pack(state)
    again = there_and_back(state, {OfAUser.__module__})
    assert again["part"].held.tolist() == [0, 1, 2]


@pytest.mark.parametrize("value", [os.system, functools.partial(os.system, "true"), np.load, eval])
def test_what_runs_code_is_refused_when_written(value):
    with pytest.raises(TypeError, match="is no class of"):
        pack({"value": value})


class Runs:
    """Runs a command when it is unpickled."""

    def __init__(self, call):
        self.call = call

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    "call",
    [
        (os.system, ("touch here",)), (eval, ("1 + 1",)), (np.load, ("here",)),
        (getattr, ("", "join")), (pickle.loads, (b"N.",)), (np.savetxt, ("here", [1])),
    ],
)  # fmt: skip
def test_what_runs_code_is_refused_when_read(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written = np.frombuffer(pickle.dumps(Runs(call)), np.uint8)
    with pytest.raises(TypeError, match="is no class of"):
        unpack({"objects": written}, {"os"})
    assert not list(tmp_path.iterdir())


ARRAYS = {
    "plain": np.arange(5), "by column": np.asfortranarray(np.random.default_rng(0).random((3, 4))),
    "none": np.empty((0, 3)), "one": np.array(3.5), "every second": np.arange(20.0)[::2],
    "truths": np.array([True, False]), "texts": np.array(["abc", "d"]),
    "turned": np.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2), "read": np.arange(3),
}  # fmt: skip
ARRAYS["read"].flags.writeable = False


class TestParts:
    def checkpoints(self, folder):
        return Checkpoints(folder, "OvALinearXC", {})

    def test_arrays_come_back(self, tmp_path):
        self.checkpoints(tmp_path).put("x", ARRAYS)
        again = self.checkpoints(tmp_path).get("x")
        assert list(again) == list(ARRAYS)
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(again[name], array)
            assert again[name].dtype == array.dtype
            assert again[name].flags.writeable
        assert again["by column"].flags.f_contiguous

    def test_damage_anywhere_is_noticed(self, tmp_path):
        self.checkpoints(tmp_path).put("x", {"a": np.arange(4), "b": np.ones(3)})
        (path,) = tmp_path.iterdir()
        content = path.read_bytes()
        for i in range(len(content)):
            harmed = bytearray(content)
            harmed[i] ^= 1 << (i % 8)
            path.write_bytes(harmed)
            assert self.checkpoints(tmp_path).get("x") is None
            path.write_bytes(content[:i])
            assert self.checkpoints(tmp_path).get("x") is None
        path.write_bytes(content + b"x")
        assert self.checkpoints(tmp_path).get("x") is None

    def test_nothing_is_kept_after_the_end(self, tmp_path):
        checkpoints = self.checkpoints(tmp_path)
        checkpoints.is_open = False
        with pytest.raises(RuntimeError, match="OvALinearXC: the fit has ended"):
            checkpoints.put("x", {"a": np.arange(4)})
