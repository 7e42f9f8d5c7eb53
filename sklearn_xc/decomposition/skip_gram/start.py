"""Where input and output vectors start."""

import numpy as np

from sklearn_xc._compile.arithmetic.sampling import ClassSampler, mix_key
from sklearn_xc._input.row_pieces import row_pieces
from sklearn_xc.decomposition.skip_gram.cooccurrence import Cooccurrences
from sklearn_xc.decomposition.skip_gram.kernels.negative_sampling import sample_pairs

#: The norm of input vectors where they start at random, and that of output vectors.
_NORM, _OUTPUT_NORM = 0.5, 0.01
#: Of the epoch of negative sampling: the learning rate at first, the power of frequencies by which
#: contexts are drawn, and the rounds in which words come up. Source: word2vec, for the first two.
_RATE, _POWER, _ROUNDS = 0.025, 0.75, 10


def random_start(counts: Cooccurrences, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return input vectors and output vectors, float32, the latter with intercepts.

    An intercept is the logarithm of the context's share of all counts: so each word starts with
    what is right on average.
    """
    rng, n = np.random.default_rng((seed, 0)), len(counts.of_words)
    U = rng.standard_normal((n, dim), np.float32) * np.float32(_NORM / np.sqrt(dim))
    U[counts.of_words == 0] = 0
    W = np.empty((counts.n_contexts, dim + 1), np.float32)
    W[:, :-1] = rng.standard_normal((len(W), dim), np.float32)
    W[:, :-1] *= np.float32(_OUTPUT_NORM / np.sqrt(dim))
    W[:, -1] = counts.log_shares
    return U, W


def negative_sampling_start(
    counts: Cooccurrences, dim: int, n_negative: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return what an epoch of skip-gram with negative sampling comes to, as ``random_start`` does.

    It visits as many pairs of words and contexts as there are, each drawn by its count.
    """
    rng, n = np.random.default_rng((seed, 1)), len(counts.of_words)
    U = (rng.random((n, dim), np.float32) - np.float32(0.5)) / np.float32(dim)
    U[counts.of_words == 0] = 0
    W = np.zeros((counts.n_contexts, dim + 1), np.float32)
    W[:, -1] = counts.log_shares
    ends = _ends_of_rows(counts)
    weights = np.maximum(counts.of_contexts, 1e-9) ** _POWER
    order_of_noise = rng.permutation(counts.n_contexts).astype(np.int32)
    noise = ClassSampler.of(weights, order_of_noise)
    key, counter = mix_key(seed, 2), 0
    for turn in range(_ROUNDS):
        visits = np.floor(counts.of_words / _ROUNDS + rng.random(n)).astype(np.int64)
        order = rng.permutation(np.flatnonzero((visits > 0) & (counts.of_words > 0)))
        rates = _RATE * (1 - turn / _ROUNDS), _RATE * (1 - (turn + 1) / _ROUNDS)
        pairs = order.astype(np.int32), visits[order], counts.indptr, counts.contexts, ends
        sample_pairs(U, W, pairs, noise, n_negative, *rates, key, counter)
        counter += int(visits[order].sum()) * (n_negative + 1)
    return U, W


def _ends_of_rows(counts: Cooccurrences) -> np.ndarray:
    """Return the counts of each row summed up, float32."""
    ends = np.empty(len(counts.counts), np.float32)
    for first, last in row_pieces(counts.indptr):
        bounds = counts.indptr[first : last + 1]
        sums = np.cumsum(counts.counts[bounds[0] : bounds[-1]], dtype=np.float64)
        before = np.concatenate(([0.0], sums))[bounds[:-1] - bounds[0]]
        ends[bounds[0] : bounds[-1]] = sums - np.repeat(before, np.diff(bounds))
    return ends
