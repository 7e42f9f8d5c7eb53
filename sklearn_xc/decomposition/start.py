"""Where training starts from: fresh weights, or those that an earlier call has come to."""

import math

import numpy as np

from sklearn_xc._blank_rows import features_of
from sklearn_xc._data import DENSE_SHARE, DenseRows
from sklearn_xc.decomposition._intercept import first_intercepts, frequencies_of
from sklearn_xc.decomposition._metric import first_layer, first_proxies
from sklearn_xc.decomposition._passes import InstanceSketch
from sklearn_xc.decomposition._settings import Settings
from sklearn_xc.decomposition._training_set import TrainingSet
from sklearn_xc.decomposition.course import Course, Rows, Weights, copy_of, with_intercepts
from sklearn_xc.parallel.memory import require_bytes
from sklearn_xc.parallel.progress import say
from sklearn_xc.solvers.layers import HiddenLayer, IdentityLayer
from sklearn_xc.solvers.moving_rows import MovingProxies, MovingRows, entry_places

#: embedding_dim="auto": the dimension that a sparse X gets. Source: section 5 of the paper.
_EMBEDDING_DIM = 100
#: The norm of feature vectors at the start, on average. Long ones hardly turn before the label
#: vectors fit them as they are.
_NORM = 0.3
#: embedding_dim="auto" of a Mahalanobis distance: that of X for up to so many features.
_MOST_FEATURES = 1000
#: Bytes for each row, pair of a row and a label, label and feature, beside the weights.
_A_ROW, _A_PAIR, _A_LABEL, _A_FEATURE = 150, 50, 100, 50
#: Entries of embeddings that are asked for their best labels at a time.
EMBEDDED = 2**20


def start_course(settings: Settings, training: TrainingSet, seed: int) -> Course:
    """Return the course of a first call, which ``require_room`` has let through."""
    dtype, n_features = training.instances.dtype, training.instances.shape[1]
    share = training.share_of_nonzeros
    embedding_dim = _choose_embedding_dim(settings, share, n_features)
    dim = embedding_dim or n_features
    is_trained = _has_column(settings, share)
    features = _first_features(settings, training, dim, seed) if embedding_dim > 0 else None
    squares: tuple[Rows, Rows] = None, None
    frequencies = frequencies_of(training)
    if settings.metric != "inner_product":
        proxies = first_proxies(training, _layer_of(training, features), dim)
        labels = MovingProxies.rows_of(proxies)
    else:
        labels = np.zeros((training.n_labels, dim + is_trained), dtype)
        if is_trained:
            labels[:, -1] = first_intercepts(frequencies, dtype)
    if settings.optimizer == "adagrad":
        squares = np.zeros_like(labels), None if features is None else np.zeros_like(features)
    sketch = InstanceSketch.of(training.instances, training.rows)
    return Course(
        labels, features, *squares, settings.optimizer, training.epoch_visits,
        settings.fit_intercept, is_trained, frequencies, sketch, sketch, metric=settings.metric,
    )  # fmt: skip


def require_room(settings: Settings, training: TrainingSet, n_trials: int) -> None:
    """Raise MemoryBudgetError unless the weights of a first call fit; nothing is made yet.

    `n_trials` is how many models there are at a time, while the best learning rate is looked for.
    """
    shapes = _first_shapes(settings, training)
    _require_memory(settings, training, shapes, training.instances.dtype.itemsize, n_trials)


def _first_shapes(settings: Settings, training: TrainingSet) -> list[tuple[int, int]]:
    """Return the shapes of the vectors of labels, and of features if they have some."""
    d, share = training.instances.shape[1], training.share_of_nonzeros
    embedding_dim = embedding_dim_for(settings, share, d)
    dim = embedding_dim or d
    labels = training.n_labels, dim + _has_column(settings, share)
    return [labels] + [(d, dim)] * (embedding_dim > 0)


def resume_course(
    settings: Settings, course: Course, weights: Weights, training: TrainingSet, *, is_further: bool
) -> tuple[Course, Weights]:
    """Return a copy of a course, to go on from, and the weights that averages go on from.

    Parameters
    ----------
    settings : Settings
    course : Course
        Of the last call.
    weights : Weights
        Of the model: they are where training stands if the course holds none.
    training : TrainingSet
    is_further : bool
        Whether these instances come on top of those so far, or take their place.
    """
    n_labels, dim = weights.coef.shape
    shapes = [(n_labels, dim + course.is_trained)]
    if weights.features is not None:
        shapes.append(weights.features.shape)
    _require_memory(settings, training, shapes, weights.coef.itemsize)
    course = course.copied()
    if course.label_rows is None:
        course.label_rows = (
            with_intercepts(weights.coef, weights.intercept)
            if course.is_trained
            else copy_of(weights.coef)
        )
        course.feature_rows = copy_of(weights.features)
    frequencies = frequencies_of(training)
    course.frequencies = course.frequencies.plus(frequencies) if is_further else frequencies
    if is_further:
        course.seen = course.seen.plus(InstanceSketch.of(training.instances, training.rows))
    if not is_further:
        course.guide = None
    if course.metric != "inner_product":
        weights = _with_new_proxies(course, weights, training)
    return course, weights


def embedding_dim_for(settings: Settings, share: float, n_features: int) -> int:
    """Return the dimension of the hidden layer, 0 for none, by the share of non-zeros.

    A Mahalanobis distance has one of all features where that is not too much.
    """
    dim = settings.embedding_dim
    if settings.metric == "mahalanobis":
        is_small = not isinstance(dim, str) or n_features <= _MOST_FEATURES
        own = n_features if is_small else _EMBEDDING_DIM
        return own if isinstance(dim, str) else int(dim or own)
    if isinstance(dim, str):
        return _EMBEDDING_DIM if share < DENSE_SHARE else 0
    return int(dim or 0)


def _has_column(settings: Settings, share: float) -> bool:
    """Return whether the vectors of labels have a column that is trained for each instance's 1."""
    is_wanted = settings.fit_intercept and share >= DENSE_SHARE
    return is_wanted or settings.metric != "inner_product"


def _layer_of(training: TrainingSet, features: Rows) -> IdentityLayer | HiddenLayer:
    """Return what embeds the instances by vectors of features; None is for none."""
    X = training.instances
    if features is None:
        return IdentityLayer(X)
    sparse = X.to_csr().astype(features.dtype).without_zeros()
    return HiddenLayer(sparse, MovingRows(features, None))


def _with_new_proxies(course: Course, weights: Weights, training: TrainingSet) -> Weights:
    """Put proxies of labels that have their first instances among these, also in a course."""
    assert course.is_seen is not None
    assert course.label_rows is not None
    rows, sets, dtype = training.rows, training.sets, weights.coef.dtype
    at, _ = entry_places(sets.indptr[rows], np.diff(sets.indptr)[rows])
    new = np.setdiff1d(sets.labels[at], np.flatnonzero(course.is_seen))
    if not new.size:
        return weights
    layer = _layer_of(training, weights.features)
    proxies = first_proxies(training, layer, weights.coef.shape[1])[new].astype(dtype)
    course.label_rows[new] = MovingProxies.rows_of(proxies / dtype.type(course.scales[0]))
    if course.label_squares is not None:
        course.label_squares[new] = 0
    course.guide = None
    coef = copy_of(weights.coef)
    assert coef is not None
    coef[new] = 2 * proxies
    return weights._replace(coef=coef)


def _choose_embedding_dim(settings: Settings, share: float, n_features: int) -> int:
    """Return the dimension of the hidden layer, by the share of entries that are not 0."""
    dim = embedding_dim_for(settings, share, n_features)
    how = f"embedding_dim={settings.embedding_dim!r}"
    if settings.metric == "mahalanobis":
        how += f", and {n_features} features of a Mahalanobis distance"
    elif isinstance(settings.embedding_dim, str):
        how += f", and {share:.1%} of the entries of X are not 0"
    if settings.verbose:
        layer = f"a hidden layer of {dim}" if dim else "no hidden layer"
        say(settings.name, f"{layer}: {how}")
    return dim


def _first_features(settings: Settings, training: TrainingSet, dim: int, seed: int) -> np.ndarray:
    """Return vectors of the features: given ones, else random ones of those that there are.

    Those of a Mahalanobis distance are the identity.
    """
    rng, shape = np.random.default_rng((seed, 2)), (training.instances.shape[1], dim)
    if settings.metric == "mahalanobis":
        features = first_layer(*shape, rng, training.instances.dtype)
    else:
        vectors = rng.standard_normal(shape, np.float32) * np.float32(_NORM / np.sqrt(dim))
        features = vectors.astype(training.instances.dtype, copy=False)
    features[~features_of(training.instances, training.rows)] = 0
    if settings.embedding_init is not None:
        settings.embedding_init.replace(features, settings.feature_names, _NORM)
    return features


def _require_memory(
    settings: Settings,
    training: TrainingSet,
    shapes: list[tuple[int, int]],
    itemsize: int,
    n_trials: int = 1,
) -> None:
    """Raise an error if weights of labels, and of features if there are, do not fit."""
    extras = ["their averages"] if settings.average else []
    extras += ["adagrad"] if settings.optimizer == "adagrad" else []
    arrays = [
        f"{n} {kind} x {columns} x {itemsize} bytes"
        for (n, columns), kind in zip(shapes, ("labels", "features"), strict=False)
    ]
    copies = "".join(f", as much again for {extra}" for extra in extras)
    copies += f", in {n_trials} trials" if n_trials > 1 else ""
    (n, d), n_labels = training.instances.shape, training.n_labels
    besides = (
        _A_ROW * n + _A_PAIR * len(training.sets.labels) + _A_LABEL * n_labels + _A_FEATURE * d
        + min(n, EMBEDDED // shapes[0][1]) * shapes[0][1] * itemsize
    )  # fmt: skip
    if settings.metric != "inner_product":
        besides += math.prod(shapes[0]) * itemsize  # where proxies start
    if settings.metric == "mahalanobis" and isinstance(training.instances, DenseRows):
        besides += n_trials * n * d * (itemsize + 4)  # becomes a sparse X
    if settings.embedding_init is not None and len(shapes) > 1:
        besides += 2 * math.prod(shapes[1]) * itemsize
    require_bytes(
        n_trials * (1 + len(extras)) * sum(math.prod(shape) for shape in shapes) * itemsize
        + besides,
        settings.allowed_bytes,
        f"the weights, {' and '.join(arrays)}{copies}",
        "Pass X as float32, lower embedding_dim, set average=False, or leave rare features and "
        "labels out.",
        settings.name,
    )
