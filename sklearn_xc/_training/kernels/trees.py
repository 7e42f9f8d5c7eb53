"""Sums of regression trees over features that may be missing."""

import numpy as np

from sklearn_xc._compile.jit import kernel


@kernel
def trees_value(start, trees, features, i, last):
    """Return the sum of all trees' values for a row, in the order of scikit-learn's.

    Features are rounded to float32 and compared with thresholds in float64, ties go to the left, as
    in scikit-learn.

    Parameters
    ----------
    start : float
        What they are added to.
    trees : tuple of ndarray (root, feature, threshold, left, right, value, missing_left)
        int32 of shape (n_trees,); int32, float64, int32, int32, float64 and bool of shape
        (n_nodes,). A node with a negative `left` is a leaf.
    features : ndarray of float of shape (n, n_features)
        NaN where one is missing.
    i : int
        Which row of them.
    last : float32
        The feature after these.
    """
    root, feature, threshold, left, right, value, missing_left = trees
    n_features = features.shape[1]
    total = start
    for t in range(root.shape[0]):
        node = np.uint32(root[t])
        while left[node] >= 0:
            f = feature[node]
            x = np.float64(np.float32(features[i, f]) if f < n_features else last)
            goes_left = missing_left[node] if x != x else x <= threshold[node]
            node = np.uint32(left[node] if goes_left else right[node])
        total += value[node]
    return total


@kernel
def sum_trees(start, trees, features, out):
    """Write the sum of all trees' values for each row.

    Parameters
    ----------
    start, trees, features
        As in `trees_value`.
    out : ndarray of float64 of shape (n,)
        Overwritten.
    """
    for i in range(out.shape[0]):
        out[i] = trees_value(start, trees, features, i, np.float32(0.0))
