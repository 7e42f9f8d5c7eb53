"""Every estimator with its defaults and a few other settings, on every set at three sizes.

A default is judged on sets that had no part in choosing it. For each set, the setting that the
other sets would choose (by mean distance from the best of the grid) stands beside the default; and
for each set and size how far the default is from the best setting, in points of P@1. Each
default runs in a process of its own, the other settings of an estimator one after another in
another one, on one thread. With --out rows are kept in defaults.jsonl as they come: a stopped run
goes on from there.
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
from asv_bench.common.sized_sets import CLASS_SETS, LABEL_SETS, SIZES, load_sized_set, sizes_of
from asv_bench.defaults.entries import ENTRIES, named
from asv_bench.defaults.figure import draw_front

ALL_SETS = (*LABEL_SETS, *CLASS_SETS)
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
#: A default is near the best within so many points of P@1, and may be so far at most.
NEAR, FAR = 1.0, 3.0

_RESULTS = [
    Column("set", "set"), Column("size", "size"), Column("title", "estimator"),
    *(Column(f"{m}@{k}", f"{m}@{k}", ".1f") for m in ("P", "PSP") for k in (1, 3, 5)),
    Column("train_cpu_s", "CPU s", ",.1f"), Column("predict_ms_per_row", "ms/row", ".3f"),
    Column("peak_mb", "peak MB", ",.0f"), Column("front", "front"), Column("note", "note"),
]  # fmt: skip
_DISTANCES = [
    Column("title", "estimator"), Column("set", "set"), Column("size", "size"),
    Column("default", "default", ".1f"), Column("best", "best", ".1f"),
    Column("setting", "of"), Column("chosen", "chosen by other sets"),
    Column("distance", "away", ".1f"),
]  # fmt: skip
_SUMMARY = [
    Column("title", "estimator"), Column("pairs", "pairs", "d"), Column("near", "within 1.0", "d"),
    Column("share", "share", ".0%"), Column("largest", "farthest", ".1f"),
    Column("cpu_s", "CPU s in all", ",.0f"),
]  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", choices=ALL_SETS, default=ALL_SETS)
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
    """Return a row for each of some tasks that differ in their parameters alone."""
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
    return found["rows"] if "rows" in found else [found] * len(tasks)


def _progress(task: dict[str, Any], row: dict[str, Any]) -> str:
    name = f"{task['set']} {task['size']} {task['entry']} {named(task['parameters'])}"
    if "error" in row:
        return f"{name}: {row['error']}"
    return f"{name}: P@1 {row['P@1']:.1f}, {row['train_cpu_s']:,.1f} CPU s"


def _show(report: Report, rows: list[dict[str, Any]]) -> None:
    defaults = [row for row in rows if not row["parameters"]]
    mark_front(defaults)
    report.table("Defaults, test rows, in %", defaults, _RESULTS)
    distances = compare(rows)
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


def compare(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each estimator, set and size how far its default is from its best setting.

    Settings that change what is aimed at, as `objective`, are no rivals. ``chosen`` is the setting
    with the smallest mean distance from the best on all other sets.
    """
    by_entry: dict[str, dict[tuple[str, str], dict[str, float]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for row in rows:
        if "P@1" in row and "objective" not in row["parameters"]:
            by_entry[row["entry"]][row["set"], row["size"]][row["setting"]] = row["P@1"]
    found = []
    for entry, pairs in by_entry.items():
        if not ENTRIES[entry].settings or all(len(scores) < 2 for scores in pairs.values()):
            continue
        for (name, size), scores in pairs.items():
            if "default" not in scores:
                continue
            best = max(scores, key=lambda setting: (scores[setting], setting == "default"))
            found.append(
                {
                    "title": ENTRIES[entry].title, "entry": entry, "set": name, "size": size,
                    "default": scores["default"], "best": scores[best], "setting": best,
                    "chosen": _chosen(pairs, name), "distance": scores[best] - scores["default"],
                }
            )  # fmt: skip
    return found


def _chosen(pairs: dict[tuple[str, str], dict[str, float]], left_out: str) -> str | None:
    base = left_out.split(":")[0]
    others = [scores for (name, _), scores in pairs.items() if name.split(":")[0] != base]
    losses = defaultdict(list)
    for scores in others:
        best = max(scores.values())
        for setting, score in scores.items():
            losses[setting].append(best - score)
    full = {s: np.mean(lost) for s, lost in losses.items() if len(lost) == len(others)}
    return min(full, key=lambda s: (full[s], s != "default")) if full else None


def summarise(distances: list[dict[str, Any]], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each estimator on how many pairs its default is near the best."""
    groups = defaultdict(list)
    for row in distances:
        groups[row["entry"]].append(row["distance"])
    return [
        {
            "title": ENTRIES[entry].title,
            "pairs": len(away),
            "near": sum(one <= NEAR for one in away),
            "share": sum(one <= NEAR for one in away) / len(away),
            "largest": max(away),
            "cpu_s": sum(
                row["train_cpu_s"] for row in rows
                if row["entry"] == entry and not row["parameters"] and "P@1" in row
            ),
        }
        for entry, away in groups.items()
    ]  # fmt: skip
