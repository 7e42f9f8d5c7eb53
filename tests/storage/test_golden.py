"""Models that were saved in each format so far are read, and answer as they did."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from make_golden import TEXTS, data

import sklearn_xc
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
