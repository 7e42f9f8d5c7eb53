"""Losses of the scores of a set of labels."""

from sklearn_xc.decomposition.losses.cross_entropy import CrossEntropy
from sklearn_xc.decomposition.losses.label_sets import (
    LABEL_SET_LOSSES,
    LabelSetLoss,
    make_label_set_loss,
)
from sklearn_xc.decomposition.losses.max_margin import MaxMargin
from sklearn_xc.decomposition.losses.triplet import Triplet

__all__ = [
    "LABEL_SET_LOSSES",
    "CrossEntropy",
    "LabelSetLoss",
    "MaxMargin",
    "Triplet",
    "make_label_set_loss",
]
