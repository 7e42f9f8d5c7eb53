"""Expected calibration error of the probabilities of pairs of an instance and a label."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.arguments import check_count
from sklearn_xc.metrics.check import (
    TrueLabels,
    as_array,
    check_k_of_csr,
    check_sample_weight,
    check_sparse_scores,
    check_topk,
    check_y_true,
)
from sklearn_xc.metrics.hits import is_true

_STRATEGIES = ("quantile", "uniform")


def expected_calibration_error(
    Y_true: Any,
    Y_prob: Any,
    *,
    k: int | None = None,
    n_bins: int = 15,
    strategy: str = "quantile",
    sample_weight: Any = None,
    classes: Any = None,
) -> float:
    r"""Return the expected calibration error: how much probabilities differ from frequencies.

    The scored pairs are binned by their probability. In each bin, the mean probability is compared
    with the share of pairs that are true; the result is the mean absolute difference, with each
    bin weighted by its number of pairs. Smaller is better.

    Parameters
    ----------
    Y_true : {sparse matrix, array-like} of shape (n_samples, n_labels) or (n_samples,)
        Indicator, or one class per row, as in :func:`precision_at_k`.
    Y_prob : {sparse matrix, array-like} of shape (n_samples, n_labels), or tuple
        Probabilities in [0, 1] as returned by ``predict_proba``, or ``(indices, probabilities)``
        as returned by ``predict_proba_topk``, each of shape (n_samples, >= k), padded with -1 in
        `indices` and ranked in the given order: probabilities may rise along a row. A pair that is
        not stored was not scored and is left out, even if it is true. A stored zero counts.
    k : int, default=None
        How many of the best labels of each row to take: 1 tests whether the first label is right
        as often as the model says. None takes all that have a score.
    n_bins : int, default=15
        Number of bins, up to a million.
    strategy : {"quantile", "uniform"}, default="quantile"
        "quantile" makes bins with equally many pairs (equal probabilities stay together),
        "uniform" bins of equal width.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, for each of their pairs.
    classes : array-like of shape (n_labels,), default=None
        ``classes_`` of the classifier, if `Y_true` holds class labels.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError
        If an argument is invalid; the message names it and says what was expected.
    TypeError
        For a masked array.

    Notes
    -----
    .. math:: ECE = \sum_b \frac{n_b}{n} \, | \bar y_b - \bar p_b |

    Source: [1]_ for bins of equal width; [2]_ for bins with equally many pairs, the default, since
    most probabilities are tiny and would share one bin. The bins are those of
    :func:`sklearn.calibration.calibration_curve`, except that an edge between two probabilities is
    the smaller of them. Chance alone makes the error positive, even for a calibrated model: about
    :math:`\sqrt{2 v n_{bins} / (\pi n)}` with v the mean of p (1 - p).

    References
    ----------
    .. [1] Naeini, Cooper and Hauskrecht, "Obtaining Well Calibrated Probabilities Using Bayesian
       Binning", AAAI 2015.
    .. [2] Nguyen and O'Connor, "Posterior Calibration and Exploratory Analysis for Natural Language
       Processing Models", EMNLP 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_xc.metrics import expected_calibration_error
    >>> y = np.array([0, 0, 1, 1])
    >>> first = np.array([[0], [0], [0], [1]])
    >>> probability = np.array([[0.6], [0.6], [0.6], [0.9]])
    >>> round(expected_calibration_error(y, (first, probability), n_bins=2), 3)
    0.075
    """
    pairs = find_pairs(Y_true, Y_prob, k, sample_weight, classes)
    mass, probable, observed = bin_pairs(*pairs, n_bins, strategy)
    return float(np.abs(observed - probable).sum() / mass.sum())


def bin_pairs(
    probability: np.ndarray, is_true: np.ndarray, weight: np.ndarray, n_bins: Any, strategy: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sums of weight, probability and truth of the pairs in each bin with weight."""
    if not isinstance(strategy, str) or strategy not in _STRATEGIES:
        raise ValueError(f"strategy: expected one of {list(_STRATEGIES)}. Got {strategy!r}.")
    n_bins = check_count(n_bins, "n_bins", most=1_000_000)
    # The largest probability of each bin but the last.
    if strategy == "quantile":
        order = np.argsort(probability)
        mass = np.cumsum(weight[order])
        wanted = mass[-1] * np.arange(1, n_bins) / n_bins
        edges = probability[order[np.searchsorted(mass, wanted)]]
    else:
        edges = np.linspace(0, 1, n_bins + 1)[1:-1]
    at = np.searchsorted(edges, probability)
    terms = (weight, weight * probability, weight * is_true)
    sums = np.array([np.bincount(at, term) for term in terms])
    mass, probable, observed = sums[:, sums[0] > 0]
    return mass, probable, observed


def find_pairs(
    Y_true: Any, Y_prob: Any, k: Any, sample_weight: Any, classes: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return probability, truth and weight of the scored pairs, of the k best or of all.

    Raises
    ------
    ValueError
        For numbers outside [0, 1], and if there is no pair.
    """
    k = None if k is None else check_count(k, "k")
    true = check_y_true(Y_true, classes)
    if isinstance(Y_prob, tuple):
        rows, labels, probability = _pairs_of_arrays(Y_prob, k, true)
    else:
        rows, labels, probability = _pairs_of_matrix(Y_prob, k, true)
    wrong = ~((probability >= 0) & (probability <= 1))
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(
            f"Y_prob: expected probabilities, in [0, 1]. Got {probability[at]} for label "
            f"{labels[at]} of row {rows[at]}; scores become probabilities in predict_proba."
        )
    weight = check_sample_weight(sample_weight, len(true.counts))
    of_pairs = np.ones(len(rows)) if weight is None else weight[rows]
    if not of_pairs.any():
        raise ValueError(
            "Y_prob: expected a probability for at least one pair (of a weight above 0). Got none."
        )
    return probability, is_true(true, rows, labels), of_pairs


def _pairs_of_arrays(
    Y_prob: tuple, k: int | None, true: TrueLabels
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, labels and probabilities of ``(indices, probabilities)``."""
    parts = [as_array(one, "Y_prob", "rows of one length") for one in Y_prob]
    if len(parts) != 2 or parts[0].ndim != 2 or parts[0].shape != parts[1].shape:
        raise ValueError(
            "Y_prob: a tuple must be (indices, probabilities) of one shape, as predict_proba_topk "
            f"gives. Got {len(parts)} entries of shapes {[part.shape for part in parts]}."
        )
    k = parts[0].shape[1] if k is None else k
    positions = check_topk(parts[0], k, true, "Y_prob")
    kept = positions >= 0
    return np.nonzero(kept)[0], positions[kept], parts[1][:, :k][kept].astype(np.float64)


def _pairs_of_matrix(
    Y_prob: Any, k: int | None, true: TrueLabels
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the same of the stored entries of a sparse matrix, or of all of a dense one."""
    if not sp.issparse(Y_prob):
        dense = as_array(Y_prob, "Y_prob", "a matrix of probabilities")
        if dense.ndim != 2 or dense.dtype.kind != "f":
            raise ValueError(
                "Y_prob: expected a matrix of probabilities, sparse or dense, of shape (n_samples, "
                f"n_labels), or a tuple (indices, probabilities). Got dtype {dense.dtype} and "
                f"shape {dense.shape}."
            )
        n, n_labels = dense.shape
        stored = (dense.ravel(), np.tile(np.arange(n_labels), n), np.arange(n + 1) * n_labels)
        Y_prob = sp.csr_array(stored, dense.shape)
    scores = check_sparse_scores(Y_prob, true, "Y_prob")
    rows = np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))
    labels = scores.indices.astype(np.int64)
    probability = scores.data.astype(np.float64)
    if k is None:
        return rows, labels, probability
    check_k_of_csr(k, scores, "Y_prob")
    order = np.lexsort((-probability, rows))  # stable: rows are in order, and so are their labels
    best = order[np.arange(len(rows)) - scores.indptr[rows] < k]
    return rows[best], labels[best], probability[best]
