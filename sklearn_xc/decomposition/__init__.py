"""Scores over many labels, trained on the labels that matter for each instance.

::

    DecompMIPSClassifier                     decomp_mips.py: parameters, fit, partial_fit
            |-- _model.py                    what a fitted model answers
            |-- _training_set.py             equal instances merged, in an order of their content
            |-- _training.py                 epochs: rates, when an index is built
            |
    solvers/batch_sgd.py                     one mini-batch
    solvers/label_gradients.py               exact, sampled, searched, coupled by messages
    mips/                                    the searches
"""

from sklearn_xc.decomposition.decomp_mips import DecompMIPSClassifier

__all__ = ["DecompMIPSClassifier"]
