"""What a sampler of mini-batches is, and what it may ask for."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np


class Positives(NamedTuple):
    """The true labels of the instances, in CSR form.

    Attributes
    ----------
    indptr : ndarray of int64 of shape (n + 1,)
    labels : ndarray of int32 of shape (nnz,)
        Those of instance i are ``labels[indptr[i]:indptr[i + 1]]``, ascending.
    """

    indptr: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True)
class Scene:
    """What a refresh may look at. Embeddings are computed by those who ask for them.

    Attributes
    ----------
    n : int
        Instances.
    n_epochs : int
        Epochs that are planned in all.
    is_positive : Positives
        The true labels of each instance.
    instances : callable
        Returns the embeddings of the instances, ndarray of shape (n, dim): those of now, or of when
        training saw them last.
    labels : callable
        Returns the embeddings of the labels now, ndarray of shape (n_labels, dim).
    static : callable
        Returns embeddings of the instances that are the same in all epochs, ndarray of shape
        (n, dim).
    moves : bool, default=True
        Whether the embeddings of the instances change from epoch to epoch.
    """

    n: int
    n_epochs: int
    is_positive: Positives
    instances: Callable[[], np.ndarray]
    labels: Callable[[], np.ndarray]
    static: Callable[[], np.ndarray]
    moves: bool = True


class BatchSampler(Protocol):
    """Chooses the instances of mini-batches, and the labels that they are set against.

    Attributes
    ----------
    refresh_interval : int
        Epochs between refreshes.
    """

    refresh_interval: int

    def refresh(self, epoch: int, scene: Scene) -> None:
        """Look at the embeddings again, if it is time to.

        Parameters
        ----------
        epoch : int
            That begins, from 0. Called before each epoch; a sampler that was not there when its
            last refresh was due makes up for it.
        scene : Scene
            What the sampler keeps depends on its seed, the epoch that the refresh was due at, and
            the scene it was done with.
        """

    def batches(self, epoch: int) -> Iterator[np.ndarray]:
        """Yield the instances of each mini-batch, ndarray of int64; ``refresh`` comes first.

        All have the same size but the last, and each instance is in one of them.
        """

    def negatives(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the labels to set some instances against, besides those of the mini-batch.

        Parameters
        ----------
        rows : ndarray of int64 of shape (m,)

        Returns
        -------
        ndarray of int32 of shape (m, n_negatives), or None
            Distinct in a row, none of them a true label of the instance; the rest is -1. None if
            there are only those of the mini-batch.
        """

    def select(self, losses: np.ndarray) -> np.ndarray | None:
        """Return which instances of a mini-batch count.

        Parameters
        ----------
        losses : ndarray of float of shape (m,)
            Of the instances.

        Returns
        -------
        ndarray of bool of shape (m,), or None
            None if all count.
        """
