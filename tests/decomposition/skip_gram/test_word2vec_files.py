"""Files of word2vec: what goes in comes out, here and in gensim; broken ones are refused."""

import gzip
import re

import numpy as np
import pytest

from sklearn_xc.decomposition.skip_gram.word2vec_files import read_word2vec, write_word2vec
from sklearn_xc.exceptions import DataFormatError, MemoryBudgetError

WORDS = [
    "rye",
    "Brot",
    "日本語",
    "naïve",
    "a\u00a0b",
    "0.5",
    "12",
    "</s>",
    "-",
    "\u2028",
    "x" * 300,
]
RANDOM = np.random.default_rng(0)
VECTORS = RANDOM.normal(size=(len(WORDS), 7)).astype(np.float32)
both_formats = pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])


def written(folder, words, vectors, binary, name="vectors"):
    path = folder / name
    write_word2vec(path, words, vectors, binary=binary)
    return path


def all_floats(n):
    """Return finite float32 of any bits."""
    bits = RANDOM.integers(0, 2**32, 2 * n, dtype=np.uint32)
    values = bits.view(np.float32)
    return values[np.isfinite(values)][:n]


class TestThereAndBack:
    @both_formats
    def test_same_words_and_bits(self, tmp_path, binary):
        path = written(tmp_path, WORDS, VECTORS, binary)
        words, vectors = read_word2vec(path)
        assert words.tolist() == WORDS
        assert words.dtype == object
        np.testing.assert_array_equal(vectors, VECTORS)
        assert vectors.dtype == np.float32
        assert vectors.flags.c_contiguous
        assert vectors.flags.writeable

    @both_formats
    def test_compressed_by_name(self, tmp_path, binary):
        path = written(tmp_path, WORDS, VECTORS, binary, "v.gz")
        plain = written(tmp_path, WORDS, VECTORS, binary)
        assert gzip.decompress(path.read_bytes()) == plain.read_bytes()
        moved = path.rename(tmp_path / "no suffix")
        words, vectors = read_word2vec(moved)
        assert words.tolist() == WORDS
        np.testing.assert_array_equal(vectors, VECTORS)


class TestFilesOfOthers:
    def test_binary_of_the_first_word2vec_has_newlines(self, tmp_path):
        path = tmp_path / "v"
        rows = [
            w.encode() + b" " + v.tobytes() + b"\n" for w, v in zip(WORDS, VECTORS, strict=True)
        ]
        path.write_bytes(b"%d %d\n" % VECTORS.shape + b"".join(rows))
        words, vectors = read_word2vec(path)
        assert words.tolist() == WORDS
        np.testing.assert_array_equal(vectors, VECTORS)


class TestWritingIsRefused:
    def test_white_space(self, tmp_path):
        for word in (f"b{space}c" for space in " \t\n\v\f\r"):
            message = rf"words must hold no white space.*Got {re.escape(repr(word))} at entry 1"
            with pytest.raises(ValueError, match=message):
                write_word2vec(tmp_path / "v", ["a", word], np.ones((2, 2)))
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        ("words", "error", "message"),
        [
            (["a", ""], ValueError, "must be distinct, none empty. Got '' at entry 1"),
            (["a", "a"], ValueError, "must be distinct, none empty. Got 'a' at entry 1"),
            (["a", "\ud800"], ValueError, r"UTF-8 can write. Got '\\ud800' at entry 1"),
            (["a", 5], TypeError, "must hold texts only. Got 5 at entry 1"),
            (["a", None], TypeError, "must hold texts only. Got None at entry 1"),
            ("ab", TypeError, "Got the single word 'ab'"),
            ([["a", "b"]], ValueError, r"one dimension. Got shape \(1, 2\)"),
        ],
    )
    def test_words(self, tmp_path, words, error, message):
        with pytest.raises(error, match=f"^write_word2vec: words.*{message}"):
            write_word2vec(tmp_path / "v", words, np.ones((2, 2)))

    @pytest.mark.parametrize(
        ("vectors", "error", "message"),
        [
            ([[1, 2]], ValueError, r"shape \(2, dim\). Got shape \(1, 2\)"),
            ([[1], [1, 2]], ValueError, "rows of different lengths"),
            ([[1, 2], [1e39, 2]], ValueError, "finite in float32.* row 1"),
            ([["1"], ["2"]], TypeError, "Got dtype <U1"),
        ],
    )
    def test_vectors(self, tmp_path, vectors, error, message):
        with pytest.raises(error, match=f"^write_word2vec: vectors .*{message}"):
            write_word2vec(tmp_path / "v", ["a", "b"], vectors)


ONE = np.float32(1.5).tobytes()
BROKEN = {
    "empty": (b"", "the first line must be .* Got b''"),
    "no header": (b"the 0.1 0.2\n", "the first line must be"),
    "no dimension": (b"2 0\na\nb\n", "the first line must be"),
    "few words": (b"3 2\na 1 2\nb 3 4\n", "promises 3 words. Got 2: the file was cut off"),
    "many words": (b"1 2\na 1 2\nb 3 4\n", "more than the 1 words"),
    "few numbers": (b"2 2\na 1 2\nb 3\n", "word 2, b'b', must have 2 numbers. Got 1"),
    "no number": (b"2 2\na 1 2\nb 3 x4\n", "word 2, b'b': .*x4"),
    "not a number": (b"1 2\nb 3 nan\n", "word 1, b'b', must have finite numbers"),
    "an empty word": (b"2 2\na 1 2\n 1 1\n", "neither empty nor repeated"),
    "a word twice": (b"3 1\na 1\nb 2\na 3\n", "neither empty nor repeated"),
    "no UTF-8": (b"2 1\na 1\n\xff 2\n", "word 2, .*codec"),
    "a huge header": (b"2000000000 1\na 1\n", "Got 1: the file was cut off|vectors of shape"),
    "binary, cut": (b"2 1\nlonger " + ONE + b"b " + ONE[:3], "must have 1 numbers. Got 0"),
    "binary, infinity": (b"1 1\na \0\0\x80\xff", "must have finite numbers"),
    "binary, a word without end": (b"1 1\n\0" + b"x" * 70_000, "a word of more than 65,536"),
}


@pytest.mark.parametrize(("content", "message"), BROKEN.values(), ids=BROKEN)
def test_broken_files_are_refused(tmp_path, content, message):
    path = tmp_path / "v"
    path.write_bytes(content)
    with pytest.raises((DataFormatError, MemoryBudgetError), match=message):
        read_word2vec(path)


def test_cut_compressed_files_are_refused(tmp_path):
    path = written(tmp_path, WORDS, VECTORS, True, "v.gz")
    content = path.read_bytes()
    for size in range(8, len(content) - 1, 7):
        path.write_bytes(content[:size])
        with pytest.raises(DataFormatError, match=re.escape(str(path))):
            read_word2vec(path)
