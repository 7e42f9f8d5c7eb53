"""Label blocks of one-vs-all, and scored folds, that outlive the process."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._data import CsrRows, DenseRows, Targets
from sklearn_xc.parallel.engines import Workers, engine_at_work
from sklearn_xc.solvers.newton_cg import BlockSolution
from sklearn_xc.solvers.pruning import SampleScores
from sklearn_xc.storage.checkpoints import Checkpoints, checkpoints_of, data_of

_SAMPLE = "sample."


class BlockStore:
    """The solutions of blocks that are finished.

    Parameters
    ----------
    checkpoints : Checkpoints
    of : str, default=""
        What they are blocks of: "" for the model.
    """

    def __init__(self, checkpoints: Checkpoints, of: str = "") -> None:
        self._checkpoints, self._of = checkpoints, of
        #: Workers that the labels are cut for, and their processes: those of the call that began.
        self.workers = Workers(*map(int, checkpoints.settings["workers"]))

    def put(
        self, number: int, solutions: Sequence[BlockSolution], end: np.ndarray | None = None
    ) -> None:
        """Keep a block's solutions, one or those on a path, and where the path ends."""
        arrays = {} if end is None else {"end": end}
        for i, solution in enumerate(solutions):
            arrays |= {f"{i}.{name}": array for name, array in _arrays(solution).items()}
        self._checkpoints.put(self._name(number), arrays)

    def get(
        self, number: int, labels: np.ndarray
    ) -> tuple[list[BlockSolution], np.ndarray | None] | None:
        """Return the solutions of a block with these labels, or None if they are not there."""
        arrays = self._checkpoints.get(self._name(number))
        if arrays is None:
            return None
        end, groups = arrays.pop("end", None), dict[int, dict[str, np.ndarray]]()
        for key, array in arrays.items():
            place, _, name = key.partition(".")
            groups.setdefault(int(place), {})[name] = array
        solutions = [_solution(groups[i]) for i in range(len(groups))]
        if not all(np.array_equal(one.labels, labels) for one in solutions):
            return None
        return solutions, end

    def clear(self) -> None:
        """Forget the blocks."""
        self._checkpoints.remove(f"{self._of}block-*")

    def _name(self, number: int) -> str:
        return f"{self._of}block-{number:06d}"


def _arrays(solution: BlockSolution) -> dict[str, np.ndarray]:
    found = {one.name: getattr(solution, one.name) for one in fields(solution)}
    sample = found.pop("sample")
    if sample is not None:
        found |= {_SAMPLE + name: array for name, array in vars(sample).items()}
    return found


def _solution(arrays: dict[str, np.ndarray]) -> BlockSolution:
    names = [name for name in arrays if name.startswith(_SAMPLE)]
    of_sample = {name.removeprefix(_SAMPLE): arrays.pop(name) for name in names}
    return BlockSolution(**arrays, sample=SampleScores(**of_sample) if of_sample else None)


class Scored(NamedTuple):
    """What a fold said of some values of C.

    Attributes
    ----------
    scores : list of (float, ndarray or None)
        As ``FoldScores`` returns them.
    report : dict of ndarray of shape (n_values,)
    """

    scores: list[tuple[float, np.ndarray | None]]
    report: dict[str, np.ndarray]


class FitStore:
    """What is finished of a fit.

    Parameters
    ----------
    checkpoints : Checkpoints
    """

    def __init__(self, checkpoints: Checkpoints) -> None:
        self._checkpoints = checkpoints

    def blocks(self) -> BlockStore:
        """Return the blocks of the model."""
        return BlockStore(self._checkpoints)

    def blocks_of_call(self, number: int) -> BlockStore:
        """Return the blocks of a path; `number` counts the paths of the fit."""
        return BlockStore(self._checkpoints, f"path-{number:04d}-")

    def put_scored(self, number: int, fold: int, values: Sequence[int], found: Scored) -> None:
        """Keep what came of a path."""
        arrays = {
            "fold": np.array(fold), "values": np.array(values),
            "scores": np.array([score for score, _ in found.scores], np.float64),
        }  # fmt: skip
        for i, (_, gains) in enumerate(found.scores):
            if gains is not None:
                arrays[f"gains.{i}"] = gains
        arrays |= {f"report.{name}": array for name, array in found.report.items()}
        self._checkpoints.put(f"path-{number:04d}", arrays)

    def get_scored(self, number: int, fold: int, values: Sequence[int]) -> Scored | None:
        """Return what came of a path, or None if it is not there."""
        arrays = self._checkpoints.get(f"path-{number:04d}")
        if arrays is None or arrays["fold"] != fold or arrays["values"].tolist() != list(values):
            return None
        return Scored(
            [(float(score), arrays.get(f"gains.{i}")) for i, score in enumerate(arrays["scores"])],
            {
                name.removeprefix("report."): array
                for name, array in arrays.items()
                if name.startswith("report.")
            },
        )


@contextmanager
def fit_store(
    estimator: Any,
    instances: CsrRows | DenseRows,
    targets: Targets,
    weight: np.ndarray | None,
    folds: Sequence[tuple[np.ndarray, np.ndarray]] = (),
) -> Iterator[FitStore | None]:
    """Open the folder ``checkpoint_dir`` of an estimator; yields None where there is none.

    Raises
    ------
    ValueError, OSError
        As :func:`~sklearn_xc.storage.checkpoints.opened`.
    """
    of_folds = [rows for fold in folds for rows in fold]
    data = {**data_of(instances, targets, weight), "folds": of_folds}
    settings = {"workers": engine_at_work().count(estimator.n_jobs)}
    with checkpoints_of(estimator, data, settings) as checkpoints:
        yield None if checkpoints is None else FitStore(checkpoints)
