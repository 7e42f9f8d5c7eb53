"""Steps of learning: against torch's AdamW in plain use, and on a planted set."""

import numpy as np
import pytest
import torch
import transformers
from tiny import (
    HIDDEN,
    WORDS,
    make_folder,
    make_model,
    make_texts,
    make_tokenizer,
    vectors,
)

TEXTS = make_texts(30, seed=3)


def slope(V, step):
    """Return the gradient by some vectors of a made-up loss that couples them all."""
    W = np.random.default_rng(step).normal(size=(len(V), len(V)))
    return (W + W.T) @ np.asarray(V, np.float64)


def learn(encoder, n_steps, rate=0.01, n_jobs=1):
    """Take steps; return the vectors before each."""
    seen, rng = [], np.random.default_rng(0)
    for step in range(n_steps):
        passed = encoder.forward(TEXTS, rng, n_jobs)
        seen.append(passed.V.copy())
        encoder.learn(passed, slope(passed.V, step), rate, n_jobs)
    return np.array(seen)


def plain(model, tokenizer, n_steps, rate, decay, warmup, projection):
    """Do the same by torch alone."""
    parts = torch.nn.ModuleList([model, *([projection] if projection else [])])
    groups = [
        {"params": [p for p in parts.parameters() if p.ndim > 1], "weight_decay": decay},
        {"params": [p for p in parts.parameters() if p.ndim == 1], "weight_decay": 0.0},
    ]
    optimiser, seen = torch.optim.AdamW(groups), []
    for step in range(n_steps):
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / max(1, warmup))
        V = vectors(model, tokenizer, TEXTS, projection=projection)
        seen.append(V.detach().numpy())
        optimiser.zero_grad()
        V.backward(torch.from_numpy(slope(seen[-1], step).astype(np.float32)))
        optimiser.step()
    return np.array(seen)


def weights_of(encoder):
    return {name: array.copy() for name, array in encoder.network_.tensors().arrays.items()}


@pytest.mark.parametrize(
    ("kind", "decay", "warmup", "dim"),
    [
        ("bert", 0.01, 50, HIDDEN),
        ("distilbert", 0.5, 3, 7),
        ("roberta", 0.0, 0, HIDDEN),
        ("mpnet", 0.5, 3, HIDDEN),
    ],
)
def test_several_steps_are_those_of_adamw(start, kind, decay, warmup, dim):
    encoder = start(kind, dim, dropout=0.0, weight_decay=decay, warmup_steps=warmup)
    projection = None
    if dim != HIDDEN:
        projection = torch.nn.Linear(HIDDEN, dim, bias=False)
        first = torch.from_numpy(weights_of(encoder)["projection.weight"])
        projection.load_state_dict({"weight": first})
    found = learn(encoder, 7, rate=2e-3)
    model = make_model(kind, dropout=0.0)
    expected = plain(model, make_tokenizer(kind), 7, 2e-3, decay, warmup, projection)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.abs(expected[-1] - expected[0]).max() > 0.005


def test_only_matrices_decay(start):
    """A step without gradient."""
    encoder = start(dropout=0.0, weight_decay=0.1, warmup_steps=0, dim=7)
    before, V = weights_of(encoder), np.zeros((len(TEXTS), 7))
    encoder.learn(encoder.forward(TEXTS, np.random.default_rng(0)), V, 0.5)
    for name, array in weights_of(encoder).items():
        kept = 1 - 0.5 * 0.1 if array.ndim > 1 else 1.0
        np.testing.assert_allclose(array, kept * before[name], rtol=1e-6)


def test_weights_that_vectors_do_not_depend_on_never_move(start, tmp_path):
    """Not by decay either: XLNet's vectors of masks, and of two segments."""
    tokenizer = make_tokenizer()
    config = transformers.XLNetConfig(
        vocab_size=len(tokenizer), d_model=HIDDEN, n_layer=2, n_head=2, d_inner=32, pad_token_id=0
    )
    model = transformers.AutoModel.from_config(config)
    folder = make_folder(tmp_path, model=model)
    encoder = start(model=folder, weight_decay=0.5, warmup_steps=0)
    before = weights_of(encoder)
    learn(encoder, 3)
    after = weights_of(encoder)
    stay = {name.rpartition(".")[2] for name in before if np.array_equal(before[name], after[name])}
    assert stay == {"mask_emb", "seg_embed", "r_s_bias"}


def test_threads_and_a_second_start(start):
    before, found = torch.get_num_threads(), set()
    for n_jobs in (None, 1, 3):
        encoder = start(dim=7)
        found.add((learn(encoder, 3, n_jobs=n_jobs).tobytes(), encoder.encode(TEXTS).tobytes()))
    assert len(found) == 1
    assert torch.get_num_threads() == before
    encoder.start(make_texts(), 7, 0)
    assert learn(encoder, 3).tobytes() == next(iter(found))[0]


@pytest.mark.parametrize("frozen", [True, False])
def test_projections(start, frozen):
    """Fewer dimensions are the principal ones; more leave products alone."""
    own = start(texts=TEXTS).encode(TEXTS).astype(np.float64)
    encoder = start(frozen=frozen, dim=7, texts=TEXTS)
    P = encoder.projection_ if frozen else weights_of(encoder)["projection.weight"].T
    directions = np.linalg.svd(own, full_matrices=False)[2][:7]
    np.testing.assert_allclose(np.abs(np.einsum("ij,ij->j", P, directions.T)), 1, atol=1e-4)
    expected = own @ P
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)
    V = start(frozen=frozen, dim=60, texts=TEXTS).encode(TEXTS)
    np.testing.assert_allclose(V @ V.T, own @ own.T, atol=1e-5)


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
    """Return a contrastive loss of texts of a topic, and the gradient by V."""
    V = torch.tensor(V, dtype=torch.float64, requires_grad=True)
    same = torch.from_numpy((of[:, None] == of) & ~np.eye(len(of), dtype=bool)).double()
    scores = V @ V.T / temperature - 1e9 * torch.eye(len(of))
    loss = -(torch.log_softmax(scores, dim=1) * same).sum() / same.sum()
    loss.backward()
    return loss.item(), V.grad.numpy()


def test_the_loss_of_held_out_texts_falls(start):
    held_out, of_held_out = topics()
    encoder, rng = start(warmup_steps=5, dropout=0.05, dim=8), np.random.default_rng(0)
    first, _ = contrast(encoder.encode(held_out), of_held_out)
    for seed in range(1, 91):
        texts, of = topics(seed=seed)
        passed = encoder.forward(texts, rng)
        _, G = contrast(passed.V, of)
        encoder.learn(passed, G, 0.004)
    V = encoder.encode(held_out)
    last, _ = contrast(V, of_held_out)
    nearest = (V @ V.T - 9 * np.eye(len(V))).argmax(axis=1)
    assert last < 0.9 * first
    assert (of_held_out[nearest] == of_held_out).mean() > 0.75
