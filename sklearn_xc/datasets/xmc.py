"""The text format of the Extreme Classification Repository: read and written."""

import gzip
import lzma
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from sklearn_xc._input.data import check_sparse, rows_are_canonical
from sklearn_xc._parallel.threads import cut_rows
from sklearn_xc._state.files import open_atomic
from sklearn_xc.exceptions import DataFormatError, MemoryBudgetError
from sklearn_xc.metrics.check import as_array, canonical_csr

#: Longer lines are refused: no row of five million features, or of five novels, is longer.
MAX_LINE_BYTES = 1 << 26
#: The largest number of rows and columns that files and generators support.
MAX_SIZE = 2**31 - 1
#: Rows are written together up to this many pairs.
_BLOCK_PAIRS = 1 << 18
#: Lines are parsed together up to this size.
_BLOCK_BYTES = 1 << 20
_HEADER = re.compile(rb"[ \t]*([0-9]+)[ \t]+([0-9]+)[ \t]+([0-9]+)[ \t]*\r?\n?")
_WHOLE = re.compile(rb"[0-9]+")
_PAIR = re.compile(rb"([0-9]+):(.*)", re.DOTALL)
_DECIMAL = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class Source:
    """An open data file.

    Attributes
    ----------
    path : str
        For error messages.
    stream : binary file
        The decompressed bytes.
    line : int
        Number of the last line that ``lines`` has returned.
    """

    def __init__(self, path: str, stream: Any) -> None:
        self.path, self.stream, self.line = path, stream, 0

    def lines(self) -> Iterator[bytes]:
        """Yield the lines, with their newlines."""
        while line := self.stream.readline(MAX_LINE_BYTES + 1):
            self.line += 1
            if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
                raise self.error(line, f"the line is longer than {MAX_LINE_BYTES:,} bytes.")
            yield line

    def error(self, token: bytes | str, message: str, line: int | None = None) -> DataFormatError:
        """Return an error that names the file, the line (the last one) and the offending token."""
        if len(token) > 60:
            middle: Any = b"..." if isinstance(token, bytes) else "..."
            token = token[:40] + middle + token[-15:]
        shown = repr(token).removeprefix("b")
        number = self.line if line is None else line
        return DataFormatError(f"{self.path}, line {number}: {shown}: {message}")


@contextmanager
def open_source(path: str | os.PathLike[str]) -> Iterator[Source]:
    """Open a plain, gzip or xz file, recognised by its first bytes.

    Raises
    ------
    DataFormatError
        If the compressed data are damaged or cut off.
    MemoryBudgetError
        If memory runs out.
    """
    with open(path, "rb") as raw:
        magic = raw.read(6)
        raw.seek(0)
        stream: Any = raw
        if magic.startswith(b"\x1f\x8b"):
            stream = gzip.GzipFile(fileobj=raw)
        elif magic == b"\xfd7zXZ\x00":
            stream = lzma.LZMAFile(raw)  # noqa: SIM115 (closes with raw)
        source = Source(os.fsdecode(path), stream)
        try:
            yield source
        except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
            raise DataFormatError(
                f"{source.path}, after line {source.line}: the compressed data are damaged or cut "
                f"off ({error}). Fetch or copy the file again."
            ) from error
        except MemoryError as error:
            raise MemoryBudgetError(
                f"{source.path}, after line {source.line}: the memory is used up. Read the file on "
                "a machine with more, or cut it."
            ) from error


def check_float_dtype(dtype: Any, name: str) -> np.dtype:
    """Return float32 or float64 as a dtype; ValueError for anything else."""
    try:
        found = None if dtype is None else np.dtype(dtype)
    except TypeError:
        found = None
    if found not in (np.float32, np.float64):
        raise ValueError(f"{name} must be float32 or float64. Got {found or repr(dtype)}.")
    return found


def dump_xmc_file(path: str | os.PathLike[str], X: Any, Y: Any) -> None:
    """Write features and labels in the format of the Extreme Classification Repository.

    :func:`load_xmc_file` with the same `dtype` reads back the same bits. The file appears under
    its name only when it is complete: after an error, an interrupt or the death of the process, an
    older file of that name is unchanged and nothing else is left (outside Linux and on network
    file systems, a kill may leave a hidden file).

    Parameters
    ----------
    path : str or path-like
        The file. It is compressed if its name ends in ``.gz`` or ``.xz``.
    X : sparse or dense array of shape (n_samples, n_features), float or integer
        Features. Each value is written with the fewest digits that restore it. Explicit zeros of a
        sparse array are written; other zeros are not.
    Y : sparse or dense array of shape (n_samples, n_labels)
        Label indicator of zeros and ones.

    Raises
    ------
    ValueError
        If the shapes do not match or exceed 2**31 - 1, index arrays point outside them, a value of
        `X` is not finite or not real, or an entry of `Y` is neither 0 nor 1.
    TypeError
        For masked arrays.

    Notes
    -----
    Writes about a million pairs per second. ``X`` and ``Y`` are not modified; unsorted or repeated
    entries are put in order in a copy.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from sklearn_xc.datasets import dump_xmc_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "train.txt")
    ...     dump_xmc_file(path, np.array([[0.0, 0.1], [1.5, 0.0]]), np.array([[1, 1], [0, 0]]))
    ...     print(path.read_text())
    2 2 2
    0,1 1:0.1
     0:1.5
    """
    X, Y = _as_canonical_csr("X", X), _as_canonical_csr("Y", Y)
    if X.shape[0] != Y.shape[0]:
        raise ValueError(
            f"dump_xmc_file: X has {X.shape[0]} rows and Y has {Y.shape[0]}; each row of X needs "
            "its row of labels."
        )
    if X.dtype.kind == "f" and not np.isfinite(X.data).all():
        raise ValueError("dump_xmc_file: X holds NaN or inf; the format has finite numbers only.")
    if not ((Y.data == 0) | (Y.data == 1)).all():
        wrong = Y.data[(Y.data != 0) & (Y.data != 1)][0]
        raise ValueError(
            f"dump_xmc_file: Y must be an indicator of zeros and ones. Got an entry {wrong}."
        )
    if (Y.data == 0).any():
        Y = Y.copy()
        Y.eliminate_zeros()
    with open_atomic(path) as stream:
        stream.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n".encode())
        n_pairs = X.indptr.astype(np.int64) + Y.indptr
        # A row counts for one more, as blocks of empty rows are to end too.
        for first, last in cut_rows(n_pairs + np.arange(len(n_pairs)), _BLOCK_PAIRS):
            stream.write(_format_rows(X, Y, first, last))


def _as_canonical_csr(name: str, matrix: Any) -> Any:
    """Return a matrix as a CSR of integers, float32 or float64, columns sorted in each row."""
    caller = f"dump_xmc_file: {name}"
    check_sparse(matrix, name, "dump_xmc_file")
    if not issparse(matrix):
        matrix = as_array(matrix, caller, "a matrix")
    if matrix.ndim != 2:
        raise ValueError(f"{caller} must have two dimensions. Got shape {matrix.shape}.")
    if max(matrix.shape) > MAX_SIZE:
        raise ValueError(
            f"{caller} must have at most {MAX_SIZE} rows and columns. Got shape {matrix.shape}."
        )
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"{caller} must hold real numbers. Got dtype {matrix.dtype}.")
    if matrix.dtype.kind == "f":
        with np.errstate(over="ignore"):
            matrix = matrix.astype(np.float32 if matrix.dtype.itemsize <= 4 else np.float64)
    return canonical_csr(matrix if issparse(matrix) else csr_array(matrix))


def _format_rows(X: Any, Y: Any, first: int, last: int) -> bytes:
    entries = slice(X.indptr[first], X.indptr[last])
    texts = zip(X.indices[entries].tolist(), _shortest(X.data[entries]), strict=True)
    pairs = [f"{feature}:{value}" for feature, value in texts]
    labels = list(map(str, Y.indices[Y.indptr[first] : Y.indptr[last]].tolist()))
    ends = (X.indptr[first : last + 1] - X.indptr[first]).tolist()
    label_ends = (Y.indptr[first : last + 1] - Y.indptr[first]).tolist()
    lines = []
    for row in range(last - first):
        own = ",".join(labels[label_ends[row] : label_ends[row + 1]])
        lines.append(f"{own} {' '.join(pairs[ends[row] : ends[row + 1]])}\n")
    return "".join(lines).encode()


def _shortest(values: np.ndarray) -> list[str]:
    """Return the shortest texts that read back as `values`, by way of a float64."""
    if values.dtype.kind != "f":
        return [str(int(value)) for value in values.tolist()]
    texts = values.astype(str)
    differs = texts.astype(np.float64).astype(values.dtype) != values  # it was rounded twice
    texts[differs] = values[differs].astype(np.float64).astype(str)
    return texts.tolist()


def load_xmc_file(path: str | os.PathLike[str], *, dtype: Any = np.float32) -> tuple[Any, Any]:
    r"""Read features and labels from a file of the Extreme Classification Repository.

    The first line is ``n_samples n_features n_labels``; each further line is one row, ``l1,l2,...
    f1:v1 f2:v2 ...``, with labels and features counted from zero. A row without labels starts with
    a space or with its first pair; a row may have no features; an empty line is a row with
    neither. Plain, gzip and xz files are recognised by their first bytes.

    Parameters
    ----------
    path : str or path-like
        The file.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Type of the feature values. Each is ``dtype(float(token))``, bit for bit.

    Returns
    -------
    X : csr_array of shape (n_samples, n_features) and type `dtype`
        Features, sorted within each row. Explicit zeros in the file stay stored.
    Y : csr_array of shape (n_samples, n_labels) and type int8
        Labels; each is stored as a 1.

    Raises
    ------
    DataFormatError
        If the file breaks the format: a wrong header, more or fewer rows than the header says, an
        index that is out of range or repeated in a row, a malformed pair, a value that is not
        finite, damaged or truncated compressed data, or a line of more than 64 MiB. The message
        names the file, line and token.
    MemoryBudgetError
        If memory runs out.
    ValueError
        If `dtype` is neither float32 nor float64.

    See Also
    --------
    dump_xmc_file : Write such a file.

    Notes
    -----
    Reads in one pass, at about fifty megabytes of text per second. Memory is up to twice that of
    the result, however large the decompressed file is. Both matrices have 32-bit indices up to
    2**31 - 1 entries and 64-bit ones beyond, as scipy chooses.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn_xc.datasets import load_xmc_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "train.txt")
    ...     _ = path.write_text("2 4 3\n0,2 1:0.5 3:2\n 0:1\n")
    ...     X, Y = load_xmc_file(path)
    >>> X.toarray()
    array([[0. , 0.5, 0. , 2. ],
           [1. , 0. , 0. , 0. ]], dtype=float32)
    >>> Y.toarray()
    array([[1, 0, 1],
           [0, 0, 0]], dtype=int8)
    """
    dtype = check_float_dtype(dtype, "load_xmc_file: dtype")
    with open_source(path) as source:
        lines = source.lines()
        shape = n_samples, n_features, n_labels = _read_header(source, next(lines, b""))
        rows = [_Rows([], shape, dtype)]
        for block in _blocks(islice(lines, n_samples)):
            try:
                rows.append(_Rows(block, shape, dtype))
            except (ValueError, OverflowError) as error:
                first = source.line - len(block) + 1
                faults = ((i, _fault(line, shape, dtype)) for i, line in enumerate(block, first))
                number, fault = next((i, found) for i, found in faults if found)
                raise source.error(*fault, number) from error
        n_found = source.line - 1
        for line in lines:
            if line.strip(b" \t\r\n"):
                raise source.error(
                    line.rstrip(b"\r\n"), f"one row too many; the header promises {n_samples}."
                )
        if n_found < n_samples:
            raise source.error(
                "end of file",
                f"the header promises {n_samples} rows, the file ends after {n_found}.",
            )
        features, values = _joined(rows, "features"), _joined(rows, "values")
        X = _to_csr(source, values, features, _joined(rows, "n_pairs"), n_features)
        labels = _joined(rows, "labels")
        ones = np.ones(len(labels), np.int8)
        return X, _to_csr(source, ones, labels, _joined(rows, "n_labels"), n_labels)


def _read_header(source: Source, line: bytes) -> tuple[int, ...]:
    """Return n_samples, n_features and n_labels."""
    match = _HEADER.fullmatch(line)
    if match is None:
        raise source.error(
            line.rstrip(b"\r\n"),
            "expected the header 'n_samples n_features n_labels', three whole numbers as in "
            "'4880 1836 159'.",
            1,
        )
    for what, token in zip(("samples", "features", "labels"), match.groups(), strict=True):
        if len(token.lstrip(b"0")) > 10 or int(token) > MAX_SIZE:
            raise source.error(token, f"expected at most {MAX_SIZE} {what}.")
    return tuple(map(int, match.groups()))


def _blocks(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield lists of lines of about a megabyte."""
    block = []
    size = 0
    for line in lines:
        block.append(line)
        size += len(line)
        if size >= _BLOCK_BYTES:
            yield block
            block = []
            size = 0
    if block:
        yield block


def _split(line: bytes) -> tuple[bytes, bytes]:
    """Return the labels of a line and its pairs."""
    line = line.removesuffix(b"\n").removesuffix(b"\r").replace(b"\t", b" ")
    labels, _, pairs = line.partition(b" ")
    return (b"", line) if b":" in labels else (labels, pairs)


class _Rows:
    """Parsed lines: their labels, features and values, and how many each line has.

    Raises ValueError or OverflowError if a line is malformed; ``_fault`` finds the token.
    """

    def __init__(self, lines: list[bytes], shape: tuple[int, ...], dtype: np.dtype) -> None:
        parts = [_split(line) for line in lines]
        heads = [labels for labels, _ in parts if labels]
        self.n_labels = np.array([len(own.split(b",")) if own else 0 for own, _ in parts], np.int64)
        self.n_pairs = np.array([pairs.count(b":") for _, pairs in parts], np.int64)
        self.labels = _indices(b",".join(heads).split(b",") if heads else [], shape[2])
        text = b" ".join(pairs for _, pairs in parts) + b" "
        if text.translate(None, b"0123456789.+-eE: ") or b" :" in text or b": " in text:
            raise ValueError
        tokens = text.replace(b":", b" : ").split()
        n = int(self.n_pairs.sum())
        if len(tokens) != 3 * n or tokens[1::3].count(b":") != n:
            raise ValueError
        self.features = _indices(tokens[::3], shape[1])
        with np.errstate(over="ignore"):
            self.values = np.fromiter(map(float, tokens[2::3]), np.float64, n).astype(dtype)
        if not np.isfinite(self.values).all():
            raise ValueError


def _indices(tokens: list[bytes], limit: int) -> np.ndarray:
    """Return whole numbers below a limit as int32."""
    if b"".join(tokens).strip(b"0123456789"):
        raise ValueError
    numbers = np.fromiter(map(int, tokens), np.int64, len(tokens))
    if numbers.max(initial=-1) >= limit:
        raise ValueError
    return numbers.astype(np.int32)


def _fault(line: bytes, shape: tuple[int, ...], dtype: np.dtype) -> tuple[bytes, str] | None:
    """Return the offending token of a line and what was expected; None if it is well-formed."""
    _, n_features, n_labels = shape
    labels, pairs = _split(line)
    for token in labels.split(b",") if labels else ():
        if not _WHOLE.fullmatch(token):
            return token, f"expected a label, a whole number from 0 to {n_labels - 1}."
        if not _is_below(token, n_labels):
            return token, f"label out of range; the header promises {n_labels}, counted from 0."
    for token in filter(None, pairs.split(b" ")):
        match = _PAIR.fullmatch(token)
        if match is None:
            return token, "expected a pair feature:value as in '17:0.25'."
        if not _is_below(match[1], n_features):
            return token, f"feature out of range; the header promises {n_features}, from 0."
        if not _DECIMAL.fullmatch(match[2]):
            return token, "expected a finite decimal number after the colon."
        with np.errstate(over="ignore"):
            if not np.isfinite(np.float64(match[2]).astype(dtype)):
                return token, f"expected a finite number, this one is too large for {dtype}."
    return None


def _is_below(token: bytes, limit: int) -> bool:
    digits = token.lstrip(b"0")
    return len(digits) <= 10 and int(digits or b"0") < limit


def _joined(rows: list[_Rows], name: str) -> np.ndarray:
    """Return the arrays of all blocks as one; those of the blocks are freed."""
    return np.concatenate([vars(one).pop(name) for one in rows])


def _to_csr(source: Source, data: Any, indices: Any, lengths: Any, n_columns: int) -> csr_array:
    """Return rows with sorted columns; a repeated one is an error."""
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    if len(indices) <= MAX_SIZE:
        indptr = indptr.astype(np.int32)  # a sparse array keeps the wider of its two index types
    matrix = csr_array((data, indices, indptr), shape=(len(lengths), n_columns))
    if not rows_are_canonical(indptr, indices):
        matrix.sort_indices()
        rows = np.repeat(np.arange(len(lengths)), lengths)
        repeated = (np.diff(matrix.indices) == 0) & (np.diff(rows) == 0)
        if repeated.any():
            at = int(repeated.argmax())
            raise source.error(
                str(matrix.indices[at]), "this number is twice in the row.", int(rows[at]) + 2
            )
    matrix.has_canonical_format = True
    return matrix
