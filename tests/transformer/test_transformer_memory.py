"""What passes hold until their gradients are asked for, counted as torch keeps it."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch
from tiny import HIDDEN, LONGEST, make_folder, make_model, make_texts

from sklearn_xc.encoders import TransformerEncoder
from sklearn_xc.encoders.transformer import passes
from sklearn_xc.encoders.transformer.network import token_bytes


class Count:
    """Bytes of the tensors that are held, and the most that there were at a time."""

    def __init__(self):
        self.now = self.most = 0
        self.places = {}


class Held:
    """A tensor that is held; those that share their memory count once."""

    def __init__(self, tensor, count):
        self.tensor, self.count = tensor, count
        self.place = tensor.untyped_storage().data_ptr()
        self.n_bytes = tensor.untyped_storage().nbytes()
        count.places[self.place] = count.places.get(self.place, 0) + 1
        if count.places[self.place] == 1:
            count.now += self.n_bytes
            count.most = max(count.most, count.now)

    def __del__(self):
        self.count.places[self.place] -= 1
        if self.count.places[self.place] == 0:
            self.count.now -= self.n_bytes


@contextmanager
def counted(encoder):
    """Count what is held inside the context, weights left out."""
    module = encoder.network_.module("cpu")
    weights = {one.untyped_storage().data_ptr() for one in module.state_dict().values()}
    count = Count()

    def pack(tensor):
        is_weight = tensor.untyped_storage().data_ptr() in weights
        return tensor if is_weight else Held(tensor.detach(), count)

    def unpack(held):
        return held.tensor if isinstance(held, Held) else held

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield count


def peaks(encoder, texts):
    """Return what is held after the forward pass, and the most in that for the gradients."""
    encoder.network_.module("cpu")
    encoder.network_.parameters()
    with counted(encoder) as count:
        passed = encoder.forward(texts, np.random.default_rng(0))
        after = count.now
        count.most = after
        encoder.learn(passed, np.ones_like(passed.V), 0.001)
        assert count.now == 0
    return after, count.most


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
@pytest.mark.parametrize("dropout", [0, 0.1])
def test_passes_made_again_hold_those_of_one_chunk(start, monkeypatch, kind, dropout):
    monkeypatch.setattr(passes, "_TOKENS", 256)
    few, many = make_texts(40, longest=20), make_texts(320, longest=20)
    found = {}
    for checkpointing in (True, False):
        for texts in (few, many):
            encoder = start(kind, dropout=dropout, gradient_checkpointing=checkpointing)
            found[checkpointing, len(texts)] = peaks(encoder, texts)
    assert found[True, 40][0] == found[True, 320][0] == 0
    assert found[True, 320][1] < 1.2 * found[True, 40][1]
    assert found[False, 320][0] > 6 * found[False, 40][0] > 0
    assert found[False, 320][1] == found[False, 320][0]
    assert found[True, 320][1] < 0.1 * found[False, 320][1]


def test_what_auto_holds_is_within_the_room(start, monkeypatch):
    """The first chunks are held, the others passed again."""
    monkeypatch.setattr(passes, "_TOKENS", 256)
    texts = make_texts(320, longest=20)
    every = peaks(start(gradient_checkpointing=False), texts)[0]
    for share in (0.1, 0.5):
        monkeypatch.setattr(passes, "KEPT_BYTES", int(share * every))
        assert 0.2 * share * every < peaks(start(), texts)[0] < 1.5 * share * every


@pytest.mark.parametrize("kind", ["bert", "distilbert", "mpnet"])
def test_the_estimate_of_what_a_token_takes(start, tmp_path, kind):
    """With layers in the proportions of real ones."""
    wide = {"hidden_dim": 4 * HIDDEN} if kind == "distilbert" else {"intermediate_size": 4 * HIDDEN}
    model = make_folder(tmp_path, kind, **wide)
    encoder = start(kind, model=model, max_length=LONGEST, gradient_checkpointing=False)
    texts = make_texts(64, longest=20)
    passed = encoder.forward(texts, np.random.default_rng(0))
    n_tokens = sum(chunk.n_tokens for chunk in passed.chunks)
    per_token = peaks(encoder, texts)[0] / n_tokens
    assert 0.5 * per_token < token_bytes(encoder.network_.config) < 3 * per_token


def test_memory_of_a_mini_batch_is_told_before_a_start(folders):
    """All of it, up to a GiB, or a chunk."""

    def told(n, **parameters):
        encoder = TransformerEncoder(folders["bert"], max_length=16, **parameters)
        return [4 * np.prod(shape) * times for _, shape, times in encoder.batch_shapes(n)]

    of_one = told(1)[0]
    assert told(5) == [5 * of_one]
    assert told(10**9) == [passes.KEPT_BYTES]
    assert told(10**6, gradient_checkpointing=False) == [10**6 * of_one]
    assert told(10**6, gradient_checkpointing=True) == [passes.chunk_tokens() / 16 * of_one]
    assert told(5, frozen=True) == []


def test_memory_is_told_before_a_start(start, folders):
    """Of weights, and where it learns of their gradients and Adam's two means too."""
    n_weights = sum(array.size for array in start().network_.tensors().arrays.values())
    beside = sum(p.numel() for name, p in make_model().named_parameters() if "pooler" in name)
    assert n_weights + beside == sum(p.numel() for p in make_model().parameters())
    for frozen, n_copies in ((True, 1), (False, 4)):
        encoder = TransformerEncoder(folders["bert"], frozen=frozen, gradient_checkpointing=True)
        ((_, shape, n),) = encoder.parameter_shapes(None, HIDDEN)
        assert shape == (n_weights,)
        assert n == n_copies
    assert TransformerEncoder(frozen=True).is_frozen is True
    assert TransformerEncoder().is_frozen is False
