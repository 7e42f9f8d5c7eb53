"""Models saved by an earlier version are read, and predict as they did."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from make_golden import TEXTS, data

import sklearn_xc

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.zip"))


def test_there_are_some():
    assert GOLDEN


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_it_is_read_and_predicts_as_it_did(path, tmp_path):
    with zipfile.ZipFile(path) as file:
        file.extractall(tmp_path)
    expected = np.load(tmp_path / "expected.npz")
    model = sklearn_xc.load(tmp_path / "model", verify=True)
    rows = TEXTS[:5] if path.stem == "TextClassifierXC" else data()[0][:10]
    labels, scores = model.predict_topk(rows, 3)
    # Other processors round otherwise: labels of the same scores may change places.
    np.testing.assert_allclose(scores, expected["scores"], rtol=1e-3, atol=1e-4)
    assert (labels == expected["labels"]).mean() > 0.9
