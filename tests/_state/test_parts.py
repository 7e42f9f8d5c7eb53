"""Parts of a fit in a folder: arrays come back, and damage is noticed."""

import hashlib
import json
import os
import shutil

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc import NGAMEEmbeddingXC, OvALinearXC
from sklearn_xc._state.checkpoints import Checkpoints, opened
from sklearn_xc._state.loops import Loop, restore
from sklearn_xc._state.tensors import read_arrays
from sklearn_xc.exceptions import SavedModelError

ARRAYS = {
    "plain": np.arange(5),
    "none": np.empty((0, 3)),
    "one": np.array(3.5),
    "every second": np.arange(20.0)[::2],
    "truths": np.array([True, False]),
    "turned": np.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2),
}
KEY = {"versions": {}, "parameters": {}, "data": {"X": "some"}}


def checkpoints(folder, fit="key"):
    return Checkpoints(folder, "OvALinearXC", [], fit)


class TestParts:
    def test_arrays_come_back(self, tmp_path):
        checkpoints(tmp_path).put("x", ARRAYS)
        again = checkpoints(tmp_path).get("x")
        assert again.keys() == ARRAYS.keys()
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(again[name], array)
            assert again[name].dtype == array.dtype
            assert again[name].flags.writeable
        assert checkpoints(tmp_path).get("y") is None
        assert checkpoints(tmp_path, "another key").get("x") is None

    def test_damage_anywhere_is_noticed(self, tmp_path):
        checkpoints(tmp_path).put("x", {"a": np.arange(4), "b": np.ones(3)})
        (path,) = tmp_path.iterdir()
        content = path.read_bytes()
        expected = checkpoints(tmp_path).get("x")
        for i in range(len(content)):
            harmed = bytearray(content)
            harmed[i] ^= 1 << (i % 8)
            path.write_bytes(harmed)
            found = checkpoints(tmp_path).get("x")
            # White space of the header does not count.
            assert found is None or all((found[name] == expected[name]).all() for name in expected)
            path.write_bytes(content[:i])
            assert checkpoints(tmp_path).get("x") is None
        path.write_bytes(content + b"x")
        assert checkpoints(tmp_path).get("x") is None

    @pytest.mark.parametrize("kind", ["circle", "folder", "pipe"])
    @pytest.mark.skipif(os.name != "posix", reason="makes links and pipes")
    def test_what_is_no_file_is_refused(self, kind, tmp_path):
        path = tmp_path / "x.safetensors"
        {
            "circle": lambda: path.symlink_to(path),
            "folder": path.mkdir,
            "pipe": lambda: os.mkfifo(path),
        }[kind]()
        with pytest.raises(SavedModelError, match=r"(is not a regular|cannot be read)"):
            checkpoints(tmp_path).get("x")


@pytest.mark.parametrize(
    "new", [None, np.zeros(4), np.zeros(3, np.float32), np.zeros((1, 3)), np.array([0, 0, np.nan])]
)
def test_arrays_that_do_not_fit_are_not_restored(new):
    arrays = {"a": np.ones(2), "b": np.ones(3)}
    with pytest.raises(SavedModelError, match="'b' does not fit"):
        restore(arrays, {"a": np.zeros(2)} | ({} if new is None else {"b": new}))
    assert (arrays["a"] == 1).all()


def test_a_loop_keeps_an_epoch_a_minute_and_its_end(tmp_path, monkeypatch):
    from sklearn_xc._state import loops

    now, kept = [0.0], []

    def state():
        kept.append(now[0])
        return {"a": np.zeros(1)}

    monkeypatch.setattr(loops.time, "monotonic", lambda: now[0])
    loop = Loop(checkpoints(tmp_path)).within("some")
    for now[0] in (30.0, 59.0, 61.0, 100.0, 121.5):
        loop.put(state)
    loop.put(state, is_final=True)
    assert kept == [61.0, 121.5, 121.5]
    assert loop.get()["a"].tolist() == [0]


class TestOpened:
    def test_settings_are_those_of_the_first_call_once_a_part_is_kept(self, tmp_path):
        opened(tmp_path, "SomeXC", KEY, [1])
        kept = opened(tmp_path, "SomeXC", KEY, [2])
        assert kept.settings == [2]
        kept.put("x", {"a": np.zeros(1)})
        again = opened(tmp_path, "SomeXC", KEY, [3])
        assert again.settings == [2]
        assert again.get("x") is not None

    def test_another_fit_is_refused_by_name(self, tmp_path):
        opened(tmp_path, "SomeXC", KEY, [1]).put("x", {"a": np.zeros(1)})
        for key, says in (
            (KEY | {"data": {"X": "other"}}, "other data: X is not the same. Give"),
            (KEY | {"parameters": {"C": 2.0}}, "other parameters: C was None, is 2.0. Give"),
        ):
            with pytest.raises(SavedModelError, match=says):
                opened(tmp_path, "SomeXC", key, [1])

    @pytest.mark.parametrize("content", ["", "[]", "{}", '{"settings": 3}', "[" * 10**5])
    def test_a_damaged_description_is_refused(self, content, tmp_path):
        opened(tmp_path, "SomeXC", KEY, [1]).put("x", {"a": np.zeros(1)})
        (tmp_path / "fit.json").write_text(content)
        with pytest.raises(SavedModelError, match=r"fit\.json is damaged\. Remove the folder"):
            opened(tmp_path, "SomeXC", KEY, [1])

    def test_other_settings_in_the_description_are_another_fit(self, tmp_path):
        opened(tmp_path, "SomeXC", KEY, [1]).put("x", {"a": np.zeros(1)})
        known = json.loads((tmp_path / "fit.json").read_text())
        (tmp_path / "fit.json").write_text(json.dumps(known | {"settings": [9]}))
        assert opened(tmp_path, "SomeXC", KEY, [1]).get("x") is None


_rng = np.random.default_rng(0)
X = sp.csr_array(_rng.random((60, 20)) * (_rng.random((60, 20)) < 0.3), dtype=np.float32)
Y = sp.csr_array((_rng.random((60, 12)) < 0.3).astype(np.int8))
FITS = {
    "one-vs-all": lambda folder: OvALinearXC(checkpoint_dir=folder, loss="logistic"),
    "embedding": lambda folder: NGAMEEmbeddingXC(
        embedding_dim=8, max_iter=2, classifier_max_iter=2, random_state=0, checkpoint_dir=folder
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("n", [20, pytest.param(300, marks=pytest.mark.slow)])
def test_crafted_parts_run_on_or_are_refused(name, n, tmp_path):
    """Their checksums fit: the fit is refused, or ends with finite scores."""
    FITS[name](tmp_path / "fit").fit(X, Y)
    key = hashlib.sha256((tmp_path / "fit" / "fit.json").read_bytes()).hexdigest()
    rng, n_refused = np.random.default_rng(0), 0
    for number in range(n):
        folder = tmp_path / f"{number}"
        shutil.copytree(tmp_path / "fit", folder)
        parts = sorted(folder.glob("*.safetensors"))
        path = parts[rng.integers(len(parts))]
        arrays = {key: array.copy() for key, array in read_arrays(path)[0].items()}
        of = sorted(arrays)[rng.integers(len(arrays))]
        array = arrays[of]
        match rng.integers(4):
            case 0:
                del arrays[of]
            case 1:
                arrays[of] = array.astype(np.float16)
            case 2:
                arrays[of] = array.reshape(-1)[: rng.integers(array.size + 1)]
            case 3 if array.size and array.dtype != bool:
                large = np.nan if array.dtype.kind == "f" else min(2**30, np.iinfo(array.dtype).max)
                array.flat[rng.integers(array.size)] = large
        Checkpoints(folder, "", [], key).put(path.stem, arrays)
        try:
            model = FITS[name](folder).fit(X, Y)
            assert np.isfinite(model.predict_topk(X)[1]).all()
        except SavedModelError:
            n_refused += 1
        shutil.rmtree(folder)
    print(f"{n_refused} of {n} refused")
