"""Models that were saved in each format so far are read, and answer as they did."""

import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from damage import damage_one
from make_golden import TEXTS, data

import sklearn_xc
from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.storage import array_files, models
from sklearn_xc.storage.folder import FORMAT
from sklearn_xc.storage.reports import describe_model, problems_of_model

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*/*.zip"))


def test_there_are_some_of_this_format():
    assert {path.parent.name for path in GOLDEN} == {f"format_{n + 1}" for n in range(FORMAT)}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_it_is_read_and_answers_as_it_did(path, tmp_path):
    with zipfile.ZipFile(path) as file:
        file.extractall(tmp_path)
    expected = np.load(tmp_path / "expected.npz")
    assert problems_of_model(tmp_path / "model") == []
    assert path.parent.name.replace("_", " ") in describe_model(tmp_path / "model")[0]
    model = sklearn_xc.load(tmp_path / "model")
    rows = TEXTS[:5] if path.stem == "TextClassifierXC" else data()[0][:10]
    labels, scores = model.predict_topk(rows, 3)
    # Other processors round otherwise: labels of the same scores may change places.
    np.testing.assert_allclose(scores, expected["scores"], rtol=1e-3, atol=1e-4)
    assert (labels == expected["labels"]).mean() > 0.9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_whatever_happens_to_a_file_answers_are_the_same_or_refused(path, tmp_path, monkeypatch):
    with zipfile.ZipFile(path) as file:
        file.extractall(tmp_path)
    whole, folder = tmp_path / "model", tmp_path / "damaged"
    model = sklearn_xc.load(whole, verify=True)
    monkeypatch.setattr(array_files, "CHUNK", 256)
    monkeypatch.setattr(models, "SMALL", 0)
    model.save(whole)  # with checksums of 256 bytes
    rows = TEXTS[:5] if path.stem == "TextClassifierXC" else data()[0][:10]

    def answers(folder):
        labels, scores = sklearn_xc.load(folder).predict_topk(rows, 3)
        return labels.tobytes(), scores.tobytes()

    expected, rng, n_refused = answers(whole), np.random.default_rng(0), 0
    for _ in range(100):
        shutil.copytree(whole, folder)
        damage_one(folder, rng)
        try:
            assert answers(folder) == expected
        except SavedModelError:
            n_refused += 1
        assert problems(folder), "damage that is not found"
        shutil.rmtree(folder)
    print(f"{n_refused} of 100 refused")
    assert n_refused > 50


def problems(folder):
    try:
        return problems_of_model(folder)
    except SavedModelError as error:
        return [str(error)]
