"""The classes that a saved model may name, and what their parameters and attributes may be.

They are made without a call of their constructors, and given their attributes. A name that is not
known here is refused, so that a file cannot have anything imported or called.
"""

import importlib
import inspect
import re
from collections.abc import Callable, Collection
from typing import Any

import sklearn_xc.storage.scikit_learn  # noqa: F401  declares
from sklearn_xc._declared_state import OF_OTHERS, declarations
from sklearn_xc._sklearn import validate_parameter_constraints

#: Of this package, by the module that they are imported from; records are in ``_plain_state``.
_OURS = {
    "sklearn_xc": "DecompMIPSClassifier DecompMIPSSkipGram ImplicitSoftmaxSGD NGAMEEmbeddingXC "
    "OvALinearXC OvALinearXCCV SoftmaxUMax StackingXC TextClassifierXC ThresholdTuner "
    "TopKCalibrator",
    "sklearn_xc.gradients": "ExactGradient MessagePassing SampledGradient SearchedGradient",
    "sklearn_xc.initialisers": "Bias Given MeanSeparating OneVsAllPrimal OneVsAllPrimalPlusPlus "
    "Zero",
    "sklearn_xc.losses": "CrossEntropy HuberHinge Logistic MaxMargin SquaredHinge Triplet",
    "sklearn_xc.mips": "ExactIndex FaissIndex ProductIndex SphericalIndex",
    "sklearn_xc.model_selection": "RareLabelShuffleSplit RareLabelSplit",
    "sklearn_xc.preprocessing": "LabelBinarizerXC",
    "sklearn_xc.samplers": "AnceSampler InBatchSampler NgameSampler OrderedSgdSampler TasSampler",
}
#: Where each class is imported from.
HOMES = {name: home for home, names in _OURS.items() for name in names.split()}
HOMES |= {name: home for name, (home, _) in OF_OTHERS.items()}
#: Attributes that are left out: an address of the process that wrote it.
NOT_SAVED = ("_stop_words_id",)
#: Of a pattern for tokens: a character or a set of them, and how often.
_ONE = r"(?:\w|\\[wWdDsS]|\[\^?(?:\\[wWdDsS-]|[^][\\^])+\])"
_OFTEN = r"(?:[+*]|\{\d\d?(,\d?\d?)?\})?"
#: Patterns that take time in proportion to a text: only the last character repeats, and the end of
#: a word follows only where nothing is tried twice.
_LINEAR = re.compile(
    rf"(\(\?u\))?((\\b)?{_ONE}{{0,9}}({_ONE}{_OFTEN}|\\w\+\\b)|\\b{_ONE}{{1,9}}{_OFTEN}\\b)"
)
#: What parameters of scikit-learn's may be in a model, whatever else they may be elsewhere: no
#: functions, no files, no folders of pickles, no codecs that import, nothing without end.
_MAY_BE: dict[str, tuple[str, Callable[[Any], bool]]] = {
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
        "characters, or sets of them, of which only the last repeats, so that no text takes it for "
        "ever",
        lambda pattern: (
            pattern is None or (bool(_LINEAR.fullmatch(pattern)) and bool(re.compile(pattern)))
        ),
    ),
    **dict.fromkeys(
        ("memory", "preprocessor", "tokenizer", "transform_input"),
        ("None", lambda value: value is None),
    ),
}


def name_of(kind: type) -> str | None:
    """Return the name by which a file may name a class, or None if there is none."""
    name = f"{HOMES.get(kind.__qualname__)}.{kind.__qualname__}"
    return name if class_named(name) is kind else None


def class_named(name: Any) -> type | None:
    """Return the class of a name, or None if no file may name it."""
    home, _, last = name.rpartition(".") if isinstance(name, str) else ("", "", "")
    known = last in HOMES and HOMES[last] == home
    return getattr(importlib.import_module(home), last, None) if known else None


def parameters_of(kind: type) -> dict[str, Any]:
    """Return the parameters of a class, with their defaults, or ``inspect.Parameter.empty``."""
    known = inspect.signature(kind).parameters
    return {name: one.default for name, one in known.items() if name not in ("args", "kwargs")}


def check_names(kind: type, names: Collection[str]) -> None:
    """Raise a ValueError unless an object has its parameters, and no attributes that it may not.

    Nothing may take the place of a method. What is private must be of a class that declares what
    its attributes are.
    """
    missing = sorted(parameters_of(kind).keys() - set(names))
    if missing:
        raise ValueError(f"{kind.__name__}: parameters {missing} are missing.")
    known = {*parameters_of(kind), *declarations(kind), "_sklearn_version"}
    for name in names:
        fits = name in known or name.endswith("_") or hasattr(kind, "_fits")
        if not fits or callable(getattr(kind, name, None)):
            raise ValueError(f"{kind.__name__}: {name} is no attribute that a model may hold.")


def check_parameter(kind: type, name: str, value: Any) -> None:
    """Raise a ValueError for a parameter that a fit refuses, or that no file may hold."""
    constraints = getattr(kind, "_parameter_constraints", {})
    validate_parameter_constraints(constraints, {name: value}, kind.__name__)
    if kind.__name__ in OF_OTHERS and name in _MAY_BE:
        what, test = _MAY_BE[name]
        if not test(value):
            raise ValueError(f"{kind.__name__}: {name} must be {what}. Got {value!r}.")
