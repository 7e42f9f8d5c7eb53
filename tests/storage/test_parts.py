"""Parts of a fit in a folder: arrays come back, and damage is noticed."""

import hashlib
import json
import os
import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.storage.checkpoints import Checkpoints, _node, opened
from sklearn_xc.storage.loops import Loop, restore

ARRAYS = {
    "plain": np.arange(5), "by column": np.asfortranarray(np.random.default_rng(0).random((3, 4))),
    "none": np.empty((0, 3)), "one": np.array(3.5), "every second": np.arange(20.0)[::2],
    "truths": np.array([True, False]),
    "turned": np.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2), "read": np.arange(3),
}  # fmt: skip
ARRAYS["read"].flags.writeable = False


class TestParts:
    def checkpoints(self, folder):
        return Checkpoints(folder, "OvALinearXC", [])

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

    @pytest.mark.parametrize(
        ("dtype", "shape"),
        [
            ("|O", [1]), ("|S0", [9]), ("|V0", [9]), ("<U1", [1]), ("<M8[s]", [1]), ("f4,f4", [1]),
            ("<f8", [-1]), ("<f8", [2**62, 4]), ("<f8", [0, 10**30]), ("<f8", [1] * 65),
            ("<f8", [1.0]), ("<f8", "1"), ({"names": ["a"], "formats": ["O"]}, [1]), (None, [1]),
            ("|b1", [8]),
        ],
    )  # fmt: skip
    def test_crafted_tables_are_damage(self, dtype, shape, tmp_path):
        table = json.dumps({"a": [dtype, shape, "C"]}).encode()
        body = len(table).to_bytes(8, "little") + table
        body += bytes(-(32 + len(body)) % 64) + b"\x02" * 8
        (tmp_path / "x.part").write_bytes(hashlib.sha256(body).digest() + body)
        assert self.checkpoints(tmp_path).get("x") is None

    @pytest.mark.parametrize("kind", ["link", "circle", "folder", "pipe"])
    @pytest.mark.skipif(os.name != "posix", reason="makes links and pipes")
    def test_what_is_no_file_is_refused(self, kind, tmp_path):
        path, other = tmp_path / "x.part", tmp_path / "other"
        other.write_text("mine")
        match kind:
            case "link":
                path.symlink_to(other)
            case "circle":
                path.symlink_to(path)
            case "folder":
                path.mkdir()
            case "pipe":
                os.mkfifo(path)
        with pytest.raises(
            SavedModelError, match=r"x\.part: (is a link|is not a regular|cannot be read)"
        ):
            self.checkpoints(tmp_path).get("x")
        assert other.read_text() == "mine"


@pytest.mark.parametrize(
    "new", [None, np.zeros(4), np.zeros(3, np.float32), np.zeros((1, 3)), np.array([0, 0, np.nan])]
)
def test_arrays_that_do_not_fit_are_not_restored(new):
    arrays = {"a": np.ones(2), "b": np.ones(3)}
    with pytest.raises(SavedModelError, match="'b' does not fit"):
        restore(arrays, {"a": np.zeros(2)} | ({} if new is None else {"b": new}))
    assert (arrays["a"] == 1).all()


def test_a_loop_keeps_an_epoch_a_minute_and_its_end(tmp_path, monkeypatch):
    from sklearn_xc.storage import loops

    now, kept = [0.0], []

    def state():
        kept.append(now[0])
        return {"a": np.zeros(1)}

    monkeypatch.setattr(loops.time, "monotonic", lambda: now[0])
    loop = Loop(Checkpoints(tmp_path, "SomeXC", [])).within("some")
    for now[0] in (30.0, 59.0, 61.0, 100.0, 121.5):
        loop.put(state)
    loop.put(state, is_final=True)
    assert kept == [61.0, 121.5, 121.5]
    assert loop.get()["a"].tolist() == [0]


def test_a_worker_keeps_nothing_in_a_folder_of_another_fit(tmp_path):
    identity = {"data": {"X": "some"}, "parameters": {}, "versions": {}}
    with opened(tmp_path / "a", "SomeXC", identity, [1]) as kept:
        there = pickle.loads(pickle.dumps(Loop(kept, "x"))).where_shared()
        there.put(lambda: {"a": np.zeros(1)}, is_final=True)
        assert there.get() is not None
        other = identity | {"data": {"X": "other"}}
        with opened(tmp_path / "b", "SomeXC", other, [1]):
            for folder in ("b", "none"):
                kept.folder = tmp_path / folder
                assert Loop(kept, "x").where_shared().get() is None


def test_a_fit_is_known_in_processes_with_other_hashes():
    """Sets of texts have another order in each process."""
    code = (
        "from sklearn_xc.storage.checkpoints import _node\n"
        "class Own: pass\n"
        "own = Own(); own.words = set('abcdefgh'); own.rest = lambda w: w in {'a', 'b', 'c', 'd'}\n"
        "print(_node(own))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(3)
    }
    assert len(printed) == 1


class Own:
    """An object of a class that no file can name."""

    def __init__(self, **state):
        self.__dict__.update(state, itself=self)


def test_objects_of_other_classes_are_told_apart():
    def made(number):
        def inner(x):
            return [x + number for _ in range(2)]

        parts = {"list": [Own(a=number)], "partial": partial(max, number), "inner": inner}
        return [Own(**parts), Own(a=np.arange(number)), partial(inner, 1), Own(a=number).__init__]

    for one, other, again in zip(made(1), made(2), made(1), strict=True):
        assert _node(one) == _node(again) != _node(other)
        json.dumps(_node(one))
