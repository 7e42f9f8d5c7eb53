import numpy as np
import pytest
from sklearn.metrics import f1_score

from asv_bench.library import decisions
from sklearn_xc.datasets import dump_xmc_file, make_xc_classification


@pytest.fixture(scope="module")
def made_data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "bibtex"
    X, Y = make_xc_classification(
        n_samples=400, n_features=80, n_labels=15, nnz_per_row=10, random_state=0, return_X_y=True
    )
    folder.mkdir()
    dump_xmc_file(folder / "bibtex_train.txt.gz", 3 * X[:300], Y[:300])
    dump_xmc_file(folder / "bibtex_test.txt.gz", 3 * X[300:], Y[300:])
    return folder.parent


@pytest.mark.filterwarnings("ignore")
def test_thresholds_and_probabilities(made_data, capsys):
    found = decisions.main(made_data, sets=["bibtex", "bibtex:first"], size="all", cv=2)
    f1 = {row["thresholds"]: row for row in found["f1"]}
    assert list(f1) == ["0", *decisions.THRESHOLDS]
    assert f1["default"]["named"] > f1["0"]["named"]
    assert f1["one threshold"]["micro"] > f1["0"]["micro"]
    assert [row["estimator"] for row in found["ece"]] == ["ova", "implicit", "umax"]
    assert all(0 < row["top5"] < 0.3 for row in found["ece"])
    logistic = found["logistic"]
    assert [row["C"] for row in logistic] == list(decisions._CS)
    means = [row["mean"] for row in logistic]
    assert means == sorted(means)  # the ridge draws them to 0
    assert all(0 < row["top1"] < 1 for row in logistic)
    printed = capsys.readouterr().out
    assert "ECE of the top 5" in printed
    assert "Probabilities of the logistic loss" in printed


def test_f1_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    Y, predicted = (decisions.sp.csr_array((rng.random((30, 6)) < 0.3).astype(int)) for _ in "ab")
    inside = np.arange(6) < 2
    found = decisions._f1(Y, predicted, {"rare": inside})
    for average in ("micro", "macro"):
        expected = f1_score(Y.toarray(), predicted.toarray(), average=average, zero_division=0)
        assert found[average] == pytest.approx(100 * expected)
        part = [matrix.toarray()[:, inside] for matrix in (Y, predicted)]
        expected = f1_score(*part, average=average, zero_division=0)
        assert found[f"rare_{average}"] == pytest.approx(100 * expected)


def test_calibration_error():
    chances = np.repeat([0.2, 0.8], 75)
    hits = np.tile([1, 0, 0, 0, 0], 30)
    assert decisions.calibration_error(chances, hits) == pytest.approx(0.3)


def test_what_chance_adds_is_taken_off():
    rng = np.random.default_rng(7)
    chances = rng.random(20_000)
    right = rng.random(20_000) < chances
    assert decisions.calibration_error(chances, right) > 0.005
    found = [decisions.debiased_error(chances, rng.random(20_000) < chances) for _ in range(40)]
    squares = np.sign(found) * np.square(found)
    assert abs(squares.mean()) < 0.005**2
    assert min(found) < 0 < max(found)
    wrong = rng.random(20_000) < 0.8 * chances
    expected = 0.2 * np.sqrt(np.mean(chances**2))
    assert decisions.debiased_error(chances, wrong) == pytest.approx(expected, rel=0.05)
    assert decisions._of_perfect(chances) == pytest.approx(
        decisions.calibration_error(chances, right), rel=0.5
    )
