"""Writing all or nothing: processes that end in the middle, and matrices that cannot be written."""

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

from sklearn_xc.datasets import dump_xmc_file, load_xmc_file

X = np.array([[0, 1.5, 0], [2.5, 0, 1]], dtype=np.float32)
Y = np.array([[1, 0], [0, 1]])

WRITE = """
    import os, sys, time
    import numpy as np
    from sklearn_xc.datasets import dump_xmc_file

    def wait(*args):
        print("ready", flush=True)
        time.sleep(60)

    os.replace = wait
    dump_xmc_file(sys.argv[1], np.ones((5, 1)), np.ones((5, 1)))
"""


@pytest.mark.skipif(os.name != "posix", reason="kills processes")
def test_a_killed_process_leaves_the_old_file(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("the old file")
    command = [sys.executable, "-c", textwrap.dedent(WRITE), path]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
    finally:
        child.kill()
        child.communicate()
    assert path.read_text() == "the old file"


def test_an_error_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "replace", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        dump_xmc_file(tmp_path / "data.txt", X, Y)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_a_file_is_written_and_replaced(tmp_path, suffix):
    path = tmp_path / f"{'long name ' * 25}{suffix}"
    for _ in range(2):  # a new file, and one in place of an old one
        dump_xmc_file(path, X, Y)
        np.testing.assert_array_equal(load_xmc_file(path)[0].toarray(), X)
        assert list(tmp_path.iterdir()) == [path]
    if os.name == "posix":
        umask = os.umask(0)
        os.umask(umask)
        assert path.stat().st_mode & 0o777 == 0o666 & ~umask


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no pipes with names")
class TestWhatStandsThere:
    def test_a_pipe_gets_the_bytes(self, tmp_path):
        path = tmp_path / "pipe"
        os.mkfifo(path)
        with ThreadPoolExecutor() as pool:
            read = pool.submit(path.read_bytes)
            dump_xmc_file(path, X, Y)
            assert read.result(30).startswith(b"2 3 2\n")
        assert path.is_fifo()

    @pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
    def test_a_file_keeps_its_mode(self, mode, tmp_path):
        path = tmp_path / "data.txt"
        path.write_text("old")
        path.chmod(mode)
        dump_xmc_file(path, X, Y)
        assert path.stat().st_mode & 0o777 == mode
        assert path.read_bytes().startswith(b"2 3 2\n")

    @pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write")
    def test_a_file_that_may_not_be_written_is_left(self, tmp_path):
        path = tmp_path / "data.txt"
        path.write_text("old")
        path.chmod(0o444)
        with pytest.raises(PermissionError):
            dump_xmc_file(path, X, Y)
        assert path.read_text() == "old"


class TestMatrices:
    def test_index_arrays_that_lie(self, tmp_path, malformed):
        for name, arguments in (
            ("X", (malformed(csr_array(X)), Y)),
            ("Y", (X, malformed(csr_array(Y)))),
        ):
            with pytest.raises(ValueError, match=f"dump_xmc_file: {name}: this .* is malformed"):
                dump_xmc_file(tmp_path / "data.txt", *arguments)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float32])
    @pytest.mark.parametrize("times", [2, 255, 257])
    @pytest.mark.parametrize("as_csr", [False, True])
    def test_repeated_entries_are_added_up(self, tmp_path, times, dtype, as_csr):
        path, ones = tmp_path / "data.txt", np.ones(times, dtype)
        repeated = coo_array((ones, (np.zeros(times, int), np.ones(times, int))), shape=(2, 3))
        if as_csr:
            indptr = np.array([0, times, times])
            repeated = csr_array((ones, np.ones(times, int), indptr), shape=(2, 3))
        dump_xmc_file(path, repeated, Y)
        assert load_xmc_file(path)[0].toarray().tolist() == [[0, times, 0], [0, 0, 0]]
        with pytest.raises(ValueError, match=f"zeros and ones. Got an entry {times}"):
            dump_xmc_file(path, X, repeated)

    @pytest.mark.parametrize(
        ("X", "Y", "message"),
        [
            (np.array([[1e400]], np.longdouble) * 10, [[1]], "X holds NaN or inf"),
            (np.array([["a"]]), [[1]], "X must hold real numbers. Got dtype <U1"),
            (np.array([[None]]), [[1]], "X must hold real numbers. Got dtype object"),
            (np.array([["2020"]], "datetime64[Y]"), [[1]], "X must hold real .* datetime64"),
            (np.array([[3]], "timedelta64[s]"), [[1]], "X must hold real .* timedelta64"),
            ([[1.0]], np.array([[1]], "timedelta64[s]"), "Y must hold real .* timedelta64"),
            ([[1.0]], [["1"]], "Y must hold real numbers. Got dtype <U1"),
            ([[1.0]], [[1j]], "Y must hold real numbers. Got dtype complex128"),
            ([[1.0]], [[np.nan]], "zeros and ones. Got an entry nan"),
            ([[1.0], [1.0, 2.0]], [[1]], "X: expected a matrix. Got rows of unequal length"),
            (None, [[1]], r"X must have two dimensions. Got shape \(\)"),
            (csr_array((1, 2**31)), [[1]], "X must have at most 2147483647 rows and columns"),
            ([[1.0]], csr_array((1, 2**40)), "Y must have at most 2147483647 rows and columns"),
            (coo_array(np.ones(1)), [[1]], "X: a sparse matrix of 2 dimensions was expected"),
        ],
    )
    def test_what_the_reader_would_refuse(self, tmp_path, X, Y, message):
        with pytest.raises(
            ValueError, match=f"dump_xmc_file: {message}|dump_xmc_file: Y.*{message}"
        ):
            dump_xmc_file(tmp_path / "data.txt", X, Y)
        assert list(tmp_path.iterdir()) == []
