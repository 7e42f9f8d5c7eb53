"""Vectors of words from what stands near them, and files of such vectors.

::

    sentences -> corpus -> cooccurrence -> counts of words with contexts
                                             |
                            problem, start, training -> input and output vectors
                                             |
                                        queries, files
"""

from sklearn_xc.skip_gram.cooccurrence import WordCounts, count_contexts
from sklearn_xc.skip_gram.evaluation import analogy_accuracy, spearman_of_pairs
from sklearn_xc.skip_gram.skip_gram import DecompMIPSSkipGram
from sklearn_xc.skip_gram.word2vec_files import (
    from_keyed_vectors,
    read_word2vec,
    to_keyed_vectors,
    write_word2vec,
)

__all__ = [
    "DecompMIPSSkipGram",
    "WordCounts",
    "analogy_accuracy",
    "count_contexts",
    "from_keyed_vectors",
    "read_word2vec",
    "spearman_of_pairs",
    "to_keyed_vectors",
    "write_word2vec",
]
