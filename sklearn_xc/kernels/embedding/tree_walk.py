"""Values of a regression tree over scores and a frequency, with the scores."""

import numpy as np

from sklearn_xc.kernels.compiling.jit import kernel


@kernel
def add_tree_values(tree, scores, frequencies, weight, out):
    """Write the tree's value and a share of all scores, for each pair of an instance and a label.

    Features are rounded to float32 and compared with thresholds in float64, ties go to the left, as
    in scikit-learn.

    Parameters
    ----------
    tree : tuple of ndarray (feature, threshold, left, right, value)
        int32, float64, int32, int32 and float64 of shape (n_nodes,); node 0 is the root, and a node
        with a negative `left` is a leaf. Features are the scores, then the frequency.
    scores : ndarray of float of shape (n, n_scores)
    frequencies : ndarray of float32 of shape (n,)
    weight : float
        Of the sum of the scores; where that is -inf, so is what is written.
    out : ndarray of float of shape (n,)
        Written; summed in float64.
    """
    feature, threshold, left, right, value = tree
    n_scores = scores.shape[1]
    for i in range(out.shape[0]):
        node = np.uint32(0)
        while left[node] >= 0:
            f = feature[node]
            x = np.float32(scores[i, f]) if f < n_scores else frequencies[i]
            # Written so that NaN goes to the right.
            if np.float64(x) <= threshold[node]:
                node = np.uint32(left[node])
            else:
                node = np.uint32(right[node])
        total = 0.0
        for s in range(n_scores):
            total += np.float64(scores[i, s])
        # A weight of 0 would make NaN of it.
        out[i] = value[node] + weight * total if total > -np.inf else total
