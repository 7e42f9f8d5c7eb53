"""One-vs-all training problems: one binary problem per label over shared instances.

For label j, with y in {-1, +1}^n, minimise over w (and b)::

    0.5 (|w|^2 + b^2) + sum_i c_ij phi(y_i (w.x_i + b))

where c_ij is the row's weight times ``plus[j]`` for a positive and ``minus[j]`` for a negative.
That of a positive is also multiplied by its relevance, if there is one: its weighted mean over the
positives of a label is 1, the rest is in ``plus[j]``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.arguments import check_numbers, is_number
from sklearn_xc._input.data import (
    CsrRows,
    DenseRows,
    LabelFrequencies,
    Targets,
    is_blank,
    read_only,
    row_pieces,
)
from sklearn_xc._input.kernels.csr_rows import arrange_rows, count_features, transpose_rows
from sklearn_xc._parallel.memory import allocator
from sklearn_xc.metrics import propensity
from sklearn_xc.one_vs_all.kernels import dense_rows, sparse_rows
from sklearn_xc.one_vs_all.kernels.block_newton import row_sums_kernel, square_sums_kernel
from sklearn_xc.one_vs_all.kernels.mean_scores import constant_scores_kernel
from sklearn_xc.one_vs_all.kernels.screen import round_rows
from sklearn_xc.one_vs_all.losses import LOSSES
from sklearn_xc.one_vs_all.losses.margin import CompiledLoss, MarginLoss, compiled

#: For ``tol=None``: the certified relative suboptimality, and eps0 of the rule that counts where
#: precision allows no certificate.
DEFAULT_TOL, DEFAULT_GAP = 0.01, 1e-3

#: Squares of gradients must fit into float64, including those near the optimum.
_LARGEST_GRADIENT = 1e150
_LEAST_GRADIENT = 1e-130

#: Cached properties, which are not sent to other processes.
_DERIVED = ("rounded", "postings", "loss", "shared_negatives")

#: Sparse problems with a smooth loss and fewer labels are solved one label at a time.
_FEWEST_LABELS = 8

#: Labels may be solved on working sets where there are at least this many rows; see
#: ``labels_that_pay`` of ``solver.working_sets``.
FEWEST_ROWS = 14_000

#: Makes an array from a length and a dtype, in memory or in a file.
Empty = Callable[..., np.ndarray]

#: Rows of a label without positives: the all-negative problem.
NO_POSITIVES = np.zeros(0, np.int32)


def build_problem(
    estimator: Any,
    C: float,
    instances: CsrRows | DenseRows,
    targets: Targets,
    weight: np.ndarray | None,
    in_files: bool = False,
) -> "OneVsAllProblem":
    """Return the problems of all labels.

    Parameters
    ----------
    estimator : OvALinearXC or OvALinearXCCV
        Has the parameters, and is named in messages.
    C : float
        Weight of the summed loss.
    instances : CsrRows or DenseRows of shape (n, n_features)
        X.
    targets : Targets
        y.
    weight : ndarray of float64 of shape (n,) or None
        Positive.
    in_files : bool, default=False
        Whether copies of X go to files.

    Raises
    ------
    ValueError
        For invalid weights of labels.
    """
    caller = type(estimator).__name__
    empty = allocator(in_files, caller)
    if isinstance(instances, CsrRows):
        instances = instances.without_zeros(empty)
    instances, order, columns = arranged(instances, empty)
    row_weight = np.ones(instances.shape[0]) if weight is None else weight
    # Weights from 1 to 2 fit into float32, squared too; a power of two changes no digit.
    exponent = int(np.frexp(row_weight.max())[1]) - 1
    row_weight = np.ldexp(row_weight, -exponent)
    label_of_entry = np.repeat(np.arange(targets.n_problems), np.diff(targets.indptr))
    # Label by label: a cumulative sum would tie the bits of a label to those before it.
    positive = np.bincount(
        label_of_entry, weights=row_weight[targets.rows], minlength=targets.n_problems
    )
    total = float(row_weight.sum())
    tol, gap = (DEFAULT_TOL, DEFAULT_GAP) if estimator.tol is None else (estimator.tol, np.inf)
    least = np.maximum(np.ldexp(1.0, -exponent), np.minimum(positive, total - positive))
    factors = loss_factors(estimator, targets, positive, total, exponent)
    with np.errstate(over="ignore", under="ignore"):  # check_range raises
        plus, minus = (np.ldexp(C * factor, exponent) for factor in factors)
        y_rows, relevance = _rearranged(targets, order)
        if relevance is not None:
            of_pair = row_weight[targets.rows] * targets.pair_weight
            total_of_label = np.bincount(label_of_entry, of_pair, targets.n_problems)
            mean = np.divide(total_of_label, positive, out=np.ones(len(plus)), where=positive > 0)
            plus = plus * mean
            relevance = relevance / mean[label_of_entry]
    return OneVsAllProblem(
        instances=instances,
        columns=columns,
        y_indptr=targets.indptr,
        y_rows=y_rows,
        weight=row_weight[order].astype(instances.dtype),
        plus=plus,
        minus=minus,
        relative_tolerance=tol * np.minimum(least / total, 1.0),
        relative_gap=gap,
        margin_loss=loss_of(estimator),
        fit_intercept=estimator.fit_intercept,
        max_iter=estimator.max_iter,
        prune=estimator.prune,
        owner=caller,
        in_files=in_files,
        relevance=relevance,
    )


def loss_of(estimator: Any) -> MarginLoss:
    """Return the loss that the parameter `loss` names, or is."""
    return LOSSES[estimator.loss]() if isinstance(estimator.loss, str) else estimator.loss


@dataclass(frozen=True)
class OneVsAllProblem:
    """One binary problem per label, all over the same instances; its arrays are read-only.

    Parameters
    ----------
    instances : CsrRows or DenseRows of shape (n, d)
        X, rearranged (see ``arranged``).
    columns : ndarray of int32 of shape (d,)
        Original number of each feature.
    y_indptr, y_rows : ndarray of int64 (L + 1,) and int32
        Positive rows of each label, in CSC form, ascending.
    weight : ndarray of shape (n,)
        Positive row weights, of the dtype of X.
    plus, minus : ndarray of float64 of shape (L,)
        Weight of the loss of a positive and of a negative, C included.
    relative_gap : float
        Certificate: half the squared gradient norm, which bounds the objective's distance from the
        minimum, must be at most this share of the objective. inf for no certificate.
    relative_tolerance : ndarray of float64 of shape (L,)
        Largest gradient norm relative to the norm at w = 0: the stopping rule without a
        certificate, or where precision allows none.
    margin_loss : MarginLoss
        The loss of each instance.
    fit_intercept : bool
        Whether there is an intercept, which the ridge covers.
    max_iter : int
        Maximum number of Newton steps for a label.
    prune : float
        Weights of smaller magnitude become zero after training (never the intercept).
    owner : str, default="OvALinearXC"
        Name of the estimator, for messages.
    in_files : bool, default=False
        Whether copies of a sparse X go to files.
    relevance : ndarray of float64, default=None
        Factor on the loss of each of `y_rows`, of mean 1 for each label; None for 1.
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
    max_iter: int
    prune: float
    owner: str = "OvALinearXC"
    in_files: bool = False
    relevance: np.ndarray | None = None

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
        """Sparse rows in int16, 2 bytes for each non-zero, as ``screen_rows`` reads them."""
        rows = self.instances
        empty = allocator(self.in_files, self.owner)
        assert isinstance(rows, CsrRows)
        values = empty(len(rows.data), np.int16)
        exponents = np.empty(len(rows.indptr) - 1, np.int16)
        reach = np.empty(len(exponents), np.int32)
        round_rows(rows.indptr, rows.data, values, exponents, reach)
        found = read_only(values), read_only(exponents), read_only(reach)
        return rows.indptr, rows.indices, *found

    @cached_property
    def postings(self) -> tuple[tuple[np.ndarray, ...], float] | None:
        """Posting lists of sparse instances and the largest norm; None if an entry is negative."""
        return postings(self.instances, allocator(self.in_files, self.owner))  # type: ignore

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
        return sparse_rows if isinstance(self.instances, CsrRows) else dense_rows

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

    def positives(self, label: int) -> np.ndarray:
        """Return the positive rows of `label`."""
        return self.y_rows[self.y_indptr[label] : self.y_indptr[label + 1]]

    def weight_of(self, label: int) -> np.ndarray:
        """Return the row weights for a label: those of its positives times their relevance."""
        if self.relevance is None:
            return self.weight
        weight = self.weight.copy()
        own = slice(self.y_indptr[label], self.y_indptr[label + 1])
        weight[self.y_rows[own]] *= self.relevance[own]
        return read_only(weight)

    def point(self, features: np.ndarray, weights: np.ndarray, intercept: float) -> np.ndarray:
        """Return sparse weights and an intercept as a vector, float64 (d + 1,)."""
        out = np.zeros(self.n_features + 1)
        out[features] = weights
        out[-1] = intercept
        return out

    @property
    def is_side_by_side(self) -> bool:
        """Whether ``SmoothNewton``, 16 labels at a time, is the faster solver."""
        is_sparse = isinstance(self.instances, CsrRows)
        return pays_side_by_side(is_sparse, self.loss.has_kink, self.n_labels)

    def at_cost(self, C: float) -> "OneVsAllProblem":
        """Return the problem with C times the loss weights, over the same instances."""
        if C == 1.0:
            return self
        at_C = self._changed(plus=C * self.plus, minus=C * self.minus)
        if "rounded" in vars(at_C) and self.n_samples >= FEWEST_ROWS:
            vars(at_C)["postings"] = self.postings
        return at_C

    def _changed(self, **changes: Any) -> "OneVsAllProblem":
        """Return another problem over the same instances, which are rounded once for all."""
        other = replace(self, **changes)
        if isinstance(self.instances, CsrRows) and self.loss.has_kink:
            vars(other)["rounded"] = self.rounded
        return other

    def all_negative(self, **changes: Any) -> "OneVsAllProblem":
        """Return the problem of a label without positives, with further changes."""
        return self._changed(
            y_indptr=np.zeros(2, np.int64),
            y_rows=NO_POSITIVES,
            plus=np.ones(1),
            minus=np.array([np.median(self.minus)]),
            prune=0.0,
            relevance=None,
            **changes,
        )


def pays_side_by_side(is_sparse: bool, has_kink: bool, n_labels: int) -> bool:
    """Tell the same as ``is_side_by_side``; dense rows fill vector registers anyway."""
    return is_sparse and not has_kink and n_labels >= _FEWEST_LABELS


@dataclass(frozen=True)
class InstanceSums:
    """Sums over all instances that every label's start and stopping rule need.

    Parameters
    ----------
    total : ndarray of float64 of shape (d + 1,)
        Weighted sum of the instances; the constant feature, if any, is last.
    weight : float
        Sum of the row weights.
    squares : float
        Weighted sum of the squared norms of the instances, constant feature included.
    """

    total: np.ndarray
    weight: float
    squares: float


class PositiveSums(NamedTuple):
    """Properties of the weighted sum of the positives of each of m labels.

    Attributes
    ----------
    weight : ndarray of float64 of shape (m,)
        Summed weights.
    squares, with_mean : ndarray of float64 of shape (m,)
        Inner products of the sum with itself and with the mean of all instances, without the
        constant feature.
    """

    weight: np.ndarray
    squares: np.ndarray
    with_mean: np.ndarray


def sum_rows(
    problem: OneVsAllProblem, rows: np.ndarray, weight: np.ndarray | None = None
) -> np.ndarray:
    """Return the sum of some instances, float64 (d + 1,), constant feature last.

    They are weighted by `weight`, (n,), by default that of the problem.
    """
    out = np.zeros(problem.n_features + 1)
    add_rows = row_sums_kernel(problem.rows_of)
    weight = problem.weight if weight is None else weight
    add_rows(problem.instances.arrays, read_only(rows), weight, out)
    out[-1] *= problem.intercept
    return out


def sum_positives(problem: OneVsAllProblem, label: int, weight: np.ndarray) -> np.ndarray:
    """Return the sum of a label's positives, float64 (d + 1,); `weight` is its ``weight_of``.

    With a relevance r, the weights are those of the gradient at zero, ``(plus r + minus) / (plus +
    minus)``, times those of the rows.
    """
    rows = problem.positives(label)
    total = sum_rows(problem, rows)
    if problem.relevance is None:
        return total
    share = problem.plus[label] / (problem.plus[label] + problem.minus[label])
    return total + share * (sum_rows(problem, rows, weight) - total)


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


def sample_of(n: int, size: int) -> np.ndarray:
    """Return evenly spaced row numbers, at most `size`."""
    size = min(n, size)
    return read_only((np.arange(size) * n // max(size, 1)).astype(np.int32))


def check_range(problem: OneVsAllProblem, sums: InstanceSums) -> None:
    """Raise an error if sums of the solver would leave the range of the dtype of X.

    Parameters
    ----------
    problem : OneVsAllProblem
        Its row weights are at most 2.
    sums : InstanceSums
        Sums over its instances.

    Raises
    ------
    ValueError
        If the curvature of the loss or the square of its gradient is too large, or if the gradient
        is too small.
    """
    type_info = np.finfo(problem.dtype)
    relevance = 1.0 if problem.relevance is None else problem.relevance.max(initial=1.0)
    costs = np.maximum(relevance * problem.plus, problem.minus)
    highest, lowest = float(costs.max()), float(costs.min())
    # Bounds on the trace of the Hessian and on the norm of the gradient at zero, over all labels.
    # Python's floats raise where these overflow, numpy's give inf.
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        curvature = np.float64(2.0) * highest * sums.squares
        gradient = np.sqrt(curvature) * np.sqrt(np.float64(2.0) * highest * sums.weight)
        least = 2.0 * lowest * np.sqrt(sums.squares) * np.sqrt(sums.weight)
    fits = curvature < type_info.max and gradient < _LARGEST_GRADIENT
    needed = max(float(type_info.tiny / type_info.eps), _LEAST_GRADIENT)
    has_rows = bool(problem.intercept) or bool(problem.instances.arrays[-1].any())
    if not fits or (least < needed and has_rows):
        raise ValueError(_out_of_range(problem, "small" if fits else "large", costs))


def _out_of_range(problem: OneVsAllProblem, what: str, costs: np.ndarray) -> str:
    values = problem.instances.arrays[-1]
    largest = max(float(values.max()), -float(values.min())) if values.size else 0.0
    advice = "lower" if what == "large" else "raise"
    return (
        f"{problem.owner}: X, C, sample_weight and weights of labels or pairs make numbers too "
        f"{what} for {problem.dtype}: X has entries up to {largest:.3g} in magnitude, and C times "
        f"the weights is {costs.min():.3g} to {costs.max():.3g}. Scale X to rows of about unit "
        f"length, or {advice} C or the weights."
    )


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


def arranged(
    instances: CsrRows | DenseRows, empty: Empty = np.empty
) -> tuple[CsrRows | DenseRows, np.ndarray, np.ndarray]:
    """Return instances in the fastest order, with the old numbers of instances and features.

    Features are sorted by descending frequency, which helps the cache, and instances by ascending
    number of non-zeros, which helps branch prediction. Dense instances keep their order.
    """
    n, d = instances.shape
    if isinstance(instances, DenseRows):
        return instances, np.arange(n), np.arange(d, dtype=np.int32)
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
    return rows, order, read_only(features)


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
    """Return the number of entries of each feature, int64 (d,)."""
    counts = np.zeros(instances.shape[1], np.int64)
    count_features(instances.indices, counts)
    return counts


def _rearranged(targets: Targets, order: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the positive rows of each label, ascending, and the weights of these pairs or None.

    Instances are in another order than in the targets.
    """
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    rows = place[targets.rows]
    # Two transpositions sort the rows of each label.
    shape = (len(order), targets.n_problems)
    weight = targets.pair_weight
    values = np.empty(len(rows), np.int8) if weight is None else weight
    columns = sp.csc_array((values, rows, targets.indptr), shape=shape).tocsr().tocsc()
    return columns.indices.astype(np.int32, copy=False), None if weight is None else columns.data


def loss_factors(
    estimator: Any, targets: Targets, positive: np.ndarray, total: float, exponent: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return factors on the loss of the positives and of the negatives of each binary problem.

    Parameters
    ----------
    estimator : OvALinearXC or OvALinearXCCV
        Has the parameters, and is named in messages.
    targets : Targets
        y.
    positive, total : ndarray of float of shape (n_problems,), float
        Weights of each problem's positives, and of all instances, divided by ``2**exponent``.
    exponent : int

    Returns
    -------
    plus, minus : ndarray of float64 of shape (n_problems,)

    Raises
    ------
    ValueError
        For weights that are not positive, have the wrong length, or name unknown labels.
    """
    caller, value = type(estimator).__name__, estimator.class_weight
    is_binary = targets.kind == "classes" and len(targets.classes) == 2
    minus = np.ones(len(positive))
    if isinstance(value, Mapping) or (isinstance(value, str) and value == "balanced"):
        counts = np.array([total - positive[0], positive[0]]) if is_binary else positive
        of_classes = (
            _named(value, targets.classes, caller)
            if isinstance(value, Mapping)
            else np.divide(counts.mean(), counts, out=np.ones(len(counts)), where=counts > 0)
        )
        return (of_classes[1:], of_classes[:1]) if is_binary else (of_classes, minus)
    if isinstance(value, str):
        return _inverse_propensities(positive, total, exponent, caller), minus
    return _of_each(value, len(positive), f"{caller}: class_weight"), minus


def _of_each(value: Any, n_problems: int, name: str) -> np.ndarray:
    """Return None, a number or an array as a factor for each problem."""
    if value is None or isinstance(value, Real):
        return np.full(n_problems, 1.0 if value is None else float(value))
    weight = check_numbers(value, name, n_problems, "label")
    if not (weight > 0).all():
        at = int(np.argmin(weight))
        raise ValueError(f"{name} must be positive, label {at} has {weight[at]}.")
    return weight


def _named(value: Mapping, classes: np.ndarray, caller: str) -> np.ndarray:
    """Return the weights of classes by name, 1 by default."""
    places = {name: place for place, name in enumerate(classes.tolist())}
    weight = np.ones(len(classes))
    for name, one in value.items():
        if name not in places:
            raise ValueError(
                f"{caller}: class_weight must have labels of y as keys, such as "
                f"{classes[:1].tolist()[0]!r}. Got {name!r}."
            )
        if not is_number(one) or not 0 < one < np.inf:
            raise ValueError(
                f"{caller}: class_weight must have positive numbers as values. Got {one!r} for "
                f"{name!r}."
            )
        weight[places[name]] = one
    return weight


def _inverse_propensities(
    positive: np.ndarray, total: float, exponent: int, caller: str
) -> np.ndarray:
    with np.errstate(over="ignore"):
        counts = np.ldexp(positive, exponent)
        n = float(np.ldexp(total, exponent))
    if not 3.0 <= n < np.inf:
        raise ValueError(
            f"{caller}: class_weight='propensity' needs a sample_weight that sums to a number of "
            f"instances, at least 3. Got {n:.3g}."
        )
    return 1.0 / propensity(counts, n)
