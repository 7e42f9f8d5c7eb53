"""Counts of the words near each word, in a block of text ordered by word."""

import numpy as np

from sklearn_xc._compile.jit import kernel
from sklearn_xc.decomposition.skip_gram.kernels.sparse_sums import add, take

_ONE = np.uint64(1)


@kernel
def order_by_word(words, first, last, starts_out, positions_out):
    """Write where each word occurs, in rising order.

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
        Overwritten, and one place behind; columns rise in each row.
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
            n = take(sums, eights, columns_out, weights_out, n)
        lengths_out[w - np.uint64(first)] = n - before
    return n
