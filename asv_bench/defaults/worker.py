"""One estimator on one set at one size, in this process: ``worker TASK.json RESULT.json``."""

import importlib
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from asv_bench.common.data import SplitSet
from asv_bench.common.runs import answer_task, row_or_error
from asv_bench.common.sized_sets import SizedSet, load_sized_set
from asv_bench.defaults.entries import ENTRIES, Entry
from asv_bench.peers.meter import watch
from asv_bench.peers.outcome import K, Outcome, timed_topk
from asv_bench.peers.worker import to_row

#: Test rows at most.
_TEST_ROWS = 10_000


def run(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``rows``, one for each of the ``parameters``.

    Parameters
    ----------
    task : mapping
        With ``set``, ``size``, ``entry``, ``cache`` and a list of ``parameters``.
    """
    sized = load_sized_set(task["set"], task["size"], None, cache=task["cache"])
    entry = ENTRIES[task["entry"]]
    return {"rows": [row_or_error(measure, sized, entry, given) for given in task["parameters"]]}


def measure(sized: SizedSet, entry: Entry, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of an estimator with some parameters."""
    seen = np.flatnonzero(np.bincount(sized.Y_train.indices, minlength=sized.Y_train.shape[1]))
    known = with_labels(sized, seen)
    if entry.peer is not None:
        module = importlib.import_module(f"asv_bench.peers.{entry.peer}")
        split = SplitSet(sized.name, *known[1:5])
        outcome = module.run(split, {"n_jobs": 1})
    else:
        outcome = _fit(entry.make, known, parameters)
    outcome.topk = np.where(outcome.topk >= 0, seen[outcome.topk], -1)
    parts = (sized.X_train, sized.Y_train, sized.X_test[:_TEST_ROWS], sized.Y_test[:_TEST_ROWS])
    row = to_row(SplitSet(sized.name, *parts), outcome)
    return row | {"n_train": sized.X_train.shape[0], "n_labels": len(seen)}


def with_labels(sized: SizedSet, seen: np.ndarray) -> SizedSet:
    """Return a set with some of its labels, as a user would have it, and enough test rows."""
    return sized._replace(
        Y_train=sized.Y_train[:, seen],
        X_test=sized.X_test[:_TEST_ROWS],
        Y_test=sized.Y_test[:_TEST_ROWS][:, seen],
        Z=None if sized.Z is None else sized.Z[seen],
    )


def _fit(make: Any, known: SizedSet, parameters: Mapping[str, Any]) -> Outcome:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = np.arange(min(200, known.X_train.shape[0]))
        _warm_up(make, known, rows)
        model = make(known, parameters)
        _, usage = watch(model.fit, known.X_train, known.target)
        (topk, _), ms = timed_topk(lambda X: model.predict_topk(X, K), known.X_test)
    classes = np.asarray(model.classes_)
    return Outcome(
        usage=usage, topk=np.where(topk >= 0, classes[topk], -1), predict_ms_per_row=ms
    )  # fmt: skip


def _warm_up(make: Any, known: SizedSet, rows: np.ndarray) -> None:
    """Have loops compiled, or read from the cache, before the clock runs."""
    few = known._replace(X_train=known.X_train[rows], Y_train=known.Y_train[rows])
    model = make(few, {})
    for name in ("max_iter", "classifier_max_iter"):
        if name in model.get_params():
            model.set_params(**{name: 1})
    try:
        model.fit(few.X_train, few.target).predict_topk(known.X_test[:2], 1)
    except ValueError:  # too few rows for some
        return


if __name__ == "__main__":
    answer_task(run, *sys.argv[1:])
