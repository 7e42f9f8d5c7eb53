"""Every public call that takes a sparse matrix: one entry here is one row of the test matrix.

``calls()`` fits small models once and returns ``Call`` records; each takes one matrix in place of
one argument and returns what came out, as a list of arrays.
"""

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from sklearn_xc import (
    DecompMIPSClassifier,
    DecompMIPSSkipGram,
    ImplicitSoftmaxSGD,
    LabelBinarizerXC,
    LabelFeatures,
    LabelHierarchy,
    NGAMEEmbeddingXC,
    OvALinearXC,
    OvALinearXCCV,
    SoftmaxUMax,
    StackingXC,
    ThresholdTuner,
    TopKCalibrator,
    inspection,
    metrics,
    topk,
)
from sklearn_xc.datasets import dump_xmc_file
from sklearn_xc.inspection import compare_models
from sklearn_xc.model_selection import (
    RareLabelSplit,
    cross_val_score,
    cross_val_topk,
    cross_validate,
    learning_curve,
)

N, D, L = 24, 12, 6
FEW = {"max_iter": 2, "random_state": 0}
ESTIMATORS = {
    "OvALinearXC": lambda: OvALinearXC(),
    "OvALinearXCCV": lambda: OvALinearXCCV(Cs=[0.1, 1.0], cv=2, random_state=0),
    "SoftmaxUMax": lambda: SoftmaxUMax(learning_rate=0.1, **FEW),
    "ImplicitSoftmaxSGD": lambda: ImplicitSoftmaxSGD(learning_rate=0.1, **FEW),
    "DecompMIPSClassifier": lambda: DecompMIPSClassifier(embedding_dim=4, **FEW),
    "NGAMEEmbeddingXC": lambda: NGAMEEmbeddingXC(
        embedding_dim=4, max_iter=1, classifier_max_iter=1, random_state=0
    ),
}
ANSWERS = {
    "predict": lambda e, X: e.predict(X),
    "predict_topk": lambda e, X: e.predict_topk(X, 3),
    "decision_function": lambda e, X: e.decision_function(X),
    "predict_proba": lambda e, X: e.predict_proba(X),
    "predict_log_proba": lambda e, X: e.predict_log_proba(X),
    "embed": lambda e, X: e.embed(X),
}


class Call(NamedTuple):
    """A public call with one argument left open."""

    name: str
    argument: str  # its name in messages
    shape: tuple[int, int]
    is_indicator: bool
    run: Callable[[Any], Any]
    has_gaps: bool = False  # an entry that is not stored is not a zero


def arrays_of(result: Any) -> list[np.ndarray]:
    """Return what came out as a flat list of arrays."""
    if sp.issparse(result):
        dense = result.toarray()
        return [np.asarray(dense, np.float64)]
    if isinstance(result, dict):
        return [a for key in sorted(result) if "time" not in key for a in arrays_of(result[key])]
    if isinstance(result, list | tuple):
        return [a for one in result for a in arrays_of(one)]
    if hasattr(result, "coef_"):
        return arrays_of([result.coef_, *result.predict_topk(data()[0], 3)])
    return [np.asarray(result)]


def data():
    """Return well-formed X and Y, sparse."""
    rng = np.random.default_rng(7)
    X = rng.integers(1, 9, (N, D)) / 8 * (rng.random((N, D)) < 0.5)
    Y = (rng.random((N, L)) < 0.3).astype(np.float64)
    Y[np.arange(N), np.arange(N) % L] = 1
    return sp.csr_array(X), sp.csr_array(Y)


def _written(X, Y):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.txt")
        dump_xmc_file(path, X, Y)
        return np.frombuffer(path.read_bytes(), np.uint8)


def _drawn(name, *arguments, **options):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    try:
        display = getattr(inspection, name).from_predictions(*arguments, k=2, **options)
        return [np.asarray(value) for value in vars(display).values() if np.ndim(value) == 1]
    finally:
        pyplot.close("all")


def calls() -> list[Call]:
    """Return all calls, over models that are fitted here."""
    warnings.simplefilter("ignore")
    X, Y = data()
    found: list[Call] = []

    def add(*fields, **further):
        found.append(Call(*fields, **further))

    for name, make in ESTIMATORS.items():
        fitted = make().fit(X, Y)
        add(f"{name}.fit", "X", (N, D), False, lambda M, make=make: make().fit(M, Y))
        add(f"{name}.fit", "y", (N, L), True, lambda M, make=make: make().fit(X, M))
        for method, ask in ANSWERS.items():
            if hasattr(fitted, method):
                run = lambda M, e=fitted, ask=ask: ask(e, M)  # noqa: E731
                add(f"{name}.{method}", "X", (N, D), False, run)
        for argument in ("candidates", "exclude"):
            run = lambda M, e=fitted, a=argument: e.predict_topk(X, 3, **{a: M})  # noqa: E731
            add(f"{name}.predict_topk, {argument}", argument, (N, L), True, run)
        add(f"{name}.score", "X", (N, D), False, lambda M, e=fitted: e.score(M, Y))
        add(f"{name}.score", "y", (N, L), True, lambda M, e=fitted: e.score(X, M))
        if hasattr(fitted, "explain"):
            add(
                f"{name}.explain", "x|X", (1, D), False,
                lambda M, e=fitted: [e.explain(M, 1).score, e.explain(M, 1).contributions],
            )  # fmt: skip
    add("OvALinearXC.fit, init", "init", (L, D), False, lambda M: OvALinearXC(init=M).fit(X, Y))
    ngame = ESTIMATORS["NGAMEEmbeddingXC"]
    words = "label_features|LabelFeatures|features"
    add(
        "NGAMEEmbeddingXC.fit, label_features", words, (L, D), False,
        lambda M: ngame().fit(X, Y, label_features=M),
    )  # fmt: skip
    add(
        "NGAMEEmbeddingXC.fit, LabelFeatures", words, (L, D), False,
        lambda M: ngame().set_params(label_features=LabelFeatures(M)).fit(X, Y),
    )  # fmt: skip
    add(
        "NGAMEEmbeddingXC.add_labels", words, (2, D), False,
        lambda M: ngame().fit(X, Y, label_features=X[:L]).add_labels(label_features=M),
    )  # fmt: skip
    ranked = np.argsort(-Y.toarray(), axis=1)[:, :3]
    functions = {
        name: getattr(metrics, name)
        for name in (
            "precision_at_k", "recall_at_k", "ndcg_at_k", "psp_at_k", "psndcg_at_k",
            "coverage_at_k", "macro_f1_at_k",
        )
    }  # fmt: skip
    for name, metric in functions.items():
        further = {"propensities": np.full(L, 0.5)} if name.startswith("ps") else {}
        scored = lambda T, R, m=metric, f=further: m(T, R, k=2, **f)  # noqa: E731
        add(name, "Y_true", (N, L), True, lambda M, s=scored: s(M, ranked))
        add(name, "topk", (N, L), False, lambda M, s=scored: s(Y, M), has_gaps=True)
    tree = LabelHierarchy(range(6), [(0, 1), (1, 2), (3, 2), (4, 3)])
    add("hierarchical_f1", "Y_true", (N, L), True, lambda M: metrics.hierarchical_f1(M, Y, tree))
    add("hierarchical_f1", "Y_pred", (N, L), True, lambda M: metrics.hierarchical_f1(Y, M, tree))
    add("LabelHierarchy.with_ancestors", "Y", (N, L), True, tree.with_ancestors)
    add("LabelHierarchy.deepest", "Y", (N, L), True, tree.deepest)
    add(
        "LabelHierarchy.consistent_scores", "scores", (N, L), False, tree.consistent_scores,
        has_gaps=True,
    )  # fmt: skip
    counts = np.asarray(Y.sum(axis=0)).ravel()
    half, error = Y / 2, metrics.expected_calibration_error
    add("expected_calibration_error", "Y_true", (N, L), True, lambda M: error(M, half))
    add("expected_calibration_error", "Y_prob", (N, L), True, lambda M: error(Y, M), has_gaps=True)
    other = ranked[:, ::-1]

    def compare(*given):
        return metrics.paired_bootstrap(*given, metric="P@2", n_resamples=100, random_state=0)[:5]

    add("paired_bootstrap", "Y_true", (N, L), True, lambda M: compare(M, ranked, other))
    add("paired_bootstrap", "topk_a", (N, L), False, lambda M: compare(Y, M, other), has_gaps=True)
    add("paired_bootstrap", "topk_b", (N, L), False, lambda M: compare(Y, other, M), has_gaps=True)
    ova = OvALinearXC().fit(X, Y)
    other_ova = OvALinearXC(C=0.1).fit(X, Y)

    def side_by_side(M, T):
        found = compare_models(ova, other_ova, M, T, k=3, n_resamples=100, random_state=0)
        return [value for name in ("a", "b", "low", "high") for value in found.metrics[name]]

    add("compare_models", "X", (N, D), False, lambda M: side_by_side(M, Y))
    add("compare_models", "y|Y_true", (N, L), True, lambda M: side_by_side(X, M))
    scorer = metrics.TopKScorer(ks=(1, 3))
    add("TopKScorer", "X", (N, D), False, lambda M: scorer(ova, M, Y))
    add("TopKScorer", "y|Y_true", (N, L), True, lambda M: scorer(ova, X, M))
    add("topk", "X", (N, D), False, lambda M: topk(ova, M, 3))
    foreign = LogisticRegression().fit(X.toarray(), np.arange(N) % L)
    some = lambda M: topk(foreign, X.toarray(), 3, exclude=M)  # noqa: E731
    add("topk of another classifier, exclude", "exclude", (N, L), True, some)
    add("topk of another classifier", "X", (N, D), False, lambda M: topk(foreign, M, 3))
    for name, function in {"cross_validate": cross_validate, "cross_val_score": cross_val_score,
                           "learning_curve": learning_curve}.items():  # fmt: skip
        options = {"cv": 2, "error_score": "raise"}
        add(name, "X", (N, D), False, lambda M, f=function, o=options: f(OvALinearXC(), M, Y, **o))
        add(name, "y", (N, L), True, lambda M, f=function, o=options: f(OvALinearXC(), X, M, **o))
    out_of_fold = lambda M, T: cross_val_topk(OvALinearXC(), M, T, cv=2, k=3)  # noqa: E731
    add("cross_val_topk", "X", (N, D), False, lambda M: out_of_fold(M, Y))
    add("cross_val_topk", "y", (N, L), True, lambda M: out_of_fold(X, M))
    add("RareLabelSplit.split", "y", (N, L), True, lambda M: list(RareLabelSplit(2).split(X, M)))
    add("dump_xmc_file", "X", (N, D), False, lambda M: _written(M, Y), has_gaps=True)
    add("dump_xmc_file", "Y", (N, L), True, lambda M: _written(X, M))
    wrappers = {
        "StackingXC": lambda: StackingXC([("ova", OvALinearXC())], cv=0.3, random_state=0),
        "ThresholdTuner": lambda: ThresholdTuner(OvALinearXC(), cv=0.3, random_state=0),
        "TopKCalibrator": lambda: TopKCalibrator(OvALinearXC(), cv=0.3, random_state=0),
    }
    for name, make in wrappers.items():
        wrapper = make().fit(X, Y)
        add(f"{name}.fit", "X", (N, D), False, lambda M, make=make: make().fit(M, Y).predict(X))
        add(f"{name}.fit", "y", (N, L), True, lambda M, make=make: make().fit(X, M).predict(X))
        add(f"{name}.predict", "X", (N, D), False, wrapper.predict)
        add(f"{name}.predict_topk", "X", (N, D), False, lambda M, e=wrapper: e.predict_topk(M, 3))
    binarizer = LabelBinarizerXC(classes=list("abcdef")).fit([["a"]])
    add(
        "LabelBinarizerXC.inverse_transform", "Y", (N, L), True,
        lambda M: [np.array(row, "U1") for row in binarizer.inverse_transform(M)],
    )  # fmt: skip
    add(
        "DecompMIPSSkipGram.fit", "X", (N, N), False,
        lambda M: DecompMIPSSkipGram(embedding_dim=4, **FEW).fit(M).vectors_,
    )  # fmt: skip
    for name in ("LabelFrequencyDisplay", "MetricByFrequencyDisplay"):
        drawn = lambda T, R, name=name: _drawn(name, T, R, counts)  # noqa: E731
        add(f"{name}.from_predictions", "Y_true", (N, L), True, lambda M, d=drawn: d(M, ranked))
    scores = ranked, np.tile([0.75, 0.5, 0.25], (N, 1))
    where, drawn = "ReliabilityDisplay.from_predictions", "ReliabilityDisplay"
    add(where, "Y_true", (N, L), True, lambda M: _drawn(drawn, M, scores))
    add(where, "Y_prob", (N, L), False, lambda M: _drawn(drawn, Y, M), has_gaps=True)
    return found
