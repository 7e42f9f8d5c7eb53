"""Hours of fits and answers in one process: neither memory nor threads grow.

``SOAK_MINUTES=60 python -m pytest -m slow -s tests/contract/test_soak.py``
"""

import gc
import os
import re
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from registry import ENTRIES
from saved_models import X, Y
from test_saved_folders import NAMES, TEXTS

import sklearn_xc
from sklearn_xc import TextClassifierXC

_MINUTES = float(os.environ.get("SOAK_MINUTES", "10"))
#: MiB that the process may grow by, on the line through the later two thirds of the rounds.
_MOST = 16


def measured():
    """Return the memory of this process, in MiB, and its threads."""
    gc.collect()
    status = Path("/proc/self/status").read_text()
    found = {name: int(re.search(rf"{name}:\s+(\d+)", status)[1]) for name in ("VmRSS", "Threads")}
    return found["VmRSS"] / 1024, found["Threads"]


def one_round(folder):
    for name, entry in ENTRIES.items():
        threads = {} if "n_jobs" not in entry.make().get_params() else {"n_jobs": 2}
        model = entry.make(**threads).fit(X, Y)
        model.predict_topk(X, 3)
        model.predict(X)
        if name != "StackingXC":  # whose quick learner cannot be saved
            model.save(folder / "model")
            sklearn_xc.load(folder / "model").predict_topk(X, 3)
    model = TextClassifierXC().fit(TEXTS, NAMES)
    model.save(folder / "model")
    sklearn_xc.load(folder / "model").predict(TEXTS)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.filterwarnings("ignore")
def test_memory_and_threads_stay(tmp_path):
    one_round(tmp_path)  # which compiles
    start, rounds = time.monotonic(), []
    while time.monotonic() - start < 60 * _MINUTES or len(rounds) < 6:
        one_round(tmp_path)
        rounds.append((time.monotonic() - start, *measured()))
    seconds, memory, threads = np.array(rounds[len(rounds) // 3 :]).T
    slope = np.polyfit(seconds, memory, 1)[0]
    growth = slope * (seconds[-1] - seconds[0])
    print(
        f"{len(rounds)} rounds in {rounds[-1][0]:.0f} s: {memory[0]:.0f} to {memory[-1]:.0f} MiB, "
        f"{60 * slope:+.2f} MiB a minute, {1024 * growth / len(seconds):+.0f} KiB a round; "
        f"{threads.min():.0f} to {threads.max():.0f} threads"
    )
    assert growth < _MOST
    assert threads[-1] <= threads[0]
