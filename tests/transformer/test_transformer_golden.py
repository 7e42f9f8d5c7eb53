"""Transformers that were saved in each format so far are read, and answer as they did."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from make_transformer_golden import TEXTS

import sklearn_xc
from sklearn_xc.storage.reports import problems_of_model

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*/*.zip"))


def test_there_is_one():
    assert GOLDEN


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.parent.name)
def test_it_is_read_and_answers_as_it_did(path, tmp_path):
    with zipfile.ZipFile(path) as file:
        file.extractall(tmp_path)
    expected = np.load(tmp_path / "expected.npz")
    assert problems_of_model(tmp_path / "model") == []
    model = sklearn_xc.load(tmp_path / "model")
    labels, scores = model.predict_topk(TEXTS[:10], 3)
    np.testing.assert_allclose(scores, expected["scores"], rtol=1e-3, atol=1e-4)
    assert (labels == expected["labels"]).mean() > 0.9
