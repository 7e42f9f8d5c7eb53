"""Word vectors in the files of word2vec, and in the objects of gensim.

A file begins with the line "n_words dim". In the text format a line follows for each word, with its
numbers in decimals; in the binary one the word, a space and dim float32, little-endian, and after
these perhaps a newline.
"""

import bz2
import gzip
import lzma
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from sklearn_xc._arguments import check_numbers
from sklearn_xc._atomic_files import open_atomic
from sklearn_xc.exceptions import DataFormatError, MemoryBudgetError
from sklearn_xc.parallel.memory import require_bytes
from sklearn_xc.skip_gram.word_arrays import as_distinct_words, as_vectors, first_not_finite

#: What no word of a file may hold, as it ends words: in the tools of word2vec each of these does.
_SEPARATOR = re.compile(r"[ \t\n\v\f\r]")
_HEADER = re.compile(rb"[ \t]*(-?[0-9]+)[ \t]+(-?[0-9]+)[ \t]*\r?\n?")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")
_MOST_HEADER, _MOST_WORD, _MOST_LINE = 200, 2**16, 2**26
_MOST = 2**31 - 1
_SAMPLE, _CHUNK = 2**16, 2**20
#: Numbers of a text that are converted together.
_NUMBERS = 2**16


def write_word2vec(
    path: str | os.PathLike[str], words: Any, vectors: Any, *, binary: bool = False
) -> None:
    """Write words and their vectors in a format of word2vec.

    gensim's ``KeyedVectors.load_word2vec_format`` reads the file, given the same `binary`, and its
    ``save_word2vec_format`` writes the same bytes. The file appears under its name only when it is
    complete; until then an older one is unchanged.

    Parameters
    ----------
    path : str or path-like
        The file. It is compressed if its name ends in ``.gz``, ``.xz`` or ``.bz2``.
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
    >>> from sklearn_xc.skip_gram import write_word2vec
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "vectors.txt")
    ...     write_word2vec(path, ["rye", "bread"], [[0.5, 0.1], [1.0, -2.0]])
    ...     print(path.read_text())
    2 2
    rye 0.5 0.1
    bread 1.0 -2.0
    """
    who = "write_word2vec"
    names = as_distinct_words(words, f"{who}: words")
    for at, word in enumerate(names.tolist()):
        if _SEPARATOR.search(word):
            raise ValueError(
                f"{who}: words must hold no white space, which ends a word of the format. "
                f"Got {word!r} at entry {at}."
            )
        if not word.isascii() and _is_broken(word):
            raise ValueError(
                f"{who}: words must be texts that UTF-8 can write. Got {word!r} at entry {at}."
            )
    values = as_vectors(vectors, len(names), f"{who}: vectors")
    with open_atomic(path) as stream:
        stream.write(b"%d %d\n" % values.shape)
        step = max(1, _NUMBERS // values.shape[1])
        for first in range(0, len(names), step):
            rows = values[first : first + step]
            some = [word.encode() for word in names[first : first + step].tolist()]
            ends = _as_bytes(rows) if binary else _as_text(rows)
            stream.write(b"".join([w + b" " + end for w, end in zip(some, ends, strict=True)]))


def read_word2vec(
    path: str | os.PathLike[str], *, binary: bool | None = None
) -> tuple[np.ndarray, np.ndarray]:
    r"""Read words and their vectors from a file of word2vec, gensim or fastText (``.vec``).

    Parameters
    ----------
    path : str or path-like
        The file: plain, or compressed with gzip, xz or bzip2, as its first bytes tell.
    binary : bool, default=None
        Whether numbers are bytes or text. None detects this from the first 64 KiB.

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
        empty, repeated or not in UTF-8, or damaged or truncated compressed data. The message names
        the line, or, in a binary file, the word.
    MemoryBudgetError
        If the vectors do not fit into memory.
    TypeError
        If `binary` is not a bool.

    Notes
    -----
    Memory grows with what has been read, whatever the header says. If a text file was truncated
    within its very last number, the missing digits cannot be noticed.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn_xc.skip_gram import read_word2vec
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
    if binary is not None and not isinstance(binary, bool | np.bool_):
        raise TypeError(f"read_word2vec: binary must be True, False or None. Got {binary!r}.")
    with _open(path) as source:
        n_words, dim = _read_header(source)
        sample, is_all = source.look_ahead(_SAMPLE)
        if binary is None:
            binary = _is_binary(sample, is_all, n_words, dim)
        least = n_words * (4 * dim + 2) if binary else max(0, n_words * (2 * dim + 2) - 1)
        left = source.bytes_left
        if left is not None and left < least:
            raise source.error(
                f"the header promises {n_words:,} words of {dim:,} dimensions, which take at least "
                f"{least:,} bytes {'in binary' if binary else 'as text'}. Got {left:,} bytes after "
                "it: the file was cut off, or the header is wrong."
            )
        if left is not None:
            require_bytes(
                4 * n_words * dim, None, f"vectors of shape ({n_words:,}, {dim:,})",
                "Read the file on a machine with more memory, or cut it.", "read_word2vec",
            )  # fmt: skip
        read = _read_binary if binary else _read_text
        names, body = read(source, n_words, dim)
        words = np.empty(n_words, object)
        words[:] = names
        vectors = np.frombuffer(body, "<f4").reshape(n_words, dim).astype(np.float32, copy=False)
        at = first_not_finite(vectors) if binary else None
        if at is not None:
            raise source.error(
                f"word {at[0] + 1}, {words[at[0]]!r}, number {at[1] + 1}: a finite number was "
                f"expected. Got {vectors[at]}."
            )
        return words, vectors


def to_keyed_vectors(words: Any, vectors: Any, counts: Any = None) -> Any:
    """Return words and their vectors as gensim's ``KeyedVectors``.

    Parameters
    ----------
    words : array-like of str of shape (n_words,)
        Distinct.
    vectors : array-like of shape (n_words, dim)
        Finite; copied as float32.
    counts : array-like of int of shape (n_words,), default=None
        How often each word occurs; becomes the attribute "count" of gensim's keys.

    Returns
    -------
    gensim.models.KeyedVectors

    Raises
    ------
    ImportError
        If gensim is not installed.
    ValueError
        For words that are empty or repeated, vectors that do not match the words or are not finite
        in float32, and counts that are not whole numbers of at least 0.
    TypeError
        For words that are not strings, and vectors that are not real numbers.

    See Also
    --------
    from_keyed_vectors : The reverse.

    Examples
    --------
    >>> from sklearn_xc.skip_gram import to_keyed_vectors
    >>> vectors = [[0.5, 0.1], [1.0, -2.0]]
    >>> keyed = to_keyed_vectors(["rye", "bread"], vectors, counts=[3, 5])
    >>> keyed["bread"]
    array([ 1., -2.], dtype=float32)
    >>> keyed.most_similar("rye")[0][0]
    'bread'
    """
    who = "to_keyed_vectors"
    try:
        from gensim.models import KeyedVectors
    except ImportError as error:
        raise ImportError(f"{who} needs gensim: pip install gensim.") from error
    names = as_distinct_words(words, f"{who}: words")
    values = as_vectors(vectors, len(names), f"{who}: vectors")
    keyed = KeyedVectors(values.shape[1])
    keyed.add_vectors(names.tolist(), values)
    if counts is not None:
        numbers = check_numbers(counts, f"{who}: counts", len(names), "word")
        wrong = np.flatnonzero((numbers < 0) | (numbers != np.rint(numbers)))
        if wrong.size:
            raise ValueError(
                f"{who}: counts must be whole numbers of at least 0. Got {numbers[wrong[0]]} at "
                f"entry {wrong[0]}."
            )
        for word, count in zip(names.tolist(), numbers.astype(np.int64).tolist(), strict=True):
            keyed.set_vecattr(word, "count", count)
    return keyed


def from_keyed_vectors(keyed: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return words, vectors and counts of gensim's ``KeyedVectors``.

    Parameters
    ----------
    keyed : gensim.models.KeyedVectors
        For a fitted ``Word2Vec``, pass ``model.wv``.

    Returns
    -------
    words : ndarray of object of shape (n_words,)
        Strings, in the order of ``keyed.index_to_key``.
    vectors : ndarray of float32 of shape (n_words, dim)
        A copy.
    counts : ndarray of int64 of shape (n_words,), or None
        The attribute "count", if each key has one.

    Raises
    ------
    TypeError
        For any other object, and keys that are not strings.
    ValueError
        For vectors that are not finite.

    See Also
    --------
    to_keyed_vectors : The reverse.

    Examples
    --------
    >>> from sklearn_xc.skip_gram import from_keyed_vectors, to_keyed_vectors
    >>> vectors = [[0.5, 0.1], [1.0, -2.0]]
    >>> keyed = to_keyed_vectors(["rye", "bread"], vectors, counts=[3, 5])
    >>> words, vectors, counts = from_keyed_vectors(keyed)
    >>> words.tolist(), counts.tolist()
    (['rye', 'bread'], [3, 5])
    >>> vectors
    array([[ 0.5,  0.1],
           [ 1. , -2. ]], dtype=float32)
    """
    who = "from_keyed_vectors"
    if not (hasattr(keyed, "index_to_key") and hasattr(keyed, "vectors")):
        hint = ", whose wv are such" if hasattr(keyed, "wv") else ""
        raise TypeError(
            f"{who}: keyed must be gensim's KeyedVectors. Got {type(keyed).__name__}{hint}."
        )
    words = as_distinct_words(keyed.index_to_key, f"{who}: keys")
    # There may be room for further keys at the end.
    vectors = as_vectors(keyed.vectors[: len(words)], len(words), f"{who}: vectors").copy()
    counts = getattr(keyed, "expandos", {}).get("count")
    if counts is None or len(counts) < len(words):
        return words, vectors, None
    return words, vectors, np.array(counts[: len(words)], np.int64)


def _is_broken(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return True
    return False


def _as_bytes(rows: np.ndarray) -> list[bytes]:
    width, data = 4 * rows.shape[1], rows.astype("<f4").tobytes()
    return [data[at : at + width] for at in range(0, len(data), width)]


def _as_text(rows: np.ndarray) -> list[bytes]:
    return [" ".join(map(str, row)).encode() + b"\n" for row in rows]


class _Source:
    """The decompressed bytes of an open file, some of which may be looked at ahead.

    Attributes
    ----------
    path : str
        For error messages.
    """

    def __init__(self, path: str, stream: Any, n_bytes: int | None) -> None:
        self.path = path
        self._stream = stream
        self._n_bytes = n_bytes
        self._taken = 0
        self._ahead = b""

    @property
    def bytes_left(self) -> int | None:
        """How many bytes follow; None where that is not known before they are read."""
        return None if self._n_bytes is None else self._n_bytes - self._taken

    def look_ahead(self, n_bytes: int) -> tuple[bytes, bool]:
        """Return the next bytes, which are still to be read, and whether these are all."""
        self._ahead += self._stream.read(n_bytes - len(self._ahead))
        return self._ahead, len(self._ahead) < n_bytes

    def read(self, n_bytes: int) -> bytes:
        """Return up to `n_bytes`, none at the end only."""
        found, self._ahead = self._ahead[:n_bytes], self._ahead[n_bytes:]
        found = found or self._stream.read(n_bytes)
        self._taken += len(found)
        return found

    def readline(self, most: int) -> bytes:
        """Return the next line with its newline, or the first `most` bytes of it."""
        size = self._ahead.find(b"\n", 0, most) + 1 or min(most, len(self._ahead))
        found, self._ahead = self._ahead[:size], self._ahead[size:]
        if not found.endswith(b"\n") and len(found) < most:
            found += self._stream.readline(most - len(found))
        self._taken += len(found)
        return found

    def error(self, message: str) -> DataFormatError:
        """Return the error to raise."""
        return DataFormatError(f"{self.path}: {message}")


@contextmanager
def _open(path: str | os.PathLike[str]) -> Iterator[_Source]:
    """Open a file whose first bytes tell how it is compressed, and translate what goes wrong."""
    name = os.fsdecode(path)
    with open(path, "rb") as raw:
        magic = raw.peek(6)
        stream: Any = raw
        if magic.startswith(b"\x1f\x8b"):
            stream = gzip.GzipFile(fileobj=raw, mode="rb")
        elif magic.startswith(b"\xfd7zXZ\0"):
            stream = lzma.LZMAFile(raw)  # noqa: SIM115 (closes with raw)
        elif magic.startswith(b"BZh"):
            stream = bz2.BZ2File(raw)
        status = os.fstat(raw.fileno())
        is_plain = stream is raw and stat.S_ISREG(status.st_mode)
        try:
            yield _Source(name, stream, status.st_size if is_plain else None)
        except (EOFError, zlib.error, lzma.LZMAError) as error:
            raise _damaged(name, error) from error
        except OSError as error:
            if stream is raw or error.errno is not None:
                raise
            raise _damaged(name, error) from error  # of gzip and bzip2
        except MemoryBudgetError:
            raise
        except MemoryError as error:
            raise MemoryBudgetError(
                f"{name}: the memory is used up. Read the file on a machine with more, or cut it."
            ) from error


def _damaged(name: str, error: Exception) -> DataFormatError:
    return DataFormatError(
        f"{name}: the compressed data are damaged or cut off ({error}). Fetch or copy the file "
        "again."
    )


def _read_header(source: _Source) -> tuple[int, int]:
    """Return the number of words and that of dimensions."""
    line = source.readline(_MOST_HEADER)
    match = _HEADER.fullmatch(line)
    if match is None:
        hint = ""
        if len(line.split()) > 2:
            hint = " A file without such a line, as of GloVe, needs one in front."
        raise source.error(
            "line 1: the number of words and that of dimensions were expected. "
            f"Got {_show(line)}.{hint}"
        )
    n_words, dim = int(match[1]), int(match[2])
    if not (0 <= n_words <= _MOST and 1 <= dim <= _MOST):
        raise source.error(
            f"line 1: a number of words from 0 to {_MOST} and one of dimensions from 1 to {_MOST} "
            f"were expected. Got {n_words} and {dim}."
        )
    return n_words, dim


def _is_binary(sample: bytes, is_all: bool, n_words: int, dim: int) -> bool:
    """Tell whether what follows a header is binary."""
    # 1. A first line of numbers is text: as float32 its bytes would be some 1e-18 or less.
    line, newline, _ = sample.partition(b"\n")
    tokens = line.split(b" ", 1)[-1].split()
    is_whole = bool(newline) or is_all
    if not is_whole:
        tokens = tokens[:-1]
    if tokens and (len(tokens) == dim or not is_whole) and all(map(_is_number, tokens)):
        return False
    # 2. Bytes that no text has.
    if _CONTROL.search(sample):
        return True
    try:
        sample.decode()
    except UnicodeDecodeError as error:
        if is_all or error.start < len(sample) - 3:  # a character that the end of the sample cuts
            return True
    # 3. A few vectors whose bytes happen to be letters. A line with any number in it is a text that
    # went wrong, which must not pass for them.
    if not is_all or n_words == 0 or any(map(_is_number, tokens)):
        return False
    at = 0
    for _ in range(n_words):
        space = sample.find(b" ", at)
        at = space + 1 + 4 * dim
        if space < 0 or at > len(sample):
            return False
    return not sample[at:].strip(b"\n")


def _is_number(token: bytes) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return b"_" not in token


class _Words:
    """The words of a file in their order, checked as they come.

    Parameters
    ----------
    source : _Source
    what : {"line", "word"}
        What messages count; words are on the lines from the second on.
    """

    def __init__(self, source: _Source, what: str) -> None:
        self._source = source
        self._what = what
        self.places: dict[str, int] = {}

    def where(self, at: int) -> str:
        return f"{self._what} {at + (2 if self._what == 'line' else 1):,}"

    def add(self, token: bytes) -> None:
        at = len(self.places)
        try:
            word = token.decode()
        except UnicodeDecodeError:
            raise self._source.error(
                f"{self.where(at)}: a word in UTF-8 was expected. Got {_show(token)}."
            ) from None
        if not word:
            raise self._source.error(f"{self.where(at)}: a word was expected. Got an empty one.")
        first = self.places.setdefault(word, at)
        if first != at:
            raise self._source.error(
                f"{self.where(at)}: a word of its own was expected. Got {word!r}, which is "
                f"{self.where(first)} already."
            )


def _read_text(source: _Source, n_words: int, dim: int) -> tuple[list[str], bytearray]:
    """Return the words, and the bytes of their float32 vectors."""
    words, body = _Words(source, "line"), bytearray()
    values: list[float] = []
    for at in range(n_words):
        # 1. A line to a word and numbers.
        line = source.readline(_MOST_LINE + 1)
        if len(line) > _MOST_LINE:
            raise source.error(
                f"{words.where(at)}: at most {_MOST_LINE:,} bytes were expected. Got a longer one."
            )
        if not line:
            raise source.error(
                f"the header promises {n_words:,} words, the file ends after {at:,}."
            )
        token, _, rest = line.partition(b" ")
        tokens = rest.split()
        if len(tokens) != dim:
            raise source.error(
                f"{words.where(at)}: a word and {dim:,} numbers were expected. Got "
                f"{len(tokens):,} numbers after {_show(token.strip())}."
            )
        words.add(token)
        try:
            if b"_" in rest:  # Python's numbers may have it, decimal ones of files do not
                raise ValueError
            values += map(float, tokens)
        except ValueError:
            wrong = next(token for token in tokens if not _is_number(token))
            raise source.error(
                f"{words.where(at)}: a number was expected. Got {_show(wrong)}."
            ) from None
        # 2. Some lines of numbers to float32.
        if len(values) >= _NUMBERS or at == n_words - 1:
            exact = np.array(values)
            with np.errstate(over="ignore"):
                rounded = exact.astype("<f4")
            finite = np.isfinite(rounded)
            if not finite.all():
                wrong_at = int(np.argmin(finite))
                row = at + 1 - len(values) // dim + wrong_at // dim
                raise source.error(
                    f"{words.where(row)}, number {wrong_at % dim + 1}: a finite number of float32 "
                    f"was expected. Got {exact[wrong_at]}."
                )
            body += rounded.tobytes()
            values = []
    while line := source.readline(_CHUNK):
        if line.strip():
            raise source.error(
                f"{words.where(n_words)}: the header promises {n_words:,} words. Got more: "
                f"{_show(line)}."
            )
    return list(words.places), body


def _read_binary(source: _Source, n_words: int, dim: int) -> tuple[list[str], bytearray]:
    """Return the words, and the bytes of their float32 vectors."""
    words, body, width = _Words(source, "word"), bytearray(), 4 * dim
    pending, at = b"", 0
    for number in range(n_words):
        while True:
            space = pending.find(b" ", at)
            length = (space if space >= 0 else len(pending)) - at
            if length > _MOST_WORD:
                raise source.error(
                    f"{words.where(number)}: a word of at most {_MOST_WORD:,} bytes, and a space "
                    f"after it, were expected. Got {_show(pending[at : at + 100])}."
                )
            if 0 <= space < len(pending) - width:
                break
            # Twice as much each time, so that a long vector is not copied again and again.
            new = source.read(max(_CHUNK, len(pending) - at))
            pending, at = pending[at:] + new, 0
            if not new:
                inside = f", within {words.where(number)}" if pending.strip(b"\n") else ""
                raise source.error(
                    f"the header promises {n_words:,} words, the file ends after "
                    f"{number:,}{inside}."
                )
        words.add(pending[at:space].lstrip(b"\n"))
        at = space + 1 + width
        body += memoryview(pending)[space + 1 : at]
    for rest in chain([pending[at:]], iter(partial(source.read, _CHUNK), b"")):
        if rest.strip(b"\n"):
            raise source.error(
                f"the header promises {n_words:,} words. Got more: {_show(rest.strip()[:100])}."
            )
    return list(words.places), body


def _show(token: bytes) -> str:
    """Return bytes quoted for a message, the end of long ones left out."""
    short = token if len(token) <= 60 else token[:57] + b"..."
    return repr(short).removeprefix("b")
