"""From checked data and the parameters of an estimator to the problems of all labels."""

from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from sklearn_xc._input.arguments import check_numbers, is_number, refuse_disguised
from sklearn_xc._input.data import CsrRows, DenseRows, Targets
from sklearn_xc._input.sparse import check_sparse
from sklearn_xc._parallel.blocks import MAX_LANES, MORE_ROOM
from sklearn_xc._parallel.memory import require_bytes
from sklearn_xc._parallel.spill import maker
from sklearn_xc.metrics import propensity
from sklearn_xc.one_vs_all.losses import LOSSES, MarginLoss
from sklearn_xc.one_vs_all.losses.margin import check_margin_loss, compiled
from sklearn_xc.one_vs_all.solver.newton_cg import largest_array, workspace_bytes
from sklearn_xc.one_vs_all.solver.problem import OneVsAllProblem, arranged, pays_side_by_side
from sklearn_xc.one_vs_all.solver.working_sets import FEWEST_ROWS
from sklearn_xc.one_vs_all.starts import INITIALISERS, Given, Initialiser

#: Where ``tol`` is None: eps0 of the stopping rule, and the largest share of its objective by which
#: a label may be above its minimum.
DEFAULT_TOL, DEFAULT_GAP = 0.01, 1e-3
#: Bytes for each row, feature, label and positive, at the peak.
_ROW_BYTES, _FEATURE_BYTES, _LABEL_BYTES, _POSITIVE_BYTES = 112, 64, 300, 48


def build_problem(
    estimator: Any,
    C: float,
    instances: CsrRows | DenseRows,
    targets: Targets,
    weight: np.ndarray | None,
) -> OneVsAllProblem:
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

    Raises
    ------
    ValueError
        For losses and label weights that do not fit.
    """
    allowed, who = estimator._allowed_bytes(), type(estimator).__name__
    loss = loss_of(estimator)
    check_margin_loss(loss, f"{who}: loss")
    in_files = check_memory(instances, targets, loss, allowed, who)
    empty = maker(in_files, who)
    if isinstance(instances, CsrRows):
        instances = instances.without_zeros(empty)
    layout = arranged(instances, empty)
    row_weight = np.ones(instances.shape[0]) if weight is None else weight
    # Weights from 1 to 2 fit into float32, squared too; a power of two changes no digit.
    exponent = int(np.frexp(row_weight.max())[1]) - 1
    row_weight = np.ldexp(row_weight, -exponent)
    label_of_entry = np.repeat(np.arange(targets.n_problems), np.diff(targets.indptr))
    # Summed label by label: a sum that runs on would tie a label to those before it.
    positive = np.bincount(
        label_of_entry, weights=row_weight[targets.rows], minlength=targets.n_problems
    )
    total = float(row_weight.sum())
    tol, gap = (DEFAULT_TOL, DEFAULT_GAP) if estimator.tol is None else (estimator.tol, np.inf)
    least = np.maximum(np.ldexp(1.0, -exponent), np.minimum(positive, total - positive))
    factors = loss_factors(estimator, targets, positive, total, exponent)
    with np.errstate(over="ignore", under="ignore"):  # the solver's check says what to change
        plus, minus = (np.ldexp(C * factor, exponent) for factor in factors)  # rows are too small
    return OneVsAllProblem(
        instances=layout.instances,
        columns=layout.features,
        y_indptr=targets.indptr,
        y_rows=_rearranged(targets, layout.order),
        weight=row_weight[layout.order].astype(instances.dtype),
        plus=plus,
        minus=minus,
        relative_tolerance=tol * np.minimum(least / total, 1.0),
        relative_gap=gap,
        margin_loss=loss,
        fit_intercept=estimator.fit_intercept,
        regularize_intercept=estimator.regularize_intercept,
        max_iter=estimator.max_iter,
        prune=estimator.prune,
        owner=type(estimator).__name__,
        in_files=in_files,
    )


def loss_of(estimator: Any) -> MarginLoss:
    """Return the loss that the parameter `loss` names, or is."""
    return LOSSES[estimator.loss]() if isinstance(estimator.loss, str) else estimator.loss


def check_init(estimator: Any, problem: OneVsAllProblem) -> Initialiser:
    """Return the initialiser that the parameter `init` names, is, or holds vectors for."""
    init, who = estimator.init, type(estimator).__name__
    if isinstance(init, (str, Initialiser)):
        initialiser = INITIALISERS[init]() if isinstance(init, str) else clone(init, safe=False)
        try:
            initialiser.check()
        except ValueError as error:
            raise ValueError(f"{who}: {error}") from None
        if initialiser.needs_intercept and not estimator.fit_intercept:
            raise ValueError(f"{who}: init={init!r} needs fit_intercept=True.")
        return initialiser
    n_labels, d = problem.n_labels, problem.n_features
    widths = (d, d + 1) if estimator.fit_intercept else (d,)
    expected = f"({n_labels}, {d})" + (
        f" or ({n_labels}, {d + 1}) with intercepts" if estimator.fit_intercept else ""
    )
    start = _start_vectors(init, expected, who)
    if start.ndim != 2 or start.shape[0] != n_labels or start.shape[1] not in widths:
        raise ValueError(f"{who}: init must have shape {expected}. Got shape {start.shape}.")
    values = start.data if sp.issparse(start) else start
    if not np.isfinite(values).all():
        raise ValueError(f"{who}: init contains NaN or infinity.")
    # Features in the order of the problem; intercepts stay last.
    order = np.concatenate([problem.columns, np.arange(d, start.shape[1])])
    return Given(start[:, order])


def _start_vectors(init: Any, expected: str, who: str) -> Any:
    """Return given start vectors as a float64 array or CSR, of any shape."""
    check_sparse(init, "init", who)
    refuse_disguised(init, f"{who}: init")
    try:
        start = init if sp.issparse(init) else np.asarray(init)
    except (ValueError, TypeError) as error:  # rows of different lengths
        raise ValueError(f"{who}: init is no array of shape {expected}.") from error
    if start.dtype.kind not in "biuf":
        raise ValueError(
            f"{who}: init must be a name, an Initialiser, or numbers of shape {expected}. Got "
            f"{type(init).__name__} of dtype {start.dtype}."
        )
    return sp.csr_array(start, dtype=np.float64) if sp.issparse(start) else start.astype(np.float64)


def _rearranged(targets: Targets, order: np.ndarray) -> np.ndarray:
    """Return the positive rows of each label, rising, for instances in another order."""
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    rows = place[targets.rows]
    # Two transpositions sort the rows of each label.
    shape = (len(order), targets.n_problems)
    columns = sp.csc_array((np.empty(len(rows), np.int8), rows, targets.indptr), shape=shape)
    return columns.tocsr().tocsc().indices.astype(np.int32, copy=False)


class FitBytes(NamedTuple):
    """Peak memory of a one-vs-all fit besides weights.

    Attributes
    ----------
    always : int
        Numbers of rows, features, labels and positives, until the model is there.
    shared : int
        The workspace of the problem that is solved once for all labels.
    copies : int
        Copies of X: in another order, rounded, and by feature; in files where they do not fit.
    """

    always: int
    shared: int
    copies: int


def fit_bytes(
    X: CsrRows | DenseRows, n_labels: int, n_positives: int, margin_loss: MarginLoss
) -> FitBytes:
    """Return the peak memory of a fit, in bytes."""
    (n, d), itemsize, loss = X.shape, X.dtype.itemsize, compiled(margin_loss)
    always = (
        _ROW_BYTES * n
        + _FEATURE_BYTES * d
        + _LABEL_BYTES * n_labels
        + _POSITIVE_BYTES * n_positives
    )
    if not isinstance(X, CsrRows):
        return FitBytes(always, 0, 0)
    entry = 4 + itemsize
    if not loss.has_kink:
        return FitBytes(always, 0, len(X.data) * entry)
    has_sets = n >= FEWEST_ROWS
    shared = workspace_bytes(n, d, 1, itemsize) if has_sets and len(X.data) else 0
    return FitBytes(always, shared, len(X.data) * (entry + 2 + entry * has_sets))


def check_memory(
    X: CsrRows | DenseRows, targets: Targets, loss: MarginLoss, allowed: int | None, who: str
) -> bool:
    """Return whether copies of X go to files; raise MemoryBudgetError if a fit has no room."""
    (n, d), itemsize, n_labels = X.shape, X.dtype.itemsize, targets.n_problems
    needed = fit_bytes(X, n_labels, len(targets.rows), loss)
    held = needed.always + needed.shared
    is_sparse = isinstance(X, CsrRows) and len(X.data) > 0
    aside = pays_side_by_side(is_sparse, compiled(loss).has_kink, n_labels)
    n_lanes = min(MAX_LANES, n_labels)
    block = workspace_bytes(n, d, n_lanes, itemsize, aside)
    in_files = allowed is not None and is_sparse and held + needed.copies + block > allowed
    held += (0 if in_files else needed.copies) + workspace_bytes(n, d, 1, itemsize, aside)
    require_bytes(held, allowed, largest_array(n, d, 1, itemsize), MORE_ROOM, who)
    return in_files


def held_bytes(problem: OneVsAllProblem) -> int:
    """Return the bytes that a fit holds besides workspace and weights."""
    needed = _bytes_of(problem)
    return needed.always + needed.shared + (0 if problem.in_files else needed.copies)


def room_for_weights(problem: OneVsAllProblem, allowed: int | None) -> int | None:
    """Return the bytes that are left for weights once all problems are solved."""
    return None if allowed is None else allowed - _bytes_of(problem).always


def _bytes_of(problem: OneVsAllProblem) -> FitBytes:
    return fit_bytes(problem.instances, problem.n_labels, len(problem.y_rows), problem.margin_loss)


def weight_bytes(d: int, itemsize: int) -> int:
    """Return the most bytes of a label's weights until they leave the heap.

    How many are left after pruning is not known before: 2,048 are more than most labels have.
    """
    return 4 * min(d, 2048) * (4 + itemsize)


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
        Weights of each problem's positives, and of all instances: to be multiplied by
        ``2**exponent``.
    exponent : int

    Returns
    -------
    plus, minus : ndarray of float64 of shape (n_problems,)

    Raises
    ------
    ValueError
        For weights that are not positive, of another number, or of labels that y does not have.
    """
    who, value = type(estimator).__name__, estimator.class_weight
    is_binary = targets.kind == "classes" and len(targets.classes) == 2
    minus = np.ones(len(positive))
    if isinstance(value, Mapping) or (isinstance(value, str) and value == "balanced"):
        counts = np.array([total - positive[0], positive[0]]) if is_binary else positive
        of_classes = (
            _named(value, targets.classes, who)
            if isinstance(value, Mapping)
            else np.divide(counts.mean(), counts, out=np.ones(len(counts)), where=counts > 0)
        )
        return (of_classes[1:], of_classes[:1]) if is_binary else (of_classes, minus)
    if isinstance(value, str):
        return _inverse_propensities(positive, total, exponent, who), minus
    return _of_each(value, len(positive), f"{who}: class_weight"), minus


def _of_each(value: Any, n_problems: int, name: str) -> np.ndarray:
    """Return None, a number or an array as a factor for each problem."""
    if value is None or isinstance(value, Real):
        return np.full(n_problems, 1.0 if value is None else float(value))
    weight = check_numbers(value, name, n_problems, "label")
    if not (weight > 0).all():
        at = int(np.argmin(weight))
        raise ValueError(f"{name} must be positive, label {at} has {weight[at]}.")
    return weight


def _named(value: Mapping, classes: np.ndarray, who: str) -> np.ndarray:
    """Return the weights of classes, 1 of those that are not named."""
    places = {name: place for place, name in enumerate(classes.tolist())}
    weight = np.ones(len(classes))
    for name, one in value.items():
        if name not in places:
            raise ValueError(
                f"{who}: class_weight must have labels of y as keys, such as "
                f"{classes[:1].tolist()[0]!r}. Got {name!r}."
            )
        if not is_number(one) or not 0 < one < np.inf:
            raise ValueError(
                f"{who}: class_weight must have positive numbers as values. Got {one!r} for "
                f"{name!r}."
            )
        weight[places[name]] = one
    return weight


def _inverse_propensities(
    positive: np.ndarray, total: float, exponent: int, who: str
) -> np.ndarray:
    with np.errstate(over="ignore"):
        counts, n = np.ldexp(positive, exponent), float(np.ldexp(total, exponent))
    if not 3.0 <= n < np.inf:
        raise ValueError(
            f"{who}: class_weight='propensity' needs a sample_weight that sums to a number of "
            f"instances, at least 3. Got {n:.3g}."
        )
    return 1.0 / propensity(counts, n)
