"""How far instances that come later can have moved the optimum of a label.

The objective F of a label is 1-strongly convex where the ridge covers all weights, so that the
distance of any w from the optimum w* has the bound ``|w - w*|^2 <= 2 (F(w) - F(w*))``. Further
instances add a loss h, which is never negative, to F: the minimum does not fall, and F(w) rises by
h(w). So the bound after them is ``sqrt(b^2 + 2 h(w))``, where b was the bound before, whatever w
is: also for weights that were pruned, and for any number of calls.

The norm of the gradient bounds the distance too, ``|w - w*| <= |grad F(w)| + |grad h(w)|``. For the
squared hinge, with rows x of norm 1 without negative entries and an intercept, ``|grad h|^2`` is at
least the sum of ``(2 C m)^2 |(x, 1)|^2`` over margins m, which is 8 C h: from C = 1/4 on that bound
is never the smaller one, and it takes more to find.
"""

import numpy as np
import scipy.sparse as sp

from sklearn_xc._data import CsrRows, DenseRows, read_only
from sklearn_xc.kernels.one_vs_all.negative_losses import negative_losses_kernel
from sklearn_xc.losses.margin import CompiledLoss
from sklearn_xc.parallel.row_ranges import for_row_ranges
from sklearn_xc.weights.label_weights import LabelWeights

#: Labels that a thread takes at a time.
_TOGETHER = 1024


def losses_as_negatives(
    rows: CsrRows | DenseRows, weight: np.ndarray, weights: LabelWeights, costs: np.ndarray,
    labels: np.ndarray, loss: CompiledLoss, n_jobs: int | None,
) -> np.ndarray:  # fmt: skip
    """Return the loss that instances have as negatives of labels, float64 (m,).

    Parameters
    ----------
    rows : CsrRows or DenseRows of shape (n, d)
    weight : ndarray of float64 of shape (n,)
        Weights of the instances.
    weights : LabelWeights
        Of all labels.
    costs : ndarray of float64 of shape (n_labels,)
        Weights of the loss of a negative of weight 1.
    labels : ndarray of int64 of shape (m,)
        Of which none has a positive among the instances.
    loss : CompiledLoss
    n_jobs : int or None
        Threads. No number depends on them.
    """
    found, coef = np.empty(len(labels)), weights.coef
    by_feature = _by_feature(rows.to_csr())
    add_up = negative_losses_kernel(loss)
    of_labels = tuple(map(read_only, (coef.indptr.astype(np.int64), coef.indices, coef.data)))
    intercept, costs = weights.intercept.astype(np.float64), np.asarray(costs, np.float64)
    weight, n = np.asarray(weight, np.float64), rows.shape[0]

    def work(first: int, last: int) -> None:
        add_up(
            by_feature, read_only(weight), float(weight.sum()), of_labels, read_only(intercept),
            read_only(costs), read_only(labels[first:last]), np.zeros(n),
            np.empty(n + 1, np.int32), np.zeros(n, np.bool_),
            found[first:last],
        )  # fmt: skip

    for_row_ranges(work, len(labels), _TOGETHER, n_jobs)
    return found


def _by_feature(rows: CsrRows) -> tuple[np.ndarray, ...]:
    columns = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape).tocsc()
    arrays = columns.indptr.astype(np.int64), columns.indices.astype(np.int32), columns.data
    return tuple(map(read_only, arrays))
