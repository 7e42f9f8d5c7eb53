"""Ranking metrics on the five best labels of 100,000 instances."""

import numpy as np
from scipy.sparse import csr_array

from sklearn_xc.metrics import precision_at_k

N_SAMPLES, N_LABELS = 100_000, 10_000


class Metrics:
    def setup_cache(self):
        first = np.random.default_rng(0).integers(N_LABELS, size=(N_SAMPLES, 1))
        topk = np.add(first, [0, 11, 22, 33, 44]) % N_LABELS
        true = np.sort(np.add(first, [0, 22, 55]) % N_LABELS, axis=1)
        indptr = np.arange(0, true.size + 1, true.shape[1])
        ones = np.ones(true.size, np.int8)
        return csr_array((ones, true.ravel(), indptr), shape=(N_SAMPLES, N_LABELS)), topk

    def time_precision_at_k(self, data):
        precision_at_k(*data, k=(1, 3, 5))
