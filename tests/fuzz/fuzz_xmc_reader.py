"""The reader of XMC files: what it reads is what the slow reader reads, or both refuse."""

import gzip
import lzma
import os
import sys
import warnings
import zlib
from pathlib import Path
from types import FunctionType, SimpleNamespace

import numpy as np

from sklearn_xc.datasets import _files, xmc_reader
from sklearn_xc.datasets import kernels as xmc_text
from sklearn_xc.exceptions import DataFormatError

sys.path.append(str(Path(__file__).resolve().parents[1] / "datasets"))
from slow_xmc import Refused, assert_equal, read_slowly

#: Bytes that are read at a time.
_CHUNKS = (1 << 20, 1, 7, 64)


def in_python(kernel, instrument):
    """Return the parser as Python runs it, branch by branch, with every index checked."""
    numbers = SimpleNamespace(uint8=lambda number: number & 255, uint64=int)
    names = {**kernel.py_func.__globals__, "np": numbers}

    def rebuilt(function):
        return instrument.instrument_func(FunctionType(function.__code__, names))

    parts = {name: value for name, value in names.items() if isinstance(value, FunctionType)}
    names |= {
        name: rebuilt(function)
        for name, function in parts.items()
        if function.__module__ == kernel.py_func.__module__
    }
    return rebuilt(kernel.py_func)


def both(compiled, slow):
    """Return a parser that runs both, and compares what they return and fill."""

    def parse(text, size, *arguments):
        limits, outputs = arguments[:3], arguments[3:]
        others = [np.zeros_like(output) for output in outputs]
        found = compiled(text, size, *limits, *outputs)
        expected = slow(text.tobytes(), size, *limits, *others)
        assert tuple(map(int, found)) == tuple(map(int, expected)), (found, expected)
        n_rows = found[1]
        n_of = (outputs[0][n_rows], outputs[2][n_rows])
        filled = (n_rows + 1, n_of[0], n_rows + 1, n_of[1], n_of[1], n_of[1])
        for n, output, other in zip(filled, outputs, others, strict=True):
            assert (output[:n] == other[:n]).all()
        return found

    return parse


def plain(data):
    """Return the text of a file, whose first bytes say whether it is compressed."""
    try:
        if data.startswith(b"\x1f\x8b"):
            return gzip.decompress(data)
        return lzma.decompress(data) if data.startswith(b"\xfd7zXZ\x00") else data
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError):
        raise Refused from None


def prepare(instrument):
    """Return the function that tries an input."""
    for module in (xmc_reader, _files):
        for name, made in vars(module).items():
            if isinstance(made, FunctionType) and made.__module__ == module.__name__:
                setattr(module, name, instrument.instrument_func(made))
    slow_parser = in_python(xmc_text.parse_rows_xmc, instrument)
    xmc_text.parse_rows_xmc = both(xmc_text.parse_rows_xmc, slow_parser)
    warnings.simplefilter("error")
    memory = os.memfd_create("input")
    path = f"/proc/self/fd/{memory}"

    def one(data):
        os.ftruncate(memory, 0)
        os.pwrite(memory, data, 0)
        dtype = (np.float32, np.float64)[len(data) % 2]
        xmc_reader._CHUNK_BYTES = _CHUNKS[sum(data) % len(_CHUNKS)]
        try:
            found = xmc_reader.load_xmc_file(path, dtype=dtype)
        except DataFormatError:
            found = None
        try:
            expected = read_slowly(plain(data), dtype)
        except Refused:
            assert found is None, "a file was read that breaks the format"
        else:
            assert found is not None, "a file was refused that has the format"
            assert_equal(expected, *found, dtype)

    return one
