"""The byte parser behind :func:`sklearn_xc.datasets.load_xmc_file`.

It knows integers only. A decimal number leaves as a mantissa and a power of ten, and numpy makes
the quotient outside: one division of two exactly representable numbers is correctly rounded, and
the fast-math flags of the kernels would not promise that division.
"""

import numpy as np

from sklearn_xc._compile.jit import inlined, kernel

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
def _read_digits(text, p):
    """Return the number whose digits start at `p`, 0 without any, and the position behind them."""
    number = 0
    c = text[np.uint64(p)]
    while 0 <= c - 48 < 10:
        if number < _ENOUGH:
            number = number * 10 + c - 48
        p += 1
        c = text[np.uint64(p)]
    return number, p


@inlined
def _read_exponent(text, p):
    """Return the signed number at `p`, behind an "e", and the position behind it, -1 for none."""
    c = text[np.uint64(p)]
    falls = c == 45
    if falls or c == 43:
        p += 1
    start = p
    number, p = _read_digits(text, p)
    return -number if falls else number, p if p > start else -1


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
        Where the offending token starts, or `size`.
    labels_rise, features_rise : bool
        Whether the indices of every row rise strictly. If not, some row is unsorted or has an
        index twice.
    """
    row, n_label_entries, n_pairs = 0, 0, 0
    labels_rise, features_rise = True, True
    label_indptr_out[0] = feature_indptr_out[0] = 0
    p = 0
    while p < size:
        if row == max_rows:
            return TOO_MANY_ROWS, row, p, labels_rise, features_rise
        c = text[np.uint64(p)]

        # 1. Labels: comma-separated numbers at the very start of the line.
        line, last = p, -1
        is_label = c != 32 and c != 9 and c != 10 and not (c == 13 and text[np.uint64(p + 1)] == 10)
        while is_label:
            start = p
            number, p = _read_digits(text, start)
            c = text[np.uint64(p)]
            if c == 58 and start == line and p > start:  # "7:": the line has no labels
                p = line
                c = text[np.uint64(p)]
                break
            more = c == 44
            ends = c == 32 or c == 9 or c == 10 or (c == 13 and text[np.uint64(p + 1)] == 10)
            if p == start or not (more or ends):
                return BAD_LABEL, row, start, labels_rise, features_rise
            if number >= n_labels:
                return LABEL_RANGE, row, start, labels_rise, features_rise
            labels_rise &= number > last
            last = number
            labels_out[np.uint64(n_label_entries)] = number
            n_label_entries += 1
            if ends:
                break
            p += 1
            c = text[np.uint64(p)]

        # 2. Pairs, until the line ends.
        last = -1
        while True:
            while c == 32 or c == 9:
                p += 1
                c = text[np.uint64(p)]
            if c == 13 and text[np.uint64(p + 1)] == 10:
                p += 1
                c = text[np.uint64(p)]
            if c == 10:
                break

            # 2a. The feature.
            start = p
            number, p = _read_digits(text, start)
            c = text[np.uint64(p)]
            if p == start or c != 58:
                return BAD_PAIR, row, start, labels_rise, features_rise
            if number >= n_features:
                return FEATURE_RANGE, row, start, labels_rise, features_rise
            features_rise &= number > last
            last = number
            p += 1
            c = text[np.uint64(p)]

            # 2b. The digits of the value. Those past the 18th are dropped here; it is hard then.
            value_start = p
            negative = c == 45
            if negative or c == 43:
                p += 1
                c = text[np.uint64(p)]
            mantissa, exponent, hard = 0, 0, False
            digits_start = p
            while 0 <= c - 48 < 10:
                if mantissa < _FULL:
                    mantissa = mantissa * 10 + c - 48
                else:
                    hard = True
                p += 1
                c = text[np.uint64(p)]
            n_digits = p - digits_start
            if c == 46:
                p += 1
                c = text[np.uint64(p)]
                digits_start = p
                while 0 <= c - 48 < 10:
                    if mantissa < _FULL:
                        mantissa = mantissa * 10 + c - 48
                        exponent -= 1
                    else:
                        hard = True
                    p += 1
                    c = text[np.uint64(p)]
                n_digits += p - digits_start
            if n_digits == 0:
                return BAD_VALUE, row, start, labels_rise, features_rise

            # 2c. Its exponent.
            if c == 101 or c == 69:
                number, p = _read_exponent(text, p + 1)
                if p < 0:
                    return BAD_VALUE, row, start, labels_rise, features_rise
                c = text[np.uint64(p)]
                exponent += number
            ends = c == 32 or c == 9 or c == 10 or (c == 13 and text[np.uint64(p + 1)] == 10)
            if not ends:
                return BAD_VALUE, row, start, labels_rise, features_rise

            # 2d. Exact, or left to Python; an integer cannot hold the sign of minus zero.
            hard |= mantissa > _EXACT or (negative and mantissa == 0)
            hard |= exponent < -_LARGEST_POWER or exponent > _LARGEST_POWER
            features_out[np.uint64(n_pairs)] = last
            if hard:
                mantissa_out[np.uint64(n_pairs)] = (value_start << LENGTH_BITS) | (p - value_start)
                exponent_out[np.uint64(n_pairs)] = HARD
            else:
                mantissa_out[np.uint64(n_pairs)] = -mantissa if negative else mantissa
                exponent_out[np.uint64(n_pairs)] = exponent
            n_pairs += 1

        # 3. The row is complete.
        p += 1
        row += 1
        label_indptr_out[np.uint64(row)] = n_label_entries
        feature_indptr_out[np.uint64(row)] = n_pairs
    return OK, row, size, labels_rise, features_rise
