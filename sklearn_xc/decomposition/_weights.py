"""Initial weights of a fit, and the memory that training takes."""

import math
from typing import NamedTuple

import numpy as np

from sklearn_xc._input.blank_rows import LabelFrequencies, features_of
from sklearn_xc._input.data import DENSE_SHARE, DenseRows
from sklearn_xc._labels.names import positions_of
from sklearn_xc._parallel.memory import require_bytes
from sklearn_xc._training.moving_rows import MovingRows
from sklearn_xc.decomposition._config import TrainingConfig
from sklearn_xc.decomposition._intercept import first_intercepts
from sklearn_xc.decomposition._metric import first_layer, first_proxies
from sklearn_xc.decomposition._training_set import TrainingSet
from sklearn_xc.decomposition.layers import HiddenLayer, IdentityLayer

#: embedding_dim="auto" of a sparse X. Source: section 5 of the paper.
_EMBEDDING_DIM = 100
#: Mean norm of initial feature vectors. Long ones hardly turn before the label vectors fit them.
_NORM = 0.3
#: embedding_dim="auto" of a Mahalanobis distance: the number of features, up to this many.
_MOST_FEATURES = 1000
#: Bytes per row, pair of a row and a label, label and feature, beside the weights.
_A_ROW, _A_PAIR, _A_LABEL, _A_FEATURE = 150, 50, 100, 50
#: Embedded values per piece when held-out instances are ranked.
EMBEDDED = 2**20


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
    d, dtype = training.instances.shape[1], training.instances.dtype
    dim, features = config.hidden_dim or d, None
    if config.hidden_dim:
        features = _initial_features(config, training)
        if known is not None:
            features[known.features[1]] = known.weights.features[known.features[0]]
    intercept = np.zeros(training.n_labels, dtype)
    if config.has_proxies:
        coef = 2 * first_proxies(training, _layer(training, features), dim)
    else:
        coef = np.zeros((training.n_labels, dim), dtype)
        if config.has_intercept:
            intercept = first_intercepts(frequencies, dtype)
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
    rng, shape = np.random.default_rng((config.seed, 2)), (X.shape[1], dim)
    if config.metric == "mahalanobis":
        features = first_layer(*shape, rng, X.dtype)
    else:
        vectors = rng.standard_normal(shape, np.float32) * np.float32(_NORM / np.sqrt(dim))
        features = vectors.astype(X.dtype, copy=False)
    features[~features_of(X, training.rows)] = 0
    if config.embedding_init is not None:
        config.embedding_init.replace(features, config.feature_names, _NORM)
    return features


def _layer(training: TrainingSet, features: np.ndarray | None) -> IdentityLayer | HiddenLayer:
    X = training.instances
    if features is None:
        return IdentityLayer(X)
    return HiddenLayer(X.to_csr().astype(features.dtype).without_zeros(), MovingRows(features))


def require_training_bytes(
    config: TrainingConfig, training: TrainingSet, n_models: int, allowed: int | None
) -> None:
    """Raise MemoryBudgetError unless `n_models` trainings at a time fit; nothing is allocated."""
    (n, d), n_labels = training.instances.shape, training.n_labels
    itemsize, dim = training.instances.dtype.itemsize, config.hidden_dim or d
    columns = dim + config.has_intercept
    shapes = [(n_labels, columns)] + [(d, dim)] * (config.hidden_dim > 0)
    sizes = [math.prod(shape) * itemsize for shape in shapes]
    needed = 2 * n_models * sum(sizes)  # with averages
    needed += _A_ROW * n + _A_PAIR * len(training.sets.labels)
    needed += _A_LABEL * n_labels + _A_FEATURE * d
    needed += min(n, EMBEDDED // columns) * columns * itemsize
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
