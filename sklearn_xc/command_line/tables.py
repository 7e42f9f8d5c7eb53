"""Tables as data frames: CSV, TSV, JSON lines and Parquet, in chunks of rows."""

import json
import lzma
import os
import re
import sys
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

from sklearn_xc._labels.name_lists import names_in, refuse_written_lists
from sklearn_xc._labels.names import did_you_mean

_FORMATS = {
    **dict.fromkeys((".csv", ".txt"), "csv"),
    **dict.fromkeys((".tsv", ".tab"), "tsv"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
}
_CHUNK_ROWS = 8192
_WRITTEN_LISTS = (
    "JSON lines keep lists: in pandas, make lists of the column by map(ast.literal_eval), then "
    "write to_json(path, orient='records', lines=True)"
)
#: A name that spreadsheets would run as a formula, after apostrophes that keep them from it.
_FORMULA = re.compile(r"'*(=|[+\-@][^(|!]*[(|!])")


class CommandError(Exception):
    """An error of the user; its message is printed, and the command ends with exit code 2."""


def say(text: str) -> None:
    """Print a line on standard error, apart from the results."""
    print(text, file=sys.stderr, flush=True)


def format_of(path: str) -> str | None:
    """Return the format that a file's name stands for, compressed or not."""
    stem, suffix = os.path.splitext(path.lower())
    if suffix in (".gz", ".xz", ".bz2"):
        suffix = os.path.splitext(stem)[1]
    return _FORMATS.get(suffix)


def read_chunks(path: str, columns: dict[str, list[str]], options: Any) -> Iterator[Any]:
    """Yield a table as data frames of up to 8,192 rows.

    Parameters
    ----------
    path : str
        A file, or "-" for standard input.
    columns : dict of str to list of str
        Columns that must be there, by the option that names them.
    options : argparse.Namespace
        With ``format``, ``delimiter`` and ``encoding``.

    Raises
    ------
    CommandError
        For a file that cannot be read as such a table, and for missing columns.
    """
    try:
        for number, frame in enumerate(_read(path, options)):
            if not number:
                _check_columns(frame, columns, path)
            yield frame
    except ImportError as error:
        raise CommandError(
            f"{path}: reading tables needs pandas, and Parquet also pyarrow: pip install "
            f"'sklearn-xc[cli]' ({error})."
        ) from error
    except UnicodeDecodeError as error:
        raise CommandError(
            f"{path}: the text is not {error.encoding} ({error.reason} at byte {error.start}). "
            "Pass its --encoding, such as cp1252 for tables from Excel."
        ) from error
    except (ValueError, EOFError, Warning, zlib.error, lzma.LZMAError) as error:
        raise CommandError(f"{path}: {str(error).strip()}.") from error


def _read(path: str, options: Any) -> Iterator[Any]:
    import pandas

    source = sys.stdin.buffer if path == "-" else path
    kind = options.format or format_of(path) or "csv"
    if kind == "parquet":
        from pyarrow.parquet import ParquetFile

        for batch in ParquetFile(source).iter_batches(_CHUNK_ROWS):
            yield batch.to_pandas()
        return
    form: dict[str, Any] = {"chunksize": _CHUNK_ROWS, "encoding": options.encoding}
    with warnings.catch_warnings():
        warnings.simplefilter("error", pandas.errors.ParserWarning)  # every row has too many cells
        if kind == "jsonl":
            if pandas.__version__.startswith("2."):  # later versions follow dtype
                form["convert_dates"] = False
            yield from pandas.read_json(source, lines=True, dtype=False, **form)
            return
        yield from pandas.read_csv(
            source,
            sep=options.delimiter or ("\t" if kind == "tsv" else ","),
            dtype=str,
            keep_default_na=False,
            index_col=False,
            **form,
        )


def _check_columns(frame: Any, columns: dict[str, list[str]], path: str) -> None:
    known = list(map(str, frame.columns))
    for option, names in columns.items():
        for name in names:
            if name not in known:
                hint = did_you_mean(name, known)
                if len(known) == 1:
                    hint += " If other characters than ',' separate cells, pass --delimiter."
                shown = ", ".join(one[:60] for one in known[:30])
                raise CommandError(
                    f"{path}: there is no column {name!r} ({option}). The table has: {shown}.{hint}"
                )


def texts_of(frame: Any, columns: list[str]) -> list[str]:
    """Return the texts of some columns, joined by blanks; empty cells are left out."""
    cells = [map(as_text, frame[name]) for name in columns if name in frame]
    return [" ".join(filter(None, row)) for row in zip(*cells, strict=True)]


def names_of(cell: Any, separator: str | None) -> list[str]:
    """Return the labels in a cell, each once: of a list, or of a text with `separator`."""
    is_list = isinstance(cell, list | tuple) or hasattr(cell, "tolist")
    items = list(cell) if is_list else [cell]
    if any(isinstance(one, list | dict) for one in items):
        raise CommandError(f"labels must be names, or a list of names. Got {as_text(cell)}.")
    names = [as_text(one).strip() for one in items]
    if not is_list:
        names = [
            name[1:] if name[:1] == "'" and _FORMULA.match(name) else name
            for name in names_in(names[0], separator)
        ]
    return list(dict.fromkeys(filter(None, names)))


def without_formula(name: str) -> str:
    """Return a name as a delimited table holds it, with an apostrophe before a formula."""
    return f"'{name}" if _FORMULA.match(name) else name


def as_text(cell: Any) -> str:
    """Return a cell as text: empty if it is missing, without ".0", lists as JSON."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, list | dict) or hasattr(cell, "__len__"):
        return json.dumps(cell, ensure_ascii=False, default=lambda one: one.tolist())
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def read_labelled(
    path: str, text_columns: list[str], label_column: str, separator: str | None, options: Any
) -> tuple[list[str], list[list[str]]]:
    """Return the texts and the labels of all rows of a table.

    Raises
    ------
    CommandError, ValueError
        If no row has a label, or none a text, and as :func:`read_chunks`; for lists that were
        written as text.
    """
    texts: list[str] = []
    labels: list[list[str]] = []
    columns = {"--text": text_columns, "--labels": [label_column]}
    for frame in read_chunks(path, columns, options):
        cells = list(frame[label_column])
        refuse_written_lists(cells, f"{path}: column {label_column!r}", _WRITTEN_LISTS)
        labels += [names_of(cell, separator) for cell in cells]
        texts += texts_of(frame, text_columns)
    if not any(labels):
        raise CommandError(f"{path}: no row has a label in column {label_column!r} (--labels).")
    if not any(text.strip() for text in texts):
        raise CommandError(f"{path}: no row has a text in {', '.join(text_columns)} (--text).")
    return texts, labels
