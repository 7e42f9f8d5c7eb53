"""Fits in fresh processes hold at most a tenth more than ``max_memory``, or are refused."""

import json
import subprocess
import sys

import pytest

MIB = 2**20
#: Fits that take some seconds and some dozens of MiB: sizes of the data, whether each row has one
#: class, parameters, and MiB that are just enough. A quarter of these is too little.
CASES = {
    "OvALinearXC": ((40_000, 20_000, 100, 60), False, {"tol": 0.1}, 32),
    "ImplicitSoftmaxSGD": (
        (40_000, 10_000, 300, 60),
        True,
        {"max_iter": 1, "learning_rate": 0.1, "random_state": 0},
        34,
    ),
    "DecompMIPSClassifier": (
        (6_000, 40_000, 3_000, 30),
        False,
        {"max_iter": 1, "random_state": 0},
        80,
    ),
    "NGAMEEmbeddingXC": (
        (6_000, 20_000, 3_000, 30),
        False,
        {"max_iter": 1, "classifier_max_iter": 1, "embedding_dim": 128, "random_state": 0},
        110,
    ),
}
SLOW = ("DecompMIPSClassifier", "NGAMEEmbeddingXC")
SCRIPT = """
import ctypes, gc, json, sys, threading, warnings
import numpy as np
import sklearn_xc
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.exceptions import MemoryBudgetError

warnings.simplefilter("ignore")
name, (n, d, n_labels, nnz), one_class, parameters, budgets = json.loads(sys.argv[1])


def data(n, d, n_labels, nnz):
    X, Y = make_xc_classification(n, d, n_labels, nnz_per_row=nnz, labels_per_row=3, random_state=0)
    return X.astype(np.float32), Y.indices[Y.indptr[:-1]] if one_class else Y


def anonymous():
    lines = open("/proc/self/status").read().splitlines()
    return sum(1024 * int(l.split()[1]) for l in lines if l.startswith(("RssAnon", "RssShmem")))


def fit(budget, X, y):
    estimator = getattr(sklearn_xc, name)(max_memory=budget, **parameters)
    try:
        estimator.fit(X, y)
    except MemoryBudgetError as error:
        return str(error)
    return "fitted"


X, y = data(n, d, n_labels, nnz)
fit(None, *data(300, 200, 12, 8))  # compiled
found = []
for budget in budgets:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    before, peak, ends = anonymous(), 0, threading.Event()

    def watch():
        global peak
        while not ends.wait(0.002):
            peak = max(peak, anonymous())

    thread = threading.Thread(target=watch)
    thread.start()
    outcome = fit(budget, X, y)
    ends.set()
    thread.join()
    found.append([outcome, (peak - before) / budget])
print(json.dumps(found))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in CASES]
)
def test_a_fit_holds_at_most_max_memory(name):
    sizes, one_class, parameters, enough = CASES[name]
    budgets = [enough * MIB // 4, enough * MIB]
    job = json.dumps([name, sizes, one_class, parameters, budgets])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, job], capture_output=True, text=True, check=True
    )
    (refused, held), (fitted, used) = json.loads(done.stdout)
    assert "max_memory" in refused
    assert held < 1  # little is allocated before the refusal
    assert fitted == "fitted"
    assert used < 1.1
