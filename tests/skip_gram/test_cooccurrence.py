"""Counts of what stands near what, against a count pair by pair in Python."""

import math
import time
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc.parallel import spill
from sklearn_xc.skip_gram import cooccurrence
from sklearn_xc.skip_gram import corpus as corpus_module
from sklearn_xc.skip_gram.cooccurrence import WordCounts, count_contexts

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
    sentences, window=8, min_count=5, max_words=None, subsample=1e-4, weighting="linear", seed=0,
    n_subsamples=1,
):  # fmt: skip
    """Return words, frequencies and a dense matrix of exact counts."""
    counts = Counter(token for sentence in sentences for token in sentence).most_common(max_words)
    counts = {word: n for word, n in counts if n >= min_count}
    n_kept, number = sum(counts.values()), {w: i for i, w in enumerate(counts)}
    matrix = [[Fraction(0)] * len(counts) for _ in counts]
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
                        weight = Fraction(window - (j - i) + 1, window)
                        weight = (weight if weighting == "linear" else 1) / Fraction(n_subsamples)
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


@pytest.fixture
def tiny(monkeypatch):
    """Return nothing; blocks, ranges of rows and pieces are as small as can be."""
    make_tiny(monkeypatch)


def make_tiny(monkeypatch, block=5, together=3, piece=4):
    monkeypatch.setattr(cooccurrence, "_BLOCK", (block, block))
    monkeypatch.setattr(cooccurrence, "_RANGE", (together, together))
    monkeypatch.setattr(cooccurrence, "_MOST_PIECE", piece)
    monkeypatch.setattr(corpus_module, "_CHUNK_BYTES", 9)
    monkeypatch.setattr(corpus_module, "_BATCH_TOKENS", 7)
    monkeypatch.setattr(spill, "PIECE", 2**12)


_SENTENCES = st.lists(st.lists(st.sampled_from("abcdefg"), max_size=12), min_size=1, max_size=8)


@settings(max_examples=40)
@given(
    _SENTENCES,
    st.integers(1, 9),
    st.integers(1, 3),
    st.sampled_from([None, 0.02, 0.1]),
    st.sampled_from(["linear", "uniform"]),
    st.integers(0, 2**64 - 1),
    st.tuples(st.integers(1, 9), st.integers(1, 20), st.integers(1, 9)),
    st.sampled_from([0, 100, 10**6]),
    st.integers(1, 3),
)
def test_counts_are_those_of_the_slow_twin_however_they_are_cut(
    sentences, window, min_count, subsample, weighting, seed, sizes, allowed, n_jobs
):
    sentences = [*sentences, ["a", "b"] * 3]
    arguments = {
        "window": window, "min_count": min_count, "subsample": subsample, "weighting": weighting,
        "seed": seed,
    }  # fmt: skip
    whole = count_contexts(sentences, **arguments)
    check(whole, sentences, **arguments)
    with pytest.MonkeyPatch.context() as patch:
        make_tiny(patch, *sizes)
        cut = count_contexts(sentences, **arguments, allowed_bytes=allowed, n_jobs=n_jobs)
    check_same(cut, whole)


@pytest.mark.parametrize("weighting", ["linear", "uniform"])
def test_a_corpus_is_counted_as_by_the_slow_twin(tmp_path, weighting):
    sentences = zipf_sentences(0, 300, 200, 20)
    arguments = {"window": 5, "min_count": 3, "max_words": 100, "subsample": 0.01, "seed": 4}
    found = count_contexts(sentences, weighting=weighting, **arguments)
    assert len(found.words) == 100
    check(found, sentences, weighting=weighting, **arguments)
    path = tmp_path / "text.txt"
    path.write_text("\r\n".join(map(" ".join, sentences)))
    check_same(count_contexts(path, weighting=weighting, **arguments), found)


@pytest.mark.parametrize("subsample", [0.01, None])
@pytest.mark.parametrize("allowed_bytes", [0, None])
def test_counts_of_several_draws_are_their_mean(monkeypatch, subsample, allowed_bytes):
    sentences = zipf_sentences(0, 300, 200, 20)
    arguments = {"window": 5, "min_count": 3, "subsample": subsample, "seed": 4, "n_subsamples": 3}
    monkeypatch.setattr(cooccurrence, "_BLOCK", (1024, 2**26))
    found = count_contexts(sentences, allowed_bytes=allowed_bytes, n_jobs=2, **arguments)
    check(found, sentences, **arguments)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("allowed_bytes", [0, 40_000, None])
def test_threads_and_budgets_change_no_bit(monkeypatch, n_jobs, allowed_bytes):
    sentences = zipf_sentences(1, 2000, 1500, 20)
    expected = count_contexts(sentences, subsample=1e-3)
    assert len(expected.words) > 500
    monkeypatch.setattr(spill, "PIECE", 2**16)
    monkeypatch.setattr(cooccurrence, "_BLOCK", (1024, 2**26))
    monkeypatch.setattr(cooccurrence, "_RANGE", (1000, 5000))
    found = count_contexts(
        iter(sentences), subsample=1e-3, allowed_bytes=allowed_bytes, n_jobs=n_jobs
    )
    check_same(found, expected)
    assert spill.is_in_file(found.counts) == spill.is_in_file(found.indices)
    assert spill.is_in_file(found.counts) == (allowed_bytes is not None)


def test_one_long_sentence_over_many_blocks(tiny):
    rng = np.random.default_rng(2)
    sentence = rng.choice(list("abcdefgh"), 120).tolist()
    for window in (1, 4, 5, 6, 30):  # below, at and above the length of a block
        arguments = {"window": window, "min_count": 1, "subsample": 0.05}
        found = count_contexts([sentence], **arguments, allowed_bytes=0)
        check(found, [sentence], **arguments)


def test_a_window_ends_with_the_sentence_and_skips_rare_words():
    sentences = [["a", "rare", "b"], ["a"], ["b", "a"]]
    found = count_contexts(sentences, window=1, min_count=2, subsample=None)
    assert found.words.tolist() == ["a", "b"]
    assert found.indices.tolist() == [1, 0]
    assert found.counts.tolist() == [2, 2]


def test_a_word_beside_itself_counts_twice():
    found = count_contexts([["a"] * 3], window=2, min_count=1, subsample=None)
    assert found.counts.tolist() == [2 * (1 + 1 + 0.5)]


def test_counts_beyond_32_bits_are_summed_over_blocks(monkeypatch):
    monkeypatch.setattr(cooccurrence, "_MOST_WEIGHT", 100_000)  # as if counts had 17 bits
    monkeypatch.setattr(cooccurrence, "_BLOCK", (1, 2**26))
    seen = []
    sum_blocks = cooccurrence._Counting.sum_blocks

    def looked_at(counting, team):
        seen.extend(part[1].max() for parts in counting.parts for part in parts)
        sum_blocks(counting, team)

    monkeypatch.setattr(cooccurrence._Counting, "sum_blocks", looked_at)
    n, window = 20_000, 8
    found = count_contexts([["a"] * n], window=window, min_count=1, subsample=None)
    pairs = [(n - d) * (window - d + 1) for d in range(1, window + 1)]
    assert found.counts.tolist() == [np.float32(2 * sum(pairs) / window)]
    assert len(seen) > 10
    assert max(seen) <= 100_000


def test_nothing_may_stay_or_stand_together():
    for subsample in (1e-300, None):
        found = count_contexts([["a"], ["b"]], min_count=1, subsample=subsample)
        assert found.indptr.tolist() == [0, 0, 0]
        assert len(found.indices) == len(found.counts) == 0
        assert found.words.tolist() == ["a", "b"]


def test_seeds_differ():
    sentences = zipf_sentences(3, 200, 50, 20)
    one, same, other = (count_contexts(sentences, subsample=0.01, seed=s) for s in (1, 1, 2))
    check_same(one, same)
    assert one.counts.sum() != other.counts.sum()


def test_the_defaults_are_those_of_the_slow_twin():
    sentences = zipf_sentences(4, 100, 30, 20)
    found = count_contexts(sentences)
    assert isinstance(found, WordCounts)
    check(found, sentences)


def test_an_error_of_a_thread_is_heard_and_the_others_stop(monkeypatch):
    class Full(spill.Spill):
        n_kept = 0

        def keep(self, array):
            Full.n_kept += 1
            if Full.n_kept == 10:
                raise OSError("no room")
            if Full.n_kept > 10:
                time.sleep(0.005)  # long enough for the error to be heard
            return super().keep(array)

    sentences = zipf_sentences(5, 200, 400, 20)
    monkeypatch.setattr(cooccurrence, "Spill", Full)
    monkeypatch.setattr(cooccurrence, "_RANGE", (3, 3))  # a range for each word
    with pytest.raises(OSError, match="no room"):
        count_contexts(sentences, min_count=1, n_jobs=2)
    assert Full.n_kept < 100


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("window", 0, "an integer from 1 to 1000. Got 0"),
        ("window", 1001, "Got 1001"),
        ("window", 2.0, "Got 2.0"),
        ("n_subsamples", 0, "be an integer of at least 1"),
        ("min_count", 0, "be an integer of at least 1"),
        ("max_words", 0, "be an integer of at least 1"),
        ("seed", -1, "be an integer of at least 0"),
        ("subsample", -0.1, "be None or a number of at least 0, as 1e-4. Got -0.1"),
        ("subsample", float("nan"), "Got nan"),
        ("subsample", "1e-4", "Got '1e-4'"),
        ("weighting", "harmonic", "be 'linear' or 'uniform'. Got 'harmonic'"),
        ("allowed_bytes", -1, "be an integer of at least 0"),
        ("n_jobs", 0, "be None or an integer other than 0"),
    ],
)
def test_arguments_out_of_range_are_refused_before_anything_is_read(argument, value, message):
    def unread():
        raise AssertionError
        yield

    with pytest.raises(ValueError, match=f"^Model: {argument} must.*{message}"):
        count_contexts(unread(), **{argument: value}, who="Model")
