from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, vstack

import sklearn_xc.datasets
from sklearn_xc.datasets import load_tate_subjects

DATA = Path(sklearn_xc.datasets.__file__).parent / "data"


@pytest.fixture(scope="module")
def train():
    return load_tate_subjects()


@pytest.fixture(scope="module")
def test():
    return load_tate_subjects("test")


def test_shapes(train, test):
    for data, n_samples, per_row in ((train, 47_119, 6.1495), (test, 11_682, 6.1313)):
        assert isinstance(data.target, csr_array)
        assert data.target.dtype == np.int8
        assert data.target.indices.dtype == np.int32
        assert data.target.shape == (n_samples, 16_455)
        assert data.target.has_canonical_format
        assert len(data.data) == len(data.accession) == n_samples
        assert data.target.nnz / n_samples == pytest.approx(per_row, abs=1e-4)
        assert (np.diff(data.target.indptr) >= 1).all()
        assert all(data.data)
        assert not any("\t" in text or "\n" in text for text in data.data)


def test_names(train, test):
    assert train.target_names == test.target_names
    assert len(set(train.target_names)) == len(train.target_names) == 16_455
    assert len(set(train.label_paths)) == 16_432
    assert len(set(train.label_names)) == 16_087
    assert train.label_names[0] == "woman"
    assert train.label_paths[0] == train.target_names[0] == "people > adults > woman"
    assert all(path.count(" > ") == 2 for path in train.label_paths)
    cowley = [name for name in train.target_names if name.split(" > ")[2].startswith("Cowley [")]
    assert len(cowley) == 2


def test_a_known_work(train):
    i = train.accession.index("P01317")
    assert train.data[i] == (
        "Chiswick Eyot Julian Trevelyan Intaglio print on paper on paper, print 1971"
    )
    assert train.target[[i]].indices.tolist() == [20, 97, 1323, 1452, 1621, 4018, 10748]
    assert len(set(train.accession)) == 47_119


def test_all_is_train_then_test(train, test):
    data, target = load_tate_subjects("all", return_X_y=True)
    assert data == train.data + test.data
    assert abs(target - vstack([train.target, test.target])).sum() == 0


def test_the_description(train, test):
    counts = np.bincount(train.target.indices, minlength=16_455)
    assert train.target_names[counts.argmax()] == "nature > landscape > hill"
    assert (counts >= 5).sum() == 3_705
    assert (counts == 0).sum() == 1_772
    known = set(train.data)
    assert np.mean([text in known for text in test.data]) == pytest.approx(0.268, abs=5e-4)
    assert "47,119 train" in train.DESCR


@pytest.mark.parametrize("subset", ["valid", None, ["train"]])
def test_unknown_subset(subset):
    with pytest.raises(ValueError, match=r"subset must be 'train', 'test' or 'all'. Got"):
        load_tate_subjects(subset)


def test_the_licence_is_beside_the_data():
    assert "CC0 1.0 Universal" in (DATA / "tate_subjects.LICENCE.txt").read_text()
    assert sum(path.stat().st_size for path in DATA.glob("tate_subjects.*")) < 1_500_000
