"""OvALinearXC with its default settings, or with another loss, and OvALinearXCCV."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import sklearn_xc
from asv_bench.common.data import SplitSet
from asv_bench.common.measure import cpu_seconds, fit_quietly, n_unsolved, warm_up
from asv_bench.peers.meter import watch
from asv_bench.peers.outcome import K, Outcome, timed_topk
from sklearn_xc import OvALinearXC


def run(split: SplitSet, task: Mapping[str, Any]) -> Outcome:
    """Train and predict.

    Parameters
    ----------
    split : SplitSet
        The data.
    task : mapping
        ``n_jobs``; ``weights``, the file to keep the weights in if they are the default
        estimator's; ``loss`` and ``estimator`` if they are not the default.

    Returns
    -------
    Outcome
        With ``warm_up_s``, CPU seconds of a first small fit: compilation, or its result read from
        the cache on disk. They are not part of the training.
    """
    loss = task.get("loss", "squared_hinge")
    estimator = getattr(sklearn_xc, task.get("estimator", "OvALinearXC"))
    model = estimator(loss=loss, n_jobs=task["n_jobs"])
    if estimator is OvALinearXC:
        model.C = 1.0  # as the other solvers
    _, warm_up_s = cpu_seconds(warm_up, OvALinearXC(loss=loss), split.X_train, split.Y_train)
    _, usage = watch(fit_quietly, model, split.X_train, split.Y_train)
    model.n_jobs = 1
    (topk, _), ms = timed_topk(lambda X: model.predict_topk(X, K), split.X_test)
    if model.__class__ is OvALinearXC and loss == "squared_hinge":
        keep_weights(model, Path(task["weights"]))
    coef = model.coef_
    arrays = (coef.data, coef.indices, coef.indptr, model.intercept_)
    return Outcome(
        usage=usage,
        topk=topk,
        predict_ms_per_row=ms,
        model_bytes=sum(array.nbytes for array in arrays),
        model_in="memory",
        n_threads=task["n_jobs"],
        n_unsolved=n_unsolved(model),
        remarks=[f"chose C={model.C_:g}"] if hasattr(model, "C_") else [],
        figures={"warm_up_s": warm_up_s},
    )


def keep_weights(model: OvALinearXC, path: Path) -> None:
    """Write weights and intercepts to a file, for systems that predict from them."""
    coef, intercept = model.coef_.tocsr(), model.intercept_.copy()
    intercept[model.label_counts_ == 0] = -1e30  # they come last, as in predict_topk
    with path.open("wb") as file:
        np.savez(
            file, data=coef.data, indices=coef.indices, indptr=coef.indptr, shape=coef.shape,
            intercept=intercept,
        )  # fmt: skip
