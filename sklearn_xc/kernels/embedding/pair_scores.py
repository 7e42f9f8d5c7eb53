"""Scores of pairs of an instance and a label: cosines with both of its vectors, and of features."""

import numpy as np

from sklearn_xc.kernels.compiling.jit import kernel
from sklearn_xc.kernels.emitters.dense_dot import dense_dot


@kernel
def score_pairs(V, Z, W, instances, features, labels, words, out):
    """Write the scores of the labels listed for each instance.

    Parameters
    ----------
    V : ndarray of float of shape (n, dim)
        Embeddings of the instances.
    Z, W : ndarray of float of shape (n_labels, dim)
        Embeddings and classifiers of the labels, of the dtype of V.
    instances : tuple of ndarray (indptr, indices, data)
        Features of the instances, CSR: int64 of shape (n + 1,), int32, float.
    features : tuple of ndarray (indptr, indices, data)
        Features of all labels, CSR, in rows of norm 1. Not read if `out` has two scores a pair.
    labels : ndarray of int64 of shape (n, m)
        -1 is none.
    words : ndarray of float64 of shape (n_features,)
        0, and 0 again afterwards.
    out : ndarray of float of shape (n, m, 2 or 3)
        Overwritten: inner products of V with Z and W, and cosines of the features, 0 for an
        instance without any; -inf where there is no label.
    """
    dim = np.uint64(V.shape[1])
    x_indptr, x_indices, x_data = instances
    z_indptr, z_indices, z_data = features
    with_features = out.shape[2] > 2
    for i in range(labels.shape[0]):
        square = 0.0
        if with_features:
            for t in range(x_indptr[i], x_indptr[i + 1]):
                words[x_indices[t]] = np.float64(x_data[t])
            # In a loop of its own, as in ``sum_of``.
            for t in range(x_indptr[i], x_indptr[i + 1]):
                square += np.float64(x_data[t]) * np.float64(x_data[t])
        scale = 1.0 / np.sqrt(square) if square > 0 else 0.0
        for j in range(labels.shape[1]):
            label = labels[i, j]
            if label < 0:
                for s in range(out.shape[2]):
                    out[i, j, s] = -np.inf
                continue
            first, row = np.uint64(i) * dim, np.uint64(label) * dim
            out[i, j, 0] = dense_dot(Z, row, V, first, dim)
            out[i, j, 1] = dense_dot(W, row, V, first, dim)
            if with_features:
                total = 0.0
                for t in range(z_indptr[label], z_indptr[label + 1]):
                    total += words[z_indices[t]] * np.float64(z_data[t])
                out[i, j, 2] = total * scale
        if with_features:
            for t in range(x_indptr[i], x_indptr[i + 1]):
                words[x_indices[t]] = 0.0
