"""The model of a project: texts and the URIs of their subjects in, subjects with scores out."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from sklearn_xc import TextClassifierXC
from sklearn_xc._labels.names import did_you_mean
from sklearn_xc._topk import topk
from sklearn_xc.command_line.models import ESTIMATORS, TAKE_LABEL_TEXTS, make_parts
from sklearn_xc.integrations.annif.settings import Settings, SettingsError

#: Token pattern of texts that were tokenized before: words between blanks.
WORDS = r"\S+"
#: Parameters that a project cannot set, and what sets them.
_OURS = {
    "n_jobs": "--jobs of annif train",
    "label_features": "the labels of the vocabulary",
    "label_names": "the URIs of the vocabulary",
}


def make_model(
    settings: Settings, label_texts: Mapping[str, str] | None = None, *, are_words: bool = False
) -> Any:
    """Return the model of a project, not fitted: a ``TextClassifierXC`` of lists of URIs.

    Parameters
    ----------
    settings : Settings
        Of the project.
    label_texts : mapping of str to str, default=None
        Text of each subject by its URI, for an estimator that reads label features; others do
        without.
    are_words : bool, default=False
        Whether texts are words with blanks between them, which are not changed.

    Returns
    -------
    TextClassifierXC

    Raises
    ------
    SettingsError
        For unknown parameters and invalid values.

    Examples
    --------
    >>> from sklearn_xc.integrations.annif.settings import Settings
    >>> from sklearn_xc.integrations.annif.tagging import make_model
    >>> make_model(Settings(parameters={"C": 1.0}, calibration=None)).classifier
    OvALinearXC(C=1.0)
    """
    wrapper = None if settings.calibration is None else "probabilities"
    parts = make_parts(settings.estimator, wrapper, n_jobs=None, seed=0)
    if are_words:
        parts["vectorizer"].set_params(token_pattern=WORDS, lowercase=False)
    _set(parts["vectorizer"], settings.vectorizer, "vectorizer")
    _set(parts["classifier"], settings.parameters, "set")
    if settings.calibration is not None:
        parts["probabilities"].set_params(method=settings.calibration, n_jobs=1)
    label_texts = label_texts if reads_label_texts(settings) else None
    return TextClassifierXC(
        parts["vectorizer"], list(parts.values())[-1], label_texts=label_texts or None
    )


def reads_label_texts(settings: Settings) -> bool:
    """Return whether the estimator of a project has a use for texts of subjects."""
    return settings.estimator in {ESTIMATORS[name][0] for name in TAKE_LABEL_TEXTS}


def suggest(model: Any, texts: Sequence[str], k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k best subjects of each document, and their scores.

    Parameters
    ----------
    model : TextClassifierXC
        Fitted.
    texts : sequence of n str
        Documents.
    k : int
        How many; may exceed their number.

    Returns
    -------
    positions : ndarray of int64 of shape (n, k)
        In ``model.classes_``, -1 where there is none: for all of a document without a word that the
        model knows.
    scores : ndarray of float32 of shape (n, k)
        In [0, 1], descending along each row, and equal within a row only if they are 0: Annif
        orders by them alone.
    """
    X = model.vectorizer_.transform(texts)
    classifier = model.classifier_
    if hasattr(classifier, "predict_proba_topk"):
        positions, probabilities = classifier.predict_proba_topk(X, k)
    else:
        positions, scores = topk(classifier, X, k)
        probabilities = expit(scores)
    known = np.diff(X.indptr) > 0
    positions = np.where(known[:, None] & (probabilities > 0), positions, -1)
    probabilities = np.where(positions >= 0, probabilities, 0.0)
    order = np.argsort(-probabilities, axis=1, kind="stable")
    positions = np.take_along_axis(positions, order, axis=1)
    return positions, strictly_falling(np.take_along_axis(probabilities, order, axis=1))


def strictly_falling(scores: np.ndarray) -> np.ndarray:
    """Return scores, each lowered as little as float32 can where it ties with the one before it.

    Parameters
    ----------
    scores : ndarray of float of shape (n, k)
        Descending along rows, ties allowed.

    Returns
    -------
    ndarray of float32 of shape (n, k)
        In [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_xc.integrations.annif.tagging import strictly_falling
    >>> strictly_falling(np.array([[0.5, 0.5, 0.0]])).tolist()
    [[0.5, 0.4999999701976776, 0.0]]
    """
    lowered = np.clip(scores, 0.0, 1.0).astype(np.float32)
    for column in range(1, lowered.shape[1]):
        below = np.nextafter(lowered[:, column - 1], np.float32(0.0))
        lowered[:, column] = np.minimum(lowered[:, column], below)
    return lowered


def _set(part: Any, values: Mapping[str, Any], prefix: str) -> None:
    """Set parameters, and have all parts check theirs before the documents are read."""
    known = part.get_params(deep=True)
    for name in values:
        last = name.split("__")[-1]
        if last in _OURS:
            raise SettingsError(f"{prefix}.{name}: is set by {_OURS[last]}.")
        if name not in known:
            hint = did_you_mean(name, known)
            raise SettingsError(
                f"{prefix}.{name}: {type(part).__name__} has no parameter {name!r}.{hint}"
            )
    part.set_params(**values)
    for one in (part, *part.get_params(deep=True).values()):
        if hasattr(one, "_validate_params") and not isinstance(one, type):
            try:
                one._validate_params()
            except (ValueError, TypeError) as error:
                raise SettingsError(f"{prefix}: {error}") from error
