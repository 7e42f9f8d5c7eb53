"""Scores of listed pairs of an instance and a label: inner products, and cosines of features."""

import numpy as np

from sklearn_xc._compile.emitters.dense_dot import dense_dot
from sklearn_xc._compile.jit import kernel


@kernel
def score_vectors(V, W, labels, column, out):
    """Write the inner products of instances with the labels listed for each.

    Parameters
    ----------
    V : ndarray of float of shape (n, dim)
        Embeddings of the instances.
    W : ndarray of float of shape (n_labels, dim)
        Vectors of the labels, of the dtype of V.
    labels : ndarray of int64 of shape (n, m)
        -1 is none.
    column : int
    out : ndarray of float of shape (n, m, n_scores)
        The column is overwritten; -inf where there is no label.
    """
    dim = np.uint64(V.shape[1])
    for i in range(labels.shape[0]):
        for j in range(labels.shape[1]):
            label = labels[i, j]
            out[i, j, column] = -np.inf
            if label >= 0:
                out[i, j, column] = dense_dot(W, np.uint64(label) * dim, V, np.uint64(i) * dim, dim)


@kernel
def score_features(instances, features, labels, values, column, out):
    """Write the cosines of the features of instances and of the labels listed for each.

    Parameters
    ----------
    instances, features : tuple of ndarray (indptr, indices, data)
        CSR of the instances, and of all labels, in rows of norm 1: int64, int32, float.
    labels : ndarray of int64 of shape (n, m)
        -1 is none.
    values : ndarray of float64 of shape (n_features,)
        Work space: 0, and 0 again afterwards.
    column : int
    out : ndarray of float of shape (n, m, n_scores)
        The column is overwritten: 0 for an instance without features, -inf where there is no label.
    """
    x_indptr, x_indices, x_data = instances
    z_indptr, z_indices, z_data = features
    for i in range(labels.shape[0]):
        for t in range(x_indptr[i], x_indptr[i + 1]):
            values[x_indices[t]] = np.float64(x_data[t])
        square = 0.0  # in a loop of its own, as in ``sum_of``
        for t in range(x_indptr[i], x_indptr[i + 1]):
            square += np.float64(x_data[t]) * np.float64(x_data[t])
        scale = 1.0 / np.sqrt(square) if square > 0 else 0.0
        for j in range(labels.shape[1]):
            label = labels[i, j]
            if label < 0:
                out[i, j, column] = -np.inf
                continue
            total = 0.0
            for t in range(z_indptr[label], z_indptr[label + 1]):
                total += values[z_indices[t]] * np.float64(z_data[t])
            out[i, j, column] = total * scale
        for t in range(x_indptr[i], x_indptr[i + 1]):
            values[x_indices[t]] = 0.0
