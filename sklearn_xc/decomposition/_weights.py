"""Initial weights of a fit, intercepts and proxies among them, and the memory of training.

In dense data, intercepts are trained with the label vectors. They start at a hundredth of the
log frequency of their label and take smaller steps where labels are many, since every label is a
rival to all instances. In sparse data they stay 0.

Proxies are points whose score is minus the squared distance [1]_. Training leaves out
``-||psi(x)||^2``, which is the same for all labels; the rest is an inner product::

    -||psi(x) - y_k||^2 + ||psi(x)||^2  =  (2 y_k, -||y_k||^2) . (psi(x), 1)

A Mahalanobis distance ``(x - p)' M (x - p)`` is that of ``psi(x) = L'x`` from ``y = L'p``, with
``M = L L'``: a hidden layer of all features. Source: section 2 of [2]_.

References
----------
.. [1] Y. Movshovitz-Attias, A. Toshev, T. K. Leung, S. Ioffe and S. Singh, "No fuss distance metric
   learning using proxies", ICCV 2017.
.. [2] I. E.-H. Yen, S. Kale, F. X. Yu, D. Holtmann-Rice, S. Kumar and P. Ravikumar, "Loss
   decomposition for fast learning in large output spaces", ICML 2018.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.data import DENSE_SHARE, DenseRows, LabelFrequencies, features_of, is_blank
from sklearn_xc._labels.names import positions_of
from sklearn_xc._parallel.memory import require_bytes
from sklearn_xc.decomposition._training_set import TrainingConfig, TrainingSet
from sklearn_xc.decomposition.layers import HiddenLayer, IdentityLayer, make_layer

#: embedding_dim="auto" of a sparse X. Source: section 5 of the paper.
_EMBEDDING_DIM = 100
#: Mean norm of initial feature vectors. Long ones hardly turn before the label vectors fit them.
_NORM = 0.3
#: embedding_dim="auto" of a Mahalanobis distance: the number of features, up to this many.
_MOST_FEATURES = 1000
#: Bytes per row, pair of a row and a label, label and feature, in addition to the weights.
_A_ROW, _A_PAIR, _A_LABEL, _A_FEATURE = 150, 50, 100, 50
#: Proxies start this fraction of the way from the mean of all instances to the mean of their own,
#: which are nearer to it than new instances will be. From 0 to 1, accuracy varied by 0.03.
_TOWARDS_OWN = 0.3
#: Embedded values per chunk.
CHUNK_VALUES = 2**20
#: Fraction of the log frequencies at which intercepts start.
_START = 0.01
#: Intercepts take steps at this over the root of the number of labels, times the learning rate.
_RATE = 3.0
_LEAST_SHARE = np.finfo(np.float64).tiny


class Weights(NamedTuple):
    """Weights of a model.

    Attributes
    ----------
    coef : ndarray of float of shape (n_labels, dim)
        Label vectors; twice the proxies, if scores are distances.
    intercept : ndarray of float of shape (n_labels,)
    features : ndarray of float of shape (n_features, dim) or None
        Feature vectors; None without a hidden layer.
    """

    coef: np.ndarray
    intercept: np.ndarray
    features: np.ndarray | None


class KnownWeights(NamedTuple):
    """Weights of an earlier fit: those of labels and features that are there again.

    Attributes
    ----------
    weights : Weights
    labels, features : tuple of ndarray of int64
        Positions in the earlier fit, and in this one.
    """

    weights: Weights
    labels: tuple[np.ndarray, np.ndarray]
    features: tuple[np.ndarray, np.ndarray]


def common_places(before: np.ndarray, now: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions, before and now, of the names in both arrays."""
    found = positions_of(now, before)
    return found[found >= 0], np.flatnonzero(found >= 0)


def hidden_dim_for(embedding_dim: int | str | None, metric: str, share: float, d: int) -> int:
    """Return the dimension of the hidden layer, 0 for none, for a share of non-zeros."""
    is_auto = isinstance(embedding_dim, str)
    if metric == "mahalanobis":
        if is_auto:
            return d if d <= _MOST_FEATURES else _EMBEDDING_DIM
        return int(embedding_dim or d)
    if is_auto:
        return _EMBEDDING_DIM if share < DENSE_SHARE else 0
    return int(embedding_dim or 0)


def initial_weights(
    config: TrainingConfig,
    training: TrainingSet,
    frequencies: LabelFrequencies,
    known: KnownWeights | None = None,
) -> Weights:
    """Return the weights that training starts from; those of an earlier fit where there are any."""
    d = training.instances.shape[1]
    dtype = training.instances.dtype
    dim = config.hidden_dim or d
    features = None
    if config.hidden_dim:
        features = _initial_features(config, training)
        if known is not None:
            features[known.features[1]] = known.weights.features[known.features[0]]
    intercept = np.zeros(training.n_labels, dtype)
    if config.has_proxies:
        coef = 2 * first_proxies(training, make_layer(training.instances, features), dim)
    else:
        coef = np.zeros((training.n_labels, dim), dtype)
        if config.has_intercept:
            log_shares = _log_shares(frequencies.counts, frequencies)
            intercept = (_START * log_shares).astype(dtype)
    if known is not None:
        before, now = known.labels
        if features is None:
            columns = known.features
            coef[np.ix_(now, columns[1])] = known.weights.coef[np.ix_(before, columns[0])]
        else:
            coef[now] = known.weights.coef[before]
        intercept[now] = known.weights.intercept[before]
    return Weights(coef, intercept, features)


def _initial_features(config: TrainingConfig, training: TrainingSet) -> np.ndarray:
    """Return given or random feature vectors; zeros for features that no instance has."""
    X, dim = training.instances, config.hidden_dim
    rng = np.random.default_rng((config.seed, 2))
    shape = (X.shape[1], dim)
    if config.metric == "mahalanobis":
        # L: the identity, or random directions scaled such that distances stay the same on average.
        features = np.eye(*shape, dtype=X.dtype)
        if dim < X.shape[1]:
            directions = np.linalg.qr(rng.standard_normal(shape))[0]
            features = (directions * np.sqrt(X.shape[1] / dim)).astype(X.dtype)
    else:
        vectors = rng.standard_normal(shape, np.float32) * np.float32(_NORM / np.sqrt(dim))
        features = vectors.astype(X.dtype, copy=False)
    features[~features_of(X, training.rows)] = 0
    if config.embedding_init is not None:
        config.embedding_init.replace(features, config.feature_names, _NORM)
    return features


def require_training_bytes(
    config: TrainingConfig, training: TrainingSet, n_models: int, allowed: int | None
) -> None:
    """Raise MemoryBudgetError unless `n_models` trainings at a time fit; nothing is allocated."""
    (n, d), n_labels = training.instances.shape, training.n_labels
    itemsize = training.instances.dtype.itemsize
    dim = config.hidden_dim or d
    columns = dim + config.has_intercept
    shapes = [(n_labels, columns)] + [(d, dim)] * (config.hidden_dim > 0)
    sizes = [math.prod(shape) * itemsize for shape in shapes]
    needed = 2 * n_models * sum(sizes)  # with averages
    needed += _A_ROW * n + _A_PAIR * len(training.sets.labels)
    needed += _A_LABEL * n_labels + _A_FEATURE * d
    needed += min(n, CHUNK_VALUES // columns) * columns * itemsize
    if config.has_proxies:
        needed += sizes[0]
    if config.metric == "mahalanobis" and isinstance(training.instances, DenseRows):
        needed += n_models * n * d * (itemsize + 4)  # as a sparse matrix
    if config.embedding_init is not None and config.hidden_dim:
        needed += 2 * sizes[1]
    arrays = [
        f"{rows} {kind} x {width} x {itemsize} bytes"
        for (rows, width), kind in zip(shapes, ("labels", "features"), strict=False)
    ]
    copies = ", as much again for their averages"
    copies += f", in {n_models} trials" if n_models > 1 else ""
    require_bytes(
        needed,
        allowed,
        f"the weights, {' and '.join(arrays)}{copies}",
        "Pass X as float32, lower embedding_dim, or leave rare features and labels out.",
        config.name,
    )


# Proxies


@np.errstate(over="ignore", invalid="ignore")
def first_proxies(
    training: TrainingSet, layer: IdentityLayer | HiddenLayer, dim: int
) -> np.ndarray:
    """Return initial proxies, (n_labels, dim), between the means of all and of own instances.

    Those of labels without instances are the mean of all. Overflow is left to training to find.
    """
    rows, n_labels = training.rows, training.n_labels
    bounds, labels = training.sets.of_rows(rows)
    weight = np.repeat(training.weight, np.diff(bounds))
    total = np.bincount(labels, weight, n_labels)
    shares = weight / total[labels]
    dtype = training.instances.dtype
    of_all = np.zeros(dim)
    proxies = np.zeros((n_labels, dim), dtype)
    n_chunk = max(1, CHUNK_VALUES // dim)
    for first in range(0, len(rows), n_chunk):
        last = min(first + n_chunk, len(rows))
        V = layer.forward(rows[first:last])
        pairs = slice(bounds[first], bounds[last])
        own, places = np.unique(labels[pairs], return_inverse=True)
        indptr = bounds[first : last + 1] - bounds[first]
        has = sp.csr_array((shares[pairs].astype(dtype), places, indptr))
        proxies[own] += has.T @ V
        of_all += training.weight[first:last] @ V
    mean = (of_all / training.weight.sum()).astype(dtype)
    proxies[total == 0] = mean
    proxies -= mean
    proxies *= dtype.type(_TOWARDS_OWN)
    proxies += mean
    return proxies


# Intercepts


def intercept_rate(n_labels: int) -> float:
    """Return the rate of intercepts, relative to the learning rate."""
    return min(1.0, _RATE / math.sqrt(n_labels))


def frequencies_of(training: TrainingSet) -> LabelFrequencies:
    """Return how often labels are on the training instances."""
    bounds, labels = training.sets.of_rows(training.rows)
    of_pair = np.repeat(np.arange(len(training.rows)), np.diff(bounds))
    blank = is_blank(training.instances)[training.rows]
    return LabelFrequencies.of(of_pair, labels, training.weight, blank, training.n_labels)


def log_odds_of_blank(model: Any) -> np.ndarray:
    """Return the log odds that an instance without features has each label of a fitted model."""
    frequencies = model._frequencies
    counts = frequencies.of_blank()
    log_odds = _log_shares(counts, frequencies)
    log_odds -= _log_shares(frequencies.total - counts, frequencies)
    return log_odds.astype(model.coef_.dtype)


def _log_shares(weights: np.ndarray, frequencies: LabelFrequencies) -> np.ndarray:
    """Return logarithms of shares of all instances, at least half that of the rarest label."""
    least = 0.5 * frequencies.counts[frequencies.counts > 0].min()
    shares = np.maximum(weights, least) / frequencies.total
    return np.log(np.maximum(shares, _LEAST_SHARE))
