"""Files that want too much: endless lines, floods of blank ones, more rows than memory holds."""

import gzip
import lzma
import re
import tracemalloc

import pytest

from sklearn_xc._parallel import memory
from sklearn_xc.datasets import _files, load_text_dataset, load_xmc_file, text, xmc_reader
from sklearn_xc.exceptions import DataFormatError, MemoryBudgetError

COMPRESS = {"plain": bytes, "gzip": gzip.compress, "xz": lzma.compress}
# The reader, and a file of `n` bytes in its second line (its only one, where there is no header).
LAYOUTS = {
    "xmc": (load_xmc_file, lambda n: b"1 9 9\n0" + b" " * (n - 1)),
    "tsv": (load_text_dataset, lambda n: b"text\tlabels\n" + b"x" * (n - 1) + b"\t"),
    "fasttext": (load_text_dataset, lambda n: b"__label__a b\n" + b"x" * n),
}
every_layout = pytest.mark.parametrize("layout", LAYOUTS)


class TestLongLines:
    @pytest.mark.parametrize("compress", COMPRESS.values(), ids=COMPRESS)
    @every_layout
    @pytest.mark.parametrize("end", [b"", b"\n", b"\nmore\n"])
    @pytest.mark.parametrize("chunk", [400, 1 << 20])
    def test_the_limit_is_exact(self, tmp_path, monkeypatch, layout, compress, end, chunk):
        monkeypatch.setattr(_files, "MAX_LINE_BYTES", 1000)
        monkeypatch.setattr(xmc_reader, "_CHUNK_BYTES", chunk)
        read, make = LAYOUTS[layout]
        path = tmp_path / "data"
        if end != b"\nmore\n":
            path.write_bytes(compress(make(1000) + end))
            read(path)
        path.write_bytes(compress(make(1001) + end))
        message = rf"^{re.escape(str(path))}, line 2: '.*\.\.\..*': the line is longer than 1,000 "
        with pytest.raises(DataFormatError, match=message):
            read(path)

    @pytest.mark.parametrize("byte", [b"0", b" ", b"\xff"])
    @pytest.mark.parametrize("compress", COMPRESS.values(), ids=COMPRESS)
    @pytest.mark.parametrize("read", [load_xmc_file, load_text_dataset])
    def test_one_byte_without_end(self, tmp_path, monkeypatch, read, compress, byte):
        limit, size = 1 << 16, 1 << 24
        monkeypatch.setattr(_files, "MAX_LINE_BYTES", limit)
        monkeypatch.setattr(xmc_reader, "_CHUNK_BYTES", limit)
        path = tmp_path / "data"
        path.write_bytes(compress(byte * size))
        tracemalloc.start()
        try:
            with pytest.raises(DataFormatError, match=r"line 1: .* longer than 65,536 bytes"):
                read(path)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 0.75 * size  # xz has a window of 8 MiB


class TestBlankLines:
    @pytest.mark.parametrize("line", [b"\n", b" \t\r\n", b"   \n"])
    def test_behind_the_last_row_they_are_passed_over_in_little_memory(self, tmp_path, line):
        path = tmp_path / "data.gz"
        path.write_bytes(gzip.compress(b"1 9 9\n0 1:2\n" + line * (1 << 24)))
        tracemalloc.start()
        try:
            X, _ = load_xmc_file(path)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert X.shape == (1, 9)
        assert peak < 60 << 20  # a few chunks

    def test_more_empty_rows_than_memory_holds(self, tmp_path, monkeypatch):
        monkeypatch.setattr(xmc_reader, "_LARGE_BYTES", 10_000)
        monkeypatch.setattr(xmc_reader, "_CHUNK_BYTES", 1000)
        monkeypatch.setattr(memory, "available_bytes", lambda: 20_000)
        path = tmp_path / "data.gz"
        path.write_bytes(gzip.compress(b"2000000000 9 9\n" + b"\n" * 100_000))
        message = rf"The largest array is [\d,]+ row pointers of {re.escape(str(path))}\. Read the"
        with pytest.raises(MemoryBudgetError, match=message):
            load_xmc_file(path)


class TestMemory:
    @pytest.mark.parametrize("read", [load_xmc_file, load_text_dataset])
    def test_an_allocation_that_fails_names_the_file_and_the_line(
        self, tmp_path, monkeypatch, read
    ):
        def fail(*args):
            raise MemoryError

        path = tmp_path / "data"
        path.write_bytes(b"2 9 9\n0 1:2\n" if read is load_xmc_file else b"text\tlabels\na\t0\n")
        monkeypatch.setattr(xmc_reader, "_to_float", fail)
        monkeypatch.setattr(text._Rows, "add", fail)
        message = rf"^{re.escape(str(path))}, after line \d: the memory is used up"
        with pytest.raises(MemoryBudgetError, match=message):
            read(path)


class TestArguments:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"format": None}, "format must be one of .* Got None"),
            ({"label_column": 3}, "label_column must be a str. Got 3"),
            ({"separator": None}, "separator must be a str. Got None"),
            ({"text_columns": 3}, "text_columns must be a str or a sequence of them. Got 3"),
            ({"text_columns": ["text", 3]}, "text_columns must be a str or a sequence of them"),
            ({"n_labels": True}, "n_labels must be an integer from 0 to .* Got True"),
            ({"n_labels": 2**31}, "n_labels must be an integer .* Got 2147483648"),
            ({"label_names": "abc"}, "label_names must be a sequence of str. Got 'abc'"),
            ({"label_names": [1, 2]}, "label_names must be a sequence of str. Got .1, 2"),
        ],
    )
    def test_of_the_text_reader(self, tmp_path, arguments, message):
        path = tmp_path / "data"
        path.write_text("text\tlabels\na\t0\n")
        with pytest.raises(ValueError, match=f"load_text_dataset: {message}"):
            load_text_dataset(path, **arguments)

    @pytest.mark.parametrize("dtype", [None, "float16", "number", 3, "datetime64[s]", object])
    def test_dtypes(self, tmp_path, dtype):
        with pytest.raises(ValueError, match="load_xmc_file: dtype must be float32 or float64"):
            load_xmc_file(tmp_path / "nowhere", dtype=dtype)
