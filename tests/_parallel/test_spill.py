"""Arrays outside the heap: what goes in comes out, in memory and in a file."""

import mmap
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_xc import OvALinearXC
from sklearn_xc._parallel import memory
from sklearn_xc._parallel.memory import Spill, release
from sklearn_xc.datasets import make_xc_classification


@given(
    sizes=st.lists(st.integers(0, 300), max_size=12),
    allowed=st.integers(0, 4000),
    piece=st.integers(64, 2000),
)
def test_what_goes_in_comes_out(sizes, allowed, piece):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "_CHUNK_BYTES", piece)
        spill = Spill(allowed, "it")
        kinds = [np.int32, np.float32, np.float64]
        arrays = [np.arange(n).astype(kinds[n % 3]) for n in sizes]
        kept = [spill.keep(array) for array in arrays]
    for before, after in zip(arrays, kept, strict=True):
        np.testing.assert_array_equal(before, after)
        assert before.dtype == after.dtype
        assert not np.shares_memory(before, after)
    assert spill.in_memory <= allowed
    assert spill.in_memory + spill.in_file == sum(array.nbytes for array in arrays)


def resident_bytes():
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmRSS:")[1].split()[0])


@pytest.mark.skipif(not hasattr(mmap, "MADV_REMOVE"), reason="the system has no such advice")
@pytest.mark.parametrize("allowed", [2**40, 0])
@pytest.mark.parametrize("has_holes", [True, False])
def test_the_memory_of_first_items_is_given_back(allowed, has_holes, monkeypatch):
    if not has_holes:
        monkeypatch.setattr(mmap, "MADV_REMOVE", -1)
    spill = Spill(allowed, "it")
    before, kept, after = (spill.keep(np.arange(n)) for n in (300, 2**24, 300))
    full = resident_bytes()
    for n in (0, 1, 2**22 + 7, 2**23 + 5):
        release(kept, n)
        np.testing.assert_array_equal(kept[n:], np.arange(n, 2**24))
    release(kept, 2**24 - 1)
    assert kept[-1] == 2**24 - 1
    assert full - resident_bytes() > (50 if has_holes or not allowed else -50) * 2**20
    for one in (before, after):
        np.testing.assert_array_equal(one, np.arange(300))


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(OSError, match=r"OvALinearXC: weights beyond 0 bytes .*gone: No such"):
        Spill(0, "OvALinearXC").keep(np.arange(10))
    says = r"TransformerEncoder: 20000 x 1000 numbers .*gone: No such [^.]*\. Set TMPDIR to"
    with pytest.raises(OSError, match=says):
        memory.empty_rows(20000, 1000, np.float32, "TransformerEncoder")


def test_weights_in_a_file_are_the_same(monkeypatch):
    """As where ``max_memory`` is less than the model."""
    X, Y = make_xc_classification(n_samples=300, n_features=60, n_labels=70, random_state=0)
    plain = OvALinearXC().fit(X, Y)
    found = []

    class Small(Spill):
        def __init__(self, allowed, who):
            super().__init__(1000, who)
            found.append(self)

    monkeypatch.setattr("sklearn_xc.one_vs_all.training.Spill", Small)
    spilled = OvALinearXC().fit(X, Y)
    assert found[0].in_file > found[0].in_memory
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(plain.coef_, name), getattr(spilled.coef_, name))
