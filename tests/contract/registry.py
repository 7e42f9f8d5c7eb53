"""The estimators that the contract is tried on, small and quick, and data for them."""

import numpy as np
import scipy.sparse as sp

from sklearn_xc import (
    DecompMIPSClassifier,
    ImplicitSoftmaxSGD,
    NGAMEEmbeddingXC,
    OvALinearXC,
    OvALinearXCCV,
    SoftmaxUMax,
)

FEW = {"max_iter": 3, "random_state": 0}
ESTIMATORS = {
    "OvALinearXC": lambda: OvALinearXC(),
    "OvALinearXCCV": lambda: OvALinearXCCV(Cs=[0.1, 1.0], cv=2, random_state=0),
    "SoftmaxUMax": lambda: SoftmaxUMax(learning_rate=0.1, **FEW),
    "ImplicitSoftmaxSGD": lambda: ImplicitSoftmaxSGD(learning_rate=0.1, **FEW),
    "DecompMIPSClassifier": lambda: DecompMIPSClassifier(embedding_dim=4, **FEW),
    "NGAMEEmbeddingXC": lambda: NGAMEEmbeddingXC(
        embedding_dim=4, max_iter=1, classifier_max_iter=1, batch_size=8, random_state=0
    ),
}


def made(n_labels, seed):
    """Return X (60, 15) and Y (60, n_labels), sparse; every row and label has a positive."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((60, 15), density=0.3, random_state=rng, format="csr")
    Y = sp.random_array((60, n_labels), density=0.2, random_state=rng, format="csr")
    Y.data[:] = 1
    Y = Y.tolil()
    Y[np.arange(60), np.arange(60) % n_labels] = 1
    return X, Y.tocsr()
