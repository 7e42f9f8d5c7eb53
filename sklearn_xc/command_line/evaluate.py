"""``evaluate``: how good a model is on a table whose labels are known."""

import json
import math
from typing import Any

from sklearn_xc.command_line.errors import CommandError
from sklearn_xc.command_line.labelled_rows import read_labelled
from sklearn_xc.command_line.model_files import load_model, text_columns
from sklearn_xc.command_line.progress import Progress

#: Rows that are labelled at a time.
_AT_A_TIME = 4096


def evaluate(options: Any) -> None:
    """Print the quality of a model.

    Parameters
    ----------
    options : argparse.Namespace
        As :mod:`sklearn_xc.command_line.arguments` reads them.

    Raises
    ------
    CommandError
        For options, models and tables that do not do.
    """
    from sklearn_xc.command_line.quality import Answers

    model, known = load_model(options.model)
    texts = text_columns(options.text, known)
    labels = options.labels or (known.labels if known else None)
    if labels is None:
        raise CommandError("--labels COLUMN: which column holds the true labels?")
    separator = options.separator or (known.separator if known else None)
    rows = read_labelled(options.table, texts, labels, separator, options)
    answers = Answers(model)
    with Progress(options.quiet) as progress:
        for first in range(0, len(rows.texts), _AT_A_TIME):
            last = first + _AT_A_TIME
            answers.add(rows.texts[first:last], rows.labels[first:last])
            progress.show(answers.n_rows, answers.n_rows / len(rows.texts))
    numbers, groups = answers.metrics(), answers.by_frequency()
    if options.json:
        whole: dict[str, Any] = {"model": options.model, "table": options.table}
        whole |= {"rows": answers.n_rows, "rows_without_labels": rows.n_without}
        whole["metrics"] = {
            name: None if math.isnan(value) else value for name, value in numbers.items()
        }
        whole["by_frequency"] = groups
        print(json.dumps(whole, ensure_ascii=False, indent=2))
    else:
        print("\n".join(_as_text(answers.n_rows, numbers, groups)))


def _as_text(n_rows: int, numbers: dict[str, float], groups: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the report."""
    ks = sorted({int(name.split("@")[1]) for name in numbers if "@" in name})
    lines = [f"{n_rows:,} rows", "", "     " + "".join(f"{f'k={k}':>8}" for k in ks)]
    for name in dict.fromkeys(name.split("@")[0] for name in numbers if "@" in name):
        values = [numbers[f"{name}@{k}"] for k in ks]
        lines.append(f"{name + '@k':<7}" + "".join(f"{value:8.1%}" for value in values)[2:])
    lines += ["", *(f"{name} {numbers[name]:.1%}" for name in ("micro-F1", "macro-F1")), ""]
    lines.append(f"{'training rows':<16}{'labels':>9}{'occurrences':>13}{'found in first 5':>18}")
    for group in groups:
        lines.append(
            f"{group['training_rows']:<16}{group['labels']:>9,}{group['occurrences']:>13,}"
            f"{group['found']:>18.1%}"
        )
    return lines
