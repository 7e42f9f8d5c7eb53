"""Stored vectors, copies, checkpoints and saved models."""

import copy
import pickle
import shutil

import numpy as np
import pytest
import scipy.sparse as sp
from tiny import make_folder, make_texts

import sklearn_xc
from sklearn_xc import LabelFeatures, NGAMEEmbeddingXC
from sklearn_xc._input.equal_rows import hash_texts
from sklearn_xc.embedding.encoders import TransformerEncoder
from sklearn_xc.embedding.encoders.transformer import passes
from sklearn_xc.embedding.encoders.transformer.stored_vectors import StoredVectors, digest_of

TEXTS = np.array(list(dict.fromkeys(make_texts(60, seed=1))), object)
NEW = list(make_texts(12, seed=2))
Y = sp.csr_array((np.random.default_rng(0).random((len(TEXTS), 6)) < 0.3).astype(np.int8))


@pytest.fixture
def counted(monkeypatch):
    """Return a list with an entry for each text that is passed through a network."""
    seen, encode = [], passes.encode

    def counting(network, texts, *others):
        seen.extend(texts)
        encode(network, texts, *others)

    monkeypatch.setattr(passes, "encode", counting)
    return seen


@pytest.fixture
def cached(start, tmp_path):
    """Return a function that makes a frozen encoder with a cache."""
    return lambda **own: start(**{"frozen": True, "cache_dir": tmp_path / "kept", **own})


def test_stored_vectors_are_found_again(cached, start, counted, monkeypatch):
    expected = start(frozen=True).encode(TEXTS)
    monkeypatch.setattr("sklearn_xc.embedding.encoders.transformer.encoder._CHUNK_TEXTS", 7)
    counted.clear()
    one = cached()
    assert one.encode(TEXTS[:30]).tobytes() == expected[:30].tobytes()
    assert len(counted) == 30
    assert one.encode(TEXTS).tobytes() == expected.tobytes()  # some are there, some are not
    assert len(counted) == len(TEXTS)
    rows = np.random.default_rng(0).integers(0, len(TEXTS), 200)
    for encoder in (one, cached(), cached(max_length=32)):
        assert encoder.encode(TEXTS[rows], 2).tobytes() == expected[rows].tobytes()
    assert len(counted) == len(TEXTS)


def test_other_layers_have_other_files(cached, start, tmp_path):
    cached().encode(TEXTS)
    for other in ({"max_length": 9}, {"pooling": "cls"}, {"kind": "mpnet"}):
        V = cached(**other).encode(TEXTS)
        assert V.tobytes() == start(frozen=True, **other).encode(TEXTS).tobytes()
    assert len(list((tmp_path / "kept").iterdir())) == 4
    arrays = {"a": np.ones(5, np.float32), "b": np.zeros((2, 2))}
    first = digest_of({"pooling": "mean"}, arrays)
    arrays["a"][3] = np.nextafter(np.float32(1), np.float32(2))
    assert digest_of({"pooling": "mean"}, arrays) != first


def test_a_cache_that_cannot_be_used(cached, start, tmp_path):
    start(cache_dir=tmp_path / "kept").encode(TEXTS)
    assert not (tmp_path / "kept").exists()  # an encoder that learns keeps nothing
    encoder = cached()
    encoder.encode(TEXTS)
    (path,) = (tmp_path / "kept").iterdir()
    path.write_bytes(b"no database" * 100)
    with pytest.raises(OSError, match=r"cache_dir: .*sqlite' cannot be used"):
        encoder.encode(TEXTS)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"cache_dir: .* cannot be used"):
        cached(cache_dir=tmp_path / "file").encode(TEXTS)


def test_several_writers(tmp_path):
    stores = [StoredVectors(tmp_path / "vectors.sqlite", "test") for _ in range(3)]
    for i, store in enumerate(stores):
        hashes = hash_texts([str(j) for j in range(20 * i, 20 * i + 30)])
        store.add(hashes, np.full((30, 3), 1.0, np.float32))
    out = np.zeros((71, 3), np.float32)
    found = stores[0].find(hash_texts([str(j) for j in range(71)]), out)
    assert found.tolist() == [True] * 70 + [False]
    assert (out[:70] == 1).all()


def learn(encoder, n_steps, seed):
    """Take steps; return the vectors of all mini-batches."""
    rng, seen = np.random.default_rng(seed), []
    for _ in range(n_steps):
        passed = encoder.forward(TEXTS[rng.integers(0, len(TEXTS), 20)], rng)
        seen.append(passed.V)
        encoder.learn(passed, rng.normal(size=passed.V.shape), 0.01)
    return np.array(seen)


def test_a_checkpoint_learns_on_as_the_other_would(start):
    encoder, other = (start(dim=7, warmup_steps=5) for _ in range(2))
    learn(encoder, 3, 0)
    other._resume(encoder._kept())
    assert other.encode(TEXTS).tobytes() == encoder.encode(TEXTS).tobytes()
    assert learn(other, 3, 1).tobytes() == learn(encoder, 3, 1).tobytes()
    assert other.network_.n_steps == 6


@pytest.mark.parametrize("copied", [lambda e: pickle.loads(pickle.dumps(e)), copy.deepcopy])
@pytest.mark.parametrize("parameters", [{"frozen": True, "dim": 7}, {"dim": 7}], ids=str)
def test_copies(start, copied, parameters, tmp_path):
    encoder = start(cache_dir=tmp_path, **parameters)
    if "frozen" not in parameters:
        learn(encoder, 3, 0)
    V, stored = encoder.encode(TEXTS), copied(encoder)
    assert stored.encode(TEXTS).tobytes() == V.tobytes()
    learn(encoder, 1, 1)
    assert stored.encode(TEXTS).tobytes() == V.tobytes()  # nothing is shared
    n_bytes = sum(array.nbytes for array in encoder.network_.tensors().arrays.values())
    pickled = pickle.dumps(encoder, protocol=0)
    assert len(pickle.dumps(encoder)) < n_bytes + 20_000
    assert not any(b"c" + name in pickled for name in (b"torch", b"transformers.", b"tokenizers."))


def saved_and_loaded(model, tmp_path):
    model.save(tmp_path / "saved")
    return sklearn_xc.load(tmp_path / "saved", verify=True)


@pytest.mark.parametrize("frozen", [True, False])
def test_a_saved_model_needs_no_folder(frozen, tmp_path, counted):
    folder, kept = make_folder(tmp_path / "tiny"), tmp_path / "kept"

    def answers(model):
        return [part.tobytes() for part in model.predict_topk(NEW, 3)]

    model = NGAMEEmbeddingXC(
        TransformerEncoder(folder, frozen=frozen, cache_dir=kept),
        label_features=LabelFeatures(list(TEXTS[:6])),
        max_iter=1,
        classifier_max_iter=1,
        random_state=0,
    ).fit(TEXTS, Y)
    again = saved_and_loaded(model, tmp_path)
    before = [path.stat().st_size for path in kept.rglob("*")]
    expected = answers(again)
    assert [path.stat().st_size for path in kept.rglob("*")] == before  # it adds nothing
    assert answers(model) == expected  # which does
    counted.clear()
    if frozen:
        assert answers(again) == expected
        assert not counted
    shutil.rmtree(folder)
    shutil.rmtree(kept, ignore_errors=True)
    assert answers(again) == expected
    again.add_labels(label_features=["red stone"])
    assert not kept.exists()
