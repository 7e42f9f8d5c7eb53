"""Instances of several calls as those of one."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sklearn_xc._data import CsrRows, DenseRows, Targets
from sklearn_xc.parallel.spill import maker


class Examples:
    """Checked instances with their labels and weights.

    Parameters
    ----------
    instances : CsrRows or DenseRows of shape (n, n_features)
    targets : Targets
    weight : ndarray of float64 of shape (n,) or None
    """

    def __init__(
        self, instances: CsrRows | DenseRows, targets: Targets, weight: np.ndarray | None
    ) -> None:
        self.instances, self.targets, self.weight = instances, targets, weight

    def __len__(self) -> int:
        return self.instances.shape[0]

    @property
    def weights(self) -> np.ndarray:
        """Their weights, 1 where none were given."""
        return np.ones(len(self)) if self.weight is None else self.weight

    def as_trained(self) -> "Examples":
        """Return these, a dense X with few non-zeros as a sparse one, as ``fit`` takes it."""
        if isinstance(self.instances, CsrRows):
            return self
        return Examples(self.instances.as_trained(), self.targets, self.weight)

    def weighted(self) -> "Examples":
        """Return those of weights above 0."""
        if self.weight is None or self.weight.all():
            return self
        kept = self.weight > 0
        instances = self.instances.take(np.flatnonzero(kept))
        return Examples(instances, self.targets.take(kept), self.weight[kept])


def one_after_another(parts: Sequence[Examples], in_files: bool, who: str) -> Examples:
    """Return all examples, in this order; those of the first say whether X is sparse.

    Parameters
    ----------
    parts : sequence of Examples
        At least one, of the same features and labels.
    in_files : bool
        Whether the features go to files.
    who : str
        For messages.
    """
    first = parts[0].instances
    instances: CsrRows | DenseRows
    if isinstance(first, CsrRows):
        instances = _stacked_rows([part.instances.to_csr() for part in parts], in_files, who)
    else:
        dense: list[Any] = [part.instances.to_dense() for part in parts]
        instances = DenseRows(np.concatenate([one.values for one in dense]))
    has_weights = any(part.weight is not None for part in parts)
    weight = np.concatenate([part.weights for part in parts]) if has_weights else None
    return Examples(instances, _stacked_targets(parts), weight)


def _stacked_rows(parts: list[CsrRows], in_files: bool, who: str) -> CsrRows:
    empty, nnz = maker(in_files, who), sum(len(part.data) for part in parts)
    indices, data = empty(nnz, np.int32), empty(nnz, parts[0].dtype)
    ends, n_held = [np.zeros(1, np.int64)], 0
    for part in parts:
        place = slice(n_held, n_held + len(part.data))
        indices[place], data[place] = part.indices, part.data
        ends.append(part.indptr[1:] + n_held)
        n_held = place.stop
    indptr = np.concatenate(ends)
    return CsrRows(indptr, indices, data, (len(indptr) - 1, parts[0].shape[1]))


def _stacked_targets(parts: Sequence[Examples]) -> Targets:
    """Return the positive rows of each problem, numbered through."""
    like, labels, rows, n_before = parts[0].targets, [], [], 0
    for part in parts:
        targets = part.targets
        labels.append(np.repeat(np.arange(targets.n_problems), np.diff(targets.indptr)))
        rows.append(targets.rows.astype(np.int64) + n_before)
        n_before += len(part)
    return like.of_pairs(np.concatenate(labels), np.concatenate(rows))
