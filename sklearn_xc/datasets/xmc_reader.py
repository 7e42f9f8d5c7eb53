"""Reading the text format of the Extreme Classification Repository.

A file goes through the reader in one pass, a chunk of whole lines at a time::

    bytes on disk -> decompressed chunk -> kernel: row pointers, indices, decimal numbers
                  -> numpy: floats -> growing arrays, which become the two matrices
"""

import os
import re
from itertools import chain
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sklearn_xc._parallel.memory import require_bytes
from sklearn_xc.datasets._check import check_float_dtype
from sklearn_xc.datasets._files import Source, open_source
from sklearn_xc.exceptions import DataFormatError

_CHUNK_BYTES = 1 << 20
_LARGE_BYTES = 1 << 26  # smaller arrays grow without a look at the memory that is left
_MAX_INDEX = 2**31 - 1
_HEADER = re.compile(rb"[ \t]*([0-9]+)[ \t]+([0-9]+)[ \t]+([0-9]+)[ \t]*\r?\n?")
_TOKEN = re.compile(rb"[^ \t\n]*")
_WHOLE = re.compile(rb"-?[0-9]+")
_NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_POWERS = 10.0 ** np.arange(23)


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
    Reads in one pass, at some hundred megabytes of text per second. Memory is that of the result
    plus a few megabytes and ten times the longest line, however large the decompressed file is.
    Both matrices have 32-bit indices up to 2**31 - 1 entries and 64-bit ones beyond, as scipy
    chooses.

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
        return _read(source, dtype)


def _read(source: Source, dtype: Any) -> tuple[Any, Any]:
    from sklearn_xc.datasets.kernels import (
        parse_rows_xmc,  # brings the compiler: only when needed
    )

    texts = source.chunks_of_lines(_CHUNK_BYTES)
    first = next(texts, b"")
    shape, start = _parse_header(source, first)
    n_samples, n_features, n_labels = shape

    def growing(what: str, dtype: Any, start: Any = ()) -> _Growing:
        return _Growing(f"{what} of {source.path}", dtype, start)

    label_indptr, labels = growing("row pointers", np.int64, [0]), growing("labels", np.int32)
    pair_indptr, features = growing("row pointers", np.int64, [0]), growing("features", np.int32)
    values = growing("values", dtype)
    n_rows = 0
    for text in chain([first[start:]] if len(first) > start else [], texts):
        # 1. Text to integers. The arrays are virtual memory until the kernel fills them.
        chunk = _Chunk(source, text)
        n_lines = text.count(b"\n")
        chunk_label_indptr = np.empty(n_lines + 1, dtype=np.int64)
        chunk_labels = np.empty(len(text) // 2 + 1, dtype=np.int32)
        chunk_pair_indptr = np.empty(n_lines + 1, dtype=np.int64)
        chunk_features = np.empty(len(text) // 3 + 1, dtype=np.int32)
        mantissa = np.empty(len(text) // 3 + 1, dtype=np.int64)
        exponent = np.empty(len(text) // 3 + 1, dtype=np.int8)
        status, n_new, position, labels_rise, features_rise = parse_rows_xmc(
            np.frombuffer(text, dtype=np.uint8),
            len(text),
            n_samples - n_rows,
            n_features,
            n_labels,
            chunk_label_indptr,
            chunk_labels,
            chunk_pair_indptr,
            chunk_features,
            mantissa,
            exponent,
        )
        _check_status(chunk, status, n_new, position, shape)
        chunk_label_indptr = chunk_label_indptr[: n_new + 1]
        chunk_pair_indptr = chunk_pair_indptr[: n_new + 1]
        chunk_labels = chunk_labels[: chunk_label_indptr[-1]]
        chunk_features = chunk_features[: chunk_pair_indptr[-1]]

        # 2. Integers to floats.
        n_pairs = len(chunk_features)
        chunk_values = _to_float(
            chunk, chunk_pair_indptr, mantissa[:n_pairs], exponent[:n_pairs], dtype
        )

        # 3. Sorted rows.
        if not labels_rise:
            marks = np.ones(len(chunk_labels), dtype=np.int8)
            _sort_rows(chunk, "label", chunk_label_indptr, chunk_labels, marks)
        if not features_rise:
            _sort_rows(chunk, "feature", chunk_pair_indptr, chunk_features, chunk_values)

        # 4. Onto the result.
        share = source.share_read()
        label_indptr.extend(chunk_label_indptr[1:] + labels.size, share)
        pair_indptr.extend(chunk_pair_indptr[1:] + features.size, share)
        labels.extend(chunk_labels, share)
        features.extend(chunk_features, share)
        values.extend(chunk_values, share)
        n_rows += n_new
        source.line += n_lines

    if n_rows < n_samples:
        raise source.error(
            source.line,
            "end of file",
            f"the header promises {n_samples} rows, the file ends after {n_rows}.",
        )
    X = _to_csr(values.finish(), features.finish(), pair_indptr.finish(), (n_samples, n_features))
    marks = np.ones(labels.size, dtype=np.int8)
    Y = _to_csr(marks, labels.finish(), label_indptr.finish(), (n_samples, n_labels))
    return X, Y


class _Growing:
    """A typed array that grows by what the share of the file read so far predicts.

    At most twofold at a time, so that a few long rows at the start cost little. ``resize`` moves
    pages where the system can, instead of holding old and new side by side.
    """

    def __init__(self, what: str, dtype: Any, start: Any) -> None:
        self._what = what
        self._array = np.array(start, dtype=dtype)
        self.size = len(self._array)

    def extend(self, values: Any, share: float) -> None:
        size = self.size + len(values)
        if size > len(self._array):
            new_size = int(min(max(1.02 / share, 1.0625), 2.0) * size)
            more = (new_size - len(self._array)) * self._array.itemsize
            if more > _LARGE_BYTES:
                require_bytes(
                    more, None, f"{new_size:,} {self._what}",
                    "Read the file on a machine with more memory, or cut it.",
                )  # fmt: skip
            self._array.resize(new_size, refcheck=False)
        self._array[self.size : size] = values
        self.size = size

    def finish(self) -> Any:
        self._array.resize(self.size, refcheck=False)
        return self._array


class _Chunk:
    """Some whole lines of a file, and what an error message needs of them."""

    def __init__(self, source: Source, text: bytes) -> None:
        self.source = source
        self.text = text
        self.first_line = source.line + 1

    def error(self, row: int, token: object, message: str) -> DataFormatError:
        return self.source.error(self.first_line + row, token, message)

    def token_at(self, position: int) -> bytes:
        match = _TOKEN.match(self.text, position)
        return match.group().rstrip(b"\r") if match else b""


def _parse_header(source: Source, text: bytes) -> tuple[tuple[int, int, int], int]:
    """Return the three numbers of the first line and where the second line starts."""
    end = text.find(b"\n") + 1
    match = _HEADER.fullmatch(text[:end])
    if match is None:
        raise source.error(
            1,
            text[:end].rstrip(b"\r\n"),
            "expected the header 'n_samples n_features n_labels', three whole numbers as in "
            "'4880 1836 159'.",
        )
    shape = []
    for what, token in zip(("samples", "features", "labels"), match.groups(), strict=True):
        if len(token.lstrip(b"0")) > 10 or int(token) > _MAX_INDEX:
            raise source.error(1, token, f"expected at most {_MAX_INDEX} {what}.")
        shape.append(int(token))
    source.line = 1
    return (shape[0], shape[1], shape[2]), end


def _check_status(
    chunk: _Chunk, status: int, row: int, position: int, shape: tuple[int, int, int]
) -> None:
    """Raise the error behind the status of the kernel; blank lines behind the last row are none."""
    from sklearn_xc.datasets import kernels as xmc_text

    if status == xmc_text.OK:
        return
    n_samples, n_features, n_labels = shape
    if status == xmc_text.TOO_MANY_ROWS:
        rest = chunk.text[position:]
        n_blank = len(rest) - len(rest.lstrip(b" \t\r\n"))
        if n_blank == len(rest):
            return
        row += rest.count(b"\n", 0, n_blank)
        line = rest[: rest.index(b"\n", n_blank)].rsplit(b"\n", 1)[-1]
        raise chunk.error(row, line, f"one row too many; the header promises {n_samples}.")
    token = chunk.token_at(position)
    feature, _, value = token.partition(b":")
    if status == xmc_text.BAD_LABEL:
        token = token.partition(b",")[0]
        message = f"expected a label, a whole number from 0 to {n_labels - 1}"
        if _WHOLE.fullmatch(token):
            message += "; it is negative"
        elif b":" in token:
            message += "; a feature:value pair stands behind a space"
    elif status == xmc_text.LABEL_RANGE:
        token = token.partition(b",")[0]
        message = f"label out of range; the header promises {n_labels} labels, counted from 0"
    elif status == xmc_text.BAD_PAIR:
        message = "expected a pair feature:value as in '17:0.25'"
        if _WHOLE.fullmatch(feature) and feature.startswith(b"-"):
            message += "; the feature is negative"
    elif status == xmc_text.FEATURE_RANGE:
        message = f"feature out of range; the header promises {n_features} features, counted from 0"
    else:
        message = "expected a decimal number after the colon"
        if _NOT_FINITE.fullmatch(value):
            message += "; the value is not finite"
    raise chunk.error(row, token, f"{message}.")


def _to_float(chunk: _Chunk, indptr: Any, mantissa: Any, exponent: Any, dtype: Any) -> Any:
    """Return each decimal number as the float nearest to ``float(token)``."""
    from sklearn_xc.datasets.kernels import HARD, LENGTH_BITS

    hard = np.flatnonzero(exponent == HARD)
    exponent[hard] = 0
    values = mantissa.astype(np.float64)
    if exponent.any():  # one of the two factors is 1.0, so that one rounding happens
        values *= _POWERS[np.maximum(exponent, 0)]
        values /= _POWERS[np.maximum(-exponent, 0)]
    if len(hard):
        starts = mantissa[hard] >> LENGTH_BITS
        stops = starts + (mantissa[hard] & ((1 << LENGTH_BITS) - 1))
        text = chunk.text
        tokens = [text[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True)]
        values[hard] = [float(token) for token in tokens]
    with np.errstate(over="ignore"):
        values = values.astype(dtype, copy=False)
    if len(hard) and not np.isfinite(values[hard]).all():  # the others are below 1e38
        which = int(np.flatnonzero(~np.isfinite(values[hard]))[0])
        row = int(np.searchsorted(indptr, hard[which], side="right")) - 1
        raise chunk.error(
            row, tokens[which], f"expected a finite number, this one is too large for {dtype}."
        )
    return values


def _sort_rows(chunk: _Chunk, what: str, indptr: Any, indices: Any, data: Any) -> None:
    """Sort the indices within each row, in place; an index that a row has twice is an error."""
    rows = _to_csr(data, indices, indptr, (len(indptr) - 1, _MAX_INDEX))
    rows.has_sorted_indices = False
    rows.sort_indices()
    indices[:] = rows.indices
    data[:] = rows.data
    repeats = indices[1:] == indices[:-1]
    starts = indptr[(indptr > 0) & (indptr < len(indices))]
    repeats[starts - 1] = False  # the last of one row and the first of the next
    if repeats.any():
        where = int(np.flatnonzero(repeats)[0])
        row = int(np.searchsorted(indptr, where, side="right")) - 1
        raise chunk.error(
            row, int(indices[where]), f"this {what} stands twice in the row, expected it once."
        )


def _to_csr(data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> Any:
    if len(indices) <= _MAX_INDEX:
        indptr = indptr.astype(np.int32)  # a sparse array keeps the wider of its two index types
    matrix = csr_array((data, indices, indptr), shape=shape)
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix
