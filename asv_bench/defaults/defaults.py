"""Every estimator's default beside other settings and peers: P@k, PSP@k, CPU seconds, memory.

    python -m asv_bench defaults --data DIR --sets bibtex tate --sizes 1/16 1/4 --no-grid

For each set and size: P@1 of the default, of the best setting of the grid, and of the one that the
other sets would choose, by their mean distance from the best of theirs. The best one is chosen on
the very test rows that it is scored on, the other on none of them; sets of the same documents do
not count.

Each default runs in a process of its own, the other settings of an estimator one after another in
another one, on one thread. With --out rows are kept in defaults.jsonl as they come: a stopped run
continues from there, and measures again what failed. Those of docs/choosing.md are in
records.jsonl.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from asv_bench.common.measure import scores_of
from asv_bench.common.report import Report
from asv_bench.common.runs import RowLog, in_process, row_or_error
from asv_bench.common.sets import (
    CLASS_SETS,
    LABEL_SETS,
    SETS,
    SIZES,
    cache_folder,
    documents_of,
    load,
    seen_labels,
    sizes_of,
)
from asv_bench.defaults.entries import ENTRIES, named

#: Measured unless --entries and --sets name others.
_DEFAULT_ENTRIES = tuple(key for key in ENTRIES if key not in ("ova-c1", "text", "pecos"))
_DEFAULT_SETS = (*LABEL_SETS, *CLASS_SETS)
#: Shorter fits say nothing on how time grows.
LEAST_CPU_S = 0.8
#: Points of P@1 within which a default is near the best.
NEAR = 1.0
_TEST_ROWS = 10_000


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", choices=SETS, default=_DEFAULT_SETS)
    parser.add_argument("--sizes", nargs="+", choices=tuple(SIZES), help="(all of a small set)")
    parser.add_argument(
        "--entries", nargs="+", choices=tuple(ENTRIES), default=_DEFAULT_ENTRIES, help="systems"
    )
    parser.add_argument("--no-grid", action="store_true", help="the defaults alone")
    parser.add_argument("--jobs", type=int, default=1, help="threads of the training (1)")
    parser.add_argument("--timeout", type=float, default=3600, metavar="S", help="a fit (3,600)")
    parser.add_argument("--only-report", action="store_true", help="measure nothing more")


def main(options: argparse.Namespace, report: Report) -> list[dict[str, Any]]:
    """Measure all settings, report on the defaults, and return a row for each setting."""
    log = RowLog(None if report.out is None else report.out / "defaults.jsonl")
    tasks = plan(options.sets, options.sizes, options.entries, options.no_grid)
    if options.jobs != 1:
        tasks = [task | {"n_jobs": options.jobs} for task in tasks]
    with TemporaryDirectory() as scratch:
        cache = Path(options.cache or scratch)
        missing = [task for task in tasks if log.find(task) is None]
        for together in [] if options.only_report else in_one_process(missing):
            rows = _measure(together, options.data, cache, options.timeout)
            for task, row in zip(together, rows, strict=True):
                log.add(task, row)
                print(_progress(task, row), file=sys.stderr, flush=True)
    found = [(task, log.find(task, with_errors=True)) for task in tasks]
    rows = [
        {"title": ENTRIES[task["entry"]].title, "setting": named(task["parameters"]), **task, **row}
        for task, row in found
        if row is not None
    ]
    _show(report, rows)
    return rows


def plan(
    sets: Iterable[str], sizes: Iterable[str] | None, entries: Iterable[str], no_grid: bool
) -> list[dict[str, Any]]:
    """Return the tasks: small sizes first, defaults before other settings."""
    tasks = [
        {"set": name, "size": size, "entry": entry, "parameters": dict(parameters)}
        for name in sets
        for size in sizes or sizes_of(name)
        for entry in entries
        for parameters in ({}, *(() if no_grid else ENTRIES[entry].settings))
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
    first, n = tasks[0], len(tasks)
    if not cache_folder(first["set"], first["size"], cache).is_dir():
        load(first["set"], data, first["size"], cache=cache)
    full = first | {
        "parameters": [task["parameters"] for task in tasks],
        "cache": str(cache.resolve()),
    }
    function = "asv_bench.defaults.defaults:measure"
    found = in_process(function, full, timeout=timeout * n, n_threads=first.get("n_jobs", 1))
    if "rows" in found:
        return found["rows"]
    if n == 1:
        return [found]
    return [row for task in tasks for row in _measure([task], data, cache, timeout)]


def measure(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``rows``, one for each of the parameters of a task, in this process."""
    sized = load(task["set"], None, task["size"], cache=task["cache"])
    n_jobs = task.get("n_jobs", 1)
    return {
        "rows": [
            row_or_error(measure_entry, sized, task["entry"], parameters, n_jobs)
            for parameters in task["parameters"]
        ]
    }


def measure_entry(
    sized: Any, key: str, parameters: Mapping[str, Any], n_jobs: int = 1
) -> dict[str, Any]:
    """Return the row of a system with some parameters: scores, seconds, memory."""
    entry, n_rows = ENTRIES[key], sized.X_train.shape[0]
    if n_rows > entry.largest:
        return {"error": f"not measured on more than {entry.largest:,} rows"}
    seen = seen_labels(sized.Y_train)
    X_test, Y_test = sized.X_test[:_TEST_ROWS], sized.Y_test[:_TEST_ROWS]
    known = sized._replace(
        Y_train=sized.Y_train[:, seen],
        X_test=X_test,
        Y_test=Y_test[:, seen],
        Z=None if sized.Z is None else sized.Z[seen],
        texts=sized.texts and (sized.texts[0], sized.texts[1][:_TEST_ROWS], sized.texts[2]),
    )
    outcome = entry.run(key, known, parameters, n_jobs)
    usage, topk = outcome.usage, np.where(outcome.topk >= 0, seen[outcome.topk], -1)
    return scores_of(topk, sized.Y_train, Y_test) | {
        "train_cpu_s": usage.cpu_s,
        "train_wall_s": usage.wall_s,
        "peak_mb": usage.peak_bytes and usage.peak_bytes / 1e6,
        "predict_ms_per_row": outcome.ms_per_row,
        "model_mb": outcome.model_bytes and outcome.model_bytes / 1e6,
        "n_train": n_rows,
        "n_labels": len(seen),
    }


def _progress(task: dict[str, Any], row: dict[str, Any]) -> str:
    name = f"{task['set']} {task['size']} {task['entry']} {named(task['parameters'])}"
    if "error" in row:
        return f"{name}: {row['error']}"
    return f"{name}: P@1 {row['P@1']:.1f}, {row['train_cpu_s']:,.1f} CPU s"


def _show(report: Report, rows: list[dict[str, Any]]) -> None:
    shown = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")
    defaults = [row for row in rows if row["setting"] == "default"]
    report.table(
        "Defaults, test rows, in %",
        [
            {"set": row["set"], "size": row["size"], "estimator": row["title"]}
            | {score: row.get(score) for score in shown}
            | {"CPU s": row.get("train_cpu_s"), "ms/row": row.get("predict_ms_per_row")}
            | {"peak MB": row.get("peak_mb"), "model MB": row.get("model_mb")}
            | {"note": row.get("error")}
            for row in defaults
        ],
    )
    for size in dict.fromkeys(row["size"] for row in defaults):
        of_size = [row for row in defaults if row["size"] == size]
        title = f"P@1 / PSP@1 in %, CPU seconds of training, {size} of the training rows"
        report.table(title, side_by_side(of_size))
    growth = of_four_times_the_rows(defaults)
    if growth:
        report.table("Four times as many training rows: how many times as much", growth)
    if len(defaults) < len(rows):
        report.table("P@1 in % by setting", by_setting(rows))
    distances = compare(rows)
    if distances:
        report.table("The default beside the best of its grid, P@1 in %", distances)
        report.table("In all", summarise(distances))


def side_by_side(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each set, with a column for each estimator; the highest P@1 is in bold."""
    of_sets = defaultdict(list)
    for row in rows:
        if row.get("P@1") is not None:
            of_sets[row["set"]].append((row, format(row["P@1"], ".1f")))
    wide = []
    for name, of_set in of_sets.items():
        best = max(float(p1) for _, p1 in of_set)
        first = of_set[0][0]
        shown = {"set": name, "instances": first["n_train"], "labels": first["n_labels"]}
        for row, p1 in of_set:
            bold = "**" * (float(p1) == best)
            shown[row["title"]] = (
                f"{bold}{p1}{bold} / {row['PSP@1']:.1f}, {row['train_cpu_s']:,.1f}"
            )
        wide.append(shown)
    return wide


def by_setting(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each estimator, set and size, with P@1 of every setting."""
    wide: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in rows:
        first = {"estimator": row["title"], "set": row["set"], "size": row["size"]}
        wide.setdefault(tuple(first.values()), first)[row["setting"]] = row.get("P@1")
    return list(wide.values())


def of_four_times_the_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each estimator the ratio of CPU seconds, a set at a size to four times that size.

    Pairs whose smaller fit took less than `LEAST_CPU_S` do not count. "times the labels" is the
    median ratio of the numbers of labels, of which more rows have more.
    """
    of = {
        (row["title"], row["set"], SIZES[row["size"]]): row
        for row in rows
        if row.get("train_cpu_s") is not None
    }
    ratios = defaultdict(list)
    for (title, name, share), row in of.items():
        larger = of.get((title, name, 4 * share))
        if larger is not None and row["train_cpu_s"] >= LEAST_CPU_S:
            ratios[title].append([larger[k] / row[k] for k in ("train_cpu_s", "n_labels")])
    return [
        {
            "estimator": title,
            "pairs": len(times),
            "times the labels": float(np.median(labels)),
            "times the CPU time": float(np.median(times)),
            "least": min(times),
            "most": max(times),
        }
        for title, found in ratios.items()
        for times, labels in [zip(*found, strict=True)]
    ]


def compare(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each estimator, set and size how far its default is from its best setting.

    Settings of another `objective` are no rivals. A set and size counts once all rivals were tried
    and one of them succeeded. "chosen by other sets" is the setting with the smallest mean distance
    from the best on all sets of other documents.
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
                    "estimator": ENTRIES[entry].title,
                    "set": name,
                    "size": size,
                    "default": scores["default"],
                    "best": scores[best],
                    "of": best,
                    "away": scores[best] - scores["default"],
                    "chosen by other sets": chosen,
                    "of it": None if chosen is None else scores.get(chosen),
                }
            )
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


def summarise(distances: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each estimator on how many sets and sizes its default is near the best.

    Both means are over the pairs that have a setting chosen by other sets.
    """
    groups = defaultdict(list)
    for row in distances:
        groups[row["estimator"]].append(row)
    summary = []
    for title, of_entry in groups.items():
        away = [row["away"] for row in of_entry]
        both = [(r["away"], r["best"] - r["of it"]) for r in of_entry if r["of it"] is not None]
        mean, chosen = np.mean(both, axis=0) if both else (None, None)
        near = sum(distance <= NEAR for distance in away)
        summary.append(
            {
                "estimator": title,
                "pairs": len(away),
                "within 1.0": near,
                "farthest": max(away),
                "mean": mean,
                "mean, chosen by others": chosen,
            }
        )
    return summary
