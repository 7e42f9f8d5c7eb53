"""The classes of scikit-learn that a saved model may hold, and what their attributes must be.

What numpy and scikit-learn compare themselves, when it is used, is not listed. Sparse arithmetic
does not: a factor for each column that is not there is taken from the end, or from beyond it.
"""

from typing import Any

from sklearn_xc._declared_state import Array, Choice, Estimator, Number, Tested, declare_other


def _numbers_words(words: Any, require: Any) -> bool:
    if not isinstance(words, dict) or not all(isinstance(word, str) for word in words):
        return False
    return sorted(words.values()) == list(range(len(words))) and require("words", len(words))


def _weighs_words(transformer: Any, require: Any) -> bool:
    weights = getattr(transformer, "idf_", None)
    is_one = type(transformer).__name__ == "TfidfTransformer"
    return is_one and (weights is None or require("words", len(weights)))


def _are_steps(steps: Any, require: Any) -> bool:
    return _are_named(steps, "fit") and _are_named(steps[:-1], "transform")


def _are_transformers(steps: Any, require: Any) -> bool:
    return _are_named(steps, "transform")


def _are_named(steps: Any, method: str) -> bool:
    return type(steps) is list and all(
        type(one) is tuple
        and len(one) == 2
        and type(one[0]) is str
        and (one[1] in ("passthrough", "drop") or hasattr(one[1], method))
        for one in steps
    )


def _n_scores(model: Any) -> int | str:
    return 1 if len(model.classes_) == 2 else "classes"


_text = "sklearn.feature_extraction.text"
_words = Tested("numbers of words from 0", _numbers_words)
_width = Number("int", "features", optional=True)
declare_other(_text, "HashingVectorizer")
declare_other(_text, "CountVectorizer", vocabulary_=_words)
_tfidf = Tested("a weight for each word", _weighs_words)
declare_other(_text, "TfidfVectorizer", vocabulary_=_words, _tfidf=_tfidf)
_idf = Array("float", "features", optional=lambda transformer: not transformer.use_idf)
declare_other(_text, "TfidfTransformer", n_features_in_=_width, idf_=_idf)
declare_other("sklearn.frozen", "FrozenEstimator", estimator=Estimator("fit"))
declare_other("sklearn.model_selection", "KFold", "StratifiedKFold")
declare_other("sklearn.model_selection", "ShuffleSplit", _default_test_size=Number())
declare_other("sklearn.pipeline", "Pipeline", steps=Tested("named steps", _are_steps))
_transformers = Tested("named transformers", _are_transformers)
declare_other("sklearn.pipeline", "FeatureUnion", transformer_list=_transformers)
declare_other("sklearn.preprocessing", "Normalizer")
declare_other(
    "sklearn.preprocessing",
    *("MaxAbsScaler", "MinMaxScaler", "StandardScaler"),
    n_features_in_=_width,
    scale_=Array("float", "features", optional=lambda one: not getattr(one, "with_std", True)),
    mean_=Array("float", "features", optional=lambda one: not getattr(one, "with_mean", False)),
    min_=Array("float", "features", optional=lambda one: not hasattr(one, "feature_range")),
)
_dtype = Tested("a dtype", lambda dtype, require: hasattr(dtype, "kind"), optional=True)
declare_other(  # statistics of features that were always missing are NaN
    "sklearn.impute",
    "SimpleImputer",
    n_features_in_=_width,
    statistics_=Array("float32|float64|object", "features", finite=False),
    _fit_dtype=_dtype,
    _fill_dtype=_dtype,  # of newer versions
    indicator_=Choice(None),
)
_components = Array("float", None, "features")
declare_other(
    "sklearn.decomposition", "TruncatedSVD", n_features_in_=_width, components_=_components
)
for _home, _name in (("linear_model", "LogisticRegression"), ("svm", "LinearSVC")):
    declare_other(
        f"sklearn.{_home}",
        _name,
        n_features_in_=_width,
        classes_=Array("any", "classes", optional=True),
        coef_=Array("float", _n_scores, "features"),
        intercept_=Array("float", _n_scores),
    )
