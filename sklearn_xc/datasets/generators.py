"""Synthetic data with the shape of extreme classification: many labels, most of them rare."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import Bunch, check_random_state

__all__ = ["make_xc_classification"]

_BLOCK_DRAWS = 4_000_000  # per block of rows; bounds the memory, and is part of the result
_MAX_ROUNDS = 25
_ZIPF_SHIFT = 2.7  # Mandelbrot's offset: the most frequent words are less far apart than 1 / rank


def make_xc_classification(
    n_samples: int = 1000,
    n_features: int = 5000,
    n_labels: int = 1000,
    *,
    nnz_per_row: float = 50,
    labels_per_row: float = 3.0,
    label_exponent: float = 0.9,
    feature_exponent: float = 1.0,
    n_signature_features: int = 8,
    signature_share: float = 0.2,
    missing_rate: float = 0.0,
    dtype: Any = np.float32,
    random_state: Any = None,
    return_X_y: bool = True,
) -> tuple[Any, Any] | Bunch:
    """Make sparse features and labels with the long tails of extreme classification.

    Every row is a small document. Its labels are drawn from a power law. A share of its words
    comes from the signature features of its labels, so that labels can be predicted by a linear
    model; the other words are drawn from a Zipf law and carry no information. Words become
    tf-idf weights of unit norm. Which label and which feature is frequent is random, not in the
    order of the columns.

    Parameters
    ----------
    n_samples, n_features, n_labels : int, default=1000, 5000, 1000
        Shape of the data, each at least 1.
    nnz_per_row : float, default=50
        Mean number of non-zero features per row, from 1 to `n_features`. The number of a row is
        Poisson-distributed around it, at least 1.
    labels_per_row : float, default=3.0
        Mean number of labels per row before `missing_rate`, from 1 to `n_labels`; one label plus a
        Poisson number.
    label_exponent : float, default=0.9
        The label of rank r, from 1, is drawn with a probability proportional to
        ``r ** -label_exponent``. 0 makes all labels equally frequent.
    feature_exponent : float, default=1.0
        The same for features that carry no information, for ``r + 2.7`` instead of r.
    n_signature_features : int, default=8
        Number of signature features per label, drawn uniformly from all features.
    signature_share : float, default=0.2
        Probability that a word comes from a signature, from 0 (labels cannot be predicted) to 1.
    missing_rate : float, default=0.0
        Probability with which each label of a row but one is left out of `Y`, from 0 to 1, as
        annotators do. The features still show it.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Type of the features.
    random_state : int, RandomState instance or None, default=None
        Seed of the data. The same int gives the same bytes.
    return_X_y : bool, default=True
        If False, return a Bunch that also tells how the data were made.

    Returns
    -------
    X : csr_array of shape (n_samples, n_features) and type `dtype`
        Features, sorted within each row, rows of Euclidean norm 1.
    Y : csr_array of shape (n_samples, n_labels) and type int8
        Labels, at least one per row. Some labels may have no row.
    data : Bunch
        Only if `return_X_y` is False: ``X``, ``Y``, ``label_probabilities`` (float64 array of
        shape (n_labels,)) and ``signatures`` (int32 array of shape (n_labels,
        n_signature_features), the signature features of each label).

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names both.

    Notes
    -----
    A row whose number of features or labels comes near `n_features` or `n_labels` may get a few
    less, because the same ones are drawn again and again. Time and memory grow with the number of
    words; 100,000 rows of 50 words, 100,000 features and 1,000,000 labels take some seconds and
    less than 1 GiB.

    Examples
    --------
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> X, Y = make_xc_classification(n_samples=200, n_labels=5000, random_state=0)
    >>> X.shape, Y.shape
    ((200, 5000), (200, 5000))
    >>> frequencies = Y.sum(axis=0)
    >>> int((frequencies == 0).sum()) > 4000
    True
    """
    number: Any
    for name, number in (
        ("n_samples", n_samples),
        ("n_features", n_features),
        ("n_labels", n_labels),
        ("n_signature_features", n_signature_features),
    ):
        if not isinstance(number, (int, np.integer)) or number < 1:
            raise ValueError(
                f"make_xc_classification: {name} must be a whole number of at least 1, got "
                f"{number!r}."
            )
    for name, number, low, high in (
        ("nnz_per_row", nnz_per_row, 1, n_features),
        ("labels_per_row", labels_per_row, 1, n_labels),
        ("label_exponent", label_exponent, 0, 10),
        ("feature_exponent", feature_exponent, 0, 10),
        ("signature_share", signature_share, 0, 1),
        ("missing_rate", missing_rate, 0, 1),
    ):
        if not isinstance(number, (int, float, np.number)) or not low <= number <= high:
            raise ValueError(
                f"make_xc_classification: {name} must be a number from {low} to {high}, got "
                f"{number!r}."
            )
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"make_xc_classification: dtype must be float32 or float64, got {dtype}.")
    rng = check_random_state(random_state)

    # 1. The two laws, and what the labels look like.
    label_ids = rng.permutation(n_labels)
    label_cdf = _cumulative_power_law(n_labels, label_exponent, 0.0)
    feature_ids = rng.permutation(n_features)
    feature_cdf = _cumulative_power_law(n_features, feature_exponent, _ZIPF_SHIFT)
    signatures = rng.randint(n_features, size=(n_labels, n_signature_features), dtype=np.int32)

    # 2. How many labels and features each row has.
    n_row_labels = np.minimum(1 + rng.poisson(labels_per_row - 1, n_samples), n_labels)
    n_row_features = np.clip(rng.poisson(nnz_per_row, n_samples), 1, n_features)

    # 3. The rows, block by block.
    def draw_label(rows: Any) -> Any:
        return label_ids[_draw(rng, label_cdf, len(rows))]

    def draw_feature(rows: Any) -> Any:
        return feature_ids[_draw(rng, feature_cdf, len(rows))]

    parts: list[tuple[Any, ...]] = []
    for first, last in _row_blocks(n_row_features + n_row_labels):
        label_keys, _ = _draw_distinct(n_row_labels[first:last], n_labels, draw_label, draw_label)
        label_rows, labels = np.divmod(label_keys, n_labels)
        label_start = np.searchsorted(label_rows, np.arange(last - first))
        n_found = np.bincount(label_rows, minlength=last - first)

        def draw_word(rows: Any) -> Any:
            words = draw_feature(rows)
            signed = np.flatnonzero(rng.random_sample(len(rows)) < signature_share)
            which = label_start[rows[signed]] + _pick(rng, n_found[rows[signed]])  # noqa: B023
            column = rng.randint(n_signature_features, size=len(signed))
            words[signed] = signatures[labels[which], column]  # noqa: B023
            return words

        feature_keys, counts = _draw_distinct(
            n_row_features[first:last], n_features, draw_word, draw_feature
        )
        keep = rng.random_sample(len(labels)) >= missing_rate
        keep[label_start + _pick(rng, n_found)] = True
        rows, features = np.divmod(feature_keys, n_features)
        parts.append(
            (
                np.bincount(rows, minlength=last - first),
                features.astype(np.int32),
                counts.astype(np.int32),
                np.bincount(label_rows[keep], minlength=last - first),
                labels[keep].astype(np.int32),
            )
        )
    row_nnz, features, counts, row_labels, labels = map(np.concatenate, zip(*parts, strict=True))
    del parts

    # 4. Counts to tf-idf of unit norm.
    indptr = _to_indptr(row_nnz)
    document_frequency = np.bincount(features, minlength=n_features)
    idf = np.log((1 + n_samples) / (1 + document_frequency)) + 1
    values = (1 + np.log(counts)) * idf[features]
    values /= np.repeat(np.sqrt(np.add.reduceat(values * values, indptr[:-1])), row_nnz)
    X = csr_array((values.astype(dtype), features, indptr), shape=(n_samples, n_features))
    Y = csr_array(
        (np.ones(len(labels), dtype=np.int8), labels, _to_indptr(row_labels)),
        shape=(n_samples, n_labels),
    )
    if return_X_y:
        return X, Y
    probabilities = np.empty(n_labels)
    probabilities[label_ids] = np.diff(label_cdf, prepend=0.0)
    return Bunch(X=X, Y=Y, label_probabilities=probabilities, signatures=signatures)


def _cumulative_power_law(n: int, exponent: float, shift: float) -> Any:
    cdf = np.cumsum((np.arange(1, n + 1) + shift) ** -float(exponent))
    return cdf / cdf[-1]


def _draw(rng: Any, cdf: Any, n: int) -> Any:
    """Draw `n` ranks. The last entry of `cdf` is 1 and the uniform numbers are below it."""
    return np.searchsorted(cdf, rng.random_sample(n), side="right")


def _pick(rng: Any, sizes: Any) -> Any:
    """Draw one whole number below each of `sizes`."""
    return np.minimum((rng.random_sample(len(sizes)) * sizes).astype(np.int64), sizes - 1)


def _row_blocks(draws: Any) -> Any:
    ends = np.cumsum(draws)
    first = 0
    while first < len(draws):
        done = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + _BLOCK_DRAWS)))
        yield first, last
        first = last


def _draw_distinct(targets: Any, n_columns: int, draw_first: Any, draw_more: Any) -> Any:
    """Draw columns until row ``i`` has ``targets[i]`` different ones.

    Returns
    -------
    keys : ndarray of int64
        ``row * n_columns + column``, sorted, each once.
    counts : ndarray of int64
        How often each was drawn.
    """
    rows = np.repeat(np.arange(len(targets)), targets)
    keys, counts = np.unique(rows * n_columns + draw_first(rows), return_counts=True)
    for _ in range(_MAX_ROUNDS):
        missing = targets - np.bincount(keys // n_columns, minlength=len(targets))
        rows = np.repeat(np.arange(len(targets)), missing)
        if not len(rows):
            break
        new, new_counts = np.unique(rows * n_columns + draw_more(rows), return_counts=True)
        where = np.searchsorted(keys, new)
        known = keys[np.minimum(where, len(keys) - 1)] == new
        counts[where[known]] += new_counts[known]
        keys = np.insert(keys, where[~known], new[~known])
        counts = np.insert(counts, where[~known], new_counts[~known])
    return keys, counts


def _to_indptr(sizes: Any) -> Any:
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    return indptr.astype(np.int32) if indptr[-1] < 2**31 else indptr
