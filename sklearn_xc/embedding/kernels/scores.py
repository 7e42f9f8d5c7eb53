"""Scores of pairs of an instance and a label: products, cosines of features, fused scores."""

import math

import numpy as np

from sklearn_xc._compile.arithmetic.vectors import dot_of_rows
from sklearn_xc._compile.jit import kernel
from sklearn_xc._training.kernels.trees import trees_value


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
    for i in range(labels.shape[0]):
        for j in range(labels.shape[1]):
            label = labels[i, j]
            out[i, j, column] = -np.inf
            if label >= 0:
                out[i, j, column] = dot_of_rows(W, np.uint64(label), V, np.uint64(i), np.uint64(0))


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


@kernel
def add_tree_values(trees, scores, last, out):
    """Write the trees' value and the sum of all scores, for each pair of an instance and a label.

    Parameters
    ----------
    trees : tuple of ndarray
        As in `trees_value`.
    scores : ndarray of float of shape (n, n_scores)
    last : ndarray of float32 of shape (n,)
        The feature after the scores.
    out : ndarray of float of shape (n,)
        Written; summed in float64.
    """
    for i in range(out.shape[0]):
        total = 0.0
        for s in range(scores.shape[1]):
            total += np.float64(scores[i, s])
        out[i] = trees_value(0.0, trees, scores, i, last[i]) + total


@kernel
def mix_probabilities(trees, linear, mixture, scores, last, out):
    """Write the probability that boosted trees and a logistic model give each pair.

    Parameters
    ----------
    trees : tuple of ndarray
        As in `trees_value`; their values are added to a log-odds.
    linear : ndarray of float64 of shape (n_scores + 2,)
        Weights of the logistic model: of the scores, the feature after them, and 1.
    mixture : tuple of float (share, start, floor, factor)
        The trees' share of the probability, and the log-odds that they add to. Where the logistic
        model's probability is below `floor`, trees are not asked: it is multiplied by `factor`.
    scores : ndarray of float of shape (n, n_scores)
    last : ndarray of float32 of shape (n,)
        The feature after the scores.
    out : ndarray of float of shape (n,)
        Written; -inf where the sum of the scores is.
    """
    share, start, floor, factor = mixture
    n_scores = scores.shape[1]
    for i in range(out.shape[0]):
        total = 0.0
        odds = linear[n_scores + 1] + linear[n_scores] * np.float64(last[i])
        for s in range(n_scores):
            score = np.float64(scores[i, s])
            total += score
            odds += linear[s] * score
        if total == -np.inf:
            out[i] = total
            continue
        chance = 1.0 / (1.0 + math.exp(-odds))
        if chance < floor:
            out[i] = factor * chance
        else:
            if share > 0.0:
                odds = start + trees_value(0.0, trees, scores, i, last[i])
                chance = share / (1.0 + math.exp(-odds)) + (1.0 - share) * chance
            out[i] = chance
