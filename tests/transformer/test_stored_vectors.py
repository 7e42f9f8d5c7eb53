"""Vectors of frozen models in a folder: found again, never wrong."""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from tiny import HIDDEN, make_texts

from sklearn_xc._distinct import hash_texts
from sklearn_xc.encoders.transformer import passes
from sklearn_xc.encoders.transformer.stored_vectors import StoredVectors, digest_of

TEXTS = np.array(list(dict.fromkeys(make_texts(80, seed=3))), object)
N_TEXTS = len(TEXTS)


@pytest.fixture
def counted(monkeypatch):
    """Return a list that has an entry for each text that is passed through a network."""
    seen, encode = [], passes.encode

    def counting(network, rows, *others):
        seen.extend(rows.starts)
        encode(network, rows, *others)

    monkeypatch.setattr(passes, "encode", counting)
    return seen


@pytest.fixture
def expected(start):
    return start(frozen=True).encode(TEXTS)


@pytest.fixture
def kept(start, tmp_path):
    """Return a function that makes an encoder whose vectors are kept."""
    return lambda **parameters: start(
        **{"frozen": True, "cache_dir": tmp_path / "kept", **parameters}
    )


def the_folder(path):
    """Return the one folder of vectors."""
    (found,) = (path / "kept").iterdir()
    return found


def test_the_second_time_nothing_is_computed(kept, expected, counted, tmp_path):
    one = kept()
    assert one.encode(TEXTS[:30]).tobytes() == expected[:30].tobytes()
    assert len(counted) == 30
    counted.clear()
    assert one.encode(TEXTS).tobytes() == expected.tobytes()  # some are there, some are not
    assert len(counted) == N_TEXTS - 30
    counted.clear()
    rows = np.random.default_rng(0).integers(0, len(TEXTS), 200)
    for encoder in (one, kept(), kept(cache_dir=str(tmp_path / "kept")), kept(dim=HIDDEN)):
        for some in (np.arange(len(TEXTS)), rows, rows[:1], rows[:0]):
            for n_jobs in (None, 2):
                assert encoder.encode(TEXTS[some], n_jobs).tobytes() == expected[some].tobytes()
    assert not counted
    sizes = {path.name: path.stat().st_size for path in the_folder(tmp_path).iterdir()}
    assert sizes == {"vectors.f32": N_TEXTS * 4 * HIDDEN, "texts.u64": N_TEXTS * 24}


def test_other_dimensions_share_the_models_vectors(kept, start, counted, tmp_path):
    kept().encode(TEXTS)
    expected = start(frozen=True, dim=7).encode(TEXTS)
    counted.clear()
    encoder = kept(dim=7, texts=TEXTS)
    assert encoder.encode(TEXTS).shape == (len(TEXTS), 7)
    assert not counted
    assert kept(dim=7).encode(TEXTS).tobytes() == expected.tobytes()
    the_folder(tmp_path)


def test_duplicates_are_kept_once(kept, start, tmp_path):
    texts = np.repeat(TEXTS[:5], 4)
    V = kept().encode(texts)
    assert V.tobytes() == start(frozen=True).encode(texts).tobytes()
    assert (the_folder(tmp_path) / "texts.u64").stat().st_size == 5 * 24


def test_many_texts_a_few_at_a_time(kept, expected, counted, monkeypatch, tmp_path):
    """Also those that come again later in one call; the index grows with them."""
    monkeypatch.setattr("sklearn_xc.encoders.transformer.encoder._TOGETHER", 7)
    rows = np.concatenate([np.arange(len(TEXTS)), np.arange(len(TEXTS))[::-1]])
    encoder = kept()
    assert encoder.encode(TEXTS[rows]).tobytes() == expected[rows].tobytes()
    n_counted = len(counted)  # where the order turns, texts may be twice in one part
    assert N_TEXTS <= n_counted < N_TEXTS + 7
    assert kept().encode(TEXTS).tobytes() == expected.tobytes()
    assert len(counted) == n_counted
    assert (the_folder(tmp_path) / "texts.u64").stat().st_size == N_TEXTS * 24


def test_texts_with_halves_of_surrogate_pairs(kept, start, counted):
    """They are of other letters, and each has its own hash."""
    texts = np.array(["red \ud83d car", "red \ude00 car", "red ? car"], object)
    assert len(np.unique(hash_texts(texts), axis=0)) == 3
    expected = start(frozen=True).encode(texts)
    counted.clear()
    for _ in range(2):
        assert kept().encode(texts).tobytes() == expected.tobytes()
    assert len(counted) == 3


@pytest.mark.parametrize(
    "other",
    [{"max_length": 9}, {"pooling": "cls"}, {"kind": "mpnet"}, {"precision": "bfloat16"}],
    ids=str,
)
def test_other_layers_have_other_folders(kept, start, tmp_path, other):
    kept().encode(TEXTS)
    V = kept(**other).encode(TEXTS)
    assert V.tobytes() == start(frozen=True, **other).encode(TEXTS).tobytes()
    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_what_says_the_same_has_the_same_folder(kept, folders, tmp_path):
    """Lengths beyond the model's, and a model that stands elsewhere."""
    shutil.copytree(folders["bert"], tmp_path / "elsewhere")
    kept(max_length=100).encode(TEXTS)
    for other in ({"max_length": 40}, {"max_length": 50, "model": tmp_path / "elsewhere"}):
        kept(**other).encode(TEXTS)
    the_folder(tmp_path)


def test_a_weight_that_differs_a_little():
    arrays = {"a": np.ones(5, np.float32), "b": np.zeros((2, 2))}
    first = digest_of({"pooling": "mean"}, arrays)
    assert first == digest_of({"pooling": "mean"}, dict(reversed(arrays.items())))
    arrays["a"][3] = np.nextafter(np.float32(1), np.float32(2))
    assert digest_of({"pooling": "mean"}, arrays) != first
    assert digest_of({"pooling": "max"}, arrays) != digest_of({"pooling": "mean"}, arrays)


def test_an_encoder_that_learns_keeps_nothing(start, tmp_path):
    start(cache_dir=tmp_path / "kept").encode(TEXTS)
    assert not (tmp_path / "kept").exists()


def test_parameters_that_change_after_a_start(kept, start, tmp_path):
    encoder = kept()
    encoder.encode(TEXTS)
    encoder.max_length = 7
    assert encoder.encode(TEXTS).tobytes() == start(max_length=7).encode(TEXTS).tobytes()
    encoder.cache_dir = tmp_path / "other"
    encoder.encode(TEXTS)
    assert (tmp_path / "other").is_dir()


@pytest.mark.parametrize("name", ["vectors.f32", "texts.u64"])
@pytest.mark.parametrize("n_lost", [1, 24, 97, 500, 10**9])
def test_a_file_that_was_cut_off(kept, expected, tmp_path, name, n_lost):
    """In the middle of a write, or of all; what is whole stays, and the rest is made anew."""
    kept().encode(TEXTS)
    path = the_folder(tmp_path) / name
    os.truncate(path, max(0, path.stat().st_size - n_lost))
    for _ in range(2):
        assert kept().encode(TEXTS).tobytes() == expected.tobytes()
    assert (the_folder(tmp_path) / "texts.u64").stat().st_size == N_TEXTS * 24
    assert (the_folder(tmp_path) / "vectors.f32").stat().st_size == N_TEXTS * 4 * HIDDEN


@pytest.mark.parametrize("name", ["vectors.f32", "texts.u64"])
def test_what_stands_behind_is_cut_off(kept, expected, counted, tmp_path, name):
    """Vectors whose texts were not written, or part of the numbers of one."""
    kept().encode(TEXTS[:50])
    with open(the_folder(tmp_path) / name, "ab") as file:
        file.write(b"\x01" * 1001)
    counted.clear()
    for n in (51, N_TEXTS, N_TEXTS):
        assert kept().encode(TEXTS[:n]).tobytes() == expected[:n].tobytes()
        assert (the_folder(tmp_path) / "texts.u64").stat().st_size == n * 24
        assert (the_folder(tmp_path) / "vectors.f32").stat().st_size == n * 4 * HIDDEN
    assert len(counted) == N_TEXTS - 50


@pytest.mark.parametrize("name", ["vectors.f32", "texts.u64"])
def test_flipped_bytes_are_never_used(kept, expected, counted, tmp_path, name):
    kept().encode(TEXTS)
    path, rng = the_folder(tmp_path) / name, np.random.default_rng(0)
    for _ in range(15):
        content = bytearray(path.read_bytes())
        for at in rng.integers(0, len(content), 3):
            content[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
        counted.clear()
        assert kept().encode(TEXTS).tobytes() == expected.tobytes()
        assert 0 < len(counted) <= 6  # those alone are made anew
        counted.clear()
        assert kept().encode(TEXTS).tobytes() == expected.tobytes()
        assert not counted


def test_rows_that_changed_places(kept, expected, tmp_path):
    kept().encode(TEXTS)
    path = the_folder(tmp_path) / "vectors.f32"
    rows = np.fromfile(path, np.float32).reshape(-1, HIDDEN)
    rows[::-1].tofile(path)
    assert kept().encode(TEXTS).tobytes() == expected.tobytes()


@pytest.mark.parametrize("what", ["folder", "files"])
def test_what_goes_while_it_is_used(kept, expected, counted, tmp_path, what):
    """What is kept then stands in other places than before."""
    encoder = kept()
    for _ in range(2):  # the second time it looks at what is there
        encoder.encode(TEXTS)
    folder = the_folder(tmp_path)
    shutil.rmtree(tmp_path / "kept")
    if what == "files":
        folder.mkdir(parents=True)
    rows = np.r_[N_TEXTS - 1 : 9 : -1]
    for part in (rows, np.arange(N_TEXTS)):
        assert encoder.encode(TEXTS[part]).tobytes() == expected[part].tobytes()
    counted.clear()
    assert encoder.encode(TEXTS).tobytes() == expected.tobytes()
    assert not counted
    assert (folder / "texts.u64").stat().st_size == N_TEXTS * 24


@contextmanager
def held(folder):
    """Hold a folder as another process does."""
    import fcntl

    number = os.open(folder, os.O_RDONLY)
    fcntl.flock(number, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(number)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")
def test_another_process_is_just_writing(kept, expected, tmp_path):
    """Nothing is kept then; what is there is read."""
    kept().encode(TEXTS[:10])
    texts = the_folder(tmp_path) / "texts.u64"
    before = texts.stat().st_size
    with held(the_folder(tmp_path)):
        assert kept().encode(TEXTS).tobytes() == expected.tobytes()
        assert texts.stat().st_size == before
    assert kept().encode(TEXTS).tobytes() == expected.tobytes()
    assert texts.stat().st_size == N_TEXTS * 24


def test_a_folder_that_cannot_be_made(kept, tmp_path):
    (tmp_path / "file").write_text("")
    encoder = kept(cache_dir=tmp_path / "file")
    with pytest.raises(OSError, match="cache_dir: cannot make the folder"):
        encoder.encode(TEXTS)


def test_a_full_disk(kept, expected, full_disk, tmp_path):
    kept().encode(TEXTS[:10])
    for after in (0, 1):  # in the vectors, and in the texts behind them
        message = "cache_dir: cannot be written: No space"
        with full_disk(after), pytest.raises(OSError, match=message):
            kept().encode(TEXTS)
    assert kept().encode(TEXTS).tobytes() == expected.tobytes()


#: A program that adds vectors of numbers to a folder, a few at a time: (n, 1 / n, -n).
ADD_SOME = """
import sys
import numpy as np
from sklearn_xc._distinct import hash_texts
from sklearn_xc.encoders.transformer.stored_vectors import StoredVectors

texts = [str(i) for i in range(int(sys.argv[2]), int(sys.argv[3]))]
store = StoredVectors(sys.argv[1], "layers", 3, "test")
print("ready", flush=True)
sys.stdin.readline()
for first in range(0, len(texts), 5):
    part = texts[first : first + 5]
    rows = [[float(text), 1 / float(text), -float(text)] for text in part]
    store.add(hash_texts(part), np.array(rows, np.float32))
"""


def test_several_processes_add_to_one_folder(tmp_path):
    """Each keeps what it can; all that is there is right."""
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", ADD_SOME, str(tmp_path), *map(str, own)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for own in ((1, 600), (300, 900), (600, 1200))
    ]  # fmt: skip
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        worker.communicate()
        assert worker.returncode == 0
    n = np.arange(1, 1200, dtype=np.float32)
    texts, expected = [str(i) for i in range(1, 1200)], np.column_stack([n, 1 / n, -n])
    store, out = StoredVectors(tmp_path, "layers", 3, "test"), np.full((1199, 3), np.nan, "f4")
    there = store.find(hash_texts(texts), out)
    assert there.any()  # a busy folder keeps fewer
    np.testing.assert_array_equal(out[there], expected[there])
    assert np.isnan(out[~there]).all()
    store.add(hash_texts(texts), expected)
    assert store.find(hash_texts(texts), out).all()
    np.testing.assert_array_equal(out, expected)


def test_of_equal_texts_the_last_is_taken(tmp_path):
    store, texts = StoredVectors(tmp_path, "layers", 3, "test"), ["5", "7", "5"]
    for value in (1.0, 2.0, 3.0):
        store.add(hash_texts(texts[:2]), np.full((2, 3), value, np.float32))
        out = np.empty((3, 3), np.float32)
        for one in (store, StoredVectors(tmp_path, "layers", 3, "test")):
            assert one.find(hash_texts(texts), out).all()
            assert (out == value).all()
