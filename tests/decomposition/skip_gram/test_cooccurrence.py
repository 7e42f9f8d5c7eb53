"""Counts of what stands near what, against a count pair by pair in Python."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc.decomposition.skip_gram import cooccurrence
from sklearn_xc.decomposition.skip_gram.cooccurrence import count_contexts
from sklearn_xc.exceptions import MemoryBudgetError

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


def slow_mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def slow_draw(seed, position, number=0):
    """Return 53 bits, for a position among all tokens and the number of the draw."""
    key = slow_mix((slow_mix(seed) + (1 + number) * _GOLDEN) & _MASK)
    return slow_mix((key + (position + 1) * _GOLDEN) & _MASK) >> 11


def slow_contexts(
    sentences, window=8, min_count=5, max_words=None, subsample=1e-4, seed=0, n_subsamples=3
):
    """Return words, frequencies and a dense matrix of exact counts."""
    counts = Counter(token for sentence in sentences for token in sentence).most_common(max_words)
    counts = {word: n for word, n in counts if n >= min_count}
    n_kept, number = sum(counts.values()), {w: i for i, w in enumerate(counts)}
    matrix = [[Fraction(0)] * len(counts) for _ in counts]
    if not subsample:
        n_subsamples = 1
    for draw in range(n_subsamples):
        position = 0
        for sentence in sentences:
            stay = []
            for word in sentence:
                if word in counts:
                    p = 1.0
                    if subsample:
                        p = min(1.0, math.sqrt(subsample / (counts[word] / n_kept)))
                    if slow_draw(seed, position, draw) < round(p * 2**53):
                        stay.append(number[word])
                position += 1
            for j, second in enumerate(stay):
                for i, first in enumerate(stay[:j]):
                    if j - i <= window:
                        weight = Fraction(window - (j - i) + 1, window * n_subsamples)
                        matrix[first][second] += weight
                        matrix[second][first] += weight
    return list(counts), list(counts.values()), matrix


def check(found, sentences, **arguments):
    words, frequencies, matrix = slow_contexts(sentences, **arguments)
    assert found.words.tolist() == words
    assert found.frequencies.tolist() == frequencies
    assert [array.dtype.name for array in found] == ["object", "int64", "int64", "int32", "float32"]
    expected = np.array([[float(count) for count in row] for row in matrix], np.float32)
    shape = (len(words), len(words))
    csr = sp.csr_array((found.counts, found.indices, found.indptr), shape=shape)
    assert csr.has_canonical_format  # columns rise, and none is there twice
    assert (found.counts > 0).all()
    np.testing.assert_array_equal(csr.toarray(), expected)


def check_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist()


def zipf_sentences(seed, n_sentences, n_words, length):
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1, n_words + 1)
    numbers = rng.choice(n_words, (n_sentences, length), p=shares / shares.sum())
    lengths = rng.integers(0, length + 1, n_sentences)
    return [[f"w{i}" for i in row[:n]] for row, n in zip(numbers, lengths, strict=True)]


def make_tiny(monkeypatch, block=5, together=3, tokens=7):
    """Make blocks, ranges of rows and chunks of tokens small."""
    monkeypatch.setattr(cooccurrence, "_BLOCK", block)
    monkeypatch.setattr(cooccurrence, "_RANGE", together)
    monkeypatch.setattr(cooccurrence, "_TOKENS", tokens)


_SENTENCES = st.lists(st.lists(st.sampled_from("abcdefg"), max_size=12), min_size=1, max_size=8)


@settings(max_examples=40, deadline=None)
@given(
    _SENTENCES,
    st.integers(1, 9),
    st.integers(1, 3),
    st.sampled_from([None, 0.02, 0.1]),
    st.integers(0, 2**64 - 1),
    st.tuples(st.integers(1, 9), st.integers(1, 20), st.integers(1, 9)),
    st.integers(1, 3),
)
def test_counts_are_those_of_the_slow_twin_however_they_are_cut(
    sentences, window, min_count, subsample, seed, sizes, n_jobs
):
    sentences = [*sentences, ["a", "b"] * 3]
    arguments = {"window": window, "min_count": min_count, "subsample": subsample, "seed": seed}
    whole = count_contexts(sentences, **arguments)
    check(whole, sentences, **arguments)
    with pytest.MonkeyPatch.context() as patch:
        make_tiny(patch, *sizes)
        cut = count_contexts(sentences, **arguments, n_jobs=n_jobs)
    check_same(cut, whole)


def test_a_corpus_is_counted_as_by_the_slow_twin():
    sentences = zipf_sentences(0, 300, 200, 20)
    arguments = {"window": 5, "min_count": 3, "max_words": 100, "subsample": 0.01, "seed": 4}
    found = count_contexts(sentences, **arguments)
    assert len(found.words) == 100
    check(found, sentences, **arguments)
    check_same(count_contexts((np.array(s) for s in sentences), **arguments), found)


def test_counts_beyond_32_bits_are_summed_over_blocks(monkeypatch):
    monkeypatch.setattr(cooccurrence, "_MOST_WEIGHT", 100_000)  # as if counts had 17 bits
    n, window = 20_000, 8
    found = count_contexts([["a"] * n], window=window, min_count=1, subsample=None)
    pairs = [(n - d) * (window - d + 1) for d in range(1, window + 1)]
    assert found.counts.tolist() == [np.float32(2 * sum(pairs) / window)]


def test_nothing_may_stay_or_stand_together():
    for subsample in (1e-300, None):
        found = count_contexts([["a"], ["b"]], min_count=1, subsample=subsample)
        assert found.indptr.tolist() == [0, 0, 0]
        assert found.words.tolist() == ["a", "b"]


def test_more_than_the_allowed_bytes_is_refused():
    with pytest.raises(MemoryBudgetError, match=r"counts of .* pairs of words.*min_count"):
        count_contexts(zipf_sentences(0, 300, 200, 20), allowed_bytes=100)


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("window", 1001, "an integer from 1 to 1000. Got 1001"),
        ("min_count", 0, "be an integer of at least 1"),
        ("max_words", 0, "be an integer of at least 1"),
        ("seed", -1, "be an integer of at least 0"),
        ("subsample", float("nan"), "be None or a number of at least 0, as 1e-4. Got nan"),
        ("n_jobs", 0, "be None or an integer other than 0"),
    ],
)
def test_arguments_out_of_range_are_refused_before_anything_is_read(argument, value, message):
    def unread():
        raise AssertionError
        yield

    with pytest.raises(ValueError, match=f"^Model: {argument} must.*{message}"):
        count_contexts(unread(), **{argument: value}, caller="Model")


@pytest.mark.parametrize(
    ("sentences", "error", "message"),
    [
        ([], ValueError, "must have words. Got none"),
        ([[], ()], ValueError, "must have words. Got none"),
        ([["a"]], ValueError, "no word occurs min_count=5 times.*'a', occurs 1 times"),
        (["a text"], TypeError, "must be a list of tokens .*Got 'a text' as sentence 0"),
        ([["a"], 3], TypeError, "Got 3 as sentence 1"),
        ([["a"], ["b", 3]], TypeError, r"list of tokens \(str\).*Got \[.b., 3\] as sentence 1"),
        ("corpus.txt", TypeError, "must be an iterable of lists"),
        (7, TypeError, "must be an iterable of lists"),
    ],
    ids=str,
)
def test_errors_name_what_came(sentences, error, message):
    with pytest.raises(error, match=message):
        count_contexts(sentences)
