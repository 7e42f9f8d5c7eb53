"""The estimators that the contract is tried on: one entry each, small and quick, and data for them.

What can be asked of an estimator (``hasattr``, ``get_params``, the signature of ``fit``) is asked;
an entry holds the rest. All names of parameters that only some estimators have stand here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc import (
    DecompMIPSClassifier,
    ImplicitSoftmaxSGD,
    NGAMEEmbeddingXC,
    OvALinearXC,
    OvALinearXCCV,
    SoftmaxUMax,
)
from sklearn_xc.gradients import MessagePassing

NAN, INF = np.nan, np.inf


@dataclass(frozen=True)
class Entry:
    """An estimator, and what the contract has to know of it.

    Attributes
    ----------
    estimator : type
        The class.
    quick : mapping
        Parameters with which it trains in milliseconds.
    able : mapping
        Parameters, beside the quick ones, with which it learns easy data, in less than a second.
    precise : mapping
        Parameters, beside the quick ones, with which rounding changes scores by less than 1e-5.
    variants : mapping of str to mapping
        Parameters that take code of their own: what must not change a bit is tried on each.
    pieces : mapping of str to int
        Private constants, by dotted name, that have even small work cut up for several threads.
    small : str
        Private constant, by dotted name: what needs fewer bytes does not ask for the machine's.
    refused : mapping of str to list
        Values of parameters that ``fit`` refuses, for each parameter.
    memory : tuple of (mapping, str)
        Parameters that need too much memory, and what the message calls the largest array.
    labels_apart : bool
        Whether each label is a problem of its own: a single column will do, and instances without
        labels are negatives of all; elsewhere they are passed over.
    is_exact : bool
        Whether the order of instances, and a weight in place of repeated rows, change no bit;
        otherwise they change rounding.
    by_search : tuple of str
        Variants guided by an index that files do not hold: a copy goes on with one that is built
        anew, which may find other labels.
    dense_bits : bool
        Whether a dense X has the bits of a sparse one.
    checked : tuple of mapping
        Parameters with which scikit-learn's own checks are run, beside the defaults.
    answers : mapping of str to callable
        Further answers, of a fitted model and X.
    """

    estimator: type
    quick: Mapping[str, Any] = field(default_factory=dict)
    able: Mapping[str, Any] = field(default_factory=dict)
    precise: Mapping[str, Any] = field(default_factory=dict)
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    pieces: Mapping[str, int] = field(default_factory=dict)
    small: str = ""
    refused: Mapping[str, list] = field(default_factory=dict)
    memory: tuple[tuple[Mapping[str, Any], str], ...] = ()
    labels_apart: bool = False
    is_exact: bool = True
    by_search: tuple[str, ...] = ()
    dense_bits: bool = True
    checked: tuple[Mapping[str, Any], ...] = ({},)
    answers: Mapping[str, Callable] = field(default_factory=dict)

    def make(self, **parameters: Any) -> Any:
        """Return a quick estimator; with `able` or `precise` True, with those parameters too."""
        able = self.able if parameters.pop("able", False) else {}
        precise = self.precise if parameters.pop("precise", False) else {}
        return self.estimator(**{**self.quick, **able, **precise, **parameters})

    def has(self, name: str) -> bool:
        """Tell whether the estimator has a method, a parameter, or a `name` that fit takes."""
        made = self.make()
        return hasattr(made, name) or name in signature(made.fit).parameters


def rows_of_labels(n_labels=5, n_features=15):
    """Return features of labels, of which one has none."""
    rng = np.random.default_rng(7)
    Z = sp.random_array((n_labels, n_features), density=0.4, random_state=rng, format="lil")
    Z[1] = 0
    return Z.tocsr()


#: What all estimators refuse, of the parameters that all have.
COMMON = {
    "top_k": [0, -3, True, 2.0, "5", None, 2**70, NAN],
    "n_jobs": [0, True, 1.5, "all", 2**70],
    "max_memory": [0, -1, NAN, INF, "much", "-1GB", "0GB", "", "1e400GB", "inf", True, [1]],
    "verbose": [-1, "a", 0.5],
}
COUNT = [0, -1, 1.5, "few", True, None, 2**63]
RATE = [0, -1.0, NAN, INF, "fast", True, None]
SWITCH = ["yes", 2, None]
SEED = {"random_state": ["x", 1.5]}

OVA = {
    **COMMON,
    "C": [0, -1.5, NAN, INF, True, "1"],
    "loss": ["hinge", None, 3],
    "init": ["random", object, np.zeros((3, 2)), np.zeros(15), [[1, 2], [3]]],
    "tol": [0, NAN, INF, "0.1"],
    "max_iter": COUNT,
    "fit_intercept": SWITCH,
    "regularize_intercept": SWITCH,
    "positive_weight": [0, -1.0, NAN, INF, "balanced", True, np.zeros(5), np.ones(4), ["a"] * 5],
    "negative_weight": [0, -1.0, NAN, INF, "propensity", True, np.zeros(5), np.ones(4)],
    "prune": [-0.1, NAN, INF, "a"],
}
SOFTMAX = {
    **COMMON,
    **SEED,
    "alpha": [-0.1, NAN, INF, "a", True],
    "n_negatives": COUNT,
    "n_hard_negatives": [-1, 1.0, "few", True],
    "learning_rate": [0, -1.0, NAN, INF, "fast", True],
    "decay": [0, 1.1, NAN, "1/n", True],
    "fit_intercept": SWITCH,
    "average": SWITCH,
    "max_iter": COUNT,
    "init": ["msi", 3],
    "u_init": ["exact", 0.0, None],
    "sampling": ["log", None],
    "multilabel": ["last", None],
    "early_stopping": [1.5, "yes"],
    "validation_fraction": [0, 1.0, -0.1, NAN],
    "n_iter_no_change": COUNT,
    "tol": [-1.0, NAN, "a"],
    "warm_start": SWITCH,
}
SMALL = {"max_iter": 3, "learning_rate": 0.1, "random_state": 0}

ENTRIES = {
    "OvALinearXC": Entry(
        OvALinearXC,
        quick={"tol": 1e-3, "prune": 0.001},
        precise={"tol": 1e-8},
        variants={
            "logistic": {"loss": "logistic"},
            "huber_hinge, ovap": {"loss": "huber_hinge", "init": "ovap"},
            "label weights": {"positive_weight": "propensity", "negative_weight": 0.5},
            "no intercept": {"fit_intercept": False, "init": "zero"},
        },
        pieces={"sklearn_xc.parallel.blocks.MAX_LANES": 2},
        refused=OVA,
        memory=(({}, "points of a block"),),
        labels_apart=True,
        is_exact=False,
        dense_bits=False,
        answers={
            "anytime": lambda model, X: model.predict_topk_anytime(X, 3, time_budget=INF)[:3],
        },
    ),
    "OvALinearXCCV": Entry(
        OvALinearXCCV,
        quick={"Cs": [0.1, 1.0], "cv": 2, "random_state": 0, "tol": 1e-3, "prune": 0.001},
        precise={"tol": 1e-8},
        # With tol=1.0, the default for dense X, the fit of a sparse X takes no more steps, in which
        # rounding would rise from 1e-16 to 1e-8: check_sample_weight_equivalence compares at 1e-7.
        checked=({"Cs": [0.1, 1.0], "cv": 3, "tol": 1.0, "scoring": "accuracy"},),
        variants={"scoring": {"scoring": "P@3", "loss": "logistic"}},
        pieces={"sklearn_xc.parallel.blocks.MAX_LANES": 2},
        refused={
            **{name: bad for name, bad in OVA.items() if name != "C"},
            **SEED,
            "exhaustive": SWITCH,
            "Cs": [0, "many", True, [1.0, 0.0], [-1.0], [], [[1.0, 2.0]], [NAN], [1.0, INF], 10**12,
                   ["1", "2"]],
            "cv": [0.5, 1, b"x"],
            "scoring": [None, "P@", ["P@1", "P@3"]],
        },
        memory=(({}, "weights on a path of C"),),
        labels_apart=True,
        is_exact=False,
        dense_bits=False,
    ),
    "SoftmaxUMax": Entry(
        SoftmaxUMax,
        quick=SMALL,
        able={"max_iter": 20, "learning_rate": 0.3},
        variants={
            "ridge": {"n_negatives": 1, "alpha": 0.3, "average": True},
            "hard": {"n_negatives": 1, "n_hard_negatives": 2, "alpha": 0.1},
            "auto": {"learning_rate": "auto"},
        },
        checked=({"max_iter": 20, "tol": 0.03},),
        refused={**SOFTMAX, "delta": [0, -1.0, NAN, INF, "a", True]},
        memory=(({}, "the weights, 5 classes"),),
    ),
    "ImplicitSoftmaxSGD": Entry(
        ImplicitSoftmaxSGD,
        quick=SMALL,
        able={"max_iter": 20, "learning_rate": 3.0},
        variants={
            "ridge": {"n_negatives": 3, "alpha": 0.3, "decay": "1/t"},
            "hard": {"n_negatives": 2, "n_hard_negatives": 3},
            "batches": {"n_negatives": 2, "batch_size": 4, "alpha": 0.1},
            "early stopping": {"early_stopping": True, "n_iter_no_change": 2, "average": True},
            "auto": {"learning_rate": "auto"},
        },
        refused={**SOFTMAX, "batch_size": [0, -1, 2.0, "all", True, None]},
        memory=(
            ({}, "the weights, 5 classes"),
            ({"average": True, "max_memory": 5 * 15 * 8 * 2 - 1}, "the weights, 5 classes"),
        ),
        checked=(
            {"max_iter": 20, "tol": 0.03},
            {
                "batch_size": 4, "n_negatives": 3, "early_stopping": True, "max_iter": 10,
                "tol": 10.0,
            },
        ),
    ),
    "DecompMIPSClassifier": Entry(
        DecompMIPSClassifier,
        quick={"embedding_dim": 4, "max_iter": 3, "learning_rate": 0.3, "random_state": 0},
        able={"max_iter": 20, "learning_rate": 1.0, "embedding_dim": 8},
        variants={
            "exact": {"gradient": "exact"},
            "softmax": {"gradient": "exact", "loss": "softmax", "optimizer": "adagrad"},
            "dropout": {"gradient": "exact", "dropout": 0.3},
            "sampled": {"gradient": "sampled", "n_candidates": 3},
            "mips": {"gradient": "mips", "n_candidates": 3, "sampled_epochs": 0.5},
            "rounds": {"gradient": MessagePassing(2, n_blocks=2), "n_candidates": 3},
            "no average": {"average": False, "loss": "triplet", "alpha": 0.5},
        },
        by_search=("mips", "rounds", "no average"),
        pieces={
            "sklearn_xc.gradients.sharing.LEAST_WORK": 1,
            "sklearn_xc.decomposition._model._TOGETHER": 64,
        },
        small="sklearn_xc.decomposition._model._SMALL",
        refused={
            **COMMON,
            **SEED,
            "loss": ["hinge", None],
            "gradient": ["full", None],
            "index": ["hnsw", 3],
            "n_candidates": [0, -1, 1.5, True],
            "embedding_dim": [-1, "yes", 1.5, True],
            "dropout": [1.0, -0.1, NAN, True],
            "optimizer": ["adam", None],
            "learning_rate": [*RATE, "fast"],
            "decay": [0, -1, NAN, 1.1, "1/n"],
            "early_stopping": [1.5, "yes"],
            "validation_fraction": [0, 1.0, -0.1, NAN],
            "n_iter_no_change": COUNT,
            "alpha": [-0.1, NAN, INF, True],
            "batch_size": COUNT,
            "max_iter": COUNT,
            "sampled_epochs": [-0.1, NAN],
            "min_recall": [1.1, -0.1, NAN],
            "fit_intercept": SWITCH,
            "average": SWITCH,
            "warm_start": SWITCH,
        },
        memory=(
            ({}, r"weights, 5 labels x \d x 8 bytes and 15 features"),
            ({"optimizer": "adagrad", "max_memory": 3 * 20 * 4 * 8 - 1}, "weights, 5 labels x"),
        ),
        answers={
            "embed": lambda model, X: model.embed(X),
            "search": lambda model, X: model.predict_topk(X, 3, exact=False),
        },
    ),
    "DecompMIPSClassifier without layer": Entry(
        DecompMIPSClassifier,
        quick={"embedding_dim": None, "max_iter": 3, "learning_rate": 0.3, "random_state": 0},
        able={"max_iter": 20, "learning_rate": 1.0},
        variants={
            "exact": {"gradient": "exact", "optimizer": "adagrad"},
            "mips": {"gradient": "mips", "n_candidates": 3, "sampled_epochs": 0.5},
        },
        by_search=("mips",),
        pieces={
            "sklearn_xc.gradients.sharing.LEAST_WORK": 1,
            "sklearn_xc.decomposition._model._TOGETHER": 64,
        },
        small="sklearn_xc.decomposition._model._SMALL",
        memory=(({}, r"weights, 5 labels x 1\d x"),),
        checked=({"embedding_dim": None, "gradient": "mips", "optimizer": "adagrad"},),
        answers={
            "embed": lambda model, X: model.embed(X),
            "search": lambda model, X: model.predict_topk(X, 3, exact=False),
        },
    ),
    "NGAMEEmbeddingXC": Entry(
        NGAMEEmbeddingXC,
        quick={
            "embedding_dim": 4, "max_iter": 1, "classifier_max_iter": 1, "batch_size": 8,
            "random_state": 0,
        },
        able={
            "embedding_dim": 12, "max_iter": 6, "classifier_max_iter": 4,
            "learning_rate": 0.03, "classifier_learning_rate": 0.03,
        },
        variants={
            "label features": {"label_features": rows_of_labels(), "validation_fraction": 0.3},
            "ance": {"sampler": "ance", "validation_fraction": 0.0},
            "in_batch, features": {"sampler": "in_batch", "label_features": rows_of_labels()},
            "o_sgd": {"sampler": "o_sgd", "fusion": False},
            "tas": {"sampler": "tas"},
            "shards": {"n_shards": 3, "classifier_max_iter": 2},
        },
        pieces={
            "sklearn_xc.embedding._training._LEAST_WORK": 1,
            "sklearn_xc.encoders.bag._TOGETHER": 16,
            "sklearn_xc.embedding._ranking.TOGETHER": 16,
        },
        small="sklearn_xc.embedding._memory._LITTLE",
        refused={
            **COMMON,
            **SEED,
            "encoder": ["lstm", 7],
            "label_features": [rows_of_labels(4), rows_of_labels(5, 14), rows_of_labels() * NAN],
            "label_vectorizer": [],
            "embedding_dim": [0, 8.0, True, 10**30],
            "sampler": ["random", None],
            "margin": [-0.1, 2.1, NAN, True],
            "classifier_margin": [-0.1, 2.1, NAN, True],
            "radius": [0, -1.0, NAN, INF, True],
            "batch_size": [1, 32.0, "all", True, None],
            "index": ["hnsw", 3],
            "max_iter": [-1, "few", 1.5, True],
            "classifier_max_iter": [-1, "few", 1.5, True],
            "n_shards": COUNT,
            "learning_rate": RATE,
            "classifier_learning_rate": RATE,
            "n_candidates": [*COUNT, 2**62],
            "fusion": ["tree", 2],
            "fusion_weight": [-0.1, 1e31, NAN, True],
            "validation_fraction": [1.0, -0.1, NAN, True],
        },
        memory=(
            ({}, "features of the instances"),
            ({"embedding_dim": 500, "max_memory": "1MB"}, "residual block"),
        ),
        answers={
            "embed": lambda model, X: model.embed(X),
            "embedding": lambda model, X: model.predict_topk(X, 3, component="embedding"),
            "classifier": lambda model, X: model.predict_topk(X, 3, component="classifier"),
        },
    ),
}  # fmt: skip
#: All entries that have variants, and without: (name, variant).
VARIANTS = [(name, variant) for name, entry in ENTRIES.items() for variant in ["", *entry.variants]]
#: Functions without arguments that make a quick estimator.
ESTIMATORS = {name: entry.make for name, entry in ENTRIES.items()}


def of_variant(name, variant, **parameters):
    """Return a quick estimator with the parameters of a variant, "" for none."""
    own = ENTRIES[name].variants[variant] if variant else {}
    return ENTRIES[name].make(**{**own, **parameters})


def having(attribute):
    """Return the names of estimators that have a method, a parameter or an argument of fit."""
    return [name for name, entry in ENTRIES.items() if entry.has(attribute)]


def made(n_labels, seed):
    """Return X (60, 15) and Y (60, n_labels), sparse; every row and label has a positive."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((60, 15), density=0.3, random_state=rng, format="csr")
    Y = sp.random_array((60, n_labels), density=0.2, random_state=rng, format="csr")
    Y.data[:] = 1
    Y = Y.tolil()
    Y[np.arange(60), np.arange(60) % n_labels] = 1
    return X, Y.tocsr()


def awkward(dtype=np.float64):
    """Return X (60, 15) and Y (60, 5), sparse, with unpleasant rows and columns.

    Row 3 has no feature and rows 7 and 8 are equal, as are their labels; row 5 has no label; label
    4 is on almost all rows, and labels 0 and 2 are on the same ones. Values are of both signs.
    """
    X, Y = (part.toarray() for part in made(5, 3))
    X = np.where(X != 0, X - 0.4, 0)
    X[3], Y[:, 4] = 0, 1
    Y[:, 2] = Y[:, 0]
    Y[5] = 0
    X[8], Y[8] = X[7], Y[7]
    return sp.csr_array(X.astype(dtype)), sp.csr_array(Y)


def easy(n_classes=4):
    """Return X (60, 15), sparse, and classes as positions: features 0, 1... tell them."""
    X, _ = made(5, 1)
    places = np.arange(60) % n_classes
    X = X.toarray() * 0.3
    X[:, :n_classes] = np.eye(n_classes)[places] * 2
    return sp.csr_array(X), places
