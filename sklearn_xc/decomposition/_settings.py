"""The parameters of a training, checked and with names resolved."""

from dataclasses import dataclass

import numpy as np

from sklearn_xc._given_vectors import GivenVectors
from sklearn_xc.gradients import Gradient, SetLoss
from sklearn_xc.mips import MipsIndex
from sklearn_xc.solvers.schedule import Schedule


@dataclass(frozen=True)
class Settings:
    """What the estimator was asked for; see there.

    Attributes
    ----------
    name : str
        Of the estimator, for messages.
    loss : SetLoss
    gradient : Gradient
    index : str or MipsIndex
        A name, or an instance that is to be copied.
    n_candidates : int or None
    embedding_dim : int, "auto" or None
    embedding_init : GivenVectors or None
        Where the hidden layer starts.
    feature_names : ndarray of str of shape (n_features,) or None
        Of X, if it has some.
    metric : str
    fit_intercept : bool
    dropout, alpha : float
    optimizer : str
    schedule : Schedule
        Learning rates by epochs.
    batch_size : int
    average : bool
    sampled_epochs : float
    allowed_bytes : int or None
    n_workers : int
    verbose : int
    """

    name: str
    loss: SetLoss
    gradient: Gradient
    index: str | MipsIndex
    n_candidates: int | None
    embedding_dim: int | str | None
    embedding_init: GivenVectors | None
    feature_names: np.ndarray | None
    metric: str
    fit_intercept: bool
    dropout: float
    alpha: float
    optimizer: str
    schedule: Schedule
    batch_size: int
    average: bool
    sampled_epochs: float
    allowed_bytes: int | None
    n_workers: int
    verbose: int
