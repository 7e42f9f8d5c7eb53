"""What is measured: estimators with their defaults and a few other settings, stacks, and peers."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import sklearn_xc
from asv_bench.common.sized_sets import SizedSet
from sklearn_xc import (
    DecompMIPSClassifier,
    ImplicitSoftmaxSGD,
    LabelFeatures,
    NGAMEEmbeddingXC,
    OvALinearXC,
    OvALinearXCCV,
    SoftmaxUMax,
)

Parameters = Mapping[str, Any]


class Entry(NamedTuple):
    """An estimator in the tables.

    Attributes
    ----------
    title : str
        Its name.
    make : callable or None
        Makes it for a set, with some parameters; None for a peer.
    settings : tuple of mapping
        What is compared with the defaults, over at most two parameters.
    peer : str or None
        Module of ``asv_bench.peers``.
    largest : int
        Most training rows that it is measured on.
    """

    title: str
    make: Callable[[SizedSet, Parameters], Any] | None = None
    settings: tuple[Parameters, ...] = ()
    peer: str | None = None
    largest: int = 10**9


def _plain(estimator: Any, **fixed: Any) -> Callable[[SizedSet, Parameters], Any]:
    def make(sized: SizedSet, parameters: Parameters) -> Any:
        seeded = {"random_state": 0} if "random_state" in estimator._get_param_names() else {}
        return estimator(**{"n_jobs": 1, **seeded, **fixed, **parameters})

    return make


def _with_label_texts(sized: SizedSet, parameters: Parameters) -> Any:
    Z = sized.Z
    texts = None if Z is None else LabelFeatures(Z, classes=np.arange(Z.shape[0]))
    return NGAMEEmbeddingXC(label_features=texts, n_jobs=1, random_state=0, **parameters)


_MEMBERS: dict[str, Callable[[SizedSet, Parameters], Any]] = {
    "ova": _plain(OvALinearXC),
    "implicit": _plain(ImplicitSoftmaxSGD),
    "umax": _plain(SoftmaxUMax),
    "decomp": _plain(DecompMIPSClassifier),
    "ngame": _with_label_texts,
}


def _stack(*names: str) -> Callable[[SizedSet, Parameters], Any]:
    def make(sized: SizedSet, parameters: Parameters) -> Any:
        members = [(name, _MEMBERS[name](sized, {})) for name in names]
        return sklearn_xc.StackingXC(members, random_state=0, **parameters)

    return make


ENTRIES: dict[str, Entry] = {
    "ova": Entry("OvALinearXC", _MEMBERS["ova"], ({"C": 0.3}, {"C": 1.0}, {"C": 3.0}, {"C": 10.0})),
    "ova-logistic": Entry(
        "OvALinearXC, logistic", _plain(OvALinearXC, loss="logistic"),
        tuple({"C": C} for C in (0.5, 1.0, 2.0, 4.0, 8.0, 32.0, 64.0)),
    ),
    "ova-cv": Entry("OvALinearXCCV", _plain(OvALinearXCCV)),
    "umax": Entry(
        "SoftmaxUMax", _MEMBERS["umax"],
        ({"n_hard_negatives": 0}, {"n_hard_negatives": 5}, {"learning_rate": 0.1},
         {"learning_rate": 1.0}, {"learning_rate": 10.0}),
    ),
    "implicit": Entry(
        "ImplicitSoftmaxSGD", _MEMBERS["implicit"],
        ({"n_hard_negatives": 0}, {"n_hard_negatives": 5}, {"learning_rate": 1.0},
         {"learning_rate": 10.0}, {"learning_rate": 100.0}),
    ),
    "decomp": Entry(
        "DecompMIPSClassifier", _MEMBERS["decomp"],
        ({"learning_rate": 0.3}, {"learning_rate": 1.0}, {"max_iter": 20},
         {"learning_rate": 1.0, "max_iter": 20}),
    ),
    "ngame": Entry(
        "NGAMEEmbeddingXC", _MEMBERS["ngame"],
        ({"fusion": "tree"}, {"fusion": "sum"}, {"max_iter": 5}, {"max_iter": 20},
         {"classifier_max_iter": 0}, {"embedding_dim": 128}), largest=100_000,
    ),
    "ova+ngame": Entry(
        "StackingXC (ova, ngame)", _stack("ova", "ngame"), ({"objective": "propensity"},),
        largest=100_000,
    ),
    "ova+implicit": Entry(
        "StackingXC (ova, implicit)", _stack("ova", "implicit"), ({"objective": "propensity"},),
        largest=100_000,
    ),
    "omikuji": Entry("omikuji, 3 trees", peer="omikuji"),
    "napkinxc": Entry("napkinXC PLT", peer="napkinxc"),
}  # fmt: skip


def named(parameters: Parameters) -> str:
    """Return a short name of some parameters."""
    return ", ".join(f"{name}={value!r}" for name, value in parameters.items()) or "default"
