"""What attributes of scikit-learn's estimators must be in a saved model.

Those that numpy and scikit-learn compare themselves, when they are used, are not listed. Sparse
arithmetic does not: a factor for each column that is not there is taken from the end, or from
beyond it.
"""

from collections.abc import Callable
from typing import Any

from sklearn_xc._declared_state import Array, Number, Tested, declare_other


def _numbers_words(words: Any, require: Callable[[str, int], bool]) -> bool:
    if not isinstance(words, dict) or not all(isinstance(word, str) for word in words):
        return False
    return sorted(words.values()) == list(range(len(words))) and require("words", len(words))


def _weighs_words(transformer: Any, require: Callable[[str, int], bool]) -> bool:
    weights = getattr(transformer, "idf_", None)
    return weights is None or require("words", len(weights))


def _n_scores(model: Any) -> int | str:
    return 1 if len(model.classes_) == 2 else "classes"


_width = Number("int", "features", optional=True)
for _name in ("LogisticRegression", "RidgeClassifier", "LinearSVC"):
    declare_other(
        _name,
        n_features_in_=_width,
        classes_=Array("any", "classes", optional=True),
        coef_=Array("float", _n_scores, "features"),
        intercept_=Array("float", _n_scores),
    )
declare_other(
    "TfidfTransformer", n_features_in_=_width, idf_=Array("float", "features", optional=True)
)
declare_other("CountVectorizer", vocabulary_=Tested("numbers of words from 0", _numbers_words))
declare_other(
    "TfidfVectorizer",
    vocabulary_=Tested("numbers of words from 0", _numbers_words),
    _tfidf=Tested("a weight for each word", _weighs_words),
)
declare_other(  # statistics of features that were always missing are NaN
    "SimpleImputer",
    n_features_in_=_width,
    statistics_=Array("float32|float64|object", "features", finite=False),
)
declare_other("TruncatedSVD", n_features_in_=_width, components_=Array("float", None, "features"))
for _name in ("MaxAbsScaler", "MinMaxScaler", "StandardScaler"):
    declare_other(
        _name,
        n_features_in_=_width,
        **{
            name: Array("float", "features", optional=True)
            for name in ("scale_", "mean_", "var_", "min_", "max_abs_")
        },
    )
