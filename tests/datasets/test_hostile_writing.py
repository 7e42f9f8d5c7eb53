"""Writing all or nothing: processes that end in the middle, and matrices that cannot be written."""

import itertools
import os
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import coo_array, csr_array

from sklearn_xc import _atomic_files
from sklearn_xc.datasets import dump_xmc_file, load_xmc_file

X = np.array([[0, 1.5, 0], [2.5, 0, 1]], dtype=np.float32)
Y = np.array([[1, 0], [0, 1]])

WRITE = """
    import os, signal, sys, threading, time
    import numpy as np
    from sklearn_xc import _atomic_files
    from sklearn_xc.datasets import dump_xmc_file, xmc_writer

    path, where, named, threaded = sys.argv[1:]
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def ready():
        print("ready", flush=True)
        for _ in range(600):  # a signal just before a long sleep would be heard at its end
            time.sleep(0.1)

    def wait_before(function):
        def waiting(*args, **kwargs):
            ready()
            return function(*args, **kwargs)
        return waiting

    if named == "True":
        _atomic_files._open_unnamed = lambda folder: None
    if where == "rows":
        format_rows, xmc_writer._BLOCK_PAIRS = xmc_writer._format_rows, 1
        def after_some(X, Y, first, last):
            if first == 2:
                ready()
            return format_rows(X, Y, first, last)
        xmc_writer._format_rows = after_some
    else:
        os.replace = wait_before(os.replace)
    write = lambda: dump_xmc_file(path, np.ones((5, 1)), np.ones((5, 1)))
    if threaded == "True":
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
    else:
        write()
"""


def end_while_writing(folder, name, number, where, named=False, threaded=False):
    """Return how a process ends that writes a file and is sent a signal, and what it leaves."""
    folder.joinpath(name).write_text("the old file")
    command = [sys.executable, "-c", textwrap.dedent(WRITE), folder / name, where]
    child = subprocess.Popen(
        [*command, str(named), str(threaded)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "ready\n"
        child.send_signal(number)
        status = child.wait(30)
    finally:
        child.kill()
        child.communicate()
    return status, sorted(path.name for path in folder.iterdir())


unnamed = pytest.mark.skipif(sys.platform != "linux", reason="files without a name are Linux's")


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGTERM that a process could handle")
class TestTheEndOfTheProcess:
    @pytest.mark.parametrize(
        ("name", "named", "where"),
        [
            ("data.txt", True, "rows"),
            ("data.txt.gz", False, "rows"),
            ("data.txt", True, "replace"),
            ("data.txt", False, "replace"),
        ],
    )
    def test_sigterm(self, tmp_path, name, named, where):
        status, left = end_while_writing(tmp_path, name, signal.SIGTERM, where, named)
        assert status == -signal.SIGTERM
        assert left == [name]
        assert (tmp_path / name).read_text() == "the old file"

    @unnamed
    def test_sigkill_in_another_thread(self, tmp_path):
        status, left = end_while_writing(
            tmp_path, "data.txt", signal.SIGKILL, "rows", threaded=True
        )
        assert status == -signal.SIGKILL
        assert left == ["data.txt"]

    @pytest.fixture
    def terminated(self):
        """Return the list of calls to a handler of the user's own."""
        calls = []
        before = signal.signal(signal.SIGTERM, lambda number, frame: calls.append(number))
        yield calls
        signal.signal(signal.SIGTERM, before)

    @pytest.mark.parametrize("named", [False, True])
    def test_a_handler_of_the_users_own_is_called_and_stays(
        self, tmp_path, monkeypatch, terminated, named
    ):
        if named:
            monkeypatch.setattr(_atomic_files, "_open_unnamed", lambda folder: None)
        mine, replace = signal.getsignal(signal.SIGTERM), os.replace

        def interrupted_replace(*args):
            signal.raise_signal(signal.SIGTERM)
            replace(*args)

        monkeypatch.setattr(os, "replace", interrupted_replace)
        dump_xmc_file(tmp_path / "data.txt", X, Y)
        assert terminated == [signal.SIGTERM]
        assert signal.getsignal(signal.SIGTERM) is mine
        assert [path.name for path in tmp_path.iterdir()] == ["data.txt"]

    @pytest.mark.parametrize("named", [False, True])
    @pytest.mark.parametrize("fails", [False, True])
    def test_the_default_handler_is_back_afterwards(self, tmp_path, monkeypatch, named, fails):
        before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            if named:
                monkeypatch.setattr(_atomic_files, "_open_unnamed", lambda folder: None)
            if fails:
                monkeypatch.setattr(os, "replace", lambda *args: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    dump_xmc_file(tmp_path / "data.txt", X, Y)
                assert list(tmp_path.iterdir()) == []
            else:
                dump_xmc_file(tmp_path / "data.txt", X, Y)
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        finally:
            signal.signal(signal.SIGTERM, before)

    def test_a_signal_while_cleaning_up_waits_for_its_end(self, tmp_path, monkeypatch):
        """The second SIGTERM, and one after a Ctrl-C, must not disturb the removal."""
        raised, seen = [], []
        monkeypatch.setattr(_atomic_files, "_open_unnamed", lambda folder: None)
        unlink = _atomic_files.Path.unlink

        def interrupted_unlink(path, **kwargs):
            os.kill(os.getpid(), signal.SIGTERM)
            unlink(path, **kwargs)
            seen.append(path)

        before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            monkeypatch.setattr(_atomic_files.Path, "unlink", interrupted_unlink)
            monkeypatch.setattr(signal, "raise_signal", raised.append)
            monkeypatch.setattr(os, "replace", lambda *args: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                dump_xmc_file(tmp_path / "data.txt", X, Y)
        finally:
            signal.signal(signal.SIGTERM, before)
        assert len(seen) == 1
        assert raised == [signal.SIGTERM]  # the process would end here
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_both_ways_write_the_same(tmp_path, monkeypatch, named, suffix):
    if named:
        monkeypatch.setattr(_atomic_files, "_open_unnamed", lambda folder: None)
    path = tmp_path / f"{'long name ' * 25}{suffix}"
    for _ in range(2):  # a new file, and one in place of an old one
        dump_xmc_file(path, X, Y)
        np.testing.assert_array_equal(load_xmc_file(path)[0].toarray(), X)
        assert list(tmp_path.iterdir()) == [path]
    if os.name == "posix":
        umask = os.umask(0)
        os.umask(umask)
        assert path.stat().st_mode & 0o777 == 0o666 & ~umask


@pytest.mark.parametrize("named", [False, True])
def test_other_threads_write_too(tmp_path, monkeypatch, named):
    """Only the main thread may touch the handlers of signals."""
    if named:
        monkeypatch.setattr(_atomic_files, "_open_unnamed", lambda folder: None)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(dump_xmc_file, tmp_path / "data.txt", X, Y).result()
    np.testing.assert_array_equal(load_xmc_file(tmp_path / "data.txt")[0].toarray(), X)


@unnamed
def test_a_file_without_a_name_is_used_where_there_is_one(tmp_path):
    unnamed = _atomic_files._open_unnamed(tmp_path)
    if unnamed is None:
        pytest.skip("this file system has none")
    with unnamed:
        assert list(tmp_path.iterdir()) == []


def test_folders_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere/data\.txt"):
        dump_xmc_file(tmp_path / "nowhere" / "data.txt", X, Y)
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        dump_xmc_file(tmp_path, X, Y)
    dump_xmc_file(os.fsencode(tmp_path / "data.txt"), X, Y)
    assert [path.name for path in tmp_path.iterdir()] == ["data.txt"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no pipes with names")
@pytest.mark.parametrize("named", [False, True])
class TestWhatStandsThere:
    @pytest.fixture(autouse=True)
    def ways(self, named, monkeypatch):
        if named:
            monkeypatch.setattr(_atomic_files, "_open_unnamed", lambda folder: None)

    def test_a_pipe_gets_the_bytes(self, tmp_path):
        path = tmp_path / "pipe"
        os.mkfifo(path)
        with ThreadPoolExecutor() as pool:
            read = pool.submit(path.read_bytes)
            dump_xmc_file(path, X, Y)
            assert read.result(30).startswith(b"2 3 2\n")
        assert path.is_fifo()

    def test_a_device_stays_one(self):
        dump_xmc_file(os.devnull, X, Y)
        assert not os.path.isfile(os.devnull)

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

    def test_flags_that_lie_are_not_believed(self, tmp_path):
        unsorted = csr_array(([1.0, 2.0], [2, 0], [0, 2]), shape=(1, 3))
        unsorted.has_sorted_indices = unsorted.has_canonical_format = True
        dump_xmc_file(tmp_path / "data.txt", unsorted, [[1]])
        assert (tmp_path / "data.txt").read_text() == "1 3 1\n0 0:2 2:1\n"

    @pytest.mark.parametrize(
        ("dtype", "container"),
        [
            (np.float16, np.asarray),  # scipy has none of them
            *itertools.product(
                [np.float32, np.float64, np.longdouble],
                [np.asarray, csr_array, coo_array, sp.csc_matrix],
            ),
        ],
    )
    def test_floats_of_any_size(self, tmp_path, dtype, container):
        values = np.array([[0, 0.1], [1.5, 0]], dtype)
        dump_xmc_file(tmp_path / "data.txt", container(values), Y)
        found = load_xmc_file(tmp_path / "data.txt", dtype=np.float64)[0].toarray()
        np.testing.assert_array_equal(found.astype(dtype), values.astype(np.float64).astype(dtype))

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

    def test_the_largest_shape_is_read_back(self, tmp_path):
        widest = csr_array(([1.0], [2**31 - 2], [0, 1]), shape=(1, 2**31 - 1))
        dump_xmc_file(tmp_path / "data.txt", widest, widest.astype(np.int8))
        for found in load_xmc_file(tmp_path / "data.txt"):
            assert found.shape == widest.shape
            assert found.indices.tolist() == [2**31 - 2]

    def test_masks(self, tmp_path):
        for arguments in ((np.ma.array(X), Y), (X, np.ma.array(Y))):
            with pytest.raises(TypeError, match=r"dump_xmc_file: [XY] is a masked array"):
                dump_xmc_file(tmp_path / "data.txt", *arguments)
