"""The protocol of encoders."""

from functools import partial
from typing import Any, Literal, Protocol

import numpy as np


class ForwardPass(Protocol):
    """The result of ``forward``: embeddings, and whatever the encoder needs to learn from them.

    Attributes
    ----------
    V : ndarray of float of shape (n, dim)
        The embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.embedding.encoders import BagOfEmbeddings
    >>> inputs = csr_array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]])
    >>> encoder = BagOfEmbeddings()
    >>> encoder.start(inputs, dim=4, seed=0)
    >>> passed = encoder.forward(inputs, np.random.default_rng(0))
    >>> bool((passed.V == encoder.encode(inputs)).all())
    True
    """

    V: np.ndarray


class Encoder(Protocol):
    """Maps inputs to unit vectors, and learns from gradients with respect to them.

    The constructor only stores parameters; ``get_params``, ``set_params`` and ``clone`` work as
    for ``sklearn.base.BaseEstimator``. ``start`` makes the attributes that are learnt.

    Inputs are a ``scipy.sparse.csr_array`` of shape (n, n_features), with sorted columns in each
    row and without stored zeros; or, for an encoder with ``reads = "texts"``, an ndarray of str
    objects of shape (n,), none of them empty. Do not modify them.

    ``start``, ``encode``, ``forward`` and ``learn`` are required. The other methods, and the
    attributes, are optional: an encoder without one of them has that of this class.

    Attributes
    ----------
    reads : {"rows", "texts"}
        The kind of inputs.
    is_frozen : bool
        If True, the encoder is not trained: ``forward`` and ``learn`` are not called.
    is_given_ : ndarray of bool of shape (n_features,) or None
        After ``start``, the features that are meaningful before any training. An instance that has
        none of these, and none of the features of the training instances, is answered as one
        without features.
    default_learning_rate, default_classifier_learning_rate : float
        Rates of the encoder and of the labels' classifiers, unless others are requested.

    Examples
    --------
    An encoder of your own that does not learn: latent semantic analysis.

    >>> from sklearn.base import BaseEstimator
    >>> from sklearn.decomposition import TruncatedSVD
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn.preprocessing import normalize
    >>> from sklearn_xc import NGAMEEmbeddingXC
    >>> class LatentSemantics(BaseEstimator):
    ...     is_frozen = True
    ...
    ...     def start(self, inputs, dim, seed):
    ...         self.svd_ = TruncatedSVD(dim, random_state=seed).fit(inputs)
    ...
    ...     def encode(self, inputs, n_jobs=None):
    ...         return normalize(self.svd_.transform(inputs))
    ...
    ...     def forward(self, inputs, rng, n_jobs=None):
    ...         raise NotImplementedError
    ...
    ...     def learn(self, passed, gradient, rate, n_jobs=None):
    ...         raise NotImplementedError
    >>> texts = ["a red apple", "green apple pie", "fast red car", "the car race"] * 10
    >>> vectorizer = TfidfVectorizer().fit(texts)
    >>> clf = NGAMEEmbeddingXC(LatentSemantics(), embedding_dim=2, random_state=0)
    >>> clf = clf.fit(vectorizer.transform(texts), [0, 0, 1, 1] * 10)
    >>> clf.predict(vectorizer.transform(["an apple", "my car"])).tolist()
    [0, 1]
    """

    reads: Literal["rows", "texts"] = "rows"
    is_frozen: bool = False
    is_given_: np.ndarray | None = None
    default_learning_rate: float = 0.003
    default_classifier_learning_rate: float = 0.01

    def default_dim(self) -> int:
        """Return the dimension of the embeddings, unless another is requested.

        Returns
        -------
        int
        """
        return 256

    def parameter_shapes(
        self, n_features: int | None, dim: int
    ) -> list[tuple[str, tuple[int, ...], int]]:
        """Return the arrays that ``start`` allocates, so that a fit without room is refused.

        Parameters
        ----------
        n_features : int or None
            None for texts.
        dim : int

        Returns
        -------
        list of tuple
            A description, the shape, and the number of such arrays.
        """
        return []

    def batch_shapes(self, n: int) -> list[tuple[str, tuple[int, ...], int]]:
        """Return the arrays of training on mini-batches, in the form of ``parameter_shapes``.

        Parameters
        ----------
        n : int
            Number of inputs of a mini-batch.

        Returns
        -------
        list of tuple
        """
        return []

    def name_features(self, names: np.ndarray | None) -> None:
        """Receive the feature names; called before ``start``.

        Parameters
        ----------
        names : ndarray of str of shape (n_features,), or None
        """

    def finish(self) -> None:
        """Drop what only training needs; called when a fit has ended."""

    def start(self, inputs: Any, dim: int, seed: int) -> None:
        """Make initial parameters, forgetting what was learnt before.

        Parameters
        ----------
        inputs : csr_array of shape (n, n_features), or ndarray of str of shape (n,)
            Training instances, for their width, their dtype, and anything else that an encoder may
            want to know.
        dim : int
            Dimension of the embeddings.
        seed : int
            Seeds everything that is random.
        """

    def encode(self, inputs: Any, n_jobs: int | None = None) -> np.ndarray:
        """Return embeddings.

        Parameters
        ----------
        inputs : csr_array of shape (n, n_features), or ndarray of str of shape (n,)
        n_jobs : int or None
            Number of threads, as joblib counts them.

        Returns
        -------
        ndarray of float of shape (n, dim)
            Rows of norm 1, or of norm 0 for an input without features. The bits of each row depend
            neither on the other rows nor on the number of threads.
        """

    def forward(self, inputs: Any, rng: np.random.Generator, n_jobs: int | None = None) -> Any:
        """Return the embeddings of a mini-batch in training, as a `ForwardPass`.

        Parameters
        ----------
        inputs : csr_array of shape (n, n_features), or ndarray of str of shape (n,)
            Some instances, then some labels.
        rng : numpy.random.Generator
            Draws what is random in training, such as features that are left out.
        n_jobs : int or None
            Number of threads; it does not affect the result.

        Returns
        -------
        ForwardPass
        """

    def learn(
        self, passed: Any, gradient: np.ndarray, rate: float, n_jobs: int | None = None
    ) -> None:
        """Take a step.

        Parameters
        ----------
        passed : ForwardPass
            From ``forward`` of this encoder, with no ``learn`` since.
        gradient : ndarray of float of shape (n, dim)
            With respect to ``passed.V``.
        rate : float
            Learning rate of the step.
        n_jobs : int or None
            Number of threads; it does not affect the result.
        """

    # Of encoders in `ENCODERS`. One that does not define both is refused with checkpoint_dir.

    def _kept(self) -> dict[str, np.ndarray]:
        """Return the arrays of a checkpoint: all that has changed since ``start``."""

    def _resume(self, found: dict[str, np.ndarray]) -> None:
        """Continue from the arrays of a checkpoint, after ``start`` with the same arguments."""


def part_of(encoder: Any, name: str) -> Any:
    """Return an attribute or a method of an encoder, or that of `Encoder` if it has none."""
    if hasattr(encoder, name):
        return getattr(encoder, name)
    default = getattr(Encoder, name)
    return partial(default, encoder) if callable(default) else default
