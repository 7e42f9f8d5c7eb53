"""``evaluate``: metrics of a model on a table whose labels are known."""

import json
import math
from itertools import pairwise
from typing import Any

from sklearn_xc.command_line.models import load_model
from sklearn_xc.command_line.tables import CommandError, as_text, read_labelled

_KS = (1, 3, 5)
#: Groups of labels by their training rows: lower bounds.
_EDGES = (0, 1, 2, 5, 10, 50, 100, 1000, math.inf)


def run(options: Any) -> None:
    """Print the metrics of a model, plain or as JSON."""
    model, text_columns, label_column, separator = load_model(options)
    if label_column is None:
        raise CommandError("--labels COLUMN: which column holds the true labels?")
    texts, labels = read_labelled(options.table, text_columns, label_column, separator, options)
    metrics, groups = measure(model, texts, labels)
    if options.json:
        shown = {name: None if math.isnan(value) else value for name, value in metrics.items()}
        report = {"rows": len(texts), "metrics": shown, "by_frequency": groups}
        print(json.dumps(report, ensure_ascii=False, indent=2))
        return
    print(f"{len(texts):,} rows\n\n     " + "".join(f"{f'k={k}':>8}" for k in _KS))
    for name in ("P", "R", "nDCG", "PSP"):
        values = "".join(f"{metrics[f'{name}@{k}']:8.1%}" for k in _KS)
        print(f"{name + '@k':<7}{values[2:]}")
    print(f"\nmicro-F1 {metrics['micro-F1']:.1%}\nmacro-F1 {metrics['macro-F1']:.1%}\n")
    print(f"{'training rows':<16}{'labels':>9}{'occurrences':>13}{'found in first 5':>18}")
    for group in groups:
        print(
            f"{group['training_rows']:<16}{group['labels']:>9,}{group['occurrences']:>13,}"
            f"{group['found']:>18.1%}"
        )


def measure(
    model: Any, texts: list[str], labels: list[list[str]]
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Return the metrics of a fitted TextClassifierXC, and the recall of labels by frequency.

    Labels that training has not seen count as missed.

    Returns
    -------
    metrics : dict of str to float
        "P@1", "R@1", "nDCG@1", "PSP@1", ..., "micro-F1" and "macro-F1" over labels that are true or
        predicted for some row.
    groups : list of dict
        For groups of labels by ``training_rows``: the ``labels`` that occur, their ``occurrences``
        and the share ``found`` among the five best.
    """
    import numpy as np
    import scipy.sparse as sp
    from sklearn.metrics import f1_score

    from sklearn_xc import LabelBinarizerXC, metrics

    names = list(map(as_text, model.classes_.tolist()))
    binarizer = LabelBinarizerXC(classes=names, handle_unknown="add")
    Y = binarizer.fit_transform(labels)
    best = model.predict_topk(texts, max(_KS))[0]
    found = {
        "P": metrics.precision_at_k(Y, best, _KS),
        "R": metrics.recall_at_k(Y, best, _KS),
        "nDCG": metrics.ndcg_at_k(Y, best, _KS),
        "PSP": np.full(len(_KS), np.nan),
    }
    if model.n_samples_fit_ >= 3:
        weights = metrics.propensity(model.label_counts_, model.n_samples_fit_)
        # Labels that no ranking can hold add to neither sum.
        found["PSP"] = metrics.psp_at_k(Y[:, : len(names)], best, _KS, propensities=weights)
    values = {
        f"{name}@{k}": float(v) for name in found for k, v in zip(_KS, found[name], strict=True)
    }
    predicted = [
        [as_text(name) for name in (row if isinstance(row, list) else [row])]
        for row in model.predict(texts)
    ]
    P = binarizer.transform(predicted)
    values["micro-F1"] = float(f1_score(Y, P, average="micro", zero_division=0))
    values["macro-F1"] = float(f1_score(Y, P, average="macro", zero_division=np.nan))

    rows, ranks = np.nonzero(best >= 0)
    ones = np.ones(len(rows), np.int8)
    answered = sp.csr_array((ones, (rows, best[rows, ranks])), shape=Y.shape)
    counts = np.append(model.label_counts_, np.zeros(Y.shape[1] - len(names), np.int64))
    hits, occurs = Y.multiply(answered).sum(axis=0), Y.sum(axis=0)
    groups = []
    for low, high in pairwise(_EDGES):
        group = (counts >= low) & (counts < high) & (occurs > 0)
        if group.any():
            total = int(occurs[group].sum())
            share = float(hits[group].sum() / total)
            size = int(group.sum())
            groups.append(
                {
                    "training_rows": _range(low, high),
                    "labels": size,
                    "occurrences": total,
                    "found": share,
                }
            )
    return values, groups


def _range(low: float, high: float) -> str:
    if not low:
        return "not learnt"
    if high == math.inf:
        return f"{low:,} or more"
    return f"{low:,}" if high == low + 1 else f"{low:,} to {high - 1:,}"
