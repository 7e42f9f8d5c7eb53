"""Parts of a fit in a folder: arrays come back, and damage is noticed."""

import hashlib
import json
import os
import shutil
import signal

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc import NGAMEEmbeddingXC, OvALinearXC
from sklearn_xc._state import checkpoints
from sklearn_xc._state.checkpoints import Checkpoints, Loop, key_of, restore
from sklearn_xc._state.files import read_arrays
from sklearn_xc.exceptions import SavedModelError

ARRAYS = {
    "plain": np.arange(5),
    "none": np.empty((0, 3)),
    "one": np.array(3.5),
    "every second": np.arange(20.0)[::2],
    "bools": np.array([True, False]),
    "transposed": np.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2),
}
KEY = {"sklearn_xc": "1", "C": 1.0, "X": ["digest"]}


def open_checkpoints(folder, key=KEY, settings=(1,)):
    return Checkpoints(folder, "SomeXC", key, list(settings))


def test_a_fit_is_known_by_versions_and_the_processor():
    assert {"sklearn_xc", "numpy", "numba", "processor"} <= key_of(OvALinearXC(), {}).keys()


def test_arrays_come_back(tmp_path):
    open_checkpoints(tmp_path).put("x", ARRAYS)
    again = open_checkpoints(tmp_path).get("x")
    assert again.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(again[name], array)
        assert again[name].dtype == array.dtype
        assert again[name].flags.writeable
    assert open_checkpoints(tmp_path).get("y") is None


def test_damage_anywhere_is_noticed(tmp_path):
    kept = open_checkpoints(tmp_path)
    kept.put("x", {"a": np.arange(4), "b": np.ones(3)})
    (path,) = tmp_path.glob("x.*")
    content, expected = path.read_bytes(), kept.get("x")
    for i in range(len(content)):
        harmed = bytearray(content)
        harmed[i] ^= 1 << (i % 8)
        path.write_bytes(harmed)
        found = kept.get("x")
        # White space of the header does not count.
        assert found is None or all((found[name] == expected[name]).all() for name in expected)
        path.write_bytes(content[:i])
        assert kept.get("x") is None


@pytest.mark.skipif(os.name != "posix", reason="makes a pipe")
def test_a_pipe_is_refused(tmp_path):
    kept = open_checkpoints(tmp_path)
    os.mkfifo(tmp_path / "x.safetensors")
    with pytest.raises(SavedModelError, match="is not a regular file"):
        kept.get("x")
    (tmp_path / "x.safetensors").unlink()
    (tmp_path / "fit.json").unlink()
    os.mkfifo(tmp_path / "fit.json")
    with pytest.raises(SavedModelError, match="is not a regular file"):
        open_checkpoints(tmp_path)


def test_a_full_disk_leaves_earlier_parts(tmp_path, full_disk):
    kept = open_checkpoints(tmp_path)
    kept.put("x", {"a": np.zeros(3)})
    with full_disk(after=0), pytest.raises(OSError, match="No space left"):
        kept.put("y", {"a": np.zeros(3)})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fit.json", "x.safetensors"]


def test_the_settings_of_the_first_call_stay_once_a_part_is_kept(tmp_path):
    open_checkpoints(tmp_path, settings=[1])
    kept = open_checkpoints(tmp_path, settings=[2])
    assert kept.settings == [2]
    kept.put("x", {"a": np.zeros(1)})
    assert open_checkpoints(tmp_path, settings=[3]).settings == [2]


@pytest.mark.parametrize(
    ("change", "text"),
    [({"X": ["other"]}, "another fit: X is not the same. Give"), ({"C": 2.0}, "C was 1.0, is 2.0")],
)
def test_another_fit_is_refused_by_name(change, text, tmp_path):
    open_checkpoints(tmp_path).put("x", {"a": np.zeros(1)})
    with pytest.raises(SavedModelError, match=text):
        open_checkpoints(tmp_path, KEY | change)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"settings": [-1]}', "[" * 10**5])
def test_a_damaged_description_is_refused(content, tmp_path):
    open_checkpoints(tmp_path).put("x", {"a": np.zeros(1)})
    (tmp_path / "fit.json").write_text(content)
    with pytest.raises(SavedModelError, match=r"fit\.json is damaged\. Remove the folder"):
        open_checkpoints(tmp_path)


def test_a_part_under_another_description_is_missing(tmp_path):
    open_checkpoints(tmp_path).put("x", {"a": np.zeros(1)})
    known = json.loads((tmp_path / "fit.json").read_text())
    (tmp_path / "fit.json").write_text(json.dumps(known | {"settings": [9]}))
    assert open_checkpoints(tmp_path).get("x") is None


@pytest.mark.parametrize("name", ["mine", "mine.json", "mine.tmp", ".tmpfile"])
def test_a_folder_with_other_files_is_refused(name, tmp_path):
    (tmp_path / name).touch()
    with pytest.raises(FileExistsError, match=rf"holds other files, such as .*{name}"):
        open_checkpoints(tmp_path)


def test_a_fit_killed_while_it_writes_goes_on(tmp_path):
    resource = pytest.importorskip("resource")  # not on Windows
    checkpoints, model = tmp_path / "checkpoints", tmp_path / "model"
    saved, arrays = OvALinearXC().fit(X, Y), {"a": np.zeros(10**5)}
    for write in (
        lambda: open_checkpoints(checkpoints).put("x", arrays),
        lambda: saved.save(model),
    ):
        child = os.fork()
        if not child:
            try:
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))
                signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # kills it in the midst of a file
                write()
            finally:
                os._exit(0)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert ended == -signal.SIGXFSZ
    assert [path.suffix for path in checkpoints.iterdir()].count("") == 1
    kept = open_checkpoints(checkpoints)
    assert kept.get("x") is None
    kept.put("x", arrays)
    assert kept.get("x") is not None
    assert [path.suffix for path in model.iterdir()] == [""]
    saved.save(model)


@pytest.mark.parametrize(
    "new", [None, np.zeros(4), np.zeros(3, np.float32), np.array([0, 0, np.nan])]
)
def test_arrays_that_do_not_fit_are_not_restored(new):
    arrays = {"a": np.ones(2), "b": np.ones(3)}
    with pytest.raises(SavedModelError, match="'b' does not fit"):
        restore(arrays, {"a": np.zeros(2)} | ({} if new is None else {"b": new}))
    assert (arrays["a"] == 1).all()


def test_a_loop_keeps_an_epoch_a_minute_and_its_end(tmp_path, monkeypatch):
    now, kept = [0.0], []

    def state():
        kept.append(now[0])
        return {"a": np.zeros(1)}

    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now[0])
    loop = Loop(open_checkpoints(tmp_path)).within("some")
    for now[0] in (30.0, 59.0, 61.0, 100.0, 121.5):
        loop.put(state)
    loop.put(state, is_final=True)
    assert kept == [61.0, 121.5, 121.5]
    assert loop.get()["a"].tolist() == [0]


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
@pytest.mark.parametrize("n", [10, pytest.param(60, marks=pytest.mark.slow)])
def test_crafted_parts_with_matching_checksums_never_crash(name, n, tmp_path):
    """The fit raises an error, or ends with finite scores."""
    FITS[name](tmp_path / "fit").fit(X, Y)
    key = hashlib.sha256((tmp_path / "fit" / "fit.json").read_bytes()).hexdigest()
    rng = np.random.default_rng(0)
    for number in range(n):
        folder = tmp_path / f"{number}"
        shutil.copytree(tmp_path / "fit", folder)
        parts = sorted(folder.glob("*.safetensors"))
        path = parts[rng.integers(len(parts))]
        arrays = {key: array.copy() for key, array in read_arrays(path)[0].items()}
        changed = sorted(arrays)[rng.integers(len(arrays))]
        array = arrays[changed]
        match rng.integers(4):
            case 0:
                del arrays[changed]
            case 1:
                arrays[changed] = array.astype(np.float16)
            case 2:
                arrays[changed] = array.reshape(-1)[: rng.integers(array.size + 1)]
            case 3 if array.size and array.dtype != bool:
                large = np.nan if array.dtype.kind == "f" else min(2**30, np.iinfo(array.dtype).max)
                array.flat[rng.integers(array.size)] = large
        crafted = object.__new__(Checkpoints)
        crafted.folder, crafted._fit = folder, key
        crafted.put(path.stem, arrays)
        try:
            model = FITS[name](folder).fit(X, Y)
            assert np.isfinite(model.predict_topk(X)[1]).all()
        except (ValueError, IndexError):
            pass
        shutil.rmtree(folder)
