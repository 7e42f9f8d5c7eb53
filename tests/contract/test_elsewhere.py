"""What is trained by workers elsewhere has the same bytes; test_real_clusters.py has real ones."""

from contextlib import suppress

import joblib
import numpy as np
import pytest
from fitted import assert_same_model
from pickled_engine import sent
from registry import ENTRIES, VARIANTS, of_variant
from small_data import awkward

from sklearn_xc import OvALinearXC
from sklearn_xc._state.checkpoints import Checkpoints
from sklearn_xc.exceptions import ConvergenceWarning
from sklearn_xc.model_selection import cross_val_topk

X, Y = awkward()

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.UnseenLabelWarning"),
]
#: What sends parts of its fit to workers, and variants that send others, or none.
SENDING = ("OvALinearXC", "OvALinearXCCV", "StackingXC", "ThresholdTuner", "TopKCalibrator")
OTHERS = ("", "huber_hinge, ovap", "label weights", "listed folds", "prefit")
PAIRS = [pair for pair in VARIANTS if pair[0] in SENDING and pair[1] in OTHERS]


@pytest.mark.parametrize("pair", PAIRS, ids=", ".join)
def test_models_have_the_same_bytes(pair):
    here, there = of_variant(*pair).fit(X, Y), of_variant(*pair)
    sent.update(objects=0, tasks=0)
    with joblib.parallel_config("pickled"):
        there.fit(X, Y)
    assert_same_model(there, here)
    n_times = 1
    if getattr(there, "cv", None) == "prefit":
        n_times = 0
    elif pair[0] == "OvALinearXCCV":  # for each fold, and for the model
        n_times = there.cv + 1
    assert (sent["tasks"] > 0) == (n_times > 0)
    assert sent["objects"] == n_times


class Lost(BaseException):
    """The end of a process."""


@pytest.mark.parametrize("pair", [("OvALinearXC", ""), ("OvALinearXCCV", "")], ids=", ".join)
def test_a_fit_goes_on_elsewhere_and_here(pair, tmp_path, monkeypatch):
    """Part of it is done on workers, the rest here, and it is the model of one call."""
    expected = of_variant(*pair).fit(X, Y)
    folder = tmp_path / "fit"

    put, calls = Checkpoints.put, []

    def failing(self, name, arrays):
        if len(calls) == 2:
            raise Lost
        calls.append(name)
        put(self, name, arrays)

    monkeypatch.setattr(Checkpoints, "put", failing)
    with joblib.parallel_config("pickled"), suppress(Lost):
        of_variant(*pair, checkpoint_dir=folder).fit(X, Y)
    monkeypatch.setattr(Checkpoints, "put", put)
    assert_same_model(of_variant(*pair, checkpoint_dir=folder).fit(X, Y), expected)
    with joblib.parallel_config("pickled"):
        assert_same_model(of_variant(*pair, checkpoint_dir=folder).fit(X, Y), expected)


def test_folds_are_answered_alike():
    model = OvALinearXC()
    here = cross_val_topk(model, X, Y, cv=3, k=3)
    with joblib.parallel_config("pickled"):
        there = cross_val_topk(model, X, Y, cv=3, k=3)
    assert (here != there).nnz == 0
    assert np.array_equal(here.data, there.data)


def test_warnings_come_back():
    stack = ENTRIES["StackingXC"].make(estimators=[("ova", OvALinearXC(max_iter=1, tol=1e-9))])
    with (
        joblib.parallel_config("pickled"),
        pytest.warns(ConvergenceWarning, match="OvALinearXC: .* did not converge"),
    ):
        stack.fit(X, Y)


def test_errors_come_back_by_name():
    stack = ENTRIES["StackingXC"].make(estimators=[("ova", OvALinearXC(C=-1.0))])
    with (
        joblib.parallel_config("pickled"),
        pytest.raises(ValueError, match=r"StackingXC: estimator 'ova': .*'C' parameter"),
    ):
        stack.fit(X, Y)
