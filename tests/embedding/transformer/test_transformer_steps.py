"""Steps of learning: against torch's AdamW in plain use, and on a planted set."""

import numpy as np
import pytest
import torch
import transformers
from tiny import (
    HIDDEN,
    KINDS,
    WORDS,
    make_model,
    make_sentences,
    make_texts,
    make_tokenizer,
    vectors,
)  # fmt: skip

TEXTS = make_texts(30, seed=3)


def slope(V, step):
    """Return the gradient by some vectors of a made-up loss that couples them all."""
    W = np.random.default_rng(step).normal(size=(len(V), len(V)))
    return (W + W.T) @ np.asarray(V, np.float64)


def learn(encoder, n_steps, rate=0.01, first=0):
    """Take steps; return the vectors before each."""
    seen, rng = [], np.random.default_rng(0)
    for step in range(first, first + n_steps):
        passed = encoder.forward(TEXTS, rng)
        seen.append(passed.V.copy())
        encoder.learn(passed, slope(passed.V, step), rate)
    return np.array(seen)


def plain(model, tokenizer, n_steps, rate=0.01, decay=0.01, warmup=50, layers=()):
    """Do the same by torch alone; return the vectors before each step."""
    parts = torch.nn.ModuleList([model, *layers])
    groups = [
        {"params": [p for p in parts.parameters() if p.ndim > 1], "weight_decay": decay},
        {"params": [p for p in parts.parameters() if p.ndim == 1], "weight_decay": 0.0},
    ]
    optimiser, seen = torch.optim.AdamW(groups), []
    for step in range(n_steps):
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / max(1, warmup))
        V = vectors(model, tokenizer, TEXTS, layers=layers)
        seen.append(V.detach().numpy())
        optimiser.zero_grad()
        V.backward(torch.from_numpy(slope(seen[-1], step).astype(np.float32)))
        optimiser.step()
    return np.array(seen)


def arrays_of(encoder):
    """Return the weights of now, which further steps do not change."""
    return {name: array.copy() for name, array in encoder.network_.tensors().arrays.items()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("decay", "warmup"), [(0.01, 50), (0.5, 3), (0.0, 0)])
def test_several_steps_are_those_of_adamw(start, kind, decay, warmup):
    encoder = start(kind, dropout=0, weight_decay=decay, warmup_steps=warmup)
    found = learn(encoder, 7, rate=2e-3)
    expected = plain(make_model(kind), make_tokenizer(kind), 7, 2e-3, decay, warmup)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.abs(expected[-1] - expected[0]).max() > (0.005 if warmup == 50 else 0.05)
    assert encoder.network_.n_steps == 7


def test_steps_of_layers_behind(start, tmp_path):
    model = make_sentences(tmp_path, dense=[(16, torch.nn.Tanh())])
    encoder = start(model=model, dim=6, dropout=0, warmup_steps=0)
    projection = torch.nn.Linear(16, 6, bias=False)
    first = torch.from_numpy(arrays_of(encoder)["projection.weight"].copy())
    projection.load_state_dict({"weight": first})
    found = learn(encoder, 7, rate=2e-3)
    layers = [model[2].linear, torch.nn.Tanh(), projection]
    expected = plain(model[0].model, make_tokenizer(), 7, 2e-3, warmup=0, layers=layers)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    last = arrays_of(encoder)
    np.testing.assert_allclose(last["projection.weight"], projection.weight.detach(), atol=1e-5)
    np.testing.assert_allclose(last["dense.0.weight"], model[2].linear.weight.detach(), atol=1e-5)


def test_only_matrices_decay(start):
    """A step without gradient."""
    encoder = start(dropout=0, weight_decay=0.1, warmup_steps=0, dim=7)
    before, V = arrays_of(encoder), np.zeros((len(TEXTS), 7))
    encoder.learn(encoder.forward(TEXTS, np.random.default_rng(0)), V, 0.5)
    after, ndims = arrays_of(encoder), set()
    for name, array in before.items():
        kept = 1 - 0.5 * 0.1 if array.ndim > 1 else 1.0
        np.testing.assert_allclose(after[name], kept * array, rtol=1e-6)
        ndims.add(array.ndim)
    assert ndims == {1, 2}


def test_what_vectors_do_not_depend_on_never_moves(start, tmp_path):
    """Not by decay either: XLNet's vectors of what is masked, and of two segments."""
    tokenizer = make_tokenizer()
    config = transformers.XLNetConfig(
        vocab_size=len(tokenizer), d_model=HIDDEN, n_layer=2, n_head=2, d_inner=32, pad_token_id=0
    )
    transformers.AutoModel.from_config(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    encoder = start(model=tmp_path, weight_decay=0.5, warmup_steps=0)
    before = arrays_of(encoder)
    learn(encoder, 3)
    after = arrays_of(encoder)
    stay = {name.rpartition(".")[2] for name in before if np.array_equal(before[name], after[name])}
    assert stay == {"mask_emb", "seg_embed", "r_s_bias"}


def topics(n=48, seed=0):
    """Return texts of four topics, which have words of their own, and the topic of each."""
    rng = np.random.default_rng(seed)
    of = rng.integers(0, 4, n)
    texts = [
        " ".join(rng.permutation([*rng.choice(WORDS[4 * t : 4 * t + 4], 2), *rng.choice(WORDS, 3)]))
        for t in of
    ]
    return np.array(texts, object), of


def contrast(V, of, temperature=0.1):
    """Return how unlike texts of a topic are, beside the others, and the gradient by V."""
    V = torch.tensor(V, dtype=torch.float64, requires_grad=True)
    same = torch.from_numpy((of[:, None] == of) & ~np.eye(len(of), dtype=bool)).double()
    scores = V @ V.T / temperature - 1e9 * torch.eye(len(of))
    loss = -(torch.log_softmax(scores, dim=1) * same).sum() / same.sum()
    loss.backward()
    return loss.item(), V.grad.numpy()


@pytest.mark.parametrize(
    "parameters", [{}, {"dropout": 0.05, "dim": 8}, {"kind": "mpnet"}], ids=str
)
def test_the_loss_falls(start, parameters):
    """Also that of texts that come later, which are nearest to texts of their topic then."""
    held_out, of_held_out = topics()
    encoder, rng = start(warmup_steps=5, **parameters), np.random.default_rng(0)
    first, _ = contrast(encoder.encode(held_out), of_held_out)
    for seed in range(1, 91):
        texts, of = topics(seed=seed)
        passed = encoder.forward(texts, rng)
        _, G = contrast(passed.V, of)
        encoder.learn(passed, G, 0.004)
    encoder.finish()
    V = encoder.encode(held_out)
    last, _ = contrast(V, of_held_out)
    nearest = (V @ V.T - 9 * np.eye(len(V))).argmax(axis=1)
    assert last < 0.9 * first
    assert (of_held_out[nearest] == of_held_out).mean() > 0.75
