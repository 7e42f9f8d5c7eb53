"""``fit``: a table with texts and labels becomes a model."""

import argparse
import time
from collections import Counter
from typing import Any

from sklearn_xc.command_line.estimators import (
    ONE_LABEL,
    ONE_VS_ALL,
    TAKE_LABEL_TEXTS,
    make_model,
)
from sklearn_xc.command_line.evaluate import measure
from sklearn_xc.command_line.models import Columns, check_folder, save_model
from sklearn_xc.command_line.tables import (
    CommandError,
    as_text,
    read_chunks,
    read_labelled,
    say,
    texts_of,
)


def run(options: Any) -> None:
    """Fit a model on a table and save it."""
    check_folder(options.out)
    if options.compact and options.estimator not in ONE_VS_ALL:
        raise CommandError(
            f"--compact: rounds weights of one-vs-all (--estimator {', '.join(ONE_VS_ALL)}). Got "
            f"{options.estimator!r}."
        )
    min_count = 1 if options.estimator in ONE_LABEL else options.min_count
    thresholds = "thresholds" if options.thresholds else None
    model = make_model(
        options.estimator,
        options.set,
        around="probabilities" if options.probabilities else thresholds,
        separator=options.separator,
        min_count=min_count,
        label_texts=_read_label_texts(options),
        n_jobs=options.jobs,
        seed=options.seed,
    )
    texts, labels = read_labelled(
        options.table, options.text, options.labels, options.separator, options
    )
    counts = Counter(name for names in labels for name in names)
    if options.estimator in ONE_LABEL:
        _check_one_label(labels, options)
    elif max(counts.values()) < min_count:
        raise CommandError(
            f"{options.table}: no label is in {min_count} rows or more. If a row has several "
            "labels, is --separator right? Otherwise lower --min-count."
        )
    if options.holdout:
        _hold_out(model, texts, labels, options)
    seconds = _train(model, texts, labels, options)
    columns = Columns(options.text, options.labels, options.separator)
    save_model(model, columns, options.out, compact=options.compact)
    if not options.quiet:
        rare = sum(n < min_count for n in counts.values())
        say(
            f"trained {options.estimator} on {len(texts):,} rows, {len(model.classes_):,} labels "
            f"[{seconds:.1f} s]; {rare:,} labels in fewer than {min_count} rows were left out\n"
            f"wrote {options.out}"
        )


def _check_one_label(labels: list[list[str]], options: Any) -> None:
    wrong = next((names for names in labels if len(names) != 1), None)
    if wrong is not None:
        got = f"{len(wrong)}: {', '.join(wrong)}" if wrong else "none"
        raise CommandError(
            f"--estimator {options.estimator}: takes one label for each row, and a row has {got}."
        )


def _hold_out(model: Any, texts: list[str], labels: list[list[str]], options: Any) -> None:
    """Print the metrics on rows that a clone of the model was not trained on."""
    from sklearn.base import clone
    from sklearn.model_selection import train_test_split

    train, test, y_train, y_test = train_test_split(
        texts, labels, test_size=options.holdout, random_state=options.seed
    )
    model = clone(model)
    _train(model, train, y_train, options)
    metrics, _ = measure(model, test, y_test)
    shown = ("P@1", "P@3", "P@5", "R@5", "PSP@1", "micro-F1", "macro-F1")
    text = ", ".join(f"{name} {metrics[name]:.1%}" for name in shown)
    print(f"{len(test):,} rows held out: {text}")


def _train(model: Any, texts: list[str], labels: list[list[str]], options: Any) -> float:
    """Fit the model, and return the seconds that it took."""
    began = time.perf_counter()
    if options.estimator in ONE_LABEL:
        model.set_params(separator=None).fit(texts, [names[0] for names in labels])
    else:
        model.fit(texts, labels)
    return time.perf_counter() - began


def _read_label_texts(options: Any) -> dict[str, str] | None:
    """Return the text of each label, or None without ``--label-texts``."""
    if options.label_texts is None:
        return None
    if options.estimator not in TAKE_LABEL_TEXTS:
        raise CommandError(
            f"--label-texts: {options.estimator} reads no texts of labels. Add --estimator "
            f"{' or '.join(TAKE_LABEL_TEXTS)}."
        )
    if not options.label_name or not options.label_text:
        raise CommandError("--label-texts: needs --label-name COLUMN and --label-text COLUMN.")
    found: dict[str, str] = {}
    columns = {"--label-name": [options.label_name], "--label-text": options.label_text}
    # --format and --delimiter are those of the first table.
    reading = argparse.Namespace(**vars(options) | {"format": None, "delimiter": None})
    for frame in read_chunks(options.label_texts, columns, reading):
        names = [as_text(name).strip() for name in frame[options.label_name]]
        texts = texts_of(frame, options.label_text)
        found |= {name: text for name, text in zip(names, texts, strict=True) if name}
    if not found:
        raise CommandError(f"{options.label_texts}: no row has a name of a label (--label-name).")
    return found
