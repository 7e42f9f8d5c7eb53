"""Label blocks of one-vs-all that outlive the process."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import numpy as np

from sklearn_xc._data import CsrRows, DenseRows, Targets
from sklearn_xc.parallel.threads import count_threads
from sklearn_xc.solvers.newton_cg import BlockSolution
from sklearn_xc.solvers.pruning import SampleScores
from sklearn_xc.storage.checkpoints import Checkpoints, identity_of, opened

#: Parameters that change no byte of a model.
_APART = ("checkpoint_dir", "n_jobs", "verbose", "top_k", "label_names")
_SAMPLE = "sample."


class BlockStore:
    """The solutions of blocks that are finished.

    Parameters
    ----------
    checkpoints : Checkpoints
    """

    def __init__(self, checkpoints: Checkpoints) -> None:
        self._checkpoints = checkpoints
        #: How many workers the labels are cut for: that of the call that began.
        self.n_workers = int(checkpoints.settings["n_workers"])

    def put(self, number: int, solution: BlockSolution) -> None:
        """Keep a block's solution."""
        arrays = {
            field.name: getattr(solution, field.name)
            for field in fields(solution)
            if field.name != "sample"
        }
        if solution.sample is not None:
            arrays |= {_SAMPLE + name: value for name, value in vars(solution.sample).items()}
        self._checkpoints.put(_name(number), arrays)

    def get(self, number: int, labels: np.ndarray) -> BlockSolution | None:
        """Return the solution of a block with these labels, or None if it is not there."""
        arrays = self._checkpoints.get(_name(number))
        if arrays is None or not np.array_equal(arrays["labels"], labels):
            return None
        of_sample = {
            name.removeprefix(_SAMPLE): arrays.pop(name)
            for name in list(arrays)
            if name.startswith(_SAMPLE)
        }
        sample = SampleScores(**of_sample) if of_sample else None
        return BlockSolution(**arrays, sample=sample)


def _name(number: int) -> str:
    return f"block-{number:06d}"


@contextmanager
def block_store(
    estimator: Any, instances: CsrRows | DenseRows, targets: Targets, weight: np.ndarray | None
) -> Iterator[BlockStore | None]:
    """Open the folder ``checkpoint_dir`` of an estimator; yields None where there is none.

    Raises
    ------
    ValueError, OSError
        As :func:`~sklearn_xc.storage.checkpoints.opened`.
    """
    if getattr(estimator, "checkpoint_dir", None) is None:
        yield None
        return
    data = {
        "X": (*instances.arrays, np.array(instances.shape)),
        "y": (targets.indptr, targets.rows),
        "sample_weight": None if weight is None else (weight,),
    }
    identity = identity_of(estimator, data, _APART)
    settings = {"n_workers": count_threads(estimator.n_jobs)}
    path, who = estimator.checkpoint_dir, type(estimator).__name__
    with opened(path, who, identity, settings) as checkpoints:
        yield BlockStore(checkpoints)
