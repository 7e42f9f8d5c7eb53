"""Skip-gram with negative sampling, on counts of words and contexts.

A pair is drawn by its count, and contexts against it by a power of their own. The loss of a pair is
``log(1 + exp(-u . w)) + sum over drawn contexts of log(1 + exp(u . w'))``, and each takes a step.

Source: equation 4 of [1]_.

References
----------
.. [1] T. Mikolov, I. Sutskever, K. Chen, G. S. Corrado and J. Dean, "Distributed representations of
   words and phrases and their compositionality", NIPS 2013.
"""

import math

import numpy as np

from sklearn_xc._compile.arithmetic.sampling import place_of, random_unit
from sklearn_xc._compile.jit import inlined, kernel

#: Scores beyond it have no gradient to speak of.
_MOST = 30.0


@inlined
def _place(ends, first, last, point):
    """Return the first place from `first` on whose end is beyond a point; the last at most."""
    low, high = first, last - 1
    while low < high:
        middle = (low + high) // 2
        if ends[middle] > point:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def sample_pairs(U, W, pairs, noise, n_negative, rate, last_rate, key, counter):
    """Take a step for each of some pairs; the order of all steps is given.

    Parameters
    ----------
    U : ndarray of float of shape (n_words, dim)
        Changed.
    W : ndarray of float of shape (n_contexts, >= dim)
        Changed.
    pairs : tuple of ndarray
        Words, int32 (m,), and the number of pairs of each, int64 (m,); the contexts of all words in
        CSR form, int64 (n_words + 1,) and int32; cumulated counts in each row, float32.
    noise : ClassSampler
        Distribution of the negative contexts.
    n_negative : int
    rate, last_rate : float
        Learning rates of the first and the last pair.
    key : uint64
        Of the random numbers.
    counter : int
        Number of earlier draws; each pair takes ``n_negative + 1``.
    """
    order, visits, indptr, contexts, ends = pairs
    dim = U.shape[1]
    step = np.empty(dim, U.dtype)
    total = max(1, np.sum(visits))
    done = 0
    for t in range(order.shape[0]):
        x = order[t]
        first, last = indptr[x], indptr[x + 1]
        u = U[x]
        for _ in range(visits[t]):
            now = rate + (last_rate - rate) * (done / total)
            done += 1
            for j in range(dim):
                step[j] = 0
            for k in range(n_negative + 1):
                point = random_unit(key, counter)
                counter += 1
                if k == 0:
                    y = contexts[_place(ends, first, last, point * ends[last - 1])]
                    own = y
                else:
                    y = noise.classes[place_of(noise, point)]
                    if y == own:
                        continue
                w = W[y]
                score = 0.0
                for j in range(dim):
                    score += u[j] * w[j]
                bounded = min(max(score, -_MOST), _MOST)
                size = (1.0 if k == 0 else 0.0) - 1.0 / (1.0 + math.exp(-bounded))
                g = U.dtype.type(now * size)
                for j in range(dim):
                    step[j] += g * w[j]
                    w[j] += g * u[j]
            for j in range(dim):
                u[j] += step[j]
