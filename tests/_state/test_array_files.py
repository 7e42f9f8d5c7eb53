"""Safetensors files: what is written comes back, and what is damaged or crafted is refused."""

import json
import os

import numpy as np
import pytest
from safetensors.numpy import load_file

from sklearn_xc._state.files import read_arrays, write_arrays
from sklearn_xc._state.values import DTYPES
from sklearn_xc.exceptions import SavedModelError

ARRAYS = {
    **{name: np.arange(6).reshape(2, 3).astype(dtype) for name, dtype in DTYPES.items()},
    "none": np.empty((0, 3)),
    "one": np.array(3.5),
}


def test_arrays_come_back_as_read_only_maps(tmp_path):
    path = tmp_path / "a.safetensors"
    sha256 = write_arrays(path, ARRAYS, {"key": "value"})
    found, metadata = read_arrays(path, sha256)
    assert metadata == {"key": "value"}
    assert found.keys() == ARRAYS.keys() == load_file(path).keys()
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        assert not found[name].flags.writeable
        np.testing.assert_array_equal(found[name], array)
        np.testing.assert_array_equal(load_file(path)[name], array)


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path, full_disk):
    with full_disk(after=0), pytest.raises(OSError, match=r"No space left on device: '.*x\.st'"):
        write_arrays(tmp_path / "x.st", ARRAYS)


def test_damage_is_found_if_the_checksum_is_compared(tmp_path):
    path = tmp_path / "a.safetensors"
    sha256 = write_arrays(path, {"a": np.arange(4.0)})
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert read_arrays(path)[0]["a"][-1] != 3
    with pytest.raises(SavedModelError, match="is damaged: its values are not those written"):
        read_arrays(path, sha256)


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.mark.parametrize(
    ("header", "n_bytes"),
    [
        (b"", 0),
        (b"[]", 0),
        ({"a": 3}, 8),
        ({"a": entry(dtype="O")}, 8),
        ({"a": entry(dtype="BF16", shape=[4])}, 8),
        ({"a": entry(shape=[3])}, 8),
        ({"a": entry(shape=[2**62, 4], offsets=(0, 0))}, 0),
        ({"a": entry(offsets=(0, 2**62))}, 8),
        ({"a": entry(), "b": entry()}, 8),
        ({"a": entry()}, 9),
        ({"a": entry(dtype="BOOL")}, 2),
        ({"a": entry(dtype="U8", shape=[1], offsets=(0, 1)), "b": entry(offsets=(1, 9))}, 9),
    ],
)
def test_crafted_headers_are_refused(header, n_bytes, tmp_path):
    path = tmp_path / "a.safetensors"
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(range(1, n_bytes + 1)))
    with pytest.raises(SavedModelError, match=r"a\.safetensors: is no whole safetensors file"):
        read_arrays(path)


@pytest.mark.parametrize("content", [b"", b"1234", (2**63).to_bytes(8, "little") + b"{}"])
def test_short_files_are_refused(content, tmp_path):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(SavedModelError):
        read_arrays(tmp_path / "a")


@pytest.mark.skipif(os.name != "posix", reason="makes links and pipes")
@pytest.mark.parametrize("kind", ["circle", "folder", "pipe", "device"])
def test_only_regular_files_are_opened(kind, tmp_path):
    path = tmp_path / "a.safetensors"
    {
        "circle": lambda: path.symlink_to(path),
        "folder": path.mkdir,
        "pipe": lambda: os.mkfifo(path),
        "device": lambda: path.symlink_to("/dev/zero"),
    }[kind]()
    with pytest.raises(SavedModelError, match=r"is not a regular file|cannot be read"):
        read_arrays(path)
