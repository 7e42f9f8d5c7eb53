"""Models with a transformer that were saved: what they need where they are opened, and keep."""

import pickle
import re
import shutil

import numpy as np
import pytest
import scipy.sparse as sp
from tiny import make_folder, make_model, make_sentences, make_texts, make_tokenizer

import sklearn_xc
from sklearn_xc import LabelFeatures, NGAMEEmbeddingXC
from sklearn_xc.embedding.encoders import TransformerEncoder

TEXTS = list(make_texts(60, seed=1))
NEW = list(make_texts(12, seed=2))
Y = sp.csr_array((np.random.default_rng(0).random((60, 6)) < 0.3).astype(np.int8))


def fitted(encoder, **parameters):
    return NGAMEEmbeddingXC(
        encoder, label_features=LabelFeatures(TEXTS[:6]), max_iter=1, classifier_max_iter=1,
        random_state=0, **parameters,
    ).fit(TEXTS, Y)  # fmt: skip


def answers(model):
    return [part.tobytes() for part in model.predict_topk(NEW, 3)]


def saved_and_opened(model, tmp_path):
    model.save(tmp_path / "saved")
    return sklearn_xc.load(tmp_path / "saved", verify=True)


def pickled(model, tmp_path):
    return pickle.loads(pickle.dumps(model))


OPENED = pytest.mark.parametrize("opened", [saved_and_opened, pickled])


@OPENED
@pytest.mark.parametrize("frozen", [True, False])
def test_it_needs_nothing_of_the_place_where_it_was_trained(opened, frozen, tmp_path):
    folder, kept = make_folder(tmp_path / "tiny"), tmp_path / "kept"
    model = fitted(TransformerEncoder(folder, frozen=frozen, cache_dir=kept))
    expected = answers(model)
    again = opened(model, tmp_path)
    shutil.rmtree(folder)
    shutil.rmtree(kept, ignore_errors=True)
    assert answers(again) == expected
    again.add_labels(label_features=["red stone"])
    assert not kept.exists()
    model.add_labels(label_features=["red stone"])
    assert answers(again) == answers(model)


@OPENED
def test_it_reads_what_is_kept_and_adds_nothing(opened, tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    model = fitted(TransformerEncoder(make_folder(tmp_path / "tiny"), frozen=True, cache_dir=kept))
    again = opened(model, tmp_path)

    def sizes():
        return {path: path.stat().st_size for path in kept.rglob("*") if path.is_file()}

    before = sizes()
    expected = answers(again)
    assert sizes() == before
    assert answers(model) == expected  # which does add them
    assert sizes() != before
    from sklearn_xc.embedding.encoders.transformer import passes

    monkeypatch.setattr(passes, "encode", None)
    assert answers(again) == expected


@pytest.mark.parametrize("kind", ["sentences", "model"])
@pytest.mark.parametrize("frozen", [True, False])
def test_objects_of_other_libraries_stay_behind(kind, frozen, tmp_path):
    given = {
        "sentences": lambda: {"model": make_sentences(tmp_path / "tiny")},
        "model": lambda: {"model": make_model(), "tokenizer": make_tokenizer()},
    }[kind]()
    model = fitted(TransformerEncoder(**given, frozen=frozen))
    again = saved_and_opened(model, tmp_path)
    assert answers(again) == answers(model)
    name = type(given["model"]).__name__
    assert name in repr(again.encoder)
    with pytest.raises(ValueError, match=f"model was a {name}, .* set it again, encoder__model"):
        again.fit(TEXTS, Y)
    again.set_params(**{f"encoder__{key}": value for key, value in given.items()})
    assert answers(again.fit(TEXTS, Y)) == answers(model.fit(TEXTS, Y))
    shutil.rmtree(tmp_path / "saved")
    twice = saved_and_opened(saved_and_opened(model, tmp_path), tmp_path)
    assert answers(twice) == answers(model)


def test_lines_tell_of_embedding(tmp_path, capsys):
    folder = make_folder(tmp_path / "tiny")
    fitted(TransformerEncoder(folder, frozen=True), verbose=1)
    printed = capsys.readouterr().out
    told = re.findall(r"text (\d+) of (\d+): embedded", printed)
    assert told
    assert all(n_done == n for n_done, n in told)  # all are few enough for one line
    n_rows_with_labels = int((Y.sum(axis=1) > 0).sum())
    assert sum(int(n) for _, n in told) >= n_rows_with_labels - 1
    fitted(TransformerEncoder(folder), verbose=1)
    assert "embedded" not in capsys.readouterr().out


def test_memory_that_is_too_small_says_what_helps(tmp_path):
    encoder = TransformerEncoder(make_folder(tmp_path / "tiny"), gradient_checkpointing=False)
    with pytest.raises(MemoryError, match="passes whose gradients follow"):
        fitted(encoder, max_memory=60_000)
