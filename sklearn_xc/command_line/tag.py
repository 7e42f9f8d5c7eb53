"""``tag``: a table gets two further columns, the labels of a model and their scores."""

import math
from typing import Any

from sklearn_xc.command_line.errors import CommandError, say
from sklearn_xc.command_line.model_files import load_model, text_columns
from sklearn_xc.command_line.outputs import open_output
from sklearn_xc.command_line.progress import Progress
from sklearn_xc.command_line.tables import in_chunks, kind_of_name, open_table
from sklearn_xc.command_line.tagged_tables import (
    DelimitedWriter,
    JsonLinesWriter,
    Tags,
    free_names,
)

#: Labels of a row where neither their number nor a least score is given.
_DEFAULT_K = 5
#: Labels of a row that are looked at for a least score.
_MOST_PAST_THRESHOLD = 100


def tag(options: Any) -> None:
    """Write a table with labels.

    Parameters
    ----------
    options : argparse.Namespace
        As :mod:`sklearn_xc.command_line.arguments` reads them.

    Raises
    ------
    CommandError
        For options, models and tables that do not do.
    """
    kind = _kind_of_output(options)
    model, known = load_model(options.model)
    columns = text_columns(options.text, known)
    separator = options.separator or (known.separator if known else None) or ";"
    n_done = 0
    with Progress(options.quiet) as progress, open_table(options.table, options) as table:
        table.check_columns(columns, "--text")
        added = free_names(table.columns)
        if added != free_names([]) and not options.quiet:
            say(f"note: the table has such columns already; the new ones are {', '.join(added)}.")
        kind = kind or ("csv" if table.kind == "parquet" else table.kind)
        with open_output(options.out) as stream:
            writer: Any
            if kind == "jsonl":
                writer = JsonLinesWriter(stream, added)
            else:
                delimiter = "\t" if kind == "tsv" else options.out_delimiter
                writer = DelimitedWriter(stream, table.columns, added, separator, delimiter)
            for rows, texts in in_chunks(table, columns):
                writer.write(rows, _tags_of(model, texts, options))
                n_done += len(rows)
                progress.show(n_done, table.share_read(n_done))
    if not options.quiet:
        seconds = progress.seconds
        say(
            f"{n_done:,} rows to {'standard output' if options.out == '-' else options.out} "
            f"[{seconds:.1f} s, {n_done / seconds:,.0f} rows/s]"
        )


def _tags_of(model: Any, texts: list[str], options: Any) -> list[Tags]:
    from sklearn_xc import topk_names

    least = -math.inf if options.threshold is None else options.threshold
    k = options.k or (_DEFAULT_K if options.threshold is None else _MOST_PAST_THRESHOLD)
    k = min(k, len(model.classes_))
    return [
        [(name, score) for name, score in row if score >= least and math.isfinite(score)]
        for row in topk_names(model, texts, k, return_scores=True)
    ]


def _kind_of_output(options: Any) -> str | None:
    """Return the kind of table that the name of the output says, None for that of the input."""
    kind = options.out_format or (None if options.out == "-" else kind_of_name(options.out))
    if kind == "parquet":
        raise CommandError(f"--out {options.out}: Parquet is not written. Name it .csv or .jsonl.")
    return kind
