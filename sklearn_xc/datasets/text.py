"""Raw text with labels: tables, numbered lines and the fastText layout, read into lists."""

import os
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import Bunch

from sklearn_xc._input.arguments import check_count
from sklearn_xc.datasets._check import MAX_SIZE
from sklearn_xc.datasets._files import Source, open_source
from sklearn_xc.exceptions import DataFormatError

_FORMATS = ("auto", "tsv", "fasttext")
_NUMBERS = re.compile(r"[0-9 ]*")
_LABEL_WORD = re.compile(r"(?<![^ \t])__label__([^ \t]*)[ \t]*")


def load_text_dataset(
    path: str | os.PathLike[str],
    *,
    format: str = "auto",
    text_columns: str | Sequence[str] | None = None,
    label_column: str = "labels",
    separator: str = " ",
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
        Columns of a ``"tsv"`` file whose fields, joined, are the text. The default takes all
        columns except those that are probably not text: `label_column`, and names that end in the
        word ``id`` or ``labels`` (``id``, ``book_id``, ``all_labels``). ``text_columns`` of the
        result tells which were taken.
    label_column : str, default="labels"
        Column of a ``"tsv"`` file with the label numbers.
    separator : str, default=" "
        Placed between the joined fields; empty fields are left out.
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
        line and token. Also for a line of more than 64 MiB, for more than a million consecutive
        rows with neither text nor label, and if ``"auto"`` cannot infer the layout: pass `format`
        then.
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
        raise ValueError(f"load_text_dataset: format must be one of {_FORMATS}. Got {format!r}.")
    for name, value in (("label_column", label_column), ("separator", separator)):
        if not isinstance(value, str):
            raise ValueError(f"load_text_dataset: {name} must be a str. Got {value!r}.")
    text_columns = _check_columns(text_columns)
    n_labels, names = _check_labels(n_labels, label_names)
    with open_source(path) as source:
        lines: Iterable[str] = _lines(source)
        if format == "auto":
            first = next(iter(lines), None)
            format = _tell_format(source, first, label_column)
            lines = chain([first], lines) if first is not None else lines
        if format == "fasttext":
            if text_columns is not None:
                raise ValueError(
                    f"load_text_dataset: {source.path} has the layout 'fasttext', which has no "
                    f"columns; leave out text_columns={text_columns!r}."
                )
            if n_labels is not None and names is None:
                raise ValueError(
                    "load_text_dataset: a 'fasttext' file has label names, not numbers; pass "
                    f"label_names instead of n_labels={n_labels}."
                )
            rows, names = _read_fasttext(source, lines, names)
            n_labels = len(names)
        else:
            rows, text_columns = _read_tsv(
                source, lines, text_columns, label_column, separator, n_labels
            )
    return Bunch(
        data=rows.texts,
        target=rows.to_csr(n_labels),
        label_names=names,
        format=format,
        text_columns=text_columns,
    )


def _check_columns(text_columns: Any) -> list[str] | None:
    if text_columns is None:
        return None
    columns = [text_columns] if isinstance(text_columns, str) else text_columns
    if not isinstance(columns, Iterable) or not all(isinstance(c, str) for c in columns):
        raise ValueError(
            "load_text_dataset: text_columns must be a str or a sequence of them. Got "
            f"{text_columns!r}."
        )
    return list(columns)


def _check_labels(
    n_labels: int | None, label_names: Sequence[str] | None
) -> tuple[int | None, list[str] | None]:
    if n_labels is not None:
        n_labels = check_count(n_labels, "load_text_dataset: n_labels", 0, MAX_SIZE)
    if label_names is None:
        return n_labels, None
    names = [] if isinstance(label_names, str | bytes) else list(label_names)
    if isinstance(label_names, str | bytes) or not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"load_text_dataset: label_names must be a sequence of str. Got {label_names!r}."
        )
    if len(set(names)) < len(names):
        raise ValueError("load_text_dataset: label_names holds a name twice.")
    if n_labels not in (None, len(names)):
        raise ValueError(
            f"load_text_dataset: n_labels={n_labels} does not fit the {len(names)} label_names."
        )
    return len(names), names


def _lines(source: Source) -> Iterator[str]:
    for line in source.lines():
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            token = line[max(0, error.start - 10) : error.start + 10]
            raise source.error(source.line, token, "expected UTF-8.") from error
        if source.line == 1:
            text = text.removeprefix("\ufeff")
        yield text.removesuffix("\n").removesuffix("\r")


def _tell_format(source: Source, line: str | None, label_column: str) -> str:
    if line is None:
        raise DataFormatError(f"{source.path}: the file is empty; pass its format.")
    fields = line.split("\t")
    if line.startswith("__label__"):
        return "fasttext"
    if label_column in fields:
        return "tsv"
    raise source.error(
        1,
        line,
        f"cannot tell the layout from the first line: expected column names with {label_column!r} "
        "or '__label__' words. Pass format, or label_column.",
    )


class _Rows:
    """The texts and labels of the rows read so far."""

    def __init__(self, source: Source) -> None:
        self.texts: list[str] = []
        self._source = source
        self._indptr = array("q", [0])
        self._indices = array("i")

    def add(self, text: str, labels: list[int], tokens: Sequence[str]) -> None:
        distinct = sorted(set(labels))
        if len(distinct) < len(labels):
            token = next(
                t for t, label in zip(tokens, labels, strict=True) if labels.count(label) > 1
            )
            raise self._error(token, "this label stands twice in the row, expected it once.")
        self.texts.append(text)
        self._indices.extend(distinct)
        self._indptr.append(len(self._indices))

    def add_numbers(self, text: str, field: str, n_labels: int | None) -> None:
        tokens = field.split()
        if not _NUMBERS.fullmatch(field):
            token = next(t for t in field.split(" ") if not _NUMBERS.fullmatch(t))
            raise self._error(token, "expected space-separated label numbers, counted from 0.")
        limit = MAX_SIZE if n_labels is None else n_labels
        try:
            labels = [int(token) for token in tokens]
        except ValueError:  # more digits than int() reads
            labels = [limit if len(token) > 10 else 0 for token in tokens]
        if labels and max(labels) >= limit:
            token = tokens[labels.index(max(labels))]
            raise self._error(token, f"expected a label below {limit}, the number of labels.")
        self.add(text, labels, tokens)

    def _error(self, token: str, message: str) -> DataFormatError:
        return self._source.error(self._source.line, token, message)

    def renumber(self, new: Any) -> None:
        self._indices = array("i", new[np.array(self._indices, dtype=np.intp)].tolist())

    def to_csr(self, n_labels: int | None) -> Any:
        indices = np.array(self._indices, dtype=np.int32)
        indptr = np.array(self._indptr, dtype=np.int32 if len(indices) < 2**31 else np.int64)
        if n_labels is None:
            n_labels = int(indices.max()) + 1 if len(indices) else 0
        target = csr_array(
            (np.ones(len(indices), dtype=np.int8), indices, indptr),
            shape=(len(indptr) - 1, n_labels),
        )
        target.sort_indices()
        return target


def _read_tsv(
    source: Source,
    lines: Iterable[str],
    text_columns: list[str] | None,
    label_column: str,
    separator: str,
    n_labels: int | None,
) -> tuple[_Rows, list[str]]:
    lines = iter(lines)
    header = next(lines, None)
    if header is None:
        raise DataFormatError(f"{source.path}: the file is empty, expected column names.")
    columns = header.split("\t")
    if len(set(columns)) < len(columns):
        raise source.error(1, header, "expected column names that differ.")
    if text_columns is None:
        text_columns = [c for c in columns if c != label_column and not _is_no_text(c)]
    for name in (*text_columns, label_column):
        if name not in columns:
            raise source.error(1, header, f"expected a column {name!r}, there are only {columns}.")
    if not text_columns:
        raise source.error(1, header, "expected a column of text besides the labels.")
    where = [columns.index(name) for name in text_columns]
    where_labels = columns.index(label_column)

    rows = _Rows(source)
    for line in lines:
        fields = line.split("\t", len(columns))
        if len(fields) != len(columns):
            n_fields = line.count("\t") + 1
            raise source.error(
                source.line,
                line,
                f"expected {len(columns)} fields with TABs between them, found {n_fields}.",
            )
        text = separator.join([fields[i] for i in where if fields[i]])
        rows.add_numbers(text, fields[where_labels], n_labels)
    return rows, text_columns


def _is_no_text(column: str) -> bool:
    word = re.split(r"[^a-z]", column.lower())[-1]
    return word in ("id", "labels")


def _read_fasttext(
    source: Source, lines: Iterable[str], names: list[str] | None
) -> tuple[_Rows, list[str]]:
    numbers = {name: i for i, name in enumerate(names or ())}
    rows = _Rows(source)
    for line in lines:
        found = _LABEL_WORD.findall(line)
        for name in found:
            if not name:
                raise source.error(source.line, "__label__", "expected a name behind it.")
            if names is not None and name not in numbers:
                raise source.error(
                    source.line,
                    name,
                    "expected one of the given label_names. To read files whose labels differ, "
                    "first read each without label_names, then all with the names of all.",
                )
        labels = [numbers.setdefault(name, len(numbers)) for name in found]
        rows.add(_LABEL_WORD.sub("", line).strip(" \t"), labels, found)
    if names is None:
        names = sorted(numbers)
        new = np.empty(len(names), dtype=np.int64)
        new[[numbers[name] for name in names]] = np.arange(len(names))
        rows.renumber(new)
    return rows, names
