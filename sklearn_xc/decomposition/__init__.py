"""Scores over many labels, trained on the labels that matter for each instance.

::

    DecompMIPSClassifier          decomp_mips.py: parameters, fit
      |-- _model.py               answers of a fitted model
      |-- _training_set.py        equal instances merged
      |-- search.py               learning rate and epochs, by held-out instances
      |-- _weights.py             initial weights, and the memory of a training
      |     |-- _metric.py        proxies, for scores that are distances
      |     '-- _intercept.py     intercepts, and the answer without features
      '-- training.py             epochs of mini-batches, averages, the index that follows

    decomposition/batch_sgd.py          one mini-batch
    gradients/                    exact, sampled, searched, coupled by messages
    mips/                         the searches
"""

from sklearn_xc.decomposition.decomp_mips import DecompMIPSClassifier

__all__ = ["DecompMIPSClassifier"]
