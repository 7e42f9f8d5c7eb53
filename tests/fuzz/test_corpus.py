"""Inputs that fuzzing has found: the reader of XMC files reads what a slow reader reads."""

import gzip
import lzma
import sys
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from sklearn_xc.datasets import load_xmc_file, xmc
from sklearn_xc.exceptions import DataFormatError

sys.path.append(str(Path(__file__).resolve().parents[1] / "datasets"))
from slow_xmc import Refused, assert_equal, read_slowly


def unpacked(data):
    """Return the text of a file, whose first bytes tell whether it is compressed."""
    try:
        if data.startswith(b"\x1f\x8b"):
            return gzip.decompress(data)
        return lzma.decompress(data) if data.startswith(b"\xfd7zXZ\x00") else data
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError):
        raise Refused from None


@pytest.mark.parametrize("n_chunk", [1 << 20, 7])
def test_both_readers_agree(n_chunk, tmp_path, monkeypatch):
    monkeypatch.setattr(xmc, "_BLOCK_BYTES", n_chunk)
    warnings.simplefilter("error")
    with zipfile.ZipFile(Path(__file__).with_name("corpus") / "xmc_reader.zip") as file:
        inputs = [file.read(name) for name in file.namelist()]
    assert len(inputs) > 50
    n_read = 0
    for data in inputs:
        (tmp_path / "input").write_bytes(data)
        dtype = (np.float32, np.float64)[len(data) % 2]
        try:
            expected = read_slowly(unpacked(data), dtype)
        except Refused:
            with pytest.raises(DataFormatError):
                load_xmc_file(tmp_path / "input", dtype=dtype)
        else:
            assert_equal(expected, *load_xmc_file(tmp_path / "input", dtype=dtype), dtype)
            n_read += 1
    assert n_read > 10
