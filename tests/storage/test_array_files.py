"""Arrays in files: they come back, and damage is found before it is used."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.storage import array_files
from sklearn_xc.storage.array_files import ArrayFile, StoredArray, write_array


def stored(array, folder):
    name, file = write_array(array, folder, "x")
    assert ArrayFile.from_json(name, file.as_json()) == file
    return StoredArray(folder / name, file)


@given(data=st.data(), small=st.sampled_from([0, 2**16]), chunk=st.sampled_from([64, 192, 2**20]))
def test_arrays_come_back(data, small, chunk, tmp_path_factory):
    numbers = npst.boolean_dtypes() | npst.integer_dtypes(endianness="<")
    numbers |= npst.floating_dtypes(endianness="<", sizes=(16, 32, 64))
    dtype = data.draw(numbers | npst.unicode_string_dtypes(endianness="<", max_len=3))
    shape = npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6)
    array = data.draw(npst.arrays(dtype, shape))
    for axis in range(array.ndim):
        step = data.draw(st.sampled_from([1, 2, -1]))
        array = array[(slice(None),) * axis + (slice(None, None, step),)]
    array = data.draw(st.sampled_from([array, array.T, np.asfortranarray(array)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(array_files, "SMALL", small)
        patch.setattr(array_files, "CHUNK", chunk)
        patch.setattr(array_files, "_PIECE", 16)
        found = stored(array, tmp_path_factory.mktemp("a"))
        back = found.checked()
        np.load(found.path, allow_pickle=False)  # as anybody would
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.tobytes() == array.tobytes()
    assert not back.flags.writeable


@pytest.fixture
def chunks(monkeypatch):
    monkeypatch.setattr(array_files, "CHUNK", 256)
    monkeypatch.setattr(array_files, "SMALL", 0)


def damage(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 4
    path.write_bytes(bytes(data))


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("at", [70, 130, 255, 256, 1000, 128 + 8 * 500 - 1])
def test_only_what_is_damaged_is_refused(at, tmp_path):
    array = np.arange(500)
    name, file = write_array(array, tmp_path, "x")
    damage(tmp_path / name, at)
    found = StoredArray(tmp_path / name, file)
    for i in range(500):
        if at // 256 == (128 + 8 * i) // 256:
            with pytest.raises(SavedModelError, match=f"between bytes {at // 256 * 256:,} and "):
                found.check(np.array([i]), np.array([i + 1]))
        else:
            found.check(np.array([i]), np.array([i + 1]))
            assert found.unchecked[i] == i
    with pytest.raises(SavedModelError, match="damaged between"):
        found.checked()


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("seed", range(5))
def test_a_check_reads_what_ranges_touch(seed, tmp_path, monkeypatch):
    rng = np.random.default_rng(seed)
    found = stored(np.arange(2000, dtype=np.int32), tmp_path)
    first = rng.integers(0, 1900, 5)
    stop = first + rng.integers(0, 90, 5)
    found.check(first, stop)
    touched = {(128 + 4 * i) // 256 for a, b in zip(first, stop, strict=True) for i in range(a, b)}
    assert set(np.flatnonzero(found._is_checked)) == touched
    assert not found.is_checked
    found.checked()
    assert found.is_checked


@pytest.mark.usefixtures("chunks")
def test_values_out_of_range_are_refused_where_they_are(tmp_path):
    array = np.arange(500, dtype=np.int32)
    found = stored(array, tmp_path)
    found.require(0, 300)
    found.check(np.array([0]), np.array([200]))
    with pytest.raises(SavedModelError, match="values that are not from 0 to below 300"):
        found.check(np.array([299]), np.array([310]))


@pytest.mark.usefixtures("chunks")
def test_what_is_required_later_holds_for_what_was_checked_before(tmp_path):
    """As of a file that two parts of a model name."""
    found = stored(np.arange(500, dtype=np.int32), tmp_path)
    found.checked()
    found.require(0, 1000)
    found.checked()
    found.require(-5, 300)
    found.require(0, 1000)
    with pytest.raises(SavedModelError, match="values that are not from 0 to below 300"):
        found.checked()


def test_what_is_not_as_it_was_written(tmp_path):
    name, file = write_array(np.arange(30.0), tmp_path, "x")
    path = tmp_path / name
    written = path.read_bytes()
    path.write_bytes(written[:-8])
    with pytest.raises(SavedModelError, match=r"has 360 bytes, 368 were written"):
        StoredArray(path, file)
    path.unlink()
    with pytest.raises(SavedModelError, match="the file is missing"):
        StoredArray(path, file)


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "O"}, {"dtype": "<f9"}, {"dtype": 3}, {"shape": [-1]}, {"shape": [1.5]},
        {"shape": 3}, {"shape": [True]}, {"fortran": 1}, {"size": 2**40}, {"size": "1"},
        {"sha256": ["0"]}, {"sha256": 3}, {"sha256": []}, {"more": 1}, {"dtype": "|S0"},
        {"dtype": "|V0"}, {"shape": [1] * 65}, {"shape": [2**62, 2**62, 0]}, {"shape": [29]},
        {"dtype": ">f8"}, {"dtype": "(2,)f4"}, {"dtype": "<U0"},
    ],
)  # fmt: skip
def test_what_says_no_array(change, tmp_path):
    name, file = write_array(np.arange(30.0), tmp_path, "x")
    with pytest.raises(SavedModelError, match="what it says of the array x-"):
        ArrayFile.from_json(name, file.as_json() | change)


def test_nothing_is_left_of_a_write_that_failed(tmp_path, full_disk):
    with full_disk(after=0), pytest.raises(OSError, match="No space left"):
        write_array(np.arange(3), tmp_path, "x")
    assert list(tmp_path.iterdir()) == []
