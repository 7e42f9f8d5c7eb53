"""Texts and labels of all rows of a table."""

from dataclasses import dataclass
from typing import Any

from sklearn_xc._name_lists import likely_separator, refuse_written_lists
from sklearn_xc.command_line.cells import names_of, text_of
from sklearn_xc.command_line.errors import CommandError, say
from sklearn_xc.command_line.tables import open_table

_WRITTEN_LISTS = (
    "JSON lines keep lists, and are read by --format jsonl: in pandas, make lists of the column by "
    "map(ast.literal_eval), then write to_json(path, orient='records', lines=True)"
)


@dataclass(frozen=True)
class LabelledRows:
    """Texts and labels of the rows of a table.

    Attributes
    ----------
    texts : list of str
    labels : list of list of str
        Empty for a row without labels, as in Python.
    n_without : int
        Rows without labels.
    """

    texts: list[str]
    labels: list[list[str]]
    n_without: int


def read_labelled(
    path: str, text_columns: list[str], label_column: str, separator: str | None, options: Any
) -> LabelledRows:
    """Read texts and labels of the rows of a table.

    A note is printed where rows have no label, and where the separator seems to be another.

    Parameters
    ----------
    path : str
    text_columns : list of str
    label_column : str
    separator : str or None
        What stands between names in a cell.
    options : argparse.Namespace
        As :func:`open_table` takes it, with ``quiet``.

    Returns
    -------
    LabelledRows

    Raises
    ------
    CommandError
        If no row has labels, or none has text, and as :func:`open_table`.
    ValueError
        For lists that were written as text.
    """
    texts: list[str] = []
    labels: list[list[str]] = []
    cells = []
    with open_table(path, options) as table:
        table.check_columns(text_columns, "--text")
        table.check_columns([label_column], "--labels")
        for row in table.rows:
            cells.append(row.get(label_column))
            labels.append(names_of(cells[-1], separator))
            texts.append(text_of(row, text_columns))
        name = table.name
    if not labels:
        raise CommandError(f"{name}: the table has no rows, only the line with the columns' names.")
    refuse_written_lists(cells, f"{name}: column {label_column!r}", _WRITTEN_LISTS)
    n_without = labels.count([])
    if n_without == len(labels):
        raise CommandError(f"{name}: no row has a label: column {label_column!r} is empty.")
    if not any(text.strip() for text in texts):
        raise CommandError(
            f"{name}: no row has a text: {', '.join(map(repr, text_columns))} is empty."
        )
    if not options.quiet:
        if n_without:
            say(
                f"note: {n_without:,} of {len(labels):,} rows have no label, row "
                f"{labels.index([]) + 1} first. If their labels are unknown, remove these rows."
            )
        _note_separator(labels, separator, label_column)
    return LabelledRows(texts, labels, n_without)


def _note_separator(labels: list[list[str]], separator: str | None, column: str) -> None:
    likely = likely_separator(labels, separator)
    if likely is None:
        return
    example = next(names[0] for names in labels if names and likely in names[0])
    if separator is None:
        say(
            f"note: cells of {column!r} such as {example!r} were taken as one label each. If they "
            f"hold several, add --separator '{likely}'."
        )
    else:
        say(
            f"note: no cell of {column!r} holds {separator!r}, and many hold {likely!r}, such as "
            f"{example!r}. Should it be --separator '{likely}'?"
        )
