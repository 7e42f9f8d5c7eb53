"""From checked data and the parameters of an estimator to the problems of all labels."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from sklearn_xc._arguments import refuse_disguised
from sklearn_xc._data import CsrRows, DenseRows, Targets
from sklearn_xc._sparse_input import check_sparse
from sklearn_xc.initialisers import INITIALISERS, Given, Initialiser
from sklearn_xc.linear.class_weight import loss_factors
from sklearn_xc.linear.memory import Sizes, go_to_files, require_room
from sklearn_xc.losses import LOSSES, MarginLoss
from sklearn_xc.losses.margin import check_margin_loss
from sklearn_xc.parallel.memory import require_bytes
from sklearn_xc.parallel.spill import maker
from sklearn_xc.solvers.layouts import arranged
from sklearn_xc.solvers.problem import OneVsAllProblem

#: Where ``tol`` is None: eps0 of the stopping rule, and the largest share of its objective by which
#: a label may be above its minimum.
DEFAULT_TOL, DEFAULT_GAP = 0.01, 1e-3
#: X with more features is not taken without a look at the memory that is left: so many bytes a
#: feature are needed before labels are cut into blocks that fit.
_WIDE, _BYTES_A_FEATURE = 10**7, 60
_NARROWER = "Leave out features that do not occur, or hash them into fewer."


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
    n, d = instances.shape
    dtype = instances.dtype
    if d > _WIDE:
        what = f"numbers for each of {d} features"
        allowed, who = estimator._allowed_bytes(), type(estimator).__name__
        require_bytes(_BYTES_A_FEATURE * d, allowed, what, _NARROWER, who)
    sizes = _sizes_of(estimator, instances, targets)
    allowed, who = estimator._allowed_bytes(), type(estimator).__name__
    in_files = go_to_files(sizes, allowed)
    require_room(sizes, in_files, allowed, who)
    empty = maker(in_files, who)
    if isinstance(instances, CsrRows):
        instances = instances.without_zeros(empty)
    layout = arranged(instances, empty)
    row_weight = np.ones(n) if weight is None else weight
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
        weight=row_weight[layout.order].astype(dtype),
        plus=plus,
        minus=minus,
        relative_tolerance=tol * np.minimum(least / total, 1.0),
        relative_gap=gap,
        margin_loss=_check_loss(estimator),
        fit_intercept=estimator.fit_intercept,
        regularize_intercept=estimator.regularize_intercept,
        max_iter=estimator.max_iter,
        prune=estimator.prune,
        owner=type(estimator).__name__,
        in_files=in_files,
        n_beside=estimator._n_beside,
        exponent=exponent,
    )


def copies_in_files(estimator: Any, instances: CsrRows | DenseRows, targets: Targets) -> bool:
    """Return whether copies of X have to go to files, by the `max_memory` of an estimator."""
    return go_to_files(_sizes_of(estimator, instances, targets), estimator._allowed_bytes())


def _sizes_of(estimator: Any, instances: CsrRows | DenseRows, targets: Targets) -> Sizes:
    return Sizes.of(instances, targets.indptr, targets.rows, _check_loss(estimator))


def loss_of(estimator: Any) -> MarginLoss:
    """Return the loss that the parameter `loss` names, or is."""
    return LOSSES[estimator.loss]() if isinstance(estimator.loss, str) else estimator.loss


def _check_loss(estimator: Any) -> MarginLoss:
    loss = loss_of(estimator)
    check_margin_loss(loss, f"{type(estimator).__name__}: loss")
    return loss


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
