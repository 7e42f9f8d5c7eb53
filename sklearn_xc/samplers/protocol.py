"""What a sampler of mini-batches is, and what it may ask for."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np


class Positives(NamedTuple):
    """The true labels of the instances, in CSR form.

    Attributes
    ----------
    indptr : ndarray of int64 of shape (n + 1,)
    labels : ndarray of int32 of shape (nnz,)
        Those of instance i are ``labels[indptr[i]:indptr[i + 1]]``, ascending.

    Examples
    --------
    The first instance has the labels 1 and 3, the second none, the third the label 1:

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.samplers import Positives
    >>> Y = csr_array(np.array([[0, 1, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]]))
    >>> positives = Positives(Y.indptr.astype(np.int64), Y.indices.astype(np.int32))
    >>> [positives.labels[a:b].tolist() for a, b in zip(positives.indptr, positives.indptr[1:])]
    [[1, 3], [], [1]]
    """

    indptr: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True)
class TrainingState:
    """What a sampler may look at. Embeddings are computed when they are asked for.

    Instances and labels are known by their positions in this training, not by those in X and y:
    equal instances are merged into one, and instances that are held out or have no features are
    left out; so are labels without features while the encoder is trained, and those of other
    shards where ``n_shards`` is more than 1. Nothing of it is to be changed.

    Attributes
    ----------
    n : int
        Number of instances: rows are 0 to ``n - 1``.
    n_labels : int
        Number of labels: 0 to ``n_labels - 1``.
    positives : Positives
        The true labels of each instance.
    inputs : callable
        Returns the instances as the encoder reads them: a ``scipy.sparse.csr_array`` of shape
        (n, n_features), or an ndarray of str objects of shape (n,).
    instances : callable
        Returns the embeddings of the instances now, ndarray of shape (n, dim).
    last_seen : callable
        Returns the embeddings of the instances as they were in their last mini-batch, ndarray of
        shape (n, dim): as good as those of now for most purposes, and nothing to compute.
    initial : callable
        Returns the embeddings that the instances had before training, ndarray of shape (n, dim).
    labels : callable
        Returns the embeddings of the labels now, ndarray of shape (n_labels, dim).
    moves : bool, default=True
        Whether the embeddings of the instances change from epoch to epoch.

    Examples
    --------
    For a test of a sampler of your own: four instances, of which the first and the third are near
    each other, and three labels.

    >>> import numpy as np
    >>> from sklearn_xc.samplers import Positives, TasSampler, TrainingState
    >>> V = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [0.1, 0.9]])
    >>> labels = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    >>> positives = Positives(np.arange(5), np.array([0, 1, 0, 1], np.int32))
    >>> state = TrainingState(
    ...     n=4, n_labels=3, positives=positives, inputs=lambda: V, instances=lambda: V,
    ...     last_seen=lambda: V, initial=lambda: V, labels=lambda: labels,
    ... )
    >>> sampler = TasSampler()
    >>> sampler.start(batch_size=2, n_epochs=1, seed=0)
    >>> sampler.refresh(0, state)
    >>> [rows.tolist() for rows in sampler.batches(0)]
    [[0, 2], [1, 3]]
    """

    n: int
    n_labels: int
    positives: Positives
    inputs: Callable[[], Any]
    instances: Callable[[], np.ndarray]
    last_seen: Callable[[], np.ndarray]
    initial: Callable[[], np.ndarray]
    labels: Callable[[], np.ndarray]
    moves: bool = True


class BatchSampler(Protocol):
    """Chooses the instances of mini-batches, and the labels that they are set against.

    The constructor stores parameters only; ``get_params``, ``set_params`` and ``clone`` work, as
    those of ``sklearn.base.BaseEstimator`` do. Training clones a sampler and calls ``start``; what
    the sampler keeps are attributes that ``start`` and ``refresh`` make.

    Attributes
    ----------
    reads : collection of {"instances", "last_seen", "initial", "labels"}
        The embeddings of a `TrainingState` that ``refresh`` asks for; others cannot be read.
        Training keeps them only for samplers that name them here, and plans memory by it.
    n_negatives : int
        How many labels ``negatives`` returns for an instance; 0 if it always returns None.

    Examples
    --------
    One of your own, by replacing a part of another. In the first half of the epochs only the easier
    half of each mini-batch counts:

    >>> import numpy as np
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn_xc import NGAMEEmbeddingXC
    >>> from sklearn_xc.samplers import InBatchSampler
    >>> class EasyFirst(InBatchSampler):
    ...     def refresh(self, epoch, state):
    ...         super().refresh(epoch, state)
    ...         self.is_early_ = epoch < self.n_epochs_ // 2
    ...
    ...     def select(self, losses):
    ...         return losses <= np.median(losses) if self.is_early_ else None
    >>> texts = ["a red apple", "green apple pie", "fast red car", "the car race"] * 10
    >>> vectorizer = TfidfVectorizer().fit(texts)
    >>> clf = NGAMEEmbeddingXC(sampler=EasyFirst(), random_state=0)
    >>> clf = clf.fit(vectorizer.transform(texts), [0, 0, 1, 1] * 10)
    >>> clf.predict(vectorizer.transform(["an apple", "my car"])).tolist()
    [0, 1]
    """

    @property
    def reads(self) -> Collection[str]:
        """Which embeddings ``refresh`` asks for."""

    @property
    def n_negatives(self) -> int:
        """How many further negatives an instance has."""

    def start(self, batch_size: int, n_epochs: int, seed: int, n_jobs: int | None) -> None:
        """Begin a training; what earlier ones have left is forgotten.

        Parameters
        ----------
        batch_size : int
            Instances of a mini-batch.
        n_epochs : int
            Epochs that are planned in all.
        seed : int
            Of what is random. An epoch's mini-batches depend on the seed and the epoch alone, and
            on what ``refresh`` has seen.
        n_jobs : int or None
            Threads, as joblib counts them. Results do not depend on it.
        """

    def refresh(self, epoch: int, state: TrainingState) -> None:
        """Look at the embeddings again, if it is time to.

        Parameters
        ----------
        epoch : int
            The one that begins, from 0. Called before each epoch. The first call may be for a later
            epoch, where training goes on with a new copy of the sampler (``partial_fit``): what
            should have been looked at before is looked at then.
        state : TrainingState
            What the sampler keeps depends on its seed, the epoch that the refresh was due at, and
            the state it was done with.
        """

    def batches(self, epoch: int) -> Iterator[np.ndarray]:
        """Yield the instances of each mini-batch; ``refresh`` comes first.

        Each instance is in exactly one of them, and none has more than `batch_size`.

        Parameters
        ----------
        epoch : int
            From 0.

        Yields
        ------
        ndarray of int64 of shape (m,)
        """

    def negatives(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the labels to set some instances against, besides those of the mini-batch.

        Parameters
        ----------
        rows : ndarray of int64 of shape (m,)

        Returns
        -------
        ndarray of int32 of shape (m, n_negatives), or None
            Places without a label hold -1. The labels are negatives of all instances of the
            mini-batch; repeated ones count once, and an instance's true labels not at all for it.
            None if there are only the labels of the mini-batch.
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
