"""Saving and opening models: all or nothing, nothing that is damaged, nothing that runs."""

import copy
import hashlib
import json
import multiprocessing
import os
import re
import shutil
import signal
import stat
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from damage import damage_one

import sklearn_xc
from sklearn_xc import NGAMEEmbeddingXC, OvALinearXC, ThresholdTuner
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.storage import array_files, models
from sklearn_xc.storage.folder import META, read_meta

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
    model = NGAMEEmbeddingXC(
        embedding_dim=8, max_iter=2, classifier_max_iter=2, random_state=0, fusion="tree"
    ).fit(X, Y)
    assert len(model.fusion_.trees_.value) > 2
    return model


@pytest.fixture
def mapped(monkeypatch):
    """Arrays wait, and are checked in small parts."""
    monkeypatch.setattr(array_files, "SMALL", 0)
    monkeypatch.setattr(models, "SMALL", 0)
    monkeypatch.setattr(array_files, "CHUNK", 256)


def answers(model, rows=X):
    return [part.tobytes() for part in model.predict_topk(rows)]


def rewritten(folder, change):
    """Change what meta.json says, with a checksum that fits."""
    meta = json.loads((folder / META).read_bytes())
    del meta["sha256"]
    change(meta)
    body = json.dumps(meta, indent=1).encode().removesuffix(b"\n}")
    digest = hashlib.sha256(body).hexdigest().encode()
    (folder / META).write_bytes(body + b',\n "sha256": "' + digest + b'"\n}\n')


class TestPlaces:
    def test_a_folder_is_made_replaced_and_holds_no_more_than_its_model(
        self, model, other, tmp_path
    ):
        folder = tmp_path / "model"
        for one in (model, other, model):
            one.save(folder)
            assert answers(sklearn_xc.load(folder)) == answers(one)
            named = set(json.loads((folder / META).read_bytes())["files"])
            assert set(os.listdir(folder)) == named | {META}

    def test_an_open_model_stays_whole_when_another_is_saved_over_it(
        self, model, other, tmp_path, mapped
    ):
        model.save(tmp_path)
        opened = sklearn_xc.load(tmp_path)
        other.save(tmp_path)
        assert answers(opened) == answers(model)
        assert answers(sklearn_xc.load(tmp_path)) == answers(other)

    def test_equal_models_have_equal_bytes(self, model, tmp_path):
        for name in "ab":
            model.save(tmp_path / name)
        for file in os.listdir(tmp_path / "a"):
            assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()

    def test_places_that_do_not_do(self, model, tmp_path):
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

    @pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="root may write anywhere")
    def test_a_folder_that_cannot_be_written(self, model, tmp_path):
        tmp_path.chmod(stat.S_IREAD | stat.S_IEXEC)
        with pytest.raises(PermissionError, match="not allowed to write there"):
            model.save(tmp_path)

    def test_a_read_only_folder_can_be_opened(self, model, tmp_path, mapped):
        model.save(tmp_path)
        for path in (*tmp_path.iterdir(), tmp_path):
            path.chmod(stat.S_IREAD | (stat.S_IEXEC if path.is_dir() else 0))
        assert answers(sklearn_xc.load(tmp_path)) == answers(model)

    def test_one_writer_at_a_time(self, model, tmp_path, monkeypatch):
        from sklearn_xc.storage.folder import FolderWriter

        plain, refused = FolderWriter.finish, []

        def finish(self, *args):
            with pytest.raises(BlockingIOError, match="another process is saving a model there"):
                model.save(tmp_path)
            refused.append(True)
            plain(self, *args)

        monkeypatch.setattr(FolderWriter, "finish", finish)
        model.save(tmp_path)
        assert refused
        assert answers(sklearn_xc.load(tmp_path)) == answers(model)

    @pytest.mark.parametrize("is_there", [False, True])
    def test_a_failed_save_changes_nothing(self, is_there, model, other, tmp_path, full_disk):
        folder = tmp_path / "model"
        if is_there:
            other.save(folder)
        before = {path.name: path.read_bytes() for path in folder.iterdir()} if is_there else {}
        says = r"No space left on device: '.*model'"
        with full_disk(after=4) as files, pytest.raises(OSError, match=says):
            model.save(folder)
        assert len(files) == 5
        assert folder.exists() == is_there
        if is_there:
            assert {path.name: path.read_bytes() for path in folder.iterdir()} == before

    def test_what_cannot_be_saved_changes_nothing(self, model, tmp_path):
        with pytest.raises(TypeError, match="init is a function of builtins"):
            OvALinearXC(init=answers).save(tmp_path / "model")
        assert not (tmp_path / "model").exists()


class TestOpening:
    def test_large_arrays_wait_and_are_maps(self, model, tmp_path, mapped):
        model.save(tmp_path)
        opened = sklearn_xc.load(tmp_path)
        assert {"_weights", "classes_", "label_counts_"}.isdisjoint(vars(opened))
        assert opened.label_counts_ is opened.label_counts_
        assert not opened.label_counts_.flags.writeable
        with pytest.raises(AttributeError, match="'OvALinearXC' object has no attribute 'labels'"):
            _ = opened.labels
        assert "feature_names_in_" not in dir(opened)
        with pytest.raises(AttributeError, match="has no attribute 'predict_proba'"):
            _ = opened.predict_proba

    def test_a_prediction_checks_what_it_reads(self, model, tmp_path, mapped):
        model.save(tmp_path)
        opened = sklearn_xc.load(tmp_path)
        for row in range(0, 400, 50):
            assert answers(opened, X[[row]]) == answers(model, X[[row]])
        parts = opened._weights._held._parts
        assert not any(part.is_checked for part in parts.values())
        np.testing.assert_array_equal(opened.coef_.toarray(), model.coef_.toarray())
        assert all(part.is_checked for part in parts.values())

    def test_all_is_checked_at_once_where_that_is_asked(self, model, tmp_path, mapped):
        model.save(tmp_path)
        (largest,) = tmp_path.glob("weights.columns-*")
        data = bytearray(largest.read_bytes())
        data[-70] ^= 1  # padding, which no answer shows
        largest.write_bytes(bytes(data))
        assert sklearn_xc.load(tmp_path) is not None
        with pytest.raises(SavedModelError, match=r"weights\.columns-.* is damaged between bytes"):
            sklearn_xc.load(tmp_path, verify=True)

    def test_many_threads_read_one_model(self, model, tmp_path, mapped):
        model.save(tmp_path)
        for _ in range(5):
            opened, wait = sklearn_xc.load(tmp_path), threading.Barrier(4)

            def ask(_, opened=opened, wait=wait):
                wait.wait()
                return answers(opened), opened.coef_.nnz, opened.n_iter_.sum()

            with ThreadPoolExecutor(4) as pool:
                found = list(pool.map(ask, range(4)))
            assert found == [(answers(model), model.coef_.nnz, model.n_iter_.sum())] * 4

    def test_another_class_is_refused_by_name(self, model, tmp_path):
        model.save(tmp_path)
        assert type(OvALinearXC.load(tmp_path)) is OvALinearXC
        with pytest.raises(TypeError, match="holds OvALinearXC, not NGAMEEmbeddingXC"):
            NGAMEEmbeddingXC.load(tmp_path)

    def test_weights_by_label_keep_their_dtypes(self, tmp_path, mapped):
        model = OvALinearXC(tol=1e-2).fit(X.astype(np.float64), Y)
        coef = model._weights.coef
        coef.indptr = coef.indptr.astype(np.int64)
        model.save(tmp_path)
        again = sklearn_xc.load(tmp_path).coef_
        for name in ("data", "indices", "indptr"):
            one, two = getattr(coef, name), getattr(again, name)
            assert one.dtype == two.dtype
            np.testing.assert_array_equal(one, two)

    def test_weights_of_zero_stay(self, model, tmp_path, mapped):
        """They would be lost among the zeros of a column."""
        again = OvALinearXC(tol=1e-2).fit(X, Y)
        again._weights.coef.data[::7] = -0.0
        again.save(tmp_path)
        back = sklearn_xc.load(tmp_path).coef_
        assert back.data.tobytes() == again.coef_.data.tobytes()


class TestDamage:
    def test_there_is_no_model(self, model, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"No such file or directory: '.*no'"):
            sklearn_xc.load(tmp_path / "no")
        with pytest.raises(SavedModelError, match=r"holds no model: there is no meta\.json in it"):
            sklearn_xc.load(tmp_path)
        (tmp_path / "m.joblib").write_bytes(b"x")
        with pytest.raises(SavedModelError, match=r"is a file, .* loaded by joblib\.load"):
            sklearn_xc.load(tmp_path / "m.joblib")
        model.save(tmp_path / "model")
        (tmp_path / "model" / META).unlink()
        with pytest.raises(SavedModelError, match="its first save was ended before it was complet"):
            sklearn_xc.load(tmp_path / "model")

    def test_a_newer_format_is_refused_by_name(self, model, tmp_path):
        model.save(tmp_path)
        rewritten(tmp_path, lambda meta: meta.update(format=7, versions={"sklearn_xc": "9.1"}))
        with pytest.raises(SavedModelError, match=r"in format 7, of sklearn_xc 9\.1\. .* Upgrade"):
            sklearn_xc.load(tmp_path)

    def test_a_newer_state_is_refused_by_name(self, model, tmp_path):
        model.save(tmp_path)
        change = {"_sklearn_xc_format": 99, "_sklearn_xc_version": "9.1"}
        rewritten(tmp_path, lambda meta: meta["model"]["state"].update(change))
        with pytest.raises(SavedModelError, match=r"saved by sklearn_xc 9\.1 in .*99.*Upgrade it"):
            sklearn_xc.load(tmp_path)

    @pytest.mark.parametrize("name", ["../x-00000000.npy", "/etc/passwd", "meta.json", "a/b-0.npy"])
    def test_files_outside_the_folder_are_not_opened(self, name, model, tmp_path):
        model.save(tmp_path)

        def change(meta):
            meta["files"][name] = next(iter(meta["files"].values()))

        rewritten(tmp_path, change)
        with pytest.raises(SavedModelError, match=f"{re.escape(repr(name))} is no name of an arra"):
            sklearn_xc.load(tmp_path)

    @pytest.mark.skipif(sys.platform != "linux", reason="has other files")
    @pytest.mark.parametrize("place", [META, "label_counts-*"])
    @pytest.mark.parametrize(
        "put",
        [
            os.mkfifo,
            Path.mkdir,
            lambda path: path.symlink_to(path),
            lambda path: path.symlink_to("/dev/zero"),
        ],
    )
    def test_only_regular_files_are_opened(self, put, place, model, tmp_path):
        model.save(tmp_path)
        (path,) = tmp_path.glob(place)
        path.unlink()
        put(path)
        with pytest.raises(
            SavedModelError, match=rf"{path.name}: (is not a regular|cannot be read)"
        ):
            sklearn_xc.load(tmp_path)

    @pytest.mark.parametrize("name", ["versions", "model", "files"])
    def test_meta_names_all_that_it_must(self, name, model, tmp_path):
        model.save(tmp_path)
        rewritten(tmp_path, lambda meta: meta.pop(name))
        with pytest.raises(SavedModelError, match="must name a model, its files and versions"):
            sklearn_xc.load(tmp_path)

    def test_parameters_of_an_earlier_version(self, model, tmp_path):
        model.save(tmp_path)
        rewritten(tmp_path, lambda meta: meta["model"]["parameters"].pop("history_dir"))
        assert sklearn_xc.load(tmp_path).history_dir is None
        for key, value in (("C", -1.0), ("nobody", 1), ("predict", 1)):
            rewritten(tmp_path, lambda meta: meta["model"]["parameters"].update({key: value}))  # noqa: B023
            with pytest.raises(SavedModelError, match="makes no sense"):
                sklearn_xc.load(tmp_path)

    @pytest.mark.parametrize(
        "change",
        [
            lambda w: w["labels"].__setitem__(5, 300),
            lambda w: w["labels"].__setitem__(5, -1),
            lambda w: w["indptr"].__setitem__(-1, 10**9),
            lambda w: w["indptr"].__setitem__(3, -5),
            lambda w: w["indptr"].__setitem__(3, 10**9),
            lambda w: w["slot"].__setitem__(3, 10**6),
            lambda w: w["slot"].__setitem__(3, -2),
            lambda w: w["tier"].__setitem__(3, 200),
            lambda w: w.update(work=w["work"][:-1]),
            lambda w: w.update(values=w["values"][:-1]),
            lambda w: w.update(columns=w["columns"][:, :64]),
            lambda w: w.update(labels=w["labels"].astype(np.int64)),
        ],
    )
    def test_numbers_that_lead_outside_of_arrays(self, change, model, tmp_path, monkeypatch):
        """As one would make them who wants the kernels to read what is not theirs."""
        from sklearn_xc.storage import forms

        plain = forms.as_stored

        def crafted(state):
            form = plain(state)
            form["arrays"] = {name: array.copy() for name, array in form["arrays"].items()}
            change(form["arrays"])
            return form

        monkeypatch.setattr(forms, "as_stored", crafted)
        model.save(tmp_path)
        says = r"must be|fit the shape|values that are"
        with pytest.raises(SavedModelError, match=says):
            sklearn_xc.load(tmp_path, verify=True)
        with pytest.raises(SavedModelError, match=says) as caught:
            sklearn_xc.load(tmp_path).predict_topk(X)
        assert str(caught.value).startswith(str(tmp_path))

    @pytest.mark.parametrize(
        "change",
        [
            lambda m: m._means.words.indices.__setitem__(3, 10**6),
            lambda m: m._means.words.indptr.__setitem__(-1, 10**6),
            lambda m: m.fusion_.trees_.left.__setitem__(0, 10**6),
            lambda m: m.fusion_.trees_.right.__setitem__(0, 0),
            lambda m: m.fusion_.trees_.feature.__setitem__(0, -7),
            lambda m: m.fusion_.trees_.root.__setitem__(0, -7),
        ],
    )
    def test_records_that_lead_outside(self, change, trained, tmp_path):
        crafted = copy.deepcopy(trained)
        for record in (crafted._means.words, crafted.fusion_.trees_):
            for array in vars(record).values() if hasattr(record, "__dict__") else record:
                if isinstance(array, np.ndarray):
                    array.flags.writeable = True
        change(crafted)
        crafted.save(tmp_path)
        with pytest.raises(SavedModelError, match=r"do not fit each other|are no trees"):
            sklearn_xc.load(tmp_path).predict_topk(X)

    def test_damage_in_a_part_of_an_estimator_is_told_as_damage(self, tmp_path, mapped):
        model = ThresholdTuner(OvALinearXC(tol=1e-2), cv=0.3, random_state=0).fit(X, Y)
        model.save(tmp_path)
        (path,) = tmp_path.glob("estimator.weights.values-*")
        data = bytearray(path.read_bytes())
        data[200:] = bytes(len(data) - 200)
        path.write_bytes(bytes(data))
        with pytest.raises(SavedModelError, match="is damaged between"):
            sklearn_xc.load(tmp_path).predict_topk(X)

    @pytest.mark.parametrize("seed", range(40))
    def test_whatever_happens_to_a_file_answers_are_right_or_refused(
        self, seed, model, tmp_path, mapped
    ):
        rng = np.random.default_rng(seed)
        model.save(tmp_path)
        damage_one(tmp_path, rng, [META] if seed % 4 == 0 else None)
        try:
            opened = sklearn_xc.load(tmp_path)
            found = answers(opened)
        except SavedModelError:
            return
        assert found == answers(model)


def _save_often(folder, n):
    """Save two models in turns until killed; a line is written before each save."""
    from sklearn_xc import load

    one, two = load(Path(folder) / "one", verify=True), load(Path(folder) / "two", verify=True)
    (Path(folder) / "started").touch()
    for i in range(n):
        (one, two)[i % 2].save(Path(folder) / "model")


@pytest.mark.skipif(os.name != "posix", reason="kills processes")
@pytest.mark.parametrize("n_kills", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_a_killed_save_leaves_the_old_model_or_the_new_one(n_kills, model, other, tmp_path):
    model.save(tmp_path / "one")
    other.save(tmp_path / "two")
    known = {b"".join(answers(model)), b"".join(answers(other))}
    rng, context, n_hits = np.random.default_rng(0), multiprocessing.get_context("spawn"), 0
    model.save(tmp_path / "model")
    for _ in range(n_kills):
        (tmp_path / "started").unlink(missing_ok=True)
        process = context.Process(target=_save_often, args=(str(tmp_path), 10_000))
        process.start()
        while not (tmp_path / "started").exists():
            time.sleep(0.01)
        time.sleep(float(rng.uniform(0, 0.1)))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        folder = tmp_path / "model"
        n_hits += set(os.listdir(folder)) != {META, *read_meta(folder)["files"]}
        assert b"".join(answers(sklearn_xc.load(folder, verify=True))) in known
    print(f"{n_hits} of {n_kills} kills hit a write")
    shutil.copytree(tmp_path / "model", tmp_path / "left")
    model.save(tmp_path / "left")  # what was left behind is cleared away
    assert set(os.listdir(tmp_path / "left")) == {META, *read_meta(tmp_path / "left")["files"]}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_processes_share_the_pages_of_a_model(tmp_path):
    """Answers need the pages that they read, and these belong to the file."""
    rng = np.random.default_rng(0)
    model = OvALinearXC(tol=1e-2).fit(X, Y)
    dense = sp.csr_array(rng.normal(size=(20_000, 300)).astype(np.float32) + 9)
    from sklearn_xc.weights.label_weights import LabelWeights

    model._weights = LabelWeights(dense, np.zeros(20_000, np.float32))
    model.classes_, model.label_counts_ = np.arange(20_000), np.ones(20_000, np.int64)
    model.save(tmp_path)
    opened = sklearn_xc.load(tmp_path)
    opened.predict_topk(X[:1])

    def private():
        status = Path("/proc/self/status").read_text()
        return 1024 * int(re.search(r"RssAnon:\s+(\d+)", status)[1])

    before = private()
    opened.predict_topk(X[:50])
    assert private() - before < 8 * 2**20 < 20_000 * 300 * 4
