"""Values of estimators as JSON and named arrays, and back; the classes that a folder may name.

Numbers, texts, lists and None are themselves. Any other value is an object whose first key says
what it is: {"tuple": [...]}, {"array": "coef_"}, {"object": "OvALinearXC", "state": {...}}. Classes
are found by name in a list, so that a file cannot have anything imported or called.

A class may have its own form in a folder: ``_folder_state()`` returns its attributes, and the class
method ``_from_folder_state(state)`` makes an object of them.
"""

import importlib
import inspect
import math
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

from sklearn_xc._input.sklearn_private import validate_parameter_constraints
from sklearn_xc._state.sklearn_parts import CLASSES, NOT_SAVED, check_parameter
from sklearn_xc.exceptions import SavedModelError

#: Names of classes by the module that they are imported from.
_LISTED = {
    "sklearn_xc": "AutoXC DecompMIPSClassifier DecompMIPSSkipGram ImplicitSoftmaxSGD "
    "LabelBinarizerXC LabelHierarchy NGAMEEmbeddingXC OvALinearXC OvALinearXCCV SoftmaxUMax "
    "StackingXC TextClassifierXC ThresholdTuner TopKCalibrator",
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
    "sklearn_xc._input.data": "CsrRows DenseRows LabelFrequencies",
    "sklearn_xc._labels.features": "LabelFeatures",
    "sklearn_xc._input.texts_with_features": "TextsWithFeatures",
    "sklearn_xc.ensemble.pair_map": "PairMap RankMap Spline",
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
    **CLASSES,
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
#: Dtypes of arrays, by their names in safetensors files.
DTYPES = {
    name: np.dtype(dtype)
    for name, dtype in (
        *(("F64", "<f8"), ("F32", "<f4"), ("F16", "<f2"), ("BOOL", "?")),
        *(("I64", "<i8"), ("I32", "<i4"), ("I16", "<i2"), ("I8", "i1")),
        *(("U64", "<u8"), ("U32", "<u4"), ("U16", "<u2"), ("U8", "u1")),
    )
}
_DTYPES_BY_STR = {dtype.str: dtype for dtype in DTYPES.values()}
_ADVICE = (
    "A saved model holds numbers, texts, arrays, and public parts of sklearn_xc and scikit-learn, "
    "so that to load it runs no code; joblib.dump holds anything."
)
_DTYPE = re.compile(r"[<>|]([biuf][1248]|U\d{1,5}|O)")
#: Items of an array of objects.
_PLAIN = bool | int | float | str | np.generic | None
#: Limit on the length of the path to a value, in characters.
_MAX_PATH = 500
#: Limit on objects within each other: `repr` visits all of them twice at each depth.
_MAX_DEPTH = 10
#: Above the largest code point.
_N_CODE_POINTS = 0x110000


def __getattr__(name: str) -> Any:
    """Return `SKOPS_TRUSTED_TYPES`, which needs all classes: those of ours, and of their values."""
    if name != "SKOPS_TRUSTED_TYPES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    ours = [class_named(one) for one, where in MODULES.items() if where.startswith("sklearn_xc")]
    kinds = [kind for kind in (*ours, *TYPES.values(), np.dtype, Bunch) if kind is not None]
    return tuple(f"{kind.__module__}.{kind.__name__}" for kind in kinds)


def name_of(kind: type) -> str | None:
    """Return the name by which a file may name a class, or None if there is none."""
    return kind.__name__ if class_named(kind.__name__) is kind else None


def class_named(name: Any) -> type | None:
    """Return the class of a name, or None if no file may name it."""
    module = MODULES.get(name) if isinstance(name, str) else None
    return None if module is None else getattr(importlib.import_module(module), name)


def _defaults(kind: type) -> dict[str, Any]:
    """Return the parameters of a class, with their defaults; none for a record."""
    if not hasattr(kind, "get_params") and hasattr(kind, "_schema"):
        return {}
    parameters = inspect.signature(kind).parameters.items()
    return {name: one.default for name, one in parameters if name not in ("args", "kwargs")}


def check_state(kind: type, state: Mapping[str, Any]) -> None:
    """Raise a ValueError for attributes that an object of a class may not have.

    All parameters of the constructor must be there, with values that ``fit`` would accept, and no
    attribute may take the place of a method. Records have no parameters.
    """
    names = {*_defaults(kind)}
    missing = sorted(names - {*state})
    if missing:
        raise ValueError(f"{kind.__name__}: parameters {missing} are missing.")
    for name in state:
        if name.startswith("__") or callable(getattr(kind, name, None)):
            raise ValueError(f"{kind.__name__}: {name} is no attribute that a model may hold.")
    for name in sorted(names):
        constraints = getattr(kind, "_parameter_constraints", {})
        validate_parameter_constraints(constraints, {name: state[name]}, kind.__name__)
        if kind.__module__.startswith("sklearn."):
            check_parameter(kind.__name__, name, state[name])


class Writer:
    """Turns values into JSON.

    Parameters
    ----------
    compact : bool, default=False
        Whether one-vs-all weights are made compact.

    Attributes
    ----------
    arrays : dict of str to ndarray
        Arrays named in the JSON; the same array has one name.
    n_compact : int
        Number of compact weights.
    """

    def __init__(self, *, compact: bool = False) -> None:
        self._compact, self.n_compact = compact, 0
        self._depth = 0
        self.arrays: dict[str, np.ndarray] = {}
        self._names: dict[int, tuple[str, Any]] = {}

    def json_of(self, value: Any, where: str) -> Any:
        """Return the JSON of a value; raise a TypeError for what cannot be saved."""
        if len(where) > _MAX_PATH:
            raise TypeError(f"{where[:60]} is within itself, or too deep. {_ADVICE}")
        kind = type(value)
        if value is None or kind in (bool, int):
            return value
        if isinstance(value, str):
            return str.__str__(value)  # of a subclass, such as an enumeration, the text
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.generic) and np.dtype(kind) in DTYPES.values():
            return {"scalar": value.dtype.str, "value": self.json_of(value.item(), where)}
        if isinstance(value, np.dtype) and _DTYPE.fullmatch(value.str):
            return {"dtype": value.str}
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        if kind is list or kind.__name__ == "_RemainderColsList":
            return self._items(value, where)
        if kind is tuple:
            return {"tuple": self._items(value, where)}
        if kind is slice:
            return {"slice": self._items((value.start, value.stop, value.step), where)}
        if kind in (dict, Bunch) and all(type(key) is str for key in value):
            return {kind.__name__.lower(): self._state(value, where)}
        if kind is dict:
            return {"pairs": [self._items(pair, where) for pair in value.items()]}
        if isinstance(value, type) and TYPES.get(value.__name__) is value:
            return {"type": value.__name__}
        if sp.issparse(value) and TYPES.get(kind.__name__) is kind:
            arrays = [value.data, value.indices, value.indptr]
            return {
                "sparse": kind.__name__,
                "shape": [int(n) for n in value.shape],
                "arrays": self._items(arrays, where),
            }
        if kind in (np.ndarray, np.memmap):
            return self._array(value, where)
        return self._object(value, where)

    def _items(self, values: Any, where: str) -> list[Any]:
        return [self.json_of(value, f"{where}.{i}") for i, value in enumerate(values)]

    def _state(self, values: dict[str, Any], where: str) -> dict[str, Any]:
        return {
            key: self.json_of(value, f"{where}.{key}".strip(".")) for key, value in values.items()
        }

    def _array(self, value: np.ndarray, where: str) -> Any:
        if value.dtype.hasobject and value.dtype.names is None:
            items = value.ravel().tolist()
            if not all(isinstance(one, _PLAIN) for one in items):
                raise TypeError(f"{where} is an array of objects, not saved. {_ADVICE}")
            return {"objects": self._items(items, where), "shape": list(value.shape)}
        array = np.asarray(value, value.dtype.newbyteorder("="))
        node: dict[str, Any] = {}
        if array.dtype.kind == "U":
            array = np.asarray(array, array.dtype if array.itemsize else "<U1", order="C")
            node = {"width": array.itemsize // 4}
            array = array[..., None].view(np.uint32)
        elif array.flags.f_contiguous and not array.flags.c_contiguous:
            array, node = array.T, {"transposed": True}
        if array.dtype not in DTYPES.values():
            raise TypeError(f"{where} is an array of {value.dtype}, not saved. {_ADVICE}")
        key = id(value)
        if key not in self._names:
            name = where
            while name in self.arrays:
                name += "'"
            self._names[key] = name, value
            self.arrays[name] = np.ascontiguousarray(array) if array.ndim else array
        return {"array": self._names[key][0], **node}

    def _object(self, value: Any, where: str) -> Any:
        if self._compact and type(value).__name__ == "LabelWeights":
            value = value.compact()
        self.n_compact += type(value).__name__ == "CompactWeights"
        kind = type(value)
        name = name_of(kind)
        if name is None:
            what = value.__qualname__ if isinstance(value, type) else kind.__qualname__
            raise TypeError(
                f"{where or 'model'} is a {what} of {kind.__module__}, which cannot be saved. "
                f"{_ADVICE}"
            )
        if hasattr(value, "_folder_state"):
            state = value._folder_state()
        else:
            state = value._asdict() if isinstance(value, tuple) else value.__getstate__() or {}
        state = {key: one for key, one in state.items() if key not in NOT_SAVED}
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise TypeError(f"{where} is within itself, or within {_MAX_DEPTH} objects. {_ADVICE}")
        made = {"object": name, "state": self._state(state, where)}
        self._depth -= 1
        try:
            check_state(kind, state)
        except (ValueError, TypeError) as error:
            raise TypeError(f"{where or 'model'} cannot be saved. {error} {_ADVICE}") from error
        return made


class Reader:
    """Turns JSON into values.

    Parameters
    ----------
    arrays : dict of str to ndarray

    Attributes
    ----------
    objects : list of object
        Those that were made, each after the objects within it.
    """

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.objects: list[Any] = []
        self._arrays = arrays
        self._depth = 0

    def value_of(self, node: Any, where: str = "") -> Any:
        """Return the value of a node; raise a SavedModelError if it has none."""
        try:
            return self._value_of(node, where)
        except (SavedModelError, MemoryError):
            raise
        except Exception as error:
            raise SavedModelError(
                f"meta.json: the value of {where or 'the model'} makes no sense "
                f"({type(error).__name__}: {error})."
            ) from error

    def _value_of(self, node: Any, where: str) -> Any:
        if type(node) is list:
            return [self.value_of(one, f"{where}.{i}") for i, one in enumerate(node)]
        if type(node) is not dict:
            return node
        kind, content = next(iter(node.items()))
        match kind:
            case "float":
                return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[content]
            case "scalar":
                return _DTYPES_BY_STR[content].type(self.value_of(node["value"], where))
            case "dtype":
                return np.dtype(_DTYPE.fullmatch(content)[0])  # type: ignore[index]
            case "type":
                return TYPES[content]
            case "tuple":
                return tuple(self.value_of(content, where))
            case "slice":
                return slice(*self.value_of(content, where))
            case "dict":
                return self._state(content, where)
            case "bunch":
                return Bunch(**self._state(content, where))
            case "pairs":
                return dict(self.value_of(content, where))
            case "objects":
                items = np.empty(len(content), object)
                items[:] = self.value_of(content, where)
                if not all(isinstance(one, _PLAIN) for one in items):
                    raise ValueError("it holds values that are no numbers and no texts")
                return items.reshape(node["shape"])
            case "array":
                return self._array(node)
            case "sparse":
                return self._sparse(node, where)
            case "object":
                return self._object(content, node["state"], where)
        raise ValueError(f"there is no kind {kind!r}")

    def _state(self, nodes: dict[str, Any], where: str) -> dict[str, Any]:
        return {key: self.value_of(one, f"{where}.{key}".strip(".")) for key, one in nodes.items()}

    def _array(self, node: dict[str, Any]) -> np.ndarray:
        array = self._arrays[node["array"]]
        width = node.get("width")
        if width is None:
            return array.T if node.get("transposed") else array
        if array.dtype != np.uint32 or array.shape[-1] != width or width < 1:
            raise ValueError("it holds no texts")
        if array.max(initial=0) >= _N_CODE_POINTS:
            raise ValueError("it holds no code points")
        return array.view(f"<U{width}").reshape(array.shape[:-1])

    def _sparse(self, node: dict[str, Any], where: str) -> Any:
        data, indices, indptr = self.value_of(node["arrays"], where)
        matrix = TYPES[node["sparse"]](tuple(node["shape"]), dtype=data.dtype)
        matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
        matrix.check_format(full_check=True)
        matrix.indices, matrix.indptr = indices, indptr  # the check may have changed their dtypes
        return matrix

    def _object(self, name: Any, nodes: dict[str, Any], where: str) -> Any:
        kind = class_named(name)
        if kind is None:
            raise SavedModelError(
                f"meta.json: {where or 'the model'} is of the class {name!r}, which a saved model "
                "cannot hold. The file is damaged, or of a newer version."
            )
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ValueError("objects are too deep within each other")
        state = self._state(nodes, where)
        self._depth -= 1
        if hasattr(kind, "_parameter_constraints"):  # what it has got since is at its default
            later = {k: v for k, v in _defaults(kind).items() if v is not inspect.Parameter.empty}
            state = later | state
        check_state(kind, state)
        made: Any
        if hasattr(kind, "_from_folder_state"):
            made = kind._from_folder_state(state)  # type: ignore[attr-defined]
        elif issubclass(kind, tuple):
            made = kind(**state)
        else:
            made = object.__new__(kind)
            getattr(made, "__setstate__", vars(made).update)(state)
        self.objects.append(made)
        return made
