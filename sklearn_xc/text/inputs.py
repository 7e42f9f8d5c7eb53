"""Checks of texts, and the fit of a vectorizer."""

from typing import Any

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils import get_tags

from sklearn_xc._input.arguments import as_sequence, is_missing, is_sequence
from sklearn_xc._input.refits import fit_transform
from sklearn_xc._input.texts_with_features import TextsWithFeatures, shown
from sklearn_xc._topk import transformers_of


def estimator_reads_texts(estimator: Any) -> bool:
    """Return whether an estimator, fitted or not, reads texts rather than features.

    A Pipeline reads what its first step reads; a stack or a vote reads texts if all members do; a
    search, and a wrapper of a classifier, reads what that one reads.
    """
    if hasattr(estimator, "steps"):
        return estimator_reads_texts([*transformers_of(estimator), estimator.steps[-1][1]][0])
    members = getattr(estimator, "estimators", None)
    if isinstance(members, list | tuple) and members:
        return all(estimator_reads_texts(member) for _, member in members)
    if getattr(estimator, "estimator", None) is not None:
        return estimator_reads_texts(estimator.estimator)
    if not hasattr(estimator, "__sklearn_tags__"):  # None, "passthrough", "drop"
        return False
    reads = get_tags(estimator).input_tags
    return bool(reads.string and not reads.two_d_array)


def reads_plain_texts(vectorizer: Any) -> bool:
    """Return whether a vectorizer of scikit-learn reads str; True for None, no vectorizer."""
    if vectorizer is None:
        return True
    is_plain = all(getattr(vectorizer, name, "") is None for name in ("preprocessor", "tokenizer"))
    is_named = isinstance(getattr(vectorizer, "analyzer", None), str)
    return is_plain and is_named and vectorizer.input == "content"


def check_texts(X: Any, vectorizer: Any, caller: str) -> Any:
    """Return X, as a sequence of texts unless the vectorizer reads something else.

    Raises
    ------
    ValueError
        For a single text, and for entries that are no texts.
    """
    if isinstance(X, str | bytes):
        raise ValueError(
            f"{caller}: X must be a list of texts. Got one text: put it into a list, [text]."
        )
    if isinstance(X, TextsWithFeatures) or not reads_plain_texts(vectorizer):
        return X
    X = as_sequence(X)
    if not is_sequence(X):
        raise ValueError(
            f"{caller}: X must be a sequence of texts, such as table['text']. Got {shown(X)}. "
            "OvALinearXC and other classifiers take matrices of features."
        )
    for row, text in enumerate(X):
        if not isinstance(text, str | bytes):
            hint = ": table['text'].fillna('') replaces missing texts" if is_missing(text) else ""
            raise ValueError(f"{caller}: X must hold texts. Got {text!r} in row {row}{hint}.")
    return X


def fit_with_label_texts(vectorizer: Any, X: Any, label_texts: list[str]) -> Any:
    """Fit a vectorizer to texts and label texts, and return the features of the texts.

    Vectorizers that do not count words are fitted to X alone.
    """
    if not label_texts or not isinstance(vectorizer, CountVectorizer):
        return fit_transform(vectorizer, X)
    return vectorizer.fit([*X, *label_texts]).transform(X)
