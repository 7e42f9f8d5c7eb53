"""What fits hold, in processes of their own, against ``max_memory``."""

import sys

import pytest

import sklearn_xc
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
    "DecompMIPSSkipGram": 100,
    "StackingXC": 64,
    "ThresholdTuner": 64,
    "TopKCalibrator": 64,
}
#: Those that take longer than some seconds.
SLOW = set(ENOUGH) - {"OvALinearXC", "ImplicitSoftmaxSGD"}

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning"),
]


def test_each_estimator_has_a_case():
    assert set(CASES) == set(ENOUGH)
    apart = {"LabelFeatures", "TextClassifierXC"}
    assert set(CASES) | apart >= {
        name for name in sklearn_xc.__all__ if hasattr(getattr(sklearn_xc, name), "fit")
    }


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
