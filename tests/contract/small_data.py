"""Small problems that the contract is tried on, each made anew."""

import numpy as np
import scipy.sparse as sp


def made(n_labels=5, seed=0):
    """Return an ordinary problem: every row and label has a positive, every label a negative.

    Parameters
    ----------
    n_labels : int, default=5
    seed : int, default=0

    Returns
    -------
    X : csr_array of float64 of shape (60, 15)
        Not negative.
    Y : csr_array of float64 of shape (60, n_labels)
    """
    rng = np.random.default_rng(seed)
    X = sp.random_array((60, 15), density=0.3, random_state=rng, format="csr")
    Y = sp.random_array((60, n_labels), density=0.2, random_state=rng, format="csr")
    Y.data[:] = 1
    Y = Y.tolil()
    Y[np.arange(60), np.arange(60) % n_labels] = 1
    return X, Y.tocsr()


def awkward(dtype=np.float64):
    """Return a problem of the shapes of `made` with unpleasant rows and columns.

    Row 3 has no feature and rows 7 and 8 are equal, as are their labels; row 5 has no label; label
    4 is on almost all rows, and labels 0 and 2 are on the same ones. Values are of both signs.

    Parameters
    ----------
    dtype : dtype, default=float64
        Of X.

    Returns
    -------
    X : csr_array of `dtype` of shape (60, 15)
    Y : csr_array of float64 of shape (60, 5)
    """
    X, Y = (part.toarray() for part in made(5, 3))
    X = np.where(X != 0, X - 0.4, 0)
    X[3], Y[:, 4] = 0, 1
    Y[:, 2] = Y[:, 0]
    Y[5] = 0
    X[8], Y[8] = X[7], Y[7]
    return sp.csr_array(X.astype(dtype)), sp.csr_array(Y)


def easy(n_classes=4):
    """Return a problem of classes that features 0, 1, ... tell.

    Parameters
    ----------
    n_classes : int, default=4

    Returns
    -------
    X : csr_array of float64 of shape (60, 15)
        Not negative.
    places : ndarray of int of shape (60,)
        The classes, 0, 1, ... in turn.
    """
    X, _ = made(5, 1)
    places = np.arange(60) % n_classes
    X = X.toarray() * 0.3
    X[:, :n_classes] = np.eye(n_classes)[places] * 2
    return sp.csr_array(X), places


def rows_of_labels(n_labels=5, n_features=15):
    """Return features of labels, of which one has none."""
    rng = np.random.default_rng(7)
    Z = sp.random_array((n_labels, n_features), density=0.4, random_state=rng, format="lil")
    Z[1] = 0
    return Z.tocsr()
