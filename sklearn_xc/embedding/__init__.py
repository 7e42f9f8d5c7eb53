"""Instances and labels that one encoder maps to the same space.

::

    ngame.py             the estimator: what is trained in which order, and what a model answers
    _training.py         epochs of Siamese training, of an encoder or of classifiers
    _label_features.py   what the encoder reads of the labels
    _fusion.py           one score of two
"""

from sklearn_xc.embedding.ngame import NGAMEEmbeddingXC

__all__ = ["NGAMEEmbeddingXC"]
