"""``tag``: a table gets two further columns, the labels of a model and scores or probabilities."""

import math
from typing import Any

from sklearn_xc.command_line.allowed_names import OwnNames, read_allowed_names
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
    if _has_probabilities(model) and (options.threshold or 0) > 1:
        raise CommandError(
            f"--threshold {options.threshold:g}: the model gives probabilities, from 0 to 1."
        )
    allowed = read_allowed_names(model, options)
    own = None
    if options.exclude_column is not None:
        own = OwnNames(model, options.exclude_column, separator)
    n_done = 0
    with Progress(options.quiet) as progress, open_table(options.table, options) as table:
        table.check_columns(columns, "--text")
        if own is not None:
            table.check_columns([options.exclude_column], "--exclude-column")
        numbers = "probabilities" if _has_probabilities(model) else "scores"
        added = free_names(table.columns, numbers)
        if added != free_names([], numbers) and not options.quiet:
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
                if own is not None:
                    allowed = own.of(rows)
                writer.write(rows, _tags_of(model, texts, options, allowed))
                n_done += len(rows)
                progress.show(n_done, table.share_read(n_done))
    if not options.quiet:
        if own is not None:
            own.tell_unknown()
        seconds = progress.seconds
        say(
            f"{n_done:,} rows to {'standard output' if options.out == '-' else options.out} "
            f"[{seconds:.1f} s, {n_done / seconds:,.0f} rows/s]"
        )


def _tags_of(model: Any, texts: list[str], options: Any, allowed: dict[str, Any]) -> list[Tags]:
    if options.predicted:
        found = _predicted(model, texts, allowed)
    elif options.threshold is None:
        found = _best(model, texts, options.k or _DEFAULT_K, allowed)
    else:
        best = _best(model, texts, options.k or _MOST_PAST_THRESHOLD, allowed)
        found = [[tag for tag in row if tag[1] >= options.threshold] for row in best]
    return [row[: options.k] for row in found]


def _predicted(model: Any, texts: list[str], allowed: dict[str, Any]) -> list[Tags]:
    """Return the labels that the model predicts, best first."""
    answers = model.predict(texts)
    if hasattr(answers, "shape") and len(answers.shape) != 1:
        raise CommandError(
            "--predicted: the model was fitted on a matrix of labels, without names."
        )
    k = getattr(model.classifier_, "top_k", _MOST_PAST_THRESHOLD)
    named = [set(names) if isinstance(names, list) else {names} for names in answers]
    return [
        [tag for tag in row if tag[0] in names]
        for names, row in zip(named, _best(model, texts, k, allowed), strict=True)
    ]


def _best(model: Any, texts: list[str], k: int, allowed: dict[str, Any]) -> list[Tags]:
    """Return the k best labels, in the order of scores, with these or with probabilities."""
    ask = model.predict_proba_topk if _has_probabilities(model) else model.predict_topk
    places, numbers = ask(texts, min(k, len(model.classes_)), **allowed)
    kept = (places >= 0) & (numbers > -math.inf)
    names = model.classes_
    return [
        list(zip(names[row[known]].tolist(), values[known].tolist(), strict=True))
        for row, values, known in zip(places, numbers, kept, strict=True)
    ]


def _has_probabilities(model: Any) -> bool:
    """Return whether a model was fitted with probabilities of its best labels."""
    return hasattr(model, "predict_proba_topk")


def _kind_of_output(options: Any) -> str | None:
    """Return the kind of table that the name of the output says, None for that of the input."""
    kind = options.out_format or (None if options.out == "-" else kind_of_name(options.out))
    if kind == "parquet":
        raise CommandError(f"--out {options.out}: Parquet is not written. Name it .csv or .jsonl.")
    return kind
