"""Sums of boosted trees over features that may be missing."""

import numpy as np

from sklearn_xc._compile.jit import kernel


@kernel
def sum_trees(start, trees, features, out):
    """Write the sum of all trees' values for each row, in the order of scikit-learn's.

    Parameters
    ----------
    start : float
        What they are added to.
    trees : tuple of ndarray (root, feature, threshold, left, right, value, missing_left)
        int32 of shape (n_trees,); int32, float64, int32, int32, float64 and bool of shape
        (n_nodes,). Features of at most the threshold go to the left; a node with a negative `left`
        is a leaf.
    features : ndarray of float of shape (n, n_features)
        NaN where one is missing.
    out : ndarray of float64 of shape (n,)
        Overwritten.
    """
    root, feature, threshold, left, right, value, missing_left = trees
    for i in range(out.shape[0]):
        total = start
        for t in range(root.shape[0]):
            node = np.uint32(root[t])
            while left[node] >= 0:
                x = np.float64(features[i, feature[node]])
                goes_left = missing_left[node] if x != x else x <= threshold[node]
                node = np.uint32(left[node] if goes_left else right[node])
            total += value[node]
        out[i] = total
