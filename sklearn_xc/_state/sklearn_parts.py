"""What a saved model may hold of scikit-learn: classes, their parameters, and fitted attributes."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from sklearn_xc._state.schema import (
    Array,
    Attribute,
    Choice,
    Context,
    Estimator,
    Number,
    Tested,
    check_attributes,
)

#: Names of classes by the module that they are imported from.
CLASSES = {
    "sklearn.compose": "ColumnTransformer",
    "sklearn.decomposition": "TruncatedSVD",
    "sklearn.feature_extraction": "DictVectorizer",
    "sklearn.feature_extraction.text": "CountVectorizer HashingVectorizer TfidfTransformer "
    "TfidfVectorizer",
    "sklearn.frozen": "FrozenEstimator",
    "sklearn.impute": "SimpleImputer",
    "sklearn.linear_model": "LogisticRegression",
    "sklearn.model_selection": "KFold ShuffleSplit StratifiedKFold",
    "sklearn.pipeline": "FeatureUnion Pipeline",
    "sklearn.preprocessing": "FunctionTransformer MaxAbsScaler MinMaxScaler Normalizer "
    "OneHotEncoder StandardScaler",
}
#: Attributes that are left out: an address in the process that wrote it.
NOT_SAVED = ("_stop_words_id",)
#: Token patterns whose time grows with the length of a text: only the last character repeats, and
#: the end of a word follows only where nothing is tried twice.
_ONE = r"(?:\w|\\[wWdDsS]|\[\^?(?:\\[wWdDsS-]|[^][\\^])+\])"
_OFTEN = r"(?:[+*]|\{\d\d?(,\d?\d?)?\})?"
_LINEAR = re.compile(
    rf"(\(\?u\))?((\\b)?{_ONE}{{0,9}}({_ONE}{_OFTEN}|\\w\+\\b)|\\b{_ONE}{{1,9}}{_OFTEN}\\b)"
)
#: Parameters of scikit-learn's classes: no functions, files or codecs, and limits on time.
_MAY_BE: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "analyzer": ("a text", lambda value: type(value) is str),
    "encoding": ("utf-8, latin-1 or ascii", lambda name: name in ("utf-8", "latin-1", "ascii")),
    "input": ("'content'", lambda value: value == "content"),
    "n_jobs": ("at most 64", lambda value: value is None or abs(value) <= 64),
    "ngram_range": (
        "two integers from 1 to 20",
        lambda pair: len(pair) == 2 and all(type(n) is int and 1 <= n <= 20 for n in pair),
    ),
    "stop_words": (
        "texts",
        lambda words: type(words) is not list or all(type(word) is str for word in words),
    ),
    "token_pattern": (
        "characters, or sets of them, of which only the last repeats",
        lambda one: one is None or (_LINEAR.fullmatch(one) and re.compile(one)),
    ),
    **dict.fromkeys(
        (
            *("drop", "func", "inverse_func", "max_categories", "memory", "min_frequency"),
            *("preprocessor", "tokenizer"),
        ),
        ("None", lambda value: value is None),
    ),
}


def check_parameter(owner: str, name: str, value: Any) -> None:
    """Raise ValueError for a parameter that might run code, read files, or take for ever."""
    if name in _MAY_BE:
        what, test = _MAY_BE[name]
        if not test(value):
            raise ValueError(f"{owner}: {name} must be {what}. Got {value!r}.")


def _numbers_words(words: Any, require: Any) -> bool:
    if not isinstance(words, dict) or not all(isinstance(word, str) for word in words):
        return False
    return sorted(words.values()) == list(range(len(words))) and require("words", len(words))


class _Steps(Attribute):
    """Named parts of a composite, each with `method`; the last one with `last`."""

    def __init__(self, method: str, last: str, length: int = 2) -> None:
        self.method, self.last, self.length = method, last, length

    def check(self, value: Any, context: Context) -> None:
        """Raise MisfitError if a value does not fit the declaration."""
        for i, one in enumerate(value):
            method = self.last if i == len(value) - 1 else self.method
            if type(one) is not tuple or len(one) != self.length or type(one[0]) is not str:
                raise context.misfit("named parts", value)
            if one[1] not in ("passthrough", "drop") and not hasattr(one[1], method):
                raise context.misfit(f"parts with {method}", one[1])
            check_attributes(
                one[1], context.where, checked=context.checked, schemas=context.schemas
            )


class _OneHotWidths(Attribute):
    """The number of columns of each feature."""

    def check(self, value: Any, context: Context) -> None:
        """Raise MisfitError if a value does not fit the declaration."""
        if value != [len(one) for one in context.owner.categories_]:
            raise context.misfit("a column for each category", value)


def _n_scores(model: Any) -> int | str:
    return 1 if len(model.classes_) == 2 else "classes"


_words = Tested("numbers of words from 0", _numbers_words)
_width = Number("int", "features", optional="missing")
_scaler = {
    "n_features_in_": _width,
    "scale_": Array("float", "features", optional=lambda one: not getattr(one, "with_std", True)),
    "mean_": Array("float", "features", optional=lambda one: not getattr(one, "with_mean", False)),
    "min_": Array("float", "features", optional=lambda one: not hasattr(one, "feature_range")),
}
_linear = {
    "n_features_in_": _width,
    "classes_": Array("any", "classes", optional=True),
    "coef_": Array("float", _n_scores, "features"),
    "intercept_": Array("float", _n_scores),
}
#: What sparse arithmetic does not compare itself: a factor for a column that is not there would be
#: read from beyond its array.
SCHEMAS: dict[str, Mapping[str, Attribute]] = {
    "ColumnTransformer": {"transformers_": _Steps("transform", "transform", 3)},
    "CountVectorizer": {"vocabulary_": _words},
    "DictVectorizer": {"vocabulary_": _words},
    "FeatureUnion": {"transformer_list": _Steps("transform", "transform")},
    "FrozenEstimator": {"estimator": Estimator("fit")},
    "LogisticRegression": _linear,
    **dict.fromkeys(("MaxAbsScaler", "MinMaxScaler", "StandardScaler"), _scaler),
    "OneHotEncoder": {
        "_infrequent_enabled": Choice(False),
        "_drop_idx_after_grouping": Choice(None),
        "_n_features_outs": _OneHotWidths(),
    },
    "Pipeline": {"steps": _Steps("transform", "fit")},
    "SimpleImputer": {  # statistics of features that were always missing are NaN
        "n_features_in_": _width,
        "statistics_": Array("float32|float64|object", "features"),
        "indicator_": Choice(None),
    },
    "TfidfTransformer": {
        "n_features_in_": _width,
        "idf_": Array("float", "features", optional=lambda one: not one.use_idf),
    },
    "TfidfVectorizer": {
        "vocabulary_": _words,
        "_tfidf": Estimator("transform", features="words"),
    },
    "TruncatedSVD": {"n_features_in_": _width, "components_": Array("float", None, "features")},
}
