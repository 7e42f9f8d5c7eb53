"""What fits hold, in processes of their own, against ``max_memory``; and X and Y in files."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from fitted import assert_same_answers, assert_same_model
from registry import ENTRIES
from small_data import awkward

from asv_bench.library import max_memory
from asv_bench.library.large import in_fresh_process
from asv_bench.library.max_memory import CASES, MIB

#: MiB that are just enough; a quarter is too little.
ENOUGH = {
    "OvALinearXC": 32,
    "OvALinearXCCV": 40,
    "SoftmaxUMax": 66,
    "ImplicitSoftmaxSGD": 34,
    "DecompMIPSClassifier": 80,
    "NGAMEEmbeddingXC": 110,
    "StackingXC": 64,
    "ThresholdTuner": 64,
    "TopKCalibrator": 64,
}
#: Those that take longer than two seconds.
SLOW = ("OvALinearXCCV", "StackingXC", "ThresholdTuner", "TopKCalibrator", "DecompMIPSClassifier")

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning"),
]


def test_each_estimator_has_a_case():
    assert set(CASES) == set(ENOUGH) == {entry.estimator.__name__ for entry in ENTRIES.values()}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in CASES]
)
def test_a_fit_holds_what_it_may(name):
    budgets = [ENOUGH[name] * MIB // 4, ENOUGH[name] * MIB]
    found = in_fresh_process(max_memory.measure_fits, name, budgets)
    assert isinstance(found, list), found["error"]
    refused, fitted = found
    assert refused["outcome"] == "refused"
    assert "are needed and max_memory allows" in refused["says"]
    assert refused["used"] < 1  # some numbers of rows and pairs, to know what is needed
    assert fitted["outcome"] == "fitted", fitted["says"]
    assert fitted["used"] < 1.1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_five_budgets():
    rows = [row for row in max_memory.main() if row["share"] > 0]
    assert len(rows) == 5 * len(CASES)
    for row in rows:
        if row["outcome"] == "fitted":
            assert row["used"] < 1.1, row
        else:
            assert row["share"] < 1.5, row


def in_files(array, path):
    """Return an array that is mapped from a file, read-only."""
    np.save(path, array)
    return np.load(path, mmap_mode="r")


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_arrays_in_files(name, kind, tmp_path):
    """The model and its answers are those of arrays in memory."""
    entry = ENTRIES[name]
    X, Y = awkward()
    if kind == "dense":
        mapped = [in_files(one.toarray(), tmp_path / f"{i}.npy") for i, one in enumerate((X, Y))]
        X, Y = X.toarray(), Y.toarray()
        assert all(isinstance(one, np.memmap) for one in mapped)
    else:
        mapped = []
        for i, one in enumerate((X, Y)):
            arrays = [
                in_files(getattr(one, part), tmp_path / f"{i}-{part}.npy")
                for part in ("data", "indices", "indptr")
            ]
            mapped.append(sp.csr_array(tuple(arrays), shape=one.shape, copy=False))
            assert not mapped[-1].data.flags.writeable
    expected, model = entry.make().fit(X, Y), entry.make().fit(*mapped)
    assert_same_model(model, expected)
    assert_same_answers(model, expected, mapped[0], entry)
