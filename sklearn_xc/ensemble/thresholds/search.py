"""The best thresholds for scored pairs of an instance and a label, in one pass over sorted scores.

Pairs fall into cells (all in one, or one for each label or group of labels), and each cell has a
threshold of its own. The value of a threshold is a sum over the pairs above it, so that in each
cell the best one is the largest of the cumulative sums in falling order of scores.
"""

from typing import NamedTuple

import numpy as np

from sklearn_xc.ensemble.scored_pairs import ScoredPairs

#: Limit of Dinkelbach's steps, of which three to six are taken.
_MOST_STEPS = 100


class Cells(NamedTuple):
    """The cell of each pair, and of each relevant pair, found or not.

    Attributes
    ----------
    of_pairs : ndarray of int64 of shape (n_pairs,)
    of_relevant : ndarray of int64 of shape (n_relevant,)
        -1 for a pair that counts in no cell.
    n : int
    """

    of_pairs: np.ndarray
    of_relevant: np.ndarray
    n: int


class Ranking:
    """The pairs of each cell in falling order of scores, and thresholds between them.

    Parameters
    ----------
    pairs : ScoredPairs
    cells : Cells
    """

    def __init__(self, pairs: ScoredPairs, cells: Cells) -> None:
        order = np.lexsort((-pairs.scores, cells.of_pairs))
        self.n_cells, self.n_pairs = cells.n, len(order)
        self.labels, self.scores = pairs.labels[order], pairs.scores[order].astype(np.float64)
        self.cells = cells.of_pairs[order]
        self.weight = pairs.weight[order]
        self.hits = self.weight * pairs.relevant[order]
        self.n_relevant = pairs.n_relevant
        inside = cells.of_relevant >= 0
        self.cell_relevant = np.bincount(
            cells.of_relevant[inside], pairs.true_weight[inside], minlength=cells.n
        )
        self.starts = np.searchsorted(self.cells, np.arange(cells.n + 1))
        same = (self.cells[1:] == self.cells[:-1]) & (self.scores[1:] == self.scores[:-1])
        #: Equal scores are predicted together.
        self.ends = np.append(~same, True)[: self.n_pairs]

    def within(self, values: np.ndarray) -> np.ndarray:
        """Return the cumulative sums of each cell."""
        total = np.concatenate(([0.0], np.cumsum(values)))
        return total[1:] - total[self.starts[self.cells]]

    def best(self, values: np.ndarray, of_none: np.ndarray) -> np.ndarray:
        """Return the number of pairs of each cell to predict for the largest value.

        Parameters
        ----------
        values : ndarray of float64 of shape (n_pairs,)
            The value of predicting a pair and all before it in its cell.
        of_none : ndarray of float64 of shape (n_cells,)
            The value of predicting none.

        Returns
        -------
        ndarray of int64 of shape (n_cells,)
            The fewest of equal value.
        """
        counts = np.zeros(self.n_cells, np.int64)
        filled = np.flatnonzero(np.diff(self.starts))
        if not filled.size:
            return counts
        values = np.where(self.ends, values, -np.inf)
        largest = np.full(self.n_cells, -np.inf)
        largest[filled] = np.maximum.reduceat(values, self.starts[filled])
        at = np.flatnonzero(values == largest[self.cells])
        cells, first = np.unique(self.cells[at], return_index=True)
        better = largest[cells] > of_none[cells]
        counts[cells[better]] = (at[first] - self.starts[cells] + 1)[better]
        return counts

    def thresholds(self, counts: np.ndarray) -> np.ndarray:
        """Return thresholds that `counts` pairs of each cell exceed; NaN for cells without pairs.

        Half-way between two scores; just below the last where all exceed it, and the first score
        where none does.
        """
        found = np.full(self.n_cells, np.nan)
        sizes = np.diff(self.starts)
        for_all, for_none = (counts == sizes) & (sizes > 0), (counts == 0) & (sizes > 0)
        between = (counts > 0) & (counts < sizes)
        at = self.starts[:-1] + counts
        upper, lower = self.scores[at[between] - 1], self.scores[at[between]]
        middle = 0.5 * upper + 0.5 * lower
        found[between] = np.where(middle < upper, middle, lower)
        found[for_all] = np.nextafter(self.scores[at[for_all] - 1], -np.inf)
        found[for_none] = self.scores[self.starts[:-1][for_none]]
        return found

    def total(self, values: np.ndarray, counts: np.ndarray) -> float:
        """Return the sum over the pairs that are predicted."""
        place = np.arange(self.n_pairs) - self.starts[self.cells]
        return float(values[place < counts[self.cells]].sum())


def most_micro_f(ranking: Ranking, beta: float) -> np.ndarray:
    """Return the number of pairs of each cell for the largest F-measure of all pairs together.

    Dinkelbach's method for a ratio: with F the largest so far, the cells part, and each takes the
    prefix with the largest ``(1 + beta**2) hits - F pairs``.

    Notes
    -----
    Source: W. Dinkelbach, "On nonlinear fractional programming", Management Science 13, 1967.
    """
    square, best = beta * beta, 0.0
    relevant = float(ranking.n_relevant.sum())
    counts = none = np.zeros(ranking.n_cells, np.int64)
    hits, pairs = (1.0 + square) * ranking.within(ranking.hits), ranking.within(ranking.weight)
    for _ in range(_MOST_STEPS):
        counts_now = ranking.best(hits - best * pairs, np.zeros(ranking.n_cells))
        found = ranking.total(ranking.hits, counts_now)
        predicted = ranking.total(ranking.weight, counts_now)
        value = (1.0 + square) * found / max(square * relevant + predicted, 1e-300)
        if value <= best:
            break
        best, counts = value, counts_now
    return none if best == 0.0 else counts


def most_macro_f(ranking: Ranking, beta: float) -> np.ndarray:
    """Return the number of pairs of each cell for the largest mean of the labels' F-measures.

    The mean changes with each pair by what it adds to the F-measure of its label; that of a label
    that no instance has is 0.
    """
    return ranking.best(ranking.within(gains_of_label_f(ranking, beta)), np.zeros(ranking.n_cells))


def gains_of_label_f(ranking: Ranking, beta: float) -> np.ndarray:
    """Return the gain of each pair in the F-measure of its label, those before it predicted."""
    square = beta * beta
    order = np.lexsort((np.arange(ranking.n_pairs), ranking.labels))
    labels = ranking.labels[order]
    starts = np.searchsorted(labels, labels)
    sums = []
    for values in (ranking.hits, ranking.weight):
        total = np.concatenate(([0.0], np.cumsum(values[order])))
        sums.append(total[1:] - total[starts])
    hits, predicted = sums
    f = (1.0 + square) * hits / (square * ranking.n_relevant[labels] + predicted)
    is_first = np.arange(len(starts)) == starts
    before = np.where(is_first, 0.0, np.concatenate(([0.0], f[:-1]))[: len(f)])
    gains = np.empty(ranking.n_pairs)
    gains[order] = f - before
    return gains


def most_recall(ranking: Ranking, min_precision: float) -> np.ndarray:
    """Return the number of pairs of each cell for most hits, with at least this precision."""
    hits, pairs = ranking.within(ranking.hits), ranking.within(ranking.weight)
    allowed = hits >= min_precision * pairs
    return ranking.best(np.where(allowed, hits, -np.inf), np.zeros(ranking.n_cells))


def as_many_as_true(ranking: Ranking) -> np.ndarray:
    """Return the number of pairs of each cell nearest to the number of its relevant pairs."""
    too_many = np.abs(ranking.within(ranking.weight) - ranking.cell_relevant[ranking.cells])
    return ranking.best(-too_many, -ranking.cell_relevant)
