"""Fitted models, of all kinds of state that there are."""

from functools import cache

import numpy as np
from registry import ENTRIES, VARIANTS, of_variant
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from small_data import awkward

from sklearn_xc import LabelFeatures

X, Y = awkward()
#: Variants whose fitted attributes are of other kinds.
_OWN_STATE = (
    *("", "early stopping", "auto", "dropout", "euclidean", "mahalanobis", "mips", "no layer"),
    *("label features", "o_sgd", "tas", "own learner", "foreign learner", "prefit", "each label"),
    *("sigmoid", "no vectorizer", "frozen"),
)
KINDS_OF_STATE = [pair for pair in VARIANTS if pair[1] in _OWN_STATE]


def name_of(pair):
    """Return the name in `MODELS` of an estimator and its variant."""
    return " ".join(pair).strip()


@cache
def fitted(name):
    """Return one of `MODELS`, the same for all who ask."""
    return MODELS[name]()


MODELS = {
    **{name_of(pair): lambda pair=pair: of_variant(*pair).fit(X, Y) for pair in VARIANTS},
    **{
        f"{name} two classes": lambda entry=entry: entry.make().fit(X, np.arange(60) % 2)
        for name, entry in ENTRIES.items()
    },
    "dense": lambda: ENTRIES["OvALinearXC"].make().fit(X.toarray(), Y.toarray()),
    "compact": lambda: ENTRIES["OvALinearXC"].make().fit(X, Y).compact(),
    "label features": lambda: (
        ENTRIES["NGAMEEmbeddingXC"].make(label_features=LabelFeatures(X[:5])).fit(X, Y)
    ),
    "pipeline": lambda: make_pipeline(MaxAbsScaler(), ENTRIES["OvALinearXC"].make()).fit(X, Y),
}
#: Those whose state is of different kinds.
DISTINCT = [*map(name_of, KINDS_OF_STATE), "dense", "compact", "label features"]
DISTINCT += [f"{name} two classes" for name in ("OvALinearXC", "SoftmaxUMax", "TopKCalibrator")]
