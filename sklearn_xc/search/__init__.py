"""Maximum inner product search: the rows of W with the largest scores, while W is trained.

::

    build(W, columns)          W is trained: its rows move
          |                         |
          v                         v
       [index] <------------- update(rows)
          ^
          |
    query(V, n_candidates) --> Candidates(labels, scores, counts), best first

* ``ExactIndex`` scores all rows; the others are compared with it.
* ``SphericalIndex`` scores the rows of a few clusters, which it keeps up to date.
* ``ProductIndex`` clusters blocks of a few columns, and adds up what their centroids score.
* ``FaissIndex`` leaves that to the faiss library.
* ``search_recall`` is the share of the truly best rows that an index finds.

An index has no say in what the scores are for. To add one, write its file, after the protocol in
``protocol.py``, and give it a line in ``INDEXES`` (``registry.py``): the tests read that table.
Whoever takes an index as a parameter, by name or as an instance, calls ``make_index``; one from
outside the package is then checked at each query.
"""

from sklearn_xc.search.exact import ExactIndex
from sklearn_xc.search.faiss import FaissIndex
from sklearn_xc.search.product import ProductIndex
from sklearn_xc.search.protocol import Candidates, MipsIndex
from sklearn_xc.search.recall import search_recall
from sklearn_xc.search.registry import INDEXES, copy_index, index_bytes, make_index
from sklearn_xc.search.spherical import SphericalIndex

__all__ = [
    "INDEXES",
    "Candidates",
    "ExactIndex",
    "FaissIndex",
    "MipsIndex",
    "ProductIndex",
    "SphericalIndex",
    "copy_index",
    "index_bytes",
    "make_index",
    "search_recall",
]
