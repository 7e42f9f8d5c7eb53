"""Checkpoints of encoders and samplers that join the registries."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from text_models import HashedWords, answers, make, make_texts

from sklearn_xc._state import checkpoints
from sklearn_xc._state.checkpoints import Checkpoints
from sklearn_xc.embedding.encoders import ENCODERS, Encoder
from sklearn_xc.embedding.samplers import SAMPLERS, BatchSampler, InBatchSampler

TABLES = {"encoder": ENCODERS, "sampler": SAMPLERS}
X, Y = make_texts()


class PlainEncoder(BaseEstimator):
    start = encode = forward = learn = None


class PlainSampler(BaseEstimator):
    start = refresh = batches = negatives = select = None


class DerivedEncoder(BaseEstimator, Encoder):
    def __init__(self):
        pass


class DerivedSampler(BaseEstimator, BatchSampler):
    def __init__(self):
        pass


@pytest.mark.parametrize(
    ("part", "own", "is_registered"),
    [
        ("encoder", PlainEncoder, True),
        ("encoder", DerivedEncoder, False),
        ("sampler", PlainSampler, False),
        ("sampler", DerivedSampler, True),
    ],
)
def test_without_what_a_checkpoint_needs_a_part_is_refused(
    part, own, is_registered, monkeypatch, tmp_path
):
    monkeypatch.setitem(ENCODERS, "words", HashedWords)
    known = sorted(TABLES[part])
    if is_registered:
        monkeypatch.setitem(TABLES[part], "own", own)
    with pytest.raises(TypeError) as caught:
        make(**{part: own(), "vectorizer": None, "checkpoint_dir": tmp_path / "fit"}).fit(X, Y)
    message = str(caught.value)
    assert f"with checkpoint_dir, {part} must be one of {known}, or an" in message
    assert message.endswith(f"Got {own.__name__}.")
    assert not (tmp_path / "fit").exists()


class Shifted(InBatchSampler):
    """Random mini-batches in an order that goes on from epoch to epoch."""

    def start(self, n, n_epochs=1, seed=0, n_jobs=None):
        super().start(n, n_epochs, seed, n_jobs)
        self.shift_ = np.zeros(1, np.int64)

    def refresh(self, epoch, state):
        self.shift_ += 1 + epoch

    def batches(self, epoch):
        for rows in super().batches(epoch):
            yield (rows + self.shift_) % self._n

    _kept_arrays = ("shift_",)


def test_with_it_a_fit_goes_on_to_the_same_bytes(monkeypatch, tmp_path):
    monkeypatch.setitem(ENCODERS, "words", HashedWords)
    monkeypatch.setitem(SAMPLERS, "shifted", Shifted)
    monkeypatch.setattr(checkpoints, "INTERVAL", 0.0)  # each epoch is kept
    parts = {"sampler": Shifted(batch_size=32), "checkpoint_dir": tmp_path / "fit"}
    expected = answers(make(sampler=Shifted(batch_size=32)).fit(X, Y), X)
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "put", stopping(Checkpoints.put))
        with pytest.raises(KeyboardInterrupt):
            make(**parts).fit(X, Y)
    assert answers(make(**parts).fit(X, Y), X) == expected


def stopping(put, after=4):
    """Return a ``put`` that is interrupted once it has kept some epochs."""
    names = []

    def stopped(store, name, arrays):
        put(store, name, arrays)
        names.append(name)
        if len(names) == after:
            raise KeyboardInterrupt

    return stopped
