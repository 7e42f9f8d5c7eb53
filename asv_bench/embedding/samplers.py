"""NGAMEEmbeddingXC: samplers of mini-batches, what its parts predict, labels never seen.

On data sets whose labels have texts, tf-idf with one vectorizer on both sides, one thread, the
bag-of-embeddings encoder. The paper, [1]_, has a transformer in its place.

* samplers: P@1 of the embedding on held-out instances after each epoch of the encoder, how many
  negatives of a mini-batch were within the margin, and what the sampler costs.
* misses: hard negatives that are in no mini-batch, at random and of clusters; the bound of the
  paper's Theorem 1.
* clusters: inertia of balanced clusters, beside scikit-learn's unbalanced ones.
* components: precision of the embedding, the classifiers, their sum, and fused; time.
* tail: recall of labels without a training instance, beside the tf-idf cosine with their text.
* shortlist: time and recall of the search for the best classifiers, by index; on made vectors.

[1] K. Dahiya et al., "NGAME: negative mining-aware mini-batching for extreme classification", WSDM
2023.
"""

import argparse
import copy
from collections.abc import Sequence
from time import perf_counter, process_time
from typing import Any

import numpy as np

from asv_bench.common.measure import cpu_seconds, fit_quietly, warm_up
from asv_bench.common.report import Column, Report
from asv_bench.embedding.batches import measure_clusters, measure_misses, trained
from asv_bench.embedding.curves import METHODS, draw_samplers, follow_samplers
from asv_bench.embedding.label_texts import LabelledSet, load_labelled_set
from asv_bench.embedding.shortlist import DIMS, LABELS, measure_shortlist
from sklearn_xc import NGAMEEmbeddingXC, OvALinearXC
from sklearn_xc.metrics import precision_at_k, propensity, psp_at_k

PARTS = ("samplers", "misses", "clusters", "components", "tail", "shortlist")
SETS = ("english_wordnet", "yso_finna_en")
_KS = (1, 3, 5)
#: Sizes of clusters, and radii within which a negative is hard.
SIZES, RADII = (8, 64, 512), (0.6, 0.8, 1.0)
#: Labels that the part tail looks at, of each instance.
_FOUND = 10
#: Rows of a warm-up, and rows predicted one by one.
_FEW, _SINGLE = 400, 200

_SAMPLER_COLUMNS = [
    Column("method", "sampler"),
    Column("epoch", "epochs"),
    Column("P@1", "P@1", ".4f"),
    Column("best", "best P@1", ".4f"),
    Column("best_epoch", "in epoch"),
    Column("violations", "violations", ".4f"),
    Column("cpu_s", "CPU s", ",.1f"),
    Column("sampler_share", "sampler", ".1%"),
    Column("to_best", "epochs to random's best"),
    Column("to_best_s", "CPU s", ",.1f"),
]
_COMPONENT_COLUMNS = [
    Column("system", "scores"),
    *(Column(f"P@{k}", f"P@{k}", ".4f") for k in _KS),
    Column("PSP@1", "PSP@1", ".4f"),
    Column("ms", "ms/row", ".3f"),
    Column("cpu_s", "fit, CPU s", ",.1f"),
]
_TIME_COLUMNS = [Column("stage", "stage"), Column("cpu_s", "CPU s", ",.1f")]
_TAIL_COLUMNS = [
    Column("system", "scores"),
    Column("unseen", f"recall@{_FOUND} unseen", ".4f"),
    Column("seen", "seen", ".4f"),
]


class TimedEmbedding(NGAMEEmbeddingXC):
    """The estimator, with a clock for the stages of a fit.

    Attributes
    ----------
    cpu_s_ : dict of str to float
        CPU seconds: "encoder", "classifiers", "fusion", "all".
    """

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, label_features: Any = None
    ) -> "TimedEmbedding":
        """Train encoder, classifiers and fusion."""
        began, self.cpu_s_ = process_time(), dict[str, float]()
        super().fit(X, y, sample_weight, label_features)
        self.cpu_s_["all"] = process_time() - began
        return self

    def _train_encoder(self, *rest: Any) -> Any:
        reports, seconds = cpu_seconds(super()._train_encoder, *rest)  # again if many are held out
        self.cpu_s_["encoder"] = self.cpu_s_.get("encoder", 0.0) + seconds
        return reports

    def _train_classifiers(self, *rest: Any) -> Any:
        reports, seconds = cpu_seconds(super()._train_classifiers, *rest)  # again in the end
        self.cpu_s_["classifiers"] = self.cpu_s_.get("classifiers", 0.0) + seconds
        return reports

    def _fuse(self, *rest: Any) -> None:
        _, self.cpu_s_["fusion"] = cpu_seconds(super()._fuse, *rest)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS[:1])
    parser.add_argument("--samplers", nargs="+", choices=tuple(METHODS), default=tuple(METHODS))
    parser.add_argument("--epochs", type=int, default=15, help="of the part samplers (15)")
    parser.add_argument("--cluster-size", type=int, default=64, help="of ngame_fixed (64)")
    parser.add_argument("--max-iter", type=int, help="of a fit (the default of the estimator)")
    parser.add_argument("--classifier-max-iter", type=int, help="of a fit (likewise)")
    parser.add_argument("--batch-size", type=int, help="instances (the default of the estimator)")
    parser.add_argument("--dim", type=int, default=256, help="of the embeddings (256)")
    parser.add_argument("--rate", type=float, default=0.003, help="of the encoder (0.003)")
    parser.add_argument("--margin", type=float, default=0.3, help="of the encoder's loss (0.3)")
    parser.add_argument("--radius", type=float, help="of the loss; negatives within it push (all)")
    parser.add_argument(
        "--sizes", nargs="+", type=int, default=SIZES, help="of misses, clusters (8 64 512)"
    )
    parser.add_argument(
        "--radii", nargs="+", type=float, default=RADII, help="of misses (0.6 0.8 1)"
    )
    parser.add_argument("--rows", type=int, default=8000, help="of clusters (8,000)")
    parser.add_argument("--shards", type=int, help="components beside that many label shards")
    parser.add_argument("--ova", action="store_true", help="components beside OvALinearXC")
    parser.add_argument(
        "--labels", nargs="+", type=int, default=LABELS, help="of shortlist (5000 20000 80000)"
    )
    parser.add_argument("--dims", nargs="+", type=int, default=DIMS, help="of shortlist (64 256)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (0)")
    parser.add_argument("--cache", help="folder that keeps loaded sets")


def main(
    data: Any = None,
    *,
    parts: Sequence[str] = PARTS,
    sets: Sequence[str] = SETS[:1],
    samplers: Sequence[str] = tuple(METHODS),
    epochs: int = 15,
    cluster_size: int = 64,
    max_iter: int | None = None,
    classifier_max_iter: int | None = None,
    batch_size: int | None = None,
    dim: int = 256,
    rate: float = 0.003,
    margin: float = 0.3,
    radius: float | None = None,
    sizes: Sequence[int] = SIZES,
    radii: Sequence[float] = RADII,
    rows: int = 8000,
    shards: int | None = None,
    ova: bool = False,
    labels: Sequence[int] = LABELS,
    dims: Sequence[int] = DIMS,
    seed: int = 0,
    cache: Any = None,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure and report the parts asked for.

    Parameters
    ----------
    data : path-like, default=None
        Folder of the data sets.
    parts : sequence of {"samplers", "misses", "clusters", "components", "tail", "shortlist"}
        What to measure. The part shortlist needs no data set.
    sets : sequence of {"english_wordnet", "yso_finna_en"}
        Data sets.
    samplers : sequence of str
        Keys of ``curves.METHODS``.
    epochs : int
        Of the part samplers.
    cluster_size : int
        Of its "ngame_fixed".
    max_iter, classifier_max_iter : int or None
        Of the fit that the parts components and tail share; misses and clusters share an encoder
        of as many epochs.
    batch_size, dim : int
        Instances of a mini-batch, None for the estimator's default (1600 in the part misses);
        dimension of the embeddings.
    rate, margin : float
        Learning rate of the encoder, and margin of its loss.
    radius : float or None
        Of the loss; negatives farther from the instance do not push.
    sizes : sequence of int
        Rows of a cluster, in the parts misses and clusters.
    radii : sequence of float
        Of negatives that count as hard in the part misses.
    rows : int
        Of the part clusters, at random.
    shards : int or None
        The part components also fits a model whose classifiers are trained in so many label shards.
    ova : bool
        Whether the part components also fits ``OvALinearXC``.
    labels, dims : sequence of int
        Numbers of labels, and dimensions, of the part shortlist.
    seed : int
        Of all that is random.
    cache : path-like, default=None
        See ``load_labelled_set``.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        Rows of all parts, with the part in "part" and the set in "set".
    """
    report = report or Report("ngame")
    parameters = {
        "batch_size": _or_auto(batch_size), "embedding_dim": dim, "learning_rate": rate,
        "margin": margin, "radius": radius, "n_jobs": 1, "random_state": seed,
    }  # fmt: skip
    found: list[dict[str, Any]] = []
    if "shortlist" in parts:
        found += measure_shortlist(labels, dims, seed, report)
    for name in sets if set(parts) - {"shortlist"} else ():
        labelled = load_labelled_set(name, data, cache=cache)
        report.line()
        report.line(
            f"{name}: {labelled.X_train.shape[0]:,} training instances, "
            f"{labelled.Z.shape[0]:,} labels, {labelled.X_test.shape[0]:,} held-out instances"
        )
        if "samplers" in parts:
            found += measure_samplers(labelled, samplers, parameters, cluster_size, epochs, report)
        if "misses" in parts or "clusters" in parts:
            embedded = trained(labelled, parameters, max_iter)
            if "misses" in parts:
                found += measure_misses(
                    embedded, sizes, radii, margin, batch_size or 1600, seed, report
                )
            if "clusters" in parts:
                found += measure_clusters(labelled, embedded, sizes, rows, seed, report)
        if "components" not in parts and "tail" not in parts:
            continue
        model = _fitted(
            labelled, max_iter=_or_auto(max_iter),
            classifier_max_iter=_or_auto(classifier_max_iter), **parameters,
        )  # fmt: skip
        if "components" in parts:
            found += measure_components(labelled, model, shards, ova, report)
        if "tail" in parts:
            found += measure_tail(labelled, model, report)
    return found


def measure_samplers(
    labelled: LabelledSet, samplers: Sequence[str], parameters: dict[str, Any], cluster_size: int,
    epochs: int, report: Report,
) -> list[dict[str, Any]]:  # fmt: skip
    """Follow the encoder's epochs by sampler."""
    rows = follow_samplers(labelled, samplers, parameters, cluster_size, epochs, report)
    aim = max((row["P@1"] for row in rows if row["key"] == "in_batch"), default=None)
    ends = []
    for key in dict.fromkeys(row["key"] for row in rows):
        curve = [row for row in rows if row["key"] == key]
        best = max(curve, key=lambda row: row["P@1"])
        end = {**curve[-1], "best": best["P@1"], "best_epoch": best["epoch"]}
        there = [row for row in curve if aim is not None and row["P@1"] >= aim]
        if there:
            end |= {"to_best": there[0]["epoch"], "to_best_s": there[0]["cpu_s"]}
        ends.append(end)
    report.table(f"{labelled.name}, {epochs} epochs of the encoder", ends, _SAMPLER_COLUMNS)
    report.line()
    report.line(
        "P@1: of the embedding alone, held out, after the last epoch and the best one; violations: "
        "the share of a mini-batch's negatives within the margin in the last epoch; sampler: "
        "its share of the CPU seconds of all epochs, refreshes spread over them; then epochs and "
        "CPU seconds until the best P@1 of random mini-batches."
    )
    report.figure(draw_samplers(rows), f"ngame_samplers_{labelled.name}")
    return [{"part": "samplers", **row} for row in rows]


def measure_components(
    labelled: LabelledSet, model: TimedEmbedding, shards: int | None, ova: bool, report: Report
) -> list[dict[str, Any]]:
    """Compare what the parts of a fitted model predict, and tell where the time of the fit went."""
    rows = [
        {"system": system, **_quality(labelled, each, component=component)}
        for system, each, component in _systems(model)
    ]
    rows[-1]["cpu_s"] = model.cpu_s_["all"]
    if shards:
        cut = _fitted(labelled, **{**_own(model), "n_shards": shards})
        for component, system in (("classifier", "classifiers"), ("fused", "fused")):
            quality = _quality(labelled, cut, component=component)
            rows.append({"system": f"{system}, {shards} label shards", **quality})
        rows[-1]["cpu_s"] = cut.cpu_s_["all"]
    if ova:
        linear = OvALinearXC(n_jobs=1)
        warm_up(linear, labelled.X_train, labelled.Y_train)
        _, seconds = cpu_seconds(fit_quietly, linear, labelled.X_train, labelled.Y_train)
        rows.append({"system": "OvALinearXC", **_quality(labelled, linear), "cpu_s": seconds})
    report.table(f"{labelled.name}: components", rows, _COMPONENT_COLUMNS)
    stages = [
        {"stage": stage, "cpu_s": model.cpu_s_[key]}
        for stage, key in (
            ("encoder (M1)", "encoder"), ("classifiers (M2)", "classifiers"),
            ("fusion and threshold", "fusion"), ("all", "all"),
        )
    ]  # fmt: skip
    report.table(f"{labelled.name}: where a fit spends its time", stages, _TIME_COLUMNS)
    return [{"part": "components", "set": labelled.name, **row} for row in [*rows, *stages]]


def measure_tail(
    labelled: LabelledSet, model: NGAMEEmbeddingXC, report: Report
) -> list[dict[str, Any]]:
    """Measure the recall of labels without a training instance, and of the others."""
    n_labels = labelled.Z.shape[0]
    is_unseen = np.bincount(labelled.Y_train.indices, minlength=n_labels) == 0
    of, labels = labelled.Y_test.nonzero()
    unseen = is_unseen[labels]
    found = [
        (system, each.predict_topk(labelled.X_test, _FOUND, component=component)[0])
        for system, each, component in _systems(model)
    ]
    nearest = model.predict_topk(labelled.X_test, _FOUND, component="features")[0]
    found.append(("tf-idf cosine with the label's text", nearest))
    rows = []
    for system, topk in found:
        hits = (topk[of] == labels[:, None]).any(axis=1)
        rows.append({"system": system, "unseen": _mean(hits[unseen]), "seen": _mean(hits[~unseen])})
    chance = min(1.0, _FOUND / n_labels)
    rows.append({"system": "chance", "unseen": chance, "seen": chance})
    report.table(
        f"{labelled.name}: recall@{_FOUND}; {int(is_unseen.sum()):,} labels unseen in training, on "
        f"{int(unseen.sum()):,} held-out occasions of {len(labels):,}",
        rows, _TAIL_COLUMNS,
    )  # fmt: skip
    return [{"part": "tail", "set": labelled.name, **row} for row in rows]


def _or_auto(value: int | None) -> Any:
    return "auto" if value is None else value


def _own(model: NGAMEEmbeddingXC) -> dict[str, Any]:
    """Return the parameters of a model except what is known of the labels."""
    return {k: v for k, v in model.get_params().items() if k != "label_features"}


def _fitted(labelled: LabelledSet, **parameters: Any) -> TimedEmbedding:
    model = TimedEmbedding(label_features=labelled.Z, **parameters)
    few = copy.copy(model).set_params(max_iter=1, classifier_max_iter=1)
    few.fit(labelled.X_train[:_FEW], labelled.Y_train[:_FEW])  # compiled
    return model.fit(labelled.X_train, labelled.Y_train)


def _systems(model: NGAMEEmbeddingXC) -> list[tuple[str, NGAMEEmbeddingXC, str]]:
    """Return what scores, the estimator, and the component to ask it for."""
    plain = copy.copy(model)
    plain.fusion_ = plain._features = None
    return [
        ("embedding", model, "embedding"),
        ("classifiers", model, "classifier"),
        ("sum of both", plain, "fused"),
        ("fused", model, "fused"),
    ]


def _quality(labelled: LabelledSet, model: Any, **component: str) -> dict[str, float]:
    """Return held-out precision, and the median time to predict a single row."""
    X, Y = labelled.X_test, labelled.Y_test
    topk, _ = model.predict_topk(X, max(_KS), **component)
    counts = np.bincount(labelled.Y_train.indices, minlength=Y.shape[1])
    propensities = propensity(counts, labelled.Y_train.shape[0])
    out = {f"P@{k}": float(precision_at_k(Y, topk, k=k)) for k in _KS}
    out["PSP@1"] = float(psp_at_k(Y, topk, k=1, propensities=propensities))
    seconds = []
    for i in range(min(_SINGLE, X.shape[0])):
        row, began = X[[i]], perf_counter()
        model.predict_topk(row, max(_KS), **component)
        seconds.append(perf_counter() - began)
    return {**out, "ms": 1000 * float(np.median(seconds))}


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None
