"""Drops the rare words of a text and some occurrences of frequent ones."""

import numpy as np

from sklearn_xc._compile.arithmetic.sampling import mix
from sklearn_xc._compile.jit import kernel

#: Ends a sentence.
END = -1
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)
_11 = np.uint64(11)


@kernel
def keep_words(numbers, new_numbers, limits, key, position, is_open, words_out, n_out):
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
        Written from `n_out`, at most as many as `numbers` has.
    n_out : int

    Returns
    -------
    position : int
    is_open : bool
    n_out : int
    """
    at = np.uint64(n_out)
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
