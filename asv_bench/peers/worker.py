"""One system on one set in this process: ``worker TASK.json RESULT.json``."""

import importlib
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from asv_bench.common.data import SplitSet, load_set
from asv_bench.common.runs import answer_task
from asv_bench.peers import SYSTEMS
from asv_bench.peers.outcome import Outcome
from sklearn_xc.metrics import precision_at_k, propensity, psp_at_k

KS = (1, 3, 5)

#: System of the task that measures compilation alone.
COMPILE = "compile"


def run(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the table.

    Parameters
    ----------
    task : mapping
        With ``set``, ``system``, ``cache`` and what the system asks for.
    """
    if task["system"] == COMPILE:
        from asv_bench.peers.compile import compile_seconds

        return {"compile_s": compile_seconds()}
    system = SYSTEMS[task["system"]]
    split = load_set(task["set"], None, cache=task["cache"])
    module = importlib.import_module(f"asv_bench.peers.{system.module}")
    return to_row(split, module.run(split, {**task, **system.options}))


def to_row(split: SplitSet, outcome: Outcome) -> dict[str, Any]:
    """Return what is shown of an outcome: precision and PSP@k in %, sizes in MB (10^6 bytes).

    Parameters
    ----------
    split : SplitSet
        The data. Propensities follow from the training labels, with the constants A=0.55, B=1.5.
    outcome : Outcome
        What the system returned.

    Returns
    -------
    dict
        Of numbers, texts and None.
    """
    row: dict[str, Any] = dict(outcome.figures)
    if outcome.topk is not None:
        counts = np.bincount(split.Y_train.indices, minlength=split.Y_train.shape[1])
        weight = propensity(counts, split.Y_train.shape[0])
        precision = precision_at_k(split.Y_test, outcome.topk, KS)
        scored = psp_at_k(split.Y_test, outcome.topk, KS, propensities=weight)
        row |= {f"P@{k}": 100 * float(p) for k, p in zip(KS, precision, strict=True)}
        row |= {f"PSP@{k}": 100 * float(p) for k, p in zip(KS, scored, strict=True)}
    if outcome.usage is not None:
        row |= {"train_cpu_s": outcome.usage.cpu_s, "train_wall_s": outcome.usage.wall_s}
        row |= {"before_mb": _mb(outcome.usage.before_bytes)}
        row |= {"peak_mb": _mb(outcome.usage.peak_bytes)}
        row |= {"n_threads": outcome.n_threads}
    return row | {
        "predict_ms_per_row": outcome.predict_ms_per_row,
        "model_mb": _mb(outcome.model_bytes),
        "model_in": outcome.model_in,
        "n_unsolved": outcome.n_unsolved,
        "remarks": outcome.remarks,
    }


def _mb(n_bytes: int | None) -> float | None:
    return None if n_bytes is None else n_bytes / 1e6


if __name__ == "__main__":
    answer_task(run, *sys.argv[1:])
