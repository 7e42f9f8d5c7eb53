"""Some of the labels of a training set: which they are, and what it takes to put slices together.

A slice is fitted to all instances and all labels of y, and solves the problems of its own. What
follows from all labels, such as their mean frequency, is that of one fit of everything.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from sklearn_xc._data import CsrRows, DenseRows, Targets
from sklearn_xc._declared_state import Array, Number, Record, declares
from sklearn_xc.solvers.pruning import SampleScores
from sklearn_xc.storage.checkpoints import data_of, digest

#: What tells of data that two slices have in common.
DATA = ("X", "y", "sample_weight")


@declares(
    first=Number("int", least=0),
    n_labels=Number("int", least=1),
    digests=Array("any", len(DATA)),
    sample=Record("SampleScores", optional=True),
)
@dataclass
class LabelSlice:
    """Where a slice belongs.

    Attributes
    ----------
    first : int
        Position of its first label among all.
    n_labels : int
        How many there are in all.
    digests : ndarray of str of shape (3,)
        Checksums of X, y and the weights of instances.
    sample : SampleScores or None
        The scores of its labels for a sample of instances, before pruning and after.
    """

    first: int
    n_labels: int
    digests: np.ndarray
    sample: SampleScores | None


def check_label_range(label_range: Any, targets: Targets, who: str) -> range | None:
    """Return the positions of the labels that `label_range` means; None for all.

    Raises
    ------
    ValueError
        Unless it is two integers, the first from 0 and below the last, of labels that there are.
    """
    if label_range is None:
        return None
    n_labels = len(targets.classes)
    is_pair = isinstance(label_range, list | tuple) and len(label_range) == 2
    if not is_pair or not all(
        isinstance(end, Integral) and not isinstance(end, bool) for end in label_range
    ):
        raise ValueError(
            f"{who}: label_range must be two integers, where labels begin and end, or None. Got "
            f"{label_range!r}."
        )
    first, last = map(int, label_range)
    if not 0 <= first < last <= n_labels:
        raise ValueError(
            f"{who}: label_range must have 0 <= first < last <= {n_labels}, the number of labels. "
            f"Got {label_range!r}."
        )
    if targets.n_problems != n_labels:
        raise ValueError(
            f"{who}: label_range must be None: the two classes of y are one problem. Got "
            f"{label_range!r}."
        )
    if targets.kind == "classes" and last - first == 2:
        raise ValueError(
            f"{who}: label_range must have one class or more than two: of two classes one is the "
            f"other's opposite. Got {label_range!r}."
        )
    return range(first, last)


def of_labels(targets: Targets, labels: range) -> Targets:
    """Return the targets of some labels, all instances kept."""
    first, last = labels.start, labels.stop
    ends = targets.indptr[first : last + 1]
    return Targets(
        ends - ends[0], targets.rows[ends[0] : ends[-1]], targets.classes[first:last],
        targets.kind, targets.dtype, targets.container,
    )  # fmt: skip


def data_digests(
    instances: CsrRows | DenseRows, targets: Targets, weight: np.ndarray | None
) -> np.ndarray:
    """Return checksums of the arguments of a ``fit``, ``LabelSlice.digests``."""
    found = data_of(instances, targets, weight)
    arrays = [found[name] for name in DATA]
    return np.array(["" if of_one is None else digest(of_one) for of_one in arrays])


def require_one_whole(slices: list[LabelSlice], sizes: Iterable[int], who: str) -> list[int]:
    """Return the order in which slices follow each other.

    Raises
    ------
    ValueError
        For gaps, overlaps and other data, by name.
    """
    ends = [one.first + size for one, size in zip(slices, sizes, strict=True)]
    order = sorted(range(len(slices)), key=lambda i: (slices[i].first, ends[i]))
    first = slices[order[0]]
    for i in order[1:]:
        for at, name in enumerate(DATA):
            if slices[i].digests[at] != first.digests[at]:
                raise ValueError(
                    f"{who}: all slices must be fitted to the same {name}. That of the labels from "
                    f"{slices[i].first} on is not that of those from {first.first} on."
                )
    reached = 0
    for i in order:
        if slices[i].first != reached:
            what = "overlap" if slices[i].first < reached else "leave a gap"
            between = sorted((slices[i].first, reached))
            raise ValueError(
                f"{who}: the slices {what}: labels {between[0]} to {between[1] - 1} are in "
                f"{'two of them' if what == 'overlap' else 'none of them'}."
            )
        reached = ends[i]
    if reached != first.n_labels:
        raise ValueError(
            f"{who}: the slices leave a gap: labels {reached} to {first.n_labels - 1} are in none "
            "of them."
        )
    return order
