"""How often words stand near each other in a corpus, as a sparse symmetric matrix.

The corpus is cut into blocks that fit into memory. In a block, the positions are ordered by word:
one row of the matrix is summed at a time, in an array with a place for each word::

    numbers of words --> block of text --> positions of each word --> rows, columns rising
                                                                      (in memory or in files)
    rows of all blocks --> their sum, row after row --> indptr, indices, counts

Threads share ranges of words. Weights are integers until the end, so that no result depends on the
cuts or on the order of additions.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._arguments import check_count, is_number
from sklearn_xc.parallel.memory import available_bytes
from sklearn_xc.parallel.spill import Spill, maker, release
from sklearn_xc.parallel.team import Team
from sklearn_xc.parallel.threads import count_threads
from sklearn_xc.skip_gram.corpus import ALWAYS, Corpus, keep_limits, read_corpus, subsampling_key

_WEIGHTINGS = ("linear", "uniform")
_MOST_WINDOW = 1000
# Positions in a block: the fewest, so that a block is worth the passes over its words; the most,
# beyond which fewer blocks save little.
_BLOCK = (1 << 14, 1 << 26)
# Entries that a range of rows can have, unless it is one row.
_RANGE = (1 << 16, 1 << 22)
_MOST_RANGES = 1024
_MOST_PIECE = 1 << 20
_MOST_WEIGHT = 2**32 - 1  # of all pairs of a block, so that each count fits into 32 bits


class WordCounts(NamedTuple):
    """The words of a corpus and how often they occur near each other.

    Attributes
    ----------
    words : ndarray of str (dtype object) of shape (n_words,)
        Most frequent first; ties go to the word that appears first. Stored as objects, because an
        array of fixed width would cut trailing NULs off, and be as wide as the longest word.
    frequencies : ndarray of int64 of shape (n_words,)
        Number of occurrences in the corpus, before subsampling.
    indptr : ndarray of int64 of shape (n_words + 1,)
        Where each row of the matrix begins.
    indices : ndarray of int32 of shape (nnz,)
        Columns, in increasing order within each row.
    counts : ndarray of float32 of shape (nnz,)
        Positive; the matrix is symmetric.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.skip_gram import count_contexts
    >>> sentences = [["red", "apple"], ["red", "cherry"], ["grey", "cat"]]
    >>> found = count_contexts(sentences, min_count=1, subsample=None)
    >>> matrix = csr_array((found.counts, found.indices, found.indptr))
    >>> near_red = matrix[[0]].indices  # the most frequent word comes first
    >>> found.words[0], found.words[near_red].tolist()
    ('red', ['apple', 'cherry'])
    """

    words: np.ndarray
    frequencies: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    counts: np.ndarray


def count_contexts(
    sentences: Any,
    *,
    window: int = 8,
    min_count: int = 5,
    max_words: int | None = None,
    subsample: float | None = 1e-4,
    n_subsamples: int = 1,
    weighting: str = "linear",
    seed: int = 0,
    allowed_bytes: int | None = None,
    n_jobs: int | None = None,
    who: str = "count_contexts",
) -> WordCounts:
    """Count how often words occur near each other in a corpus.

    Rare words are dropped, then some occurrences of frequent ones; neither takes up a place in the
    window. Then each ordered pair of occurrences in one sentence, at most `window` apart, adds its
    weight to the count of its two words. An occurrence is not a context of itself, but two
    occurrences of a word are contexts of each other and count twice.

    Parameters
    ----------
    sentences : iterable of list of str, str or path-like
        Lists, tuples or arrays of tokens, read once, so that a generator will do. Or the path of a
        UTF-8 file, plain or gzip, with one sentence per line (ended by a newline) and tokens
        separated by ASCII whitespace. Words are compared exactly.
    window : int, default=8
        The largest distance between words in a pair, at most 1000.
    min_count : int, default=5
        Words that occur less often are dropped.
    max_words : int or None, default=None
        Maximum number of words to keep, the most frequent ones.
    subsample : float or None, default=1e-4
        The share t of all occurrences of kept words above which a word is thinned out: an
        occurrence of a word with share f is kept with probability min(1, sqrt(t / f)). The draw is
        a hash of the seed and of the position among all tokens. None or 0 keeps all.
    n_subsamples : int, default=1
        How many times to draw the occurrences and count all pairs; counts are means over the
        draws.
    weighting : {"linear", "uniform"}, default="linear"
        The weight of a pair at distance d: ``(window - d + 1) / window``, the mean of word2vec's
        random window, or 1.
    seed : int, default=0
        Seed of the subsampling, not negative.
    allowed_bytes : int or None, default=None
        Memory that arrays that grow with the corpus may take; anything beyond goes to unnamed
        files in the folder of temporary files (``TMPDIR``). None allows half of what the machine
        has left.
    n_jobs : int or None, default=None
        Number of threads, as in joblib. The result is the same, bit for bit, for any number.
    who : str, default="count_contexts"
        Name of the estimator, for messages.

    Returns
    -------
    WordCounts

    Raises
    ------
    DataFormatError
        If the file is not UTF-8 (the message names the line), or its compressed data are damaged.
    FileNotFoundError, IsADirectoryError
        If `sentences` is a string that names no file.
    MemoryBudgetError
        If the machine has no room for all distinct words of a file.
    OSError
        If the folder of temporary files has no room.
    TypeError
        If a sentence is not a list of tokens but, for example, a single string, or if a token is
        not a str.
    ValueError
        If there are no words, or none occurs `min_count` times; and for arguments out of range.

    Notes
    -----
    Time is linear in the number of tokens. Memory is that of the words plus `allowed_bytes`: the
    tokens are kept in memory or in a file, at 4 bytes each, until all are read, and then counted
    in blocks of up to 60 million at a window of 8. A distinct word of the corpus, rare or not,
    takes its UTF-8 bytes plus 40 to 70 bytes if it comes from a file, and about 200 bytes as a
    str. Each thread takes 8.2 bytes for each word that is kept. A pair of words, which is in both
    rows, takes 16 bytes in each block of the text where it occurs, and 16 in the result; anything
    beyond `allowed_bytes` is in files, which the system caches in memory that nothing else needs.

    Source: the pairs are those of [1]_, and the weights their mean over its random windows; rare
    words and subsampling as in [2]_, whose own program uses a different probability.

    References
    ----------
    .. [1] T. Mikolov, K. Chen, G. Corrado and J. Dean, "Efficient estimation of word
       representations in vector space", ICLR workshop 2013.
    .. [2] T. Mikolov, I. Sutskever, K. Chen, G. Corrado and J. Dean, "Distributed representations
       of words and phrases and their compositionality", NeurIPS 2013.

    Examples
    --------
    >>> from sklearn_xc.skip_gram import count_contexts
    >>> found = count_contexts(
    ...     [["a", "rose", "is", "a", "rose"]], window=2, min_count=2, subsample=None
    ... )
    >>> found.words.tolist(), found.frequencies.tolist()
    (['a', 'rose'], [2, 2])
    >>> found.indptr.tolist(), found.indices.tolist(), found.counts.tolist()
    ([0, 2, 4], [0, 1, 0, 1], [1.0, 3.0, 3.0, 1.0])
    """
    window = check_count(window, f"{who}: window", 1, _MOST_WINDOW)
    min_count = check_count(min_count, f"{who}: min_count")
    seed = check_count(seed, f"{who}: seed", 0)
    if max_words is not None:
        max_words = check_count(max_words, f"{who}: max_words")
    is_share = subsample is None or (is_number(subsample) and 0 <= subsample < np.inf)
    if not is_share:
        raise ValueError(
            f"{who}: subsample must be None or a number of at least 0, as 1e-4. Got {subsample!r}."
        )
    n_subsamples = check_count(n_subsamples, f"{who}: n_subsamples")
    if weighting not in _WEIGHTINGS:
        raise ValueError(f"{who}: weighting must be 'linear' or 'uniform'. Got {weighting!r}.")
    n_threads = count_threads(n_jobs, f"{who}: n_jobs")
    if allowed_bytes is None:
        free = available_bytes()
        allowed_bytes = 2**40 if free is None else free // 2
    else:
        allowed_bytes = check_count(allowed_bytes, f"{who}: allowed_bytes", 0)

    corpus = read_corpus(
        sentences,
        min_count=min_count,
        max_words=max_words,
        allowed=allowed_bytes // 4,
        who=who,
    )
    if weighting == "linear":
        weights, unit = np.arange(window, 0, -1, dtype=np.uint32), window
    else:
        weights, unit = np.ones(window, np.uint32), 1
    limits = keep_limits(corpus.frequencies, subsample)
    n_times = n_subsamples if (limits < ALWAYS).any() else 1
    counting = _Counting(corpus, weights, unit, n_times, allowed_bytes, n_threads, who)
    with Team(n_threads) as team:
        for number in range(n_times):
            key, is_last = subsampling_key(seed, number), number + 1 == n_times
            for text, first, last in counting.blocks(limits, key, is_last=is_last):
                counting.add_block(team, text, first, last)
        counting.sum_blocks(team)
    return WordCounts(corpus.words, corpus.frequencies, *counting.result(allowed_bytes // 2))


class _Counting:
    """The matrix while it comes about: for each block and range of words, an array in `parts`.

    A part has columns, uint32, in its first line and weights, uint32, in the second. After
    ``sum_blocks`` there is one for each range, with the bits of float32 counts in the second line.
    The corpus is gone through `n_times`.
    """

    def __init__(
        self,
        corpus: Corpus,
        weights: np.ndarray,
        unit: int,
        n_times: int,
        allowed: int,
        n_threads: int,
        who: str,
    ) -> None:
        self.corpus, self.weights, self.who = corpus, weights, who
        self.unit = unit * n_times
        n_words, window = len(corpus.words), len(weights)

        # 1. The block: 4 bytes each for the word and the position.
        fewest, most = _BLOCK
        per_position = 2 * int(weights.sum())  # of all pairs of an occurrence
        room = int(np.clip(allowed // 4 // 8, fewest, most))
        self.n_block = max(1, min(room, _MOST_WEIGHT // per_position, corpus.n_tokens))
        n_blocks = n_times * -(-2 * corpus.n_tokens // self.n_block)  # with the ends of sentences

        # 2. Ranges of rows, by the entries that they can have.
        most_entries = np.minimum(2 * window * n_times * corpus.frequencies, n_blocks * n_words)
        ends = np.cumsum(most_entries)
        fewest, most = _RANGE
        together = np.clip(ends[-1] // _MOST_RANGES, fewest, most)
        together = max(1, min(together, allowed // 4 // 8 // n_threads))
        last_of_range = np.flatnonzero(np.diff((ends - 1) // together, append=-1))
        self.ranges = np.concatenate([[0], last_of_range + 1]).tolist()
        self.n_ranges = len(self.ranges) - 1

        self._spill = Spill(allowed // 4, who, "counts")
        self._spill_sums = Spill(allowed // 4, who, "counts")
        self._lock = threading.Lock()
        self.parts: list[list[np.ndarray | None]] = []
        self.lengths: list[np.ndarray] = []  # of the rows of each block

    def blocks(
        self, limits: np.ndarray, key: np.uint64, *, is_last: bool
    ) -> Iterator[tuple[np.ndarray, int, int]]:
        """Yield a text and the range in it whose contexts are to be counted.

        The text has a window, or the end of a sentence, on both sides of the range. The array is
        used again. Occurrences are drawn with a key; after the last time, the corpus is gone.
        """
        from sklearn_xc.kernels.words.kept_words import keep_words
        from sklearn_xc.kernels.words.word_numbers import END

        corpus, window = self.corpus, len(self.weights)
        most = min(self.n_block, _MOST_PIECE)
        text = np.empty(self.n_block + most + 3 * window + 2, np.int32)
        text[0] = END
        first = n = 1
        position, is_open = 0, False
        for numbers in corpus.pieces(most, is_last=is_last):
            position, is_open, n = keep_words(
                numbers, corpus.new_numbers, limits, key, position, is_open, text, n
            )
            if n - window - first >= self.n_block:
                yield text, first, first + self.n_block
                first += self.n_block
                before = max(0, first - window)
                first -= before
                text[: n - before] = text[before:n]
                n -= before
        text[n] = END
        while True:  # also if nothing stays
            last = min(first + self.n_block, n)
            yield text, first, last
            if last == n:
                return
            first = last

    def add_block(self, team: Team, text: np.ndarray, first: int, last: int) -> None:
        """Count the contexts of the words in a range of a text."""
        from sklearn_xc.kernels.words.context_counts import (
            count_contexts_of_words,
            order_by_word,
        )
        from sklearn_xc.kernels.words.sparse_sums import new_sums

        n_words = len(self.corpus.words)
        starts = np.zeros(n_words + 1, np.int64)
        positions = np.empty(last - first, np.int32)
        order_by_word(text, first, last, starts, positions)
        most_entries = np.minimum(2 * len(self.weights) * np.diff(starts), n_words)
        most = int(np.add.reduceat(most_entries, self.ranges[:-1]).max())
        rooms = [np.empty((2, most + 1), np.uint32) for _ in range(team.n_workers)]
        sums = [new_sums(n_words, np.uint32) for _ in range(team.n_workers)]
        parts: list[np.ndarray | None] = [None] * self.n_ranges
        lengths = np.empty(n_words, np.int32)

        def count(worker: int, which: int) -> None:
            low, high = self.ranges[which], self.ranges[which + 1]
            room = rooms[worker]
            n = count_contexts_of_words(
                text, starts, positions, low, high, self.weights, *sums[worker],
                room[0], room[1], lengths[low:high],
            )  # fmt: skip
            with self._lock:
                parts[which] = self._spill.keep(room[:, :n])

        _share(team, self.n_ranges, count)
        self.parts.append(parts)
        self.lengths.append(lengths)

    def sum_blocks(self, team: Team) -> None:
        """Sum the blocks, and turn weights into counts."""
        if len(self.parts) == 1:
            for part in self.parts[0]:
                assert part is not None
                part.view(np.float32)[1] = part[1] / self.unit
            return
        from sklearn_xc.kernels.words.sparse_sums import new_sums

        n_words = len(self.corpus.words)
        sums = [new_sums(n_words, np.int64) for _ in range(team.n_workers)]
        lengths = np.zeros(n_words, np.int32)
        parts: list[np.ndarray | None] = [None] * self.n_ranges

        def add(worker: int, which: int) -> None:
            parts[which] = self._sum_of_range(which, sums[worker], lengths)

        _share(team, self.n_ranges, add)
        self.parts, self.lengths = [parts], [lengths]

    def _sum_of_range(self, which: int, sums: tuple, lengths: np.ndarray) -> np.ndarray:
        """Return the sum of what the blocks have for a range of words."""
        from sklearn_xc.kernels.words.context_counts import add_rows

        low, high = self.ranges[which], self.ranges[which + 1]
        parts = [of_block[which] for of_block in self.parts]
        rows = np.concatenate([part for part in parts if part is not None], axis=1)
        starts = np.zeros((len(parts), high - low + 1), np.int64)
        for k, of_block in enumerate(self.lengths):
            np.cumsum(of_block[low:high], out=starts[k, 1:])
        starts[1:] += np.cumsum(starts[:-1, -1])[:, None]
        for of_parts in self.parts:
            _drop(of_parts, which)
        found = np.empty((2, rows.shape[1] + 1), np.uint32)
        weights = np.empty(rows.shape[1] + 1, np.int64)
        n = add_rows(rows[0], rows[1], starts, *sums, found[0], weights, lengths[low:high])
        found.view(np.float32)[1, :n] = weights[:n] / self.unit
        with self._lock:
            return self._spill_sums.keep(found[:, :n])

    def result(self, allowed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the CSR arrays, in files if they are more than so many bytes."""
        indptr = np.zeros(len(self.corpus.words) + 1, np.int64)
        np.cumsum(self.lengths[0], out=indptr[1:])
        nnz = int(indptr[-1])
        make = maker(8 * nnz > allowed, self.who)
        indices, counts = make(nnz, np.int32), make(nnz, np.float32)
        for which, (low, high) in enumerate(zip(self.ranges, self.ranges[1:], strict=False)):
            part = self.parts[0][which]
            assert part is not None
            indices[indptr[low] : indptr[high]] = part[0]
            counts[indptr[low] : indptr[high]] = part.view(np.float32)[1]
            _drop(self.parts[0], which)
        return indptr, indices, counts


def _drop(parts: list[np.ndarray | None], which: int) -> None:
    """Give back what a part takes."""
    part, parts[which] = parts[which], None
    if part is not None and part.size:
        release(part.reshape(-1), part.size)


def _share(team: Team, n: int, work: Callable[[int, int], None]) -> None:
    """Call ``work(worker, i)`` for i from 0 to n, until one fails, as workers are free."""
    left = deque(range(n))

    def run(worker: int) -> None:
        while left:
            try:
                i = left.popleft()
            except IndexError:  # another one was faster
                return
            try:
                work(worker, i)
            except BaseException:
                left.clear()
                raise

    try:
        team.run(run)
    except BaseException:  # an interrupt, which only the thread that waits is told of
        left.clear()
        raise
