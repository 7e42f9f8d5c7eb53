"""Where training starts from: fresh weights, or those that an earlier call has come to."""

import math

import numpy as np

from sklearn_xc._blank_rows import features_of
from sklearn_xc._data import DENSE_SHARE
from sklearn_xc.decomposition._intercept import first_intercepts, frequencies_of
from sklearn_xc.decomposition._passes import InstanceSketch
from sklearn_xc.decomposition._settings import Settings
from sklearn_xc.decomposition._training_set import TrainingSet
from sklearn_xc.decomposition.course import Course, Rows, Weights, copy_of, with_intercepts
from sklearn_xc.parallel.memory import require_bytes
from sklearn_xc.parallel.progress import say

#: embedding_dim="auto": the dimension that a sparse X gets. Source: section 5 of the paper.
_EMBEDDING_DIM = 100
#: The norm of feature vectors at the start, on average. Long ones hardly turn before the label
#: vectors fit them as they are.
_NORM = 0.3
#: Bytes for each row, pair of a row and a label, label and feature, beside the weights.
_A_ROW, _A_PAIR, _A_LABEL, _A_FEATURE = 150, 50, 100, 50
#: Entries of embeddings that are asked for their best labels at a time.
EMBEDDED = 2**20


def start_course(settings: Settings, training: TrainingSet, seed: int) -> Course:
    """Return the course of a first call, which ``require_room`` has let through."""
    dtype = training.instances.dtype
    share = training.share_of_nonzeros
    embedding_dim = _choose_embedding_dim(settings, share)
    dim = embedding_dim or training.instances.shape[1]
    is_trained = settings.fit_intercept and share >= DENSE_SHARE
    shapes = _first_shapes(settings, training)
    features = _first_features(training, dim, seed) if embedding_dim > 0 else None
    labels = np.zeros(shapes[0], dtype)
    squares: tuple[Rows, Rows] = None, None
    frequencies = frequencies_of(training)
    if is_trained:
        labels[:, -1] = first_intercepts(frequencies, dtype)
    if settings.optimizer == "adagrad":
        squares = np.zeros_like(labels), None if features is None else np.zeros_like(features)
    sketch = InstanceSketch.of(training.instances, training.rows)
    return Course(
        labels, features, *squares, settings.optimizer, training.epoch_visits,
        settings.fit_intercept, is_trained, frequencies, sketch, sketch,
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
    embedding_dim = embedding_dim_for(settings, share)
    is_trained = settings.fit_intercept and share >= DENSE_SHARE
    dim = embedding_dim or d
    return [(training.n_labels, dim + is_trained)] + [(d, dim)] * (embedding_dim > 0)


def resume_course(
    settings: Settings, course: Course, weights: Weights, training: TrainingSet, *, is_further: bool
) -> Course:
    """Return a copy of a course, to go on from.

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
    return course


def embedding_dim_for(settings: Settings, share: float) -> int:
    """Return the dimension of the hidden layer, 0 for none, by the share of non-zeros."""
    if isinstance(settings.embedding_dim, str):
        return _EMBEDDING_DIM if share < DENSE_SHARE else 0
    return int(settings.embedding_dim or 0)


def _choose_embedding_dim(settings: Settings, share: float) -> int:
    """Return the dimension of the hidden layer, by the share of entries that are not 0."""
    dim, how = embedding_dim_for(settings, share), f"embedding_dim={settings.embedding_dim!r}"
    if isinstance(settings.embedding_dim, str):
        how += f", and {share:.1%} of the entries of X are not 0"
    if settings.verbose:
        layer = f"a hidden layer of {dim}" if dim else "no hidden layer"
        say(settings.name, f"{layer}: {how}")
    return dim


def _first_features(training: TrainingSet, dim: int, seed: int) -> np.ndarray:
    """Return random vectors of the features that there are."""
    rng, shape = np.random.default_rng((seed, 2)), (training.instances.shape[1], dim)
    vectors = rng.standard_normal(shape, np.float32) * np.float32(_NORM / np.sqrt(dim))
    features = vectors.astype(training.instances.dtype, copy=False)
    features[~features_of(training.instances, training.rows)] = 0
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
    require_bytes(
        n_trials * (1 + len(extras)) * sum(math.prod(shape) for shape in shapes) * itemsize
        + besides,
        settings.allowed_bytes,
        f"the weights, {' and '.join(arrays)}{copies}",
        "Pass X as float32, lower embedding_dim, set average=False, or leave rare features and "
        "labels out.",
        settings.name,
    )
