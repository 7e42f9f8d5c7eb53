"""Saving and opening models: all or nothing, memory-mapped, and nothing damaged or crafted."""

import contextlib
import copy
import json
import multiprocessing
import os
import re
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import sklearn_xc
from sklearn_xc import NGAMEEmbeddingXC, OvALinearXC, SoftmaxUMax, ThresholdTuner
from sklearn_xc._state import files
from sklearn_xc._state.files import META
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.exceptions import SavedModelError

sys.path.append(str(Path(__file__).parents[1] / "contract"))
from crafted import Crafted

_, Y = make_xc_classification(n_samples=400, n_features=300, n_labels=300, random_state=0)
_rng = np.random.default_rng(0)
#: Some features are in most rows, most in few: weights are in columns and in lists.
X = sp.csr_array(_rng.random((400, 300)) < 0.5 * _rng.random(300) ** 6 + 0.01).astype(np.float32)


@pytest.fixture(scope="module")
def model():
    return OvALinearXC(tol=1e-2).fit(X, Y)


@pytest.fixture(scope="module")
def other():
    return OvALinearXC(C=0.1, tol=1e-2).fit(X, Y)


@pytest.fixture(scope="module")
def trained():
    """A model with trees and sparse rows."""
    return NGAMEEmbeddingXC(
        embedding_dim=8, max_iter=2, classifier_max_iter=2, random_state=0, fusion="tree"
    ).fit(X, Y)


def answers(model, rows=X):
    return [part.tobytes() for part in model.predict_topk(rows)]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def arrays_file(folder):
    (path,) = folder.glob("arrays-*.safetensors")
    return path


class TestSaving:
    def test_a_folder_is_made_replaced_and_holds_no_more_than_its_model(
        self, model, other, tmp_path
    ):
        folder = tmp_path / "model"
        for one in (model, other, model, model):
            one.save(folder)
            assert answers(sklearn_xc.load(folder, verify=True)) == answers(one)
            assert {*os.listdir(folder)} == {META, arrays_file(folder).name}

    def test_an_open_model_stays_whole_when_another_is_saved_over_it(self, model, other, tmp_path):
        model.save(tmp_path)
        opened = sklearn_xc.load(tmp_path)
        other.save(tmp_path)
        assert answers(opened) == answers(model)
        assert answers(sklearn_xc.load(tmp_path)) == answers(other)

    def test_places_that_are_refused(self, model, tmp_path):
        (tmp_path / "file").write_text("mine")
        with pytest.raises(
            FileExistsError, match=r"file: is a file\. A model is saved as a folder"
        ):
            model.save(tmp_path / "file")
        with pytest.raises(FileExistsError, match="no part of a model, such as 'file'"):
            model.save(tmp_path)
        with pytest.raises(FileNotFoundError, match=r"there is no folder '.*no'"):
            model.save(tmp_path / "no" / "model")
        assert os.listdir(tmp_path) == ["file"]

    @pytest.mark.parametrize(("is_there", "after"), [(False, 0), (False, 1), (True, 1)])
    def test_a_failed_save_changes_nothing(
        self, is_there, after, model, other, tmp_path, full_disk
    ):
        folder = tmp_path / "model"
        if is_there:
            other.save(folder)
        before = contents(folder)
        with full_disk(after=after), pytest.raises(OSError, match="No space left on device"):
            model.save(folder)
        assert folder.exists() == is_there
        assert contents(folder) == before

    def test_two_saves_at_once_leave_one_of_the_models(self, model, other, tmp_path, monkeypatch):
        plain = files.open_atomic

        def interleaved(path):
            monkeypatch.setattr(files, "open_atomic", plain)
            other.save(tmp_path)  # between the arrays and meta.json of the first
            return plain(path)

        monkeypatch.setattr(files, "open_atomic", interleaved)
        model.save(tmp_path)
        assert answers(sklearn_xc.load(tmp_path, verify=True)) == answers(model)


class TestCompact:
    def test_weights_are_small_and_come_back(self, model, tmp_path):
        small = model.compact()
        model.save(tmp_path / "float")
        model.save(tmp_path / "model", compact=True)
        small.save(tmp_path / "small")
        sizes = [arrays_file(tmp_path / name).stat().st_size for name in ("float", "small")]
        assert sizes[1] < 0.5 * sizes[0]
        for name in ("model", "small"):
            opened = sklearn_xc.load(tmp_path / name)
            assert answers(opened) == answers(small)
            assert not opened._weights.by_feature.columns.flags.writeable
            np.testing.assert_array_equal(opened.coef_.toarray(), small.coef_.toarray())
        sklearn_xc.load(tmp_path / "float").compact().save(tmp_path / "again")
        assert arrays_file(tmp_path / "again").name == arrays_file(tmp_path / "small").name

    @pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning")
    def test_estimators_inside_are_compact_too(self, tmp_path):
        outer = ThresholdTuner(OvALinearXC(tol=1e-2), cv=0.3, random_state=0).fit(X, Y)
        before = answers(outer)
        outer.save(tmp_path, compact=True)
        assert answers(outer) == before
        opened = sklearn_xc.load(tmp_path)
        assert answers(opened.estimator_) == answers(outer.estimator_.compact())

    def test_without_weights_of_one_vs_all(self, model, tmp_path):
        model.save(tmp_path)
        before = contents(tmp_path)
        for other in (OvALinearXC(), SoftmaxUMax(max_iter=1, random_state=0).fit(X, Y)):
            with pytest.raises(ValueError, match=rf"^{type(other).__name__}: compact=True is for"):
                other.save(tmp_path, compact=True)
        assert contents(tmp_path) == before


class TestOpening:
    def test_arrays_are_read_only_maps_of_the_file(self, model, tmp_path):
        model.save(tmp_path)
        opened = sklearn_xc.load(tmp_path)
        assert not opened.label_counts_.flags.writeable
        assert not opened._weights.by_feature.values.flags.writeable
        with pytest.raises(AttributeError, match="'OvALinearXC' object has no attribute 'labels'"):
            _ = opened.labels

    @pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
    def test_processes_share_the_pages_of_a_model(self, model, tmp_path):
        """Answers need the pages that they read, and these belong to the file."""
        from sklearn_xc._weights.label_weights import LabelWeights

        dense = np.random.default_rng(0).normal(size=(20_000, 300)).astype(np.float32) + 9
        large = copy.copy(model)
        large._weights = LabelWeights(sp.csr_array(dense), np.zeros(20_000, np.float32))
        large._unseen_labels = np.empty(0, np.int64)
        large.classes_, large.label_counts_ = np.arange(20_000), np.ones(20_000, np.int64)
        large.save(tmp_path)

        def private():
            status = Path("/proc/self/status").read_text()
            return 1024 * int(re.search(r"RssAnon:\s+(\d+)", status)[1])

        opened = sklearn_xc.load(tmp_path)
        opened.predict_topk(X[:1])
        before = private()
        opened.predict_topk(X[:50])
        assert private() - before < 8 * 2**20 < dense.nbytes


class TestDamage:
    def test_there_is_no_model(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"No such file or directory: '.*no'"):
            sklearn_xc.load(tmp_path / "no")
        with pytest.raises(
            SavedModelError, match=r"holds no model, which is a folder with a meta\.json"
        ):
            sklearn_xc.load(tmp_path)
        (tmp_path / "m.joblib").write_bytes(b"x")
        with pytest.raises(SavedModelError, match=r"holds no model, .* loaded by joblib\.load"):
            sklearn_xc.load(tmp_path / "m.joblib")

    def test_a_missing_file_is_named(self, model, tmp_path):
        model.save(tmp_path)
        arrays_file(tmp_path).unlink()
        with pytest.raises(SavedModelError, match=r"arrays-.*: the file is missing"):
            sklearn_xc.load(tmp_path)

    @pytest.mark.parametrize("seed", range(6))
    def test_damage_is_found_by_verify_and_never_crashes(self, seed, model, tmp_path):
        model.save(tmp_path)
        rng = np.random.default_rng(seed)
        path = tmp_path / META if seed % 4 == 0 else arrays_file(tmp_path)
        content = bytearray(path.read_bytes())
        if seed % 3:
            content[rng.integers(len(content))] ^= 1 << rng.integers(8)
        else:
            del content[rng.integers(len(content)) :]
        path.write_bytes(content)
        with pytest.raises(SavedModelError):
            sklearn_xc.load(tmp_path, verify=True)
        with contextlib.suppress(SavedModelError):
            sklearn_xc.load(tmp_path).predict_topk(X)

    def test_another_format_is_refused_by_name(self, model, tmp_path):
        model.save(tmp_path / "model")
        change = {"format": 7, "versions": {"sklearn_xc": "9.1"}}
        Crafted(tmp_path / "model").write(tmp_path / "new", change=lambda meta: meta.update(change))
        with pytest.raises(SavedModelError, match=r"in format 7, of sklearn_xc 9\.1\. .* upgrade"):
            sklearn_xc.load(tmp_path / "new")

    @pytest.mark.parametrize(
        "change",
        [
            lambda meta: meta["arrays"].update(file="../arrays-00000000.safetensors"),
            lambda meta: meta.pop("arrays"),
            lambda meta: meta.pop("format"),
            lambda meta: meta.pop("model"),
            lambda meta: meta.update(what="a fit"),
            lambda meta: meta.update(versions=[]),
        ],
    )
    def test_meta_of_something_else_is_refused(self, change, model, tmp_path):
        model.save(tmp_path / "model")
        Crafted(tmp_path / "model").write(tmp_path / "new", change=change)
        with pytest.raises(SavedModelError, match="is damaged, or was not written by sklearn_xc"):
            sklearn_xc.load(tmp_path / "new")

    def test_parameters_are_checked(self, model, tmp_path):
        model.save(tmp_path / "model")
        for key, value in (("C", -1.0), ("predict", 1), ("__class__", 1)):

            def change(meta, key=key, value=value):
                meta["model"]["state"][key] = value

            Crafted(tmp_path / "model").write(tmp_path / "new", change=change)
            with pytest.raises(SavedModelError, match="makes no sense"):
                sklearn_xc.load(tmp_path / "new")

    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("labels", lambda labels: labels.__setitem__(5, 300)),
            ("indptr", lambda indptr: indptr.__setitem__(-1, 10**9)),
            ("slot", lambda slot: slot.__setitem__(3, 10**6)),
            ("values", lambda values: values[:-1]),
            ("columns", lambda columns: np.ascontiguousarray(columns[:, :64])),
        ],
    )
    def test_weights_that_lead_outside_of_arrays_are_refused(self, name, change, model, tmp_path):
        model.save(tmp_path / "model")
        crafted, name = Crafted(tmp_path / "model"), f"_weights.by_feature.{name}"
        array = crafted.arrays[name].copy()
        found = change(array)
        crafted.write(tmp_path / "new", {name: array if found is None else found})
        with pytest.raises(SavedModelError, match=r"must be") as caught:
            sklearn_xc.load(tmp_path / "new")
        assert str(caught.value).startswith(str(tmp_path / "new"))

    @pytest.mark.parametrize(
        ("name", "at", "number"),
        [
            ("_means.words.indices", 3, 10**6),
            ("_means.words.indptr", -1, 10**6),
            ("fusion_.trees_.left", 0, 10**6),
            ("fusion_.trees_.right", 0, 0),
            ("fusion_.trees_.feature", 0, -7),
            ("fusion_.trees_.root", 0, -7),
        ],
    )
    def test_records_that_lead_outside_are_refused(self, name, at, number, trained, tmp_path):
        trained.save(tmp_path / "model")
        crafted = Crafted(tmp_path / "model")
        array = crafted.arrays[name].copy()
        array[at] = number
        crafted.write(tmp_path / "new", {name: array})
        with pytest.raises(SavedModelError):
            sklearn_xc.load(tmp_path / "new")


def _save_often(folder):
    """Save two models in turns until killed."""
    one, two = sklearn_xc.load(folder / "one"), sklearn_xc.load(folder / "two")
    (folder / "started").touch()
    for i in range(10_000):
        (one, two)[i % 2].save(folder / "model")


@pytest.mark.skipif(os.name != "posix", reason="kills processes")
@pytest.mark.parametrize("n_kills", [2, pytest.param(100, marks=pytest.mark.slow)])
def test_a_killed_save_leaves_the_old_model_or_the_new_one(n_kills, model, other, tmp_path):
    model.save(tmp_path / "one")
    other.save(tmp_path / "two")
    known = {b"".join(answers(model)), b"".join(answers(other))}
    rng, context, n_hits = np.random.default_rng(0), multiprocessing.get_context("spawn"), 0
    model.save(tmp_path / "model")
    for _ in range(n_kills):
        (tmp_path / "started").unlink(missing_ok=True)
        process = context.Process(target=_save_often, args=(tmp_path,))
        process.start()
        while not (tmp_path / "started").exists():
            assert process.is_alive()
            time.sleep(0.01)
        time.sleep(float(rng.uniform(0, 0.1)))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        folder = tmp_path / "model"
        n_hits += len(os.listdir(folder)) != 2
        assert b"".join(answers(sklearn_xc.load(folder, verify=True))) in known
    print(f"{n_hits} of {n_kills} kills hit a write")


def test_meta_can_be_read_by_people(model, tmp_path):
    model.save(tmp_path)
    meta = json.loads((tmp_path / META).read_text())
    assert list(meta) == ["what", "format", "versions", "arrays", "model", "sha256"]
    assert meta["format"] == 1
    assert {"sklearn_xc", "python", "numpy", "numba"} <= meta["versions"].keys()
    assert meta["model"]["object"] == "OvALinearXC"
