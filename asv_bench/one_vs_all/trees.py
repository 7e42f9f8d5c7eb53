"""One-vs-all beside label trees: CPU seconds of training on the same matrices, medians of runs.

    PECOS_PYTHON=pecos/bin/python python -m asv_bench ova --data DIR --jobs 1 2

All systems of a set run one after the other in processes of their own, and this is repeated.
Kernels are compiled beforehand. "/ PECOS" and "/ omikuji" are the ratios of the medians; the
geometric mean of each is over the sets.
"""

import argparse
from collections import defaultdict
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from asv_bench.common.report import Report
from asv_bench.common.runs import RowLog, in_process
from asv_bench.common.sets import cache_folder, load
from asv_bench.defaults.entries import ENTRIES

#: A set and its share of the rows, as NAME or NAME@1/4.
_SETS = (
    *("gutenberg_subjects", "english_wordnet", "yso_sets", "yso_rare", "yso_finna_en"),
    *("yso_finna_en@1/4", "kirjasto", "citeulike_t", "syn4k", "tate", "icd10cm"),
)
_SYSTEMS = ("ova", "ova-c1", "pecos", "omikuji")
_TREES = {"pecos": "/ PECOS", "omikuji": "/ omikuji"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", default=_SETS, help="NAME or NAME@SIZE")
    parser.add_argument("--entries", nargs="+", choices=tuple(ENTRIES), default=_SYSTEMS)
    parser.add_argument("--jobs", nargs="+", type=int, default=(1,), help="threads (1)")
    parser.add_argument("--runs", type=int, default=3, help="(3)")


def main(options: argparse.Namespace, report: Report) -> list[dict[str, Any]]:
    """Measure all systems on all sets, and return a row for each."""
    log = RowLog(None if report.out is None else report.out / "ova.jsonl")
    rows = []
    with TemporaryDirectory() as scratch:
        cache = Path(options.cache or scratch)
        for spec, n_jobs in product(options.sets, options.jobs):
            name, _, size = spec.partition("@")
            known = load(name, options.data, size or "all", cache=cache)
            runs = defaultdict(list)
            for run, entry in product(range(options.runs), options.entries):
                task = {"set": name, "size": size or "all", "entry": entry, "n_jobs": n_jobs}
                runs[entry].append(_measure(log, task | {"run": run}, cache))
            shown = {"set": spec, "instances": known.X_train.shape[0], "threads": n_jobs}
            rows += _rows_of(shown, runs)
    report.table("Medians; scores in %", rows)
    report.table("Geometric means of the ratios", _means(rows))
    return rows


def _measure(log: RowLog, task: dict[str, Any], cache: Path) -> dict[str, Any]:
    """Return the row of a run, measured unless the log has it."""
    found = log.find(task)
    if found is None:
        assert cache_folder(task["set"], task["size"], cache).is_dir()
        full = task | {"parameters": [{}], "cache": str(cache.resolve())}
        result = in_process("asv_bench.defaults.defaults:measure", full, n_threads=task["n_jobs"])
        found = result["rows"][0] if "rows" in result else result
        log.add(task, found)
    return found


def _rows_of(shown: dict[str, Any], runs: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return a row for each system on a set."""
    times = {
        entry: [row["train_cpu_s"] for row in of_entry if "error" not in row]
        for entry, of_entry in runs.items()
    }
    rows = []
    for entry, of_entry in runs.items():
        row: dict[str, Any] = shown | {"system": ENTRIES[entry].title}
        done = [one for one in of_entry if "error" not in one]
        if not done:
            rows.append(row | {"note": of_entry[-1]["error"]})
            continue
        row |= {"labels": done[0]["n_labels"]}
        row |= {score: done[0][score] for score in ("P@1", "P@3", "P@5", "PSP@1")}
        row |= {"train CPU s": float(np.median(times[entry]))}
        row |= {"wall s": float(np.median([one["train_wall_s"] for one in done]))}
        row |= {"ms/row": float(np.median([one["predict_ms_per_row"] for one in done]))}
        row |= {"peak MB": done[0]["peak_mb"], "model MB": done[0]["model_mb"]}
        for tree, column in _TREES.items():
            if entry not in _TREES and times.get(tree):
                row[column] = row["train CPU s"] / float(np.median(times[tree]))
        rows.append(row)
    return rows


def _means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the geometric mean of each ratio over the sets, and the largest."""
    found = []
    for system, threads in dict.fromkeys((row["system"], row["threads"]) for row in rows):
        for column in _TREES.values():
            ratios = [
                row[column]
                for row in rows
                if (row["system"], row["threads"]) == (system, threads) and column in row
            ]
            if ratios:
                mean = float(np.exp(np.mean(np.log(ratios))))
                found.append(
                    {"system": system, "threads": threads, "ratio": column, "sets": len(ratios)}
                    | {"mean": mean, "largest": max(ratios)}
                )
    return found
