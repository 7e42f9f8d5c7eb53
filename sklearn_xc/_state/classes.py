"""The classes that a saved model may hold, and what their parameters may be.

Objects are made without calling their constructors. A name that is not listed here is refused, so
that a file cannot have anything imported or called.
"""

import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.sklearn_private import validate_parameter_constraints
from sklearn_xc._state.schema import (
    OF_OTHERS,
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
_LISTED = {
    "sklearn_xc": "DecompMIPSClassifier DecompMIPSSkipGram ImplicitSoftmaxSGD LabelBinarizerXC "
    "LabelHierarchy NGAMEEmbeddingXC OvALinearXC OvALinearXCCV SoftmaxUMax StackingXC "
    "TextClassifierXC ThresholdTuner TopKCalibrator",
    "sklearn_xc.decomposition.gradients": "ExactGradient MessagePassing SampledGradient "
    "SearchedGradient",
    "sklearn_xc.decomposition.losses": "CrossEntropy MaxMargin Triplet",
    "sklearn_xc.embedding.samplers": "AnceSampler InBatchSampler NgameSampler OrderedSgdSampler "
    "TasSampler",
    "sklearn_xc.model_selection": "RareLabelSplit",
    "sklearn_xc.one_vs_all.losses": "HuberHinge Logistic SquaredHinge",
    "sklearn_xc.one_vs_all.starts": "Bias Given MeanSeparating OneVsAllPrimal "
    "OneVsAllPrimalPlusPlus Zero",
    "sklearn_xc.search": "ExactIndex FaissIndex ProductIndex SphericalIndex",
    # Records: parts of fitted estimators.
    "sklearn_xc._input.data": "LabelFrequencies",
    "sklearn_xc._input.data": "CsrRows DenseRows",
    "sklearn_xc._labels.features": "LabelFeatures",
    "sklearn_xc._input.texts_with_features": "TextsWithFeatures",
    "sklearn_xc.ensemble.calibration": "PairMap RankMap Spline",
    "sklearn_xc.embedding._fusion": "BoostedFusion MixtureLevels TreeFusion Trees",
    "sklearn_xc.embedding._examples": "LabelMeans SubstituteNorms",
    "sklearn_xc.embedding._ranking": "KnownFeatures",
    "sklearn_xc.embedding._inputs": "TextRows",
    "sklearn_xc.embedding.encoders.bag": "BagOfEmbeddings Block",
    "sklearn_xc.embedding.encoders.transformer.encoder": "TransformerEncoder",
    "sklearn_xc.embedding.encoders.transformer.network": "Network",
    "sklearn_xc._training.adam": "Adam LazyAdam",
    "sklearn_xc.ensemble.stacking.learner": "BoostedTrees Mixture ScaledLogistic",
    "sklearn_xc._weights.by_feature": "WeightsByFeature",
    "sklearn_xc._weights.compact": "CompactWeights",
    "sklearn_xc._weights.label_weights": "LabelWeights",
    "sklearn_xc._weights.tensors": "Tensors",
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
MODULES = {name: module for module, names in _LISTED.items() for name in names.split()}
#: Classes that are values themselves: dtypes of vectorizers, containers of y.
TYPES: dict[str, type] = {"int": int, "float": float} | {
    kind.__name__: kind
    for kind in (
        *(np.int32, np.int64, np.float32, np.float64),
        *(sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix),
    )
}
#: Left out: an address in the process that wrote it.
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


def _numbers_words(words: Any, require: Any) -> bool:
    if not isinstance(words, dict) or not all(isinstance(word, str) for word in words):
        return False
    return sorted(words.values()) == list(range(len(words))) and require("words", len(words))


class _Steps(Attribute):
    """Named parts of a composite, each with `method`; the last one with `last`."""

    def __init__(self, method: str, last: str, length: int = 2) -> None:
        self.method, self.last, self.length = method, last, length

    def check(self, value: Any, context: Context) -> None:
        """See `Attribute`."""
        for i, one in enumerate(value):
            method = self.last if i == len(value) - 1 else self.method
            if type(one) is not tuple or len(one) != self.length or type(one[0]) is not str:
                raise context.misfit("named parts", value)
            if one[1] not in ("passthrough", "drop") and not hasattr(one[1], method):
                raise context.misfit(f"parts with {method}", one[1])
            check_attributes(one[1], context.where, checked=context.checked)


class _OneHotWidths(Attribute):
    """The number of columns of each feature."""

    def check(self, value: Any, context: Context) -> None:
        """See `Attribute`."""
        if value != [len(one) for one in context.owner.categories_]:
            raise context.misfit("a column for each category", value)


def _n_scores(model: Any) -> int | str:
    return 1 if len(model.classes_) == 2 else "classes"


_words = Tested("numbers of words from 0", _numbers_words)
_width = Number("int", "features", optional=True)
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
OF_OTHERS |= {
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


def name_of(kind: type) -> str | None:
    """Return the name by which a file may name a class, or None if there is none."""
    return kind.__name__ if class_named(kind.__name__) is kind else None


def class_named(name: Any) -> type | None:
    """Return the class of a name, or None if no file may name it."""
    module = MODULES.get(name) if isinstance(name, str) else None
    return None if module is None else getattr(importlib.import_module(module), name)


def check_state(kind: type, state: Mapping[str, Any]) -> None:
    """Raise a ValueError for attributes that an object of a class may not have.

    All parameters of the constructor must be there, with values that ``fit`` would accept, and no
    attribute may take the place of a method. Records have no parameters.
    """
    names: set[str] = set()
    if hasattr(kind, "get_params") or not hasattr(kind, "_schema"):
        names = {*inspect.signature(kind).parameters} - {"args", "kwargs"}
    missing = sorted(names - {*state})
    if missing:
        raise ValueError(f"{kind.__name__}: parameters {missing} are missing.")
    for name in state:
        if name.startswith("__") or callable(getattr(kind, name, None)):
            raise ValueError(f"{kind.__name__}: {name} is no attribute that a model may hold.")
    for name in sorted(names):
        constraints = getattr(kind, "_parameter_constraints", {})
        validate_parameter_constraints(constraints, {name: state[name]}, kind.__name__)
        if kind.__module__.startswith("sklearn.") and name in _MAY_BE:
            what, test = _MAY_BE[name]
            if not test(state[name]):
                raise ValueError(f"{kind.__name__}: {name} must be {what}. Got {state[name]!r}.")
