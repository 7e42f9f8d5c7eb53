"""Peak memory of every call around a model with 200,000 labels, each in a process of its own.

The data are made: 5,000 rows, and labels by a power law, each on one row at least. A process starts
anew for each call, loads the data and what the call needs (fitted models too), makes the call, and
tells its peak; --calls names some of them. The goal is below 2 GiB: a dense matrix of all rows and
labels would take 1 GB as int8, and 8 GB as float64.

A call is a line of ``CALLS``: its name, and a function of a :class:`Made`.
"""

import argparse
import contextlib
import io
import multiprocessing
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp

from asv_bench.common.measure import peak_bytes, reset_peak
from asv_bench.common.report import Column, Report
from asv_bench.common.runs import row_or_error

#: Peak memory that a call must stay below.
MAX_BYTES = 2 * 2**30
_ROWS, _FEATURES, _LABELS = 5_000, 5_000, 200_000
_DATA = "data.joblib"

_COLUMNS = [
    Column("call", "call"),
    Column("before_mib", "imports and data MiB", ",.0f"),
    Column("peak_mib", "peak MiB", ",.0f"),
    Column("wall_s", "wall s", ",.1f"),
    Column("error", "error"),
]


class Made:
    """Made data, and models of them.

    Parameters
    ----------
    folder : Path
        Where data and models are kept.

    Attributes
    ----------
    X : csr_array of shape (n, n_features), float32
    Y : csr_array of shape (n, n_labels), int8
    texts : list of str
        The features of each row as words.
    names : list of list of str
        The labels of each row by name.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.X, self.Y = joblib.load(folder / _DATA)

    @cached_property
    def texts(self) -> list[str]:
        """The features of each row as words."""
        ends = self.X.indptr
        return [" ".join(f"w{j}" for j in self.X.indices[a:b]) for a, b in pairwise(ends)]

    @cached_property
    def names(self) -> list[list[str]]:
        """The labels of each row by name."""
        known, ends = label_names(self.Y.shape[1]), self.Y.indptr
        return [[known[j] for j in self.Y.indices[a:b]] for a, b in pairwise(ends)]

    @cached_property
    def hierarchy(self) -> Any:
        """Labels below one another, in a tree with ten children of each."""
        from sklearn_xc.hierarchy import LabelHierarchy

        return LabelHierarchy.from_parents([-1, *(j // 10 for j in range(self.Y.shape[1] - 1))])

    @cached_property
    def ova(self) -> Any:
        """OvALinearXC of X and Y."""
        return self.model("ova")

    @cached_property
    def tuner(self) -> Any:
        """ThresholdTuner of X and Y."""
        return self.model("tuner")

    @cached_property
    def calibrator(self) -> Any:
        """TopKCalibrator of X and Y."""
        return self.model("calibrator")

    @cached_property
    def tagger(self) -> Any:
        """TextClassifierXC of texts and names."""
        return self.model("tagger")

    @cached_property
    def best(self) -> np.ndarray:
        """The five best labels of each row."""
        return joblib.load(self.folder / "best.joblib")

    @cached_property
    def propensities(self) -> np.ndarray:
        """Of the labels."""
        from sklearn_xc.metrics import propensity

        return propensity(np.asarray(self.Y.sum(axis=0)).ravel(), self.Y.shape[0])

    def model(self, name: str) -> Any:
        """Return a fitted model."""
        return joblib.load(self.folder / f"{name}.joblib")

    def keep(self, name: str, value: Any) -> None:
        """Keep a fitted model, or the like, for other processes."""
        joblib.dump(value, self.folder / f"{name}.joblib")

    def table(self) -> str:
        """Write texts and names as a table, and return its path."""
        path = self.folder / "table.tsv"
        rows = (
            f"{text}\t{';'.join(names)}" for text, names in zip(self.texts, self.names, strict=True)
        )
        path.write_text("\n".join(["text\ttags", *rows]) + "\n")
        return str(path)


def label_names(n_labels: int) -> list[str]:
    """Return names of so many labels."""
    return [f"label {j:06d}" for j in range(n_labels)]


def _ova(**parameters: Any) -> Any:
    import sklearn_xc

    return sklearn_xc.OvALinearXC(n_jobs=-1, **parameters)


def _wrapped(name: str) -> Any:
    import sklearn_xc

    return getattr(sklearn_xc, name)(_ova(), cv=0.2, random_state=0)


def _tagger() -> Any:
    import sklearn_xc

    return sklearn_xc.TextClassifierXC(classifier=_wrapped("ThresholdTuner"))


def _of(module: str, name: str) -> Any:
    """Return a public function of the package."""
    import importlib

    return getattr(importlib.import_module(f"sklearn_xc.{module}"), name)


def _fit(name: str, make: Callable[[], Any]) -> Callable[[Made], None]:
    """Return a call that fits a model of X and Y, and keeps it."""
    return lambda made: made.keep(name, make().fit(made.X, made.Y))


def _metric(name: str, **parameters: Any) -> Callable[[Made], Any]:
    """Return a call of a metric at k."""
    return lambda made: _of("metrics", name)(made.Y, made.best, k=5, **parameters)


def _answer(metric: str) -> Callable[[Made], Any]:
    """Return a call of a metric of what predict gives."""
    return lambda made: _of("metrics", metric)(made.Y, made.tuner.predict(made.X))


def _selection(name: str, **parameters: Any) -> Callable[[Made], Any]:
    """Return a call of model_selection with one-vs-all, two folds and P@1."""
    given = {"cv": 2, "scoring": "P@1", **parameters}
    given = {key: value for key, value in given.items() if value is not None}
    return lambda made: _of("model_selection", name)(_ova(), made.X, made.Y, **given)


def _search(name: str, **parameters: Any) -> Callable[[Made], Any]:
    """Return a call of a search over two values of C."""

    def search(made: Made) -> Any:
        make = _of("model_selection", name)
        grid = {"C": [0.3, 1.0]}
        return make(_ova(), grid, cv=2, scoring="P@1", **parameters).fit(made.X, made.Y)

    return search


def _split(name: str) -> Callable[[Made], Any]:
    return lambda made: list(_of("model_selection", name)(n_splits=2).split(made.X, made.Y))


def _display(name: str, model: str, **parameters: Any) -> Callable[[Made], Any]:
    """Return a call that draws a display of a model."""

    def draw(made: Made) -> Any:
        import matplotlib

        matplotlib.use("Agg")
        make = _of("inspection", name).from_estimator
        return make(getattr(made, model), made.X, made.Y, **parameters)

    return draw


def _command(*arguments: str) -> Callable[[Made], None]:
    """Return a call of the command line; MODEL and TABLE are paths."""

    def run(made: Made) -> None:
        from sklearn_xc.command_line import main

        paths = {"MODEL": str(made.folder / "command.model"), "TABLE": made.table(),
                 "OUT": str(made.folder / "tagged.tsv")}  # fmt: skip
        printed = io.StringIO()
        with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(printed):
            code = main([paths.get(argument, argument) for argument in arguments])
        if code:
            raise RuntimeError(printed.getvalue().strip().splitlines()[-1])

    return run


def _fit_tagger(made: Made) -> None:
    made.keep("tagger", _tagger().fit(made.texts, made.names))


def _keep_best(made: Made) -> None:
    made.keep("best", made.ova.predict_topk(made.X, 5)[0])


def _compare(made: Made) -> Any:
    """Compare two models, each with its own weights."""
    compare = _of("inspection", "compare_models")
    return compare(made.ova, made.tuner, made.X, made.Y, n_resamples=100, random_state=0)


#: What is called, in this order.
CALLS: dict[str, Callable[[Made], Any]] = {
    "LabelBinarizerXC.fit_transform": lambda made: _binarizer().fit_transform(made.names),
    "LabelBinarizerXC.inverse_transform": lambda made: (
        (fitted := _binarizer()).inverse_transform(fitted.fit_transform(made.names))
    ),
    "OvALinearXC.fit": _fit("ova", _ova),
    "OvALinearXC.predict_topk": _keep_best,
    "OvALinearXC.predict": lambda made: made.ova.predict(made.X),
    "OvALinearXC.decision_function": lambda made: made.ova.decision_function(made.X),
    "OvALinearXC.score": lambda made: made.ova.score(made.X, made.Y),
    "OvALinearXC.explain": lambda made: made.ova.explain(made.X[[0]], 7),
    "OvALinearXC.predict_topk(candidates=)": lambda made: (
        made.ova.predict_topk(made.X, 5, candidates=range(0, made.Y.shape[1], 2))
    ),
    "OvALinearXC.predict_topk(exclude=rows)": lambda made: (
        made.ova.predict_topk(made.X, 5, exclude=made.Y)
    ),
    "topk_names(names=)": lambda made: _of("_topk_names", "topk_names")(
        made.ova, made.X, names=label_names(made.Y.shape[1])
    ),
    "ThresholdTuner.fit": _fit("tuner", lambda: _wrapped("ThresholdTuner")),
    "ThresholdTuner.predict": lambda made: made.tuner.predict(made.X),
    "TopKCalibrator.fit": _fit("calibrator", lambda: _wrapped("TopKCalibrator")),
    "TopKCalibrator.predict_proba": lambda made: made.calibrator.predict_proba(made.X),
    "TopKCalibrator.predict_proba_topk": lambda made: made.calibrator.predict_proba_topk(made.X),
    "TextClassifierXC.fit": _fit_tagger,
    "TextClassifierXC.predict": lambda made: made.tagger.predict(made.texts),
    "TextClassifierXC.predict_topk": lambda made: made.tagger.predict_topk(made.texts),
    "TextClassifierXC.score": lambda made: made.tagger.score(made.texts, made.names),
    "TextClassifierXC.explain": lambda made: (
        made.tagger.explain(made.texts[0], made.names[0][0])
    ),
    "topk_names": lambda made: _of("_topk_names", "topk_names")(made.tagger, made.texts),
    "precision_at_k": _metric("precision_at_k"),
    "recall_at_k": _metric("recall_at_k"),
    "ndcg_at_k": _metric("ndcg_at_k"),
    "coverage_at_k": _metric("coverage_at_k"),
    "macro_precision_at_k": _metric("macro_precision_at_k"),
    "macro_recall_at_k": _metric("macro_recall_at_k"),
    "macro_f1_at_k": _metric("macro_f1_at_k"),
    "psp_at_k": lambda made: _metric("psp_at_k", propensities=made.propensities)(made),
    "psndcg_at_k": lambda made: _metric("psndcg_at_k", propensities=made.propensities)(made),
    "micro_f1": _answer("micro_f1"),
    "macro_f1": _answer("macro_f1"),
    "instance_f1": _answer("instance_f1"),
    "hierarchical_f1": lambda made: _of("metrics", "hierarchical_f1")(
        made.Y, made.tuner.predict(made.X), made.hierarchy
    ),
    "hierarchical_f1_at_k": lambda made: (
        _metric("hierarchical_f1_at_k", hierarchy=made.hierarchy)(made)
    ),
    "brier_score": lambda made: _of("metrics", "brier_score")(
        made.Y, made.calibrator.predict_proba(made.X)
    ),
    "expected_calibration_error": lambda made: _of("metrics", "expected_calibration_error")(
        made.Y, made.calibrator.predict_proba(made.X)
    ),
    "calibration_by_frequency": lambda made: _of("metrics", "calibration_by_frequency")(
        made.Y, made.calibrator.predict_proba(made.X), made.calibrator.label_counts_
    ),
    "paired_bootstrap": lambda made: _of("metrics", "paired_bootstrap")(
        made.Y, made.best, made.best[:, ::-1], random_state=0
    ),
    "TopKScorer": lambda made: _of("metrics", "TopKScorer")()(made.ova, made.X, made.Y),
    "RareLabelSplit": _split("RareLabelSplit"),
    "RareLabelShuffleSplit": _split("RareLabelShuffleSplit"),
    "train_test_split": lambda made: _of("model_selection", "train_test_split")(
        made.X, made.Y, stratify=made.Y, random_state=0
    ),
    "cross_val_topk": _selection("cross_val_topk", scoring=None, k=20),
    "cross_val_predict": _selection("cross_val_predict", scoring=None),
    "cross_validate": _selection("cross_validate"),
    "learning_curve": _selection("learning_curve", train_sizes=[0.5, 1.0]),
    "validation_curve": _selection("validation_curve", param_name="C", param_range=[0.3, 1.0]),
    "permutation_test_score": _selection("permutation_test_score", n_permutations=1),
    "GridSearchCV": _search("GridSearchCV"),
    "RandomizedSearchCV": _search("RandomizedSearchCV", n_iter=1, random_state=0),
    "LabelFrequencyDisplay": _display("LabelFrequencyDisplay", "ova"),
    "MetricByFrequencyDisplay": _display("MetricByFrequencyDisplay", "ova"),
    "MicroPrecisionRecallDisplay": _display("MicroPrecisionRecallDisplay", "ova"),
    "ReliabilityDisplay": _display("ReliabilityDisplay", "calibrator"),
    "compare_models": _compare,
    "similar_labels": lambda made: _of("inspection", "similar_labels")(made.ova, 7),
    "sklearn-xc fit": _command(
        "fit", "TABLE", "--text", "text", "--labels", "tags", "--separator", ";", "--min-count",
        "1", "--out", "MODEL",
    ),
    "sklearn-xc tag": _command("tag", "MODEL", "TABLE", "--out", "OUT"),
    "sklearn-xc tag --predicted": _command("tag", "MODEL", "TABLE", "--predicted", "--out", "OUT"),
    "sklearn-xc evaluate": _command("evaluate", "MODEL", "TABLE"),
}  # fmt: skip


#: Calls that keep what others take.
KEEPERS = (
    "OvALinearXC.fit", "OvALinearXC.predict_topk", "ThresholdTuner.fit", "TopKCalibrator.fit",
    "TextClassifierXC.fit", "sklearn-xc fit",
)  # fmt: skip


def _binarizer() -> Any:
    return _of("preprocessing", "LabelBinarizerXC")()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--labels", type=int, default=_LABELS, metavar="N", help="200,000")
    parser.add_argument("--rows", type=int, default=_ROWS, metavar="N", help="5,000")
    parser.add_argument(
        "--calls", nargs="+", choices=CALLS, default=tuple(CALLS), metavar="NAME",
        help="some of the calls, with those before them that fit their models",
    )  # fmt: skip


def main(
    data: Any = None,
    *,
    labels: int = _LABELS,
    rows: int = _ROWS,
    calls: Sequence[str] = tuple(CALLS),
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Make each call in a fresh process, and tell its peak memory.

    Parameters
    ----------
    data : object, default=None
        Not used.
    labels, rows : int
        Of the data made.
    calls : sequence of str, default=all
        Names of ``CALLS``.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row for each call, with an ``error`` where it failed.
    """
    report = report or Report("large")
    found = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        in_fresh_process(make_data, folder, rows, labels)
        for call in _with_fits(calls):
            row = in_fresh_process(measure_call, folder, call)
            found.append({"call": call, "error": "", **row})
            report.line(f"{call}: {row.get('peak_mib', float('nan')):,.0f} MiB")
    failed = [row["call"] for row in found if row["error"]]
    over = [row["call"] for row in found if row.get("peak_mib", 0) * 2**20 >= MAX_BYTES]
    report.table(
        f"{rows:,} rows, {labels:,} labels (goal: peaks below {MAX_BYTES / 2**20:,.0f} MiB)",
        found, _COLUMNS,
    )  # fmt: skip
    report.line(f"Above it: {', '.join(over) or 'none'}. Failed: {', '.join(failed) or 'none'}.")
    return found


def _with_fits(calls: Sequence[str]) -> list[str]:
    """Return the calls in the order of ``CALLS``, with those that fit models for later ones."""
    last = max(list(CALLS).index(call) for call in calls)
    return [
        call for place, call in enumerate(CALLS)
        if call in calls or (place < last and call in KEEPERS)
    ]  # fmt: skip


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a call returns in a process that has done nothing else."""
    # A forked process would start with the memory of this one.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as fresh:
        return fresh.submit(row_or_error, function, *arguments).result()


def make_data(folder: Path, n_rows: int, n_labels: int) -> dict[str, Any]:
    """Write X and Y into a folder; each label has a row at least."""
    from sklearn_xc.datasets import make_xc_classification

    X, Y = make_xc_classification(
        n_samples=n_rows, n_features=_FEATURES, n_labels=n_labels, nnz_per_row=30,
        labels_per_row=min(4, n_labels), random_state=0,
    )  # fmt: skip
    once = sp.csr_array(
        (np.ones(n_labels, np.int8), (np.arange(n_labels) % n_rows, np.arange(n_labels))),
        shape=Y.shape,
    )
    Y = sp.csr_array(((sp.csr_array(Y) + once) > 0).astype(np.int8))
    joblib.dump((X, Y), folder / _DATA)
    return {}


def measure_call(folder: Path, call: str) -> dict[str, Any]:
    """Make a call in this process, which should be a fresh one, and return its row."""
    made = Made(folder)
    before = peak_bytes()
    reset_peak()
    began = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        CALLS[call](made)
    seconds = perf_counter() - began
    return {
        "before_mib": before / 2**20, "peak_mib": peak_bytes() / 2**20, "wall_s": seconds,
    }  # fmt: skip
