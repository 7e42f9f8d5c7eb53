import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from asv_bench.library import splits
from sklearn_xc.datasets import dump_xmc_file, make_xc_classification


@pytest.fixture(scope="module")
def dealt():
    """Return an indicator, and its rows in three folds."""
    rng = np.random.default_rng(0)
    Y = (rng.random((60, 7)) < [0.02, 0.05, 0.1, 0.3, 0.5, 0.0, 0.9]).astype(np.int8)
    Y[:20, 6] = 1  # all rows of the first fold
    return sp.csr_array(Y), np.split(np.arange(60), [20, 45])


def odds(column):
    """Return positives over negatives, and of a fold without negatives over a half."""
    return column.sum() / max((1 - column).sum(), 0.5)


def distance(columns, folds):
    """Return the measure as its authors write it, by loops."""
    of_labels = []
    for column in columns:
        if 0 < column.sum() < len(column):
            gaps = [abs(odds(column[fold]) - odds(column)) for fold in folds]
            of_labels.append(sum(gaps) / len(folds))
    return sum(of_labels) / len(of_labels)


def test_distributions_are_those_of_loops(dealt):
    Y, folds = dealt
    dense = Y.toarray().astype(float)
    assert splits.label_distribution(Y, folds) == pytest.approx(distance(dense.T, folds))
    pairs = [dense[:, i] * dense[:, j] for i, j in itertools.combinations(range(7), 2)]
    pairs = [pair for pair in pairs if pair.any()]
    assert len(pairs) > 5
    assert splits.pair_distribution(Y, folds) == pytest.approx(distance(pairs, folds))
    assert np.isnan(splits.pair_distribution(sp.csr_array(np.eye(6)), np.split(np.arange(6), 2)))


def test_labels_lost_in_training():
    Y = sp.csr_array(np.array([[1, 1, 0, 1], [1, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0]]))
    folds = [np.array([0, 1]), np.array([2, 3])]
    # The first label has both positives in the first fold; the second and third have one each.
    assert splits.n_lost(Y, folds) == 1


def test_a_row_for_each_set_and_method(tmp_path, capsys):
    folder = tmp_path / "bibtex"
    folder.mkdir()
    X, Y = make_xc_classification(
        n_samples=200, n_features=40, n_labels=30, nnz_per_row=5, random_state=0
    )
    for part, rows in (("train", slice(0, 150)), ("test", slice(150, 200))):
        dump_xmc_file(folder / f"bibtex_{part}.txt.gz", X[rows], Y[rows])
    rows = splits.main(
        tmp_path, sets=("bibtex", "bibtex@1/4", "made"), methods=("RareLabelSplit", "KFold"),
        splits=3, made_labels=400,
    )  # fmt: skip
    assert [(row["set"], row["rows"]) for row in rows[::2]] == [
        ("bibtex", 150), ("bibtex@1/4", 38), ("made", 200),
    ]  # fmt: skip
    for ours, theirs in zip(rows[::2], rows[1::2], strict=True):
        assert (ours["method"], theirs["method"]) == ("RareLabelSplit", "KFold")
        assert ours["ld"] < theirs["ld"]
        assert ours["lost"] <= theirs["lost"]
        assert ours["spread"] <= 1
    assert "LD x 1e4" in capsys.readouterr().out


def test_without_scikit_multilearn(monkeypatch, capsys):
    monkeypatch.setattr(splits, "_skmultilearn", lambda: None)
    rows = splits.main(sets=("made",), made_labels=50, splits=2)
    assert [row["method"] for row in rows] == ["RareLabelSplit", "KFold"]
    assert "scikit-multilearn is not installed" in capsys.readouterr().out


def test_iterative_stratification():
    pytest.importorskip("skmultilearn.model_selection", reason="scikit-multilearn is not installed")
    methods = ("IterativeStratification",)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first, again = (splits.main(sets=("made",), made_labels=60, methods=methods) for _ in range(2))
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    assert first[0]["ld"] == again[0]["ld"] > 0
    assert splits.main(sets=("made",), made_labels=60, methods=methods, most_labels=50) == []
