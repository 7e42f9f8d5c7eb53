"""Gains of hits, by the `objective` for which labels with probabilities are ordered."""

import numpy as np

from sklearn_xc.metrics.propensity_scored import propensity

OBJECTIVES = ("precision", "propensity")


def gains_of(objective: str, label_counts: np.ndarray, n_samples: float) -> np.ndarray:
    """Return the gain of a hit of each label; probabilities times gains give the best order.

    Parameters
    ----------
    objective : {"precision", "propensity"}
        Of the estimator: precision@k counts hits alike, propensity-scored precision@k by the
        inverse of the label's propensity.
    label_counts : ndarray of shape (n_labels,)
        Training instances of each label, or their summed weights, and
    n_samples : int or float
        of all instances.

    Returns
    -------
    ndarray of float64 of shape (n_labels,)
    """
    if objective == "precision":
        return np.ones(len(label_counts))
    return 1.0 / propensities_of(label_counts, n_samples)


def propensities_of(label_counts: np.ndarray, n_samples: float) -> np.ndarray:
    """Return the propensities of labels, also of fewer than three instances."""
    return propensity(label_counts, max(3, n_samples))
