"""Checkpoints of one-vs-all: solved blocks of labels and scored folds in ``checkpoint_dir``."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from sklearn_xc._input.data import CsrRows, DenseRows, Targets
from sklearn_xc._parallel.engines import Workers, active_engine
from sklearn_xc._state.checkpoints import Checkpoints, checkpoints_of, data_of
from sklearn_xc.one_vs_all.problem import OneVsAllProblem
from sklearn_xc.one_vs_all.solver.newton_cg import STATUS_NAMES, BlockSolution

#: Limit on the number of workers of a plan.
_MOST_WORKERS = 2**16
_INTEGERS = ("labels", "n_iter", "n_products", "status")


class BlockStore:
    """The finished parts of a fit.

    Attributes
    ----------
    workers : Workers
        The workers of the interrupted call, which determine the blocks.
    """

    def __init__(self, checkpoints: Checkpoints) -> None:
        self._checkpoints = checkpoints
        n, n_processes = (min(max(1, number), _MOST_WORKERS) for number in checkpoints.settings)
        self.workers = Workers(n, min(n, n_processes))

    def put(self, number: int, solution: BlockSolution) -> None:
        """Store the solution of a block."""
        arrays = {one.name: getattr(solution, one.name) for one in fields(solution)}
        self._checkpoints.put(f"block-{number:06d}", arrays)

    def get(
        self, number: int, labels: np.ndarray, problem: OneVsAllProblem
    ) -> BlockSolution | None:
        """Return the solution of a block, None if it is missing or does not fit the problem."""
        arrays = self._checkpoints.get(f"block-{number:06d}")
        if arrays is None or not _is_solution(arrays, labels, problem):
            return None
        return BlockSolution(**arrays)

    def put_scores(self, call: int, fold: int, values: Sequence[int], scored: Any) -> None:
        """Store the scores of some values of C on a fold, under the number `call`."""
        arrays = {"fold": np.array(fold), "values": np.array(values), "table": np.array(scored)}
        self._checkpoints.put(f"scores-{call:04d}", arrays)

    def get_scores(self, call: int, fold: int, values: Sequence[int]) -> np.ndarray | None:
        """Return stored scores, None if they are missing or of other values."""
        arrays = self._checkpoints.get(f"scores-{call:04d}")
        if arrays is None or arrays.keys() != {"fold", "values", "table"}:
            return None
        is_same = arrays["fold"] == fold and arrays["values"].tolist() == list(values)
        table = arrays["table"]
        fits = table.shape == (len(values), 2) and table.dtype == np.float64
        return table if is_same and fits and np.isfinite(table).all() else None


def _is_solution(
    arrays: dict[str, np.ndarray], labels: np.ndarray, problem: OneVsAllProblem
) -> bool:
    """Tell whether arrays are a solution for these labels that compiled loops can read safely."""
    names = {one.name for one in fields(BlockSolution)}
    if arrays.keys() != names:
        return False
    m = len(labels)
    n_weights = arrays["values"].size
    kinds: dict[str, tuple[Any, int]] = dict.fromkeys(names, (np.float64, m))
    kinds |= dict.fromkeys(_INTEGERS, (np.int64, m)) | {"intercepts": (problem.dtype, m)}
    kinds |= {"values": (problem.dtype, n_weights), "indices": (np.int32, n_weights)}
    kinds["indptr"] = np.int64, m + 1
    for name, (dtype, length) in kinds.items():
        if (arrays[name].dtype, arrays[name].shape) != (np.dtype(dtype), (length,)):
            return False
    indptr, indices, status = arrays["indptr"], arrays["indices"], arrays["status"]
    label_of = np.repeat(np.arange(m), np.maximum(np.diff(indptr), 0))
    return bool(
        np.array_equal(arrays["labels"], labels)
        and (indptr[0], indptr[-1]) == (0, n_weights) == (0, len(label_of))
        and (np.diff(label_of * problem.n_features + indices) > 0).all()
        and (indices >= 0).all()
        and (indices < problem.n_features).all()
        and (status >= 0).all()
        and (status < len(STATUS_NAMES)).all()
        and np.isfinite(arrays["values"]).all()
        and np.isfinite(arrays["intercepts"]).all()
    )


def block_store(
    estimator: Any,
    instances: CsrRows | DenseRows,
    targets: Targets,
    weight: np.ndarray | None,
    **others: Sequence[np.ndarray] | None,
) -> BlockStore:
    """Open the folder ``checkpoint_dir`` of an estimator, which is not None.

    `others` are further arrays on which the fit depends.
    """
    data = {**data_of(instances, targets, weight), **others}
    settings = [*active_engine().count(estimator.n_jobs)]
    return BlockStore(checkpoints_of(estimator, data, settings))
