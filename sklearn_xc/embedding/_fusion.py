"""One score of several: a regression tree that reads them all, beside their sum."""

from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._data import read_only
from sklearn_xc.kernels.embedding.tree_walk import add_tree_values

#: A leaf holds at least so many pairs, so that its value, a share of relevant pairs, does not hang
#: on one of them, and at least so large a share of all. With the pairs of 400 instances, 25 and 50
#: gave 0.4 to 1.2 points more of precision@1 than 1 and 10; with 1 to 2 million pairs, those of 100
#: to 200 gave 0.2 to 0.3 points more than 25 (WordNet, Tate, YSO), and 400 up to 1 point less.
MIN_PAIRS_OF_LEAF, MIN_SHARE_OF_LEAF = 25, 1e-4


class FusionTree(NamedTuple):
    """A regression tree in plain arrays, as kernels walk it.

    Attributes
    ----------
    feature : ndarray of int32 of shape (n_nodes,)
        Of the scores, by number; the label frequency comes after them; -2 in a leaf.
    threshold : ndarray of float64 of shape (n_nodes,)
        Features of at most so much go to the left.
    left, right : ndarray of int32 of shape (n_nodes,)
        Numbers of nodes; -1 in a leaf. Node 0 is the root.
    value : ndarray of float64 of shape (n_nodes,)
        Share of relevant pairs.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray


class ScoreFusion:
    """Fused scores: what a regression tree expects of the pair, and some of all its scores.

    The tree predicts whether a label is relevant to an instance (1 or 0) from the scores and the
    number of the label's training instances. It learns from instances that neither encoder nor
    classifiers were trained on; on training instances the classifier scores are too good.

    Parameters
    ----------
    max_depth : int, default=7
        Of the tree.
    weight : float, default=0.1
        Of the sum of the scores, which is added to the tree's value; 1 is the paper's. Leaves are
        shares of relevant pairs, mostly below 0.1, and with 1 the sum drowns them.
    random_state : int, RandomState or None, default=None
        Chooses among splits that are equally good.
    only : int or None, default=None
        The column of a score that speaks alone, -1 for the sum of all scores; None for the tree and
        a share of the sum. The tree is grown all the same.

    Attributes
    ----------
    tree_ : FusionTree
        Set by fit, or by the caller who has kept one.
    n_scores_ : int
        Of a pair; likewise.

    Notes
    -----
    Source: appendix C, "Inference (Score Fusion)", of [1]_; a leaf holds at least 25 pairs, of
    which the paper says nothing, and the sum of the scores has a weight. From fewer than 50 pairs
    the tree is one leaf, and fused scores rank labels as the plain sum does. Labels without
    training instances have frequency 0 and share the leaves of rare labels.

    References
    ----------
    .. [1] K. Dahiya et al., "NGAME: negative mining-aware mini-batching for extreme
       classification", WSDM 2023.
    """

    def __init__(
        self, max_depth: int = 7, weight: float = 0.1, random_state: Any = None,
        only: int | None = None,
    ) -> None:  # fmt: skip
        self.max_depth = max_depth
        self.weight = weight
        self.only = only
        self.random_state = random_state
        self.tree_: FusionTree | None = None
        self.n_scores_ = 0

    def fit(
        self,
        scores: np.ndarray,
        frequencies: np.ndarray,
        is_relevant: np.ndarray,
        weight: np.ndarray | None = None,
    ) -> "ScoreFusion":
        """Grow the tree.

        Parameters
        ----------
        scores : ndarray of float of shape (n_pairs, n_scores)
            Of pairs of an instance and a label: embedding, classifier, and what else there is.
        frequencies : ndarray of shape (n_pairs,)
            Training instances of the label.
        is_relevant : ndarray of bool of shape (n_pairs,)
            Whether the instance has the label.
        weight : ndarray of float of shape (n_pairs,), default=None
            Of the pairs.

        Returns
        -------
        ScoreFusion
            Itself.

        Raises
        ------
        ValueError
            Without pairs, for arrays of different lengths, NaN or inf.
        """
        from sklearn.tree import DecisionTreeRegressor

        given = {"frequencies": frequencies, "is_relevant": is_relevant}
        if weight is not None:
            given["weight"] = weight
        _check_pairs(scores, given)
        pairs = np.column_stack([scores, frequencies]).astype(np.float32)
        regressor = DecisionTreeRegressor(
            max_depth=self.max_depth,
            min_samples_leaf=max(MIN_PAIRS_OF_LEAF, int(MIN_SHARE_OF_LEAF * len(pairs))),
            random_state=self.random_state,
        )
        target = np.asarray(is_relevant, np.float64)
        grown = regressor.fit(pairs, target, sample_weight=weight).tree_
        self.n_scores_ = pairs.shape[1] - 1
        self.tree_ = FusionTree(
            grown.feature.astype(np.int32),
            grown.threshold.astype(np.float64),
            grown.children_left.astype(np.int32),
            grown.children_right.astype(np.int32),
            grown.value[:, 0, 0].astype(np.float64),
        )
        return self

    def __call__(self, scores: Any, frequencies: Any) -> Any:
        """Return fused scores.

        Parameters
        ----------
        scores : array-like of float of shape (..., n_scores)
            Mostly (n, k, n_scores), for k labels of each instance. Where all of a pair are -inf, so
            is the fused score.
        frequencies : array-like
            Training instances of the labels; of a shape that broadcasts to (...).

        Returns
        -------
        ndarray of float
            Of the shape (...), float32 if the scores are.
        """
        if self.tree_ is None:
            raise ValueError("ScoreFusion: there is no tree yet; call fit first.")
        scores = np.asarray(scores)
        if scores.shape[-1:] != (self.n_scores_,):
            raise ValueError(
                f"ScoreFusion: scores must have shape (..., {self.n_scores_}), as in fit. Got "
                f"{scores.shape}."
            )
        dtype = np.float32 if scores.dtype == np.float32 else np.float64
        shape = scores.shape[:-1]
        if self.only is not None:
            alone = scores.sum(axis=-1) if self.only < 0 else scores[..., self.only]
            return alone.astype(dtype)
        frequency = np.broadcast_to(np.asarray(frequencies, np.float32), shape)
        out = np.empty(frequency.size, dtype)
        add_tree_values(
            tuple(map(read_only, self.tree_)),
            read_only(np.ascontiguousarray(scores, dtype).reshape(-1, scores.shape[-1])),
            read_only(np.ascontiguousarray(frequency).ravel()),
            float(self.weight),
            out,
        )
        return out.reshape(shape)


def _check_pairs(scores: np.ndarray, given: dict[str, Any]) -> None:
    shape = np.shape(scores)
    if len(shape) != 2 or 0 in shape:
        raise ValueError(
            "ScoreFusion: scores must be of at least one pair, shape (n_pairs, n_scores). Got "
            f"shape {shape}."
        )
    for name, values in given.items():
        if np.shape(values) != shape[:1]:
            raise ValueError(
                f"ScoreFusion: {name} must have shape {shape[:1]}, one for each pair. Got "
                f"{np.shape(values)}."
            )
    for name, values in {"scores": scores, **given}.items():
        if not np.isfinite(values).all():
            raise ValueError(f"ScoreFusion: {name} contains NaN or infinity.")
