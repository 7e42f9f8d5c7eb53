"""How long a single row waits for its five best labels: p50 and p99, by estimator.

Each estimator is trained once, briefly where epochs make no difference to answers: NGAME one epoch
of each module, a stack with one held-out tenth. Then it is asked about test rows one by one, on one
thread, after some that are not counted. "batch" is the time of a row among 1,000.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from asv_bench.common.report import Column, Report
from asv_bench.common.sized_sets import LABEL_SETS, SIZES, load_sized_set
from sklearn_xc import (
    DecompMIPSClassifier,
    ImplicitSoftmaxSGD,
    LabelFeatures,
    NGAMEEmbeddingXC,
    OvALinearXC,
    StackingXC,
)

SETS = ("english_wordnet", "gutenberg_subjects")
_COLUMNS = [
    Column("set", "set"),
    Column("labels", "labels", ",d"),
    Column("estimator", "estimator"),
    Column("p50", "p50 ms", ".2f"),
    Column("p99", "p99 ms", ".2f"),
    Column("batch", "batch ms", ".3f"),
    Column("first", "first row ms", ".0f"),
]
_BATCH = 1000


def _ngame(Z: Any, **parameters: Any) -> NGAMEEmbeddingXC:
    features = None if Z is None else LabelFeatures(Z)
    return NGAMEEmbeddingXC(
        label_features=features, max_iter=1, n_jobs=1, random_state=0, **parameters
    )


def _stack(Z: Any) -> StackingXC:
    members = [("ova", OvALinearXC(n_jobs=1)), ("ngame", _ngame(Z, index="product"))]
    return StackingXC(members, cv=0.1, n_jobs=1, random_state=0)


#: What is trained, from the features of label texts.
SYSTEMS: dict[str, Callable[[Any], Any]] = {
    "one-vs-all": lambda Z: OvALinearXC(n_jobs=1),
    "NGAME, exact": lambda Z: _ngame(Z),
    "NGAME, product": lambda Z: _ngame(Z, index="product"),
    "stack of one-vs-all and NGAME, product": _stack,
    "decomposition": lambda Z: DecompMIPSClassifier(max_iter=1, n_jobs=1, random_state=0),
    "implicit softmax": lambda Z: ImplicitSoftmaxSGD(max_iter=1, n_jobs=1, random_state=0),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", choices=LABEL_SETS, default=SETS, help="data sets")
    parser.add_argument("--size", choices=SIZES, default="all", help="share of training rows (all)")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--rows", type=int, default=1000, metavar="N", help="asked one by one")
    parser.add_argument("--cache", default=None, help="folder where loaded sets are kept")


def main(
    data: Any = None,
    *,
    sets: Sequence[str] = SETS,
    size: str = "all",
    systems: Sequence[str] = tuple(SYSTEMS),
    rows: int = 1000,
    cache: Any = None,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Train each estimator and time its answers to single rows.

    Parameters
    ----------
    data : path, default=None
        Folder of the data sets; "tate" needs none.
    sets : sequence of str
        Of ``LABEL_SETS``.
    size : {"1/16", "1/4", "all"}, default="all"
        Share of the training rows.
    systems : sequence of str
        Of ``SYSTEMS``.
    rows : int, default=1000
        How many test rows are asked about one by one.
    cache : path, default=None
        Folder where loaded sets are kept.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row for each set and estimator, times in milliseconds.
    """
    report = report or Report("single_rows")
    found = []
    for name in sets:
        sized = load_sized_set(name, size, data, cache=cache)
        for system in systems:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = SYSTEMS[system](sized.Z).fit(sized.X_train, sized.Y_train)
                times = _times(model, sized.X_test, rows)
            n_labels = sized.Y_train.shape[1]
            found.append({"set": name, "labels": n_labels, "estimator": system, **times})
    report.table("A row alone, one thread", found, _COLUMNS)
    return found


def _times(model: Any, X: Any, n: int) -> dict[str, float]:
    """Return milliseconds of single rows and of a row of a batch."""
    began = time.perf_counter()
    model.predict_topk(X[:1], 5)
    first = time.perf_counter() - began
    batch = X[:_BATCH]
    model.predict_topk(batch, 5)
    began = time.perf_counter()
    model.predict_topk(batch, 5)
    in_batch = (time.perf_counter() - began) / batch.shape[0]
    single = [X[[i % X.shape[0]]] for i in range(n + 20)]
    waits = []
    for row in single:
        began = time.perf_counter()
        model.predict_topk(row, 5)
        waits.append(time.perf_counter() - began)
    p50, p99 = 1e3 * np.percentile(waits[20:], [50, 99])
    return {"p50": p50, "p99": p99, "batch": 1e3 * in_batch, "first": 1e3 * first}
