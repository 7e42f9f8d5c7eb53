"""Parameters of a training."""

from dataclasses import dataclass

import numpy as np

from sklearn_xc._input.given_vectors import GivenVectors
from sklearn_xc.decomposition.gradients.protocol import Gradient
from sklearn_xc.decomposition.gradients.set_loss import SetLoss
from sklearn_xc.search import MipsIndex


@dataclass(frozen=True)
class TrainingConfig:
    """Parameters of a training, validated and resolved for the training set.

    Attributes
    ----------
    name : str
        Of the estimator, for messages.
    loss : SetLoss
    gradient : Gradient
    index : str or MipsIndex
        A name, or an instance to copy.
    n_candidates : int
    hidden_dim : int
        0 for no hidden layer.
    has_intercept : bool
        Whether label vectors have a trained intercept, or are proxies.
    embedding_init : GivenVectors or None
        Initial feature vectors.
    feature_names : ndarray of str of shape (n_features,) or None
    metric : {"inner_product", "euclidean", "mahalanobis"}
    dropout : float
    batch_size, n_workers, seed : int
    """

    name: str
    loss: SetLoss
    gradient: Gradient
    index: str | MipsIndex
    n_candidates: int
    hidden_dim: int
    has_intercept: bool
    embedding_init: GivenVectors | None
    feature_names: np.ndarray | None
    metric: str
    dropout: float
    batch_size: int
    n_workers: int
    seed: int

    @property
    def has_proxies(self) -> bool:
        """Whether scores are distances: intercepts then follow from the vectors."""
        return self.metric != "inner_product"
