"""What a fitted one-vs-all knows of each label: of some labels, or of those of several models."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc.parallel.spill import maker
from sklearn_xc.weights.label_weights import LabelWeights


def joined(models: Sequence[Any], allowed: int | None = None) -> dict[str, Any]:
    """Return the attributes of a model that has the labels of all, those of the first model first.

    Parameters
    ----------
    models : sequence of fitted OvALinearXC
    allowed : int or None, default=None
        Weights of more bytes go to files.
    """
    report = {
        name: np.concatenate([model.fit_report_[name] for model in models])
        for name in models[0].fit_report_
    }
    return {
        "classes_": np.concatenate([model.classes_ for model in models]),
        "label_counts_": np.concatenate([model.label_counts_ for model in models]),
        "fit_report_": report,
        "n_iter_": report["n_iter"],
        "_weights": _stacked([model._weights for model in models], allowed),
    }


def taken(model: Any, places: np.ndarray) -> dict[str, Any]:
    """Return the attributes of a model that has some labels of another, in any order.

    Those of a compact model are not compact: its weights are rounded by the largest of all labels.
    """
    weights, place = model._weights, np.full(len(model.classes_), -1)
    place[places] = np.arange(len(places))
    unseen = place[model._unseen_labels]
    unseen = np.sort(unseen[unseen >= 0])
    report = {name: column[places] for name, column in model.fit_report_.items()}
    return {
        "classes_": model.classes_[places],
        "label_counts_": model.label_counts_[places],
        "fit_report_": report,
        "n_iter_": report["n_iter"],
        "_unseen_labels": unseen,
        "_weights": LabelWeights(
            weights.coef[places], weights.intercept[places],
            None if weights.prior is None else weights.prior[places], unseen,
        ),
    }  # fmt: skip


def _stacked(weights: list[LabelWeights], allowed: int | None) -> LabelWeights:
    """Return the weights of all labels; they go to files where they take too much."""
    rows = [one.coef for one in weights]
    nnz, dtype = sum(one.nnz for one in rows), rows[0].dtype
    empty = maker(allowed is not None and nnz * (4 + dtype.itemsize) > allowed, "OvALinearXC")
    indices, values, n_held = empty(nnz, np.int32), empty(nnz, dtype), 0
    for one in rows:
        indices[n_held : n_held + one.nnz] = one.indices
        values[n_held : n_held + one.nnz] = one.data
        n_held += one.nnz
    indptr = np.concatenate(([0], np.cumsum(np.concatenate([np.diff(one.indptr) for one in rows]))))
    return LabelWeights(
        _csr(values, indices, indptr, (len(indptr) - 1, rows[0].shape[1])),
        np.concatenate([one.intercept for one in weights]),
        np.concatenate([one.prior for one in weights]),
    )


def _csr(
    values: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]
) -> sp.csr_array:
    if indptr[-1] <= np.iinfo(np.int32).max:  # else scipy makes indices as wide as indptr
        indptr = indptr.astype(np.int32)
    return sp.csr_array((values, indices, indptr), shape=shape)
