"""Posting lists in two bytes a posting, scored without unpacking.

The list of a feature is a code of one byte for each posting, and behind all of these, for each, the
distance from the label before, in as many bits as suit the feature::

    codes      c_0 c_1 ... c_n-1    a byte each
    distances  d_0 d_1 ... d_n-1    `width` bits each, from the lowest bit of a byte on

The first label is d_0, and label k is d_k + 1 above label k - 1. A larger distance than fits into
`width` bits is bridged by postings of code 0, which add 0 to the scores of labels between: no
branch of the loop depends on what it reads, so that the processor never guesses wrong.

A code c in -127..127 represents the weight ``c |c| scale``, with a power of two for each feature.
Steps are small where weights are small, and most are. As scales are powers of two, a value of X may
be multiplied by them in place of each weight, to the same bits.
"""

import numpy as np

from sklearn_xc._compile.jit import inlined, kernel

#: The largest code.
LARGEST_CODE = 127
#: The most bits of a distance: 24 can be read from any bit on in one word of four bytes.
MOST_BITS = 24
#: Bytes behind the last list: whole words are read.
PADDING = 8
#: Four distances of at most 14 bits can be read from any bit on in one word of eight bytes.
_FOUR_FIT = np.uint64(14)
_BEFORE_FIRST = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE, _THREE, _FOUR, _SEVEN = np.uint64(1), np.uint64(3), np.uint64(4), np.uint64(7)


@inlined
def add_packed_list(value, at, n, width, weight_of_code, packed, scores):
    """Add `value` times the weights of a list to `scores`.

    Parameters
    ----------
    value : float
        Of X, times the feature's scale.
    at : uint64
        Where the list begins.
    n, width : uint64
        Postings, and bits of a distance.
    weight_of_code : ndarray of float of shape (256,)
        ``c |c|``, by the byte of c.
    packed : ndarray of uint8
        Lists.
    scores : ndarray of float
        Added to.
    """
    end, bit = at + n, (at + n) << _THREE
    mask = (_ONE << width) - _ONE
    label = _BEFORE_FIRST
    if width <= _FOUR_FIT:
        while at + _FOUR <= end:
            word = _read_eight(packed, bit >> _THREE) >> (bit & _SEVEN)
            first = label + _ONE + (word & mask)
            word >>= width
            second = first + _ONE + (word & mask)
            word >>= width
            third = second + _ONE + (word & mask)
            word >>= width
            label = third + _ONE + (word & mask)
            scores[first] += value * weight_of_code[packed[at]]
            scores[second] += value * weight_of_code[packed[at + _ONE]]
            scores[third] += value * weight_of_code[packed[at + np.uint64(2)]]
            scores[label] += value * weight_of_code[packed[at + _THREE]]
            at += _FOUR
            bit += width << np.uint64(2)
    while at < end:
        label += _ONE + _read_bits(packed, bit, mask)
        scores[label] += value * weight_of_code[packed[at]]
        at += _ONE
        bit += width


@inlined
def weight_of_column(code, scores):
    """Return ``c |c|`` in the type of `scores`; by numbers, as a vectorised loop reads no table."""
    square = scores.dtype.type(np.int32(np.int64(code) * np.int64(code)))
    return -square if code < 0 else square


@inlined
def _read_eight(packed, at):
    """Return eight bytes as a number, the first the lowest; one instruction."""
    word = np.uint64(packed[at])
    for byte in range(1, 8):
        word |= np.uint64(packed[at + np.uint64(byte)]) << np.uint64(8 * byte)
    return word


@inlined
def _read_bits(packed, bit, mask):
    """Return at most 24 bits, from a bit on."""
    at = bit >> _THREE
    word = np.uint64(0)
    for byte in range(4):
        word |= np.uint64(packed[at + np.uint64(byte)]) << np.uint64(8 * byte)
    return (word >> (bit & _SEVEN)) & mask


@kernel
def quantise_weights(indptr, features, values, scale, codes):
    """Write the nearest code of each weight, and return the largest sum of a label's magnitudes.

    Parameters
    ----------
    indptr, features, values : ndarray of int, int and float
        Weights by label, in CSR form.
    scale : ndarray of float64 of shape (n_features,)
        At least the feature's largest magnitude over the square of the largest code.
    codes : ndarray of int8
        Overwritten; 0 where that is nearest.
    """
    reach = 0.0
    for label in range(indptr.shape[0] - 1):
        total = 0.0
        for p in range(indptr[label], indptr[label + 1]):
            own = scale[features[p]]
            square = abs(np.float64(values[p])) / own
            code = np.int64(np.sqrt(square))
            if square > code * (code + 1) + 0.5 and code < LARGEST_CODE:
                code += 1
            total += code * code * own
            codes[p] = code if values[p] > 0 else -code
        reach = max(reach, total)
    return reach


@kernel
def choose_widths(indptr, labels, counts, widths):
    """Write with which width the list of each feature takes fewest bytes, and its postings then.

    Parameters
    ----------
    indptr, labels : ndarray of int64 and int32
        Lists that are not packed; labels ascend.
    counts, widths : ndarray of int32 and uint8 of shape (n_features,)
        Overwritten. Counts have the postings of code 0.
    """
    for j in range(widths.shape[0]):
        first, last = indptr[j], indptr[j + 1]
        counts[j], widths[j], best = 0, 0, np.int64(2**62)
        for width in range(MOST_BITS + 1):
            # With a few postings of code 0 for one of the list it cannot be the shortest.
            if last == first or labels[last - 1] >> width > 4 * (last - first):
                continue
            count = last - first
            before = np.int64(-1)
            for p in range(np.uint64(first), np.uint64(last)):
                count += (labels[p] - before - 1) >> width
                before = labels[p]
            size = count + ((count * width + 7) >> 3)
            if size < best:
                counts[j], widths[j], best = count, width, size
            if count == last - first:
                break


@kernel
def pack_lists(indptr, labels, codes, begins, counts, widths, packed):
    """Write lists to `packed`, which is 0 everywhere.

    Parameters
    ----------
    indptr, labels, codes : ndarray of int64, int32 and int8
        Lists that are not packed.
    begins : ndarray of int64 of shape (n_features + 1,)
        Where each list begins in `packed`.
    counts, widths : ndarray of int32 and uint8 of shape (n_features,)
        As ``choose_widths`` writes them.
    packed : ndarray of uint8
        Overwritten.
    """
    for j in range(widths.shape[0]):
        width = np.int64(widths[j])
        at = begins[j]
        bit = (at + counts[j]) << 3
        mask = (np.int64(1) << width) - 1
        before = np.int64(-1)
        for p in range(indptr[j], indptr[j + 1]):
            distance = labels[p] - before - 1
            while distance > mask:
                _write_bits(packed, bit, mask)
                distance -= mask + 1
                at += 1
                bit += width
            _write_bits(packed, bit, distance)
            packed[at] = np.uint8(codes[p])
            before = labels[p]
            at += 1
            bit += width


@inlined
def _write_bits(packed, bit, value):
    value = np.int64(value) << (bit & 7)
    at = bit >> 3
    while value > 0:
        packed[at] |= np.uint8(value & 255)
        value >>= 8
        at += 1


@kernel
def unpack_lists(begins, counts, widths, packed, indptr, labels, codes):
    """Write lists, without the postings of code 0, as ``pack_lists`` takes them.

    Parameters
    ----------
    begins, counts, widths, packed : ndarray of int64, int32, uint8 and uint8
        As of ``pack_lists``.
    indptr, labels, codes : ndarray of int64, int32 and int8
        Overwritten; the latter two are long enough for all counts.
    """
    to = np.int64(0)
    for j in range(widths.shape[0]):
        indptr[j] = to
        width, at = np.uint64(widths[j]), np.uint64(begins[j])
        end = at + np.uint64(counts[j])
        bit = end << _THREE
        mask = (_ONE << width) - _ONE
        label = _BEFORE_FIRST
        while at < end:
            label += _ONE + _read_bits(packed, bit, mask)
            if packed[at] != 0:
                labels[to], codes[to] = label, np.int8(packed[at])
                to += 1
            at += _ONE
            bit += width
    indptr[widths.shape[0]] = to


@kernel
def lead_outside(features, begins, counts, widths, packed, n_labels):
    """Return whether a list of some features has labels beyond the last.

    Parameters
    ----------
    features : ndarray of int
        Some features.
    begins, counts, widths, packed : ndarray of int64, int32, uint8 and uint8
        As of ``pack_lists``.
    n_labels : int
        Labels.
    """
    for f in range(features.shape[0]):
        j = features[f]
        n, width = np.uint64(counts[j]), np.uint64(widths[j])
        bit = (np.uint64(begins[j]) + n) << _THREE
        mask = (_ONE << width) - _ONE
        label = n
        for _ in range(n):
            label += _read_bits(packed, bit, mask)
            bit += width
        if label > np.uint64(n_labels):
            return True
    return False
