"""The experiment on the number of labels, at a small size."""

import numpy as np

from asv_bench.one_vs_all import scaling


def test_a_row_for_each_number_of_labels(capsys):
    rows = scaling.main(labels=(20,), samples=500, features=300)
    assert [row["n_labels"] for row in rows] == [20]
    assert all(row["n_unsolved"] == 0 for row in rows)
    assert all(row["model_mib"] > 0 for row in rows)
    assert "OvALinearXC, 500 rows x 300 features" in capsys.readouterr().out


def test_labels_share_a_feature():
    X, Y = scaling.make_data(30, 2000, 500)
    np.testing.assert_allclose(np.sqrt(X.multiply(X).sum(axis=1)), 1, rtol=1e-5)
    Y = Y.tocsc()
    assert (Y.data == 1).all()
    for label in range(30):
        rows = Y.indices[Y.indptr[label] : Y.indptr[label + 1]]
        assert 1 <= len(rows) <= scaling.POSITIVES_PER_LABEL
        assert ((X[rows] > 0).sum(axis=0) == len(rows)).any()
