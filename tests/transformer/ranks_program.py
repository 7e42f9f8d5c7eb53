"""What the processes of test_transformer_ranks.py run; a single one works it out by itself too."""

import os
import pickle
import sys
import warnings
from pathlib import Path

import numpy as np
from tiny import make_texts

from sklearn_xc.encoders import TransformerEncoder
from sklearn_xc.encoders.transformer import passes

TEXTS = make_texts(30, seed=3)
#: Parameters, dimension, and tokens of a chunk: few, or so many that all texts are one.
CASES = {
    "no chance": ({"dropout": 0}, 24, 128),
    "what is left out": ({"dropout": None, "gradient_checkpointing": True}, 7, 128),
    "one chunk": ({"dropout": 0.2}, 24, 10**6),
}


def train(model, parameters, dim, n_tokens, n_steps=4):
    """Return losses, vectors of mini-batches, those of all texts at the end, and the encoder."""
    passes._TOKENS = n_tokens
    encoder = TransformerEncoder(model, warmup_steps=2, **parameters)
    encoder.start(TEXTS, dim, 0)
    rng, losses, seen = np.random.default_rng(0), [], []
    for _ in range(n_steps):
        passed = encoder.forward(TEXTS[rng.integers(0, len(TEXTS), 20)], rng)
        target = rng.normal(size=passed.V.shape)
        losses.append((passed.V * target).sum())
        seen.append(passed.V)
        encoder.learn(passed, target, 0.003)
    V = encoder.encode(TEXTS)
    stored = pickle.dumps(encoder)
    encoder.finish()
    return {"losses": np.array(losses), "seen": np.array(seen), "V": V, "stored": stored}


def refused(model, texts, dim, seed):
    """Return the message of a start that must fail in all processes."""
    try:
        TransformerEncoder(model).start(texts, dim, seed)
    except ValueError as error:
        return str(error)
    return "it was not refused"


def main(model, other_model, folder):
    found = {name: train(model, *case) for name, case in CASES.items()}
    rank = int(os.environ.get("RANK", "0"))
    if "RANK" in os.environ:
        found["refused"] = [
            refused(model, TEXTS[rank:], 24, 0),
            refused(model, TEXTS, 24 + rank, 0),
            refused(model, TEXTS, 24, np.int64(rank)),
            refused(other_model if rank else model, TEXTS, 24, 0),
        ]
        found["agreed"] = refused(model, TEXTS, np.int64(24), np.int64(5))
        import torch.distributed

        found["backend"] = torch.distributed.get_backend()
        torch.distributed.destroy_process_group()
    (Path(folder) / f"{rank}.pickle").write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])
