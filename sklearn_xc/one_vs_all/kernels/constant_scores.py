"""The scores of a model without features: the best constant for each label."""

import functools
from typing import Any

from sklearn_xc._compile.jit import kernel

#: No score that minimises ridge and loss is as large: the logistic loss of a weight of 1e308 is
#: flat enough at 700.
_BOUND = 1024.0


@functools.cache
def constant_scores_kernel(loss: Any) -> Any:
    """Return ``constant_scores`` for a ``CompiledLoss``."""
    slope = loss.slope

    @kernel
    def constant_scores(positive, negative, out):
        """Write the constant score m of each label that minimises its regularised loss.

        It is the minimum of ``0.5 m**2 + positive * phi(m) + negative * phi(-m)``, found by
        bisection of the slope; with equal factors it rises with the label's share of positives.

        Parameters
        ----------
        positive, negative : ndarray of float64 of shape (n_labels,)
            Summed weights of the loss of positives and of negatives.
        out : ndarray of float64 of shape (n_labels,)
            Overwritten.
        """
        for label in range(out.shape[0]):
            low, high = -_BOUND, _BOUND
            middle = 0.0
            while low < middle < high:
                rise = middle + positive[label] * slope(middle) - negative[label] * slope(-middle)
                if rise == 0.0:
                    break
                if rise > 0.0:
                    high = middle
                else:
                    low = middle
                middle = 0.5 * (low + high)
            out[label] = middle

    return constant_scores
