"""The protocol of encoders."""

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

    @property
    def V(self) -> np.ndarray:  # noqa: N802
        """Embeddings, (n, dim)."""


class Encoder(Protocol):
    """Maps inputs to unit vectors, and learns from gradients with respect to them.

    The constructor only stores parameters; ``get_params``, ``set_params`` and ``clone`` work as
    for ``sklearn.base.BaseEstimator``. ``start`` makes the attributes that are learnt.

    Inputs are a ``scipy.sparse.csr_array`` of shape (n, n_features), with sorted columns in each
    row and without stored zeros; or, for an encoder with ``reads = "texts"``, an ndarray of str
    objects of shape (n,), none of them empty. Do not modify them.

    Optional methods:

    * ``parameter_shapes(n_features, dim)`` returns, before ``start``, the arrays to allocate, as
      tuples of a description, the shape, and the number of such arrays, so that a fit that lacks
      the memory can be refused. `n_features` is None for texts. ``batch_shapes(n)`` returns those
      of training on mini-batches of n inputs.
    * ``default_dim()`` returns the dimension used unless another is requested.
    * ``name_features(names)`` receives the feature names before ``start``, an ndarray of str of
      shape (n_features,), or None.
    * ``finish()`` is called when a fit has ended, and may drop what only training needs.

    Optional attributes: ``default_learning_rate`` and ``default_classifier_learning_rate``. If
    ``is_frozen`` is True, the encoder is not trained: ``forward`` and ``learn`` are not called.
    ``is_given_``, an ndarray of bool of shape (n_features,) or None after ``start``, marks features
    that are meaningful before any training. An instance that has none of these, and none of the
    features of the training instances, is answered as one without features.

    Attributes
    ----------
    reads : {"rows", "texts"}
        The kind of inputs. Optional; "rows" if missing.

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

    reads: Literal["rows", "texts"]

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
