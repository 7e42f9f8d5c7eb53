"""Which classes a saved model may name: public ones, of this package and of scikit-learn.

They are made without a call of their constructors, and given their attributes. A name that is not
known here is refused, so that a file cannot have anything imported or called.
"""

import importlib
from typing import Any

import sklearn_xc

#: Of scikit-learn, those whose fitted state is numbers, texts, arrays and each other.
_SCIKIT_LEARN = {
    "sklearn.compose": ("ColumnTransformer",),
    "sklearn.decomposition": ("TruncatedSVD",),
    "sklearn.feature_extraction": ("DictVectorizer", "FeatureHasher"),
    "sklearn.feature_extraction.text": (
        "CountVectorizer", "HashingVectorizer", "TfidfTransformer", "TfidfVectorizer",
    ),
    "sklearn.feature_selection": ("VarianceThreshold",),
    "sklearn.frozen": ("FrozenEstimator",),
    "sklearn.impute": ("SimpleImputer",),
    "sklearn.linear_model": ("LogisticRegression", "RidgeClassifier"),
    "sklearn.model_selection": ("KFold", "ShuffleSplit", "StratifiedKFold"),
    "sklearn.naive_bayes": ("BernoulliNB", "ComplementNB", "MultinomialNB"),
    "sklearn.pipeline": ("FeatureUnion", "Pipeline"),
    "sklearn.preprocessing": (
        "Binarizer", "LabelBinarizer", "LabelEncoder", "MaxAbsScaler", "MinMaxScaler",
        "MultiLabelBinarizer", "Normalizer", "OneHotEncoder", "StandardScaler",
    ),
    "sklearn.svm": ("LinearSVC",),
}  # fmt: skip
_OURS = "sklearn_xc"


def name_of(kind: type) -> str | None:
    """Return the name by which a file may name a class, or None if there is none."""
    module, name = kind.__module__, kind.__qualname__
    if module == _OURS or module.startswith(f"{_OURS}."):
        for home in (_OURS, ".".join(module.split(".")[:2])):
            if _public(home, name) is kind:
                return f"{home}.{name}"
        return None
    for home, names in _SCIKIT_LEARN.items():
        if name in names and (module == home or module.startswith(f"{home}.")):
            return f"{home}.{name}"
    return None


def class_named(name: Any) -> type | None:
    """Return the class of a name, or None if no file may name it."""
    home, _, last = name.rpartition(".") if isinstance(name, str) else ("", "", "")
    if last in _SCIKIT_LEARN.get(home, ()):
        return getattr(importlib.import_module(home), last, None)
    found = _public(home, last)
    return found if isinstance(found, type) and name_of(found) == name else None


def _public(home: str, name: str) -> Any:
    """Return what is public under a name of the package or of one of its subpackages, or None."""
    if home == _OURS:
        return getattr(sklearn_xc, name) if name in sklearn_xc.__all__ else None
    if home.removeprefix(f"{_OURS}.") not in sklearn_xc.__all__:
        return None
    module = importlib.import_module(home)
    return getattr(module, name, None) if name in getattr(module, "__all__", ()) else None
