"""Counts of the words near each word: words that are kept, sums by column, rows of counts."""

import numpy as np

from sklearn_xc._compile.arithmetic.sampling import mix
from sklearn_xc._compile.jit import inlined, kernel

#: Ends a sentence.
END = -1
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE, _3, _11 = (np.uint64(number) for number in (1, 3, 11))


@kernel
def keep_words(numbers, new_numbers, limits, key, position, is_open, words_out):
    """Write the new numbers of the occurrences that are kept.

    An occurrence is kept if 53 random bits, a function of the key and its position in the text, are
    below the limit of its word.

    Parameters
    ----------
    numbers : ndarray of int32
        Words, and ``END`` where a sentence ends.
    new_numbers : ndarray of int32
        The new number of each word, -1 for one that is dropped.
    limits : ndarray of uint64
        Of each new number; 2**53 keeps all.
    key : uint64
        Of the seed.
    position : int
        Number of words in earlier calls.
    is_open : bool
        Whether words were kept since the last ``END`` written.
    words_out : ndarray of int32
        Overwritten at the beginning; as long as `numbers`.

    Returns
    -------
    position : int
    is_open : bool
    n_out : int
        Number of words and ``END`` written.
    """
    at = np.uint64(0)
    place = np.uint64(position)
    for t in range(np.uint64(numbers.shape[0])):
        number = numbers[t]
        if number < 0:
            if is_open:
                words_out[at] = END
                at += _ONE
                is_open = False
            continue
        place += _ONE
        word = new_numbers[np.uint64(number)]
        if word >= 0 and (mix(key + place * _GOLDEN) >> _11) < limits[np.uint64(word)]:
            words_out[at] = word
            at += _ONE
            is_open = True
    return np.int64(place), is_open, np.int64(at)


def new_sums(n_columns, dtype):
    """Return empty sums, to be added to in any order and read in the order of columns.

    A byte marks each group of eight columns with an addition. It is written unconditionally: an
    unpredictable test whether a column is new made counting two to three times slower.

    Parameters
    ----------
    n_columns : int
    dtype : dtype
        Of integers.

    Returns
    -------
    sums : ndarray of `dtype` of shape (>= n_columns,)
    marks : ndarray of uint8
        1 for each eight columns with an addition.
    eights : ndarray of uint64
        The same memory, eight marks at a time.
    """
    eights = np.zeros(n_columns // 64 + 1, np.uint64)
    return np.zeros(64 * len(eights), dtype), eights.view(np.uint8), eights


@inlined
def add(sums, marks, column, addend):
    """Add a positive number to the sum of a column, a uint64."""
    marks[column >> _3] = 1
    sums[column] += addend


@inlined
def take(sums, marks, eights, columns_out, sums_out, n_out):
    """Write columns and sums from `n_out` on, reset them, and return the new `n_out`.

    One further place is overwritten as well.
    """
    at = np.uint64(n_out)
    for i in range(np.uint64(eights.shape[0])):
        if eights[i] == 0:
            continue
        for group in range(i << _3, (i + _ONE) << _3):
            if marks[group] == 0:
                continue
            marks[group] = 0
            for column in range(group << _3, (group + _ONE) << _3):
                columns_out[at] = column
                sums_out[at] = sums[column]
                at += np.uint64(sums[column] != 0)
                sums[column] = 0
    return np.int64(at)


@kernel
def order_by_word(words, first, last, starts_out, positions_out):
    """Write where each word occurs, in ascending order.

    Parameters
    ----------
    words : ndarray of int32
        A text; negative numbers are ends of sentences.
    first, last : int
        The positions from `first` up to, not including, `last` are ordered.
    starts_out : ndarray of int64 of shape (n_words + 1,)
        All 0 on entry. ``positions_out[starts_out[w]:starts_out[w + 1]]`` are the positions of w.
    positions_out : ndarray of int32 of shape (>= last - first,)
        Overwritten.
    """
    n_words = np.uint64(starts_out.shape[0]) - _ONE
    for p in range(np.uint64(first), np.uint64(last)):
        if words[p] >= 0:
            starts_out[np.uint64(words[p])] += 1
    n = 0
    for w in range(n_words + _ONE):
        n += starts_out[w]
        starts_out[w] = n  # where the word ends: it is filled from its end
    for t in range(np.uint64(last - first)):
        place = np.uint64(last) - _ONE - t
        if words[place] >= 0:
            word = np.uint64(words[place])
            starts_out[word] -= 1
            positions_out[np.uint64(starts_out[word])] = np.int32(place)


@kernel
def count_contexts_of_words(
    words,
    starts,
    positions,
    first,
    last,
    weights,
    accumulator,
    columns_out,
    weights_out,
    lengths_out,
):
    """Write the weights of all words near some words, row after row; return how many there are.

    Parameters
    ----------
    words : ndarray of int32
        A text, in which a negative number ends a sentence. Around each position there are as many
        words as the window has, or the end of a sentence.
    starts, positions : ndarray of int64 and int32
        As of ``order_by_word``.
    first, last : int
        The words from `first` up to, not including, `last` are counted.
    weights : ndarray of uint32 of shape (window,)
        Of a word at distance 1, 2, ..., positive.
    accumulator : tuple of ndarray
        Of ``new_sums``, of uint32, for all words; all zeros on entry and on return.
    columns_out, weights_out : ndarray of uint32
        Overwritten, with one more place; columns ascend within each row.
    lengths_out : ndarray of int32 of shape (last - first,)
        Overwritten with the number of columns of each row.
    """
    sums, marks, eights = accumulator
    n = 0
    window = np.uint64(weights.shape[0])
    for w in range(np.uint64(first), np.uint64(last)):
        for t in range(np.uint64(starts[w]), np.uint64(starts[w + _ONE])):
            p = np.uint64(positions[t])
            for d in range(window):
                word = words[p - d - _ONE]
                if word < 0:
                    break
                add(sums, marks, np.uint64(word), weights[d])
            for d in range(window):
                word = words[p + d + _ONE]
                if word < 0:
                    break
                add(sums, marks, np.uint64(word), weights[d])
        before = n
        if starts[w] < starts[w + _ONE]:
            n = take(sums, marks, eights, columns_out, weights_out, n)
        lengths_out[w - np.uint64(first)] = n - before
    return n
