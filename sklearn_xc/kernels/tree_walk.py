"""Values of a regression tree over three features, with the scores that are two of them."""

import numpy as np

from sklearn_xc.kernels._jit import kernel


@kernel
def add_tree_values(tree, embedding_scores, classifier_scores, frequencies, weight, out):
    """Write the tree's value and a share of both scores, for each pair of an instance and a label.

    Features are rounded to float32 and compared with thresholds in float64, ties go to the left, as
    in scikit-learn.

    Parameters
    ----------
    tree : tuple of ndarray (feature, threshold, left, right, value)
        int32, float64, int32, int32 and float64 of shape (n_nodes,); node 0 is the root, and a node
        with a negative `left` is a leaf. Features 0, 1 and 2 are the next three arrays.
    embedding_scores, classifier_scores : ndarray of float of shape (n,)
    frequencies : ndarray of float32 of shape (n,)
    weight : float
        Of the sum of both scores.
    out : ndarray of float of shape (n,)
        Written; summed in float64.
    """
    feature, threshold, left, right, value = tree
    for i in range(out.shape[0]):
        embedding, classifier = embedding_scores[i], classifier_scores[i]
        node = np.uint32(0)
        while left[node] >= 0:
            f = feature[node]
            if f == 0:
                x = np.float32(embedding)
            elif f == 1:
                x = np.float32(classifier)
            else:
                x = frequencies[i]
            # Written so that NaN goes to the right.
            if np.float64(x) <= threshold[node]:
                node = np.uint32(left[node])
            else:
                node = np.uint32(right[node])
        out[i] = value[node] + weight * (np.float64(embedding) + np.float64(classifier))
