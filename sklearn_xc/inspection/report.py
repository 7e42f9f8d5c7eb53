"""A report on one model, as HTML and as a model card."""

import json
from collections import Counter
from dataclasses import dataclass
from html import escape
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from sklearn_xc._input.arguments import check_count
from sklearn_xc._input.sklearn_private import num_samples, safe_indexing
from sklearn_xc._state.files import versions
from sklearn_xc._topk import classes_of, topk, unwrap
from sklearn_xc.inspection.comparison import (
    bootstrap_settings,
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
_MORE = ("ndcg", 3), ("ndcg", 5), ("reciprocal_rank", 5)
_METRICS = (*product(("precision", "psp", "recall"), _KS), *_MORE)
#: Longer training reports are summarised, and longer texts cut.
_N_CONFUSED, _LONGEST, _MOST_CHARACTERS = 10, 12, 300
#: A fifth column is a number or an explanation, whose lines are kept whole.
_STYLE = """<style>
.xc-report {font: 14px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 60rem;
 margin: 0 auto; padding: 0 1rem; overflow-wrap: break-word}
.xc-report div {overflow-x: auto}
.xc-report table {border-collapse: collapse}
.xc-report th, .xc-report td {padding: .25em .6em .25em 0; text-align: left; vertical-align: top;
 border-bottom: 1px solid #ddd; white-space: pre-wrap; font-variant-numeric: tabular-nums}
.xc-report .n {text-align: right; white-space: nowrap} .xc-report td:nth-child(5) {white-space: pre}
.xc-report svg {background: #eee; vertical-align: middle}
</style>"""
#: A share and its interval.
_BAR = (
    '<svg width="100" height="14" aria-hidden="true"><path d="M0 0H{:.1f}V14H0" fill="#8db4d9"/>'
    '<path d="M{:.1f} 7H{:.1f}" stroke="#1c4f82" stroke-width="6"/></svg>'
)
_USE = "model = sklearn_xc.load('path')\nsklearn_xc.topk_names(model, X, k=5)  # X: texts, or rows"
_LEGEND = (
    "P, R: precision and recall; PSP: precision in which rare labels count more; micro-F1, "
    "macro-F1: of predicted labels, over all and as a mean over labels; low, high: the interval."
)


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
        intervals; "Most confused"; "Examples"; "Training"; and "Versions and sizes". Those that do
        not apply are left out.
    """

    name: str
    model: str
    tables: dict[str, Any]

    def _repr_html_(self) -> str:
        parts = [_STYLE, f"<h1>{escape(self.name)}</h1><p>{escape(self.model)}<p>{_LEGEND}"]
        for title, table in self.tables.items():
            parts.append(f"<h2>{escape(title)}</h2>\n<div>{_as_html(table)}</div>")
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
        found = self.tables["Metrics"].round(4)[["metric", "value"]].to_numpy().tolist()
        metrics = [{"type": name.lower(), "name": name, "value": value} for name, value in found]
        test = {"name": "test data", "type": "test-data"}
        result = {"task": {"type": "text-classification"}, "dataset": test, "metrics": metrics}
        index = json.dumps([{"name": self.name, "results": [result]}], ensure_ascii=False)
        parts = [
            "---\nlibrary_name: sklearn_xc\ntags: [sklearn, extreme-classification, multi-label]\n"
            f"model-index: {index}\n---",
            f"# {_plain(self.name)}\n\n{_plain(self.model)}\n\n{_LEGEND}",
            "## Intended uses",
            "[More information needed: what is the model for, and what is it not for?]",
        ]
        for title, table in self.tables.items():
            if title != "Examples":
                head, *rows = [f"| {' | '.join(map(_plain, row))} |" for row in _texts(table)]
                parts += [f"## {title}", "\n".join([head, "| --- " * table.shape[1] + "|", *rows])]
        return "\n\n".join(
            [*parts, f"## How to use\n\n```python\nimport sklearn_xc\n\n{_USE}\n```\n"]
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
    settings = bootstrap_settings(n_resamples, confidence, random_state, _WHO)
    Y, labels, n_known, (place, _) = match_labels((model, model), y, classes, _WHO)
    if num_samples(X) != Y.shape[0] or not Y.nnz:
        raise ValueError(
            f"{_WHO}: X and y must have as many rows, some with labels. Got {num_samples(X)} rows "
            f"of X, and {Y.nnz} labels in {Y.shape[0]} rows of y."
        )
    own, scores = topk(model, X, max(k, *_KS))
    best = np.where(own >= 0, place[own], -1)
    hits = hits_of(check_y_true(Y), best, best.shape[1])
    counts, n_trained = training_counts((model,), [place], len(labels))
    weights = None if counts is None or n_trained < 3 else propensity(counts[:n_known], n_trained)
    of_known = hits_of(check_y_true(Y[:, :n_known]), best, best.shape[1])
    rows = []
    for metric, at in _METRICS:
        if metric != "psp" or weights is not None:
            sums = row_sums(metric, of_known if metric == "psp" else hits, at, weights)
            rows.append((f"{SUMS[metric].short}@{at}", *bootstrap_ratio(*sums, *settings)[:3]))
    named = model.predict(X)
    if isinstance(named, np.ndarray) and named.ndim == 1 and named.dtype.kind in "UTO":
        named = named[:, None].tolist()  # so that no separator is looked for
    named, *_ = match_labels((model, model), named, None, _WHO)
    rows += _f1(Y, named[:, : len(place)], place, settings)
    tables = {"Metrics": DataFrame(rows, columns=["metric", "value", "low", "high"])}
    found = found_pairs(hits_of(hits.true, best[:, :k], k))
    if counts is not None:
        groups = compare_groups(hits.true, counts, (np.zeros(len(found)), found), settings)
        kept = [(*row[:2], *row[6:9], *row[2:4]) for row in groups]
        columns = ["lower", "upper", f"R@{k}", "low", "high", "n_labels", "n_true"]
        tables["Labels by training frequency"] = DataFrame(kept, columns=columns)
    names = np.array(labels, object)
    tables["Most confused"] = DataFrame(_confused(hits, found, names))
    tables["Examples"] = DataFrame(_examples(model, X, hits, scores, names, n_examples))
    tables |= _about(model, Y, len(labels))
    title = str(name or type(model).__name__)
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


def _confused(hits: Any, found: np.ndarray, labels: np.ndarray) -> list[dict]:
    """Return the most frequent pairs of a wrong best label and a true one that was not found."""
    true, best = hits.true, hits.positions[:, 0]
    at = (~hits.hit[:, 0] & (best >= 0))[true.rows] & (found == 0)
    pairs = zip(labels[best[true.rows[at]]], labels[true.columns[at]], strict=True)
    most = Counter(pairs).most_common(_N_CONFUSED)
    return [{"given as best": given, "right": right, "times": n} for (given, right), n in most]


def _examples(
    model: Any, X: Any, hits: Any, scores: np.ndarray, labels: np.ndarray, n: int
) -> list[dict]:
    """Return instances whose best label is right, and wrong, with why."""
    best, found = hits.positions[:, 0], []
    order = np.argsort(-scores[:, 0], kind="stable")
    order = order[best[order] >= 0]
    for kind in ("right", "wrong"):
        for row in order[hits.hit[order, 0] == (kind == "right")][:n].tolist():
            given = safe_indexing(X, [row])
            text = np.asarray(given, object).ravel()[0]
            text = text[:_MOST_CHARACTERS] if isinstance(text, str) else f"row {row}"
            true = "; ".join(map(str, labels[hits.true.columns[hits.true.rows == row]]))
            label, (inside, x) = labels[best[row]], unwrap(model, given)
            why = inside.explain(x, label, n_features=5) if hasattr(inside, "explain") else ""
            one = {"": kind, "instance": text, "true": true, "best": str(label), "why": str(why)}
            found.append(one)
    return found


def _about(model: Any, Y: Any, n_labels: int) -> dict[str, Any]:
    """Return the tables on training, versions and sizes."""
    from pandas import DataFrame

    trained = inside = unwrap(model, None)[0]
    while not hasattr(trained, "fit_report_") and trained is not None:
        trained = getattr(trained, "classifier_", getattr(trained, "estimator_", None))
    training = DataFrame(getattr(trained, "fit_report_", {}))
    if len(training) > _LONGEST:
        training = training.describe().loc[["min", "mean", "max"]].reset_index(names="")
    facts = versions() | {
        "test instances": f"{Y.shape[0]:,}",
        "training instances": f"{getattr(inside, 'n_samples_fit_', 0):,}",
        "labels": f"{len(classes_of(model)):,}",
        "labels that are only in the test": f"{n_labels - len(classes_of(model)):,}",
    }
    return {
        "Training": training,
        "Versions and sizes": DataFrame(facts.items(), columns=["what", "value"]),
    }


def _texts(table: Any) -> list[list[str]]:
    """Return header and rows of a table; fractions with an interval in percent."""
    of_float = "{:.1%}" if "low" in table else "{:.4g}"

    def text(value: Any) -> str:
        if isinstance(value, float):
            return "" if np.isnan(value) else of_float.format(value)
        return f"{value:,}" if isinstance(value, int) else str(value)

    return [[text(value) for value in row] for row in (table, *table.itertuples(index=False))]


def _as_html(table: Any) -> str:
    """Return a table with everything escaped, and a bar for each share."""
    tags = ['<td class="n">' if one.kind in "iuf" else "<td>" for one in table.dtypes]
    rows = [[*map(str.__add__, tags, map(escape, row))] for row in _texts(table)]
    if "low" in table:
        at = list(table).index("low")
        shares = 100 * table.iloc[:, at - 1 : at + 2].ffill(axis=1).clip(0, 1)
        for row, share in zip(rows, [None, *shares.itertuples(index=False)], strict=True):
            row.insert(at, "<td>" + ("" if share is None else _BAR.format(*share)))
    lines = ["".join(row) for row in rows]
    return "\n<tr>".join(["<table>", lines[0].replace("<td", "<th"), *lines[1:]]) + "</table>"


def _plain(text: Any) -> str:
    """Return a text in one line that is neither markup nor a cell's end in Markdown."""
    return escape(" ".join(str(text).split()), quote=False).replace("|", "\\|")
