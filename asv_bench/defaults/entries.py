"""The systems of the experiment ``defaults``, and the settings tried beside their defaults."""

import importlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from asv_bench.common.measure import cpu_seconds, quietly, watch
from asv_bench.common.sets import DataSet
from asv_bench.peers import K, Outcome
from sklearn_xc import (
    AutoXC,
    DecompMIPSClassifier,
    ImplicitSoftmaxSGD,
    LabelFeatures,
    NGAMEEmbeddingXC,
    OvALinearXC,
    OvALinearXCCV,
    SoftmaxUMax,
    StackingXC,
    TextClassifierXC,
)

Parameters = Mapping[str, Any]


class Entry(NamedTuple):
    """A system.

    Attributes
    ----------
    title : str
        Its name in tables.
    make : callable or None
        Makes the estimator for a set, with some parameters; None for a peer.
    settings : tuple of mapping
        Settings that are compared with the defaults.
    largest : int
        Most training rows.
    """

    title: str
    make: Callable[[DataSet, Parameters], Any] | None = None
    settings: tuple[Parameters, ...] = ()
    largest: int = 10**9

    def run(self, key: str, known: DataSet, parameters: Parameters, n_jobs: int) -> Outcome:
        """Train on a set whose labels all have a training row, and rank the test rows."""
        if self.make is None:
            return importlib.import_module(f"asv_bench.peers.{key}").run(known, n_jobs)
        texts = known.texts or ([], [], [])
        X, X_test, y = known.X_train, known.X_test, known.target
        if key == "text":
            X, X_test = texts[0], texts[1]
            ends = zip(y.indptr[:-1], y.indptr[1:], strict=True)
            y = [[f"{label:09}" for label in y.indices[a:b]] for a, b in ends]
        some = slice(min(200, known.X_train.shape[0]))
        model = self.make(known, parameters)
        if "n_jobs" in model.get_params():
            model.set_params(n_jobs=n_jobs)
        with suppress(ValueError):  # too few rows; otherwise kernels are compiled, or read
            quietly(self.make(known, parameters).fit, X[some], y[some])
        _, usage = quietly(watch, model.fit, X, y)
        model.predict_topk(X_test[:1], K)
        (topk, _), seconds = cpu_seconds(model.predict_topk, X_test, K)
        classes = np.asarray(model.classes_).astype(np.int64)
        topk = np.where(topk >= 0, classes[topk], -1)
        return Outcome(usage, topk, 1000 * seconds / len(topk))


def _plain(estimator: Any, **fixed: Any) -> Callable[[DataSet, Parameters], Any]:
    def make(known: DataSet, parameters: Parameters) -> Any:
        model = estimator(**{**fixed, **parameters})
        seeded = {"random_state": 0} if "random_state" in model.get_params() else {}
        return model.set_params(n_jobs=1, **seeded)

    return make


def _ngame(known: DataSet, parameters: Parameters) -> Any:
    n_labels = known.Y_train.shape[1]
    features = None if known.Z is None else LabelFeatures(known.Z, classes=np.arange(n_labels))
    return NGAMEEmbeddingXC(label_features=features, n_jobs=1, random_state=0, **parameters)


_MEMBERS: dict[str, Callable[[DataSet, Parameters], Any]] = {
    "ova": _plain(OvALinearXC),
    "implicit": _plain(ImplicitSoftmaxSGD),
    "umax": _plain(SoftmaxUMax),
    "decomp": _plain(DecompMIPSClassifier),
    "ngame": _ngame,
}


def _auto(known: DataSet, parameters: Parameters) -> Any:
    model = _ngame(known, {})
    given = {name: getattr(model, name) for name in ("label_features", "n_jobs", "random_state")}
    return AutoXC(**given, **parameters)


def _stack(*names: str) -> Callable[[DataSet, Parameters], Any]:
    def make(known: DataSet, parameters: Parameters) -> Any:
        members = [(name, _MEMBERS[name](known, {})) for name in names]
        return StackingXC(members, random_state=0, **parameters)

    return make


def _each(name: str, *values: Any) -> tuple[Parameters, ...]:
    return tuple({name: value} for value in values)


_PROPENSITY = ({"objective": "propensity"},)

ENTRIES: dict[str, Entry] = {
    "ova": Entry("OvALinearXC", _MEMBERS["ova"], _each("C", 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)),
    "ova-logistic": Entry(
        "OvALinearXC, logistic",
        _plain(OvALinearXC, loss="logistic"),
        _each("C", 0.5, 1.0, 2.0, 4.0, 8.0, 32.0, 64.0),
    ),
    "ova-c1": Entry("OvALinearXC, C=1", _plain(OvALinearXC, C=1.0), _each("prune", 0.0, 0.1, 0.3)),
    "ova-cv": Entry("OvALinearXCCV", _plain(OvALinearXCCV)),
    "umax": Entry(
        "SoftmaxUMax",
        _MEMBERS["umax"],
        _each("n_hard_negatives", 0, 5) + _each("learning_rate", 0.1, 1.0, 10.0),
    ),
    "implicit": Entry(
        "ImplicitSoftmaxSGD",
        _MEMBERS["implicit"],
        _each("n_hard_negatives", 0, 5) + _each("learning_rate", 1.0, 10.0, 100.0),
    ),
    "decomp": Entry(
        "DecompMIPSClassifier",
        _MEMBERS["decomp"],
        (
            *_each("learning_rate", 0.3, 1.0),
            {"max_iter": 20},
            {"learning_rate": 1.0, "max_iter": 20},
        ),
    ),
    "ngame": Entry(
        "NGAMEEmbeddingXC",
        _MEMBERS["ngame"],
        (
            *_each("fusion", "tree", "sum"),
            *_each("max_iter", 5, 20),
            {"classifier_max_iter": 0},
            {"embedding_dim": 128},
        ),
        largest=100_000,
    ),
    "ova+ngame": Entry("StackingXC (ova, ngame)", _stack("ova", "ngame"), _PROPENSITY, 100_000),
    "ova+implicit": Entry(
        "StackingXC (ova, implicit)", _stack("ova", "implicit"), _PROPENSITY, 100_000
    ),
    "auto": Entry("AutoXC", _auto),
    "text": Entry("TextClassifierXC", lambda known, parameters: TextClassifierXC(**parameters)),
    "omikuji": Entry("omikuji, 3 trees"),
    "napkinxc": Entry("napkinXC PLT"),
    "pecos": Entry("PECOS XR-Linear"),
}


def named(parameters: Parameters) -> str:
    """Return a short name of some parameters."""
    return ", ".join(f"{name}={value!r}" for name, value in parameters.items()) or "default"
