"""Instances and labels that one encoder maps to the same space.

::

    ngame.py             the estimator: what is trained in which order
      |-- _examples.py         instances with labels and weights, whole or by label shard
      |-- _rows.py             rows as encoders read them
      |-- _encoding.py         what encoders give, checked
      |-- _label_features.py   what the encoder reads of the labels
      |-- _training.py         epochs of Siamese training, of an encoder or of classifiers
      '-- _model.py            what a trained model answers
            |-- _ranking.py          what a label scores, and which labels are worth scoring
            '-- _fusion.py           one score of several
"""

from sklearn_xc.embedding.ngame import NGAMEEmbeddingXC

__all__ = ["NGAMEEmbeddingXC"]
