"""Texts and labels of all rows of a table."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from sklearn_xc.command_line.cells import names_of, text_of
from sklearn_xc.command_line.errors import CommandError, say
from sklearn_xc.command_line.tables import open_table

#: What people put between names, and rarely into them.
_SEPARATORS = (";", "|", ",")
#: From this share of the cells on, a separator is worth a word.
_LIKELY = 0.1


@dataclass(frozen=True)
class LabelledRows:
    """What is known of the rows that have labels.

    Attributes
    ----------
    texts : list of str
    labels : list of list of str
        At least one each.
    n_without : int
        Rows without labels, which were left out.
    """

    texts: list[str]
    labels: list[list[str]]
    n_without: int


def read_labelled(
    path: str, text_columns: list[str], label_column: str, separator: str | None, options: Any
) -> LabelledRows:
    """Read the rows of a table that have labels.

    A note is printed where rows have none, and where the separator seems to be another.

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
        If no row has labels, or none has text; and as :func:`open_table`.
    """
    texts, labels, n_rows = [], [], 0
    holding: Counter[str] = Counter()
    example: dict[str, str] = {}
    with open_table(path, options) as table:
        table.check_columns(text_columns, "--text")
        table.check_columns([label_column], "--labels")
        for row in table.rows:
            n_rows += 1
            cell = row.get(label_column)
            names = names_of(cell, separator)
            if isinstance(cell, str):
                for one in _SEPARATORS:
                    if one in cell:
                        holding[one] += 1
                        example.setdefault(one, cell)
            if names:
                texts.append(text_of(row, text_columns))
                labels.append(names)
        name = table.name
    if not n_rows:
        raise CommandError(f"{name}: the table has no rows, only the line with the columns' names.")
    if not labels:
        raise CommandError(f"{name}: no row has a label: column {label_column!r} is empty.")
    if not any(text.strip() for text in texts):
        raise CommandError(
            f"{name}: no row has a text: {', '.join(map(repr, text_columns))} is empty."
        )
    if not options.quiet:
        if n_rows > len(labels):
            say(f"note: {n_rows - len(labels):,} of {n_rows:,} rows have no label: left out.")
        _note_separator(holding, example, separator, labels, label_column)
    return LabelledRows(texts, labels, n_rows - len(labels))


def _note_separator(
    holding: Counter, example: dict[str, str], separator: str | None, labels: list, column: str
) -> None:
    if separator is None:
        # A comma stands in many a name: it is not mentioned.
        likely = max(_SEPARATORS[:2], key=lambda one: holding[one])
        if holding[likely] > _LIKELY * len(labels):
            say(
                f"note: cells of {column!r} such as {example[likely]!r} were taken as one label "
                f"each. If they hold several, add --separator '{likely}'."
            )
    elif all(len(names) == 1 for names in labels):
        others = [one for one in _SEPARATORS if one != separator]
        likely = max(others, key=lambda one: holding[one])
        if holding[likely] > _LIKELY * len(labels):
            say(
                f"note: no cell of {column!r} holds {separator!r}, and many hold {likely!r}, such "
                f"as {example[likely]!r}. Should it be --separator '{likely}'?"
            )
