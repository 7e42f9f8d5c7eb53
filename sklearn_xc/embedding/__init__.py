"""Instances and labels that one encoder maps to the same space.

::

    ngame.py             the estimator: parameters, and fit
      |-- _training.py       epochs of Siamese training, of the encoder or the classifiers
      |-- _fusion.py         one score of several
      |-- _memory.py         bytes of a fit
      '-- _answers.py        the fitted model: answers, and labels that are added
            |-- _ranking.py      scores of labels, and shortlists
            |-- _examples.py     instances with labels and weights, and means by label
            '-- _inputs.py       instances and labels as rows that encoders read
"""

from sklearn_xc.embedding.ngame import NGAMEEmbeddingXC

__all__ = ["NGAMEEmbeddingXC"]
