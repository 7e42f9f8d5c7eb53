"""NGAMEEmbeddingXC: samplers of mini-batches, what its parts predict, labels never seen.

On data sets whose labels have texts, tf-idf with one vectorizer on both sides, one thread, the
bag-of-embeddings encoder. The paper, [1]_, has a transformer in its place.

* samplers: P@1 of the embedding on held-out instances after each epoch of the encoder, how many
  negatives of a mini-batch were within the margin, and what the sampler costs.
* misses: hard negatives that are in no mini-batch, at random and of clusters; the bound of the
  paper's Theorem 1.
* clusters: inertia of balanced clusters, beside scikit-learn's unbalanced ones.
* equal_degrees: the same on made embeddings with equal degrees, where the bound is small.
* convergence: full gradients of a made problem, and the two rates of the paper's Theorem 3.
* components: precision of the embedding, the classifiers, their sum, and fused; time.
* deciles: what labels by frequency contribute to P@5, each tenth holding a tenth of the pairs.
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

from asv_bench.common.figures import panels, with_legend
from asv_bench.common.measure import cpu_seconds, fit_quietly, warm_up
from asv_bench.common.report import Column, Report
from asv_bench.embedding.batches import measure_clusters, measure_misses, trained
from asv_bench.embedding.curves import METHODS, draw_samplers, follow_samplers
from asv_bench.embedding.label_texts import LabelledSet, load_labelled_set
from asv_bench.embedding.shortlist import DIMS, LABELS, measure_shortlist
from asv_bench.embedding.theory import measure_convergence, measure_equal_degrees
from sklearn_xc import NGAMEEmbeddingXC, OvALinearXC
from sklearn_xc.metrics import precision_at_k, propensity, psp_at_k

PARTS = (
    "samplers", "misses", "clusters", "components", "deciles", "tail", "shortlist",
    "equal_degrees", "convergence",
)  # fmt: skip
#: Parts that need no data set.
_MADE = {"shortlist", "equal_degrees", "convergence"}
#: Sizes of clusters and radii on made embeddings; sizes, and steps, of full gradients.
_EQUAL_SIZES, _EQUAL_RADII, _FULL_SIZES = (8, 25, 100), (0.5, 0.6, 0.7), (8, 40)
SETS = ("english_wordnet", "yso_finna_en")
_KS = (1, 3, 5)
#: Sizes of clusters, and radii within which a negative is hard.
SIZES, RADII = (8, 64, 512), (0.6, 0.8, 1.0)
#: Labels that the part tail looks at, of each instance.
_FOUND = 10
#: What the part deciles looks at.
_DECILED = ("embedding", "classifiers", "fused", "OvALinearXC")
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
_EPOCH_COLUMNS = [
    Column("method", "sampler"),
    Column("steps_s", "steps, CPU s an epoch", ",.2f"),
    Column("refresh_s", "sampler", ",.2f"),
    Column("epoch_s", "together", ",.2f"),
    Column("ratio", "of random", ".2f"),
]
_COMPONENT_COLUMNS = [
    Column("system", "scores"),
    *(Column(f"P@{k}", f"P@{k}", ".4f") for k in _KS),
    Column("PSP@1", "PSP@1", ".4f"),
    Column("ms", "ms/row", ".3f"),
    Column("cpu_s", "fit, CPU s", ",.1f"),
]
_DECILE_COLUMNS = [
    Column("decile", "tenth of the pairs"),
    Column("labels", "labels", ","),
    Column("most", "instances, at most", ","),
    *(Column(name, f"{name}: share of P@5", ".4f") for name in _DECILED),
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
    parser.add_argument("--steps", type=int, default=1000, help="of convergence (1,000)")
    parser.add_argument("--shards", type=int, help="components beside that many label shards")
    parser.add_argument(
        "--tree", action="store_true", help="components beside the fusion of the paper"
    )
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
    steps: int = 1000,
    shards: int | None = None,
    tree: bool = False,
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
    parts : sequence of str
        Of ``PARTS``, what to measure. The parts shortlist, equal_degrees and convergence need no
        data set.
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
    steps : int
        Of the part convergence.
    shards : int or None
        The part components also fits a model whose classifiers are trained in so many label shards.
    tree : bool
        Whether the part components also fits a model with ``fusion="tree"``.
    ova : bool
        Whether the parts components and deciles also fit ``OvALinearXC``.
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
    if "equal_degrees" in parts:
        found += measure_equal_degrees(_EQUAL_SIZES, _EQUAL_RADII, seed, report)
    if "convergence" in parts:
        found += measure_convergence(_FULL_SIZES, steps, seed, report)
    for name in sets if set(parts) - _MADE else ():
        labelled = load_labelled_set(name, data, cache=cache)
        report.line()
        report.line(
            f"{name}: {labelled.X_train.shape[0]:,} training instances, "
            f"{labelled.Z.shape[0]:,} labels, {labelled.X_test.shape[0]:,} held-out instances; "
            f"{labelled.Y_train.nnz / labelled.X_train.shape[0]:.2f} labels an instance, "
            f"{labelled.Y_train.nnz / labelled.Z.shape[0]:.2f} instances a label"
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
        if not {"components", "deciles", "tail"} & set(parts):
            continue
        model = _fitted(
            labelled, max_iter=_or_auto(max_iter),
            classifier_max_iter=_or_auto(classifier_max_iter), **parameters,
        )  # fmt: skip
        linear, linear_s = _one_vs_all(labelled) if ova else (None, None)
        if "components" in parts:
            found += measure_components(labelled, model, shards, tree, linear, linear_s, report)
        if "deciles" in parts:
            found += measure_deciles(labelled, model, linear, report)
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
    report.table(f"{labelled.name}: CPU seconds of an epoch", _of_epoch(ends), _EPOCH_COLUMNS)
    report.figure(draw_samplers(rows), f"ngame_samplers_{labelled.name}")
    return [{"part": "samplers", **row} for row in rows]


def _of_epoch(ends: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what an epoch takes on average by sampler, and beside random mini-batches."""
    random_s = [row["cpu_s"] / row["epoch"] for row in ends if row["key"] == "in_batch"]
    rows = []
    for row in ends:
        epoch_s, refresh_s = (row[name] / row["epoch"] for name in ("cpu_s", "sampler_s"))
        rows.append(
            {
                "method": row["method"], "steps_s": epoch_s - refresh_s, "refresh_s": refresh_s,
                "epoch_s": epoch_s, "ratio": epoch_s / random_s[0] if random_s else None,
            }
        )  # fmt: skip
    return rows


def measure_components(
    labelled: LabelledSet, model: TimedEmbedding, shards: int | None, tree: bool,
    linear: OvALinearXC | None, linear_s: float | None, report: Report,
) -> list[dict[str, Any]]:  # fmt: skip
    """Compare what the parts of a fitted model predict, and tell where the time of the fit went."""
    rows = [
        {"system": system, **_quality(labelled, each, component=component)}
        for system, each, component in _systems(model)
    ]
    rows[-1]["cpu_s"] = model.cpu_s_["all"]
    if tree:
        other = _fitted(labelled, **{**_own(model), "fusion": "tree"})
        quality = _quality(labelled, other, component="fused")
        rows.append({"system": "fused by a tree", **quality, "cpu_s": other.cpu_s_["all"]})
    if shards:
        cut = _fitted(labelled, **{**_own(model), "n_shards": shards})
        for component, system in (("classifier", "classifiers"), ("fused", "fused")):
            quality = _quality(labelled, cut, component=component)
            rows.append({"system": f"{system}, {shards} label shards", **quality})
        rows[-1]["cpu_s"] = cut.cpu_s_["all"]
    if linear is not None:
        rows.append({"system": "OvALinearXC", **_quality(labelled, linear), "cpu_s": linear_s})
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


def measure_deciles(
    labelled: LabelledSet, model: NGAMEEmbeddingXC, linear: OvALinearXC | None, report: Report
) -> list[dict[str, Any]]:
    """Measure how much of P@5 is labels of which frequency.

    Labels are cut by their training frequency into ten parts, each with a tenth of all training
    pairs; those of one frequency are in order of their number.
    """
    counts = np.bincount(labelled.Y_train.indices, minlength=labelled.Z.shape[0])
    order = np.argsort(counts, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    decile = np.empty(len(counts), np.int64)
    decile[order] = np.minimum(10 * before // max(1, counts.sum()), 9)
    systems = [(name, each, part) for name, each, part in _systems(model) if name in _DECILED]
    found = {
        name: each.predict_topk(labelled.X_test, 5, component=component)[0]
        for name, each, component in systems
    }
    if linear is not None:
        found["OvALinearXC"] = linear.predict_topk(labelled.X_test, 5)[0]
    n, Y = labelled.X_test.shape[0], labelled.Y_test
    shares = {}
    for name, labels in found.items():
        of = np.repeat(np.arange(n), labels.shape[1])
        hits = np.asarray(Y[of, labels.ravel()]).ravel() > 0
        shares[name] = np.bincount(decile[labels.ravel()[hits]], minlength=10) / (5 * n)
    rows = [
        {
            "part": "deciles", "set": labelled.name, "decile": k + 1,
            "labels": int((decile == k).sum()), "most": int(counts[decile == k].max(initial=0)),
            **{name: float(share[k]) for name, share in shares.items()},
        }
        for k in range(10)
    ]  # fmt: skip
    shown = [column for column in _DECILE_COLUMNS if column.key in rows[0]]
    report.table(f"{labelled.name}: what labels contribute to P@5, rare ones first", rows, shown)
    report.figure(draw_deciles(rows, list(shares)), "ngame_deciles")
    return rows


def draw_deciles(rows: Sequence[dict[str, Any]], systems: Sequence[str]) -> Any:
    """Draw what the tenths of the labels contribute to P@5, bars for each system.

    Parameters
    ----------
    rows : sequence of dict
        Of ``measure_deciles``.
    systems : sequence of str
        Keys of the rows.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, (ax,) = panels(1)
    width = 0.8 / len(systems)
    colours = {"embedding": "#E69F00", "classifiers": "#56B4E9", "fused": "#0072B2"}
    x = np.array([row["decile"] for row in rows])
    for i, name in enumerate(systems):
        heights = [row[name] for row in rows]
        at = x + (i - (len(systems) - 1) / 2) * width
        ax.bar(at, heights, width, color=colours.get(name, "#000000"), label=name)
    ax.set_xticks(x)
    ax.set_xlabel("tenths of the training pairs, rare labels first")
    ax.set_ylabel("contribution to P@5")
    return with_legend(figure, ax)


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


def _one_vs_all(labelled: LabelledSet) -> tuple[OvALinearXC, float]:
    """Return a fitted one-vs-all model, and its CPU seconds."""
    linear = OvALinearXC(n_jobs=1)
    warm_up(linear, labelled.X_train, labelled.Y_train)
    _, seconds = cpu_seconds(fit_quietly, linear, labelled.X_train, labelled.Y_train)
    return linear, seconds


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
