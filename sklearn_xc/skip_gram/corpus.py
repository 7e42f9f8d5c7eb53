"""From sentences to the numbers of their words, and from these to those of the words kept.

A corpus is gone through once. Its words are numbered in order of first appearance, as nobody knows
yet which ones are frequent, and the numbers wait in memory or in a file without a name::

    file     -> chunks of bytes  -> kernel: a table of words  --+
    sentences -> batches of them -> a dict of words           --+-> int32 numbers, -1 at the ends
                                                                    of sentences
    numbers, in a second pass    -> kernel: the words that are kept, by frequency
"""

import gzip
import os
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc.exceptions import DataFormatError
from sklearn_xc.parallel.memory import require_bytes
from sklearn_xc.parallel.spill import Spill, release

_CHUNK_BYTES = 1 << 21
_BATCH_TOKENS = 1 << 18
_FEW_WORDS = 1 << 15  # the room at first
_MOST_WORDS = 2**31 - 2
_LARGE_BYTES = 1 << 26  # smaller arrays grow without a look at the memory that is left
_ALL_BITS = 2**64 - 1
#: The limit of a word of which all occurrences are kept; draws are below it.
ALWAYS = 2**53
_BOM = b"\xef\xbb\xbf"


class Corpus(NamedTuple):
    """A text as numbers of words, which can be gone through once.

    Attributes
    ----------
    words : ndarray of str (dtype object) of shape (n_words,)
        Those that are kept, the most frequent first; of equally frequent ones, the one that
        appears first.
    frequencies : ndarray of int64 of shape (n_words,)
        How often they occur.
    new_numbers : ndarray of int32 of shape (n_distinct,)
        Where in `words` each word of the text is, in order of first appearance; -1 for those that
        are dropped.
    n_tokens : int
        Occurrences of all words.
    chunks : deque of ndarray of int32
        The text: words in order of first appearance, and -1 where a sentence ends.
    """

    words: np.ndarray
    frequencies: np.ndarray
    new_numbers: np.ndarray
    n_tokens: int
    chunks: deque[np.ndarray]

    def pieces(self, most: int, *, is_last: bool = True) -> Iterator[np.ndarray]:
        """Yield the text in pieces of at most so many numbers; the last time, it is gone then."""
        for _ in range(len(self.chunks)):
            chunk = self.chunks.popleft()
            if not is_last:
                self.chunks.append(chunk)
            for first in range(0, len(chunk), most):
                yield chunk[first : first + most]
            if is_last:
                release(chunk, len(chunk))


def read_corpus(
    sentences: Any,
    *,
    min_count: int,
    max_words: int | None,
    allowed: int,
    who: str,
) -> Corpus:
    """Return a corpus as numbers.

    Parameters
    ----------
    sentences : iterable of list of str, str or path-like
        See :func:`sklearn_xc.skip_gram.cooccurrence.count_contexts`.
    min_count : int
        Words that occur less often are dropped.
    max_words : int or None
        At most so many words are kept, the most frequent ones.
    allowed : int
        Bytes of numbers to keep in memory, at four a token; more go to a file without a name.
    who : str
        Name of the estimator, for messages.

    Returns
    -------
    Corpus

    Raises
    ------
    DataFormatError, FileNotFoundError, IsADirectoryError, TypeError, ValueError
        See :func:`sklearn_xc.skip_gram.cooccurrence.count_contexts`.
    MemoryBudgetError
        If the machine has no room for all distinct words.
    """
    spill = Spill(allowed, who, "the text")
    source: _FileWords | _ListWords
    if isinstance(sentences, str | os.PathLike):
        source = _FileWords(who)
        chunks = source.read(_checked_path(sentences, who), spill)
    else:
        source = _ListWords(who)
        chunks = source.read(_checked_iterable(sentences, who), spill)
    frequencies = source.frequencies()
    n_tokens = int(frequencies.sum())
    if n_tokens == 0:
        what = "no sentences" if source.n_sentences == 0 else "only sentences without words"
        raise ValueError(
            f"{who}: sentences must have words. Got {what}"
            f"{'; a generator is empty the second time' if _is_used_up(sentences) else ''}."
        )
    kept = np.argsort(-frequencies, kind="stable")
    kept = kept[: int(np.count_nonzero(frequencies >= min_count))]
    if len(kept) == 0:
        most = int(np.argmax(frequencies))
        raise ValueError(
            f"{who}: no word occurs min_count={min_count} times, so that none is left; lower "
            f"min_count, or give more sentences. Got {n_tokens:,} tokens, and the most frequent "
            f"word, {_shown(source.word(most))}, occurs {_times(int(frequencies[most]))}."
        )
    kept = kept[:max_words]
    new_numbers = np.full(len(frequencies), -1, np.int32)
    new_numbers[kept] = np.arange(len(kept), dtype=np.int32)
    return Corpus(source.words(kept), frequencies[kept], new_numbers, n_tokens, chunks)


def keep_limits(frequencies: np.ndarray, subsample: float | None) -> np.ndarray:
    """Return below which of 2**53 numbers the draw of an occurrence must be for it to stay.

    Parameters
    ----------
    frequencies : ndarray of int64 of shape (n_words,)
        Of the words that are kept, in the corpus.
    subsample : float or None
        The share t; a word with a share f stays with probability min(1, sqrt(t / f)).

    Returns
    -------
    ndarray of uint64 of shape (n_words,)
    """
    if not subsample:
        return np.full(len(frequencies), ALWAYS, np.uint64)
    shares = frequencies / frequencies.sum()
    return np.rint(np.sqrt(np.minimum(1.0, subsample / shares)) * float(ALWAYS)).astype(np.uint64)


def subsampling_key(seed: int, number: int = 0) -> np.uint64:
    """Return what the draws of a seed are made with, the first time or a further one."""
    from sklearn_xc.kernels.softmax.negatives import mix_key

    return mix_key(seed & _ALL_BITS, 1 + number)


def _checked_path(path: Any, who: str) -> str:
    """Return a path that leads to a file."""
    name = os.fsdecode(path)
    if os.path.isdir(name):
        raise IsADirectoryError(
            f"{who}: sentences must be a file with a sentence to a line, or lists of tokens. Got "
            f"the folder {_shown(name)}."
        )
    if not os.path.exists(name):
        raise FileNotFoundError(
            f"{who}: sentences must be lists of tokens, as [['to', 'be'], ['or', 'not']], or the "
            f"path of a file with a sentence to a line. Got {_shown(name)}, and there is no such "
            "file."
        )
    return name


def _checked_iterable(sentences: Any, who: str) -> Iterator[Any]:
    if not isinstance(sentences, bytes | bytearray):
        try:
            return iter(sentences)
        except TypeError:  # also of arrays without dimensions
            pass
    raise TypeError(
        f"{who}: sentences must be an iterable of lists of tokens, or the path of a file with a "
        f"sentence to a line. Got {_shown(sentences)} of type {type(sentences).__name__}."
    )


def _is_used_up(sentences: Any) -> bool:
    return isinstance(sentences, Iterator)


def _shown(value: Any) -> str:
    """Return what stands for a value in a message, the middle of a long one left out."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:55]}...{text[-20:]}"


def _times(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n:,} times")


class _FileWords:
    """The words of a file, in a table of kernels.

    Attributes
    ----------
    n_sentences : int
        Lines with words that were read.
    hash_mask : uint64
        For tests: the bits of hashes that count.
    """

    hash_mask = np.uint64(_ALL_BITS)

    def __init__(self, who: str) -> None:
        self.who = who
        self.n_sentences = 0
        self.n_words = 0
        self._table = np.full(2 * _FEW_WORDS, -1, np.int32)
        self._hashes = np.empty(_FEW_WORDS, np.uint64)
        self._frequencies = np.empty(_FEW_WORDS, np.int64)
        self._starts = np.zeros(_FEW_WORDS + 1, np.int64)
        self._arena = np.empty(0, np.uint8)

    def read(self, path: str, spill: Spill) -> deque[np.ndarray]:
        """Return the numbers of the words of a file, in chunks."""
        chunks: deque[np.ndarray] = deque()
        numbers = np.empty(0, np.int32)
        is_open = False
        with _opened(path, self.who) as file:
            for text in file.chunks():
                if len(numbers) < len(text) + 1:
                    numbers = np.empty(len(text) + 1, np.int32)
                position, n, is_open = self._number(text, numbers, is_open)
                self._check_utf8(file, text)
                chunks.append(spill.keep(numbers[:n]))
                file.take_from(text, position)
                self.n_sentences += n > 0
        return chunks

    def frequencies(self) -> np.ndarray:
        """Return how often each word was met, int64."""
        return self._frequencies[: self.n_words]

    def word(self, number: int) -> str:
        """Return a word by its number."""
        return self._bytes_of(number).decode()

    def words(self, numbers: np.ndarray) -> np.ndarray:
        """Return words by their numbers, as an array of objects."""
        words = np.empty(len(numbers), object)
        words[:] = [self.word(number) for number in numbers.tolist()]
        return words

    def _bytes_of(self, number: int) -> bytes:
        return self._arena[self._starts[number] : self._starts[number + 1] - 1].tobytes()

    def _number(self, text: bytes, numbers: np.ndarray, is_open: bool) -> tuple[int, int, bool]:
        """Write the numbers of the words of a text; return the bytes read, and how many words."""
        from sklearn_xc.kernels.words.word_numbers import number_words

        size = len(text) - 1  # the last one is the sentinel
        array = np.frombuffer(text, np.uint8)
        self._first_new = int(self.n_words)
        position, n, is_full = 0, 0, True
        while is_full:
            self._make_room(size - position + 1)
            position, is_open, self.n_words, n, is_full = number_words(
                array, position, size, is_open, self.hash_mask, self._table, self._hashes,
                self._starts, self._arena, self._frequencies, self.n_words, numbers, n,
            )  # fmt: skip
        return position, n, is_open

    def _make_room(self, n_bytes: int) -> None:
        """Make room for another word, and for so many bytes of words."""
        from sklearn_xc.kernels.words.word_numbers import fill_table

        used, capacity = int(self._starts[self.n_words]), len(self._hashes)
        if used + n_bytes > len(self._arena):
            new = max(2 * used, used + n_bytes)
            self._require(new - len(self._arena), f"{new:,} bytes of distinct words")
            self._arena.resize(new, refcheck=False)
        if self.n_words == capacity:
            capacity *= 2
            self._require(20 * capacity, f"a table of {capacity:,} distinct words")
            self._hashes.resize(capacity, refcheck=False)
            self._frequencies.resize(capacity, refcheck=False)
            self._starts.resize(capacity + 1, refcheck=False)
            self._table = np.full(2 * capacity, -1, np.int32)
            fill_table(self._hashes, self.n_words, self._table)

    def _require(self, n_bytes: int, what: str) -> None:
        if n_bytes > _LARGE_BYTES:
            require_bytes(
                n_bytes, None, what,
                "Give a corpus with fewer distinct words, as by splitting off punctuation.",
                self.who,
            )  # fmt: skip
        if self.n_words >= _MOST_WORDS // 2:
            raise ValueError(f"{self.who}: more than a thousand million distinct words.")

    def _check_utf8(self, file: "_File", text: bytes) -> None:
        """Raise if one of the new words is not UTF-8: where it is, it is the first time."""
        first, end = self._starts[self._first_new], self._starts[self.n_words]
        try:
            self._arena[first:end].tobytes().decode()
        except UnicodeDecodeError as error:
            for number, line in enumerate(text.split(b"\n"), file.line + 1):
                for word in line.split():
                    try:
                        word.decode()
                    except UnicodeDecodeError as of_word:
                        raise DataFormatError(
                            f"{self.who}: sentences, the file {file.path}, must be UTF-8, and line "
                            f"{number} is not ({of_word.reason}). Got {_shown(word)}; "
                            "if it has another encoding, convert it, as by iconv."
                        ) from error
            raise


class _File:
    """A file that is being read.

    Attributes
    ----------
    path : str
    line : int
        How many lines were read completely.
    """

    def __init__(self, path: str, stream: Any) -> None:
        self.path, self.line = path, 0
        self._stream = stream
        self._rest = b""

    def chunks(self) -> Iterator[bytes]:
        """Yield what is not taken yet and some more, and a space behind it."""
        is_first = True
        while True:
            # Twice as much each time, so that a long word is not read again and again.
            new = self._stream.read(max(_CHUNK_BYTES, len(self._rest)))
            if is_first:
                new, is_first = new.removeprefix(_BOM), False
                if not new:
                    new = self._stream.read(_CHUNK_BYTES)
            if not new:
                break
            yield self._rest + new + b" "
        yield self._rest + b"\n "

    def take_from(self, text: bytes, position: int) -> None:
        """Note how many of the bytes of a text were read."""
        self.line += text.count(b"\n", 0, position)
        self._rest = text[position:-1]


@contextmanager
def _opened(path: str, who: str) -> Iterator[_File]:
    """Open a plain or a gzip file; its first bytes decide, not its name."""
    with open(path, "rb") as raw:
        stream: Any = raw
        if raw.peek(2).startswith(b"\x1f\x8b"):
            stream = gzip.GzipFile(fileobj=raw)
        file = _File(path, stream)
        try:
            yield file
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataFormatError(
                f"{who}: sentences, the file {path}: behind line {file.line} the compressed data "
                f"are damaged or cut off ({error}). Fetch or copy the file again."
            ) from error


class _Numbers(dict):
    """The number of each word; a new word gets the next one."""

    def __missing__(self, word: Any) -> int:
        if not isinstance(word, str):
            raise TypeError
        number = self[str(word)] = len(self)
        return number


class _ListWords:
    """The words of lists of tokens, in a dict.

    Attributes
    ----------
    n_sentences : int
        Sentences that were read.
    """

    def __init__(self, who: str) -> None:
        self.who = who
        self.n_sentences = 0
        self._numbers = _Numbers()
        self._frequencies = np.zeros(_FEW_WORDS, np.int64)

    def read(self, sentences: Iterator[Any], spill: Spill) -> deque[np.ndarray]:
        """Return the numbers of the words of all sentences, in chunks."""
        chunks: deque[np.ndarray] = deque()
        tokens: list[Any] = []  # copies: a generator may fill the same list again
        lengths: list[int] = []
        for sentence in sentences:
            if not isinstance(sentence, list | tuple):
                sentence = self._as_list(sentence)
            tokens.extend(sentence)
            lengths.append(len(sentence))
            self.n_sentences += 1
            if len(tokens) + len(lengths) >= _BATCH_TOKENS:
                chunks.append(spill.keep(self._number(tokens, lengths)))
                tokens, lengths = [], []
        chunks.append(spill.keep(self._number(tokens, lengths)))
        return chunks

    def frequencies(self) -> np.ndarray:
        """Return how often each word was met, int64."""
        return self._frequencies[: len(self._numbers)]

    def word(self, number: int) -> str:
        """Return a word by its number."""
        return list(self._numbers)[number]

    def words(self, numbers: np.ndarray) -> np.ndarray:
        """Return words by their numbers, as an array of objects."""
        in_order = list(self._numbers)
        words = np.empty(len(numbers), object)
        words[:] = [in_order[number] for number in numbers.tolist()]
        return words

    def _as_list(self, sentence: Any) -> list:
        if isinstance(sentence, np.ndarray) and sentence.ndim == 1:
            return sentence.tolist()
        got = (
            f"{_shown(sentence)} of type {type(sentence).__name__} as sentence "
            f"{self.n_sentences}, counted from 0"
        )
        if isinstance(sentence, str):
            raise TypeError(
                f"{self.who}: each sentence must be a list of tokens, not one text: split it, as "
                f"by [text.split() for text in sentences]. Got {got}."
            )
        raise TypeError(f"{self.who}: each sentence must be a list of tokens (str). Got {got}.")

    def _number(self, tokens: list[Any], lengths: list[int]) -> np.ndarray:
        """Return the numbers of the words of some sentences, with -1 behind each."""
        try:
            numbers = np.fromiter(map(self._numbers.__getitem__, tokens), np.int32, len(tokens))
        except TypeError as error:  # not hashable, or of _Numbers
            self._refuse_token(tokens, lengths, error)
            raise
        if len(self._numbers) > len(self._frequencies):
            more = max(len(self._frequencies), len(self._numbers) - len(self._frequencies))
            self._frequencies = np.append(self._frequencies, np.zeros(more, np.int64))
        np.add.at(self._frequencies, numbers, 1)
        out = np.full(len(tokens) + len(lengths), -1, np.int32)
        out[np.arange(len(tokens)) + np.repeat(np.arange(len(lengths)), lengths)] = numbers
        return out

    def _refuse_token(self, tokens: list[Any], lengths: list[int], error: Exception) -> None:
        """Raise for the first token that is no str."""
        place = next((i for i, token in enumerate(tokens) if not isinstance(token, str)), None)
        if place is None:
            return
        ends = np.cumsum(lengths)
        sentence = int(np.searchsorted(ends, place, side="right"))
        raise TypeError(
            f"{self.who}: tokens must be str. Got {_shown(tokens[place])} of type "
            f"{type(tokens[place]).__name__} as token {place - ends[sentence] + lengths[sentence]} "
            f"of sentence {self.n_sentences - len(lengths) + sentence}, counted from 0."
        ) from error
