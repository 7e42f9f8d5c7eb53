"""Passes in training: what is left out, and gradients against torch's and finite differences."""

import copy

import numpy as np
import pytest
import torch
from tiny import (
    HIDDEN,
    KINDS,
    POOLINGS,
    make_model,
    make_sentences,
    make_texts,
    make_tokenizer,
    vectors,
)  # fmt: skip

from sklearn_xc.embedding.encoders.transformer import passes

TEXTS = make_texts(30, seed=3)
TANH, RELU = torch.nn.Tanh(), torch.nn.ReLU()


def rng():
    return np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    """Have a mini-batch of the tests be many chunks."""
    monkeypatch.setattr(passes, "_TOKENS", 128)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pass_without_chance_is_what_encode_returns(start, kind):
    encoder = start(kind, dropout=0)
    passed = encoder.forward(TEXTS, rng())
    assert len(passed.chunks) > 3
    assert passed.V.dtype == np.float32
    np.testing.assert_allclose(passed.V, encoder.encode(TEXTS), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_out(start, kind):
    encoder, same = start(kind), np.repeat(TEXTS[:1], 20)
    exact, V = encoder.encode(same), encoder.forward(same, rng()).V
    np.testing.assert_allclose(np.linalg.norm(V, axis=1), 1, atol=1e-6)
    assert len({row.tobytes() for row in V}) == 20  # the same text: other units
    assert V.tobytes() == encoder.forward(same, rng()).V.tobytes()
    assert V.tobytes() == start(kind).forward(same, rng()).V.tobytes()
    assert V.tobytes() != encoder.forward(same, np.random.default_rng(1)).V.tobytes()
    away = [
        np.linalg.norm(start(kind, dropout=share).forward(same, rng()).V - exact, axis=1).mean()
        for share in (0.01, 0.1, 0.5)
    ]
    assert 0 < away[0] < away[1] < away[2]


def test_the_rest_is_scaled():
    from sklearn_xc.embedding.encoders.transformer.network import Dropping, _leave_out

    layer, given = torch.nn.Dropout(0.25).eval(), torch.ones(500, 80)
    device = given.device
    for share, p in ((None, 0.25), (0.4, 0.4), (0.0, 0.0)):
        with Dropping(3, share, device):
            found = _leave_out(layer, None, given)
        values = found.unique().tolist()
        assert values == pytest.approx([0, 1 / (1 - p)] if p else [1])
        assert (found == 0).double().mean().item() == pytest.approx(p, abs=0.01)
        # Not outside of the context, nor in one without a seed.
        assert _leave_out(layer, None, given) is given
        with Dropping(None, share, device):
            assert _leave_out(layer, None, given) is given


def reference(kind, texts, weight, *, pooling="mean", layers=(), model=None, n_bits=32):
    """Return a loss, by plain use of a model, and the gradients by its weights and the layers'.

    The loss is the sum of weights times vectors, so that `weight` is its gradient by the vectors.
    """
    model = make_model(kind) if model is None else model
    layers = [copy.deepcopy(layer) for layer in layers]
    if n_bits == 64:
        model, layers = model.double(), [layer.double() for layer in layers]
    parts = torch.nn.ModuleList([model, *layers])
    parts.zero_grad()
    V = vectors(model, make_tokenizer(kind), texts, pooling=pooling, layers=layers)
    loss = (V * torch.from_numpy(weight).to(V.dtype)).sum()
    loss.backward()
    by_model = {f"transformer.{name}": p.grad for name, p in model.named_parameters()}
    by_layers = [p.grad for layer in layers for p in layer.parameters()]
    return loss.item(), {n: g for n, g in by_model.items() if g is not None}, by_layers


def gradients(encoder, weight, n_jobs=1, texts=TEXTS):
    passed = encoder.forward(texts, rng())
    return passes.gradients(
        encoder.network_, passed, np.asarray(weight, np.float32), encoder._settings(), n_jobs
    )


def weights(dim=HIDDEN):
    return np.random.default_rng(7).normal(size=(len(TEXTS), dim))


def assert_close(found, expected):
    """Assert that gradients are alike, up to rounding of the largest of each array."""
    assert found.shape == expected.shape
    scale = expected.abs().max().item()
    assert scale > 0
    torch.testing.assert_close(found.double(), expected.double(), rtol=0, atol=1e-4 * scale + 1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pooling", POOLINGS)
def test_gradients_are_those_of_torch(start, kind, pooling):
    """Of one mini-batch, where it is one padded batch: the sum over chunks is the same."""
    encoder = start(kind, dropout=0, pooling=pooling)
    found = gradients(encoder, weights())
    _, expected, _ = reference(kind, TEXTS, weights(), pooling=pooling, n_bits=64)
    for name, gradient in found.items():
        assert_close(gradient, expected.pop(name))
    assert all("pooler" in name for name in expected)  # what vectors do not depend on


@pytest.mark.parametrize("dim", [16, 9])
def test_gradients_of_layers_behind(start, tmp_path, dim):
    """Dense layers, and the projection to another dimension."""
    model = make_sentences(tmp_path, dense=[(20, TANH), (16, RELU)])
    encoder = start(model=model, dim=dim, dropout=0)
    found = gradients(encoder, weights(dim=dim))
    layers = [model[2].linear, TANH, model[3].linear, RELU]
    if dim != 16:
        layers.append(torch.nn.Linear(16, dim, bias=False))
        projection = encoder.network_.tensors().arrays["projection.weight"]
        layers[-1].load_state_dict({"weight": torch.from_numpy(projection.copy())})
    _, expected, behind = reference(
        "bert", TEXTS, weights(dim=dim), model=copy.deepcopy(model[0].model), layers=layers,
        n_bits=64,
    )  # fmt: skip
    own = [name for name in found if not name.startswith("transformer.")]
    assert len(own) == len(behind) == (4 if dim == 16 else 5)
    for name, gradient in zip(own, behind, strict=True):
        assert_close(found[name], gradient)
    name = "transformer.encoder.layer.0.output.dense.weight"
    assert_close(found[name], expected[name])


def test_gradients_of_what_is_left_out(start):
    """By finite differences of a scalar, with the same units left out."""
    encoder = start(dim=9)
    found, W = gradients(encoder, weights(dim=9)), weights(dim=9)
    module = encoder.network_.module("cpu")
    names = dict(module.named_parameters())
    for name in ("projection.weight", "transformer.encoder.layer.0.output.LayerNorm.bias"):
        direction = torch.sign(found[name])
        ends = []
        for step in (0.01, -0.01):
            with torch.no_grad():
                names[name] += step * direction
                ends.append(float((encoder.forward(TEXTS, rng()).V * W).sum()))
                names[name] -= step * direction
        slope = (ends[0] - ends[1]) / 0.02
        assert slope == pytest.approx(found[name].abs().sum().item(), rel=0.01)


@pytest.mark.parametrize("dropout", [0, None, 0.3])
@pytest.mark.parametrize("dim", [HIDDEN, 7])
def test_passes_made_again_give_the_same_bytes(start, monkeypatch, dropout, dim):
    found = []
    kept = {"few": 1_000_000, "all": 2**30}
    for checkpointing, room in ((False, "all"), (True, "all"), ("auto", "all"), ("auto", "few")):
        monkeypatch.setattr(passes, "KEPT_BYTES", kept[room])
        encoder = start(dim=dim, dropout=dropout, gradient_checkpointing=checkpointing)
        passed = encoder.forward(TEXTS, rng())
        n_held = sum(one is not None for one in passed.held)
        n_chunks = len(passed.chunks)
        expected = {False: n_chunks, True: 0, "auto": n_chunks}[checkpointing]
        assert n_held == expected if room == "all" else 0 < n_held < n_chunks
        by_weights = gradients(encoder, weights(dim=dim))
        found.append({name: g.numpy().tobytes() for name, g in by_weights.items()})
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize("checkpointing", [True, False])
def test_threads_give_the_same_bytes(start, checkpointing):
    found = []
    for n_jobs in (None, 1, 2, 3, 100, -1):
        encoder = start(gradient_checkpointing=checkpointing)
        by_weights = gradients(encoder, weights(), n_jobs)
        found.append({name: g.numpy().tobytes() for name, g in by_weights.items()})
    assert all(one == found[0] for one in found)
