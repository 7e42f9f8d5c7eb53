"""A transformer saved by an earlier version is read, and predicts as it did."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from make_transformer_golden import TEXTS

import sklearn_xc

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.zip"))


def test_there_is_one():
    assert GOLDEN


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_it_is_read_and_answers_as_it_did(path, tmp_path):
    with zipfile.ZipFile(path) as file:
        file.extractall(tmp_path)
    expected = np.load(tmp_path / "expected.npz")
    model = sklearn_xc.load(tmp_path / "model", verify=True)
    labels, scores = model.predict_topk(TEXTS[:10], 3)
    np.testing.assert_allclose(scores, expected["scores"], rtol=1e-3, atol=1e-4)
    assert (labels == expected["labels"]).mean() > 0.9
