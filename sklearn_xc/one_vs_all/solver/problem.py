"""The frozen input of one-vs-all training: one binary problem per label over shared instances.

For label j, with y in {-1, +1}^n, minimise over w (and b)::

    0.5 (|w|^2 + ridge b^2) + sum_i c_ij phi(y_i (w.x_i + b))

where c_ij is the row's weight times ``plus[j]`` for a positive and ``minus[j]`` for a negative.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._input.blank_rows import LabelFrequencies, is_blank
from sklearn_xc._input.data import CsrRows, DenseRows, read_only
from sklearn_xc._input.kernels import csr_rows
from sklearn_xc._input.kernels.csr_order import arrange_rows, count_features, transpose_rows
from sklearn_xc._input.row_pieces import row_pieces
from sklearn_xc._parallel.spill import maker
from sklearn_xc.one_vs_all.kernels import dense_rows
from sklearn_xc.one_vs_all.kernels.constant_scores import constant_scores_kernel
from sklearn_xc.one_vs_all.kernels.row_sums import row_sums_kernel, square_sums_kernel
from sklearn_xc.one_vs_all.kernels.screen import round_rows
from sklearn_xc.one_vs_all.losses.margin import CompiledLoss, MarginLoss, compiled

#: Squares of gradients must fit into float64, also of those to which the descent comes down.
_LARGEST_GRADIENT = 1e150
_LEAST_GRADIENT = 1e-130

#: Cached properties, which are not sent to other processes.
_DERIVED = ("rounded", "postings", "loss", "shared_negatives")

#: Sparse problems with a smooth loss and fewer labels are solved one label at a time.
_FEWEST_LABELS = 8

#: Makes an array of a length and a dtype, in memory or elsewhere.
Empty = Callable[..., np.ndarray]

#: A label without positives: the all-negative problem.
NO_POSITIVES = np.zeros(0, np.int32)


@dataclass(frozen=True)
class OneVsAllProblem:
    """One binary problem per label, all over the same instances; its arrays are read-only.

    Parameters
    ----------
    instances : CsrRows or DenseRows of shape (n, d)
        X, its instances and features in any order.
    columns : ndarray of int32 of shape (d,)
        Which feature of the caller's X each one is.
    y_indptr, y_rows : ndarray of int64 (L + 1,) and int32
        Positive rows of each label, in CSC form, rising.
    weight : ndarray of shape (n,)
        Positive row weights, of the dtype of X.
    plus, minus : ndarray of float64 of shape (L,)
        Weight of the loss of a positive and of a negative, C included.
    relative_tolerance : ndarray of float64 of shape (L,)
        A label is solved when its gradient norm is at most this times the norm at w = 0.
    relative_gap : float
        Nor is it solved before half its squared gradient norm, which bounds the objective's
        distance from the minimum, is at most this share of the objective. inf: no such condition.
    margin_loss : MarginLoss
        The loss of each instance.
    fit_intercept, regularize_intercept : bool
        Whether there is an intercept, and whether the ridge covers it.
    max_iter : int
        Most Newton steps for a label.
    prune : float
        Weights of smaller magnitude become zero after training (never the intercept).
    owner : str, default="OvALinearXC"
        The estimator that messages name.
    in_files : bool, default=False
        Whether copies of a sparse X go to files.
    """

    instances: CsrRows | DenseRows
    columns: np.ndarray
    y_indptr: np.ndarray
    y_rows: np.ndarray
    weight: np.ndarray
    plus: np.ndarray
    minus: np.ndarray
    relative_tolerance: np.ndarray
    relative_gap: float
    margin_loss: MarginLoss
    fit_intercept: bool
    regularize_intercept: bool
    max_iter: int
    prune: float
    owner: str = "OvALinearXC"
    in_files: bool = False

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, read_only(value))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in _DERIVED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()  # pickle gives back arrays that can be written

    @cached_property
    def rounded(self) -> tuple[np.ndarray, ...]:
        """Sparse instances in int16; each process rounds them once."""
        return rounded(self.instances, maker(self.in_files, self.owner))  # type: ignore

    @cached_property
    def postings(self) -> tuple[tuple[np.ndarray, ...], float] | None:
        """Sparse instances by feature, with the largest norm; None if an entry is negative."""
        return postings(self.instances, maker(self.in_files, self.owner))  # type: ignore

    @property
    def n_samples(self) -> int:
        """Number of instances, n."""
        return self.instances.shape[0]

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return self.instances.shape[1]

    @property
    def dtype(self) -> np.dtype:
        """Type of the features, and of the weights."""
        return self.instances.dtype

    @property
    def rows_of(self) -> ModuleType:
        """How kernels read the instances."""
        return csr_rows if isinstance(self.instances, CsrRows) else dense_rows

    @property
    def n_labels(self) -> int:
        """Number of binary problems."""
        return self.y_indptr.shape[0] - 1

    @cached_property
    def loss(self) -> CompiledLoss:
        """The loss as kernels see it."""
        return compiled(self.margin_loss)

    @property
    def intercept(self) -> float:
        """1 if there is an intercept, else 0: the value of the constant feature."""
        return float(self.fit_intercept)

    @property
    def ridge(self) -> float:
        """1 if the ridge covers the intercept, else 0."""
        return float(self.fit_intercept and self.regularize_intercept)

    def positives(self, label: int) -> np.ndarray:
        """Return the positive rows of `label`."""
        return self.y_rows[self.y_indptr[label] : self.y_indptr[label + 1]]


@dataclass(frozen=True)
class InstanceSums:
    """Sums over all instances that every label's start and stopping rule need.

    Parameters
    ----------
    total : ndarray of float64 of shape (d + 1,)
        Weighted sum of the instances; the constant feature, if any, stands last.
    weight : float
        Sum of the row weights.
    squares : float
        Weighted sum of the squared norms of the instances, constant feature included.
    """

    total: np.ndarray
    weight: float
    squares: float


class PositiveSums(NamedTuple):
    """What is known of the weighted sum p of the positives of each of m labels.

    Attributes
    ----------
    weight : ndarray of float64 of shape (m,)
        Summed weights.
    squares, with_mean : ndarray of float64 of shape (m,)
        Products of p with itself and with the mean of all instances, constant feature left out.
    """

    weight: np.ndarray
    squares: np.ndarray
    with_mean: np.ndarray


def sum_rows(problem: OneVsAllProblem, rows: np.ndarray) -> np.ndarray:
    """Return the weighted sum of some instances, float64 (d + 1,), constant feature last."""
    out = np.zeros(problem.n_features + 1)
    add_rows = row_sums_kernel(problem.rows_of)
    add_rows(problem.instances.arrays, read_only(rows), problem.weight, out)
    out[-1] *= problem.intercept
    return out


def sum_instances(problem: OneVsAllProblem) -> InstanceSums:
    """Return the sums over all instances."""
    rows = np.arange(problem.n_samples, dtype=np.int32)
    weight = float(problem.weight.sum(dtype=np.float64))
    sums, squares = np.zeros(problem.n_features), np.zeros(problem.n_features)
    add_squares = square_sums_kernel(problem.rows_of)
    add_squares(problem.instances.arrays, problem.weight, sums, squares)
    with np.errstate(over="ignore"):
        squares_sum = float(squares.sum()) + weight * problem.intercept
    return InstanceSums(sum_rows(problem, rows), weight, squares_sum)


def check_range(problem: OneVsAllProblem, sums: InstanceSums) -> None:
    """Raise unless the arithmetic of X can hold the sums that a solver makes of a problem.

    Parameters
    ----------
    problem : OneVsAllProblem
        Its row weights are at most 2.
    sums : InstanceSums
        Sums over its instances.

    Raises
    ------
    ValueError
        Where the curvature of the loss, or the square of its gradient, is too large, or where the
        gradient, that no weight exceeds, is too small.
    """
    type_info = np.finfo(problem.dtype)
    costs = np.maximum(problem.plus, problem.minus)
    highest, lowest = float(costs.max()), float(costs.min())
    # Bounds on the trace of the Hessian and on the norm of the gradient at zero, over all labels.
    # Python's floats raise where these overflow, numpy's give inf.
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        curvature = np.float64(2.0) * highest * sums.squares
        gradient = np.sqrt(curvature) * np.sqrt(np.float64(2.0) * highest * sums.weight)
        least = 2.0 * lowest * np.sqrt(sums.squares) * np.sqrt(sums.weight)
    fits = curvature < type_info.max and gradient < _LARGEST_GRADIENT
    needed = max(float(type_info.tiny / type_info.eps), _LEAST_GRADIENT)
    if not fits or (least < needed and _has_instances(problem)):
        raise ValueError(_out_of_range(problem, "small" if fits else "large", costs))


def _has_instances(problem: OneVsAllProblem) -> bool:
    """Return whether there is anything to learn from: a feature or the constant one."""
    return bool(problem.intercept) or any(a.any() for a in problem.instances.arrays[-1:])


def _out_of_range(problem: OneVsAllProblem, what: str, costs: np.ndarray) -> str:
    values = problem.instances.arrays[-1]
    largest = max(float(values.max()), -float(values.min())) if values.size else 0.0
    advice = "lower" if what == "large" else "raise"
    return (
        f"{problem.owner}: X, C, sample_weight and the weights of labels make numbers too "
        f"{what} for {problem.dtype}: X has entries up to {largest:.3g} in magnitude, and C times "
        f"the weights is {costs.min():.3g} to {costs.max():.3g}. Scale X to rows of about unit "
        f"length, or {advice} C or the weights."
    )


def is_side_by_side(problem: OneVsAllProblem) -> bool:
    """Tell whether ``SmoothNewton``, 16 labels at a time, is the faster solver."""
    is_sparse = isinstance(problem.instances, CsrRows)
    return pays_side_by_side(is_sparse, problem.loss.has_kink, problem.n_labels)


def pays_side_by_side(is_sparse: bool, has_kink: bool, n_labels: int) -> bool:
    """Tell the same from the data; dense rows fill vector registers by themselves."""
    return is_sparse and not has_kink and n_labels >= _FEWEST_LABELS


def constant_scores(problem: OneVsAllProblem) -> np.ndarray:
    """Return the best score of each label for instances without features, (n_labels,)."""
    labels = np.repeat(np.arange(problem.n_labels), np.diff(problem.y_indptr))
    frequencies = LabelFrequencies.of(
        problem.y_rows, labels, problem.weight, is_blank(problem.instances), problem.n_labels
    )
    positive = frequencies.of_blank()
    negative = frequencies.total - positive
    out = np.empty(problem.n_labels)
    constant_scores_kernel(problem.loss)(problem.plus * positive, problem.minus * negative, out)
    return out.astype(problem.dtype)


class Arrangement(NamedTuple):
    """Instances in another order.

    Attributes
    ----------
    instances : CsrRows or DenseRows of shape (n, n_features)
        In the new order.
    order : ndarray of int64 of shape (n,)
        The old number of each instance.
    features : ndarray of int32 of shape (n_features,)
        The old number of each feature.
    """

    instances: CsrRows | DenseRows
    order: np.ndarray
    features: np.ndarray


def arranged(instances: CsrRows | DenseRows, empty: Empty = np.empty) -> Arrangement:
    """Return the same instances in the order in which training reads them fastest.

    Features by falling frequency, so that what is read most lies close together; instances by
    rising number of non-zeros, so that a processor foresees the end of each. Dense ones stay as
    they are: no order is faster. `empty` makes the arrays with a number for each entry.
    """
    n, d = instances.shape
    if isinstance(instances, DenseRows):
        return Arrangement(instances, np.arange(n), np.arange(d, dtype=np.int32))
    counts = _feature_counts(instances)
    features = np.argsort(-counts, kind="stable").astype(np.int32)
    number = np.empty_like(features)
    number[features] = np.arange(len(features), dtype=np.int32)
    lengths = np.diff(instances.indptr)
    order = np.argsort(lengths, kind="stable")
    indptr = np.concatenate(([0], np.cumsum(lengths[order]))).astype(np.int64)
    nnz = len(instances.data)
    indices, data = empty(nnz, np.int32), empty(nnz, instances.dtype)
    arrange_rows(*instances.arrays, order, read_only(number), read_only(indptr), indices, data)
    rows = CsrRows(indptr, indices, data, instances.shape)
    return Arrangement(rows, order, read_only(features))


def rounded(instances: CsrRows, empty: Empty = np.empty) -> tuple[np.ndarray, ...]:
    """Return the rows in int16, as ``screen_rows`` reads them; 2 bytes for each non-zero."""
    n = instances.shape[0]
    values, exponents = empty(len(instances.data), np.int16), np.empty(n, np.int16)
    reach = np.empty(n, np.int32)
    round_rows(instances.indptr, instances.data, values, exponents, reach)
    found = read_only(values), read_only(exponents), read_only(reach)
    return instances.indptr, instances.indices, *found


def postings(
    instances: CsrRows, empty: Empty = np.empty
) -> tuple[tuple[np.ndarray, ...], float] | None:
    """Return X by feature, ``(indptr, rows, values)``, and the largest norm of a row.

    None where X has negative entries: what a feature adds to a score has no bound then.
    """
    indptr, indices, data = instances.arrays
    if len(data) and data.min() < 0:
        return None
    by_feature = np.concatenate(([0], np.cumsum(_feature_counts(instances))))
    rows, values = empty(len(data), np.int32), empty(len(data), data.dtype)
    transpose_rows(indptr, indices, data, by_feature[:-1].copy(), rows, values)
    largest = 0.0
    for first, last in row_pieces(indptr):
        start = indptr[first]
        squares = np.square(data[start : indptr[last]], dtype=np.float64)
        sums = np.concatenate(([0.0], np.cumsum(squares)))
        of_row = np.diff(sums[indptr[first : last + 1] - start]) * (1.0 + 1e-9) + 1e-12 * sums[-1]
        largest = max(largest, float(of_row.max(initial=0.0)))
    return (read_only(by_feature), read_only(rows), read_only(values)), float(np.sqrt(largest))


def _feature_counts(instances: CsrRows) -> np.ndarray:
    """Return the entries of each feature, int64 (d,)."""
    counts = np.zeros(instances.shape[1], np.int64)
    count_features(instances.indices, counts)
    return counts
