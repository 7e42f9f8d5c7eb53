"""``evaluate``: metrics of a model on a table whose labels are known."""

import json
import math
from typing import Any

from sklearn_xc.command_line.models import load_model
from sklearn_xc.command_line.tables import CommandError, as_text, read_labelled, say

_KS = (1, 3, 5)


def run(options: Any) -> None:
    """Print the metrics of a model, plain or as JSON."""
    model, text_columns, label_column, separator = load_model(options)
    if label_column is None:
        raise CommandError("--labels COLUMN: which column holds the true labels?")
    texts, labels = read_labelled(options.table, text_columns, label_column, separator, options)
    n_without = labels.count([])
    if n_without and not options.quiet:
        say(f"note: {n_without:,} of {len(labels):,} rows have no label.")
    if options.report is not None:
        from sklearn_xc.inspection import report

        page = report(model, texts, labels, name=options.model, random_state=0)
        page.to_html(options.report)
    metrics = measure(model, texts, labels)
    if options.json:
        shown = {name: None if math.isnan(value) else value for name, value in metrics.items()}
        print(json.dumps({"rows": len(texts), "metrics": shown}, indent=2))
        return
    print(f"{len(texts):,} rows\n\n     " + "".join(f"{f'k={k}':>8}" for k in _KS))
    for name in ("P", "R", "nDCG", "PSP"):
        values = "".join(f"{metrics[f'{name}@{k}']:8.1%}" for k in _KS)
        print(f"{name + '@k':<7}{values[2:]}")
    print(f"\nmicro-F1 {metrics['micro-F1']:.1%}\nmacro-F1 {metrics['macro-F1']:.1%}")


def measure(model: Any, texts: list[str], labels: list[list[str]]) -> dict[str, float]:
    """Return the metrics of a fitted TextClassifierXC.

    These are "P@1", "R@1", "nDCG@1", "PSP@1", ..., "micro-F1" and "macro-F1" over labels that are
    true or predicted for some row. Labels that training has not seen count as missed.
    """
    import numpy as np
    from sklearn.metrics import f1_score

    from sklearn_xc import LabelBinarizerXC
    from sklearn_xc.metrics import TopKScorer

    scorer = TopKScorer(_KS, ("precision", "recall", "ndcg", "psp"))
    predicted = list(model.predict(texts))
    has_one_label = not isinstance(predicted[0], list)
    y: Any = [" ".join(names) for names in labels] if has_one_label else labels
    values = {name: float(value) for name, value in scorer(model, texts, y).items()}
    names = list(map(as_text, model.classes_.tolist()))
    binarizer = LabelBinarizerXC(classes=names, handle_unknown="add")
    Y = binarizer.fit_transform(labels)
    P = binarizer.transform(
        [list(map(as_text, [row] if has_one_label else row)) for row in predicted]
    )
    values["micro-F1"] = float(f1_score(Y, P, average="micro", zero_division=0))
    values["macro-F1"] = float(f1_score(Y, P, average="macro", zero_division=np.nan))
    return values
