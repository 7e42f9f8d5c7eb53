"""What passes hold until their gradients are asked for, counted as torch keeps it."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch
from tiny import make_texts

from sklearn_xc.embedding.encoders import TransformerEncoder
from sklearn_xc.embedding.encoders.transformer import passes


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
