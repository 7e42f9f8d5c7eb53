"""Reading the text format of the Extreme Classification Repository."""

import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sklearn_xc._input.sparse import rows_are_canonical
from sklearn_xc.datasets._files import MAX_SIZE, Source, check_float_dtype, open_source

#: Lines are parsed together up to this size.
_BLOCK_BYTES = 1 << 20
_HEADER = re.compile(rb"[ \t]*([0-9]+)[ \t]+([0-9]+)[ \t]+([0-9]+)[ \t]*\r?\n?")
_WHOLE = re.compile(rb"[0-9]+")
_PAIR = re.compile(rb"([0-9]+):(.*)", re.DOTALL)
_DECIMAL = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


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
    block, size = [], 0
    for line in lines:
        block.append(line)
        size += len(line)
        if size >= _BLOCK_BYTES:
            yield block
            block, size = [], 0
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
        tokens, n = text.replace(b":", b" : ").split(), int(self.n_pairs.sum())
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
