"""``fit``: a table with texts and labels becomes a model."""

import time
from collections import Counter
from typing import Any

from sklearn_xc.command_line.errors import CommandError, listed, say
from sklearn_xc.command_line.estimators import ONE_LABEL, ONE_VS_ALL, make_model
from sklearn_xc.command_line.label_texts import read_label_texts
from sklearn_xc.command_line.labelled_rows import LabelledRows, read_labelled
from sklearn_xc.command_line.model_files import Columns, check_place, save_model
from sklearn_xc.command_line.swapped_columns import check_columns

#: What is printed of held-out rows.
_HELD_OUT = ("P@1", "P@3", "P@5", "R@5", "PSP@1", "micro-F1", "macro-F1")


def fit(options: Any) -> None:
    """Fit a model on a table and save it.

    Parameters
    ----------
    options : argparse.Namespace
        As :mod:`sklearn_xc.command_line.arguments` reads them.

    Raises
    ------
    CommandError
        For options and tables that do not do.
    """
    check_place(options.out)
    if options.compact and options.estimator not in ONE_VS_ALL:
        raise CommandError(
            f"--compact: is for weights of one-vs-all, that is --estimator {listed(ONE_VS_ALL)}. "
            f"Got {options.estimator!r}."
        )
    label_texts = read_label_texts(options)
    least = 1 if options.estimator in ONE_LABEL else options.min_count
    decisions = "thresholds" if options.thresholds else None
    model = make_model(
        options.estimator, options.set,
        decisions="probabilities" if options.probabilities else decisions,
        separator=options.separator, min_count=least, label_texts=label_texts, n_jobs=options.jobs,
        seed=options.seed,
    )  # fmt: skip
    began = time.perf_counter()
    rows = read_labelled(options.table, options.text, options.labels, options.separator, options)
    counts = Counter(name for names in rows.labels for name in names)
    n_kept = sum(n >= least for n in counts.values())
    check_columns(rows, counts, options)
    _check(rows, counts, n_kept, options)
    rare = len(counts) - n_kept
    _tell(
        options,
        f"{options.table}: {len(rows.texts):,} rows, {n_kept:,} labels, "
        f"{counts.total() / len(rows.labels):.1f} labels per row "
        f"[{time.perf_counter() - began:.1f} s]",
    )
    if rare:
        _tell(
            options,
            f"note: {rare:,} of {len(counts):,} labels are in fewer than {least} rows: left out. "
            "--min-count 1 keeps them.",
        )
    if options.holdout:
        _hold_out(model, rows, options)
    seconds = _train(model, rows, options)
    columns = Columns(options.text, options.labels, options.separator)
    n_bytes = save_model(model, columns, options.out, compact=options.compact)
    n_labels = len(model.classes_)
    _tell(
        options,
        f"trained {options.estimator} on {len(rows.texts):,} rows, {n_labels:,} labels "
        f"[{seconds:.1f} s]\nwrote {options.out}: {_as_size(n_bytes)}",
    )


def _check(rows: LabelledRows, counts: Counter, n_kept: int, options: Any) -> None:
    if not n_kept:
        name, n = counts.most_common(1)[0]
        raise CommandError(
            f"{options.table}: no label is in {options.min_count} rows or more; the most frequent, "
            f"{name!r}, is in {n}. If a row has several labels, is --separator right? Otherwise "
            "lower --min-count."
        )
    if options.estimator in ONE_LABEL:
        if rows.n_without:
            raise CommandError(
                f"--estimator {options.estimator}: takes one label for each row, and "
                f"{rows.n_without:,} rows have none: remove them, or take ova."
            )
        several = next((names for names in rows.labels if len(names) > 1), None)
        if several is not None:
            raise CommandError(
                f"--estimator {options.estimator}: takes one label for each row, and a row has "
                f"{len(several)}: {listed(several)}. Take ova."
            )
        if len(counts) < 2:
            raise CommandError(
                f"--estimator {options.estimator}: all rows have the same label, "
                f"{next(iter(counts))!r}."
            )


def _hold_out(model: Any, rows: LabelledRows, options: Any) -> None:
    """Print how good the model is on rows that it has not seen."""
    import numpy as np
    from sklearn.base import clone

    from sklearn_xc.command_line.quality import Answers

    n = len(rows.texts)
    n_held = max(1, round(options.holdout * n))
    if n - n_held < 1:
        raise CommandError(f"--holdout {options.holdout}: {n} rows leave none to train on.")
    order = np.random.default_rng(options.seed).permutation(n)
    train, held = _some(rows, order[n_held:]), _some(rows, order[:n_held])
    least = 1 if options.estimator in ONE_LABEL else options.min_count
    counts = Counter(name for names in train.labels for name in names)
    if max(counts.values(), default=0) < least:
        raise CommandError(f"--holdout: no label is in {least} of the rows that are left.")
    model = clone(model)
    seconds = _train(model, train, options)
    answers = Answers(model)
    for first in range(0, n_held, 8192):
        answers.add(held.texts[first : first + 8192], held.labels[first : first + 8192])
    numbers = answers.metrics()
    text = ", ".join(f"{name} {numbers[name]:.1%}" for name in _HELD_OUT)
    _tell(
        options,
        f"{n_held:,} rows held out, trained on the other {n - n_held:,} [{seconds:.1f} s]: {text}",
    )


def _some(rows: LabelledRows, which: Any) -> LabelledRows:
    return LabelledRows([rows.texts[i] for i in which], [rows.labels[i] for i in which], 0)


def _train(model: Any, rows: LabelledRows, options: Any) -> float:
    """Fit the model, and return the seconds."""
    y: Any = rows.labels
    if options.estimator in ONE_LABEL:
        model.set_params(separator=None)
        y = [names[0] for names in rows.labels]
    began = time.perf_counter()
    model.fit(rows.texts, y)
    return time.perf_counter() - began


def _tell(options: Any, text: str) -> None:
    if not options.quiet:
        say(text)


def _as_size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB" if n_bytes >= 1e5 else f"{n_bytes / 1e3:,.1f} kB"
