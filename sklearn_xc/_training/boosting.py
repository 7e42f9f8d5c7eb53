"""Boosted trees that tell relevant pairs of an instance and a label, and their mixture.

The other part of the mixture is a logistic model, which is better where there are few pairs.
"""

from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from sklearn_xc._state.schema import Array, Attribute, Holds

#: Settings of the boosted trees. On thirteen stacks of two members, learned from 300 to 5,000 rows,
#: 100 trees at half the rate had 0.1 points of precision@1 more on average, at twice the time. On
#: six fusions of a sixteenth of the rows, they were within 0.6 points either way; on nine of a
#: quarter, 7 leaves lost up to 1.2.
_TREES, _RATE, _LEAVES, _RIDGE = 30, 0.2, 15, 10.0
#: Largest minimum of pairs in a leaf, and the minimum as a share of all pairs.
_PAIRS_OF_LEAF, _SHARE_OF_LEAF = 100, 0.005
#: Shares of the trees that are tried in the mixture.
_SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)

#: Schema of the arrays of trees; a class that uses it has a property ``_are_trees``.
TREES: dict[str, Attribute] = {
    "root": Array("int32", None),
    "feature": Array("int32", "nodes", least=-2, below="inputs"),
    "threshold": Array("float64", "nodes"),
    "left": Array("int32", "nodes"),
    "right": Array("int32", "nodes"),
    "value": Array("float64", "nodes"),
    "_are_trees": Holds("trees in which each way ends in a leaf"),
}


def are_trees(trees: Any) -> bool:
    """Return whether each way from a root through binary trees in arrays ends in a leaf."""
    n = len(trees.left)
    inner = np.flatnonzero(trees.left >= 0)
    left, right, root = trees.left[inner], trees.right[inner], trees.root
    fits = ((inner < left) & (left < n) & (inner < right) & (right < n)).all()
    if not fits or not ((root >= 0) & (root < n)).all() or (trees.feature[inner] < 0).any():
        return False
    reached = np.bincount(np.concatenate([root, left, right]), minlength=n)
    return bool((reached == 1).all())  # each node once


def boosting(n_pairs: int, directions: list[int], seed: int) -> HistGradientBoostingClassifier:
    """Return gradient boosting for some number of pairs, not fitted yet.

    Parameters
    ----------
    n_pairs : int
    directions : list of int
        As ``monotonic_cst``.
    seed : int
    """
    return HistGradientBoostingClassifier(
        max_iter=_TREES,
        learning_rate=_RATE,
        max_leaf_nodes=_LEAVES,
        min_samples_leaf=int(np.clip(_SHARE_OF_LEAF * n_pairs, 1, _PAIRS_OF_LEAF)),
        l2_regularization=_RIDGE,
        monotonic_cst=directions,
        early_stopping=False,
        random_state=seed,
    )


def boosted_trees(model: Any) -> tuple[float, tuple[np.ndarray, ...], np.ndarray]:
    """Return the trees of a binary gradient boosting on numbers as plain arrays.

    Parameters
    ----------
    model : HistGradientBoostingClassifier
        Fitted to two classes.

    Returns
    -------
    start : float
        The log-odds that the values of all trees add to.
    trees : tuple of ndarray
        Root of each tree; feature, threshold (values up to it go left), left, right and
        value of each node; -2 as feature and -1 as left and right in leaves.
    missing_left : ndarray of bool
        For each node, whether missing values go left.
    """
    start = float(np.asarray(model._baseline_prediction).ravel()[0])
    nodes = [predictors[0].nodes for predictors in model._predictors]
    roots = np.cumsum([0, *map(len, nodes)])[:-1].astype(np.int32)
    offsets = np.repeat(roots, [len(part) for part in nodes])
    every = np.concatenate(nodes)
    is_leaf = every["is_leaf"].astype(bool)
    left, right = (
        np.where(is_leaf, -1, every[name].astype(np.int64) + offsets).astype(np.int32)
        for name in ("left", "right")
    )
    feature = np.where(is_leaf, -2, every["feature_idx"].astype(np.int64)).astype(np.int32)
    threshold = every["num_threshold"].astype(np.float64)
    trees = roots, feature, threshold, left, right, every["value"].astype(np.float64)
    return start, trees, every["missing_go_to_left"].astype(bool)


def best_share(
    by_trees: np.ndarray, by_linear: np.ndarray, relevant: np.ndarray, weight: np.ndarray
) -> float:
    """Return the share of the trees with the lowest log-loss on pairs that no model has seen.

    Parameters
    ----------
    by_trees, by_linear : ndarray of float64 of shape (n_pairs,)
        Probabilities of both models.
    relevant : ndarray of bool of shape (n_pairs,)
    weight : ndarray of float64 of shape (n_pairs,)
    """
    losses = []
    for share in _SHARES:
        mean = (share * by_trees + (1.0 - share) * by_linear).clip(1e-12, 1.0 - 1e-12)
        losses.append(np.dot(-np.log(np.where(relevant, mean, 1.0 - mean)), weight))
    return _SHARES[int(np.argmin(losses))]
