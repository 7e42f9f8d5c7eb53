"""``fit``: a table with texts and labels becomes a model."""

import argparse
import time
from collections import Counter
from typing import Any

from sklearn_xc.command_line.models import (
    COLUMNS,
    ONE_LABEL,
    TAKE_LABEL_TEXTS,
    Columns,
    make_model,
)
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
    from sklearn_xc._state.files import check_folder

    check_folder(options.out)  # before long work
    has_one_label = options.estimator in ONE_LABEL
    min_count = 1 if has_one_label else options.min_count
    model = make_model(
        options.estimator,
        options.set,
        wrapper=options.wrapper,
        n_jobs=options.jobs,
        seed=options.seed,
        separator=None if has_one_label else options.separator,
        min_count=min_count,
        label_texts=_read_label_texts(options),
    )
    texts, labels = read_labelled(
        options.table, options.text, options.labels, options.separator, options
    )
    counts = Counter(name for names in labels for name in names)
    if has_one_label and (wrong := [names for names in labels if len(names) != 1]):
        raise CommandError(
            f"{options.table}: {options.estimator} takes one label for each row. Got {wrong[0]}."
        )
    if max(counts.values()) < min_count:
        raise CommandError(
            f"{options.table}: no label is in {min_count} rows or more. If a row has several "
            "labels, is --separator right? Otherwise lower --min-count."
        )
    began = time.perf_counter()
    # A row without labels counts as missing, and the fit warns.
    model.fit(texts, [names[0] if has_one_label else names or None for names in labels])
    seconds = time.perf_counter() - began
    columns = Columns(options.text, options.labels, options.separator)
    setattr(model, COLUMNS, columns._asdict())
    model.save(options.out)
    if not options.quiet:
        rare = sum(n < min_count for n in counts.values())
        say(
            f"trained {options.estimator} on {len(texts):,} rows, {len(model.classes_):,} labels "
            f"[{seconds:.1f} s]; {rare:,} labels in fewer than {min_count} rows were left out\n"
            f"wrote {options.out}"
        )


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
