"""One-vs-all from the weights of the last fit, beside one from scratch: CPU time and Newton steps.

A model of the old rows is fitted to the old and new ones, one thread.
"""

import argparse
from typing import Any

import numpy as np

from asv_bench.common.measure import cpu_seconds, quietly, warm_up
from asv_bench.common.report import Report
from asv_bench.common.sets import SETS, load
from sklearn_xc import OvALinearXC
from sklearn_xc.metrics import precision_at_k

#: New rows, as a share of the old ones.
SHARES = (0.01, 0.1, 1.0)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", choices=SETS, default=["citeulike_t"], metavar="SET")


def main(options: argparse.Namespace, report: Report) -> list[dict[str, Any]]:
    """Return a row for each set, share of new rows and start."""
    rows = []
    for name in options.sets:
        found = load(name, options.data, cache=options.cache)
        order = np.random.default_rng(0).permutation(found.X_train.shape[0])
        X, Y = found.X_train[order], found.Y_train[order]
        warm_up(OvALinearXC(n_jobs=1), X, Y)
        for share in SHARES:
            n_old = round(len(order) / (1.0 + share))
            model = quietly(OvALinearXC(warm_start=True, n_jobs=1).fit, X[:n_old], Y[:n_old])
            for start, clf in (("last weights", model), ("msi", OvALinearXC(n_jobs=1))):
                clf, seconds = cpu_seconds(quietly, clf.fit, X, Y)
                best = clf.predict_topk(found.X_test, 1)[0]
                row = {"set": name, "new rows %": 100 * share, "start": start}
                row |= {"Newton steps": float(clf.n_iter_.mean()), "CPU s": seconds}
                rows.append({**row, "P@1 %": 100 * float(precision_at_k(found.Y_test, best, 1))})
    report.table("Warm starts of one-vs-all", rows)
    return rows
