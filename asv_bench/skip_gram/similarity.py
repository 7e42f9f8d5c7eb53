"""Word vectors beside gensim's: word similarities and analogies at equal CPU seconds.

``DecompMIPSSkipGram`` and skip-gram of gensim (negative sampling with 5 and with 15 samples,
hierarchical softmax) get the same lists of tokens, dimension, window, least count and subsampling
(of which gensim's formula keeps slightly more), and one thread. CPU seconds are those of the whole
call, counting of words included. The measures are Spearman's correlation with thirteen sets of word
similarities, means over sets and over pairs, and the share of Google's analogies that 3CosAdd
completes; pairs and questions with an unknown word are left out. Vectors are the input vectors, or
the sum of input and output vectors, each divided by its mean norm. Needs ``pip install gensim``.
"""

import argparse
import importlib
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from asv_bench.common.measure import cpu_seconds
from asv_bench.common.report import Report
from asv_bench.skip_gram.corpora import read_analogies, read_corpus, read_similarities
from sklearn_xc import DecompMIPSSkipGram

WINDOW, MIN_COUNT, SUBSAMPLE = 8, 5, 1e-4
GENSIM = {
    "gensim, negative=5": {"hs": 0, "negative": 5},
    "gensim, negative=15": {"hs": 0, "negative": 15},
    "gensim, hs": {"hs": 1, "negative": 0},
}
#: A set with fewer known pairs does not count in the means.
_FEW = 10
_WARM_UP = 200


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--epochs", nargs="*", type=int, default=(1, 5, 15), help="of gensim")
    parser.add_argument("--iterations", nargs="+", type=int, default=(5, 10, 20), help="of ours")
    parser.add_argument("--gradients", nargs="+", default=("sampled",), help="of ours (sampled)")
    parser.add_argument("--dim", type=int, default=100, help="of vectors (100)")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each (3)")


def main(options: argparse.Namespace, report: Report) -> list[dict[str, Any]]:
    """Train both; return a row for each training, kind of vectors and seed."""
    similarities, analogies = read_similarities(options.data), read_analogies(options.data)
    sentences = read_corpus(options.data)
    runs = [(gradient, n) for gradient in options.gradients for n in options.iterations]
    for gradient in options.gradients:
        _ours(gradient, 1, sentences[:_WARM_UP], options.dim, 0, min_count=1)
    runs += [(system, n) for system in GENSIM for n in options.epochs]
    rows = []
    for system, n in runs:
        for seed in range(options.seeds):
            train = _gensim if system in GENSIM else _ours
            arguments = (system, n, sentences, options.dim, seed)
            (words, vectors), seconds = cpu_seconds(train, *arguments)
            row = {"system": system, "epochs": n, "seed": seed, "CPU s": seconds}
            for kind, found in vectors.items():
                measures = evaluate(words, found, similarities, analogies)
                rows.append(row | {"vectors": kind} | measures)
            print(f"{system}, {n}, seed {seed}: {seconds:,.1f} CPU s", flush=True)
    report.table("Word similarities and analogies", rows)
    return rows


def evaluate(
    words: np.ndarray, vectors: np.ndarray, similarities: dict[str, Any], analogies: list[list[str]]
) -> dict[str, float]:
    """Return Spearman's correlations, their means, and the share of analogies in %."""
    place = {word: i for i, word in enumerate(words)}
    V = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)
    rho, n_pairs = {}, {}
    for name, pairs in similarities.items():
        known = [(place[a], place[b], s) for a, b, s in pairs if a in place and b in place]
        if len(known) >= _FEW:
            a, b, scores = zip(*known, strict=True)
            rho[name] = float(spearmanr((V[list(a)] * V[list(b)]).sum(axis=1), scores)[0])
            n_pairs[name] = len(known)
    values, weights = list(rho.values()), list(n_pairs.values())
    known = np.array([[place[w] for w in q] for q in analogies if all(w in place for w in q)], int)
    hits = [analogy_hits(V, part) for part in np.array_split(known, max(1, len(known) // 500))]
    return {
        "mean rho": float(np.mean(values)) if values else np.nan,
        "mean by pairs": float(np.average(values, weights=weights)) if values else np.nan,
        "analogies %": 100 * float(np.mean(np.concatenate(hits))) if len(known) else np.nan,
        **rho,
    }


def analogy_hits(V: np.ndarray, questions: np.ndarray) -> np.ndarray:
    """Return whether d is nearest to b - a + c among the other words, for rows of a, b, c, d."""
    if not len(questions):
        return np.zeros(0, bool)
    a, b, c, d = questions.T
    scores = (V[b] - V[a] + V[c]) @ V.T
    for asked in (a, b, c):
        scores[np.arange(len(d)), asked] = -np.inf
    return scores.argmax(axis=1) == d


def _ours(
    gradient: str, n: int, sentences: Any, dim: int, seed: int, min_count: int = MIN_COUNT
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return words, and their vectors of each kind."""
    settings = {"window": WINDOW, "min_count": min_count, "subsample": SUBSAMPLE}
    model = DecompMIPSSkipGram(
        dim, gradient=gradient, max_iter=n, n_jobs=1, random_state=seed, **settings
    ).fit(sentences)
    return model.words_, {"input": model.input_vectors_, "sum": model.vectors_}


def _gensim(
    system: str, n: int, sentences: Any, dim: int, seed: int
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return words, and their vectors of each kind that there is."""
    model = importlib.import_module("gensim.models").Word2Vec(
        sentences,
        vector_size=dim,
        window=WINDOW,
        min_count=MIN_COUNT,
        sample=SUBSAMPLE,
        sg=1,
        epochs=n,
        workers=1,
        seed=seed + 1,
        **GENSIM[system],
    )
    found = {"input": model.wv.vectors}
    if model.negative:
        both = model.wv.vectors, model.syn1neg
        found["sum"] = sum(one / np.linalg.norm(one, axis=1).mean() for one in both)
    return np.array(model.wv.index_to_key, dtype=object), found
