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
    """What a sampler may read. Embeddings are computed on request.

    Instances and labels are identified by their positions in this training, not by those in X and
    y: equal instances are merged into one, and instances that are held out or have no features are
    left out; so are labels without features while the encoder is trained, and those of other
    shards if ``n_shards`` is more than 1. Do not change any of it.

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
        Returns the current embeddings of the instances, ndarray of shape (n, dim).
    last_seen : callable
        Returns the embeddings of the instances as they were in their last mini-batch, ndarray of
        shape (n, dim): as good as the current ones for most purposes, with nothing to compute.
    initial : callable
        Returns the embeddings that the instances had before training, ndarray of shape (n, dim).
    labels : callable
        Returns the current embeddings of the labels, ndarray of shape (n_labels, dim).
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
    """Chooses the instances of mini-batches, and the labels that they are contrasted with.

    The constructor only stores parameters; ``get_params``, ``set_params`` and ``clone`` work as
    for ``sklearn.base.BaseEstimator``. Training clones a sampler and calls ``start``; ``start``
    and ``refresh`` make the attributes that the sampler keeps.

    Attributes
    ----------
    reads : collection of {"instances", "last_seen", "initial", "labels"}
        The embeddings of a `TrainingState` that ``refresh`` reads; others cannot be read. Training
        keeps only the embeddings named here, and plans memory accordingly.
    n_negatives : int
        Number of labels that ``negatives`` returns for an instance; 0 if it always returns None.

    Examples
    --------
    A sampler of your own that replaces a part of another: in the first half of the epochs, only
    the easier half of each mini-batch counts.

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
        """Which embeddings ``refresh`` reads."""

    @property
    def n_negatives(self) -> int:
        """Number of additional negatives of an instance."""

    def start(self, batch_size: int, n_epochs: int, seed: int, n_jobs: int | None) -> None:
        """Begin a training, forgetting what earlier ones have left.

        Parameters
        ----------
        batch_size : int
            Number of instances in a mini-batch.
        n_epochs : int
            Number of epochs planned in total.
        seed : int
            Random seed. The mini-batches of an epoch depend only on the seed, the epoch, and what
            ``refresh`` has seen.
        n_jobs : int or None
            Number of threads, as joblib counts them. Results do not depend on it.
        """

    def refresh(self, epoch: int, state: TrainingState) -> None:
        """Look at the embeddings again if a refresh is due.

        Parameters
        ----------
        epoch : int
            The epoch that begins, from 0. Called before each epoch. The first call may be for a
            later epoch, if training continues with a new copy of the sampler (``partial_fit``): a
            refresh that was due earlier is then done.
        state : TrainingState
            What the sampler keeps depends on its seed, the epoch at which the refresh was due, and
            the state with which it was done.
        """

    def batches(self, epoch: int) -> Iterator[np.ndarray]:
        """Yield the instances of each mini-batch; called after ``refresh``.

        Each instance is in exactly one mini-batch, and none has more than `batch_size`.

        Parameters
        ----------
        epoch : int
            From 0.

        Yields
        ------
        ndarray of int64 of shape (m,)
        """

    def negatives(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the labels to contrast some instances with, besides those of the mini-batch.

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
            Losses of the instances.

        Returns
        -------
        ndarray of bool of shape (m,), or None
            None if all count.
        """
