"""Instances and labels that one encoder maps to the same space.

::

    ngame.py             the estimator: parameters, and the methods that users call
      '-- _updating.py         partial_fit and add_labels: changes to a fitted model
      '-- _fitting.py          fit: what is trained in which order, and the fusion
      '-- _trainable.py        how encoder and classifiers are trained, and by what settings
            |-- _label_features.py   what the encoder reads of the labels
            |-- _label_means.py      means of the labels' instances
            |-- _training.py         epochs of Siamese training
            |     |-- _modules.py    what learns in them: the encoder, or the classifiers
            |     '-- _sampling.py   calls of samplers, whose answers are checked
            |-- _fusion_pairs.py     what the fusion learns from
            |-- _fusions.py          the ways to learn it, by name
            |     |-- _boosted_fusion.py   boosted trees and a logistic model
            |     '-- _tree_fusion.py      the paper's tree
            |-- _report.py           what training did
            '-- _model.py            what a trained model answers
                  |-- _ranking.py          what a label scores, which labels are worth scoring
                  |-- _shortlist.py        an index of the labels with the best classifiers
                  '-- _fusion.py           one score of several

    _examples.py  instances with labels and weights     _rows.py, _texts.py  what encoders read
    _memory.py    what all of it takes                  _encoding.py         calls of encoders
    _vectorizer.py  features of texts, beside them      _remembered.py       embeddings of texts
"""

from sklearn_xc.embedding.ngame import NGAMEEmbeddingXC

__all__ = ["NGAMEEmbeddingXC"]
