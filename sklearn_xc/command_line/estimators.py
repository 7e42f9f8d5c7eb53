"""Estimators by a short name, with parameters that are texts on the command line."""

import ast
from collections.abc import Iterable
from typing import Any

from sklearn_xc.command_line.errors import CommandError, listed, nearest

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
#: These know what to do with texts of labels.
TAKE_LABEL_TEXTS = ("ngame", "stacking")
#: These learn on held-out rows themselves from which score on labels are predicted.
_HAVE_THRESHOLDS = ("ngame", "stacking")
#: How --set names the parts: that of `--estimator` is the classifier, whatever is around it.
_CLASSIFIER = "classifier"
_AROUND = {"thresholds": "ThresholdTuner", "probabilities": "TopKCalibrator"}


def make_model(
    name: str,
    settings: Iterable[str],
    *,
    decisions: str | None,
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
    decisions : {"thresholds", "probabilities", None}
        What is around the classifier: a ThresholdTuner, unless it takes one label for each row or
        has thresholds of its own; a TopKCalibrator; nothing.
    separator : str or None
    min_count : int
    label_texts : dict or None
    n_jobs : int
        Threads.
    seed : int
        For what is random.

    Raises
    ------
    CommandError
        For a parameter that there is not.
    """
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer

    import sklearn_xc

    def one(name: str) -> Any:
        if name == "stacking":
            return sklearn_xc.StackingXC([("ova", one("ova")), ("ngame", one("ngame"))])
        return {
            "ova": sklearn_xc.OvALinearXC,
            "ova-cv": sklearn_xc.OvALinearXCCV,
            "softmax": sklearn_xc.ImplicitSoftmaxSGD,
            "ngame": sklearn_xc.NGAMEEmbeddingXC,
            "decomp": sklearn_xc.DecompMIPSClassifier,
        }[name]()

    classifier = one(name)
    _set_everywhere(classifier, {"n_jobs": n_jobs, "random_state": seed})
    if decisions == "thresholds" and name in (*ONE_LABEL, *_HAVE_THRESHOLDS):
        decisions = None
    if decisions is not None:
        classifier = getattr(sklearn_xc, _AROUND[decisions])(classifier, random_state=seed)
    model = sklearn_xc.TextClassifierXC(
        TfidfVectorizer(sublinear_tf=True, dtype=np.float32), classifier,
        separator=separator, min_count=min_count, label_texts=label_texts,
    )  # fmt: skip
    paths = _paths(model, decisions)
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise CommandError(f"--set {setting}: expected NAME=VALUE, such as classifier__C=1.")
        path = paths.get(key, key)
        if "__" not in path or path not in model.get_params(deep=True):
            raise CommandError(
                f"--set {setting}: there is no parameter {key!r}.{nearest(key, paths)} There are: "
                f"{listed(sorted(paths))}."
            )
        model.set_params(**{path: _value(text)})
    return model


def _set_everywhere(classifier: Any, values: dict[str, Any]) -> None:
    """Set parameters of a classifier and of its parts, where they have them."""
    known = classifier.get_params(deep=True)
    classifier.set_params(
        **{key: values[last] for key in known if (last := key.split("__")[-1]) in values}
    )


def _paths(model: Any, decisions: str | None) -> dict[str, str]:
    """Return the parameters of a model by what they are called on the command line.

    A classifier within another one is called "classifier" all the same, and what is around it
    "thresholds" or "probabilities".
    """
    around, inner = f"{_CLASSIFIER}__", f"{_CLASSIFIER}__estimator__"
    paths = {}
    for name in model.get_params(deep=True):
        if decisions is not None and name.startswith(inner):
            paths[around + name.removeprefix(inner)] = name
        elif decisions is not None and name.startswith(around):
            paths[f"{decisions}__" + name.removeprefix(around)] = name
        elif "__" in name:
            paths[name] = name
    return paths


def _value(text: str) -> Any:
    """Return a number, None, a truth value, a tuple or the like; anything else is a text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
