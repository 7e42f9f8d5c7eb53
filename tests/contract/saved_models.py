"""Fitted models, of all kinds of state that there are."""

from functools import cache

import numpy as np
from registry import ENTRIES, VARIANTS, of_variant
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from small_data import awkward

from sklearn_xc import LabelFeatures

X, Y = awkward()


@cache
def fitted(name):
    """Return one of `MODELS`, the same for all who ask."""
    return MODELS[name]()


MODELS = {
    **{
        f"{name} {variant}".strip(): lambda name=name, variant=variant: of_variant(
            name, variant
        ).fit(X, Y)
        for name, variant in VARIANTS
    },
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
