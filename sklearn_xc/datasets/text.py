"""Raw text with labels: tables and the fastText layout, read into lists."""

import os
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import Bunch

from sklearn_xc._input.arguments import check_count
from sklearn_xc.datasets._files import MAX_SIZE, Source, open_source

_WHO = "load_text_dataset"
_FORMATS = ("auto", "tsv", "fasttext")
_NUMBER = re.compile(r"[0-9]{1,4000}")
_LABEL_WORD = re.compile(r"(?<![^ \t])__label__([^ \t]*)[ \t]*")
#: Texts with their labels, numbers or names.
_Rows = Iterator[tuple[str, list[str]]]


def load_text_dataset(
    path: str | os.PathLike[str],
    *,
    format: str = "auto",
    text_columns: str | Sequence[str] | None = None,
    label_column: str = "labels",
    n_labels: int | None = None,
    label_names: Sequence[str] | None = None,
) -> Bunch:
    r"""Read texts and their labels from a plain, gzip or xz file.

    Two layouts are supported. Only a newline ends a line and only a TAB ends a field; quotes are
    ordinary characters; the text is UTF-8.

    ``"tsv"``
        A line of column names, then one row per line. One column holds the labels as
        space-separated numbers, counted from zero.
    ``"fasttext"``
        Each word ``__label__name`` of a line is a label; the other words are the text.

    Parameters
    ----------
    path : str or path-like
        The file.
    format : {"auto", "tsv", "fasttext"}, default="auto"
        The layout; ``"auto"`` infers it from the first line.
    text_columns : str or sequence of str, default=None
        Columns of a ``"tsv"`` file whose non-empty fields, joined by spaces, are the text. The
        default takes all columns except those that are probably not text: `label_column`, and names
        that end in the word ``id`` or ``labels`` (``id``, ``book_id``, ``all_labels``).
        ``text_columns`` of the result names them.
    label_column : str, default="labels"
        Column of a ``"tsv"`` file with the label numbers.
    n_labels : int, default=None
        Number of columns of the target, for files with label numbers. By default, one more than
        the largest number in the file, or the length of `label_names`. Pass the same number when
        reading the training file and the test file.
    label_names : sequence of str, default=None
        Name of each column of the target. For a ``"fasttext"`` file, it fixes the columns; by
        default they are the sorted names in the file.

    Returns
    -------
    data : Bunch
        ``data`` : list of str, length n_samples
            The texts.
        ``target`` : csr_array of shape (n_samples, n_labels) and type int8
            The labels; each is stored as a 1.
        ``label_names`` : list of str or None
            Name of each column; None if the file has numbers and no names were passed.
        ``format`` : str
            The layout of the file.
        ``text_columns`` : list of str or None
            The columns that make up the text of a ``"tsv"`` file.

    Raises
    ------
    DataFormatError
        If a line does not follow the layout, a label is out of range, unknown or repeated in a
        row, the text is not UTF-8, or the compressed data are damaged. The message names the file,
        line and token. Also for a line of more than 64 MiB, and if ``"auto"`` cannot infer the
        layout: pass `format` then.
    MemoryBudgetError
        If memory runs out.
    ValueError
        If an argument is wrong or does not fit the layout.

    Notes
    -----
    Every line is a row: row ``i`` is line ``i + 1`` of the file (``i + 2`` if it has column
    names). The speed is about 300,000 lines per second.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn_xc.datasets import load_text_dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "train.tsv")
    ...     _ = path.write_text("id\ttitle\tauthor\tlabels\n7\tMoby Dick\tMelville\t0 2\n")
    ...     books = load_text_dataset(path)
    >>> books.data, books.text_columns
    (['Moby Dick Melville'], ['title', 'author'])
    >>> books.target.toarray()
    array([[1, 0, 1]], dtype=int8)
    """
    if not isinstance(format, str) or format not in _FORMATS:
        raise ValueError(f"{_WHO}: format must be one of {_FORMATS}. Got {format!r}.")
    columns = None if text_columns is None else _texts(text_columns, "text_columns")
    names = None if label_names is None else _texts(label_names, "label_names")
    if n_labels is not None:
        n_labels = check_count(n_labels, f"{_WHO}: n_labels", 0, MAX_SIZE)
    if names is not None:
        if len(set(names)) < len(names):
            raise ValueError(f"{_WHO}: label_names holds a name twice.")
        if n_labels not in (None, len(names)):
            raise ValueError(f"{_WHO}: n_labels={n_labels} does not fit the {len(names)} names.")
        n_labels = len(names)
    with open_source(path) as source:
        lines = _lines(source)
        first = next(lines, None)
        if format == "auto":
            format = _infer_format(source, first or "", label_column)
        if format == "tsv":
            table = (first or "").split("\t")
            columns = _check_columns(source, table, columns, label_column)
            rows = _tsv_rows(source, lines, table, columns, label_column)
            texts, indices, indptr = _read(source, rows, _number_reader(source, n_labels))
        else:
            if columns is not None or (n_labels is not None and names is None):
                raise ValueError(
                    f"{_WHO}: a 'fasttext' file has neither columns nor label numbers: leave out "
                    "text_columns, and pass label_names instead of n_labels."
                )
            numbers = {name: number for number, name in enumerate(names or ())}
            rows = _fasttext_rows(chain(() if first is None else (first,), lines))
            number_of = _name_reader(source, numbers, is_fixed=names is not None)
            texts, indices, indptr = _read(source, rows, number_of)
            if names is None:
                names = sorted(numbers)
                ranks = np.argsort([numbers[name] for name in names]).astype(np.int32)
                indices = ranks[indices]
            n_labels = len(names)
    if n_labels is None:
        n_labels = int(indices.max(initial=-1)) + 1
    ones = np.ones(len(indices), np.int8)
    target = csr_array((ones, indices, indptr), shape=(len(texts), n_labels))
    target.sort_indices()
    return Bunch(data=texts, target=target, label_names=names, format=format, text_columns=columns)


def _texts(values: Any, name: str) -> list[str]:
    """Return a sequence of str as a list; of columns, one may come alone."""
    values = [values] if isinstance(values, str) and name == "text_columns" else values
    found = list(values) if isinstance(values, Iterable) else [values]
    if isinstance(values, str) or not all(isinstance(one, str) for one in found):
        raise ValueError(f"{_WHO}: {name} must be a sequence of str. Got {values!r}.")
    return found


def _lines(source: Source) -> Iterator[str]:
    for line in source.lines():
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            token = line[max(0, error.start - 10) : error.start + 10]
            raise source.error(token, "expected UTF-8.") from error
        if source.line == 1:
            text = text.removeprefix("\ufeff")
        yield text.removesuffix("\n").removesuffix("\r")


def _infer_format(source: Source, line: str, label_column: str) -> str:
    if line.startswith("__label__"):
        return "fasttext"
    if label_column in line.split("\t"):
        return "tsv"
    raise source.error(
        line,
        f"cannot infer the layout from the first line: expected column names with {label_column!r} "
        "or '__label__' words. Pass format, or label_column.",
    )


def _check_columns(
    source: Source, table: list[str], columns: list[str] | None, label_column: str
) -> list[str]:
    """Return the columns of text."""
    header = "\t".join(table)
    if len(set(table)) < len(table):
        raise source.error(header, "expected column names that differ.")
    if columns is None:
        endings = [re.split(r"[^a-z]", name.lower())[-1] for name in table]
        columns = [
            name
            for name, ending in zip(table, endings, strict=True)
            if name != label_column and ending not in ("id", "labels")
        ]
    for name in (*columns, label_column):
        if name not in table:
            raise source.error(header, f"expected a column {name!r}, there are only {table}.")
    if not columns:
        raise source.error(header, "expected a column of text besides the labels.")
    return columns


def _tsv_rows(
    source: Source, lines: Iterable[str], table: list[str], columns: list[str], label_column: str
) -> _Rows:
    where, where_labels = [table.index(name) for name in columns], table.index(label_column)
    for line in lines:
        fields = line.split("\t")
        if len(fields) != len(table):
            raise source.error(
                line,
                f"expected {len(table)} fields with TABs between them, found {len(fields)}.",
            )
        labels = fields[where_labels].strip(" ")
        text = " ".join(filter(None, (fields[at] for at in where)))
        yield text, re.split(" +", labels) if labels else []


def _fasttext_rows(lines: Iterable[str]) -> _Rows:
    for line in lines:
        yield _LABEL_WORD.sub("", line).strip(" \t"), _LABEL_WORD.findall(line)


def _number_reader(source: Source, n_labels: int | None) -> Callable[[str], int]:
    limit = MAX_SIZE if n_labels is None else n_labels

    def read(token: str) -> int:
        if not _NUMBER.fullmatch(token):
            raise source.error(token, "expected space-separated label numbers, counted from 0.")
        if int(token) >= limit:
            raise source.error(token, f"expected a label below {limit}, the number of labels.")
        return int(token)

    return read


def _name_reader(
    source: Source, numbers: dict[str, int], *, is_fixed: bool
) -> Callable[[str], int]:
    def read(name: str) -> int:
        if not name:
            raise source.error("__label__", "expected a name behind it.")
        if is_fixed and name not in numbers:
            raise source.error(
                name,
                "expected one of the given label_names. To read files whose labels differ, "
                "first read each without label_names, then all with the names of all.",
            )
        return numbers.setdefault(name, len(numbers))

    return read


def _read(
    source: Source, rows: _Rows, number_of: Callable[[str], int]
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the texts, and the labels as indices and row pointers."""
    texts, indices, indptr = [], array("i"), array("q", [0])
    for text, tokens in rows:
        labels = [number_of(token) for token in tokens]
        if len(set(labels)) < len(labels):
            token = next(token for token in tokens if labels.count(number_of(token)) > 1)
            raise source.error(token, "this label is twice in the row.")
        texts.append(text)
        indices.extend(labels)
        indptr.append(len(indices))
    return texts, np.array(indices), np.array(indptr, np.int32)
