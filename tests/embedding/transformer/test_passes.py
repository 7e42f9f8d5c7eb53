"""Passes of texts: chunks, bits, dropout, gradients against torch, and memory."""

import numpy as np
import pytest
import torch
from tiny import (
    HIDDEN,
    KINDS,
    LONGEST,
    WORDS,
    make_folder,
    make_model,
    make_texts,
    make_tokenizer,
    vectors,
)

from sklearn_xc.embedding.encoders import TransformerEncoder
from sklearn_xc.embedding.encoders.transformer import passes
from sklearn_xc.embedding.encoders.transformer.passes import chunks_of

TEXTS = make_texts(30, seed=3)


def rng():
    return np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    """Cut mini-batches of the tests into many chunks."""
    monkeypatch.setattr(passes, "_TOKENS", 128)


@pytest.mark.parametrize("of_one_width", [True, False])
@pytest.mark.parametrize("longest", [8, 13])
def test_chunks(of_one_width, longest):
    draws = rng()
    for n, most in ((0, 8), (1, 8), (7, 1), (60, 50), (60, 10**6)):
        tokens = [draws.integers(1, 90, draws.integers(1, longest + 1)) for _ in range(n)]
        chunks = list(chunks_of(tokens, most, 99, longest, of_one_width))
        assert sorted(i for chunk in chunks for i in chunk.rows) == list(range(n))
        for chunk in chunks:
            m, width = chunk.ids.shape
            counts = np.array([len(tokens[i]) for i in chunk.rows])
            assert m <= 2 or m * width <= most
            assert width - 8 < counts.max() <= width
            if of_one_width:  # each by itself would be as wide
                assert (-(-counts // 8) * 8 >= width).all()
            for ids, mask, i in zip(chunk.ids, chunk.mask, chunk.rows, strict=True):
                k = len(tokens[i])
                assert ids.tolist() == [*tokens[i], *[99] * (width - k)]
                assert mask.tolist() == [1] * k + [0] * (width - k)


def test_tokens_are_those_of_the_tokenizer(start):
    read = make_tokenizer()
    expected = [read(text, truncation=True, max_length=20)["input_ids"] for text in TEXTS]
    found = start().network_.tokens(TEXTS, 20)
    assert [ids.tolist() for ids in found] == expected


CASES = {
    "distilbert": {"pooling": "max"},
    "roberta": {"pooling": "cls", "dim": 7},
    "mpnet": {"pooling": "lasttoken", "dim": 33},
    "frozen": {"frozen": True, "dim": 7},
    "bfloat16": {"precision": "bfloat16"},
    "20 places": {"places": 20},
}


@pytest.mark.parametrize("case", CASES)
def test_bits_of_a_vector_depend_on_its_text_alone(case, start, tmp_path, monkeypatch):
    parameters = dict(CASES[case])
    if "places" in parameters:
        places = parameters.pop("places")
        parameters["model"] = make_folder(tmp_path, max_position_embeddings=places)
    encoder = start(case if case in KINDS else "bert", max_length=LONGEST, **parameters)
    draws = rng()
    full = [" ".join(draws.choice(WORDS, n - 2)) for n in range(3, LONGEST + 3)]
    texts = np.array([*make_texts(), *full], object)
    expected = encoder.encode(texts)
    for most_tokens, n_jobs in ((1024, 2), (8, 1), (200, 3)):
        monkeypatch.setattr(passes, "_TOKENS", most_tokens)
        rows = draws.integers(0, len(texts), draws.integers(1, 90))
        assert encoder.encode(texts[rows], n_jobs).tobytes() == expected[rows].tobytes()
    for i in range(0, len(texts), 7):
        assert encoder.encode(texts[[i]]).tobytes() == expected[[i]].tobytes()


@pytest.mark.parametrize("kind", ["bert", "distilbert", "mpnet"])
def test_dropout(start, kind):
    still = start(kind, dropout=0.0)
    np.testing.assert_allclose(still.forward(TEXTS, rng()).V, still.encode(TEXTS), atol=1e-6)
    encoder, same = start(kind), np.repeat(TEXTS[:1], 20)
    V = encoder.forward(same, rng()).V
    assert len({row.tobytes() for row in V}) == 20  # the same text: other units
    assert V.tobytes() == encoder.forward(same, rng()).V.tobytes()
    assert V.tobytes() != encoder.forward(same, np.random.default_rng(1)).V.tobytes()


def test_dropout_scales_the_rest():
    from sklearn_xc.embedding.encoders.transformer.network import _leave_out, dropping

    layer, given = torch.nn.Dropout(0.25).eval(), torch.ones(500, 80)
    with dropping(3, given.device):
        found = _leave_out(layer, None, given)
    assert found.unique().tolist() == pytest.approx([0, 1 / 0.75])
    assert (found == 0).double().mean().item() == pytest.approx(0.25, abs=0.01)
    assert _leave_out(layer, None, given) is given  # outside of the context


def weights(dim=HIDDEN):
    return np.random.default_rng(7).normal(size=(len(TEXTS), dim)).astype(np.float32)


def gradients(encoder, n_jobs=1):
    """Return the gradients of the sum of weights times vectors."""
    network = encoder.network_
    settings, W = encoder._settings(network), weights(network.dim)
    passed = encoder.forward(TEXTS, rng())
    found = passes.gradients(network, passed, W, settings, n_jobs)
    return {name: one for name, one in found.items() if one is not None}


@pytest.mark.parametrize(
    ("kind", "pooling", "dim"),
    [
        ("bert", "mean", HIDDEN),
        ("distilbert", "cls", 9),
        ("roberta", "max", HIDDEN),
        ("mpnet", "lasttoken", 30),
    ],
)
def test_gradients_are_those_of_torch(start, kind, pooling, dim):
    """Those of one padded batch: the sum over chunks is the same."""
    encoder = start(kind, dropout=0.0, pooling=pooling, dim=dim)
    found = gradients(encoder)
    model, projection = make_model(kind, dropout=0.0).double(), None
    if dim != HIDDEN:
        held = encoder.network_.tensors().arrays["projection.weight"]
        projection = torch.nn.Linear(HIDDEN, dim, bias=False).double()
        projection.load_state_dict({"weight": torch.from_numpy(held).double()})
    V = vectors(model, make_tokenizer(kind), TEXTS, pooling=pooling, projection=projection)
    (V * torch.from_numpy(weights(dim)).double()).sum().backward()
    expected = {f"transformer.{name}": p.grad for name, p in model.named_parameters()}
    if projection is not None:
        expected["projection.weight"] = projection.weight.grad
    for name, gradient in found.items():
        one = expected.pop(name)
        tolerance = 1e-4 * one.abs().max().item() + 1e-5
        torch.testing.assert_close(gradient.double(), one, rtol=0, atol=tolerance)
    assert all("pooler" in name for name in expected)


def test_gradients_with_dropout(start):
    """By finite differences, with the same units left out."""
    encoder = start(dim=9)
    found, W = gradients(encoder), weights(9)
    names = encoder.network_.parameters()
    for name in ("projection.weight", "transformer.encoder.layer.0.output.LayerNorm.bias"):
        direction, ends = torch.sign(found[name]), []
        for step in (0.01, -0.01):
            with torch.no_grad():
                names[name] += step * direction
                ends.append(float((encoder.forward(TEXTS, rng()).V * W).sum()))
                names[name] -= step * direction
        slope = (ends[0] - ends[1]) / 0.02
        assert slope == pytest.approx(found[name].abs().sum().item(), rel=0.01)


def test_bytes_do_not_depend_on_what_is_held_or_on_threads(start, monkeypatch):
    found = []
    for room, n_jobs in ((2**30, 1), (0, 1), (0, 3), (1_000_000, 1), (2**30, 2)):
        monkeypatch.setattr(passes, "KEPT_BYTES", room)
        encoder = start(dim=7)
        held = [one is not None for one in encoder.forward(TEXTS, rng()).held]
        assert {0: not any(held), 2**30: all(held)}.get(room, any(held) and not all(held))
        found.append({k: one.numpy().tobytes() for k, one in gradients(encoder, n_jobs).items()})
    assert all(one == found[0] for one in found)


def held_bytes(encoder, texts):
    """Return the bytes that torch saves in a forward pass for its gradients, without weights."""
    module = encoder.network_.module("cpu")
    weights = {one.untyped_storage().data_ptr() for one in module.state_dict().values()}
    saved = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        passed = encoder.forward(texts, rng())
    assert passed.V.any()
    return sum(saved.values())


def test_passes_hold_no_more_than_there_is_room_for(start, monkeypatch):
    texts = make_texts(200, longest=20)
    every = held_bytes(start(), texts)
    for share in (0.1, 0.5):
        monkeypatch.setattr(passes, "KEPT_BYTES", int(share * every))
        assert 0.2 * share * every < held_bytes(start(), texts) < 1.5 * share * every


def test_memory_of_a_mini_batch(folders):
    def required(n, **parameters):
        encoder = TransformerEncoder(folders(), max_length=16, **parameters)
        return [4 * np.prod(shape) * times for _, shape, times in encoder.batch_shapes(n)]

    assert required(5) == [5 * required(1)[0]]
    assert required(10**9) == [passes.KEPT_BYTES]
    assert required(5, frozen=True) == []
