"""Label blocks of one-vs-all, and scored folds, that outlive the process."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._data import CsrRows, DenseRows, Targets
from sklearn_xc._declared_state import check_attributes
from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.parallel.engines import Workers, engine_at_work
from sklearn_xc.solvers.newton_cg import STATUS_NAMES, BlockSolution
from sklearn_xc.solvers.problem import OneVsAllProblem
from sklearn_xc.solvers.pruning import SampleScores, sample_size
from sklearn_xc.storage.checkpoints import Checkpoints, checkpoints_of, data_of

_SAMPLE = "sample."
#: More are none that a plan is for.
_MOST_WORKERS = 2**16
#: Arrays of a solution with a number for each label, and those of them that are integers.
_INTEGERS = ("labels", "n_iter", "n_products", "status")
_OF_LABELS = (
    *_INTEGERS, "objective", "gradient_norm", "gradient_tolerance", "pruned_objective", "seconds",
)  # fmt: skip


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
        n, n_processes = (min(max(1, number), _MOST_WORKERS) for number in checkpoints.settings)
        #: Workers that the labels are cut for, and their processes: those of the call that began.
        self.workers = Workers(n, min(n, n_processes))

    def put(
        self, number: int, solutions: Sequence[BlockSolution], end: np.ndarray | None = None
    ) -> None:
        """Keep a block's solutions, one or those on a path, and where the path ends."""
        arrays = {} if end is None else {"end": end}
        for i, solution in enumerate(solutions):
            arrays |= {f"{i}.{name}": array for name, array in _arrays(solution).items()}
        self._checkpoints.put(self._name(number), arrays)

    def get(
        self,
        number: int,
        labels: np.ndarray,
        problem: OneVsAllProblem,
        n_solutions: int = 1,
        *,
        has_end: bool = False,
    ) -> tuple[list[BlockSolution], np.ndarray | None] | None:
        """Return the solutions of a block, or None if they are not there, or those of others.

        Parameters
        ----------
        number : int
        labels : ndarray of int64
            Those of the block.
        problem : OneVsAllProblem
        n_solutions : int, default=1
        has_end : bool, default=False
            Whether the end of a path must be there, or must not.
        """
        arrays = self._checkpoints.get(self._name(number))
        if arrays is None:
            return None
        end = arrays.pop("end", None)
        groups: dict[str, dict[str, np.ndarray]] = {str(i): {} for i in range(n_solutions)}
        for key, array in arrays.items():
            place, _, name = key.partition(".")
            groups.setdefault(place, {})[name] = array
        shape = len(labels), problem.n_features + 1
        fits = len(groups) == n_solutions and (end is not None) == has_end
        if end is not None:
            fits = fits and _is_array(end, problem.dtype, shape) and bool(np.isfinite(end).all())
        try:
            solutions = [_solution(of, labels, problem) for of in groups.values()]
        except (KeyError, SavedModelError):
            return None
        return (solutions, end) if fits else None

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


def _solution(
    arrays: dict[str, np.ndarray], labels: np.ndarray, problem: OneVsAllProblem
) -> BlockSolution:
    """Return a solution of a checkpoint, whose arrays compiled loops may read.

    Raises
    ------
    KeyError, SavedModelError
        If it is none of these labels.
    """
    m, n_weights = len(labels), len(np.atleast_1d(arrays["values"]))
    of_labels: dict[str, tuple[Any, tuple[int, ...]]] = {
        name: (np.int64 if name in _INTEGERS else np.float64, (m,)) for name in _OF_LABELS
    }
    expected = of_labels | {
        "indptr": (np.int64, (m + 1,)),
        "indices": (np.int32, (n_weights,)),
        "values": (problem.dtype, (n_weights,)),
        "intercepts": (problem.dtype, (m,)),
    }
    own = {name: arrays[name] for name in expected}
    if not all(_is_array(own[name], *kind) for name, kind in expected.items()):
        raise SavedModelError("an array of a block has another dtype or shape")
    indptr, indices, counts = own["indptr"], own["indices"], np.diff(own["indptr"])
    goes_on = np.ones(n_weights, bool)  # not in the row of the weight before it
    if not (
        np.array_equal(own["labels"], labels)
        and (indptr[0], indptr[-1]) == (0, n_weights)
        and (counts >= 0).all()
        and (indices >= 0).all()
        and (indices < problem.n_features).all()
        and np.isfinite(own["values"]).all()
        and np.isfinite(own["intercepts"]).all()
        and (own["n_iter"] >= 0).all()
        and (own["status"] >= 0).all()
        and (own["status"] < len(STATUS_NAMES)).all()
    ):
        raise SavedModelError("a number of a block is out of range")
    goes_on[indptr[:-1][counts > 0]] = False
    if (np.diff(indices)[goes_on[1:]] <= 0).any():
        raise SavedModelError("features of a label do not rise")
    names = [name for name in arrays if name.startswith(_SAMPLE)]
    sample = None
    if names:
        sample = SampleScores(**{f.name: arrays[_SAMPLE + f.name] for f in fields(SampleScores)})
        check_attributes(sample, "sample", sampled=sample_size(problem))
    return BlockSolution(**own, sample=sample)


def _is_array(array: np.ndarray, dtype: Any, shape: tuple[int, ...]) -> bool:
    return array.dtype == dtype and array.shape == shape


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

    def get_scored(
        self, number: int, fold: int, values: Sequence[int], n_rows: int | None
    ) -> Scored | None:
        """Return what came of a path, or None if it is not there.

        Parameters
        ----------
        number, fold : int
        values : sequence of int
        n_rows : int or None
            Test rows, if it is known what each adds to a score.
        """
        arrays = self._checkpoints.get(f"path-{number:04d}")
        if arrays is None:
            return None
        n = len(values)
        expected: dict[str, tuple[Any, tuple[int, ...]]] = {
            "fold": (np.int64, ()), "values": (np.int64, (n,)), "scores": (np.float64, (n,)),
            "report.n_iter": (np.float64, (n,)), "report.n_products": (np.float64, (n,)),
            "report.n_unsolved": (np.int64, (n,)),
        }  # fmt: skip
        if n_rows is not None:
            expected |= {f"gains.{i}": (np.float64, (n_rows,)) for i in range(n)}
        if (
            arrays.keys() != expected.keys()
            or not all(_is_array(arrays[name], *kind) for name, kind in expected.items())
            or not all(np.isfinite(array).all() for array in arrays.values())
            or arrays["fold"] != fold
            or arrays["values"].tolist() != list(values)
        ):
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
    settings = [*engine_at_work().count(estimator.n_jobs)]
    with checkpoints_of(estimator, data, settings) as checkpoints:
        yield None if checkpoints is None else FitStore(checkpoints)
