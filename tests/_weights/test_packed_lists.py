"""Packed posting lists against lists read bit by bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_xc._compile.jit import kernel
from sklearn_xc._weights.kernels.packed_lists import (
    PADDING,
    add_packed_list,
    choose_widths,
    lead_outside,
    pack_lists,
    quantise_weights,
    unpack_lists,
)

WEIGHT_OF_CODE = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.float64)
WEIGHT_OF_CODE *= np.abs(WEIGHT_OF_CODE)


@kernel
def add_lists(values, begins, counts, widths, weight_of_code, packed, scores):
    for j in range(len(counts)):
        n, width = np.uint64(counts[j]), np.uint64(widths[j])
        add_packed_list(values[j], np.uint64(begins[j]), n, width, weight_of_code, packed, scores)


def lists_of(labels):
    """Return indptr and labels of all lists, one after the other."""
    indptr = np.concatenate(([0], np.cumsum([len(one) for one in labels]))).astype(np.int64)
    return indptr, np.array([label for one in labels for label in one], np.int32)


def begins_of(counts, widths):
    n, width = counts.astype(np.int64), widths.astype(np.int64)
    return np.concatenate(([0], np.cumsum(n + -(-n * width // 8))))


def packed_lists(labels, codes):
    """Return begins, counts, widths and bytes."""
    indptr, flat = lists_of(labels)
    counts, widths = np.empty(len(labels), np.int32), np.empty(len(labels), np.uint8)
    choose_widths(indptr, flat, counts, widths)
    begins = begins_of(counts, widths)
    packed = np.zeros(begins[-1] + PADDING, np.uint8)
    pack_lists(indptr, flat, codes, begins, counts, widths, packed)
    return begins, counts, widths, packed


def slow_postings(begins, counts, widths, packed):
    """Return of each list (label, code) of all postings, those of code 0 among them."""
    found = []
    for begin, n, width in zip(begins, counts.tolist(), widths.tolist(), strict=False):
        bits = np.unpackbits(packed[begin + n :], bitorder="little")[: n * width]
        distances = bits.reshape(n, width).astype(np.int64) @ (1 << np.arange(width))
        labels = np.cumsum(distances + 1) - 1
        found.append(
            list(zip(labels.tolist(), packed[begin : begin + n].view(np.int8), strict=True))
        )
    return found


@st.composite
def posting_lists(draw):
    """Lists of all lengths, near and far, whose labels lie in clusters or do not."""
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    n_labels = draw(st.sampled_from([1, 2, 70, 300, 5_000, 70_000, 3_000_000]))
    labels = []
    for _ in range(draw(st.integers(1, 8))):
        n = min(n_labels, int(rng.choice([0, 1, 2, 3, 4, 5, 9, 64, 700])))
        spread = int(rng.choice([n, min(n_labels, 3 * n + 1), n_labels]))
        some = rng.choice(spread, n, replace=False) + rng.integers(n_labels - spread + 1)
        labels.append(np.sort(some).tolist())
    codes = rng.integers(1, 128, sum(map(len, labels))) * rng.choice([-1, 1])
    return n_labels, labels, codes.astype(np.int8)


@given(posting_lists())
def test_lists_come_back_and_score_as_they_were(given_lists):
    n_labels, labels, codes = given_lists
    begins, counts, widths, packed = packed_lists(labels, codes)
    (indptr, flat), read = lists_of(labels), slow_postings(begins, counts, widths, packed)
    kept = [[(label, code) for label, code in one if code] for one in read]
    assert [[label for label, _ in one] for one in kept] == labels
    assert [code for one in kept for _, code in one] == codes.tolist()
    assert all(label < n_labels for one in read for label, _ in one)
    n = counts.sum()
    found = np.empty(len(labels) + 1, np.int64), np.empty(n, np.int32), np.empty(n, np.int8)
    unpack_lists(begins, counts, widths, packed, *found)
    np.testing.assert_array_equal(found[0], indptr)
    np.testing.assert_array_equal(found[1][: indptr[-1]], flat)
    np.testing.assert_array_equal(found[2][: indptr[-1]], codes)
    # Whole numbers: sums are exact.
    values, scores = np.arange(1.0, len(labels) + 1), np.zeros(n_labels)
    add_lists(values, begins, counts, widths, WEIGHT_OF_CODE, packed, scores)
    expected, squares = np.zeros(n_labels), codes.astype(float) * np.abs(codes)
    np.add.at(expected, flat, np.repeat(values, np.diff(indptr)) * squares)
    np.testing.assert_array_equal(scores, expected)


@given(posting_lists(), st.integers(1, 9))
def test_lists_that_lead_outside_are_found(given_lists, fewer):
    n_labels, labels, codes = given_lists
    begins, counts, widths, packed = packed_lists(labels, codes)
    largest = [max(one, default=-1) for one in labels]
    for limit in (n_labels, max(n_labels - fewer, 0)):
        for j in range(len(labels)):
            arrays = begins, counts, widths, packed
            assert lead_outside(np.array([j]), *arrays, limit) == (largest[j] >= limit)
        outside = lead_outside(np.arange(len(labels)), *arrays, limit)
        assert outside == (max(largest) >= limit)


def test_codes_are_the_nearest():
    rng, dtype = np.random.default_rng(0), np.float32
    scale = np.array([1.0, 0.25, 2.0**-20])
    features = rng.integers(3, size=2000)
    values = (rng.normal(size=2000) * rng.random(2000) ** 4 * 5000 * scale[features]).astype(dtype)
    values[:3] = scale[features[:3]] * [127**2, -(127**2), 0.5]
    codes = np.empty(2000, np.int8)
    reach = quantise_weights(np.array([0, 700, 700, 2000]), features, values, scale, codes)
    possible = np.arange(-127, 128.0) * np.abs(np.arange(-127, 128.0))
    apart = np.abs(values.astype(float)[:, None] - possible * scale[features][:, None])
    taken = WEIGHT_OF_CODE[codes.view(np.uint8)] * scale[features]
    np.testing.assert_array_equal(np.abs(values - taken), apart.min(axis=1))
    assert reach == pytest.approx(max(np.abs(taken[:700]).sum(), np.abs(taken[700:]).sum()))
