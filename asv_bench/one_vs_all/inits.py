"""Start vectors of one-vs-all: CPU time and Newton steps of fits, the paper's tables 1 to 4.

Fits all labels from each start, in turns, one thread, after a warm-up, and reports the median CPU
time. The optimum does not depend on the start, up to the stopping rule: the sums of the objectives
show it.

  --table N       tables 1, 2 and 3 of the paper on mean-separating starts, on the sets nearest to
                  its own, with its settings: C = 1, eps0 = 0.01 for sparse and 1.0 for dense X; the
                  precision by start is its table 4
  --sweep-ovap    where to leave the all-negative problem of "ovap"
  --sweep-msi     the two scores of "msi"
  --trace         figures 1, 3, 4, 6, 8 and 12: step by step (see ``inits_trace``)
  --by-positives  figure 7 and appendix 7.3: labels by their number of positives

Source: E. Schultheis and R. Babbar, "Speeding-up one-versus-all training for extreme classification
via mean-separating initialization", Machine Learning 111, 2022.
"""

import argparse
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

from asv_bench.common.measure import cpu_seconds, n_unsolved, quietly, scores_of, warm_up
from asv_bench.common.report import Report
from asv_bench.common.sets import SETS, load, seen_labels, take_labels
from asv_bench.one_vs_all import inits_trace
from sklearn_xc import OvALinearXC
from sklearn_xc.one_vs_all.starts import MeanSeparating, OneVsAllPrimal

STARTS: dict[str, Any] = {start: start for start in ("zero", "bias", "ovap", "ovap++", "msi")}
#: With the paper's msi of the logistic loss, at t = -3; ours has other scores for it.
_LOGISTIC_STARTS = {**STARTS, "msi -3": MeanSeparating(1.0, -3.0)}
OVAP_STOPS = (0.5, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-5)
#: Mean scores of positives and of negatives; "msi" is at 1 and -2.
MSI_SCORES = ((0, -2), (0.5, -2), (2, -2), (1, -1), (1, -1.5), (1, -2.5), (1, -3), (1, -4))
_COMPONENTS = 100


class PaperSet(NamedTuple):
    """A set at hand that stands for one of the paper.

    Attributes
    ----------
    name : str
        A set.
    stands_for : str
        The paper's set that it is nearest to.
    n_labels, n_rows : int or None
        Labels, drawn with a fixed seed, and first training rows; None for all.
    dense : bool
        Whether X is 100 components of a truncated SVD, with rows of norm 1.
    """

    name: str
    stands_for: str = ""
    n_labels: int | None = None
    n_rows: int | None = None
    dense: bool = False


class PaperTable(NamedTuple):
    """A table of the paper: loss, sets, pairs of starts whose ratio it has, and starts."""

    loss: str
    sets: tuple[PaperSet, ...]
    ratios: tuple[tuple[str, str], ...]
    starts: Mapping[str, Any] = STARTS


TABLES = {
    1: PaperTable(
        "squared_hinge",
        (
            PaperSet("syn4k", "Eurlex", n_labels=200),
            PaperSet("delicious", "Delicious-200k"),
            PaperSet("tate", "AmazonCat-13k", n_labels=2000, n_rows=12_000),
            PaperSet("tate", "AmazonCat-13k", n_labels=1000),
            PaperSet("gutenberg_subjects", "WikiTitles-500k", n_labels=3000, n_rows=12_000),
            PaperSet("delicious", "features of Slice", n_labels=400, dense=True),
        ),
        (("zero", "msi"), ("bias", "msi"), ("ovap", "msi")),
    ),
    2: PaperTable(
        "logistic",
        (
            PaperSet("syn4k", "Eurlex", n_labels=60),
            PaperSet("delicious", "Delicious-200k", n_labels=200),
            PaperSet("tate", "AmazonCat-13k", n_labels=100),
        ),
        (("zero", "msi -3"), ("bias", "msi -3"), ("ovap", "msi -3"), ("zero", "msi")),
        _LOGISTIC_STARTS,
    ),
    3: PaperTable(
        "squared_hinge",
        (
            PaperSet("bibtex", "Eurlex"),
            PaperSet("delicious", "Delicious-200k"),
            PaperSet("citeulike_t", "AmazonCat-13k"),
            PaperSet("tate", "WikiTitles-500k", n_rows=12_000),
        ),
        (("zero", "ovap"), ("zero", "ovap++"), ("zero", "msi")),
    ),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", choices=SETS, help="data sets")
    parser.add_argument("--labels", type=int, metavar="N", help="N labels, drawn with a fixed seed")
    parser.add_argument("--repeats", type=int, metavar="N", help="fits of each (3, with --table 1)")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--table", type=int, choices=TABLES, help="a table of the paper")
    instead.add_argument("--sweep-ovap", action="store_true", help="where to leave ovap's problem")
    instead.add_argument("--sweep-msi", action="store_true", help="the two scores of msi")
    instead.add_argument("--trace", action="store_true", help="step by step (500 labels)")
    instead.add_argument("--by-positives", action="store_true", help="(50 labels of each group)")


def main(options: argparse.Namespace, report: Report) -> list[dict[str, Any]]:
    """Measure the starts; return a row per set and start."""
    names = options.sets or ("bibtex", "delicious", "tate")
    if options.trace or options.by_positives:
        measure = inits_trace.trace if options.trace else inits_trace.by_positives
        n_labels = options.labels or (500 if options.trace else 50)
        return [
            row
            for name in names
            for row in measure(load(name, options.data, cache=options.cache), n_labels, report)
        ]
    table, title = TABLES.get(options.table), f"Table {options.table}"
    if table is None:
        starts, title = STARTS, "Start vectors"
        if options.sweep_ovap:
            starts = {f"ovap {stop:g}": OneVsAllPrimal(stop) for stop in OVAP_STOPS}
        elif options.sweep_msi:
            starts = {f"{s:g}, {t:g}": MeanSeparating(s, t) for s, t in MSI_SCORES}
        sets = tuple(PaperSet(name) for name in names)
        table = PaperTable("squared_hinge", sets, (), {"msi": "msi", **starts})
    elif options.sets:
        known = [one for one in table.sets if one.name in options.sets]
        more = set(options.sets) - {one.name for one in known}
        table = table._replace(sets=(*known, *map(PaperSet, sorted(more))))
    repeats = options.repeats or (1 if options.table else 3)
    rows = []
    for one in table.sets:
        if options.labels is not None:
            one = one._replace(n_labels=options.labels)
        rows += _measure_set(one, table, options, repeats)
        print(f"{one.name}: measured", flush=True)
    report.table(f"{title}: {table.loss}, one thread, median of {repeats}", rows)
    for key in ("CPU s", "Newton steps", "Hessian products", "P@1"):
        report.table(key, list(_by_set(rows, table, key)))
    return rows


def _measure_set(
    one: PaperSet, table: PaperTable, options: argparse.Namespace, repeats: int
) -> list[dict[str, Any]]:
    """Return a row for each start; fits take turns, so that a slow minute hits all of them."""
    found = load(one.name, options.data, cache=options.cache)
    X, Y, X_test = found.X_train[: one.n_rows], found.Y_train[: one.n_rows], found.X_test
    known = seen_labels(Y)
    taken = known[take_labels(Y[:, known], one.n_labels)]
    if one.dense:
        svd = TruncatedSVD(min(_COMPONENTS, X.shape[1] - 1), random_state=0)
        X = normalize(svd.fit_transform(X)).astype(X.dtype)
        X_test = normalize(svd.transform(X_test)).astype(X.dtype)
    Y, Y_test = Y[:, taken], found.Y_test[:, taken]
    tol = 1.0 if one.dense else 0.01

    def make(init: Any) -> OvALinearXC:
        return OvALinearXC(C=1.0, loss=table.loss, tol=tol, n_jobs=1, init=init)

    for init in table.starts.values():
        warm_up(make(init), X, Y)
    seconds: dict[str, list[float]] = {start: [] for start in table.starts}
    models: dict[str, OvALinearXC] = {}
    for _ in range(repeats):
        for start, init in table.starts.items():
            models[start], spent = cpu_seconds(quietly, make(init).fit, X, Y)
            seconds[start].append(spent)
    base = float(np.median(seconds["msi"]))
    return [
        {
            "set": f"{one.name}, dense" if one.dense else one.name,
            "nearest to": one.stands_for,
            "rows": X.shape[0],
            "features": X.shape[1],
            "labels": f"{len(taken):,} of {len(known):,}",
            "init": start,
            "CPU s": float(np.median(seconds[start])),
            "ratio to msi": float(np.median(seconds[start])) / base,
            "Newton steps": float(model.n_iter_.mean()),
            "Hessian products": float(model.fit_report_["n_products"].mean()),
            "objective sum": float(model.fit_report_["objective"].sum()),
            "not converged": n_unsolved(model),
            **scores_of(model.predict_topk(X_test, min(5, len(taken)))[0], Y, Y_test),
        }
        for start, model in models.items()
    ]


def _by_set(rows: list[dict[str, Any]], table: PaperTable, key: str) -> Any:
    """Yield a row for each set, with a measure from all starts, and the ratios of the paper."""
    n = len(table.starts)
    for of_set in (rows[i : i + n] for i in range(0, len(rows), n)):
        by_start = {row["init"]: row[key] for row in of_set}
        ratios = {f"{a} / {b}": by_start[a] / by_start[b] for a, b in table.ratios}
        first = {name: of_set[0][name] for name in ("set", "rows", "labels")}
        yield first | by_start | (ratios if key != "P@1" else {})
