"""From class labels of any kind to their positions in ``classes_``."""

from numbers import Real
from typing import Any

import numpy as np

from sklearn_xc._input.arguments import refuse_disguised

KINDS = {
    **dict.fromkeys("biuf", "numbers"),
    "U": "texts",
    "S": "bytes",
    "M": "dates",
    "m": "time spans",
}


def check_classes(classes: Any) -> np.ndarray:
    """Return the classes of a classifier as an array of one kind, or of one array per label.

    The latter is what scikit-learn's forests have after the fit of an indicator. Only its length is
    of use.
    """
    if np.ma.isMaskedArray(classes):
        refuse_disguised(classes, "classes")
    if isinstance(classes, list) and classes and all(np.ndim(one) == 1 for one in classes):
        return np.arange(len(classes))
    array = np.asarray(classes)
    if array.ndim != 1 or not array.size:
        raise ValueError(
            "classes: expected a sequence of class labels, as clf.classes_ of a fitted "
            f"classifier. Got {type(classes).__name__} of shape {np.shape(classes)}."
        )
    return of_one_kind(array, "classes")


def positions_in(classes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the position of each label among the classes, -1 where it is none of them.

    Parameters
    ----------
    classes : ndarray of shape (n_labels,)
        From `check_classes`, in any order.
    labels : ndarray of shape (n_samples,)
        `Y_true`, of any dtype.

    Returns
    -------
    ndarray of shape (n_samples,), int64
    """
    labels = of_one_kind(labels, "Y_true")
    if KINDS[labels.dtype.kind] != KINDS[classes.dtype.kind]:
        raise ValueError(
            f"Y_true: expected class labels as those in classes, {KINDS[classes.dtype.kind]} of "
            f"dtype {classes.dtype}. Got dtype {labels.dtype}."
        )
    # Classes are sorted after a fit, but not after labels were added to a fitted model.
    order = np.argsort(classes, kind="stable")
    in_order = classes[order]
    twice = in_order[1:] == in_order[:-1]
    if twice.any():
        raise ValueError(f"classes: expected different ones. Got {in_order[twice.argmax()]} twice.")
    place = np.minimum(np.searchsorted(in_order, labels), len(classes) - 1)
    return np.where(in_order[place] == labels, order[place], -1)


def of_one_kind(labels: np.ndarray, name: str) -> np.ndarray:
    """Return labels as numbers, texts, bytes, dates or time spans; the rest is refused."""
    if labels.dtype.kind in "OT" and len(labels):
        labels = _of_objects(labels.tolist(), name)
    if labels.dtype.kind not in KINDS:
        raise ValueError(f"{name}: expected numbers or texts as classes. Got dtype {labels.dtype}.")
    missing = labels != labels if labels.dtype.kind in "fmM" else np.zeros(0, bool)
    if missing.any():
        at = int(missing.argmax())
        raise ValueError(f"{name}: expected a class for each entry. Got {labels[at]} at {at}.")
    return labels


def _of_objects(values: list, name: str) -> np.ndarray:
    # numpy would make texts of all, None and NaN among them.
    for kind in (str, bytes, Real):
        if isinstance(values[0], kind):
            odd = [at for at, value in enumerate(values) if not isinstance(value, kind)]
            break
    else:
        kind, odd = str, [0]
    if odd:
        raise ValueError(
            f"{name}: expected classes of one kind, all numbers or all texts. Got "
            f"{values[odd[0]]!r} at {odd[0]}."
        )
    return np.asarray(values)
