"""Instances and labels that one encoder maps to the same space.

::

    ngame.py             the estimator: parameters, fit, labels that are added
      |-- _inputs.py         instances and labels as rows that encoders read
      |-- _examples.py       instances with labels and weights; those that are held out
      |-- _training.py       epochs of Siamese training, of the encoder or the classifiers
      |-- _label_means.py    means of the labels' instances
      |-- _fusion.py         one score of several
      |-- _memory.py         bytes of a fit
      '-- _answers.py        answers of a fitted model
            |-- _encoding.py     calls of encoders
            '-- _ranking.py      scores of labels, and shortlists
"""

from sklearn_xc.embedding.ngame import NGAMEEmbeddingXC

__all__ = ["NGAMEEmbeddingXC"]
