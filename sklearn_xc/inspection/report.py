"""A report on one model, as HTML and as a model card."""

import json
import platform
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from sklearn_xc._input.arguments import check_count, draw_seed, is_number
from sklearn_xc._input.sklearn_private import num_samples, safe_indexing
from sklearn_xc._topk import classes_of, topk, unwrap
from sklearn_xc.inspection.comparison import (
    compare_groups,
    found_pairs,
    match_labels,
    training_counts,
)
from sklearn_xc.metrics import propensity
from sklearn_xc.metrics.bootstrap import bootstrap_ratio
from sklearn_xc.metrics.by_name import SUMS, row_sums
from sklearn_xc.metrics.check import check_y_true
from sklearn_xc.metrics.hits import hits_of

_WHO = "report"
_KS = (1, 3, 5)
_N_CONFUSED = 10
#: Longer training reports are summarised, and longer texts cut.
_LONGEST = 12
_MOST_CHARACTERS = 300
_STYLE = """<style>
.xc-report {font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 60rem;
 margin: 0 auto; padding: 0 1rem; overflow-wrap: anywhere}
.xc-report h1 {font-size: 1.6em} .xc-report h2 {font-size: 1.2em; margin: 1.6em 0 .4em}
.xc-report .scroll {overflow-x: auto}
.xc-report table {border-collapse: collapse; overflow-wrap: normal}
.xc-report th, .xc-report td {padding: .25em .8em .25em 0; text-align: left; vertical-align: top;
 border-bottom: 1px solid #ddd}
.xc-report td.n, .xc-report th.n {text-align: right; white-space: nowrap}
.xc-report pre {white-space: pre-wrap; margin: 0; font-size: .85em; min-width: 15rem}
.xc-report td pre {min-width: 12rem}
</style>"""
_CARD = """---
library_name: sklearn_xc
tags: [sklearn, extreme-classification, multi-label]
model-index: {index}
---

# {name}

## Model description

{model}

{parameters}

## Intended uses

[More information needed: what is the model for, and what is it not for?]

## Training

{training}

## Evaluation results

{results}

## How to use

```python
import sklearn_xc

model = sklearn_xc.load("path/of/the/model")
sklearn_xc.topk_names(model, X, k=5)
```
"""


@dataclass(frozen=True, repr=False)
class ModelReport:
    """Result of :func:`report`. Notebooks show it as HTML.

    Attributes
    ----------
    name : str
        The title.
    model : str
        The model as it prints.
    tables : dict of str to DataFrame
        By title: "Metrics" and "Labels by training frequency", fractions with the ends of their
        intervals; "Most confused"; "Examples"; "Training"; "Parameters"; and "Versions and sizes".
        Those that do not apply are left out.
    """

    name: str
    model: str
    tables: dict[str, Any]

    def _repr_html_(self) -> str:
        parts = [_STYLE, f"<h1>{escape(self.name)}</h1>"]
        for title, table in self.tables.items():
            parts.append(f"<h2>{escape(title)}</h2>")
            drawn = _drawn(table) if "lower" in table else ""
            parts.append(f'<div class="scroll">{drawn}{_as_html(table)}</div>')
        return '<div class="xc-report">' + "\n".join(parts) + "</div>"

    def to_html(self, path: Any = None) -> str:
        """Return a page of HTML, without scripts and files of others.

        Parameters
        ----------
        path : path-like, default=None
            A file to write it to, too.

        Returns
        -------
        str
        """
        page = (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(self.name)}</title></head><body>{self._repr_html_()}</body></html>\n"
        )
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def to_markdown(self) -> str:
        """Return a model card: Markdown below YAML, as the Hugging Face hub reads it.

        Examples are left out, as they may be private.

        Returns
        -------
        str
        """
        metrics = [
            {"type": row.metric.lower(), "name": row.metric, "value": round(row.value, 4)}
            for row in self.tables["Metrics"].itertuples()
        ]
        result = {
            "task": {"type": "text-classification"},
            "dataset": {"name": "test data", "type": "test-data"},
            "metrics": metrics,
        }
        written = {title: _as_markdown(table) for title, table in self.tables.items()}
        shown = ("Metrics", "Labels by training frequency", "Most confused")
        results = [f"### {title}\n\n{written[title]}" for title in shown if title in written]
        both = [written[title] for title in ("Training", "Versions and sizes") if title in written]
        return _CARD.format(
            index=json.dumps([{"name": self.name, "results": [result]}]),
            name=_plain(self.name),
            model=_plain(self.model),
            parameters=written["Parameters"],
            training="\n\n".join(both),
            results="\n\n".join(results),
        )


def report(
    model: Any,
    X: Any,
    y: Any,
    *,
    k: int = 5,
    name: str | None = None,
    classes: Any = None,
    n_examples: int = 3,
    confidence: float = 0.95,
    n_resamples: int = 999,
    random_state: Any = None,
) -> ModelReport:
    """Return a report on a model: how good it is, for which labels, and where it errs.

    Parameters
    ----------
    model : classifier
        Fitted: any that :func:`~sklearn_xc.topk` can query, including Pipelines and searches.
    X : object of n instances
        Input for the model, which it should not have been trained on.
    y : {array-like, sparse matrix} of shape (n, n_labels) or (n,), or n lists of names
        True labels. Names that the model does not know count as missed.
    k : int, default=5
        Number of best labels that count as found, for labels by frequency.
    name : str, default=None
        The title; None for the class of the model.
    classes : array-like of shape (n_labels,), default=None
        Names of the columns of y if it is an indicator. None takes those of a data frame,
        otherwise ``classes_`` of the model.
    n_examples : int, default=3
        Number of instances shown whose best label is right, and wrong. Those with the highest
        scores are shown, with their contents.
    confidence : float, default=0.95
        Confidence level of all intervals, in (0, 1).
    n_resamples : int, default=999
        Number of resamples of each bootstrap.
    random_state : int, RandomState instance or None, default=None
        Pass an int for reproducible resamples.

    Returns
    -------
    ModelReport
        With ``to_html``, ``to_markdown`` and the tables.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid or labels cannot be matched by name.
    ImportError
        If pandas is not installed.

    See Also
    --------
    compare_models : Two models.

    Notes
    -----
    Intervals are those of :func:`~sklearn_xc.metrics.paired_bootstrap`, against a ranking without
    hits. F1 is of ``predict``, over labels that are true or predicted; its macro average has no
    interval. PSP needs a model with ``label_counts_``.

    Examples
    --------
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> from sklearn_xc.inspection import report
    >>> X, Y = make_xc_classification(
    ...     n_samples=600, n_features=300, n_labels=80, random_state=0, return_X_y=True
    ... )
    >>> found = report(OvALinearXC().fit(X[:400], Y[:400]), X[400:], Y[400:], random_state=0)
    >>> found.tables["Metrics"]["metric"].tolist()[:3]
    ['P@1', 'P@3', 'P@5']
    """
    from pandas import DataFrame

    k, n_examples = check_count(k, f"{_WHO}: k"), check_count(n_examples, "n_examples", least=0)
    n_resamples = check_count(n_resamples, f"{_WHO}: n_resamples", least=100)
    if not is_number(confidence) or not 0 < float(confidence) < 1:
        raise ValueError(f"{_WHO}: confidence must be between 0 and 1. Got {confidence!r}.")
    Y, labels, n_known, (place, _) = match_labels((model, model), y, classes, _WHO)
    if num_samples(X) != Y.shape[0] or not Y.nnz:
        raise ValueError(
            f"{_WHO}: X and y must have as many rows, some with labels. Got {num_samples(X)} rows "
            f"of X, and {Y.nnz} labels in {Y.shape[0]} rows of y."
        )
    settings = n_resamples, float(confidence), np.random.default_rng(draw_seed(random_state))
    own, scores = topk(model, X, max(k, *_KS))
    best = np.where(own >= 0, place[own], -1)
    hits = hits_of(check_y_true(Y), best, best.shape[1])
    counts, n_trained = training_counts((model,), [place], len(labels))
    weights = None if counts is None or n_trained < 3 else propensity(counts[:n_known], n_trained)
    of_known = hits_of(check_y_true(Y[:, :n_known]), best, best.shape[1])
    rows = []
    for metric in ("precision", "ndcg", "psp", "recall", "reciprocal_rank"):
        for at in _KS if metric != "reciprocal_rank" else (max(_KS),):
            if metric != "psp" or weights is not None:
                sums = row_sums(metric, of_known if metric == "psp" else hits, at, weights)
                interval = bootstrap_ratio(*sums, *settings)[:3]
                rows.append((f"{SUMS[metric].short}@{at}", *interval))
    if hasattr(model, "predict"):
        named = model.predict(X)
        if isinstance(named, np.ndarray) and named.ndim == 1 and named.dtype.kind in "UTO":
            named = named[:, None].tolist()  # so that no separator is looked for
        named = match_labels((model, model), named, None, _WHO)
        rows += _f1(Y, named[0][:, : len(place)], place, settings)
    tables = {"Metrics": DataFrame(rows, columns=["metric", "value", "low", "high"])}
    if counts is not None:
        found = found_pairs(hits_of(hits.true, best[:, :k], k))
        groups = compare_groups(hits.true, counts, (np.zeros(len(found)), found), settings)
        kept = [(*row[:4], *row[6:9]) for row in groups]
        columns = ["lower", "upper", "n_labels", "n_true", f"R@{k}", "low", "high"]
        tables["Labels by training frequency"] = DataFrame(kept, columns=columns)
    tables["Most confused"] = DataFrame(_confused(hits, labels))
    shown = _examples(model, X, hits, own, scores, labels, n_examples)
    tables["Examples"] = DataFrame(shown, columns=["", "instance", "true", "best", "why"])
    tables |= {title: DataFrame(one) for title, one in _about(model, Y, len(labels)).items()}
    title = type(model).__name__ if name is None else str(name)
    return ModelReport(title, repr(model), {t: one for t, one in tables.items() if len(one)})


def _f1(Y: Any, predicted: Any, place: np.ndarray, settings: tuple) -> list[tuple]:
    """Return micro-F1, with an interval, and macro-F1."""
    pairs = predicted.tocoo()
    P = type(Y)((pairs.data, (pairs.row, place[pairs.col])), shape=Y.shape)
    hit = Y.multiply(P)
    rows, columns = ((2.0 * hit.sum(axis=a), 1.0 * (Y.sum(axis=a) + P.sum(axis=a))) for a in (1, 0))
    used = columns[1] > 0
    macro = float(np.mean(columns[0][used] / columns[1][used]))
    micro = bootstrap_ratio(*rows, *settings)[:3]
    return [("micro-F1", *micro), ("macro-F1", macro, np.nan, np.nan)]


def _confused(hits: Any, labels: list) -> dict[str, list]:
    """Return the pairs of a wrong best label and a true one that occur most often."""
    true, best = hits.true, hits.positions[:, 0]
    wrong = ~hits.hit[:, 0] & (best >= 0)
    pairs = np.column_stack([best[true.rows], true.columns])[wrong[true.rows]]
    pairs, times = np.unique(pairs, axis=0, return_counts=True)
    order = np.argsort(-times, kind="stable")[:_N_CONFUSED]
    first, second = ([labels[i] for i in pairs[order, j]] for j in (0, 1))
    return {"given as best": first, "right": second, "times": times[order].tolist()}


def _examples(
    model: Any, X: Any, hits: Any, own: Any, scores: Any, labels: list, n: int
) -> list[tuple]:
    """Return instances whose best label is right, and wrong, with why."""
    found = []
    for kind, which in (("right", hits.hit[:, 0]), ("wrong", ~hits.hit[:, 0])):
        some = np.flatnonzero(which & (own[:, 0] >= 0))
        for row in some[np.argsort(-scores[some, 0], kind="stable")[:n]].tolist():
            one = safe_indexing(X, [row])
            inside, x = unwrap(model, one)
            text = one[0] if isinstance(one, list) else getattr(one, "tolist", list)()
            text = text if isinstance(text, str) else f"row {row}"
            true = hits.true.columns[hits.true.rows == row]
            best = classes_of(model)[own[row, 0]]
            why = str(inside.explain(x, best, n_features=5)) if hasattr(inside, "explain") else ""
            names = ", ".join(str(labels[i]) for i in true)
            cut = text[:_MOST_CHARACTERS] + "…" * (len(text) > _MOST_CHARACTERS)
            found.append((kind, cut, names, f"{best}", why))
    return found


def _about(model: Any, Y: Any, n_labels: int) -> dict[str, Any]:
    """Return the tables on training, parameters, versions and sizes."""
    from pandas import DataFrame

    import sklearn_xc

    inside = unwrap(model, None)[0]
    trained = inside
    while not hasattr(trained, "fit_report_") and trained is not None:
        trained = getattr(trained, "classifier_", getattr(trained, "estimator_", None))
    training = DataFrame(getattr(trained, "fit_report_", {}))
    if len(training) > _LONGEST:
        training = (
            training.select_dtypes("number")
            .agg(["min", "mean", "max"])
            .rename_axis("")
            .reset_index()
        )
    simple = {
        key: value for key, value in model.get_params().items() if not hasattr(value, "get_params")
    }
    cut = [repr(value)[:_MOST_CHARACTERS] for value in simple.values()]
    facts = {
        "sklearn_xc": sklearn_xc.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "test instances": f"{Y.shape[0]:,}",
        "training instances": f"{getattr(inside, 'n_samples_fit_', 0):,}",
        "labels": f"{len(classes_of(model)):,}",
        "labels that are only in the test": f"{n_labels - len(classes_of(model)):,}",
    }
    return {
        "Training": training,
        "Parameters": {"parameter": list(simple), "value": cut},
        "Versions and sizes": {"what": list(facts), "value": list(facts.values())},
    }


def _cells(table: Any) -> list[list[str]]:
    """Return the rows of a table as texts; fractions with an interval in percent."""
    is_share = {"low", "high"} <= set(table)
    rows = []
    for row in table.itertuples(index=False):
        cells = []
        for value in row:
            if isinstance(value, float):
                percent = f"{100 * value:.1f}%" if is_share else f"{value:.4g}"
                cells.append("" if np.isnan(value) else percent)
            else:
                cells.append(f"{value:,}" if isinstance(value, int) else str(value))
        rows.append(cells)
    return rows


def _as_html(table: Any) -> str:
    """Return a table with everything escaped."""
    from pandas.api.types import is_numeric_dtype

    kinds = [' class="n"' if is_numeric_dtype(one) else "" for one in table.dtypes]
    head = "".join(f"<th{a}>{escape(str(t))}</th>" for a, t in zip(kinds, table, strict=True))
    lines = [f"<tr>{head}</tr>"]
    for row in _cells(table):
        cells = [f"<pre>{escape(t)}</pre>" if "\n" in t else escape(t) for t in row]
        filled = (f"<td{a}>{cell}</td>" for a, cell in zip(kinds, cells, strict=True))
        lines.append("<tr>" + "".join(filled) + "</tr>")
    return "<table>" + "\n".join(lines) + "</table>"


def _plain(text: Any) -> str:
    """Return a text in one line that is neither markup nor a cell's end in Markdown."""
    return escape(" ".join(str(text).split()), quote=False).replace("|", "\\|")


def _as_markdown(table: Any) -> str:
    lines = [list(map(str, table)), ["---"] * len(table.columns), *_cells(table)]
    return "\n".join("| " + " | ".join(map(_plain, row)) + " |" for row in lines)


def _drawn(table: Any) -> str:
    """Return the shares of a table by frequency as bars with intervals, an SVG."""
    bars, step, height = [], 96, 150
    metric = table.columns[4]
    for i, row in enumerate(table.itertuples(index=False)):
        x = 40 + step * i
        y, low, high = (height - 1.3 * 100 * min(max(v, 0), 1) for v in (row[4], row.low, row.high))
        span = f"{row.lower:,}" if row.lower == row.upper else f"{row.lower:,}-{row.upper:,}"
        bars.append(
            f'<rect x="{x}" y="{y:.1f}" width="56" height="{height - y:.1f}" fill="#8db4d9"/>'
            f'<path d="M{x + 28} {low:.1f}V{high:.1f}" stroke="#222"/>'
            f'<text x="{x + 28}" y="{height - 5}" text-anchor="middle">{100 * row[4]:.0f}%</text>'
            f'<text x="{x + 28}" y="{height + 16}" text-anchor="middle">{span}</text>'
        )
    wide = 40 + step * len(table)
    return (
        f'<svg viewBox="0 0 {wide} 200" width="{wide}" height="200" role="img" font-size="12" '
        f'aria-label="{metric} by training frequency"><path d="M30 {height}H{wide}" '
        f'stroke="#888"/>{"".join(bars)}<text x="30" y="188">{metric} by training instances of '
        "the label, with intervals</text></svg>"
    )
