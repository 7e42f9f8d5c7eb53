"""Files of word2vec: what goes in comes out, here and in gensim; broken ones are refused."""

import bz2
import gzip
import lzma
import os
import re
import sys
import threading

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sklearn_xc.exceptions import DataFormatError, MemoryBudgetError
from sklearn_xc.parallel import memory
from sklearn_xc.skip_gram import word2vec_files
from sklearn_xc.skip_gram.word2vec_files import (
    from_keyed_vectors,
    read_word2vec,
    to_keyed_vectors,
    write_word2vec,
)

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
    @pytest.mark.parametrize("told", [True, False])
    def test_same_words_and_bits(self, tmp_path, binary, told):
        path = written(tmp_path, WORDS, VECTORS, binary)
        words, vectors = read_word2vec(path, binary=binary if told else None)
        assert words.tolist() == WORDS
        assert words.dtype == object
        np.testing.assert_array_equal(vectors, VECTORS)
        assert vectors.dtype == np.float32
        assert vectors.flags.c_contiguous
        assert vectors.flags.writeable

    @both_formats
    def test_all_finite_values_keep_their_bits(self, tmp_path, binary):
        odd = [0.0, -0.0, 1e-45, -1e-45, 1.1754944e-38, 3.4028235e38, -3.4028235e38, 16777216, 0.1]
        values = np.concatenate([np.array(odd, np.float32), all_floats(8000)])
        values = values[: len(values) // 5 * 5].reshape(-1, 5)
        path = written(tmp_path, [f"w{i}" for i in range(len(values))], values, binary)
        _, vectors = read_word2vec(path)
        np.testing.assert_array_equal(vectors.view(np.uint32), values.view(np.uint32))

    @both_formats
    @pytest.mark.parametrize("name", ["v.gz", "v.xz", "v.bz2"])
    def test_compressed_by_name(self, tmp_path, binary, name):
        path = written(tmp_path, WORDS, VECTORS, binary, name)
        plain = written(tmp_path, WORDS, VECTORS, binary)
        unpack = {"gz": gzip, "xz": lzma, "bz2": bz2}[name.partition(".")[2]].decompress
        assert unpack(path.read_bytes()) == plain.read_bytes()
        moved = path.rename(tmp_path / "no suffix")
        words, vectors = read_word2vec(moved)
        assert words.tolist() == WORDS
        np.testing.assert_array_equal(vectors, VECTORS)

    @both_formats
    @pytest.mark.parametrize("chunk", [1, 7, 100])
    def test_pieces_of_any_size(self, tmp_path, monkeypatch, binary, chunk):
        path = written(tmp_path, WORDS, VECTORS, binary)
        for name in ("_CHUNK", "_SAMPLE", "_NUMBERS"):
            monkeypatch.setattr(word2vec_files, name, chunk)
        words, vectors = read_word2vec(path, binary=binary)
        assert words.tolist() == WORDS
        np.testing.assert_array_equal(vectors, VECTORS)
        assert written(tmp_path, WORDS, VECTORS, binary, "2").read_bytes() == path.read_bytes()

    @both_formats
    def test_more_than_one_piece(self, tmp_path, binary):
        vectors = RANDOM.normal(size=(1500, 100)).astype(np.float32)
        names = [f"w{i}" for i in range(1500)]
        words, found = read_word2vec(written(tmp_path, names, vectors, binary))
        assert words.tolist() == names
        np.testing.assert_array_equal(found, vectors)

    @both_formats
    def test_no_words(self, tmp_path, binary):
        words, vectors = read_word2vec(written(tmp_path, [], np.empty((0, 3)), binary))
        assert words.shape == (0,)
        assert vectors.shape == (0, 3)

    @both_formats
    def test_from_a_pipe(self, tmp_path, binary):
        content = written(tmp_path, WORDS, VECTORS, binary).read_bytes()
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(content,))
        writer.start()
        words, _ = read_word2vec(pipe)
        writer.join()
        assert words.tolist() == WORDS

    @settings(max_examples=50, deadline=None)
    @given(data=st.data(), binary=st.booleans())
    def test_any_words_and_numbers(self, data, binary, tmp_path_factory):
        characters = st.characters(codec="utf-8", exclude_characters=" \t\n\v\f\r")
        words = data.draw(st.lists(st.text(characters, min_size=1), max_size=6, unique=True))
        dim = data.draw(st.integers(1, 4))
        numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
        row = st.lists(numbers, min_size=dim, max_size=dim)
        rows = data.draw(st.lists(row, min_size=len(words), max_size=len(words)))
        vectors = np.array(rows, np.float32).reshape(len(words), dim)
        path = written(tmp_path_factory.getbasetemp(), words, vectors, binary)
        found, values = read_word2vec(path, binary=binary)
        assert found.tolist() == words
        np.testing.assert_array_equal(values.view(np.uint32), vectors.view(np.uint32))


class TestFilesOfOthers:
    def test_text_of_the_first_word2vec(self, tmp_path):
        path = tmp_path / "v"
        path.write_bytes(b"2 3\n</s> 0.004003 0.004419 -0.003830 \nthe 1 -2e-1 +.5 \n")
        words, vectors = read_word2vec(path)
        assert words.tolist() == ["</s>", "the"]
        expected = [[0.004003, 0.004419, -0.00383], [1, -0.2, 0.5]]
        np.testing.assert_array_equal(vectors, np.array(expected, np.float32))

    def test_binary_of_the_first_word2vec_has_newlines(self, tmp_path):
        path = tmp_path / "v"
        rows = [
            w.encode() + b" " + v.tobytes() + b"\n" for w, v in zip(WORDS, VECTORS, strict=True)
        ]
        path.write_bytes(b"%d %d\n" % VECTORS.shape + b"".join(rows))
        words, vectors = read_word2vec(path)
        assert words.tolist() == WORDS
        np.testing.assert_array_equal(vectors, VECTORS)

    @pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n \n"])
    def test_line_ends(self, tmp_path, end):
        path = tmp_path / "v"
        path.write_bytes(f"2 2\r\na 1 2\r\nb 3 4{end}".encode())
        words, vectors = read_word2vec(path)
        assert words.tolist() == ["a", "b"]
        np.testing.assert_array_equal(vectors, [[1, 2], [3, 4]])

    def test_binary_whose_bytes_are_letters(self, tmp_path):
        path = tmp_path / "v"
        path.write_bytes(b"2 1\na ABC?b xyz>")
        _, vectors = read_word2vec(path)
        np.testing.assert_array_equal(vectors[:, 0], np.frombuffer(b"ABC?xyz>", "<f4"))

    @pytest.mark.parametrize("binary", [False, True])
    @pytest.mark.parametrize("dim", [1, 5])
    def test_of_gensim(self, tmp_path, binary, dim):
        models = pytest.importorskip("gensim.models")
        keyed = models.KeyedVectors(dim)
        keyed.add_vectors(WORDS, VECTORS[:, :dim])
        path = tmp_path / "gensim"
        keyed.save_word2vec_format(path, binary=binary)
        words, vectors = read_word2vec(path)
        assert words.tolist() == WORDS
        np.testing.assert_array_equal(vectors, VECTORS[:, :dim])
        ours = written(tmp_path, WORDS, VECTORS[:, :dim], binary)
        assert ours.read_bytes() == path.read_bytes()

    @both_formats
    @pytest.mark.parametrize("name", ["v", "v.gz"])
    def test_gensim_reads_ours(self, tmp_path, binary, name):
        models = pytest.importorskip("gensim.models")
        path = written(tmp_path, WORDS, VECTORS, binary, name)
        keyed = models.KeyedVectors.load_word2vec_format(path, binary=binary)
        assert keyed.index_to_key == WORDS
        np.testing.assert_array_equal(keyed.vectors, VECTORS)


class TestWritingIsRefused:
    @both_formats
    @pytest.mark.parametrize("space", list(" \t\n\v\f\r"))
    def test_white_space(self, tmp_path, binary, space):
        message = rf"words must hold no white space.*Got {re.escape(repr(f'b{space}c'))} at entry 1"
        with pytest.raises(ValueError, match=message):
            write_word2vec(tmp_path / "v", ["a", f"b{space}c"], np.ones((2, 2)), binary=binary)
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        ("words", "error", "message"),
        [
            (["a", ""], ValueError, "must not be empty. Got an empty word at entry 1"),
            (["a", "a"], ValueError, "must be distinct. Got 'a' at entries 0 and 1"),
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
            ([1, 2], ValueError, r"Got shape \(2,\)"),
            (np.ones((2, 0)), ValueError, r"Got shape \(2, 0\)"),
            ([[1], [1, 2]], ValueError, "rows of different lengths"),
            ([[1, np.nan], [1, 2]], ValueError, "finite in float32. Got nan in row 0, column 1"),
            ([[1, 2], [1e39, 2]], ValueError, r"Got 1e\+39 in row 1, column 0"),
            ([["1"], ["2"]], TypeError, "Got dtype <U1"),
            (np.ones((2, 2), complex), TypeError, "Got dtype complex128"),
            (np.ma.ones((2, 2)), TypeError, "masked"),
        ],
    )
    def test_vectors(self, tmp_path, vectors, error, message):
        with pytest.raises(error, match=f"^write_word2vec: vectors .*{message}"):
            write_word2vec(tmp_path / "v", ["a", "b"], vectors)

    def test_an_older_file_stays_after_an_error(self, tmp_path, monkeypatch):
        path = written(tmp_path, ["old"], [[1.0]], binary=False)
        before = path.read_bytes()
        monkeypatch.setattr(word2vec_files, "_as_text", lambda rows: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write_word2vec(path, ["new"], [[1.0]])
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]


BROKEN = {
    "empty": (b"", "line 1: the number of words .* Got ''"),
    "no header": (b"the 0.1 0.2\n", "line 1: .*Got 'the 0.1 0.2.*A file without such a line"),
    "one number": (b"2\na 1\nb 2\n", "line 1: .*Got '2"),
    "a negative number of words": (b"-2 2\na 1 2\n", "from 0 to .* Got -2 and 2"),
    "a negative dimension": (b"2 -2\na 1 2\n", "from 1 to .* Got 2 and -2"),
    "no dimension": (b"2 0\na\nb\n", "from 1 to .* Got 2 and 0"),
    "a fraction": (b"2 2.0\na 1 2\n", "line 1: .*Got '2 2.0"),
    "digits without end": (b"1" * 10**6, "line 1: .*Got '1111"),
    "a byte order mark": (b"\xef\xbb\xbf1 1\na 1\n", "line 1: .*Got '.xef"),
    "beyond all files": (b"1 99999999999\na 1\n", "line 1: .*Got 1 and 99999999999"),
    "a header that promises too much": (b"9 2\na 1 2\nb 3 4\n", "take at least .* Got 12 bytes"),
    "few words": (b"3 2\na 1111 2\nb 3333 4\n", "promises 3 words, the file ends after 2"),
    "many words": (b"1 2\na 1 2\nb 3 4\n", "line 3: the header promises 1 words. Got more: 'b 3"),
    "few numbers": (b"2 2\na 111 2\nb 3\n", "line 3: a word and 2 numbers .*Got 1 numbers"),
    "many numbers": (b"2 2\na 1 2\nb 3 4 5\n", "line 3: .*Got 3 numbers after 'b'"),
    "a word with a space": (b"1 2\nNew York 1 2\n", "line 2: .*Got 3 numbers after 'New'"),
    "no number": (b"2 2\na 1 2\nb 3 x4\n", "line 3: a number was expected. Got 'x4'"),
    "no number in the first line": (b"1 2\na 3 x4\n", "line 2: a number .* Got 'x4'"),
    "an underscore": (b"2 2\na 1 2\nb 3 1_0\n", "line 3: a number was expected. Got '1_0'"),
    "not a number": (b"3 2\na 1 2\nb 3 nan\nc 1 2\n", "line 3, number 2: a finite .*Got nan"),
    "infinity": (b"2 2\na -inf 2\nb 3 1\n", "line 2, number 1: a finite .*Got -inf"),
    "beyond float32": (b"2 2\na 1 2\nb 1e39 1\n", r"line 3, number 1: a finite .*Got 1e\+39"),
    "an empty word": (b"2 2\na 1 2\n 1 1\n", "line 3: a word was expected. Got an empty one"),
    "an empty line": (b"2 2\na 111 2\n\nb 1 1\n", "line 3: .*Got 0 numbers after ''"),
    "a word twice": (b"3 1\na 1\nb 2\na 3\n", "line 4: .*Got 'a', which is line 2 already"),
    "no UTF-8": (b"2 1\na 1\n\xff 2\n", "line 3: a word in UTF-8 was expected. Got '.xff'"),
}  # fmt: skip
ONE = np.float32(1.5).tobytes()
BROKEN_BINARY = {
    "cut within a vector": (b"2 1\nlonger " + ONE + b"b " + ONE[:3], "ends after 1, within word 2"),
    "cut within a word": (b"2 1\nlonger " + ONE + b"bcd", "ends after 1, within word 2"),
    "cut after a word": (b"2 1\nlonger_than " + ONE + b"\n", "the file ends after 1."),
    "many words": (b"1 1\na " + ONE + b"b " + ONE, "promises 1 words. Got more: 'b "),
    "a word twice": (b"2 1\na " + ONE + b"a " + ONE, "word 2: .*Got 'a', which is word 1"),
    "an empty word": (b"2 1\nab " + ONE + b"\n " + ONE, "word 2: .*Got an empty one"),
    "no UTF-8": (b"2 1\na " + ONE + b"\xff " + ONE, "word 2: a word in UTF-8 .*Got '.xff'"),
    "not a number": (b"1 2\na " + ONE + b"\0\0\xc0\x7f", "word 1, 'a', number 2: .*Got nan"),
    "infinity": (b"1 1\na \0\0\x80\xff", "word 1, 'a', number 1: .*Got -inf"),
    "a word without end": (b"1 1\n" + b"x" * 70_000, "word 1: a word of at most 65,536 bytes"),
    "a header that promises too much": (b"1 2000000000\na " + ONE, "take at least 8,000,000,002"),
}  # fmt: skip


class TestReadingIsRefused:
    @pytest.mark.parametrize(("content", "message"), BROKEN.values(), ids=BROKEN)
    @pytest.mark.parametrize("binary", [None, False])
    def test_text(self, tmp_path, content, message, binary):
        path = tmp_path / "v"
        path.write_bytes(content)
        with pytest.raises(DataFormatError, match=f"^{re.escape(str(path))}: .*{message}"):
            read_word2vec(path, binary=binary)

    @pytest.mark.parametrize(("content", "message"), BROKEN_BINARY.values(), ids=BROKEN_BINARY)
    def test_binary(self, tmp_path, content, message):
        path = tmp_path / "v"
        path.write_bytes(content)
        with pytest.raises(DataFormatError, match=f"(?s)^{re.escape(str(path))}: .*{message}"):
            read_word2vec(path, binary=True)

    def test_line_of_a_value_beyond_the_first_piece(self, tmp_path, monkeypatch):
        monkeypatch.setattr(word2vec_files, "_NUMBERS", 6)
        lines = [f"w{i} 1 2" for i in range(20)]
        lines[13] = "w13 1 inf"
        path = tmp_path / "v"
        path.write_text("20 2\n" + "\n".join(lines))
        with pytest.raises(DataFormatError, match=r"line 15, number 2: .*Got inf"):
            read_word2vec(path)

    @both_formats
    def test_a_header_allocates_nothing(self, tmp_path, binary):
        """Compressed, so that the size of the file tells nothing."""
        path = tmp_path / "v.gz"
        body = b"a " + (ONE if binary else b"1.5 ")
        path.write_bytes(gzip.compress(b"2000000000 2000000000\n" + body))
        with pytest.raises(DataFormatError, match=r"the file ends after 0|Got 1 numbers"):
            read_word2vec(path, binary=binary)

    @pytest.mark.parametrize("binary", [None, False])
    def test_a_line_without_end(self, tmp_path, monkeypatch, binary):
        monkeypatch.setattr(word2vec_files, "_MOST_LINE", 1000)
        path = tmp_path / "v"
        path.write_bytes(b"1 2\n" + b"x" * 1001)
        with pytest.raises(DataFormatError, match="line 2: at most 1,000 bytes were expected"):
            read_word2vec(path, binary=binary)

    @both_formats
    def test_more_than_memory_holds(self, tmp_path, monkeypatch, binary):
        path = written(tmp_path, WORDS, VECTORS, binary)
        monkeypatch.setattr(memory, "available_bytes", lambda: 100)
        with pytest.raises(MemoryBudgetError, match=r"vectors of shape \(11, 7\)"):
            read_word2vec(path)

    def test_no_file(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            read_word2vec(tmp_path / "none")
        with pytest.raises(IsADirectoryError):
            read_word2vec(tmp_path)

    def test_binary_must_be_a_bool(self, tmp_path):
        with pytest.raises(TypeError, match=r"binary must be True, False or None. Got 'yes'"):
            read_word2vec(tmp_path, binary="yes")


def well_formed(words, vectors):
    assert len(set(words.tolist())) == len(words)
    assert all(isinstance(word, str) and word for word in words)
    assert vectors.shape == (len(words), vectors.shape[1])
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()


def is_read_or_refused(path, binary):
    """Tell whether the file is well-formed, or the error names it."""
    try:
        found = read_word2vec(path, binary=binary)
    except (ValueError, OSError) as error:
        return str(path) in str(error)
    well_formed(*found)
    return True


@pytest.fixture(scope="module")
def small_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    files = {}
    for binary in (False, True):
        for suffix in ("", ".gz", ".xz", ".bz2"):
            path = written(folder, WORDS[:4], VECTORS[:4, :3], binary, f"{binary}{suffix}")
            files[binary, suffix] = path.read_bytes()
    return folder / "damaged", files


kinds = st.tuples(st.booleans(), st.sampled_from(["", ".gz", ".xz", ".bz2"]))


class TestDamage:
    @pytest.mark.parametrize("binary", [False, True])
    @pytest.mark.parametrize("told", [True, False])
    def test_every_truncation(self, small_files, binary, told):
        path, files = small_files
        content = files[binary, ""]
        for size in range(len(content)):
            path.write_bytes(content[:size])
            # The last number of a text may be shorter than it was.
            last = content.rfind(b" ") + 1
            if not binary and size > last and content[last:size] != b"-":
                well_formed(*read_word2vec(path, binary=binary if told else None))
                continue
            with pytest.raises(DataFormatError):
                read_word2vec(path, binary=binary if told else None)

    @settings(max_examples=200, deadline=None)
    @given(kind=kinds, at=st.integers(0, 10_000), byte=st.integers(1, 255), told=st.booleans())
    @example(kind=(False, ""), at=0, byte=ord("4") ^ ord("9"), told=False)
    def test_any_flipped_byte(self, small_files, kind, at, byte, told):
        path, files = small_files
        content = bytearray(files[kind])
        content[at % len(content)] ^= byte
        path.write_bytes(content)
        assert is_read_or_refused(path, kind[0] if told else None)

    @settings(max_examples=100, deadline=None)
    @given(
        suffix=st.sampled_from([".gz", ".xz", ".bz2"]), binary=st.booleans(), share=st.floats(0, 1)
    )
    def test_any_cut_of_compressed_data(self, small_files, suffix, binary, share):
        path, files = small_files
        content = files[binary, suffix]
        path.write_bytes(content[: int(share * (len(content) - 1))])
        assert is_read_or_refused(path, None)

    @settings(max_examples=100, deadline=None)
    @given(body=st.binary(max_size=60), header=st.sampled_from([b"", b"1 1\n", b"2 3\n", b"0 1\n"]))
    def test_any_bytes(self, small_files, header, body):
        path, _ = small_files
        path.write_bytes(header + body)
        for binary in (None, False, True):
            assert is_read_or_refused(path, binary)


class TestKeyedVectors:
    def test_there_and_back(self):
        models = pytest.importorskip("gensim.models")
        counts = np.arange(len(WORDS))[::-1]
        keyed = to_keyed_vectors(WORDS, VECTORS, counts)
        assert isinstance(keyed, models.KeyedVectors)
        assert keyed.get_vecattr(WORDS[0], "count") == counts[0]
        np.testing.assert_array_equal(keyed[WORDS[3]], VECTORS[3])
        words, vectors, found = from_keyed_vectors(keyed)
        assert words.tolist() == WORDS
        np.testing.assert_array_equal(vectors, VECTORS)
        np.testing.assert_array_equal(found, counts)
        assert not np.shares_memory(vectors, keyed.vectors)

    def test_without_counts(self):
        pytest.importorskip("gensim")
        words, vectors, counts = from_keyed_vectors(to_keyed_vectors(WORDS, VECTORS))
        assert words.tolist() == WORDS
        np.testing.assert_array_equal(vectors, VECTORS)
        assert counts is None

    def test_gensim_finds_the_same_words(self):
        pytest.importorskip("gensim")
        keyed = to_keyed_vectors(WORDS, VECTORS)
        units = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
        expected = [WORDS[i] for i in np.argsort(-units @ units[2]) if i != 2]
        assert [word for word, _ in keyed.most_similar(WORDS[2])] == expected

    @pytest.mark.parametrize("counts", [[1, -1], [1, 0.5], [1], [1, np.nan], ["1", "2"]])
    def test_counts_are_refused(self, counts):
        pytest.importorskip("gensim")
        with pytest.raises(ValueError, match=r"^to_keyed_vectors: counts"):
            to_keyed_vectors(["a", "b"], np.ones((2, 2)), counts)

    def test_other_objects_are_refused(self):
        class Model:
            wv = None

        with pytest.raises(TypeError, match="Got Model, whose wv are such"):
            from_keyed_vectors(Model())
        with pytest.raises(TypeError, match="Got list"):
            from_keyed_vectors([])

    def test_without_gensim(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "gensim.models", None)
        with pytest.raises(ImportError, match="to_keyed_vectors needs gensim: pip install gensim"):
            to_keyed_vectors(WORDS, VECTORS)
