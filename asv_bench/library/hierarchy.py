"""Hierarchies: hierarchical F1 and precision with ancestors in predictions and in training.

Four kinds of answers of ``OvALinearXC`` with tuned thresholds. "plain" is trained on the labels as
they are given. "plain, closed" adds all ancestors to what it predicts, and makes its ranking
consistent (``LabelHierarchy.with_ancestors`` and ``consistent_topk``). "with ancestors" is trained
on labels to which all ancestors are added; "with ancestors, closed" is that with the same done to
its answers. Hierarchical precision, recall and F1 are of label sets, P@k of rankings, where all
ancestors of the given labels are true. "Inconsistent" are the rows with a label that lacks an
ancestor. The last two columns compare the most specific labels of each answer with the given ones,
over all labels and over rare ones, those with 1 to 4 training rows.

Subjects of the Tate are leaves of a tree, and nothing above them is a label; labels of WordNet are
hypernyms of words, of which each may be above others.
"""

import argparse
from typing import Any

import numpy as np
import scipy.sparse as sp

from asv_bench.common.measure import quietly
from asv_bench.common.report import Report
from asv_bench.common.sets import SIZES, find_files, load, read_table
from sklearn_xc import LabelHierarchy, OvALinearXC, ThresholdTuner
from sklearn_xc.datasets import load_tate_subjects
from sklearn_xc.metrics import precision_at_k

SETS = ("tate", "english_wordnet")
_RARE = 4


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, help="data sets")
    parser.add_argument("--size", choices=SIZES, default="1/4", help="share of training rows (1/4)")


def main(options: argparse.Namespace, report: Report) -> list[dict[str, Any]]:
    """Train with and without ancestors; return a row for each set and kind of predictions."""
    rows = []
    for name in options.sets:
        found = load(name, options.data, options.size, cache=options.cache)
        hierarchy = tate_hierarchy() if name == "tate" else wordnet_hierarchy(options.data)
        first = {"set": name, "training rows": found.X_train.shape[0], "nodes": hierarchy.n_nodes}
        Y, Y_test = sp.csr_array(found.Y_train), sp.csr_array(found.Y_test)
        compared = quietly(compare, found.X_train, Y, found.X_test, Y_test, hierarchy)
        rows += [{**first, **row} for row in compared]
    report.table("Labels with ancestors, test set", rows)
    return rows


def compare(
    X: Any, Y: sp.csr_array, X_test: Any, Y_test: sp.csr_array, hierarchy: LabelHierarchy
) -> list[dict[str, Any]]:
    """Return a row for each kind of answers.

    Parameters
    ----------
    X, X_test : sparse matrix of shape (n, n_features)
    Y, Y_test : csr_array of shape (n, n_labels)
        The labels as they are given; columns are the first nodes.
    hierarchy : LabelHierarchy
    """
    n_labels = Y.shape[1]
    counts = np.asarray(Y.sum(axis=0)).ravel()
    rare = (counts > 0) & (counts <= _RARE)
    true = hierarchy.with_ancestors(Y_test)
    rows = []
    for name, target in (("plain", Y), ("with ancestors", hierarchy.with_ancestors(Y))):
        model = ThresholdTuner(OvALinearXC(n_jobs=-1), random_state=0).fit(X, target)
        predicted, ranked = model.predict(X_test), model.predict_topk(X_test, 5)
        for ending, answer, ranking in (
            ("", predicted, ranked),
            (", closed", hierarchy.with_ancestors(predicted), hierarchy.consistent_topk(*ranked)),
        ):
            answer = sp.csr_array(answer)
            answer.resize(true.shape)
            closed = sp.csr_array(hierarchy.with_ancestors(answer))
            hits = closed.multiply(true).sum()
            missing = closed.sum(axis=1) > answer.sum(axis=1)
            given = hierarchy.deepest(answer)[:, :n_labels]
            rows.append(
                {
                    "answers": name + ending,
                    "labels a row": answer.nnz / answer.shape[0],
                    "hP": 100 * hits / max(closed.sum(), 1),
                    "hR": 100 * hits / max(true.sum(), 1),
                    "hF1": 100 * _f1(true, closed),
                    "inconsistent %": 100 * missing.mean(),
                    **{f"P@{k}": 100 * precision_at_k(true, ranking, k) for k in (1, 5)},
                    "F1 of given labels": 100 * _f1(Y_test, given),
                    "of rare ones": 100 * _f1(Y_test[:, rare], given[:, rare]),
                }
            )
    return rows


def _f1(Y_true: sp.csr_array, Y_pred: sp.csr_array) -> float:
    """Return the micro-averaged F1."""
    hits = Y_true.multiply(Y_pred).sum()
    return float(2 * hits / max(Y_true.sum() + Y_pred.sum(), 1))


def tate_hierarchy() -> LabelHierarchy:
    """Return the tree of the Tate's subjects, whose leaves are the labels."""
    tate: Any = load_tate_subjects("test")
    return LabelHierarchy.from_paths(tate.target_names, separator=" > ")


def wordnet_hierarchy(data: Any) -> LabelHierarchy:
    """Return the graph of hypernyms among the labels of the set, by their numbers."""
    *parts, labels = find_files(
        data, *(f"english_wordnet/hypernym_{part}.tsv.gz" for part in ("train", "test", "labels"))
    )
    number_of = {row["synset"]: int(row["label"]) for row in read_table(labels)}
    edges = {
        (number_of[row["synset"]], int(parent))
        for path in parts
        for row in read_table(path)
        if row["synset"] in number_of
        for parent in row["labels"].split()
    }
    return LabelHierarchy.from_edges(sorted(edges), labels=np.arange(len(number_of)))
