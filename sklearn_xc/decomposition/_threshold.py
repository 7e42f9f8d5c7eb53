"""The score from which on a label is predicted."""

import numpy as np

from sklearn_xc.base import threshold_for
from sklearn_xc.decomposition._model import HiddenLayerModel
from sklearn_xc.decomposition._training_set import TrainingSet

#: Training instances by which the threshold is set, but no more scores than these for more than a
#: few instances.
_INSTANCES, _SCORES, _LEAST_INSTANCES = 1000, 10**8, 50


def threshold_of(model: HiddenLayerModel, training: TrainingSet, seed: int) -> float:
    """Return the score above which there are as many labels as instances have; 0 for classes.

    Instances without features do not count: their margins are fixed.
    """
    if training.targets.kind == "classes":
        return 0.0
    rng = np.random.default_rng((seed, 5))
    n = max(_LEAST_INSTANCES, _SCORES // training.n_labels)
    rows = np.sort(rng.permutation(training.rows)[: min(n, _INSTANCES)])
    k, parts = model._n_considered(), model._parts(training.instances.take(rows), model._embed)
    scores, with_features = [], []
    for own, V in parts:
        kept = np.delete(np.arange(len(V)), model._blank(V))
        scores.append(model._best(V[kept], k)[1])
        model._as_scores(V[kept], scores[-1])
        with_features.append(rows[own][kept])
    rows, sets = np.concatenate(with_features), training.sets
    if not rows.size:
        return 0.0
    n_labels = int((sets.indptr[rows + 1] - sets.indptr[rows]).sum())
    return threshold_for(np.concatenate(scores), n_labels)
