"""What a one-vs-all fit holds besides the work space of its threads, and what of it goes to files.

``max_memory`` is shared out in this order: numbers of rows, features and labels, which must be in
memory; copies of X, which go to files where they leave no room for the work space; the work space,
for as many labels and threads as have room; finished weights, in files as far as there is none.
"""

import math
from dataclasses import dataclass

import numpy as np

from sklearn_xc._data import CsrRows, DenseRows
from sklearn_xc.losses import MarginLoss
from sklearn_xc.losses.margin import compiled
from sklearn_xc.parallel.blocks import MAX_LANES, MORE_ROOM
from sklearn_xc.parallel.memory import require_bytes
from sklearn_xc.solvers.newton_cg import largest_array, workspace_bytes
from sklearn_xc.solvers.problem import OneVsAllProblem
from sklearn_xc.solvers.smooth_newton import pays_side_by_side
from sklearn_xc.solvers.working_sets import FEWEST_ROWS

#: Bytes for each row, feature, label and positive, at the peak.
_A_ROW, _A_FEATURE, _A_LABEL, _A_POSITIVE = 112, 64, 300, 48


@dataclass(frozen=True)
class Sizes:
    """What the memory of a fit follows from.

    Attributes
    ----------
    n, d, n_labels : int
        Rows, features and labels.
    n_entries, n_positives : int
        Entries of a sparse X (0 of a dense one), and of y.
    itemsize : int
        Bytes of a number of X.
    has_kink : bool
        Whether the loss ends at a kink.
    """

    n: int
    d: int
    n_labels: int
    n_entries: int
    n_positives: int
    itemsize: int
    has_kink: bool

    @classmethod
    def of(
        cls, X: CsrRows | DenseRows, y_indptr: np.ndarray, y_rows: np.ndarray, loss: MarginLoss
    ) -> "Sizes":
        """Return those of X, the positives of each label, and a loss."""
        n_entries = len(X.data) if isinstance(X, CsrRows) else 0
        has_kink = math.isfinite(compiled(loss).active_below)
        return cls(*X.shape, len(y_indptr) - 1, n_entries, len(y_rows), X.dtype.itemsize, has_kink)

    def block(self, n_lanes: int) -> int:
        """Return the bytes of the work space of so many labels side by side."""
        aside = pays_side_by_side(self.n_entries > 0, self.has_kink, self.n_labels)
        return workspace_bytes(self.n, self.d, n_lanes, self.itemsize, aside)

    @property
    def numbers(self) -> int:
        """Bytes of numbers of rows, features, labels and positives."""
        return (
            _A_ROW * self.n + _A_FEATURE * self.d + _A_LABEL * self.n_labels
            + _A_POSITIVE * self.n_positives
        )  # fmt: skip

    @property
    def in_memory(self) -> int:
        """Bytes that no file can hold: also of the one problem that is solved on all rows."""
        crowd = 0
        if self.has_kink and self.n_entries and self.n >= FEWEST_ROWS:
            crowd = self.block(1)
        return crowd + self.numbers

    @property
    def copies(self) -> int:
        """Bytes of the copies of X: in another order, rounded and by feature."""
        whole = 4 + self.itemsize
        if not self.has_kink:
            return self.n_entries * whole
        return self.n_entries * (whole + 2 + whole * (self.n >= FEWEST_ROWS))


def go_to_files(sizes: Sizes, allowed: int | None) -> bool:
    """Return whether copies of X leave too little of `allowed` bytes for a block of labels."""
    if allowed is None or not sizes.n_entries:
        return False
    block = sizes.block(min(MAX_LANES, sizes.n_labels))
    return sizes.in_memory + sizes.copies + block > allowed


def require_room(sizes: Sizes, in_files: bool, allowed: int | None, who: str) -> None:
    """Raise MemoryBudgetError unless there is room for a block of one label."""
    require_bytes(
        sizes.in_memory + sizes.block(1) + (0 if in_files else sizes.copies),
        allowed,
        largest_array(sizes.n, sizes.d, 1, sizes.itemsize),
        MORE_ROOM,
        who,
    )


def held_bytes(problem: OneVsAllProblem) -> int:
    """Return what a fit holds besides work space and weights."""
    sizes = _sizes_of(problem)
    return sizes.in_memory + (0 if problem.in_files else sizes.copies)


def room_for_weights(problem: OneVsAllProblem, allowed: int | None) -> int | None:
    """Return the bytes that are left for weights, of `allowed`, once all problems are solved."""
    return None if allowed is None else allowed - _sizes_of(problem).numbers


def _sizes_of(problem: OneVsAllProblem) -> Sizes:
    return Sizes.of(problem.instances, problem.y_indptr, problem.y_rows, problem.margin_loss)


def weight_bytes(d: int, itemsize: int) -> int:
    """Return what the weights of a label of a block may take until they are out of the heap.

    How many are left after pruning is not known before: 2,048 are more than most labels have.
    """
    return 4 * min(d, 2048) * (4 + itemsize)
