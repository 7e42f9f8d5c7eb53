"""The experiment on C."""

import numpy as np
import pytest

from asv_bench.common.sized_sets import load_sized_set
from asv_bench.one_vs_all import ridge
from sklearn_xc import OvALinearXC
from sklearn_xc.datasets import dump_xmc_file, make_xc_classification
from sklearn_xc.metrics import precision_at_k


@pytest.fixture(scope="module")
def made_data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    X, Y = make_xc_classification(300, 80, 12, random_state=0, return_X_y=True)
    (folder / "bibtex").mkdir()
    for part, rows in (("train", slice(200)), ("test", slice(200, None))):
        dump_xmc_file(folder / "bibtex" / f"bibtex_{part}.txt.gz", X[rows], Y[rows])
    return folder


def test_a_row_per_set_and_size(made_data, capsys):
    rows = ridge.main(
        made_data, sets=("bibtex", "bibtex:first"), sizes=("1/4", "all"), values=(0.1, 1.0)
    )
    assert [(row["set"], row["size"], row["C"]) for row in rows[:4]] == [
        ("bibtex", "1/4", 0.1), ("bibtex", "1/4", 1.0), ("bibtex", "all", 0.1),
        ("bibtex", "all", 1.0),
    ]  # fmt: skip
    sized = load_sized_set("bibtex", "all", made_data)
    model = OvALinearXC(C=0.1).fit(sized.X_train, sized.Y_train)
    found = precision_at_k(sized.Y_test, model.predict_topk(sized.X_test, 5), (1, 5))
    assert [rows[2]["P@1"], rows[2]["P@5"]] == pytest.approx(100 * found)
    for row in rows:
        assert 0 < row["PSP@1"] <= 100
        assert row["ratio"] == 1 or row["C"] != 1
    printed = capsys.readouterr().out
    for _, title, _ in ridge._MEASURES:
        assert f"{title}, by C" in printed


def test_labels_without_a_training_instance_have_no_part(made_data):
    (row,) = ridge.main(made_data, sets=("bibtex",), sizes=("1/16",), values=(1.0,))
    sized = load_sized_set("bibtex", "1/16", made_data)
    seen = np.flatnonzero(np.bincount(sized.Y_train.indices, minlength=12))
    model = OvALinearXC(C=1.0).fit(sized.X_train, sized.Y_train[:, seen])
    ranked = model.predict_topk(sized.X_test, 1)
    assert row["P@1"] == pytest.approx(100 * precision_at_k(sized.Y_test[:, seen], ranked, k=1))


def test_the_other_sets_choose():
    """By their distance from their own best; sets of the same documents count as one."""
    found = {"tate": (5, 9), "bibtex": (9, 6), "bibtex:first": (9, 7), "delicious": (8, 7)}
    rows = [
        {"set": name, "size": "all", "n_rows": 1, "C": C, "P@1": value}
        for name, values in found.items()
        for C, value in zip((0.1, 1.0), values, strict=True)
    ]
    chosen = ridge.choices(rows, (0.1, 1.0))
    assert chosen == {"tate": 0.1, "bibtex": 1.0, "delicious": 1.0}
    assert ridge.choices(rows[:2], (0.1, 1.0)) == {}
