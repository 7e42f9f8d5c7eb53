"""On a CPU, bits of a vector depend on its text alone; in training only the seed is random."""

import numpy as np
import pytest
import torch
from tiny import (
    HIDDEN,
    LONGEST,
    make_folder,
    make_sentences,
    make_texts,
    of_length,
)  # fmt: skip

from sklearn_xc.embedding.encoders.transformer import passes

#: Of each model its kind and what is special; the last has all kinds of layers behind the pooling.
CASES = {
    "bert": {},
    "distilbert": {"pooling": "max"},
    "roberta": {"pooling": "cls", "dim": 7},
    "mpnet": {"pooling": "lasttoken", "dim": 33},
    "frozen": {"frozen": True, "dim": 7},
    "frozen, longer": {"frozen": True, "dim": 61},
    "bfloat16": {"precision": "bfloat16"},
    "20 places": {"places": 20},
    "dense": {"dense": [(16, torch.nn.Tanh()), (37, torch.nn.Identity())], "dim": 5},
}


@pytest.fixture(params=CASES, scope="module")
def encoder(request, start, tmp_path_factory):
    parameters, at = dict(CASES[request.param]), tmp_path_factory.mktemp("model")
    if "places" in parameters:
        places = parameters.pop("places")
        parameters["model"] = make_folder(at, max_position_embeddings=places)
    if "dense" in parameters:
        parameters["model"] = make_sentences(at, dense=parameters.pop("dense"))
    kind = request.param if request.param in ("distilbert", "roberta", "mpnet") else "bert"
    return start(kind, max_length=LONGEST, **parameters)


@pytest.fixture
def texts():
    """Return texts of all lengths, also those that fill places to multiples of eight."""
    made = [of_length(n, seed) for n in range(3, LONGEST + 3) for seed in (0, 1)]
    return np.concatenate([make_texts(), np.array(made, object)])


def test_a_text_in_any_company(encoder, texts, monkeypatch):
    expected = encoder.encode(texts)
    rng = np.random.default_rng(0)
    for most_tokens in (1024, 8, 41, 200, 10**6):
        monkeypatch.setattr(passes, "_TOKENS", most_tokens)
        assert encoder.encode(texts).tobytes() == expected.tobytes()
        for n_jobs in (None, 1, 2, 3, -1):
            rows = rng.integers(0, len(texts), rng.integers(1, 90))
            V = encoder.encode(texts[rows], n_jobs=n_jobs)
            assert V.tobytes() == expected[rows].tobytes()
    one_by_one = np.concatenate([encoder.encode(texts[[i]]) for i in range(len(texts))])
    assert one_by_one.tobytes() == expected.tobytes()


def test_threads_of_torch_stay_as_many(start, texts):
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        encoder = start()
        encoder.encode(texts, n_jobs=2)
        learn(encoder, 2, n_jobs=2)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def learn(encoder, n_steps, n_jobs=1, seed=0):
    """Learn something; return vectors of all mini-batches."""
    rng, seen, texts = np.random.default_rng(seed), [], make_texts()
    for _ in range(n_steps):
        passed = encoder.forward(texts[rng.integers(0, len(texts), 25)], rng, n_jobs)
        seen.append(passed.V)
        G = rng.normal(size=passed.V.shape)
        encoder.learn(passed, G, 0.01, n_jobs)
    return np.concatenate(seen)


@pytest.mark.parametrize("dim", [HIDDEN, 7])
def test_training_gives_the_same_bytes_with_any_number_of_threads(start, dim, monkeypatch):
    monkeypatch.setattr(passes, "_TOKENS", 100)
    found = set()
    for n_jobs in (None, 1, 2, 3, -1):
        encoder = start(dim=dim)
        before = encoder.encode(make_texts())
        V = learn(encoder, 3, n_jobs)
        after = encoder.encode(make_texts())
        assert np.abs(after - before).max() > 0.05
        found.add((V.tobytes(), after.tobytes()))
    assert len(found) == 1


def test_a_second_start_forgets_what_was_learnt(start):
    texts, encoder = make_texts(), start()
    expected = encoder.encode(texts).tobytes()
    first = learn(encoder, 3)
    assert encoder.encode(texts).tobytes() != expected
    encoder.start(texts, HIDDEN, 0)
    assert encoder.encode(texts).tobytes() == expected
    assert learn(encoder, 3).tobytes() == first.tobytes()
