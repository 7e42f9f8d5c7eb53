"""The fit report, its bounds, and the warnings that come from it."""

import numpy as np
import pandas as pd
import pytest

from sklearn_xc import OvALinearXC
from sklearn_xc.exceptions import ConvergenceWarning, UnseenLabelWarning

NAMES = {
    "n_iter",
    "n_products",
    "status",
    "objective",
    "gradient_norm",
    "gradient_tolerance",
    "suboptimality",
    "pruned",
    "seconds",
}


def test_the_report_is_a_table_with_a_row_per_label(xy):
    model = OvALinearXC(prune=0).fit(*xy)
    assert set(model.fit_report_) == NAMES
    table = pd.DataFrame(model.fit_report_)
    assert table.shape == (15, len(NAMES))
    assert set(table["status"]) == {"converged"}
    np.testing.assert_array_equal(model.n_iter_, table["n_iter"])
    assert (table["n_products"] >= table["n_iter"]).all()
    assert (table["seconds"] > 0).all()


class TestWarnings:
    def test_out_of_iterations(self, xy):
        with pytest.warns(ConvergenceWarning) as caught:
            model = OvALinearXC(max_iter=1, tol=1e-4, init="zero", prune=0).fit(*xy)
        out = np.setdiff1d(np.flatnonzero(model.fit_report_["status"] == "max_iter"), 4)
        assert out.size > 5
        (warning, unseen) = caught
        assert unseen.category is UnseenLabelWarning
        assert unseen.filename == __file__
        message = str(warning.message)
        assert message.startswith(
            f"OvALinearXC: {out.size} of 15 labels did not converge within max_iter=1 Newton steps "
            f"(labels {', '.join(map(str, out[:5]))}, ...). Raise max_iter or tol"
        )
        assert warning.filename == __file__
        assert (model.n_iter_[out] == 1).all()

    def test_stalled(self, xy):
        """float32 weights cannot come closer."""
        X, Y = xy
        with pytest.warns(ConvergenceWarning) as caught:
            model = OvALinearXC(prune=0, tol=1e-12).fit(X.astype(np.float32), Y)
        out = np.setdiff1d(np.flatnonzero(model.fit_report_["status"] == "stalled"), 4)
        assert out.size >= 10
        (message,) = [str(w.message) for w in caught if "precision" in str(w.message)]
        first = ", ".join(map(str, out[:5]))
        assert f"{out.size} of 15 labels stopped at the precision of float32" in message
        assert f"(labels {first}, ...). Raise tol, scale X" in message
        assert (model.fit_report_["suboptimality"][out] < 1e-6).all()


class TestProgress:
    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_verbose(self, n_jobs, make_xy, capsys):
        OvALinearXC(prune=0, verbose=1, n_jobs=n_jobs).fit(*make_xy(n_labels=600))
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) > 1
        assert all(line.startswith("[OvALinearXC] ") for line in lines)
        assert "label 600 of 600: 100%" in lines[-1]
