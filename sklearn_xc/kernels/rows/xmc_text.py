"""The byte parser behind :func:`sklearn_xc.datasets.load_xmc_file`.

It knows integers only. A decimal number leaves as a mantissa and a power of ten, and numpy makes
the quotient outside: one division of two exactly representable numbers is correctly rounded, and
the fast-math flags of the kernels would not promise that division.
"""

import numpy as np

from sklearn_xc.kernels.compiling.jit import inlined, kernel

# Status codes.
OK = 0
TOO_MANY_ROWS = 1
BAD_LABEL = 2
LABEL_RANGE = 3
BAD_PAIR = 4
FEATURE_RANGE = 5
BAD_VALUE = 6

# Exponent of a number that Python reads: mantissa_out then holds the place of its text.
HARD = 127
LENGTH_BITS = 31

_ENOUGH = 1 << 32  # any larger number is out of range as well, and cannot overflow
_FULL = 100_000_000_000_000_000  # 10**17: one more digit still fits into int64
_EXACT = 1 << 53
_LARGEST_POWER = 22  # 10.0**22 is the largest power of ten that a float64 holds exactly


@inlined
def _is_end(text, p):
    """Tell whether a token ends at `p`: a blank, a tab or the end of the line."""
    c = text[np.uint64(p)]
    return c == 32 or c == 9 or c == 10 or (c == 13 and text[np.uint64(p + 1)] == 10)


@inlined
def _read_digits(text, p):
    """Return the number whose digits start at `p`, 0 without any, and the position behind them."""
    number = 0
    c = text[np.uint64(p)]
    while np.uint8(c - 48) < 10:
        if number < _ENOUGH:
            number = number * 10 + c - 48
        p += 1
        c = text[np.uint64(p)]
    return number, p


@inlined
def _read_mantissa(text, p):
    """Return the mantissa and exponent of digits with a point, whether it is hard, and the end.

    Digits past the 18th are dropped; the number is hard then. The end is -1 without a digit.
    """
    mantissa, exponent, hard, n_digits = 0, 0, False, 0
    for part in range(2):
        c = text[np.uint64(p)]
        if part == 1:
            if c != 46:
                break
            p += 1
            c = text[np.uint64(p)]
        while np.uint8(c - 48) < 10:
            if mantissa < _FULL:
                mantissa = mantissa * 10 + c - 48
                exponent -= part
            else:
                hard = True
            n_digits += 1
            p += 1
            c = text[np.uint64(p)]
    return mantissa, exponent, hard, p if n_digits else -1


@inlined
def _read_decimal(text, p):
    """Return mantissa, exponent and end of a decimal number; the end is -1 if there is none.

    The exponent is ``HARD`` where a product with a power of ten would not be exact: then Python
    reads the number. An integer cannot hold the sign of minus zero, which is hard too.
    """
    c = text[np.uint64(p)]
    negative = c == 45
    if negative or c == 43:
        p += 1
    mantissa, exponent, hard, p = _read_mantissa(text, p)
    if p >= 0 and (text[np.uint64(p)] == 101 or text[np.uint64(p)] == 69):
        p += 1
        c = text[np.uint64(p)]
        falls = c == 45
        if falls or c == 43:
            p += 1
        start = p
        number, p = _read_digits(text, p)
        exponent += -number if falls else number
        if p == start:
            p = -1
    if p >= 0 and not _is_end(text, p):
        p = -1
    hard |= mantissa > _EXACT or (negative and mantissa == 0)
    hard |= exponent < -_LARGEST_POWER or exponent > _LARGEST_POWER
    return -mantissa if negative else mantissa, HARD if hard else exponent, p


@kernel
def parse_rows_xmc(
    text,
    size,
    max_rows,
    n_features,
    n_labels,
    label_indptr_out,
    labels_out,
    feature_indptr_out,
    features_out,
    mantissa_out,
    exponent_out,
):
    """Parse whole lines ``l1,l2 f:v f:v`` into two CSR patterns and decimal numbers.

    Value ``i`` is ``mantissa_out[i] * 10.0**exponent_out[i]`` with |mantissa| at most 2**53
    and |exponent| at most 22, so that the one product or quotient is correctly rounded. Numbers
    that do not fit have exponent ``HARD`` and, as mantissa, ``start * 2**31 + length`` of their
    text; it is a well-formed finite decimal number that Python's ``float`` reads.

    Parameters
    ----------
    text : (>= size,) uint8
        Bytes to read; ``text[size - 1]`` is a newline.
    size : int
        Number of bytes to read, below 2**31.
    max_rows : int
        Number of rows at which to stop.
    n_features, n_labels : int
        Bounds of the two kinds of index, at most 2**31 - 1.
    label_indptr_out, feature_indptr_out : (n_rows + 1,) int64
        Row pointers, filled; at least one more than the newlines in `text`.
    labels_out : (>= (size + 1) // 2,) int32
        Labels, row after row in the order of the text, filled.
    features_out, mantissa_out, exponent_out : (>= size // 3,) int32, int64, int8
        Feature indices and numbers, in the order of the text, filled.

    Returns
    -------
    status : int
        ``OK``, or why the parser stopped; the rows before are complete.
    n_rows : int
        Complete rows.
    position : int
        Start of the offending token, or `size`.
    labels_rise, features_rise : bool
        Whether the indices of every row rise strictly. If not, some row is unsorted or has an
        index twice.
    """
    row, n_label_entries, n_pairs, p = 0, 0, 0, 0
    labels_rise = True
    features_rise = True
    label_indptr_out[0] = 0
    feature_indptr_out[0] = 0
    while p < size:
        if row == max_rows:
            return TOO_MANY_ROWS, row, p, labels_rise, features_rise

        # 1. Labels: comma-separated numbers at the very start of the line.
        line, last = p, -1
        is_label = not _is_end(text, p)
        while is_label:
            start = p
            number, p = _read_digits(text, p)
            c = text[np.uint64(p)]
            if c == 58 and start == line and p > start:  # "7:": the line has no labels
                p = line
                break
            is_label = c == 44
            if p == start or not (is_label or _is_end(text, p)):
                return BAD_LABEL, row, start, labels_rise, features_rise
            if number >= n_labels:
                return LABEL_RANGE, row, start, labels_rise, features_rise
            labels_rise &= number > last
            last = number
            labels_out[np.uint64(n_label_entries)] = number
            n_label_entries += 1
            p += is_label

        # 2. Pairs, until the line ends.
        last = -1
        while True:
            while text[np.uint64(p)] == 32 or text[np.uint64(p)] == 9:
                p += 1
            if text[np.uint64(p)] == 13 and text[np.uint64(p + 1)] == 10:
                p += 1
            if text[np.uint64(p)] == 10:
                break
            start = p
            number, p = _read_digits(text, p)
            if p == start or text[np.uint64(p)] != 58:
                return BAD_PAIR, row, start, labels_rise, features_rise
            if number >= n_features:
                return FEATURE_RANGE, row, start, labels_rise, features_rise
            features_rise &= number > last
            last = number
            value_start = p + 1
            mantissa, exponent, p = _read_decimal(text, value_start)
            if p < 0:
                return BAD_VALUE, row, start, labels_rise, features_rise
            if exponent == HARD:
                mantissa = (value_start << LENGTH_BITS) | (p - value_start)
            features_out[np.uint64(n_pairs)] = last
            mantissa_out[np.uint64(n_pairs)] = mantissa
            exponent_out[np.uint64(n_pairs)] = exponent
            n_pairs += 1

        # 3. The row is complete.
        p += 1
        row += 1
        label_indptr_out[np.uint64(row)] = n_label_entries
        feature_indptr_out[np.uint64(row)] = n_pairs
    return OK, row, size, labels_rise, features_rise
