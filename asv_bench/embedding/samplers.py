"""NGAMEEmbeddingXC: samplers by epoch, parts of the model, labels never seen, theorems 1 and 3.

On data sets whose labels have texts, tf-idf with one vectorizer on both sides, one thread, the
bag-of-embeddings encoder. The paper has a transformer in its place.

* samplers: P@1 of the embedding by sampler and number of epochs of the encoder, and CPU seconds;
* misses: hard negatives that are in no mini-batch, and the bound of Theorem 1;
* equal_degrees: the same on made embeddings with equal degrees, where the bound is small;
* convergence: full gradients of a made problem, and the two rates of Theorem 3;
* components: precision of the embedding, the classifiers, their sum, and fused;
* deciles: what labels by frequency contribute to P@5, each tenth holding a tenth of the pairs;
* tail: recall of labels without a training instance, beside the tf-idf cosine with their text.

Source: K. Dahiya et al., "NGAME: negative mining-aware mini-batching for extreme classification",
WSDM 2023.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize
from sklearn.utils import gen_batches

from asv_bench.common.figures import lines
from asv_bench.common.measure import cpu_seconds, quietly, scores_of
from asv_bench.common.report import Report
from asv_bench.common.sets import SIZES, DataSet, load
from asv_bench.embedding.batches import embedded, measure_misses
from asv_bench.embedding.theory import MARGIN, equal_degrees, measure_convergence
from sklearn_xc import NGAMEEmbeddingXC, OvALinearXC
from sklearn_xc.embedding.samplers import NgameSampler

PARTS = ("samplers", "misses", "components", "deciles", "tail", "equal_degrees", "convergence")
#: Parts that need no data set, and those that share a fitted model.
_MADE, _OF_MODEL = {"equal_degrees", "convergence"}, ("components", "deciles", "tail")
SAMPLERS: dict[str, tuple[str, Any]] = {
    "in_batch": ("random mini-batches", "in_batch"),
    "ngame": ("NGAME, growing clusters", "ngame"),
    "ngame_fixed": ("NGAME, clusters of 64", NgameSampler(cluster_size=64)),
    "ance": ("ANCE", "ance"),
    "tas": ("TAS", "tas"),
    "o_sgd": ("ordered SGD", "o_sgd"),
}
#: Cluster sizes and radii on made embeddings; cluster sizes of full gradients.
_EQUAL_SIZES, _EQUAL_RADII, _FULL_SIZES = (8, 25, 100), (0.5, 0.6, 0.7), (8, 40)
#: Labels of an instance in which those without a training instance are sought.
_FOUND = 10
_FEW = 400

#: Returns the k best labels of the rows of X.
Ranker = Callable[[Any, int], np.ndarray]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--sets", nargs="+", default=("english_wordnet",))
    parser.add_argument("--size", choices=tuple(SIZES), default="all", help="(all)")
    parser.add_argument("--samplers", nargs="+", choices=tuple(SAMPLERS), default=tuple(SAMPLERS))
    parser.add_argument("--epochs", type=int, default=15, help="of the part samplers (15)")
    parser.add_argument("--max-iter", type=int, default=5, help="of the part misses (5)")
    parser.add_argument("--sizes", nargs="+", type=int, default=(8, 64, 512), help="of clusters")
    parser.add_argument("--radii", nargs="+", type=float, default=(0.6, 0.8, 1.0))
    parser.add_argument("--steps", type=int, default=1000, help="of convergence (1,000)")
    parser.add_argument("--ova", action="store_true", help="beside OvALinearXC")
    parser.add_argument("--tree", action="store_true", help="beside the fusion of the paper")
    parser.add_argument("--seed", type=int, default=0, help="(0)")


def main(options: argparse.Namespace, report: Report) -> list[dict[str, Any]]:
    """Measure and report the parts; return the rows of all."""
    found: dict[str, list[dict[str, Any]]] = {}
    seed, parts = options.seed, options.parts
    if "equal_degrees" in parts:
        made = equal_degrees(seed)
        found["equal_degrees"] = measure_misses(
            made, _EQUAL_SIZES, _EQUAL_RADII, MARGIN, 400, seed, report
        )
    if "convergence" in parts:
        found["convergence"] = measure_convergence(_FULL_SIZES, options.steps, seed, report)
    for name in options.sets if set(parts) - _MADE else ():
        known = load(name, options.data, options.size, cache=options.cache)
        if "samplers" in parts:
            found["samplers"] = _samplers(known, options, report)
        if "misses" in parts:
            model, _ = _fitted(known, seed, max_iter=options.max_iter, classifier_max_iter=0)
            found["misses"] = measure_misses(
                embedded(known, model), options.sizes, options.radii, MARGIN, 1600, seed, report
            )
        if not set(_OF_MODEL) & set(parts):
            continue
        systems = _systems(known, options)
        for part in (part for part in _OF_MODEL if part in parts):
            measure = {"components": _components, "deciles": _deciles, "tail": _tail}[part]
            found[part] = measure(known, systems)
            report.table(f"{name}: {part}", found[part])
    return [{"part": part, **row} for part, rows in found.items() for row in rows]


def _fitted(known: DataSet, seed: int, **parameters: Any) -> tuple[NGAMEEmbeddingXC, float]:
    """Return a fitted model, and the CPU seconds of its fit."""

    def make(**more: Any) -> NGAMEEmbeddingXC:
        fixed = {"label_features": known.Z, "n_jobs": 1, "random_state": seed}
        return NGAMEEmbeddingXC(**{**fixed, **parameters, **more})

    few = known.X_train[:_FEW], known.Y_train[:_FEW]
    quietly(make(max_iter=1).fit, *few)  # compiled
    return cpu_seconds(quietly, make().fit, known.X_train, known.Y_train)


def _samplers(known: DataSet, options: argparse.Namespace, report: Report) -> list[dict[str, Any]]:
    """Return P@1 of the embedding and CPU seconds of fits, by sampler and epochs."""
    rows = []
    epochs = [n for n in (1, 2, 3, 4, 6, 8, 10, 12, 15) if n < options.epochs]
    for key in options.samplers:
        title, sampler = SAMPLERS[key]
        for n in [*epochs, options.epochs]:
            model, seconds = _fitted(
                known, options.seed, sampler=sampler, max_iter=n, classifier_max_iter=0
            )
            topk = _by_vectors(model, model.label_embeddings_)(known.X_test, 1)
            row = {"set": known.name, "sampler": title, "epochs": n}
            row |= {"P@1": scores_of(topk, known.Y_train, known.Y_test)["P@1"]}
            rows.append(row | {"CPU s": seconds, "CPU s an epoch": seconds / n})
        print(f"{known.name}, {title}: measured", flush=True)
    report.table(f"{known.name}: samplers", rows)
    report.figure(lines(rows, "sampler", "epochs", ("P@1",)), f"ngame_samplers_{known.name}")
    return rows


def _by_scores(scores_of_rows: Callable[[Any], np.ndarray]) -> Ranker:
    def topk(X: Any, k: int) -> np.ndarray:
        pieces = (scores_of_rows(X[rows]) for rows in gen_batches(X.shape[0], 1000))
        return np.vstack([np.argsort(-scores, axis=1, kind="stable")[:, :k] for scores in pieces])

    return topk


def _by_vectors(model: NGAMEEmbeddingXC, vectors: np.ndarray) -> Ranker:
    return _by_scores(lambda X: model.embed(X) @ vectors.T)


def _by_model(model: Any) -> Ranker:
    return lambda X, k: model.predict_topk(X, k)[0]


def _systems(known: DataSet, options: argparse.Namespace) -> dict[str, tuple[Ranker, float]]:
    """Return what ranks labels, and the CPU seconds of the fits."""
    model, seconds = _fitted(known, options.seed)
    systems: dict[str, tuple[Ranker, float]] = {
        "embedding": (_by_vectors(model, model.label_embeddings_), seconds),
        "classifiers": (_by_vectors(model, model.coef_), seconds),
        "sum of both": (_by_vectors(model, model.label_embeddings_ + model.coef_), seconds),
        "fused": (_by_model(model), seconds),
    }
    if options.tree:
        of_tree, seconds = _fitted(known, options.seed, fusion="tree")
        systems["fused by a tree"] = (_by_model(of_tree), seconds)
    if options.ova:
        linear = OvALinearXC(n_jobs=1)
        quietly(linear.fit, known.X_train[:_FEW], known.Y_train[:_FEW])
        _, seconds = cpu_seconds(quietly, linear.fit, known.X_train, known.Y_train)
        systems["OvALinearXC"] = (_by_model(linear), seconds)
    return systems


def _components(known: DataSet, systems: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for name, (rank, fit_s) in systems.items():
        rank(known.X_test[:1], 5)
        topk, seconds = cpu_seconds(rank, known.X_test, 5)
        row = {"scores": name, **scores_of(topk, known.Y_train, known.Y_test)}
        rows.append(row | {"ms/row": 1000 * seconds / len(topk), "fit, CPU s": fit_s})
    return rows


def _deciles(known: DataSet, systems: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the contribution to P@5 of labels by frequency, in tenths of all training pairs."""
    counts = np.bincount(known.Y_train.indices, minlength=known.Y_train.shape[1])
    order = np.argsort(counts, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    decile = np.empty(len(counts), np.int64)
    decile[order] = np.minimum(10 * before // max(1, counts.sum()), 9)
    rows: list[dict[str, Any]] = [
        {
            "tenth": k + 1,
            "labels": int((decile == k).sum()),
            "instances, at most": int(counts[decile == k].max(initial=0)),
        }
        for k in range(10)
    ]
    for name, (rank, _) in systems.items():
        topk = rank(known.X_test, 5)
        of = np.repeat(np.arange(len(topk)), topk.shape[1])
        hits = np.asarray(known.Y_test[of, topk.ravel()]).ravel() > 0
        shares = np.bincount(decile[topk.ravel()[hits]], minlength=10) / topk.size
        for row, share in zip(rows, shares, strict=True):
            row[name] = float(share)
    return rows


def _tail(known: DataSet, systems: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the recall of labels without a training instance, and of the others."""
    n_labels = known.Y_train.shape[1]
    is_unseen = np.bincount(known.Y_train.indices, minlength=n_labels) == 0
    of, labels = known.Y_test.nonzero()
    Z = normalize(known.Z)
    systems = systems | {"tf-idf cosine": (_by_scores(lambda X: (X @ Z.T).toarray()), 0.0)}
    rows = []
    for name, (rank, _) in systems.items():
        topk = rank(known.X_test, _FOUND)
        hits = (topk[of] == labels[:, None]).any(axis=1)
        row = {"scores": name, "unseen labels": int(is_unseen.sum())}
        for part, inside in (("unseen", is_unseen[labels]), ("seen", ~is_unseen[labels])):
            row[f"recall@{_FOUND}, {part}"] = float(hits[inside].mean()) if inside.any() else None
        rows.append(row)
    return rows
