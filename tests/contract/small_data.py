"""Small data that the contract is tried on, that of the checks for others' estimators included."""

import numpy as np
import scipy.sparse as sp
from checks.problems import awkward, easy, made

__all__ = ["awkward", "easy", "made", "rows_of_labels"]


def rows_of_labels(n_labels=5, n_features=15):
    """Return features of labels, of which one has none."""
    rng = np.random.default_rng(7)
    Z = sp.random_array((n_labels, n_features), density=0.4, random_state=rng, format="lil")
    Z[1] = 0
    return Z.tocsr()
