"""The true labels of an instance, kept apart from those it is set against."""

import numpy as np

from sklearn_xc.kernels.compiling.jit import inlined


@inlined
def is_positive(label, positives, first, last):
    """Tell whether a label is one of ``positives[first:last]``, a few that need not be sorted."""
    found = False
    for t in range(first, last):
        found |= positives[t] == label
    return found


@inlined
def hide_positives(scores, positives, first, last):
    """Set the scores, (n_labels,), of ``positives[first:last]`` to -inf."""
    for t in range(first, last):
        scores[positives[t]] = -np.inf
