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
#: These take one label for each row.
ONE_LABEL = ("softmax",)
#: These know what to do with texts of labels.
TAKE_LABEL_TEXTS = ("ngame", "stacking")


def make_model(
    name: str,
    settings: Iterable[str],
    *,
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

    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
    model = sklearn_xc.TextClassifierXC(
        vectorizer, one(name), separator=separator, min_count=min_count, label_texts=label_texts
    )
    values = {"n_jobs": n_jobs, "random_state": seed}
    known = model.get_params(deep=True)
    model.set_params(
        **{key: values[last] for key in known if (last := key.split("__")[-1]) in values}
    )
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise CommandError(f"--set {setting}: expected NAME=VALUE, such as classifier__C=1.")
        if key not in known or "__" not in key:
            names = sorted(name for name in known if "__" in name)
            raise CommandError(
                f"--set {setting}: there is no parameter {key!r}.{nearest(key, names)} There are: "
                f"{listed(names)}."
            )
        model.set_params(**{key: _value(text)})
    return model


def _value(text: str) -> Any:
    """Return a number, None, a truth value, a tuple or the like; anything else is a text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
