"""Numbers for the words of a text, in order of first appearance, from its bytes.

The words are in an arena, one after another with a newline behind each. An open-addressing table
leads from the hash of a word to its number.
"""

import numpy as np

from sklearn_xc.kernels.compiling.jit import inlined, kernel
from sklearn_xc.kernels.softmax.negatives import mix

#: Stands in place of a number where a sentence ends.
END = -1

_START = np.uint64(0xCBF29CE484222325)  # of FNV-1a, which is mixed once more at the end
_PRIME = np.uint64(0x100000001B3)
_ONE = np.uint64(1)
_NEWLINE = np.uint8(10)


@inlined
def _is_space(byte):
    """Return whether a byte is a space, tab, newline, vertical tab, form feed or return."""
    return byte == 32 or np.uint8(byte - 9) < 5


@inlined
def _is_at(arena, start, text, first, length):
    """Return whether the bytes of a word are those at `first` in the text."""
    for t in range(np.uint64(length)):
        if arena[np.uint64(start) + t] != text[np.uint64(first) + t]:
            return False
    return True


@kernel
def number_words(
    text,
    first,
    size,
    is_open,
    hash_mask,
    table,
    hashes,
    starts,
    arena,
    frequencies,
    n_words,
    numbers_out,
    n_out,
):
    """Write the number of each word of a text, and ``END`` behind the last one of each line.

    Lines without words leave nothing.

    Parameters
    ----------
    text : ndarray of uint8 of shape (> size,)
        ``text[size]`` is a space, as sentinel.
    first, size : int
        The bytes from `first` up to `size` are read.
    is_open : bool
        Whether there are words since the last ``END``.
    hash_mask : uint64
        The bits of hashes that count: all, but in tests of collisions.
    table : ndarray of int32
        Numbers by hash, -1 where none is; its length is a power of two. Changed.
    hashes : ndarray of uint64 of shape (capacity,)
        Of each word. Changed.
    starts : ndarray of int64 of shape (capacity + 1,)
        Where each word begins in the arena, and where the next one will. Changed.
    arena : ndarray of uint8
        The words, with room for ``size - first + 1`` bytes more. Changed.
    frequencies : ndarray of int64 of shape (capacity,)
        How often each word was met. Changed.
    n_words : int
        Words known, at most the capacity, which is below the length of the table.
    numbers_out : ndarray of int32
        Written from `n_out`, at most ``size - first + 1`` numbers.
    n_out : int

    Returns
    -------
    position : int
        Where to go on: `size`, the start of a word that no space ends, or of one that is new
        while there is no room for it.
    is_open : bool
    n_words, n_out : int
    is_full : bool
        Whether a new word found no room.
    """
    mask = np.uint64(table.shape[0] - 1)
    p = np.uint64(first)
    end = np.uint64(size)
    while p < end:
        # 1. The next word, and its hash.
        byte = text[p]
        if _is_space(byte):
            if is_open and byte == _NEWLINE:
                numbers_out[np.uint64(n_out)] = END
                n_out += 1
                is_open = False
            p += _ONE
            continue
        start = p
        code = _START
        while not _is_space(byte):
            code = (code ^ np.uint64(byte)) * _PRIME
            p += _ONE
            byte = text[p]
        if p == end:
            return np.int64(start), is_open, n_words, n_out, False
        code = mix(code) & hash_mask
        length = p - start

        # 2. Its number.
        slot = code & mask
        while True:
            number = table[slot]
            if number < 0:
                break
            known = np.uint64(number)
            if (
                hashes[known] == code
                and np.uint64(starts[known + _ONE] - starts[known]) == length + _ONE
                and _is_at(arena, starts[known], text, start, length)
            ):
                break
            slot = (slot + _ONE) & mask

        # 3. A new word goes into the table and the arena.
        if number < 0:
            if n_words == hashes.shape[0]:
                return np.int64(start), is_open, n_words, n_out, True
            number = np.int32(n_words)
            new = np.uint64(n_words)
            table[slot] = number
            hashes[new] = code
            frequencies[new] = 0
            place = np.uint64(starts[new])
            for t in range(length):
                arena[place + t] = text[start + t]
            arena[place + length] = _NEWLINE
            starts[new + _ONE] = np.int64(place + length + _ONE)
            n_words += 1
        frequencies[np.uint64(number)] += 1
        numbers_out[np.uint64(n_out)] = number
        n_out += 1
        is_open = True
    return np.int64(p), is_open, n_words, n_out, False


@kernel
def fill_table(hashes, n_words, table):
    """Enter words into a table.

    Parameters
    ----------
    hashes : ndarray of uint64 of shape (>= n_words,)
        Of each word.
    n_words : int
        Below the length of the table.
    table : ndarray of int32
        All -1, of a length that is a power of two. Changed.
    """
    mask = np.uint64(table.shape[0] - 1)
    for number in range(np.uint64(n_words)):
        slot = hashes[number] & mask
        while table[slot] >= 0:
            slot = (slot + _ONE) & mask
        table[slot] = np.int32(number)
