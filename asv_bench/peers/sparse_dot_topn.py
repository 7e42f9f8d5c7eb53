"""sparse_dot_topn: predictions from the weights that OvALinearXC has left in a file."""

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from asv_bench.common.data import SplitSet
from asv_bench.peers.outcome import K, Outcome, rank, timed_topk


def run(split: SplitSet, task: Mapping[str, Any]) -> Outcome:
    """Predict only.

    Parameters
    ----------
    split : SplitSet
        The data, of which the test rows are used.
    task : mapping
        ``weights``, the file of the weights.

    Returns
    -------
    Outcome
        The model has the size of the product's right side, by feature.

    Raises
    ------
    FileNotFoundError
        If OvALinearXC has not been run before.
    """
    path = Path(task["weights"])
    if not path.is_file():
        raise FileNotFoundError(f"there are no weights of OvALinearXC for {split.name}: run it too")
    multiply = importlib.import_module("sparse_dot_topn").sp_matmul_topn
    by_feature = _weights_by_feature(path)
    lowest = float(np.finfo(by_feature.dtype).min)  # without a threshold it drops negative scores

    def predict(X: Any) -> Any:
        return multiply(_with_constant(X), by_feature, top_n=K, threshold=lowest, sort=True)

    scores, ms = timed_topk(predict, split.X_test)
    arrays = (by_feature.data, by_feature.indices, by_feature.indptr)
    return Outcome(
        topk=rank(scores),
        predict_ms_per_row=ms,
        model_bytes=sum(array.nbytes for array in arrays),
        model_in="memory",
        remarks=["predicts only"],
    )


def _weights_by_feature(path: Path) -> Any:
    """Return the weights as CSR of shape (n_features + 1, n_labels), the intercepts last."""
    with np.load(path) as kept:
        coef = sp.csr_matrix(
            (kept["data"], kept["indices"], kept["indptr"]), shape=tuple(kept["shape"])
        )
        intercept = kept["intercept"].astype(coef.dtype)
    return sp.csr_matrix(sp.vstack([coef.T, sp.csr_matrix(intercept)]))


def _with_constant(X: Any) -> Any:
    ones = sp.csr_matrix(np.ones((X.shape[0], 1), dtype=X.dtype))
    return sp.csr_matrix(sp.hstack([X, ones], format="csr"))
