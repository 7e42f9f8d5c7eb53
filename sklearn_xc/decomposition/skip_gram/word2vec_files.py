"""Word vectors in the files of word2vec, which gensim and others read and write.

A file begins with the line "n_words dim". In the text format a line follows for each word, with its
numbers in decimals; in the binary one the word, a space and dim float32, little-endian, and after
these perhaps a newline.
"""

import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from sklearn_xc._parallel.memory import require_bytes
from sklearn_xc._state.files import open_atomic
from sklearn_xc.decomposition.skip_gram.queries import as_distinct_words, as_vectors
from sklearn_xc.exceptions import DataFormatError

#: White space that ends a word in the tools of word2vec.
_SEPARATOR = re.compile(r"[ \t\n\v\f\r]")
_SURROGATE = re.compile("[\ud800-\udfff]")  # which UTF-8 cannot write
_HEADER = re.compile(rb"[ \t]*([0-9]+)[ \t]+([0-9]+)[ \t]*\r?\n")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")
#: Longest header and word, bytes by which the format is detected, and numbers written at a time.
_MOST_HEADER = 200
_MOST_WORD = 2**16
_SAMPLE = 2**12
_NUMBERS = 2**16
_ROWS = 2**12


def write_word2vec(
    path: str | os.PathLike[str], words: Any, vectors: Any, *, binary: bool = False
) -> None:
    """Write words and their vectors in a format of word2vec.

    gensim's ``KeyedVectors.load_word2vec_format`` reads the file, given the same `binary`. The file
    appears under its name only when it is complete; until then an older one is unchanged.

    Parameters
    ----------
    path : str or path-like
        The file. It is compressed if its name ends in ``.gz``.
    words : array-like of str of shape (n_words,)
        Distinct, in the order of the file; usually the most frequent come first.
    vectors : array-like of shape (n_words, dim)
        Finite. Written as float32; as text, with the fewest digits that restore each value.
    binary : bool, default=False
        Whether numbers are written as bytes, which takes less space and time, or as text.

    Raises
    ------
    ValueError
        For words that are empty, repeated, contain white space or cannot be written in UTF-8, and
        for vectors that do not match the words or are not finite in float32.
    TypeError
        For words that are not strings, and vectors that are not real numbers.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn_xc.decomposition.skip_gram import write_word2vec
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "vectors.txt")
    ...     write_word2vec(path, ["rye", "bread"], [[0.5, 0.1], [1.0, -2.0]])
    ...     print(path.read_text())
    2 2
    rye 0.5 0.1
    bread 1.0 -2.0
    """
    caller = "write_word2vec"
    names = as_distinct_words(words, f"{caller}: words")
    for at, word in enumerate(names.tolist()):
        if _SEPARATOR.search(word) or _SURROGATE.search(word):
            raise ValueError(
                f"{caller}: words must hold no white space, and be texts that UTF-8 can write. "
                f"Got {word!r} at entry {at}."
            )
    values = as_vectors(vectors, len(names), f"{caller}: vectors")
    step = max(1, _NUMBERS // values.shape[1])
    with open_atomic(path) as stream:
        stream.write(b"%d %d\n" % values.shape)
        for first in range(0, len(names), step):
            rows = values[first : first + step]
            ends = [row.astype("<f4").tobytes() for row in rows]
            if not binary:
                ends = [" ".join(map(str, row)).encode() + b"\n" for row in rows]
            some = [word.encode() for word in names[first : first + step].tolist()]
            stream.write(b"".join([w + b" " + end for w, end in zip(some, ends, strict=True)]))


def read_word2vec(path: str | os.PathLike[str]) -> tuple[np.ndarray, np.ndarray]:
    r"""Read words and their vectors from a file of word2vec, gensim or fastText (``.vec``).

    Parameters
    ----------
    path : str or path-like
        The file, with numbers as bytes or text, plain or compressed with gzip: its first bytes say.

    Returns
    -------
    words : ndarray of object of shape (n_words,)
        Distinct strings, in the order of the file.
    vectors : ndarray of float32 of shape (n_words, dim)
        Finite, C-ordered.

    Raises
    ------
    DataFormatError
        If the file breaks the format: a missing or wrong header, more or fewer words or numbers
        than it says, a number that cannot be read or is not finite in float32, a word that is
        empty, repeated or not in UTF-8, or damaged or truncated compressed data.
    MemoryBudgetError
        If the vectors do not fit into memory.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn_xc.decomposition.skip_gram import read_word2vec
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "vectors.txt")
    ...     _ = path.write_text("2 2\nrye 0.5 0.1\nbread 1.0 -2.0\n")
    ...     words, vectors = read_word2vec(path)
    >>> words.tolist()
    ['rye', 'bread']
    >>> vectors
    array([[ 0.5,  0.1],
           [ 1. , -2. ]], dtype=float32)
    """
    name = os.fsdecode(path)
    with open(path, "rb") as raw:
        is_gzip = raw.peek(2)[:2] == b"\x1f\x8b"
        try:
            return _read(io.BufferedReader(gzip.GzipFile(fileobj=raw)) if is_gzip else raw)
        except ValueError as error:
            raise DataFormatError(f"{name}: {error}") from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataFormatError(
                f"{name}: the compressed data are damaged or cut off ({error})."
            ) from error


def _read(stream: Any) -> tuple[np.ndarray, np.ndarray]:
    line = stream.readline(_MOST_HEADER)
    header = _HEADER.fullmatch(line)
    n_words, dim = map(int, header.groups()) if header else (0, 0)
    if not (n_words and dim):
        raise ValueError(
            f'the first line must be "n_words dim", two positive integers. Got {line[:60]!r}.'
        )
    what = f"vectors of shape ({n_words:,}, {dim:,})"
    require_bytes(4 * n_words * dim, None, what, "Cut the file.", "read_word2vec")
    is_binary = _CONTROL.search(stream.peek(_SAMPLE)[:_SAMPLE]) is not None
    words: dict[str, None] = {}
    vectors = np.empty((min(n_words, _ROWS), dim), np.float32)  # grows: the header may be wrong
    rows = _binary_rows(stream, dim) if is_binary else _text_rows(stream)
    for at, (word, numbers) in enumerate(rows):
        if at == n_words:
            raise ValueError(f"more than the {n_words:,} words that the header promises.")
        what = f"word {at + 1}, {word[:60]!r}"
        if len(numbers) != dim:
            raise ValueError(f"{what}, must have {dim:,} numbers. Got {len(numbers):,}.")
        if at == len(vectors):
            vectors.resize((min(n_words, 2 * at), dim), refcheck=False)
        try:
            name = word.decode()
            with np.errstate(over="ignore"):
                vectors[at] = numbers
        except ValueError as error:  # also of UTF-8
            raise ValueError(f"{what}: {error}.") from error
        if not word or name in words:
            raise ValueError(f"{what}, must be neither empty nor repeated.")
        if not np.isfinite(vectors[at]).all():
            raise ValueError(f"{what}, must have finite numbers.")
        words[name] = None
    if len(words) < n_words:
        raise ValueError(
            f"the header promises {n_words:,} words. Got {len(words):,}: the file was cut off."
        )
    return np.fromiter(words, object, n_words), vectors


def _text_rows(stream: Any) -> Iterator[tuple[bytes, list[bytes]]]:
    """Yield the word and the numbers of each line."""
    for line in stream:
        word, *numbers = line.rstrip(b" \t\r\n").split(b" ")
        if word or numbers:
            yield word, numbers


def _binary_rows(stream: Any, dim: int) -> Iterator[tuple[bytes, np.ndarray]]:
    """Yield the words and their vectors; an incomplete vector at the end is shorter."""
    while True:
        word = b""
        while (byte := stream.read(1)) not in (b" ", b""):
            if byte != b"\n" or word:  # a newline may end the row before
                word += byte
            if len(word) > _MOST_WORD:
                raise ValueError(f"a word of more than {_MOST_WORD:,} bytes.")
        if byte == b"" and not word:
            return
        data = stream.read(4 * dim)
        yield word, np.frombuffer(data[: len(data) // 4 * 4], "<f4")
