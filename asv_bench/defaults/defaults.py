"""Every estimator with its defaults and a few other settings, on every set at three sizes.

For each set and size: P@1 of the default, of the best setting of the grid, and of the one that the
other sets would choose, by their mean distance from the best of theirs. The best one is chosen by
the very test rows that it is scored on, the other by none of them: it says what another default
would give on a set that it was not made for. Sets of the same documents have no say.

Each default runs in a process of its own, the other settings of an estimator one after another in
another one, on one thread. With --out rows are kept in defaults.jsonl as they come: a stopped run
goes on from there, and measures again what failed. Those of docs/choosing.md are in records.jsonl.

``--sets debian_tags debian_depends debian_maintainers --no-grid`` takes sets on which nothing was
chosen; see ``asv_bench.common.debian`` for the file that they need.
"""

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from asv_bench.common.report import Column, Report
from asv_bench.common.runs import RowLog, run_worker
from asv_bench.common.sized_sets import (
    CLASS_SETS,
    LABEL_SETS,
    NEW_SETS,
    SIZES,
    documents_of,
    load_sized_set,
    sizes_of,
)
from asv_bench.defaults.entries import ENTRIES, named
from asv_bench.defaults.figure import draw_front

ALL_SETS = (*LABEL_SETS, *CLASS_SETS)
#: Shorter fits say nothing on how time grows.
LEAST_CPU_S = 0.8
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
#: A default is near the best within so many points of P@1.
NEAR = 1.0

_RESULTS = [
    Column("set", "set"), Column("size", "size"), Column("title", "estimator"),
    *(Column(f"{m}@{k}", f"{m}@{k}", ".1f") for m in ("P", "PSP") for k in (1, 3, 5)),
    Column("train_cpu_s", "CPU s", ",.1f"), Column("predict_ms_per_row", "ms/row", ".3f"),
    Column("peak_mb", "peak MB", ",.0f"), Column("front", "front"), Column("note", "note"),
]  # fmt: skip
_DISTANCES = [
    Column("title", "estimator"), Column("set", "set"), Column("size", "size"),
    Column("default", "default", ".1f"), Column("best", "best", ".1f"),
    Column("setting", "of"), Column("distance", "away", ".1f"),
    Column("chosen", "chosen by other sets"), Column("of_chosen", "of it", ".1f"),
]  # fmt: skip
_SUMMARY = [
    Column("title", "estimator"), Column("pairs", "pairs", "d"), Column("near", "within 1.0", "d"),
    Column("share", "share", ".0%"), Column("largest", "farthest", ".1f"),
    Column("mean", "mean", ".2f"), Column("mean_chosen", "mean, chosen by others", ".2f"),
    Column("cpu_s", "CPU s in all", ",.0f"),
]  # fmt: skip

_GROWTH = [
    Column("title", "estimator"), Column("pairs", "pairs", "d"), Column("labels", "labels", ".1f"),
    Column("least", "CPU time, least", ".1f"), Column("median", "median", ".1f"),
    Column("most", "most", ".1f"),
]  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", choices=(*ALL_SETS, *NEW_SETS), default=ALL_SETS)
    parser.add_argument("--sizes", nargs="+", choices=tuple(SIZES), default=tuple(SIZES))
    parser.add_argument("--entries", nargs="+", choices=tuple(ENTRIES), default=tuple(ENTRIES))
    parser.add_argument("--no-grid", action="store_true", help="the defaults alone")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="folder for the sets as matrices")
    parser.add_argument("--timeout", type=float, default=3600, metavar="S", help="a fit (3,600)")
    parser.add_argument("--only-report", action="store_true", help="measure nothing more")


def main(
    data: Any = None,
    *,
    sets: Sequence[str] = ALL_SETS,
    sizes: Sequence[str] = tuple(SIZES),
    entries: Sequence[str] = tuple(ENTRIES),
    no_grid: bool = False,
    cache: Any = None,
    timeout: float = 3600.0,
    only_report: bool = False,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure all settings, and report how the defaults do.

    Parameters
    ----------
    data : path-like or None
        Folder of the data sets.
    sets, sizes, entries : sequence of str
        What to measure.
    no_grid : bool, default=False
        Whether to leave out all settings but the defaults.
    cache : path-like, default=None
        Folder for the sets as matrices; None takes a temporary one.
    timeout : float, default=3600
        Seconds that a fit may take.
    only_report : bool, default=False
        Whether to report what was measured before, and measure nothing more.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        One row for each set, size, estimator and setting.
    """
    report = report or Report("defaults")
    log = RowLog(None if report.out is None else report.out / "defaults.jsonl")
    with TemporaryDirectory() as scratch:
        folder = Path(scratch if cache is None else cache)
        tasks = plan(sets, sizes, entries, no_grid)
        missing = [task for task in tasks if log.find(task) is None]
        for together in [] if only_report else in_one_process(missing):
            for task, row in zip(together, _measure(together, data, folder, timeout), strict=True):
                log.add(task, row)
                print(_progress(task, row), file=sys.stderr, flush=True)
    found = [(task, log.find(task, with_errors=True)) for task in tasks]
    rows = [
        {"title": ENTRIES[task["entry"]].title, "setting": named(task["parameters"]),
         "note": row.get("error"), **task, **row}
        for task, row in found if row is not None
    ]  # fmt: skip
    _show(report, rows)
    return rows


def plan(
    sets: Iterable[str], sizes: Sequence[str], entries: Iterable[str], no_grid: bool
) -> list[dict[str, Any]]:
    """Return what to measure: small sizes first, defaults before other settings."""
    tasks = []
    for size in sorted(sizes, key=lambda size: SIZES[size]):
        for name in sets:
            if size not in sizes_of(name):
                continue
            for entry in entries:
                settings = () if no_grid else ENTRIES[entry].settings
                tasks += [
                    {"set": name, "size": size, "entry": entry, "parameters": dict(parameters)}
                    for parameters in ({}, *settings)
                ]
    return sorted(tasks, key=lambda task: (SIZES[task["size"]], bool(task["parameters"])))


def in_one_process(tasks: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return tasks by process, in their order: a default alone, other settings together."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for task in tasks:
        groups[task["set"], task["size"], task["entry"], bool(task["parameters"])].append(task)
    return list(groups.values())


def _measure(
    tasks: list[dict[str, Any]], data: Any, cache: Path, timeout: float
) -> list[dict[str, Any]]:
    """Return a row for each of some tasks that differ in their parameters alone.

    Where their process ends without rows, each is measured alone: one may have taken all the time
    or memory.
    """
    first = tasks[0]
    sized = load_sized_set(first["set"], first["size"], data, cache=cache)
    largest = ENTRIES[first["entry"]].largest
    if sized.X_train.shape[0] > largest:
        return [{"error": f"not measured on more than {largest:,} rows"}] * len(tasks)
    environment = dict(os.environ) | dict.fromkeys(_THREADS, "1")
    together = first | {"parameters": [task["parameters"] for task in tasks]}
    with TemporaryDirectory() as work:
        full, limit = together | {"cache": str(cache.resolve())}, timeout * len(tasks)
        found = run_worker(full, Path(work), environment, limit, "asv_bench.defaults.worker")
    if "rows" in found:
        return found["rows"]
    if len(tasks) == 1:
        return [found]
    return [row for task in tasks for row in _measure([task], data, cache, timeout)]


def _progress(task: dict[str, Any], row: dict[str, Any]) -> str:
    name = f"{task['set']} {task['size']} {task['entry']} {named(task['parameters'])}"
    if "error" in row:
        return f"{name}: {row['error']}"
    return f"{name}: P@1 {row['P@1']:.1f}, {row['train_cpu_s']:,.1f} CPU s"


def _show(report: Report, rows: list[dict[str, Any]]) -> None:
    defaults = [row for row in rows if not row["parameters"]]
    mark_front(defaults)
    report.table("Defaults, test rows, in %", defaults, _RESULTS)
    for size in dict.fromkeys(row["size"] for row in defaults):
        of_size = [row for row in defaults if row["size"] == size]
        title = f"P@1 in % / CPU seconds of training, {size} of the training rows"
        report.table(title, *side_by_side(of_size))
    growth = of_four_times_the_rows(defaults)
    if growth:
        report.table("Four times as many training rows: how many times as much", growth, _GROWTH)
    report.table("Stacks and their members, P@1 / PSP@1 in %", *of_stacks(rows))
    distances = compare(rows)
    if distances:
        report.table("The default beside the best of its grid, P@1 in %", distances, _DISTANCES)
        report.table("In all", summarise(distances, rows), _SUMMARY)
    if report.out is not None and any("P@1" in row for row in defaults):
        report.figure(draw_front(defaults), "defaults")


def mark_front(rows: list[dict[str, Any]]) -> None:
    """Write "yes" to ``front`` where no other row of the set and size is better and as cheap."""
    groups = defaultdict(list)
    for row in rows:
        if row.get("train_cpu_s") is not None:
            groups[row["set"], row["size"]].append(row)
    for group in groups.values():
        for row in group:
            beaten = any(
                other["P@1"] >= row["P@1"]
                and other["train_cpu_s"] <= row["train_cpu_s"]
                and (other["P@1"], other["train_cpu_s"]) != (row["P@1"], row["train_cpu_s"])
                for other in group
            )
            row["front"] = "" if beaten else "yes"


def side_by_side(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[Column]]:
    """Return a row for each set with P@1 and CPU seconds of all estimators, and the columns.

    Parameters
    ----------
    rows : list of dict
        Of the defaults at one size. The highest P@1 of a set stands in bold, as it is written.
    """
    of_sets = defaultdict(list)
    for row in rows:
        if row.get("P@1") is not None:
            of_sets[row["set"]].append((row, format(row["P@1"], ".1f")))
    wide = []
    for of_set in of_sets.values():
        best = max(float(p1) for _, p1 in of_set)
        shown = {key: of_set[0][0].get(key) for key in ("set", "n_train", "n_labels")}
        for row, p1 in of_set:
            bold = "**" * (float(p1) == best)
            shown[row["title"]] = f"{bold}{p1}{bold} / {row['train_cpu_s']:,.1f}"
        wide.append(shown)
    titles = dict.fromkeys(row["title"] for row in rows)
    columns = [Column("set", "set"), Column("n_train", "instances", ",d")]
    columns += [Column("n_labels", "labels", ",d"), *(Column(title, title) for title in titles)]
    return wide, columns


def of_stacks(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[Column]]:
    """Return P@1 and PSP@1 of stacks with both objectives beside their members, and the columns.

    Parameters
    ----------
    rows : list of dict
        Of all settings; a set and size is shown if it has a stack.
    """
    of = {(row["set"], row["size"], row["entry"], row["setting"]): row for row in rows}
    shown = dict.fromkeys(
        (row["set"], row["size"], row["n_train"])
        for row in rows if "+" in row["entry"] and "P@1" in row
    )  # fmt: skip
    columns = {"set": "set", "size": "size", "n_train": "rows"}
    wide: list[dict[str, Any]] = [
        dict(zip(columns, of_set, strict=True)) for of_set in shown
    ]  # fmt: skip
    for entry in ("ova", "ngame", "ova+ngame", "implicit", "ova+implicit"):
        for setting in ("default", "objective='propensity'")[: 1 + ("+" in entry)]:
            key = f"{entry}, {setting}"
            columns[key] = ENTRIES[entry].title + ", propensity" * (setting != "default")
            for of_set in wide:
                row = of.get((of_set["set"], of_set["size"], entry, setting), {})
                if "P@1" in row:
                    of_set[key] = f"{row['P@1']:.1f} / {row['PSP@1']:.1f}"
    return wide, [Column(k, head, ",d" * (k == "n_train")) for k, head in columns.items()]


def of_four_times_the_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each estimator how many times as long a fit takes with four times as many rows.

    Parameters
    ----------
    rows : list of dict
        Of the defaults. A pair is a set at a size and at four times that size, where the smaller
        fit took `LEAST_CPU_S` or more.

    Returns
    -------
    list of dict
        The number of ``pairs``, the ``least``, ``median`` and ``most`` of the ratios of CPU time,
        and the median ratio of ``labels``, of which more rows have more.
    """
    of = {
        (row["title"], row["set"], SIZES[row["size"]]): row
        for row in rows if row.get("train_cpu_s") is not None
    }  # fmt: skip
    ratios = defaultdict(list)
    for (title, name, share), row in of.items():
        larger = of.get((title, name, 4 * share))
        if larger is not None and row["train_cpu_s"] >= LEAST_CPU_S:
            ratios[title].append([larger[k] / row[k] for k in ("train_cpu_s", "n_labels")])
    return [
        {
            "title": title, "pairs": len(found), "labels": float(np.median(labels)),
            "least": min(times), "median": float(np.median(times)), "most": max(times),
        }
        for title, found in ratios.items()
        for times, labels in [zip(*found, strict=True)]
    ]  # fmt: skip


def compare(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each estimator, set and size how far its default is from its best setting.

    Settings that change what is aimed at, as `objective`, are no rivals. A set and size counts once
    all rivals were tried, and one of them came to an end.

    Returns
    -------
    list of dict
        With P@1 of the ``default``, of the ``best``, whose name is ``setting``, and of the one with
        the smallest mean distance from the best on all sets of other documents (``of_chosen``,
        ``chosen``; None where there is none, or none that did not fail here); and ``distance``, by
        which the default is behind the best.
    """
    found = []
    for entry, pairs in _compared(rows).items():
        for (name, size), scores in pairs.items():
            if "default" not in scores or len(scores) == 1:
                continue
            best = max(scores, key=lambda setting: (scores[setting], setting == "default"))
            chosen = _chosen(pairs, name)
            found.append(
                {
                    "title": ENTRIES[entry].title, "entry": entry, "set": name, "size": size,
                    "default": scores["default"], "best": scores[best], "setting": best,
                    "distance": scores[best] - scores["default"],
                    "chosen": chosen, "of_chosen": None if chosen is None else scores.get(chosen),
                }
            )  # fmt: skip
    return found


def _compared(
    rows: list[dict[str, Any]],
) -> dict[str, dict[tuple[str, str], dict[str, float]]]:
    """Return P@1 by estimator, by set and size, and by setting, where all rivals were tried."""
    tried: dict[tuple[str, str, str], dict[str, float | None]] = defaultdict(dict)
    for row in rows:
        tried[row["entry"], row["set"], row["size"]][row["setting"]] = row.get("P@1")
    found: dict[str, dict[tuple[str, str], dict[str, float]]] = defaultdict(dict)
    for (entry, name, size), scores in tried.items():
        rivals = [named(p) for p in ENTRIES[entry].settings if "objective" not in p]
        if rivals and {"default", *rivals} <= set(scores):
            measured = {s: scores[s] for s in ("default", *rivals)}
            found[entry][name, size] = {s: p for s, p in measured.items() if p is not None}
    return found


def _chosen(pairs: dict[tuple[str, str], dict[str, float]], left_out: str) -> str | None:
    """Return the setting that is nearest to the best in the mean, where it never failed."""
    documents = documents_of(left_out)
    others = [s for (name, _), s in pairs.items() if documents_of(name) != documents and s]
    losses = defaultdict(list)
    for scores in others:
        best = max(scores.values())
        for setting, score in scores.items():
            losses[setting].append(best - score)
    full = {s: np.mean(lost) for s, lost in losses.items() if len(lost) == len(others)}
    return min(full, key=lambda s: (full[s], s != "default")) if full else None


def summarise(distances: list[dict[str, Any]], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each estimator on how many sets and sizes its default is near the best.

    Means are distances from the best, of the default and of what the other sets choose; both over
    the pairs that have the latter.
    """
    groups = defaultdict(list)
    for row in distances:
        groups[row["entry"]].append(row)
    return [
        {
            "title": ENTRIES[entry].title,
            "pairs": len(of_entry),
            "near": sum(row["distance"] <= NEAR for row in of_entry),
            "share": sum(row["distance"] <= NEAR for row in of_entry) / len(of_entry),
            "largest": max(row["distance"] for row in of_entry),
            **_means(of_entry),
            "cpu_s": sum(
                row["train_cpu_s"] for row in rows
                if row["entry"] == entry and not row["parameters"] and "P@1" in row
            ),
        }
        for entry, of_entry in groups.items()
    ]  # fmt: skip


def _means(distances: list[dict[str, Any]]) -> dict[str, float]:
    both = [
        (row["distance"], row["best"] - row["of_chosen"])
        for row in distances if row["of_chosen"] is not None
    ]  # fmt: skip
    return dict(zip(("mean", "mean_chosen"), np.mean(both, axis=0), strict=True)) if both else {}
