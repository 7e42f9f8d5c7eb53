"""How often words occur near each other in a corpus, as a sparse symmetric matrix.

::

    sentences -> word numbers, -1 after each sentence      in order of first appearance
              -> numbers of the words that are kept        by frequency, subsampled
              -> blocks of text, positions by word         -> rows of the matrix, summed

Weights are integers until the end, so that results depend neither on blocks nor on threads.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sklearn_xc._compile.arithmetic.sampling import mix_key
from sklearn_xc._input.arguments import as_native, check_count, is_number
from sklearn_xc._input.data import as_csr_rows, check_sparse, entry_places
from sklearn_xc._labels.names import as_name_array, check_label_names
from sklearn_xc._parallel.memory import require_bytes
from sklearn_xc._parallel.threads import Team, count_threads
from sklearn_xc.decomposition.skip_gram.kernels.counting import (
    END,
    count_contexts_of_words,
    keep_words,
    new_sums,
    order_by_word,
)

_MOST_WINDOW = 1000
#: Tokens that are numbered at a time, and most positions of a block.
_TOKENS, _BLOCK = 1 << 18, 1 << 24
#: Most entries that a range of rows can have, unless it is one row.
_RANGE = 1 << 22
#: Each count of a block fits into 32 bits.
_MOST_WEIGHT = 2**32 - 1
#: Limit of a word whose occurrences are all kept; draws are below it.
_ALWAYS = 2**53
#: Bytes per entry of the matrix while blocks are added.
_ENTRY = 24
#: Draws of the occurrences of frequent words; counts are means over them.
_DRAWS = 3
#: Count of contexts that never occur, where a logarithm is taken.
_LEAST_COUNT = 1e-3


class WordCounts(NamedTuple):
    """The words of a corpus and how often they occur near each other.

    Attributes
    ----------
    words : ndarray of str (dtype object) of shape (n_words,)
        Most frequent first; ties go to the word that appears first.
    frequencies : ndarray of int64 of shape (n_words,)
        Number of occurrences in the corpus, before subsampling.
    indptr : ndarray of int64 of shape (n_words + 1,)
        Row pointers of the matrix.
    indices : ndarray of int32 of shape (nnz,)
        Columns, in increasing order within each row.
    counts : ndarray of float32 of shape (nnz,)
        Positive; the matrix is symmetric.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.decomposition.skip_gram import count_contexts
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
    seed: int = 0,
    allowed_bytes: int | None = None,
    n_jobs: int | None = None,
    caller: str = "count_contexts",
) -> WordCounts:
    """Count how often words occur near each other in a corpus.

    Rare words are dropped, then some occurrences of frequent ones; neither takes up a place in the
    window. Then each ordered pair of occurrences in one sentence at distance d, at most `window`,
    adds ``(window - d + 1) / window`` to the count of its two words: the mean over word2vec's
    random windows. An occurrence is not a context of itself, but two occurrences of a word are
    contexts of each other and count twice.

    Parameters
    ----------
    sentences : iterable of list of str
        Lists, tuples or arrays of tokens, read once, so that a generator will do.
    window : int, default=8
        The largest distance between words in a pair, at most 1000.
    min_count : int, default=5
        Words that occur less often are dropped.
    max_words : int or None, default=None
        Maximum number of words to keep, the most frequent ones.
    subsample : float or None, default=1e-4
        An occurrence of a word with share f of all occurrences of kept words is kept with
        probability ``min(1, sqrt(subsample / f))``. The draw is a hash of the seed and of the
        position among all tokens; counts are means over three draws. None or 0 keeps all.
    seed : int, default=0
        Seed of the subsampling, not negative.
    allowed_bytes : int or None, default=None
        Most bytes that the counts may take. None allows what the machine has.
    n_jobs : int or None, default=None
        Number of threads. The result is the same, bit for bit, for any number.
    caller : str, default="count_contexts"
        Name of the estimator, for messages.

    Returns
    -------
    WordCounts

    Raises
    ------
    MemoryBudgetError
        If the counts do not fit.
    TypeError
        If a sentence is not a list of tokens, or a token is not a str.
    ValueError
        If there are no words, or none occurs `min_count` times; and for arguments out of range.

    Notes
    -----
    Time is linear in the number of tokens, which are kept at 4 bytes each. A distinct pair of words
    takes 16 bytes in the result, and up to 48 while it is made.

    Source: the pairs are those of [1]_; rare words and subsampling as in [2]_, whose own program
    uses a different probability.

    References
    ----------
    .. [1] T. Mikolov, K. Chen, G. Corrado and J. Dean, "Efficient estimation of word
       representations in vector space", ICLR workshop 2013.
    .. [2] T. Mikolov, I. Sutskever, K. Chen, G. Corrado and J. Dean, "Distributed representations
       of words and phrases and their compositionality", NeurIPS 2013.

    Examples
    --------
    >>> from sklearn_xc.decomposition.skip_gram import count_contexts
    >>> found = count_contexts(
    ...     [["a", "rose", "is", "a", "rose"]], window=2, min_count=2, subsample=None
    ... )
    >>> found.words.tolist(), found.frequencies.tolist()
    (['a', 'rose'], [2, 2])
    >>> found.indptr.tolist(), found.indices.tolist(), found.counts.tolist()
    ([0, 2, 4], [0, 1, 0, 1], [1.0, 3.0, 3.0, 1.0])
    """
    window = check_count(window, f"{caller}: window", 1, _MOST_WINDOW)
    min_count = check_count(min_count, f"{caller}: min_count")
    seed = check_count(seed, f"{caller}: seed", 0)
    if max_words is not None:
        max_words = check_count(max_words, f"{caller}: max_words")
    if subsample is not None and not (is_number(subsample) and 0 <= subsample < np.inf):
        raise ValueError(
            f"{caller}: subsample must be None or a number of at least 0, as 1e-4. Got "
            f"{subsample!r}."
        )
    n_threads = count_threads(n_jobs, f"{caller}: n_jobs")

    names, chunks = _number_words(sentences, caller)
    frequencies, kept = _kept_words(names, chunks, min_count, max_words, caller)
    new_numbers = np.full(len(names), -1, np.int32)
    new_numbers[kept] = np.arange(len(kept), dtype=np.int32)
    limits = _keep_limits(frequencies[kept], subsample)
    n_draws = 1 if (limits == _ALWAYS).all() else _DRAWS
    weights = np.arange(window, 0, -1, dtype=np.uint32)
    n_words = len(kept)
    total = sp.csr_array((n_words, n_words), dtype=np.int64)
    with Team(n_threads) as team:
        for number in range(n_draws):
            key = mix_key(seed & (2**64 - 1), 1 + number)
            for text in _blocks(chunks, new_numbers, limits, weights, key):
                total = total + _count_block(text, n_words, weights, team)
                require_bytes(
                    _ENTRY * total.nnz,
                    allowed_bytes,
                    f"counts of {total.nnz:,} pairs of words",
                    "Raise min_count, or set max_words.",
                    caller,
                )
    total.sort_indices()
    words = as_name_array([names[number] for number in kept.tolist()])
    counts = (total.data / (window * n_draws)).astype(np.float32)
    indptr = total.indptr.astype(np.int64)
    indices = total.indices.astype(np.int32)
    return WordCounts(words, frequencies[kept], indptr, indices, counts)


# From sentences to numbers


def _number_words(sentences: Any, caller: str) -> tuple[list[str], list[np.ndarray]]:
    """Return the distinct words, and chunks of their numbers, with -1 after each sentence."""
    numbers: dict[str, int] = {}
    chunks, tokens = [], []
    for sentence in _read_sentences(sentences, caller):
        tokens += [numbers.setdefault(word, len(numbers)) for word in sentence]
        tokens.append(END)
        if len(tokens) >= _TOKENS:
            chunks.append(np.array(tokens, np.int32))
            tokens = []
    chunks.append(np.array(tokens, np.int32))
    return list(numbers), chunks


def _read_sentences(sentences: Any, caller: str) -> Iterator[list[str]]:
    if isinstance(sentences, str | bytes) or not hasattr(sentences, "__iter__"):
        raise TypeError(
            f"{caller}: sentences must be an iterable of lists of tokens, as (line.split() for "
            f"line in file). Got {sentences!r:.80}."
        )
    for at, sentence in enumerate(sentences):
        tokens = sentence.tolist() if isinstance(sentence, np.ndarray) else sentence
        is_list = isinstance(tokens, list | tuple)
        if not is_list or not all(isinstance(token, str) for token in tokens):
            raise TypeError(
                f"{caller}: each sentence must be a list of tokens (str), as by text.split(). "
                f"Got {sentence!r:.80} as sentence {at}, counted from 0."
            )
        yield tokens


def _kept_words(
    names: list[str], chunks: list[np.ndarray], min_count: int, max_words: int | None, caller: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the frequencies of all words, and the numbers of those kept, most frequent first."""
    frequencies = np.zeros(len(names), np.int64)
    for chunk in chunks:
        frequencies += np.bincount(chunk[chunk >= 0], minlength=len(names))
    if not len(names):
        raise ValueError(
            f"{caller}: sentences must have words. Got none; a generator is empty the second time."
        )
    kept = np.argsort(-frequencies, kind="stable")
    kept = kept[frequencies[kept] >= min_count][:max_words]
    if not len(kept):
        most = int(np.argmax(frequencies))
        raise ValueError(
            f"{caller}: no word occurs min_count={min_count} times; lower min_count, or give more "
            f"sentences. The most frequent word, {names[most]!r:.80}, occurs "
            f"{frequencies[most]:,} times."
        )
    return frequencies, kept


def _keep_limits(frequencies: np.ndarray, subsample: float | None) -> np.ndarray:
    """Return, for each word, the limit below which a draw of 53 bits keeps an occurrence."""
    if not subsample:
        return np.full(len(frequencies), _ALWAYS, np.uint64)
    shares = frequencies / frequencies.sum()
    return np.rint(np.sqrt(np.minimum(1.0, subsample / shares)) * float(_ALWAYS)).astype(np.uint64)


# From numbers to counts


def _blocks(
    chunks: list[np.ndarray],
    new_numbers: np.ndarray,
    limits: np.ndarray,
    weights: np.ndarray,
    key: np.uint64,
) -> Iterator[tuple[np.ndarray, int, int]]:
    """Yield (text, first, last): texts of kept words, and the range of positions to count.

    On both sides of the range the text has a window, or the end of a sentence.
    """
    window = len(weights)
    size = max(1, min(_BLOCK, _MOST_WEIGHT // (2 * int(weights.sum()))))
    text = np.array([END], np.int32)
    first = 1
    position = 0
    is_open = False
    for chunk in chunks:
        kept = np.empty(len(chunk), np.int32)
        how = limits, key, position, is_open, kept
        position, is_open, n = keep_words(chunk, new_numbers, *how)
        text = np.concatenate([text, kept[:n]])
        while len(text) - window - first >= size:
            yield text, first, first + size
            first += size
            before = max(0, first - window)
            text, first = text[before:], first - before
    text = np.append(text, np.int32(END))
    while first < len(text) - 1:
        last = min(first + size, len(text) - 1)
        yield text, first, last
        first = last


def _count_block(
    block: tuple[np.ndarray, int, int], n_words: int, weights: np.ndarray, team: Team
) -> sp.csr_array:
    """Return the summed integer weights of all pairs that begin in a block."""
    text, first, last = block
    starts = np.zeros(n_words + 1, np.int64)
    positions = np.empty(last - first, np.int32)
    order_by_word(text, first, last, starts, positions)
    most = np.minimum(2 * len(weights) * np.diff(starts), n_words)
    ends = np.cumsum(most)
    cuts = np.flatnonzero(np.diff((ends - 1) // _RANGE, append=-2)) + 1
    ranges = list(zip([0, *cuts[:-1].tolist()], cuts.tolist(), strict=True))
    parts: list[Any] = [None] * len(ranges)
    lengths = np.empty(n_words, np.int32)

    def count(worker: int) -> None:
        sums = new_sums(n_words, np.uint32)
        for at in range(worker, len(ranges), team.n_workers):
            low, high = ranges[at]
            room = np.empty((2, int(most[low:high].sum()) + 1), np.uint32)
            of_text = text, starts, positions, low, high, weights
            n = count_contexts_of_words(*of_text, sums, room[0], room[1], lengths[low:high])
            parts[at] = room[:, :n].copy()

    team.run(count)
    columns, values = np.concatenate(parts, axis=1)
    indptr = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    matrix = values.astype(np.int64), columns.astype(np.int32), indptr
    return sp.csr_array(matrix, shape=(n_words, n_words))


# Counts as training reads them


@dataclass(frozen=True)
class Cooccurrences:
    """Counts of words with contexts, in CSR form.

    Attributes
    ----------
    indptr : ndarray of int64 of shape (n_words + 1,)
    contexts : ndarray of int32
        In ascending order within each row.
    counts : ndarray of float
        Positive.
    word_totals : ndarray of float64 of shape (n_words,)
        Row sums.
    context_totals : ndarray of float64 of shape (n_contexts,)
        Column sums.
    """

    indptr: np.ndarray
    contexts: np.ndarray
    counts: np.ndarray
    word_totals: np.ndarray
    context_totals: np.ndarray

    @classmethod
    def of(cls, X: Any, caller: str) -> "Cooccurrences":
        """Return the counts of a matrix, dense or sparse; ValueError if there are none."""
        check_sparse(X, "X", caller)
        if not sp.issparse(X):
            X = as_native(X)
        if X.dtype.kind not in "biuf":
            raise TypeError(f"{caller}: X must hold numbers, counts of pairs. Got dtype {X.dtype}.")
        matrix = sp.csr_array(X).astype(np.float32, copy=False)
        wrong = matrix.data[~((matrix.data >= 0) & (matrix.data < np.inf))]
        if wrong.size:
            raise ValueError(
                f"{caller}: X must hold finite counts, none negative. Got {wrong[0]:g}."
            )
        indptr, contexts, counts = as_csr_rows(matrix).without_zeros().arrays
        word_totals, context_totals = (matrix.sum(axis=axis, dtype=np.float64) for axis in (1, 0))
        if word_totals.sum() <= 0:
            raise ValueError(
                f"{caller}: X must hold a pair of words that are near each other. Got none: lower "
                "min_count, or set subsample=None."
            )
        return cls(indptr, contexts, counts, word_totals, context_totals)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of words and of contexts."""
        return len(self.word_totals), len(self.context_totals)

    @property
    def log_shares(self) -> np.ndarray:
        """Logarithms of the contexts' shares of all counts; of 1e-3 for contexts without any."""
        return np.log(np.maximum(self.context_totals, _LEAST_COUNT) / self.total)

    @property
    def total(self) -> float:
        """Sum of all counts."""
        return float(self.word_totals.sum())

    def of_rows(self, words: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, ...]:
        """Return row pointers, contexts, and the contexts' shares of the counts, of some words."""
        starts = self.indptr[words]
        lengths = self.indptr[words + 1] - starts
        at, bounds = entry_places(starts, lengths)
        shares = self.counts[at] / np.repeat(self.word_totals[words], lengths)
        return bounds, self.contexts[at], shares.astype(dtype, copy=False)


def read_counts(
    model: Any, X: Any, words: Any, contexts: Any, seed: int, allowed: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Cooccurrences]:
    """Return the counts of sentences, or of a matrix, by the parameters of an estimator.

    Before the counts of pairs come the words, the contexts, and how often each word occurs.

    Raises
    ------
    ValueError, TypeError
        For an X that is neither, has no pairs, or does not go with the names.
    """
    caller = type(model).__name__
    if _is_matrix(X):
        counts = Cooccurrences.of(X, caller)
        n_words, n_contexts = counts.shape
        rows = columns = _names(words, n_words, f"{caller}: words")
        if contexts is not None or n_words != n_contexts:
            columns = _names(contexts, n_contexts, f"{caller}: contexts")
        return rows, columns, np.rint(counts.word_totals).astype(np.int64), counts
    for name, given in (("words", words), ("contexts", contexts)):
        if given is not None:
            raise ValueError(f"{caller}: {name} must be None where X is sentences. Got {given!r}.")
    found = count_contexts(
        X,
        window=int(model.window),
        min_count=int(model.min_count),
        max_words=model.max_words,
        subsample=model.subsample,
        seed=seed,
        allowed_bytes=allowed,
        n_jobs=model.n_jobs,
        caller=caller,
    )
    n = len(found.words)
    matrix = sp.csr_array((found.counts, found.indices, found.indptr), shape=(n, n))
    return found.words, found.words, found.frequencies, Cooccurrences.of(matrix, caller)


def _is_matrix(X: Any) -> bool:
    """Return whether X is a matrix of numbers, not sentences."""
    if sp.issparse(X) or hasattr(X, "dtypes"):
        return True
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"


def _names(given: Any, n: int, name: str) -> np.ndarray:
    """Return n names as texts."""
    names = check_label_names(range(n) if given is None else given, n, name)
    return as_name_array([*map(str, names)])
