"""One-vs-all from the weights of the last fit, beside one from scratch: CPU time and Newton steps.

A model of the old rows is fitted to the old and new ones, one thread. With ``--tagger``, the model
is a ``TextClassifierXC`` with its default parts: the median of three fits to texts, in turns.
"""

import argparse
import copy
from typing import Any

import numpy as np
from sklearn.metrics import f1_score

from asv_bench.common.measure import cpu_seconds, quietly, warm_up
from asv_bench.common.report import Report
from asv_bench.common.sets import SETS, SIZES, load
from sklearn_xc import OvALinearXC, TextClassifierXC
from sklearn_xc.metrics import precision_at_k

#: New rows, as a share of the old ones.
SHARES = (0.01, 0.1, 1.0)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", choices=SETS, default=["citeulike_t"], metavar="SET")
    parser.add_argument("--size", choices=SIZES, default="all", help="of the training rows")
    parser.add_argument("--tagger", action="store_true", help="fit a tagger to texts")


def main(options: argparse.Namespace, report: Report) -> list[dict[str, Any]]:
    """Return a row for each set, share of new rows and start."""
    rows = []
    for name in options.sets:
        found = load(name, options.data, options.size, cache=options.cache)
        order = np.random.default_rng(0).permutation(found.X_train.shape[0])
        X, Y = found.X_train[order], found.Y_train[order]
        warm_up(OvALinearXC(n_jobs=1), X, Y)
        if options.tagger:
            rows += _taggers(found, [found.texts[0][i] for i in order], Y)
            continue
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


def _taggers(found: Any, texts: list[str], Y: Any) -> list[dict[str, Any]]:
    """Return a row for each share of new rows, of taggers."""
    rows = []
    for share in SHARES:
        n_old = round(len(texts) / (1.0 + share))
        old = quietly(TextClassifierXC(warm_start=True).fit, texts[:n_old], Y[:n_old])
        fits = [
            [cpu_seconds(quietly, tagger.fit, texts, Y) for tagger in pair]
            for pair in ((copy.copy(old), TextClassifierXC()) for _ in range(3))
        ]
        last, new = (float(np.median([fit[i][1] for fit in fits])) for i in (0, 1))
        row = {"set": found.name, "new rows %": 100 * share, "last weights CPU s": last}
        row |= {"from nothing CPU s": new, "ratio": last / new}
        for start, (tagger, _) in zip(("last weights", "from nothing"), fits[-1], strict=True):
            best = tagger.predict_topk(found.texts[1], 1)[0]
            row[f"{start} P@1 %"] = 100 * float(precision_at_k(found.Y_test, best, 1))
            answer = tagger.predict(found.texts[1])
            row[f"{start} F1 %"] = 100 * float(f1_score(found.Y_test, answer, average="micro"))
        rows.append(row)
    return rows
