"""The protocol of samplers, and the state of training that they read."""

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
    >>> from sklearn_xc.embedding.samplers import Positives
    >>> Y = csr_array(np.array([[0, 1, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]]))
    >>> positives = Positives(Y.indptr.astype(np.int64), Y.indices.astype(np.int32))
    >>> [positives.labels[a:b].tolist() for a, b in zip(positives.indptr, positives.indptr[1:])]
    [[1, 3], [], [1]]
    """

    indptr: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True)
class TrainingState:
    """What a sampler may read; embeddings are computed on request.

    Instances and labels are numbered by their positions in this training, not by those in X and
    y: equal instances are merged into one, and instances that are held out or have no features are
    left out; so are labels without features while the encoder is trained. Do not change any of it.

    Attributes
    ----------
    n, n_labels : int
        Numbers of instances and of labels.
    positives : Positives
        The true labels of each instance.
    inputs : callable
        Returns the instances as the encoder reads them: a ``scipy.sparse.csr_array`` of shape
        (n, n_features), or an ndarray of str objects of shape (n,).
    instances : callable
        Returns the current embeddings of the instances, ndarray of shape (n, dim).
    last_seen : callable
        Returns the embeddings of the instances as of their last mini-batch, ndarray of shape
        (n, dim): as good as the current ones for most purposes, and kept if `reads` of the sampler
        names them.
    initial : callable
        Returns the embeddings of the instances before training, ndarray of shape (n, dim).
    labels : callable
        Returns the current embeddings of the labels, ndarray of shape (n_labels, dim).
    moves : bool, default=True
        Whether the embeddings of the instances change from epoch to epoch.

    Examples
    --------
    Training passes it to ``refresh``. Random mini-batches need no embeddings:

    >>> import numpy as np
    >>> from sklearn_xc.embedding.samplers import InBatchSampler, Positives, TrainingState
    >>> V = np.eye(4, dtype=np.float32)
    >>> positives = Positives(np.arange(5), np.array([0, 1, 0, 1], np.int32))
    >>> embeddings = lambda: V
    >>> state = TrainingState(
    ...     4, 2, positives, embeddings, embeddings, embeddings, embeddings, lambda: V[:2]
    ... )
    >>> sampler = InBatchSampler(batch_size=2)
    >>> sampler.start(state.n, n_epochs=1, seed=0, n_jobs=1)
    >>> sampler.refresh(0, state)
    >>> sorted(np.concatenate(list(sampler.batches(0))).tolist())
    [0, 1, 2, 3]
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
        The embeddings of a `TrainingState` that ``refresh`` reads; memory is planned accordingly.
    n_negatives : int
        Number of labels that ``negatives`` returns for an instance; 0 if it always returns None.
    batch_size_ : int
        Number of instances in a mini-batch, after ``start``.

    Examples
    --------
    A sampler of your own that replaces a part of another: in the first half of the epochs, only
    the easier half of each mini-batch counts.

    >>> import numpy as np
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn_xc import NGAMEEmbeddingXC
    >>> from sklearn_xc.embedding.samplers import InBatchSampler
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

    reads: Collection[str]
    n_negatives: int
    batch_size_: int

    def start(self, n: int, n_epochs: int, seed: int, n_jobs: int | None) -> None:
        """Begin a training, forgetting earlier ones.

        Parameters
        ----------
        n, n_epochs : int
            Numbers of instances and of planned epochs.
        seed : int
            Random seed. The mini-batches of an epoch depend only on the seed, the epoch, and what
            ``refresh`` has read.
        n_jobs : int or None
            Number of threads, as joblib counts them. Results do not depend on it.
        """

    def refresh(self, epoch: int, state: TrainingState) -> None:
        """Read the embeddings again if that is due; called before each epoch.

        Parameters
        ----------
        epoch : int
            From 0.
        state : TrainingState
            The data, and the embeddings named by `reads`.
        """

    def batches(self, epoch: int) -> Iterator[np.ndarray]:
        """Yield the instances of each mini-batch, int64; called after ``refresh``.

        Each instance is in exactly one mini-batch, and none has more than ``batch_size_``.

        Parameters
        ----------
        epoch : int
            From 0.
        """

    def negatives(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the labels to contrast instances with, besides those of the mini-batch.

        Parameters
        ----------
        rows : ndarray of int64 of shape (m,)
            The instances of a mini-batch.

        Returns
        -------
        ndarray of int32 of shape (m, n_negatives), or None
            Places without a label hold -1. The labels are negatives of all instances of the
            mini-batch; repeated ones count once, and an instance's true labels not at all for it.
        """

    def select(self, losses: np.ndarray) -> np.ndarray | None:
        """Return which instances of a mini-batch count.

        Parameters
        ----------
        losses : ndarray of shape (m,)
            Their losses.

        Returns
        -------
        ndarray of bool of shape (m,), or None
            None for all.
        """

    # Of samplers in `SAMPLERS`. One that does not define both is refused with checkpoint_dir.

    def _kept(self) -> dict[str, np.ndarray]:
        """Return the arrays of a checkpoint: all that has changed since ``start``."""

    def _resume(self, found: dict[str, np.ndarray]) -> None:
        """Continue from the arrays of a checkpoint, after ``start`` with the same arguments."""
