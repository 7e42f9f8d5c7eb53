"""Estimators by a short name, with parameters given as text on the command line."""

import ast
from collections.abc import Iterable
from typing import Any

from sklearn_xc._labels.near_names import did_you_mean
from sklearn_xc.command_line.tables import CommandError

#: Name on the command line: what it is for.
ESTIMATORS = {
    "ova": "one-vs-all, where to begin",
    "ova-cv": "one-vs-all that chooses C by cross-validation",
    "softmax": "for rows with one label each",
    "ngame": "for labels that have texts of their own (--label-texts)",
    "stacking": "one-vs-all and ngame together: slower, often better",
    "decomp": "a small hidden layer below the labels",
}
#: These take one label for each row: the best one is predicted.
ONE_LABEL = ("softmax",)
#: These have weights that can be saved in compact form.
ONE_VS_ALL = ("ova", "ova-cv", "stacking")
#: These read texts of labels.
TAKE_LABEL_TEXTS = ("ngame", "stacking")
#: These need no ThresholdTuner around them.
_NO_TUNER = (*ONE_LABEL, "ngame", "stacking")


def make_model(
    name: str,
    settings: Iterable[str],
    *,
    around: str | None,
    separator: str | None,
    min_count: int,
    label_texts: dict[str, str] | None,
    n_jobs: int,
    seed: int,
) -> Any:
    """Return a TextClassifierXC that is not fitted.

    Parameters
    ----------
    name : str
        One of `ESTIMATORS`.
    settings : iterable of str
        Such as "classifier__C=3".
    around : {"thresholds", "probabilities", None}
        Whether a ThresholdTuner or a TopKCalibrator wraps the classifier.
    separator, min_count, label_texts
        Parameters of the TextClassifierXC.
    n_jobs, seed : int
        Of all parts.

    Raises
    ------
    CommandError
        For an unknown parameter.
    """
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer

    import sklearn_xc

    def classifier_of(name: str) -> Any:
        if name == "stacking":
            members = [(member, classifier_of(member)) for member in ("ova", "ngame")]
            return sklearn_xc.StackingXC(members)
        return {
            "ova": sklearn_xc.OvALinearXC,
            "ova-cv": sklearn_xc.OvALinearXCCV,
            "softmax": sklearn_xc.ImplicitSoftmaxSGD,
            "ngame": sklearn_xc.NGAMEEmbeddingXC,
            "decomp": sklearn_xc.DecompMIPSClassifier,
        }[name]()

    classifier = classifier_of(name)
    common = {"n_jobs": n_jobs, "random_state": seed}
    known = classifier.get_params(deep=True)
    classifier.set_params(
        **{key: common[last] for key in known if (last := key.split("__")[-1]) in common}
    )
    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
    parts = {"vectorizer": vectorizer, "classifier": classifier}
    if around == "probabilities":
        parts[around] = sklearn_xc.TopKCalibrator(classifier, random_state=seed)
    elif around == "thresholds" and name not in _NO_TUNER:
        parts[around] = sklearn_xc.ThresholdTuner(classifier, random_state=seed)
    for setting in settings:
        _set(parts, setting)
    return sklearn_xc.TextClassifierXC(
        vectorizer,
        parts.get(around or "", classifier),
        separator=separator,
        min_count=min_count,
        label_texts=label_texts,
    )


def _set(parts: dict[str, Any], setting: str) -> None:
    """Set a parameter, given as PART__NAME=VALUE; a value that is no Python literal is a text."""
    key, equals, text = setting.partition("=")
    if not equals:
        raise CommandError(f"--set {setting}: expected NAME=VALUE, such as classifier__C=1.")
    known = [f"{part}__{name}" for part in parts for name in parts[part].get_params(deep=True)]
    if key not in known:
        raise CommandError(
            f"--set {setting}: there is no parameter {key!r}.{did_you_mean(key, known)}"
        )
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = text
    part, _, name = key.partition("__")
    parts[part].set_params(**{name: value})
