"""Pickles, copies and clones of encoders, before, in and after training."""

import copy
import io
import pickle

import joblib
import numpy as np
import pytest
import torch
from sklearn.base import clone
from tiny import HIDDEN, make_model, make_texts, make_tokenizer

from sklearn_xc.embedding.encoders import TransformerEncoder

TEXTS = make_texts(30, seed=3)


def learn(encoder, n_steps, seed):
    """Take steps; return the vectors of all mini-batches."""
    rng, seen = np.random.default_rng(seed), []
    for _ in range(n_steps):
        passed = encoder.forward(TEXTS[rng.integers(0, len(TEXTS), 20)], rng)
        seen.append(passed.V)
        encoder.learn(passed, rng.normal(size=passed.V.shape), 0.01)
    return np.array(seen)


def by_joblib(encoder):
    file = io.BytesIO()
    joblib.dump(encoder, file)
    file.seek(0)
    return joblib.load(file)


COPIED = pytest.mark.parametrize(
    "copied",
    [lambda e: pickle.loads(pickle.dumps(e)), by_joblib, copy.deepcopy],
    ids=["pickle", "joblib", "deepcopy"],
)


@COPIED
@pytest.mark.parametrize("n_steps", [0, 3])
@pytest.mark.parametrize("dim", [HIDDEN, 7])
def test_a_copy_learns_on_as_the_other_would(start, copied, n_steps, dim):
    encoder = start(dim=dim, warmup_steps=5)
    learn(encoder, n_steps, 0)
    stored = copied(encoder)
    again = copied(stored)  # before any pass of its own
    V = encoder.encode(TEXTS)
    assert stored.encode(TEXTS).tobytes() == V.tobytes()
    expected = learn(encoder, 3, 1)
    assert stored.encode(TEXTS).tobytes() == V.tobytes()  # nothing is shared
    for one in (stored, again):
        assert learn(one, 3, 1).tobytes() == expected.tobytes()
        assert one.encode(TEXTS).tobytes() == encoder.encode(TEXTS).tobytes()
        assert one.network_.n_steps == n_steps + 3


@COPIED
@pytest.mark.parametrize("parameters", [{}, {"frozen": True, "dim": 7}, {"dim": 7}], ids=str)
def test_what_is_left_after_training(start, copied, parameters):
    encoder = start(**parameters)
    if "frozen" not in parameters:
        learn(encoder, 3, 0)
    V = encoder.encode(TEXTS)
    size = len(pickle.dumps(encoder))
    encoder.finish()
    assert encoder.network_.n_steps == 0
    assert encoder.network_.first is encoder.network_.second is None
    assert encoder.encode(TEXTS).tobytes() == V.tobytes()
    assert copied(encoder).encode(TEXTS).tobytes() == V.tobytes()
    n_bytes = sum(array.nbytes for array in encoder.network_.tensors().arrays.values())
    assert len(pickle.dumps(encoder)) < n_bytes + 20_000
    if "frozen" not in parameters:  # Adam's two means
        assert size > 2.9 * n_bytes


def held(value, seen=None):
    """Yield all objects that are held by an object of plain containers and instances."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    yield value
    if isinstance(value, dict):
        inside = [*value, *value.values()]
    elif isinstance(value, list | tuple | set):
        inside = list(value)
    elif hasattr(value, "__getstate__") and not isinstance(value, type | np.ndarray):
        state = value.__getstate__()
        inside = [] if state is None else [state]
    else:
        inside = []
    for one in inside:
        yield from held(one, seen)


@pytest.mark.parametrize("parameters", [{}, {"frozen": True, "dim": 7}], ids=str)
def test_a_state_has_arrays_and_nothing_of_torch(start, parameters, tmp_path):
    encoder = start(cache_dir=tmp_path, **parameters)
    encoder.encode(TEXTS)
    if not parameters:
        learn(encoder, 2, 0)
    state = encoder.__getstate__()
    modules = {type(one).__module__.partition(".")[0] for one in held(state)}
    assert modules <= {"builtins", "numpy", "sklearn_xc", "pathlib"}
    assert set(state) - set(encoder.get_params()) <= {
        "network_", "projection_", "_sklearn_version"
    }  # fmt: skip
    opcodes = pickle.dumps(encoder, protocol=0)
    for name in (b"torch", b"transformers.", b"tokenizers."):
        assert b"c" + name not in opcodes


def test_objects_as_parameters_are_never_changed(start):
    model, tokenizer = make_model(), make_tokenizer()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    hooks = sum(len(part._forward_hooks) for part in model.modules())
    encoder = clone(TransformerEncoder(model, tokenizer=tokenizer))
    assert encoder.model is not model
    assert encoder.tokenizer is not tokenizer
    for one in (encoder, TransformerEncoder(model, tokenizer=tokenizer, max_length=5)):
        one.start(TEXTS, HIDDEN, 0)
        learn(one, 2, 0)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert sum(len(part._forward_hooks) for part in model.modules()) == hooks
    assert not model.training
    assert tokenizer.backend_tokenizer.truncation is None
    expected = start().encode(TEXTS)
    one.start(TEXTS, HIDDEN, 0)
    one.max_length = 32
    assert one.encode(TEXTS).tobytes() == expected.tobytes()
