"""The estimators that the contract is tried on: one entry each, small and quick.

What can be asked of an estimator (``hasattr``, ``get_params``, the signature of ``fit``) is asked;
an entry holds the rest.
"""

import numpy as np
from entry import Entry, given
from rows_as_texts import HAS_TRANSFORMERS, RowsAsTexts, transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from small_data import awkward, rows_of_labels

from sklearn_xc import (
    DecompMIPSClassifier,
    ImplicitSoftmaxSGD,
    NGAMEEmbeddingXC,
    OvALinearXC,
    OvALinearXCCV,
    SoftmaxUMax,
    StackingXC,
    ThresholdTuner,
    TopKCalibrator,
)
from sklearn_xc.decomposition.gradients import MessagePassing
from sklearn_xc.embedding.samplers import NgameSampler

NAN, INF = np.nan, np.inf


#: What all estimators refuse, of the parameters that all have.
COMMON = {
    "label_names": [3, "abc", ["a"], [["a", "b"]], ["a", None], {"a": 1}],
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
    "numa": [True, None, "yes", 0, [0]],
    "loss": ["hinge", None, 3],
    "init": ["random", object, np.zeros((3, 2)), np.zeros(15), [[1, 2], [3]]],
    "tol": [0, NAN, INF, "0.1"],
    "max_iter": COUNT,
    "fit_intercept": SWITCH,
    "class_weight": [0, NAN, "even", True, {99: 1.0}, {0: "a"}, np.zeros(5), np.ones(4)],
    "prune": [-0.1, NAN, INF, "a"],
    "warm_start": SWITCH,
    "checkpoint_dir": [3, True, ["a"], b"x"],
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
    "max_iter": COUNT,
    "init": ["msi", 3],
    "sampling": ["log", None],
    "early_stopping": [1.5, "yes"],
    "validation_fraction": [0, 1.0, -0.1, NAN],
    "tol": [-1.0, NAN, "a"],
    "warm_start": SWITCH,
}
SMALL = {"max_iter": 3, "learning_rate": 0.1, "random_state": 0}


def members(**of_ova):
    """Return two quick members of a stack."""
    ova = {"tol": 1e-3, "prune": 0.001, **of_ova}
    return [("ova", OvALinearXC(**ova)), ("softmax", ImplicitSoftmaxSGD(**SMALL))]


def prefit_members():
    """Return parameters of a stack of members that are trained on ``awkward`` data."""
    trained = [(name, member.fit(*awkward())) for name, member in members()]
    return {"cv": "prefit", "estimators": trained}


def prefit_estimator():
    """Return parameters of a wrapper around one that is trained on ``awkward`` data."""
    return {"cv": "prefit", "estimator": ova().fit(*awkward())}


def chances_of_pairs(stack):
    """Return what a stack's learner says of pairs with features of many kinds."""
    rng = np.random.default_rng(0)
    pairs = rng.normal(size=(200, len(stack.pair_features_))) * 3
    return [stack.final_estimator_.predict_proba(pairs.astype(np.float32))]


#: Of classifiers around another one, whose names of labels it takes.
WRAPPER = {
    **{name: COMMON[name] for name in ("top_k", "n_jobs", "verbose")},
    **SEED,
    "estimator": [None, "ova", 3, OvALinearXC, KFold()],
    "cv": [0.0, 1.0, 1, 61, 1.5, NAN, "folds", b"x", True, []],
    "n_groups": COUNT,
}


def ova(**parameters):
    """Return a quick estimator to be wrapped."""
    return OvALinearXC(**{"tol": 1e-3, "prune": 0.001, **parameters})


def chances_of_scores(calibrator):
    """Return what a calibrator's map says of labels with scores and frequencies of many kinds."""
    rng = np.random.default_rng(0)
    scores = -np.sort(-rng.normal(size=(50, 4)), axis=1)
    return [calibrator.map_.probabilities(scores, rng.integers(1, 60, (50, 4)))]


def around_another(**further):
    """Return what the contract has to know of a classifier around a quick one."""
    return {
        "needed": {"estimator": ova()},
        "quick": {"cv": 0.3, "random_state": 0},
        "precise": {"estimator": ova(tol=1e-8)},
        "learns_from_unlabelled": True,
        "is_exact": False,
        "folds_of_weighted": True,
        "dense_bits": False,
        "weights": lambda model: [model.estimator_.coef_],
        "lacks": ("coef_", "n_iter_"),
        "naming": lambda names: {"estimator": ova(label_names=names)},
        "many_labels": {"estimator": ova(init="zero")},
        "no_table": {"estimator": ImplicitSoftmaxSGD(**SMALL)},
        "checked": ({"estimator": OvALinearXC(tol=1e-9)},),
        **further,
    }


ENTRIES = {
    "OvALinearXC": Entry(
        OvALinearXC,
        quick={"tol": 1e-3, "prune": 0.001},
        precise={"tol": 1e-8},
        variants={
            "logistic": {"loss": "logistic"},
            "huber_hinge, ovap": {"loss": "huber_hinge", "init": "ovap"},
            "label weights": {"class_weight": "propensity"},
            "no intercept": {"fit_intercept": False, "init": "zero"},
        },
        pieces={"sklearn_xc.one_vs_all.blocks.MAX_LANES": 2},
        refused=OVA,
        memory=(({}, "points of a block"),),
        labels_apart=True,
        learns_from_unlabelled=True,
        many_labels={"init": "zero"},
        no_table=None,
        is_exact=False,
        dense_bits=False,
    ),
    "OvALinearXCCV": Entry(
        OvALinearXCCV,
        quick={"Cs": [0.1, 1.0], "cv": 2, "random_state": 0, "tol": 1e-3, "prune": 0.001},
        precise={"tol": 1e-8},
        # check_sample_weight_equivalence compares at 1e-7: all steps, for dense and sparse X.
        checked=({"Cs": [0.1, 1.0], "cv": 3, "tol": 1e-9, "scoring": "accuracy"},),
        variants={"scoring": {"scoring": "P@3", "loss": "logistic"}},
        pieces={"sklearn_xc.one_vs_all.blocks.MAX_LANES": 2},
        refused={
            **{name: bad for name, bad in OVA.items() if name not in {"C", "warm_start"}},
            **SEED,
            "exhaustive": SWITCH,
            "Cs": [0, "many", True, [1.0, 0.0], [], [[1.0, 2.0]], [NAN], 10**12, ["1", "2"]],
            "cv": [0.5, 1, b"x"],
            "scoring": [None, "P@", ["P@1", "P@3"]],
        },
        memory=(({}, "points of a block"),),
        labels_apart=True,
        learns_from_unlabelled=True,
        many_labels={"init": "zero"},
        no_table=None,
        is_exact=False,
        dense_bits=False,
    ),
    "SoftmaxUMax": Entry(
        SoftmaxUMax,
        quick=SMALL,
        able={"max_iter": 20, "learning_rate": 0.3},
        variants={
            "ridge": {"n_negatives": 1, "alpha": 0.3},
            "hard": {"n_negatives": 1, "n_hard_negatives": 2, "alpha": 0.1},
            "auto": {"learning_rate": "auto"},
        },
        checked=({"max_iter": 20, "tol": 0.03},),
        refused={**SOFTMAX, "rule": [0, -1.0, NAN, INF, "implicit", True]},
        memory=(({}, "the weights, 5 classes"),),
        many_labels={"init": "zero"},
        spoilt={"alpha": 3000.0},
    ),
    "ImplicitSoftmaxSGD": Entry(
        ImplicitSoftmaxSGD,
        quick=SMALL,
        able={"max_iter": 20, "learning_rate": 3.0},
        variants={
            "ridge": {"n_negatives": 3, "alpha": 0.3, "decay": "1/t"},
            "hard": {"n_negatives": 2, "n_hard_negatives": 3},
            "early stopping": {"early_stopping": True},
            "auto": {"learning_rate": "auto"},
        },
        refused=SOFTMAX,
        memory=(({}, "the weights, 5 classes"),),
        many_labels={"init": "zero"},
        spoilt={"alpha": 3000.0},
        checked=({"max_iter": 20, "tol": 0.03},),
    ),
    "DecompMIPSClassifier": Entry(
        DecompMIPSClassifier,
        quick={"embedding_dim": 4, "max_iter": 3, "learning_rate": 0.3, "random_state": 0},
        able={"max_iter": 20, "learning_rate": 1.0, "embedding_dim": 8},
        variants={
            "exact": {"gradient": "exact"},
            "softmax": {"gradient": "exact", "loss": "softmax"},
            "dropout": {"gradient": "exact", "dropout": 0.3},
            "sampled": {"gradient": "sampled", "n_candidates": 3},
            "mips": {"gradient": "mips", "n_candidates": 3},
            "rounds": {"gradient": MessagePassing(2, n_blocks=2), "n_candidates": 3},
            "triplet": {"loss": "triplet"},
            "euclidean": {"gradient": "exact", "metric": "euclidean", "loss": "softmax"},
            "mahalanobis": {"metric": "mahalanobis", "n_candidates": 3},
            "no layer": {"embedding_dim": None, "gradient": "exact"},
        },
        checked=({}, {"embedding_dim": None, "gradient": "mips"}),
        by_search=("mips", "rounds", "triplet", "mahalanobis"),
        pieces={
            "sklearn_xc.decomposition.gradients.protocol.LEAST_WORK": 1,
            "sklearn_xc.decomposition._model._CHUNK_VALUES": 64,
        },
        refused={
            **COMMON,
            **SEED,
            "loss": ["hinge", None],
            "gradient": ["full", None],
            "index": ["hnsw", 3],
            "n_candidates": [0, -1, 1.5, True],
            "embedding_dim": [-1, "yes", 1.5, True],
            "embedding_init": ["msi", 3, np.ones(4), np.full((15, 4), NAN), np.ones((14, 4))],
            "metric": ["cosine", None, True, 2],
            "dropout": [1.0, -0.1, NAN, True],
            "learning_rate": [*RATE, "fast"],
            "batch_size": COUNT,
            "max_iter": COUNT,
            "fit_intercept": SWITCH,
            "warm_start": SWITCH,
        },
        memory=(({}, r"weights, 5 labels x \d x 8 bytes and 15 features"),),
        answers={
            "embed": lambda model, X: model.embed(X),
            "search": lambda model, X: model.predict_topk(X, 3, exact=False),
        },
    ),
    "NGAMEEmbeddingXC": Entry(
        NGAMEEmbeddingXC,
        quick={
            "embedding_dim": 4,
            "max_iter": 1,
            "classifier_max_iter": 1,
            "sampler": NgameSampler(batch_size=8),
            "validation_fraction": 0.1,
            "random_state": 0,
        },
        able={
            "embedding_dim": 12,
            "max_iter": 6,
            "classifier_max_iter": 4,
            "learning_rate": 0.03,
        },
        variants={
            "label features": {"label_features": rows_of_labels(), "validation_fraction": 0.3},
            "ance": {"sampler": "ance", "validation_fraction": 0.0},
            "in_batch, features": {"sampler": "in_batch", "label_features": rows_of_labels()},
            "o_sgd": {"sampler": "o_sgd", "fusion": "sum"},
            "tas": {"sampler": "tas", "fusion": "tree"},
        },
        pieces={
            "sklearn_xc.embedding._training._LEAST_WORK": 1,
            "sklearn_xc.embedding.encoders.bag._CHUNK_ROWS": 16,
            "sklearn_xc.embedding._ranking.CHUNK_ROWS": 16,
        },
        refused={
            **COMMON,
            **SEED,
            "encoder": ["lstm", 7],
            "label_features": [rows_of_labels(4), rows_of_labels(5, 14), rows_of_labels() * NAN],
            "vectorizer": ["bow", 3, True, KFold(), TfidfVectorizer()],
            "embedding_dim": [0, 8.0, True, 10**30],
            "sampler": ["random", None],
            "index": ["hnsw", 3],
            "max_iter": [-1, "few", 1.5, True],
            "classifier_max_iter": [-1, "few", 1.5, True],
            "learning_rate": RATE,
            "n_candidates": [*COUNT, 2**62],
            "checkpoint_dir": [3, True, ["a"], b"x"],
            "fusion": ["forest", 2, True],
            "validation_fraction": [1.0, -0.1, NAN, True],
        },
        memory=(
            ({}, "features of the instances"),
            ({"embedding_dim": 500, "max_memory": "1MB"}, "residual block"),
        ),
        answers={
            "embed": lambda model, X: model.embed(X),
        },
        many_labels=None,
    ),
    "StackingXC": Entry(
        StackingXC,
        needed={"estimators": members()},
        quick={
            "cv": 0.3,
            "final_estimator": HistGradientBoostingClassifier(
                max_iter=3, min_samples_leaf=2, early_stopping=False, random_state=0
            ),
            "random_state": 0,
        },
        able={"final_estimator": None, "cv": 3},
        precise={"estimators": members(tol=1e-8)},
        variants={
            "own learner": {"final_estimator": None},
            "propensity": {"objective": "propensity"},
            "folds": {"cv": 2},
            "listed folds": {"cv": [(np.arange(0, 60, 2), np.arange(1, 60, 2))]},
            "foreign learner": {
                "final_estimator": make_pipeline(SimpleImputer(), LogisticRegression())
            },
            "prefit": prefit_members,
        },
        pieces={"sklearn_xc.ensemble.stacking.stacking._CHUNK_ROWS": 64},
        refused={
            **{name: bad for name, bad in COMMON.items() if name != "max_memory"},
            **SEED,
            "estimators": [
                [],
                None,
                [OvALinearXC()],
                [("ova", "drop")],
                [("a__b", OvALinearXC())],
                2 * [("ova", OvALinearXC())],
            ],
            "final_estimator": ["logistic", KFold(), 3, LogisticRegression],
            "objective": ["recall", None, 1],
            "cv": [0.0, 1.0, 1, 61, 1.5, NAN, "folds", b"x", True, []],
            "n_candidates": COUNT,
        },
        learns_from_unlabelled=True,
        is_exact=False,
        folds_of_weighted=True,
        dense_bits=False,
        weights=lambda model: [member.coef_ for member in model.estimators_],
        further_state=chances_of_pairs,
        lacks=("coef_", "n_iter_"),
        chances_of="each label",
        many_labels={
            "estimators": [
                ("ova", OvALinearXC(init="zero")),
                ("softmax", ImplicitSoftmaxSGD(**SMALL, init="zero")),
            ]
        },
        no_table={"estimators": members()[1:]},
        spoilt={"estimators": [("ova", OvALinearXC(C=1e-9))]},
        checked=({"cv": 3, "random_state": 0},),
        unmet=dict.fromkeys(
            (
                "check_sample_weight_equivalence_on_dense_data",
                "check_sample_weight_equivalence_on_sparse_data",
            ),
            "its learner has folds of its own, into which repeated rows fall one by one",
        ),
    ),
    "ThresholdTuner": Entry(
        ThresholdTuner,
        **around_another(
            variants={
                "each label": {"per": "label", "objective": "macro_f1", "beta": 2.0},
                "recall": {"objective": "recall", "min_precision": 0.1, "per": "all"},
                "folds": {"cv": 2, "objective": "count", "min_labels": 1},
            },
            refused={
                **WRAPPER,
                "objective": ["f1", None, 1],
                "per": ["class", None, 1],
                "beta": [0, -1.0, NAN, INF, "a", None],
                "min_precision": [0, -0.1, 1.1, NAN, "a", None],
                "min_labels": [bad for bad in COUNT if bad != 0],
            },
        ),
    ),
    "TopKCalibrator": Entry(
        TopKCalibrator,
        **around_another(
            variants={
                "sigmoid": {"method": "sigmoid", "n_groups": 2, "n_candidates": 2},
                "folds": {"cv": 2},
                "macro": {"objective": "macro_f1", "k": 2},
                "prefit": prefit_estimator,
            },
            refused={
                **WRAPPER,
                "method": ["platt", None, 1],
                "objective": ["micro_f1", 1],
                "k": COUNT,
                "n_candidates": COUNT,
            },
            pieces={"sklearn_xc.ensemble.calibration._CHUNK_ROWS": 64},
            further_state=chances_of_scores,
            chances_of="pairs",
            spoilt={"estimator": OvALinearXC(C=1e-9)},
            answers={"chances": lambda model, X: model.predict_proba_topk(X, 3)},
        ),
    ),
}
if HAS_TRANSFORMERS:
    _ROWS = ENTRIES["NGAMEEmbeddingXC"]
    ENTRIES["NGAMEEmbeddingXC transformer"] = Entry(
        RowsAsTexts,
        needed={"encoder": transformer()},
        quick=_ROWS.quick,
        able={
            "embedding_dim": 12,
            "max_iter": 6,
            "classifier_max_iter": 4,
            "learning_rate": 0.03,
        },
        variants={
            "frozen": {"encoder": transformer(frozen=True), "sampler": "in_batch"},
            "no vectorizer": {"vectorizer": None, "fusion": "tree"},
            "label features": {"label_features": rows_of_labels(), "validation_fraction": 0.3},
        },
        pieces={
            "sklearn_xc.embedding._training._LEAST_WORK": 1,
            "sklearn_xc.embedding.encoders.transformer.encoder._CHUNK_TEXTS": 16,
            "sklearn_xc.embedding._ranking.CHUNK_ROWS": 16,
        },
        refused={**_ROWS.refused, "vectorizer": ["bow", 3, True, KFold()]},
        memory=(({}, "passes whose gradients follow of the encoder"),),
        no_table={"embedding_dim": 10**6, "vectorizer": None},
        answers=_ROWS.answers,
        checked=(),
        many_labels=None,
        reads_texts=True,
    )
#: All entries that have variants, and without: (name, variant).
VARIANTS = [(name, variant) for name, entry in ENTRIES.items() for variant in ["", *entry.variants]]
#: Functions without arguments that make a quick estimator.
ESTIMATORS = {name: entry.make for name, entry in ENTRIES.items()}


def of_variant(name, variant, **parameters):
    """Return a quick estimator with the parameters of a variant, "" for none."""
    own = given(ENTRIES[name].variants[variant]) if variant else {}
    return ENTRIES[name].make(**{**own, **parameters})


def having(attribute):
    """Return the names of estimators that have a method, a parameter or an argument of fit."""
    return [name for name, entry in ENTRIES.items() if entry.has(attribute)]
