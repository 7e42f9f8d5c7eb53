"""Synthetic data with the shape of extreme classification: long tails, or class hierarchies."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import Bunch, check_random_state

from sklearn_xc._input.arguments import check_count, is_number
from sklearn_xc._parallel.memory import require_bytes
from sklearn_xc._parallel.threads import cut_rows
from sklearn_xc.datasets.xmc import MAX_SIZE, check_float_dtype

_BLOCK_DRAWS = 4_000_000  # blocks of rows have fewer; bounds the memory, and is part of the result
_MAX_ROUNDS = 25
_LABEL_EXPONENT = 0.9  # the label of rank r is drawn with a probability ~ r ** -0.9
_SIGNATURE = 8  # signature features of each label
_PROBES = 1000  # instances that set the noise of hierarchical classes
_CHUNK_CLASSES = 8192  # scored at a time
_CHUNK_ROWS = 65_536  # made at a time
_ZIPF_SHIFT = 2.7  # Mandelbrot's offset: the most frequent words are less far apart than 1 / rank


def make_xc_classification(
    n_samples: int = 1000,
    n_features: int = 5000,
    n_labels: int = 1000,
    *,
    nnz_per_row: float = 50,
    labels_per_row: float = 3.0,
    signature_share: float = 0.2,
    missing_rate: float = 0.0,
    dtype: Any = np.float32,
    random_state: Any = None,
    return_X_y: bool = True,
) -> tuple[Any, Any] | Bunch:
    """Make sparse features and labels with the long tails of extreme classification.

    Every row is a small document. Its labels are drawn from a power law. A share of its words
    comes from the signature features of its labels, so that a linear model can predict the labels;
    the other words are drawn from a Zipf law and carry no information. Words become tf-idf
    weights, with rows of unit norm. Which labels and features are frequent is random and does not
    follow the order of the columns.

    Parameters
    ----------
    n_samples, n_features, n_labels : int, default=1000, 5000, 1000
        Shape of the data, each at least 1.
    nnz_per_row : float, default=50
        Mean number of non-zero features per row, from 1 to `n_features`. The number in a row is
        Poisson-distributed around it, at least 1.
    labels_per_row : float, default=3.0
        Mean number of labels per row before `missing_rate`, from 1 to `n_labels`; a row has one
        label plus a Poisson number.
    signature_share : float, default=0.2
        Probability that a word comes from a signature, from 0 (labels cannot be predicted) to 1.
    missing_rate : float, default=0.0
        Probability, from 0 to 1, with which each label of a row but one is left out of `Y`, as
        annotators do. The features still reflect it.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Type of the features.
    random_state : int, RandomState instance or None, default=None
        Seed of the data. The same int gives the same bytes.
    return_X_y : bool, default=True
        If False, return a Bunch that also describes how the data were made.

    Returns
    -------
    X : csr_array of shape (n_samples, n_features) and type `dtype`
        Features, sorted within each row, rows of Euclidean norm 1.
    Y : csr_array of shape (n_samples, n_labels) and type int8
        Labels, at least one per row. Some labels may have no row.
    data : Bunch
        Only if `return_X_y` is False: ``X``, ``Y``, ``label_probabilities`` (float64 array of
        shape (n_labels,)) and ``signatures`` (int32 array of shape (n_labels,
        8), the signature features of each label).

    Raises
    ------
    ValueError
        If a parameter is out of range; the message names the parameter and the range.
    MemoryBudgetError
        If the data do not fit into memory; raised before anything is allocated.

    Notes
    -----
    A row whose number of features or labels is close to `n_features` or `n_labels` may get a few
    less, because the same ones are drawn repeatedly. Time and memory grow with the number of
    words; 100,000 rows of 50 words, with 100,000 features and 1,000,000 labels, take some seconds
    and less than 1 GiB.

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
    caller = "make_xc_classification"
    n_samples, n_features, n_labels = _check_counts(
        caller, n_samples=(n_samples, 1), n_features=(n_features, 1), n_labels=(n_labels, 1)
    )
    _check_ranges(
        caller,
        nnz_per_row=(nnz_per_row, 1, n_features),
        labels_per_row=(labels_per_row, 1, n_labels),
        signature_share=(signature_share, 0, 1),
        missing_rate=(missing_rate, 0, 1),
    )
    dtype = check_float_dtype(dtype, f"{caller}: dtype")
    n_pairs = int(n_samples * nnz_per_row)
    _require(8 * n_pairs, caller, f"{n_pairs:,} features of {n_samples:,} rows")
    _require(4 * n_labels * _SIGNATURE, caller, f"signature features of {n_labels:,} labels")
    rng = check_random_state(random_state)

    # 1. The distributions of labels and words, and the words that are typical of each label.
    label_ids = rng.permutation(n_labels)
    labels_law = label_ids, _cumulative_power_law(n_labels, _LABEL_EXPONENT, 0.0)
    words_law = rng.permutation(n_features), _cumulative_power_law(n_features, 1.0, _ZIPF_SHIFT)
    signatures = rng.randint(n_features, size=(n_labels, _SIGNATURE), dtype=np.int32)

    # 2. How many labels and features each row has.
    n_row_labels = np.minimum(1 + rng.poisson(labels_per_row - 1, n_samples), n_labels)
    n_row_features = np.clip(rng.poisson(nnz_per_row, n_samples), 1, n_features)

    # 3. The rows, block by block, and counts to tf-idf.
    n_draws = np.concatenate([[0], np.cumsum(n_row_features + n_row_labels)])
    parts = []
    for first, last in cut_rows(n_draws, _BLOCK_DRAWS - 1):
        counts = n_row_labels[first:last], n_row_features[first:last]
        shares = signature_share, missing_rate
        parts.append(_draw_rows(rng, *counts, labels_law, words_law, signatures, *shares))
    row_nnz, features, counts, row_labels, labels = map(np.concatenate, zip(*parts, strict=True))
    del parts
    X = _tf_idf(row_nnz, features, counts, n_features, dtype)
    Y = csr_array(
        (np.ones(len(labels), dtype=np.int8), labels, _to_indptr(row_labels)),
        shape=(n_samples, n_labels),
    )
    if return_X_y:
        return X, Y
    probabilities = np.empty(n_labels)
    probabilities[label_ids] = np.diff(labels_law[1], prepend=0.0)
    return Bunch(X=X, Y=Y, label_probabilities=probabilities, signatures=signatures)


def _check_ranges(caller: str, **parameters: tuple[Any, float, float]) -> None:
    """Raise ValueError for a parameter that is not a number between its bounds."""
    for name, (number, low, high) in parameters.items():
        if not is_number(number) or not low <= number <= high:
            raise ValueError(
                f"{caller}: {name} must be a number from {low} to {high}. Got {number!r}."
            )


def _check_counts(caller: str, **parameters: tuple[Any, int]) -> list[int]:
    """Return integers that are at least as large as their lower bounds."""
    return [
        check_count(number, f"{caller}: {name}", least, MAX_SIZE)
        for name, (number, least) in parameters.items()
    ]


def _draw_rows(
    rng: Any,
    n_row_labels: np.ndarray,
    n_row_features: np.ndarray,
    labels_law: tuple[np.ndarray, np.ndarray],
    words_law: tuple[np.ndarray, np.ndarray],
    signatures: np.ndarray,
    signature_share: float,
    missing_rate: float,
) -> tuple[np.ndarray, ...]:
    """Return row lengths, features and counts of some rows, then row lengths and labels."""
    n, n_labels, n_features = len(n_row_labels), len(labels_law[0]), len(words_law[0])

    def draw_label(rows: Any) -> Any:
        return _draw(rng, labels_law, len(rows))

    def draw_word(rows: Any) -> Any:
        """Return a word for each of `rows`, from the signature of one of its labels or any."""
        words = _draw(rng, words_law, len(rows))
        signed = np.flatnonzero(rng.random_sample(len(rows)) < signature_share)
        which = label_start[rows[signed]] + _pick(rng, n_found[rows[signed]])
        column = rng.randint(_SIGNATURE, size=len(signed))
        words[signed] = signatures[labels[which], column]
        return words

    label_keys, _ = _draw_distinct(n_row_labels, n_labels, draw_label, draw_label)
    label_rows, labels = np.divmod(label_keys, n_labels)
    label_start = np.searchsorted(label_rows, np.arange(n))
    n_found = np.bincount(label_rows, minlength=n)
    feature_keys, counts = _draw_distinct(
        n_row_features, n_features, draw_word, lambda rows: _draw(rng, words_law, len(rows))
    )
    keep = rng.random_sample(len(labels)) >= missing_rate
    keep[label_start + _pick(rng, n_found)] = True
    rows, features = np.divmod(feature_keys, n_features)
    return (
        np.bincount(rows, minlength=n),
        features.astype(np.int32),
        counts.astype(np.int32),
        np.bincount(label_rows[keep], minlength=n),
        labels[keep].astype(np.int32),
    )


def _tf_idf(
    row_nnz: np.ndarray, features: np.ndarray, counts: np.ndarray, n_features: int, dtype: Any
) -> csr_array:
    """Return counts as tf-idf rows of unit norm."""
    n_samples = len(row_nnz)
    indptr = _to_indptr(row_nnz)
    document_frequency = np.bincount(features, minlength=n_features)
    idf = np.log((1 + n_samples) / (1 + document_frequency)) + 1
    values = (1 + np.log(counts)) * idf[features]
    values /= np.repeat(np.sqrt(np.add.reduceat(values * values, indptr[:-1])), row_nnz)
    return csr_array((values.astype(dtype), features, indptr), shape=(n_samples, n_features))


def make_hierarchical_classes(
    n_levels: int = 4,
    branching: int = 10,
    dim: int = 128,
    *,
    ratio: float = 0.5,
    n_per_class: int = 7,
    n_test: int = 10_000,
    accuracy: float = 0.9,
    random_state: Any = None,
) -> Bunch:
    """Make dense instances of many classes, some of which are close relatives.

    They stand for embeddings from a network, of faces for example. A class is a leaf of a tree
    with `branching` children at each node. Its centre is a sum of Gaussian vectors, one for each
    node on the path from the root, shorter the farther they are from the root; the sum is divided
    by its norm. An instance is a centre plus isotropic noise. Classes are numbered at random, so
    that siblings are not neighbours.

    Parameters
    ----------
    n_levels, branching : int, default=4, 10
        Depth of the tree, at least 1, and children per node, at least 2: ``branching ** n_levels``
        classes.
    dim : int, default=128
        Number of features.
    ratio : float, default=0.5
        The length of a node's own vector, as a share of its parent's: the smaller it is, the
        closer siblings are, relative to classes that have little in common. With 1, two classes
        whose lowest common ancestor has depth l have a cosine of about ``l / n_levels``.
    n_per_class : int, default=7
        Number of training instances per class.
    n_test : int, default=10_000
        Number of test instances; their classes are drawn uniformly.
    accuracy : float, default=0.9
        The share, between 0 and 1, of instances whose inner product with their own centre is the
        largest. The noise is scaled to reach this share on 1,000 instances drawn for the purpose;
        with few classes, which no noise confuses so often, the share may be larger.
    random_state : int, RandomState instance or None, default=None
        Seed of the data. The same int gives the same data, up to BLAS rounding.

    Returns
    -------
    data : Bunch
        ``X_train``, ``X_test`` (float32 arrays of shape (n, dim)), ``y_train``, ``y_test`` (int64,
        the classes, from 0, in random order), ``centers`` (float32 array of shape (n_classes,
        dim), with rows of norm 1), ``leaves`` (int64 array of shape (n_classes,), where in the
        tree a class is: ``leaves // branching`` is its parent, counted from the left), and
        ``noise`` (its standard deviation in each direction).

    Raises
    ------
    ValueError
        If a parameter is out of range; the message names the parameter and the range.
    MemoryBudgetError
        If the data do not fit into memory; raised before anything is allocated.

    Notes
    -----
    An instance stays in its class for all noise in its direction up to a certain size, so that the
    size for a given accuracy is a quantile of these sizes over some instances. Finding it takes
    ``4000 * n_classes * dim`` operations. In addition to the result, the centres need their memory
    once more. A million classes of 7 instances with 128 features take 3.6 GB.

    Examples
    --------
    >>> from sklearn_xc.datasets import make_hierarchical_classes
    >>> data = make_hierarchical_classes(2, branching=5, dim=16, n_test=100, random_state=0)
    >>> data.X_train.shape, data.X_test.shape, int(data.y_train.max())
    ((175, 16), (100, 16), 24)
    """
    caller = "make_hierarchical_classes"
    counts = {"n_levels": (n_levels, 1), "branching": (branching, 2), "dim": (dim, 1)}
    counts |= {"n_per_class": (n_per_class, 1), "n_test": (n_test, 0)}
    n_levels, branching, dim, n_per_class, n_test = _check_counts(caller, **counts)
    if not is_number(ratio) or not 0 < ratio < np.inf:
        raise ValueError(f"{caller}: ratio must be a number above 0. Got {ratio!r}.")
    if not is_number(accuracy) or not 0 < accuracy < 1:
        raise ValueError(f"{caller}: accuracy must be a number between 0 and 1. Got {accuracy!r}.")
    n_classes = branching ** min(n_levels, 64)  # at least 2**64 where it is cut
    what = f"{n_per_class} instances of each of {branching}**{n_levels} classes, {dim} features"
    _require(4 * dim * (n_classes * (2 + n_per_class) + n_test), caller, what)
    seed = check_random_state(random_state).randint(2**31 - 1)
    rng = np.random.default_rng(seed)  # which draws float32
    nodes = np.zeros((1, dim), np.float32)
    for level in range(n_levels):
        parts = rng.standard_normal((len(nodes), branching, dim), dtype=np.float32)
        parts *= np.float32(float(ratio) ** level)
        nodes = (parts + nodes[:, None]).reshape(-1, dim)
    nodes /= np.sqrt(np.einsum("ij,ij->i", nodes, nodes))[:, None]
    leaves = rng.permutation(len(nodes))
    centers = nodes[leaves]
    noise = _noise_for(centers, accuracy, rng)
    y_train = rng.permutation(np.tile(np.arange(len(centers)), n_per_class))
    y_test = rng.integers(0, len(centers), n_test)
    return Bunch(
        X_train=_scatter(centers, y_train, noise, rng),
        y_train=y_train,
        X_test=_scatter(centers, y_test, noise, rng),
        y_test=y_test,
        centers=centers,
        leaves=leaves,
        noise=noise,
    )


def _require(n_bytes: int, caller: str, what: str) -> None:
    require_bytes(n_bytes, None, what, "Ask for less.", caller)


def _noise_for(centers: Any, accuracy: float, rng: Any) -> float:
    """Return the noise at which this share of instances scores best with its own centre."""
    classes = rng.integers(0, len(centers), _PROBES)
    own = centers[classes]
    noise = rng.standard_normal(own.shape, dtype=np.float32)
    limits = np.full(_PROBES, np.inf)  # the noise up to which an instance is of its class
    at_rest, in_noise = (np.einsum("ij,ij->i", own, other) for other in (own, noise))
    for first in range(0, len(centers), _CHUNK_CLASSES):
        rivals = centers[first : first + _CHUNK_CLASSES].T
        lead = at_rest[:, None] - own @ rivals
        loss = noise @ rivals - in_noise[:, None]
        here = np.flatnonzero((classes >= first) & (classes < first + rivals.shape[1]))
        loss[here, classes[here] - first] = 0.0  # an instance is no rival of its own
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(loss > 0, lead / loss, np.inf)
        np.minimum(limits, reach.min(axis=1), out=limits)
    limits = np.sort(limits[np.isfinite(limits)])
    return float(limits[min(int((1 - accuracy) * _PROBES), len(limits) - 1)])


def _scatter(centers: Any, y: Any, noise: float, rng: Any) -> Any:
    """Return instances of the classes y."""
    X = np.empty((len(y), centers.shape[1]), np.float32)
    for first in range(0, len(y), _CHUNK_ROWS):
        block = X[first : first + _CHUNK_ROWS]
        rng.standard_normal(out=block, dtype=np.float32)
        block *= np.float32(noise)
        block += centers[y[first : first + _CHUNK_ROWS]]
    return X


def _cumulative_power_law(n: int, exponent: float, shift: float) -> Any:
    cdf = np.cumsum((np.arange(1, n + 1) + shift) ** -float(exponent))
    return cdf / cdf[-1]


def _draw(rng: Any, law: tuple[np.ndarray, np.ndarray], n: int) -> Any:
    """Draw `n` of the ids of a law, by their cumulative probabilities."""
    ids, cdf = law
    return ids[np.searchsorted(cdf, rng.random_sample(n), side="right")]


def _pick(rng: Any, sizes: Any) -> Any:
    """Draw one whole number below each of `sizes`."""
    return np.minimum((rng.random_sample(len(sizes)) * sizes).astype(np.int64), sizes - 1)


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
