"""``fusion="tree"``: a regression tree beside the sum of all scores, as in the paper."""

from typing import Any

import numpy as np

from sklearn_xc._data import read_only
from sklearn_xc.embedding._fusion import Pairs, ScoreFusion, Trees, check_pairs
from sklearn_xc.kernels.embedding.tree_walk import add_tree_values

#: A leaf holds at least so many pairs, so that its value, a share of relevant pairs, does not hang
#: on one of them, and at least so large a share of all. With the pairs of 400 instances, 25 and 50
#: gave 0.4 to 1.2 points more of precision@1 than 1 and 10; with 1 to 2 million pairs, those of 100
#: to 200 gave 0.2 to 0.3 points more than 25 (WordNet, Tate, YSO), and 400 up to 1 point less.
MIN_PAIRS_OF_LEAF, MIN_SHARE_OF_LEAF = 25, 1e-4


class TreeFusion(ScoreFusion):
    """What a regression tree expects of the pair, and the sum of its scores.

    The tree predicts whether a label is relevant to an instance (1 or 0) from the scores and the
    number of the label's training instances.

    Parameters
    ----------
    max_depth : int, default=7
        Of the tree.
    random_state : int, RandomState or None, default=None
        Chooses among splits that are equally good.

    Attributes
    ----------
    trees_ : Trees
        One; values are shares of relevant pairs.
    n_scores_ : int

    Notes
    -----
    Source: appendix C, "Inference (Score Fusion)", of [1]_; a leaf holds at least 25 pairs, of
    which the paper says nothing. From fewer than 50 pairs the tree is one leaf, and fused scores
    rank labels as the plain sum does. Labels without training instances have frequency 0 and share
    the leaves of rare labels.

    References
    ----------
    .. [1] K. Dahiya et al., "NGAME: negative mining-aware mini-batching for extreme
       classification", WSDM 2023.
    """

    def __init__(self, max_depth: int = 7, random_state: Any = None) -> None:
        self.max_depth, self.random_state = max_depth, random_state

    def fit(self, pairs: Pairs, frequencies: np.ndarray) -> "TreeFusion":
        """Grow the tree; see ``ScoreFusion``."""
        from sklearn.tree import DecisionTreeRegressor

        check_pairs(type(self).__name__, pairs, frequencies)
        features = np.column_stack([pairs.scores, frequencies]).astype(np.float32)
        regressor = DecisionTreeRegressor(
            max_depth=self.max_depth,
            min_samples_leaf=max(MIN_PAIRS_OF_LEAF, int(MIN_SHARE_OF_LEAF * len(features))),
            random_state=self.random_state,
        )
        target = np.asarray(pairs.is_own, np.float64)
        grown = regressor.fit(features, target, sample_weight=pairs.weight).tree_
        self.n_scores_ = features.shape[1] - 1
        self.trees_ = Trees(
            np.zeros(1, np.int32),
            grown.feature.astype(np.int32),
            grown.threshold.astype(np.float64),
            grown.children_left.astype(np.int32),
            grown.children_right.astype(np.int32),
            grown.value[:, 0, 0].astype(np.float64),
        )
        return self

    def _fuse(
        self, trees: Any, scores: np.ndarray, frequencies: np.ndarray, out: np.ndarray
    ) -> None:
        add_tree_values(trees, scores, read_only(frequencies.astype(np.float32)), out)
