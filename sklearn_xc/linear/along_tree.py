"""Labels that start at the weights of others, in whichever block these are."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_xc.initialisers import Initialiser
from sklearn_xc.parallel.blocks import BlockPlan
from sklearn_xc.parallel.subtrees import topological
from sklearn_xc.solvers.newton_cg import BlockSolution, Starter
from sklearn_xc.solvers.problem import OneVsAllProblem, PositiveSums

#: Indices and values of a label's weights after pruning, and its intercept.
_Point = tuple[np.ndarray, np.ndarray, np.floating]


def parents_of(
    problem: OneVsAllProblem, initialiser: Initialiser, labels: np.ndarray
) -> np.ndarray | None:
    """Return what ``initialiser.parents`` says of labels, checked.

    Raises
    ------
    ValueError
        Unless it is a tree over `labels`.
    """
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


@dataclass(frozen=True)
class Tree:
    """Which labels start at the weights of others.

    Attributes
    ----------
    labels : ndarray of int64 of shape (m,)
        The labels.
    parents : ndarray of int64 of shape (m,)
        Positions in `labels`; -1 for none.
    solution_of : callable
        Takes the result of a block, and returns the BlockSolution whose weights are meant, over the
        caller's features.
    """

    labels: np.ndarray
    parents: np.ndarray
    solution_of: Callable[[Any], BlockSolution]


class Starts:
    """Gives each block the weights of those parents that were solved in others.

    They are taken from the results, where all weights are kept anyway; a block that has begun holds
    a copy of those it needs, sparse and of the dtype of X.

    Parameters
    ----------
    problem : OneVsAllProblem
        The problems of all labels.
    initialiser : Initialiser
        Starts of labels without a parent.
    tree : Tree
        The parents.
    plan : BlockPlan
        Its blocks.
    results : list
        What was returned for each of them; filled while they are solved.
    """

    def __init__(
        self,
        problem: OneVsAllProblem,
        initialiser: Initialiser,
        tree: Tree,
        plan: BlockPlan,
        results: list[Any],
    ) -> None:
        self.initialiser, self.tree, self.blocks = initialiser, tree, plan.blocks
        self.results = results
        self.feature = np.argsort(problem.columns).astype(np.int32)
        self.parent = np.full(problem.n_labels, -1)
        has_parent = tree.parents >= 0
        self.parent[tree.labels[has_parent]] = tree.labels[tree.parents[has_parent]]
        self.block, self.row = np.full((2, problem.n_labels), -1)
        for number, labels in enumerate(plan.blocks):
            self.block[labels], self.row[labels] = number, np.arange(len(labels))

    def of_block(self, number: int) -> "BlockStarts":
        """Return the starts of a block; all earlier waves have been solved."""
        labels = self.blocks[number]
        parent = self.parent[labels]
        is_inside = (parent >= 0) & (self.block[parent] == number)
        outside = np.unique(parent[(parent >= 0) & ~is_inside])
        points = {int(label): self._point(label) for label in outside}
        return BlockStarts(
            self.initialiser,
            labels,
            np.where(is_inside, self.row[parent], -1),
            {
                int(label): points[int(above)]
                for label, above, inside in zip(labels, parent, is_inside, strict=True)
                if above >= 0 and not inside
            },
        )

    def _point(self, label: int) -> _Point:
        """Return a label's weights over the features of the problem."""
        solution, row = self.tree.solution_of(self.results[self.block[label]]), self.row[label]
        own = slice(solution.indptr[row], solution.indptr[row + 1])
        return self.feature[solution.indices[own]], solution.values[own], solution.intercepts[row]


class BlockStarts:
    """Starts of one block, as ``solve_block`` asks for them.

    Parameters
    ----------
    initialiser : Starter
        Starts of labels without a parent.
    labels : ndarray of int64 of shape (m,)
        The block.
    inside : ndarray of int64 of shape (m,)
        Positions of parents in the block, -1 for none.
    outside : dict of int to tuple
        The weights at which other labels start.
    """

    def __init__(
        self,
        initialiser: Starter,
        labels: np.ndarray,
        inside: np.ndarray,
        outside: dict[int, _Point],
    ) -> None:
        self.initialiser, self.labels = initialiser, labels
        self.inside, self.outside = inside, outside

    def __repr__(self) -> str:
        return repr(self.initialiser)

    def parents(self, problem: OneVsAllProblem, labels: np.ndarray) -> np.ndarray:
        """Return the positions of parents in the block, -1 for none."""
        return self.inside

    def mixtures(
        self, prepared: Any, problem: OneVsAllProblem, positives: PositiveSums
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Return None: parents have weights of their own."""
        return None

    def start(
        self, prepared: Any, problem: OneVsAllProblem, label: int, positive_sum: np.ndarray
    ) -> np.ndarray:
        """Return the weights of a label's parent, or what the initialiser says."""
        if label not in self.outside:
            return self.initialiser.start(prepared, problem, label, positive_sum)
        indices, values, intercept = self.outside[label]
        w = np.zeros(problem.n_features + 1)
        w[indices] = values
        w[-1] = intercept
        return w
