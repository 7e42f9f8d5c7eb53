"""What an encoder is."""

from typing import Any, Literal, Protocol

import numpy as np


class ForwardPass(Protocol):
    """What ``forward`` returns: embeddings, and what else the encoder needs to learn from them.

    Attributes
    ----------
    V : ndarray of float of shape (n, dim)
        The embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.encoders import BagOfEmbeddings
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
    """Maps inputs to unit vectors, and learns from gradients by them.

    The constructor stores parameters only; ``get_params``, ``set_params`` and ``clone`` work, as
    those of ``sklearn.base.BaseEstimator`` do. What is learnt are attributes that ``start`` makes.

    Inputs are a ``scipy.sparse.csr_array`` of shape (n, n_features), in rows whose columns rise and
    without stored zeros; or, for an encoder with ``reads = "texts"``, an ndarray of str objects of
    shape (n,), none of them empty. They are not to be changed.

    A method ``parameter_shapes(n_features, dim)`` may be missing. It tells before ``start`` what
    will be made, as tuples of what it is, its shape, and how many there are: a fit that has not the
    memory for it is refused then. `n_features` is None for texts. Nor need there be a method
    ``batch_shapes(n)``, which tells the same of training on mini-batches of n inputs.

    Nor need there be a method ``name_features(names)``, which hears before ``start`` what features
    are called, an ndarray of str of shape (n_features,), or None if nobody knows; and an attribute
    ``is_given_``, an ndarray of bool of shape (n_features,) or None after ``start``: features that
    mean something before any training. An instance that has none of these, and none of the features
    of training, is answered as one without features.

    A method ``default_dim()`` returns the dimension of embeddings where nobody asks for another
    one; attributes ``default_learning_rate`` and ``default_classifier_learning_rate`` are what
    their names say; all may be missing, and are asked before ``start``. An attribute ``is_frozen``
    that is True says that the encoder is not to be trained: ``forward`` and ``learn`` are not
    called. One ``trains_together`` that is True says that the processes of a launcher share its
    training (`sklearn_xc.parallel.ranks`). A method ``finish()`` is called when a fit has ended;
    what only training needs may go.

    Attributes
    ----------
    reads : {"rows", "texts"}
        What inputs are. It may be missing, which is "rows".

    Examples
    --------
    One of your own that does not learn: latent semantic analysis.

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
        """Make initial parameters; what was learnt before is forgotten.

        Parameters
        ----------
        inputs : csr_array of shape (n, n_features), or ndarray of str of shape (n,)
            Training instances: their width and dtype count, and what else an encoder may want to
            know.
        dim : int
            Of the embeddings.
        seed : int
            Of what is random.
        """

    def encode(self, inputs: Any, n_jobs: int | None = None) -> np.ndarray:
        """Return embeddings.

        Parameters
        ----------
        inputs : csr_array of shape (n, n_features), or ndarray of str of shape (n,)
        n_jobs : int or None
            Threads, as joblib counts them.

        Returns
        -------
        ndarray of float of shape (n, dim)
            Rows of norm 1, or 0 for an input without features. The bits of each depend neither on
            the others nor on the number of threads.
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
            Threads, on which nothing depends.

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
            From ``forward`` of this encoder, which has not learnt since.
        gradient : ndarray of float of shape (n, dim)
            By ``passed.V``.
        rate : float
            Of the step.
        n_jobs : int or None
            Threads, on which nothing depends.
        """
