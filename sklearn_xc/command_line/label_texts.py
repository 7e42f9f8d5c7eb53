"""Texts of labels, from a table of their own."""

import argparse
from typing import Any

from sklearn_xc.command_line.cells import as_text, text_of
from sklearn_xc.command_line.errors import CommandError, say
from sklearn_xc.command_line.estimators import TAKE_LABEL_TEXTS
from sklearn_xc.command_line.tables import open_table


def read_label_texts(options: Any) -> dict[str, str] | None:
    """Return the text of each label, None where no table was given.

    Raises
    ------
    CommandError
        For options that do not fit together, and as :func:`open_table`.
    """
    if options.label_texts is None:
        if options.label_name or options.label_text:
            raise CommandError("--label-name and --label-text are columns of --label-texts TABLE.")
        return None
    if options.estimator not in TAKE_LABEL_TEXTS:
        raise CommandError(
            f"--label-texts: {options.estimator} does not read texts of labels. Add --estimator "
            f"{' or '.join(TAKE_LABEL_TEXTS)}."
        )
    if not options.label_name or not options.label_text:
        raise CommandError(
            "--label-texts: say which columns hold the names and the texts of labels: --label-name "
            "COLUMN --label-text COLUMN."
        )
    found: dict[str, str] = {}
    n_again = 0
    # How the first table is to be read says nothing about this one, but for the encoding.
    reading = argparse.Namespace(**vars(options) | {"format": None, "delimiter": None})
    with open_table(options.label_texts, reading) as table:
        table.check_columns([options.label_name], "--label-name")
        table.check_columns(options.label_text, "--label-text")
        for row in table.rows:
            name = as_text(row.get(options.label_name)).strip()
            if not name:
                continue
            n_again += name in found
            found.setdefault(name, text_of(row, options.label_text))
    if not found:
        raise CommandError(f"{options.label_texts}: no row has a name of a label.")
    if n_again and not options.quiet:
        say(f"note: {options.label_texts}: {n_again:,} rows repeat a name; the first text counts.")
    return found
