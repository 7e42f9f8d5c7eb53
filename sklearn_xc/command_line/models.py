"""Models of the command line: made from options, and saved with the columns of their table."""

import ast
from collections.abc import Iterable
from typing import Any, NamedTuple

from sklearn_xc._labels.names import did_you_mean
from sklearn_xc.command_line.tables import CommandError

#: Name on the command line: the class, and what it is for.
ESTIMATORS = {
    "ova": ("OvALinearXC", "one-vs-all, where to begin"),
    "ova-cv": ("OvALinearXCCV", "one-vs-all that chooses C by cross-validation"),
    "softmax": ("ImplicitSoftmaxSGD", "for rows with one label each"),
    "ngame": ("NGAMEEmbeddingXC", "for labels that have texts of their own (--label-texts)"),
    "stacking": ("StackingXC", "one-vs-all and ngame together: slower, often better"),
    "auto": ("AutoXC", "the best of these by trials; --set classifier__time_budget=60"),
    "decomp": ("DecompMIPSClassifier", "a small hidden layer below the labels"),
}
#: These take one label for each row.
ONE_LABEL = ("softmax",)
#: These read texts of labels.
TAKE_LABEL_TEXTS = ("ngame", "stacking", "auto")
#: These need no ThresholdTuner around them.
_NO_TUNER = ("AutoXC", "ImplicitSoftmaxSGD", "NGAMEEmbeddingXC", "StackingXC")
#: The attribute of a saved model that holds a `Columns` as a dictionary.
COLUMNS = "command_line_"
_WORDS = {"true": True, "false": False, "none": None}


def make_parts(
    estimator: str, wrapper: str | None, *, n_jobs: int | None, seed: int
) -> dict[str, Any]:
    """Return the parts of a tagger, not fitted; the last is its classifier and holds any other.

    Parameters
    ----------
    estimator : str
        The class of the classifier; a StackingXC has one-vs-all and NGAMEEmbeddingXC as members.
    wrapper : {"thresholds", "probabilities", None}
        Whether a ThresholdTuner, if the classifier needs one, or a TopKCalibrator is around it.
    n_jobs : int or None
    seed : int

    Returns
    -------
    dict of str to estimator
        "vectorizer", "classifier", and the wrapper by its name.
    """
    import sklearn_xc
    from sklearn_xc._input.parts import default_vectorizer

    if estimator == "StackingXC":
        members = [("ova", sklearn_xc.OvALinearXC()), ("ngame", sklearn_xc.NGAMEEmbeddingXC())]
        classifier = sklearn_xc.StackingXC(members)
    else:
        classifier = getattr(sklearn_xc, estimator)()
    common = {"n_jobs": n_jobs, "random_state": seed}
    known = classifier.get_params(deep=True)
    classifier.set_params(
        **{key: common[last] for key in known if (last := key.split("__")[-1]) in common}
    )
    parts = {"vectorizer": default_vectorizer(), "classifier": classifier}
    if wrapper == "probabilities":
        parts[wrapper] = sklearn_xc.TopKCalibrator(classifier, random_state=seed)
    elif wrapper == "thresholds" and estimator not in _NO_TUNER:
        parts[wrapper] = sklearn_xc.ThresholdTuner(classifier, random_state=seed)
    return parts


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
    wrapper, n_jobs, seed
        As of ``make_parts``.
    **parameters
        Of the TextClassifierXC.
    """
    from sklearn_xc import TextClassifierXC

    parts = make_parts(ESTIMATORS[name][0], wrapper, n_jobs=n_jobs, seed=seed)
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise CommandError(f"--set {setting}: expected NAME=VALUE, such as classifier__C=1.")
        known = [f"{part}__{one}" for part in parts for one in parts[part].get_params(deep=True)]
        if key not in known:
            raise CommandError(
                f"--set {setting}: there is no parameter {key!r}.{did_you_mean(key, known)}"
            )
        part, _, parameter = key.partition("__")
        parts[part].set_params(**{parameter: read_value(text)})
    return TextClassifierXC(parts["vectorizer"], list(parts.values())[-1], **parameters)


def read_value(text: Any) -> Any:
    """Return a number, a truth value, None, a tuple or the like; any other text as it is."""
    if not isinstance(text, str):
        return text
    text = text.strip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


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
