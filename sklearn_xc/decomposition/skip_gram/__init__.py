"""Word vectors by the skip-gram model, and files of such vectors.

::

    sentences -> cooccurrence -> counts of words with contexts
                                   |
                  training -> input and output vectors
                                   |
                              queries, files
"""

from sklearn_xc.decomposition.skip_gram.cooccurrence import WordCounts, count_contexts
from sklearn_xc.decomposition.skip_gram.skip_gram import DecompMIPSSkipGram
from sklearn_xc.decomposition.skip_gram.word2vec_files import read_word2vec, write_word2vec

__all__ = [
    "DecompMIPSSkipGram",
    "WordCounts",
    "count_contexts",
    "read_word2vec",
    "write_word2vec",
]
