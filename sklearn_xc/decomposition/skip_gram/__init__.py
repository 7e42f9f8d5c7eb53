"""Word vectors by the skip-gram model.

::

    sentences -> cooccurrence -> counts of words with contexts
                                   |
                  training -> input and output vectors
                                   |
                                words
"""

from sklearn_xc.decomposition.skip_gram.cooccurrence import WordCounts, count_contexts
from sklearn_xc.decomposition.skip_gram.skip_gram import DecompMIPSSkipGram

__all__ = [
    "DecompMIPSSkipGram",
    "WordCounts",
    "count_contexts",
]
