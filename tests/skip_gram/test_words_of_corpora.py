"""From sentences to numbers of words: files and lists, against Python's own split and Counter."""

import gzip
import os
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc.exceptions import DataFormatError, MemoryBudgetError
from sklearn_xc.parallel import spill
from sklearn_xc.skip_gram import corpus as corpus_module
from sklearn_xc.skip_gram.corpus import keep_limits, read_corpus, subsampling_key

_MASK = 2**64 - 1


def read(sentences, min_count=1, max_words=None, allowed=2**30):
    return read_corpus(
        sentences, min_count=min_count, max_words=max_words, allowed=allowed, who="Test"
    )


def slow_vocabulary(sentences, min_count=1, max_words=None):
    """Return words and frequencies; a Counter's order is that of appearance among equals."""
    counts = Counter(token for sentence in sentences for token in sentence).most_common(max_words)
    counts = [(word, n) for word, n in counts if n >= min_count]
    return [word for word, _ in counts], [n for _, n in counts]


def sentences_of(corpus, most=2**20):
    """Return the sentences of a corpus that are not empty, without the words that are dropped."""
    numbers = [number for piece in corpus.pieces(most) for number in piece.tolist()]
    sentences = [[]]
    for number in numbers:
        if number < 0:
            sentences.append([])
        elif corpus.new_numbers[number] >= 0:
            sentences[-1].append(corpus.words[corpus.new_numbers[number]])
    return [sentence for sentence in sentences if sentence]


def slow_file(data):
    """Return the sentences of the bytes of a file."""
    sentences = [line.split() for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    return [[word.decode() for word in words] for words in sentences if words]


def check_same(corpus, sentences, min_count=1, max_words=None):
    words, frequencies = slow_vocabulary(sentences, min_count, max_words)
    assert corpus.words.tolist() == words
    assert corpus.frequencies.tolist() == frequencies
    assert corpus.n_tokens == sum(map(len, sentences))
    known = set(words)
    kept = [[word for word in sentence if word in known] for sentence in sentences]
    assert sentences_of(corpus, 3) == [sentence for sentence in kept if sentence]


@pytest.fixture
def small_pieces(monkeypatch):
    """Return nothing; texts come in pieces of a few bytes, and tables grow at once."""
    monkeypatch.setattr(corpus_module, "_CHUNK_BYTES", 7)
    monkeypatch.setattr(corpus_module, "_BATCH_TOKENS", 5)
    monkeypatch.setattr(corpus_module, "_FEW_WORDS", 1)
    monkeypatch.setattr(spill, "PIECE", 2**12)


# --- files and lists

_TEXTS = [
    b"to be or not to be\n",
    b"no newline at the end no",
    b"\n\n  \n a  b\t c \n\n\r\n d\r\na\n",
    b"one \x0b two \x0c three\rfour one\n",
    "größer weiß 漢字 😀 漢 字\nweiß\u00a0e größer\n".encode(),
    b"\xef\xbb\xbfmark first\nfirst mark\n",
    b"nul\x00 nul nul\x00 \x00 \x00\x00 nul\n",
    b"x" * 1000 + b" " + b"x" * 999 + b" " + b"x" * 1000 + b"\n",
    b"a " * 50 + b"\n",
    b"a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\na",
]


@pytest.mark.parametrize("pieces", ["one piece", "small pieces"])
@pytest.mark.parametrize("text", _TEXTS, ids=range(len(_TEXTS)))
def test_a_file_is_read_as_python_splits_it(tmp_path, text, pieces, request):
    if pieces == "small pieces":
        request.getfixturevalue("small_pieces")
    path = tmp_path / "text.txt"
    path.write_bytes(text)
    check_same(read(path), slow_file(text))
    check_same(read(str(path), 2), slow_file(text), 2)
    path.write_bytes(gzip.compress(text))
    check_same(read(path, 1, 2), slow_file(text), 1, 2)
    check_same(read(slow_file(text)), slow_file(text))


# Bytes of words of one to four bytes, of all that separates words, and of what only seems to.
_PIECES = st.sampled_from(
    [text.encode() for text in ("a", "b", "\x00", "\x1c", "é", "漢", "😀", "\u2028")]
    + [b" ", b"\t", b"\n", b"\r\n", b"\x0b"]
)


@settings(max_examples=40)
@given(st.lists(_PIECES, max_size=60), st.integers(1, 3), st.sampled_from([0, 1, 2**64 - 1]))
def test_any_file_and_its_lists_are_the_same(tmp_path_factory, pieces, min_count, hash_mask):
    text = b"a b " + b"".join(pieces)
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_bytes(text)
    sentences = slow_file(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus_module, "_CHUNK_BYTES", 5)
        patch.setattr(corpus_module, "_BATCH_TOKENS", 4)
        patch.setattr(corpus_module, "_FEW_WORDS", 2)
        patch.setattr(spill, "PIECE", 2**12)
        # With a mask of 0, all words have the same hash.
        patch.setattr(corpus_module._FileWords, "hash_mask", np.uint64(hash_mask))
        if max(slow_vocabulary(sentences)[1]) < min_count:
            for source in (path, sentences):
                with pytest.raises(ValueError, match="no word occurs min_count"):
                    read(source, min_count)
            return
        check_same(read(path, min_count, None, 40), sentences, min_count)
        check_same(read(iter(sentences), min_count, None, 0), sentences, min_count)


def test_words_of_the_same_hash_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_module._FileWords, "hash_mask", np.uint64(0))
    path = tmp_path / "text.txt"
    path.write_text("abc ab abd a abcd bc abc ab a xyz xy z bc\n")
    check_same(read(path), slow_file(path.read_bytes()))


def test_a_table_of_many_words_grows(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_module, "_FEW_WORDS", 4)
    rng = np.random.default_rng(0)
    sentences = [[f"w{i}" for i in row] for row in rng.integers(0, 9000, (1000, 20)).tolist()]
    path = tmp_path / "text.txt"
    path.write_text("\n".join(map(" ".join, sentences)))
    check_same(read(path, 2), sentences, 2)


def test_sentences_may_be_lists_tuples_and_arrays_and_may_be_filled_again():
    def again():
        sentence = []
        for words in (["a", "b"], ["c"], [], ["a"]):
            sentence[:] = words
            yield sentence

    expected = [["a", "b"], ["c"], ["a"]]
    for sentences in (
        again(),
        [("a", "b"), ["c"], (), np.array(["a"])],
        [np.array(["a", "b"]), np.array(["c"], object), np.array([], str), [np.str_("a")]],
    ):
        corpus = read(sentences)
        check_same(corpus, expected)
        assert {type(word) for word in corpus.words} == {str}


def test_words_are_not_cut_at_zeros_and_may_be_empty_or_alone_surrogates():
    sentences = [["a\x00", "a", "a\x00", ""], ["\ud800", "a b"]]
    check_same(read(sentences), sentences)


def test_a_file_may_be_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"a b a\n",))
    writer.start()
    check_same(read(path), [["a", "b", "a"]])
    writer.join()


def test_what_does_not_fit_goes_to_files_and_is_gone_once_read():
    sentences = [["a", "b"]] * 300_000
    corpus = read(sentences, allowed=2**18)
    assert [spill.is_in_file(chunk) for chunk in corpus.chunks] == [True] * 4
    assert sum(len(piece) for piece in corpus.pieces(10_000)) == 900_000
    assert len(corpus.chunks) == 0


# --- subsampling


def slow_mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def slow_key(seed):
    return slow_mix((slow_mix(seed & _MASK) + 0x9E3779B97F4A7C15) & _MASK)


def slow_draw(seed, position):
    """Return 53 bits, for a position among all tokens."""
    return slow_mix((slow_key(seed) + (position + 1) * 0x9E3779B97F4A7C15) & _MASK) >> 11


def test_the_limits_are_the_probabilities_and_none_above_one():
    frequencies = np.array([900, 90, 9, 1])
    limits = keep_limits(frequencies, 0.01)
    expected = np.minimum(1, np.sqrt(0.01 / (frequencies / 1000)))
    np.testing.assert_allclose(limits / 2.0**53, expected, rtol=1e-15)
    assert limits[2:].tolist() == [2**53] * 2
    for nothing in (None, 0, 0.0):
        assert keep_limits(frequencies, nothing).tolist() == [2**53] * 4


def test_the_key_is_that_of_the_seed():
    for seed in (0, 1, 2**63, 2**64 - 1):
        assert int(subsampling_key(seed)) == slow_key(seed)
    assert subsampling_key(2**64 + 5) == subsampling_key(5)


def test_draws_are_uniform_and_those_of_the_slow_twin():
    from sklearn_xc.kernels.words.kept_words import keep_words

    numbers = np.tile(np.array([0, 1, 2, -1], np.int32), 5000)
    new_numbers = np.array([1, -1, 0], np.int32)
    limits = np.array([2**51, 2**52], np.uint64)
    out = np.empty(len(numbers), np.int32)
    position, is_open, n = keep_words(
        numbers, new_numbers, limits, subsampling_key(3), 7, False, out, 0
    )
    assert (position, is_open) == (15_007, False)
    expected, place = [], 7
    for number in numbers.tolist():
        if number < 0:
            expected += [-1] * (expected[-1:] not in ([], [-1]))
            continue
        if new_numbers[number] >= 0 and slow_draw(3, place) < limits[new_numbers[number]]:
            expected.append(int(new_numbers[number]))
        place += 1
    assert out[:n].tolist() == expected
    assert expected.count(0) / 5000 == pytest.approx(0.25, abs=0.03)
    assert expected.count(1) / 5000 == pytest.approx(0.5, abs=0.03)


# --- errors


@pytest.mark.parametrize(
    ("sentences", "error", "message"),
    [
        ("to be or not", FileNotFoundError, r"\[\['to', 'be'\].*no such file"),
        ("x" * 5000, FileNotFoundError, r"Got 'x+\.\.\.x+', and there is no such file"),
        ("a\x00b", FileNotFoundError, "no such file"),
        (Path("/nowhere/text.txt"), FileNotFoundError, "Got '/nowhere/text.txt'"),
        ("/", IsADirectoryError, "Got the folder '/'"),
        (b"to be", TypeError, "Got b'to be' of type bytes"),
        (7, TypeError, "Got 7 of type int"),
        (None, TypeError, "iterable of lists of tokens.*Got None"),
        (np.array("a b"), TypeError, "of type ndarray"),
        (["to be", "or"], TypeError, r"text.split\(\) for text in sentences.*Got 'to be' .* 0,"),
        (np.array(["to be", "or"]), TypeError, "split it"),
        ([["a"], 3], TypeError, "list of tokens.*Got 3 of type int as sentence 1,"),
        ([["a"], {"a"}], TypeError, "of type set"),
        ([["a"], np.array([["a"]])], TypeError, "of type ndarray as sentence 1"),
        ([[], ["a", "b"], ["a", 3]], TypeError, "Got 3 of type int as token 1 of sentence 2,"),
        ([["a"], [["b"]]], TypeError, r"Got \['b'\] of type list as token 0 of sentence 1,"),
        ([["a", b"b"]], TypeError, "of type bytes"),
        ([np.array(["a", np.nan], object)], TypeError, "Got nan of type float as token 1"),
        ([np.array([1.0])], TypeError, "Got 1.0 of type float"),
        ([], ValueError, "sentences must have words. Got no sentences."),
        (iter([]), ValueError, "a generator is empty the second time"),
        ([[], ()], ValueError, "Got only sentences without words"),
        ([["a", "b", "a"]], ValueError, r"min_count=3.*3 tokens.* 'a', occurs twice."),
    ],
)
def test_errors_name_what_came(sentences, error, message):
    with pytest.raises(error, match="^Test: .*" + message):
        read(sentences, min_count=3)


def test_an_error_in_a_generator_is_its_own():
    def broken():
        yield ["a"]
        raise TypeError("mine")

    with pytest.raises(TypeError, match=r"^mine$"):
        read(broken())


@pytest.mark.parametrize("text", [b"", b"\n \n\r\n", b"\xef\xbb\xbf"])
def test_a_file_without_words_is_refused(tmp_path, text):
    path = tmp_path / "text.txt"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=r"Test: sentences must have words. Got"):
        read(path)


@pytest.mark.parametrize("pieces", ["one piece", "small pieces"])
@pytest.mark.parametrize(
    ("text", "line", "got"),
    [
        (b"a b\n\nc d\xff a\n\xff", 3, r"b'd\\xff'"),
        (b"a b\n c\xc3 \xa9 d\n", 2, r"b'c\\xc3'"),  # together, they would be valid
        (b"\xed\xa0\x80", 1, r"b'\\xed\\xa0\\x80'"),
        ("größer\n".encode("utf-16"), 1, r"b'\\xff\\xfe"),
        (b"aa bb cc dd\nee ff gg hh\nii jj\xe9", 3, r"b'jj\\xe9'"),
    ],
)
def test_what_is_not_utf8_is_refused_with_its_line(tmp_path, text, line, got, pieces, request):
    if pieces == "small pieces":
        request.getfixturevalue("small_pieces")
    path = tmp_path / "text.txt"
    path.write_bytes(text)
    with pytest.raises(DataFormatError, match=rf"Test: .*line {line} is not.*Got {got}"):
        read(path)


def test_damaged_gzip_is_refused(tmp_path):
    path = tmp_path / "text.gz"
    text = " ".join(map(str, range(3000))).encode() + b"\n"
    for data in (gzip.compress(text)[:-20], gzip.compress(text)[:-6] + b"123456"):
        path.write_bytes(data)
        with pytest.raises(DataFormatError, match=r"Test: .*text.gz: .*damaged or cut off"):
            read(path)


def test_more_words_than_the_machine_has_room_for_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_module, "_LARGE_BYTES", 0)
    monkeypatch.setattr("sklearn_xc.parallel.memory.available_bytes", lambda: 1)
    path = tmp_path / "text.txt"
    path.write_bytes(b"a b\n")
    with pytest.raises(MemoryBudgetError, match=r"Test: .* bytes of distinct words"):
        read(path)
