"""LIBLINEAR in a loop over labels, one binary problem each, on a sample of the labels."""

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from asv_bench.common.data import SplitSet
from asv_bench.peers.meter import Usage, watch
from asv_bench.peers.outcome import Outcome, rank, timed_topk

#: Rows that are scored at a time.
_ROWS = 1024


def run(split: SplitSet, task: Mapping[str, Any]) -> Outcome:
    """Train the sampled labels; predict if they are all that have a positive.

    Parameters
    ----------
    split : SplitSet
        The data.
    task : mapping
        ``n_labels``, how many labels to draw (seed 0) of those with a positive; ``arguments``, the
        command line of LIBLINEAR.

    Returns
    -------
    Outcome
        Seconds are extrapolated to all labels with a positive if not all were trained. Turning the
        rows into LIBLINEAR's own format is not counted.
    """
    library = importlib.import_module("liblinear.liblinearutil")
    by_label = split.Y_train.tocsc()
    used = np.flatnonzero(np.diff(by_label.indptr))
    drawn = used
    if task["n_labels"] < len(used):
        drawn = np.sort(np.random.default_rng(0).choice(used, task["n_labels"], replace=False))
    n, d = split.X_train.shape
    problem = library.problem(np.full(n, -1.0), sp.csr_matrix(split.X_train), bias=1)
    target = np.ctypeslib.as_array(problem.y, (n,))
    W = np.zeros((len(drawn), d + 1))

    def train() -> None:
        for row, label in enumerate(drawn):
            target[:] = -1
            target[by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]] = 1
            model = library.train(problem, task["arguments"])
            W[row] = np.ctypeslib.as_array(model.w, (d + 1,)) * model.get_labels()[0]

    _, usage = watch(train)
    outcome = Outcome(usage=usage)
    if len(drawn) < len(used):
        factor = len(used) / len(drawn)
        outcome.usage = Usage(factor * usage.cpu_s, factor * usage.wall_s, *usage[2:])
        outcome.remarks = [f"extrapolated from {len(drawn):,} of {len(used):,} labels"]
        return outcome
    best, outcome.predict_ms_per_row = timed_topk(lambda X: _score(X, W), split.X_test)
    outcome.topk = np.where(best < 0, -1, used[best])
    outcome.model_bytes, outcome.model_in = W.nbytes, "memory"
    return outcome


def _score(X: Any, W: np.ndarray) -> np.ndarray:
    """Return the positions of the best rows of W, which ends with the intercepts."""
    starts = range(0, X.shape[0], _ROWS)
    return np.concatenate([rank(X[i : i + _ROWS] @ W[:, :-1].T + W[:, -1]) for i in starts])
