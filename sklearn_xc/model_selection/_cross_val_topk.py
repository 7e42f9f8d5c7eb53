"""Out-of-fold scores of the best labels of each row."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed

from sklearn_xc._input.arguments import (
    ListedFolds,
    check_count,
    check_folds,
    is_list_of_folds,
    refuse_masks_and_dates,
)
from sklearn_xc._input.checks import check_targets
from sklearn_xc._input.data import Targets, as_rows, check_sparse, n_rows
from sklearn_xc._input.sklearn_private import check_method_params, safe_indexing
from sklearn_xc._parallel.memory import require_bytes
from sklearn_xc.ensemble.members import (
    Answers,
    fit_clone,
    named_errors,
    predict_topk_of,
    tagger_in,
)
from sklearn_xc.model_selection._cross_validate import refuse_stratified

_WHO = "cross_val_topk"
#: Bytes of a label and its score, in the answers and in the returned matrix.
_ENTRY_BYTES = 32


def cross_val_topk(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    cv: Any = None,
    k: int = 100,
    n_jobs: int | None = None,
    params: dict[str, Any] | None = None,
) -> sp.csr_array:
    """Return the scores of the best labels of each row, by a model not trained on the row.

    Like :func:`sklearn.model_selection.cross_val_predict` with ``method="decision_function"``, but
    for the `k` best labels of each row instead of all, so that label sets may be of any size. You
    can learn thresholds, calibration or stacks of your own from these scores.

    Parameters
    ----------
    estimator : classifier
        Anything that :func:`sklearn_xc.topk` can query: a classifier, Pipeline or search. Cloned
        and fitted in each fold.
    X : {array-like, sparse matrix} of shape (n, n_features), data frame or list of str
        Whatever the estimator accepts.
    y : {array-like, sparse matrix} of shape (n,) or (n, n_labels), or names
        One class per row, or a binary indicator, dense or sparse; for a ``TextClassifierXC``, also
        lists of names, or strings of names with its `separator` between them.
    groups : array-like of shape (n,), default=None
        Groups for the splitter.
    cv : int, splitter or iterable, default=None
        Five folds for None; an indicator is split by KFold, classes by StratifiedKFold. A row may
        be in at most one test fold.
    k : int, default=100
        Number of labels for each row; may exceed the number of all labels.
    n_jobs : int, default=None
        Number of folds fitted in parallel.
    params : dict, default=None
        Further arguments for ``fit`` and for the splitter. Those with an entry for each row are
        cut to the rows of a fold; for a Pipeline they are named ``"step__sample_weight"``.

    Returns
    -------
    csr_array of float of shape (n, n_labels)
        Columns are the labels of the whole `y`, even if a fold's training rows lack some of them:
        the sorted distinct classes of a 1-D y; for names, the ``classes_`` of the estimator fitted
        to all rows. A missing entry was not scored and is not zero; a stored zero is a score. Rows
        that are in no test fold are empty.

    Raises
    ------
    ValueError
        If folds cannot be made or test a row twice, or if y has another length than X.
    TypeError
        If the estimator does not return scores of classes.
    MemoryBudgetError
        If the scores do not fit into memory.

    Notes
    -----
    Scores of different folds come from different models. They are comparable only if scores of one
    estimator fitted to different rows are: margins and probabilities of this package are.

    Memory: 32 bytes for each of the ``n * k`` scores.

    Examples
    --------
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> from sklearn_xc.metrics import precision_at_k
    >>> from sklearn_xc.model_selection import cross_val_topk
    >>> X, Y = make_xc_classification(
    ...     n_samples=300, n_features=200, n_labels=30, random_state=0, return_X_y=True
    ... )
    >>> scores = cross_val_topk(OvALinearXC(), X, Y, cv=3, k=10)
    >>> scores.shape, scores.nnz
    ((300, 30), 3000)
    >>> bool(precision_at_k(Y, scores, k=1) > 0.3)
    True
    """
    k = check_count(k, f"{_WHO}: k")
    for name, values in (("X", X), ("y", y)):
        check_sparse(values, name, _WHO)
        if np.ma.isMaskedArray(values):
            refuse_masks_and_dates(values, f"{_WHO}: {name}")
    X, n = as_rows(X), n_rows(X, _WHO)
    tagger = tagger_in(estimator)
    names, Y = (None, y) if tagger is None else tagger._read_targets(y)
    targets = check_targets(estimator, Y, n)
    y = as_rows(y)
    classes = np.asarray(targets.classes if names is None else names.classes_)
    k = min(k, len(classes))
    what = f"the scores, {n} rows x k={k}"
    require_bytes(n * k * _ENTRY_BYTES, None, what, "Lower k.", _WHO)
    of_fit, of_split = _routed(estimator, cv, params, groups)
    folds = _folds(X, as_rows(Y), targets, cv, of_split)
    are_columns = targets.kind != "classes" and names is None
    shared = (estimator, X, y, classes, are_columns, k, of_fit)
    answers = Parallel(n_jobs=n_jobs)(
        delayed(_answer)(*shared, train, test, np.flatnonzero(targets.counts_among(train, n) == 0))
        for train, test in folds
    )
    return _scores_as_csr(answers, [test for _, test in folds], (n, len(classes)))


def _routed(
    estimator: Any, cv: Any, params: dict[str, Any] | None, groups: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of ``fit`` and those of ``split``."""
    params = {} if params is None else dict(params)
    if not sklearn.get_config()["enable_metadata_routing"]:
        return params, {"groups": groups}
    if groups is not None:
        raise ValueError(
            f"{_WHO}: groups are passed in params, as params={{'groups': groups}}, where metadata "
            "routing is enabled."
        )
    router = MetadataRouter(owner=_WHO)
    router.add(estimator=estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
    if hasattr(cv, "split"):
        to_split = MethodMapping().add(caller="fit", callee="split")
        router.add(splitter=cv, method_mapping=to_split)
    routed = process_routing(router, "fit", **params)
    of_split = dict(routed.splitter.split) if hasattr(cv, "split") else {}
    return dict(routed.estimator.fit), of_split


def _folds(
    X: Any, y: Any, targets: Targets, cv: Any, of_split: dict[str, Any]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the training and test rows of each fold.

    Raises
    ------
    ValueError
        If some row is tested twice.
    """
    n = n_rows(X, _WHO)
    if targets.kind != "classes":
        refuse_stratified(cv)
    if is_list_of_folds(cv):
        splitter: Any = ListedFolds(cv)
    else:
        is_classes = targets.kind == "classes"
        splitter = check_cv(cv, y if is_classes else None, classifier=is_classes)
    with named_errors("cv", _WHO):
        given = list(splitter.split(X, y, **of_split))
    folds = check_folds(given, n, _WHO, cv)
    times = np.bincount(np.concatenate([test for _, test in folds]), minlength=n)
    if (times > 1).any():
        raise ValueError(
            f"{_WHO}: cv must test each row at most once. Row {times.argmax()} is tested "
            f"{times.max()} times by {cv!r}."
        )
    return folds


def _answer(
    estimator: Any,
    X: Any,
    y: Any,
    classes: np.ndarray,
    are_columns: bool,
    k: int,
    params: dict[str, Any],
    train: np.ndarray,
    test: np.ndarray,
    unseen: np.ndarray,
) -> Answers:
    """Return the top k of the test rows after a fit on the training rows."""
    part = type(estimator).__name__
    arguments = check_method_params(X, params, train)
    fitted, _ = fit_clone(part, estimator, X, y, arguments, train, _WHO)
    of_y: Any = {"are_columns": are_columns, "unseen": unseen}
    return predict_topk_of(part, fitted, safe_indexing(X, test), k, classes, _WHO, **of_y)


def _scores_as_csr(
    answers: list[Answers], rows: list[np.ndarray], shape: tuple[int, int]
) -> sp.csr_array:
    """Return the top k of all folds as one CSR of scores with sorted indices."""
    labels, scores = (np.concatenate(part) for part in zip(*answers, strict=True))
    kept = labels >= 0
    row_of = np.broadcast_to(np.concatenate(rows)[:, None], labels.shape)
    csr = sp.csr_array((scores[kept], (row_of[kept], labels[kept])), shape=shape)
    csr.sort_indices()
    return csr
