"""Labels that start at the weights of others, in whichever block these are."""

from typing import Any

import numpy as np

from sklearn_xc._parallel.subtrees import topological
from sklearn_xc.one_vs_all.solver.problem import OneVsAllProblem
from sklearn_xc.one_vs_all.starts import Initialiser

#: Features and values of a label's weights after pruning, and its intercept.
_Point = tuple[np.ndarray, np.ndarray, np.floating]


def parents_of(
    problem: OneVsAllProblem, initialiser: Initialiser, labels: np.ndarray
) -> np.ndarray | None:
    """Return ``initialiser.parents``, checked to be a tree over `labels`."""
    parents = initialiser.parents(problem, labels)
    if parents is None:
        return None
    parents, m = np.asarray(parents), len(labels)
    is_tree = (
        parents.shape == (m,)
        and parents.dtype.kind in "iu"
        and ((parents >= -1) & (parents < m)).all()
        and len(topological(parents.astype(np.int64))) == m
    )
    if not is_tree:
        raise ValueError(
            f"{problem.owner}: init: the parents that {initialiser!r} names must be a tree: {m} "
            f"positions below {m}, without cycles, -1 for labels that start without another. Got "
            f"{parents!r}."
        )
    return parents.astype(np.int64)


class BlockStarts(Initialiser):
    """Starts of one block; `inside` are positions of parents in it, `outside` weights of others."""

    def __init__(
        self, initialiser: Initialiser, inside: np.ndarray, outside: dict[int, _Point]
    ) -> None:
        self.initialiser, self.inside, self.outside = initialiser, inside, outside

    def __repr__(self) -> str:
        return repr(self.initialiser)

    def parents(self, problem: OneVsAllProblem, labels: np.ndarray) -> np.ndarray:
        """Return the positions of parents in the block, -1 for none."""
        return self.inside

    def start(
        self, prepared: Any, problem: OneVsAllProblem, label: int, positive_sum: np.ndarray
    ) -> np.ndarray:
        """Return the weights of a label's parent, or the initialiser's start."""
        if label not in self.outside:
            return self.initialiser.start(prepared, problem, label, positive_sum)
        w = np.zeros(problem.n_features + 1)
        indices, w[indices], w[-1] = self.outside[label]
        return w


class ParentStarts:
    """Gives each block the weights of those parents that were solved in others.

    Parameters
    ----------
    problem : OneVsAllProblem
        The problems of all labels.
    initialiser : Initialiser
        Starts of labels without a parent.
    labels, parents : ndarray of int64 of shape (m,)
        Labels, and the position of each one's parent among them, -1 for none.
    blocks : list of ndarray of int64
        The labels of each block.
    results : list
        For each block its solutions over the caller's features, the last of which counts; filled
        while blocks are solved.
    """

    def __init__(
        self,
        problem: OneVsAllProblem,
        initialiser: Initialiser,
        labels: np.ndarray,
        parents: np.ndarray,
        blocks: list[np.ndarray],
        results: list[Any],
    ) -> None:
        self.initialiser, self.blocks, self.results = initialiser, blocks, results
        self.feature = np.argsort(problem.columns).astype(np.int32)
        self.parent = np.full(problem.n_labels, -1)
        has_parent = parents >= 0
        self.parent[labels[has_parent]] = labels[parents[has_parent]]
        self.block, self.row = np.full((2, problem.n_labels), -1)
        for number, block in enumerate(blocks):
            self.block[block], self.row[block] = number, np.arange(len(block))

    def of_block(self, number: int) -> BlockStarts:
        """Return the starts of a block; all earlier waves have been solved."""
        labels = self.blocks[number]
        parent = self.parent[labels]
        is_inside = (parent >= 0) & (self.block[parent] == number)
        is_outside = (parent >= 0) & ~is_inside
        points = {int(label): self._point(label) for label in np.unique(parent[is_outside])}
        pairs = zip(labels[is_outside].tolist(), parent[is_outside].tolist(), strict=True)
        return BlockStarts(
            self.initialiser,
            np.where(is_inside, self.row[parent], -1),
            {label: points[above] for label, above in pairs},
        )

    def _point(self, label: int) -> _Point:
        """Return a label's weights over the features of the problem."""
        solution, row = self.results[self.block[label]][-1], self.row[label]
        own = slice(solution.indptr[row], solution.indptr[row + 1])
        return self.feature[solution.indices[own]], solution.values[own], solution.intercepts[row]
