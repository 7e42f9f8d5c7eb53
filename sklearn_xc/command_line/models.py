"""Models of the command line: made from options, and saved with the columns of their table."""

import ast
from collections.abc import Iterable
from typing import Any, NamedTuple

from sklearn_xc._labels.names import did_you_mean
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
#: These take one label for each row.
ONE_LABEL = ("softmax",)
#: These read texts of labels.
TAKE_LABEL_TEXTS = ("ngame", "stacking")
#: These need no ThresholdTuner around them.
_NO_TUNER = (*ONE_LABEL, "ngame", "stacking")


def make_model(
    name: str,
    settings: Iterable[str] = (),
    *,
    wrapper: str | None = "thresholds",
    n_jobs: int = 1,
    seed: int = 0,
    **parameters: Any,
) -> Any:
    """Return a TextClassifierXC that is not fitted.

    Parameters
    ----------
    name : str
        One of `ESTIMATORS`.
    settings : iterable of str, default=()
        Such as "classifier__C=3".
    wrapper : {"thresholds", "probabilities", None}, default="thresholds"
        Whether a ThresholdTuner or a TopKCalibrator wraps the classifier.
    n_jobs : int, default=1
    seed : int, default=0
    **parameters
        Of the TextClassifierXC.
    """
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer

    import sklearn_xc

    classifier: Any = {
        "ova": sklearn_xc.OvALinearXC,
        "ova-cv": sklearn_xc.OvALinearXCCV,
        "softmax": sklearn_xc.ImplicitSoftmaxSGD,
        "ngame": sklearn_xc.NGAMEEmbeddingXC,
        "stacking": lambda: sklearn_xc.StackingXC(
            [("ova", sklearn_xc.OvALinearXC()), ("ngame", sklearn_xc.NGAMEEmbeddingXC())]
        ),
        "decomp": sklearn_xc.DecompMIPSClassifier,
    }[name]()
    common = {"n_jobs": n_jobs, "random_state": seed}
    known = classifier.get_params(deep=True)
    classifier.set_params(
        **{key: common[last] for key in known if (last := key.split("__")[-1]) in common}
    )
    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
    parts = {"vectorizer": vectorizer, "classifier": classifier}
    if wrapper == "probabilities":
        parts[wrapper] = sklearn_xc.TopKCalibrator(classifier, random_state=seed)
    elif wrapper == "thresholds" and name not in _NO_TUNER:
        parts[wrapper] = sklearn_xc.ThresholdTuner(classifier, random_state=seed)
    for setting in settings:
        _set(parts, setting)
    return sklearn_xc.TextClassifierXC(vectorizer, list(parts.values())[-1], **parameters)


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


#: The attribute of a saved model that holds a `Columns` as a dictionary.
COLUMNS = "command_line_"


class Columns(NamedTuple):
    """Columns of the table that a model was fitted on, and the separator of its labels."""

    text: list[str]
    labels: str
    separator: str | None


def load_model(options: Any) -> tuple[Any, list[str], str | None, str | None]:
    """Return a model, and the columns of texts and labels and the separator to use with it.

    Raises
    ------
    CommandError
        If there is no such model, or neither it nor ``--text`` names the columns of texts.
    """
    from sklearn_xc import TextClassifierXC, load
    from sklearn_xc.exceptions import SavedModelError

    try:
        model = load(options.model)
    except SavedModelError as error:
        raise CommandError(f"{error} Models are made by: sklearn-xc fit.") from error
    if not isinstance(model, TextClassifierXC) or not hasattr(model, "classifier_"):
        raise CommandError(
            f"{options.model}: expected a fitted TextClassifierXC. Got {type(model).__name__}."
        )
    known = Columns(**getattr(model, COLUMNS, {"text": [], "labels": "", "separator": None}))
    texts = options.text or known.text
    if not texts:
        raise CommandError("--text COLUMN: which column holds the texts? The model names none.")
    labels = getattr(options, "labels", None) or known.labels or None
    return model, texts, labels, options.separator or known.separator
