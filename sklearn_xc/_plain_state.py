"""Fitted state as plain containers, so that a file of a model names no class but estimators.

A model keeps what it has learnt in small records, such as weights with their intercepts. A pickle
that named their classes could not be read once one of them is moved, and formats that ask which
types to trust would ask for each. So they are kept as dictionaries, and only what is listed here is
made of such a dictionary again.
"""

import importlib
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch

#: Key of the dictionary of a record that holds the name of its kind, and that of the rest.
KIND, STATE = "__sklearn_xc_record__", "state"
#: Records of fitted estimators, and the modules where they are. A class that becomes part of a
#: fitted estimator gets a line here.
RECORDS = {
    "Adam": "sklearn_xc.solvers.adam",
    "Average": "sklearn_xc.softmax.training",
    "BagOfEmbeddings": "sklearn_xc.encoders.bag",
    "Block": "sklearn_xc.encoders.bag",
    "BoostedFusion": "sklearn_xc.embedding._boosted_fusion",
    "BoostedTrees": "sklearn_xc.stacking.learner",
    "CompactLabelWeights": "sklearn_xc.weights.label_weights",
    "Confidence": "sklearn_xc.softmax.confidence",
    "Course": "sklearn_xc.decomposition.course",
    "CsrRows": "sklearn_xc._data",
    "DenseRows": "sklearn_xc._data",
    "InstanceSketch": "sklearn_xc.decomposition._passes",
    "KnownFeatures": "sklearn_xc.embedding._ranking",
    "LabelFeatures": "sklearn_xc._label_features",
    "LabelFrequencies": "sklearn_xc._blank_rows",
    "LabelMeans": "sklearn_xc.embedding._label_means",
    "LabelSlice": "sklearn_xc.linear.slices",
    "LabelWeights": "sklearn_xc.weights.label_weights",
    "LazyAdam": "sklearn_xc.solvers.adam",
    "Mixture": "sklearn_xc.stacking.learner",
    "MixtureLevels": "sklearn_xc.embedding._boosted_fusion",
    "Network": "sklearn_xc.encoders.transformer.network",
    "NotSaved": "sklearn_xc.encoders.transformer.pretrained",
    "Normalisers": "sklearn_xc.softmax.pairs",
    "PairMap": "sklearn_xc.calibration.pair_map",
    "Population": "sklearn_xc.solvers.softmax_problem",
    "PruningCost": "sklearn_xc.solvers.pruning",
    "RankMap": "sklearn_xc.calibration.pair_map",
    "SampleScores": "sklearn_xc.solvers.pruning",
    "ScaledLogistic": "sklearn_xc.stacking.learner",
    "Spline": "sklearn_xc.calibration.pair_map",
    "StandIns": "sklearn_xc.embedding._label_means",
    "TemperatureMap": "sklearn_xc.calibration.temperature",
    "Tensors": "sklearn_xc.weights.tensors",
    "TextRows": "sklearn_xc.embedding._texts",
    "TextsWithFeatures": "sklearn_xc._texts_with_features",
    "TransformerEncoder": "sklearn_xc.encoders.transformer.encoder",
    "TreeFusion": "sklearn_xc.embedding._tree_fusion",
    "Trees": "sklearn_xc.embedding._fusion",
}
#: Sparse matrices of states; each is an indptr, indices and data.
_SPARSE = ("csr_array", "csc_array", "csr_matrix", "csc_matrix")


def as_plain(state: Any) -> Any:
    """Return a state whose records are dictionaries; arrays are shared, not copied.

    Parameters
    ----------
    state : object
        Of any depth of dictionaries, lists, tuples and records. What else it holds stays as it is,
        such as estimators, which see to their own state.

    Returns
    -------
    object
        What :func:`from_plain` makes the state of. What stood in two places still is one object.
    """
    return _Flattening().of(state)


def from_plain(state: Any) -> Any:
    """Return the state of which :func:`as_plain` made this.

    Raises
    ------
    ValueError
        For a kind of record that there is not.
    """
    return Restoring().of(state)


class _Walk:
    """Replaces what containers hold; an object that was met before by what it became."""

    def __init__(self) -> None:
        self._done: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        if id(value) not in self._done:
            # The object is kept beside its replacement, or its id might become that of another.
            self._done[id(value)] = value, self.replaced(value)
        return self._done[id(value)][1]

    def replaced(self, value: Any) -> Any:
        """Return what takes the place of a value: here, containers of what takes that of theirs."""
        if type(value) is dict:
            return {key: self.of(held) for key, held in value.items()}
        if type(value) in (list, tuple):
            return type(value)(self.of(held) for held in value)
        return value


class _Flattening(_Walk):
    def replaced(self, value: Any) -> Any:
        kind = type(value)
        if isinstance(value, np.dtype) and value.names is None:
            return _record("dtype", value.str)
        if kind is Bunch:
            return _record("Bunch", self.of(dict(value)))
        if isinstance(value, type):
            known = value.__name__ in _SPARSE and getattr(sp, value.__name__) is value
            return _record("sparse type", value.__name__) if known else value
        name = kind.__name__
        if name in _SPARSE and getattr(sp, name) is kind:
            arrays = {part: getattr(value, part) for part in ("data", "indices", "indptr")}
            return _record(name, {"shape": value.shape, **arrays})
        if RECORDS.get(name) != kind.__module__:
            return super().replaced(value)
        held = tuple(value) if issubclass(kind, tuple) else value.__getstate__()
        return _record(name, self.of(held))


class Restoring(_Walk):
    """Makes records of their dictionaries."""

    def replaced(self, value: Any) -> Any:
        if type(value) is not dict or KIND not in value:
            return super().replaced(value)
        kind, state = value[KIND], self.of(value[STATE])
        if kind == "dtype":
            return np.dtype(state)
        if kind == "Bunch":
            return Bunch(**state)
        if kind == "sparse type" and state in _SPARSE:
            return getattr(sp, state)
        if kind in _SPARSE:
            return _sparse(kind, **state)
        if kind not in RECORDS:
            raise ValueError(
                f"the state holds a record of kind {kind!r}, which sklearn_xc does not know. It is "
                "damaged, or of a newer version."
            )
        made_of = getattr(importlib.import_module(RECORDS[kind]), kind)
        if issubclass(made_of, tuple):
            return made_of(*state)
        made = object.__new__(made_of)
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
        else:
            vars(made).update(state)
        return made


def _record(kind: str, state: Any) -> dict[str, Any]:
    return {KIND: kind, STATE: state}


def _sparse(kind: str, shape: Any, data: Any, indices: Any, indptr: Any) -> Any:
    """Return a sparse matrix of these very arrays: a constructor might change their dtypes."""
    matrix = getattr(sp, kind)(tuple(shape), dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix
