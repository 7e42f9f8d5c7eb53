"""Label errors: how many planted ones are among the first that are listed.

In 150 rows a random label, drawn by frequency, replaces one of those given. Counted are those among
the first 300 given that ``find_label_errors`` lists.
"""

import argparse
from typing import Any

import numpy as np
import scipy.sparse as sp

from asv_bench.common.measure import quietly
from asv_bench.common.report import Report
from asv_bench.common.sets import load
from sklearn_xc import OvALinearXC
from sklearn_xc.model_selection import find_label_errors

SETS = ("cooking_stackexchange@all", "english_wordnet@1/16", "tate@1/4")
_N_PLANTED, _N_LISTED = 150, 300


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, help="sets and sizes")


def main(options: argparse.Namespace, report: Report) -> list[dict[str, Any]]:
    """Return a row for each set and seed."""
    rows = []
    for at in options.sets:
        sized = load((parts := at.split("@"))[0], options.data, parts[1], cache=options.cache)
        for seed in range(3):
            Y, wrong = plant(sp.csr_array(sized.Y_train), np.random.default_rng(seed))
            found = quietly(find_label_errors, OvALinearXC(), sized.X_train, Y, random_state=0)
            given = found.kind == "given"
            listed = zip(found.row[given][:_N_LISTED], found.label[given][:_N_LISTED], strict=True)
            rows.append({"set": at, "seed": seed, "found": len(wrong & set(listed))})
    report.table(f"planted errors among the first {_N_LISTED}, of {_N_PLANTED}", rows)
    return rows


def plant(Y: Any, rng: np.random.Generator) -> tuple[Any, set[tuple[int, int]]]:
    """Return labels with errors, and the pairs of row and wrong label."""
    labels, wrong = Y.indices.copy(), set()
    rows = np.flatnonzero(np.diff(Y.indptr))
    for row in rng.choice(rows, min(_N_PLANTED, len(rows)), replace=False).tolist():
        own = Y.indices[Y.indptr[row] : Y.indptr[row + 1]]
        new = next(label for label in rng.choice(Y.indices, 1000) if label not in own)
        labels[rng.integers(Y.indptr[row], Y.indptr[row + 1])] = new
        wrong.add((row, int(new)))
    return sp.csr_array((Y.data, labels, Y.indptr), shape=Y.shape), wrong
