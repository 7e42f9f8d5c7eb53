"""Vectors of frozen models in a folder: found again, never wrong."""

import shutil

import numpy as np
import pytest
from tiny import HIDDEN, make_texts

from sklearn_xc._input.equal_rows import hash_texts
from sklearn_xc.embedding.encoders.transformer import passes
from sklearn_xc.embedding.encoders.transformer.stored_vectors import StoredVectors, digest_of

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
    n_kept = [len(np.load(path)) for path in the_folder(tmp_path).iterdir()]
    assert sorted(n_kept) == sorted([30, N_TEXTS - 30])


def test_duplicates_are_kept_once(kept, start, tmp_path):
    texts = np.repeat(TEXTS[:5], 4)
    V = kept().encode(texts)
    assert V.tobytes() == start(frozen=True).encode(texts).tobytes()
    (path,) = the_folder(tmp_path).iterdir()
    assert len(np.load(path)) == 5


def test_many_texts_a_few_at_a_time(kept, expected, counted, monkeypatch, tmp_path):
    """Also those that come again later in one call; the index grows with them."""
    monkeypatch.setattr("sklearn_xc.embedding.encoders.transformer.encoder._TOGETHER", 7)
    rows = np.concatenate([np.arange(len(TEXTS)), np.arange(len(TEXTS))[::-1]])
    encoder = kept()
    assert encoder.encode(TEXTS[rows]).tobytes() == expected[rows].tobytes()
    n_counted = len(counted)  # where the order turns, texts may be twice in one part
    assert N_TEXTS <= n_counted < N_TEXTS + 7
    assert kept().encode(TEXTS).tobytes() == expected.tobytes()
    assert len(counted) == n_counted
    assert sum(len(np.load(path)) for path in the_folder(tmp_path).iterdir()) == N_TEXTS


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


def test_damaged_and_strange_files_are_passed_over(kept, expected, counted, tmp_path):
    kept().encode(TEXTS)
    folder, counted[:] = the_folder(tmp_path), []
    (path,) = folder.iterdir()
    path.write_bytes(path.read_bytes()[:100])
    (folder / "objects.npy").write_bytes(b"no array")
    np.save(folder / "other.npy", np.ones(3))
    assert kept().encode(TEXTS).tobytes() == expected.tobytes()
    assert len(counted) == N_TEXTS


def test_a_folder_that_cannot_be_made(kept, tmp_path):
    (tmp_path / "file").write_text("")
    encoder = kept(cache_dir=tmp_path / "file")
    with pytest.raises(OSError, match="cache_dir: cannot make the folder"):
        encoder.encode(TEXTS)


def test_several_writers(tmp_path):
    stores = [StoredVectors(tmp_path, "layers", 3, "test") for _ in range(3)]
    for i, store in enumerate(stores):
        hashes = hash_texts([str(j) for j in range(20 * i, 20 * i + 30)])
        store.add(hashes, np.full((30, 3), 1.0, np.float32))
    out = np.zeros((70, 3), np.float32)
    assert stores[0].find(hash_texts([str(j) for j in range(70)]), out).all()
    assert (out == 1).all()
    assert not stores[0].find(hash_texts(["other"]), out).any()
